//! Small messages: UDP datagrams with a number and the time they were sent, and what became of
//! them. Sender and receiver share the machine's clock, so the delay is that of one way.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::namespaces::Namespace;
use super::timeline::Timeline;
use super::{Error, Result, now, pause, port};
use crate::linux::scheduling::{run_in_real_time, stay_on};

/// Number and time, 8 bytes each.
pub const SIZE_MIN: usize = 16;
/// The number of a message that says "that was all".
const END: u64 = u64::MAX;
/// No run sends as many: a larger number is not one of ours.
const NUMBERS_MAX: u64 = 1 << 32;
/// Sent more than once: it may be lost as any other.
const ENDS: usize = 20;
/// How long the receiver waits for another message before it takes the last one for the last.
const SILENCE_MAX: Duration = Duration::from_millis(1500);
/// Large enough for no datagram to be lost between the interface and the receiver.
const RECEIVE_BUFFER_BYTES: usize = 32 << 20;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// UDP payload of each message, bytes.
    pub size: usize,
    pub duration: Duration,
    /// Messages a second; `None`: as fast as the socket takes them.
    pub rate_per_second: Option<u64>,
    /// Sender and receiver run before everything else, where they may: when it is about the time that
    /// a wire takes, and not about theirs.
    pub real_time: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Report {
    pub sent: u64,
    pub delivered: u64,
    pub delivered_per_second: f64,
    /// Came after one with a higher number.
    pub reordered: u64,
    pub duplicated: u64,
    pub delay_mean_us: f64,
    pub delay_deviation_us: f64,
    pub delay_p50_us: f64,
    pub delay_p99_us: f64,
    pub delay_max_us: f64,
    /// The longest time between two arrivals.
    pub gap_max_us: f64,
}

impl Report {
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.delivered)
    }
}

/// Sends `load` from one host to an address of the other, and gives what arrived.
pub fn measure(from: &Namespace, to: &Namespace, at: SocketAddr, load: Load) -> Result<Report> {
    measure_in_time(from, to, at, load, now()).map(|(report, _)| report)
}

/// As [`measure`], with sender and receiver on these processors.
pub fn measure_on(
    (from, to): (&Namespace, &Namespace),
    at: SocketAddr,
    load: Load,
    cpus: [usize; 2],
) -> Result<Report> {
    let flows = Flows {
        count: 1,
        cpus: Some(cpus),
    };
    run((from, to), at, load, now(), flows).map(|(report, _)| report)
}

/// As [`measure`], from so many sockets in turns, each a flow: messages are in order or not among those of their
/// flow.
pub fn measure_flows(
    (from, to): (&Namespace, &Namespace),
    at: SocketAddr,
    load: Load,
    flows: usize,
) -> Result<Report> {
    let flows = Flows {
        count: flows,
        cpus: None,
    };
    run((from, to), at, load, now(), flows).map(|(report, _)| report)
}

/// As [`measure`], and when their bytes arrived.
pub fn measure_in_time(
    from: &Namespace,
    to: &Namespace,
    at: SocketAddr,
    load: Load,
    start: Instant,
) -> Result<(Report, Timeline)> {
    let flows = Flows {
        count: 1,
        cpus: None,
    };
    run((from, to), at, load, start, flows)
}

/// Who sends, and where sender and receiver are.
#[derive(Clone, Copy, Debug)]
struct Flows {
    /// At least one.
    count: usize,
    cpus: Option<[usize; 2]>,
}

fn run(
    (from, to): (&Namespace, &Namespace),
    at: SocketAddr,
    load: Load,
    start: Instant,
    flows: Flows,
) -> Result<(Report, Timeline)> {
    assert!(load.size >= SIZE_MIN, "a message has {SIZE_MIN} bytes");
    let any: SocketAddr = match at {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let failed = |what: &str, source: io::Error| Error::Start {
        command: format!("small messages to {at}: {what}"),
        source,
    };
    let receiver = to
        .in_namespace(|| port::bind(at))?
        .map_err(|error| failed("receiver", error))?;
    let connect = || UdpSocket::bind(any).and_then(|s| s.connect(at).map(|()| s));
    let connect_all = || (0..flows.count).map(|_| connect()).collect();
    let senders: io::Result<Vec<UdpSocket>> = from.in_namespace(connect_all)?;
    let senders = senders.map_err(|error| failed("sender", error))?;
    // Without the right to force it the ordinary size has to do.
    let _ =
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, RECEIVE_BUFFER_BYTES);
    find_each_other(&senders[0], &receiver).map_err(|error| failed("first message", error))?;
    receiver
        .set_read_timeout(Some(SILENCE_MAX))
        .map_err(|error| failed("receiver", error))?;
    let receiver = &receiver;
    std::thread::scope(|scope| {
        // The last of a run before, to the same port, may still be on its way.
        let begin_ns = clock_ns();
        let receiving = scope.spawn(move || {
            ask_scheduler(load, flows.cpus.map(|[_, receiver]| receiver))?;
            receive(receiver, begin_ns, start, flows.count)
        });
        let sending = scope.spawn(|| {
            ask_scheduler(load, flows.cpus.map(|[sender, _]| sender))?;
            Ok(send(&senders, load))
        });
        let sent = sending
            .join()
            .expect("the sender has no reason to panic")
            .map_err(|error| failed("sender", error))?;
        let (mut report, arrivals) = receiving
            .join()
            .expect("the receiver has no reason to panic")
            .map_err(|error| failed("receiver", error))?;
        report.sent = sent;
        Ok((report, arrivals))
    })
}

fn ask_scheduler(load: Load, cpu: Option<usize>) -> io::Result<()> {
    if load.real_time {
        // Without the right to it, times are those of an ordinary program.
        let _ = run_in_real_time();
    }
    cpu.map_or(Ok(()), stay_on)
}

/// Sends until something has arrived. While an address is looked for (ARP), Linux keeps some
/// datagrams, loses others, and lets later ones overtake those it kept: none of that is the link's.
pub(super) fn find_each_other(sender: &UdpSocket, receiver: &UdpSocket) -> io::Result<()> {
    receiver.set_read_timeout(Some(Duration::from_millis(100)))?;
    let start = now();
    loop {
        let _ = sender.send(b"hello");
        match receiver.recv(&mut [0; 16]) {
            Ok(_) => return Ok(()),
            Err(error) if start.elapsed() > Duration::from_secs(3) => return Err(error),
            Err(_) => {}
        }
    }
}

/// Each message by the next socket.
fn send(sockets: &[UdpSocket], load: Load) -> u64 {
    let mut message = vec![0u8; load.size];
    let start = now();
    let mut sent = 0u64;
    loop {
        let elapsed = start.elapsed();
        if elapsed >= load.duration {
            break;
        }
        if let Some(rate) = load.rate_per_second {
            let due = (elapsed.as_secs_f64() * rate as f64) as u64;
            if sent > due {
                // Sleeping is too coarse for the gap between two messages, and spinning takes a
                // CPU from the link under test: sleep a tick, then send what became due in it.
                pause(Duration::from_micros(200));
                continue;
            }
        }
        write(&mut message, sent, clock_ns());
        // An error is about an earlier message (a closed port) or a full queue: one message is
        // lost, and counted as lost.
        let _ = sockets[sent as usize % sockets.len()].send(&message);
        sent += 1;
    }
    for _ in 0..ENDS {
        pause(Duration::from_millis(2));
        write(&mut message, END, clock_ns());
        let _ = sockets[0].send(&message);
    }
    sent
}

/// What was sent since `begin_ns` by so many flows in turns.
fn receive(
    socket: &UdpSocket,
    begin_ns: u64,
    start: Instant,
    flows: usize,
) -> io::Result<(Report, Timeline)> {
    let mut arrivals = Timeline::from(start);
    // Four digits: of a delay of 200 ms, ten microseconds.
    let mut delays = Histogram::<u64>::new_with_max(60_000_000_000, 4).expect("bounds in order");
    let mut seen: Vec<Seen> = (0..flows).map(|_| Seen::default()).collect();
    let mut buffer = [0u8; 2048];
    let (mut first_ns, mut last_ns) = (None, 0);
    loop {
        let len = match socket.recv(&mut buffer) {
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let Some((number, stamp)) = read(&buffer[..len]) else {
            continue;
        };
        if stamp < begin_ns {
            continue;
        }
        if number == END {
            break;
        }
        if number >= NUMBERS_MAX {
            continue;
        }
        let arrived_ns = clock_ns();
        let (flow, of_flow) = (number as usize % flows, number / flows as u64);
        if seen[flow].take(of_flow) {
            delays.saturating_record(arrived_ns.saturating_sub(stamp));
            arrivals.record(now(), len as u64);
            first_ns.get_or_insert(arrived_ns);
            last_ns = arrived_ns;
        }
    }
    let seconds = last_ns.saturating_sub(first_ns.unwrap_or(last_ns)) as f64 / 1e9;
    let micros = |ns: u64| ns as f64 / 1e3;
    let report = Report {
        sent: 0,
        delivered: delays.len(),
        delivered_per_second: if seconds > 0.0 {
            delays.len() as f64 / seconds
        } else {
            0.0
        },
        reordered: seen.iter().map(|flow| flow.reordered).sum(),
        duplicated: seen.iter().map(|flow| flow.duplicated).sum(),
        delay_mean_us: delays.mean() / 1e3,
        delay_deviation_us: delays.stdev() / 1e3,
        delay_p50_us: micros(delays.value_at_quantile(0.5)),
        delay_p99_us: micros(delays.value_at_quantile(0.99)),
        delay_max_us: micros(delays.max()),
        gap_max_us: arrivals.gap_max().as_secs_f64() * 1e6,
    };
    Ok((report, arrivals))
}

/// Which numbers came, a bit each.
#[derive(Default)]
struct Seen {
    bits: Vec<u64>,
    next: u64,
    reordered: u64,
    duplicated: u64,
}

impl Seen {
    /// Whether it is the first with this number.
    fn take(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        if self.bits[word] & bit != 0 {
            self.duplicated += 1;
            return false;
        }
        self.bits[word] |= bit;
        if number < self.next {
            self.reordered += 1;
        } else {
            self.next = number + 1;
        }
        true
    }
}

fn write(message: &mut [u8], number: u64, time: u64) {
    message[..8].copy_from_slice(&number.to_be_bytes());
    message[8..16].copy_from_slice(&time.to_be_bytes());
}

fn read(message: &[u8]) -> Option<(u64, u64)> {
    let number = u64::from_be_bytes(message.get(..8)?.try_into().ok()?);
    let time = u64::from_be_bytes(message.get(8..16)?.try_into().ok()?);
    Some((number, time))
}

pub(super) fn clock_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_its_number_and_time_again() {
        let mut message = [0xee; 64];
        write(&mut message, 7, 12_345);
        assert_eq!(read(&message), Some((7, 12_345)));
        assert_eq!(read(&message[..15]), None);
    }

    #[test]
    fn the_end_of_a_run_before_is_not_the_end_of_this_one() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        let begin_ns = clock_ns();
        for (number, time) in [(END, begin_ns - 1), (0, begin_ns), (END, begin_ns)] {
            let mut message = [0; SIZE_MIN];
            write(&mut message, number, time);
            sender.send(&message).unwrap();
        }
        let (report, _) = receive(&receiver, begin_ns, now(), 1).unwrap();
        assert_eq!((report.delivered, report.duplicated), (1, 0));
    }

    #[test]
    fn what_one_flow_overtakes_of_another_is_in_order() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        let begin_ns = clock_ns();
        // Of two flows: even numbers of one, odd ones of the other, which overtakes itself once.
        for number in [1, 0, 2, 5, 3, 4, END] {
            let mut message = [0; SIZE_MIN];
            write(&mut message, number, begin_ns);
            sender.send(&message).unwrap();
        }
        let (report, _) = receive(&receiver, begin_ns, now(), 2).unwrap();
        assert_eq!((report.delivered, report.reordered), (6, 1));
    }

    #[test]
    fn duplicates_and_late_ones_are_told_apart() {
        let mut seen = Seen::default();
        let first: Vec<bool> = [0, 1, 3, 2, 3, 200, 199, 0].map(|n| seen.take(n)).into();
        assert_eq!(first, [true, true, true, true, false, true, true, false]);
        assert_eq!((seen.reordered, seen.duplicated), (2, 2));
    }
}
