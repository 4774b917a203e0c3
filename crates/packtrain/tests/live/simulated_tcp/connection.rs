//! One TCP connection of this kernel that sends without an end, and what of it arrives.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use packtrain::lab::namespaces::Namespace;
use packtrain::linux::scheduling::run_in_real_time;
use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto};

use crate::common::cabled::now;

const CHUNK_BYTES: usize = 1 << 16;
/// A receiver that hears nothing looks whether its time is over.
const LOOK: Duration = Duration::from_millis(100);

/// Why this kernel has no such congestion control, if so.
pub fn unavailable(congestion_control: &str) -> Option<io::Error> {
    socket(congestion_control).err()
}

/// From one host to this address of the other, by a thread that is there for that; content that has come to the receiving socket, for each second.
pub fn carry(
    from: &Namespace,
    to: &Namespace,
    at: Ipv4Addr,
    congestion_control: &str,
    seconds: usize,
) -> Vec<u64> {
    let listener = to.in_namespace(|| TcpListener::bind((IpAddr::V4(at), 0)));
    let listener = listener.unwrap().unwrap();
    let at = listener.local_addr().unwrap();
    let mut arrived = Arrivals::of(seconds);
    let sender = from.in_namespace(|| connect(at, congestion_control));
    let sender = sender.unwrap().unwrap();
    // What has not been sent at the end is not.
    set_socket_linger(&sender, Some(Duration::ZERO)).unwrap();
    // As the wires do: one that is kept from running where it holds its socket keeps that from hearing what comes.
    let _ = run_in_real_time();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = run_in_real_time();
            let chunk = vec![0; CHUNK_BYTES];
            while (&sender).write_all(&chunk).is_ok() {}
        });
        let received = listener
            .accept()
            .and_then(|(receiver, _)| arrived.receive(&receiver));
        // Also where something has gone wrong: it writes no longer.
        let _ = sender.shutdown(Shutdown::Both);
        received.unwrap();
    });
    arrived.bytes
}

/// Before it is connected: one that begins as another keeps something of that (BBR's timers).
fn socket(congestion_control: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let tcp = Some(ipproto::TCP);
    let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, tcp)?;
    set_tcp_congestion(&socket, congestion_control)?;
    Ok(socket)
}

fn connect(at: SocketAddr, congestion_control: &str) -> io::Result<TcpStream> {
    let socket = socket(congestion_control)?;
    net::connect(&socket, &at)?;
    Ok(socket.into())
}

struct Arrivals {
    since: std::time::Instant,
    /// Each second's.
    bytes: Vec<u64>,
}

impl Arrivals {
    /// From now on.
    fn of(seconds: usize) -> Arrivals {
        Arrivals {
            since: now(),
            bytes: vec![0; seconds],
        }
    }

    fn receive(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(LOOK))?;
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let read = stream.read(&mut buffer);
            let second = self.since.elapsed().as_secs() as usize;
            let Some(bytes) = self.bytes.get_mut(second) else {
                return Ok(());
            };
            match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => *bytes += len as u64,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(error),
                },
            }
        }
    }
}
