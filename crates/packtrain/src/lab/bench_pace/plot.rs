//! What is drawn: columns side by side, and lines of points, as SVG; and what they are of, as CSV.

use std::fmt::Write as _;
use std::path::Path;

use crate::lab::{Error, Result};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const PANEL: f64 = 140.0;
const HEAD: f64 = 26.0;
const FOOT: f64 = 40.0;
const STYLE: &str = "text{font:12px sans-serif;fill:#444}.t{font-weight:bold}\
    .a{stroke:#bbb;stroke-width:1;fill:none}.c{fill:#2a78b5}.l{stroke:#2a78b5;fill:none;stroke-width:2}\
    .r{stroke:#2a78b5;stroke-width:1}\
    @media(prefers-color-scheme:dark){text{fill:#ccc}.a{stroke:#555}}";

/// One row of columns, with what it is called.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    pub values: Vec<f64>,
}

/// A point with the range around it.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub x: f64,
    pub least: f64,
    pub middle: f64,
    pub most: f64,
}

/// Writes a file of this name into the directory, which is made where it is not there.
pub fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    let failed = |source| Error::File {
        path: path.display().to_string(),
        source,
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    std::fs::write(&path, text).map_err(failed)
}

/// Rows of columns below each other, all to the same scale.
pub fn columns(panels: &[Panel], x_label: &str, x_last: f64) -> String {
    let all = || panels.iter().flat_map(|panel| &panel.values);
    let top = nice_above(all().copied().fold(0.0, f64::max));
    let mut out = String::new();
    let mut y = 0.0;
    for panel in panels {
        let bottom = y + HEAD + PANEL;
        let _ = writeln!(
            out,
            "<text class=\"t\" x=\"{LEFT}\" y=\"{:.0}\">{}</text>",
            y + HEAD - 8.0,
            escaped(&panel.title)
        );
        y_axis(&mut out, bottom, top);
        let width = (WIDTH - LEFT - RIGHT) / panel.values.len().max(1) as f64;
        let _ = write!(out, "<path class=\"c\" d=\"M{LEFT} {bottom:.1}");
        for value in &panel.values {
            let _ = write!(
                out,
                "V{:.1}h{width:.3}",
                bottom - share(*value, top) * PANEL
            );
        }
        let _ = writeln!(out, "V{bottom:.1}Z\"/>");
        y = bottom;
    }
    x_axis(&mut out, y, x_label, (0.0, x_last));
    page(y + FOOT, &out)
}

/// Middles joined by a line, and the ranges around them.
pub fn ranges(title: &str, points: &[Point], x_label: &str) -> String {
    let top = nice_above(points.iter().map(|point| point.most).fold(0.0, f64::max));
    let last = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let x_last = nice_above(last);
    let bottom = HEAD + 2.0 * PANEL;
    let at = |point: &Point, value: f64| {
        let x = LEFT + share(point.x, x_last) * (WIDTH - LEFT - RIGHT);
        (x, bottom - share(value, top) * 2.0 * PANEL)
    };
    let mut out = format!(
        "<text class=\"t\" x=\"{LEFT}\" y=\"{:.0}\">{}</text>\n",
        HEAD - 8.0,
        escaped(title)
    );
    y_axis_of(&mut out, bottom, top, 2.0 * PANEL);
    for point in points {
        let ((x, low), (_, high)) = (at(point, point.least), at(point, point.most));
        let _ = writeln!(out, "<path class=\"r\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>");
    }
    let middles = points.iter().map(|point| {
        let (x, y) = at(point, point.middle);
        format!("{x:.1},{y:.1}")
    });
    let middles: Vec<String> = middles.collect();
    let _ = writeln!(
        out,
        "<polyline class=\"l\" points=\"{}\"/>",
        middles.join(" ")
    );
    x_axis(&mut out, bottom, x_label, (0.0, x_last));
    page(bottom + FOOT, &out)
}

fn page(height: f64, inside: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\">\n\
         <style>{STYLE}</style>\n{inside}</svg>\n"
    )
}

fn y_axis(out: &mut String, bottom: f64, top: f64) {
    y_axis_of(out, bottom, top, PANEL);
}

fn y_axis_of(out: &mut String, bottom: f64, top: f64, height: f64) {
    for quarter in [0.0, 0.5, 1.0] {
        let y = bottom - quarter * height;
        let _ = writeln!(
            out,
            "<path class=\"a\" d=\"M{LEFT} {y:.1}H{:.1}\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            quarter * top
        );
    }
}

fn x_axis(out: &mut String, bottom: f64, label: &str, (first, last): (f64, f64)) {
    for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT + quarter * (WIDTH - LEFT - RIGHT),
            bottom + 16.0,
            first + quarter * (last - first)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        bottom + 32.0,
        escaped(label)
    );
}

fn share(value: f64, top: f64) -> f64 {
    match top > 0.0 {
        true => (value / top).clamp(0.0, 1.0),
        false => 0.0,
    }
}

/// 1, 2, 5 or 8 times a power of ten.
fn nice_above(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 8.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_column_reaches_to_the_top_of_a_round_number() {
        for (value, top) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (47.0, 50.0),
            (51.0, 80.0),
            (82.0, 100.0),
        ] {
            assert_eq!(nice_above(value), top, "{value}");
        }
        let panel = |title: &str, values: &[f64]| Panel {
            title: title.into(),
            values: values.to_vec(),
        };
        let svg = columns(
            &[
                panel("plain <&", &[0.0, 50.0]),
                panel("spaced", &[25.0, 25.0]),
            ],
            "ms",
            2.0,
        );
        assert!(svg.contains("plain &lt;&amp;"), "{svg}");
        // Nothing, and the whole height: from 166 up to 26.
        assert!(
            svg.contains("M60 166.0V166.0h460.000V26.0h460.000V166.0Z"),
            "{svg}"
        );
        assert!(svg.contains("V262.0h460.000V262.0"), "{svg}");
    }

    #[test]
    fn a_point_has_its_range_and_the_middles_are_joined() {
        let point = |x, middle| Point {
            x,
            least: middle - 10.0,
            middle,
            most: middle + 10.0,
        };
        let svg = ranges("Fig. 3", &[point(0.0, 40.0), point(1000.0, 70.0)], "gap");
        assert!(svg.contains("points=\"60.0,166.0 980.0,61.0\""), "{svg}");
        assert!(svg.contains("M980.0 96.0V26.0"), "{svg}");
    }
}
