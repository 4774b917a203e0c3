//! What this host sends to everybody, or to a group that it is in itself: the kernel hands it back to its own sockets by the interface's way in, before the
//! stack and at tc, and without an Ethernet header.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

use super::world::{OWN_IPV4, World, with_filter};
use super::*;
use crate::linux::test_namespace::ip;

#[test]
fn what_a_host_sends_to_all_or_to_a_group_comes_back_to_its_own_sockets() {
    with_filter(|world| {
        ip("route add 224.0.0.0/4 dev eth0");
        let group = Ipv4Addr::new(239, 1, 2, 3);
        let by_ipv4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 7000)).unwrap();
        by_ipv4.join_multicast_v4(&group, &OWN_IPV4).unwrap();
        let to_ipv4: SocketAddr = (group, 7000).into();
        by_ipv4.set_broadcast(true).unwrap();
        let to_everybody: SocketAddr = (Ipv4Addr::new(10, 1, 0, 255), 7000).into();
        let group: Ipv6Addr = "ff02::1234".parse().unwrap();
        let by_ipv6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 7001)).unwrap();
        by_ipv6.join_multicast_v6(&group, world.ifindex).unwrap();
        let to_ipv6 = SocketAddrV6::new(group, 7001, 0, world.ifindex).into();
        for mode in [Mode::Native, Mode::Generic, Mode::Tc] {
            world.filter.hold = None;
            world.filter.attach(world.ifindex, mode).unwrap();
            let counted =
                |world: &World| world.filter.counters().unwrap().get(Reason::Looped).frames;
            let before = counted(world);
            let comes_back = [
                comes_back(&by_ipv4, to_ipv4),
                comes_back(&by_ipv4, to_everybody),
                comes_back(&by_ipv6, to_ipv6),
            ];
            assert_eq!(comes_back, [true; 3], "{mode}");
            let seen = if mode == Mode::Native { 0 } else { 3 };
            assert!(counted(world) - before >= seen, "{mode}");
        }
    });
}

fn comes_back(socket: &UdpSocket, to: SocketAddr) -> bool {
    socket.send_to(b"to all of us", to).unwrap();
    // Before the call returns, or right after it.
    let wait = std::time::Duration::from_millis(100);
    socket.set_read_timeout(Some(wait)).unwrap();
    let mut bytes = [0; 100];
    socket
        .recv(&mut bytes)
        .is_ok_and(|len| bytes[..len] == *b"to all of us")
}
