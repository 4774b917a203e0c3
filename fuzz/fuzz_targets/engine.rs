//! Any sequence of operations on two engines with two links between them, and anything else on
//! those links: no panic, no bound exceeded, and nothing given to a link or to the host whose
//! offload metadata would lie to a kernel.
#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use packtrain_proto::buffer::LARGE_CAPACITY;
use packtrain_proto::class::{Action, Class, ClassPath, Pack};
use packtrain_proto::config::{
    Config, LinkId, LinkOrder, LinkState, Mode, NodeId, Unused, direct_mark_of, mark_of,
};
use packtrain_proto::direct::Came;
use packtrain_proto::engine::{Engine, Event};
use packtrain_proto::gso;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::dfap;
use packtrain_proto::wire::ethernet::{Header, MacAddr, ether_type};

const LINKS: u8 = 2;
/// More polls than any honest engine answers at one instant under these limits.
const POLLS_MAX: usize = 1 << 16;
/// What a link between the two holds; more is lost.
const WIRE_FRAMES_MAX: usize = 64;

/// Tables of classes, a match and when its frames leave each: 0 now, else within so many milliseconds.
const CLASSES: &[&[(&str, u64)]] = &[
    &[],
    &[("any", 0)],
    &[("any", 20)],
    &[("size -200", 0), ("udp", 5)],
    &[("not ip", 0), ("dport 0-100", 0), ("size 1000-", 50)],
    &[("size -200", WAITS), ("any", WAITS + 1)],
    &[("any", WAITS + 2)],
];
/// … and from here on, waits that others renew, and those of the DFAP paper.
const WAITS: u64 = 1000;

fn class(&(matches, wait_ms): &(&str, u64)) -> Class {
    Class {
        name: "class".parse().expect("a right name"),
        matches: matches.parse().expect("a right match"),
        links: Vec::new(),
        action: Action {
            pack: match wait_ms {
                0 => Pack::Now,
                WAITS => Pack::Scaled(Duration::from_millis(3)),
                ms if ms == WAITS + 1 => Pack::DfapRandom,
                ms if ms > WAITS => Pack::DfapStraight,
                ms => Pack::Within(Duration::from_millis(ms)),
            },
            path: ClassPath::Direct,
            loss_ok: wait_ms == 5,
            ..Action::default()
        },
    }
}

/// The input, a number at a time; zeros after its end.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

fn link_address(node: usize, link: u8) -> MacAddr {
    MacAddr([2, 0, 0, 1, node as u8, link])
}

fn host_address(node: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, node as u8, 0])
}

struct World {
    engines: [Engine; 2],
    /// What stands on the wire towards each node, with its link.
    wires: [VecDeque<(LinkId, Vec<u8>, Offload)>; 2],
    now: Instant,
}

impl World {
    /// `modes`: a bit for each node that speaks only aggregates.
    fn new(modes: u8) -> World {
        let now = Instant::from_nanos(1);
        let engine = |n: usize| {
            let mut config = Config::new(NodeId(0x1000 + n as u64), host_address(n));
            // Small bounds are reached by short inputs.
            config.limits.peers_max = 4;
            config.limits.stations_max = 8;
            config.limits.queued_frames_max = 32;
            config.limits.queued_bytes_max = 200_000;
            config.limits.reassembly_bytes_max = 100_000;
            config.limits.resequencer_bytes_max = 20_000;
            config.direct_frames = true;
            config.dfap.tick = Duration::from_micros(50 << (4 * n));
            if modes >> n & 1 == 1 {
                config.mode = Mode::Dfap;
            }
            config.direct_vlan = Some(7);
            let mut engine = Engine::new(config, now);
            for link in 0..LINKS {
                engine.handle_link_state(LinkId(link), state(n, link, 1500, true), now);
            }
            engine
        };
        World {
            engines: [engine(0), engine(1)],
            wires: [VecDeque::new(), VecDeque::new()],
            now,
        }
    }

    /// Takes everything that an engine wants done, and holds it to its contract.
    fn pump(&mut self, n: usize) {
        let engine = &mut self.engines[n];
        let mut polls = 0;
        while let Some(delivery) = engine.poll_delivery(self.now) {
            let frame = [delivery.head, delivery.body].concat();
            assert!(frame.len() > 14 && frame.len() <= LARGE_CAPACITY);
            gso::check(&frame, &delivery.offload).expect("the host would be lied to");
            polls += 1;
            assert!(polls < POLLS_MAX, "deliveries without end");
        }
        while let Some(transmit) = engine.poll_transmit(self.now) {
            assert!(transmit.link.0 < LINKS);
            let header = Header::parse(transmit.frame).expect("an Ethernet frame");
            gso::check(transmit.frame, &transmit.offload).expect("the link would be lied to");
            if header.ether_type == ether_type::PACKTRAIN {
                assert!(transmit.offload.is_none());
            }
            let wire = &mut self.wires[1 - n];
            if wire.len() < WIRE_FRAMES_MAX {
                wire.push_back((transmit.link, transmit.frame.to_vec(), transmit.offload));
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "transmits without end");
        }
        while let Some(event) = engine.poll_event() {
            if let Event::DirectAsked {
                link,
                direct_mark,
                address,
            } = event
            {
                engine.handle_direct_sent(address, link, 0, self.now);
                engine.handle_direct_received(link, direct_mark, 0, self.now);
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "events without end");
        }
        let seen = engine.snapshot(self.now);
        assert!(seen.peers.len() <= 4 && seen.hosts.len() <= 8);
        assert!(seen.queue.frames <= 32 && seen.queue.bytes <= 200_000);
        assert!(seen.reassembly.bytes <= 100_000 && seen.resequencer.held_bytes <= 20_000);
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let op = script.byte();
        let n = usize::from(op >> 7);
        match op & 0x0f {
            0..=2 => self.host_sends(n, script),
            3..=5 => self.wire_moves(n, script),
            6 => self.stranger_sends(n, script),
            7 | 8 => {
                // From 1 µs to 2 s.
                let shift = u32::from(script.byte() % 22);
                self.now += Duration::from_nanos(1000 << shift);
                self.engines[n].handle_timeout(self.now);
            }
            9 => {
                let link = script.byte() % LINKS;
                let (mtu, carrier) = (576 + script.word() % 9000, script.byte() & 1 == 0);
                let state = state(n, link, mtu, carrier);
                self.engines[n].handle_link_state(LinkId(link), state, self.now);
            }
            10 => self.engines[n].remove_link(LinkId(script.byte() % LINKS), self.now),
            11 => {
                let (link, bytes) = (LinkId(script.byte() % LINKS), usize::from(script.word()));
                self.engines[n].handle_link_queue(link, bytes, self.now);
            }
            12 => {
                let link = LinkId(script.byte() % LINKS);
                self.engines[n].handle_transmit_refused(link, self.now);
                self.engines[n].handle_delivery_refused();
            }
            13 => {
                let mtu = script.word().clamp(68, 65_521);
                let promiscuous = script.byte() & 1 == 1;
                self.engines[n].handle_host_change(mtu, promiscuous, self.now);
            }
            14 => {
                // Everything that stands on both wires arrives, as on most days.
                for to in [0, 1] {
                    for (link, frame, offload) in std::mem::take(&mut self.wires[to]) {
                        self.arrives(to, link, &frame, offload);
                    }
                    self.pump(to);
                }
            }
            _ => match op >> 4 & 7 {
                1 => {
                    let table = CLASSES[usize::from(script.byte()) % CLASSES.len()];
                    self.engines[n].set_classes(table.iter().map(class).collect(), self.now);
                }
                2 => {
                    let (link, frames) = (LinkId(script.byte() % LINKS), script.word().into());
                    let to = host_address(1 - n);
                    self.engines[n].handle_direct_sent(to, link, frames, self.now);
                }
                3 => {
                    let link = script.byte() % LINKS;
                    let mark = mark_of(link_address(1 - n, link)).expect("it has one");
                    let (mark, frames) = (direct_mark_of(mark), script.word());
                    let late = frames % 3 == 0;
                    let came = Came {
                        frames: frames.into(),
                        late: late.then(|| (frames / 5).into()),
                    };
                    self.engines[n].handle_direct_received(LinkId(link), mark, came, self.now);
                }
                4 => {
                    let order = [LinkOrder::Whole, LinkOrder::Socket, LinkOrder::Flow];
                    let order = order[usize::from(script.byte()) % order.len()];
                    self.engines[n].handle_link_order(LinkId(script.byte() % LINKS), order);
                }
                5 => self.engines[n].handle_flows_left_direct(),
                6 => {
                    let (link, use_of) = (LinkId(script.byte() % LINKS), script.byte());
                    let unused = Unused {
                        untagged: use_of & 1 == 0,
                        vlan: use_of & 2 == 0,
                    };
                    self.engines[n].handle_link_use(link, unused, self.now);
                }
                7 => self.is_much(n, script),
                _ => {
                    for engine in &mut self.engines {
                        engine.handle_timeout(self.now);
                    }
                }
            },
        }
        self.pump(n);
    }

    /// More than a link, or than this engine, carries.
    fn is_much(&mut self, n: usize, script: &mut Script<'_>) {
        let (engine, now) = (&mut self.engines[n], self.now);
        match script.byte() % 3 {
            0 => engine.handle_direct_congestion(LinkId(script.byte() % LINKS), now),
            1 => engine.handle_host_read(true),
            _ => engine.handle_direct_small_frames(u64::from(script.word()) * 64, now),
        }
    }

    fn host_sends(&mut self, n: usize, script: &mut Script<'_>) {
        let kind = script.byte();
        let to = match kind & 3 {
            0 | 1 => host_address(1 - n),
            2 => MacAddr::BROADCAST,
            _ => MacAddr([2, 9, 9, 9, 9, script.byte()]),
        };
        let (ether_type, payload, offload) = match (kind >> 2) & 7 {
            0 => (script.word(), script.bytes(40).to_vec(), Offload::NONE),
            kind => udp(script, kind >= 5),
        };
        let header = Header {
            destination: to,
            source: host_address(n),
            ether_type,
        };
        let frame = [&header.to_bytes()[..], &payload].concat();
        let engine = &mut self.engines[n];
        let buffer = engine.buffers().copy_of(&frame);
        engine.handle_host_frame(buffer, offload, self.now);
    }

    /// The next frame towards `n` arrives, whole or not, once or not, now or later.
    fn wire_moves(&mut self, n: usize, script: &mut Script<'_>) {
        let Some((link, mut frame, mut offload)) = self.wires[n].pop_front() else {
            return;
        };
        match script.byte() {
            0..=99 => {}
            100..=129 => return, // lost
            130..=159 => return self.wires[n].push_back((link, frame, offload)), // later
            160..=189 => self.arrives(n, link, &frame.clone(), offload), // and again, below
            // Metadata comes from the receiving kernel, never from the wire: it fits the frame.
            190..=219 => {
                frame.truncate(usize::from(script.word()) % (frame.len() + 1));
                offload = Offload::NONE;
            }
            _ => {
                offload = Offload::NONE;
                let at = usize::from(script.word()) % frame.len();
                frame[at] ^= script.byte() | 1;
            }
        }
        self.arrives(n, link, &frame, offload);
    }

    fn stranger_sends(&mut self, n: usize, script: &mut Script<'_>) {
        let link = script.byte() % LINKS;
        let stranger = MacAddr([2, 7, 7, 7, 7, 7]);
        let message = |source| (link_address(n, link), source, ether_type::PACKTRAIN);
        let aggregate = |source| (host_address(n), source, dfap::ETHER_TYPE);
        let (destination, source, ether_type) = match script.byte() % 5 {
            0 => message(link_address(1 - n, link)),
            1 => message(mark_of(link_address(1 - n, link)).expect("it has one")),
            2 => message(stranger),
            3 => aggregate(host_address(1 - n)),
            _ => aggregate(stranger),
        };
        let len = usize::from(script.word()) % 512;
        let header = Header {
            destination,
            source,
            ether_type,
        };
        let frame = [&header.to_bytes()[..], script.bytes(len)].concat();
        self.arrives(n, LinkId(link), &frame, Offload::NONE);
    }

    fn arrives(&mut self, n: usize, link: LinkId, frame: &[u8], offload: Offload) {
        let engine = &mut self.engines[n];
        let buffer = engine.buffers().copy_of(frame);
        engine.handle_link_frame(link, buffer, offload, self.now);
    }
}

fn state(node: usize, link: u8, mtu: u16, carrier: bool) -> LinkState {
    let address = link_address(node, link);
    LinkState {
        address,
        mark: mark_of(address),
        mtu,
        carrier,
        rate_bps: Some(100_000_000),
    }
}

/// A UDP datagram as a host would send it, of any size; with `cut`, one that stands for several.
fn udp(script: &mut Script<'_>, cut: bool) -> (u16, Vec<u8>, Offload) {
    let len = usize::from(script.word()) % if cut { 60_000 } else { 3_000 } + 1;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&((28 + len) as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend_from_slice(&[0x13, 0x88, 0, script.byte()]);
    packet.extend_from_slice(&((8 + len) as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.resize(28 + len, script.byte());
    let checksum = PartialChecksum {
        start: 34,
        offset: gso::UDP_CHECKSUM_OFFSET,
    };
    // 128 segments at most, as Linux has it.
    let segment_len = (len / 100 + 1 + usize::from(script.byte())).min(1472) as u16;
    let gso = Gso {
        kind: GsoKind::UdpL4,
        ecn: false,
        header_len: 42,
        segment_len,
    };
    let offload = Offload {
        checksum: Some(checksum),
        gso: cut.then_some(gso),
    };
    (ether_type::IPV4, packet, offload)
}

fuzz_target!(|data: &[u8]| {
    let mut script = Script(data);
    let first = script.byte();
    let mut world = World::new(first >> 1 & 3);
    // They know each other before anything strange happens, unless the input wants otherwise.
    if first & 1 == 0 {
        for _ in 0..4 {
            world.now += Duration::from_millis(100);
            world.step(&mut Script(&[15]));
            world.pump(1);
            world.step(&mut Script(&[14]));
        }
    }
    while !script.0.is_empty() {
        world.step(&mut script);
    }
});
