//! The program by `BPF_PROG_TEST_RUN`, frame by frame, against what the matches say.

use libbpf_rs::{ObjectBuilder, ProgramInput};
use packtrain_proto::class::Facts;
use packtrain_proto::random::Random;
use packtrain_proto::wire::packet::{Packet, protocol};

use super::super::rules::{FIRST_CLASS, RULES_MAX};
use super::*;
use crate::linux::test_namespace::in_namespace;

/// What conditions ask for; frames have the same few values, so that they meet.
const CONDITIONS: &[&str] = &[
    "udp",
    "ip",
    "ip6",
    "port 53",
    "dport 443,8000-8999",
    "sport 1-100,5060",
    "src 10.0.0.0/8",
    "dst 10.0.0.1,fd00::1",
    "host fd00::/9,10.0.0.2/31",
    "host ::/0",
    "dscp ef",
    "vlan 5",
    "size -90",
];
const PORTS: &[u16] = &[53, 50, 443, 5060, 8443, 40_000];

fn one_of<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.up_to(of.len() as u64 - 1) as usize]
}

fn drawn_match(random: &mut Random) -> Match {
    let terms: Vec<String> = (0..random.up_to(3))
        .map(|_| {
            let not = ["", "", "not "][random.up_to(2) as usize];
            format!("{not}{}", one_of(random, CONDITIONS))
        })
        .collect();
    match terms.is_empty() {
        true => Match::default(),
        false => terms.join(" ").parse().unwrap(),
    }
}

/// UDP mostly, else TCP or ICMP, over IPv4 or IPv6, some of it fragments, behind tags, with options, or cut.
fn drawn_frame(random: &mut Random) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for _ in 0..random.up_to(8).saturating_sub(6) {
        frame.extend(one_of(random, &[0x8100u16, 0x88a8]).to_be_bytes());
        frame.extend(one_of(random, &[5u16, 7]).to_be_bytes());
    }
    let number = one_of(random, &[17u8, 17, 17, 6, 1, 58, 17, 17]);
    let mut transport = Vec::new();
    for _ in 0..2 {
        transport.extend(one_of(random, PORTS).to_be_bytes());
    }
    transport.resize(12, 0);
    transport.extend([5 << 4, 0, 0, 0, 0, 0, 0, 0]);
    transport.resize(20 + random.up_to(60) as usize, 0xaa);
    let ends = [1, random.up_to(3) as u8];
    let tos = one_of(random, &[0, 46 << 2]);
    if random.up_to(1) == 0 {
        let ihl = one_of(random, &[5u8, 5, 6]);
        let fragment = one_of(random, &[0u16, 0, 0, 0x4000, 0x2000, 0x0010, 0x2010]);
        frame.extend([0x08, 0, 0x40 | ihl, tos]);
        frame.extend((u16::from(ihl) * 4 + transport.len() as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(fragment.to_be_bytes());
        frame.extend([64, number, 0, 0, 10, 0, 0, ends[1], 10, 0, 0, ends[0]]);
        frame.extend(vec![1; usize::from(ihl - 5) * 4]);
    } else {
        let extension = one_of(random, &[None, None, None, Some(0), Some(60), Some(44)]);
        frame.extend([0x86, 0xdd, 0x60 | tos >> 4, tos << 4, 0, 0]);
        let len = transport.len() + 8 * usize::from(extension.is_some());
        frame.extend((len as u16).to_be_bytes());
        frame.extend([extension.unwrap_or(number), 64]);
        for end in ends {
            frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
        }
        if extension.is_some() {
            frame.extend([number, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
    frame.extend(transport);
    if random.up_to(9) == 0 {
        // A test run takes none that ends within the IP header.
        let whole = 14 + 40 + random.up_to(40) as usize;
        frame.truncate(whole);
    }
    frame
}

fn is_udp(frame: &[u8]) -> bool {
    let parsed = Packet::parse(frame).ok();
    let ip = parsed.and_then(|packet| packet.ip);
    ip.is_some_and(|ip| ip.protocol == protocol::UDP)
}

#[test]
fn a_frame_of_udp_is_of_the_first_rule_that_matches_it_and_no_other_frame_is_of_any() {
    in_namespace(|| {
        let mut object = ObjectBuilder::default()
            .open_memory(embedded!("pace_class"))
            .unwrap();
        for mut program in object.progs_mut() {
            program.set_autoload(true);
        }
        let object = object.load().expect("it loads");
        let mut sorter = Sorter::of(&object).unwrap();
        let program = object.progs_mut().find(|it| it.name() == "pace_class_try");
        let program = program.expect("it is there");
        let mut random = Random::new(0x0443);
        let (mut of_none, mut of_one) = (0, 0);
        for table in 0..60 {
            let matches: Vec<Match> = (0..random.up_to(4))
                .map(|_| drawn_match(&mut random))
                .collect();
            // Any order of slots.
            let turn = random.up_to(RULES_MAX as u64 - 1) as usize;
            let slot = |place: usize| Slot(((place * 5 + turn) % RULES_MAX) as u8);
            let told = matches.iter().enumerate();
            let otherwise = [Otherwise::Direct, Otherwise::Spaced][table % 2];
            sorter
                .tell(told.map(|(place, it)| (slot(place), it)), otherwise)
                .unwrap();
            for _ in 0..100 {
                let frame = drawn_frame(&mut random);
                let facts = Facts::of(&frame, &Packet::parse(&frame), 0);
                let first = is_udp(&frame)
                    .then(|| matches.iter().position(|it| it.matches(&facts)))
                    .flatten();
                let class = match (first, otherwise) {
                    (Some(place), _) => FIRST_CLASS + u32::from(slot(place).0),
                    (None, Otherwise::Direct) => DIRECT,
                    (None, Otherwise::Spaced) => REST,
                };
                let input = ProgramInput {
                    data_in: Some(&frame),
                    ..ProgramInput::default()
                };
                let found = program.test_run(input).expect("it runs").return_value;
                assert_eq!(found, class, "{matches:?}: {frame:02x?}");
                match first {
                    Some(_) => of_one += 1,
                    None => of_none += 1,
                }
            }
        }
        assert!(of_none > 1000 && of_one > 1000, "{of_none} {of_one}");
    });
}

#[test]
fn the_constants_of_the_program_are_ours() {
    let header = include_str!("../../../bpf/pace_class.h");
    let defined = |name: &str| {
        let lines = header.lines().filter_map(|it| it.strip_prefix("#define "));
        let mut values = lines.filter_map(|it| it.strip_prefix(name)?.split_whitespace().next());
        let value = values.next().unwrap_or_else(|| panic!("no {name}"));
        match value.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).unwrap(),
            None => value.parse().unwrap(),
        }
    };
    assert_eq!(defined("PACE_CLASS_QDISC"), HANDLE);
    assert_eq!(defined("PACE_CLASS_DIRECT"), DIRECT);
    assert_eq!(defined("PACE_CLASS_REST"), REST);
    assert_eq!(HANDLE | REST, super::super::REST.class);
    assert_eq!(defined("PACE_CLASS_FIRST"), FIRST_CLASS);
    assert_eq!(defined("PACE_CLASS_VALUES"), VALUES_MAX as u32);
}
