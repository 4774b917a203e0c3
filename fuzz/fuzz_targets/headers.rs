//! Any bytes as an Ethernet frame: parsing never panics, points into the frame, and the flow hash
//! is a function of the frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtrain_proto::classifier::Classifier;
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
});
