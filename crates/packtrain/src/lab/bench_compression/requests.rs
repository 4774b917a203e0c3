//! Requests and answers of two kinds over 10 Mbit/s, each connection asking again as soon as it is answered: what they take
//! of the wire, and how many there are.

use std::time::Duration;

use super::UNCODED;
use super::traffic::{http, nfs};
use crate::lab::bench_aggregation::conversations::{
    Amount, Answered, Conversations, Exchange, Load, while_answered,
};
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::stage::Line;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, Row};
use crate::lab::{Result, wire};

pub const RATE_MBIT: u32 = 10;
const CONNECTIONS: [usize; 2] = [8, 32];
const WARM_UP: Duration = Duration::from_secs(1);
const DURATION: Duration = Duration::from_secs(3);
/// Of a connection; then it says the same again, much later than anything that is remembered.
const EXCHANGES: usize = 400;
const SEED: u64 = 1;
/// Ethernet's preamble, FCS and gap, which no counter counts.
const AROUND_BYTES: u64 = 24;

type Exchanges = fn(connection: usize, seed: u64, count: usize) -> Vec<Exchange>;

const KINDS: [(&str, Exchanges); 2] = [
    ("HTTP/1.1 with JSON", http::exchanges),
    ("NFS, small files", nfs::exchanges),
];

struct Run {
    answered: Answered,
    /// Of both directions, as Ethernet spends them.
    wire_bytes: u64,
    wire_frames: u64,
}

impl Run {
    fn per_request(&self, of: u64) -> f64 {
        of as f64 / self.answered.times.received as f64
    }
}

pub fn measure(bench: &mut Bench, line: &Line) -> Result<()> {
    for (kind, exchanges) in KINDS {
        for connections in CONNECTIONS {
            let part = format!("{kind}, {connections} connections, {RATE_MBIT} Mbit/s");
            let runs = bench.in_turns_of(&UNCODED, &part, line, |way| {
                ask(line, way, exchanges, connections)
            })?;
            let rows: [Row<Run>; 4] = [
                (
                    "bytes on the wire for a request",
                    (Unit::Count, Target::RatioShown),
                    |run| run.per_request(run.wire_bytes),
                ),
                (
                    "frames on the wire for a request",
                    (Unit::Ratio, Target::RatioShown),
                    |run| run.per_request(run.wire_frames),
                ),
                (
                    "requests a second",
                    (Unit::PerSecond, Target::RatioShown),
                    |run| run.answered.per_second(),
                ),
                (
                    "answered after, p50",
                    (Unit::Microseconds, Target::RatioShown),
                    |run| run.answered.times.p50_us,
                ),
            ];
            bench.compare_rows(&part, &rows, &runs);
        }
    }
    Ok(())
}

fn ask(line: &Line, way: Way, exchanges: Exchanges, connections: usize) -> Result<Run> {
    let hosts = (&line.a.namespace, &line.b.namespace);
    let said = (0..connections).map(|which| exchanges(which, SEED, EXCHANGES));
    let of = [Conversations::open_saying(hosts, way.at(), said.collect())?];
    let load = |time| Load {
        amount: Amount::Time(time),
        at_once: connections,
    };
    while_answered(&of, None, || {
        of[0].ask(load(WARM_UP))?;
        let before = sent(line, way)?;
        let answered = of[0].ask(load(DURATION))?;
        let after = sent(line, way)?;
        Ok(Run {
            answered,
            wire_bytes: after.1 - before.1 + AROUND_BYTES * (after.0 - before.0),
            wire_frames: after.0 - before.0,
        })
    })
}

/// Frames and bytes by the way's cable, from both ends.
fn sent(line: &Line, way: Way) -> Result<(u64, u64)> {
    let cable = way.cable().expect("none of these is a tunnel");
    let a = wire::sent(&line.a.namespace, cable)?;
    let b = wire::sent(&line.b.namespace, cable)?;
    Ok((a.0 + b.0, a.1 + b.1))
}
