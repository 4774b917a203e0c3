//! Where every box, wire and label stands, in cells of a grid: columns of boxes, and wires in the
//! channels between them. Text and SVG draw the same.

use super::super::Topology;
use super::layers::{Vertex, parts};
use super::rows::Rows;
use super::tracks::tracks;
use super::{COLUMNS, Label, State};

/// Narrower, a label is no longer read.
const LABEL_WIDTH_MIN: usize = 8;

#[derive(Debug)]
pub(super) struct Layout {
    pub width: usize,
    pub height: usize,
    pub boxes: Vec<Placed>,
    pub lines: Vec<Line>,
}

#[derive(Debug)]
pub(super) struct Placed {
    pub vertex: Vertex,
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
    /// The name, and a note.
    pub text: Vec<String>,
}

/// A piece of a wire, from the border of one box to that of another.
#[derive(Debug)]
pub(super) struct Line {
    pub wire: usize,
    /// From left to right, with corners.
    pub points: Vec<(usize, usize)>,
    pub is_cut: bool,
    pub is_down: bool,
    /// On the wire and below it, from this column on.
    pub label_x: usize,
    pub label: Vec<String>,
}

/// All parts below each other, as wide as a terminal if their labels can be wrapped so.
pub(super) fn layout(topology: &Topology, state: Option<&State>) -> Layout {
    let labels: Vec<Label> = topology
        .wires
        .iter()
        .map(|wire| Label::new(wire, state))
        .collect();
    let mut all = Layout {
        width: 0,
        height: 0,
        boxes: Vec::new(),
        lines: Vec::new(),
    };
    for layers in parts(topology) {
        let mut widths = vec![usize::MAX; layers.columns.len()];
        let mut part = Part::new(&Rows::new(topology, &labels, &layers, &widths));
        while part.layout.width > COLUMNS {
            let wide = part
                .label_widths
                .iter()
                .enumerate()
                .max_by_key(|(_, width)| **width);
            let Some((channel, &width)) = wide.filter(|(_, width)| **width > LABEL_WIDTH_MIN)
            else {
                break;
            };
            widths[channel] = width - 1;
            let narrower = Part::new(&Rows::new(topology, &labels, &layers, &widths));
            if narrower.label_widths[channel] >= width {
                // One word is as long as that.
                break;
            }
            part = narrower;
        }
        all.add_below(part.layout);
    }
    all
}

impl Layout {
    fn add_below(&mut self, part: Layout) {
        let down = if self.height > 0 { self.height + 1 } else { 0 };
        self.width = self.width.max(part.width);
        self.height = down + part.height;
        self.boxes.extend(part.boxes.into_iter().map(|mut placed| {
            placed.y += down;
            placed
        }));
        self.lines.extend(part.lines.into_iter().map(|mut line| {
            line.points.iter_mut().for_each(|(_, y)| *y += down);
            line
        }));
    }
}

/// One connected part.
struct Part {
    layout: Layout,
    /// Of the widest label in each channel.
    label_widths: Vec<usize>,
}

impl Part {
    /// Columns from left to right, now that all rows are known.
    fn new(rows: &Rows<'_>) -> Part {
        let mut part = Part {
            layout: Layout {
                width: 0,
                height: 0,
                boxes: Vec::new(),
                lines: Vec::new(),
            },
            label_widths: Vec::new(),
        };
        let mut x = 0;
        for (column, channel) in rows.layers.columns.iter().zip(rows.channels()) {
            let right = part.add_column(rows, column, x);
            x = part.add_channel(rows, &channel, right);
        }
        part
    }

    /// Boxes of one width from `x` on; returns the column of their right borders.
    fn add_column(&mut self, rows: &Rows<'_>, column: &[usize], x: usize) -> usize {
        let texts = column.iter().flat_map(|&v| rows.text(v));
        let widths = texts.map(|text| text.chars().count() + 4);
        let width = widths.max().unwrap_or(1);
        let right = x + width - 1;
        for &vertex in column {
            let [top, bottom] = rows.of_box(vertex);
            self.layout.boxes.push(Placed {
                vertex: rows.layers.vertices[vertex],
                x,
                y: top,
                width,
                height: bottom - top + 1,
                text: rows.text(vertex),
            });
            self.layout.height = self.layout.height.max(bottom + 1);
            if rows.is_passing(vertex) {
                // The wire goes on where it came in.
                let [before, after] = rows.ports[vertex].each_ref().map(|pieces| pieces[0]);
                let (start, end) = (rows.of_piece(before)[1], rows.of_piece(after)[0]);
                let points = vec![(x, start), (x, end), (right, end)];
                self.add_line(rows, before, points, (0, &[]));
            }
        }
        self.layout.width = self.layout.width.max(right + 1);
        right
    }

    /// Wires from the column `from`, where they begin, on; returns the column where they end.
    fn add_channel(&mut self, rows: &Rows<'_>, channel: &[usize], from: usize) -> usize {
        let texts = channel.iter().flat_map(|&piece| &rows.texts[piece]);
        let label_width = texts.map(|text| text.chars().count()).max().unwrap_or(0);
        self.label_widths.push(label_width);
        let ends: Vec<[usize; 2]> = channel.iter().map(|&piece| rows.of_piece(piece)).collect();
        let tracks = tracks(&ends).expect("rows were spread where there were none");
        let bends = tracks.iter().flatten().count();
        // A dash and a blank on both sides of the label, and two columns for each bend.
        let first_track = from + label_width + 5;
        let to = first_track + 2 * bends;
        for ((&piece, [start, end]), track) in channel.iter().zip(ends).zip(tracks) {
            let mut points = vec![(from, start)];
            if let Some(track) = track {
                let x = first_track + 2 * track;
                points.extend([(x, start), (x, end)]);
            }
            points.push((to, end));
            let text = &rows.texts[piece];
            self.layout.height = self.layout.height.max(start + text.len());
            self.add_line(rows, piece, points, (from + 3, text));
        }
        to
    }

    fn add_line(
        &mut self,
        rows: &Rows<'_>,
        piece: usize,
        points: Vec<(usize, usize)>,
        (label_x, label): (usize, &[String]),
    ) {
        let wire = rows.layers.pieces[piece].wire;
        self.layout.lines.push(Line {
            wire,
            points,
            is_cut: rows.labels[wire].is_cut,
            is_down: rows.labels[wire].is_down,
            label_x,
            label: label.to_vec(),
        });
    }
}
