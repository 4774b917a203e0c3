//! Any sequence of what can happen to two engines: whatever the order, nothing is delivered twice,
//! nothing vanishes uncounted, a flow keeps its order where the wire does, every bound holds, every
//! wake-up leads further, and afterwards all is as before.
//!
//! A seed replays its run: `PACKTRAIN_SEED=7 cargo test --test operations`. `PACKTRAIN_SEEDS` sets how
//! many each test runs.

mod datagram;
mod drains;
mod random;
mod world;

use packtrain_proto::time::Duration;
use random::Random;
use world::{Faults, World};

fn each_seed(test: impl Fn(u64)) {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    if let Some(seed) = number("PACKTRAIN_SEED") {
        return test(seed);
    }
    for seed in 0..number("PACKTRAIN_SEEDS").unwrap_or(100) {
        let run = std::panic::AssertUnwindSafe(|| test(seed));
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("PACKTRAIN_SEED={seed} replays this");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Random operations, then peace: what is left over, and whether it still works.
fn run(seed: u64, faults: Faults, marked: bool) {
    let mut random = Random::new(seed);
    let mut world = World::new(&mut random, faults, marked);
    world.run(Duration::from_millis(500));
    let steps = 50 + random.below(400);
    for _ in 0..steps {
        world.step(&mut random);
        world.check_bounds();
    }
    world.make_peace();
    world.run(Duration::from_secs(15));
    world.check_nothing_is_left();
    world.check_all_is_accounted_for();
    world.check_it_works();
}

#[test]
fn on_an_orderly_link_that_loses_and_repeats_flows_keep_their_order() {
    each_seed(|seed| {
        let faults = Faults {
            loss: true,
            duplication: true,
            restarts: true,
            flaps: true,
            ..Faults::NONE
        };
        run(seed, faults, seed % 2 == 0);
    });
}

#[test]
fn on_two_links_that_lose_repeat_and_reorder_nothing_comes_twice() {
    each_seed(|seed| {
        let faults = Faults {
            links: 2,
            loss: true,
            duplication: true,
            reordering: true,
            restarts: true,
            flaps: true,
        };
        run(seed, faults, false);
    });
}

/// Whatever overtakes, is lost and comes again: what was handed in before is not delivered after the
/// engine has said that it arrived. Neither from behind a gap, nor the rest of a frame in pieces.
#[test]
fn nothing_of_before_arrives_after_it_was_said_to_have_arrived() {
    let happened = std::cell::Cell::new(0);
    let seeds = std::cell::Cell::new(0);
    each_seed(|seed| {
        let faults = Faults {
            loss: seed % 8 != 0,
            duplication: seed % 3 == 0,
            reordering: seed % 2 == 0,
            ..Faults::NONE
        };
        let mut random = Random::new(seed);
        let mut world = World::new(&mut random, faults, seed % 5 == 0);
        world.run(Duration::from_millis(500));
        for _ in 0..300 {
            world.step(&mut random);
            if random.one_in(4) {
                world.request_drain(random.below(2) as usize);
            }
        }
        world.make_peace();
        world.run(Duration::from_secs(15));
        for side in 0..2 {
            let before = world.drains.happened;
            world.request_drain(side);
            world.run(Duration::from_secs(1));
            assert_eq!(world.drains.happened, before + 1, "on a perfect wire");
        }
        happened.set(happened.get() + world.drains.happened);
        seeds.set(seeds.get() + 1);
    });
    let (happened, seeds) = (happened.get(), seeds.get());
    assert!(happened > 10 * seeds, "{happened} in {seeds} runs");
}

/// Nothing but too much load: every frame that is missing has a counter of its own.
#[test]
fn on_a_perfect_wire_each_missing_frame_is_counted_as_dropped_by_a_queue() {
    each_seed(|seed| run(seed, Faults::NONE, seed % 2 == 0));
}
