//! The drawing for a page: one file that needs nothing else, light or dark as its reader likes it.

use std::fmt::Write;

use super::super::{NodeKind, Topology};
use super::State;
use super::layers::Vertex;
use super::layout::{Layout, Line, Placed, layout};

/// A cell of the layout, in pixels: one character of the font, and a line of text.
const CELL_WIDTH: f64 = 8.0;
const CELL_HEIGHT: f64 = 18.0;
const MARGIN: f64 = 12.0;
/// Boxes that touch in the layout stand apart here.
const GAP: f64 = 3.0;

const STYLE: &str = "    .page { fill: #ffffff }
    text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1f2933 }
    .note { fill: #52606d }
    .box { stroke-width: 1.5 }
    .host { fill: #e3f2fd; stroke: #1565c0 }
    .plain { fill: #f2f2f2; stroke: #757575 }
    .switch { fill: #e8f5e9; stroke: #2e7d32 }
    .hub { fill: #fff3e0; stroke: #ef6c00; stroke-dasharray: 6 3 }
    .wire { fill: none; stroke: #52606d; stroke-width: 1.5 }
    .cut { stroke: #c62828; stroke-dasharray: 5 4 }
    text.down { fill: #c62828 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #14181d }
      text { fill: #e4e7eb }
      .note { fill: #9aa5b1 }
      .host { fill: #10304f; stroke: #64b5f6 }
      .plain { fill: #2b2f34; stroke: #9e9e9e }
      .switch { fill: #173a1b; stroke: #81c784 }
      .hub { fill: #43290b; stroke: #ffb74d }
      .wire { stroke: #9aa5b1 }
      .cut { stroke: #ef5350 }
      text.down { fill: #ef5350 }
    }
";

/// An SVG document.
pub fn draw(topology: &Topology, state: Option<&State>) -> String {
    let layout = layout(topology, state);
    let mut svg = String::new();
    head(&mut svg, topology, &layout);
    for line in &layout.lines {
        wire(&mut svg, topology, line);
    }
    for placed in &layout.boxes {
        node(&mut svg, topology, placed);
    }
    for line in &layout.lines {
        label(&mut svg, line);
    }
    svg.push_str("</svg>\n");
    svg
}

fn head(svg: &mut String, topology: &Topology, layout: &Layout) {
    let width = layout.width as f64 * CELL_WIDTH + 2.0 * MARGIN;
    let height = layout.height as f64 * CELL_HEIGHT + 2.0 * MARGIN;
    let title = escape(&topology.name);
    push(
        svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{title}</title>\n"
        ),
    );
    if let Some(about) = &topology.about {
        push(svg, format_args!("<desc>{}</desc>\n", escape(about)));
    }
    push(
        svg,
        format_args!(
            "<style>\n{STYLE}</style>\n\
             <rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n"
        ),
    );
}

/// The middle of a cell.
fn at(x: usize, y: usize) -> (f64, f64) {
    let x = MARGIN + (x as f64 + 0.5) * CELL_WIDTH;
    (x, MARGIN + (y as f64 + 0.5) * CELL_HEIGHT)
}

fn wire(svg: &mut String, topology: &Topology, line: &Line) {
    let points: Vec<String> = line
        .points
        .iter()
        .map(|&(x, y)| {
            let (x, y) = at(x, y);
            format!("{x},{y}")
        })
        .collect();
    let wire = &topology.wires[line.wire];
    let ends = wire.ends.each_ref().map(|end| match &end.interface {
        Some(interface) => format!("{} {interface}", end.node),
        None => end.node.to_string(),
    });
    let class = if line.is_cut { "wire cut" } else { "wire" };
    let title = escape(&format!("{}: {} to {}", wire.name, ends[0], ends[1]));
    push(
        svg,
        format_args!(
            "<polyline class=\"{class}\" points=\"{}\"><title>{title}</title></polyline>\n",
            points.join(" ")
        ),
    );
}

fn node(svg: &mut String, topology: &Topology, placed: &Placed) {
    let class = match placed.vertex {
        Vertex::Host(i) if topology.hosts[i].packtrain => "host",
        Vertex::Host(_) => "plain",
        Vertex::Node(i) => match topology.nodes[i].kind {
            NodeKind::Switch => "switch",
            NodeKind::Hub { .. } => "hub",
        },
        Vertex::Passing => return,
    };
    let (left, top) = at(placed.x, placed.y);
    let (right, bottom) = at(placed.x + placed.width - 1, placed.y + placed.height - 1);
    // Out to the edges of the cells, less the gap: text borders have half a cell there.
    let (y, height) = (
        top - CELL_HEIGHT / 2.0 + GAP,
        bottom - top + CELL_HEIGHT - 2.0 * GAP,
    );
    let round = if class == "host" || class == "plain" {
        6
    } else {
        1
    };
    push(
        svg,
        format_args!(
            "<rect class=\"box {class}\" x=\"{left}\" y=\"{y}\" width=\"{}\" height=\"{height}\" \
             rx=\"{round}\"/>\n",
            right - left
        ),
    );
    let middle = (left + right) / 2.0;
    let lines = placed.text.len() as f64;
    for (i, text) in placed.text.iter().enumerate() {
        let y = (top + bottom) / 2.0 + (i as f64 - (lines - 1.0) / 2.0) * CELL_HEIGHT;
        let class = if i == 0 { "name" } else { "note" };
        push(
            svg,
            format_args!(
                "<text class=\"{class}\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                y + 4.5,
                escape(text)
            ),
        );
    }
}

fn label(svg: &mut String, line: &Line) {
    for (i, text) in line.label.iter().enumerate() {
        let (x, y) = at(line.label_x, line.points[0].1 + i);
        let x = x - CELL_WIDTH / 2.0;
        let length = text.chars().count() as f64 * CELL_WIDTH;
        if i == 0 {
            // The wire must not cross it out.
            push(
                svg,
                format_args!(
                    "<rect class=\"page\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{CELL_HEIGHT}\"/>\n",
                    x - CELL_WIDTH / 2.0,
                    y - CELL_HEIGHT / 2.0,
                    length + CELL_WIDTH
                ),
            );
        }
        let class = if line.is_down { "down" } else { "label" };
        push(
            svg,
            format_args!(
                // The length is set, for fonts differ and what stands beside it does not move.
                "<text class=\"{class}\" x=\"{x}\" y=\"{}\" textLength=\"{length}\" \
                 xml:space=\"preserve\">{}</text>\n",
                y + 4.5,
                escape(text)
            ),
        );
    }
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a String takes all");
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // No part of XML, even escaped.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
