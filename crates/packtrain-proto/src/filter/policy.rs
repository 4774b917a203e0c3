//! What is dropped of what comes in, when no rule says otherwise.

use super::frame::{ARP, Frame, PACKTRAIN, QINQ, VLAN};
use super::host::{Host, Listener};
use super::ports;
use super::reason::Reason;
use crate::wire::ethernet::MacAddr;

const BROADCAST: MacAddr = MacAddr([0xff; 6]);
/// IEEE 1588 (PTP) over Ethernet; its other group is one of link control.
const TIME_PROTOCOL: MacAddr = MacAddr([0x01, 0x1b, 0x19, 0, 0, 0]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Rules alone.
    None,
    /// The paper's section 4, to the letter.
    Nima,
    /// The same, and what else this host may want.
    #[default]
    Host,
}

/// What becomes of a frame. `is_tagged`: a tag has been taken out of it before.
pub fn decide(
    bytes: &[u8],
    is_tagged: bool,
    host: &Host,
    policy: Policy,
    asks_ports: bool,
) -> Reason {
    let Some(frame) = Frame::read(bytes, is_tagged) else {
        return Reason::Short;
    };
    if policy == Policy::None {
        return Reason::NoPolicy;
    }
    let reason = by_addresses(&frame, host, policy, asks_ports);
    if reason.is_drop() && policy == Policy::Host {
        return who_wants(&frame, host).unwrap_or(reason);
    }
    reason
}

fn by_addresses(frame: &Frame, host: &Host, policy: Policy, asks_ports: bool) -> Reason {
    if frame.destination == BROADCAST {
        return match frame.ether_type {
            ARP => arp(frame, host, policy),
            _ => Reason::Broadcast,
        };
    }
    if frame.destination.is_group() {
        return group(frame, host, policy);
    }
    let mut interfaces = host.interfaces();
    if !interfaces.any(|i| i.unicast.contains(&frame.destination)) {
        return Reason::ForeignUnicast;
    }
    let closed = asks_ports.then(|| ports::judge(host, frame)).flatten();
    closed.unwrap_or(Reason::Ours)
}

fn group(frame: &Frame, host: &Host, policy: Policy) -> Reason {
    if frame.ether_type == PACKTRAIN {
        return Reason::Train;
    }
    if policy == Policy::Host && is_link_control(frame.destination) {
        return Reason::LinkControl;
    }
    let mut interfaces = host.interfaces();
    if interfaces.any(|i| i.groups.contains(&frame.destination)) {
        return Reason::Group;
    }
    match frame.destination.0 {
        // Behind it stands the end of the address that is asked for (RFC 4291, section 2.7.1).
        [0x33, 0x33, 0xff, ..] => Reason::ForeignSolicitation,
        _ => Reason::ForeignGroup,
    }
}

/// 01:80:c2:00:00:00 to 2f (IEEE 802.1Q, tables 8-1 to 8-3 and 10-1).
fn is_link_control(group: MacAddr) -> bool {
    let MacAddr([a, b, c, d, e, f]) = group;
    [a, b, c, d, e] == [0x01, 0x80, 0xc2, 0, 0] && f < 0x30 || group == TIME_PROTOCOL
}

fn arp(frame: &Frame, host: &Host, policy: Policy) -> Reason {
    let Some(arp) = frame.arp() else {
        return Reason::Short;
    };
    if host.is_local(arp.target) {
        return Reason::ArpOurs;
    }
    if policy == Policy::Host {
        if host.is_local(arp.sender) {
            return Reason::ArpOurs;
        }
        let mut interfaces = host.interfaces();
        if interfaces.any(|i| i.neighbours.contains(&arp.sender)) {
            return Reason::ArpNeighbour;
        }
        let is_announcement = arp.sender == arp.target || !arp.is_request;
        let mut interfaces = host.interfaces();
        if interfaces
            .any(|i| i.answers_for_others || (is_announcement && i.learns_from_announcements))
        {
            return Reason::ArpSetting;
        }
    }
    match host.is_changing {
        true => Reason::Changing,
        false => Reason::ForeignArp,
    }
}

/// Why a frame passes that is not for this host.
fn who_wants(frame: &Frame, host: &Host) -> Option<Reason> {
    let is_group = frame.destination.is_group();
    for interface in host.interfaces() {
        if interface.is_promiscuous || (is_group && interface.takes_all_groups) {
            return Some(Reason::Promiscuous);
        }
        if interface.has_handler {
            return Some(Reason::Handler);
        }
    }
    if frame.is_tagged && host.interface.has_vlans {
        return Some(Reason::Vlan);
    }
    if host.listeners.contains(&Listener::AllTypes) {
        return Some(Reason::Capture);
    }
    // Only two tags are looked behind.
    if is_tag(frame.ether_type) {
        return Some(Reason::Unseen);
    }
    if types_of(frame).any(|ether_type| host.listeners.contains(&Listener::Type(ether_type))) {
        return Some(Reason::Listener);
    }
    host.has_ingress_programs.then_some(Reason::Ingress)
}

/// The types by which the kernel comes to a frame: it takes tags out one after the other, and looks each time. What has a length
/// there is 802.2, or raw 802.3 (`ETH_P_802_2`, `ETH_P_802_3`).
fn types_of(frame: &Frame) -> impl Iterator<Item = u16> + use<> {
    let own = match frame.ether_type {
        ..0x600 => [4, 1],
        own => [own; 2],
    };
    let tags: &[u16] = if frame.is_tagged { &[VLAN, QINQ] } else { &[] };
    own.into_iter().chain(tags.iter().copied())
}

fn is_tag(ether_type: u16) -> bool {
    [VLAN, QINQ].contains(&ether_type)
}
