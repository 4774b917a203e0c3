//! `direct_leave`, frame by frame, against the engine's own account of its rules ([`Leave`]).

use std::cell::RefCell;

use packtrain_proto::class::{Action, Class, ClassPath, KernelPath};
use packtrain_proto::config::LinkId;
use packtrain_proto::direct::DirectDestination;
use packtrain_proto::direct::leave::{Leave, Leaving, Left};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::tests::{GO_ON, IPV4, PEER, PT0, REDIRECT, close, destination, frame, leave, with_path};
use super::*;

const LINKS: std::ops::Range<u8> = 3..6;
/// Of UDP flows, and what the classes say of each.
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
    /// A frame of this flow; one in some is too large for some links.
    Send {
        flow: u16,
        large: bool,
    },
    /// All tickets but the last so many are delivered.
    Drain(u64),
    /// These links lead to the peer, each open to some.
    Publish(Vec<(u8, OpenTo)>),
    Close(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let open_to = prop_oneof![
        1 => Just(OpenTo::Nobody),
        2 => Just(OpenTo::Classes),
        3 => Just(OpenTo::LossOk),
        4 => Just(OpenTo::All),
    ];
    let links = proptest::sample::subsequence(LINKS.collect::<Vec<_>>(), 0..=3);
    let publish = (links, proptest::collection::vec(open_to, 3))
        .prop_map(|(links, open)| Step::Publish(links.into_iter().zip(open).collect()));
    let flows = 0..PATHS.len() as u16;
    let step = prop_oneof![
        16 => (flows, 0..8).prop_map(|(flow, n)| Step::Send { flow, large: n == 0 }),
        4 => (0u64..5).prop_map(Step::Drain),
        1 => publish,
        1 => LINKS.prop_map(Step::Close),
    ];
    proptest::collection::vec(step, 1..120)
}

fn by_link((link, open_to): (u8, OpenTo)) -> Destination {
    let one = destination();
    let mut outer_destination = one.outer_destination;
    outer_destination.0[5] = link;
    Destination {
        link,
        open_to,
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
        matches: format!("udp sport {port}").parse().unwrap(),
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
    last_link: [Option<LinkId>; PATHS.len()],
}

impl Both<'_> {
    fn bytes(flow: u16, payload: usize) -> Vec<u8> {
        frame(PEER, PT0, IPV4, FIRST_PORT + flow, payload)
    }

    /// All that is remembered of the flows is delivered.
    fn begin(&mut self) {
        self.publish(Vec::new());
        for flow in 0..PATHS.len() as u16 {
            self.send(flow, false).unwrap();
        }
        self.drain(0);
        self.last_link = Default::default();
    }

    fn publish(&mut self, links: Vec<(u8, OpenTo)>) {
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

    fn send(&mut self, flow: u16, large: bool) -> Result<(), TestCaseError> {
        let payload: u16 = if large { 1400 } else { 400 };
        let bytes = Self::bytes(flow, payload.into());
        let (verdict, after) = leave(self.path, &bytes);
        let expected = self.model.frame(&Leaving {
            to: PEER,
            slot: self.slots[usize::from(flow)],
            path: PATHS[usize::from(flow)],
            payload,
        });
        let has_left = self.tally.have_flows_left().unwrap();
        let tickets = self.path.state().unwrap().tickets;
        prop_assert_eq!(tickets, self.model.tickets());
        match expected {
            Left::Direct(link) => {
                prop_assert_eq!((verdict, after[5]), (REDIRECT, link.0));
                prop_assert!(!has_left);
                let last = self.last_link[usize::from(flow)].replace(link);
                self.links_changed += u32::from(last.is_some_and(|last| last != link));
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
            Step::Send { flow, large } => return self.send(flow, large),
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
            last_link: Default::default(),
        });
        let mut runner = TestRunner::new(ProptestConfig {
            cases: 200,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let outcome = runner.run(&steps(), |steps| {
            let mut both = both.borrow_mut();
            both.begin();
            steps.into_iter().try_for_each(|step| both.step(step))
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
        let both = both.into_inner();
        let seen = [both.direct, both.engine, both.returns, both.links_changed];
        assert!(
            both.direct > 500 && both.engine > 500 && both.returns > 100 && both.links_changed > 50,
            "both ways were taken, and back, and other links: {seen:?}"
        );
    });
}
