//! One TCP connection, CUBIC, whose every byte is known beforehand: how fast it goes, when what of it arrives,
//! and whether it is what was sent.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto};

use super::namespaces::Namespace;
use super::timeline::Timeline;
use super::{Error, Result, now, port};

const CHUNK_BYTES: usize = 1 << 16;
/// Without a byte for so long a connection is taken for broken.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// How much is sent.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    Bytes(u64),
    Time(Duration),
}

/// One connection over one path, or over all that the two hosts have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Mptcp,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub sent_bytes: u64,
    /// How many came before the first wrong one, or the end.
    pub right_bytes: u64,
    pub arrivals: Timeline,
}

impl Transfer {
    /// All of it, and nothing else.
    pub fn is_whole(&self) -> bool {
        self.right_bytes == self.sent_bytes && self.arrivals.bytes() == self.sent_bytes
    }
}

/// Sends to an address of the other host. A connection that breaks on the way is no error: what had
/// arrived until then is told.
pub fn transfer(
    from: &Namespace,
    to: &Namespace,
    at: SocketAddr,
    amount: Amount,
    protocol: Protocol,
    start: Instant,
) -> Result<Transfer> {
    let failed = |what: &str, source: io::Error| Error::Start {
        command: format!("transfer to {at}: {what}"),
        source,
    };
    let listener = to
        .in_namespace(|| listen(at, protocol))?
        .map_err(|error| failed("listen", error))?;
    let mut sender = from
        .in_namespace(|| connect(at, protocol))?
        .map_err(|error| failed("connect", error))?;
    let (mut receiver, _) = listener.accept().map_err(|error| failed("accept", error))?;
    let timeout = Some(SILENCE_MAX);
    sender
        .set_write_timeout(timeout)
        .and_then(|()| receiver.set_read_timeout(timeout))
        .map_err(|error| failed("timeout", error))?;
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(&mut sender, amount));
        let (right_bytes, arrivals) = receive(&mut receiver, start);
        // The sender is told of a receiver that gave up, and does not fill the line for nobody.
        let _ = receiver.shutdown(Shutdown::Both);
        Ok(Transfer {
            sent_bytes: sending.join().expect("the sender has no reason to panic"),
            right_bytes,
            arrivals,
        })
    })
}

fn socket(at: SocketAddr, protocol: Protocol) -> io::Result<OwnedFd> {
    let family = match at {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let protocol = match protocol {
        Protocol::Tcp => ipproto::TCP,
        Protocol::Mptcp => ipproto::MPTCP,
    };
    let flags = SocketFlags::CLOEXEC;
    Ok(net::socket_with(
        family,
        SocketType::STREAM,
        flags,
        Some(protocol),
    )?)
}

/// Where connections to this port come in, to whichever address of the host.
pub(super) fn listen(at: SocketAddr, protocol: Protocol) -> io::Result<TcpListener> {
    let socket = socket(at, protocol)?;
    net::sockopt::set_socket_reuseaddr(&socket, true)?;
    // Who joins another path of MPTCP connects to another address.
    let any: IpAddr = match at {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let any = SocketAddr::new(any, at.port());
    port::once_free(|| Ok(bind_and_listen(&socket, any)?))?;
    Ok(socket.into())
}

fn bind_and_listen(socket: &OwnedFd, at: SocketAddr) -> rustix::io::Result<()> {
    match net::bind(socket, &at) {
        // It is bound from the turn before, and only somebody else listened.
        Err(Errno::INVAL) => {}
        bound => bound?,
    }
    net::listen(socket, 1)
}

/// A connection that is CUBIC from its first segment.
pub(super) fn connect(at: SocketAddr, protocol: Protocol) -> io::Result<TcpStream> {
    let socket = socket(at, protocol)?;
    // Before it is connected: a flow that begins as another keeps something of that (BBR's timers).
    net::sockopt::set_tcp_congestion(&socket, "cubic")?;
    net::connect(&socket, &at)?;
    Ok(socket.into())
}

/// How many bytes the connection took.
fn send(stream: &mut TcpStream, amount: Amount) -> u64 {
    let begin = now();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut sent = 0;
    loop {
        let len = match amount {
            Amount::Bytes(bytes) => (bytes - sent).min(CHUNK_BYTES as u64),
            Amount::Time(time) if begin.elapsed() < time => CHUNK_BYTES as u64,
            Amount::Time(_) => 0,
        };
        if len == 0 {
            break;
        }
        let chunk = &mut chunk[..len as usize];
        pattern(sent, chunk);
        if stream.write_all(chunk).is_err() {
            break;
        }
        sent += len;
    }
    let _ = stream.shutdown(Shutdown::Write);
    sent
}

fn receive(stream: &mut TcpStream, start: Instant) -> (u64, Timeline) {
    let mut arrivals = Timeline::from(start);
    let (mut buffer, mut expected) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let (mut right, mut all_right) = (0, true);
    loop {
        let len = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        arrivals.record(now(), len as u64);
        if all_right {
            let (came, expected) = (&buffer[..len], &mut expected[..len]);
            pattern(right, expected);
            // As a whole first: links of several Gbit/s are not to wait for this.
            all_right = came == expected;
            let same = came.iter().zip(&*expected).take_while(|(a, b)| a == b);
            right += if all_right { len } else { same.count() } as u64;
        }
    }
    (right, arrivals)
}

/// The bytes of a row that no mistake gives twice, from a place on: each depends on where it stands.
pub fn pattern(from: u64, into: &mut [u8]) {
    let word = |number: u64| scrambled(number).to_le_bytes();
    let begun = (from % 8) as usize;
    let (first, rest) = into.split_at_mut(((8 - begun) % 8).min(into.len()));
    first.copy_from_slice(&word(from / 8)[begun..][..first.len()]);
    let mut words = rest.chunks_exact_mut(8);
    let mut number = from.div_ceil(8);
    for chunk in &mut words {
        chunk.copy_from_slice(&word(number));
        number += 1;
    }
    let last = words.into_remainder();
    last.copy_from_slice(&word(number)[..last.len()]);
}

/// Every number another one, and neighbours unlike each other (the finish of SplitMix64).
fn scrambled(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_the_same_however_it_is_cut() {
        let mut whole = [0; 100];
        pattern(0, &mut whole);
        let mut parts = [0; 100];
        let mut at = 0;
        for len in [1, 7, 8, 9, 3, 40, 32] {
            pattern(at as u64, &mut parts[at..at + len]);
            at += len;
        }
        assert_eq!((at, parts), (100, whole));
        for from in 0..9 {
            for len in 0..20 {
                let mut part = vec![0; len];
                pattern(from as u64, &mut part);
                assert_eq!(part, whole[from..from + len], "{len} from {from}");
            }
        }
        let mut shifted = [0; 100];
        pattern(8, &mut shifted);
        assert_eq!(shifted[..92], whole[8..]);
        assert_ne!(shifted[..8], whole[..8]);
    }
}
