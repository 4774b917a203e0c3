//! The CPS paper's Fig. 2 and 4 again: packets that came to the receiver in each of 2000 milliseconds, from a gigabit sender, from
//! one that spaces (T = 1 ms), and from Fast Ethernet.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::Bench;
use super::milliseconds::{Counts, Milliseconds, SHOWN_MS};
use super::plot::{self, Panel};
use super::stage::{Card, Carried, FE_25000, GBE_25000, LINE_BPS, Setting, Stage};
use super::way::{CPS_FIRST, CPS_SECOND, CUBIC, Pace, RENO, Way};
use crate::lab::Result;
use crate::lab::stream::Amount;
use crate::lab::table::{Table, grouped};

const LASTS: Duration = Duration::from_secs(8);
/// The beginning, and a time at which slow start has long ended.
const SHOWN_FROM_MS: [(usize, &str); 2] = [(0, "start"), (5000, "later")];
/// Of a full packet on the line.
const PACKET_NS: f64 = 8.0 * 1500.0 / LINE_BPS as f64 * 1e9;

#[derive(Clone, Debug, Serialize)]
pub struct Packets {
    card: Card,
    way: Way,
    offload: bool,
    from_ms: usize,
    #[serde(flatten)]
    shown: Milliseconds,
    carried: Carried,
}

/// One run of each: what is drawn is one, in the paper too.
pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    for offload in bench.offloads.clone() {
        let mut panels = SHOWN_FROM_MS.map(|_| Vec::new());
        let mut all: Vec<(String, Counts)> = Vec::new();
        for (card, way) in bench.pictured() {
            let setting = Setting {
                card,
                offload,
                ..Setting::PAPER
            };
            bench.tell("packets", 0, &setting, way.name);
            for (way, counts, carried) in run(bench, setting, &way)? {
                let name = format!("{}, {}", card.name, way.name);
                for ((from_ms, _), panels) in SHOWN_FROM_MS.into_iter().zip(&mut panels) {
                    let shown = counts.from(from_ms);
                    panels.push(Panel {
                        title: name.clone(),
                        values: shown.iter().map(|&count| f64::from(count)).collect(),
                    });
                    bench.packets.push(Packets {
                        card,
                        way,
                        offload,
                        from_ms,
                        shown: counts.summary(from_ms, PACKET_NS),
                        carried,
                    });
                }
                all.push((name, counts));
            }
        }
        if let Some(directory) = bench.plots {
            let tso = if offload { "tso" } else { "no-tso" };
            for ((_, when), panels) in SHOWN_FROM_MS.into_iter().zip(&panels) {
                let drawn = plot::columns(panels, "ms", SHOWN_MS as f64);
                plot::write(directory, &format!("packets-{when}-{tso}.svg"), &drawn)?;
            }
            plot::write(directory, &format!("packets-{tso}.csv"), &csv(&all))?;
        }
    }
    Ok(())
}

type Counted = (Way, Counts, Carried);

fn run(bench: &Bench<'_>, setting: Setting, way: &Way) -> Result<Vec<Counted>> {
    let stage = Stage::set(bench.packtrain, setting)?;
    stage.prepare(way)?;
    let both = [CPS_FIRST, CPS_SECOND];
    let connections = match way.pace {
        Pace::Tcp => &both[..],
        _ => std::slice::from_ref(way),
    };
    let mut counted = Vec::new();
    for way in connections {
        let run = stage.traced(|| stage.carry(way, Amount::Time(LASTS)))?;
        counted.push((*way, Counts::of(&run.trace.arrived), run.carried));
    }
    stage.end(way)?;
    Ok(counted)
}

impl Bench<'_> {
    /// Who sends, and how.
    fn pictured(&self) -> Vec<(Card, Way)> {
        let mut pictured = vec![(GBE_25000, RENO), (GBE_25000, CUBIC)];
        if self.ways.contains(&CPS_FIRST) {
            pictured.push((GBE_25000, CPS_FIRST));
        }
        pictured.push((FE_25000, RENO));
        pictured
    }
}

/// A line for each millisecond, a column for each run.
fn csv(all: &[(String, Counts)]) -> String {
    let mut out = String::from("ms");
    for (name, _) in all {
        let _ = write!(out, ",\"{name}\"");
    }
    out.push('\n');
    let longest = all.iter().map(|(_, counts)| counts.all().len()).max();
    for ms in 0..longest.unwrap_or(0) {
        let _ = write!(out, "{ms}");
        for (_, counts) in all {
            let _ = write!(out, ",{}", counts.all().get(ms).copied().unwrap_or(0));
        }
        out.push('\n');
    }
    out
}

pub fn packets_table(rows: &[Packets]) -> Table {
    let mut table = Table::new(&[
        "2 s of",
        "TSO",
        "from",
        "packets",
        "most in a ms",
        "ms without",
        "line busy",
        "bytes a frame",
        "late (99 %)",
    ]);
    for row in rows {
        table.row([
            format!("{}, {}", row.card.name, row.way.name),
            if row.offload { "on" } else { "off" }.to_owned(),
            format!("{:.0} s", row.from_ms as f64 / 1e3),
            grouped(row.shown.packets as f64),
            row.shown.most.to_string(),
            format!("{:.0} %", 100.0 * row.shown.without),
            format!("{:.0} %", 100.0 * row.shown.line_busy),
            grouped(row.carried.frame_bytes()),
            crate::lab::table::time(row.carried.lateness.p99_us),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::trace::tests::full;
    use super::*;

    #[test]
    fn a_column_for_each_run_also_where_one_was_longer() {
        let counts = |times: &[f64]| {
            let segments: Vec<_> = times.iter().map(|&at| full(0, at)).collect();
            Counts::of(&segments)
        };
        let both = [
            ("GbE, reno".to_owned(), counts(&[0.0, 10.0, 2500.0])),
            ("FE, reno".to_owned(), counts(&[5.0])),
        ];
        assert_eq!(
            csv(&both),
            "ms,\"GbE, reno\",\"FE, reno\"\n0,2,1\n1,0,0\n2,1,0\n"
        );
    }
}
