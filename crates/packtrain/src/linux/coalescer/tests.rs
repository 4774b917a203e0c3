use std::cell::{Cell, RefCell};

use packtrain_proto::buffer::Buffer;
use packtrain_proto::gso;
use packtrain_proto::offload::PartialChecksum;
use proptest::prelude::*;

use super::part::pseudo_header;
use super::*;
use packtrain_proto::wire::checksum::{add, sum};

/// A host that cuts what it is given, and remembers the frames.
#[derive(Default)]
struct Cutter {
    frames: RefCell<Vec<Vec<u8>>>,
    given: Cell<usize>,
    refuses_gso: bool,
}

impl Host for Cutter {
    fn send(&self, delivery: &Delivery<'_>) -> io::Result<()> {
        self.given.set(self.given.get() + 1);
        let mut frame = [delivery.head, delivery.body].concat();
        if let Some(partial) = delivery.offload.checksum {
            gso::finish_checksum(&mut frame, partial).expect("in it");
        }
        self.frames.borrow_mut().push(frame);
        Ok(())
    }

    fn send_parts(&self, offload: Offload, parts: &[io::IoSlice<'_>]) -> io::Result<()> {
        if self.refuses_gso {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.given.set(self.given.get() + 1);
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        gso::check(&whole, &offload).expect("metadata that agrees");
        let count = gso::segment_count(whole.len(), &offload.gso.expect("a GSO frame"));
        for n in 0..count {
            let mut segment = Buffer::with_capacity(2048);
            let rest = gso::slice(&whole, &offload, n, 1, &mut segment).expect("a segment");
            gso::finish_checksum(&mut segment, rest.checksum.expect("partial")).expect("in it");
            self.frames.borrow_mut().push(segment.to_vec());
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Message {
    v6: bool,
    port: u16,
    id: u16,
    fragment: u16,
    ttl: u8,
    payload: Vec<u8>,
    /// Added to the checksum of UDP or TCP.
    damage: u16,
    tcp: Option<Tcp>,
}

#[derive(Clone, Debug)]
struct Tcp {
    sequence: u32,
    flags: u8,
    window: u16,
    /// With a timestamp among the options.
    timestamp: Option<u32>,
}

impl Tcp {
    fn header(&self, port: u16) -> Vec<u8> {
        let mut tcp = [port, 7].map(u16::to_be_bytes).concat();
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend([0, 0, 0, 9]);
        let words = if self.timestamp.is_some() { 8 } else { 5 };
        tcp.extend([words << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        if let Some(timestamp) = self.timestamp {
            tcp.extend([1, 1, 8, 10]);
            tcp.extend(timestamp.to_be_bytes());
            tcp.extend([0; 4]);
        }
        tcp
    }
}

impl Message {
    fn frame(&self) -> Vec<u8> {
        let transport = match &self.tcp {
            Some(tcp) => tcp.header(self.port),
            None => {
                let len = (8 + self.payload.len()) as u16;
                [self.port, 7, len, 0].map(u16::to_be_bytes).concat()
            }
        };
        let (protocol, checksum_at) = match &self.tcp {
            Some(_) => (6, 16),
            None => (17, 6),
        };
        let len = (transport.len() + self.payload.len()) as u16;
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        let mut ip = if self.v6 {
            frame.extend([0x86, 0xdd]);
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, protocol, self.ttl];
            ip[4..6].copy_from_slice(&len.to_be_bytes());
            ip.extend([0xfd; 32]);
            ip
        } else {
            frame.extend([0x08, 0x00]);
            let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0, 0, self.ttl, protocol, 0, 0];
            ip.extend([10, 9, 0, 1, 10, 9, 0, 2]);
            ip[2..4].copy_from_slice(&(20 + len).to_be_bytes());
            ip[4..6].copy_from_slice(&self.id.to_be_bytes());
            ip[6..8].copy_from_slice(&self.fragment.to_be_bytes());
            let checksum = !sum(&ip);
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            ip
        };
        let pseudo = pseudo_header(&ip, protocol, len);
        frame.append(&mut ip);
        let mut transport = transport;
        transport.extend(&self.payload);
        let checksum = match !add(pseudo, sum(&transport)) {
            0 if self.tcp.is_none() => u16::MAX,
            checksum => checksum,
        };
        let checksum = checksum.wrapping_add(self.damage).to_be_bytes();
        transport[checksum_at..checksum_at + 2].copy_from_slice(&checksum);
        frame.extend(transport);
        frame
    }
}

/// Some come with a checksum that is still to be finished, as from a virtual cable.
fn unfinished(frame: &[u8]) -> Option<(Vec<u8>, Offload)> {
    let partial = |ip_len: usize, protocol: u8| {
        let offset = if protocol == 6 { 16 } else { 6 };
        PartialChecksum {
            start: (HEADER_LEN + ip_len) as u16,
            offset,
        }
    };
    let packet = &frame[HEADER_LEN..];
    let (ip_len, protocol) = match packet[0] >> 4 {
        4 => (20, packet[9]),
        _ => (40, packet[6]),
    };
    let partial = partial(ip_len, protocol);
    let (ip, transport) = packet.split_at(ip_len);
    let pseudo = pseudo_header(ip, protocol, transport.len() as u16);
    let at = usize::from(partial.start + partial.offset);
    let mut begun = frame.to_vec();
    begun[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
    let offload = Offload {
        checksum: Some(partial),
        gso: None,
    };
    let mut finished = begun.clone();
    gso::finish_checksum(&mut finished, partial).ok()?;
    (finished == frame).then_some((begun, offload))
}

fn give_unfinished(frames: &[Vec<u8>], every: usize, host: &Cutter) -> CoalescerCounters {
    let mut coalescer = Coalescer::new();
    for (n, frame) in frames.iter().enumerate() {
        let begun = unfinished(frame).filter(|_| n % every == 0);
        let (frame, offload) = begun.unwrap_or((frame.clone(), Offload::NONE));
        let (head, body) = frame.split_at(HEADER_LEN);
        let delivery = Delivery {
            head,
            body,
            offload,
        };
        assert_eq!(coalescer.send(&delivery, host), 0);
    }
    assert_eq!(coalescer.flush(host), 0);
    coalescer.counters()
}

fn give(frames: &[Vec<u8>], host: &Cutter) -> CoalescerCounters {
    let mut coalescer = Coalescer::new();
    for frame in frames {
        let (head, body) = frame.split_at(HEADER_LEN);
        let delivery = Delivery {
            head,
            body,
            offload: Offload::NONE,
        };
        assert_eq!(coalescer.send(&delivery, host), 0);
    }
    assert_eq!(coalescer.flush(host), 0);
    assert_eq!(coalescer.flush(host), 0, "nothing is left");
    coalescer.counters()
}

/// As it was sent, but for an identification that means nothing.
fn without_idle_id(mut frame: Vec<u8>) -> Vec<u8> {
    if frame[12..14] == [8, 0] && frame[20..22] == [0x40, 0] {
        frame[18..20].fill(0);
        frame[24..26].fill(0);
    }
    frame
}

/// Mostly data and nothing else; the row fills in where it stands in the stream.
fn tcp() -> impl Strategy<Value = Tcp> {
    let flags = prop_oneof![16 => Just(0x10u8), 2 => Just(0x18u8), 1 => any::<u8>()];
    let timestamp = prop_oneof![8 => Just(Some(5)), 1 => Just(Some(6)), 1 => Just(None)];
    let window = prop_oneof![16 => Just(500u16), 1 => Just(501u16)];
    let sequence = prop_oneof![16 => Just(0u32), 1 => 1u32..3];
    (sequence, flags, window, timestamp).prop_map(|(sequence, flags, window, timestamp)| Tcp {
        sequence,
        flags,
        window,
        timestamp,
    })
}

fn message() -> impl Strategy<Value = Message> {
    let payload = prop_oneof![
        8 => Just(64usize),
        2 => 1usize..200,
        1 => Just(1400usize),
        1 => Just(0usize),
    ];
    let mostly = |value: u16, other: u16| prop_oneof![12 => Just(value), 1 => Just(other)];
    (
        mostly(0, 1),
        mostly(5000, 5001),
        prop_oneof![4 => Just(None), 1 => any::<u16>().prop_map(Some)],
        prop_oneof![6 => Just(0x4000u16), 6 => Just(0u16), 1 => Just(0x2000u16)],
        mostly(64, 63),
        payload,
        mostly(0, 1),
        any::<u8>(),
        prop::option::of(tcp()),
    )
        .prop_map(
            |(v6, port, id, fragment, ttl, len, damage, fill, tcp)| Message {
                tcp,
                v6: v6 == 1,
                port,
                // Filled in by the row: 0 stands for the next one.
                id: id.unwrap_or(0),
                fragment,
                ttl: ttl as u8,
                payload: (0..len).map(|i| fill.wrapping_add(i as u8)).collect(),
                damage,
            },
        )
}

proptest! {
    #[test]
    fn what_the_host_gets_is_what_was_sent(
        mut row in prop::collection::vec(message(), 1..200),
        kind in prop::option::of(any::<bool>()),
    ) {
        // Often all of one kind, or hardly any two would go together.
        let mut sequence = u32::MAX - 3000;
        for (n, message) in row.iter_mut().enumerate() {
            if message.id == 0 {
                message.id = n as u16;
            }
            if kind == Some(false) {
                message.tcp = None;
            }
            if let Some(tcp) = &mut message.tcp {
                tcp.sequence = tcp.sequence.wrapping_add(sequence);
                sequence = sequence.wrapping_add(message.payload.len() as u32);
            }
        }
        let frames: Vec<_> = row.iter().map(Message::frame).collect();
        let host = Cutter::default();
        give(&frames, &host);
        let unfinished = Cutter::default();
        give_unfinished(&frames, 1 + frames.len() % 3, &unfinished);
        prop_assert_eq!(unfinished.frames.take(), host.frames.borrow().clone());
        let got: Vec<_> = host.frames.take().into_iter().map(without_idle_id).collect();
        let sent: Vec<_> = frames.into_iter().map(without_idle_id).collect();
        prop_assert_eq!(got, sent);
    }
}

fn equal(count: usize, v6: bool) -> Vec<Message> {
    let message = |n| Message {
        v6,
        port: 5000,
        id: n as u16,
        fragment: 0,
        ttl: 64,
        payload: vec![n as u8; 64],
        damage: 0,
        tcp: None,
    };
    (0..count).map(message).collect()
}

/// Segments of one connection, one after the other.
fn segments(count: usize, v6: bool) -> Vec<Message> {
    let mut row = equal(count, v6);
    for (n, message) in row.iter_mut().enumerate() {
        message.tcp = Some(Tcp {
            sequence: 64 * n as u32,
            flags: 0x10,
            window: 500,
            timestamp: Some(5),
        });
    }
    row
}

fn frames_given(row: &[Message]) -> usize {
    let host = Cutter::default();
    give(&row.iter().map(Message::frame).collect::<Vec<_>>(), &host);
    host.given.get()
}

#[test]
fn a_row_of_equal_datagrams_is_one_frame_and_a_shorter_one_ends_it() {
    for v6 in [false, true] {
        let mut row = equal(10, v6);
        assert_eq!(frames_given(&row), 1);
        row[6].payload.truncate(9);
        assert_eq!(frames_given(&row), 2, "seven, three");
        row[6].payload.resize(65, 0);
        assert_eq!(
            frames_given(&row),
            3,
            "six, the longer one with its shorter, two"
        );
        assert_eq!(frames_given(&equal(FRAMES_MAX + 1, v6)), 2);
        let host = Cutter::default();
        let frames: Vec<_> = equal(10, v6).iter().map(Message::frame).collect();
        let counters = give(&frames, &host);
        assert_eq!((counters.datagrams, counters.datagram_frames), (10, 1));
    }
}

#[test]
fn what_differs_in_anything_that_cutting_would_lose_goes_alone() {
    type Change = fn(&mut Message);
    let changes: [Change; 6] = [
        |m| m.port += 1,
        |m| m.ttl -= 1,
        |m| m.id += 100,
        |m| m.fragment = 0x4000,
        |m| m.damage = 1,
        |m| m.v6 = true,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut row = equal(3, false);
        change(&mut row[1]);
        assert_eq!(frames_given(&row), 3, "change {n}");
    }
}

#[test]
fn a_host_that_takes_no_gso_frames_gets_every_frame_and_is_not_asked_again() {
    let host = Cutter {
        refuses_gso: true,
        ..Cutter::default()
    };
    let frames: Vec<_> = equal(150, false).iter().map(Message::frame).collect();
    let counters = give(&frames, &host);
    assert_eq!(counters, CoalescerCounters::default());
    assert_eq!(host.frames.take(), frames);
}

#[test]
fn segments_of_one_connection_are_one_frame_up_to_one_that_pushes_or_is_shorter() {
    for v6 in [false, true] {
        let mut row = segments(10, v6);
        assert_eq!(frames_given(&row), 1);
        let host = Cutter::default();
        let frames: Vec<_> = row.iter().map(Message::frame).collect();
        let counters = give(&frames, &host);
        assert_eq!((counters.segments, counters.segment_frames), (10, 1));
        assert_eq!(host.frames.take(), frames);
        row[6].tcp.as_mut().unwrap().flags = 0x18;
        assert_eq!(frames_given(&row), 2, "seven, three");
        row[6].payload.truncate(9);
        for message in &mut row[7..] {
            message.tcp.as_mut().unwrap().sequence -= 55;
        }
        assert_eq!(
            frames_given(&row),
            2,
            "and the shorter one is the last, too"
        );
    }
}

#[test]
fn segments_that_differ_in_anything_that_cutting_would_lose_go_alone() {
    type Change = fn(&mut Tcp);
    let changes: [Change; 7] = [
        |tcp| tcp.sequence += 1,
        |tcp| tcp.window += 1,
        |tcp| tcp.timestamp = Some(6),
        |tcp| tcp.timestamp = None,
        |tcp| tcp.flags = 0x11,
        |tcp| tcp.flags = 0x30,
        |tcp| tcp.flags = 0x90,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut row = segments(3, false);
        change(row[1].tcp.as_mut().unwrap());
        assert_eq!(frames_given(&row), 3, "change {n}");
    }
    let mut row = segments(3, false);
    row[1].damage = 1;
    assert_eq!(frames_given(&row), 3, "a wrong checksum stays wrong");
}

#[test]
fn checksums_that_are_still_to_be_finished_keep_nothing_apart() {
    for (row, v6) in [(equal(10, false), false), (segments(10, true), true)] {
        let frames: Vec<_> = row.iter().map(Message::frame).collect();
        for every in 1..3 {
            let host = Cutter::default();
            give_unfinished(&frames, every, &host);
            assert_eq!(host.given.get(), 1, "{v6} {every}");
            assert_eq!(host.frames.take(), frames);
        }
        let host = Cutter::default();
        give_unfinished(&frames[..1], 1, &host);
        assert_eq!(host.frames.take(), frames[..1]);
    }
}
