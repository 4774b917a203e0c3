//! What is drawn of given answers, on terminals of several sizes, letter by letter.

use packtrain_proto::filter::Reason;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyModifiers;

use super::*;
use crate::filter::document::{Amount, FilterDocument, ReasonCount, RuleDocument, verdict_of};
use crate::view::screens::{self, styles, text};
use crate::view::theme::{Glyphs, Theme};

pub(in crate::view) const SECOND_NS: u64 = 1_000_000_000;

/// All that it has handled it has dropped as foreign ARP, of 60 bytes each.
pub(in crate::view) fn document(
    interface: &str,
    pid: u32,
    time_ns: u64,
    drops: u64,
    rule_frames: u64,
) -> FilterDocument {
    let dropped = Amount {
        frames: drops,
        bytes: drops * 60,
    };
    let mut document = FilterDocument {
        interface: interface.into(),
        version: "0.1.0".into(),
        pid: Some(pid),
        time_ns,
        stays: false,
        filters_unicast: None,
        rules_version: 0,
        known_as: interface.into(),
        unconfirmed: None,
        confirm_seconds_left: None,
        policy: "host".into(),
        mode: "native".into(),
        ports: "auto".into(),
        dry_run: false,
        watchdog_seconds: Some(10.0),
        line: Some("pt0".into()),
        local_prefixes: 3,
        local_prefixes_refused: 0,
        handled: dropped,
        useful: Amount::default(),
        dropped,
        rules: vec![rule("rule1", "deny", None, "udp dport 1900", rule_frames)],
        reasons: Default::default(),
    };
    set_reason(&mut document, Reason::ForeignArp, drops, drops * 60);
    document
}

pub(in crate::view) fn answer(pid: u32, time_ns: u64, drops: u64) -> Answer {
    Answer::Document(Box::new(document("eth1", pid, time_ns, drops, 0)))
}

fn rule(
    name: &str,
    verdict: &str,
    limit: Option<&str>,
    matches: &str,
    frames: u64,
) -> RuleDocument {
    RuleDocument {
        name: name.into(),
        verdict: verdict.into(),
        limit: limit.map(String::from),
        matches: matches.into(),
        frames,
        bytes: frames * 100,
    }
}

fn set_reason(document: &mut FilterDocument, reason: Reason, frames: u64, bytes: u64) {
    let count = ReasonCount {
        verdict: verdict_of(reason).into(),
        frames,
        bytes,
    };
    document.reasons.insert(reason.as_str().into(), count);
}

/// A busy segment: after `n` looks, with every reason, and three rules.
fn busy(n: u64, time_ns: u64) -> FilterDocument {
    let mut document = document("eth1", 7, time_ns, 0, 0);
    let (mut sums, mut all) = ([Amount::default(); 2], Amount::default());
    for (at, reason) in Reason::ALL.iter().enumerate() {
        // Some are many, some few, one rests.
        let each = (at as u64 * 37) % 11;
        let frames = each * each * each * (10 * n + n * n % 7);
        let bytes = frames * (64 + 40 * at as u64);
        set_reason(&mut document, *reason, frames, bytes);
        for sum in [&mut sums[usize::from(reason.is_drop())], &mut all] {
            sum.frames += frames;
            sum.bytes += bytes;
        }
    }
    [document.useful, document.dropped] = sums;
    document.handled = all;
    document.rules = vec![
        rule("ssh", "allow", None, "tcp dport 22 src 10.0.0.0/8", 3 * n),
        rule("rule1", "deny", None, "udp dport 1900,5353", 1000 * n),
        rule(
            "syns",
            "limit",
            Some("20/s burst 5 per source"),
            "tcp syn dport 443",
            50 * n,
        ),
    ];
    document
}

const PLAIN: Look = Look {
    theme: Theme::PLAIN,
    glyphs: Glyphs::UNICODE,
};

fn name(text: &str) -> InterfaceName {
    text.parse().unwrap()
}

/// One filter, looked at twelve times.
fn top_of_busy(look: Look) -> FilterTop {
    let mut top = FilterTop::new(look, Duration::from_secs(1));
    top.watch(&name("eth1"));
    look_at_busy(&mut top);
    top
}

fn look_at_busy(top: &mut FilterTop) {
    for n in 1..=12 {
        let answer = Answer::Document(Box::new(busy(n, n * SECOND_NS)));
        assert!(top.take(&name("eth1"), answer, 0));
    }
}

/// The second drops nothing, and the third has ended.
fn top_of_three(look: Look) -> FilterTop {
    let mut top = FilterTop::new(look, Duration::from_secs(1));
    let others = ["wlan0", "a-longer-name1"].map(name);
    for interface in [&name("eth1"), &others[0], &others[1]] {
        assert!(top.watch(interface));
    }
    look_at_busy(&mut top);
    for (interface, drops) in others.iter().zip([100, 0]) {
        for n in 1..=3 {
            let mut document = document(interface.as_str(), 8, n * SECOND_NS, drops * n, 0);
            document.dry_run = true;
            document.rules.clear();
            top.take(interface, Answer::Document(Box::new(document)), 0);
        }
    }
    top.take(&others[1], Answer::Ended, 0);
    top
}

fn press(top: &mut FilterTop, code: KeyCode) -> Then {
    top.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn drawn(top: &mut FilterTop, width: u16, height: u16) -> Buffer {
    screens::drawn(width, height, |frame| top.draw(frame))
}

fn is_as(file: &str, seen: &str) {
    screens::is_as("filter_top", file, seen);
}

#[test]
fn one_filter_on_a_small_and_on_a_large_terminal() {
    let mut top = top_of_busy(PLAIN);
    is_as("80x24.txt", &text(&drawn(&mut top, 80, 24)));
    is_as("120x40.txt", &text(&drawn(&mut top, 120, 40)));
}

#[test]
fn colours_of_dark_and_light_terminals_and_none() {
    for (file, theme) in [
        ("80x24-dark.txt", Theme::DARK),
        ("80x24-light.txt", Theme::LIGHT),
        ("80x24-plain.txt", Theme::PLAIN),
    ] {
        let look = Look { theme, ..PLAIN };
        let mut top = top_of_three(look);
        press(&mut top, KeyCode::Down);
        let buffer = drawn(&mut top, 80, 24);
        is_as(file, &(text(&buffer) + &styles(&buffer)));
    }
}

#[test]
fn a_terminal_that_is_too_small_is_told_so_and_none_makes_it_panic() {
    let mut top = top_of_busy(PLAIN);
    is_as("20x5.txt", &text(&drawn(&mut top, 20, 5)));
    let mut several = top_of_three(PLAIN);
    for top in [&mut top, &mut several] {
        for help in [false, true] {
            top.shows_help = help;
            for (width, height) in [(0, 0), (1, 1), (1, 50), (200, 1), (59, 12), (60, 11)] {
                drawn(top, width, height);
            }
            for height in 12..60 {
                for focus in [Pane::Filters, Pane::Reasons, Pane::Rules] {
                    top.focus = focus;
                    drawn(top, 60, height);
                    drawn(top, 300, height);
                }
            }
        }
    }
    // A new one has nothing to show.
    let mut new = FilterTop::new(PLAIN, Duration::from_secs(1));
    assert!(text(&drawn(&mut new, 80, 24)).contains("Looking for filters"));
    new.watch(&name("eth1"));
    assert!(text(&drawn(&mut new, 80, 24)).contains("Asking the filter of eth1"));
}

#[test]
fn without_a_locale_for_it_no_letter_is_more_than_ascii() {
    let look = Look {
        glyphs: Glyphs::ASCII,
        ..PLAIN
    };
    let mut top = top_of_three(look);
    for shows_help in [false, true] {
        top.shows_help = shows_help;
        for width in [80, 120] {
            let seen = text(&drawn(&mut top, width, 50));
            assert!(seen.is_ascii(), "{seen}");
        }
    }
}

#[test]
fn a_filter_that_ends_or_is_silent_is_told_and_one_that_comes_back_goes_on() {
    let mut top = top_of_busy(PLAIN);
    let eth1 = name("eth1");
    assert!(top.take(&eth1, Answer::Ended, 0));
    let seen = text(&drawn(&mut top, 80, 24));
    assert!(
        seen.contains(" The filter of eth1 has ended, and everything passes."),
        "{seen}"
    );
    // Nothing more happens: nothing is drawn.
    assert!(!top.take(&eth1, Answer::Ended, 0));
    assert!(top.take(&eth1, Answer::Failed("no answer within 5 s".into()), 0));
    let seen = text(&drawn(&mut top, 80, 24));
    assert!(
        seen.contains("eth1 does not answer: no answer within 5 s."),
        "{seen}"
    );
    for (time_ns, drops) in [(50 * SECOND_NS, 5), (51 * SECOND_NS, 47)] {
        top.take(&eth1, answer(9, time_ns, drops), 0);
    }
    let seen = text(&drawn(&mut top, 80, 24));
    assert!(
        !seen.contains("ended") && seen.contains("drop           42"),
        "{seen}"
    );
}

#[test]
fn a_filter_that_has_stayed_without_its_process_is_told_as_such_and_counted() {
    let mut top = FilterTop::new(PLAIN, Duration::from_secs(1));
    top.watch(&name("eth1"));
    for n in 1..=2 {
        let mut document = document("eth1", 0, n * SECOND_NS, 30 * n, 0);
        (document.pid, document.rules) = (None, Vec::new());
        top.take(&name("eth1"), Answer::Document(Box::new(document)), 0);
    }
    let seen = text(&drawn(&mut top, 80, 24));
    assert!(
        seen.contains(" Its process has ended: only its rules decide"),
        "{seen}"
    );
    assert!(seen.contains("drop           30"), "{seen}");
}

#[test]
fn what_is_paused_stands_still_and_what_came_meanwhile_is_shown_later() {
    let mut top = top_of_busy(PLAIN);
    let eth1 = name("eth1");
    let before = text(&drawn(&mut top, 80, 24));
    assert_eq!(press(&mut top, KeyCode::Char(' ')), Then::Draw);
    let more = || Answer::Document(Box::new(busy(40, 13 * SECOND_NS)));
    assert!(!top.take(&eth1, more(), 0));
    let paused = text(&drawn(&mut top, 80, 24));
    assert!(paused.contains("PAUSED"), "{paused}");
    let below = |text: &str| {
        text.lines()
            .skip(1)
            .take(20)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(below(&paused), below(&before));
    press(&mut top, KeyCode::Char('p'));
    let after = text(&drawn(&mut top, 80, 24));
    assert!(!after.contains("PAUSED") && below(&after) != below(&before));
}

fn rows_of(seen: &str, verdicts: &[&str]) -> Vec<String> {
    let lines = seen.lines();
    let rows = lines.filter(|line| verdicts.iter().any(|v| line.starts_with(v)));
    rows.map(str::to_owned).collect()
}

#[test]
fn rows_are_sorted_as_keys_say_in_each_table_apart() {
    let mut top = top_of_busy(PLAIN);
    let words = |top: &mut FilterTop| -> Vec<String> {
        let seen = text(&drawn(top, 120, 50));
        let rows = rows_of(&seen, &["pass ", "drop "]);
        rows.iter().map(|row| row[48..].trim().to_owned()).collect()
    };
    let by_rate = words(&mut top);
    assert!(by_rate.len() > 20);
    press(&mut top, KeyCode::Char('s'));
    press(&mut top, KeyCode::Char('s'));
    let mut by_name = words(&mut top);
    assert_ne!(by_name, by_rate);
    assert!(by_name.is_sorted(), "{by_name:#?}");
    by_name.sort();
    let mut sorted = by_rate.clone();
    sorted.sort();
    assert_eq!(sorted, by_name);

    let rules = |top: &mut FilterTop| -> Vec<String> {
        let seen = text(&drawn(top, 120, 50));
        let rows = rows_of(&seen, &["allow ", "deny ", "limit "]);
        let first = |row: &String| row.split(' ').next().unwrap().to_owned();
        rows.iter().map(first).collect()
    };
    assert_eq!(rules(&mut top), ["allow", "deny", "limit"]);
    press(&mut top, KeyCode::Tab);
    press(&mut top, KeyCode::Char('s'));
    assert_eq!(rules(&mut top), ["deny", "limit", "allow"]);
}

#[test]
fn a_table_that_is_longer_than_its_place_is_scrolled_to_its_end() {
    let mut top = top_of_busy(PLAIN);
    let seen = text(&drawn(&mut top, 80, 24));
    assert!(seen.contains("WHY (1-"), "{seen}");
    press(&mut top, KeyCode::End);
    let last = text(&drawn(&mut top, 80, 24));
    let shown = |text: &str| rows_of(text, &["pass ", "drop "]);
    assert_ne!(shown(&seen), shown(&last));
    press(&mut top, KeyCode::Down);
    assert_eq!(shown(&last), shown(&text(&drawn(&mut top, 80, 24))));
    press(&mut top, KeyCode::PageUp);
    press(&mut top, KeyCode::Home);
    assert_eq!(shown(&seen), shown(&text(&drawn(&mut top, 80, 24))));
}

#[test]
fn of_several_filters_one_is_chosen_and_shown() {
    let mut top = top_of_three(PLAIN);
    assert_eq!(top.focus, Pane::Filters);
    let dry =
        |top: &mut FilterTop| text(&drawn(top, 80, 24)).contains(" DRY RUN: nothing is dropped");
    assert!(!dry(&mut top));
    press(&mut top, KeyCode::Down);
    assert!(dry(&mut top));
    for _ in 0..5 {
        press(&mut top, KeyCode::Down);
    }
    let seen = text(&drawn(&mut top, 80, 24));
    assert!(
        seen.contains("The filter of a-longer-name1 has ended"),
        "{seen}"
    );
    for pane in [Pane::Reasons, Pane::Rules, Pane::Filters] {
        press(&mut top, KeyCode::Tab);
        assert_eq!(top.focus, pane);
    }
    press(&mut top, KeyCode::BackTab);
    assert_eq!(top.focus, Pane::Rules);
}

#[test]
fn keys_that_end_it_end_it() {
    let mut top = top_of_busy(PLAIN);
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    assert_eq!(press(&mut top, KeyCode::Char('q')), Then::Quit);
    assert_eq!(press(&mut top, KeyCode::Esc), Then::Quit);
    assert_eq!(top.handle_key(control('c')), Then::Quit);
    assert_eq!(top.handle_key(control('z')), Then::Stop);
    assert_eq!(top.handle_key(control('l')), Then::DrawAnew);
    assert_eq!(press(&mut top, KeyCode::Char('x')), Then::Nothing);
    // Of the help only Ctrl-C ends it.
    assert_eq!(press(&mut top, KeyCode::Char('?')), Then::Draw);
    let help = text(&drawn(&mut top, 80, 24));
    assert!(
        help.contains("Shift-Tab") && help.contains("without preamble"),
        "{help}"
    );
    assert_eq!(press(&mut top, KeyCode::Char('q')), Then::Draw);
    assert!(text(&drawn(&mut top, 80, 24)).contains("\nhandled "));
}

#[test]
fn lines_say_the_same_as_the_screen_and_nothing_before_there_is_a_rate() {
    let mut eth1 = Watched::new(name("eth1"));
    eth1.take(Answer::Document(Box::new(busy(1, SECOND_NS))), 0);
    assert_eq!(report::text(&eth1, "now"), None);
    assert_eq!(report::json(&eth1), None);
    eth1.take(Answer::Document(Box::new(busy(2, 3 * SECOND_NS))), 0);
    let lines = report::text(&eth1, "2026-11-26 07:00:01.123").unwrap();
    is_as("lines.txt", &lines);
    let value = report::json(&eth1).unwrap();
    assert_eq!(value["seconds"], 2.0);
    let (before, after) = (busy(1, 0), busy(2, 0));
    let passed = after.handled.frames - before.handled.frames;
    assert_eq!(value["handled"]["frames_per_s"], passed as f64 / 2.0);
    let bytes = after.dropped.bytes - before.dropped.bytes;
    assert_eq!(value["dropped"]["bits_per_s"], bytes as f64 * 4.0);
    assert_eq!(value["reasons"]["denied"]["verdict"], "drop");
    assert_eq!(value["rules"][2]["limit"], "20/s burst 5 per source");
    assert_eq!(value["rules"][2]["match"], "tcp syn dport 443");
    assert_eq!(value["rules"][2]["frames_per_s"], 25.0);
    eth1.take(Answer::Ended, 0);
    assert_eq!(report::json(&eth1), None);
}
