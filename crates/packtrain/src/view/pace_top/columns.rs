//! Columns of streams and of paths: what stands in each, on the screen and in lines.

use super::reading::StreamReading;
use crate::pace::tcp::document::PathDocument;
use crate::view::numbers::{short, short_or_unknown, short_time};
use crate::view::table::Column;

/// A column of rows of `T`. The last one is the rest.
pub struct CellColumn<T> {
    pub column: Column,
    /// Where there is no room for all, those with a low one stay.
    rank: u8,
    pub cell: fn(&T) -> String,
}

impl<T> CellColumn<T> {
    const fn text(rank: u8, title: &'static str, letters: u16, cell: fn(&T) -> String) -> Self {
        CellColumn {
            column: Column::text(title, letters),
            rank,
            cell,
        }
    }

    const fn number(rank: u8, title: &'static str, letters: u16, cell: fn(&T) -> String) -> Self {
        CellColumn {
            column: Column::number(title, letters),
            rank,
            cell,
        }
    }
}

/// An IPv4 address and a port. Other names of streams and paths may be longer, and are cut.
pub const NAME_LETTERS: u16 = 21;

/// Of streams, in the order in which they stand.
pub const STREAMS: [CellColumn<StreamReading>; 14] = [
    CellColumn::text(0, "PHASE", 8, |s| s.stream.phase.clone()),
    CellColumn::number(1, "BIT/S", 6, |s| short_or_unknown(s.bits_per_s)),
    CellColumn::number(2, "RTT", 6, |s| micros(s.stream.srtt_us)),
    CellColumn::number(7, "MIN", 6, |s| micros(s.stream.rtt_min_us)),
    CellColumn::number(3, "CWND", 6, |s| short(s.stream.cwnd.into())),
    CellColumn::number(8, "FLIGHT", 6, |s| short(s.stream.in_flight.into())),
    CellColumn::number(4, "INTERVAL", 8, |s| interval(s.stream.interval_ns)),
    CellColumn::number(5, "RETRANS", 11, retransmitted),
    CellColumn::number(9, "LOST S/C/F", 11, lost),
    CellColumn::text(6, "PATH", 5, |s| knows(s.stream.knows_path).into()),
    CellColumn::text(11, "RULE", 8, |s| rule(s.stream.rule.as_deref())),
    CellColumn::number(12, "GIVES", 6, |s| {
        short_or_unknown(s.stream.ruled_bps.map(|bps| bps as f64))
    }),
    CellColumn::text(10, "LOCAL", NAME_LETTERS, |s| s.stream.local.clone()),
    CellColumn::text(0, "REMOTE", 0, |s| s.stream.remote.clone()),
];

/// Of paths, in the order in which they stand.
pub const PATHS: [CellColumn<PathDocument>; 7] = [
    CellColumn::number(0, "BIT/S", 8, |p| {
        short_or_unknown(p.rate_bps.map(|bps| bps as f64))
    }),
    CellColumn::number(1, "RTT MIN", 7, |p| micros(p.rtt_min_us)),
    CellColumn::number(2, "FULL", 6, |p| {
        p.age_seconds.map_or("never".into(), short_time)
    }),
    CellColumn::number(3, "SENDING", 7, |p| p.sending.to_string()),
    CellColumn::number(4, "TAKEN", 6, |p| short(p.connections as f64)),
    CellColumn::number(5, "CUT", 6, |p| short(p.losses as f64)),
    CellColumn::text(0, "PATH TO", 0, |p| p.destination.clone()),
];

fn micros(us: u32) -> String {
    match us {
        0 => "-".into(),
        us => short_time(f64::from(us) / 1e6),
    }
}

fn interval(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| short_time(ns as f64 / 1e9))
}

/// All, and those that have just come.
fn retransmitted(of: &StreamReading) -> String {
    let all = short(of.retransmitted.into());
    match of.retransmitted_lately {
        None | Some(0) => all,
        Some(lately) => format!("{all} +{}", short(lately.into())),
    }
}

fn lost(of: &StreamReading) -> String {
    let [s, c, f] = [of.lost.spacing, of.lost.clusters, of.lost.free].map(|n| short(n as f64));
    format!("{s}/{c}/{f}")
}

/// The rule that it is of.
fn rule(name: Option<&str>) -> String {
    name.unwrap_or("-").into()
}

/// Whether its path was remembered.
pub fn knows(path: bool) -> &'static str {
    match path {
        true => "known",
        false => "new",
    }
}

/// Those that there is room for with one that is `rest` letters at least, in their order.
pub fn fitting<T>(all: &[CellColumn<T>], width: u16, rest: u16) -> Vec<&CellColumn<T>> {
    let mut left = width.saturating_sub(rest);
    let mut by_rank: Vec<&CellColumn<T>> = all.iter().collect();
    by_rank.sort_by_key(|column| column.rank);
    let mut rank_max = 0;
    for column in by_rank {
        let letters = match column.column.letters {
            0 => 0,
            letters => letters + 1,
        };
        let Some(after) = left.checked_sub(letters) else {
            break;
        };
        (left, rank_max) = (after, column.rank);
    }
    let fits = |column: &&CellColumn<T>| column.rank <= rank_max;
    all.iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_left_out_the_least_needed_first() {
        let titles = |width| {
            let columns = fitting(&STREAMS, width, NAME_LETTERS);
            let titles: Vec<&str> = columns.iter().map(|c| c.column.title).collect();
            titles.join(" ")
        };
        assert_eq!(titles(60), "PHASE BIT/S RTT CWND INTERVAL REMOTE");
        assert_eq!(
            titles(80),
            "PHASE BIT/S RTT CWND INTERVAL RETRANS PATH REMOTE"
        );
        assert!(titles(120).ends_with("LOST S/C/F PATH REMOTE"));
        assert_eq!(titles(200).split(' ').count(), STREAMS.len() + 1);
        let mut widths = (60..200).map(|width| fitting(&STREAMS, width, NAME_LETTERS).len());
        assert!(widths.clone().is_sorted() && widths.next() == Some(6));
    }
}
