//! The image against the model: the same rules match, whatever the rules and the frame.

mod sizes;

use proptest::prelude::*;

use super::*;
use crate::filter::rules::facts::RuleFacts;
use crate::filter::rules::generate::{self, FrameShape, Network};
use crate::filter::rules::{NamedSet, Rule, RuleSet, Verdict};

/// Panics where image and model differ.
fn check(rules: &RuleSet, image: &Image, frame: &[u8]) {
    let facts = RuleFacts::of(frame);
    let expected: Vec<usize> = rules.matching(&facts).collect();
    let matching: Vec<usize> = image.matching(&facts).collect();
    assert_eq!(matching, expected, "{facts:?}");
    assert_eq!(image.first_match(&facts), rules.first_match(&facts));
    // Limits of odd rules are full.
    for full in [false, true] {
        let mut asked = Vec::new();
        let mut asked_image = Vec::new();
        let expected = rules.decide(&facts, |rule, limit| {
            asked.push((rule, limit.per_second(), limit.burst()));
            !(full && rule % 2 == 1)
        });
        let decision = image.decide(&facts, |rule, limit| {
            let limit = image.limit(limit);
            asked_image.push((rule, limit.per_second, limit.burst));
            !(full && rule % 2 == 1)
        });
        assert_eq!((decision, asked_image), (expected, asked), "{facts:?}");
    }
}

/// Rules of these matches, which deny.
fn deny(matches: &[&str], sets: Vec<NamedSet>) -> RuleSet {
    let rule = |(place, matches): (usize, &&str)| Rule {
        name: format!("r{place}").parse().unwrap(),
        verdict: Verdict::Deny,
        matches: matches.parse().unwrap(),
    };
    RuleSet::new(matches.iter().enumerate().map(rule).collect(), sets).unwrap()
}

fn set(name: &str, prefixes: impl Iterator<Item = String>) -> NamedSet {
    NamedSet {
        name: name.parse().unwrap(),
        prefixes: prefixes.map(|text| text.parse().unwrap()).collect(),
    }
}

fn used(image: &Image) -> Vec<Dimension> {
    let bits = image.words()[header::DIMENSIONS];
    let all = Dimension::ALL.into_iter();
    all.filter(|&dimension| bits >> dimension as u32 & 1 == 1)
        .collect()
}

#[test]
fn no_rules_match_nothing_and_any_matches_all() {
    let facts = RuleFacts::of(&FrameShape::default().bytes());
    let image = Image::compile(&RuleSet::default()).unwrap();
    assert_eq!(image.first_match(&facts), None);
    assert_eq!(image.words().len(), HEADER_WORDS);
    let image = Image::compile(&deny(&["any"; 70], vec![])).unwrap();
    assert_eq!(
        image.matching(&facts).collect::<Vec<_>>(),
        (0..70).collect::<Vec<_>>()
    );
    assert_eq!(used(&image), vec![]);
    assert_eq!(image.matching(&RuleFacts::of(&[])).count(), 70);
}

#[test]
fn only_what_is_asked_is_in_use() {
    for (matches, dimensions) in [
        ("tcp", vec![Dimension::Protocol]),
        ("src 10.0.0.0/8", vec![Dimension::Source]),
        (
            "not host ::/0",
            vec![Dimension::Source, Dimension::Destination],
        ),
        (
            "port 53",
            vec![Dimension::SourcePort, Dimension::DestinationPort],
        ),
        ("syn fragment empty cast unicast", vec![Dimension::Kinds]),
        ("src-mac 02:00:00:00:00:01", vec![Dimension::SourceMac]),
        (
            "inner-vlan any vlan 7",
            vec![Dimension::Vlan, Dimension::InnerVlan],
        ),
        (
            "arp size 64 dscp ef dst-mac 02:00:00:00:00:01",
            vec![
                Dimension::EtherType,
                Dimension::Size,
                Dimension::Dscp,
                Dimension::DestinationMac,
            ],
        ),
    ] {
        let image = Image::compile(&deny(&[matches], vec![])).unwrap();
        assert_eq!(used(&image), dimensions, "{matches}");
    }
}

#[test]
fn an_entry_names_its_rule_and_what_it_says() {
    let rules = generate::rules_of(&[
        ("limit 10mbit/s burst 5kB", "host 10.0.0.0/8 port 53"),
        ("allow", "tcp"),
        ("limit 7/s per source", "any"),
        ("deny", "any"),
    ]);
    let image = Image::compile(&rules).unwrap();
    let entries: Vec<Entry> = (0..image.entries()).map(|i| image.entry(i)).collect();
    let entry = |rule, verdict| Entry { rule, verdict };
    // Two ends of two things.
    let mut expected = vec![entry(0, EntryVerdict::Limit(0)); 4];
    expected.push(entry(1, EntryVerdict::Allow));
    expected.push(entry(2, EntryVerdict::Limit(1)));
    expected.push(entry(3, EntryVerdict::Deny));
    assert_eq!(entries, expected);
    let limits: Vec<LimitWords> = (0..image.limits()).map(|i| image.limit(i)).collect();
    let fast = LimitWords {
        per_second: 1_250_000,
        burst: 5000,
        in_bytes: true,
        per_source: false,
    };
    let slow = LimitWords {
        per_second: 7,
        burst: 5,
        in_bytes: false,
        per_source: true,
    };
    assert_eq!(limits, vec![fast, slow]);
    let buckets = [0, 1].map(|limit| image.words()[image.bucket_word(limit)]);
    assert_eq!(buckets, [0, 1]);
}

#[test]
fn a_rule_that_contradicts_itself_has_no_entry() {
    let rules = deny(
        &["tcp not tcp", "host ::/0 not host ::/0", "port 5 port 5"],
        vec![],
    );
    let image = Image::compile(&rules).unwrap();
    assert_eq!(image.entries(), 2);
}

#[test]
fn a_frame_cut_anywhere_matches_as_the_model_has_it() {
    let rules = deny(
        &[
            "any",
            "tcp",
            "syn",
            "empty",
            "fragment",
            "not fragment",
            "ip",
            "ip6",
            "port 2",
            "not port 2",
            "src 10.0.0.1",
            "not host 10.0.0.1",
            "dscp 9",
            "vlan 7",
            "vlan any",
            "inner-vlan 8",
            "size -40",
            "inner-vlan any",
            "cast unicast",
            "not cast unicast",
            "src-mac 02:00:00:00:00:01",
            "not dst-mac 02:00:00:00:00:01",
            "ethertype 0",
            "not dscp 9",
            "not sport 1",
        ],
        vec![],
    );
    let image = Image::compile(&rules).unwrap();
    for network in [
        Network::v4(),
        Network::v6(),
        Network::Other(46),
        Network::Other(0x0806),
    ] {
        for (tags, fragment) in [
            (vec![], false),
            (vec![7], false),
            (vec![7, 8], true),
            (vec![7, 8, 9], false),
        ] {
            let frame = FrameShape {
                network: network.clone(),
                tags,
                fragment,
                protocol: 6,
                flags: 2,
                dscp: 9,
                payload: 3,
                ..FrameShape::default()
            };
            let bytes = frame.bytes();
            for len in 0..=bytes.len() {
                check(&rules, &image, &bytes[..len]);
            }
        }
    }
}

#[test]
fn the_longest_frames_are_told_apart_from_shorter_ones() {
    let rules = deny(
        &["size 65535-", "size 65536-", "size -65534", "not size 1500"],
        vec![],
    );
    let image = Image::compile(&rules).unwrap();
    for len in [0, 1499, 1500, 1501, 65_534, 65_535, 65_536, 100_000] {
        check(&rules, &image, &vec![0; len]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_image_says_what_its_rules_say(
        rules in generate::any_rules(40, 60),
        frames in proptest::collection::vec(generate::any_frame(), 40),
    ) {
        let image = Image::compile(&rules).unwrap();
        for frame in &frames {
            check(&rules, &image, frame);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_image_of_many_rules_and_large_sets_does_too(
        rules in generate::any_rules(200, 5000),
        frames in proptest::collection::vec(generate::any_frame(), 60),
    ) {
        let image = Image::compile(&rules).unwrap();
        for frame in &frames {
            check(&rules, &image, frame);
        }
    }

    /// The ends of networks are where a mistake would show.
    #[test]
    fn the_neighbours_of_each_prefix_are_right(
        prefixes in proptest::collection::vec(generate::prefix(), 1..400),
        others in proptest::collection::vec(generate::prefix(), 1..20),
    ) {
        let named = |name: &str, prefixes: &[crate::class::prefix::Prefix]| NamedSet {
            name: name.parse().unwrap(),
            prefixes: prefixes.to_vec(),
        };
        let rules = deny(
            &["src @a", "src @b", "src @a not src @b", "not src @b"],
            vec![named("a", &prefixes), named("b", &others)],
        );
        let image = Image::compile(&rules).unwrap();
        for prefix in prefixes.iter().chain(&others) {
            let (first, mask) = prefix.address_and_mask();
            let is_v4 = prefix.version() == crate::wire::packet::IpVersion::V4;
            let last = first | if is_v4 { !mask & u128::from(u32::MAX) } else { !mask };
            for at in [first.wrapping_sub(1), first, last, last.wrapping_add(1)] {
                let network = match is_v4 {
                    true => Network::V4([at as u32, 1]),
                    false => Network::V6 { addresses: [at, 1], extensions: 0 },
                };
                let frame = FrameShape { network, ..FrameShape::default() };
                check(&rules, &image, &frame.bytes());
            }
        }
    }
}
