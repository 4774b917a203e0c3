//! Sections, interfaces, and their packets.

use std::time::Duration;

use super::super::byte_order::ByteOrder::{Big, Little};
use super::build::{
    ETHERNET, block, enhanced, frame, interface, obsolete, option, pcapng_of_everything, section,
    simple,
};
use super::{CaptureFile, LinkType, Owned, error, frames, read};
use crate::pcapng as ours;

fn numbers(frames: &[Owned]) -> Vec<u64> {
    frames.iter().map(|frame| frame.number).collect()
}

#[test]
fn a_file_byte_for_byte_is_read() {
    let file = [
        0x0a, 0x0d, 0x0d, 0x0a, // section header
        0x00, 0x00, 0x00, 0x1c, // 28 bytes, big-endian
        0x1a, 0x2b, 0x3c, 0x4d, // by this
        0x00, 0x01, 0x00, 0x00, // 1.0
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // of unknown length
        0x00, 0x00, 0x00, 0x1c, //
        0x00, 0x00, 0x00, 0x01, // interface
        0x00, 0x00, 0x00, 0x14, // 20 bytes
        0x00, 0x01, 0x00, 0x00, // Ethernet
        0x00, 0x00, 0x00, 0x00, // no snap length
        0x00, 0x00, 0x00, 0x14, //
        0x00, 0x00, 0x00, 0x06, // enhanced packet
        0x00, 0x00, 0x00, 0x24, // 36 bytes
        0x00, 0x00, 0x00, 0x00, // interface 0
        0x00, 0x00, 0x00, 0x01, // the upper half of its time
        0x00, 0x00, 0x00, 0x02, // the lower
        0x00, 0x00, 0x00, 0x03, // kept
        0x00, 0x00, 0x00, 0x40, // on the wire
        0xaa, 0xbb, 0xcc, 0x00, // and padding
        0x00, 0x00, 0x00, 0x24, //
    ];
    let read = Owned {
        number: 1,
        at: Some(Duration::from_micros((1 << 32) + 2)),
        bytes: vec![0xaa, 0xbb, 0xcc],
        len_on_wire: 64,
        link_type: LinkType::ETHERNET,
        fcs_len: 0,
    };
    assert_eq!(frames(&file), [read]);
}

#[test]
fn every_kind_of_packet_is_read_and_every_other_block_passed_over() {
    let frames = frames(&pcapng_of_everything());
    let seen: Vec<_> = frames
        .iter()
        .map(|frame| (frame.number, frame.at, frame.bytes.len(), frame.len_on_wire))
        .collect();
    // As tshark 4.0 numbers them: the journal's entry and the custom block are 3 and 4.
    let expected = [
        (1, Some(Duration::from_secs(1)), 60, 60),
        (2, Some(Duration::from_secs(2)), 61, 61),
        (5, Some(Duration::from_nanos(5)), 33, 1514),
        (6, None, 33, 60),
    ];
    assert_eq!(seen, expected);
    assert!(frames.iter().all(|it| it.bytes == frame(it.bytes.len())));
}

#[test]
fn what_the_lab_writes_is_read_again() {
    let mut file = Vec::new();
    ours::section_header(&mut file, "packtrain");
    for (name, snap_len) in [("w1", 0), ("w2", 64)] {
        ours::interface_description(
            &mut file,
            &ours::Interface {
                name: name.into(),
                description: None,
                speed_bps: Some(1_000_000_000),
                snap_len,
            },
        );
    }
    let mut written = Vec::new();
    for (number, len) in (1..).zip(57..77) {
        let bytes = frame(len);
        let unix_nanos = 1_700_000_000_123_456_789 + number;
        ours::enhanced_packet(
            &mut file,
            &ours::Packet {
                interface: number as u32 % 2,
                unix_nanos,
                bytes: &bytes,
                len: len as u32 + 1,
                direction: None,
                comment: (number % 3 == 0).then_some("dropped: loss"),
            },
        );
        written.push(Owned {
            number,
            at: Some(Duration::from_nanos(unix_nanos)),
            bytes,
            len_on_wire: len + 1,
            link_type: LinkType::ETHERNET,
            fcs_len: 0,
        });
    }
    ours::interface_statistics(
        &mut file,
        &ours::Statistics {
            interface: 1,
            from_unix_nanos: 0,
            until_unix_nanos: 1,
            received: 20,
            dropped: 0,
        },
    );
    assert_eq!(frames(&file), written);
}

#[test]
fn each_interface_has_a_clock_of_its_own_in_the_byte_order_of_its_section() {
    for order in [Little, Big] {
        let offset = match order {
            Little => (-3i64).to_le_bytes(),
            Big => (-3i64).to_be_bytes(),
        };
        let mut file = section(order);
        for options in [
            vec![],
            vec![option(order, 9, &[9])],
            vec![option(order, 2, b"eth10"), option(order, 9, &[0x80 | 2])],
            vec![option(order, 9, &[0]), option(order, 14, &offset)],
            // Nothing counts behind the last option.
            vec![option(order, 0, &[]), option(order, 9, &[9])],
        ] {
            file.extend(interface(order, ETHERNET, 0, &options));
        }
        for number in 0..5 {
            file.extend(enhanced(order, number, 10, &frame(60), 60));
        }
        let times: Vec<_> = frames(&file).iter().map(|it| it.at.unwrap()).collect();
        let expected = [
            Duration::from_micros(10),
            Duration::from_nanos(10),
            Duration::from_millis(2_500),
            Duration::from_secs(7),
            Duration::from_micros(10),
        ];
        assert_eq!(times, expected);
    }
}

#[test]
fn a_simple_packet_is_cut_by_its_interfaces_snap_length() {
    for (snap_len, kept, len_on_wire) in [(0, 61, 61), (33, 33, 61), (262_144, 61, 61)] {
        let mut file = section(Little);
        file.extend(interface(Little, ETHERNET, snap_len, &[]));
        file.extend(simple(Little, &frame(kept), len_on_wire));
        let frames = frames(&file);
        assert_eq!(frames[0].at, None);
        assert_eq!(frames[0].bytes, frame(kept));
        assert_eq!(frames[0].len_on_wire, 61);
    }
}

#[test]
fn an_fcs_is_cut_off_where_the_interface_or_the_packet_tells_of_it() {
    for order in [Little, Big] {
        let flags = |flags| option(order, 2, &super::build::u32(order, flags));
        let with_flags = |interface, number: u32| {
            let mut body = [
                super::build::u32(order, interface).to_vec(),
                vec![0; 8],
                super::build::u32(order, 64).repeat(2),
                frame(64),
            ]
            .concat();
            body.extend([flags(number), option(order, 0, &[])].concat());
            block(order, 6, &body)
        };
        let mut file = section(order);
        // 32 bits as the draft says, and 4 bytes as its example does.
        for options in [
            &[][..],
            &[option(order, 13, &[32])],
            &[option(order, 13, &[4])],
        ] {
            file.extend(interface(order, ETHERNET, 0, options));
        }
        for number in 0..3 {
            file.extend(enhanced(order, number, 0, &frame(64), 64));
        }
        file.extend(with_flags(0, 4 << 5));
        file.extend(with_flags(1, 2 << 5));
        file.extend(with_flags(1, 0));
        let lengths = frames(&file).into_iter().map(|it| {
            assert!(frame(64).starts_with(&it.bytes));
            assert_eq!(it.bytes.len(), it.len_on_wire);
            (it.bytes.len(), it.fcs_len)
        });
        let expected = [(64, 0), (60, 4), (60, 4), (60, 4), (62, 2), (60, 4)];
        assert_eq!(lengths.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn how_fast_an_interface_is_stands_with_its_packets() {
    for order in [Little, Big] {
        let mut file = section(order);
        let mut speed = 10_000_000_000u64.to_le_bytes();
        if order == Big {
            speed.reverse();
        }
        // As it is said, not at all, and in a way that says nothing.
        for options in [
            &[option(order, 8, &speed)][..],
            &[],
            &[option(order, 8, &[0; 8])],
        ] {
            file.extend(interface(order, ETHERNET, 0, options));
        }
        for number in 0..3 {
            file.extend(enhanced(order, number, 0, &frame(64), 64));
        }
        let mut file = CaptureFile::from_reader("f", std::io::Cursor::new(file)).unwrap();
        let mut speeds = Vec::new();
        while let Some(frame) = file.next_frame().unwrap() {
            speeds.push(frame.speed_bps);
        }
        assert_eq!(speeds, [Some(10_000_000_000), None, None]);
    }
}

#[test]
fn a_section_begins_its_interfaces_anew() {
    let mut file = section(Little);
    file.extend(interface(Little, ETHERNET, 0, &[]));
    file.extend(enhanced(Little, 0, 0, &frame(60), 60));
    file.extend(section(Big));
    file.extend(enhanced(Big, 0, 0, &frame(60), 60));
    let (frames, error) = read(&file);
    assert_eq!(numbers(&frames), [1]);
    let at = file.len() - 92;
    assert_eq!(
        error.unwrap(),
        format!("f: packet 2 at byte {at}: it is of interface 0, and 0 are described")
    );
}

#[test]
fn an_interface_that_is_not_ethernet_may_be_described_and_have_no_packets() {
    let mut file = section(Little);
    file.extend(interface(Little, 127, 0, &[]));
    file.extend(interface(Little, ETHERNET, 0, &[]));
    file.extend(enhanced(Little, 1, 0, &frame(60), 60));
    assert_eq!(numbers(&frames(&file)), [1]);
    let at = file.len();
    file.extend(obsolete(Little, 0, 0, &frame(60), 60));
    file.extend(enhanced(Little, 1, 0, &frame(60), 60));
    let (frames, error) = read(&file);
    assert_eq!(numbers(&frames), [1]);
    assert_eq!(
        error.unwrap(),
        format!("f: packet 2 at byte {at}: link type 127 (Wi-Fi in monitor mode) is not Ethernet")
    );
}

#[test]
fn a_block_that_is_no_packet_may_be_of_any_length() {
    let mut file = section(Little);
    file.extend(interface(Little, ETHERNET, 0, &[]));
    file.extend(block(Little, 10, &vec![0; 3 << 20]));
    file.extend(enhanced(Little, 0, 0, &frame(60), 60));
    assert_eq!(numbers(&frames(&file)), [1]);
}

#[test]
fn a_packet_above_the_bound_is_an_error() {
    let mut file = section(Little);
    file.extend(interface(Little, ETHERNET, 0, &[]));
    let most = super::RECORD_BYTES_MAX - 32;
    file.extend(enhanced(Little, 0, 0, &vec![0; most], 0));
    assert_eq!(numbers(&frames(&file)), [1]);
    let at = file.len();
    // As much as it can say, and nothing of it there.
    file.extend([6, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff]);
    assert_eq!(
        error(&file),
        format!(
            "f: packet 2 at byte {at}: 4294967292 bytes in the file, and no more than 1048576 are read"
        )
    );
}

#[test]
fn more_interfaces_than_are_kept_are_an_error() {
    let mut file = section(Little);
    for _ in 0..1 << 16 {
        file.extend(interface(Little, ETHERNET, 0, &[]));
    }
    assert_eq!(frames(&file), []);
    file.extend(interface(Little, ETHERNET, 0, &[]));
    let error = error(&file);
    assert!(error.ends_with(": more than 65536 interfaces"), "{error}");
}

#[test]
fn what_a_block_says_wrongly_is_told_with_its_place() {
    let start = [
        section(Little),
        interface(Little, ETHERNET, 0, &[]),
        enhanced(Little, 0, 0, &frame(60), 60),
    ]
    .concat();
    let at = start.len();
    let changed = |mut block: Vec<u8>, at: usize, byte: u8| {
        block[at] = byte;
        block
    };
    let packet = enhanced(Little, 0, 0, &frame(60), 60);
    let last = packet.len() - 4;
    for (block, told) in [
        (
            changed(packet.clone(), 20, 61),
            "packet 2: 61 bytes do not fit into its block",
        ),
        (
            changed(packet.clone(), 8, 1),
            "packet 2: it is of interface 1, and 1 are described",
        ),
        (
            changed(packet.clone(), last, 96),
            "packet 2: a block of 92 bytes, of 96 by what its end says",
        ),
        (
            changed(packet.clone(), 4, 28),
            "packet 2: a block cannot have 28 bytes",
        ),
        (
            changed(packet, 4, 93),
            "packet 2: a block cannot have 93 bytes",
        ),
        (
            simple(Little, &frame(60), 61),
            "packet 2: 61 bytes do not fit into its block",
        ),
        (
            simple(Little, &[], u32::MAX),
            "packet 2: 4294967295 bytes do not fit into its block",
        ),
        (
            changed(block(Little, 77, &[]), 4, 8),
            "block: a block cannot have 8 bytes",
        ),
        (
            changed(block(Little, 77, &[0; 8]), 16, 8),
            "block: a block of 20 bytes, of 8 by what its end says",
        ),
        (
            interface(Little, ETHERNET, 0, &[option(Little, 9, &[6, 6])]),
            "block: option 9 of 2 bytes",
        ),
        (
            interface(Little, ETHERNET, 0, &[option(Little, 13, &[4, 0])]),
            "block: option 13 of 2 bytes",
        ),
        (
            interface(Little, ETHERNET, 0, &[vec![2, 0, 1, 0]]),
            "block: option 2 of 1 bytes does not fit",
        ),
        (
            changed(section(Little), 8, 0),
            "block: a section header without its byte order",
        ),
        (
            changed(section(Little), 12, 2),
            "block: pcapng version 2.0 is not known",
        ),
    ] {
        let (frames, error) = read(&[start.clone(), block].concat());
        assert_eq!(numbers(&frames), [1], "{told}");
        let (what, why) = told.split_once(": ").unwrap();
        assert_eq!(error.unwrap(), format!("f: {what} at byte {at}: {why}"));
    }
}

#[test]
fn a_first_block_that_is_wrong_is_told_of_the_header() {
    let mut file = section(Big);
    file[13] = 9;
    assert_eq!(
        error(&file),
        "f: file header: pcapng version 9.0 is not known"
    );
}
