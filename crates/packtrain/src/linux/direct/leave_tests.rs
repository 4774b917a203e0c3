//! `direct_leave`, frame by frame, against the engine's own account of its rules ([`Leave`]).

use std::cell::RefCell;

use packtrain_proto::class::{Action, Class, ClassPath, KernelPath};
use packtrain_proto::config::LinkId;
use packtrain_proto::direct::DirectDestination;
use packtrain_proto::direct::leave::{Leave, Leaving, Left, LinkQueue, TcpFrame};
use packtrain_proto::offload::Offload;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::close_tests::close;
use super::tests::{
    GO_ON, PEER, PT0, REDIRECT, SEGMENT_HEADERS, destination, index_of, leave, leave_in_segments,
    segment_of, with_path,
};
use super::*;
use crate::clock::Clock;
use crate::linux::packet_socket::{Frames, PacketSocket};
use crate::linux::test_namespace::{ip, run};

/// One frame leaves it, and nothing more while the test is there.
const STANDS: &str = "tbf rate 8bit burst 1600 limit 1000000";
const FRAME_LEN: usize = 1000;
const LINKS: std::ops::Range<u8> = 3..6;
/// Of TCP flows, and what the classes say of each.
const FIRST_PORT: u16 = 1000;
const PATHS: [KernelPath; 8] = [
    KernelPath::Auto,
    KernelPath::Auto,
    KernelPath::Auto,
    KernelPath::LossOk,
    KernelPath::LossOk,
    KernelPath::LossOk,
    KernelPath::Direct,
    KernelPath::Engine,
];

#[derive(Clone, Debug)]
enum Step {
    /// A frame of this flow; one in some is too large for some links, and some are several segments.
    Send {
        flow: u16,
        large: bool,
        bulk: bool,
    },
    /// All tickets but the last so many are delivered.
    Drain(u64),
    /// These links lead to the peer, each open to some.
    Publish(Vec<(u8, OpenTo, bool)>),
    Close(u8),
    /// Of the link's queue: what stands there, and how fast it is.
    Queue {
        link: u8,
        frames: usize,
    },
    Rate {
        link: u8,
        rate: Option<u32>,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let open_to = prop_oneof![
        1 => Just(OpenTo::Nobody),
        2 => Just(OpenTo::Classes),
        3 => Just(OpenTo::LossOk),
        4 => Just(OpenTo::All),
    ];
    let links = proptest::sample::subsequence(LINKS.collect::<Vec<_>>(), 0..=3);
    let open_to = (open_to, proptest::bool::weighted(0.8));
    let publish = (links, proptest::collection::vec(open_to, 3)).prop_map(|(links, open)| {
        let ways = links.into_iter().zip(open);
        Step::Publish(
            ways.map(|(link, (open_to, stripes))| (link, open_to, stripes))
                .collect(),
        )
    });
    let flows = 0..PATHS.len() as u16;
    let step = prop_oneof![
        16 => (flows, 0..8, any::<bool>()).prop_map(|(flow, n, bulk)| Step::Send { flow, large: n == 0, bulk }),
        4 => (0u64..5).prop_map(Step::Drain),
        1 => publish,
        1 => LINKS.prop_map(Step::Close),
    ];
    proptest::collection::vec(step, 1..120)
}

/// Large frames of flows that may be lost with a link, by links that are more or less busy, fast and open to them.
fn busy_links() -> impl Strategy<Value = Vec<Step>> {
    let flows = PATHS.iter().zip(0u16..);
    let loss_ok = flows.filter(|(path, _)| **path == KernelPath::LossOk);
    let flow = proptest::sample::select(loss_ok.map(|(_, flow)| flow).collect::<Vec<_>>());
    // By some a frame is there soon, by others not.
    let rate = prop_oneof![1 => 1u32..10, 3 => 600u32..4_000, 3 => 200_000u32..1_300_000];
    let step = prop_oneof![
        16 => (flow, proptest::bool::weighted(0.9))
            .prop_map(|(flow, bulk)| Step::Send { flow, large: false, bulk }),
        4 => (LINKS, 0usize..6).prop_map(|(link, frames)| Step::Queue { link, frames }),
        4 => (LINKS, proptest::option::weighted(0.8, rate))
            .prop_map(|(link, rate)| Step::Rate { link, rate }),
        1 => LINKS.prop_map(Step::Close),
        1 => Just(Step::Drain(0)),
    ];
    let ways = LINKS.map(|link| (link, OpenTo::LossOk, true));
    let begin = vec![Step::Publish(ways.collect()), Step::Drain(0)];
    proptest::collection::vec(step, 60..120).prop_map(move |steps| [begin.clone(), steps].concat())
}

fn name(link: u8) -> String {
    format!("d{link}")
}

fn by_link((link, open_to, stripes): (u8, OpenTo, bool)) -> Destination {
    let one = destination();
    let mut outer_destination = one.outer_destination;
    outer_destination.0[5] = link;
    Destination {
        link,
        open_to,
        stripes,
        ifindex: index_of(&name(link)),
        outer_destination,
        payload_max: payload_max(link),
        ..one
    }
}

fn payload_max(link: u8) -> u16 {
    if link == 4 { 1000 } else { 1500 }
}

fn as_decided(destination: &Destination) -> DirectDestination {
    DirectDestination {
        address: destination.address,
        link: LinkId(destination.link),
        remote_address: destination.outer_destination,
        outer_source: destination.outer_source,
        kind: destination.kind,
        vlan: None,
        payload_max: destination.payload_max,
        open_to: destination.open_to,
        stripes: destination.stripes,
    }
}

fn class_of(port: u16, path: KernelPath) -> Option<Class> {
    let action = |path, loss_ok| Action {
        path,
        loss_ok,
        ..Action::default()
    };
    let action = match path {
        KernelPath::Auto => return None,
        KernelPath::LossOk => action(ClassPath::Auto, true),
        KernelPath::Direct => action(ClassPath::Direct, false),
        KernelPath::Engine => action(ClassPath::Engine, false),
    };
    Some(Class {
        name: format!("c{port}").parse().unwrap(),
        matches: format!("tcp sport {port}").parse().unwrap(),
        links: Vec::new(),
        action,
    })
}

/// The last frame's slot: it has the newest ticket.
fn slot_of_last(path: &DirectPath) -> u32 {
    let mut maps = path.object.maps();
    let slots = maps.find(|map| map.name() == "slots").expect("a map");
    let ticket = path.state().unwrap().tickets.to_ne_bytes();
    let has_it = |slot: &u32| {
        let value = slots.lookup(&slot.to_ne_bytes(), MapFlags::ANY).unwrap();
        value.unwrap()[..8] == ticket
    };
    (0..4096).find(has_it).expect("the newest ticket")
}

/// The program, and the account of its rules.
struct Both<'a> {
    path: &'a mut DirectPath,
    tally: Tally,
    slots: Vec<u32>,
    model: Leave,
    direct: u32,
    engine: u32,
    returns: u32,
    links_changed: u32,
    /// … of large frames to one where something stood, so that the clock had to say which.
    stripes_changed: u32,
    queues: [LinkQueue; 3],
    last_link: [Option<LinkId>; PATHS.len()],
}

impl Both<'_> {
    /// So many after the EtherType.
    fn bytes(flow: u16, payload: u16) -> Vec<u8> {
        let payload = payload - SEGMENT_HEADERS;
        segment_of(FIRST_PORT + flow, 0, (PEER, PT0), false, payload)
    }

    /// All that is remembered of the flows is delivered.
    fn begin(&mut self) {
        self.publish(Vec::new());
        for flow in 0..PATHS.len() as u16 {
            self.send(flow, false, false).unwrap();
        }
        self.drain(0);
        for link in LINKS {
            self.set_queue(link, 0);
            self.set_rate(link, None);
        }
        self.last_link = Default::default();
    }

    fn publish(&mut self, links: Vec<(u8, OpenTo, bool)>) {
        let wanted: Vec<Destination> = links.into_iter().map(by_link).collect();
        let counted = self.path.set_destinations(&wanted).unwrap();
        self.tally.set_counted(counted);
        let decided = wanted.iter().map(as_decided);
        self.model.set_destinations(decided.collect());
    }

    fn drain(&mut self, but: u64) {
        let drained = self.model.tickets().saturating_sub(but);
        self.model.set_drained(drained);
        self.path.set_drained(drained).unwrap();
    }

    /// So many frames more stand there, or none.
    fn set_queue(&mut self, link: u8, frames: usize) {
        let queue = &mut self.queues[usize::from(link - LINKS.start)];
        let mut socket = PacketSocket::create().unwrap();
        socket.bind(index_of(&name(link)), Frames::All).unwrap();
        let mut send = || socket.send(&[2; FRAME_LEN], Offload::NONE).expect("sent");
        if frames == 0 && queue.backlog_bytes > 0 {
            run(&format!("tc qdisc del dev {} root", name(link)));
            run(&format!("tc qdisc add dev {} root {STANDS}", name(link)));
            // This one has the bucket.
            send();
            queue.backlog_bytes = 0;
        }
        (0..frames).for_each(|_| send());
        queue.backlog_bytes += (frames * FRAME_LEN) as u32;
        self.model.set_queue(LinkId(link), *queue);
    }

    fn set_rate(&mut self, link: u8, rate: Option<u32>) {
        let queue = &mut self.queues[usize::from(link - LINKS.start)];
        queue.rate = rate;
        self.model.set_queue(LinkId(link), *queue);
        let key = u32::from(link).to_ne_bytes();
        let mut watch = [0; WATCH_LEN];
        let now = Clock::start().monotonic_nanos();
        watch[WATCH_MEASURED_AT..][..8].copy_from_slice(&now.to_ne_bytes());
        watch[WATCH_RATE_AT..][..4].copy_from_slice(&rate.unwrap_or(0).to_ne_bytes());
        self.path
            .watches
            .update(&key, &watch, MapFlags::ANY)
            .unwrap();
    }

    fn send(&mut self, flow: u16, large: bool, bulk: bool) -> Result<(), TestCaseError> {
        let payload: u16 = if large { 1400 } else { 400 };
        let bytes = Self::bytes(flow, payload);
        let (verdict, after) = match bulk {
            true => leave_in_segments(self.path, &bytes, payload.into()),
            false => leave(self.path, &bytes),
        };
        let expected = self.model.frame(&Leaving {
            to: PEER,
            slot: self.slots[usize::from(flow)],
            path: PATHS[usize::from(flow)],
            payload,
            tcp: Some(TcpFrame {
                bytes: bytes.len() as u32,
                is_large: bulk,
            }),
        });
        let has_left = self.tally.have_flows_left().unwrap();
        let tickets = self.path.state().unwrap().tickets;
        prop_assert_eq!(tickets, self.model.tickets());
        match expected {
            Left::Direct(link) => {
                prop_assert_eq!((verdict, after[5]), (REDIRECT, link.0));
                prop_assert!(!has_left);
                let last = self.last_link[usize::from(flow)].replace(link);
                let changed = last.is_some_and(|last| last != link);
                self.links_changed += u32::from(changed);
                let stood = self.queues[usize::from(link.0 - LINKS.start)].backlog_bytes > 0;
                self.stripes_changed += u32::from(changed && bulk && stood);
                self.direct += 1;
            }
            Left::Engine { returns } => {
                prop_assert_eq!((verdict, after), (GO_ON, bytes));
                prop_assert_eq!(has_left, returns);
                self.returns += u32::from(returns);
                self.engine += 1;
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Send { flow, large, bulk } => return self.send(flow, large, bulk),
            Step::Queue { link, frames } => self.set_queue(link, frames),
            Step::Rate { link, rate } => self.set_rate(link, rate),
            Step::Drain(but) => self.drain(but),
            Step::Publish(links) => self.publish(links),
            Step::Close(link) => {
                close(self.path, link);
                self.model.close(LinkId(link));
            }
        }
        Ok(())
    }
}

#[test]
fn each_frame_goes_where_the_rules_say() {
    with_path(|path| {
        for link in LINKS {
            let (name, other) = (name(link), format!("o{link}"));
            ip(&format!("link add {name} type veth peer name {other}"));
            for end in [&name, &other] {
                ip(&format!("link set {end} addrgenmode none"));
                ip(&format!("link set {end} up"));
            }
            run(&format!("tc qdisc add dev {name} root {STANDS}"));
        }
        let all = LINKS.map(|link| by_link((link, OpenTo::All, true)));
        path.set_destinations(&all.collect::<Vec<_>>()).unwrap();
        path.set_destinations(&[]).unwrap();
        let ports = FIRST_PORT..;
        let classes = ports
            .zip(PATHS)
            .filter_map(|(port, path)| class_of(port, path));
        path.set_classes(&classes.collect::<Vec<_>>()).unwrap();
        let slots = (0..PATHS.len() as u16).map(|flow| {
            leave(path, &Both::bytes(flow, 400));
            slot_of_last(path)
        });
        let slots: Vec<u32> = slots.collect();
        let mut model = Leave::default();
        for (flow, slot) in slots.iter().enumerate() {
            model.frame(&Leaving {
                to: PEER,
                slot: *slot,
                path: PATHS[flow],
                payload: 400,
                tcp: Some(TcpFrame {
                    bytes: 414,
                    is_large: false,
                }),
            });
        }
        let both = RefCell::new(Both {
            tally: path.tally().unwrap(),
            path,
            slots,
            model,
            direct: 0,
            engine: 0,
            returns: 0,
            links_changed: 0,
            stripes_changed: 0,
            queues: [LinkQueue {
                backlog_bytes: u32::MAX,
                rate: None,
            }; 3],
            last_link: Default::default(),
        });
        let run = |cases, steps: BoxedStrategy<Vec<Step>>| {
            let mut runner = TestRunner::new(ProptestConfig {
                cases,
                failure_persistence: None,
                ..ProptestConfig::default()
            });
            let outcome = runner.run(&steps, |steps| {
                let mut both = both.borrow_mut();
                both.begin();
                steps.into_iter().try_for_each(|step| both.step(step))
            });
            outcome.unwrap_or_else(|failure| panic!("{failure}"));
        };
        run(200, steps().boxed());
        run(25, busy_links().boxed());
        let both = both.into_inner();
        let changed = [both.links_changed, both.stripes_changed];
        let seen = [both.direct, both.engine, both.returns];
        assert!(
            seen.iter()
                .zip([500, 500, 100])
                .all(|(seen, least)| *seen > least)
                && changed[0] > 50
                && changed[1] > 20,
            "both ways were taken, and back, and other links: {seen:?} {changed:?}"
        );
    });
}
