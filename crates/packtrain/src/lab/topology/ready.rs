//! Topologies that come with packtrain, found by name.

use std::path::Path;

use super::{Topology, file};

macro_rules! ready {
    ($($name:literal),+ $(,)?) => {
        /// Name and text of each, simplest first.
        pub const READY: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../topologies/", $name, ".toml")))),+];
    };
}

ready![
    "pair",
    "pair-2",
    "pair-4",
    "unequal",
    "mixed",
    "star",
    "elt",
    "lfn-gbe",
    "lfn-gbe-25000",
    "lfn-fe",
    "lfn-fe-25000",
    "dumbbell",
    "hub",
];

/// No ready topology has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no topology {0:?}; there are {names}", names = names().join(", "))]
pub struct UnknownTopology(pub String);

pub fn names() -> Vec<&'static str> {
    READY.iter().map(|(name, _)| *name).collect()
}

/// Its file, for who wants to change it.
pub fn text(name: &str) -> Result<&'static str, UnknownTopology> {
    let found = READY.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, text)| *text)
        .ok_or_else(|| UnknownTopology(name.into()))
}

pub fn find(name: &str) -> Result<Topology, UnknownTopology> {
    let path = format!("{name}.toml");
    // Every one of them is read by a test.
    Ok(file::parse(Path::new(&path), text(name)?).expect("a ready topology is right"))
}

#[cfg(test)]
mod tests {
    use super::super::direction::{Direction, QueueLimit};
    use super::*;
    use crate::units::BitRate;

    fn wires(name: &str) -> Vec<String> {
        let topology = find(name).unwrap();
        topology
            .wires
            .iter()
            .map(|wire| wire.name.clone())
            .collect()
    }

    fn direction(topology: &str, wire: &str, from: &str) -> Direction {
        let topology = find(topology).unwrap();
        let wire = topology.wire(wire).unwrap();
        wire.from(&from.parse().unwrap()).unwrap().clone()
    }

    /// Rate of the wire, and rate and queue of the port before it.
    fn rates(topology: &str, wire: &str, from: &str) -> [String; 3] {
        let direction = direction(topology, wire, from);
        [
            direction
                .wire
                .rate
                .map_or("-".into(), |rate| rate.to_string()),
            direction
                .port
                .rate_bps
                .map_or("-".into(), |bps| BitRate(bps).to_string()),
            direction
                .port
                .queue_packets
                .map_or("-".into(), |n| n.to_string()),
        ]
    }

    #[test]
    fn each_is_called_as_its_file_and_says_what_it_is() {
        for name in names() {
            let topology = find(name).unwrap();
            assert_eq!(topology.name, name);
            assert!(topology.about.is_some(), "{name}");
        }
    }

    #[test]
    fn each_has_the_wires_that_its_name_promises() {
        assert_eq!(wires("pair"), ["a-b.0"]);
        assert_eq!(wires("pair-2"), ["a-b.0", "a-b.1"]);
        assert_eq!(wires("pair-4"), ["a-b.0", "a-b.1", "a-b.2", "a-b.3"]);
        assert_eq!(wires("unequal"), ["a-b.0", "a-b.1"]);
        assert_eq!(wires("mixed"), ["a-s.0", "b-s.0", "c-s.0"]);
        let mut star: Vec<String> = (1..=7).map(|i| format!("c{i}-s.0")).collect();
        star.push("s-server.0".into());
        assert_eq!(wires("star"), star);
        assert_eq!(wires("elt"), ["server-s.0", "server-s.1", "s-h.0"]);
        for name in ["lfn-gbe", "lfn-gbe-25000", "lfn-fe", "lfn-fe-25000"] {
            assert_eq!(wires(name), ["a-r1.0", "r1-r2.0", "r2-b.0"]);
        }
        let mut dumbbell: Vec<String> = (1..=10).map(|i| format!("s{i}-l.0")).collect();
        dumbbell.extend(["l-r.0".into(), "r-d.0".into()]);
        assert_eq!(wires("dumbbell"), dumbbell);
        assert_eq!(wires("hub"), ["a-h.0", "b-h.0", "c-h.0", "d-h.0"]);
    }

    #[test]
    fn the_links_have_their_rates() {
        let fast = ["100mbit", "100mbit", "1000"].map(String::from);
        for wire in ["a-b.0", "a-b.1", "a-b.2", "a-b.3"] {
            assert_eq!(rates("pair-4", wire, "b"), fast);
        }
        assert_eq!(rates("unequal", "a-b.0", "a"), fast);
        assert_eq!(rates("unequal", "a-b.1", "a"), ["20mbit", "20mbit", "1000"]);
        assert_eq!(rates("star", "s-server.0", "s"), ["100mbit", "-", "-"]);
        assert_eq!(rates("elt", "s-h.0", "h"), ["1gbit", "1gbit", "1000"]);
        assert_eq!(rates("hub", "a-h.0", "a"), ["-", "10mbit", "1000"]);
        let mixed = find("mixed").unwrap();
        let packtrain: Vec<bool> = mixed.hosts.iter().map(|host| host.packtrain).collect();
        assert_eq!(packtrain, [true, true, false]);
    }

    #[test]
    fn a_long_fat_network_has_198_ms_there_and_back_and_the_senders_port_by_its_name() {
        for (name, rate, queue) in [
            ("lfn-gbe", "1gbit", "100"),
            ("lfn-gbe-25000", "1gbit", "25000"),
            ("lfn-fe", "100mbit", "100"),
            ("lfn-fe-25000", "100mbit", "25000"),
        ] {
            assert_eq!(rates(name, "a-r1.0", "a"), [rate, rate, queue]);
            assert_eq!(rates(name, "r1-r2.0", "r1"), ["599mbit:ip", "-", "-"]);
            let ends = ["r1", "r2"].map(|from| direction(name, "r1-r2.0", from).wire.delay_ns);
            assert_eq!(ends, [99_000_000; 2]);
        }
    }

    #[test]
    fn the_dumbbells_sources_could_send_a_fifth_more_than_its_bar_takes() {
        let topology = find("dumbbell").unwrap();
        let sources = topology
            .wires
            .iter()
            .filter(|wire| wire.name.starts_with('s'));
        let sum: u64 = sources
            .map(|wire| wire.directions[0].wire.rate.unwrap().bps)
            .sum();
        let bar = direction("dumbbell", "l-r.0", "l");
        let bar_bps = bar.wire.rate.unwrap().bps;
        assert_eq!(sum * 10, bar_bps * 12);
        // What the bar sends in 100 ms.
        assert_eq!(bar.wire.queue.limit, QueueLimit::Bytes(bar_bps / 8 / 10));
        // And 1.2 times that, in packets of 1500 bytes.
        let source = direction("dumbbell", "s1-l.0", "s1");
        assert_eq!(
            source.port.queue_packets,
            Some((bar_bps / 8 / 10 * 12 / 10 / 1500) as u32)
        );
    }

    #[test]
    fn each_survives_its_way_through_json() {
        for name in names() {
            let topology = find(name).unwrap();
            let json = serde_json::to_string(&topology).unwrap();
            assert_eq!(serde_json::from_str::<Topology>(&json).unwrap(), topology);
        }
    }

    #[test]
    fn a_wrong_name_is_told_those_there_are() {
        assert_eq!(
            find("ring").unwrap_err().to_string(),
            "there is no topology \"ring\"; there are pair, pair-2, pair-4, unequal, mixed, star, \
             elt, lfn-gbe, lfn-gbe-25000, lfn-fe, lfn-fe-25000, dumbbell, hub"
        );
    }
}
