//! Any bytes as an Ethernet frame: parsing never panics, points into the frame, and the flow hash
//! is a function of the frame. What is told of one that is too long is a sound frame for its sender.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtrain_proto::buffer::Buffer;
use packtrain_proto::classifier::Classifier;
use packtrain_proto::too_big;
use packtrain_proto::wire::packet::Packet;

fuzz_target!(|frame: &[u8]| {
    if let Ok(packet) = Packet::parse(frame) {
        assert!(packet.network_start <= frame.len());
        if let Some(ip) = packet.ip {
            assert!(packet.network_start < ip.transport_start);
            assert!(ip.transport_start <= frame.len());
            assert!(!(ip.fragment && ip.transport.is_some()));
        }
        if let Some(len) = packet.header_len() {
            assert!(len <= frame.len());
        }
    }
    let hash = Classifier::new(1).flow_hash(frame);
    assert_eq!(Classifier::new(1).flow_hash(frame), hash);
    let mut told = Buffer::with_capacity(too_big::ANSWER_MAX);
    for excess in [1, frame.len() / 2] {
        if too_big::answer(frame, excess, &mut told).is_err() {
            continue;
        }
        assert_eq!(told[..6], frame[6..12]);
        let packet = Packet::parse(&told).expect("its headers are whole");
        let ip = packet.ip.expect("it is IP");
        assert_eq!(packet.network_start + ip.total_len, told.len());
    }
});
