//! How many captured frames a second `packtrain whatif` takes, as its slowest thread does: intake, replay (engines and direct
//! path) or ledger (plain line and all that is counted). Here they take turns on one, and say what each has had of it.

use packtrain_proto::class::{Pack, defaults};
use packtrain_proto::time::Duration;
use packtrain_sim::whatif::{Batch, Intake, Ledger, Replay, Results, Setup, WireSettings};

use crate::traffic::Traffic;

const FRAMES: u64 = 2_000_000;

const INTAKE: usize = 0;
const REPLAY: usize = 1;
const LEDGER: usize = 2;

/// What is sent over which wires, how packed, by which path.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    per_second: u64,
    payload: usize,
    rate_bps: Option<u64>,
    packets_per_second: Option<u64>,
    pack: Pack,
    direct: bool,
    links: usize,
}

/// Small datagrams, more than an idle wire is ever short of, and past the engine where that may be.
const SMALL: Kind = Kind {
    name: "small, idle wire, direct",
    per_second: 10_000,
    payload: 100,
    rate_bps: Some(1_000_000_000),
    packets_per_second: None,
    pack: Pack::Queued,
    direct: true,
    links: 1,
};

pub const KINDS: [Kind; 7] = [
    SMALL,
    Kind {
        name: "small, idle wire, engine",
        direct: false,
        ..SMALL
    },
    Kind {
        name: "small, busy wire",
        per_second: 100_000,
        rate_bps: Some(50_000_000),
        ..SMALL
    },
    Kind {
        name: "small, capped wire",
        per_second: 100_000,
        rate_bps: None,
        packets_per_second: Some(10_000),
        ..SMALL
    },
    Kind {
        name: "small, 2 ms",
        per_second: 100_000,
        pack: Pack::Within(Duration::from_millis(2)),
        ..SMALL
    },
    Kind {
        name: "small, two idle wires",
        links: 2,
        ..SMALL
    },
    Kind {
        name: "full size, idle wire",
        per_second: 50_000,
        payload: 1400,
        ..SMALL
    },
];

/// So slow that mixing pays. Its time is that of mixing.
pub const MIXED: Kind = Kind {
    name: "small, slow wire",
    per_second: 2_000,
    rate_bps: Some(1_000_000),
    ..SMALL
};

pub fn names() -> String {
    KINDS.map(|kind| kind.name).join("; ")
}

/// A line for each kind whose name has `word` in it. Returns how many.
pub fn print_all(word: &str) -> usize {
    let chosen = KINDS.iter().filter(|kind| kind.name.contains(word));
    chosen.map(|kind| print(kind, &run(kind, FRAMES))).count()
}

fn print(kind: &Kind, outcome: &Outcome) {
    let Outcome { spent, results } = outcome;
    let ns = |time: std::time::Duration| time.as_nanos() as f64 / FRAMES as f64;
    let slowest = spent.iter().max().expect("there are three");
    println!(
        "{:<28} {:>5.0} ns intake, {:>5.0} ns replay, {:>5.0} ns ledger, {:.2} M frames/s; {:.1} a train, {} dropped",
        kind.name,
        ns(spent[INTAKE]),
        ns(spent[REPLAY]),
        ns(spent[LEDGER]),
        1e3 / ns(*slowest),
        results.frames_per_train().unwrap_or(0.0),
        results.all.dropped,
    );
}

#[derive(Debug)]
pub struct Outcome {
    /// Processor time of each thread.
    spent: [std::time::Duration; 3],
    pub results: Results,
}

pub fn run(kind: &Kind, frames: u64) -> Outcome {
    let setup = kind.setup();
    let mut traffic = Traffic::new(kind.payload);
    let mut intake = Intake::new(defaults(), 1500, None);
    let mut ledger = Ledger::new(&setup);
    let mut replay: Option<Replay> = None;
    let mut spent = [std::time::Duration::ZERO; 3];
    let mut at = had();
    let mut lap = |which: usize| {
        let now = had();
        spent[which] += now - std::mem::replace(&mut at, now);
    };
    let mut give = |batch: Batch, lap: &mut dyn FnMut(usize)| {
        let new = || Replay::new(setup.clone(), &batch.hosts()[..2]);
        let journal = replay.get_or_insert_with(new).batch(&batch);
        lap(REPLAY);
        ledger.read(&journal, &batch);
        lap(LEDGER);
    };
    for n in 0..frames {
        let time = Duration::from_nanos(n * 1_000_000_000 / kind.per_second);
        let frame = traffic.frame(n);
        if let Some(batch) = intake.frame(Some(time), frame, frame.len()) {
            lap(INTAKE);
            give(batch, &mut lap);
        }
    }
    give(intake.rest(), &mut lap);
    let (journal, ended) = replay.expect("there are frames").finish();
    lap(REPLAY);
    ledger.read(&journal, &Batch::default());
    let results = ledger.finish(ended, 10);
    lap(LEDGER);
    Outcome { spent, results }
}

impl Kind {
    fn setup(&self) -> Setup {
        let mut setup = Setup::over(WireSettings {
            rate_bps: self.rate_bps,
            packets_per_second: self.packets_per_second,
            delay: Duration::from_millis(1),
            queue_bytes: 256 * 1024,
            mtu: 1500,
        });
        setup.rest.pack = self.pack;
        setup.direct = self.direct;
        setup.links = self.links;
        setup
    }
}

/// What this thread has had of processors: others may want them too.
fn had() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let nanos = text.split_whitespace().next().and_then(|n| n.parse().ok());
    std::time::Duration::from_nanos(nanos.expect("it begins with a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_carried_in_the_way_that_its_name_says() {
        for kind in KINDS.iter().chain([&MIXED]) {
            let results = run(kind, 20_000).results;
            let name = kind.name;
            assert_eq!(results.all.frames, 20_000, "{name}");
            let by_train = results.frames_per_train();
            let is_idle = name.contains("idle");
            let goes_directly = is_idle && kind.direct && kind.links == 1;
            assert_eq!(by_train.is_none(), goes_directly, "{name}");
            let meets_others = by_train.is_some_and(|frames| frames > 1.5);
            assert_eq!(meets_others, !is_idle, "{name}: {by_train:?} a train");
        }
    }
}
