//! A program that stays when whoever has attached it goes.

use super::frames::udp;
use super::rules::rules;
use super::world::{OWN, with_filter};
use super::*;
use crate::linux::test_namespace::{in_namespace, ip};
use packtrain_proto::filter::rules::image::Image;
use packtrain_proto::wire::ethernet::MacAddr;

fn eth0() -> u32 {
    ip("link add eth0 type veth peer name far");
    ip("link set eth0 up");
    let link = crate::linux::netlink::Netlink::open()
        .unwrap()
        .link_by_name("eth0");
    link.unwrap().expect("it is there").ifindex
}

fn staying(policy: Policy) -> Filter {
    let mut filter = Filter::load().unwrap();
    let settings = Settings {
        policy,
        stay: Stay::Stays,
        lease_until_ns: Some(1),
        ..Settings::default()
    };
    filter.set(settings).unwrap();
    filter
}

#[test]
fn rules_go_on_deciding_when_nobody_refreshes_it_and_nothing_else_does() {
    with_filter(|world| {
        let denied = Image::compile(&rules(&["deny: udp dport 9"])).unwrap();
        world.filter.set_rules(Some(&denied)).unwrap();
        let to = |port: u16| udp(OWN, port);
        let foreign = udp(MacAddr([2, 9, 9, 9, 9, 9]), 8);
        let reasons = |world: &super::world::World| {
            [to(9), to(8), foreign.clone()].map(|bytes| world.reason(&bytes))
        };
        assert_eq!(
            reasons(world),
            [Reason::Denied, Reason::Ours, Reason::ForeignUnicast]
        );
        world.set(|set| set.lease_until_ns = Some(1));
        assert_eq!(reasons(world), [Reason::Unrefreshed; 3]);
        world.set(|set| set.stay = Stay::StaysConfirmed);
        assert_eq!(reasons(world), [Reason::Unrefreshed; 3]);
        world.set(|set| set.stay = Stay::Stays);
        assert_eq!(
            reasons(world),
            [Reason::Denied, Reason::Unrefreshed, Reason::Unrefreshed]
        );
    });
}

#[test]
fn it_is_there_when_its_owner_has_gone_until_it_is_taken_away() {
    in_namespace(|| {
        let ifindex = eth0();
        for mode in [Mode::Native, Mode::Generic, Mode::Tc] {
            assert!(standing::find(ifindex).unwrap().is_none(), "{mode}");
            let mut filter = staying(Policy::Nima);
            filter.attach(ifindex, mode).unwrap();
            // Until it is kept it goes with its owner: nothing stays of a start that fails.
            drop(filter);
            assert!(standing::find(ifindex).unwrap().is_none(), "{mode}");
            let mut filter = staying(Policy::Nima);
            filter.attach(ifindex, mode).unwrap();
            filter.keep();
            drop(filter);
            let left = standing::find(ifindex).unwrap().expect("it has stayed");
            assert_eq!(left.mode, mode);
            let told = left.told().unwrap();
            assert_eq!(
                (told.policy, told.stays, told.has_rules),
                (Policy::Nima, true, false)
            );
            assert_eq!(told.lease_until_ns, Some(1));
            left.counters().unwrap();
            left.take_away().unwrap();
        }
        assert!(standing::find(ifindex).unwrap().is_none());
    });
}

#[test]
fn the_next_one_takes_its_place() {
    in_namespace(|| {
        let ifindex = eth0();
        let numbers = |what: &str| {
            let found = standing::find(ifindex).unwrap();
            found.unwrap_or_else(|| panic!("{what}")).program
        };
        for (first, second) in [
            (Mode::Native, Mode::Native),
            (Mode::Native, Mode::Tc),
            (Mode::Tc, Mode::Tc),
            (Mode::Tc, Mode::Generic),
        ] {
            let mut filter = staying(Policy::Host);
            filter.attach(ifindex, first).unwrap();
            filter.keep();
            drop(filter);
            let former = numbers("the first");
            let mut next = staying(Policy::Host);
            next.attach(ifindex, second).unwrap();
            assert_ne!(numbers("the second"), former, "{first} {second}");
            next.take_away().unwrap();
            assert!(
                standing::find(ifindex).unwrap().is_none(),
                "{first} {second}"
            );
        }
        // Also one that goes with its process.
        let mut filter = staying(Policy::Host);
        filter.attach(ifindex, Mode::Native).unwrap();
        filter.keep();
        drop(filter);
        let mut next = Filter::load().unwrap();
        next.attach(ifindex, Mode::Native).unwrap();
        drop(next);
        assert!(standing::find(ifindex).unwrap().is_none());
    });
}

#[test]
fn somebody_elses_program_is_none_and_is_not_replaced() {
    in_namespace(|| {
        let ifindex = eth0();
        let mut other = Filter::load().unwrap();
        other.attach(ifindex, Mode::Native).unwrap();
        let error = staying(Policy::Host).attach(ifindex, Mode::Native);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("which is not replaced"), "{error}");
    });
}

#[test]
fn what_has_taken_its_place_is_not_taken_away_with_it() {
    in_namespace(|| {
        let ifindex = eth0();
        let mut former = staying(Policy::Host);
        former.attach(ifindex, Mode::Native).unwrap();
        let mut next = staying(Policy::Host);
        next.attach(ifindex, Mode::Native).unwrap();
        assert!(!former.stands().unwrap() && next.stands().unwrap());
        former.take_away().unwrap();
        assert!(next.stands().unwrap());
        drop(next);
        assert!(standing::find(ifindex).unwrap().is_none());
    });
}
