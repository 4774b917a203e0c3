//! How it looks.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::columns::{CellColumn, NAME_LETTERS, PATHS, STREAMS, fitting};
use super::order::{has_words, words_of};
use super::reading::{Reading, StreamReading, Totals};
use super::watched::{State, Watched};
use super::{PaceTop, Pane};
use crate::pace::tcp::document::{PathDocument, TcpDocument};
use crate::view::help::draw_help_page;
use crate::view::history::sparkline;
use crate::view::numbers::{short, short_or_unknown, short_time};
use crate::view::table::{Column, Look, TableRow, draw as draw_table, draw_line, shared_room};

/// Less says too little.
const COLUMNS_MIN: u16 = 60;
const LINES_MIN: u16 = 12;
/// With less room than for so many rows one table has it all.
const ROWS_OF_BOTH_MIN: usize = 4;
/// What is left and right of the chart.
const SUMS_LETTERS: u16 = 12 + 7 + 8 + 9 + 9 + 8 + 2;

pub(super) fn draw(top: &mut PaceTop, frame: &mut Frame) {
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
    let [title, rest, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_title(top, frame, title);
    let tcp = top.shown().clone();
    draw_tcp(top, &tcp, frame, rest);
    match top.is_typing {
        true => draw_words(top, frame, keys),
        false => draw_keys(top, frame, keys),
    }
}

fn draw_title(top: &PaceTop, frame: &mut Frame, area: Rect) {
    let theme = &top.look.theme;
    let mut pieces = vec![Span::styled("packtrain pace of TCP", theme.title)];
    let seconds = top.interval.as_secs_f64();
    pieces.push(format!("   every {seconds} s").into());
    if !top.words.is_empty() {
        let words = top.look.glyphs.fitted(&top.words, 24);
        pieces.push(format!("   only {words:?}").into());
    }
    if top.shown().is_reset() {
        pieces.push("   totals since r".into());
    }
    if top.paused.is_some() {
        pieces.push("   ".into());
        pieces.push(Span::styled(" PAUSED ", theme.alarm));
    }
    draw_line(frame, area, pieces);
}

fn draw_keys(top: &PaceTop, frame: &mut Frame, area: Rect) {
    let theme = &top.look.theme;
    let by = match top.focus {
        Pane::Streams => top.streams_sort.as_str(),
        Pane::Paths => top.paths_sort.as_str(),
    };
    let sort = format!("Sort: {by}");
    let turn = if top.is_turned { "Turned" } else { "Turn" };
    let pause = match top.paused {
        Some(_) => "Go on",
        None => "Pause",
    };
    let keys = [
        ("q", "Quit"),
        ("s", sort.as_str()),
        ("R", turn),
        ("/", "Only"),
        ("p", pause),
        ("h", "Help"),
        ("Tab", "Pane"),
        ("r", "Reset"),
    ];
    let pieces = keys.into_iter().flat_map(|(key, what)| {
        [
            Span::styled(format!(" {key} "), theme.key),
            Span::raw(format!(" {what}  ")),
        ]
    });
    draw_line(frame, area, pieces);
}

/// What is typed; its end is seen.
fn draw_words(top: &PaceTop, frame: &mut Frame, area: Rect) {
    let theme = &top.look.theme;
    let letters = top.words.chars().count();
    let skipped = letters.saturating_sub(usize::from(area.width.saturating_sub(36)));
    let end: String = top.words.chars().skip(skipped).collect();
    let pieces = [
        Span::styled("Only: ", theme.title),
        Span::raw(end),
        Span::styled(" ", theme.selected),
        Span::raw("  "),
        Span::styled(" Enter ", theme.key),
        Span::raw(" Keep  "),
        Span::styled(" Esc ", theme.key),
        Span::raw(" All"),
    ];
    draw_line(frame, area, pieces);
}

/// What a person has to know before reading numbers.
fn alarm(tcp: &Watched) -> Option<String> {
    match &tcp.state {
        State::Ended { log: None } => Some(
            "The pacer of TCP has ended: what begins now is not spaced. It is waited for; q quits."
                .into(),
        ),
        State::Ended { log: Some(log) } => Some(format!(
            "The pacer of TCP ended unasked: see {}. It is waited for; q quits.",
            log.display()
        )),
        State::Silent(reason) => Some(format!(
            "The pacer of TCP does not answer: {reason}. It is asked again."
        )),
        State::Asked | State::Runs => None,
    }
}

fn draw_tcp(top: &mut PaceTop, tcp: &Watched, frame: &mut Frame, area: Rect) {
    let alarm = alarm(tcp);
    let Some(reading) = &tcp.reading else {
        let text = alarm.unwrap_or_else(|| "Asking the pacer of TCP".into());
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    };
    let [settings, told, sums, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(alarm.iter().len() as u16),
        Constraint::Length(5),
        Constraint::Fill(1),
    ])
    .areas(area);
    let Look { theme, glyphs } = top.look;
    let width = usize::from(area.width);
    let words = glyphs.fitted(&settings_words(&reading.document), width);
    draw_line(frame, settings, [Span::raw(words)]);
    if let Some(text) = alarm {
        let text = glyphs.fitted(&format!(" {text} "), width);
        let line = Line::styled(format!("{text:<width$}"), theme.alarm);
        frame.render_widget(line, told);
    }
    draw_sums(top, tcp, reading, frame, sums);
    draw_tables(top, reading, frame, below);
}

fn settings_words(document: &TcpDocument) -> String {
    let whose = match document.all_namespaces {
        true => "all network namespaces",
        false => "this network namespace",
    };
    let cgroup = match document.cgroup.as_str() {
        "/" => String::new(),
        cgroup => format!("   cgroup {cgroup}"),
    };
    let remembered = match document.remembered_seconds {
        Some(seconds) => set_time(seconds),
        None => "not".into(),
    };
    let hystart = match document.hystart_us {
        Some((least, most)) => {
            let [least, most] = [least, most].map(|us| set_time(f64::from(us) / 1e6));
            format!("{least}..{most}")
        }
        None => "off".into(),
    };
    format!(
        "{whose}{cgroup}   T {}   paths remembered {remembered}   HyStart++ {hystart}",
        set_time(document.precision_ns as f64 / 1e9)
    )
}

/// As somebody has set it: `1ms`, and not `1.00ms`.
fn set_time(seconds: f64) -> String {
    let text = short_time(seconds);
    let Some((whole, rest)) = text.split_once('.') else {
        return text;
    };
    let letters = rest.find(char::is_alphabetic).unwrap_or(rest.len());
    let (part, unit) = rest.split_at(letters);
    match part.trim_end_matches('0') {
        "" => format!("{whole}{unit}"),
        part => format!("{whole}.{part}{unit}"),
    }
}

/// All streams, with what they carried lately, and what slow starts came to.
fn draw_sums(top: &PaceTop, tcp: &Watched, reading: &Reading, frame: &mut Frame, area: Rect) {
    let Look { theme, glyphs } = &top.look;
    let drawn = usize::from(area.width.saturating_sub(SUMS_LETTERS));
    let peak = tcp.bits.peak(drawn);
    let lately = format!("LAST {drawn} LOOKS, PEAK {}", short_or_unknown(Some(peak)));
    let heading = format!(
        "{:12}{:>7}{:>8}{:>9}{:>9}{:>8}  {}",
        "",
        "BIT/S",
        "ALL",
        "SPACING",
        "CLUSTERS",
        "FREE",
        glyphs.fitted(&lately, drawn)
    );
    let width = usize::from(area.width);
    let phases = &reading.phases;
    let streams = format!(
        "{:>7}{:>8}{:>9}{:>9}{:>8}  ",
        short_or_unknown(reading.bits_per_s),
        reading.streams.len(),
        phases.spacing,
        phases.clusters,
        phases.free,
    );
    let chart = sparkline(tcp.bits.last(drawn), peak, glyphs.levels);
    let totals = &reading.totals;
    let lost = [totals.lost.spacing, totals.lost.clusters, totals.lost.free];
    let [spacing, clusters, free] = lost.map(|n| short(n as f64));
    let all = short(lost.iter().sum::<u64>() as f64);
    let lately = match reading.retransmitted_lately {
        Some(segments @ 1..) => format!("  {} sent again", short(segments as f64)),
        _ => String::new(),
    };
    let lost = format!(
        "{:>7}{all:>8}{spacing:>9}{clusters:>9}{free:>8}{lately}",
        ""
    );
    let begun = glyphs.fitted(&begun_words(totals), width.saturating_sub(12));
    let name = |name: &str, style: Style| Span::styled(format!("{name:12}"), style);
    let lines = vec![
        Line::default(),
        Line::styled(format!("{heading:<width$}"), theme.heading),
        Line::from(vec![
            name("streams", theme.chart),
            Span::raw(streams),
            // Now is at the right, as everywhere.
            Span::styled(format!("{chart:>drawn$}"), theme.chart),
        ]),
        Line::from(vec![name("lost", theme.bad), Span::raw(lost)]),
        Line::from(vec![name("slow starts", Style::new()), Span::raw(begun)]),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

pub(super) fn begun_words(totals: &Totals) -> String {
    format!(
        "{} begun, {} known; ended: {} at path, {} by delay, {} by loss",
        totals.slow_starts,
        totals.slow_starts_known,
        totals.ended_at_path,
        totals.ended_by_delay,
        totals.ended_by_loss
    )
}

fn draw_tables(top: &mut PaceTop, reading: &Reading, frame: &mut Frame, area: Rect) {
    let mut streams = reading.streams.clone();
    streams.retain(|stream| has_words(&top.words, &words_of(stream)));
    top.streams_sort.sort(&mut streams, top.is_turned);
    let mut paths = reading.document.paths.clone();
    paths.retain(|path| has_words(&top.words, &path.destination));
    top.paths_sort.sort(&mut paths, top.is_turned);
    let room = usize::from(area.height).saturating_sub(4);
    let is_second = top.focus == Pane::Paths;
    let (streams_room, paths_room) = match room < ROWS_OF_BOTH_MIN {
        // One says something, two do not.
        true if is_second => (None, Some(room + 2)),
        true => (Some(room + 2), None),
        false => {
            let wanted = [streams.len().max(1), paths.len().max(1)];
            let (first, second) = shared_room(room, wanted[0], wanted[1], is_second);
            (Some(first), Some(second))
        }
    };
    // A line before it, and its heading.
    let lines = |rows: Option<usize>| match rows {
        Some(rows) => [1, 1 + rows as u16],
        None => [0, 0],
    };
    let [[a, b], [c, d]] = [streams_room, paths_room].map(lines);
    let [_, first, _, second] = Layout::vertical([a, b, c, d]).areas(area);
    draw_streams(top, reading, &streams, frame, first);
    draw_paths(top, reading, &paths, frame, second);
}

fn draw_streams(
    top: &mut PaceTop,
    reading: &Reading,
    streams: &[StreamReading],
    frame: &mut Frame,
    area: Rect,
) {
    let theme = top.look.theme;
    let shown = fitting(&STREAMS, area.width, NAME_LETTERS);
    let rows: Vec<TableRow> = streams
        .iter()
        .map(|stream| {
            let is_quiet = stream.bits_per_s.is_none_or(|bits| bits == 0.0);
            TableRow {
                cells: cells(&shown, stream),
                kind: match stream.stream.phase.as_str() {
                    "spacing" => theme.chart,
                    "clusters" => theme.good,
                    _ => Style::new(),
                },
                style: if is_quiet { theme.faint } else { Style::new() },
            }
        })
        .collect();
    let nothing = match reading.streams.len() {
        0 => "there are none now".into(),
        all => format!("none of {all} has {:?}", top.words),
    };
    let columns = grown(&shown, &rows, area.width);
    let is_focused = top.focus == Pane::Streams;
    draw_table(
        frame,
        area,
        &top.look,
        &columns,
        &rows,
        &mut top.streams_scroll,
        is_focused,
    );
    draw_nothing(top, &nothing, rows.is_empty(), frame, area);
}

fn draw_paths(
    top: &mut PaceTop,
    reading: &Reading,
    paths: &[PathDocument],
    frame: &mut Frame,
    area: Rect,
) {
    let theme = top.look.theme;
    let shown = fitting(&PATHS, area.width, NAME_LETTERS);
    let rows: Vec<TableRow> = paths
        .iter()
        .map(|path| {
            let style = match path.sending > 0 {
                true => Style::new(),
                false => theme.faint,
            };
            TableRow {
                cells: cells(&shown, path),
                kind: style,
                style,
            }
        })
        .collect();
    let nothing = match (
        reading.document.paths.len(),
        reading.document.remembered_seconds,
    ) {
        (0, Some(_)) => "none is known yet".into(),
        (0, None) => "they are not remembered".into(),
        (all, _) => format!("none of {all} has {:?}", top.words),
    };
    let columns = grown(&shown, &rows, area.width);
    let is_focused = top.focus == Pane::Paths;
    draw_table(
        frame,
        area,
        &top.look,
        &columns,
        &rows,
        &mut top.paths_scroll,
        is_focused,
    );
    draw_nothing(top, &nothing, rows.is_empty(), frame, area);
}

/// In the place of the first row.
fn draw_nothing(top: &PaceTop, text: &str, is_so: bool, frame: &mut Frame, area: Rect) {
    if is_so && area.height > 1 {
        let first = Rect::new(area.x, area.y + 1, area.width, 1);
        let text = top.look.glyphs.fitted(text, usize::from(area.width));
        draw_line(frame, first, [Span::styled(text, top.look.theme.faint)]);
    }
}

fn cells<T>(columns: &[&CellColumn<T>], of: &T) -> Vec<String> {
    columns.iter().map(|column| (column.cell)(of)).collect()
}

/// Names but the last one have the letters that the last one does not need.
fn grown<T>(shown: &[&CellColumn<T>], rows: &[TableRow], width: u16) -> Vec<Column> {
    let mut columns: Vec<Column> = shown.iter().map(|column| column.column).collect();
    let longest = |at: usize| {
        let letters = rows.iter().map(|row| row.cells[at].chars().count());
        letters.max().unwrap_or(0) as u16
    };
    let last = columns.len() - 1;
    let given: u16 = columns.iter().map(|column| column.letters + 1).sum();
    let needed = longest(last).max(NAME_LETTERS);
    let left = (width + 1).saturating_sub(given + needed);
    for (at, column) in columns.iter_mut().enumerate() {
        if column.letters == NAME_LETTERS {
            column.letters += left.min(longest(at).saturating_sub(NAME_LETTERS));
        }
    }
    columns
}

fn draw_help(top: &PaceTop, frame: &mut Frame, area: Rect) {
    const KEYS: &[(&str, &str)] = &[
        ("q, Esc, Ctrl-C", "quit"),
        (
            "s",
            "sort streams by rate, RTT, retransmissions, cwnd, name;",
        ),
        ("", "paths by when they were full, rate, RTT, name"),
        ("R", "turn the order round"),
        ("/", "only rows with these words: ends, and what they do"),
        ("p, space", "pause, and go on;  r: totals count from now on"),
        ("Tab", "the other table: its heading is lit"),
        ("arrows, j, k", "scroll it;  PgUp, PgDn, Home, End"),
        (
            "Ctrl-L, Ctrl-Z",
            "draw anew; let the shell have the terminal",
        ),
        ("h, ?", "this; any key leaves it"),
    ];
    const TEXTS: &[&str] = &[
        "BIT/S: acknowledged between two looks, without headers; - is not known.",
        "RTT is smoothed, MIN the least. CWND and FLIGHT are segments, and INTERVAL is",
        "between two of them. RETRANS: sent again in all, and + since the look before.",
        "LOST: taken for lost while spacing, in clusters, free. PATH: known when it began.",
        "Paths: what one carried when it was FULL, and how long ago that is; streams",
        "SENDING now and TAKEN so far; windows CUT in slow start. k is 1000.",
    ];
    draw_help_page(frame, area, &top.look, "packtrain pace top", KEYS, TEXTS);
}
