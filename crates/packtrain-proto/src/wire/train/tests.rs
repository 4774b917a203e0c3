use super::*;
use crate::offload::{Gso, GsoKind, Offload, PartialChecksum};
use crate::wire::subframe::{self, InnerHeader, Subframe, SubframeError};
use proptest::prelude::*;

fn header() -> TrainHeader {
    TrainHeader {
        ack_now: true,
        marker: false,
        replay: false,
        coded: false,
        repairs: false,
        lossless: false,
        lane: 0,
        link: 3,
        incarnation: 0xbeef,
        train_sequence: Sequence(7),
        link_sequence: Sequence(9),
    }
}

fn to_peer(ether_type: u16) -> InnerHeader {
    InnerHeader {
        addresses: None,
        ether_type,
        offload: Offload::NONE,
    }
}

/// Every subframe of a message, or the error that ended it.
fn unpack(message: &[u8]) -> Result<Vec<Subframe<'_>>, SubframeError> {
    let train = Train::parse(message).expect("a train");
    let mut at = train.subframes_at;
    let mut all = Vec::new();
    while let Some((subframe, len)) = Subframe::parse(&message[at..])? {
        all.push(subframe);
        at += len;
    }
    Ok(all)
}

#[test]
fn a_train_is_read_as_it_was_written() {
    let ack = Ack {
        link: 1,
        incarnation: 2,
        delay_nanos: 3,
        newest: Sequence(4),
        bitmap: 0x8000_0000_0000_0005,
    };
    // The second one is so far behind that the distance says no more than that.
    let newest = [(2, 5), (REPLAYED, 0x8000_0000)].map(|(link, train)| Newest {
        link,
        train: Sequence(train),
    });
    let report = DirectReport {
        wants_answer: header().ack_now,
        sent: 6,
        seen_sent: u32::MAX,
        seen_received: 7,
        seen_late: Some(0x8000_0001),
    };
    let gso = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 16,
        }),
        gso: Some(Gso {
            kind: GsoKind::TcpV4,
            ecn: true,
            header_len: 54,
            segment_len: 1448,
        }),
    };
    let fences = [(0, 7), (1, u32::MAX)].map(|(link, sent)| Fence {
        link,
        remote_link: 5,
        from: Sequence(0xffff_fffe),
        sent,
    });
    let behind = [(0, 9), (4, u32::MAX)].map(|(lane, last)| Behind {
        lane,
        from: Sequence(0xffff_fffd),
        last: Sequence(last),
    });
    let foreign = InnerHeader {
        addresses: Some((MacAddr([2; 6]), MacAddr([4; 6]))),
        ether_type: ether_type::ARP,
        offload: Offload::NONE,
    };
    let first = InnerHeader {
        offload: gso,
        ..to_peer(ether_type::IPV4)
    };
    let mut buffer = Buffer::with_capacity(2048);
    let mut writer = TrainWriter::begin(
        &mut buffer,
        MacAddr([6; 6]),
        MacAddr([8; 6]),
        &header(),
        &Options {
            kept_from: None,
            acks: &[ack],
            newest: &newest,
            direct: Some(report),
            fences: &fences,
            behind: &behind,
        },
    );
    writer.put_frame(&to_peer(ether_type::IPV4), &[0x45, 1, 2]);
    writer.put_frame(&foreign, &[0x45; 46]);
    writer.put_first(&first, 77, 9000, &[0x45; 100]);
    writer.put_next(78, 200, &[9; 10]);

    let outer = Header::parse(&buffer).unwrap();
    assert_eq!(
        (outer.destination, outer.source),
        (MacAddr([6; 6]), MacAddr([8; 6]))
    );
    let message = &buffer[ethernet::HEADER_LEN..];
    let train = Train::parse(message).unwrap();
    assert_eq!(train.header, header());
    assert_eq!(train.acks().collect::<Vec<_>>(), [ack]);
    assert_eq!(train.direct_report(), Some(report));
    assert_eq!(train.fences().collect::<Vec<_>>(), fences);
    assert_eq!(train.behind().collect::<Vec<_>>(), behind);
    assert_eq!(
        unpack(message).unwrap(),
        [
            Subframe::Frame {
                header: to_peer(ether_type::IPV4),
                payload: &[0x45, 1, 2]
            },
            Subframe::Frame {
                header: foreign,
                payload: &[0x45; 46]
            },
            Subframe::First {
                header: first,
                id: 77,
                total_len: 9000,
                payload: &[0x45; 100]
            },
            Subframe::Next {
                id: 78,
                offset: 200,
                payload: &[9; 10]
            },
        ]
    );
}

#[test]
fn a_frame_between_the_two_pt0s_costs_three_bytes() {
    let mut buffer = Buffer::with_capacity(2048);
    let mut writer = TrainWriter::begin(
        &mut buffer,
        MacAddr::BROADCAST,
        MacAddr::BROADCAST,
        &header(),
        &Options::default(),
    );
    let before = writer.len();
    writer.put_frame(&to_peer(ether_type::IPV6), &[0x60; 40]);
    assert_eq!(writer.len() - before, 43);
    assert_eq!(
        subframe::overhead(&to_peer(ether_type::IPV6), &[0x60; 40], false),
        3
    );
    assert_eq!(before, ethernet::HEADER_LEN + HEADER_LEN);
}

#[test]
fn unknown_options_are_skipped_and_critical_ones_refuse_the_train() {
    let message = |options: &[u8]| {
        let mut bytes = vec![0x11, 0, 0, 0, 0, 0, 0, options.len() as u8];
        bytes.extend([0; 8]);
        bytes.extend(options);
        bytes
    };
    assert!(Train::parse(&message(&[0x33, 2, 0, 0])).is_ok());
    let refused = |options: &[u8]| Train::parse(&message(options)).unwrap_err();
    assert_eq!(refused(&[0x81, 1, 0]), TrainError::UnknownCriticalOption);
    assert_eq!(refused(&[0x33, 3, 0]), TrainError::BadOption);
    assert_eq!(refused(&[0x33]), TrainError::BadOption);
    assert_eq!(refused(&[0x01, 1, 0]), TrainError::BadOption);
    assert_eq!(refused(&[0x04, 1, 0]), TrainError::BadOption);
    assert_eq!(
        Train::parse(&[0x21; 40]).unwrap_err(),
        TrainError::UnknownVersion
    );
    assert_eq!(
        Train::parse(&[0x13; 40]).unwrap_err(),
        TrainError::UnknownType
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_loop(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() { *first = 0x11; }
        if let Ok(train) = Train::parse(&bytes) {
            let _ = train.acks().count();
            let mut at = train.subframes_at;
            while let Ok(Some((_, len))) = Subframe::parse(&bytes[at..]) {
                prop_assert!(len > 0);
                at += len;
            }
        }
    }

    #[test]
    fn a_train_cut_anywhere_gives_a_reason_or_fewer_subframes(cut in 0usize..200) {
        let mut buffer = Buffer::with_capacity(2048);
        let mut writer = TrainWriter::begin(
            &mut buffer, MacAddr::BROADCAST, MacAddr::BROADCAST, &header(), &Options::default());
        for _ in 0..4 {
            writer.put_frame(&to_peer(ether_type::IPV4), &[0x45; 40]);
        }
        let message = &buffer[ethernet::HEADER_LEN..];
        let cut = cut.min(message.len());
        if let Ok(train) = Train::parse(&message[..cut]) {
            let mut at = train.subframes_at;
            let mut whole = 0;
            while let Ok(Some((_, len))) = Subframe::parse(&message[at..cut]) {
                whole += 1;
                at += len;
            }
            prop_assert_eq!(whole, (cut - HEADER_LEN) / 43);
        } else {
            prop_assert!(cut < HEADER_LEN);
        }
    }
}
