//! Requests and answers of one byte, as NetPerf has them: what waiting for others would cost, and what a queue does.

use std::time::Duration;

use super::conversations::{Amount, Answered, Conversations, Load, while_answered};
use super::{BESIDE, LEAST};
use crate::lab::exchange::{Blocks, Exchanged};
use crate::lab::figure::{Target, Unit};
use crate::lab::measure;
use crate::lab::one_link::Bench;
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::stage::{Line, ONE_CPU};
use crate::lab::one_link::way::Way;
use crate::lab::sample::Sample;
use crate::lab::{Result, pause};

const BYTES: usize = 1;
const CONNECTIONS: [usize; 3] = [1, 8, 64];
/// One after the other. All at once it is said how far the processor is slowed down: no second interface could add so
/// little there (docs/design/0010).
const ADDED: Target = Target::DifferenceAtMost(3.0);
const ANSWERED_AT_ONCE: Target = Target::RatioAtLeast(0.85);
const BETTER: Target = Target::RatioAtMost(1.0);
/// Short, and many: what else the machine does falls on all ways alike.
const BLOCKS: Blocks = Blocks {
    exchanges: 320,
    blocks: 15,
};
/// The first find the others' processes asleep, and connections at their beginning.
const WARM_UP: u64 = 64;
/// The flow has filled the link by then.
const BULK_BEFORE: Duration = Duration::from_secs(1);
const ASKED_FOR: Duration = Duration::from_secs(3);

/// How many connections there are, and how many of them ask at once.
#[derive(Clone, Copy, Debug)]
struct Asking {
    connections: usize,
    at_once: usize,
}

impl Asking {
    fn name(self) -> String {
        match (self.connections, self.at_once) {
            (1, _) => "1 connection".to_owned(),
            (all, 1) => format!("{all} connections, one after the other"),
            (all, _) => format!("{all} connections, all at once"),
        }
    }
}

/// Over a link that carries nothing else: with one question on the way at a time, and with one of each connection.
pub fn idle(bench: &mut Bench, line: &Line) -> Result<()> {
    line.move_to_one_cpu()?;
    for connections in CONNECTIONS {
        for at_once in [1, connections] {
            let asking = Asking {
                connections,
                at_once,
            };
            idle_with(bench, line, asking)?;
            if connections == 1 {
                break;
            }
        }
    }
    Ok(())
}

fn idle_with(bench: &mut Bench, line: &Line, asking: Asking) -> Result<()> {
    let part = format!("1 B TCP requests, idle, one CPU: {}", asking.name());
    let mut runs = Runs::of_ways(&LEAST);
    let ways = line.available(&LEAST);
    bench.each_round(&part, line, |_| {
        let hosts = (&line.a.namespace, &line.b.namespace);
        let open = |way: &Way| Conversations::open(hosts, way.at(), asking.connections, BYTES);
        let of: Vec<Conversations> = ways.iter().map(open).collect::<Result<_>>()?;
        let blocks = while_answered(&of, Some(ONE_CPU), || in_blocks(&of, asking.at_once))?;
        for (&way, blocks) in ways.iter().zip(&blocks) {
            let times: Vec<_> = blocks.iter().map(|block| block.times).collect();
            let rates: Sample = blocks.iter().map(Answered::per_second).collect();
            runs.push(way, (Exchanged::of(&times), rates.median()));
        }
        Ok(())
    })?;
    let (added, answered) = match asking.at_once {
        1 => (ADDED, Target::RatioShown),
        _ => (Target::DifferenceShown, ANSWERED_AT_ONCE),
    };
    bench.compare_carried(
        &part,
        format!("{part}: p50, added"),
        (Unit::Microseconds, added),
        runs.map(|(exchanged, _)| exchanged.p50_us),
    );
    bench.compare_carried(
        &part,
        "  … p99, added",
        (Unit::Microseconds, Target::DifferenceShown),
        runs.map(|(exchanged, _)| exchanged.p99_us),
    );
    bench.compare_carried(
        &part,
        "  … answers a second",
        (Unit::PerSecond, answered),
        runs.map(|(_, per_second)| *per_second),
    );
    Ok(())
}

/// A short block of each in turns; who begins moves on.
fn in_blocks(of: &[Conversations], at_once: usize) -> Result<Vec<Vec<Answered>>> {
    let mut results = vec![Vec::new(); of.len()];
    let load = |questions| Load {
        amount: Amount::Questions(questions),
        at_once,
    };
    for block in 0..BLOCKS.blocks as usize {
        for turn in 0..of.len() {
            let which = (block + turn) % of.len();
            of[which].ask(load(WARM_UP))?;
            results[which].push(of[which].ask(load(BLOCKS.exchanges.into()))?);
        }
    }
    Ok(results)
}

/// Beside a TCP flow the same way, which fills a link of so many Mbit/s.
pub fn beside(bench: &mut Bench, line: &Line, rate_mbit: u32) -> Result<()> {
    for connections in CONNECTIONS {
        let asking = Asking {
            connections,
            at_once: connections,
        };
        let name = asking.name();
        let part = format!("1 B TCP requests beside bulk, {rate_mbit} Mbit/s: {name}");
        let runs = bench.in_turns_of(&BESIDE, &part, line, |way| ask_beside(line, way, asking))?;
        for (name, number) in [
            (
                format!("{part}: p50"),
                (|answered| answered.times.p50_us) as fn(&Answered) -> f64,
            ),
            ("  … p99".to_owned(), |answered| answered.times.p99_us),
        ] {
            let runs = runs.map(|(answered, _)| number(answered));
            bench.compare_carried(&part, name, (Unit::Microseconds, BETTER), runs);
        }
        bench.compare_carried(
            &part,
            "  … the flow meanwhile",
            (Unit::BitPerSecond, Target::RatioShown),
            runs.map(|(_, bulk)| bulk.goodput_bps),
        );
    }
    Ok(())
}

fn ask_beside(line: &Line, way: Way, asking: Asking) -> Result<(Answered, measure::Bulk)> {
    let hosts = (&line.a.namespace, &line.b.namespace);
    let of = [Conversations::open(
        hosts,
        way.at(),
        asking.connections,
        BYTES,
    )?];
    std::thread::scope(|scope| {
        let to = way.to();
        let duration = BULK_BEFORE + ASKED_FOR + Duration::from_secs(1);
        let bulk = scope.spawn(move || measure::bulk(hosts.0, &to, duration, &[]));
        pause(BULK_BEFORE);
        let load = Load {
            amount: Amount::Time(ASKED_FOR),
            at_once: asking.at_once,
        };
        let answered = while_answered(&of, None, || of[0].ask(load));
        let bulk = bulk.join().expect("the flow has no reason to panic")?;
        Ok((answered?, bulk))
    })
}
