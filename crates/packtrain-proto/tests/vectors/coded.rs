//! Coded trains.

use packtrain_proto::buffer::Buffer;
use packtrain_proto::coding::coder::{Coder, Treatment};
use packtrain_proto::coding::restore::Restorer;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::checksum;
use packtrain_proto::wire::coded::{Coding, PLAIN_MAX};
use packtrain_proto::wire::subframe::Subframe;
use packtrain_proto::wire::train::{Options, Train, TrainHeader, TrainWriter};

use super::{LINK_A, LINK_B, between_pt0s, header, message, vector};

/// 20 ms of a telephone call: what follows the EtherType.
fn voice(port: u16, count: u16, source: u32, sound: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0xb8];
    packet.extend((40 + sound.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    let sum = checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend(5004u16.to_be_bytes());
    packet.extend((20 + sound.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x80, 0]);
    packet.extend(count.to_be_bytes());
    packet.extend((u32::from(count) * sound.len() as u32).to_be_bytes());
    packet.extend(source.to_be_bytes());
    packet.extend(sound);
    packet
}

/// Three packets of one call, and one of another between them.
fn calls(sound: &[u8]) -> [Vec<u8>; 4] {
    [
        voice(4000, 7, 0xca11_0001, sound),
        voice(4002, 9, 0xca11_0002, sound),
        voice(4000, 8, 0xca11_0001, sound),
        voice(4000, 9, 0xca11_0001, sound),
    ]
}

#[track_caller]
fn assert_coded(name: &str, coding: Coding, treatment: Treatment, frames: &[Vec<u8>]) {
    let bytes = vector(name);
    let header = TrainHeader {
        coded: true,
        repairs: false,
        lossless: false,
        ..header(45, 21)
    };
    let message = message(&bytes, LINK_B, LINK_A);
    let train = Train::parse(message).unwrap();
    assert_eq!(train.header, header);
    let mut plain = vec![0; PLAIN_MAX];
    let restored = Restorer::default().restore(&message[train.subframes_at..], &mut plain);
    plain.truncate(restored.unwrap());
    let mut rest = &plain[..];
    for frame in frames {
        let (subframe, len) = Subframe::parse(rest).unwrap().unwrap();
        let header = between_pt0s(Offload::NONE);
        assert_eq!(
            subframe,
            Subframe::Frame {
                header,
                payload: frame
            }
        );
        rest = &rest[len..];
    }
    assert!(rest.is_empty());
    let mut coder = Coder::default();
    coder.begin(coding, 1470);
    for frame in frames {
        assert!(coder.put_frame(&between_pt0s(Offload::NONE), frame, treatment));
    }
    let mut buffer = Buffer::with_capacity(2048);
    let header = TrainHeader {
        coded: false,
        repairs: false,
        lossless: false,
        ..header
    };
    let options = Options::default();
    let mut writer = TrainWriter::begin(&mut buffer, LINK_B, LINK_A, &header, &options);
    coder.finish_into(&mut writer);
    assert_eq!(&buffer[..], bytes);
}

#[test]
fn calls_are_told_apart_by_their_headers() {
    let frames = calls(&[0x11, 0x22, 0x33, 0x44]);
    assert_coded(
        "train-coded-headers",
        Coding::Headers,
        Treatment::Headers,
        &frames,
    );
}

#[test]
fn silence_is_compressed() {
    let frames = calls(&[0xff; 40]);
    assert_coded("train-coded-lz4", Coding::Lz4, Treatment::Payload, &frames);
}

/// A tone that fades, in either law: 5 ms.
const MU_TONE: [u8; 40] = [
    0xff, 0xb4, 0xab, 0xb2, 0xe6, 0x37, 0x2c, 0x31, 0x58, 0xb9, 0xad, 0xb1, 0xce, 0x3c, 0x2e, 0x31,
    0x4a, 0xbe, 0xaf, 0xb1, 0xc6, 0x43, 0x30, 0x32, 0x41, 0xc9, 0xb2, 0xb3, 0xbf, 0x4e, 0x34, 0x33,
    0x3d, 0xd3, 0xb7, 0xb4, 0xbc, 0x5c, 0x39, 0x35,
];
const A_TONE: [u8; 40] = [
    0xd5, 0x9e, 0x81, 0x98, 0xcd, 0x1d, 0x06, 0x1b, 0x70, 0x93, 0x87, 0x9b, 0xfa, 0x16, 0x04, 0x1b,
    0x66, 0x94, 0x85, 0x9b, 0xed, 0x6f, 0x1a, 0x18, 0x69, 0xe1, 0x98, 0x99, 0x95, 0x7a, 0x1e, 0x19,
    0x17, 0xff, 0x9d, 0x9e, 0x96, 0x75, 0x13, 0x1f,
];

#[test]
fn sound_and_text_are_mixed() {
    let text = |count: u16, said: &[u8]| {
        let mut packet = voice(4100, count, 0, said);
        // No RTP: what stands there is text, too.
        packet[28..40].copy_from_slice(b"temperature=");
        packet
    };
    let mut a_law = voice(4002, 9, 0xca11_0002, &A_TONE);
    a_law[29] = 8;
    let frames = [
        voice(4000, 7, 0xca11_0001, &MU_TONE),
        a_law,
        text(1, b"21.4 humidity=61"),
        voice(4000, 8, 0xca11_0001, &MU_TONE),
        text(2, b"21.5 humidity=60"),
    ];
    let treatment = Treatment::Payload;
    assert_coded("train-coded-mixing", Coding::Mixing, treatment, &frames);
}
