//! The engine allocates nothing in the steady state: counted, not believed.

#[path = "../benches/support/mod.rs"]
mod support;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use support::Pair;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn frames_that_go_through_two_engines_cost_no_allocation() {
    let mut pair = Pair::new();
    // Flows appear, buffers are made, lists grow to what this load needs. Hellos allocate, once a
    // second: 1000 rounds of 200 µs stay clear of the next.
    for _ in 0..2000 {
        pair.round(256, 64, 64);
    }
    let region = Region::new(ALLOCATOR);
    for _ in 0..1000 {
        pair.round(256, 64, 64);
    }
    let change = region.change();
    let allocations = change.allocations + change.reallocations;
    assert!(
        allocations < 100,
        "{allocations} allocations for 256,000 frames: {change:?}"
    );
}
