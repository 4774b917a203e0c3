//! A peer for a person: which paths lead to it, what is known of them, and which way frames take.

use std::fmt::Write as _;

use super::coding::peers_dictionary;
use super::words::{bytes, count, duration, rate};
use super::{field, heading, measured, tables};
use crate::status::{Hold, Peer, PeerLink, PeerPath};

pub(super) fn write_peer(out: &mut String, peer: &Peer, packs_by_auto: bool) {
    let name = peer.addresses.first().map_or("?", String::as_str);
    heading(
        out,
        "peer",
        name,
        peer.up,
        match (peer.up, peer.away) {
            (true, true) => "its engine is away, its direct path stays",
            (true, false) => "up",
            (false, _) => "not up yet",
        },
    );
    field(out, "node", &format!("{}, {}", peer.node_id, peer.version));
    if let Some((_, more)) = peer.addresses.split_first()
        && !more.is_empty()
    {
        field(out, "behind it", &more.join(", "));
    }
    let capabilities = if peer.capabilities.is_empty() {
        "nothing beyond trains".to_owned()
    } else {
        peer.capabilities.join(", ")
    };
    field(out, "takes", &format!("{capabilities}; mtu {}", peer.mtu));
    field(
        out,
        "heard",
        &format!("{} ago", duration(peer.last_heard_s)),
    );
    let first = peer.links.first();
    if peer
        .links
        .iter()
        .all(|path| first.is_some_and(|first| first.link == path.link))
    {
        for link in &peer.links {
            field(out, "path", &path(link));
            if let Some(known) = measured::in_words(link) {
                field(out, "measured", &known);
            }
        }
    } else {
        out.push_str(&tables::paths(&peer.links, "  "));
        out.push_str(&measured::measured(&peer.links, "  "));
    }
    let goes = match (peer.path, peer.path_because.as_deref()) {
        (PeerPath::Direct, _) => "direct, past the engine".to_owned(),
        (PeerPath::Engine, None) => "by the engine".to_owned(),
        (PeerPath::Engine, Some(because)) => {
            let unmarked = match because {
                "unanswered" => why_not_unmarked(peer),
                _ => "",
            };
            format!("by the engine: {}{unmarked}", path_reason(because))
        }
    };
    field(out, "goes", &goes);
    if let Some(theirs) = peers_dictionary(peer) {
        field(out, "dictionary", &theirs);
    }
    if packs_by_auto {
        field(out, "auto packs", &auto_choice(peer));
    }
    if peer.hold.held_trains > 0 {
        field(out, "held", &held(&peer.hold));
    }
    if peer.queued_frames > 0 {
        let queued = format!(
            "{} frames, {}",
            count(peer.queued_frames),
            bytes(peer.queued_bytes)
        );
        field(out, "waiting", &queued);
    }
}

/// What waited for those before it.
fn held(hold: &Hold) -> String {
    let (held, all) = (count(hold.held_trains), count(hold.trains));
    let p99 = match hold.p99_s {
        0.0 => "p99 not held".to_owned(),
        seconds => format!("p99 {}", duration(seconds)),
    };
    let most = duration(hold.max_s);
    format!("{held} of {all} trains received, {p99}, {most} at most")
}

/// Over which links flows are spread that may be lost with one, where there are several.
pub(super) fn write_spread(out: &mut String, peer: &Peer) {
    let names = |stripes: bool| -> Vec<&str> {
        let open = |link: &&PeerLink| matches!(link.direct.as_deref(), Some("loss_ok" | "all"));
        let links = peer.links.iter().filter(open);
        let links = links.filter(|link| link.direct_stripes == stripes);
        links.map(|link| &link.link[..]).collect()
    };
    let (spread, others) = (names(true), names(false));
    if spread.len() + others.len() < 2 {
        return;
    }
    let text = match &spread[..] {
        [] | [_] => "past the engine, each flow by one link".to_owned(),
        links => {
            let others = match others.is_empty() {
                true => String::new(),
                false => format!("; {} not", others.join(", ")),
            };
            format!(
                "past the engine, TCP spread over {}{others}",
                links.join(", ")
            )
        }
    };
    field(out, "loss ok", &text);
}

/// Why direct frames do not go without a mark either.
fn why_not_unmarked(peer: &Peer) -> &'static str {
    let because = |kind: &str| {
        let mut refused = peer.links.iter().map(|link| &link.direct_marks_refused);
        refused.find_map(|refused| refused.get(kind))
    };
    match because("vlan").map(String::as_str) {
        Some("own_traffic") => return "; and the link uses the VLAN for them itself",
        Some("not_offered") => return "; and the peer does not take them in the VLAN for them",
        Some("unanswered") => return ", not in the VLAN for them either",
        _ => {}
    }
    match because("none").map(String::as_str) {
        Some("own_traffic") => {
            "; and none may go without, for the link is used by itself (up --direct-vlan names another way)"
        }
        Some("not_offered") => "; and none may go without, for the peer uses its link by itself",
        Some("other_line") => "; and none may go without, for another line has the same links",
        _ => "",
    }
}

/// Why frames go by the engine, in words.
pub(crate) fn path_reason(because: &str) -> &str {
    match because {
        "settings" => "the direct path is off here, or this kernel has not what it takes",
        "failed" => "the direct path could not be set up; the log says why",
        "pt0_qdisc" => "somebody has put a qdisc or filters of their own before it",
        "unanswered" => {
            "the peer has not answered what has our mark: does the network let it pass?"
        }
        "not_offered" => "the peer does not take direct frames",
        "several_links" => "several links share the frames, and none is to be lost with one",
        "no_mark" => "the link has no mark",
        "mtu" => "the MTU is larger than what all on the way take",
        "congestion" => "the link's queue stands, or small frames are many",
        "loss" => "direct frames were lost on the way",
        "delay" => "a queue stands behind the link",
        "disorder" => "flows that were spread over links came in disorder",
        "size" => "trains are shorter than pt0's frames",
        "bit_errors" => "the link loses by bit errors, or is looked at for that",
        "not_up" => "the peer is not up",
        other => other,
    }
}

fn path(link: &PeerLink) -> String {
    let mut text = format!("{} to {}", link.link, link.remote_address);
    if let Some(round_trip) = link.round_trip_s {
        let _ = write!(text, ", {}", duration(round_trip));
    }
    if let Some(rate_bps) = link.rate_bps {
        let _ = write!(text, ", {}", rate(rate_bps));
    }
    if link.lost_trains > 0 {
        let _ = write!(text, ", {} trains lost", count(link.lost_trains));
    }
    match (link.size_because.as_str(), link.bit_error_rate) {
        ("bit_errors", Some(rate)) => {
            let _ = write!(
                text,
                ", trains of {} for bit errors of {rate:.1e}",
                link.size_bytes
            );
        }
        ("long_lost", _) => {
            let _ = write!(
                text,
                ", trains of {} for longer ones do not arrive",
                link.size_bytes
            );
        }
        ("sand_delay", _) => {
            let _ = write!(
                text,
                ", trains of {} so that small frames need not wait",
                link.size_bytes
            );
        }
        ("fixed", _) => {
            let _ = write!(text, ", trains of {}", link.size_bytes);
        }
        _ => {}
    }
    if link.reordering_seen {
        text.push_str(", reorders");
    }
    let why = match link.state.as_str() {
        "open" => return text,
        "closed" => "closed: one end has no carrier, or too small an MTU",
        "joining" => "joining: what went another way before has to arrive first",
        "silent" => "silent: its other end is not heard, or does not acknowledge its trains",
        "held" => "held: it is to show first that it works",
        "retiring" => "leaving: what is under way arrives, and others go first",
        "backup" => "backup: another one is used",
        "too_slow" => "too slow for the others to wait for",
        other => other,
    };
    let _ = write!(text, ", {why}");
    text
}

/// What was done last with a frame that left it to the engine, and why.
fn auto_choice(peer: &Peer) -> String {
    match (peer.auto.as_str(), peer.auto_wait_s) {
        ("waits", Some(wait_s)) => format!(
            "frames wait {} at most: the link is short of frames a second",
            duration(wait_s)
        ),
        ("full_trains", _) => "at once: trains are full as it is".to_owned(),
        ("alone", _) => "at once: no other frame is to be expected so soon".to_owned(),
        _ => "at once: the links have room".to_owned(),
    }
}
