mod breakages;
mod checker;
mod kernel_cut;

use std::cell::RefCell;

use packtrain_proto::offload::PartialChecksum;
use proptest::prelude::*;

use super::part::pseudo_header;
use super::*;
use crate::linux::vnet_header;
use checker::{Written, check, on_a_wire};
use kernel_cut::cut;
use packtrain_proto::wire::checksum::{add, sum};

/// A host that remembers what it was given, as it stands before the kernel.
#[derive(Default)]
struct Recorder {
    written: RefCell<Vec<Written>>,
    refuses_gso: bool,
}

impl Recorder {
    fn given(&self) -> usize {
        self.written.borrow().len()
    }

    /// … as a wire would have it.
    fn frames(&self) -> Vec<Vec<u8>> {
        on_a_wire(&self.written.borrow()).expect("nothing that the kernel refuses")
    }
}

impl Host for Recorder {
    fn send(&self, delivery: &Delivery<'_>) -> io::Result<()> {
        self.written.borrow_mut().push(Written {
            header: vnet_header::emit(delivery.offload),
            frame: [delivery.head, delivery.body].concat(),
        });
        Ok(())
    }

    fn send_parts(&self, offload: Offload, parts: &[io::IoSlice<'_>]) -> io::Result<()> {
        if self.refuses_gso {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.written.borrow_mut().push(Written {
            header: vnet_header::emit(offload),
            frame: parts.iter().flat_map(|part| part.to_vec()).collect(),
        });
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Message {
    v6: bool,
    /// What routers and their congestion say of it.
    traffic_class: u8,
    port: u16,
    id: u16,
    fragment: u16,
    ttl: u8,
    payload: Vec<u8>,
    /// Added to the checksum of UDP or TCP.
    damage: u16,
    /// Options behind the header of IPv4, or a fragment header behind that of IPv6.
    is_extended: bool,
    /// Bytes behind the packet.
    padding: usize,
    tcp: Option<Tcp>,
}

#[derive(Clone, Debug)]
struct Tcp {
    sequence: u32,
    acknowledges: u32,
    flags: u8,
    window: u16,
    urgent: u16,
    /// With a timestamp among the options.
    timestamp: Option<u32>,
}

impl Tcp {
    fn header(&self, port: u16) -> Vec<u8> {
        let mut tcp = [port, 7].map(u16::to_be_bytes).concat();
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledges.to_be_bytes());
        let words = if self.timestamp.is_some() { 8 } else { 5 };
        tcp.extend([words << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 2]);
        tcp.extend(self.urgent.to_be_bytes());
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
            let class = u16::from(self.traffic_class) << 4 | 0x6000;
            let extension = if self.is_extended { 8 } else { 0 };
            let next = if self.is_extended { 44 } else { protocol };
            let mut ip = class.to_be_bytes().to_vec();
            ip.extend([0, 0]);
            ip.extend((extension + len).to_be_bytes());
            ip.extend([next, self.ttl]);
            ip.extend([0xfd; 32]);
            ip
        } else {
            frame.extend([0x08, 0x00]);
            let words = if self.is_extended { 6 } else { 5 };
            let mut ip = vec![0x40 | words, self.traffic_class, 0, 0, 0, 0, 0, 0];
            ip.extend([self.ttl, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
            if self.is_extended {
                ip.extend([1; 4]);
            }
            ip[2..4].copy_from_slice(&(4 * u16::from(words) + len).to_be_bytes());
            ip[4..6].copy_from_slice(&self.id.to_be_bytes());
            ip[6..8].copy_from_slice(&self.fragment.to_be_bytes());
            let checksum = !sum(&ip);
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            ip
        };
        let header_len = if self.v6 { 40 } else { 20 };
        let pseudo = pseudo_header(&ip[..header_len], protocol, len);
        frame.append(&mut ip);
        if self.v6 && self.is_extended {
            frame.extend([protocol, 0, 0, 0, 0, 0, 0, 7]);
        }
        let mut transport = transport;
        transport.extend(&self.payload);
        let checksum = match !add(pseudo, sum(&transport)) {
            0 if self.tcp.is_none() => u16::MAX,
            checksum => checksum,
        };
        let checksum = checksum.wrapping_add(self.damage).to_be_bytes();
        transport[checksum_at..checksum_at + 2].copy_from_slice(&checksum);
        frame.extend(transport);
        frame.resize(frame.len() + self.padding, 0);
        frame
    }
}

/// Some come with a checksum that is still to be finished, as from a virtual cable.
fn unfinished(frame: &[u8]) -> Option<(Vec<u8>, Offload)> {
    let packet = &frame[HEADER_LEN..];
    let (ip_len, protocol) = match packet[0] >> 4 {
        4 => (20, packet[9]),
        _ => (40, packet[6]),
    };
    let partial = PartialChecksum {
        start: (HEADER_LEN + ip_len) as u16,
        offset: if protocol == 6 { 16 } else { 6 },
    };
    let (ip, transport) = packet.split_at(ip_len);
    let pseudo = pseudo_header(ip, protocol, transport.len() as u16);
    let at = usize::from(partial.start + partial.offset);
    let mut begun = frame.to_vec();
    begun
        .get_mut(at..at + 2)?
        .copy_from_slice(&pseudo.to_be_bytes());
    let offload = Offload {
        checksum: Some(partial),
        gso: None,
    };
    let finished = cut(&vnet_header::emit(offload), &begun);
    (finished == Ok(vec![frame.to_vec()])).then_some((begun, offload))
}

/// Of so many frames one comes with a checksum that is still to be finished; 0: none does.
fn give(frames: &[Vec<u8>], unfinished_every: usize, host: &Recorder) -> CoalescerCounters {
    let mut coalescer = Coalescer::new();
    for (n, frame) in frames.iter().enumerate() {
        let is_unfinished = n.checked_rem(unfinished_every) == Some(0);
        let begun = unfinished(frame).filter(|_| is_unfinished);
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
    assert_eq!(coalescer.flush(host), 0, "nothing is left");
    coalescer.counters()
}

fn mostly<T: Copy + std::fmt::Debug + 'static>(value: T, other: T) -> impl Strategy<Value = T> {
    prop_oneof![12 => Just(value), 1 => Just(other)]
}

/// Mostly data and nothing else; the row fills in where it stands in the stream.
fn tcp() -> impl Strategy<Value = Tcp> {
    let flags = prop_oneof![16 => Just(0x10u8), 2 => Just(0x18u8), 1 => any::<u8>()];
    let timestamp = prop_oneof![8 => Just(Some(5)), 1 => Just(Some(6)), 1 => Just(None)];
    let sequence = prop_oneof![16 => Just(0u32), 1 => 1u32..3];
    (
        sequence,
        mostly(9, 10),
        flags,
        mostly(500, 501),
        mostly(0, 3),
        timestamp,
    )
        .prop_map(
            |(sequence, acknowledges, flags, window, urgent, timestamp)| Tcp {
                sequence,
                acknowledges,
                flags,
                window,
                urgent,
                timestamp,
            },
        )
}

fn message() -> impl Strategy<Value = Message> {
    let payload = prop_oneof![
        8 => Just(64usize),
        2 => 1usize..200,
        1 => Just(1400usize),
        1 => Just(0usize),
    ];
    let fragment = prop_oneof![
        6 => Just(0x4000u16), 6 => Just(0u16), 1 => Just(0x2000u16), 1 => Just(1u16),
    ];
    // ECT(0), and congestion that was met.
    let traffic_class =
        prop_oneof![6 => Just(2u8), 2 => Just(3u8), 1 => Just(0u8), 1 => any::<u8>()];
    let padding = prop_oneof![20 => Just(0usize), 1 => 1usize..5];
    (
        (mostly(false, true), traffic_class, 5000u16..5003),
        prop_oneof![4 => Just(None), 1 => any::<u16>().prop_map(Some)],
        fragment,
        mostly(64u8, 63),
        (payload, any::<u8>()),
        mostly(0, 1),
        mostly(false, true),
        padding,
        prop::option::of(tcp()),
    )
        .prop_map(
            |(
                (v6, traffic_class, port),
                id,
                fragment,
                ttl,
                (len, fill),
                damage,
                is_extended,
                padding,
                tcp,
            )| Message {
                v6,
                traffic_class,
                port,
                // Filled in by the row: 0 stands for the next one.
                id: id.unwrap_or(0),
                fragment,
                ttl,
                payload: (0..len).map(|i| fill.wrapping_add(i as u8)).collect(),
                damage,
                is_extended,
                padding,
                tcp,
            },
        )
}

/// One after the other of the same, the last one perhaps shorter, and perhaps one that pushes or finishes.
fn run() -> impl Strategy<Value = Vec<Message>> {
    let ends = prop::sample::select(vec![0u8, 0x08, 0x09]);
    let len = (1usize..70, 1usize..100);
    (message(), any::<bool>(), ends, len).prop_map(|(message, v6, end, (count, percent))| {
        let nth = |n: usize| {
            let mut message = message.clone();
            message.v6 ^= v6;
            message.payload.iter_mut().for_each(|byte| *byte ^= n as u8);
            if n + 1 == count {
                let len = message.payload.len() * percent / 50;
                message.payload.truncate(len);
                message.tcp.iter_mut().for_each(|tcp| tcp.flags |= end);
            }
            message
        };
        (0..count).map(nth).collect()
    })
}

/// Frames, often all of one protocol, or hardly any two would go together.
fn segments_and_datagrams() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let some = prop_oneof![run(), prop::collection::vec(message(), 1..8)];
    let rows = prop::collection::vec(some, 1..20);
    (rows, prop::option::of(any::<bool>())).prop_map(|(rows, is_tcp)| {
        let mut sequence = u32::MAX - 3000;
        let mut row = rows.concat();
        for (n, message) in row.iter_mut().enumerate() {
            if message.id == 0 {
                message.id = n as u16;
            }
            if is_tcp == Some(false) {
                message.tcp = None;
            }
            if let Some(tcp) = &mut message.tcp {
                tcp.sequence = tcp.sequence.wrapping_add(sequence);
                sequence = sequence.wrapping_add(message.payload.len() as u32);
            }
        }
        row.iter().map(Message::frame).collect()
    })
}

proptest! {
    #[test]
    fn what_the_host_gets_is_what_was_sent(frames in segments_and_datagrams(), every in 1usize..4) {
        let host = Recorder::default();
        let counters = give(&frames, 0, &host);
        prop_assert_eq!(check(&host.written.borrow(), &frames), Ok(()));
        let unfinished = Recorder::default();
        prop_assert_eq!(give(&frames, every, &unfinished), counters);
        prop_assert_eq!(check(&unfinished.written.borrow(), &frames), Ok(()));
    }
}

fn equal(count: usize, v6: bool) -> Vec<Message> {
    let message = |n| Message {
        v6,
        traffic_class: 0,
        port: 5000,
        id: n as u16,
        fragment: 0,
        ttl: 64,
        payload: vec![n as u8; 64],
        damage: 0,
        is_extended: false,
        padding: 0,
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
            acknowledges: 9,
            flags: 0x10,
            window: 500,
            urgent: 0,
            timestamp: Some(5),
        });
    }
    row
}

fn frames_given(row: &[Message]) -> usize {
    let host = Recorder::default();
    give(
        &row.iter().map(Message::frame).collect::<Vec<_>>(),
        0,
        &host,
    );
    host.given()
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
        let host = Recorder::default();
        let frames: Vec<_> = equal(10, v6).iter().map(Message::frame).collect();
        let counters = give(&frames, 0, &host);
        assert_eq!((counters.datagrams, counters.datagram_frames), (10, 1));
    }
}

#[test]
fn what_differs_in_anything_that_cutting_would_lose_goes_alone() {
    type Change = fn(&mut Message);
    let changes: [Change; 12] = [
        |m| m.port += 1,
        |m| m.ttl -= 1,
        |m| m.traffic_class = 0x80,
        |m| m.traffic_class = 3,
        |m| m.is_extended = true,
        |m| m.padding = 1,
        |m| m.fragment = 0x2000,
        |m| m.fragment = 1,
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
    let host = Recorder {
        refuses_gso: true,
        ..Recorder::default()
    };
    let frames: Vec<_> = equal(150, false).iter().map(Message::frame).collect();
    let counters = give(&frames, 0, &host);
    assert_eq!(counters, CoalescerCounters::default());
    assert_eq!(host.frames(), frames);
}

#[test]
fn segments_of_one_connection_are_one_frame_up_to_one_that_pushes_or_is_shorter() {
    for v6 in [false, true] {
        let mut row = segments(10, v6);
        assert_eq!(frames_given(&row), 1);
        let host = Recorder::default();
        let frames: Vec<_> = row.iter().map(Message::frame).collect();
        let counters = give(&frames, 0, &host);
        assert_eq!((counters.segments, counters.segment_frames), (10, 1));
        assert_eq!(host.frames(), frames);
        row[6].tcp.as_mut().unwrap().flags = 0x18;
        assert_eq!(frames_given(&row), 2, "seven, three");
        let frames: Vec<_> = row.iter().map(Message::frame).collect();
        let host = Recorder::default();
        give(&frames, 0, &host);
        assert_eq!(host.frames(), frames, "and it is the one that pushes");
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
    let changes: [Change; 10] = [
        |tcp| tcp.sequence += 1,
        |tcp| tcp.acknowledges += 1,
        |tcp| tcp.urgent = 1,
        |tcp| tcp.flags = 0x50,
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
            let host = Recorder::default();
            give(&frames, every, &host);
            assert_eq!(host.given(), 1, "{v6} {every}");
            assert_eq!(host.frames(), frames);
        }
        let host = Recorder::default();
        give(&frames[..1], 1, &host);
        assert_eq!(host.frames(), frames[..1]);
    }
}
