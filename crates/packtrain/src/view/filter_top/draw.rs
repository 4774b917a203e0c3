//! How it looks.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::reading::{Flow, Measured, Reading};
use super::watched::{State, Watched};
use super::{FilterTop, Pane, Sort};
use crate::view::help::draw_help_page;
use crate::view::history::{History, sparkline};
use crate::view::numbers::{count, share, short_or_unknown};
use crate::view::table::{Column, Look, TableRow, draw as draw_table, draw_line, shared_room};

/// Less says too little.
const COLUMNS_MIN: u16 = 60;
const LINES_MIN: u16 = 12;
/// From so many columns on there is room for bytes as well.
const COLUMNS_WIDE: u16 = 110;
/// Of the list of filters.
const FILTERS_SEEN_MAX: usize = 6;
const TOTAL_LETTERS: u16 = 13;

pub(super) fn draw(top: &mut FilterTop, frame: &mut Frame) {
    let area = frame.area();
    if area.width < COLUMNS_MIN || area.height < LINES_MIN {
        let text = format!(
            "The terminal is too small: {} x {}. Make it {COLUMNS_MIN} x {LINES_MIN} at least. q quits.",
            area.width, area.height
        );
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    if top.shows_help {
        return draw_help(top, frame, area);
    }
    let filters = top.shown().to_vec();
    let listed = match filters.len() {
        0 | 1 => 0,
        many => 1 + many.min(FILTERS_SEEN_MAX).min(usize::from(area.height / 4)),
    };
    let [title, list, rest, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(listed as u16),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_title(top, frame, title);
    if listed > 0 {
        draw_filters(top, &filters, frame, list);
    }
    match filters.get(top.chosen) {
        Some(filter) => draw_filter(top, filter, frame, rest),
        None => frame.render_widget("Looking for filters", rest),
    }
    draw_keys(top, frame, keys);
}

fn draw_title(top: &FilterTop, frame: &mut Frame, area: Rect) {
    let theme = &top.look.theme;
    let shown = top.shown();
    let what = match shown {
        [one] => format!("packtrain filter of {}", one.interface),
        _ => format!("packtrain: {} filters", shown.len()),
    };
    let mut pieces = vec![Span::styled(what, theme.title)];
    let seconds = top.interval.as_secs_f64();
    pieces.push(format!("   every {seconds} s").into());
    if let Some(filter) = shown.get(top.chosen)
        && filter.is_reset()
    {
        pieces.push("   totals since r".into());
    }
    if top.paused.is_some() {
        pieces.push("   ".into());
        pieces.push(Span::styled(" PAUSED ", theme.alarm));
    }
    draw_line(frame, area, pieces);
}

fn draw_keys(top: &FilterTop, frame: &mut Frame, area: Rect) {
    let theme = &top.look.theme;
    let sort = format!("Sort: {}", top.sort_of_focus().as_str());
    let pause = match top.paused {
        Some(_) => "Go on",
        None => "Pause",
    };
    let keys = [
        ("q", "Quit"),
        ("s", sort.as_str()),
        ("p", pause),
        ("r", "Reset"),
        ("Tab", "Pane"),
        ("h", "Help"),
    ];
    let pieces = keys.into_iter().flat_map(|(key, what)| {
        [
            Span::styled(format!(" {key} "), theme.key),
            Span::raw(format!(" {what}  ")),
        ]
    });
    draw_line(frame, area, pieces);
}

fn draw_filters(top: &mut FilterTop, filters: &[Watched], frame: &mut Frame, area: Rect) {
    const COLUMNS: [Column; 6] = [
        Column::text("FILTER", 15),
        Column::number("HANDLED/S", 9),
        Column::number("BIT/S", 7),
        Column::number("DROPPED/S", 9),
        Column::number("SHARE", 7),
        Column::rest("STATE"),
    ];
    let theme = &top.look.theme;
    let rows: Vec<TableRow> = filters
        .iter()
        .enumerate()
        .map(|(at, filter)| {
            let reading = filter.reading.as_ref();
            let handled = reading.and_then(|r| r.handled.flow);
            let dropped = reading.and_then(|r| r.dropped.flow);
            let share = reading.map_or_else(
                || "-".into(),
                |r| share(r.dropped.total.frames, r.handled.total.frames),
            );
            let style = match at == top.chosen {
                true => theme.selected,
                false => Style::new(),
            };
            TableRow {
                cells: vec![
                    filter.interface.to_string(),
                    short_or_unknown(handled.map(|f| f.frames_per_s)),
                    short_or_unknown(handled.map(|f| f.bits_per_s())),
                    short_or_unknown(dropped.map(|f| f.frames_per_s)),
                    share,
                    state_words(filter),
                ],
                kind: style,
                style,
            }
        })
        .collect();
    let room = usize::from(area.height.saturating_sub(1));
    top.filters_scroll.show(top.chosen, room);
    let look = top.look;
    let is_focused = top.focus == Pane::Filters;
    let scroll = &mut top.filters_scroll;
    draw_table(frame, area, &look, &COLUMNS, &rows, scroll, is_focused);
}

fn state_words(filter: &Watched) -> String {
    match (&filter.state, &filter.reading) {
        (State::Ended, _) => "has ended".into(),
        (State::Silent(_), _) => "does not answer".into(),
        (State::Runs, Some(reading)) => {
            let document = &reading.document;
            let dry = if document.dry_run { ", DRY RUN" } else { "" };
            match document.pid {
                Some(_) => format!("{}, {}{dry}", document.policy, document.mode),
                None => format!("only its rules, {}{dry}", document.mode),
            }
        }
        _ => "asked".into(),
    }
}

/// What a person has to know before reading numbers.
fn alarms(filter: &Watched) -> Vec<String> {
    let mut alarms = Vec::new();
    match &filter.state {
        State::Ended => alarms.push(format!(
            "The filter of {} has ended, and everything passes. It is waited for; q quits.",
            filter.interface
        )),
        State::Silent(reason) => alarms.push(format!(
            "The filter of {} does not answer: {reason}. It is asked again.",
            filter.interface
        )),
        State::Asked | State::Runs => {}
    }
    if let Some(reading) = &filter.reading {
        let document = &reading.document;
        if document.pid.is_none() && filter.state == State::Runs {
            alarms.push("Its process has ended: only its rules decide, and all else passes".into());
        }
        if document.dry_run {
            alarms.push("DRY RUN: nothing is dropped, drops are only counted".into());
        }
        if document.local_prefixes_refused > 0 {
            alarms.push(format!(
                "{} local prefixes are more than can be looked up: ARP for others passes",
                document.local_prefixes_refused
            ));
        }
    }
    alarms
}

fn draw_filter(top: &mut FilterTop, filter: &Watched, frame: &mut Frame, area: Rect) {
    let alarms = alarms(filter);
    let Some(reading) = &filter.reading else {
        let text = match alarms.is_empty() {
            true => format!("Asking the filter of {}", filter.interface),
            false => alarms.join("\n"),
        };
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    };
    let [settings, alarm, sums, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(alarms.len() as u16),
        Constraint::Length(5),
        Constraint::Fill(1),
    ])
    .areas(area);
    draw_line(frame, settings, [Span::raw(settings_words(reading))]);
    let lines: Vec<Line> = alarms
        .iter()
        .map(|text| {
            let width = usize::from(area.width);
            let text = top.look.glyphs.fitted(&format!(" {text} "), width);
            Line::styled(format!("{text:<width$}"), top.look.theme.alarm)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), alarm);
    draw_sums(top, filter, reading, frame, sums);
    draw_tables(top, reading, frame, below);
}

fn settings_words(reading: &Reading) -> String {
    let document = &reading.document;
    let watchdog = match document.watchdog_seconds {
        Some(seconds) => format!("{seconds} s"),
        None => "off".into(),
    };
    let line = match &document.line {
        Some(line) => format!("   below line {line}"),
        None => String::new(),
    };
    format!(
        "policy {}   mode {}   ports {}   watchdog {watchdog}{line}",
        document.policy, document.mode, document.ports
    )
}

/// All that was handled, and what became of it, with what it was lately.
fn draw_sums(top: &FilterTop, filter: &Watched, reading: &Reading, frame: &mut Frame, area: Rect) {
    let Look { theme, glyphs } = &top.look;
    let is_wide = area.width >= COLUMNS_WIDE;
    let bytes_letters = if is_wide { 1 + TOTAL_LETTERS } else { 0 };
    let given = 10 + 9 + 1 + 7 + 1 + TOTAL_LETTERS + bytes_letters + 1 + 7 + 2;
    let drawn = usize::from(area.width.saturating_sub(given));
    let peak = filter.handled.peak(drawn);
    let bytes = |text: &str| match is_wide {
        true => format!(" {text:>width$}", width = usize::from(TOTAL_LETTERS)),
        false => String::new(),
    };
    let lately = format!(
        "LAST {drawn} LOOKS, PEAK {}/S",
        short_or_unknown(Some(peak))
    );
    let heading = format!(
        "{:10}{:>9} {:>7} {:>13}{} {:>7}  {}",
        "",
        "FRAMES/S",
        "BIT/S",
        "FRAMES",
        bytes("BYTES"),
        "SHARE",
        glyphs.fitted(&lately, drawn)
    );
    let width = usize::from(area.width);
    let mut lines = vec![
        Line::default(),
        Line::styled(format!("{heading:<width$}"), theme.heading),
    ];
    let not_passed = match reading.document.dry_run {
        true => "not useful",
        false => "dropped",
    };
    let rows: [(&str, Style, &Measured, &History); 3] = [
        ("handled", theme.chart, &reading.handled, &filter.handled),
        ("useful", theme.good, &reading.useful, &filter.useful),
        (not_passed, theme.bad, &reading.dropped, &filter.dropped),
    ];
    for (name, style, measured, history) in rows {
        let flow = measured.flow;
        let text = format!(
            "{:>9} {:>7} {:>13}{} {:>7}  ",
            short_or_unknown(flow.map(|f| f.frames_per_s)),
            short_or_unknown(flow.as_ref().map(Flow::bits_per_s)),
            count(measured.total.frames, usize::from(TOTAL_LETTERS)),
            bytes(&count(measured.total.bytes, usize::from(TOTAL_LETTERS))),
            share(measured.total.frames, reading.handled.total.frames),
        );
        let chart = sparkline(history.last(drawn), peak, glyphs.levels);
        lines.push(Line::from(vec![
            Span::styled(format!("{name:10}"), style),
            Span::raw(text),
            // Now is at the right, as everywhere.
            Span::styled(format!("{chart:>drawn$}"), style),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_tables(top: &mut FilterTop, reading: &Reading, frame: &mut Frame, area: Rect) {
    let (reasons, rules) = (reading.reasons.len(), reading.rules.len());
    // A line before each, and its heading.
    let room = usize::from(area.height).saturating_sub(4);
    let is_second = top.focus == Pane::Rules;
    let (reasons_room, rules_room) = shared_room(room, reasons.max(1), rules.max(1), is_second);
    let [_, first, _, second, _] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1 + reasons_room as u16),
        Constraint::Length(1),
        Constraint::Length(1 + rules_room as u16),
        Constraint::Fill(1),
    ])
    .areas(area);
    draw_reasons(top, reading, frame, first);
    draw_rules(top, reading, frame, second);
}

/// By rate or total, the largest first; what is equal stands as it did.
fn sort_by<T>(
    rows: &mut [T],
    sort: Sort,
    measured: impl Fn(&T) -> &Measured,
    name: impl Fn(&T) -> &str,
) {
    match sort {
        Sort::Order => {}
        Sort::Name => rows.sort_by(|a, b| name(a).cmp(name(b))),
        Sort::Total => rows.sort_by_key(|row| Reverse(measured(row).total.frames)),
        Sort::Rate => rows.sort_by(|a, b| {
            let key = |row| {
                let measured: &Measured = measured(row);
                let rate = measured.flow.map_or(0.0, |flow| flow.frames_per_s);
                (rate, measured.total.frames)
            };
            let ((rate_a, total_a), (rate_b, total_b)) = (key(a), key(b));
            rate_b.total_cmp(&rate_a).then(total_b.cmp(&total_a))
        }),
    }
}

fn draw_reasons(top: &mut FilterTop, reading: &Reading, frame: &mut Frame, area: Rect) {
    const COLUMNS: [Column; 6] = [
        Column::text("VERDICT", 7),
        Column::number("FRAMES/S", 9),
        Column::number("BYTES/S", 7),
        Column::number("FRAMES", TOTAL_LETTERS),
        Column::number("SHARE", 7),
        Column::rest("WHY"),
    ];
    let theme = &top.look.theme;
    let mut reasons = reading.reasons.clone();
    sort_by(
        &mut reasons,
        top.reasons_sort,
        |row| &row.measured,
        |row| &row.words,
    );
    let handled = reading.handled.total.frames;
    let mut rows: Vec<TableRow> = reasons
        .iter()
        .map(|reason| {
            let measured = &reason.measured;
            let (verdict, kind) = match reason.is_drop {
                true => ("drop", theme.bad),
                false => ("pass", theme.good),
            };
            let is_quiet = measured.flow.is_none_or(|flow| flow.frames_per_s == 0.0);
            TableRow {
                cells: vec![
                    verdict.into(),
                    short_or_unknown(measured.flow.map(|f| f.frames_per_s)),
                    short_or_unknown(measured.flow.map(|f| f.bytes_per_s)),
                    count(measured.total.frames, usize::from(TOTAL_LETTERS)),
                    share(measured.total.frames, handled),
                    reason.words.clone(),
                ],
                kind,
                style: if is_quiet { theme.faint } else { Style::new() },
            }
        })
        .collect();
    if rows.is_empty() {
        rows.push(said("no frame has come yet", COLUMNS.len(), theme.faint));
    }
    let look = top.look;
    let is_focused = top.focus == Pane::Reasons;
    let scroll = &mut top.reasons_scroll;
    draw_table(frame, area, &look, &COLUMNS, &rows, scroll, is_focused);
}

fn draw_rules(top: &mut FilterTop, reading: &Reading, frame: &mut Frame, area: Rect) {
    const COLUMNS: [Column; 5] = [
        Column::text("VERDICT", 7),
        Column::number("FRAMES/S", 9),
        Column::number("FRAMES", TOTAL_LETTERS),
        Column::text("RULE", 12),
        Column::rest("DECIDES ON"),
    ];
    let theme = &top.look.theme;
    let mut rules = reading.rules.clone();
    sort_by(
        &mut rules,
        top.rules_sort,
        |row| &row.measured,
        |row| &row.name,
    );
    let mut rows: Vec<TableRow> = rules
        .iter()
        .map(|rule| {
            let measured = &rule.measured;
            let is_quiet = measured.flow.is_none_or(|flow| flow.frames_per_s == 0.0);
            TableRow {
                cells: vec![
                    rule.verdict.clone(),
                    short_or_unknown(measured.flow.map(|f| f.frames_per_s)),
                    count(measured.total.frames, usize::from(TOTAL_LETTERS)),
                    rule.name.clone(),
                    rule.decides.clone(),
                ],
                kind: match rule.verdict.as_str() {
                    "allow" => theme.good,
                    _ => theme.bad,
                },
                style: if is_quiet { theme.faint } else { Style::new() },
            }
        })
        .collect();
    if rows.is_empty() {
        let text = "no rules: the policy decides";
        rows.push(said(text, COLUMNS.len(), theme.faint));
    }
    let look = top.look;
    let is_focused = top.focus == Pane::Rules;
    let scroll = &mut top.rules_scroll;
    draw_table(frame, area, &look, &COLUMNS, &rows, scroll, is_focused);
}

/// A row that only says something, in the widest column.
fn said(text: &str, columns: usize, style: Style) -> TableRow {
    let mut cells = vec![String::new(); columns];
    cells[columns - 1] = text.into();
    TableRow {
        cells,
        kind: style,
        style,
    }
}

fn draw_help(top: &FilterTop, frame: &mut Frame, area: Rect) {
    const KEYS: &[(&str, &str)] = &[
        ("q, Esc, Ctrl-C", "quit"),
        (
            "s",
            "sort: reasons by rate, total, name; rules also as asked",
        ),
        (
            "p, space",
            "pause, and go on: what comes meanwhile is counted",
        ),
        ("r", "totals and shares count from now on"),
        (
            "Tab, Shift-Tab",
            "the next table, or the one before: its heading is lit",
        ),
        ("arrows, j, k", "scroll it; in the list: choose a filter"),
        ("PgUp, PgDn", "… by a page;  Home, End: to its ends"),
        (
            "Ctrl-L, Ctrl-Z",
            "draw anew; let the shell have the terminal",
        ),
        ("h, ?", "this; any key leaves it"),
    ];
    const TEXTS: &[&str] = &[
        "Rates are of the time between two looks, as the filter has measured it; - is not known.",
        "Handled: all frames that were judged. Useful: those that went on to the stack.",
        "Bits and bytes are of frames, without preamble, checksum and gap. k is 1000.",
        "Charts have one scale, from nothing to the peak of what was handled.",
    ];
    draw_help_page(frame, area, &top.look, "packtrain filter top", KEYS, TEXTS);
}
