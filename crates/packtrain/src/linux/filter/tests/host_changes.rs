//! What a host joins, opens or changes is known to the next frame, with nobody told.

use std::net::{Ipv4Addr, UdpSocket};

use packtrain_proto::wire::ethernet::MacAddr;

use super::frames::{UDP, arp, frame, ipv4};
use super::world::{GATEWAY, OWN, OWN_IPV4, SECOND, with_filter};
use super::*;
use crate::linux::test_namespace::{ip, run};

const VIDEO: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const VIDEO_MAC: MacAddr = MacAddr([0x01, 0x00, 0x5e, 1, 2, 3]);
const NEWCOMER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 77);

#[test]
fn a_group_is_ours_from_the_moment_that_a_socket_joins_it() {
    with_filter(|world| {
        let video = ipv4(VIDEO_MAC, GATEWAY, VIDEO, UDP, 5004);
        assert_eq!(world.reason(&video), Reason::ForeignGroup);
        let socket = UdpSocket::bind("0.0.0.0:5004").unwrap();
        socket.join_multicast_v4(&VIDEO, &OWN_IPV4).unwrap();
        assert_eq!(world.reason(&video), Reason::Group);
        socket.leave_multicast_v4(&VIDEO, &OWN_IPV4).unwrap();
        assert_eq!(world.reason(&video), Reason::ForeignGroup);
    });
}

#[test]
fn a_second_address_of_the_interface_is_ours_at_once() {
    with_filter(|world| {
        let bytes = frame(SECOND, 0x0800, &[0; 46]);
        assert_eq!(world.reason(&bytes), Reason::ForeignUnicast);
        // What a macvlan does; its handler alone would let everything pass.
        run("bridge fdb add 52:54:00:00:00:51 dev eth0 self");
        assert_eq!(world.reason(&bytes), Reason::Ours);
        run("bridge fdb del 52:54:00:00:00:51 dev eth0 self");
        assert_eq!(world.reason(&bytes), Reason::ForeignUnicast);
        run("ip link set eth0 address 52:54:00:00:00:51");
        assert_eq!(world.reason(&bytes), Reason::Ours);
        assert_eq!(
            world.reason(&frame(OWN, 0x0800, &[0; 46])),
            Reason::ForeignUnicast
        );
    });
}

#[test]
fn an_address_that_comes_is_never_missed_and_one_that_went_is_not_answered_for_long() {
    with_filter(|world| {
        let asks = arp(1, Ipv4Addr::new(10, 1, 0, 99), NEWCOMER);
        assert_eq!(world.reason(&asks), Reason::ForeignArp);
        ip(&format!("address add {NEWCOMER}/24 dev eth0"));
        // Nobody has told the filter yet, and it knows that.
        assert_eq!(world.reason(&asks), Reason::Changing);
        world.follow_routes();
        assert_eq!(world.reason(&asks), Reason::ArpOurs);
        ip(&format!("address del {NEWCOMER}/24 dev eth0"));
        assert_eq!(world.reason(&asks), Reason::ArpOurs);
        world.follow_routes();
        assert_eq!(world.reason(&asks), Reason::ForeignArp);
    });
}

#[test]
fn a_prefix_that_is_local_as_a_whole_is_ours() {
    with_filter(|world| {
        let asks = arp(
            1,
            Ipv4Addr::new(10, 1, 0, 99),
            Ipv4Addr::new(198, 51, 100, 200),
        );
        assert_eq!(world.reason(&asks), Reason::ForeignArp);
        ip("route add local 198.51.100.0/24 dev lo");
        assert_eq!(world.reason(&asks), Reason::Changing);
        world.follow_routes();
        assert_eq!(world.reason(&asks), Reason::ArpOurs);
        ip("route del local 198.51.100.0/24 dev lo");
        world.follow_routes();
        assert_eq!(world.reason(&asks), Reason::ForeignArp);
    });
}

/// Whether there are prefixes at all is known by the address's first bits: of a wide one, of all that it has.
#[test]
fn a_wide_prefix_is_ours_from_its_first_address_to_its_last() {
    with_filter(|world| {
        ip("route add local 64.0.0.0/3 dev lo");
        world.follow_routes();
        let sender = Ipv4Addr::new(10, 1, 0, 99);
        for (target, reason) in [
            ([63, 255, 255, 255], Reason::ForeignArp),
            ([64, 0, 0, 0], Reason::ArpOurs),
            ([72, 1, 2, 3], Reason::ArpOurs),
            ([90, 1, 2, 3], Reason::ArpOurs),
            ([95, 255, 255, 255], Reason::ArpOurs),
            ([96, 0, 0, 0], Reason::ForeignArp),
            ([127, 9, 9, 9], Reason::ArpOurs),
            ([128, 0, 0, 0], Reason::ForeignArp),
        ] {
            let asks = arp(1, sender, Ipv4Addr::from(target));
            assert_eq!(world.reason(&asks), reason, "{target:?}");
        }
    });
}

#[test]
fn who_is_known_may_announce_itself_and_a_stranger_may_not() {
    with_filter(|world| {
        let moved = arp(1, GATEWAY, GATEWAY);
        assert_eq!(world.reason(&moved), Reason::ArpNeighbour);
        let stranger = Ipv4Addr::new(10, 1, 0, 9);
        assert_eq!(
            world.reason(&arp(2, stranger, stranger)),
            Reason::ForeignArp
        );
        // As many as make the kernel's table larger than it is at first.
        for last in 1..200 {
            ip(&format!(
                "neighbour add 10.1.0.{last} lladdr 52:54:00:00:01:{last:02x} dev eth0"
            ));
        }
        for last in 1..200 {
            let known = Ipv4Addr::new(10, 1, 0, last);
            let expected = match known == OWN_IPV4 {
                true => Reason::ArpOurs,
                false => Reason::ArpNeighbour,
            };
            assert_eq!(world.reason(&arp(2, known, known)), expected, "{known}");
        }
        ip("neighbour del 10.1.0.9 dev eth0");
        assert_eq!(
            world.reason(&arp(2, stranger, stranger)),
            Reason::ForeignArp
        );
        // By the paper it is asked for us or it is not.
        world.set(|set| set.policy = Policy::Nima);
        assert_eq!(world.reason(&moved), Reason::ForeignArp);
    });
}

#[test]
fn a_host_that_learns_or_answers_for_others_gets_their_arp() {
    with_filter(|world| {
        let stranger = Ipv4Addr::new(10, 1, 0, 9);
        let announces = arp(1, stranger, stranger);
        let asks = arp(1, stranger, Ipv4Addr::new(10, 1, 0, 8));
        let setting = |name: &str, value: u8| {
            run(&format!("sysctl -q -w net.ipv4.{name}={value}"));
        };
        setting("conf.eth0.arp_accept", 1);
        assert_eq!(world.reason(&announces), Reason::ArpSetting);
        assert_eq!(world.reason(&asks), Reason::ForeignArp);
        setting("conf.eth0.arp_accept", 0);
        assert_eq!(world.reason(&announces), Reason::ForeignArp);
        for name in [
            "conf.all.proxy_arp",
            "conf.eth0.proxy_arp",
            "conf.eth0.proxy_arp_pvlan",
        ] {
            setting(name, 1);
            assert_eq!(
                world.reason(&asks),
                Reason::ForeignArp,
                "{name} without forwarding"
            );
            setting("conf.eth0.forwarding", 1);
            assert_eq!(world.reason(&asks), Reason::ArpSetting, "{name}");
            setting("conf.eth0.forwarding", 0);
            setting(name, 0);
        }
        setting("conf.eth0.forwarding", 1);
        assert_eq!(world.reason(&asks), Reason::ForeignArp);
        ip("neighbour add proxy 10.1.0.8 dev eth0");
        assert_eq!(world.reason(&asks), Reason::ArpSetting);
    });
}
