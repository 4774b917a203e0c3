//! The oracle: a host without a filter gets each frame, and the program says what it would have made of it there. What the
//! program drops has come to nothing: no socket has had it, nothing was sent because of it, and no neighbour is known or
//! known better by it.
//!
//! Hosts and frames are drawn. A seed replays its host and all its frames (`PACKTRAIN_SEED=7`), `PACKTRAIN_FRAMES` sets how many
//! frames there are in all, of which each host gets the same number.

mod draws;
mod effects;
mod exceptions;
mod host;
mod packets;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use packtrain_proto::random::Random;

use self::effects::Effect;
use self::exceptions::Exception;
use self::host::{CAPTURE, Host};
use super::world::{run_once, xdp_context};
use super::*;
use crate::linux::netlink::LocalRoutes;
use crate::linux::test_namespace::in_namespace;

const FRAMES_OF_A_HOST: usize = 1000;
const HOSTS: u64 = 8;
/// Of all frames of a long run; the others are for who needs less time for one.
const SHARE: usize = 20;
const VIOLATIONS_MAX: usize = 12;

/// What comes of frames that pass, and how often at least: so the eye that sees nothing where frames are dropped is not blind.
const USES: &[(&str, usize)] = &[
    ("a UDP socket on all addresses", 50),
    // Only what is out of order, which the connection answers: nobody here knows its numbers.
    ("another segment", 2),
    ("a connected UDP socket", 3),
    ("a raw socket for ICMP", 50),
    ("a raw socket for ICMPv6", 50),
    ("a socket for mDNS", 5),
    (effects::ARP_QUESTION, 20),
    (effects::SOLICITATION, 20),
    (effects::RESET, 20),
    (effects::UNREACHABLE, 20),
    ("an ARP answer", 50),
    ("a neighbour advertisement", 10),
    ("an echo's answer", 10),
    (effects::OPEN_ANSWER, 3),
    ("what is known of a neighbour", 200),
    ("a report of a group, asked for", 3),
];

#[test]
fn what_the_driver_drops_the_kernel_had_no_use_for() {
    compare(Mode::Native, 1);
}

#[test]
fn what_is_dropped_before_the_stack_the_kernel_had_no_use_for() {
    compare(Mode::Generic, 501);
}

#[test]
fn what_is_dropped_at_tc_the_kernel_had_no_use_for() {
    compare(Mode::Tc, 1001);
}

/// What has been seen of all hosts.
#[derive(Default)]
struct Seen {
    filter: Option<Filter>,
    dropped: BTreeMap<Reason, usize>,
    /// Of what passes.
    effects: BTreeMap<&'static str, usize>,
    exceptions: BTreeMap<Exception, usize>,
    violations: Vec<String>,
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

fn compare(mode: Mode, first: u64) {
    let hosts = match number("PACKTRAIN_FRAMES") {
        Some(frames) => (frames as usize / SHARE / FRAMES_OF_A_HOST).max(1) as u64,
        None => HOSTS,
    };
    let seeds = match number("PACKTRAIN_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + hosts,
    };
    let is_whole = seeds.end - seeds.start >= HOSTS;
    let seen = Arc::new(Mutex::new(Seen::default()));
    for seed in seeds {
        let seen = Arc::clone(&seen);
        in_namespace(move || visit(&mut seen.lock().unwrap(), mode, seed));
    }
    let seen = seen.lock().unwrap();
    assert!(seen.violations.is_empty(), "{}", seen.violations.join("\n"));
    if seen.filter.is_some() && is_whole {
        seen.check_that_all_has_been_seen();
    }
}

impl Seen {
    /// What is asserted is not asserted of nothing.
    fn check_that_all_has_been_seen(&self) {
        for (reason, least) in [
            (Reason::ForeignUnicast, 50),
            (Reason::ForeignArp, 25),
            (Reason::ForeignGroup, 100),
            (Reason::ForeignSolicitation, 50),
            (Reason::ClosedTcp, 5),
            (Reason::ClosedUdp, 10),
        ] {
            let times = self.dropped.get(&reason).copied().unwrap_or(0);
            assert!(times >= least, "{reason:?}: {times} of {:?}", self.dropped);
        }
        for (effect, least) in USES {
            let times = self.effects.get(effect).copied().unwrap_or(0);
            assert!(times >= *least, "{effect}: {times} of {:#?}", self.effects);
        }
        // One that no frame needs any more is to go.
        for exception in Exception::COMMON {
            assert!(
                self.exceptions.contains_key(&exception),
                "{exception:?} is not among {:?}",
                self.exceptions
            );
        }
    }
}

/// A filter that judges frames of the host that the thread's namespace is.
struct Judge<'a> {
    filter: &'a mut Filter,
    mode: Mode,
    ifindex: u32,
    counted: Counters,
}

impl Judge<'_> {
    fn new(filter: &mut Filter, mode: Mode, ifindex: u32, asks_ports: bool) -> Judge<'_> {
        let seq = filter.fib_seq().unwrap().expect("routes have a state here");
        let prefixes = LocalRoutes::open().unwrap().read().unwrap();
        assert_eq!(filter.set_local(&prefixes, seq).unwrap(), 0);
        let settings = Settings {
            policy: Policy::Host,
            asks_ports,
            // Behind the driver it stands where it stands, and drops nothing.
            dry_run: mode != Mode::Native,
            ..Settings::default()
        };
        filter.set(settings).unwrap();
        if mode != Mode::Native {
            filter.hold = None;
            filter.attach(ifindex, mode).unwrap();
        }
        let counted = filter.counters().unwrap();
        Judge {
            filter,
            mode,
            ifindex,
            counted,
        }
    }

    /// What the program says of a frame, and what the kernel does with it; `None`: it does not come as far as the program.
    fn put(&mut self, host: &mut Host, frame: &[u8]) -> (Option<Reason>, Vec<Effect>) {
        let reason = match self.mode {
            Mode::Generic | Mode::Tc => None,
            Mode::Native => {
                let context = xdp_context(self.ifindex, frame.len());
                run_once(self.filter, self.mode, frame, context).expect("a test run");
                self.counted_now()
            }
        };
        let mut effects = host.watch.effects_of(frame);
        if self.mode == Mode::Tc {
            // Captures stand before it.
            effects.retain(|effect| *effect != Effect::Received(CAPTURE));
        }
        (reason.or_else(|| self.counted_now()), effects)
    }

    /// The one reason that has been counted since.
    fn counted_now(&mut self) -> Option<Reason> {
        let now = self.filter.counters().unwrap();
        let differ: Vec<Reason> = now
            .iter()
            .zip(self.counted.iter())
            .filter(|(now, before)| now != before)
            .map(|((reason, _), _)| reason)
            .collect();
        self.counted = now;
        match differ[..] {
            [reason] => Some(reason),
            [] => None,
            // What the host sends to a group because of it, and is in that group, comes back to itself there.
            _ => {
                assert_ne!(
                    self.mode,
                    Mode::Native,
                    "one frame, several reasons: {differ:?}"
                );
                None
            }
        }
    }
}

fn visit(seen: &mut Seen, mode: Mode, seed: u64) {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // What it draws first is much the same for seeds that are.
    for _ in 0..20 {
        random.up_to(1);
    }
    let mut host = Host::new(&mut random);
    let mut filter = match seen.filter.take() {
        Some(filter) => filter,
        None => Filter::load().expect("the programs load"),
    };
    let mut judge = Judge::new(&mut filter, mode, host.watch.ifindex(), host.asks_ports);
    for number in 0..FRAMES_OF_A_HOST {
        let frame = draws::a_frame(&mut random);
        let (Some(reason), effects) = judge.put(&mut host, &frame) else {
            continue;
        };
        assert_ne!(reason, Reason::Changing, "no routes change here");
        if !reason.is_drop() {
            for effect in &effects {
                *seen.effects.entry(name_of(effect)).or_default() += 1;
            }
            continue;
        }
        *seen.dropped.entry(reason).or_default() += 1;
        if effects.is_empty() {
            continue;
        }
        if let Some(exception) = Exception::of(&frame, reason, &effects) {
            *seen.exceptions.entry(exception).or_default() += 1;
            continue;
        }
        if has_come_by_itself(&mut judge, &mut host, &frame, &effects) {
            continue;
        }
        seen.violations.push(format!(
            "PACKTRAIN_SEED={seed}, frame {number}: {reason:?}, and {effects:?} of {frame:02x?} at {:?}",
            host.settings
        ));
        if seen.violations.len() >= VIOLATIONS_MAX {
            break;
        }
    }
    seen.filter = Some(filter);
}

/// A timer's doing, in the same moment: with the same frame once more nothing comes. What neighbours are known by is no timer's.
fn has_come_by_itself(
    judge: &mut Judge<'_>,
    host: &mut Host,
    frame: &[u8],
    effects: &[Effect],
) -> bool {
    let may_be = |effect: &Effect| !matches!(effect, Effect::Neighbour(_));
    effects.iter().all(may_be) && judge.put(host, frame).1.is_empty()
}

fn name_of(effect: &Effect) -> &'static str {
    match effect {
        Effect::Received(name) => name,
        Effect::Sent(sent) => sent.what,
        Effect::Neighbour(_) => "what is known of a neighbour",
        Effect::ToReport(_) => "a report of a group, asked for",
    }
}
