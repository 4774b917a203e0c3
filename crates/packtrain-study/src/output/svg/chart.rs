//! Lines in panels below each other, with one axis of x for all.

use std::fmt::Write as _;

use super::axis::{Axis, Labels};
use crate::output::html::escaped;
use crate::output::wrap::wrapped;

#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub title: String,
    pub note: Option<String>,
    pub x_label: String,
    pub x_ticks: Labels,
    pub log_x: bool,
    pub log_y: bool,
    pub panels: Vec<Panel>,
}

/// Lines of one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    pub y_label: String,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: String,
    pub points: Vec<Mark>,
    /// Each point has a mark.
    pub marked: bool,
    /// Hollow marks.
    pub reported: bool,
}

impl Line {
    /// What somebody else reports has nothing between its points.
    fn is_joined(&self, x_ticks: &Labels) -> bool {
        !self.reported && !matches!(x_ticks, Labels::Words(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    pub x: f64,
    pub y: f64,
    /// Of the interval around it.
    pub half: Option<f64>,
}

/// Colours that people tell apart who do not see all of them (Okabe and Ito); dashes and marks differ too, for paper.
pub const STYLE: &str = "\
.pt{--page:#fff;--text:#1b1f24;--faint:#6a737d;--line:#d8dee4;--c0:#0969da;--c1:#c4500b;--c2:#00795c;--c3:#a8388a;--c4:#7a6a00;--c5:#4b5563}\
@media screen and (prefers-color-scheme:dark){.pt{--page:#0d1117;--text:#e6edf3;--faint:#8d96a0;--line:#30363d;\
--c0:#58a6ff;--c1:#f0883e;--c2:#3fb98f;--c3:#e07bc4;--c4:#d4b106;--c5:#b0b8c2}}\
.pt .page{fill:var(--page)}.pt text{font:13px system-ui,sans-serif;fill:var(--text)}.pt .title{font-weight:600;font-size:15px}\
.pt .faint{fill:var(--faint)}.pt .grid{stroke:var(--line);stroke-width:1;fill:none}.pt .axis{stroke:var(--faint);stroke-width:1;fill:none}\
.pt .path{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}.pt .bar{stroke-width:1.2;fill:none}.pt .mark{stroke-width:1.2}\
.pt .hollow{stroke-width:1.6;fill:var(--page)!important}\
.pt .s0{stroke:var(--c0)}.pt .s1{stroke:var(--c1);stroke-dasharray:7 3}.pt .s2{stroke:var(--c2);stroke-dasharray:2 3}\
.pt .s3{stroke:var(--c3);stroke-dasharray:9 3 2 3}.pt .s4{stroke:var(--c4);stroke-dasharray:4 2}.pt .s5{stroke:var(--c5);stroke-dasharray:12 4}\
.pt .m0{fill:var(--c0);stroke:var(--c0)}.pt .m1{fill:var(--c1);stroke:var(--c1)}.pt .m2{fill:var(--c2);stroke:var(--c2)}\
.pt .m3{fill:var(--c3);stroke:var(--c3)}.pt .m4{fill:var(--c4);stroke:var(--c4)}.pt .m5{fill:var(--c5);stroke:var(--c5)}";

/// Each has its dashes.
const COLOURS: usize = 6;
const SHAPES: usize = 4;
/// Colour and shape together; more lines look like the first ones again.
const STYLES: usize = 12;
const WIDTH: f64 = 760.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;
const PANEL: f64 = 280.0;
/// Where there are several.
const PANEL_OF_SEVERAL: f64 = 190.0;
const HEAD: f64 = 46.0;
const BETWEEN: f64 = 30.0;
const FOOT: f64 = 46.0;
const LEGEND_ROW: f64 = 20.0;
/// Of a letter; an estimate, as a browser has its own fonts.
const LETTER: f64 = 7.0;
/// Of a line below the panels.
const LETTERS: usize = ((WIDTH - LEFT - RIGHT) / LETTER) as usize;
/// As many as a line has pixels, twice: those between would be drawn over each other.
const COLUMNS_MAX: usize = 680;

impl Chart {
    pub fn has_points(&self) -> bool {
        let mut lines = self.panels.iter().flat_map(|panel| &panel.lines);
        // What has no logarithm has no place either.
        let placed = |value: f64, log: bool| value.is_finite() && (!log || value > 0.0);
        lines.any(|line| {
            let mut marks = line.points.iter();
            !line.reported
                && marks.any(|mark| placed(mark.x, self.log_x) && placed(mark.y, self.log_y))
        })
    }

    /// A file of its own.
    pub fn svg(&self) -> String {
        self.drawn(&format!("<style>{STYLE}</style>\n"))
    }

    /// Within a page that has [`STYLE`].
    pub fn inline(&self) -> String {
        self.drawn("")
    }

    fn drawn(&self, style: &str) -> String {
        let height = if self.panels.len() > 1 {
            PANEL_OF_SEVERAL
        } else {
            PANEL
        };
        let marks = || {
            self.panels
                .iter()
                .flat_map(|panel| &panel.lines)
                .flat_map(|line| &line.points)
        };
        let x_axis = self.x_ticks.axis(marks().map(|mark| mark.x), self.log_x);
        let mut out = String::new();
        let mut top = HEAD;
        let mut number = 0;
        let mut legend = Vec::new();
        for (i, panel) in self.panels.iter().enumerate() {
            let frame = Frame {
                top,
                height,
                x: &x_axis,
                x_ticks: &self.x_ticks,
                y: &y_axis(panel, self.log_y),
            };
            frame.draw(&mut out, &panel.y_label, i + 1 == self.panels.len());
            for line in &panel.lines {
                // What somebody else reports looks like the line that it stands behind.
                number += usize::from(!line.reported);
                let style = number.saturating_sub(1) % STYLES;
                frame.line(&mut out, line, style);
                legend.push((line, style));
            }
            top += height + BETWEEN;
        }
        let mut y = top - BETWEEN + FOOT;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            y - 10.0,
            escaped(&self.x_label)
        );
        y = draw_legend(&mut out, y + 8.0, &legend, &self.x_ticks);
        let note = self.note.iter();
        for line in note.flat_map(|note| wrapped(note, LETTERS, LETTERS)) {
            y += LEGEND_ROW;
            let _ = writeln!(
                out,
                "<text class=\"faint\" x=\"{LEFT}\" y=\"{y:.1}\">{}</text>",
                escaped(&line)
            );
        }
        let title = escaped(&self.title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pt\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\">\n\
             <title>{title}</title>\n{style}<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"22\">{title}</text>\n{out}</svg>\n",
            y + 14.0
        )
    }
}

/// With room for the intervals.
fn y_axis(panel: &Panel, log: bool) -> Axis {
    let marks = panel.lines.iter().flat_map(|line| &line.points);
    let ends = marks.flat_map(|mark| {
        let half = mark.half.unwrap_or(0.0);
        let half = if half.is_finite() { half } else { 0.0 };
        // What reaches below zero has no end on a logarithmic axis, and none has to be found for it.
        let low = if log && mark.y - half <= 0.0 {
            mark.y
        } else {
            mark.y - half
        };
        [low, mark.y, mark.y + half]
    });
    Axis::of(ends, log, true)
}

struct Frame<'a> {
    top: f64,
    height: f64,
    x: &'a Axis,
    x_ticks: &'a Labels,
    y: &'a Axis,
}

impl Frame<'_> {
    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn x_of(&self, value: f64) -> Option<f64> {
        Some(LEFT + self.x.place(value)? * (WIDTH - LEFT - RIGHT))
    }

    fn y_of(&self, value: f64) -> Option<f64> {
        Some(self.bottom() - self.y.place(value)? * self.height)
    }

    fn draw(&self, out: &mut String, y_label: &str, last: bool) {
        let bottom = self.bottom();
        for &tick in &self.y.ticks {
            let Some(y) = self.y_of(tick) else { continue };
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                Axis::label(tick)
            );
        }
        for &tick in &self.x.ticks {
            let Some(x) = self.x_of(tick) else { continue };
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/>",
                self.top
            );
            if last {
                let _ = writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    bottom + 18.0,
                    escaped(&self.x_ticks.label(tick))
                );
            }
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {:.1}V{bottom:.1}H{:.1}\"/>\n\
             <text class=\"faint\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
            self.top,
            WIDTH - RIGHT,
            self.top - 8.0,
            escaped(y_label)
        );
    }

    fn line(&self, out: &mut String, line: &Line, style: usize) {
        let colour = style % COLOURS;
        let placed: Vec<Option<(f64, f64)>> = line
            .points
            .iter()
            .map(|mark| Some((self.x_of(mark.x)?, self.y_of(mark.y)?)))
            .collect();
        if line.is_joined(self.x_ticks) {
            let path = path(&thinned(&placed));
            if !path.is_empty() {
                let _ = writeln!(out, "<path class=\"path s{colour}\" d=\"{path}\"/>");
            }
        }
        for (mark, place) in line.points.iter().zip(&placed) {
            let Some((x, y)) = *place else { continue };
            if let Some(half) = mark.half.filter(|half| half.is_finite() && *half > 0.0) {
                let high = self.y_of(mark.y + half).unwrap_or(y).max(self.top);
                let low = self
                    .y_of(mark.y - half)
                    .unwrap_or(self.bottom())
                    .min(self.bottom());
                let _ = writeln!(
                    out,
                    "<path class=\"bar m{colour}\" d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} \
                     {high:.1}h8\"/>",
                    x - 4.0,
                    x - 4.0
                );
            }
            if line.marked {
                draw_mark(out, x, y, style, line.reported);
            }
        }
    }
}

/// Points that have no place break it; one that is alone between two of these is a dot.
fn path(points: &[Option<(f64, f64)>]) -> String {
    let mut out = String::new();
    for piece in points.split(|point| point.is_none()) {
        for (i, (x, y)) in piece.iter().flatten().enumerate() {
            let _ = write!(out, "{}{x:.1} {y:.1}", if i > 0 { 'L' } else { 'M' });
        }
        if piece.len() == 1 {
            out += "h0";
        }
    }
    out
}

/// Of many points the first, the least, the most and the last of each column: what is seen stays the same.
fn thinned(points: &[Option<(f64, f64)>]) -> Vec<Option<(f64, f64)>> {
    if points.len() <= 4 * COLUMNS_MAX {
        return points.to_vec();
    }
    let mut thin = Vec::new();
    for column in points.chunks(points.len().div_ceil(COLUMNS_MAX)) {
        let by_y = |a: &usize, b: &usize| {
            let y = |i: &usize| column[*i].map_or(f64::NAN, |(_, y)| y);
            y(a).total_cmp(&y(b))
        };
        let placed = || (0..column.len()).filter(|i| column[*i].is_some());
        let mut kept = vec![0, column.len() - 1];
        kept.extend(placed().min_by(by_y));
        kept.extend(placed().max_by(by_y));
        kept.sort_unstable();
        kept.dedup();
        thin.extend(kept.into_iter().map(|i| column[i]));
    }
    thin
}

/// Its colour and its shape together are of its style alone.
fn draw_mark(out: &mut String, x: f64, y: f64, style: usize, hollow: bool) {
    let colour = style % COLOURS;
    let size = if hollow { 5.0 } else { 4.0 };
    let class = if hollow { "hollow" } else { "mark" };
    let shape = match style % SHAPES {
        0 => {
            format!(
                "<circle class=\"{class} m{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size}\"/>"
            )
        }
        1 => format!(
            "<rect class=\"{class} m{colour}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{}\" height=\"{}\"/>",
            x - size,
            y - size,
            2.0 * size,
            2.0 * size
        ),
        2 => format!(
            "<path class=\"{class} m{colour}\" d=\"M{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}Z\"/>",
            x - size - 1.0,
            y - size - 1.0,
            x + size + 1.0,
            y + size + 1.0
        ),
        _ => format!(
            "<path class=\"{class} m{colour}\" d=\"M{:.1} {:.1}L{x:.1} {:.1}L{:.1} {:.1}Z\"/>",
            x - size,
            y + size,
            y - size,
            x + size,
            y + size
        ),
    };
    let _ = writeln!(out, "{shape}");
}

/// From left to right, and below each other where there is no room. Returns where it ends.
fn draw_legend(out: &mut String, top: f64, lines: &[(&Line, usize)], x_ticks: &Labels) -> f64 {
    const SAMPLE: f64 = 34.0;
    let (mut x, mut y) = (LEFT, top + 6.0);
    for (line, style) in lines {
        let colour = style % COLOURS;
        let width = SAMPLE + 8.0 + LETTER * line.name.chars().count() as f64 + 18.0;
        if x > LEFT && x + width > WIDTH - RIGHT {
            x = LEFT;
            y += LEGEND_ROW;
        }
        if line.is_joined(x_ticks) {
            let _ = writeln!(
                out,
                "<path class=\"path s{colour}\" d=\"M{x:.1} {y:.1}h{SAMPLE}\"/>"
            );
        }
        if line.marked {
            draw_mark(out, x + SAMPLE / 2.0, y, *style, line.reported);
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + SAMPLE + 8.0,
            y + 4.0,
            escaped(&line.name)
        );
        x += width;
    }
    y
}

#[cfg(test)]
mod tests;
