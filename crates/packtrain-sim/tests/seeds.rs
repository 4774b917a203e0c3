//! Many seeds, every fault. A few hundred by default; `PACKTRAIN_SEEDS=10000` for as many,
//! `PACKTRAIN_FIRST_SEED=n` for such from there on, and `PACKTRAIN_SEED=n` for the one that failed.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use packtrain_sim::checker::CodedTrains;
use packtrain_sim::scenario::{
    self, Order, Report, direct, links, mesh, pair, run_until_faults_happen, three,
};

const SEEDS: u64 = 300;
const TOLD_EACH: u64 = 1000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, and not {text:?}")),
    )
}

/// `Err`: why the seed does not count.
fn try_seed(seed: u64, run: fn(Order) -> Report) -> Result<Report, String> {
    let report = catch_unwind(|| run_until_faults_happen(Order::new(seed), run))
        .map_err(|_| "it panicked, see above".to_string())?;
    if let Some(violation) = report.violation {
        return Err(violation.to_string());
    }
    if report.coded.by_dictionary > 0 && !report.has_one_dictionary {
        return Err("trains are compressed with a dictionary that not both have".to_string());
    }
    if !report.faults_missing.is_empty() {
        return Err(format!("{:?} never happened", report.faults_missing));
    }
    Ok(report)
}

/// What happened in all seeds together.
#[derive(Debug, Default)]
struct Sums {
    delivered: u64,
    /// Trains that were sent again on another link.
    replayed: u64,
    found_dead: u64,
    /// Processes that did not run for a while.
    stops: u64,
    /// Frames that vanished because less passes than the links take.
    too_long: u64,
    /// Frames in aggregates.
    aggregated: u64,
    /// Frames that went past the engines.
    direct: u64,
    /// Flows that came back from there.
    returns: u64,
    coded: CodedTrains,
    restored: u64,
    /// Frames that were too long for a plain host, whose senders were told.
    told: u64,
}

impl Sums {
    fn add(&mut self, report: &Report) {
        self.delivered += report.frames_delivered;
        self.replayed += report.replayed;
        self.found_dead += report.found_dead;
        self.stops += report.stops;
        self.too_long += report.too_long;
        self.direct += report.direct;
        self.aggregated += report.aggregated;
        self.returns += report.returns;
        self.coded.trains += report.coded.trains;
        self.coded.deltas += report.coded.deltas;
        self.coded.lz4_blocks += report.coded.lz4_blocks;
        self.coded.by_dictionary += report.coded.by_dictionary;
        self.coded.zstandard_blocks += report.coded.zstandard_blocks;
        self.coded.mixed_blocks += report.coded.mixed_blocks;
        self.restored += report.restored;
        self.told += report.told;
    }
}

fn try_seeds(test: &str, run: fn(Order) -> Report) -> Sums {
    let (first, count) = match number("PACKTRAIN_SEED") {
        Some(seed) => (seed, 1),
        None => (
            number("PACKTRAIN_FIRST_SEED").unwrap_or(0),
            number("PACKTRAIN_SEEDS").unwrap_or(SEEDS),
        ),
    };
    let next = AtomicU64::new(first);
    let sums = Mutex::new(Sums::default());
    let failed = AtomicBool::new(false);
    let work = || {
        let mut failures = Vec::new();
        while !failed.load(Ordering::Relaxed) || std::env::var("PACKTRAIN_ALL").is_ok() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                break;
            }
            match try_seed(seed, run) {
                Ok(report) => sums.lock().expect("no one panics").add(&report),
                Err(why) => {
                    failed.store(true, Ordering::Relaxed);
                    let failure = format!(
                        "seed {seed}: {why}\n  replay: PACKTRAIN_SEED={seed} \
                         cargo test -p packtrain-sim --test seeds {test}"
                    );
                    // At once: many seeds take an hour.
                    println!("{failure}");
                    failures.push(failure);
                }
            }
            if (seed + 1).is_multiple_of(TOLD_EACH) {
                println!("{test}: {} seeds begun", seed + 1);
            }
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("caught inside"))
            .collect()
    });
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    let sums = sums.into_inner().expect("no one panics");
    assert!(
        sums.delivered > 100 * count,
        "hardly anything was delivered"
    );
    sums
}

#[test]
fn a_pair_keeps_its_promises_whatever_the_wire_does() {
    let sums = try_seeds("a_pair", pair::run);
    assert_many_were_coded(&sums);
    // Some of the lines are slow enough.
    let coded = &sums.coded;
    assert!(
        single_seed() || coded.mixed_blocks > coded.trains / 80,
        "{sums:?}"
    );
}

/// Coded trains are no exception, and all that is coded in one way or another is among them.
fn assert_many_were_coded(sums: &Sums) {
    println!("{sums:?}");
    if !single_seed() {
        let coded = &sums.coded;
        assert!(coded.trains > sums.delivered / 50, "{sums:?}");
        assert!(coded.deltas > coded.trains, "{sums:?}");
        assert!(coded.lz4_blocks > coded.trains / 10, "{sums:?}");
        assert!(coded.zstandard_blocks > coded.trains / 30, "{sums:?}");
        assert!(sums.restored > coded.trains / 2, "{sums:?}");
    }
}

#[test]
fn three_and_a_plain_host_keep_theirs_on_one_segment() {
    let sums = try_seeds("three", three::run);
    println!("{sums:?}");
    // Few seeds have a flow that is told.
    let are_few = number("PACKTRAIN_SEEDS").is_some_and(|seeds| seeds < SEEDS);
    assert!(single_seed() || are_few || sums.told > 0, "{sums:?}");
}

#[test]
fn those_who_speak_only_aggregates_keep_theirs_and_no_other_is_sent_one() {
    let sums = try_seeds("those_who", three::run_aggregates);
    println!("{sums:?}");
    assert!(
        single_seed() || sums.aggregated > sums.delivered / 50,
        "{sums:?}"
    );
}

#[test]
fn several_links_keep_their_promises_whatever_the_wires_do() {
    let sums = try_seeds("several_links", links::run);
    assert_many_were_coded(&sums);
    if !single_seed() {
        assert!(sums.stops > 5 && sums.too_long > 15, "{sums:?}");
    }
}

#[test]
fn links_that_are_cut_leave_and_join_lose_nothing_while_one_is_whole() {
    let sums = try_seeds("links_that_are_cut", links::run_carrier_cuts);
    println!("{sums:?}");
    if !single_seed() {
        assert!(sums.replayed > 0, "nothing was ever sent again");
        assert!(sums.stops > 5, "{sums:?}");
    }
}

#[test]
fn links_that_die_silently_lose_nothing_while_one_is_whole() {
    let sums = try_seeds("links_that_die", links::run_silent_cuts);
    println!("{sums:?}");
    if !single_seed() {
        assert!(sums.replayed > 0, "nothing was ever sent again");
        assert!(sums.found_dead > 100, "{sums:?}");
    }
}

#[test]
fn lossless_classes_lose_nothing_whatever_the_wires_do() {
    let sums = try_seeds("lossless_classes", links::run_lossless);
    println!("{sums:?}");
    if !single_seed() {
        assert!(sums.replayed > sums.delivered / 100, "{sums:?}");
        assert!(sums.stops > 5, "{sums:?}");
    }
}

#[test]
fn three_with_different_sets_of_links_keep_theirs() {
    try_seeds("three_with", mesh::run);
}

/// A good part goes past the engines, and flows change to and fro.
fn assert_many_went_directly(sums: &Sums) {
    println!("{sums:?}");
    if !single_seed() {
        assert!(sums.direct > sums.delivered / 10, "{sums:?}");
        assert!(sums.returns > sums.direct / 500, "{sums:?}");
    }
}

#[test]
fn frames_past_the_engines_keep_the_promises_of_a_pair() {
    assert_many_went_directly(&try_seeds("frames_past", direct::run));
}

#[test]
fn direct_frames_over_several_links_keep_theirs_whatever_the_wires_do() {
    assert_many_went_directly(&try_seeds("direct_frames_over", direct::run_links));
}

#[test]
fn direct_frames_on_links_that_are_cut_take_nothing_else_with_them() {
    let run = direct::run_carrier_cuts;
    assert_many_went_directly(&try_seeds("direct_frames_on", run));
}

/// More of them than the few hundred that are tried each time.
#[test]
fn seeds_that_have_shown_mistakes_of_the_engine_pass() {
    // A hello that 1700 trains had overtaken took the order back to where they had begun.
    assert_eq!(try_seed(5887, pair::run).err(), None);
    // A path whose join was given up stood idle until the engine was called for something else.
    assert_eq!(try_seed(2970, links::run_carrier_cuts).err(), None);
    // A probe that went again held a gap open behind which it was to be acknowledged.
    assert_eq!(try_seed(297, direct::run_links).err(), None);
    // A probe that was lost had its receiver wait until its window was full, and refuse what came then.
    assert_eq!(try_seed(1289, links::run_silent_cuts).err(), None);
    // A lane waited for trains of another one that a cut had taken, until nothing more had room.
    assert_eq!(try_seed(992, mesh::run).err(), None);
    // Direct frames stood behind full trains of a slow way, and were given up as lost before those had passed.
    assert_eq!(try_seed(1658, direct::run).err(), None);
    // Frames that had waited for a peer since before classes changed went in the lanes that they were of then.
    assert_eq!(try_seed(7546, direct::run_links).err(), None);
    // Direct frames stood behind more full trains than were thought to stand before a link.
    assert_eq!(try_seed(5385, direct::run).err(), None);
    // A lane that had no room to wait for another one was let go before what was there of a frame of that.
    assert_eq!(try_seed(1863, pair::run).err(), None);
    // A second link was used before what stood in the local queue of the first, which was thought to be silent.
    assert_eq!(try_seed(3239, links::run_carrier_cuts).err(), None);
    // A link that came was used at once, because the one before was to leave: what stood there was overtaken.
    assert_eq!(try_seed(1802, links::run).err(), None);
    // Of what had been lost at the very beginning, only copies came, and were refused until they were given up.
    assert_eq!(try_seed(2290, links::run_lossless).err(), None);
    // What a cut had taken of an only link 200 ms long, and what was too far ahead of it. It was the checker that did not wait.
    assert_eq!(try_seed(4359, links::run_lossless).err(), None);
    // The rest of a large frame went again after a cut, and came when nobody waited for it any more.
    assert_eq!(try_seed(5943, links::run_lossless).err(), None);
    // Who had not run for a while gave up what had come in the meantime, before it had read it.
    assert_eq!(try_seed(806, links::run_carrier_cuts).err(), None);
    // A host that was told of its queues did not ask its engine again, as the daemon does.
    assert_eq!(try_seed(5709, direct::run_links).err(), None);
    // A probe that an only link had lost held up a lane in which nothing may be lost, for seconds.
    assert_eq!(try_seed(5454, pair::run).err(), None);
    assert_eq!(try_seed(348, direct::run).err(), None);
    // Fifty frames of 21 bytes were given at once, and are 60 long on a card. It was the checker that counted them so.
    assert_eq!(try_seed(3805, pair::run).err(), None);
    assert_eq!(try_seed(2537, three::run).err(), None);
    // After its peer had begun anew, an engine numbered pieces from the first again. It was the checker that took them for copies.
    assert_eq!(try_seed(9163, pair::run).err(), None);
    assert_eq!(try_seed(304, links::run).err(), None);
    // A plain host turned up behind one link while frames for it waited at another, which was settling, and were overtaken.
    assert_eq!(try_seed(751, mesh::run).err(), None);
    // A train whose sequence was altered was held, and 500 trains before it were given up for it when its sender had been silent.
    assert_eq!(try_seed(2607, pair::run).err(), None);
    // Another lane had gone on without a train, which came behind a large frame of another host, and ended a frame.
    assert_eq!(try_seed(2233, three::run).err(), None);
    // So it was with the first train of a lane, of which nobody had heard that it would be sent again.
    assert_eq!(try_seed(13980, pair::run).err(), None);
    // A peer was new on a link that was known to be slow, and was sent trains as if nothing were known of it.
    assert_eq!(try_seed(119, pair::run).err(), None);
    // Direct frames stood behind trains that were as short as a slow link has them, and behind short ones on one of which nothing was known.
    assert_eq!(try_seed(7439, direct::run).err(), None);
    assert_eq!(try_seed(11758, direct::run).err(), None);
    // A link of a lower tier became home while a large frame for a plain host stood in the queue of the one before.
    assert_eq!(try_seed(2411, mesh::run).err(), None);
    // Long trains passed no link, and the one that had second copies alone could not be tried: all waited for it.
    assert_eq!(try_seed(2221, mesh::run).err(), None);
    // A link was set to take less, and what was for all and longer went to peers alone, as is promised. It was the checker that counted a plain host.
    assert_eq!(try_seed(9883, mesh::run).err(), None);
    // A link that had become the only one took frames for longer than small ones may wait, for a quarter of a second.
    assert_eq!(try_seed(2132, mesh::run).err(), None);
    // Two links came up on a switch that let nothing pass, and a frame for somebody unknown went by both. It was the checker that did not see it.
    assert_eq!(try_seed(2850, mesh::run).err(), None);
    // The last piece of a frame and the first of another one of its flow went in one train. It was the checker that took it for that one's.
    assert_eq!(try_seed(1452, links::run_carrier_cuts).err(), None);
    // Two links came up again, and what a station behind a bridge said by the first came back by the second, which was settling.
    assert_eq!(try_seed(10061, mesh::run).err(), None);
    // A train whose sequence was altered was waited for ten seconds, and what had begun behind it as long again. It was the checker that did not wait.
    assert_eq!(try_seed(20047, pair::run).err(), None);
}

fn single_seed() -> bool {
    number("PACKTRAIN_SEED").is_some()
}

/// Each runs twice: half as many seeds as are tried, and twenty at most.
fn replayed_seeds() -> u64 {
    const MOST: u64 = 20;
    number("PACKTRAIN_SEEDS").map_or(MOST, |seeds| (seeds / 2).clamp(2, MOST))
}

fn replay_exactly(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        for (i, run) in scenario::ALL.iter().enumerate() {
            assert_eq!(
                run(Order::new(seed)),
                run(Order::new(seed)),
                "seed {seed} of scenario {i}"
            );
        }
    }
}

#[test]
fn a_seed_replays_its_run_exactly() {
    replay_exactly(0..replayed_seeds() / 2);
}

#[test]
fn and_so_do_other_seeds() {
    replay_exactly(replayed_seeds() / 2..replayed_seeds());
}
