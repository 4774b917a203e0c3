//! What is drawn of given answers, on terminals of several sizes, letter by letter.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyModifiers;
use serde_json::json;

use super::*;
use crate::pace::tcp::document::{CountersDocument, PathDocument, StreamDocument, TcpDocument};
use crate::view::screens::{self, styles, text};
use crate::view::theme::{Glyphs, Theme};

pub(in crate::view) const SECOND_NS: u64 = 1_000_000_000;

/// From a port of its own, and doing nothing in particular.
pub(in crate::view) fn stream(n: u16, bytes_acked: u64) -> StreamDocument {
    serde_json::from_value(json!({
        "local": format!("10.9.0.1:{}", 40_000 + n),
        "remote": "10.9.0.2:5999",
        "phase": "free",
        "interval_ns": null,
        // What the kernel reckons is another number.
        "rate_bps": 12_345,
        "srtt_us": 101_200,
        "rtt_min_us": 100_040,
        "cwnd": 10,
        "ssthresh": null,
        "in_flight": 4,
        "mss": 1448,
        "bytes_acked": bytes_acked,
        "retransmitted": 0,
        "lost": {"spacing": 0, "clusters": 0, "free": 0},
        "knows_path": false,
        "is_sending": true,
        "rule": null,
        "ruled_bps": null,
    }))
    .unwrap()
}

pub(in crate::view) fn path(
    destination: &str,
    rate_bps: Option<u64>,
    rtt_min_us: u32,
    age_seconds: Option<f64>,
) -> PathDocument {
    serde_json::from_value(json!({
        "destination": destination,
        "rate_bps": rate_bps,
        "rtt_min_us": rtt_min_us,
        "age_seconds": age_seconds,
        "connections": 3,
        "losses": 1,
        "sending": 0,
    }))
    .unwrap()
}

pub(in crate::view) fn document(
    pid: u32,
    time_ns: u64,
    streams: Vec<StreamDocument>,
) -> TcpDocument {
    serde_json::from_value(json!({
        "kind": "tcp",
        "version": "0.1.0",
        "pid": pid,
        "congestion_control": "packtrain_cps",
        "cgroup": "/",
        "all_namespaces": false,
        "rules_only": false,
        "rules": [],
        "dport": [],
        "sport": [],
        "dst": [],
        "precision_ns": 1_000_000,
        "precision": {
            "source": "told", "why_unknown": null, "timer_precision_ns": null, "measured_seconds_ago": null,
            "measurements": 0, "holds": null, "off_p50_us": null, "off_p90_us": null,
        },
        "remembered_seconds": 600.0,
        "hystart_us": [4000, 16_000],
        "counters": CountersDocument::default(),
        "time_ns": time_ns,
        "streams": streams,
        "paths": [],
    }))
    .unwrap()
}

/// Streams of all kinds after `n` looks, and four paths.
fn busy(n: u64, time_ns: u64) -> TcpDocument {
    let mut streams: Vec<StreamDocument> = (1..=9)
        .map(|at| {
            let each = u64::from(at) % 9;
            // It rests, or carries more and less.
            let mut one = stream(at, each * (1_250_000 * n + (n * n % 7) * 100_000));
            one.remote = format!("192.0.2.{}:443", at % 4);
            one.cwnd = 10 + (each * each * 50) as u32;
            one.in_flight = one.cwnd - 3;
            one
        })
        .collect();
    (streams[0].phase, streams[0].interval_ns) = ("spacing".into(), Some(2_530_000));
    (streams[1].phase, streams[1].knows_path) = ("clusters".into(), true);
    (streams[2].rule, streams[2].ruled_bps) = (Some("backup".into()), Some(38_613_000));
    streams[1].retransmitted = 12 + 3 * n as u32;
    streams[1].lost.clusters = 12;
    streams[2].retransmitted = 123_456;
    streams[2].lost.free = 40_000 * n;
    (streams[3].srtt_us, streams[3].rtt_min_us) = (812, 45);
    streams[4].local = "[2001:db8:1:2:3:4:5:6]:40005".into();
    streams[4].remote = "[2001:db8:ffff:2:3:4:5:7]:65535".into();
    let mut document = document(7, time_ns, streams);
    document.counters.slow_starts = 20 + n;
    document.counters.slow_starts_known = 14;
    document.counters.ended_at_path = 9;
    document.counters.ended_by_delay = 4;
    document.counters.cut.spacing = 1;
    document.counters.cut.clusters = 6;
    document.counters.lost.clusters = 512;
    document.counters.lost.free = 40_000 * n;
    document.paths = vec![
        path("192.0.2.1", Some(94_100_000), 100_040, Some(12.3)),
        path("192.0.2.2", None, 812, None),
        path("192.0.2.3", Some(5_000_000), 45, Some(7300.0)),
        path(
            "2001:db8:ffff:2:3:4:5:7",
            Some(1_000_000_000),
            9,
            Some(0.02),
        ),
    ];
    document.paths[2].sending = 2;
    document
}

const PLAIN: Look = Look {
    theme: Theme::PLAIN,
    glyphs: Glyphs::UNICODE,
};

fn answer(document: TcpDocument) -> Answer {
    Answer::Document(Box::new(document))
}

/// Looked at twelve times.
fn top_of_busy(look: Look) -> PaceTop {
    let mut top = PaceTop::new(look, Duration::from_secs(1));
    for n in 1..=12 {
        assert!(top.take(answer(busy(n, n * SECOND_NS))));
    }
    top
}

fn press(top: &mut PaceTop, code: KeyCode) -> Then {
    top.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn types(top: &mut PaceTop, words: &str) {
    for letter in words.chars() {
        press(top, KeyCode::Char(letter));
    }
}

fn drawn(top: &mut PaceTop, width: u16, height: u16) -> Buffer {
    screens::drawn(width, height, |frame| top.draw(frame))
}

fn seen(top: &mut PaceTop) -> String {
    text(&drawn(top, 80, 24))
}

fn is_as(file: &str, seen: &str) {
    screens::is_as("pace_top", file, seen);
}

#[test]
fn streams_and_paths_on_a_small_and_on_larger_terminals() {
    let mut top = top_of_busy(PLAIN);
    is_as("60x12.txt", &text(&drawn(&mut top, 60, 12)));
    is_as("80x24.txt", &seen(&mut top));
    is_as("150x30.txt", &text(&drawn(&mut top, 150, 30)));
    press(&mut top, KeyCode::Char('h'));
    is_as("help.txt", &seen(&mut top));
}

#[test]
fn colours_of_dark_and_light_terminals_and_none() {
    for (file, theme) in [
        ("80x24-dark.txt", Theme::DARK),
        ("80x24-light.txt", Theme::LIGHT),
        ("80x24-plain.txt", Theme::PLAIN),
    ] {
        let look = Look { theme, ..PLAIN };
        let mut top = top_of_busy(look);
        top.take(Answer::Ended { log: None });
        let buffer = drawn(&mut top, 80, 24);
        is_as(file, &(text(&buffer) + &styles(&buffer)));
    }
}

#[test]
fn a_terminal_that_is_too_small_is_told_so_and_none_makes_it_panic() {
    let mut top = top_of_busy(PLAIN);
    is_as("20x5.txt", &text(&drawn(&mut top, 20, 5)));
    for shows_help in [false, true] {
        top.shows_help = shows_help;
        for (width, height) in [(0, 0), (1, 1), (1, 50), (200, 1), (59, 12), (60, 11)] {
            drawn(&mut top, width, height);
        }
        for height in 12..60 {
            for focus in [Pane::Streams, Pane::Paths] {
                for is_typing in [false, true] {
                    (top.focus, top.is_typing) = (focus, is_typing);
                    drawn(&mut top, 60, height);
                    drawn(&mut top, 300, height);
                }
            }
        }
    }
    // A new one has nothing to show.
    let mut new = PaceTop::new(PLAIN, Duration::from_secs(1));
    assert!(seen(&mut new).contains("Asking the pacer of TCP"));
    let mut empty = document(7, SECOND_NS, Vec::new());
    new.take(answer(empty.clone()));
    let nothing = seen(&mut new);
    assert!(
        nothing.contains("\nthere are none now\n") && nothing.contains("\nnone is known yet\n")
    );
    empty.remembered_seconds = None;
    (empty.hystart_us, empty.time_ns) = (None, 2 * SECOND_NS);
    new.take(answer(empty));
    let nothing = seen(&mut new);
    assert!(
        nothing.contains("paths remembered not   HyStart++ off"),
        "{nothing}"
    );
    assert!(nothing.contains("\nthey are not remembered\n"), "{nothing}");
    assert!(nothing.contains("streams           0       0"), "{nothing}");
}

#[test]
fn without_a_locale_for_it_no_letter_is_more_than_ascii() {
    let look = Look {
        glyphs: Glyphs::ASCII,
        ..PLAIN
    };
    let mut top = top_of_busy(look);
    types(&mut top, "/a word");
    for shows_help in [false, true] {
        top.shows_help = shows_help;
        for width in [80, 150] {
            let seen = text(&drawn(&mut top, width, 50));
            assert!(seen.is_ascii(), "{seen}");
        }
    }
}

#[test]
fn a_pacer_that_ends_or_is_silent_is_told_and_one_that_comes_back_goes_on() {
    let mut top = top_of_busy(PLAIN);
    let ended = || Answer::Ended { log: None };
    assert!(top.take(ended()));
    let shown = seen(&mut top);
    assert!(
        shown.contains(" The pacer of TCP has ended: what begins now is not spaced."),
        "{shown}"
    );
    // The streams are shown as they were, without rates.
    assert!(shown.contains("streams           -       9"), "{shown}");
    // Nothing more happens: nothing is drawn.
    assert!(!top.take(ended()));
    assert!(top.take(Answer::Failed("no answer within 5 s".into())));
    let shown = seen(&mut top);
    assert!(
        shown.contains("TCP does not answer: no answer within 5 s."),
        "{shown}"
    );
    let log = Some("/run/packtrain/1/pace:tcp.log".into());
    assert!(top.take(Answer::Ended { log }));
    let shown = seen(&mut top);
    assert!(
        shown.contains(" ended unasked: see /run/packtrain/1/pace:tcp.log."),
        "{shown}"
    );
    for n in [50, 51] {
        top.take(answer(document(
            9,
            n * SECOND_NS,
            vec![stream(1, n * 1000)],
        )));
    }
    let shown = seen(&mut top);
    assert!(
        !shown.contains("ended:  ") && shown.contains("streams       8.00k       1"),
        "{shown}"
    );
}

#[test]
fn what_is_paused_stands_still_and_what_came_meanwhile_is_shown_later() {
    let mut top = top_of_busy(PLAIN);
    let before = seen(&mut top);
    assert_eq!(press(&mut top, KeyCode::Char(' ')), Then::Draw);
    assert!(!top.take(answer(busy(40, 13 * SECOND_NS))));
    let paused = seen(&mut top);
    assert!(paused.contains(" PAUSED"), "{paused}");
    let below = |text: &str| {
        let lines = text.lines().skip(1).take(20);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(below(&paused), below(&before));
    press(&mut top, KeyCode::Char('p'));
    let after = seen(&mut top);
    assert!(!after.contains("PAUSED") && below(&after) != below(&before));
}

/// Of the table whose heading begins so.
fn rows(shown: &str, heading: &str) -> Vec<String> {
    let lines = shown.lines().skip_while(|line| !line.starts_with(heading));
    let rows = lines.skip(1).take_while(|line| !line.is_empty());
    rows.map(str::to_owned).collect()
}

/// The values of a column of numbers, which ends where its title does.
fn column(shown: &str, title: &str) -> Vec<String> {
    let heading = shown.lines().find(|line| line.starts_with("PHASE"));
    let heading = heading.unwrap();
    let end = heading.find(title).unwrap() + title.len();
    let value = |row: &String| row[..end].split(' ').next_back().unwrap().to_owned();
    rows(shown, "PHASE").iter().map(value).collect()
}

#[test]
fn keys_sort_each_table_apart_and_turn_it_round() {
    let mut top = top_of_busy(PLAIN);
    let mut shown = |keys: &str| {
        types(&mut top, keys);
        text(&drawn(&mut top, 100, 50))
    };
    let first = |shown: &str| rows(shown, "PHASE")[0].clone();
    let by_rate = shown("");
    assert!(by_rate.contains(" Sort: rate "), "{by_rate}");
    assert_eq!(column(&by_rate, "BIT/S").last().unwrap(), "0");
    let turned = shown("R");
    assert_eq!(column(&turned, "BIT/S")[0], "0");
    assert!(turned.contains(" Turned "), "{turned}");
    let by_rtt = shown("Rs");
    assert!(by_rtt.contains(" Sort: RTT "), "{by_rtt}");
    assert_eq!(column(&by_rtt, "RTT").last().unwrap(), "812us");
    let by_retransmissions = shown("s");
    assert!(first(&by_retransmissions).contains(" 48 +3 "));
    let by_window = shown("s");
    assert_eq!(column(&by_window, "CWND")[0], "3.21k");
    // Only the table that keys go to.
    press(&mut top, KeyCode::Tab);
    types(&mut top, "ss");
    let paths = text(&drawn(&mut top, 100, 50));
    assert!(paths.contains(" Sort: RTT "), "{paths}");
    assert_eq!(first(&paths), first(&by_window));
    let destinations = rows(&paths, "   BIT/S");
    assert!(destinations[0].ends_with(" 192.0.2.1"), "{paths}");
}

#[test]
fn only_rows_with_the_words_that_are_typed_are_shown_until_they_are_taken_away() {
    let mut top = top_of_busy(PLAIN);
    types(&mut top, "/192.0.2.3q");
    // They are letters now, and no commands.
    assert!(seen(&mut top).contains("none of 9 has \"192.0.2.3q\""));
    press(&mut top, KeyCode::Backspace);
    let shown = seen(&mut top);
    assert!(
        shown.contains("Only: 192.0.2.3 ") && shown.contains("Enter"),
        "{shown}"
    );
    assert!(shown.contains("   only \"192.0.2.3\""), "{shown}");
    let found = rows(&shown, "PHASE");
    assert!(found.len() == 2 && found.iter().all(|row| row.ends_with(" 192.0.2.3:443")));
    assert_eq!(rows(&shown, "   BIT/S").len(), 1);
    press(&mut top, KeyCode::Enter);
    assert!(seen(&mut top).contains(" Sort: rate "));
    // What it does is looked for as well.
    types(&mut top, "/");
    press(&mut top, KeyCode::Esc);
    types(&mut top, "/SPACING .1:443");
    let found = rows(&seen(&mut top), "PHASE");
    assert!(
        found.len() == 1 && found[0].starts_with("spacing "),
        "{found:?}"
    );
    assert_eq!(press(&mut top, KeyCode::Esc), Then::Draw);
    assert_eq!(rows(&text(&drawn(&mut top, 80, 50)), "PHASE").len(), 9);
    types(&mut top, &format!("/{}", "x".repeat(500)));
    assert_eq!(top.words.len(), WORDS_LETTERS_MAX);
    drawn(&mut top, 60, 12);
}

#[test]
fn a_table_that_is_longer_than_its_place_is_scrolled_to_its_end() {
    let mut top = top_of_busy(PLAIN);
    let small = |top: &mut PaceTop| text(&drawn(top, 80, 18));
    let at_first = small(&mut top);
    assert!(at_first.contains("REMOTE (1-"), "{at_first}");
    press(&mut top, KeyCode::End);
    let last = small(&mut top);
    assert_ne!(rows(&at_first, "PHASE"), rows(&last, "PHASE"));
    press(&mut top, KeyCode::Down);
    assert_eq!(rows(&last, "PHASE"), rows(&small(&mut top), "PHASE"));
    press(&mut top, KeyCode::PageUp);
    press(&mut top, KeyCode::Home);
    assert_eq!(rows(&at_first, "PHASE"), rows(&small(&mut top), "PHASE"));
}

#[test]
fn keys_that_end_it_end_it() {
    let mut top = top_of_busy(PLAIN);
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    assert_eq!(press(&mut top, KeyCode::Char('q')), Then::Quit);
    assert_eq!(press(&mut top, KeyCode::Esc), Then::Quit);
    assert_eq!(top.handle_key(control('z')), Then::Stop);
    assert_eq!(top.handle_key(control('l')), Then::DrawAnew);
    assert_eq!(press(&mut top, KeyCode::Char('x')), Then::Nothing);
    // Of the help and of words only Ctrl-C ends it.
    assert_eq!(press(&mut top, KeyCode::Char('?')), Then::Draw);
    assert_eq!(press(&mut top, KeyCode::Char('q')), Then::Draw);
    assert!(seen(&mut top).contains("\nstreams "));
    types(&mut top, "/q");
    assert_eq!(top.handle_key(control('c')), Then::Quit);
}

#[test]
fn totals_are_nothing_when_they_are_reset_and_grow_from_there() {
    let mut top = top_of_busy(PLAIN);
    types(&mut top, "r");
    let shown = seen(&mut top);
    assert!(shown.contains("totals since r"), "{shown}");
    assert!(shown.contains("slow starts 0 begun, 0 known;"), "{shown}");
    top.take(answer(busy(13, 13 * SECOND_NS)));
    let shown = seen(&mut top);
    assert!(shown.contains("slow starts 1 begun, 0 known;"), "{shown}");
    assert!(shown.contains("3 +3"), "{shown}");
}

#[test]
fn lines_say_the_same_as_the_screen_and_nothing_before_there_is_a_rate() {
    let mut tcp = Watched::default();
    tcp.take(answer(busy(1, SECOND_NS)));
    assert_eq!(report::text(&tcp, "now"), None);
    assert_eq!(report::json(&tcp), None);
    tcp.take(answer(busy(2, 3 * SECOND_NS)));
    let lines = report::text(&tcp, "2026-11-26 07:00:01.123").unwrap();
    is_as("lines.txt", &lines);
    let value = report::json(&tcp).unwrap();
    assert_eq!(value["seconds"], 2.0);
    let (before, after) = (busy(1, 0), busy(2, 0));
    let passed = after.streams[0].bytes_acked - before.streams[0].bytes_acked;
    let first = &value["streams"][0];
    assert_eq!(first["bits_per_s"], passed as f64 * 4.0);
    // With all that the status has of it.
    assert_eq!(
        (&first["rate_bps"], &first["phase"]),
        (&json!(12_345), &json!("spacing"))
    );
    assert_eq!(value["streams"][1]["retransmitted_lately"], 3);
    assert_eq!(value["counters"]["slow_starts"], 22);
    assert_eq!(value["phases"]["free"], 7);
    assert_eq!(value["paths"][0]["destination"], "192.0.2.1");
    tcp.take(Answer::Ended { log: None });
    assert_eq!(report::json(&tcp), None);
}
