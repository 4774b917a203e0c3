//! The status of a filter for a person.

use std::fmt::Write as _;

use packtrain_proto::filter::Reason;

use crate::cli::output::{BAD, GOOD, HEADING, WARNING};
use crate::filter::document::{Amount, FilterDocument};

pub fn status(document: &FilterDocument) -> String {
    let mut text = String::new();
    let interface = &document.interface;
    let _ = writeln!(text, "{HEADING}filter of {interface}{HEADING:#}");
    text += &unconfirmed(document);
    if !document.known_as.is_empty() && document.known_as != *interface {
        let _ = writeln!(
            text,
            "  {WARNING}it was {known} when the filter came, and commands go on to call it so: packtrain filter off {known}{WARNING:#}",
            known = document.known_as
        );
    }
    let dry = match document.dry_run {
        true => format!(", {WARNING}dry run: nothing is dropped{WARNING:#}"),
        false => String::new(),
    };
    let _ = writeln!(
        text,
        "  policy {}, ports {}, mode {}{dry}",
        document.policy, document.ports, document.mode
    );
    if document.pid.is_none() {
        let _ = writeln!(
            text,
            "  {WARNING}its process has ended: when its watchdog has fired, what rules do not decide passes{WARNING:#}"
        );
    } else if document.stays {
        let _ = writeln!(text, "  stays when its process ends");
    }
    if document.filters_unicast == Some(true) {
        let _ = writeln!(
            text,
            "  the interface filters unicast addresses itself: few for others come"
        );
    }
    if let Some(line) = &document.line {
        let _ = writeln!(
            text,
            "  a member link of {line}, whose frames are its own too"
        );
    }
    if document.local_prefixes_refused > 0 {
        let _ = writeln!(
            text,
            "  {WARNING}{} local prefixes are more than can be looked up: ARP for others passes{WARNING:#}",
            document.local_prefixes_refused
        );
    }
    let handled = document.handled.frames;
    let _ = writeln!(text, "  {:<11}{}", "handled", amount(&document.handled));
    let _ = writeln!(
        text,
        "  {GOOD}{:<11}{GOOD:#}{}{}",
        "useful",
        amount(&document.useful),
        share(document.useful.frames, handled)
    );
    let dropped = if document.dry_run {
        "not useful"
    } else {
        "dropped"
    };
    let _ = writeln!(
        text,
        "  {BAD}{dropped:<11}{BAD:#}{}{}",
        amount(&document.dropped),
        share(document.dropped.frames, handled)
    );
    let mut rows: Vec<(&str, Reason, Amount)> = Vec::new();
    for reason in Reason::ALL {
        if let Some(count) = document.reasons.get(reason.as_str())
            && count.frames > 0
        {
            let counted = Amount {
                frames: count.frames,
                bytes: count.bytes,
            };
            rows.push((count.verdict.as_str(), *reason, counted));
        }
    }
    rows.sort_by_key(|(verdict, _, counted)| (*verdict == "drop", u64::MAX - counted.frames));
    if !rows.is_empty() {
        let _ = writeln!(
            text,
            "\n  {HEADING}{:<7}{:>14} {:>16}  why{HEADING:#}",
            "verdict", "frames", "bytes"
        );
    }
    for (verdict, reason, counted) in rows {
        let _ = writeln!(
            text,
            "  {verdict:<7}{:>14} {:>16}  {}",
            counted.frames,
            counted.bytes,
            words(reason)
        );
    }
    text
}

/// What is undone soon, on a line of its own; otherwise nothing.
pub fn unconfirmed(document: &FilterDocument) -> String {
    let Some(what) = &document.unconfirmed else {
        return String::new();
    };
    let seconds = document.confirm_seconds_left.unwrap_or(0.0);
    let known_as = &document.known_as;
    format!(
        "  {WARNING}UNCONFIRMED: {what}: undone in {seconds:.0} s, unless you say: packtrain filter confirm {known_as}{WARNING:#}\n"
    )
}

fn amount(amount: &Amount) -> String {
    format!("{:>12} frames {:>16} bytes", amount.frames, amount.bytes)
}

fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        _ => format!("  {:5.1} %", part as f64 * 100.0 / whole as f64),
    }
}

/// Each reason as a person reads it.
pub fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::Ours => "to an address of the interface",
        Reason::Broadcast => "broadcast other than ARP",
        Reason::ArpOurs => "ARP that concerns an address of this host",
        Reason::ArpNeighbour => "ARP from a neighbour that is known",
        Reason::Group => "to a group that was joined",
        Reason::LinkControl => "to a group of link control (LLDP, STP, EAPOL, PTP)",
        Reason::Train => "packtrain's own, to a group",
        Reason::Short => "too short to tell",
        Reason::Promiscuous => "not for us: the interface is promiscuous, or takes all groups",
        Reason::Handler => "not for us: the interface belongs to a bridge, a macvlan, a bond …",
        Reason::Vlan => "not for us, tagged: VLAN interfaces stand on the interface",
        Reason::Capture => "not for us: a capture is running",
        Reason::Listener => "not for us: a packet socket takes this EtherType",
        Reason::Ingress => "not for us: programs or rules at the interface's way in see it",
        Reason::ArpSetting => "ARP for others: arp_accept, proxy_arp or proxied neighbours",
        Reason::Changing => "ARP for others, while the host's addresses change",
        Reason::Redirected => "to a closed port, where rules may redirect it",
        Reason::Unseen => "not for us, perhaps: more of something than is looked through",
        Reason::Unrefreshed => "nobody had refreshed the filter",
        Reason::NoPolicy => "no policy",
        Reason::Allowed => "by a rule",
        Reason::Looped => "sent by this host itself, on its way back to its own sockets",
        Reason::ForeignUnicast => "to somebody else",
        Reason::ForeignArp => "ARP that concerns others",
        Reason::ForeignGroup => "to a group that nobody here has joined",
        Reason::ForeignSolicitation => "IPv6 asking for others (neighbour solicitation)",
        Reason::ClosedTcp => "to a TCP port that no socket has",
        Reason::ClosedUdp => "to a UDP port that no socket has",
        Reason::Denied => "by a rule",
        Reason::Limited => "more than a rule allows",
    }
}
