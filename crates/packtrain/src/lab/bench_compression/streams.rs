//! Many senders of small datagrams, each at a pace of its own, as calls and games have it: what of each arrives, and
//! how late. Whose packet it is its port tells, and which one its own number: nothing is added to what is sent.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::traffic::draws::Draws;
use crate::lab::messages::{clock_ns, find_each_other};
use crate::lab::namespaces::Namespace;
use crate::lab::one_link::stage::Line;
use crate::lab::one_link::way::Way;
use crate::lab::{Error, Result, now, pause, port};

const PORT: u16 = 7791;
/// Large enough for no packet to be lost between the interface and the receiver.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// How long a receiver waits for what may still be on its way.
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// What was sent before is not counted: a line takes a moment to see that its link is full.
pub const WARM_UP: Duration = Duration::from_secs(1);

/// One sender.
#[derive(Clone, Debug)]
pub struct Stream {
    pub packets: Vec<Vec<u8>>,
    pub per_second: u32,
}

/// How a packet is numbered, from wherever its sender begins.
pub type NumberOf = fn(&[u8]) -> Option<u16>;

/// What came of one, of what it sent after the warm-up.
#[derive(Clone, Debug, Default)]
pub struct Arrived {
    pub sent: usize,
    pub delays_ms: Vec<f64>,
}

impl Arrived {
    pub fn loss(&self) -> f64 {
        1.0 - self.delays_ms.len() as f64 / self.sent.max(1) as f64
    }
}

/// Of all of these together, milliseconds.
pub fn delay_p99_ms<'a>(of: impl Iterator<Item = &'a Arrived>) -> f64 {
    let mut delays = Histogram::<u64>::new_with_max(60_000_000, 4).expect("bounds in order");
    for delay_ms in of.flat_map(|arrived| &arrived.delays_ms) {
        delays.saturating_record((delay_ms * 1e3) as u64);
    }
    delays.value_at_quantile(0.99) as f64 / 1e3
}

/// From A to B and back at the same time; of each direction, what arrived of each stream.
pub fn both_ways(
    line: &Line,
    way: Way,
    [there, back]: [&[Stream]; 2],
    number_of: NumberOf,
) -> Result<[Vec<Arrived>; 2]> {
    let (a, b) = (&line.a.namespace, &line.b.namespace);
    let [at_a, at_b] = way.ends().map(|address| SocketAddr::new(address, PORT));
    std::thread::scope(|scope| {
        let back = scope.spawn(|| one_way(b, a, at_a, back, number_of));
        let there = one_way(a, b, at_b, there, number_of);
        let back = back.join().expect("who sends has no reason to panic");
        Ok([there?, back?])
    })
}

fn one_way(
    from: &Namespace,
    to: &Namespace,
    at: SocketAddr,
    streams: &[Stream],
    number_of: NumberOf,
) -> Result<Vec<Arrived>> {
    let failed = |what: &str, source: io::Error| Error::Start {
        command: format!("streams to {at}: {what}"),
        source,
    };
    let receiver = to
        .in_namespace(|| port::bind(at))?
        .map_err(|error| failed("receiver", error))?;
    // Without the right to force it the ordinary size has to do.
    let _ =
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, RECEIVE_BUFFER_BYTES);
    let connect = || UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect(at).map(|()| s));
    let connect_all = || streams.iter().map(|_| connect()).collect();
    let senders: io::Result<Vec<UdpSocket>> = from.in_namespace(connect_all)?;
    let senders = senders.map_err(|error| failed("sender", error))?;
    find_each_other(&senders[0], &receiver)
        .and_then(|()| receiver.set_read_timeout(Some(SILENCE_MAX)))
        .map_err(|error| failed("first packet", error))?;
    let run = Run::new(streams, number_of);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| run.receive(&receiver, &senders));
        run.send(&senders);
        run.is_over.store(true, Ordering::Relaxed);
        let arrived = receiving
            .join()
            .expect("who receives has no reason to panic");
        arrived.map_err(|error| failed("receiver", error))
    })
}

struct Run<'a> {
    streams: &'a [Stream],
    number_of: NumberOf,
    /// When each packet of each was sent.
    sent_ns: Vec<Vec<AtomicU64>>,
    is_over: AtomicBool,
}

impl<'a> Run<'a> {
    fn new(streams: &'a [Stream], number_of: NumberOf) -> Run<'a> {
        let times = |stream: &Stream| stream.packets.iter().map(|_| AtomicU64::new(0)).collect();
        Run {
            streams,
            number_of,
            sent_ns: streams.iter().map(times).collect(),
            is_over: AtomicBool::new(false),
        }
    }

    /// When each packet is due, of which stream. They do not begin at once.
    fn schedule(&self) -> Vec<(Duration, usize, usize)> {
        let mut draws = Draws::new(self.streams.len() as u64);
        let mut schedule = Vec::new();
        for (which, stream) in self.streams.iter().enumerate() {
            let every = 1.0 / f64::from(stream.per_second);
            let begin = draws.unit() * every;
            let due = |number| Duration::from_secs_f64(begin + every * number as f64);
            schedule.extend((0..stream.packets.len()).map(|number| (due(number), which, number)));
        }
        schedule.sort();
        schedule
    }

    fn send(&self, sockets: &[UdpSocket]) {
        let begin = now();
        for (due, which, number) in self.schedule() {
            let early = due.saturating_sub(begin.elapsed());
            if !early.is_zero() {
                pause(early);
            }
            self.sent_ns[which][number].store(clock_ns(), Ordering::Relaxed);
            // One that finds no room is lost, as on any way.
            let _ = sockets[which].send(&self.streams[which].packets[number]);
        }
    }

    fn receive(&self, socket: &UdpSocket, senders: &[UdpSocket]) -> io::Result<Vec<Arrived>> {
        let port = |sender: &UdpSocket| sender.local_addr().map(|address| address.port());
        let ports: Vec<u16> = senders.iter().map(port).collect::<io::Result<_>>()?;
        let first = |stream: &Stream| stream.packets.first().and_then(|p| (self.number_of)(p));
        let first: Vec<u16> = self.streams.iter().map(|s| first(s).unwrap_or(0)).collect();
        let mut came_ns: Vec<Vec<u64>> = self.sent_ns.iter().map(|s| vec![0; s.len()]).collect();
        let mut buffer = [0; 2048];
        loop {
            let (len, from) = match socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.is_over.load(Ordering::Relaxed) {
                        return Ok(self.arrived(&came_ns));
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // Others are of a run before.
            let Some(which) = ports.iter().position(|&port| port == from.port()) else {
                continue;
            };
            let Some(number) = (self.number_of)(&buffer[..len]) else {
                continue;
            };
            let number = usize::from(number.wrapping_sub(first[which]));
            // What comes twice came with the first.
            if let Some(came) = came_ns[which].get_mut(number).filter(|came| **came == 0) {
                *came = clock_ns();
            }
        }
    }

    fn arrived(&self, came_ns: &[Vec<u64>]) -> Vec<Arrived> {
        let of = |which: usize| {
            let per_second = f64::from(self.streams[which].per_second);
            let counted = (WARM_UP.as_secs_f64() * per_second) as usize;
            let sent = self.sent_ns[which]
                .iter()
                .zip(&came_ns[which])
                .skip(counted);
            let delay_ms = |(sent, &came): (&AtomicU64, &u64)| {
                let sent = sent.load(Ordering::Relaxed);
                (came != 0).then(|| came.saturating_sub(sent) as f64 / 1e6)
            };
            Arrived {
                sent: sent.len(),
                delays_ms: sent.filter_map(delay_ms).collect(),
            }
        };
        (0..self.streams.len()).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_of(packet: &[u8]) -> Option<u16> {
        Some(u16::from_be_bytes(packet.first_chunk().copied()?))
    }

    fn stream(first: u16, per_second: u32, count: u16) -> Stream {
        let packet = |at| first.wrapping_add(at).to_be_bytes().to_vec();
        Stream {
            packets: (0..count).map(packet).collect(),
            per_second,
        }
    }

    #[test]
    fn each_stream_is_told_by_itself_at_its_pace_and_without_its_first_second() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let at = receiver.local_addr().unwrap();
        let senders = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        for sender in &senders {
            sender.connect(at).unwrap();
        }
        // One whose numbers begin again, and one.
        let streams = [stream(65_530, 50, 60), stream(7, 20, 24)];
        let run = Run::new(&streams, number_of);
        let begin = now();
        let arrived = std::thread::scope(|scope| {
            let receiving = scope.spawn(|| run.receive(&receiver, &senders));
            run.send(&senders);
            // And what is of no run of ours, and what comes twice.
            let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
            stranger.send_to(&[0, 8], at).unwrap();
            senders[1].send(&[0, 7 + 23]).unwrap();
            run.is_over.store(true, Ordering::Relaxed);
            receiving.join().unwrap().unwrap()
        });
        assert!(begin.elapsed() >= Duration::from_millis(1150));
        let counts = arrived.iter().map(|a| (a.sent, a.delays_ms.len()));
        assert_eq!(counts.collect::<Vec<_>>(), [(10, 10), (4, 4)]);
        assert_eq!(arrived[0].loss(), 0.0);
        assert!(delay_p99_ms(arrived.iter()) < 100.0);
    }

    #[test]
    fn what_is_lost_is_a_share_of_what_was_sent() {
        let arrived = Arrived {
            sent: 100,
            delays_ms: vec![5.0; 97],
        };
        assert!((arrived.loss() - 0.03).abs() < 1e-9);
        assert!((delay_p99_ms([arrived].iter()) - 5.0).abs() < 0.01);
    }
}
