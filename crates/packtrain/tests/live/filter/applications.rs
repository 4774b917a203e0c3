//! A few of the applications of `packtrain lab check filter`, those that take no time: what they are to people is the same with a
//! filter; and by the paper's algorithm alone some are not, which shows that a difference is seen.

use packtrain::filter::ModePolicy;
use packtrain::lab::applications::{self, Filter, Options, Report, Row, Verdict};
use packtrain_proto::filter::Policy;

use crate::common::packtrain;

fn run(policy: Policy, only: &[&str]) -> Report {
    let options = Options {
        only: only.iter().map(|&name| name.to_owned()).collect(),
        policy,
        mode: ModePolicy::Auto,
        quiet: true,
    };
    applications::run(packtrain(), &options).unwrap()
}

fn told(row: &Row) -> String {
    serde_json::to_string_pretty(row).unwrap()
}

#[test]
fn applications_have_the_same_outcome_with_a_filter() {
    live!();
    let only = ["dhcp", "mdns", "video", "new-card", "bridge"];
    let report = run(Policy::Host, &only);
    for row in &report.rows {
        match &row.skipped {
            Some(why) => println!("not shown: {}: {why}", row.application),
            None => assert_eq!(row.verdict, Verdict::Same, "{}", told(row)),
        }
    }
    // These need nothing that the lab does not.
    for name in ["mdns", "video", "bridge"] {
        let rows = report.rows.iter().filter(|row| row.application == name);
        let filters: Vec<Filter> = rows
            .filter(|row| row.verdict == Verdict::Same)
            .map(|row| row.filter)
            .collect();
        assert_eq!(filters, [Filter::Host, Filter::Ports], "{name}");
    }
}

#[test]
fn what_the_papers_algorithm_takes_away_is_seen() {
    live!();
    let report = run(Policy::Nima, &["foreign-protocol", "video-ipv6"]);
    let verdict = |name: &str| {
        let mut rows = report.rows.iter();
        let row = rows.find(|row| row.application == name).unwrap();
        (row.verdict, told(row))
    };
    let (foreign, row) = verdict("foreign-protocol");
    assert_eq!(foreign, Verdict::Differs, "{row}");
    let (video, row) = verdict("video-ipv6");
    assert_eq!(video, Verdict::Same, "{row}");
    assert!(!report.is_same());
    assert_eq!(
        report.problems(),
        "other outcome with a filter: foreign-protocol"
    );
}

#[test]
fn the_command_lists_them_and_knows_no_others() {
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(packtrain());
        command.args(["lab", "check", "filter"]).args(words);
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, listed, _) = run(&["--list"]);
    assert_eq!(code, Some(0));
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let all: Vec<&str> = applications::all().map(|of| of.name).collect();
    assert_eq!(names, all);
    let (code, _, error) = run(&["dhcp", "telepathy"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("telepathy"), "{error}");
}
