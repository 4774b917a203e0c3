//! How long a small packet waits beside an elephant, and what the elephant has beside a thousand of them a second: one way, from the
//! call that sends it to the kernel's stamp at the other end. Alone first, and then beside; what is more is the wait.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::cables::{Cable, Cables, Plan};
use super::in_turns;
use crate::clock::Clock;
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::find_each_other;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, Row};
use crate::lab::{Error, Result, measure, now, pause, port};
use crate::linux::udp_stamps;

const INTERVAL: Duration = Duration::from_millis(1);
const BYTES: usize = 36;
/// Of packets alone, of the elephant alone, and of both.
const LASTS: Duration = Duration::from_secs(4);
/// The elephant's window has grown by then.
const SETTLES: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_millis(500);
const PORT: u16 = 7331;

const STAGES: [(&str, u32, f64); 2] = [
    (
        "1000 small packets/s beside an elephant, 100 Mbit/s",
        100,
        1000.0,
    ),
    (
        "1000 small packets/s beside an elephant, 1 Gbit/s",
        1000,
        200.0,
    ),
];

/// One run of one way.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Beside the elephant, less what it is alone, µs.
    added_p50_us: f64,
    added_p99_us: f64,
    alone_p99_us: f64,
    lost: f64,
    goodput_bps: f64,
    alone_bps: f64,
}

impl Run {
    fn beside_to_alone(&self) -> f64 {
        self.goodput_bps / self.alone_bps
    }
}

/// The first is the one that `pt0` promises something of, beside the bare link's.
fn rows(added_max_us: f64) -> [Row<Run>; 6] {
    [
        (
            "p99 of the added wait",
            (Unit::Microseconds, Target::AtMost(added_max_us)),
            |run| run.added_p99_us,
        ),
        (
            "better than plain",
            (Unit::Microseconds, Target::RatioAtMost(1.0)),
            |run| run.added_p99_us,
        ),
        ("p50", (Unit::Microseconds, Target::RatioShown), |run| {
            run.added_p50_us
        }),
        (
            "p99 alone",
            (Unit::Microseconds, Target::DifferenceShown),
            |run| run.alone_p99_us,
        ),
        (
            "the elephant's goodput ÷ alone",
            (Unit::Ratio, Target::AtLeast(0.98)),
            Run::beside_to_alone,
        ),
        ("small packets lost", (Unit::Count, Target::Shown), |run| {
            run.lost
        }),
    ]
}

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    for (part, mbit, added_max_us) in STAGES {
        let cable = Cable {
            mtu: 1500,
            whole: true,
            rate_mbit: Some(mbit),
        };
        let plan = Plan {
            bare: cable,
            under_pt0: cable,
            up: &[],
        };
        let cables = Cables::set(packtrain, plan)?;
        let runs = in_turns(bench, part, |bench, way| match way {
            Way::Pt0 => cables.counted(bench, part, || run(&cables, way)),
            _ => run(&cables, way),
        })?;
        bench.compare_rows(part, &rows(added_max_us), &runs);
    }
    Ok(())
}

fn run(cables: &Cables, way: Way) -> Result<Run> {
    let elephant = |lasts| measure::bulk(&cables.a.namespace, &way.to(), lasts, &[]);
    let alone = packets(cables, way, LASTS)?;
    let alone_bps = elephant(LASTS + SETTLES)?.goodput_bps;
    pause(INTERVAL * 500);
    let (beside, bulk) = std::thread::scope(|scope| {
        let bulk = scope.spawn(|| elephant(LASTS + 2 * SETTLES));
        pause(SETTLES);
        let beside = packets(cables, way, LASTS);
        (
            beside,
            bulk.join().expect("the flow has no reason to panic"),
        )
    });
    let beside = beside?;
    Ok(Run {
        added_p50_us: beside.at(0.5) - alone.at(0.5),
        added_p99_us: beside.at(0.99) - alone.at(0.99),
        alone_p99_us: alone.at(0.99),
        lost: beside.lost as f64,
        goodput_bps: bulk?.goodput_bps,
        alone_bps,
    })
}

/// How long each took, µs, in order; and those that never came.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    micros: Vec<f64>,
    pub(super) lost: usize,
}

impl Waits {
    pub(super) fn of(mut micros: Vec<f64>, sent: usize) -> Waits {
        micros.sort_by(f64::total_cmp);
        Waits {
            lost: sent.saturating_sub(micros.len()),
            micros,
        }
    }

    /// So large a part of all took no longer; what was lost took for ever.
    pub(super) fn at(&self, part: f64) -> f64 {
        let all = self.micros.len() + self.lost;
        let rank = ((all as f64 * part).ceil() as usize).max(1);
        self.micros.get(rank - 1).copied().unwrap_or(f64::NAN)
    }
}

fn packets(cables: &Cables, way: Way, lasts: Duration) -> Result<Waits> {
    let at = SocketAddr::new(way.at().ip(), PORT);
    let failed = |source: io::Error| Error::Start {
        command: format!("small packets to {at}"),
        source,
    };
    let receiver = cables.b.namespace.in_namespace(|| port::bind(at))?;
    let receiver = receiver.map_err(failed)?;
    let connect = || UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect(at).map(|()| s));
    let sender = cables.a.namespace.in_namespace(connect)?.map_err(failed)?;
    find_each_other(&sender, &receiver)
        .and_then(|()| udp_stamps::stamp(&receiver))
        .and_then(|()| receiver.set_read_timeout(Some(SILENCE)))
        .map_err(failed)?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, &over));
        let sent = send(&sender, lasts).map_err(failed);
        over.store(true, Ordering::Relaxed);
        let came = receiving
            .join()
            .expect("the receiver has no reason to panic");
        Ok(Waits::of(came.map_err(failed)?, sent?))
    })
}

/// Each says when it was sent.
fn send(socket: &UdpSocket, lasts: Duration) -> io::Result<usize> {
    let (start, clock) = (now(), Clock::start());
    let wall = clock.wall();
    let (mut sent, mut packet) = (0, [0; BYTES]);
    while start.elapsed() < lasts {
        packet[..8].copy_from_slice(&wall.unix_nanos(clock.now()).to_be_bytes());
        socket.send(&packet)?;
        sent += 1;
        pause((INTERVAL * sent as u32).saturating_sub(start.elapsed()));
    }
    Ok(sent)
}

fn receive(socket: &UdpSocket, over: &AtomicBool) -> io::Result<Vec<f64>> {
    let (mut micros, mut buffer) = (Vec::new(), [0; 64]);
    loop {
        match udp_stamps::receive(socket, &mut buffer) {
            Ok((BYTES, at)) if at > 0 => {
                let sent = u64::from_be_bytes(buffer[..8].try_into().expect("8 bytes"));
                micros.push(at.saturating_sub(sent) as f64 / 1e3);
            }
            // One by which the two found each other.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    return Ok(micros);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_took_longer_than_all_that_came() {
        let waits = Waits::of(vec![3.0, 1.0, 2.0, 4.0], 5);
        assert_eq!((waits.at(0.5), waits.at(0.8)), (3.0, 4.0));
        assert!(waits.at(0.99).is_nan());
        assert!(Waits::default().at(0.5).is_nan());
    }
}
