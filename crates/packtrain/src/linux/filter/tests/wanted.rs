//! What is not for this host passes all the same where somebody here wants it.

use std::os::fd::OwnedFd;

use packtrain_proto::wire::ethernet::MacAddr;

use super::frames::{arp, frame, tagged};
use super::world::{GATEWAY, OWN, World, with_filter, with_filter_in};
use super::*;
use crate::linux::af_packet;
use crate::linux::guard::{self, Guard};
use crate::linux::netlink::Netlink;
use crate::linux::test_namespace::{ip, run};

const STRANGER: MacAddr = MacAddr([0x00, 0x1b, 0x21, 1, 1, 1]);
const NOBODYS_GROUP: MacAddr = MacAddr([0x01, 0x00, 0x5e, 9, 9, 9]);

/// Of each kind that is dropped: to a stranger, ARP of strangers, to a group.
fn foreign() -> [(Vec<u8>, Reason); 3] {
    let ask = arp(1, "10.1.0.9".parse().unwrap(), "10.1.0.8".parse().unwrap());
    [
        (frame(STRANGER, 0x0800, &[0; 46]), Reason::ForeignUnicast),
        (ask, Reason::ForeignArp),
        (frame(NOBODYS_GROUP, 0x0800, &[0; 46]), Reason::ForeignGroup),
    ]
}

fn all_are(world: &World, reason: Reason) {
    for (bytes, _) in foreign() {
        assert_eq!(world.reason(&bytes), reason, "{bytes:02x?}");
    }
}

fn all_are_dropped(world: &World) {
    for (bytes, reason) in foreign() {
        assert_eq!(world.reason_in_the_end(&bytes, reason), reason);
    }
}

#[test]
fn a_promiscuous_interface_gets_everything() {
    with_filter(|world| {
        all_are_dropped(world);
        ip("link set eth0 promisc on");
        all_are(world, Reason::Promiscuous);
        ip("link set eth0 promisc off");
        all_are_dropped(world);
        ip("link set eth0 allmulticast on");
        let [unicast, arp, group] = foreign();
        assert_eq!(world.reason(&unicast.0), unicast.1);
        assert_eq!(world.reason(&arp.0), Reason::Promiscuous);
        assert_eq!(world.reason(&group.0), Reason::Promiscuous);
        ip("link set eth0 allmulticast off");
        all_are_dropped(world);
        // The paper asks nobody.
        ip("link set eth0 promisc on");
        world.set(|set| set.policy = Policy::Nima);
        all_are_dropped(world);
    });
}

#[test]
fn a_port_of_a_bridge_gets_everything() {
    with_filter(|world| {
        ip("link add br0 type bridge");
        ip("link set eth0 master br0");
        // A bridge makes its ports promiscuous; one that does not has its handler there.
        all_are(world, Reason::Promiscuous);
        ip("link set eth0 nomaster");
        all_are_dropped(world);
    });
}

#[test]
fn below_a_macvlan_everything_passes() {
    with_filter(|world| {
        ip("link add m0 link eth0 type macvlan mode bridge");
        all_are(world, Reason::Handler);
        ip("link del m0");
        all_are_dropped(world);
    });
}

#[test]
fn a_packet_socket_gets_what_it_takes() {
    with_filter(|world| {
        let capture = listen(world.ifindex, libc::ETH_P_ALL as u16);
        all_are(world, Reason::Capture);
        drop(capture);
        all_are_dropped(world);
        // At every interface.
        let capture = listen(0, libc::ETH_P_ALL as u16);
        all_are(world, Reason::Capture);
        drop(capture);
        all_are_dropped(world);
        for ifindex in [world.ifindex, 0] {
            let acd = listen(ifindex, libc::ETH_P_ARP as u16);
            let [unicast, arp, group] = foreign();
            assert_eq!(world.reason(&unicast.0), unicast.1);
            assert_eq!(world.reason(&arp.0), Reason::Listener);
            assert_eq!(world.reason(&group.0), group.1);
            drop(acd);
            all_are_dropped(world);
        }
    });
}

#[test]
fn behind_captures_the_filter_need_not_ask_for_them() {
    with_filter_in(Mode::Tc, |world| {
        let capture = listen(world.ifindex, libc::ETH_P_ALL as u16);
        all_are_dropped(world);
        drop(capture);
        let acd = listen(world.ifindex, libc::ETH_P_ARP as u16);
        assert_eq!(world.reason(&foreign()[1].0), Reason::Listener);
        drop(acd);
    });
}

#[test]
fn rules_at_the_way_in_get_everything() {
    with_filter(|world| {
        run("tc qdisc add dev eth0 clsact");
        all_are_dropped(world);
        let line = guard::Host {
            ifindex: 1,
            address: STRANGER,
        };
        let filter = Guard::attach(world.ifindex, OWN, line, guard::Attachment::Clsact).unwrap();
        all_are(world, Reason::Ingress);
        drop(filter);
        all_are_dropped(world);
        run("nft add table netdev t");
        run("nft add chain netdev t c { type filter hook ingress device eth0 priority 0 ; }");
        all_are(world, Reason::Ingress);
        run("nft flush ruleset");
        all_are_dropped(world);
    });
}

#[test]
fn somebody_elses_program_at_tcx_gets_everything() {
    with_filter(|world| {
        // A guard's, where there is no line that it guards.
        let line = guard::Host {
            ifindex: 1,
            address: STRANGER,
        };
        let guard = Guard::attach(world.ifindex, OWN, line, guard::Attachment::Tcx).unwrap();
        all_are(world, Reason::Ingress);
        // With its line there, the line's address is ours instead.
        world.set(|set| set.line_ifindex = Some(1));
        all_are_dropped(world);
        drop(guard);
        all_are_dropped(world);
    });
}

#[test]
fn what_is_for_the_line_above_is_ours() {
    with_filter(|world| {
        ip("link add p0 address 02:70:74:01:02:03 type veth peer name p1");
        let line = MacAddr([0x02, 0x70, 0x74, 1, 2, 3]);
        let bytes = frame(line, 0x0800, &[0; 46]);
        assert_eq!(world.reason(&bytes), Reason::ForeignUnicast);
        let link = Netlink::open().unwrap().link_by_name("p0").unwrap();
        let ifindex = link.expect("p0 is there").ifindex;
        world.set(|set| set.line_ifindex = Some(ifindex));
        assert_eq!(world.reason(&bytes), Reason::Ours);
        all_are_dropped(world);
        run("ip maddress add 01:00:5e:09:09:09 dev p0");
        assert_eq!(world.reason(&foreign()[2].0), Reason::Group);
        run("ip maddress del 01:00:5e:09:09:09 dev p0");
        ip("link set p0 promisc on");
        all_are(world, Reason::Promiscuous);
        ip("link del p0");
        all_are_dropped(world);
    });
}

#[test]
fn when_nobody_refreshes_it_everything_passes() {
    with_filter(|world| {
        all_are_dropped(world);
        world.set(|set| set.lease_until_ns = Some(1));
        all_are(world, Reason::Unrefreshed);
        world.set(|set| set.lease_until_ns = Some(u64::MAX));
        all_are_dropped(world);
        world.set(|set| set.policy = Policy::None);
        all_are(world, Reason::NoPolicy);
    });
}

#[test]
fn a_dry_run_counts_and_drops_nothing() {
    with_filter(|world| {
        world.set(|set| set.dry_run = true);
        for (bytes, reason) in foreign() {
            let before = world.filter.counters().unwrap().get(reason).frames;
            assert!(world.passes(&bytes));
            assert_eq!(
                world.filter.counters().unwrap().get(reason).frames,
                before + 1
            );
        }
    });
}

#[test]
fn a_second_filter_does_not_replace_the_first() {
    with_filter(|world| {
        let mut second = Filter::load().unwrap();
        let error = second.attach(world.ifindex, Mode::Native).unwrap_err();
        assert!(matches!(error, FilterError::Taken { .. }), "{error}");
        all_are_dropped(world);
        let tag = tagged(&frame(STRANGER, 0x0800, &[0; 46]), 0x8100, 7);
        assert_eq!(world.reason(&tag), Reason::ForeignUnicast);
        assert_eq!(
            world.reason(&arp(1, GATEWAY, GATEWAY)),
            Reason::ArpNeighbour
        );
    });
}

fn listen(ifindex: u32, ether_type: u16) -> OwnedFd {
    let socket = af_packet::open().unwrap();
    af_packet::bind(socket.as_fd(), ifindex, ether_type).unwrap();
    socket
}
