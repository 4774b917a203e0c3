//! A little of all that the engine does. Mostly what it does all day: frames that leave and arrive. But also what links do that
//! lose frames, are cut and come back: what a compiler never sees it takes for what never happens, and makes it small and
//! slow. The same each time, so that the same source becomes the same program.

use packtrain_sim::scenario::{self, Order};

use crate::captures::{KINDS, MIXED, run};

const FRAMES: u64 = 300_000;
/// Each of its bytes is coded bit by bit.
const FRAMES_MIXED: u64 = 20_000;
const SEEDS: u64 = 12;

pub fn run_all() {
    for kind in &KINDS {
        run(kind, FRAMES);
    }
    run(&MIXED, FRAMES_MIXED);
    for scenario in scenario::ALL {
        for seed in 0..SEEDS {
            scenario(Order::new(seed));
        }
    }
}
