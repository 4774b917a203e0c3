//! Aggregates of the DFAP paper.

use packtrain_proto::buffer::Buffer;
use packtrain_proto::wire::dfap::{self, Aggregate, DfapError};
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, MacAddr};
use packtrain_sim::random::Random;

use crate::tshark::{Passes, fields, in_a_row, with_tshark};

fn aggregate(random: &mut Random) -> Vec<u8> {
    let packet = |random: &mut Random| {
        let kind = *random.pick(&[0x0800, 0x86dd, 0x0806, 0x9000]);
        let len_max = *random.pick(&[12, 200]);
        let len = random.between(1, len_max);
        let mut bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        if kind == 0x0800 && len >= 4 {
            bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        }
        (kind, bytes)
    };
    let packets: Vec<(u16, Vec<u8>)> = (0..random.between(1, 12)).map(|_| packet(random)).collect();
    let outer = Header {
        destination: MacAddr([2, 0, 0, 0, 0, 0x0b]),
        source: MacAddr([2, 0, 0, 0, 0, 0x0a]),
        ether_type: *random.pick(&[dfap::ETHER_TYPE, dfap::ETHER_TYPE_OF_FOOTNOTE]),
    };
    let mut buffer = Buffer::with_capacity(70_000);
    dfap::emit(
        &mut buffer,
        &outer,
        packets.iter().map(|(kind, bytes)| (*kind, &bytes[..])),
    );
    let mut bytes = buffer.to_vec();
    // As Ethernet pads it.
    bytes.resize(bytes.len().max(60), 0);
    if random.chance(0.3) {
        let at = HEADER_LEN + random.below(12) as usize;
        bytes[at] = random.next() as u8;
    }
    if random.chance(0.1) {
        bytes.truncate(HEADER_LEN + 1 + random.below(20) as usize);
    }
    bytes
}

#[test]
fn packets_and_refusals_are_those_of_the_engines_parser() {
    with_tshark!();
    let mut random = Random::new(6);
    let frames: Vec<Vec<u8>> = (0..1500).map(|_| aggregate(&mut random)).collect();
    let seen = in_a_row(frames.iter().cloned());
    for passes in [Passes::One, Passes::Two] {
        let rows = fields(
            &seen,
            passes,
            &[
                "dfap.type",
                "dfap.payload",
                "dfap.drop_reason",
                "eth.type",
                "eth.src",
            ],
        );
        let (mut taken, mut refused) = (0, 0);
        for (n, (frame, row)) in frames.iter().zip(&rows).enumerate() {
            let data = &frame[HEADER_LEN..];
            match Aggregate::parse(data) {
                Ok(aggregate) => {
                    let packets: Vec<_> = (0..aggregate.len())
                        .map(|at| aggregate.packet(at))
                        .collect();
                    let types: Vec<u64> =
                        packets.iter().map(|(kind, _)| u64::from(*kind)).collect();
                    let bytes: Vec<Vec<u8>> = packets
                        .into_iter()
                        .map(|(_, range)| data[range].to_vec())
                        .collect();
                    assert_eq!(row.numbers("dfap.type"), types, "frame {n}");
                    assert_eq!(row.bytes("dfap.payload"), bytes, "frame {n}");
                    assert!(row.all("dfap.drop_reason").is_empty());
                    assert!(row.all("eth.src").len() > types.len(), "frame {n}: {row:?}");
                    assert!(
                        row.all("eth.src")
                            .iter()
                            .all(|source| source == "02:00:00:00:00:0a")
                    );
                    taken += 1;
                }
                Err(error) => {
                    let reason = match error {
                        DfapError::Truncated => "truncated",
                        _ => "bad_aggregate",
                    };
                    assert_eq!(row.all("dfap.drop_reason"), [reason], "frame {n}");
                    refused += 1;
                }
            }
        }
        assert!(
            taken > 500 && refused > 200,
            "{taken} taken, {refused} refused"
        );
    }
}

#[test]
fn a_type_that_is_switched_off_is_left_to_others() {
    with_tshark!();
    let vectors = crate::vectors::all();
    let seen = in_a_row(
        vectors
            .into_iter()
            .filter(|(name, _)| name.starts_with("dfap"))
            .map(|(_, bytes)| bytes),
    );
    let off = ["-o", "dfap.bbbb:FALSE", "-T", "fields", "-e", "dfap.count"];
    let counts = crate::tshark::run(&seen, Passes::One, &off);
    assert_eq!(counts.lines().collect::<Vec<_>>(), ["2", ""]);
}
