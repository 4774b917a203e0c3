//! What can be done with the links of a line, as the command line says it.

use clap::{Args, Subcommand};

use crate::control::RateMax;
use crate::settings::links::{LinkError, parse_rate, parse_tier, parse_weight};
use crate::settings::values::InterfaceName;

/// Add links to a line that runs, take them away, look at them.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct LinkArguments {
    #[command(subcommand)]
    pub command: LinkCommand,
}

#[derive(Debug, Subcommand)]
pub enum LinkCommand {
    /// Add a link to a line that runs.
    ///
    /// Before it carries anything it is checked: that it exists, is Ethernet, has a large enough MTU and is in no
    /// other line; and then, for up to 3 seconds, whether the peers answer over it. What was found is said. A link without
    /// carrier or without a peer stays, and carries what it can as soon as it can. At the line's next start it is a link only if
    /// it is named there.
    #[command(after_help = "\
Examples:
  packtrain link add pt0 eth3
  packtrain link add pt0 wwan0 --tier 2 --rate 20mbit
  packtrain link add pt0 usb0 --wait-links
  packtrain link add pt0 eth3 --json | jq .id")]
    Add {
        /// The line.
        name: InterfaceName,

        /// The interface to send over.
        #[arg(value_name = "IF")]
        link: InterfaceName,

        #[command(flatten)]
        used: LinkUseArguments,

        /// Add it even when it does not exist yet: it joins when it appears.
        #[arg(long)]
        wait_links: bool,

        /// Print the link for programs, as in the `links` of the status document.
        #[arg(long)]
        json: bool,
    },
    /// Change what a link of a line that runs is used for.
    ///
    /// What is not named stays. What is sent from then on goes by it; frames under way arrive as they would have. At
    /// the line's next start it is used for what is said there.
    #[command(after_help = "\
Examples:
  packtrain link set pt0 wwan0 --tier 2
  packtrain link set pt0 eth2 --weight 3 --rate none")]
    Set {
        /// The line.
        name: InterfaceName,

        /// The link.
        #[arg(value_name = "IF")]
        link: InterfaceName,

        #[command(flatten)]
        used: LinkChangeArguments,

        /// Print the link for programs, as in the `links` of the status document.
        #[arg(long)]
        json: bool,
    },
    /// Take every link out of a line that runs, which stays without.
    ///
    /// Each interface works by itself again, as it did before the line took it. The virtual interface stays, with its
    /// addresses and without carrier, until `packtrain link add` gives it a link. Returns as `packtrain link remove` does.
    #[command(after_help = "\
Examples:
  packtrain link clear pt0
  packtrain link clear pt0 --json | jq -r '.[].name'")]
    Clear {
        /// The line.
        name: InterfaceName,

        /// Print the links for programs, as they were at last in the `links` of the status document.
        #[arg(long)]
        json: bool,
    },
    /// Take a link out of a line that runs.
    ///
    /// Returns when what was under way on it has arrived (within 3 seconds, or else it is sent again
    /// over the others) and everything that was changed on the interface is undone.
    #[command(after_help = "\
Examples:
  packtrain link remove pt0 eth2
  packtrain link remove pt0 eth2 --json | jq .tx")]
    Remove {
        /// The line.
        name: InterfaceName,

        /// The link.
        #[arg(value_name = "IF")]
        link: InterfaceName,

        /// Print the link for programs, as it was at last in the `links` of the status document.
        #[arg(long)]
        json: bool,
    },
    /// List the links of a line.
    #[command(after_help = "\
Examples:
  packtrain link list pt0
  packtrain link list pt0 --json | jq '.[] | {name, state, trains_tx}'")]
    List {
        /// The line.
        name: InterfaceName,

        /// Print them for programs: the `links` of the status document.
        #[arg(long)]
        json: bool,
    },
}

/// What a link is used for.
#[derive(Clone, Copy, Debug, Args)]
pub struct LinkUseArguments {
    /// Its tier, 1 to 9: it carries nothing while a link of a lower one works [default: 1].
    #[arg(long, value_name = "N", value_parser = parse_tier)]
    pub tier: Option<u8>,

    /// How much of what several links carry is its own where the balance is weighted, or flows keep to links, 1 to 100
    /// [default: 1].
    #[arg(long, value_name = "N", value_parser = parse_weight)]
    pub weight: Option<u8>,

    /// A rate that it is not believed to exceed, whatever is measured, as in 20mbit [default: none].
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<u64>,

    /// The switch has this link in a static link aggregation with the others of which that is said: what goes to hosts without
    /// packtrain goes by all of them.
    #[arg(long)]
    pub lag: bool,
}

/// What of that changes.
#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = true)]
pub struct LinkChangeArguments {
    /// Its tier, 1 to 9: it carries nothing while a link of a lower one works.
    #[arg(long, value_name = "N", value_parser = parse_tier)]
    pub tier: Option<u8>,

    /// How much of what several links carry is its own where the balance is weighted, or flows keep to links, 1 to 100.
    #[arg(long, value_name = "N", value_parser = parse_weight)]
    pub weight: Option<u8>,

    /// A rate that it is not believed to exceed, whatever is measured, as in 20mbit; or none.
    #[arg(long, value_name = "RATE|none", value_parser = parse_rate_max)]
    pub rate: Option<RateMax>,

    /// Whether the switch has this link in a static link aggregation with the others of which that is said.
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub lag: Option<OnOff>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OnOff {
    On,
    Off,
}

fn parse_rate_max(text: &str) -> Result<RateMax, LinkError> {
    match text {
        "none" => Ok(RateMax::None),
        rate => parse_rate(rate).map(RateMax::Bps),
    }
}
