//! Large sets, and what has no room.

use super::*;

fn v6(addresses: [u128; 2]) -> Vec<u8> {
    let frame = FrameShape {
        network: Network::V6 {
            addresses,
            extensions: 0,
        },
        ..FrameShape::default()
    };
    frame.bytes()
}

#[test]
fn a_set_of_ten_thousand_costs_one_bit() {
    let many = || (0..10_000).map(|n| format!("10.{}.{}.{}", n / 2000, n / 8 % 250, n % 8 * 30));
    let rules = deny(&["tcp", "src @many"], vec![set("many", many())]);
    let image = Image::compile(&rules).unwrap();
    // All, no TCP, not of the set.
    assert_eq!(image.words()[header::ROW_COUNT], 3);
    assert_eq!(image.words()[header::ROW_WORDS], 1);
    for address in many().step_by(97) {
        let at = address.parse::<core::net::Ipv4Addr>().unwrap().to_bits();
        for at in [at - 1, at, at + 1] {
            let frame = FrameShape {
                network: Network::V4([at, 1]),
                ..FrameShape::default()
            };
            check(&rules, &image, &frame.bytes());
        }
    }
}

#[test]
fn ten_thousand_ipv6_networks_are_told_apart_at_their_ends() {
    let many = || (0..10_000u128).map(|n| 0x2001_0db8 << 96 | (n * 6) << 64);
    let far = ["2a00::/16", "fe80::/10", "::1"].map(String::from);
    let texts = many().map(|at| format!("{}/64", core::net::Ipv6Addr::from_bits(at)));
    let rules = deny(
        &["dst @many", "not dst @far", "dst @far"],
        vec![set("many", texts), set("far", far.into_iter())],
    );
    let image = Image::compile(&rules).unwrap();
    let far = [
        0,
        1,
        2,
        0x29ff << 112,
        0x2a00 << 112,
        0x2a01 << 112,
        0xfebf << 112,
        u128::MAX,
    ];
    for at in many().step_by(97).chain(far) {
        for at in [
            at.wrapping_sub(1),
            at,
            at | u128::from(u64::MAX),
            at.wrapping_add(1 << 64),
        ] {
            check(&rules, &image, &v6([1, at]));
        }
    }
}

#[test]
fn ten_thousand_hosts_of_an_ipv6_network_are_told_apart_too() {
    let host = |n: u128| 0x2001_0db8 << 96 | 7 << 64 | (n * 3);
    let texts = (0..10_000).map(|n| core::net::Ipv6Addr::from_bits(host(n)).to_string());
    let rules = deny(&["src @many"], vec![set("many", texts)]);
    let image = Image::compile(&rules).unwrap();
    for n in (0..10_000).step_by(97) {
        for at in [host(n) - 1, host(n), host(n) + 1, host(n) + (1 << 64)] {
            check(&rules, &image, &v6([at, 1]));
        }
    }
}

#[test]
fn what_has_no_room_is_refused_and_named() {
    let error = |rules: &RuleSet| Image::compile(rules).unwrap_err().to_string();
    let doubled =
        "host 10.0.0.0/8 port 53 host ::/0 port 54 host 10.0.0.1 port 55 host ::1 port 56";
    // 256 each; these and one more.
    let mut matches = vec![doubled; 4];
    assert_eq!(
        Image::compile(&deny(&matches, vec![])).unwrap().entries(),
        1024
    );
    matches.push("any");
    assert_eq!(
        error(&deny(&matches, vec![])),
        "rule r4 is one too many: each host and port doubles a rule, and 1024 are possible; \
         write src or dst, sport or dport, where only one is meant"
    );
    // No two next to each other, so that each has two boundaries, of both ends.
    let many = (0..65_536u128).map(|n| core::net::Ipv6Addr::from_bits(n << 70).to_string());
    let rules = deny(&["host @many"], vec![set("many", many)]);
    let Err(ImageError::Words(words)) = Image::compile(&rules) else {
        panic!("it fits")
    };
    assert!(words > IMAGE_WORDS_MAX);
    assert_eq!(
        error(&rules),
        format!(
            "the rules take {words} words, and at most 1048576 are possible: \
             write fewer prefixes, or fewer rules that ask for different ones"
        )
    );
}

#[test]
fn what_has_no_room_with_windows_is_searched_without() {
    let host = |n: u128| 0x2001_0db8 << 96 | (n * 0x1_0001 % 65_536) << 70 | (n * 3);
    let texts = (0..40_000).map(|n| core::net::Ipv6Addr::from_bits(host(n)).to_string());
    let rules = deny(&["src @many", "not dst @many"], vec![set("many", texts)]);
    let image = Image::compile(&rules).unwrap();
    let reference = image.words()[header::DIMENSION + place::V6];
    assert_eq!(
        reference & (REFERENCE_OFFSET | REFERENCE_WINDOW),
        REFERENCE_OFFSET
    );
    for n in (0..40_000).step_by(1999) {
        for at in [host(n) - 1, host(n), host(n) + 1] {
            check(&rules, &image, &v6([at, host(n)]));
        }
    }
}

#[test]
fn a_hundred_thousand_of_either_version_have_room() {
    // No two next to each other, so that each has two boundaries.
    let v4 = |n: u32| core::net::Ipv4Addr::from_bits(0x0a00_0000 + n * 83);
    let v6 = |n: u32| core::net::Ipv6Addr::from_bits(u128::from(n) << 70);
    let check_set = |texts: Vec<String>, network: &dyn Fn(u32) -> Network| {
        let rules = deny(&["src @many"], vec![set("many", texts.into_iter())]);
        let image = Image::compile(&rules).unwrap();
        for n in (0..100_000).step_by(9999) {
            let frame = FrameShape {
                network: network(n),
                ..FrameShape::default()
            };
            check(&rules, &image, &frame.bytes());
        }
    };
    check_set((0..100_000).map(|n| v4(n).to_string()).collect(), &|n| {
        Network::V4([v4(n).to_bits() + n % 2, 1])
    });
    check_set((0..100_000).map(|n| v6(n).to_string()).collect(), &|n| {
        let addresses = [v6(n).to_bits() + u128::from(n % 2), 1];
        Network::V6 {
            addresses,
            extensions: 0,
        }
    });
}
