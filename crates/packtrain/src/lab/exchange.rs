//! One question, one answer, the next question: what a line that carries nothing else adds to a
//! round trip.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use hdrhistogram::Histogram;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::measure::RoundTrips;
use super::namespaces::Namespace;
use super::{Error, Result, now};

const BYTES: usize = 64;
/// The first ones find the other's address, and warm everything up.
const WARM_UP: u32 = 200;
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Exchanges `count` datagrams of 64 bytes between two hosts, each waiting for the one before, with
/// both ends on one CPU.
pub fn measure(
    from: &Namespace,
    to: &Namespace,
    at: SocketAddr,
    cpu: usize,
    count: u32,
) -> Result<RoundTrips> {
    let failed = |what: &str, source: io::Error| Error::Start {
        command: format!("exchange with {at}: {what}"),
        source,
    };
    let open = |host: &Namespace, local: SocketAddr| -> Result<UdpSocket> {
        let socket = host
            .in_namespace(|| UdpSocket::bind(local))?
            .map_err(|error| failed("socket", error))?;
        socket
            .set_read_timeout(Some(ANSWER_WITHIN))
            .map_err(|error| failed("socket", error))?;
        Ok(socket)
    };
    let server = open(to, at)?;
    let client = open(from, ([0, 0, 0, 0], 0).into())?;
    client
        .connect(at)
        .map_err(|error| failed("connect", error))?;
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| answer(&server, cpu));
        // On a thread of its own: whoever starts this is not to stay on the CPU.
        let asking = scope.spawn(|| ask(&client, cpu, count));
        let result = asking.join().expect("the client has no reason to panic");
        // An empty datagram is the last.
        let _ = client.send(&[]);
        let answered = answering.join().expect("the server has no reason to panic");
        answered.map_err(|error| failed("server", error))?;
        result.map_err(|error| failed("client", error))
    })
}

/// Sends every datagram back, until an empty one comes or none at all.
fn answer(socket: &UdpSocket, cpu: usize) -> io::Result<()> {
    stay_on(cpu)?;
    let mut buffer = [0; BYTES];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((0, _)) => return Ok(()),
            Ok((len, from)) => drop(socket.send_to(&buffer[..len], from)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn ask(socket: &UdpSocket, cpu: usize, count: u32) -> io::Result<RoundTrips> {
    stay_on(cpu)?;
    let mut times = Histogram::<u64>::new_with_max(60_000_000_000, 3).expect("bounds in order");
    let mut buffer = [0; BYTES];
    for number in 0..WARM_UP + count {
        let start = now();
        socket.send(&buffer)?;
        match socket.recv(&mut buffer) {
            Ok(_) if number >= WARM_UP => {
                times.saturating_record(start.elapsed().as_nanos() as u64);
            }
            Ok(_) => {}
            // Lost: it is missing in what is received.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(RoundTrips::of(&times, u64::from(count)))
}

fn stay_on(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
