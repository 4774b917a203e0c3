//! Traffic of a few kinds, as a capture would have it, and replays of it.

use packtrain_proto::class::{Pack, defaults};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::whatif::{Batch, Intake, Ledger, Replay, Results, Setup, WireSettings};

pub const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
pub const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// When, in microseconds, and the frame.
pub type Sent = (u64, Vec<u8>);

pub fn host(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

/// A UDP datagram of so many bytes; `number` makes it different from others.
pub fn udp(from: MacAddr, to: MacAddr, port: u16, payload: usize, number: u32) -> Vec<u8> {
    let total = (28 + payload) as u16;
    let mut frame = [to.0, from.0].concat();
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend((number as u16).to_be_bytes());
    frame.extend([0, 0, 64, 17, 0, 0, 10, 9, 0, from.0[5], 10, 9, 0, to.0[5]]);
    frame.extend(port.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend((total - 20).to_be_bytes());
    frame.extend([0, 0]);
    let mut payload = vec![0xa5; payload];
    if let Some(first) = payload.first_chunk_mut() {
        *first = number.to_be_bytes();
    }
    frame.extend(payload);
    frame
}

/// Telephone calls between two hosts: a small frame each 20 ms, each way.
pub fn calls(count: u64, seconds: u64) -> Vec<Sent> {
    let mut sent = Vec::new();
    for packet in 0..seconds * 50 {
        for call in 0..count {
            let at = packet * 20_000 + call * 20_000 / count;
            let port = 10_000 + call as u16;
            sent.push((at, udp(A, B, port, 172, packet as u32)));
            sent.push((at + 7, udp(B, A, port, 172, packet as u32)));
        }
    }
    sent.sort_by_key(|(at, _)| *at);
    sent
}

/// Full-size frames one way, as fast as a link of so many bit/s takes them.
pub fn bulk(count: u32, bps: u64) -> Vec<Sent> {
    let gap_us = 1538 * 8 * 1_000_000 / bps;
    let frame = |n: u32| (u64::from(n) * gap_us, udp(A, B, 5001, 1472, n));
    (0..count).map(frame).collect()
}

pub fn wire(rate_bps: Option<u64>, packets_per_second: Option<u64>) -> WireSettings {
    WireSettings {
        rate_bps,
        packets_per_second,
        delay: Duration::from_millis(1),
        queue_bytes: 256 * 1024,
        mtu: 1500,
    }
}

pub fn setup(wire: WireSettings, pack: Pack) -> Setup {
    let mut setup = Setup::over(wire);
    setup.rest.pack = pack;
    setup
}

pub fn batches(sent: &[Sent]) -> Vec<Batch> {
    let mut intake = Intake::new(defaults(), 1500, None);
    let give =
        |(at, frame): &Sent| intake.frame(Some(Duration::from_micros(*at)), frame, frame.len());
    let mut batches: Vec<Batch> = sent.iter().filter_map(give).collect();
    batches.push(intake.rest());
    batches
}

pub fn replay(sent: &[Sent], setup: Setup) -> Results {
    let batches = batches(sent);
    let hosts = batches[0].hosts();
    let mut ledger = Ledger::new(&setup);
    let mut replay = Replay::new(setup, &hosts[..hosts.len().min(16)]);
    for batch in &batches {
        ledger.read(&replay.batch(batch), batch);
    }
    let (journal, ended) = replay.finish();
    ledger.read(&journal, &Batch::default());
    ledger.finish(ended, 10)
}
