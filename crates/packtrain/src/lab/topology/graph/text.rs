//! The drawing for a terminal. Hosts have thin borders, switches double ones, hubs thick ones.

use super::super::{NodeKind, Topology};
use super::State;
use super::layers::Vertex;
use super::layout::{Layout, Line, Placed, layout};

/// Lines of text, each with its end.
pub fn draw(topology: &Topology, state: Option<&State>) -> String {
    let layout = layout(topology, state);
    let mut canvas = Canvas::new(&layout);
    for line in &layout.lines {
        canvas.line(line);
    }
    for placed in &layout.boxes {
        canvas.placed(placed, topology);
    }
    for line in &layout.lines {
        canvas.junctions(line, &layout);
        canvas.label(line);
    }
    canvas.into_text()
}

/// Which neighbouring cells a wire in this cell goes to.
const LEFT: u8 = 1;
const RIGHT: u8 = 2;
const UP: u8 = 4;
const DOWN: u8 = 8;

#[derive(Clone, Copy)]
enum Cell {
    Empty,
    Wire { towards: u8, is_cut: bool },
    Char(char),
}

struct Canvas {
    cells: Vec<Vec<Cell>>,
}

/// Corners, sides, and where a wire meets the left or right side.
struct Border {
    corners: [char; 4],
    horizontal: char,
    vertical: char,
    junctions: [char; 2],
}

const HOST: Border = Border {
    corners: ['┌', '┐', '└', '┘'],
    horizontal: '─',
    vertical: '│',
    junctions: ['┤', '├'],
};
const SWITCH: Border = Border {
    corners: ['╔', '╗', '╚', '╝'],
    horizontal: '═',
    vertical: '║',
    junctions: ['╢', '╟'],
};
const HUB: Border = Border {
    corners: ['┏', '┓', '┗', '┛'],
    horizontal: '━',
    vertical: '┃',
    junctions: ['┨', '┠'],
};

impl Canvas {
    fn new(layout: &Layout) -> Canvas {
        Canvas {
            cells: vec![vec![Cell::Empty; layout.width]; layout.height],
        }
    }

    fn put(&mut self, x: usize, y: usize, c: char) {
        // Beside the boxes, a long word may stand out of the drawing.
        let row = &mut self.cells[y];
        if row.len() <= x {
            row.resize(x + 1, Cell::Empty);
        }
        row[x] = Cell::Char(c);
    }

    fn text(&mut self, x: usize, y: usize, text: &str) {
        for (i, c) in text.chars().enumerate() {
            self.put(x + i, y, c);
        }
    }

    fn wire(&mut self, x: usize, y: usize, to: u8, cut: bool) {
        let cell = &mut self.cells[y][x];
        *cell = match *cell {
            Cell::Wire { towards, is_cut } => Cell::Wire {
                towards: towards | to,
                is_cut: is_cut && cut,
            },
            _ => Cell::Wire {
                towards: to,
                is_cut: cut,
            },
        };
    }

    fn line(&mut self, line: &Line) {
        for pair in line.points.windows(2) {
            let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
            for x in x0..x1 {
                self.wire(x, y0, RIGHT, line.is_cut);
                self.wire(x + 1, y0, LEFT, line.is_cut);
            }
            for y in y0.min(y1)..y0.max(y1) {
                self.wire(x0, y, DOWN, line.is_cut);
                self.wire(x0, y + 1, UP, line.is_cut);
            }
        }
    }

    fn placed(&mut self, placed: &Placed, topology: &Topology) {
        let Some(border) = border(placed.vertex, topology) else {
            return;
        };
        let (left, right) = (placed.x, placed.x + placed.width - 1);
        let (top, bottom) = (placed.y, placed.y + placed.height - 1);
        for x in left..=right {
            self.put(x, top, border.horizontal);
            self.put(x, bottom, border.horizontal);
        }
        for y in top + 1..bottom {
            self.put(left, y, border.vertical);
            self.put(right, y, border.vertical);
        }
        let corners = [(left, top), (right, top), (left, bottom), (right, bottom)];
        for ((x, y), corner) in corners.into_iter().zip(border.corners) {
            self.put(x, y, corner);
        }
        let first = top + (placed.height - placed.text.len()) / 2;
        for (i, text) in placed.text.iter().enumerate() {
            let free = placed.width - text.chars().count();
            self.text(left + free / 2, first + i, text);
        }
    }

    /// Where a wire meets the sides of boxes.
    fn junctions(&mut self, line: &Line, layout: &Layout) {
        let ends = [line.points.first(), line.points.last()];
        for &(x, y) in ends.into_iter().flatten() {
            let Some(Cell::Char(side)) = self.cells[y].get(x).copied() else {
                continue;
            };
            let is_left_side = layout
                .boxes
                .iter()
                .any(|placed| placed.x == x && (placed.y..placed.y + placed.height).contains(&y));
            for border in [HOST, SWITCH, HUB] {
                if side == border.vertical {
                    self.put(x, y, border.junctions[usize::from(!is_left_side)]);
                }
            }
        }
    }

    fn label(&mut self, line: &Line) {
        for (i, text) in line.label.iter().enumerate() {
            let y = line.points[0].1 + i;
            // Only the first line stands on the wire, which must not touch it.
            let text = if i == 0 {
                format!(" {text} ")
            } else {
                format!(" {text}")
            };
            self.text(line.label_x - 1, y, &text);
        }
    }

    fn into_text(self) -> String {
        let mut text = String::new();
        for row in self.cells {
            let row: String = row.into_iter().map(Cell::into_char).collect();
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }
}

impl Cell {
    fn into_char(self) -> char {
        const ACROSS: u8 = LEFT | RIGHT;
        const UPRIGHT: u8 = UP | DOWN;
        match self {
            Cell::Empty => ' ',
            Cell::Char(c) => c,
            Cell::Wire { towards, is_cut } => match towards {
                UPRIGHT if is_cut => '╎',
                UPRIGHT | UP | DOWN => '│',
                _ if towards == LEFT | DOWN => '┐',
                _ if towards == LEFT | UP => '┘',
                _ if towards == RIGHT | DOWN => '┌',
                _ if towards == RIGHT | UP => '└',
                _ if towards & UPRIGHT != 0 => '┼',
                ACROSS | LEFT | RIGHT if is_cut => '╌',
                _ => '─',
            },
        }
    }
}

fn border(vertex: Vertex, topology: &Topology) -> Option<Border> {
    match vertex {
        Vertex::Host(_) => Some(HOST),
        Vertex::Node(i) => Some(match topology.nodes[i].kind {
            NodeKind::Switch => SWITCH,
            NodeKind::Hub { .. } => HUB,
        }),
        Vertex::Passing => None,
    }
}
