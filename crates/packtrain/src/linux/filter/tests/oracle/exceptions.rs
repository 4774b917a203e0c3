//! What the filter drops although the kernel had a use for it: each kind by its name, with the reason.

use std::net::IpAddr;

use packtrain_proto::filter::Reason;
use packtrain_proto::wire::ethernet::MacAddr;

use super::effects::{ARP_QUESTION, Effect, OTHER_ICMP6, RESET, SOLICITATION, UNREACHABLE};
use super::packets::{ARP, IPV4, IPV6, group_mac};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exception {
    /// `--ports auto` says so: no reset, and nobody is asked where to send it.
    NoReset,
    /// `--ports auto` says so: no "port unreachable".
    NoUnreachable,
    /// To the Ethernet address of a group that nobody has joined, with something in it that is not for this group: IP for one address
    /// or another group, or ARP. Cards drop such frames too (an interface that takes all of them shows the kernel what
    /// no card would), and who makes them is at odds with RFC 1112, section 6.4, and RFC 2464, section 7.
    OfAnotherGroup,
    /// IPv6 complains of hop-by-hop options that it does not know before it looks whether it is in the group (RFC 8200, section
    /// 4.2): to a stranger about what was for others. Rare, and nobody's loss.
    ComplaintAboutOptions,
}

impl Exception {
    /// Those that a few thousand frames need.
    pub(super) const COMMON: [Exception; 3] = [
        Exception::NoReset,
        Exception::NoUnreachable,
        Exception::OfAnotherGroup,
    ];

    /// By which one it may be dropped, if by any.
    pub(super) fn of(frame: &[u8], reason: Reason, effects: &[Effect]) -> Option<Exception> {
        match reason {
            Reason::ClosedTcp => answers_only(effects, RESET).then_some(Exception::NoReset),
            Reason::ClosedUdp => {
                answers_only(effects, UNREACHABLE).then_some(Exception::NoUnreachable)
            }
            Reason::ForeignGroup | Reason::ForeignSolicitation
                if answers_only(effects, OTHER_ICMP6) && has_options(frame) =>
            {
                Some(Exception::ComplaintAboutOptions)
            }
            Reason::ForeignGroup | Reason::ForeignSolicitation if is_for_another(frame) => {
                Some(Exception::OfAnotherGroup)
            }
            _ => None,
        }
    }
}

/// They get what this host sends to itself.
const OF_ANSWERS: [&str; 2] = ["a raw socket for ICMP", "a raw socket for ICMPv6"];

/// Nobody has received it, and all that is sent is such an answer, maybe to this host itself, or a question where to send it.
fn answers_only(effects: &[Effect], answer: &str) -> bool {
    effects.iter().all(|effect| match effect {
        Effect::Received(socket) => answer == UNREACHABLE && OF_ANSWERS.contains(socket),
        Effect::Sent(sent) => [answer, ARP_QUESTION, SOLICITATION].contains(&sent.what),
        // Of the one that it would be sent to.
        Effect::Neighbour(_) => true,
        Effect::ToReport(_) => false,
    })
}

/// How many tags a frame has, as far as they are there.
fn tags_of(frame: &[u8]) -> usize {
    let types = frame[12..].chunks_exact(4);
    types
        .take_while(|tag| matches!(tag[..2], [0x81, 0x00] | [0x88, 0xa8]))
        .count()
}

/// The type behind all tags, and what stands there; `None`: the frame ends before.
fn behind_tags(frame: &[u8]) -> Option<(u16, &[u8])> {
    let (ether_type, packet) = frame.get(12 + 4 * tags_of(frame)..)?.split_first_chunk()?;
    Some((u16::from_be_bytes(*ether_type), packet))
}

/// Right behind the header of IPv6.
fn has_options(frame: &[u8]) -> bool {
    behind_tags(frame)
        .is_some_and(|(ether_type, packet)| ether_type == IPV6 && packet.get(6) == Some(&0))
}

/// Whether what is in a frame to a group is for something else.
fn is_for_another(frame: &[u8]) -> bool {
    let destination = match behind_tags(frame) {
        Some((ARP, _)) => None,
        Some((IPV4, packet)) => address_at::<4>(packet, 16).map(IpAddr::from),
        Some((IPV6, packet)) => address_at::<16>(packet, 24).map(IpAddr::from),
        _ => return false,
    };
    destination.and_then(group_mac) != Some(MacAddr::from_slice(frame))
}

fn address_at<const LEN: usize>(packet: &[u8], at: usize) -> Option<[u8; LEN]> {
    packet.get(at..)?.first_chunk().copied()
}
