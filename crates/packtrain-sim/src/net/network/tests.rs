//! Queues that make room: what went for others is lost to the network too, and is lost once.

use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::HEADER_LEN;

use super::*;
use crate::net::cut::Cut;
use crate::net::queue::{Discipline, QueueConfig, QueueLimit};
use crate::net::wire::WireConfig;

/// A frame of a flow of its own for each source.
fn frame(source: u8, number: u8) -> Frame {
    let mut bytes = vec![0; 1000];
    (bytes[11], bytes[HEADER_LEN]) = (source, number);
    Frame::new(bytes, Offload::NONE)
}

#[test]
fn what_makes_room_for_others_is_lost_and_seen_and_the_rest_arrives() {
    let wire = WireConfig {
        queue: QueueConfig {
            limit: QueueLimit::Bytes(5000),
            discipline: Discipline::Drr {
                quantum_bytes: 1500,
                flow_limit_bytes: None,
            },
        },
        ..WireConfig::perfect(1_000_000, Duration::ZERO)
    };
    let cable = SegmentConfig {
        kind: SegmentKind::Cable,
        mtu: 1500,
        carries_offload: false,
        up: vec![wire.clone(), wire],
        down: Vec::new(),
        cut: Cut::default(),
    };
    let mut queue: EventQueue<NetEvent> = EventQueue::default();
    let mut network = Network::new(vec![cable], &mut Random::new(1), &mut queue);
    let port = PortId {
        segment: 0,
        port: 0,
    };
    let wire = WireId::out_of(port);
    let keep = Keep {
        bytes: HEADER_LEN + 1,
        heads_only: false,
    };
    network.watch(wire, Some(keep));
    let mut taken = 0;
    for (source, number) in [
        (1, 0),
        (1, 1),
        (1, 2),
        (1, 3),
        (1, 4),
        (1, 5),
        (2, 0),
        (3, 0),
    ] {
        let sent = network.transmit(port, frame(source, number), Instant::ZERO, &mut queue);
        taken += u64::from(sent.is_ok());
    }
    // One is being sent and four stand: the sixth has no room, and two are the first one's to lose.
    assert_eq!(taken, 7);
    let lost = network.take_lost();
    assert_eq!(lost, [frame(1, 5), frame(1, 4), frame(1, 3)]);
    let mut arrived = Vec::new();
    while let Some((now, event)) = queue.pop() {
        if let Outcome::Delivered(_, frame) = network.handle(event, now, &mut queue) {
            arrived.push(frame);
        }
    }
    arrived.sort_by_key(|frame| (frame.bytes[11], frame.bytes[HEADER_LEN]));
    let expected = [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0)].map(|(s, n)| frame(s, n));
    assert_eq!(arrived, expected);
    let counters = network.wire(wire).counters;
    assert_eq!(
        (counters.offered, counters.queue_full, counters.arriving),
        (8, 3, 5)
    );
    let seen = network.take_sightings();
    let dropped = |sighting: &&Sighting| sighting.dropped == Some(WireDrop::QueueFull);
    assert_eq!((seen.len(), seen.iter().filter(dropped).count()), (8, 3));
}
