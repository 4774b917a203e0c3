//! What the tests of a medium share: frames with a number, and how it is driven.

mod bit_by_bit;
mod by_hand;
mod every_seed;
mod theory;

use super::config::bits;
use super::*;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::HEADER_LEN;

const RATE_BPS: u64 = 10_000_000;
const BIT: Duration = Duration::from_nanos(100);
/// Between two stations of one hub at 10 Mbit/s.
const WAY: u64 = 101;
/// On the wire, with preamble: 64 and 1518 bytes.
const SHORT: u64 = 64 + 8 * 64;
const LONG: u64 = 64 + 8 * 1518;

fn at(bits: u64) -> Instant {
    Instant::ZERO + BIT * bits as u32
}

/// Length as it is on the wire, FCS included.
fn frame(id: u32, wire_bytes: usize) -> Frame {
    let mut bytes = vec![0; (wire_bytes - FCS_BYTES).max(HEADER_LEN)];
    bytes[..4].copy_from_slice(&id.to_be_bytes());
    Frame::new(bytes, Offload::NONE)
}

fn id(frame: &Frame) -> u32 {
    u32::from_be_bytes(frame.bytes[..4].try_into().unwrap())
}

fn medium(stations: usize, seed: u64) -> Medium {
    Medium::new(MediumConfig::one_hub(RATE_BPS, stations), Random::new(seed))
}

fn run(medium: &mut Medium, until: Instant) -> Vec<Heard> {
    let mut all = Vec::new();
    while let Some(at) = medium.next_at().filter(|&at| at <= until) {
        medium.handle(at, |heard| all.push(heard));
    }
    medium.handle(until, |_| panic!("something was due earlier"));
    all
}

/// The first to be heard: who, and from when on.
fn first(medium: &mut Medium) -> (usize, Instant) {
    match run(medium, at(1_000_000)).first() {
        Some(&Heard::Frame { from, begun_at, .. }) => (from, begun_at),
        other => panic!("{other:?}"),
    }
}

fn begun(medium: &Medium, station: usize) -> Option<Instant> {
    medium.stations[station]
        .sending
        .map(|sending| sending.begun)
}

/// Stations that always have something to send, of one size.
struct Saturated {
    medium: Medium,
    wire_bytes: usize,
    now: Instant,
    senders: Vec<usize>,
}

impl Saturated {
    fn new(stations: usize, wire_bytes: usize, seed: u64) -> Saturated {
        let mut medium = medium(stations, seed);
        for station in (0..stations).chain(0..stations) {
            let offered = medium.offer(station, frame(0, wire_bytes), Instant::ZERO);
            offered.unwrap();
        }
        Saturated {
            medium,
            wire_bytes,
            now: Instant::ZERO,
            senders: Vec::new(),
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.medium.next_at().filter(|&at| at <= end) {
            let mut gone = None;
            self.medium.handle(at, |heard| match heard {
                Heard::Frame { from, .. } => {
                    self.senders.push(from);
                    gone = Some(from);
                }
                Heard::GivenUp { from, .. } => gone = Some(from),
            });
            for station in 0..self.medium.stations.len() {
                while self.medium.queued_frames(station) < 2 {
                    let offered = self.medium.offer(station, frame(0, self.wire_bytes), at);
                    offered.unwrap();
                }
            }
        }
        self.now = end;
    }

    fn efficiency(&self, overhead_bits: u64) -> f64 {
        let bits = self.senders.len() as u64 * (8 * self.wire_bytes as u64 + overhead_bits);
        bits as f64 / self.now.as_nanos() as f64 * 1e9 / RATE_BPS as f64
    }
}
