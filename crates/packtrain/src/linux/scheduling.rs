//! What a thread asks of the scheduler: a class above or below the ordinary one, for who has to be on time and for who gives way;
//! more weight within it; a processor.

use std::{fs, io};

use rustix::process::{getpid, getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::sys::check;

/// Of one thread alone, 0 for the calling one: those that it begins are of the ordinary class.
fn set_class_of(
    thread: libc::pid_t,
    policy: libc::c_int,
    sched_priority: libc::c_int,
) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority };
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one structure, which lives across the call.
    check(unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) }).map(drop)
}

fn set_class(policy: libc::c_int, sched_priority: libc::c_int) -> io::Result<()> {
    set_class_of(0, policy, sched_priority)
}

/// From now on this thread runs before all that is not of this class (`SCHED_RR`, least priority of
/// it). Its children do not. The kernel keeps 5 % of the time for the others, should it never wait.
/// `EPERM`: CAP_SYS_NICE is missing.
pub fn run_in_real_time() -> io::Result<()> {
    set_class(libc::SCHED_RR, 1)
}

/// The same of another thread, by its number. `ESRCH`: there is none.
pub fn let_run_in_real_time(thread: u32) -> io::Result<()> {
    set_class_of(thread as libc::pid_t, libc::SCHED_RR, 1)
}

/// From now on this thread runs before all others of its processor, those of [`run_in_real_time`] too (`SCHED_FIFO`). `EPERM`:
/// CAP_SYS_NICE is missing.
pub fn run_before_all() -> io::Result<()> {
    set_class(libc::SCHED_FIFO, 2)
}

/// From now on this thread runs only where nothing else would (`SCHED_IDLE`). Who wakes up takes its processor at
/// once. Its children are of the ordinary class.
pub fn run_when_idle() -> io::Result<()> {
    set_class(libc::SCHED_IDLE, 0)
}

/// What a thread asks for through which a host's frames pass.
const LINE_NICE: i32 = -10;

/// Nobody has chosen how this thread is scheduled: it is of the ordinary class, and weighs as much as others.
pub fn is_as_usual() -> io::Result<bool> {
    // SAFETY: 0 is the calling thread; no pointers.
    let policy = check(unsafe { libc::sched_getscheduler(0) })? & !libc::SCHED_RESET_ON_FORK;
    Ok(policy == libc::SCHED_OTHER && getpriority_process(None)? == 0)
}

/// From now on this thread weighs more than ordinary ones, wherever it is in the ordinary class. `EACCES`: CAP_SYS_NICE is missing.
pub fn weigh_more() -> io::Result<()> {
    Ok(setpriority_process(None, LINE_NICE)?)
}

/// From now on this thread weighs as much as the first one of its process.
pub fn weigh_as_the_first_thread() -> io::Result<()> {
    let of_first = getpriority_process(Some(getpid()))?;
    Ok(setpriority_process(None, of_first)?)
}

/// The session that this process leads is scheduled together (`sched_autogroup`), and it is the session's weight that counts: from now
/// on that is more, too. Linux 6.18 keeps one of the same weight as another that never sleeps from its processor for seconds.
pub fn weigh_session_more() -> io::Result<()> {
    // The session of somebody else is his. Its leader may be in another PID namespace: then it is 0.
    // SAFETY: both take no pointers.
    let leads_session = unsafe { libc::getsid(0) == libc::getpid() };
    if !leads_session {
        return Ok(());
    }
    match fs::write("/proc/self/autogroup", LINE_NICE.to_string()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// From now on this thread is of the ordinary class again (`SCHED_OTHER`), with the weight that it had.
pub fn run_as_others_do() -> io::Result<()> {
    set_class(libc::SCHED_OTHER, 0)
}

/// From now on this thread runs on this processor alone.
pub fn stay_on(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
