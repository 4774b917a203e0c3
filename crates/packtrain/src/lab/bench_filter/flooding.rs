//! A flood, and what became of it.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::counts::Counts;
use super::mix::{HOST, JOINED, OPEN_PORT, frame_len};
use super::stage::{HOST_CPU, Stage, WIRE_CPU};
use super::way::{Standing, Way};
use crate::lab::{Error, Result, now, pause, port};
use crate::linux::flood::{Flood, Mix};
use crate::linux::scheduling::{run_in_real_time, stay_on, weigh_more};

/// What still stands in queues when the flood ends has come by then.
const DRAIN: Duration = Duration::from_millis(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What comes while the driver has the processor does not find the socket full: its turn is of 100 ms, and each datagram is a page.
const RECEIVE_BUFFER_BYTES: usize = 64 << 20;
/// Frames that were no flood's: an ARP of the host's own now and then.
const OTHERS_MAX: u64 = 50;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    pub mix: &'a Mix,
    /// As Ethernet counts, with the checksum.
    pub size: usize,
    /// `None`: as many as there can be.
    pub per_second: Option<u64>,
    pub duration: Duration,
}

/// What became of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Flooded {
    pub seconds: f64,
    pub sent: u64,
    /// Were due while the machine did something else.
    pub skipped: u64,
    #[serde(flatten)]
    pub counts: Counts,
    /// Datagrams that the host's program has read.
    pub useful: u64,
    /// The driver's thread ran so long, the stack below the socket included; 0 where it has none.
    pub driver_s: f64,
    /// So long did the program.
    pub program_s: f64,
    /// What packtrain's filter has counted, by reason; empty where there is none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
}

impl Flooded {
    pub fn per_second(&self, frames: u64) -> f64 {
        frames as f64 / self.seconds
    }

    /// Those that the stack was given.
    pub fn given(&self) -> u64 {
        self.counts.driver - self.counts.dropped
    }

    /// What the driver's thread needed for each, on average; not a number where none came.
    pub fn driver_ns_each(&self) -> f64 {
        self.driver_s * 1e9 / self.counts.driver as f64
    }

    /// Whether it was as it is called: without a program nothing is dropped, and a filter has judged all.
    fn is_of(&self, way: Way) -> std::result::Result<(), String> {
        let Counts {
            driver, dropped, ..
        } = self.counts;
        if driver == 0 {
            return Err("nothing of it came to the driver".into());
        }
        if !way.has_program() && dropped > 0 {
            return Err(format!(
                "{dropped} frames were dropped in a driver without a program"
            ));
        }
        if way.drops_all() && dropped != driver {
            return Err(format!(
                "{dropped} of {driver} frames were dropped, and not all"
            ));
        }
        if way.is_filter() {
            let judged: u64 = self.reasons.values().sum();
            if judged.abs_diff(driver) > OTHERS_MAX {
                return Err(format!("the filter has judged {judged} of {driver} frames"));
            }
        }
        Ok(())
    }
}

/// Floods the host, in which a program listens at [`OPEN_PORT`], while `beside` is done; it is told when the flood is to end.
pub fn flood_beside<T: Send>(
    stage: &Stage,
    standing: &Standing<'_>,
    load: Load<'_>,
    beside: impl FnOnce() -> Result<T>,
) -> Result<(Flooded, T)> {
    let socket = listener(stage)?;
    let ends = AtomicBool::new(false);
    let stop = AtomicBool::new(false);
    let (begins, begun) = channel();
    let reasons_before = standing.reasons()?;
    let before = Counts::now(stage)?;
    let ran_before = stage.driver_ran()?;
    let (mut flooded, done) = std::thread::scope(|scope| -> Result<(Flooded, T)> {
        let listening = scope.spawn(|| listen(&socket, &ends));
        let flooding = scope.spawn(|| stage.wire.in_namespace(|| send(stage, load, begins, &stop)));
        // Where it does not begin, it says why when it is waited for.
        let done = begun.recv().ok().map(|()| beside());
        stop.store(true, Ordering::Relaxed);
        let flooded = flooding.join().expect("who floods has no reason to panic");
        pause(DRAIN);
        ends.store(true, Ordering::Relaxed);
        let listened = listening
            .join()
            .expect("who listens has no reason to panic");
        let listened = listened.map_err(|error| not_heard(&error))?;
        let flooded = Flooded {
            useful: listened.datagrams,
            program_s: listened.ran.as_secs_f64(),
            ..flooded??
        };
        Ok((flooded, done.expect("what did not begin has failed")?))
    })?;
    flooded.driver_s = (stage.driver_ran()? - ran_before).as_secs_f64();
    flooded.counts = Counts::now(stage)? - before;
    let reasons = standing.reasons()?.into_iter().map(|(reason, frames)| {
        let before = reasons_before.get(&reason).copied().unwrap_or(0);
        (reason, frames - before)
    });
    flooded.reasons = reasons.filter(|(_, frames)| *frames > 0).collect();
    flooded
        .is_of(standing.way())
        .map_err(|text| Error::Unexpected {
            program: format!("a flood of the host, {}", standing.way().name()),
            text,
        })?;
    Ok((flooded, done))
}

pub fn flood(stage: &Stage, standing: &Standing<'_>, load: Load<'_>) -> Result<Flooded> {
    let wait = || {
        pause(load.duration);
        Ok(())
    };
    flood_beside(stage, standing, load, wait).map(|(flooded, ())| flooded)
}

fn send(stage: &Stage, load: Load<'_>, begins: Sender<()>, stop: &AtomicBool) -> Result<Flooded> {
    let failed = |source: String| Error::Unavailable(format!("no flood: {source}"));
    stay_on(WIRE_CPU)
        .and_then(|()| weigh_more())
        .map_err(|error| failed(error.to_string()))?;
    let flood = Flood::load(stage.wire_ifindex).map_err(|error| failed(error.to_string()))?;
    let _ = begins.send(());
    let start = now();
    let is_over = || stop.load(Ordering::Relaxed);
    let sent = flood
        .send(load.mix, frame_len(load.size), load.per_second, is_over)
        .map_err(|error| failed(error.to_string()))?;
    Ok(Flooded {
        seconds: start.elapsed().as_secs_f64(),
        sent: sent.frames,
        skipped: sent.skipped,
        ..Flooded::default()
    })
}

fn not_heard(source: &io::Error) -> Error {
    Error::Unavailable(format!("no program of the host listens: {source}"))
}

fn listener(stage: &Stage) -> Result<UdpSocket> {
    let bind = || {
        let socket = port::bind((Ipv4Addr::UNSPECIFIED, OPEN_PORT).into())?;
        socket.join_multicast_v4(&JOINED, &HOST)?;
        socket.set_read_timeout(Some(LOOK_EVERY))?;
        // Without the right to force it the ordinary size has to do.
        let _ = set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER_BYTES);
        Ok(socket)
    };
    stage
        .host
        .in_namespace(bind)?
        .map_err(|error| not_heard(&error))
}

struct Listened {
    datagrams: u64,
    ran: Duration,
}

/// As a program does that takes one datagram a call.
fn listen(socket: &UdpSocket, ends: &AtomicBool) -> io::Result<Listened> {
    stay_on(HOST_CPU).and_then(|()| run_in_real_time())?;
    let mut buffer = [0; 2048];
    let mut datagrams = 0;
    loop {
        match socket.recv(&mut buffer) {
            Ok(_) => datagrams += 1,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let ran = clock_gettime(ClockId::ThreadCPUTime);
    Ok(Listened {
        datagrams,
        ran: Duration::new(ran.tv_sec as u64, ran.tv_nsec as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flooded(driver: u64, dropped: u64, judged: u64) -> Flooded {
        Flooded {
            seconds: 2.0,
            counts: Counts {
                driver,
                dropped,
                ..Counts::default()
            },
            driver_s: 1e-3,
            reasons: [("ours".to_owned(), judged)].into(),
            ..Flooded::default()
        }
    }

    #[test]
    fn what_was_not_judged_is_no_figure_of_a_filter() {
        let of = |driver, dropped, judged, way| flooded(driver, dropped, judged).is_of(way);
        assert_eq!(of(1000, 900, 1000, Way::Filter), Ok(()));
        assert!(of(1000, 0, 0, Way::Filter).is_err(), "it was not attached");
        assert!(of(0, 0, 0, Way::Without).is_err(), "nothing came");
        assert!(of(1000, 1, 0, Way::Without).is_err());
        assert_eq!(of(1000, 0, 0, Way::Without), Ok(()));
        assert!(of(1000, 999, 0, Way::DropAll).is_err());
    }

    #[test]
    fn numbers_are_told_by_the_second_and_by_the_frame() {
        let flooded = flooded(1000, 900, 0);
        assert_eq!(flooded.given(), 100);
        assert_eq!(flooded.per_second(1000), 500.0);
        assert_eq!(flooded.driver_ns_each(), 1000.0);
    }
}
