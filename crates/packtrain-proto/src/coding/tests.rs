//! What goes in comes out, whatever it is; and what is coded is no longer than it was.

mod frames;
mod round_trip;
mod traffic;

use proptest::prelude::*;

use super::coder::{Coder, Finished, Treatment};
use super::dictionary::{Dictionary, Zstd};
use super::restore::Restorer;
use crate::offload::Offload;
use crate::wire::checksum;
use crate::wire::coded::{CodedError, Coding, Head, PLAIN_MAX};
use crate::wire::ethernet::{MacAddr, ether_type};
use crate::wire::subframe::{InnerHeader, Subframe};
use frames::{Drawn, InFrames, any_frames};

fn header(ether_type: u16) -> InnerHeader {
    InnerHeader {
        addresses: None,
        ether_type,
        offload: Offload::NONE,
    }
}

/// Puts as many as fit, as the aggregator does, and gives the train's region and how many there are in it.
fn fill(
    coder: &mut Coder,
    coding: Coding,
    room: usize,
    frames: &[Drawn],
) -> (Vec<u8>, bool, usize) {
    coder.begin(coding, room);
    let mut put = 0;
    for frame in frames {
        let promised = coder.room(frame.treatment) >= frame.plain_len();
        let mut is_put = frame.put_to(coder);
        assert!(is_put || !promised, "what has room is put");
        while !is_put && coder.make_room() {
            is_put = frame.put_to(coder);
        }
        if !is_put {
            break;
        }
        put += 1;
    }
    match coder.finish() {
        Finished::Plain(plain) => (plain.to_vec(), false, put),
        Finished::Coded(head, content) => {
            let mut region = head.to_bytes().to_vec();
            region.extend_from_slice(content);
            (region, true, put)
        }
    }
}

fn dictionary() -> Zstd {
    let text: Vec<u8> = (0..60u8)
        .flat_map(|n| format!("{{\"sensor\":\"outside\",\"id\":{n}}}").into_bytes())
        .collect();
    Zstd::new(&Dictionary::new(&text).expect("a dictionary")).expect("memory")
}

fn coder() -> Coder {
    let mut coder = Coder::default();
    coder.set_dictionary(Some(dictionary()));
    coder
}

fn any_coding() -> impl Strategy<Value = Coding> {
    prop_oneof![
        Just(Coding::Headers),
        Just(Coding::Lz4),
        Just(Coding::Zstd),
        Just(Coding::Mixing)
    ]
}

/// The frames in a region of subframes, read by the reader that knows nothing of coding.
fn read(region: &[u8]) -> Vec<(InnerHeader, Vec<u8>)> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some((subframe, len)) = Subframe::parse(&region[at..]).expect("whole subframes") {
        let Subframe::Frame { header, payload } = subframe else {
            panic!("only whole frames were put");
        };
        frames.push((header, payload.to_vec()));
        at += len;
    }
    assert_eq!(at, region.len());
    frames
}

fn restored(region: &[u8], is_coded: bool) -> Vec<u8> {
    if !is_coded {
        return region.to_vec();
    }
    let mut out = vec![0xaa; PLAIN_MAX];
    let mut restorer = Restorer::default();
    restorer.set_dictionary(Some(dictionary()));
    let len = restorer.restore(region, &mut out).expect("what was coded");
    out.truncate(len);
    out
}

#[track_caller]
fn passes(coding: Coding, room: usize, frames: &[Drawn]) -> (Vec<u8>, bool, usize) {
    let (region, is_coded, put) = fill(&mut coder(), coding, room, frames);
    assert!(region.len() <= room, "{} bytes in {room}", region.len());
    let out = read(&restored(&region, is_coded));
    let expected: Vec<_> = frames[..put].iter().map(Drawn::as_read).collect();
    assert_eq!(out, expected);
    (region, is_coded, put)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_goes_in_comes_out_bit_for_bit(
        frames in any_frames(80),
        room in prop_oneof![200usize..1500, Just(1470), 1500usize..9000],
        coding in any_coding(),
    ) {
        passes(coding, room, &frames);
    }

    #[test]
    fn a_coded_train_that_was_changed_anywhere_is_refused(
        frames in any_frames(40),
        coding in any_coding(),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
    ) {
        let (mut region, is_coded, _) = fill(&mut coder(), coding, 1470, &frames);
        prop_assume!(is_coded);
        let right = restored(&region, true);
        let at = at.index(region.len());
        prop_assume!(region[at] != to);
        region[at] = to;
        let mut out = vec![0; PLAIN_MAX];
        // What restores to the same is not harmed.
        let mut restorer = Restorer::default();
        restorer.set_dictionary(Some(dictionary()));
        if let Ok(len) = restorer.restore(&region, &mut out) {
            prop_assert_eq!(&out[..len], &right[..]);
        }
    }

    #[test]
    fn whatever_comes_is_restored_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut out = vec![0; PLAIN_MAX];
        let mut restorer = Restorer::default();
        restorer.set_dictionary(Some(dictionary()));
        for coding in 0..5 {
            let mut coded = bytes.clone();
            if let Some(first) = coded.first_mut() {
                *first = coding;
            }
            let _ = restorer.restore(&coded, &mut out);
        }
    }
}

#[test]
fn frames_of_one_flow_cost_a_byte_and_what_they_say() {
    let mut flow = InFrames::udp();
    let frames: Vec<Drawn> = (0..200).map(|_| flow.next(18)).collect();
    let (region, is_coded, put) = passes(Coding::Headers, 1470, &frames);
    assert!(is_coded);
    // The first is 3 + 46; each other 1 + 18.
    assert_eq!(put, 1 + (1470 - 5 - 49) / 19);
    assert_eq!(region.len(), 5 + 49 + (put - 1) * 19);
}

#[test]
fn payload_that_repeats_shares_a_train_with_more_of_it() {
    let mut flow = InFrames::udp();
    let text = b"{\"sensor\":\"outside\",\"celsius\":21.4,\"humidity\":0.61,\"id\":";
    let frames: Vec<Drawn> = (0..400)
        .map(|at| flow.saying(&[&text[..], format!("{at}}}").as_bytes()].concat()))
        .collect();
    let (_, is_coded, with_headers) = passes(Coding::Headers, 1470, &frames);
    assert!(is_coded);
    let frames: Vec<Drawn> = frames
        .into_iter()
        .map(|frame| Drawn {
            treatment: Treatment::Payload,
            ..frame
        })
        .collect();
    let (_, is_coded, put) = passes(Coding::Lz4, 1470, &frames);
    assert!(is_coded);
    assert!(put > 3 * with_headers, "{put} against {with_headers}");
}

#[test]
fn what_compresses_to_more_than_a_block_holds_stands_as_it_is() {
    let mut flow = InFrames::udp();
    let mut state = 1u64;
    let frames: Vec<Drawn> = (0..44)
        .map(|_| {
            // Three of four bytes are anything.
            let data: Vec<u8> = (0..1300)
                .map(|at| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    if at % 64 < 48 {
                        (state >> 56) as u8
                    } else {
                        0x20
                    }
                })
                .collect();
            Drawn {
                treatment: Treatment::Payload,
                ..flow.saying(&data)
            }
        })
        .collect();
    for coding in [Coding::Lz4, Coding::Zstd] {
        let (_, _, put) = passes(coding, 60_000, &frames);
        assert_eq!(put, frames.len());
    }
}

#[test]
fn a_piece_that_fills_the_room_fits_behind_whatever_is_there() {
    const PIECE_HEADER_LEN: usize = 7;
    let mut flow = InFrames::udp();
    let mut coder = coder();
    for coding in [Coding::Headers, Coding::Lz4, Coding::Zstd, Coding::Mixing] {
        for before in 0..40 {
            coder.begin(coding, 500);
            for _ in 0..before {
                let frame = Drawn {
                    treatment: Treatment::Payload,
                    ..flow.saying(b"the same again, and again")
                };
                let _ = frame.put_to(&mut coder);
            }
            let room = coder.room(Treatment::Payload);
            let Some(len) = room.checked_sub(PIECE_HEADER_LEN).filter(|len| *len > 0) else {
                continue;
            };
            let piece = vec![7; len];
            coder.put_piece(|writer| writer.put_next(1, 0, &piece), Treatment::Payload);
            let len = match coder.finish() {
                Finished::Plain(plain) => plain.len(),
                Finished::Coded(head, content) => head.to_bytes().len() + content.len(),
            };
            assert!(len <= 500, "{coding:?} {before}: {len}");
        }
    }
}

#[test]
fn what_is_longer_than_a_train_may_be_is_refused() {
    // 64 kB of zeros are 260 bytes of LZ4: twice that is too much.
    let zeros = vec![0u8; 40_000];
    let block = lz4(&zeros);
    let mut coded = vec![Coding::Lz4.to_byte(), 0, 0, 0, 0];
    for _ in 0..2 {
        coded.extend_from_slice(&crate::wire::coded::block_header(block.len(), zeros.len()));
        coded.extend_from_slice(&block);
    }
    let mut out = vec![0; PLAIN_MAX];
    let refused = Restorer::default().restore(&coded, &mut out);
    assert_eq!(refused, Err(CodedError::TooLong));
}

#[test]
fn a_delta_whose_headers_are_others_than_its_references_is_refused() {
    let number = |mask: u32| [mask as u8 & 0x7f | 0x80, (mask >> 7) as u8];
    // Of one flow: its first frame as it is, and the second with this in the field of this number.
    let told = |first: &Drawn, second: &[u8], bit: u32, value: &[u8], headers: usize| {
        let mut plain = Vec::new();
        let mut subframe = |payload: &[u8]| {
            plain.extend([1, 0, payload.len() as u8]);
            plain.extend(payload);
        };
        subframe(&first.payload);
        let first_len = 3 + first.payload.len();
        subframe(second);
        let delta = [&[0x24][..], &number(1 << bit), value, &second[headers..]].concat();
        let head = Head {
            coding: Coding::Headers,
            checksum: crc32fast::hash(&plain),
        };
        let region = [&head.to_bytes()[..], &plain[..first_len], &delta].concat();
        let mut out = vec![0; PLAIN_MAX];
        let restored = Restorer::default().restore(&region, &mut out);
        restored.inspect(|&len| assert_eq!(out[..len], plain))
    };
    const FLAGS: u32 = 10;
    for (flags, is_whole) in [
        ([0x40, 0], true),
        ([0, 0], true),
        ([0x20, 0], false),
        ([0, 9], false),
    ] {
        let mut flow = InFrames::udp();
        let (first, second) = (flow.next(18), flow.next(18));
        let mut second = second.payload;
        second[6..8].copy_from_slice(&flags);
        second[10..12].fill(0);
        let sum = checksum::checksum(&second[..20]);
        second[10..12].copy_from_slice(&sum.to_be_bytes());
        let restored = told(&first, &second, FLAGS, &flags, 28);
        match is_whole {
            true => assert!(restored.is_ok(), "{flags:?}: {restored:?}"),
            false => assert_eq!(restored, Err(CodedError::OtherHeaders), "{flags:?}"),
        }
    }
    // An IPv6 header that becomes one of another version, where no EtherType says otherwise.
    const FIRST_FOUR: u32 = 8;
    for (version, is_same) in [(0x61, true), (0x45, false), (0x50, false)] {
        let first = InFrames::udp().over_ipv6(18);
        let mut second = first.payload.clone();
        second[0] = version;
        let value = second[..4].to_vec();
        let restored = told(&first, &second, FIRST_FOUR, &value, 48);
        match is_same {
            true => assert!(restored.is_ok(), "{version:x}: {restored:?}"),
            false => assert_eq!(restored, Err(CodedError::OtherHeaders), "{version:x}"),
        }
    }
}

#[test]
fn a_delta_that_is_longer_has_no_headers_that_its_reference_is_too_short_for() {
    // Four bytes of a UDP header: they are payload. With four more, they would be one.
    let short = [
        0x45, 0, 0, 24, 0, 7, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2,
    ];
    let of = |id: u8, behind: &[u8]| {
        let mut packet = short.to_vec();
        (packet[3], packet[5]) = (20 + behind.len() as u8, id);
        let sum = checksum::checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(behind);
        packet
    };
    for (more, is_same) in [(3, true), (4, false)] {
        let first = of(7, &[1; 4]);
        let second = of(8, &vec![1; 4 + more]);
        let subframe = |payload: &[u8]| [&[1, 0, payload.len() as u8], payload].concat();
        let plain = [subframe(&first), subframe(&second)].concat();
        let head = Head {
            coding: Coding::Headers,
            checksum: crc32fast::hash(&plain),
        };
        let delta = [&[0x44, second.len() as u8][..], &second[20..]].concat();
        let region = [&head.to_bytes()[..], &subframe(&first), &delta].concat();
        let mut out = vec![0; PLAIN_MAX];
        let restored = Restorer::default().restore(&region, &mut out);
        let expected = match is_same {
            true => Ok(plain.len()),
            false => Err(CodedError::OtherHeaders),
        };
        assert_eq!(restored, expected, "{more} more");
    }
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; lz4_flex::block::get_maximum_output_size(bytes.len())];
    let len = lz4_flex::block::compress_into(bytes, &mut out).expect("zeros shrink");
    out.truncate(len);
    out
}

#[test]
fn frames_with_addresses_are_told_apart_as_well() {
    let mut flow = InFrames::udp();
    let mut frames: Vec<Drawn> = (0..20).map(|_| flow.next(30)).collect();
    for frame in &mut frames {
        frame.header.addresses = Some((MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])));
    }
    let (region, is_coded, put) = passes(Coding::Headers, 1470, &frames);
    assert!(is_coded && put == 20);
    assert_eq!(region.len(), 5 + (3 + 12 + 58) + 19 * 31);
}

#[test]
fn what_is_not_known_is_told_by_its_length_alone() {
    let arp = Drawn {
        header: header(ether_type::ARP),
        payload: vec![7; 28],
        treatment: Treatment::Headers,
    };
    let frames = vec![arp; 3];
    let (region, is_coded, put) = passes(Coding::Headers, 1470, &frames);
    assert!(is_coded && put == 3);
    // EtherType and length are not said again.
    assert_eq!(region.len(), 5 + (3 + 2 + 28) + 2 * 29);
}
