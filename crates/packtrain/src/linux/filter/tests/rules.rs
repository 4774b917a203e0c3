//! Rules as the program asks them, against the slow model; and that limits let pass what they say.

use packtrain_proto::filter::rules::image::{self, Dimension, Image, header, kind, place, window};
use packtrain_proto::filter::rules::{self, RuleFacts, RuleSet};
use packtrain_proto::random::Random;

use super::as_the_model::Generator;
use super::frames::{UDP, frame, ipv4, tagged};
use super::world::{GATEWAY, OWN, OWN_IPV4, World, with_filter, with_filter_in};
use super::*;

pub(super) fn rules(lines: &[&str]) -> RuleSet {
    rules_with(lines, Vec::new())
}

fn rules_with(lines: &[&str], sets: Vec<rules::NamedSet>) -> RuleSet {
    let rule = |(number, line): (usize, &&str)| {
        let (verdict, matches) = line.split_once(": ").expect("VERDICT: MATCH");
        rules::Rule {
            name: format!("r{number}").parse().unwrap(),
            verdict: verdict.parse().unwrap(),
            matches: matches.parse().unwrap(),
        }
    };
    RuleSet::new(lines.iter().enumerate().map(rule).collect(), sets).unwrap()
}

#[test]
fn the_numbers_of_an_image_are_those_of_the_header() {
    let text = include_str!("../../../bpf/filter_rules.h");
    let number = |name: &str| -> u64 {
        let line = text.lines().find(|line| {
            let mut words = line
                .trim()
                .trim_start_matches("#define ")
                .split_whitespace();
            words.next() == Some(name)
        });
        let line = line.unwrap_or_else(|| panic!("no {name}"));
        let value = line
            .trim()
            .trim_start_matches("#define ")
            .strip_prefix(name)
            .unwrap();
        let value = value
            .trim()
            .trim_start_matches("= ")
            .split(['/', ','])
            .next()
            .unwrap();
        let value = value.trim().trim_matches(['(', ')']);
        match value.split_once(" << ") {
            Some((one, shift)) => {
                one.trim_end_matches('U').parse::<u64>().unwrap() << shift.parse::<u32>().unwrap()
            }
            None => value.parse().unwrap(),
        }
    };
    let expected = [
        ("RULES_WORDS_MAX", image::IMAGE_WORDS_MAX),
        ("RULES_MAX", rules::RULES_MAX),
        ("RULES_ENTRIES_MAX", image::ENTRIES_MAX),
        ("RULES_SOURCE", Dimension::Source as usize),
        ("RULES_DESTINATION", Dimension::Destination as usize),
        ("RULES_SOURCE_PORT", Dimension::SourcePort as usize),
        (
            "RULES_DESTINATION_PORT",
            Dimension::DestinationPort as usize,
        ),
        ("RULES_PROTOCOL", Dimension::Protocol as usize),
        ("RULES_ETHER_TYPE", Dimension::EtherType as usize),
        ("RULES_SIZE", Dimension::Size as usize),
        ("RULES_VLAN", Dimension::Vlan as usize),
        ("RULES_INNER_VLAN", Dimension::InnerVlan as usize),
        ("RULES_DSCP", Dimension::Dscp as usize),
        ("RULES_SOURCE_MAC", Dimension::SourceMac as usize),
        ("RULES_DESTINATION_MAC", Dimension::DestinationMac as usize),
        ("RULES_KINDS", Dimension::Kinds as usize),
        ("RULES_DIMENSIONS", image::DIMENSIONS),
        ("RULES_KIND_UNICAST", kind::UNICAST as usize),
        ("RULES_KIND_MULTICAST", kind::MULTICAST as usize),
        ("RULES_KIND_BROADCAST", kind::BROADCAST as usize),
        ("RULES_KIND_CAST_UNKNOWN", kind::CAST_UNKNOWN as usize),
        ("RULES_KIND_CAST", kind::CAST_MASK as usize),
        ("RULES_KIND_FRAGMENT", kind::FRAGMENT as usize),
        ("RULES_KIND_SYN", kind::SYN as usize),
        ("RULES_KIND_EMPTY", kind::EMPTY as usize),
        ("RULES_HEAD_DIMENSIONS", header::DIMENSIONS),
        ("RULES_HEAD_ROW_WORDS", header::ROW_WORDS),
        ("RULES_HEAD_ROWS", header::ROWS),
        ("RULES_HEAD_VERDICTS", header::VERDICTS),
        ("RULES_HEAD_LIMITS", header::LIMITS),
        ("RULES_HEAD_DIMENSION", header::DIMENSION),
        ("RULES_PLACE_OFFSET", place::OFFSET),
        ("RULES_PLACE_MASK", place::MASK),
        ("RULES_PLACE_V4", place::V4),
        ("RULES_PLACE_V6", place::V6),
        ("RULES_PLACE_ABSENT", place::ABSENT),
        ("RULES_DIMENSION_WORDS", image::DIMENSION_WORDS),
        ("RULES_LIMIT_WORDS", image::LIMIT_WORDS),
        ("RULES_LIMIT_BUCKET", image::LIMIT_BUCKET),
        ("RULES_SORTED_WORDS", image::SORTED_WORDS),
        ("RULES_LEAF6_WORDS", image::LEAF6_WORDS),
        ("RULES_ROW_WORDS_MAX", image::ROW_WORDS_MAX),
        ("RULES_OFFSET", image::REFERENCE_OFFSET as usize),
        ("RULES_WINDOW", image::REFERENCE_WINDOW as usize),
        ("RULES_WINDOWS_MAX", image::WINDOWS_MAX as usize),
        ("RULES_STEPS_16", image::STEPS_16 as usize),
        ("RULES_STEPS", image::STEPS as usize),
        ("RULES_WINDOW_MASK", window::MASK),
        ("RULES_WINDOW_BASE", window::BASE),
        ("RULES_WINDOW_HALF", window::HALF),
        ("RULES_WINDOW_SHIFT", window::SHIFT),
        ("RULES_WINDOW_INDEX_MASK", window::INDEX_MASK),
        ("RULES_WINDOW_OUTSIDE", window::OUTSIDE),
        ("RULES_WINDOW_ROOT", window::ROOT),
        ("RULES_VERDICT_ALLOW", image::VERDICT_ALLOW as usize),
        ("RULES_VERDICT_DENY", image::VERDICT_DENY as usize),
        ("RULES_VERDICT_SHIFT", image::VERDICT_SHIFT as usize),
        ("RULES_LIMIT_SHIFT", image::VERDICT_LIMIT_SHIFT as usize),
    ];
    for (name, value) in expected {
        assert_eq!(number(name), value as u64, "{name}");
    }
}

/// Rules of every kind of condition, and so many that a row has several words.
pub(super) fn many() -> RuleSet {
    let mut lines: Vec<String> = [
        "deny: udp dport 9 size 60-",
        "allow: tcp syn dport 53",
        "deny: not ip not arp ethertype 0x88cc",
        "deny: cast multicast not udp not ip6",
        "allow: vlan 7 inner-vlan any",
        "deny: vlan 100-2000 src 10.1.0.0/25",
        "deny: fragment",
        "allow: host fd00:1::2 udp",
        "deny: src @bad",
        "deny: dst-mac 52:54:00:00:00:05,52:54:00:00:00:09",
        "allow: src-mac 00:1b:21:09:09:09 tcp empty",
        "deny: dst ff02::/16",
        "deny: host 192.0.2.0/24 port 9",
        "deny: dscp 0 proto 47",
        "allow: icmp6",
    ]
    .map(String::from)
    .into();
    for last in 0..140 {
        lines.push(format!("deny: not cast broadcast dst 10.1.0.{last}"));
    }
    lines.push("deny: tcp sport 40000 size -40".into());
    lines.push("allow: arp dst-mac ff:ff:ff:ff:ff:ff".into());
    let mut random = Random::new(7);
    let bad = rules::NamedSet {
        name: "bad".parse().unwrap(),
        prefixes: (0..5000)
            .map(|_| {
                let [a, b, c] = [0; 3].map(|_: i32| random.up_to(255));
                match random.up_to(3) {
                    0 => format!("fd00:{a:x}:{b:x}::/48").parse().unwrap(),
                    1 => format!("10.1.0.{c}").parse().unwrap(),
                    _ => format!("{a}.{b}.{c}.0/24").parse().unwrap(),
                }
            })
            .collect(),
    };
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    rules_with(&lines, vec![bad])
}

#[test]
fn in_the_driver_rules_decide_as_the_model_says() {
    compare(Mode::Native, 11);
}

#[test]
fn at_tc_rules_decide_as_the_model_says() {
    compare(Mode::Tc, 12);
}

fn compare(mode: Mode, seed: u64) {
    const FRAMES: usize = 15_000;
    with_filter_in(mode, move |world| {
        let rules = many();
        world.set(|set| set.policy = Policy::None);
        world
            .filter
            .set_rules(Some(&Image::compile(&rules).unwrap()))
            .unwrap();
        let makes = Generator::of(9, 53);
        let mut random = Random::new(seed);
        let mut decided = vec![0u64; rules.rules().len()];
        let mut others = 0;
        for _ in 0..FRAMES {
            let bytes = makes.one_for(mode, &mut random);
            let facts = RuleFacts::of(&bytes);
            let by_model = rules.first_match(&facts);
            let drops =
                by_model.is_some_and(|rule| rules.rules()[rule].verdict == rules::Verdict::Deny);
            assert_eq!(
                world.passes(&bytes),
                !drops,
                "rule {by_model:?}: {bytes:02x?}"
            );
            match by_model {
                Some(rule) => decided[rule] += 1,
                None => others += 1,
            }
        }
        let counted = world.filter.rule_counters(decided.len()).unwrap();
        let counted: Vec<u64> = counted.iter().map(|count| count.frames).collect();
        assert_eq!(counted, decided);
        let asked = decided.iter().filter(|count| **count > 0).count();
        assert!(
            asked >= 20 && others > 1000,
            "{asked} rules, {others}: {decided:?}"
        );
    });
}

#[test]
fn the_first_rule_that_matches_decides_before_the_policy_and_is_counted() {
    with_filter(|world| {
        let ours = ipv4(OWN, GATEWAY, OWN_IPV4, UDP, 53);
        let foreign = frame("00:1b:21:01:01:01".parse().unwrap(), 0x0800, &[0; 46]);
        let ask = |world: &mut World, lines: &[&str]| {
            let image = Image::compile(&rules(lines)).unwrap();
            world.filter.set_rules(Some(&image)).unwrap();
        };
        ask(world, &["deny: udp dport 53", "allow: any"]);
        assert_eq!(world.reason(&ours), Reason::Denied);
        assert_eq!(world.reason(&foreign), Reason::Allowed);
        let counted = world.filter.rule_counters(2).unwrap();
        assert_eq!(
            (counted[0].frames, counted[0].bytes),
            (1, ours.len() as u64)
        );
        assert_eq!(
            (counted[1].frames, counted[1].bytes),
            (1, foreign.len() as u64)
        );
        // Others in their place begin to count anew, as do those after.
        ask(world, &["allow: udp dport 53"]);
        assert_eq!(world.reason(&ours), Reason::Allowed);
        assert_eq!(world.reason(&foreign), Reason::ForeignUnicast);
        assert_eq!(world.filter.rule_counters(1).unwrap()[0].frames, 1);
        ask(world, &["allow: udp dport 54"]);
        assert_eq!(world.reason(&ours), Reason::Ours);
        assert_eq!(world.filter.rule_counters(1).unwrap()[0].frames, 0);
        world.filter.set_rules(None).unwrap();
        assert_eq!(world.reason(&ours), Reason::Ours);
        // Nobody watches: rules are not asked either.
        ask(world, &["deny: any"]);
        world.set(|set| set.lease_until_ns = Some(1));
        assert_eq!(world.reason(&ours), Reason::Unrefreshed);
    });
}

#[test]
fn where_programs_interrupt_each_other_there_are_no_rules() {
    with_filter(|world| {
        world.filter.is_interrupted = true;
        let image = Image::compile(&rules(&["deny: any"])).unwrap();
        let refused = world.filter.set_rules(Some(&image));
        assert!(matches!(refused, Err(FilterError::Interrupted)));
        let ours = ipv4(OWN, GATEWAY, OWN_IPV4, UDP, 53);
        assert_eq!(world.reason(&ours), Reason::Ours);
        world.filter.set_rules(None).unwrap();
    });
}

#[test]
fn a_limit_lets_its_burst_pass_and_drops_what_is_more_and_each_source_has_its_own() {
    with_filter(|world| {
        world.set(|set| set.policy = Policy::None);
        let from = |last: u8| {
            ipv4(
                OWN,
                std::net::Ipv4Addr::new(10, 1, 0, last),
                OWN_IPV4,
                UDP,
                53,
            )
        };
        let passed = |world: &World, bytes: &[u8], times: usize| {
            (0..times).filter(|_| world.passes(bytes)).count()
        };
        let ask = |world: &mut World, line: &str| {
            let image = Image::compile(&rules(&[line])).unwrap();
            world.filter.set_rules(Some(&image)).unwrap();
        };
        // So slow that nothing comes back while the test runs.
        ask(world, "limit 1/s burst 20: udp");
        assert_eq!(
            passed(world, &from(7), 30) + passed(world, &from(8), 30),
            20
        );
        assert_eq!(world.filter.rule_counters(1).unwrap()[0].frames, 40);
        ask(world, "limit 1/s burst 20 per source: udp");
        assert_eq!(passed(world, &from(7), 30), 20);
        assert_eq!(passed(world, &from(8), 30), 20);
        // The same limit, anew: its buckets are full again.
        ask(world, "limit 1/s burst 20 per source: udp");
        assert_eq!(passed(world, &from(7), 30), 20);
        // By bytes: of 42 each.
        ask(world, "limit 1B/s burst 4200B: udp");
        assert_eq!(passed(world, &from(7), 150), 100);
        // What is not limited, and what tags hide from the condition, passes.
        let other = tagged(&frame(OWN, 0x0800, &[0; 46]), 0x8100, 7);
        assert_eq!(passed(world, &other, 30), 30);
        // A fast one fills while frames come: of so many not one is missing.
        ask(world, "limit 1000000000/s burst 5: udp");
        assert_eq!(passed(world, &from(7), 1000), 1000);
    });
}

/// So slow that nothing comes back while the test runs.
const SLOW: &str = "limit 1/s burst 20: udp dport 53";
const SLOW_BY_SOURCE: &str = "limit 1/s burst 20 per source: udp dport 54";

#[test]
fn a_limit_that_stays_when_others_change_has_its_buckets_as_they_were() {
    with_filter(|world| {
        world.set(|set| set.policy = Policy::None);
        let to = |port: u16| ipv4(OWN, GATEWAY, OWN_IPV4, UDP, port);
        let passed = |world: &World, port: u16, times: usize| {
            (0..times).filter(|_| world.passes(&to(port))).count()
        };
        let change = |world: &mut World, lines: &[&str], stays: &[Option<usize>]| {
            let image = Image::compile(&rules(lines)).unwrap();
            world.filter.change_rules(&image, stays).unwrap();
        };
        change(world, &[SLOW, SLOW_BY_SOURCE], &[]);
        assert_eq!((passed(world, 53, 15), passed(world, 54, 12)), (15, 12));
        // They change places, and one comes before them; several times, so that each place of images is written again.
        let new = "limit 1/s burst 7: udp dport 55";
        change(
            world,
            &[new, SLOW_BY_SOURCE, SLOW],
            &[None, Some(1), Some(0)],
        );
        assert_eq!(passed(world, 55, 30), 7);
        for stays in [[Some(0), Some(1), Some(2)]; 3] {
            change(world, &[new, SLOW_BY_SOURCE, SLOW], &stays);
        }
        assert_eq!(passed(world, 55, 30), 0);
        assert_eq!((passed(world, 53, 30), passed(world, 54, 30)), (5, 8));
        // One that does not stay is full, and takes nobody else's.
        change(world, &[SLOW, SLOW_BY_SOURCE, new], &[None, Some(1), None]);
        assert_eq!((passed(world, 53, 30), passed(world, 54, 30)), (20, 0));
        assert_eq!(passed(world, 55, 30), 7);
        // Nor does what is of another kind.
        change(world, &[SLOW_BY_SOURCE], &[Some(0)]);
        assert_eq!(passed(world, 54, 30), 20);
    });
}

#[test]
fn rules_that_the_program_cannot_be_told_of_change_nothing() {
    with_filter(|world| {
        let ours = ipv4(OWN, GATEWAY, OWN_IPV4, UDP, 53);
        let limited = Image::compile(&rules(&[SLOW, "deny: udp"])).unwrap();
        world.filter.set_rules(Some(&limited)).unwrap();
        for _ in 0..15 {
            assert_eq!(world.reason(&ours), Reason::Denied);
        }
        let allowing = Image::compile(&rules(&["allow: udp"])).unwrap();
        let swap = |world: &mut World| {
            let filter = &mut world.filter;
            // A map that takes no settings.
            std::mem::swap(&mut filter.settings_map, &mut filter.looked);
        };
        for image in [Some(&allowing), Some(&limited), None] {
            swap(world);
            world.filter.set_rules(image).unwrap_err();
            swap(world);
            // What is told later tells of no rules that were not taken.
            world.set(|set| set.dry_run = false);
            assert_eq!(world.reason(&ours), Reason::Denied);
        }
        let counted = world.filter.rule_counters(2).unwrap();
        assert_eq!((counted[0].frames, counted[1].frames), (0, 18));
        // Two are left in the bucket.
        assert_eq!(world.reason(&ours), Reason::Denied);
        assert_eq!(world.reason(&ours), Reason::Denied);
        assert_eq!(world.reason(&ours), Reason::Limited);
        world.filter.set_rules(Some(&allowing)).unwrap();
        assert_eq!(world.reason(&ours), Reason::Allowed);
    });
}

#[test]
fn at_tc_what_was_put_together_counts_as_what_it_was_put_together_from() {
    with_filter_in(Mode::Tc, |world| {
        world.set(|set| set.policy = Policy::None);
        let bytes = ipv4(OWN, GATEWAY, OWN_IPV4, UDP, 53);
        let passed = |world: &World, segments: u32| {
            (0..30)
                .filter(|_| world.passes_in_segments(&bytes, segments))
                .count()
        };
        let ask = |world: &mut World, line: &str| {
            let image = Image::compile(&rules(&[line])).unwrap();
            world.filter.set_rules(Some(&image)).unwrap();
        };
        ask(world, "limit 1/s burst 20: udp");
        assert_eq!(passed(world, 5), 4);
        // One that is longer than any burst passes when the bucket is full, and it takes as long until it is again.
        ask(world, "limit 1/s burst 20: udp dport 53");
        assert_eq!(passed(world, 44), 1);
        assert_eq!(passed(world, 1), 0);
    });
}
