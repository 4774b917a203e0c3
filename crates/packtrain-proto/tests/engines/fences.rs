//! Links whose queues let frames overtake each other, one or several, and flows that change between the direct path
//! and the engine thousands of times: nothing is lost, and nothing of a flow is overtaken, however long the way is.
//!
//! The programs and queues of the kernel are written down here anew, as simply as they can be.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::support::{MTU, config, pt0};
use packtrain_proto::class::{Action, Class, KernelPath};
use packtrain_proto::config::{Balance, LinkId, LinkOrder, LinkState, direct_mark_of, mark_of};
use packtrain_proto::direct::leave::{Leave, Leaving, Left};
use packtrain_proto::direct::{Came, ENGINE_SURE_BPS};
use packtrain_proto::engine::{Engine, Event};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{DirectSnapshot, DropReason};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

const FLOWS: usize = 6;

/// Frames of one that the host has sent, of which the last got, and how many.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    sent: u32,
    last: u32,
    got: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A message of the engine's arrives at this side by this link.
    Message(usize, usize, Vec<u8>),
    /// Frame n of this flow, past both engines, by this link.
    Direct(usize, usize, u32),
    HostSends(usize),
    /// A link is closed to direct frames by force, or opened again.
    Toggle,
    /// A link loses what is on it, and its carrier for a while.
    Cut(usize),
    Heal(usize),
}

/// Of one direction.
#[derive(Clone, Copy, Debug)]
struct Way(Duration);

struct Setting {
    /// Of each link.
    ways: Vec<Way>,
    /// One in so many direct frames is lost.
    loss: Option<u64>,
    fenced: bool,
    /// Links are cut now and then.
    cuts: bool,
    balance: Balance,
}

impl Setting {
    fn over(ways: Vec<Way>) -> Setting {
        Setting {
            ways,
            loss: None,
            fenced: true,
            cuts: false,
            balance: Balance::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// When the last one of either of its two queues has left it.
    queues: [Instant; 2],
    sent: u32,
    came: u32,
    /// One in so many comes long after later ones of its flow; 0: none does.
    late_one_in: u32,
    late: u32,
    is_cut: bool,
}

struct World {
    now: Instant,
    random: u64,
    setting: Setting,
    engines: [Engine; 2],
    ahead: BinaryHeap<Reverse<(Instant, u64, Happening)>>,
    numbered: u64,
    flows: [Flow; FLOWS],
    links: Vec<Link>,
    leave: Leave,
    forced: bool,
    drained: u64,
    asked: Option<u64>,
    /// Whether the receiver looks at what is late.
    looks: bool,
    lost: u32,
    returns: u32,
    overtaken: u32,
}

fn address_of(side: usize, link: usize) -> MacAddr {
    MacAddr([0x0a, 0, 0, 0, link as u8, side as u8 + 1])
}

fn state_of(side: usize, link: usize) -> LinkState {
    let address = address_of(side, link);
    LinkState {
        address,
        mark: mark_of(address),
        mtu: MTU,
        carrier: true,
        rate_bps: None,
    }
}

fn id(link: usize) -> LinkId {
    LinkId(link as u8)
}

impl World {
    fn new(seed: u64, setting: Setting) -> World {
        let links = setting.ways.len();
        let engine = |side| {
            let mut config = config(side);
            config.direct_frames = true;
            config.mtu = MTU;
            config.balance = setting.balance;
            // They are cut again and again, and to be used in between.
            config.hold_time = Duration::ZERO;
            let mut engine = Engine::new(config, Instant::ZERO);
            for link in 0..links {
                engine.handle_link_state(id(link), state_of(side, link), Instant::ZERO);
                engine.handle_link_order(id(link), LinkOrder::Flow);
            }
            let may_be_lost = Class {
                name: "all".parse().unwrap(),
                matches: "any".parse().unwrap(),
                links: Vec::new(),
                action: Action {
                    loss_ok: true,
                    ..Action::default()
                },
            };
            engine.set_classes(vec![may_be_lost], Instant::ZERO);
            engine
        };
        World {
            now: Instant::ZERO,
            random: seed,
            engines: [engine(0), engine(1)],
            ahead: BinaryHeap::new(),
            numbered: 0,
            flows: [Flow::default(); FLOWS],
            links: vec![Link::default(); links],
            leave: Leave::default(),
            forced: false,
            drained: 0,
            asked: None,
            looks: false,
            lost: 0,
            returns: 0,
            overtaken: 0,
            setting,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        // splitmix64
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn at(&mut self, at: Instant, happening: Happening) {
        self.numbered += 1;
        self.ahead.push(Reverse((at, self.numbered, happening)));
    }

    /// As the program before `pt0`.
    fn host_sends(&mut self, flow: usize) {
        let number = self.flows[flow].sent + 1;
        self.flows[flow].sent = number;
        let left = self.leave.frame(&Leaving {
            to: pt0(1),
            slot: flow as u32,
            path: KernelPath::LossOk,
            payload: 60,
            tcp: None,
        });
        let returns = match left {
            Left::Direct(link) => {
                return self.leave_directly(usize::from(link.0), flow, number);
            }
            Left::Engine { returns } => returns,
        };
        let bytes = frame(flow, number);
        let copy = self.engines[0].buffers().copy_of(&bytes);
        self.engines[0].handle_host_frame(copy, Offload::NONE, self.now);
        self.returns += u32::from(returns);
        if returns && self.setting.fenced {
            self.tell_sent();
            self.engines[0].handle_flows_left_direct();
        }
    }

    /// By one of two queues, each first in, first out.
    fn leave_directly(&mut self, by: usize, flow: usize, number: u32) {
        let busy_for = Duration::from_micros(self.below(200));
        let way = self.setting.ways[by].0;
        let is_lost = match self.setting.loss {
            Some(one_in) => self.below(one_in) == 0,
            None => false,
        };
        let link = &mut self.links[by];
        link.sent += 1;
        let queue = &mut link.queues[flow % 2];
        *queue = (*queue).max(self.now) + busy_for;
        let arrives = *queue + way;
        match is_lost || link.is_cut {
            true => self.lost += 1,
            false => self.at(arrives, Happening::Direct(by, flow, number)),
        }
    }

    fn tell_sent(&mut self) {
        for (number, link) in self.links.iter().enumerate() {
            self.engines[0].handle_direct_sent(pt0(1), id(number), link.sent, self.now);
        }
    }

    fn got(&mut self, flow: usize, number: u32) {
        let flow = &mut self.flows[flow];
        self.overtaken += u32::from(number <= flow.last);
        flow.last = flow.last.max(number);
        flow.got += 1;
    }

    /// As the daemon does after each turn.
    fn settle(&mut self) {
        for _ in 0..1000 {
            let mut idle = true;
            for side in 0..2 {
                idle &= !self.turn(side);
            }
            if idle {
                return;
            }
        }
        panic!("the engines never come to rest");
    }

    fn turn(&mut self, side: usize) -> bool {
        let mut moved = false;
        while let Some(delivery) = self.engines[side].poll_delivery(self.now) {
            let (flow, number) = parse(&[delivery.head, delivery.body].concat());
            self.got(flow, number);
            moved = true;
        }
        while let Some(transmit) = self.engines[side].poll_transmit(self.now) {
            let link = usize::from(transmit.link.0);
            let message = transmit.frame.to_vec();
            if !self.links[link].is_cut {
                let arrives = self.now + self.setting.ways[link].0;
                self.at(arrives, Happening::Message(1 - side, link, message));
            }
        }
        for link in 0..self.links.len() {
            self.engines[side].handle_link_queue(id(link), 0, self.now);
        }
        while let Some(event) = self.engines[side].poll_event() {
            moved = true;
            match event {
                Event::PathsChanged if side == 0 => self.publish(),
                Event::DirectAsked { link, .. } => {
                    let number = usize::from(link.0);
                    let mark = mark_of(address_of(1 - side, number)).unwrap();
                    let of_link = &self.links[number];
                    let came = Came {
                        frames: [0, of_link.came][side],
                        late: self.looks.then_some([0, of_link.late][side]),
                    };
                    let mark = direct_mark_of(mark);
                    self.engines[side].handle_direct_received(link, mark, came, self.now);
                }
                Event::Drained { ticket } if side == 0 && self.asked == Some(ticket) => {
                    self.asked = None;
                    self.set_drained(ticket);
                }
                _ => {}
            }
        }
        if self.engines[side]
            .poll_timeout()
            .is_some_and(|at| at <= self.now)
        {
            self.engines[side].handle_timeout(self.now);
        }
        moved
    }

    fn set_drained(&mut self, ticket: u64) {
        self.drained = ticket;
        self.leave.set_drained(ticket);
    }

    fn publish(&mut self) {
        self.asked = None;
        self.set_drained(0);
        self.leave
            .set_destinations(self.engines[0].direct_destinations());
        self.tell_sent();
    }

    /// Until then, with flows of a thousand frames a second.
    fn run(&mut self, until: Instant) {
        loop {
            self.settle();
            // What has a ticket up to now?
            let tickets = self.leave.tickets();
            if self.asked.is_none() && tickets > self.drained {
                self.asked = Some(tickets);
                self.engines[0].request_drain(tickets, self.now);
                continue;
            }
            let ahead = self.ahead.peek().map(|Reverse((at, ..))| *at);
            let timeouts = self.engines.iter().map(|engine| engine.poll_timeout());
            let next = timeouts.chain([ahead]).flatten().min().unwrap_or(until);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            let due = |ahead: &mut BinaryHeap<Reverse<(Instant, u64, Happening)>>, now| {
                let is_due = ahead.peek().is_some_and(|Reverse((at, ..))| *at <= now);
                is_due.then(|| ahead.pop().unwrap().0.2)
            };
            while let Some(happening) = due(&mut self.ahead, self.now) {
                self.happens(happening);
            }
        }
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Message(side, link, bytes) => {
                let copy = self.engines[side].buffers().copy_of(&bytes);
                self.engines[side].handle_link_frame(id(link), copy, Offload::NONE, self.now);
            }
            Happening::Direct(link, flow, number) => {
                let at = &mut self.links[link];
                at.came += 1;
                at.late += u32::from(at.late_one_in > 0 && at.came.is_multiple_of(at.late_one_in));
                self.got(flow, number);
            }
            Happening::HostSends(flow) => {
                self.host_sends(flow);
                // In bursts, and pauses in which what went to the engine is delivered.
                let pause = match self.below(20) {
                    0 => 2000 + 8 * self.longest_way_us(),
                    _ => 0,
                };
                let next = self.now + Duration::from_micros(pause + self.below(1000));
                self.at(next, Happening::HostSends(flow));
            }
            Happening::Toggle => {
                self.forced = !self.forced;
                let next = match self.forced {
                    true => {
                        let link = self.below(self.links.len() as u64);
                        self.leave.close(id(link as usize));
                        500 + self.below(1000)
                    }
                    false => {
                        self.publish();
                        4000 + 8 * self.longest_way_us()
                    }
                };
                let next = self.now + Duration::from_micros(next);
                self.at(next, Happening::Toggle);
            }
            Happening::Cut(link) => {
                self.set_carrier(link, false);
                let heals = self.now + Duration::from_micros(50_000 + self.below(100_000));
                self.at(heals, Happening::Heal(link));
            }
            Happening::Heal(link) => {
                self.set_carrier(link, true);
                let other = self.below(self.links.len() as u64) as usize;
                let next = self.now + Duration::from_micros(self.below(400_000));
                self.at(next, Happening::Cut(other));
            }
        }
    }

    fn longest_way_us(&self) -> u64 {
        let ways = self.setting.ways.iter().map(|way| way.0.as_micros() as u64);
        ways.max().expect("a link")
    }

    /// What was on it is gone with it.
    fn set_carrier(&mut self, link: usize, carrier: bool) {
        self.links[link].is_cut = !carrier;
        let mut gone = 0;
        self.ahead
            .retain(|Reverse((_, _, happening))| match happening {
                Happening::Message(_, by, _) => *by != link,
                Happening::Direct(by, ..) => {
                    gone += u32::from(*by == link);
                    *by != link
                }
                _ => true,
            });
        self.lost += gone;
        for side in 0..2 {
            let state = LinkState {
                carrier,
                ..state_of(side, link)
            };
            self.engines[side].handle_link_state(id(link), state, self.now);
        }
    }

    /// Flows that change all the time, until as many have come back as are wanted.
    fn change(&mut self, returns: u32) {
        self.run(self.now + Duration::from_secs(2));
        let ways = self.engines[0].direct_destinations().len();
        let peers = self.engines[0].snapshot(self.now).peers;
        assert_eq!(ways, self.links.len(), "{peers:?}");
        for flow in 0..FLOWS {
            self.at(self.now, Happening::HostSends(flow));
        }
        self.at(self.now, Happening::Toggle);
        if self.setting.cuts {
            self.at(self.now, Happening::Cut(0));
        }
        while self.returns < returns {
            self.run(self.now + Duration::from_secs(1));
            assert!(
                self.now < Instant::ZERO + Duration::from_secs(1000),
                "{} of {returns} have come back: {:?}",
                self.returns,
                self.direct(0)
            );
        }
        // No more is sent, and all arrives.
        self.ahead.retain(|Reverse((_, _, happening))| {
            let goes_on = Happening::HostSends(0)..=Happening::Toggle;
            !goes_on.contains(happening) && !matches!(happening, Happening::Cut(_))
        });
        self.run(self.now + Duration::from_secs(2));
    }

    fn direct(&self, side: usize) -> DirectSnapshot {
        self.engines[side].snapshot(self.now).direct
    }
}

fn frame(flow: usize, number: u32) -> Vec<u8> {
    let mut frame = [pt0(1).0, pt0(0).0].concat();
    frame.extend_from_slice(&[8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend_from_slice(&[
        10, 0, 0, 1, 10, 0, 0, 2, 0x10, flow as u8, 0x20, 0, 0, 40, 0, 0,
    ]);
    frame.extend_from_slice(&number.to_be_bytes());
    frame.resize(74, 0);
    frame
}

fn parse(frame: &[u8]) -> (usize, u32) {
    let number = frame[42..46].try_into().expect("four bytes");
    (frame[35].into(), u32::from_be_bytes(number))
}

fn us(us: u64) -> Way {
    Way(Duration::from_micros(us))
}

/// Of frames that nobody has lost.
fn assert_all_has_come(world: &World, what: &str) {
    assert_eq!(world.overtaken, 0, "{what}: {:?}", world.direct(1));
    let sum = |of: fn(&Flow) -> u32| world.flows.iter().map(of).sum::<u32>();
    let (sent, got) = (sum(|flow| flow.sent), sum(|flow| flow.got));
    assert_eq!(got + world.lost, sent, "{what}");
    let direct: u32 = world.links.iter().map(|link| link.sent).sum();
    assert!(
        direct > sent / 40 && direct < sent,
        "{what}: {direct} of {sent}"
    );
    let dropped = world.engines[1].snapshot(world.now).drops;
    // What was late may have gone again meanwhile.
    let again = world.engines[0].snapshot(world.now).replay.repaired;
    let twice = dropped.get(DropReason::Duplicate);
    let dropped_in_all: u64 = dropped.iter().map(|(_, n)| n).sum();
    assert!(
        world.setting.cuts || (dropped_in_all == twice && twice <= again && again <= 10),
        "{what}: {again} went again, {dropped:?}"
    );
}

#[test]
fn flows_that_change_thousands_of_times_lose_nothing_and_overtake_nothing() {
    for (seed, way_us, returns) in [(1, 0, 5000), (2, 2_500, 3000), (3, 25_000, 1200)] {
        let mut world = World::new(seed, Setting::over(vec![us(way_us)]));
        world.change(returns);
        assert_all_has_come(&world, &format!("{way_us} us"));
        let (sent, received) = (world.direct(0), world.direct(1));
        assert!(received.fences > 500, "{received:?}");
        assert_eq!((received.fences_given_up, sent.lost), (0, 0), "{way_us} us");
    }
}

/// By a short one trains would overtake what is on a long one.
#[test]
fn nor_do_they_over_several_links() {
    for (seed, ways, returns) in [
        (5, vec![us(0), us(0)], 3000),
        (6, vec![us(100), us(2_500)], 2000),
        (7, vec![us(2_500), us(25_000)], 1000),
        (8, vec![us(0), us(200), us(4_000)], 1000),
    ] {
        let what = format!("{ways:?}");
        let mut world = World::new(seed, Setting::over(ways));
        world.change(returns);
        assert_all_has_come(&world, &what);
        let (sent, received) = (world.direct(0), world.direct(1));
        assert!(received.fences > 300, "{what}: {received:?}");
        assert_eq!((received.fences_given_up, sent.lost), (0, 0), "{what}");
        assert!(world.links.iter().all(|link| link.sent > 500), "{what}");
    }
}

#[test]
fn a_link_that_is_cut_takes_direct_frames_with_it_and_nothing_else() {
    for (seed, ways) in [(9, vec![us(0), us(0)]), (10, vec![us(2_500), us(10_000)])] {
        let what = format!("{ways:?}");
        let mut world = World::new(
            seed,
            Setting {
                cuts: true,
                ..Setting::over(ways)
            },
        );
        world.change(400);
        assert_all_has_come(&world, &what);
        assert!(world.links.iter().all(|link| link.sent > 500), "{what}");
    }
}

#[test]
fn where_direct_frames_are_lost_nothing_else_is_and_nothing_is_overtaken() {
    for ways in [vec![us(2_500)], vec![us(2_500), us(500)]] {
        let mut world = World::new(
            4,
            Setting {
                loss: Some(200),
                ..Setting::over(ways)
            },
        );
        world.change(2000);
        assert_all_has_come(&world, "lost");
        let received = world.direct(1);
        assert!(world.lost > 10, "{}", world.lost);
        let given_up = received.fences_given_up;
        assert!(
            (1..=u64::from(world.lost)).contains(&given_up),
            "{received:?}"
        );
    }
}

/// What the test would see.
#[test]
fn trains_that_are_told_of_nothing_overtake() {
    for ways in [vec![us(0)], vec![us(0), us(2_500)]] {
        let mut world = World::new(
            1,
            Setting {
                fenced: false,
                ..Setting::over(ways)
            },
        );
        world.change(1000);
        assert!(world.overtaken > 20, "{}", world.overtaken);
        assert_eq!(world.direct(1).fences, 0);
    }
}

impl World {
    /// … and counts are told as often as the daemon does.
    fn run_counted(&mut self, ms: u32) {
        for _ in 0..ms / 50 {
            self.run(self.now + Duration::from_millis(50));
            self.tell_sent();
        }
    }

    /// Three links, of which the second delivers one frame in ten late from then on.
    fn with_a_late_link(rate_bps: u64) -> World {
        let mut world = World::new(9, Setting::over(vec![us(100), us(200), us(300)]));
        world.run_counted(2000);
        for flow in 0..FLOWS {
            world.at(world.now, Happening::HostSends(flow));
        }
        world.run_counted(1000);
        assert_eq!(world.stripes(), [0, 0, 0], "the receiver does not look");
        world.looks = true;
        world.run_counted(1000);
        assert_eq!(world.stripes(), [1, 1, 1]);
        world.links[1].late_one_in = 1000;
        world.run_counted(3000);
        assert_eq!(world.stripes(), [1, 1, 1], "that is little");
        world.links[1].late_one_in = 10;
        for _ in 0..800 {
            world.engines[0].handle_direct_rate(id(1), rate_bps, world.now);
            world.run_counted(50);
            if world.stripes() != [1, 1, 1] {
                return world;
            }
        }
        panic!("it is not found: {:?}", world.direct(0));
    }

    /// Of each link that is open to them: whether flows are spread over it.
    fn stripes(&self) -> Vec<u8> {
        let ways = self.engines[0].direct_destinations();
        ways.iter().map(|way| u8::from(way.stripes)).collect()
    }
}

#[test]
fn a_fast_link_by_which_much_is_late_gets_no_flows_that_are_spread_until_it_is_tried_again() {
    let mut world = World::with_a_late_link(ENGINE_SURE_BPS);
    assert_eq!(world.stripes(), [1, 0, 1]);
    let paths = &world.engines[0].snapshot(world.now).peers[0].paths;
    assert!(
        paths[1].direct_late > 50 && !paths[1].direct_stripes,
        "{paths:?}"
    );
    assert_eq!(paths[0].direct_late + paths[2].direct_late, 0);
    // It is tried again, and again found late, and then it is not any more.
    world.run_counted(40_000);
    let direct = world.direct(0);
    assert!((2..=5).contains(&direct.striping_given_up), "{direct:?}");
    assert_eq!(direct.closures.total(), 0);
    world.links[1].late_one_in = 0;
    world.run_counted(20_000);
    assert_eq!(world.stripes(), [1, 1, 1]);
    world.looks = false;
    world.run_counted(1000);
    assert_eq!(world.stripes(), [0, 0, 0]);
}

#[test]
fn what_a_slower_one_disorders_the_engine_takes_over() {
    let world = World::with_a_late_link(ENGINE_SURE_BPS - 1);
    // None of its frames go there directly any more.
    assert_eq!(world.stripes(), [1, 1]);
    let direct = world.direct(0);
    assert_eq!((direct.closures.disorder, direct.closures.total()), (1, 1));
    assert_eq!(direct.striping_given_up, 0);
}

/// Who wants flows to keep to links has said so.
#[test]
fn by_another_policy_than_the_first_finish_no_flow_is_spread() {
    for balance in [Balance::HashPort, Balance::Weighted, Balance::RoundRobin] {
        let over_two = Setting::over(vec![us(100), us(200)]);
        let mut world = World::new(
            10,
            Setting {
                balance,
                ..over_two
            },
        );
        world.looks = true;
        world.run(world.now + Duration::from_secs(2));
        for flow in 0..FLOWS {
            world.at(world.now, Happening::HostSends(flow));
        }
        world.run_counted(1000);
        let ways = world.engines[0].direct_destinations();
        assert!(
            ways.len() == 2 && ways.iter().all(|way| !way.stripes),
            "{balance:?}: {ways:?}"
        );
    }
}
