//! Charts of letters: eighths of a block, in as many columns as there are.

use std::fmt::Write as _;
use std::io;

use anstyle::{AnsiColor, Style};
use rustix::termios::tcgetwinsize;

use super::{Columns, Kind};
use crate::cli::output::HEADING;

/// Where nobody knows how wide it is, and what is wide enough.
const WIDTH: usize = 80;
const WIDTH_MAX: usize = 132;
const WIDTH_MIN: usize = 40;
const INDENT: usize = 2;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Of the terminal, if it is one.
pub fn width() -> usize {
    let columns = tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    match columns {
        0 => WIDTH,
        columns => columns.clamp(WIDTH_MIN, WIDTH_MAX),
    }
}

/// `lines`: how high a row is.
pub fn columns(chart: &Columns, lines: usize, width: usize) -> String {
    let mut out = format!("\n{HEADING}{}{HEADING:#}\n", chart.title);
    let names = chart.rows.iter().map(|row| row.name.chars().count()).max();
    let names = names.unwrap_or(0);
    let before = INDENT + if names > 0 { names + 1 } else { 0 };
    let room = width - before;
    for row in &chart.rows {
        let values = row.resampled(room);
        let eighths: Vec<usize> = values
            .iter()
            .map(|&value| {
                let eighths = (chart.share(value) * (8 * lines) as f64).round() as usize;
                // Little is not nothing.
                eighths.max(usize::from(value > 0.0))
            })
            .collect();
        for line in (0..lines).rev() {
            let letter = |&eighths: &usize| EIGHTHS[eighths.saturating_sub(8 * line).min(8)];
            let drawn: String = eighths.iter().map(letter).collect();
            let name = if line == 0 { row.name } else { "" };
            let style = style(row.kind);
            let text = format!(
                "{:INDENT$}{name:names$} {style}{}{style:#}",
                "",
                drawn.trim_end()
            );
            let text = match names {
                0 => format!("{:INDENT$}{style}{}{style:#}", "", drawn.trim_end()),
                _ => text,
            };
            let _ = writeln!(out, "{text}");
        }
    }
    let [left, right] = &chart.ends;
    let between = room.saturating_sub(left.chars().count() + right.chars().count());
    let _ = writeln!(out, "{:before$}{left}{:between$}{right}", "", "");
    out
}

fn style(kind: Kind) -> Style {
    match kind {
        Kind::Plain => Style::new().dimmed(),
        Kind::With => AnsiColor::Cyan.on_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;

    fn drawn(rows: Vec<Row>, lines: usize, width: usize) -> String {
        let chart = Columns {
            title: "Title".into(),
            rows,
            ends: ["0".into(), "1 s".into()],
            whole: 8.0,
        };
        anstream::adapter::strip_str(&columns(&chart, lines, width)).to_string()
    }

    fn row(name: &'static str, values: &[f64]) -> Row {
        Row {
            name,
            kind: Kind::With,
            values: values.to_vec(),
        }
    }

    #[test]
    fn a_whole_column_is_as_high_as_its_row_and_little_is_not_nothing() {
        let text = drawn(vec![row("", &[0.0, 0.01, 1.0, 4.0, 6.0, 8.0])], 1, 8);
        assert_eq!(text, "\nTitle\n   ▁▁▄▆█\n  0  1 s\n");
        let text = drawn(vec![row("", &[8.0, 4.0, 5.0, 1.0])], 2, 6);
        assert_eq!(text, "\nTitle\n  █ ▂\n  ███▂\n  01 s\n");
    }

    #[test]
    fn rows_have_one_scale_and_as_many_columns_as_there_is_room() {
        let rows = vec![row("before", &[8.0; 40]), row("after", &[8.0, 0.0])];
        let text = drawn(rows, 1, 19);
        assert_eq!(
            text,
            "\nTitle\n  before ██████████\n  after  █████\n         0      1 s\n"
        );
    }
}
