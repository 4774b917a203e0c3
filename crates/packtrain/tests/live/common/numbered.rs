//! Datagrams of several flows, each with its number: that one is whole, its bytes say, and in which order those of a flow
//! came is told.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::pattern;

/// What a datagram begins with: its flow and its number there.
pub const NUMBERED_MIN: usize = 8;
/// Longer than any is kept anywhere, also where a daemon is away for a while.
const QUIET: Duration = Duration::from_millis(500);

pub fn datagram(flow: usize, number: u32, len: usize) -> Vec<u8> {
    let begin = (flow as u64) << 40 | u64::from(number) << 12;
    let mut bytes: Vec<u8> = (begin..begin + len as u64).map(pattern).collect();
    bytes[..4].copy_from_slice(&(flow as u32).to_be_bytes());
    bytes[4..NUMBERED_MIN].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The numbers of each flow, as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came(pub Vec<Vec<u32>>);

impl Came {
    pub fn total(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Those that came after one with a higher number.
    pub fn overtaken(&self) -> usize {
        let of_flow = |numbers: &Vec<u32>| {
            let mut highest = 0;
            let mut is_late = |number: u32| {
                highest = highest.max(number);
                number < highest
            };
            numbers.iter().filter(|number| is_late(**number)).count()
        };
        self.0.iter().map(of_flow).sum()
    }

    pub fn twice(&self) -> usize {
        let of_flow = |numbers: &Vec<u32>| {
            let mut once = numbers.clone();
            once.sort_unstable();
            once.dedup();
            numbers.len() - once.len()
        };
        self.0.iter().map(of_flow).sum()
    }
}

/// Sets what others look at before they end, also when a test fails.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Takes what comes, until all `is_sent` and nothing came for a while. Each is as long as `len_of` its flow and number says,
/// and whole.
pub fn receive(
    socket: &UdpSocket,
    flows: usize,
    is_sent: &AtomicBool,
    len_of: impl Fn(usize, u32) -> usize,
) -> Came {
    socket.set_read_timeout(Some(QUIET)).unwrap();
    let mut came = vec![Vec::new(); flows];
    let mut buffer = [0; 2048];
    loop {
        // Asked before: all was sent when the wait began.
        let is_over = is_sent.load(Ordering::Acquire);
        let Ok(len) = socket.recv(&mut buffer) else {
            match is_over {
                true => return Came(came),
                false => continue,
            }
        };
        assert!(len >= NUMBERED_MIN, "{:02x?}", &buffer[..len]);
        let word = |at: usize| u32::from_be_bytes(buffer[at..at + 4].try_into().unwrap());
        let (flow, number) = (word(0) as usize, word(4));
        let expected = datagram(flow, number, len_of(flow, number));
        assert!(buffer[..len] == expected, "{number} of flow {flow}");
        came[flow].push(number);
    }
}
