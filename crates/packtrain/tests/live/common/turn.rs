//! Whose turn it is: tests go some at a time, for they mostly wait; those that measure go alone. What one that does not has
//! measured wrong, it measures again alone ([`super::steady`]).
//!
//! Before one is alone the others have to end, and the longest of them takes a minute: so those that want to be wait for each
//! other, and go one after the other. The harness has more threads than tests go at once, for those that wait.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

const AT_ONCE: usize = 3;
/// So many that want to be alone are worth it that no other begins.
const WORTH_IT: usize = 4;

#[derive(Debug)]
struct Running {
    tests: usize,
    /// Wait to be alone.
    waiting: usize,
    /// No other begins before those have been.
    others_wait: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    tests: 0,
    waiting: 0,
    others_wait: false,
});
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Places that the test of this thread has.
    static PLACES: Cell<usize> = const { Cell::new(0) };
}

/// Until the test ends, however it does.
#[derive(Debug)]
#[must_use]
pub struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        running().tests -= PLACES.take();
        CHANGED.notify_all();
    }
}

/// As long as this is there the test that goes beside others is alone.
#[derive(Debug)]
#[must_use]
pub struct AloneMeanwhile(());

impl Drop for AloneMeanwhile {
    fn drop(&mut self) {
        PLACES.set(1);
        running().tests -= AT_ONCE - 1;
        CHANGED.notify_all();
    }
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(
    running: MutexGuard<'static, Running>,
    while_so: impl Fn(&Running) -> bool,
) -> MutexGuard<'static, Running> {
    let waited = CHANGED.wait_while(running, |running| while_so(running));
    waited.unwrap_or_else(PoisonError::into_inner)
}

/// With another one.
pub fn beside() -> Turn {
    let is_full = |running: &Running| running.others_wait || running.tests >= AT_ONCE;
    wait(running(), is_full).tests += 1;
    PLACES.set(1);
    Turn
}

/// With no other.
pub fn alone() -> Turn {
    take_all(false);
    Turn
}

/// `None`: it is alone already, or this is no thread of a test.
pub fn alone_meanwhile() -> Option<AloneMeanwhile> {
    if PLACES.get() != 1 {
        return None;
    }
    // Two may want it at once: who waits stands still, and is no company.
    running().tests -= 1;
    CHANGED.notify_all();
    // What it has set up stands meanwhile.
    take_all(true);
    Some(AloneMeanwhile(()))
}

/// Whether another test may be going on.
pub fn is_beside() -> bool {
    PLACES.get() == 1
}

fn take_all(is_urgent: bool) {
    let mut before = running();
    before.waiting += 1;
    before.others_wait |= is_urgent || before.waiting >= WORTH_IT;
    let mut running = wait(before, |running| running.tests > 0);
    running.waiting -= 1;
    running.others_wait &= running.waiting > 0;
    running.tests = AT_ONCE;
    PLACES.set(AT_ONCE);
    CHANGED.notify_all();
}
