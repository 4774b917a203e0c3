//! Any bytes as a frame that a receive filter judges: whole and cut at each byte nothing panics, what the paper lets pass a host lets
//! pass too, and an image of rules says of it what the rules say.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use packtrain_proto::filter::frame::{Endpoint, Frame, Protocol};
use packtrain_proto::filter::rules::{Image, NamedSet, Rule, RuleFacts, RuleSet, Verdict};
use packtrain_proto::filter::{Host, Interface, Listener, Policy, Reason, decide};
use packtrain_proto::wire::ethernet::MacAddr;

/// Of each dimension, alone and with others, as it is and not. The tests run the seeds on a host of the same addresses.
const RULES: [&str; 26] = [
    "tcp syn dport 7000-7999",
    "udp port 53,5353 size 60-",
    "arp src-mac 52:54:00:01:00:fe",
    "ethertype 0x88cc",
    "ethertype 0-1500 not cast unicast",
    "vlan 7",
    "vlan any not inner-vlan any",
    "inner-vlan 100-200",
    "fragment",
    "empty sport 9000",
    "src 10.1.0.0/25 not dst 10.1.0.1",
    "host @bad",
    "not src @bad ip6",
    "dst ff02::/16 icmp6",
    "host fd00:1::/64 not udp",
    "dscp 46",
    "not dscp 0 ip",
    "proto 47,89,112",
    "cast broadcast not arp",
    "cast multicast udp",
    "dst-mac 01:00:5e:00:00:fb,33:33:00:00:00:fb",
    "not dst-mac 52:54:00:00:00:01 cast unicast",
    "size 1500-",
    "icmp size -60",
    "port 40000",
    "not ip not ip6",
];

struct Judges {
    plain: Host,
    /// Everything that makes a frame pass is there.
    busy: Host,
    rules: RuleSet,
    image: Image,
}

static JUDGES: LazyLock<Judges> = LazyLock::new(|| {
    let rules = rules();
    let image = Image::compile(&rules).expect("they are few");
    let plain = plain();
    let busy = Host {
        interface: Interface {
            has_vlans: true,
            learns_from_announcements: true,
            ..plain.interface.clone()
        },
        line: Some(Interface {
            unicast: vec![MacAddr([2, 0x70, 0x74, 1, 2, 3])],
            neighbours: vec!["10.9.0.2".parse().unwrap()],
            ..Interface::default()
        }),
        listeners: vec![Listener::Type(0x88cc), Listener::Type(0x0806)],
        redirects_ports: true,
        ..plain.clone()
    };
    Judges {
        plain,
        busy,
        rules,
        image,
    }
});

fn plain() -> Host {
    let own = "10.1.0.1".parse().unwrap();
    Host {
        interface: Interface {
            unicast: vec![MacAddr([0x52, 0x54, 0, 0, 0, 1])],
            groups: [
                "33:33:00:00:00:01",
                "01:00:5e:00:00:01",
                "33:33:ff:00:00:01",
            ]
            .map(|mac| mac.parse().unwrap())
            .to_vec(),
            addresses: vec![own, "fd00:1::1".parse().unwrap()],
            neighbours: vec!["10.1.0.254".parse().unwrap()],
            ..Interface::default()
        },
        local: vec!["10.1.0.1".parse().unwrap(), "127.0.0.0/8".parse().unwrap()],
        open: [Protocol::Tcp, Protocol::Udp]
            .map(|protocol| Endpoint {
                protocol,
                address: own,
                port: 7000,
            })
            .into(),
        ..Host::default()
    }
}

fn rules() -> RuleSet {
    let verdicts = ["deny", "allow", "limit 100/s"].map(|text| text.parse::<Verdict>().unwrap());
    let rule = |(number, matches): (usize, &&str)| Rule {
        name: format!("r{number}").parse().unwrap(),
        verdict: verdicts[number % verdicts.len()],
        matches: matches.parse().unwrap(),
    };
    let bad = NamedSet {
        name: "bad".parse().unwrap(),
        prefixes: [
            "10.1.0.64/26",
            "10.5.0.0/16",
            "fd00:1::100/120",
            "2001:db8::/32",
        ]
        .map(|text| text.parse().unwrap())
        .to_vec(),
    };
    RuleSet::new(RULES.iter().enumerate().map(rule).collect(), vec![bad]).unwrap()
}

/// With and without a tag that was taken out, and asked for ports or not.
fn judge(judges: &Judges, bytes: &[u8]) {
    for is_tagged in [false, true] {
        if let Some(frame) = Frame::read(bytes, is_tagged) {
            assert!(!frame.is_tagged || is_tagged || bytes.len() >= 18);
            assert!(frame.arp().is_none() || bytes.len() >= 14 + 28);
            assert!(frame.endpoint().is_none() || bytes.len() >= 14 + 28);
        }
        for host in [&judges.plain, &judges.busy] {
            for asks_ports in [false, true] {
                let of = |policy| decide(bytes, is_tagged, host, policy, asks_ports);
                let by_none = of(Policy::None);
                assert!(matches!(by_none, Reason::NoPolicy | Reason::Short));
                let (nima, host) = (of(Policy::Nima), of(Policy::Host));
                assert!(nima.is_drop() || !host.is_drop(), "{nima:?}, {host:?}");
            }
        }
    }
    let facts = RuleFacts::of(bytes);
    assert_eq!(facts.class.size as usize, bytes.len().min(65_535));
    let (rules, image) = (&judges.rules, &judges.image);
    assert_eq!(image.first_match(&facts), rules.first_match(&facts));
    assert!(image.matching(&facts).eq(rules.matching(&facts)));
    for is_full in [false, true] {
        let by_rules = rules.decide(&facts, |_, _| !is_full);
        assert_eq!(image.decide(&facts, |_, _| !is_full), by_rules);
    }
}

/// Behind so many bytes stands nothing that is read.
const CUT_MAX: usize = 160;

fuzz_target!(|frame: &[u8]| {
    let judges = &*JUDGES;
    judge(judges, frame);
    for len in 0..frame.len().min(CUT_MAX) {
        judge(judges, &frame[..len]);
    }
});
