//! Charts as SVG within a page.

use std::fmt::Write as _;

use super::{Bar, Columns, Kind};
use crate::cli::whatif::html::escaped;

const WIDTH: f64 = 800.0;
const NAMES: f64 = 190.0;
/// Room behind the longest bar for its number.
const NUMBERS: f64 = 110.0;
const BAR: f64 = 18.0;
const GAP: f64 = 4.0;
/// Of columns.
const ROW: f64 = 60.0;

/// Each pair one below the other, all to the same scale.
pub fn bars(pairs: &[[Bar; 2]]) -> String {
    let all = || pairs.iter().flatten();
    let longest = all().map(|bar| bar.value).fold(0.0, f64::max);
    let mut y = 0.0;
    let mut out = String::new();
    for pair in pairs {
        for bar in pair {
            let share = if longest > 0.0 {
                bar.value.max(0.0) / longest
            } else {
                0.0
            };
            let len = share * (WIDTH - NAMES - NUMBERS);
            let middle = y + BAR - 4.0;
            let _ = writeln!(
                out,
                "<text x=\"0\" y=\"{middle:.0}\">{}</text>\
                 <rect class=\"{}\" x=\"{NAMES}\" y=\"{y:.0}\" width=\"{len:.1}\" height=\"{BAR}\"/>\
                 <text x=\"{:.1}\" y=\"{middle:.0}\">{}</text>",
                escaped(&bar.name),
                style(bar.kind),
                NAMES + len + 6.0,
                escaped(&bar.text),
            );
            y += BAR + GAP;
        }
        y += 2.0 * GAP;
    }
    format!("<svg viewBox=\"0 0 {WIDTH} {y:.0}\" role=\"img\">\n{out}</svg>")
}

/// Its rows one below the other, all to the same scale.
pub fn columns(chart: &Columns) -> String {
    let mut y = 0.0;
    let mut out = String::new();
    for row in &chart.rows {
        let width = (WIDTH - NAMES) / row.values.len().max(1) as f64;
        let bottom = y + ROW;
        let _ = writeln!(
            out,
            "<text x=\"0\" y=\"{:.0}\">{}</text><path class=\"{}\" d=\"M{NAMES} {bottom}",
            y + ROW / 2.0,
            escaped(row.name),
            style(row.kind),
        );
        for &value in &row.values {
            let top = bottom - chart.share(value) * ROW;
            let _ = write!(out, "V{top:.1}h{width:.2}");
        }
        let _ = writeln!(out, "V{bottom}Z\"/>");
        y = bottom + GAP;
    }
    y += BAR;
    let _ = writeln!(
        out,
        "<text x=\"{NAMES}\" y=\"{y:.0}\">{}</text><text x=\"{WIDTH}\" y=\"{y:.0}\" text-anchor=\"end\">{}</text>",
        escaped(&chart.ends[0]),
        escaped(&chart.ends[1]),
    );
    y += GAP;
    format!("<svg viewBox=\"0 0 {WIDTH} {y:.0}\" role=\"img\">\n{out}</svg>")
}

fn style(kind: Kind) -> &'static str {
    match kind {
        Kind::Plain => "plain",
        Kind::With => "with",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_has_all_the_room_and_the_others_their_part_of_it() {
        let chart = bars(&[[
            Bar::plain(200.0, "200".into()),
            Bar::with("queued", 50.0, "50".into()),
        ]]);
        assert!(
            chart.contains("class=\"plain\" x=\"190\" y=\"0\" width=\"500.0\""),
            "{chart}"
        );
        assert!(
            chart.contains("class=\"with\" x=\"190\" y=\"22\" width=\"125.0\""),
            "{chart}"
        );
        // Nothing at all is no division by zero.
        assert!(
            bars(&[[Bar::plain(0.0, "0".into()), Bar::plain(0.0, "0".into())]])
                .contains("width=\"0.0\"")
        );
    }
}
