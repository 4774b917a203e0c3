//! `packtrain filter sample` as clap reads it.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use packtrain_proto::filter::Reason;

use crate::linux::filter::samples::{SAMPLE_LEN_MAX, SampleWish};
use crate::settings::values::InterfaceName;

/// Show samples of what a filter drops, or write them to a file.
///
/// Each with the reason, and the rule if one has dropped it; in a dry run, what would have been dropped. The program
/// copies so many frames a second and no more, and only while this runs: what a drop costs stays as it is. One at a
/// time may sample a filter. Ends on Ctrl-C, or when the filter ends, and says how many frames were dropped
/// meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain filter sample eth1
  packtrain filter sample eth1 --reason foreign_arp,closed_tcp -c 100
  packtrain filter sample eth1 -w dropped.pcapng --for 60
  packtrain filter sample eth1 -w - | wireshark -k -i -

In a file, each frame's comment says why it was dropped; its statistics, how many there were.")]
pub struct SampleArguments {
    /// The interface [default: the only one that has a filter].
    #[arg(value_name = "LINK")]
    pub interface: Option<InterfaceName>,

    /// Write the frames to a file, as pcapng; `-` is standard output.
    #[arg(short = 'w', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: Option<PathBuf>,

    /// Only what is dropped for these reasons [default: all].
    #[arg(long = "reason", value_name = "REASON", value_delimiter = ',', value_parser = reasons())]
    reasons: Vec<Reason>,

    /// Most samples a second, on the average.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,

    /// Most bytes kept of each frame: 1 to 2048.
    #[arg(short = 's', long = "snap-len", value_name = "BYTES", default_value = "2048",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SAMPLE_LEN_MAX)))]
    pub snap_len: u32,

    /// End after so many samples.
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// End after so many seconds.
    #[arg(long = "for", value_name = "SECONDS", value_parser = parse_seconds)]
    pub time: Option<Duration>,
}

fn reasons() -> impl TypedValueParser<Value = Reason> {
    let drops = || Reason::ALL.iter().filter(|reason| reason.is_drop());
    let names: Vec<&str> = drops().map(|reason| reason.as_str()).collect();
    PossibleValuesParser::new(names).map(move |name| {
        let mut drops = drops();
        *drops
            .find(|reason| reason.as_str() == name)
            .expect("one of them")
    })
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
    match seconds {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a time in seconds, 0.1 to 86400".into()),
    }
}

impl SampleArguments {
    pub fn wish(&self) -> SampleWish {
        let drops = Reason::ALL.iter().filter(|reason| reason.is_drop());
        SampleWish {
            reasons: match self.reasons.is_empty() {
                true => drops.copied().collect(),
                false => self.reasons.clone(),
            },
            per_second: self.rate,
            len: self.snap_len,
        }
    }
}
