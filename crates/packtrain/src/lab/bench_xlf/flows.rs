//! Greedy TCP flows side by side, each with segments of its own length, and what of each arrived in one and the same
//! window of time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto};

use crate::lab::namespaces::Namespace;
use crate::lab::stream::{self, Protocol};
use crate::lab::{Error, Result, now, pause};
use crate::linux::tcp_segments;

const CHUNK_BYTES: usize = 1 << 16;
/// How soon after its end a flow finds that out.
const LOOK: Duration = Duration::from_millis(100);

/// Of an Ethernet packet: 1500 bytes with the headers of IP and TCP.
pub const PACKET_SEGMENT_BYTES: u16 = 1460;

/// How long a segment of a flow may be; `None`: as long as its interface's MTU allows.
pub type Segment = Option<u16>;

/// So many that send packets, and so many that send whatever the interface takes.
pub fn packets_and_rocks(packets: usize, rocks: usize) -> Vec<Segment> {
    let of_packets = std::iter::repeat_n(Some(PACKET_SEGMENT_BYTES), packets);
    of_packets.chain(std::iter::repeat_n(None, rocks)).collect()
}

/// What is not counted, because windows still grow, and what is.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub ignored: Duration,
    pub counted: Duration,
}

/// Goodput of each flow, bit/s, in the order of `segments`. CUBIC.
pub fn carry(
    [from, to]: [&Namespace; 2],
    at: SocketAddr,
    segments: &[Segment],
    times: Times,
) -> Result<Vec<f64>> {
    let failed = |what: &str, source: io::Error| Error::Start {
        command: format!("flows to {at}: {what}"),
        source,
    };
    let listener = to
        .in_namespace(|| stream::listen(at, Protocol::Tcp))?
        .map_err(|error| failed("listen", error))?;
    let mut flows = Vec::new();
    for &segment in segments {
        let sender = from.in_namespace(|| connect(at, segment))?;
        let sender = sender.map_err(|error| failed("connect", error))?;
        // One at a time, so that it is known which is which.
        let (receiver, _) = listener.accept().map_err(|error| failed("accept", error))?;
        sender
            .set_write_timeout(Some(LOOK))
            .and_then(|()| receiver.set_read_timeout(Some(LOOK)))
            .map_err(|error| failed("timeout", error))?;
        flows.push((sender, receiver));
    }
    let arrived: Vec<AtomicU64> = flows.iter().map(|_| AtomicU64::new(0)).collect();
    let over = AtomicBool::new(false);
    let look = || -> (Instant, Vec<u64>) {
        let bytes = arrived.iter().map(|bytes| bytes.load(Ordering::Relaxed));
        (now(), bytes.collect())
    };
    std::thread::scope(|scope| {
        for ((sender, receiver), arrived) in flows.iter().zip(&arrived) {
            scope.spawn(|| send(sender, &over));
            scope.spawn(|| receive(receiver, arrived, &over));
        }
        pause(times.ignored);
        let before = look();
        pause(times.counted);
        let after = look();
        over.store(true, Ordering::Relaxed);
        let seconds = (after.0 - before.0).as_secs_f64();
        let pairs = before.1.iter().zip(&after.1);
        Ok(pairs
            .map(|(before, after)| (after - before) as f64 * 8.0 / seconds)
            .collect())
    })
}

fn connect(at: SocketAddr, segment: Segment) -> io::Result<TcpStream> {
    let family = match at {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let (flags, tcp) = (SocketFlags::CLOEXEC, Some(ipproto::TCP));
    let socket = net::socket_with(family, SocketType::STREAM, flags, tcp)?;
    set_tcp_congestion(&socket, "cubic")?;
    if let Some(bytes) = segment {
        tcp_segments::limit(&socket, bytes)?;
    }
    net::connect(&socket, &at)?;
    Ok(socket.into())
}

/// Until it is over, or the other end is gone.
fn send(mut stream: &TcpStream, over: &AtomicBool) {
    // Nothing that a line could leave out.
    let mut chunk = vec![0; CHUNK_BYTES];
    stream::pattern(0, &mut chunk);
    while !over.load(Ordering::Relaxed) {
        match stream.write(&chunk) {
            Err(error) if !is_passing(&error) => return,
            _ => {}
        }
    }
    // Nothing of what still waits is for anybody.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
}

fn receive(mut stream: &TcpStream, arrived: &AtomicU64, over: &AtomicBool) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => drop(arrived.fetch_add(len as u64, Ordering::Relaxed)),
            Err(error) if is_passing(&error) => {}
            Err(_) => return,
        }
    }
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    [Interrupted, TimedOut, WouldBlock].contains(&error.kind())
}

/// Jain's index of fairness: 1 where all have the same, 1/n where one has all. Of nothing it is no number.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_one_for_equals_and_falls_with_every_advantage() {
        assert_eq!(jain(&[3.0; 20]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        // Half of them have √13 times as much, as XL frames of 13 packets have behind drop tail.
        let unfair = [[1.0; 10], [13f64.sqrt(); 10]].concat();
        assert!((jain(&unfair) - 0.757).abs() < 0.001, "{}", jain(&unfair));
        assert!(jain(&[0.0; 3]).is_nan() && jain(&[]).is_nan());
    }

    #[test]
    fn packets_come_first_and_rocks_are_as_long_as_they_may_be() {
        let segments = packets_and_rocks(2, 1);
        assert_eq!(segments, [Some(1460), Some(1460), None]);
    }
}
