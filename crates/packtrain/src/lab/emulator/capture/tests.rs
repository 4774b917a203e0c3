use std::cell::{Cell, RefCell};

use packtrain_proto::offload::{Gso, GsoKind};
use packtrain_sim::frame::Frame;
use packtrain_sim::net::rate::RateLevel;

use super::*;
use crate::pcapng::tests::{Read, word};

const THERE: WireId = WireId {
    segment: 0,
    wire: 0,
};
const BACK: WireId = WireId {
    segment: 0,
    wire: 1,
};
const WALL: Wall = Wall {
    unix_nanos_at_zero: 1_000_000_000_000_000_000,
};
const BEGAN: Instant = Instant::from_nanos(5_000);
const ROOMY: Bounds = Bounds {
    frames: 1000,
    bytes: 1 << 20,
};

fn plain(len: usize) -> Frame {
    Frame::new(vec![0; len], Offload::NONE)
}

const HEADERS: usize = 14 + 20 + 8;

/// A UDP datagram in one piece, to be cut into datagrams of so many bytes.
fn train(payload_len: usize, segment_len: u16) -> Frame {
    let mut bytes = vec![0; HEADERS + payload_len];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    let len = (20 + 8 + payload_len) as u16;
    bytes[16..18].copy_from_slice(&len.to_be_bytes());
    bytes[23] = 17;
    let udp_len = (8 + payload_len) as u16;
    bytes[38..40].copy_from_slice(&udp_len.to_be_bytes());
    for (i, byte) in bytes[HEADERS..].iter_mut().enumerate() {
        *byte = i as u8;
    }
    let gso = Some(Gso {
        kind: GsoKind::UdpL4,
        ecn: false,
        header_len: HEADERS as u16,
        segment_len,
    });
    let offload = Offload {
        gso,
        ..Offload::NONE
    };
    Frame::new(bytes, offload)
}

fn at(micros: u64) -> Instant {
    Instant::from_nanos(1000 * micros)
}

fn sighting(micros: u64, wire: WireId, frame: Frame) -> Sighting {
    Sighting {
        at: at(micros),
        wire,
        len: frame.bytes.len(),
        frame,
        dropped: None,
    }
}

fn interface(name: &str, limits: Limits) -> Interface {
    Interface {
        name: name.to_owned(),
        description: None,
        speed_bps: None,
        snap_len: limits.snap_len,
    }
}

fn both_ways(captures: &mut Captures, limits: Limits, bounds: Bounds) -> Capture {
    let wires = vec![
        (THERE, interface("a-b.0 a>b", limits)),
        (BACK, interface("a-b.0 b>a", limits)),
    ];
    captures.begin(wires, limits, bounds, (WALL, BEGAN))
}

fn rated(bps: u64) -> Option<RateConfig> {
    Some(RateConfig::ethernet(bps))
}

/// All that a capture writes once the emulator has told it everything.
fn written(capture: Capture) -> Vec<Read> {
    let mut file = Vec::new();
    capture.stream(&mut file, || false, || ()).unwrap();
    Read::all(&file)
}

fn of_kind(file: &[Read], kind: u32) -> Vec<&Read> {
    file.iter().filter(|block| block.kind == kind).collect()
}

/// By interface: what came, and what was dropped.
fn statistics(file: &[Read]) -> Vec<(u64, u64)> {
    let number = |block: &Read, code: u16| {
        let options = block.options(12);
        let (_, value) = options.iter().find(|option| option.0 == code).unwrap();
        u64::from_le_bytes(value[..].try_into().unwrap())
    };
    let blocks = of_kind(file, 5);
    let both = blocks
        .iter()
        .map(|block| (number(block, 4), number(block, 5)));
    both.collect()
}

#[test]
fn a_file_has_the_interfaces_the_frames_at_their_times_of_day_and_why_they_were_dropped() {
    let mut captures = Captures::default();
    let capture = both_ways(&mut captures, Limits::default(), ROOMY);
    let lost = Sighting {
        dropped: Some(WireDrop::Loss),
        ..sighting(30, BACK, plain(80))
    };
    captures.tell(vec![sighting(10, THERE, plain(42)), lost], |_| None);
    captures.end(capture.number);
    let file = written(capture);
    let kinds: Vec<u32> = file.iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [0x0a0d0d0a, 1, 1, 6, 6, 5, 5]);
    let [there, back] = of_kind(&file, 6)[..] else {
        panic!("two frames")
    };
    let unix = WALL.unix_nanos_at_zero;
    assert_eq!((word(&there.body, 0), there.time(4)), (0, unix + 10_000));
    assert_eq!((word(&back.body, 0), back.time(4)), (1, unix + 30_000));
    assert_eq!(there.frame().len(), 60, "as long as a card pads it");
    assert_eq!(there.comment(), None);
    assert_eq!(back.comment().as_deref(), Some("dropped: loss"));
    assert_eq!(statistics(&file), [(1, 0), (1, 0)]);
    let statistics = of_kind(&file, 5);
    assert_eq!(statistics[0].time(4), unix + 30_000);
}

#[test]
fn segments_of_a_frame_are_as_far_apart_as_their_own_wire_time() {
    // 10 Mbit/s: 1000 bytes of payload are 1042 and 24 on the wire, 852.8 µs; the last 60 and 24.
    let seen = sighting(10_000, THERE, train(3010, 1000));
    let frames = on_the_wire(seen.clone(), rated(10_000_000));
    let nanos: Vec<u64> = frames.iter().map(|seen| seen.at.as_nanos()).collect();
    let last = 10_000_000;
    let short = last - 67_200;
    assert_eq!(nanos, [short - 2 * 852_800, short - 852_800, short, last]);
    let lens: Vec<usize> = frames.iter().map(|seen| seen.bytes.len()).collect();
    assert_eq!(lens, [1042, 1042, 1042, 60]);
    assert_eq!(frames[1].bytes[42], (1000 % 256) as u8);
    // Without a rate they take no time.
    let at_once = on_the_wire(seen, None);
    assert!(at_once.iter().all(|seen| seen.at == at(10_000)));
}

#[test]
fn segments_take_the_time_of_their_ip_packets_where_the_rate_counts_these() {
    let rate = RateConfig {
        bps: 8_000_000,
        level: RateLevel::Ip,
    };
    let frames = on_the_wire(sighting(9000, THERE, train(2000, 1000)), Some(rate));
    let times: Vec<Instant> = frames.iter().map(|seen| seen.at).collect();
    assert_eq!(times, [at(9000 - 1028), at(9000)]);
}

#[test]
fn what_was_dropped_whole_was_dropped_at_one_time() {
    let seen = Sighting {
        dropped: Some(WireDrop::QueueFull),
        ..sighting(10_000, THERE, train(3000, 1000))
    };
    let frames = on_the_wire(seen, rated(10_000_000));
    let times: Vec<Instant> = frames.iter().map(|seen| seen.at).collect();
    assert_eq!(times, [at(10_000); 3]);
}

#[test]
fn what_no_card_could_cut_is_shown_as_it_came() {
    let mut frame = train(3000, 1000);
    frame.offload.gso.as_mut().unwrap().header_len = 7;
    let bytes = frame.bytes.clone();
    let seen = Sighting {
        dropped: Some(WireDrop::BadOffload),
        ..sighting(1, THERE, frame)
    };
    let as_it_came = OnTheWire {
        at: at(1),
        len: bytes.len(),
        bytes,
    };
    assert_eq!(on_the_wire(seen, None), [as_it_came]);
}

#[test]
fn an_answer_within_the_time_of_a_train_stands_between_its_segments() {
    let mut captures = Captures::default();
    let capture = both_ways(&mut captures, Limits::default(), ROOMY);
    let rate = |_| rated(10_000_000);
    let seen = vec![
        sighting(9500, BACK, plain(60)),
        sighting(10_000, THERE, train(2000, 1000)),
    ];
    captures.tell(seen, rate);
    captures.end(capture.number);
    let file = written(capture);
    let frames = of_kind(&file, 6);
    let interfaces: Vec<u32> = frames.iter().map(|block| word(&block.body, 0)).collect();
    assert_eq!(interfaces, [0, 1, 0]);
}

#[test]
fn what_does_not_fit_is_dropped_and_counted_as_the_frames_of_its_direction() {
    let bounds = Bounds {
        frames: 3,
        bytes: 10_000,
    };
    let mut captures = Captures::default();
    let capture = both_ways(&mut captures, Limits::default(), bounds);
    let seen = vec![
        sighting(1, THERE, plain(100)),
        sighting(2, BACK, train(9000, 1000)),
        // 9142 bytes wait: no room for another train, but for a frame.
        sighting(3, BACK, train(2000, 1000)),
        sighting(4, THERE, plain(60)),
        // Three wait.
        sighting(5, THERE, plain(60)),
        sighting(6, BACK, plain(60)),
    ];
    captures.tell(seen, |_| None);
    captures.end(capture.number);
    let file = written(capture);
    assert_eq!(of_kind(&file, 6).len(), 1 + 9 + 1);
    assert_eq!(statistics(&file), [(2 + 1, 1), (9 + 3, 2 + 1)]);
}

#[test]
fn there_is_room_again_for_what_was_written() {
    let bounds = Bounds {
        frames: 2,
        bytes: 200,
    };
    let mut captures = Captures::default();
    let mut capture = both_ways(&mut captures, Limits::default(), bounds);
    for round in 0..3 {
        let two = || sighting(round, THERE, plain(100));
        captures.tell(vec![two(), two(), two()], |_| None);
        let mut order = Order::default();
        for seen in capture.next_batch(Duration::ZERO).unwrap() {
            capture.put_in_order(seen, &mut order);
        }
    }
    captures.end(capture.number);
    let dropped = &capture.backlog.dropped[0];
    assert_eq!(dropped.load(Relaxed), 3);
}

#[test]
fn a_reader_who_does_not_read_holds_nobody_up() {
    let mut captures = Captures::default();
    let bounds = Bounds {
        frames: 50,
        bytes: 1 << 20,
    };
    let capture = both_ways(&mut captures, Limits::default(), bounds);
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    let number = capture.number;
    let thread = std::thread::spawn(move || capture.stream(&writer, || false, || ()));
    for micros in 0..2000 {
        captures.tell(vec![sighting(micros, THERE, plain(1500))], |_| None);
    }
    captures.end(number);
    // Only now somebody reads.
    let mut file = Vec::new();
    io::Read::read_to_end(&mut &reader, &mut file).unwrap();
    thread.join().unwrap().unwrap();
    let file = Read::all(&file);
    let [(received, dropped), _] = statistics(&file)[..] else {
        panic!("two interfaces")
    };
    assert_eq!(received, 2000);
    assert!(dropped > 0);
    assert_eq!(of_kind(&file, 6).len() as u64, received - dropped);
}

#[test]
fn it_ends_after_so_many_frames_and_keeps_so_much_of_each() {
    let limits = Limits {
        frames: Some(2),
        snap_len: 50,
        held: false,
    };
    let mut captures = Captures::default();
    let capture = both_ways(&mut captures, limits, ROOMY);
    // It ends though the emulator would tell more.
    captures.tell(vec![sighting(10, THERE, train(3000, 1000))], |_| None);
    let file = written(capture);
    let frames = of_kind(&file, 6);
    assert_eq!(frames.len(), 2);
    assert_eq!(
        (frames[0].frame().len(), word(&frames[0].body, 16)),
        (50, 1042)
    );
    assert_eq!(word(&of_kind(&file, 1)[0].body, 4), 50);
    assert_eq!(statistics(&file)[0], (2, 0));
}

#[test]
fn what_is_held_is_written_when_the_reader_wants_no_more() {
    let mut captures = Captures::default();
    let limits = Limits {
        held: true,
        ..Limits::default()
    };
    let capture = both_ways(&mut captures, limits, limits.bounds());
    let number = capture.number;
    captures.tell(vec![sighting(1, THERE, plain(60))], |_| None);
    captures.tell(vec![sighting(2, BACK, plain(70))], |_| None);
    let file = RefCell::new(Vec::new());
    let frames = || of_kind(&Read::all(&file.borrow()), 6).len();
    let looks = Cell::new(0);
    let gone = || {
        looks.set(looks.get() + 1);
        assert_eq!(frames(), 0, "the head alone");
        looks.get() > 3
    };
    let stop = || drop(captures.end(number));
    capture.stream(Into(&file), gone, stop).unwrap();
    assert_eq!((frames(), looks.get() > 3), (2, true));
    assert!(captures.end(number).is_empty(), "it was asked to end");
}

/// A file that can be read meanwhile.
struct Into<'a>(&'a RefCell<Vec<u8>>);

impl Write for Into<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_wire_is_watched_until_the_last_capture_of_it_ends() {
    let mut captures = Captures::default();
    let limits = Limits::default();
    let both = both_ways(&mut captures, limits, ROOMY);
    let wires = vec![(BACK, interface("a-b.0 b>a", limits))];
    let one = captures.begin(wires, limits, ROOMY, (WALL, BEGAN));
    let seen = vec![sighting(1, THERE, plain(60)), sighting(2, BACK, plain(70))];
    captures.tell(seen, |_| None);
    assert_eq!(captures.end(both.number), [THERE, BACK]);
    let wanted = |captures: &Captures| [THERE, BACK].map(|wire| captures.wanted_of(wire));
    let whole = Keep {
        bytes: usize::MAX,
        heads_only: false,
    };
    assert_eq!(wanted(&captures), [None, Some(whole)]);
    assert_eq!(captures.end(one.number), [BACK]);
    assert!(captures.end(one.number).is_empty());
    assert_eq!(wanted(&captures), [None, None]);
    assert_eq!(of_kind(&written(both), 6).len(), 2);
    let file = written(one);
    let [frame] = of_kind(&file, 6)[..] else {
        panic!("one frame")
    };
    assert_eq!((word(&frame.body, 0), frame.frame().len()), (0, 70));
}

#[test]
fn as_much_is_kept_of_a_frame_as_the_one_wants_who_wants_most() {
    let mut captures = Captures::default();
    let of = |snap_len| Limits {
        snap_len,
        ..Limits::default()
    };
    let wanted = |captures: &Captures| captures.wanted_of(THERE).map(|keep| keep.bytes);
    let little = both_ways(&mut captures, of(50), ROOMY);
    assert_eq!(wanted(&captures), Some(50));
    let more = both_ways(&mut captures, of(70), ROOMY);
    assert_eq!(wanted(&captures), Some(70));
    let cut = Sighting {
        len: 1514,
        ..sighting(1, THERE, plain(70))
    };
    captures.tell(vec![cut], |_| None);
    captures.end(more.number);
    assert_eq!(wanted(&captures), Some(50));
    captures.end(little.number);
    for (capture, kept) in [(little, 50), (more, 70)] {
        let file = written(capture);
        let [frame] = of_kind(&file, 6)[..] else {
            panic!("one frame")
        };
        assert_eq!((frame.frame().len(), word(&frame.body, 16)), (kept, 1514));
    }
}

#[test]
fn a_reader_who_goes_is_noticed_though_nothing_passes() {
    let mut captures = Captures::default();
    let capture = both_ways(&mut captures, Limits::default(), ROOMY);
    let number = capture.number;
    let mut file = Vec::new();
    let mut looks = 0;
    let gone = || {
        looks += 1;
        looks > 1
    };
    let ended = || assert_eq!(captures.end(number), [THERE, BACK]);
    capture.stream(&mut file, gone, ended).unwrap();
    assert_eq!(statistics(&Read::all(&file)), [(0, 0), (0, 0)]);
}

#[test]
fn what_was_seen_is_written_when_nothing_follows() {
    let mut captures = Captures::default();
    let capture = both_ways(&mut captures, Limits::default(), ROOMY);
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    let thread = std::thread::spawn(move || capture.stream(&writer, || false, || ()));
    // So slow a wire that it is held to be put in order.
    captures.tell(vec![sighting(1, THERE, plain(60))], |_| rated(1_000_000));
    let mut reader = io::BufReader::new(reader);
    let mut next = || pcapng::Block::read(&mut reader).unwrap().unwrap();
    while !next().is_packet() {}
    captures.finish();
    thread.join().unwrap().unwrap();
    assert_eq!(next().dropped(), Some(0));
}

#[test]
fn heads_alone_are_wanted_where_nobody_wants_more() {
    let mut captures = Captures::default();
    let held = Limits {
        snap_len: 134,
        held: true,
        ..Limits::default()
    };
    let _measures = both_ways(&mut captures, held, ROOMY);
    let heads = Keep {
        bytes: 134,
        heads_only: true,
    };
    assert_eq!(captures.wanted_of(THERE), Some(heads));
    let watches = both_ways(&mut captures, Limits::default(), ROOMY);
    let whole = Keep {
        bytes: usize::MAX,
        heads_only: false,
    };
    assert_eq!(captures.wanted_of(THERE), Some(whole));
    captures.end(watches.number);
    assert_eq!(captures.wanted_of(THERE), Some(heads));
}

#[test]
fn the_head_of_a_train_tells_all_of_its_segments() {
    let whole = sighting(9000, THERE, train(2500, 1000));
    let mut head = whole.clone();
    head.frame.bytes.truncate(HEADERS);
    assert_eq!(head.segment_count(), 3);
    let [of_whole, of_head] = [whole, head].map(|seen| on_the_wire(seen, rated(10_000_000)));
    let told = |frames: &[OnTheWire]| -> Vec<(Instant, usize, Vec<u8>)> {
        let headers = |seen: &OnTheWire| {
            let mut headers = seen.bytes[..HEADERS].to_vec();
            // The checksum of content that was not kept.
            headers[40..42].fill(0);
            (seen.at, seen.len, headers)
        };
        frames.iter().map(headers).collect()
    };
    assert_eq!(told(&of_head), told(&of_whole));
}

#[test]
fn what_finds_no_room_is_counted_by_its_segments_though_only_its_head_was_kept() {
    let mut captures = Captures::default();
    let none = Bounds { frames: 0, ..ROOMY };
    let capture = both_ways(&mut captures, Limits::default(), none);
    let mut head = sighting(1, THERE, train(2500, 1000));
    head.frame.bytes.truncate(HEADERS);
    captures.tell(vec![head], |_| None);
    captures.end(capture.number);
    assert_eq!(statistics(&written(capture))[0], (3, 3));
}
