//! A frame in a few words, as far as its flow tells.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use packtrain_proto::class::facts::{FlowFacts, UNTAGGED};
use packtrain_proto::class::words::{ETHER_TYPES, PROTOCOLS};
use packtrain_proto::wire::packet::IpVersion;

/// As in `vlan 5 udp 10.9.0.1:1000 > 10.9.0.2:53`, or `arp`.
pub(super) fn flow(flow: &FlowFacts) -> String {
    let mut text = String::new();
    if flow.vlan != UNTAGGED {
        let _ = write!(text, "vlan {} ", flow.vlan);
    }
    let Some(ip) = flow.ip else {
        let ether_type = flow.ether_type;
        let name = name(ETHER_TYPES, ether_type.into());
        text += &name.unwrap_or_else(|| format!("ethertype {ether_type:#06x}"));
        return text;
    };
    let protocol = name(PROTOCOLS, ip.protocol.into());
    text += &protocol.unwrap_or_else(|| format!("proto {}", ip.protocol));
    let address = |number: u128| match ip.version {
        IpVersion::V4 => Ipv4Addr::from_bits(number as u32).to_string(),
        IpVersion::V6 => Ipv6Addr::from_bits(number).to_string(),
    };
    let ends = [flow.source, flow.destination].map(address);
    let ends: Vec<String> = match (flow.ports, ip.version) {
        (None, _) => ends.into(),
        (Some(ports), IpVersion::V4) => ends
            .iter()
            .zip(ports)
            .map(|(a, port)| format!("{a}:{port}"))
            .collect(),
        (Some(ports), IpVersion::V6) => ends
            .iter()
            .zip(ports)
            .map(|(a, port)| format!("[{a}]:{port}"))
            .collect(),
    };
    let _ = write!(text, " {} > {}", ends[0], ends[1]);
    text
}

fn name(words: &[(&'static str, u32)], number: u32) -> Option<String> {
    let known = words.iter().find(|(_, known)| *known == number);
    known.map(|(name, _)| (*name).to_owned())
}
