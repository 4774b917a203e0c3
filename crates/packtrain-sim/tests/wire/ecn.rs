//! Marks: on what may have them, where the queue stands, and with the checksum right.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::checksum;
use packtrain_sim::frame::Frame;
use packtrain_sim::net::ecn::{self, Marking};
use packtrain_sim::net::queue::{Discipline, QueueConfig, QueueLimit};
use packtrain_sim::net::wire::WireConfig;
use proptest::prelude::*;

use crate::support::{Driven, bare, huge, ip};

/// What a receiver reads: the ECN bits, and whether the header is in order.
fn read(frame: &Frame, ipv6: bool, tags: usize) -> (u8, bool) {
    let packet = &frame.bytes[14 + 4 * tags..];
    match ipv6 {
        true => (packet[1] >> 4 & 3, true),
        false => (packet[1] & 3, checksum::sum(0, &packet[..20]) == 0xffff),
    }
}

proptest! {
    #[test]
    fn a_mark_changes_the_two_bits_and_their_checksum_and_nothing_else(
        ipv6: bool,
        tags in 0usize..3,
        bits in 0u8..4,
        noise in any::<[u8; 20]>(),
    ) {
        let mut frame = ip(ipv6, tags, bits, 100);
        let start = 14 + 4 * tags;
        if !ipv6 {
            // Any header whose version and ECN bits are these.
            let header = &mut frame.bytes[start..start + 20];
            let kind = (header[0], header[1] & 3);
            header.copy_from_slice(&noise);
            (header[0], header[1]) = (kind.0, header[1] & !3 | kind.1);
            header[10..12].fill(0);
            let check = !checksum::sum(0, header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
        }
        let before = frame.clone();
        let marking = ecn::mark(&mut frame);
        match bits {
            0 => prop_assert_eq!(marking, Marking::NotCapable),
            3 => prop_assert_eq!(marking, Marking::MarkedBefore),
            _ => prop_assert_eq!(marking, Marking::Marked),
        }
        prop_assert_eq!(read(&frame, ipv6, tags), (if bits == 0 { 0 } else { 3 }, true));
        if bits == 0 || bits == 3 {
            prop_assert_eq!(&frame, &before);
        }
        let mut restored = frame.clone();
        restored.bytes[start + 1] = before.bytes[start + 1];
        if !ipv6 {
            restored.bytes[start + 10..start + 12].copy_from_slice(&before.bytes[start + 10..start + 12]);
        }
        prop_assert_eq!(restored, before);
    }

    #[test]
    fn what_is_no_whole_ip_header_is_left_alone(
        tags in 0usize..3,
        ipv6: bool,
        len in 14usize..70,
    ) {
        let mut frame = ip(ipv6, tags, 1, 20);
        frame.bytes.truncate(len);
        let before = frame.clone();
        let whole = 14 + 4 * tags + if ipv6 { 40 } else { 20 };
        let marking = ecn::mark(&mut frame);
        prop_assert_eq!(marking == Marking::Marked, frame.bytes.len() >= whole);
        if marking != Marking::Marked {
            prop_assert_eq!(frame, before);
        }
    }
}

fn marking(bytes: usize) -> WireConfig {
    WireConfig {
        queue: QueueConfig {
            limit: QueueLimit::Bytes(20_000),
            discipline: Discipline::MarkAbove { bytes },
        },
        ..WireConfig::perfect(1_000_000, Duration::ZERO)
    }
}

#[test]
fn frames_that_come_to_more_than_the_threshold_are_marked_and_no_others() {
    for ipv6 in [false, true] {
        for tags in 0..3 {
            for bits in 0..4 {
                let mut driven = Driven::new(&marking(5000), 1);
                (0..10).for_each(|_| assert!(driven.offer(ip(ipv6, tags, bits, 1000 - 4 * tags))));
                driven.drain();
                // Five stand there when the sixth comes: 5000 bytes and their headers.
                for (i, frame) in driven.arrived.iter().enumerate() {
                    let marked = bits != 0 && i >= 5;
                    let expected = if marked { 3 } else { bits };
                    assert_eq!(read(frame, ipv6, tags), (expected, true), "frame {i}");
                }
                let capable = matches!(bits, 1 | 2);
                assert_eq!(driven.wire.counters.marked, if capable { 5 } else { 0 });
                assert_eq!(driven.wire.counters.dropped(), 0);
            }
        }
    }
}

#[test]
fn the_queue_is_as_it_is_when_the_frame_comes_and_not_when_it_leaves() {
    let mut driven = Driven::new(&marking(2000), 1);
    driven.offer(bare(1500));
    driven.offer(ip(false, 0, 2, 100));
    driven.offer(bare(1500));
    driven.offer(ip(false, 0, 2, 100));
    driven.run_until(Instant::from_nanos(1_000_000_000));
    driven.offer(ip(false, 0, 2, 100));
    driven.drain();
    let bits: Vec<u8> = [1, 3, 4]
        .map(|i| read(&driven.arrived[i], false, 0).0)
        .into();
    assert_eq!(bits, [2, 3, 2]);
}

#[test]
fn a_queue_of_just_the_threshold_marks_nothing_and_a_longer_one_does() {
    let mut driven = Driven::new(&marking(2000), 1);
    driven.offer(bare(2000));
    driven.offer(ip(false, 0, 2, 100));
    driven.offer(ip(false, 0, 2, 100));
    driven.drain();
    let bits = [1, 2].map(|i| read(&driven.arrived[i], false, 0).0);
    assert_eq!(bits, [2, 3]);
}

#[test]
fn a_mark_does_not_save_from_the_limit_and_a_huge_frame_has_it_in_its_header() {
    let mut driven = Driven::new(&marking(1000), 1);
    assert!(driven.offer(huge(1, 4, 1000)));
    assert!(driven.offer(huge(1, 4, 1000)));
    assert!((0..20).any(|_| !driven.offer(ip(true, 0, 1, 1000))));
    driven.drain();
    assert_eq!(read(&driven.arrived[0], false, 0), (1, true));
    assert_eq!(read(&driven.arrived[1], false, 0), (3, true));
    assert!(driven.wire.counters.queue_full > 0);
}
