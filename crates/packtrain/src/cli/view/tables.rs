//! What is many of a kind, one a row.

use super::WIDTH;
use super::words::{bytes, count, duration, rate};
use crate::status::{Class, LagUse, Link, LinkCondition, PeerLink, StatusDocument};

/// The peers of a line, one a row.
pub fn peer_table(document: &StatusDocument) -> String {
    if document.peers.is_empty() {
        return format!(
            "{} has no peer: no host with packtrain answers, frames go plain\n",
            document.name
        );
    }
    let mut rows = Vec::new();
    for peer in &document.peers {
        let mut links: Vec<&str> = peer.links.iter().map(|l| l.link.as_str()).collect();
        links.dedup();
        let round_trips = peer.links.iter().filter_map(|l| l.round_trip_s);
        rows.push([
            peer.addresses.first().cloned().unwrap_or_default(),
            if peer.up { "up" } else { "waiting" }.into(),
            links.join(","),
            round_trips.reduce(f64::min).map_or("-".into(), duration),
            format!("{} ago", duration(peer.last_heard_s)),
            peer.version.clone(),
        ]);
    }
    let headings = ["ADDRESS", "STATE", "LINKS", "RTT", "HEARD", "SOFTWARE"];
    table(headings, rows, &[], "")
}

/// The links of a line, one a row.
pub fn link_table(document: &StatusDocument) -> String {
    links(&document.links, "")
}

/// The classes of a line in their order, one a row.
pub fn class_table(document: &StatusDocument) -> String {
    // Mostly none says anything of it.
    let says = |class: &Class| !matches!(class.compress.as_str(), "" | "auto");
    let compresses = document.classes.iter().any(says);
    let rows = document.classes.iter().map(|class| {
        [
            class.name.clone(),
            class.pack.clone(),
            path_of_class(class),
            match compresses {
                true => class.compress.clone(),
                false => String::new(),
            },
            count(class.taken.frames),
            bytes(class.taken.bytes),
            class
                .matches
                .clone()
                .unwrap_or_else(|| "what no class matches".into()),
        ]
    });
    let headings = [
        "CLASS", "PACK", "PATH", "COMPRESS", "FRAMES", "BYTES", "MATCH",
    ];
    table(headings, rows.collect(), &["BYTES", "FRAMES"], "")
}

fn path_of_class(class: &Class) -> String {
    let mut path = class.path.clone();
    for (says, what) in [(class.loss_ok, ", loss ok"), (class.duplicate, ", twice")] {
        path.push_str(if says { what } else { "" });
    }
    if !class.links.is_empty() {
        path = format!("{path} by {}", class.links.join(", "));
    }
    match class.repair.as_str() {
        "" | "line" => {}
        "off" => path.push_str("; no repair"),
        "lossless" => path.push_str("; lossless"),
        within => path.push_str(&format!("; again within {within}")),
    }
    path
}

/// Beside each other, without what matters least where it would be too wide.
pub(super) fn links(links: &[Link], indent: &str) -> String {
    let rows = links.iter().map(|link| {
        [
            link.name.clone(),
            link_state(link),
            link.mtu.map_or("-".into(), |mtu| mtu.to_string()),
            link.rate_bps.map_or("-".into(), rate),
            bytes(link.tx.bytes),
            bytes(link.rx.bytes),
            count(link.trains_tx),
            count(link.trains_rx),
        ]
    });
    let headings = [
        "LINK",
        "STATE",
        "MTU",
        "RATE",
        "SENT",
        "RECEIVED",
        "TRAINS OUT",
        "IN",
    ];
    let table = table(headings, rows.collect(), &["MTU", "RATE", "IN"], indent);
    // Most lines use all of theirs alike.
    match links.iter().any(is_used_otherwise) {
        false => table,
        true => table + &uses(links, indent),
    }
}

/// Whether somebody has said what the link is to be used for.
pub(super) fn is_used_otherwise(link: &Link) -> bool {
    (link.tier, link.weight, link.rate_max_bps, link.lag) != (1, 1, None, None)
}

/// What links are used for.
fn uses(links: &[Link], indent: &str) -> String {
    let rows = links.iter().map(|link| {
        [
            link.name.clone(),
            link.tier.to_string(),
            link.weight.to_string(),
            link.rate_max_bps.map_or("-".into(), rate),
            link.lag.map_or("", LagUse::as_str).into(),
        ]
    });
    let headings = ["LINK", "TIER", "WEIGHT", "RATE AT MOST", "LAG"];
    table(headings, rows.collect(), &["TIER", "WEIGHT"], indent)
}

fn link_state(link: &Link) -> String {
    match (link.retiring, link.home, link.state) {
        (true, _, _) => "leaving".into(),
        (false, true, LinkCondition::Up) => "up, home".into(),
        (false, _, state) => state.as_str().into(),
    }
}

/// The paths to a peer.
pub(super) fn paths(paths: &[PeerLink], indent: &str) -> String {
    let rows = paths.iter().map(|path| {
        let reorders = if path.reordering_seen {
            ", reorders"
        } else {
            ""
        };
        [
            path.link.clone(),
            path.remote_address.clone(),
            used_for(&path.state).into(),
            path.round_trip_s.map_or("-".into(), duration),
            path.rate_bps.map_or("-".into(), rate),
            bytes(path.in_flight_bytes),
            format!("{}{reorders}", count(path.lost_trains)),
        ]
    });
    let headings = ["PATH", "TO", "STATE", "RTT", "RATE", "IN FLIGHT", "LOST"];
    table(headings, rows.collect(), &["TO", "IN FLIGHT"], indent)
}

/// What a path is used for, in a plain word.
fn used_for(state: &str) -> &str {
    match state {
        "retiring" => "leaving",
        "too_slow" => "too slow",
        other => other,
    }
}

/// Columns as wide as their widest cell; those of which no cell says anything are left out. While a row is too long, the next of `dispensable` goes.
pub(in crate::cli) fn table<const N: usize>(
    headings: [&str; N],
    rows: Vec<[String; N]>,
    dispensable: &[&str],
    indent: &str,
) -> String {
    let is_said = |at: usize| rows.is_empty() || rows.iter().any(|row| !row[at].is_empty());
    let mut columns: Vec<usize> = (0..N).filter(|&at| is_said(at)).collect();
    let rows: Vec<[String; N]> = [headings.map(String::from)]
        .into_iter()
        .chain(rows)
        .collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|at| width(at).unwrap_or(0)).collect();
    for heading in dispensable {
        let gaps = 2 * columns.len().saturating_sub(1);
        let long = indent.len() + gaps + columns.iter().map(|&at| widths[at]).sum::<usize>();
        if long <= WIDTH {
            break;
        }
        columns.retain(|&at| headings[at] != *heading);
    }
    let mut out = String::new();
    for row in &rows {
        let cells = columns.iter().map(|&at| {
            let padding = widths[at] - row[at].chars().count();
            format!("{}{:padding$}", row[at], "")
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(indent);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::LinkCondition;
    use crate::status::samples::{busy_snapshot, facts};
    use packtrain_proto::class::{Action, Compress};

    #[test]
    fn the_peer_table_is_aligned() {
        let document = StatusDocument::build(&busy_snapshot(), &facts(&[LinkCondition::Up]));
        assert_eq!(
            peer_table(&document),
            "\
ADDRESS            STATE  LINKS  RTT     HEARD         SOFTWARE
02:00:00:00:00:08  up     eth1   317 µs  400.0 ms ago  packtrain 0.1.0
"
        );
    }

    #[test]
    fn the_class_table_is_aligned() {
        let document = StatusDocument::build(&busy_snapshot(), &facts(&[LinkCondition::Up]));
        assert_eq!(
            class_table(&document),
            "\
CLASS  PACK                    PATH    FRAMES  BYTES      MATCH
voice  now                     engine  1,234   244.1 KiB  udp dport 5060
rest   dfap-random on-backlog  auto    0       0 B        what no class matches
"
        );
    }

    #[test]
    fn what_of_a_class_is_compressed_is_shown_where_any_says_so() {
        let mut snapshot = busy_snapshot();
        snapshot.classes[0].action.compress = Compress::Headers;
        snapshot.classes[1].action = Action::default();
        let document = StatusDocument::build(&snapshot, &facts(&[LinkCondition::Up]));
        assert_eq!(
            class_table(&document),
            "\
CLASS  PACK    PATH    COMPRESS  FRAMES  BYTES      MATCH
voice  now     engine  headers   1,234   244.1 KiB  udp dport 5060
rest   queued  auto    auto      0       0 B        what no class matches
"
        );
    }

    #[test]
    fn what_matters_least_is_left_out_of_a_table_that_is_too_wide() {
        let table = |name: &str| {
            let row = [name.to_owned(), "x".repeat(30), "b".into(), "c".into()];
            super::table(["A", "B", "C", "D"], vec![row], &["B", "C"], "  ")
        };
        let wide = "n".repeat(20);
        let all = format!("  {wide}  {}  b  c\n", "x".repeat(30));
        assert!(table(&wide).ends_with(&all));
        let wider = "n".repeat(50);
        assert!(table(&wider).ends_with(&format!("  {wider}  b  c\n")));
        assert!(
            table(&"n".repeat(76)).ends_with("  c\n"),
            "all that may go has gone"
        );
    }
}
