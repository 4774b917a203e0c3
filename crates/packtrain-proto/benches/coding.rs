//! Coding alone, both ends on one core: a train of small frames is coded and restored again.
//! `cargo bench -p packtrain-proto --bench coding`; the column to read is Mitem/s.

use divan::{Bencher, black_box, counter::ItemsCount};
use packtrain_proto::coding::coder::{Coder, Finished, Treatment};
use packtrain_proto::coding::restore::Restorer;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::checksum;
use packtrain_proto::wire::coded::{Coding, PLAIN_MAX};
use packtrain_proto::wire::ethernet::ether_type;
use packtrain_proto::wire::subframe::InnerHeader;

const ROOM: usize = 1470;

fn main() {
    divan::main();
}

/// 60-byte frames of so many UDP flows in turn, headers told apart.
#[divan::bench(args = [1, 16, 64])]
fn headers(bencher: Bencher, flows: u16) {
    let frames: Vec<_> = (0..4 * flows.max(16))
        .map(|at| frame(at % flows, at / flows, 18))
        .collect();
    run(bencher, Coding::Headers, &frames);
}

/// 160 bytes that change little.
#[divan::bench(args = [1, 16])]
fn lz4(bencher: Bencher, flows: u16) {
    let frames: Vec<_> = (0..4 * flows.max(16))
        .map(|at| frame(at % flows, at / flows, 132))
        .collect();
    run(bencher, Coding::Lz4, &frames);
}

fn run(bencher: Bencher, coding: Coding, frames: &[Vec<u8>]) {
    let treatment = match coding {
        Coding::Headers => Treatment::Headers,
        Coding::Lz4 | Coding::Zstd | Coding::Mixing => Treatment::Payload,
    };
    let (mut coder, mut restorer) = (Coder::default(), Restorer::default());
    let mut out = vec![0; PLAIN_MAX];
    let header = InnerHeader {
        addresses: None,
        ether_type: ether_type::IPV4,
        offload: Offload::NONE,
    };
    let mut region = Vec::new();
    bencher
        .counter(ItemsCount::new(frames.len()))
        .bench_local(|| {
            let mut rest = frames.iter().peekable();
            while rest.peek().is_some() {
                coder.begin(coding, ROOM);
                while let Some(frame) = rest.peek() {
                    if !coder.put_frame(&header, frame, treatment) && !coder.make_room() {
                        break;
                    }
                    rest.next();
                }
                let Finished::Coded(head, content) = coder.finish() else {
                    panic!("these shrink");
                };
                region.clear();
                region.extend_from_slice(&head.to_bytes());
                region.extend_from_slice(content);
                black_box(restorer.restore(&region, &mut out).expect("what was coded"));
            }
        });
}

fn frame(flow: u16, count: u16, data_len: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((28 + data_len as u16).to_be_bytes());
    packet.extend(count.to_be_bytes());
    packet.extend([0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    let sum = checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend((4000 + flow).to_be_bytes());
    packet.extend(5000u16.to_be_bytes());
    packet.extend((8 + data_len as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend((0..data_len).map(|at| (at as u16).wrapping_mul(7).wrapping_add(count) as u8));
    let parts = [
        checksum::sum(&packet[12..20]),
        17,
        8 + data_len as u16,
        checksum::sum(&packet[20..]),
    ];
    let sum = !parts.into_iter().fold(0, checksum::add);
    packet[26..28].copy_from_slice(&sum.to_be_bytes());
    packet
}
