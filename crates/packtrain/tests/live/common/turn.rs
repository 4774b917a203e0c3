//! Whose turn it is: tests go two at a time, for they mostly wait; those that measure go alone.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

const AT_ONCE: usize = 2;

#[derive(Debug)]
struct Running {
    tests: usize,
    /// Wait to be alone: no other begins before.
    waiting: usize,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    tests: 0,
    waiting: 0,
});
static CHANGED: Condvar = Condvar::new();

/// Until the test ends, however it does.
#[derive(Debug)]
#[must_use]
pub struct Turn(usize);

impl Drop for Turn {
    fn drop(&mut self) {
        running().tests -= self.0;
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
    let is_full = |running: &Running| running.waiting > 0 || running.tests >= AT_ONCE;
    wait(running(), is_full).tests += 1;
    Turn(1)
}

/// With no other.
pub fn alone() -> Turn {
    let mut before = running();
    before.waiting += 1;
    let mut running = wait(before, |running| running.tests > 0);
    running.waiting -= 1;
    running.tests = AT_ONCE;
    CHANGED.notify_all();
    Turn(AT_ONCE)
}
