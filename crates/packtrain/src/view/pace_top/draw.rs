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
use crate::cli::words::duration;
use crate::pace::tcp::document::{PathDocument, TcpDocument};
use crate::view::history::sparkline;
use crate::view::numbers::{short, short_or_unknown, short_time};
use crate::view::table::{
    Column, Look, Scroll, TableRow, draw as draw_table, draw_line, said, shared_room,
};

/// Less says too little.
const COLUMNS_MIN: u16 = 60;
const LINES_MIN: u16 = 12;
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
            "The pacer of TCP was not asked to end, and has: see {}. It is waited for; q quits.",
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
        Some(seconds) => duration(seconds),
        None => "not".into(),
    };
    let hystart = match document.hystart_us {
        Some((least, most)) => {
            let [least, most] = [least, most].map(|us| short_time(f64::from(us) / 1e6));
            format!("{least}..{most}")
        }
        None => "off".into(),
    };
    format!(
        "{whose}{cgroup}   T {}   paths remembered {remembered}   HyStart++ {hystart}",
        short_time(document.precision_ns as f64 / 1e9)
    )
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
    // A line before each, and its heading.
    let room = usize::from(area.height).saturating_sub(4);
    let is_second = top.focus == Pane::Paths;
    let (streams_room, paths_room) =
        shared_room(room, streams.len().max(1), paths.len().max(1), is_second);
    let [_, first, _, second, _] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1 + streams_room as u16),
        Constraint::Length(1),
        Constraint::Length(1 + paths_room as u16),
        Constraint::Fill(1),
    ])
    .areas(area);
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
    let columns = fitting(&STREAMS, area.width, NAME_LETTERS);
    let mut rows: Vec<TableRow> = streams
        .iter()
        .map(|stream| {
            let is_quiet = stream.bits_per_s.is_none_or(|bits| bits == 0.0);
            TableRow {
                cells: cells(&columns, stream),
                kind: match stream.stream.phase.as_str() {
                    "spacing" => theme.chart,
                    "clusters" => theme.good,
                    _ => Style::new(),
                },
                style: if is_quiet { theme.faint } else { Style::new() },
            }
        })
        .collect();
    if rows.is_empty() {
        let text = match reading.streams.len() {
            0 => "there are none now".into(),
            all => format!("none of {all} has {:?}", top.words),
        };
        rows.push(said(&text, columns.len(), theme.faint));
    }
    let is_focused = top.focus == Pane::Streams;
    let scroll = &mut top.streams_scroll;
    draw_rows(frame, area, &top.look, &columns, &rows, scroll, is_focused);
}

fn draw_paths(
    top: &mut PaceTop,
    reading: &Reading,
    paths: &[PathDocument],
    frame: &mut Frame,
    area: Rect,
) {
    let theme = top.look.theme;
    let columns = fitting(&PATHS, area.width, NAME_LETTERS);
    let mut rows: Vec<TableRow> = paths
        .iter()
        .map(|path| {
            let style = match path.sending > 0 {
                true => Style::new(),
                false => theme.faint,
            };
            TableRow {
                cells: cells(&columns, path),
                kind: style,
                style,
            }
        })
        .collect();
    if rows.is_empty() {
        let text = match (
            reading.document.paths.len(),
            reading.document.remembered_seconds,
        ) {
            (0, Some(_)) => "none is known yet".into(),
            (0, None) => "they are not remembered".into(),
            (all, _) => format!("none of {all} has {:?}", top.words),
        };
        rows.push(said(&text, columns.len(), theme.faint));
    }
    let is_focused = top.focus == Pane::Paths;
    let scroll = &mut top.paths_scroll;
    draw_rows(frame, area, &top.look, &columns, &rows, scroll, is_focused);
}

fn cells<T>(columns: &[&CellColumn<T>], of: &T) -> Vec<String> {
    columns.iter().map(|column| (column.cell)(of)).collect()
}

fn draw_rows<T>(
    frame: &mut Frame,
    area: Rect,
    look: &Look,
    columns: &[&CellColumn<T>],
    rows: &[TableRow],
    scroll: &mut Scroll,
    is_focused: bool,
) {
    let columns: Vec<Column> = columns.iter().map(|column| column.column).collect();
    draw_table(frame, area, look, &columns, rows, scroll, is_focused);
}

fn draw_help(top: &PaceTop, frame: &mut Frame, area: Rect) {
    const KEYS: [(&str, &str); 10] = [
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
    let theme = &top.look.theme;
    let mut lines = vec![Line::styled("packtrain pace top", theme.title)];
    for (key, what) in KEYS {
        let what = top.look.glyphs.fitted(what, usize::from(area.width));
        lines.push(Line::from(vec![
            Span::styled(format!("  {key:<16}"), theme.title),
            Span::raw(what),
        ]));
    }
    lines.push(Line::default());
    for text in [
        "Bits are those acknowledged between two looks, without headers; - is not known. k is 1000.",
        "RTT is smoothed, MIN the least; CWND and FLIGHT are segments, INTERVAL is between two of them.",
        "RETRANS: sent again in all, and + since the look before. LOST: taken for lost while spacing, in",
        "clusters, and free. PATH: whether it was remembered when the stream began.",
        "Paths: what one carried when it was FULL, how long ago; streams SENDING now, streams TAKEN, CUT windows.",
    ] {
        lines.push(Line::raw(text));
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}
