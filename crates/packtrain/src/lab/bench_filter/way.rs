//! What stands in the host's driver while it is flooded.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::mix::{CLOSED_PORT, HOST_MAC};
use super::prefixes;
use super::stage::Stage;
use crate::filter::document::FilterDocument;
use crate::lab::namespaces::Process;
use crate::lab::{Error, Result, wait_for};
use crate::linux::filter::Filter;
use crate::linux::flood::{Dropping, Drops};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Nothing stands there, and nothing comes but what is wanted.
    NoFlood,
    Without,
    /// The same once more: by how much two of the same differ.
    WithoutAgain,
    /// A program that drops everything and looks at nothing.
    DropAll,
    /// One that reads one byte, in which the flood says what `host` would let pass: what no filter can be better than.
    Marked,
    /// packtrain's filter, policy `host`.
    Filter,
    FilterAgain,
    /// Policy `nima`.
    FilterNima,
    /// With `--ports auto`.
    FilterPorts,
    /// With a rule that denies the closed port.
    FilterRule,
    /// xdp-filter with all that it can, as it is by default; it lets pass what is for the host's address.
    XdpFilter,
    /// With nothing but Ethernet addresses.
    XdpFilterEthernet,
    /// That denies the closed port and lets all else pass, with all that it can.
    XdpFilterPort,
    /// With nothing but UDP ports.
    XdpFilterUdp,
    /// packtrain's program without a policy, with a rule that denies what comes from a set of so many prefixes.
    Prefixes10,
    Prefixes100,
    Prefixes1000,
    Prefixes10000,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::NoFlood => "no flood",
            Way::Without => "without",
            Way::WithoutAgain => "without, again",
            Way::DropAll => "drops all unseen",
            Way::Marked => "reads a mark",
            Way::Filter => "filter",
            Way::FilterAgain => "filter, again",
            Way::FilterNima => "filter --policy nima",
            Way::FilterPorts => "filter --ports auto",
            Way::FilterRule => "filter, deny udp dport",
            Way::XdpFilter => "xdp-filter",
            Way::XdpFilterEthernet => "xdp-filter -f ethernet",
            Way::XdpFilterPort => "xdp-filter port",
            Way::XdpFilterUdp => "xdp-filter -f udp port",
            Way::Prefixes10 => "10 prefixes",
            Way::Prefixes100 => "100",
            Way::Prefixes1000 => "1000",
            Way::Prefixes10000 => "10,000",
        }
    }

    pub fn has_program(self) -> bool {
        !matches!(self, Way::NoFlood | Way::Without | Way::WithoutAgain)
    }

    pub fn drops_all(self) -> bool {
        self == Way::DropAll
    }

    /// Without a look at what it is.
    fn drops(self) -> Option<Drops> {
        match self {
            Way::DropAll => Some(Drops::All),
            Way::Marked => Some(Drops::Unmarked),
            _ => None,
        }
    }

    /// packtrain's.
    pub fn is_filter(self) -> bool {
        self.options().is_some() || self.prefixes().is_some()
    }

    pub fn prefixes(self) -> Option<usize> {
        match self {
            Way::Prefixes10 => Some(10),
            Way::Prefixes100 => Some(100),
            Way::Prefixes1000 => Some(1000),
            Way::Prefixes10000 => Some(10_000),
            _ => None,
        }
    }

    /// Of `packtrain filter on`.
    fn options(self) -> Option<&'static [&'static str]> {
        match self {
            Way::Filter | Way::FilterAgain | Way::FilterRule => Some(&[]),
            Way::FilterNima => Some(&["--policy", "nima"]),
            Way::FilterPorts => Some(&["--ports", "auto"]),
            _ => None,
        }
    }

    /// The words of `xdp-filter load`, and what it is told then.
    fn xdp_filter(self) -> Option<(&'static str, String)> {
        let address = format!("ether {HOST_MAC}");
        let port = format!("port {CLOSED_PORT} --proto udp --mode dst");
        match self {
            Way::XdpFilter => Some(("--policy deny", address)),
            Way::XdpFilterEthernet => Some(("--policy deny --features ethernet", address)),
            Way::XdpFilterPort => Some(("--policy allow", port)),
            Way::XdpFilterUdp => Some(("--policy allow --features udp", port)),
            _ => None,
        }
    }
}

/// What keeps it there.
#[derive(Debug)]
enum Hold {
    Nothing,
    Filter,
    /// Of this process.
    Own(Box<Filter>),
    #[expect(dead_code, reason = "held")]
    Dropping(Dropping),
    /// Who holds the file system in which xdp-filter keeps what it has loaded.
    XdpFilter(Option<Process>),
}

/// A way that stands, and goes with this.
#[derive(Debug)]
pub struct Standing<'a> {
    way: Way,
    stage: &'a Stage,
    packtrain: &'a Path,
    hold: Hold,
}

const LOADED_WITHIN: Duration = Duration::from_secs(30);

impl<'a> Standing<'a> {
    pub fn set(way: Way, stage: &'a Stage, packtrain: &'a Path) -> Result<Standing<'a>> {
        let mut standing = Standing {
            way,
            stage,
            packtrain,
            hold: Hold::Nothing,
        };
        if let Some(options) = way.options() {
            let words = ["on", &stage.interface, "--mode", "native"];
            standing.filter(words.iter().copied().chain(options.iter().copied()))?;
            standing.hold = Hold::Filter;
            if way == Way::FilterRule {
                let rule = format!("udp dport {CLOSED_PORT}");
                standing.filter(["deny", &stage.interface, &rule])?;
            }
        } else if let Some((load, told)) = way.xdp_filter() {
            standing.hold = Hold::XdpFilter(Some(xdp_filter(stage, load, &told)?));
        } else if let Some(count) = way.prefixes() {
            let filter = stage
                .host
                .in_namespace(|| prefixes::attached(stage.host_ifindex, count))??;
            standing.hold = Hold::Own(Box::new(filter));
        } else if let Some(drops) = way.drops() {
            let dropping = stage
                .host
                .in_namespace(|| Dropping::on(stage.host_ifindex, drops))?;
            let dropping = dropping.map_err(|error| Error::Unavailable(error.to_string()))?;
            standing.hold = Hold::Dropping(dropping);
        }
        Ok(standing)
    }

    pub fn way(&self) -> Way {
        self.way
    }

    pub fn stage(&self) -> &Stage {
        self.stage
    }

    /// Frames by reason; none where packtrain's filter does not stand.
    pub fn reasons(&self) -> Result<BTreeMap<String, u64>> {
        if let Hold::Own(filter) = &self.hold {
            return prefixes::reasons(filter);
        }
        if !self.way.is_filter() {
            return Ok(BTreeMap::new());
        }
        let text = self.filter(["status", &self.stage.interface, "--json"])?;
        let document: FilterDocument =
            serde_json::from_str(&text).map_err(|error| Error::Unexpected {
                program: "packtrain filter status".into(),
                text: format!("{error}: {text}"),
            })?;
        let reasons = document.reasons.into_iter();
        Ok(reasons.map(|(reason, of)| (reason, of.frames)).collect())
    }

    fn filter<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Result<String> {
        let mut command = vec![self.packtrain.as_os_str().to_owned(), "filter".into()];
        command.extend(words.into_iter().map(Into::into));
        self.stage.host.exec(command)
    }
}

impl Drop for Standing<'_> {
    /// What fails here is seen by the next that is to stand.
    fn drop(&mut self) {
        match &mut self.hold {
            Hold::Nothing | Hold::Dropping(_) | Hold::Own(_) => {}
            Hold::Filter => drop(self.filter(["off", &self.stage.interface])),
            Hold::XdpFilter(process) => {
                drop(process.take());
                let off = format!("ip link set dev {} xdp off", self.stage.interface);
                drop(self.stage.host.sh(&off));
            }
        }
    }
}

/// It pins what it loads, in a file system that is the process's own here: nothing of it is left on the machine.
fn xdp_filter(stage: &Stage, load: &str, told: &str) -> Result<Process> {
    let interface = &stage.interface;
    let script = format!(
        "mount -t bpf bpf /sys/fs/bpf && xdp-filter load --mode native {load} {interface} && \
         xdp-filter {told} && exec sleep infinity"
    );
    let mut process = stage.host.spawn(["sh", "-c", &script])?;
    let comm = format!("/proc/{}/comm", process.id());
    let is_ready = || std::fs::read_to_string(&comm).is_ok_and(|name| name.trim_end() == "sleep");
    wait_for("xdp-filter to be loaded", LOADED_WITHIN, || {
        is_ready() || !process.is_running()
    })?;
    match process.is_running() {
        true => Ok(process),
        // It says why.
        false => Err(Error::Unexpected {
            program: "xdp-filter".into(),
            text: process.finish()?,
        }),
    }
}
