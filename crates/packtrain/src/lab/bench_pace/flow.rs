//! One TCP connection that carries nothing worth reading, as fast as it goes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto};

use crate::lab::namespaces::Namespace;
use crate::lab::stream::{self, Amount, Protocol};
use crate::lab::{Error, Result, now};
use crate::linux::scheduling::stay_on;
use crate::linux::tcp_pacing;

const CHUNK_BYTES: usize = 1 << 17;
/// Without a byte for so long a connection is broken: a timeout of TCP over 198 ms, doubled some times.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// How soon after its time a receiver looks whether that is over.
const LOOK: Duration = Duration::from_millis(100);

/// Who sends, and by which congestion control; without one, by what the host gives its connections.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    pub host: &'a Namespace,
    pub congestion: Option<&'a str>,
    /// Paced by the kernel to so many; `None`: as it comes.
    pub bytes_per_second: Option<u64>,
}

/// What came of it at the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    pub bytes: u64,
    /// Of those that are carried for some time: what came in the second half of it.
    pub late_bytes: u64,
    /// From the connection's beginning to its last byte, or to the end of its time.
    pub seconds: f64,
}

impl Flow {
    pub fn goodput_bps(&self) -> f64 {
        match self.seconds {
            seconds if seconds > 0.0 => self.bytes as f64 * 8.0 / seconds,
            _ => 0.0,
        }
    }
}

/// Carries so much to a port of the receiver; what is to be carried for some time is broken off at its end. The programs of the two
/// stay on these processors.
pub fn carry(
    from: Sender<'_>,
    to: &Namespace,
    at: SocketAddr,
    amount: Amount,
    cpus: [usize; 2],
) -> Result<Flow> {
    let failed = |what: &str, source: io::Error| Error::Start {
        command: format!("connection to {at}: {what}"),
        source,
    };
    let listener = to
        .in_namespace(|| stream::listen(at, Protocol::Tcp))?
        .map_err(|error| failed("listen", error))?;
    let start = now();
    let mut sender = from
        .host
        .in_namespace(|| connect(at, from))?
        .map_err(|error| failed("connect", error))?;
    sender
        .set_write_timeout(Some(SILENCE_MAX))
        .map_err(|error| failed("timeout", error))?;
    let until = match amount {
        Amount::Time(time) => Some(time),
        Amount::Bytes(_) => None,
    };
    std::thread::scope(|scope| {
        // It begins while the other end does not know yet that it is connected.
        let sending = scope.spawn(|| {
            let _ = stay_on(cpus[0]);
            send(&mut sender, amount)
        });
        let receiving = scope.spawn(|| {
            let _ = stay_on(cpus[1]);
            let (mut receiver, _) = listener.accept()?;
            receiver.set_read_timeout(Some(LOOK))?;
            let flow = receive(&mut receiver, start, until);
            if until.is_some() {
                // Nothing of what is still on its way is waited for.
                let _ = set_socket_linger(&receiver, Some(Duration::ZERO));
            }
            Ok(flow)
        });
        let flow = receiving.join().expect("it has no reason to panic");
        let _ = sending.join();
        let flow = flow.map_err(|error| failed("accept", error))?;
        let wanted = match amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Time(_) => 0,
        };
        match flow.bytes >= wanted {
            true => Ok(flow),
            false => Err(Error::Unexpected {
                program: format!("connection to {at}"),
                text: format!("it broke after {} bytes", flow.bytes),
            }),
        }
    })
}

fn connect(at: SocketAddr, sender: Sender<'_>) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC;
    let tcp = Some(ipproto::TCP);
    let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, tcp)?;
    if let Some(name) = sender.congestion {
        // Before it is connected: a flow that begins as another keeps something of that (BBR's timers).
        set_tcp_congestion(&socket, name)?;
    }
    if let Some(rate) = sender.bytes_per_second {
        tcp_pacing::limit(&socket, rate)?;
    }
    net::connect(&socket, &at)?;
    Ok(socket.into())
}

fn send(stream: &mut TcpStream, amount: Amount) {
    let begin = now();
    let chunk = vec![0; CHUNK_BYTES];
    let mut sent = 0;
    loop {
        let len = match amount {
            Amount::Bytes(bytes) => (bytes - sent).min(CHUNK_BYTES as u64) as usize,
            Amount::Time(time) if begin.elapsed() < time => CHUNK_BYTES,
            Amount::Time(_) => 0,
        };
        if len == 0 || stream.write_all(&chunk[..len]).is_err() {
            break;
        }
        sent += len as u64;
    }
    match amount {
        Amount::Bytes(_) => drop(stream.shutdown(std::net::Shutdown::Write)),
        Amount::Time(_) => drop(set_socket_linger(&*stream, Some(Duration::ZERO))),
    }
}

fn receive(stream: &mut TcpStream, start: std::time::Instant, until: Option<Duration>) -> Flow {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut flow = Flow::default();
    let mut last = start;
    loop {
        let read = stream.read(&mut buffer);
        let at = now();
        if let Some(time) = until.filter(|&time| at - start >= time) {
            flow.seconds = time.as_secs_f64();
            return flow;
        }
        match read {
            Ok(0) => return flow,
            Ok(len) => {
                flow.bytes += len as u64;
                if until.is_some_and(|time| at - start >= time / 2) {
                    flow.late_bytes += len as u64;
                }
                flow.seconds = (at - start).as_secs_f64();
                last = at;
            }
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if at - last < SILENCE_MAX => {}
                _ => return flow,
            },
        }
    }
}
