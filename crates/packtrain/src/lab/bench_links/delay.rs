//! What several idle links add to the delay of one. The target is about what the order adds: that is
//! counted where trains are held. Round trips of programs are shown beside it; between two hosts of one
//! machine their 99th percentile is the scheduler's.

use std::net::SocketAddr;
use std::time::Duration;

use super::hold::Held;
use super::parts::{Bench, Runs};
use super::stage::Way;
use crate::lab::Result;
use crate::lab::exchange::{self, Blocks, Exchanged};
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::{self, Load};

/// Few enough to leave the links idle.
const MESSAGES: Load = Load {
    size: 64,
    duration: Duration::from_secs(4),
    rate_per_second: Some(1000),
    real_time: false,
};
/// Short, and many: what else the machine does falls on all ways alike.
const BLOCKS: Blocks = Blocks {
    exchanges: 200,
    blocks: 40,
};
const ONE_CPU: usize = 0;
const HELD: (Unit, Target) = (Unit::Microseconds, Target::AtMost(100.0));
const ADDED: (Unit, Target) = (Unit::Microseconds, Target::DifferenceShown);

impl Bench {
    pub fn delay(&mut self) -> Result<()> {
        self.trickle()?;
        self.exchanges()
    }

    fn trickle(&mut self) -> Result<()> {
        let part = "1000 messages a second, idle links";
        let ways = [
            Way::Plain,
            Way::One,
            Way::OneByEngine,
            Way::Several,
            Way::InTurns,
        ];
        let runs = self.in_turns(part, &ways, |stage, way, _| {
            let at = SocketAddr::new(way.to(), 7003);
            stage.held_during(way, |path| {
                messages::measure(path.from, path.to, at, MESSAGES)
            })
        })?;
        let (default, in_turns) = (
            (Way::OneByEngine, Way::Several),
            (Way::OneByEngine, Way::InTurns),
        );
        let held = |(_, held): &(_, Held)| held.per_mille_us(990);
        let name = "1000 messages a second over two idle links: held for their turn, p99";
        self.promise(name, HELD, default, &runs, held);
        let name = "  … both links in turns";
        self.promise(name, HELD, in_turns, &runs, held);
        let p99 = |(report, _): &(messages::Report, _)| report.delay_p99_us;
        let p50 = |(report, _): &(messages::Report, _)| report.delay_p50_us;
        let name = "  … one-way delay, p99: added to one link by the engine";
        self.promise(name, ADDED, default, &runs, p99);
        let name = "  … one-way delay, p50: added to one link by the engine";
        self.promise(name, ADDED, default, &runs, p50);
        let name = "  … both links in turns, p99: added to one link by the engine";
        self.promise(name, ADDED, in_turns, &runs, p99);
        let name = "  … both links in turns, p50: added to one link by the engine";
        self.promise(name, ADDED, in_turns, &runs, p50);
        let name = "  … one-way delay, p99: added to one link";
        self.promise(name, ADDED, (Way::One, Way::Several), &runs, p99);
        Ok(())
    }

    /// All ways in one conversation each, and a short block of each in turns.
    fn exchanges(&mut self) -> Result<()> {
        let part = "UDP exchanges, idle links";
        let ways = [Way::OneByEngine, Way::Several, Way::InTurns];
        let addresses = ways.map(|way| SocketAddr::new(way.to(), 7004));
        let before = self.documents(&ways)?;
        let (mut runs, mut held) = (Runs::new(), Runs::new());
        for round in 0..self.rounds {
            eprintln!("{part}: round {} of {}", round + 1, self.rounds);
            let seen = self.documents(&ways)?;
            let (a, b) = (&self.stage.a.namespace, &self.stage.b.namespace);
            let blocks = exchange::in_blocks((a, b), &addresses, ONE_CPU, BLOCKS)?;
            for (&way, blocks) in ways.iter().zip(&blocks) {
                let exchanged = Exchanged::of(blocks);
                runs.entry(way).or_insert_with(Vec::new).push(exchanged);
            }
            let now = self.documents(&ways)?;
            for ((&way, seen), now) in ways.iter().zip(&seen).zip(&now) {
                let meanwhile = Held::of(&now.of_hosts).since(&Held::of(&seen.of_hosts));
                held.entry(way).or_insert_with(Vec::new).push(meanwhile);
            }
        }
        self.note_use(part, &before)?;
        let (default, in_turns) = (
            (Way::OneByEngine, Way::Several),
            (Way::OneByEngine, Way::InTurns),
        );
        let p99_held = |held: &Held| held.per_mille_us(990);
        let name = "one exchange at a time over two idle links: held for their turn, p99";
        self.promise(name, HELD, default, &held, p99_held);
        let name = "  … both links in turns";
        self.promise(name, HELD, in_turns, &held, p99_held);
        let (p50, p99) = (|e: &Exchanged| e.p50_us, |e: &Exchanged| e.p99_us);
        let name = "  … round trip, median of blocks' p99: added to one link by the engine";
        self.promise(name, ADDED, default, &runs, p99);
        let name = "  … round trip, median of blocks' p50: added to one link by the engine";
        self.promise(name, ADDED, default, &runs, p50);
        let name =
            "  … both links in turns, median of blocks' p99: added to one link by the engine";
        self.promise(name, ADDED, in_turns, &runs, p99);
        let name =
            "  … both links in turns, median of blocks' p50: added to one link by the engine";
        self.promise(name, ADDED, in_turns, &runs, p50);
        Ok(())
    }
}
