//! What a person may say about a line, from the command line or from a file: one struct.

pub mod classes;
pub mod compress;
pub mod dfap;
pub mod dictionary;
pub mod file;
pub mod flows;
pub mod links;
pub mod liveness;
pub mod repair;
pub mod sand;
pub mod size;
pub mod values;

use std::time::Duration;

use packtrain_proto::class::{self, Action, Class, ClassName, Pack};
use packtrain_proto::config::Balance;
use packtrain_proto::dfap::stations::STATIONS_MAX;
use packtrain_proto::wire::ethernet::MacAddr;
pub use packtrain_settings::packing;

use crate::linux::netlink::IpPrefix;
use crate::settings::compress::CompressPolicy;
use crate::settings::dfap::{DfapSettings, ModePolicy};
use crate::settings::dictionary::DictionaryFile;
use crate::settings::flows::FlowSettings;
use crate::settings::links::MemberLink;
use crate::settings::liveness::LivenessSettings;
use crate::settings::packing::PackPolicy;
use crate::settings::repair::RepairPolicy;
use crate::settings::sand::SandDelay;
use crate::settings::size::SizePolicy;
use crate::settings::values::{BalancePolicy, InterfaceName, LogLevel, PathPolicy};

/// Smallest MTU of a member link: below, the headers of a train would be most of it, and IPv4
/// itself promises no less (RFC 791).
pub const LINK_MTU_MIN: u32 = 576;
/// Smallest and largest MTU of `pt0`: IPv4's own minimum (RFC 791), and what a TAP takes.
pub const MTU_MIN: u16 = 68;
pub const MTU_MAX: u16 = 65_521;
/// IPv6 does not exist on an interface with less (RFC 8200, section 5).
pub const MTU_MIN_IPV6: u16 = 1280;
pub const MTU_DEFAULT: u16 = 1500;
/// So that a hello with every link's record fits the smallest link (docs/wire-format.md).
pub const LINKS_MAX: usize = 16;

/// One line as a person wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub name: InterfaceName,
    /// In the order given; the first lends its address to `pt0`'s.
    pub links: Vec<MemberLink>,
    pub addresses: Vec<IpPrefix>,
    pub mtu: u16,
    /// `None`: derived, the same at each start.
    pub mac: Option<MacAddr>,
    pub line_id: u32,
    pub marked_frames: bool,
    /// Whether frames may go past the engine.
    pub path: PathPolicy,
    /// Where direct frames may go that no mark lets pass.
    pub direct_vlan: Option<u16>,
    pub balance: BalancePolicy,
    pub liveness: LivenessSettings,
    /// What links lose that live goes again in so short a time.
    pub repair: RepairPolicy,
    pub max_sand_delay: SandDelay,
    /// By what the length of trains is chosen.
    pub size: SizePolicy,
    /// Links of a higher tier carry trains also while all of the lower ones are full.
    pub tier_spill: bool,
    pub flows: FlowSettings,
    /// What is spoken with hosts that speak it too.
    pub mode: ModePolicy,
    pub dfap: DfapSettings,
    /// When frames leave that no class matches. `None`: as the mode has it.
    pub pack: Option<PackPolicy>,
    /// What of such frames is compressed.
    pub compress: CompressPolicy,
    /// Whether peers may send this line coded trains, and get such from it.
    pub coded_trains: bool,
    /// What payload is compressed with to and from peers that have the same one.
    pub dictionary: Option<DictionaryFile>,
    /// In the order in which frames are compared with them.
    pub classes: Vec<Class>,
    /// For how long what goes directly flows on when the daemon ends.
    pub stay: Option<Duration>,
    /// Start even when none of the links exists yet.
    pub wait_links: bool,
    pub log_level: LogLevel,
}

impl Settings {
    /// Defaults for everything but the name.
    pub fn new(name: InterfaceName) -> Settings {
        Settings {
            name,
            links: Vec::new(),
            addresses: Vec::new(),
            mtu: MTU_DEFAULT,
            mac: None,
            line_id: 0,
            marked_frames: true,
            path: PathPolicy::default(),
            direct_vlan: None,
            balance: BalancePolicy::default(),
            liveness: LivenessSettings::default(),
            repair: RepairPolicy::default(),
            max_sand_delay: SandDelay::default(),
            size: SizePolicy::default(),
            tier_spill: false,
            flows: FlowSettings::default(),
            mode: ModePolicy::default(),
            dfap: DfapSettings::default(),
            pack: None,
            compress: CompressPolicy::default(),
            coded_trains: true,
            dictionary: None,
            classes: class::defaults(),
            stay: None,
            wait_links: false,
            log_level: LogLevel::Info,
        }
    }

    /// What is done with frames that no class matches. The paper's protocol waits, by a random number.
    pub fn rest(&self) -> Action {
        let by_mode = match self.mode {
            ModePolicy::Trains => Pack::Queued,
            ModePolicy::Dfap => Pack::DfapRandom,
        };
        let by_mode = PackPolicy {
            pack: by_mode,
            on_backlog: false,
        };
        let PackPolicy { pack, on_backlog } = self.pack.unwrap_or(by_mode);
        Action {
            pack,
            on_backlog,
            compress: self.compress.into(),
            ..Action::default()
        }
    }

    /// Why no frame goes past the engine, whatever the kernel can do.
    pub fn engine_because(&self) -> Option<&'static str> {
        if self.mode == ModePolicy::Dfap {
            Some("its mode is dfap")
        } else if self.path == PathPolicy::Engine {
            Some("its path is engine")
        } else if !self.marked_frames {
            Some("it has no marked frames")
        } else if self.rest().pack.may_wait() {
            Some("its frames wait for others")
        } else {
            None
        }
    }

    /// What is wrong with the values taken together; each alone was checked when it was read.
    pub fn check(&self) -> Result<(), Contradiction> {
        if self.links.is_empty() {
            return Err(Contradiction::NoLinks);
        }
        if self.links.len() > LINKS_MAX {
            return Err(Contradiction::TooManyLinks(self.links.len()));
        }
        let names: Vec<&InterfaceName> = self.links.iter().map(|link| &link.name).collect();
        if names.contains(&&self.name) {
            return Err(Contradiction::OwnLink(self.name.clone()));
        }
        if let Some(twice) = first_repeated(&names) {
            return Err(Contradiction::LinkTwice(InterfaceName::clone(twice)));
        }
        for class in &self.classes {
            let is_link = |link: &&String| names.iter().any(|name| name.as_str() == *link);
            if let Some(link) = class.links.iter().find(|link| !is_link(link)) {
                return Err(Contradiction::ClassOfNoLink {
                    class: class.name.clone(),
                    link: link.clone(),
                });
            }
        }
        if self.tier_spill && Balance::from(self.balance).keeps_flows() {
            return Err(Contradiction::SpillOfFlows(self.balance));
        }
        if let Some(twice) = first_repeated(&self.dfap.stations) {
            return Err(Contradiction::StationTwice(*twice));
        }
        if self.dfap.stations.len() > STATIONS_MAX {
            return Err(Contradiction::TooManyStations(self.dfap.stations.len()));
        }
        if let Some(twice) = first_repeated(&self.addresses) {
            return Err(Contradiction::AddressTwice(*twice));
        }
        let ipv6 = self.addresses.iter().find(|a| a.address.is_ipv6());
        if let Some(&address) = ipv6
            && self.mtu < MTU_MIN_IPV6
        {
            return Err(Contradiction::MtuTooSmallForIpv6 {
                mtu: self.mtu,
                address,
            });
        }
        Ok(())
    }
}

fn first_repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    list.iter()
        .enumerate()
        .find(|(i, item)| list[..*i].contains(item))
        .map(|(_, item)| item)
}

/// Values that are right one by one, and not together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    #[error("a line needs at least one link")]
    NoLinks,
    #[error("{0} links are named, a line has at most {LINKS_MAX}")]
    TooManyLinks(usize),
    #[error("{0} cannot be a link of itself")]
    OwnLink(InterfaceName),
    #[error("link {0} is named twice")]
    LinkTwice(InterfaceName),
    #[error("class {class} names {link}, which is no link of the line")]
    ClassOfNoLink { class: ClassName, link: String },
    #[error("with balance {0} each flow keeps to its link, and none can spill to another tier")]
    SpillOfFlows(BalancePolicy),
    #[error("station {0} is named twice")]
    StationTwice(MacAddr),
    #[error("{0} stations are named, a line knows at most {STATIONS_MAX}")]
    TooManyStations(usize),
    #[error("address {0} is named twice")]
    AddressTwice(IpPrefix),
    #[error("MTU {mtu} is too small for {address}: IPv6 needs at least {MTU_MIN_IPV6}")]
    MtuTooSmallForIpv6 { mtu: u16, address: IpPrefix },
}

impl Contradiction {
    /// The key of the configuration file that says it.
    pub fn key(&self) -> &'static str {
        match self {
            Contradiction::NoLinks
            | Contradiction::TooManyLinks(_)
            | Contradiction::OwnLink(_)
            | Contradiction::LinkTwice(_) => "link",
            Contradiction::ClassOfNoLink { .. } => "class",
            Contradiction::SpillOfFlows(_) => "tier_spill",
            Contradiction::StationTwice(_) | Contradiction::TooManyStations(_) => "dfap_stations",
            Contradiction::AddressTwice(_) => "addresses",
            Contradiction::MtuTooSmallForIpv6 { .. } => "mtu",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn line(links: &[&str], addresses: &[&str]) -> Settings {
        Settings {
            links: links.iter().map(|l| l.parse().unwrap()).collect(),
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
            ..Settings::new("pt0".parse().unwrap())
        }
    }

    #[test]
    fn a_line_of_one_link_is_right() {
        assert_eq!(
            line(&["eth1"], &["10.9.0.1/24", "fd00::1/64"]).check(),
            Ok(())
        );
    }

    #[test]
    fn each_contradiction_is_found() {
        let text = |settings: Settings| settings.check().unwrap_err().to_string();
        assert_eq!(text(line(&[], &[])), "a line needs at least one link");
        let many: Vec<String> = (0..17).map(|i| format!("eth{i}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            text(line(&many, &[])),
            "17 links are named, a line has at most 16"
        );
        assert_eq!(
            text(line(&["eth1", "pt0"], &[])),
            "pt0 cannot be a link of itself"
        );
        assert_eq!(
            text(line(&["eth1", "eth2", "eth1"], &[])),
            "link eth1 is named twice"
        );
        assert_eq!(
            text(line(&["eth1"], &["10.9.0.1/24", "10.9.0.1/24"])),
            "address 10.9.0.1/24 is named twice"
        );
        let mut spilling = line(&["eth1", "eth2"], &[]);
        spilling.tier_spill = true;
        for &policy in BalancePolicy::value_variants() {
            spilling.balance = policy;
            let error = spilling.check().err().map(|error| error.to_string());
            let told = format!(
                "with balance {policy} each flow keeps to its link, and none can spill to another tier"
            );
            let keeps = policy.as_str().starts_with("hash-");
            assert_eq!(error, keeps.then_some(told));
        }
        let mut small = line(&["eth1"], &["fd00::1/64"]);
        small.mtu = 1279;
        assert_eq!(
            text(small),
            "MTU 1279 is too small for fd00::1/64: IPv6 needs at least 1280"
        );
    }
}
