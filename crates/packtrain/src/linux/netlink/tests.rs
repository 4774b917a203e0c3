//! Against the kernel, in namespaces.

use super::*;
use crate::linux::test_namespace::{in_namespace, ip};

fn link(netlink: &mut Netlink, name: &str) -> Link {
    netlink
        .link_by_name(name)
        .expect("a netlink that answers")
        .expect("the interface is there")
}

fn prefixes(netlink: &mut Netlink, ifindex: u32) -> Vec<String> {
    let addresses = netlink.addresses(ifindex).expect("addresses");
    addresses
        .iter()
        .filter(|a| !a.link_scope)
        .map(|a| a.prefix.to_string())
        .collect()
}

#[test]
fn a_link_is_told_as_ip_link_shows_it() {
    in_namespace(|| {
        ip("link add br0 type bridge");
        ip("link add a0 mtu 2000 address 02:00:00:00:00:0a type veth peer name b0");
        ip("link set a0 master br0");
        ip("link set a0 up");
        let mut netlink = Netlink::open().unwrap();
        let (a, b, bridge) = (
            link(&mut netlink, "a0"),
            link(&mut netlink, "b0"),
            link(&mut netlink, "br0"),
        );
        assert_eq!(a.address, MacAddr([2, 0, 0, 0, 0, 0x0a]));
        assert_eq!(
            (a.mtu, a.kind.as_deref(), a.master),
            (2000, Some("veth"), Some(bridge.ifindex))
        );
        assert_eq!((a.up, a.carrier, a.is_ethernet), (true, false, true));
        assert_eq!((a.lower, a.promiscuity), (Some(b.ifindex), 1));
        assert_eq!((b.up, b.master), (false, None));
        let lo = link(&mut netlink, "lo");
        assert_eq!((lo.is_ethernet, lo.kind), (false, None));

        ip("link set b0 up");
        let before = link(&mut netlink, "a0");
        assert!(before.carrier);
        ip("link set b0 down");
        ip("link set b0 up");
        let again = link(&mut netlink, "a0");
        let losses = before.carrier_losses.map(|losses| losses + 1);
        assert!(losses.is_some(), "kernels have counted since 4.16");
        assert_eq!((again.carrier, again.carrier_losses), (true, losses));
        assert_eq!(
            netlink.link(a.ifindex).unwrap(),
            Some(link(&mut netlink, "a0"))
        );
        let names: Vec<_> = netlink
            .links()
            .unwrap()
            .into_iter()
            .map(|link| link.name)
            .collect();
        assert_eq!(names, ["lo", "br0", "b0", "a0"]);
        assert_eq!(netlink.link_by_name("nothere").unwrap(), None);
        assert_eq!(netlink.link_by_name("").unwrap(), None);
        assert_eq!(
            netlink.link_by_name("longer-than-a-name-may-be").unwrap(),
            None
        );
        assert_eq!(netlink.link(4711).unwrap(), None);
    });
}

#[test]
fn what_is_set_is_there_and_what_is_not_possible_says_on_which_interface_and_why() {
    in_namespace(|| {
        ip("link add a0 type veth peer name b0");
        let mut netlink = Netlink::open().unwrap();
        let a0 = link(&mut netlink, "a0").ifindex;
        netlink.set_up(a0, true).unwrap();
        netlink.set_mtu(a0, 9000).unwrap();
        netlink
            .set_mac_address(a0, MacAddr([2, 7, 7, 7, 7, 7]))
            .unwrap();
        let link = link(&mut netlink, "a0");
        assert_eq!(
            (link.up, link.mtu, link.address),
            (true, 9000, MacAddr([2, 7, 7, 7, 7, 7]))
        );
        netlink.set_up(a0, false).unwrap();
        assert!(!netlink.link(a0).unwrap().unwrap().up);

        let error = netlink.set_mtu(a0, 70_000).expect_err("veth allows 65,535");
        assert_eq!(
            error.to_string(),
            "cannot set the MTU of a0 to 70000: mtu greater than device maximum"
        );
        let error = netlink.set_up(4711, true).expect_err("no such interface");
        assert_eq!(
            error.to_string(),
            "cannot bring interface 4711 up: No such device (os error 19)"
        );
        assert!(error.is_no_such_interface());
    });
}

#[test]
fn addresses_come_and_go_one_by_one() {
    in_namespace(|| {
        ip("link add a0 type veth peer name b0");
        ip("address add 192.0.2.9/32 dev lo");
        let mut netlink = Netlink::open().unwrap();
        let a0 = link(&mut netlink, "a0").ifindex;
        let v4: IpPrefix = "10.9.0.1/24".parse().unwrap();
        let v6: IpPrefix = "fd00::1/64".parse().unwrap();
        netlink.add_address(a0, v4).unwrap();
        netlink.add_address(a0, v6).unwrap();
        assert_eq!(prefixes(&mut netlink, a0), ["10.9.0.1/24", "fd00::1/64"]);
        let shown = crate::linux::test_namespace::run("ip -4 address show dev a0");
        assert!(shown.contains("brd 10.9.0.255"), "{shown}");
        let error = netlink
            .add_address(a0, v4)
            .expect_err("it is there already");
        assert_eq!(error.errno(), Some(libc::EEXIST));
        netlink.delete_address(a0, v4).unwrap();
        assert_eq!(prefixes(&mut netlink, a0), ["fd00::1/64"]);
        let error = netlink.delete_address(a0, v4).expect_err("it is gone");
        assert!(
            error
                .to_string()
                .starts_with("cannot delete 10.9.0.1/24 from a0: "),
            "{error}"
        );
    });
}

#[test]
fn without_rights_the_error_names_the_capability() {
    in_namespace(|| {
        ip("link add a0 type veth peer name b0");
        let mut netlink = Netlink::open().unwrap();
        let a0 = link(&mut netlink, "a0").ifindex;
        drop_capabilities();
        let error = netlink.set_up(a0, true).expect_err("no rights");
        assert!(error.is_permission_denied());
        let text = error.to_string();
        assert!(text.starts_with("cannot bring a0 up: "), "{text}");
        assert!(text.contains("CAP_NET_ADMIN"), "{text}");
    });
}

/// Of the calling thread alone.
fn drop_capabilities() {
    // `__user_cap_header_struct` of version 3 and two empty `__user_cap_data_struct`.
    let header: [u32; 2] = [0x2008_0522, 0];
    let data = [0u32; 6];
    // SAFETY: both buffers have the sizes that version 3 defines, and outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

fn events(monitor: &mut Monitor) -> Vec<NetEvent> {
    std::iter::from_fn(|| monitor.next_event().expect("a monitor that reads")).collect()
}

#[test]
fn the_monitor_tells_links_and_addresses_that_come_change_and_go() {
    in_namespace(|| {
        let mut monitor = Monitor::open().unwrap();
        assert_eq!(monitor.next_event().unwrap(), None);
        ip("link add a0 type veth peer name b0");
        ip("link set b0 up");
        ip("link set a0 up");
        ip("link set a0 mtu 1400");
        ip("address add 10.9.0.1/24 dev a0");
        ip("address del 10.9.0.1/24 dev a0");
        let a0 = Netlink::open()
            .unwrap()
            .link_by_name("a0")
            .unwrap()
            .unwrap()
            .ifindex;
        let seen = events(&mut monitor);
        let has = |what: &str, test: &dyn Fn(&NetEvent) -> bool| {
            assert!(seen.iter().any(test), "{what} is missing in {seen:#?}");
        };
        has(
            "carrier",
            &|e| matches!(e, NetEvent::Link(l) if l.name == "a0" && l.carrier),
        );
        has(
            "mtu",
            &|e| matches!(e, NetEvent::Link(l) if l.name == "a0" && l.mtu == 1400),
        );
        let prefix = "10.9.0.1/24".parse().unwrap();
        has(
            "address",
            &|e| matches!(e, NetEvent::Address(a) if a.ifindex == a0 && a.prefix == prefix),
        );
        has(
            "address gone",
            &|e| matches!(e, NetEvent::AddressGone(a) if a.prefix == prefix),
        );

        ip("link del a0");
        let gone = NetEvent::LinkGone {
            ifindex: a0,
            name: "a0".into(),
        };
        assert!(events(&mut monitor).contains(&gone));
    });
}

#[test]
fn a_monitor_that_was_overrun_says_that_everything_is_to_be_read_again() {
    in_namespace(|| {
        let mut monitor = Monitor::open().unwrap();
        ip("link add a0 type veth peer name b0");
        let mut netlink = Netlink::open().unwrap();
        let a0 = link(&mut netlink, "a0").ifindex;
        for round in 0..1000 {
            netlink.set_mtu(a0, 1400 + round % 2).unwrap();
        }
        let seen = events(&mut monitor);
        assert!(
            seen.contains(&NetEvent::Resync),
            "{} events and no overrun",
            seen.len()
        );
        netlink.set_mtu(a0, 1300).unwrap();
        let seen = events(&mut monitor);
        assert!(
            seen.iter()
                .any(|e| matches!(e, NetEvent::Link(l) if l.mtu == 1300)),
            "{seen:?}"
        );
    });
}

#[test]
fn a_pair_goes_as_a_whole() {
    in_namespace(|| {
        let mut netlink = Netlink::open().unwrap();
        let address = MacAddr([2, 0, 0, 0, 0, 9]);
        netlink.add_pair("near0", address, "far0").unwrap();
        let near = link(&mut netlink, "near0");
        assert_eq!(
            (near.address, near.mtu, near.up),
            (address, PAIR_MTU, false)
        );
        assert_eq!(link(&mut netlink, "far0").mtu, PAIR_MTU);
        let error = netlink.add_pair("near0", address, "far1").unwrap_err();
        assert_eq!(error.errno(), Some(libc::EEXIST));
        netlink.delete_interface(near.ifindex).unwrap();
        assert_eq!(netlink.link_by_name("far0").unwrap(), None);
    });
}
