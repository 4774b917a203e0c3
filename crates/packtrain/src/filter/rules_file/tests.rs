//! Files of rules: what they say, and what is wrong with them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use packtrain_proto::filter::Policy;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::filter::ModePolicy;
use crate::filter::rule_texts::RulesDocument;

fn errors(text: &str) -> String {
    parse(Path::new("rules.toml"), text)
        .unwrap_err()
        .to_string()
}

fn read_right(text: &str) -> RulesFile {
    parse(Path::new("rules.toml"), text).unwrap()
}

/// A folder that is gone again with its test.
struct Folder(std::path::PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = format!("packtrain-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_says_rules_sets_and_the_options_of_on() {
    let file = read_right(
        r#"
        policy = "nima"
        ports = "auto"
        mode = "tc"
        dry_run = true
        watchdog = 30
        [sets]
        office = ["10.0.0.0/8", "2001:db8::/32"]
        "no.one" = []
        [[rule]]
        name = "ssh"
        verdict = "allow"
        match = "tcp dport 22 src @office"
        [[rule]]
        limit = "20/s burst 9 per source"
        match = "tcp syn not src @no.one"
        [[rule]]
        name = "rule1"
        verdict = "deny"
        match = "any"
        "#,
    );
    assert_eq!(
        file.options,
        FileOptions {
            policy: Some(Policy::Nima),
            asks_ports: Some(true),
            mode: Some(ModePolicy::Tc),
            dry_run: Some(true),
            watchdog: Some(Some(Duration::from_secs(30))),
        }
    );
    let document = RulesDocument::from(&file.rules);
    let rules: Vec<_> = document
        .rules
        .iter()
        .map(|rule| (&rule.name[..], &rule.verdict[..], &rule.matches[..]))
        .collect();
    assert_eq!(
        rules,
        [
            ("ssh", "allow", "tcp dport 22 src @office"),
            (
                "rule2",
                "limit 20/s burst 9 per source",
                "tcp syn not src @no.one"
            ),
            ("rule1", "deny", "any"),
        ]
    );
    // By name.
    assert_eq!(document.sets[0].prefixes.len(), 0);
    assert_eq!(document.sets[1].prefixes, ["10.0.0.0/8", "2001:db8::/32"]);
    assert_eq!(document.sets[1].rules, ["ssh"]);
    assert_eq!(read_right("").options, FileOptions::default());
    assert_eq!(read_right("watchdog = 'off'").options.watchdog, Some(None));
}

#[test]
fn all_that_is_wrong_is_told_with_line_column_and_key() {
    assert_eq!(
        errors(
            "policy = 'all'\nports = true\nwatchdog = '1s'\ncolour = 'red'\n[sets]\n  x = '10.0.0.0/8'\n1y = []\n\
             z = ['::1',\n  '10.0.0.1/8', 7]\n[[rule]]\nname = 'a'\nmatch = 'upd'\n[[rule]]\nname = 'a b'\nverdict = 'drop'\n\
             match = 'ip'\n[[rule]]\nverdict = 'deny'\nlimit = '5'\nburst = 3\n"
        ),
        "rules.toml:1:10: policy: \"all\" is no policy: host, nima or none\n\
         rules.toml:2:9: ports: expected a string, found a boolean\n\
         rules.toml:3:12: watchdog: \"1s\" is no watchdog: a time in seconds, 2 to 3600, or off\n\
         rules.toml:4:1: colour: unknown key (known here: dry_run, mode, policy, ports, rule, sets, watchdog)\n\
         rules.toml:6:7: sets.x: expected an array of prefixes, or { file = \"blocked.txt\" }, found a string\n\
         rules.toml:7:1: sets.1y: a set's name begins with a letter, not with '1'\n\
         rules.toml:9:3: sets.z: 10.0.0.1/8 has bits behind its prefix: write it as 10.0.0.0/8\n\
         rules.toml:9:17: sets.z: expected a string, found an integer\n\
         rules.toml:10:1: rule: says nothing: verdict = \"allow\" or \"deny\", or limit = \"1000/s\"\n\
         rules.toml:12:9: rule.match: \"upd\" begins no condition: arp, ip, ip6, tcp, udp, icmp, icmp6, ethertype, \
         proto, dscp, port, sport, dport, host, src, dst, size, vlan, inner-vlan, src-mac, dst-mac, cast, fragment, syn, \
         empty, any\n\
         rules.toml:14:8: rule.name: a rule's name has letters, digits, '-', '_' and '.', and no ' '\n\
         rules.toml:15:11: rule.verdict: \"drop\" is no verdict: allow or deny; for a limit write limit = \"1000/s\" instead\n\
         rules.toml:17:1: rule.match: is missing\n\
         rules.toml:19:1: rule.limit: there is a verdict already: a rule has one, or a limit\n\
         rules.toml:19:9: rule.limit: \"5\" is no amount a second: write 1000/s, 10mbit/s or 1MB/s\n\
         rules.toml:20:1: rule.burst: unknown key (known here: limit, match, name, verdict)"
    );
    let text = errors("[[rule]]\nverdict = = 'deny'\n");
    assert!(text.starts_with("rules.toml:2:11: "), "{text}");
}

#[test]
fn rules_that_do_not_go_together_are_told_where_they_stand() {
    let rule = |name: &str, matches: &str| {
        format!("[[rule]]\nname = '{name}'\nverdict = 'deny'\nmatch = '{matches}'\n")
    };
    assert_eq!(
        errors(&[rule("a", "ip"), rule("a", "ip6")].concat()),
        "rules.toml:6:1: rule.name: there is a rule a already"
    );
    assert_eq!(
        errors(&rule("a", "src @x")),
        "rules.toml:4:1: rule.match: there is no set @x in [sets] (the file has none)"
    );
    let sets = "[sets]\nx = []\ny = []\n";
    assert_eq!(
        errors(&[sets, &rule("a", "dst @z")].concat()),
        "rules.toml:7:1: rule.match: there is no set @z in [sets] (the file has: x, y)"
    );
    let doubled =
        "host 10.0.0.0/8 port 53 host ::/0 port 54 host 10.0.0.1 port 55 host ::1 port 56";
    let many: String = (0..5).map(|n| rule(&format!("r{n}"), doubled)).collect();
    let text = errors(&many);
    assert!(
        text.starts_with("rules.toml:17:1: rule: rule r4 is one too many: "),
        "{text}"
    );
}

#[test]
fn sets_stand_in_files_beside_it() {
    let folder = Folder::with(
        "sets",
        &[
            ("right.txt", "10.0.0.0/8 # a\n::1\n"),
            ("wrong.txt", "10.0.0.0/8\n10.0.0.300\n"),
        ],
    );
    let path = folder.0.join("rules.toml");
    let text = "[sets]\nx = { file = 'right.txt' }\n[[rule]]\nverdict = 'deny'\nmatch = 'src @x'";
    let read = parse(&path, text).unwrap();
    assert_eq!(read.rules.sets()[0].prefixes.len(), 2);
    let errors = |text: &str| {
        let text = parse(&path, text).unwrap_err().to_string();
        text.replace(&format!("{}/", folder.0.display()), "")
    };
    assert_eq!(
        errors("[sets]\nx = { file = 'wrong.txt' }\ny = { file = 'none.txt' }\nz = { list = 1 }"),
        "rules.toml:3:7: sets.y.file: none.txt: No such file or directory (os error 2)\n\
         rules.toml:4:5: sets.z.file: is missing\n\
         rules.toml:4:7: sets.z.list: unknown key (known here: file)\n\
         wrong.txt:2:1: \"10.0.0.300\" is no IP address"
    );
}

#[test]
fn what_is_too_much_is_told_where_it_stands() {
    let many: Vec<String> = (0..131_073u32)
        .map(|n| format!("'{}'", Ipv4Addr::from_bits(n)))
        .collect();
    let text = format!("[sets]\nx = [{}]\n", many.join(","));
    assert_eq!(
        errors(&text),
        "rules.toml:1:2: sets: 131073 prefixes in all sets, and at most 131072 are possible"
    );
}

fn prefix() -> impl Strategy<Value = String> {
    let v4 = (any::<u32>(), 0..=32u32).prop_map(|(address, len)| {
        let mask = u32::MAX.checked_shl(32 - len).unwrap_or(0);
        format!("{}/{len}", Ipv4Addr::from_bits(address & mask))
    });
    let v6 = (any::<u128>(), 0..=128u32).prop_map(|(address, len)| {
        let mask = u128::MAX.checked_shl(128 - len).unwrap_or(0);
        format!("{}/{len}", Ipv6Addr::from_bits(address & mask))
    });
    prop_oneof![v4, v6]
}

fn document() -> impl Strategy<Value = RulesDocument> {
    use crate::filter::rule_texts::{RuleText, SetText};
    const SETS: [&str; 3] = ["office", "a.b-c_d", "empty"];
    let limit = (1..100_000u64, select(vec!["", "B", "kbit"]), any::<bool>()).prop_map(
        |(rate, unit, per_source)| {
            let unit = if unit == "kbit" { "000kbit" } else { unit };
            let per = if per_source { " per source" } else { "" };
            format!("limit {rate}{unit}/s{per}")
        },
    );
    let verdict = prop_oneof![Just("allow".to_owned()), Just("deny".to_owned()), limit];
    let condition = prop_oneof![
        select(vec![
            "tcp",
            "udp",
            "not icmp",
            "syn",
            "not fragment",
            "vlan 7"
        ])
        .prop_map(String::from),
        (0..65_535u16).prop_map(|port| format!("dport {port}-")),
        prefix().prop_map(|prefix| format!("not src {prefix}")),
        select(SETS.to_vec()).prop_map(|set| format!("src @{set}")),
        any::<[u8; 6]>().prop_map(|mac| {
            let [a, b, c, d, e, f] = mac;
            format!("dst-mac {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
        }),
    ];
    let matches = vec(condition, 1..4).prop_map(|conditions| conditions.join(" "));
    let rules = vec((verdict, matches), 0..20);
    (rules, vec(prefix(), 0..40), vec(prefix(), 0..4)).prop_map(|(rules, many, few)| {
        let rule = |(number, (verdict, matches))| RuleText {
            name: format!("r{number}"),
            verdict,
            matches,
        };
        let set = |(name, prefixes): (&str, Vec<String>)| SetText {
            name: name.into(),
            prefixes,
            rules: Vec::new(),
        };
        RulesDocument {
            rules: rules.into_iter().enumerate().map(rule).collect(),
            sets: SETS
                .into_iter()
                .zip([many, few, Vec::new()])
                .map(set)
                .collect(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn rules_that_are_written_are_read_as_they_were(document in document()) {
        let rules = document.read().unwrap();
        let file = read_right(&text_of(&rules, "a test"));
        prop_assert_eq!(file.rules.rules(), rules.rules());
        // Sets have no order: TOML's tables have none.
        let mut sets = rules.sets().to_vec();
        let mut read = file.rules.sets().to_vec();
        sets.sort_by(|a, b| a.name.cmp(&b.name));
        read.sort_by(|a, b| a.name.cmp(&b.name));
        prop_assert_eq!(read, sets);
        prop_assert_eq!(file.options, FileOptions::default());
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z\\[\\]={}'\"@ \n0-9./:#]{0,200}") {
        let _ = parse(Path::new("rules.toml"), &text);
    }
}
