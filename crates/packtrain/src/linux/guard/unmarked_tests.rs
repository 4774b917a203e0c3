//! Direct frames without a mark, by `BPF_PROG_TEST_RUN`: which are taken, and which are the link's own.

use super::tests::{
    ARP, HOST, IPV4, LINK, PACKTRAIN, PLAIN, VIRTUAL, VLAN, at_ingress, at_socket, frame,
    with_guard,
};
use super::*;
use crate::linux::test_namespace::ip;

const IPV6: u16 = 0x86dd;
const LLDP: u16 = 0x88cc;
const EAPOL: u16 = 0x888e;
const PEER: MacAddr = MacAddr([0x02, 0x70, 0x74, 9, 9, 9]);
const UDP: u8 = 17;
const TCP: u8 = 6;

fn ipv4(to: MacAddr, from: MacAddr, protocol: u8, fragment: u16, to_port: u16) -> Vec<u8> {
    let mut bytes = frame(to, from, IPV4);
    bytes[14] = 0x45;
    bytes[20..22].copy_from_slice(&fragment.to_be_bytes());
    bytes[23] = protocol;
    bytes[36..38].copy_from_slice(&to_port.to_be_bytes());
    bytes
}

fn ipv6(to: MacAddr, from: MacAddr, destination: [u8; 2]) -> Vec<u8> {
    let mut bytes = frame(to, from, IPV6);
    bytes[14] = 0x60;
    bytes[38..40].copy_from_slice(&destination);
    bytes
}

fn unmarked(link: MacAddr) -> UnmarkedSource {
    UnmarkedSource {
        link,
        pt0: PEER,
        is_tagged: false,
    }
}

/// On a link that has none: the loopback gets its own when it goes up.
fn without_addresses(test: impl FnOnce(&mut Guard) + Send + 'static) {
    with_guard(|guard| {
        ip("address flush dev lo");
        test(guard);
    });
}

/// A peer's link is one that a manufacturer has named, or one that is locally administered.
fn with_unmarked(test: impl Fn(&mut Guard, MacAddr) + Send + 'static) {
    without_addresses(move |guard| {
        for link in [PLAIN, VIRTUAL] {
            assert_eq!(guard.set_unmarked(&[unmarked(link)]).unwrap(), 0);
            test(guard, link);
        }
    });
}

#[test]
fn what_only_pt0_can_be_meant_by_is_given_to_it_and_no_socket_is_woken() {
    const TC_ACT_REDIRECT: i32 = 7;
    with_unmarked(|guard, link| {
        let taken = [
            ("TCP", ipv4(LINK, link, TCP, 0, 80)),
            ("TCP to that number", ipv4(LINK, link, TCP, 0, 68)),
            ("UDP", ipv4(LINK, link, UDP, 0, 53)),
            ("a later fragment", ipv4(LINK, link, UDP, 5, 68)),
            ("IPv6", ipv6(LINK, link, [0xfd, 0])),
            ("… to no link-local address", ipv6(LINK, link, [0xfe, 0xc0])),
        ];
        for (what, bytes) in &taken {
            let at_ingress = at_ingress(guard, bytes);
            assert_eq!(at_ingress, (TC_ACT_REDIRECT, Verdict::Direct), "{what}");
            for promiscuous in [false, true] {
                guard.set_promiscuous(promiscuous).unwrap();
                assert_eq!(at_socket(guard, bytes), (0, Verdict::Direct), "{what}");
            }
            guard.set_promiscuous(false).unwrap();
        }
    });
}

#[test]
fn what_links_say_to_each_other_is_theirs() {
    with_unmarked(|guard, link| {
        let theirs = [
            ("ARP", frame(LINK, link, ARP)),
            ("LLDP", frame(LINK, link, LLDP)),
            ("EAPOL", frame(LINK, link, EAPOL)),
            ("a length", frame(LINK, link, 46)),
            ("tagged", frame(LINK, link, VLAN)),
            ("an answer of DHCP", ipv4(LINK, link, UDP, 0, 68)),
            ("its first fragment", ipv4(LINK, link, UDP, 0x2000, 68)),
            ("to a link-local address", ipv6(LINK, link, [0xfe, 0x80])),
            ("… to the last of them", ipv6(LINK, link, [0xfe, 0xbf])),
            ("flooded", ipv4(VIRTUAL, link, TCP, 0, 80)),
            ("to pt0's, from itself", ipv4(LINK, HOST, TCP, 0, 80)),
            ("from somebody else", ipv4(LINK, PEER, TCP, 0, 80)),
            (
                "UDP, too short",
                ipv4(LINK, link, UDP, 0, 80)[..37].to_vec(),
            ),
        ];
        for (what, bytes) in &theirs {
            assert_eq!(at_ingress(guard, bytes), (-1, Verdict::Other), "{what}");
            assert_eq!(at_socket(guard, bytes), (0, Verdict::Other), "{what}");
        }
        let train = frame(LINK, link, PACKTRAIN);
        assert_eq!(at_ingress(guard, &train).1, Verdict::Train);
        assert_eq!(guard.set_unmarked(&[]).unwrap(), 0);
        let no_more = ipv4(LINK, link, TCP, 0, 80);
        assert_eq!(at_ingress(guard, &no_more), (-1, Verdict::Other));
    });
}

/// Before anybody could tell the guard.
#[test]
fn an_address_on_the_link_ends_it_in_that_moment() {
    without_addresses(|guard| {
        guard.set_unmarked(&[unmarked(PLAIN)]).unwrap();
        let bytes = ipv4(LINK, PLAIN, TCP, 0, 80);
        let is_taken = |guard: &Guard| at_ingress(guard, &bytes).1 == Verdict::Direct;
        assert!(is_taken(guard));
        for address in ["10.8.0.1/24", "169.254.7.7/16", "fd00::1/64"] {
            ip(&format!("address add {address} dev lo"));
            assert!(!is_taken(guard), "{address}");
            ip(&format!("address delete {address} dev lo"));
            assert!(is_taken(guard), "without {address}");
        }
        for n in 1..5 {
            ip(&format!("address add fe80::{n}/64 dev lo"));
            assert!(is_taken(guard), "{n} link-local ones");
        }
        ip("address add fe80::5/64 dev lo");
        assert!(!is_taken(guard), "more than are looked at");
    });
}

#[test]
fn links_without_a_mark_are_bounded_and_the_table_usable_after() {
    without_addresses(|guard| {
        let numbered = |n: usize| unmarked(MacAddr([0, 1, 2, 3, (n >> 8) as u8, n as u8]));
        let many: Vec<_> = (0..UNMARKED_MAX + 3).map(numbered).collect();
        assert_eq!(guard.set_unmarked(&many).unwrap(), 3);
        assert_eq!(guard.set_unmarked(&[unmarked(PLAIN)]).unwrap(), 0);
        let bytes = ipv4(LINK, PLAIN, TCP, 0, 80);
        assert_eq!(at_ingress(guard, &bytes).1, Verdict::Direct);
        let header = include_str!("../../bpf/guard.h");
        assert!(header.contains(&format!("GUARD_UNMARKED\t\t{UNMARKED_MAX}\n")));
    });
}
