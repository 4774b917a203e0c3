use super::*;
use crate::net::nic;

/// One flow of each dress.
pub(crate) fn one_of_each() -> Vec<Flow> {
    let plain = Flow {
        index: 0,
        from: StationId(0),
        to: Recipient::Station(StationId(1)),
        source: MacAddr([2, 0, 0, 0, 0, 1]),
        destination: MacAddr([2, 0, 0, 0, 0, 2]),
        vlan: None,
        dress: Dress::Bare,
        ipv6: false,
        segment_len: None,
        partial_checksum: false,
        ecn: false,
        content_len: (12, 1400),
        seed: 99,
    };
    let gso = Flow {
        segment_len: Some(1000),
        content_len: (12, 60_000),
        ecn: true,
        ..plain.clone()
    };
    let mut flows = vec![
        plain.clone(),
        Flow {
            dress: Dress::Tiny { payload_len: 1 },
            ..plain.clone()
        },
        Flow {
            dress: Dress::Tiny { payload_len: 11 },
            ..plain.clone()
        },
        Flow {
            dress: Dress::Llc,
            ..plain.clone()
        },
        Flow {
            dress: Dress::Arp,
            content_len: (20, 20),
            ..plain.clone()
        },
        Flow {
            dress: Dress::Other,
            vlan: Some(7),
            ..plain.clone()
        },
        Flow {
            dress: Dress::Other,
            ipv6: true,
            ..plain.clone()
        },
        Flow {
            dress: Dress::Udp,
            partial_checksum: true,
            ..plain.clone()
        },
        Flow {
            dress: Dress::Fragments,
            content_len: (16, 1400),
            ..plain.clone()
        },
        Flow {
            dress: Dress::Udp,
            ..gso.clone()
        },
        Flow {
            dress: Dress::Udp,
            ipv6: true,
            ..gso.clone()
        },
        Flow {
            dress: Dress::Tcp { timestamps: true },
            ..gso.clone()
        },
        Flow {
            dress: Dress::Tcp { timestamps: false },
            ipv6: true,
            vlan: Some(5),
            ..gso
        },
    ];
    for (i, flow) in flows.iter_mut().enumerate() {
        flow.index = i as u16;
    }
    flows
}

#[test]
fn checksums_are_finished_or_partial_as_the_frame_says() {
    for flow in one_of_each() {
        for sequence in 0..50 {
            let frame = flow.frame(sequence);
            let Some(transport) = Transport::find(&frame.bytes) else {
                continue;
            };
            assert_eq!(transport.end, frame.bytes.len());
            assert_eq!(
                frame.offload.checksum.is_none(),
                transport.is_finished(&frame.bytes)
            );
            assert_eq!(
                frame.offload.checksum.is_some(),
                transport.is_partial(&frame.bytes)
            );
        }
    }
}

#[test]
fn the_card_cuts_a_gso_frame_into_exactly_its_parts() {
    let mut cut = 0;
    for flow in one_of_each() {
        for sequence in 0..20 {
            let frame = flow.frame(sequence);
            if frame.offload.gso.is_none() {
                continue;
            }
            let segments = nic::to_wire(frame).expect("true metadata");
            assert_eq!(segments.len(), flow.segment_count(sequence));
            for (i, segment) in segments.iter().enumerate() {
                let mut part = flow.part(sequence, i..i + 1);
                let transport = Transport::find(&part.bytes).unwrap();
                transport.put_finished(&mut part.bytes);
                assert!(transport.is_finished(&segment.bytes));
                part.bytes.resize(part.bytes.len().max(60), 0);
                assert_eq!(*segment, part, "segment {i} of {:?}", flow.dress);
                cut += 1;
            }
        }
    }
    assert!(cut > 1000);
}

#[test]
fn the_card_refuses_metadata_that_lies() {
    let flows = one_of_each();
    let frame = flows[11].frame(1);
    assert!(frame.offload.gso.is_some());
    for (header_len, segment_len) in [(53, 1000), (66, 0), (65_000, 1000)] {
        let mut lying = frame.clone();
        let gso = lying.offload.gso.as_mut().unwrap();
        (gso.header_len, gso.segment_len) = (header_len, segment_len);
        assert_eq!(nic::to_wire(lying), None, "{header_len} {segment_len}");
    }
}
