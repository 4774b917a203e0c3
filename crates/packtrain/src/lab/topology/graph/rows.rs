//! On which rows the boxes of each column stand and where wires meet them: straight where that can
//! be, column by column from the tallest one.

use super::super::Topology;
use super::layers::{Layers, Vertex};
use super::tracks::tracks;
use super::{Label, note};

/// Left and right, of a box.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// Of one connected part. They may be negative while it is placed.
pub(super) struct Rows<'a> {
    topology: &'a Topology,
    pub labels: &'a [Label],
    pub layers: &'a Layers,
    /// Of each vertex: the pieces at its left and right side, from top to bottom.
    pub ports: Vec<[Vec<usize>; 2]>,
    /// What stands on each piece.
    pub texts: Vec<Vec<String>>,
    /// First and last row of each vertex, with its borders; where a wire passes, they stay blank.
    rows: Vec<(i32, i32)>,
    /// Rows of each piece at its left and right end.
    piece_rows: Vec<[i32; 2]>,
}

impl<'a> Rows<'a> {
    pub fn new(
        topology: &'a Topology,
        labels: &'a [Label],
        layers: &'a Layers,
        widths: &[usize],
    ) -> Rows<'a> {
        let mut place = vec![(0, 0); layers.vertices.len()];
        for (column, vertices) in layers.columns.iter().enumerate() {
            for (row, &vertex) in vertices.iter().enumerate() {
                place[vertex] = (column, row);
            }
        }
        let texts = layers.pieces.iter().map(|piece| {
            let width = widths[place[piece.ends[LEFT]].0];
            if piece.is_first {
                labels[piece.wire].lines(width, piece.is_reversed)
            } else {
                Vec::new()
            }
        });
        let ports = (0..layers.vertices.len()).map(|vertex| {
            [RIGHT, LEFT].map(|end| {
                let pieces = 0..layers.pieces.len();
                let mut here: Vec<usize> = pieces
                    .filter(|&p| layers.pieces[p].ends[end] == vertex)
                    .collect();
                here.sort_by_key(|&p| (place[layers.pieces[p].ends[1 - end]].1, p));
                here
            })
        });
        let mut rows = Rows {
            topology,
            labels,
            layers,
            ports: ports.collect(),
            texts: texts.collect(),
            rows: vec![(0, 0); layers.vertices.len()],
            piece_rows: vec![[0; 2]; layers.pieces.len()],
        };
        rows.place();
        rows
    }

    fn place(&mut self) {
        let columns = &self.layers.columns;
        let height = |column: &Vec<usize>| -> i32 { column.iter().map(|&v| self.height(v)).sum() };
        let tallest = (0..columns.len())
            .rev()
            .max_by_key(|&at| height(&columns[at]))
            .expect("a part has a column");
        self.stack(&columns[tallest], 0);
        for at in tallest + 1..columns.len() {
            self.place_beside(at - 1, at, RIGHT);
        }
        for at in (0..tallest).rev() {
            self.place_beside(at + 1, at, LEFT);
        }
        self.begin_at_zero();
        let tangled = |channel: &Vec<usize>| {
            let ends: Vec<[usize; 2]> = channel.iter().map(|&p| self.of_piece(p)).collect();
            tracks(&ends).is_none()
        };
        if self.channels().iter().any(tangled) {
            self.spread();
        }
    }

    fn begin_at_zero(&mut self) {
        let lowest = self.rows.iter().map(|(top, _)| *top).min().unwrap_or(0);
        for (top, bottom) in &mut self.rows {
            (*top, *bottom) = (*top - lowest, *bottom - lowest);
        }
        for row in self.piece_rows.iter_mut().flatten() {
            *row -= lowest;
        }
    }

    /// First and last row of a box.
    pub fn of_box(&self, vertex: usize) -> [usize; 2] {
        let (top, bottom) = self.rows[vertex];
        [top as usize, bottom as usize]
    }

    /// Rows of the left and the right end of a piece.
    pub fn of_piece(&self, piece: usize) -> [usize; 2] {
        self.piece_rows[piece].map(|row| row as usize)
    }

    pub fn text(&self, vertex: usize) -> Vec<String> {
        let name = match self.layers.vertices[vertex] {
            Vertex::Host(i) => &self.topology.hosts[i].name,
            Vertex::Node(i) => &self.topology.nodes[i].name,
            Vertex::Passing => return Vec::new(),
        };
        let note = note(self.topology, self.layers.vertices[vertex]);
        std::iter::once(name.to_string()).chain(note).collect()
    }

    pub fn is_passing(&self, vertex: usize) -> bool {
        self.layers.vertices[vertex] == Vertex::Passing
    }

    /// Rows that a piece and what stands below it take.
    fn piece_height(&self, piece: usize) -> i32 {
        self.texts[piece].len().max(1) as i32
    }

    /// Rows inside the box that the ports of one side take. Below the last one, the border and that
    /// of the next box have room for two lines more.
    fn side_height(&self, pieces: &[usize]) -> i32 {
        let Some((&last, before)) = pieces.split_last() else {
            return 0;
        };
        let before: i32 = before.iter().map(|&piece| self.piece_height(piece)).sum();
        before + self.last_height(last)
    }

    fn last_height(&self, piece: usize) -> i32 {
        (self.piece_height(piece) - 2).max(1)
    }

    fn inner_height(&self, vertex: usize) -> i32 {
        let [left, right] = self.ports[vertex].each_ref().map(|p| self.side_height(p));
        left.max(right).max(self.text(vertex).len().max(1) as i32)
    }

    fn height(&self, vertex: usize) -> i32 {
        self.inner_height(vertex) + 2
    }

    /// Boxes from `top` downwards, each as high as it must be.
    fn stack(&mut self, vertices: &[usize], top: i32) {
        let mut top = top;
        for &vertex in vertices {
            let height = self.height(vertex);
            self.set_rows(vertex, top, top + height - 1);
            top += height;
        }
    }

    /// Puts a box somewhere, and its ports in its middle.
    fn set_rows(&mut self, vertex: usize, top: i32, bottom: i32) {
        self.rows[vertex] = (top, bottom);
        let inner = bottom - top + 1 - 2;
        for side in [LEFT, RIGHT] {
            let pieces = self.ports[vertex][side].clone();
            let mut row = top + 1 + (inner - self.side_height(&pieces)) / 2;
            for piece in pieces {
                self.piece_rows[piece][1 - side] = row;
                row += self.piece_height(piece);
            }
        }
    }

    /// Places a column beside one that stands, on its `side`.
    fn place_beside(&mut self, standing: usize, column: usize, side: usize) {
        let vertices = self.layers.columns[column].clone();
        // Of a piece, the end at the new box and the one at the standing box.
        let (new_end, old_end) = (side, 1 - side);
        let spans: Vec<Option<(i32, i32)>> = vertices
            .iter()
            .map(|&v| self.span(v, 1 - side, old_end))
            .collect();
        let apart = spans.windows(2).all(|pair| match (pair[0], pair[1]) {
            (Some((_, bottom)), Some((top, _))) => bottom < top,
            _ => false,
        });
        if apart && spans.iter().all(Option::is_some) {
            for (&vertex, span) in vertices.iter().zip(spans) {
                let (top, bottom) = span.expect("all have one");
                self.set_rows(vertex, top, bottom);
                for piece in self.ports[vertex][1 - side].clone() {
                    self.piece_rows[piece][new_end] = self.piece_rows[piece][old_end];
                }
            }
            return;
        }
        self.stack_beside(&vertices, side);
        for vertex in self.layers.columns[standing].clone() {
            self.straighten(vertex, side);
        }
    }

    /// The rows of a box whose wires are straight; `None` where there are none, or they would be in
    /// each other's way.
    fn span(&self, vertex: usize, side: usize, old_end: usize) -> Option<(i32, i32)> {
        let pieces = &self.ports[vertex][side];
        let rows: Vec<i32> = pieces
            .iter()
            .map(|&p| self.piece_rows[p][old_end])
            .collect();
        if !rows.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let first = *rows.first()?;
        let last = *rows.last()? + self.last_height(*pieces.last()?) - 1;
        let missing = (self.inner_height(vertex) - (last - first + 1)).max(0);
        let top = first - 1 - missing / 2;
        Some((top, last + 1 + missing - missing / 2))
    }

    /// Boxes of one column, those that hang on one box around its middle.
    fn stack_beside(&mut self, vertices: &[usize], side: usize) {
        let mut free_from = i32::MIN / 2;
        let mut rest = vertices;
        while let Some(&first) = rest.first() {
            let parent = self.parent(first, side);
            let count = rest
                .iter()
                .take_while(|&&v| self.parent(v, side) == parent)
                .count();
            let (group, after) = rest.split_at(count.max(1));
            let height: i32 = group.iter().map(|&v| self.height(v)).sum();
            let top = parent.map_or(0, |parent| {
                let (top, bottom) = self.rows[parent];
                (top + bottom + 1 - height).div_euclid(2)
            });
            let top = top.max(free_from);
            self.stack(group, top);
            free_from = top + height;
            rest = after;
        }
    }

    /// The first box that it is joined to in the column that stands.
    fn parent(&self, vertex: usize, side: usize) -> Option<usize> {
        let piece = self.ports[vertex][1 - side].first()?;
        Some(self.layers.pieces[*piece].ends[1 - side])
    }

    /// Moves the ports of a box to where their wires come straight, if they fit there.
    fn straighten(&mut self, vertex: usize, side: usize) {
        let pieces = self.ports[vertex][side].clone();
        let (top, bottom) = self.rows[vertex];
        let wanted: Vec<i32> = pieces.iter().map(|&p| self.piece_rows[p][side]).collect();
        let Some((&first, (&last, &last_piece))) =
            wanted.first().zip(wanted.last().zip(pieces.last()))
        else {
            return;
        };
        let inside = top < first && last + self.last_height(last_piece) <= bottom;
        if inside && wanted.is_sorted_by(|a, b| a < b) {
            for (piece, row) in pieces.into_iter().zip(wanted) {
                self.piece_rows[piece][1 - side] = row;
            }
        }
    }

    /// The pieces right of each column, from top to bottom.
    pub fn channels(&self) -> Vec<Vec<usize>> {
        let columns = self.layers.columns.iter();
        columns
            .map(|column| {
                let pieces = column.iter().flat_map(|&v| self.ports[v][RIGHT].clone());
                pieces.collect()
            })
            .collect()
    }

    /// Twice as many rows, even ones for where wires begin and odd ones for where they end: so no
    /// two can lie on each other, whatever their tracks.
    fn spread(&mut self) {
        for (top, bottom) in &mut self.rows {
            (*top, *bottom) = (2 * *top, 2 * *bottom + 1);
        }
        for [start, end] in &mut self.piece_rows {
            (*start, *end) = (2 * *start, 2 * *end + 1);
        }
    }
}
