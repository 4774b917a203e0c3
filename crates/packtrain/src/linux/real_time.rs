//! What a thread asks of the scheduler: a class above or below the ordinary one, for who has to be on time and for who gives way;
//! a processor.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

use super::sys::check;

/// From now on this thread runs before all that is not of this class (`SCHED_RR`, least priority of
/// it). Its children do not. The kernel keeps 5 % of the time for the others, should it never wait.
/// `EPERM`: CAP_SYS_NICE is missing.
pub fn run_in_real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread; the kernel reads one structure, which lives across the call.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).map(drop)
}

/// From now on this thread runs only where nothing else would (`SCHED_IDLE`). Who wakes up takes its processor at
/// once. Its children are of the ordinary class.
pub fn run_when_idle() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    let policy = libc::SCHED_IDLE | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread; the kernel reads one structure, which lives across the call.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).map(drop)
}

/// From now on this thread runs on this processor alone.
pub fn stay_on(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
