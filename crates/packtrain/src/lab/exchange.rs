//! One question, one answer, the next question: what a line that carries nothing else adds to a
//! round trip.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::measure::RoundTrips;
use super::namespaces::Namespace;
use super::sample::Sample;
use super::{Error, Result, now, port};
use crate::linux::scheduling::stay_on;

const BYTES: usize = 64;
/// The first ones find the other's address, and warm everything up.
const WARM_UP: u32 = 200;
/// The first of a block find cold caches, and the other's processes asleep.
const WARM_UP_OF_BLOCK: u32 = 10;
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Exchanges of one conversation, then of the next, and so on, again and again.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// In a block.
    pub exchanges: u32,
    /// Of each conversation.
    pub blocks: u32,
}

/// What the blocks of one round say: the middle of them, so that one that was disturbed says nothing.
#[derive(Clone, Copy, Debug)]
pub struct Exchanged {
    pub p50_us: f64,
    pub p99_us: f64,
}

impl Exchanged {
    pub fn of(blocks: &[RoundTrips]) -> Exchanged {
        let median =
            |number: fn(&RoundTrips) -> f64| blocks.iter().map(number).collect::<Sample>().median();
        Exchanged {
            p50_us: median(|block| block.p50_us),
            p99_us: median(|block| block.p99_us),
        }
    }
}

/// Exchanges `count` datagrams of 64 bytes between two hosts, each waiting for the one before, with
/// both ends on one CPU.
pub fn measure(
    from: &Namespace,
    to: &Namespace,
    at: SocketAddr,
    cpu: usize,
    count: u32,
) -> Result<RoundTrips> {
    let one = Blocks {
        exchanges: count,
        blocks: 1,
    };
    let blocks = in_blocks((from, to), &[at], cpu, one)?;
    Ok(blocks[0][0])
}

/// As [`measure`], with several addresses of the other host, a short block with each in turns: what
/// disturbs one disturbs all. Gives the blocks of each.
pub fn in_blocks(
    (from, to): (&Namespace, &Namespace),
    at: &[SocketAddr],
    cpu: usize,
    plan: Blocks,
) -> Result<Vec<Vec<RoundTrips>>> {
    let ends = at.iter().map(|&at| Ends::open(from, to, at));
    let ends = ends.collect::<Result<Vec<Ends>>>()?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let answering: Vec<_> = ends
            .iter()
            .map(|ends| scope.spawn(|| answer(&ends.server, cpu, &over)))
            .collect();
        // On a thread of its own: whoever starts this is not to stay on the CPU.
        let asking = scope.spawn(|| ask_in_blocks(&ends, cpu, plan));
        let result = asking.join().expect("the client has no reason to panic");
        over.store(true, Ordering::Relaxed);
        for (ends, answering) in ends.iter().zip(answering) {
            // An empty datagram is the last.
            let _ = ends.client.send(&[]);
            let answered = answering.join().expect("the server has no reason to panic");
            answered.map_err(|error| failed(ends.at, "server", error))?;
        }
        result
    })
}

fn failed(at: SocketAddr, what: &str, source: io::Error) -> Error {
    Error::Start {
        command: format!("exchange with {at}: {what}"),
        source,
    }
}

/// The two ends of a conversation.
struct Ends {
    at: SocketAddr,
    server: UdpSocket,
    client: UdpSocket,
}

impl Ends {
    fn open(from: &Namespace, to: &Namespace, at: SocketAddr) -> Result<Ends> {
        let open = |host: &Namespace, local: SocketAddr| -> Result<UdpSocket> {
            let socket = host
                .in_namespace(|| port::bind(local))?
                .map_err(|error| failed(at, "socket", error))?;
            socket
                .set_read_timeout(Some(ANSWER_WITHIN))
                .map_err(|error| failed(at, "socket", error))?;
            Ok(socket)
        };
        let server = open(to, at)?;
        let client = open(from, ([0, 0, 0, 0], 0).into())?;
        client
            .connect(at)
            .map_err(|error| failed(at, "connect", error))?;
        Ok(Ends { at, server, client })
    }

    /// Exchanges so many, the first of them only to warm up.
    fn ask(&self, warm_up: u32, count: u32) -> io::Result<RoundTrips> {
        let mut times = Histogram::<u64>::new_with_max(60_000_000_000, 3).expect("bounds in order");
        let mut question = [0; BYTES];
        let mut buffer = [0; BYTES];
        for number in 0..warm_up + count {
            question[..4].copy_from_slice(&number.to_be_bytes());
            let start = now();
            self.client.send(&question)?;
            loop {
                match self.client.recv(&mut buffer) {
                    // To an earlier question, that was given up.
                    Ok(_) if buffer[..4] != question[..4] => continue,
                    Ok(_) if number >= warm_up => {
                        times.saturating_record(start.elapsed().as_nanos() as u64);
                    }
                    Ok(_) => {}
                    // Lost: it is missing in what is received.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                break;
            }
        }
        Ok(RoundTrips::of(&times, u64::from(count)))
    }
}

/// Sends every datagram back, until an empty one comes, or none when it is over.
fn answer(socket: &UdpSocket, cpu: usize, over: &AtomicBool) -> io::Result<()> {
    stay_on(cpu)?;
    let mut buffer = [0; BYTES];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((0, _)) => return Ok(()),
            Ok((len, from)) => drop(socket.send_to(&buffer[..len], from)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Who begins moves on with each round of blocks.
fn ask_in_blocks(ends: &[Ends], cpu: usize, plan: Blocks) -> Result<Vec<Vec<RoundTrips>>> {
    stay_on(cpu).map_err(|error| failed(ends[0].at, "client", error))?;
    let ask = |which: usize, warm_up: u32, count: u32| {
        let asked = ends[which].ask(warm_up, count);
        asked.map_err(|error| failed(ends[which].at, "client", error))
    };
    let mut results: Vec<Vec<RoundTrips>> = vec![Vec::new(); ends.len()];
    for which in 0..ends.len() {
        ask(which, WARM_UP, 0)?;
    }
    for block in 0..plan.blocks as usize {
        for turn in 0..ends.len() {
            let which = (block + turn) % ends.len();
            results[which].push(ask(which, WARM_UP_OF_BLOCK, plan.exchanges)?);
        }
    }
    Ok(results)
}
