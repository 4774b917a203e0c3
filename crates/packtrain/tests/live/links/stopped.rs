//! A daemon that does not run for a while: it hears nobody, and is heard by nobody, by all links at once.

use std::net::SocketAddr;
use std::thread::scope;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::stream::{self, Amount, Protocol};
use packtrain::lab::wire;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::cabled::{Cabled, address, now, pause, status};
use crate::common::{B, steady};

/// The stops, and time around them.
const SENT_FOR: Duration = Duration::from_secs(3);
/// Longer than a link may be silent that is beside another one, and shorter than all may be.
const STOPS: [Duration; 3] = [
    Duration::from_millis(60),
    Duration::from_millis(120),
    Duration::from_millis(250),
];
/// All links are silent for too long, and come back together.
const LONG_STOP: [Duration; 1] = [Duration::from_millis(1200)];

/// Goes on when this is dropped, also after a failure.
struct Stopped(Pid);

impl Stopped {
    fn stop(host: &Host) -> Stopped {
        let pid = status(host).pid;
        let pid = Pid::from_raw(pid as i32).expect("a daemon has a number");
        kill_process(pid, Signal::STOP).unwrap();
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Of all paths of a host: how often they failed.
fn failures(host: &Host) -> u64 {
    let peers = status(host).peers.into_iter();
    let paths = peers.flat_map(|peer| peer.links);
    paths.map(|path| path.failures).sum()
}

/// A transfer from A to B in which a daemon is stopped for these times.
fn transfer_beside(cabled: &Cabled, stopped: &Host, stops: &[Duration]) {
    let transfer = scope(|scope| {
        let transfer = scope.spawn(|| {
            let at = SocketAddr::new(address(B), 7109);
            let (from, to) = (&cabled.a.namespace, &cabled.b.namespace);
            let amount = Amount::Time(SENT_FOR);
            stream::transfer(from, to, at, amount, Protocol::Tcp, now()).unwrap()
        });
        for &stop in stops {
            pause(Duration::from_millis(500));
            let stopped = Stopped::stop(stopped);
            pause(stop);
            drop(stopped);
        }
        transfer.join().unwrap()
    });
    let (right, sent) = (transfer.right_bytes, transfer.sent_bytes);
    assert!(transfer.is_whole(), "{right} of {sent} bytes are right");
}

#[test]
fn a_daemon_that_is_stopped_under_a_transfer_is_not_taken_for_dead_links_and_nothing_is_lost() {
    live!(wire::shaping_unavailable());
    let cabled = Cabled::up("stopped", &[20, 20]);
    let hosts = [&cabled.a, &cabled.b];
    for stopped in hosts {
        let run = || {
            let before = hosts.map(failures);
            transfer_beside(&cabled, stopped, &STOPS);
            let after = hosts.map(failures);
            (after[0] - before[0], after[1] - before[1])
        };
        // A processor that is taken away from one link's frames and not the other's looks like a dead one.
        let what = "links of A, and of B, that failed";
        steady::judge(what, run, |&failed| failed == (0, 0));
        transfer_beside(&cabled, stopped, &LONG_STOP);
        cabled.assert_all_used_again();
    }
}
