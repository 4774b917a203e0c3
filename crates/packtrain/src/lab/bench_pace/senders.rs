//! The CPS paper's Fig. 1 again: how fast a gigabit sender is, and one with Fast Ethernet, with 100 and with 25,000 packets in the
//! queue of its interface.
//!
//! The paper's Linux 2.4 filled that queue with a whole window, and took a full one for congestion. Today TCP lets
//! a millisecond's worth of a connection stand there (TCP small queues), so that the queue's length should make no difference:
//! what the queue dropped is counted, and says so.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::Bench;
use super::stage::{Card, Carried, FE_100, FE_25000, GBE_100, GBE_25000, Setting, Stage};
use super::way::{CUBIC, RENO, Way};
use crate::lab::sample::Sample;
use crate::lab::stream::Amount;
use crate::lab::table::{Table, grouped};
use crate::lab::{Error, Result};

const LASTS: Duration = Duration::from_secs(15);
const LASTS_IN_SHORT: Duration = Duration::from_secs(5);
const CARDS: [Card; 4] = [GBE_100, GBE_25000, FE_100, FE_25000];
/// Min, max and middle of the paper's Fig. 1, Mbit/s.
const PAPER: [[f64; 3]; 4] = [
    [9.07, 120.0, 11.6],
    [9.52, 78.0, 44.6],
    [25.6, 25.7, 25.6],
    [88.6, 88.7, 88.7],
];

#[derive(Clone, Debug, Serialize)]
pub struct SenderRow {
    card: Card,
    way: Way,
    offload: bool,
    goodput_mbps: Sample,
    /// In the queue of the sender's interface.
    dropped_at_sender: u64,
    paper_min_max_middle_mbps: [f64; 3],
    carried: Vec<Carried>,
}

#[derive(Clone, Debug)]
struct One {
    at: (Card, Way, bool),
    goodput_bps: f64,
    dropped_at_sender: u64,
    carried: Carried,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let mut all: Vec<One> = Vec::new();
    for round in 0..bench.rounds {
        for offload in bench.offloads.clone() {
            for way in [RENO, CUBIC] {
                for card in CARDS {
                    let setting = Setting {
                        card,
                        offload,
                        ..Setting::PAPER
                    };
                    let name = format!("{}, {}, {}", card.name, card.queue_packets, way.name);
                    bench.tell("senders", round, &setting, &name);
                    all.push(run(bench, setting, way)?);
                }
            }
        }
    }
    for one in &all {
        if bench.senders.iter().all(|row| row.at() != one.at) {
            let same: Vec<&One> = all.iter().filter(|other| other.at == one.at).collect();
            bench.senders.push(SenderRow::of(&same));
        }
    }
    Ok(())
}

fn run(bench: &Bench<'_>, setting: Setting, way: Way) -> Result<One> {
    let stage = Stage::set(bench.packtrain, setting)?;
    let lasts = if bench.is_short {
        LASTS_IN_SHORT
    } else {
        LASTS
    };
    let (flow, carried) = stage.counted(|| stage.carry(&way, Amount::Time(lasts)))?;
    let one = One {
        at: (setting.card, way, setting.offload),
        goodput_bps: flow.goodput_bps(),
        dropped_at_sender: dropped(&stage)?,
        carried,
    };
    stage.end(&way)?;
    Ok(one)
}

/// By the queue of the sender's interface and all that is under it.
fn dropped(stage: &Stage) -> Result<u64> {
    let text = stage
        .a
        .namespace
        .exec(["tc", "-s", "-j", "qdisc", "show", "dev", "eth0"])?;
    dropped_in(&text).ok_or_else(|| Error::Unexpected {
        program: "tc".into(),
        text,
    })
}

/// The root's count has those of its classes in it, or it has not: the largest of them.
fn dropped_in(text: &str) -> Option<u64> {
    let all: Value = serde_json::from_str(text).ok()?;
    let drops = all.as_array()?.iter().map(|qdisc| qdisc.get("drops"));
    drops.flatten().filter_map(Value::as_u64).max()
}

impl SenderRow {
    fn at(&self) -> (Card, Way, bool) {
        (self.card, self.way, self.offload)
    }

    /// All of one kind.
    fn of(same: &[&One]) -> SenderRow {
        let (card, way, offload) = same[0].at;
        let place = CARDS.iter().position(|other| *other == card);
        SenderRow {
            card,
            way,
            offload,
            goodput_mbps: same.iter().map(|one| one.goodput_bps / 1e6).collect(),
            dropped_at_sender: same.iter().map(|one| one.dropped_at_sender).sum(),
            paper_min_max_middle_mbps: PAPER[place.expect("one of them")],
            carried: same.iter().map(|one| one.carried).collect(),
        }
    }
}

pub fn senders_table(rows: &[SenderRow]) -> Table {
    let mut table = Table::new(&[
        "sender",
        "queue",
        "TSO",
        "way",
        "min",
        "max",
        "middle",
        "Mbit/s in the paper",
        "dropped there",
        "bytes a frame",
        "late (99 %)",
    ]);
    for row in rows {
        let [min, max, middle] = row.paper_min_max_middle_mbps;
        let frames: Sample = row.carried.iter().map(Carried::frame_bytes).collect();
        let late: Sample = row.carried.iter().map(|of| of.lateness.p99_us).collect();
        table.row([
            row.card.name.to_owned(),
            grouped(row.card.queue_packets.into()),
            if row.offload { "on" } else { "off" }.to_owned(),
            row.way.name.to_owned(),
            format!("{:.1}", row.goodput_mbps.min()),
            format!("{:.1}", row.goodput_mbps.max()),
            format!("{:.1}", row.goodput_mbps.median()),
            format!("{min} … {max}, {middle}"),
            grouped(row.dropped_at_sender as f64),
            grouped(frames.median()),
            crate::lab::table::time(late.max()),
        ]);
    }
    table
}

/// Whether the length of the sender's queue makes a difference, in a sentence.
pub fn verdict(rows: &[SenderRow]) -> Option<String> {
    /// Rounds of one kind differ by as much.
    const SAME: f64 = 0.1;
    let middle = |card: Card, like: &SenderRow| {
        let same = |row: &&SenderRow| row.at() == (card, like.way, like.offload);
        rows.iter().find(same).map(|row| row.goodput_mbps.median())
    };
    let mut most = 1.0;
    for row in rows {
        for (short, long) in [(GBE_100, GBE_25000), (FE_100, FE_25000)] {
            let ratio = middle(short, row)? / middle(long, row)?;
            most = if ratio.ln().abs() > f64::ln(most).abs() {
                ratio
            } else {
                most
            };
        }
    }
    let dropped: u64 = rows.iter().map(|row| row.dropped_at_sender).sum();
    let matters = (most - 1.0).abs() > SAME || dropped > 0;
    (!rows.is_empty()).then(|| {
        format!(
            "the sender's queue {}: it dropped {dropped} packets, and the middle with 100 is {most:.2} of that with 25,000 where they differ most",
            if matters { "matters" } else { "does not matter (TCP small queues)" }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_queue_dropped_is_read_from_tc() {
        let text = r#"[{"kind":"htb","drops":7,"qlen":0},{"kind":"pfifo","drops":9},{"kind":"x"}]"#;
        assert_eq!(dropped_in(text), Some(9));
        assert_eq!(dropped_in("[]"), None);
        assert_eq!(dropped_in("no json"), None);
    }

    fn rows(gbe_100: f64, dropped: u64) -> Vec<SenderRow> {
        let one = |card, mbps: f64, dropped_at_sender| One {
            at: (card, RENO, false),
            goodput_bps: mbps * 1e6,
            dropped_at_sender,
            carried: Carried::default(),
        };
        [
            one(GBE_100, gbe_100, dropped),
            one(GBE_25000, 100.0, 0),
            one(FE_100, 90.0, 0),
            one(FE_25000, 90.0, 0),
        ]
        .iter()
        .map(|one| SenderRow::of(&[one]))
        .collect()
    }

    #[test]
    fn a_queue_matters_that_dropped_something_or_makes_one_slower() {
        let says = |rows: &[SenderRow]| verdict(rows).unwrap();
        assert!(says(&rows(104.0, 0)).contains("does not matter"));
        assert!(
            says(&rows(50.0, 0))
                .contains("matters: it dropped 0 packets, and the middle with 100 is 0.50")
        );
        assert!(says(&rows(100.0, 3)).contains("queue matters"));
        assert_eq!(verdict(&[]), None);
    }
}
