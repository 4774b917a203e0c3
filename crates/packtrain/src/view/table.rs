//! Tables of which as many rows are seen as there is room for.

use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Row, Table};

use super::theme::{Glyphs, Theme};

/// How a view looks on this terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub theme: Theme,
    pub glyphs: Glyphs,
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    /// 0: all that the others leave.
    pub letters: u16,
    /// It ends where its column does.
    pub is_number: bool,
}

impl Column {
    pub const fn number(title: &'static str, letters: u16) -> Column {
        Column {
            title,
            letters,
            is_number: true,
        }
    }

    pub const fn text(title: &'static str, letters: u16) -> Column {
        Column {
            title,
            letters,
            is_number: false,
        }
    }

    /// The last one.
    pub const fn rest(title: &'static str) -> Column {
        Column::text(title, 0)
    }
}

#[derive(Clone, Debug)]
pub struct TableRow {
    pub cells: Vec<String>,
    /// Of the first cell, which says what kind of row it is.
    pub kind: Style,
    pub style: Style,
}

/// Which rows are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scroll {
    first: usize,
    /// Rows that there was room for when it was drawn last.
    room: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Up,
    Down,
    PageUp,
    PageDown,
    Start,
    End,
}

impl Step {
    /// From one of `count` places to another.
    pub fn from(self, at: usize, count: usize, page: usize) -> usize {
        let page = page.max(1);
        let last = count.saturating_sub(1);
        match self {
            Step::Up => at.saturating_sub(1),
            Step::Down => at.saturating_add(1),
            Step::PageUp => at.saturating_sub(page),
            Step::PageDown => at.saturating_add(page),
            Step::Start => 0,
            Step::End => last,
        }
        .min(last)
    }
}

impl Scroll {
    pub fn step(&mut self, step: Step) {
        // The end is where the next drawing finds it.
        self.first = step.from(self.first, usize::MAX, self.room);
    }

    pub fn room(&self) -> usize {
        self.room
    }

    /// Of so many rows, in so much room.
    pub fn seen(&mut self, rows: usize, room: usize) -> Range<usize> {
        self.room = room;
        self.first = self.first.min(rows.saturating_sub(room));
        self.first..rows.min(self.first + room)
    }

    /// Moves no further than it has to.
    pub fn show(&mut self, row: usize, room: usize) {
        if row < self.first {
            self.first = row;
        } else if row >= self.first + room.max(1) {
            self.first = row + 1 - room.max(1);
        }
    }
}

/// Rows of the table that keys do not go to, if it has so many.
const ROWS_BESIDE: usize = 3;

/// How many rows of each of two tables are seen in so much room: of the one that keys go to as many as can be.
pub fn shared_room(room: usize, first: usize, second: usize, is_second: bool) -> (usize, usize) {
    let second_room = match is_second {
        _ if first + second <= room => second,
        true => room.saturating_sub(ROWS_BESIDE.min(first)).min(second),
        false => ROWS_BESIDE
            .min(second)
            .max(room.saturating_sub(first).min(second)),
    };
    (room.saturating_sub(second_room).min(first), second_room)
}

/// A heading, and rows below it. The heading says which of them are seen when that is not all.
pub fn draw(
    frame: &mut Frame,
    area: Rect,
    look: &Look,
    columns: &[Column],
    rows: &[TableRow],
    scroll: &mut Scroll,
    is_focused: bool,
) {
    if area.height == 0 {
        return;
    }
    let room = usize::from(area.height) - 1;
    let seen = scroll.seen(rows.len(), room);
    let given: u16 = columns.iter().map(|column| column.letters + 1).sum();
    let rest = usize::from(area.width.saturating_sub(given.saturating_sub(1)));
    let letters = |column: &Column| match column.letters {
        0 => rest,
        letters => usize::from(letters),
    };
    let cell = |column: &Column, text: &str| {
        let text = look.glyphs.fitted(text, letters(column));
        match column.is_number {
            true => Line::from(text).right_aligned(),
            false => Line::from(text),
        }
    };
    let title = |column: &Column| match column.letters {
        0 if seen.len() < rows.len() => {
            let which = format!("({}-{} of {})", seen.start + 1, seen.end, rows.len());
            cell(column, &format!("{} {which}", column.title))
        }
        _ => cell(column, column.title),
    };
    let heading = match is_focused {
        true => look.theme.heading_focused,
        false => look.theme.heading,
    };
    let drawn = rows[seen.clone()].iter().map(|row| {
        let cells = columns.iter().zip(&row.cells).enumerate();
        let cells = cells.map(|(at, (column, text))| match at {
            0 => cell(column, text).style(row.kind),
            _ => cell(column, text),
        });
        Row::new(cells).style(row.style)
    });
    let widths = columns.iter().map(|column| match column.letters {
        0 => Constraint::Fill(1),
        letters => Constraint::Length(letters),
    });
    let header = Row::new(columns.iter().map(title)).style(heading);
    let table = Table::new(drawn, widths).header(header).column_spacing(1);
    frame.render_widget(table, area);
}

/// Pieces of a line, each with its own style; what does not fit is cut.
pub fn draw_line<'a>(frame: &mut Frame, area: Rect, pieces: impl IntoIterator<Item = Span<'a>>) {
    let line: Line = pieces.into_iter().collect();
    frame.render_widget(line, area);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_never_scrolled_past_their_end() {
        let mut scroll = Scroll::default();
        assert_eq!(scroll.seen(20, 5), 0..5);
        scroll.step(Step::Down);
        scroll.step(Step::PageDown);
        assert_eq!(scroll.seen(20, 5), 6..11);
        scroll.step(Step::End);
        assert_eq!(scroll.seen(20, 5), 15..20);
        scroll.step(Step::PageUp);
        assert_eq!(scroll.seen(20, 5), 10..15);
        scroll.step(Step::Up);
        assert_eq!(scroll.seen(20, 5), 9..14);
        // Rows have gone, and more room has come.
        assert_eq!(scroll.seen(8, 5), 3..8);
        assert_eq!(scroll.seen(8, 50), 0..8);
        assert_eq!(scroll.seen(0, 0), 0..0);
        scroll.step(Step::Start);
        assert_eq!(scroll.seen(20, 5), 0..5);
    }

    #[test]
    fn of_two_tables_the_one_that_keys_go_to_has_the_more_room() {
        assert_eq!(shared_room(20, 8, 5, true), (8, 5));
        assert_eq!(shared_room(10, 8, 5, false), (7, 3));
        assert_eq!(shared_room(10, 8, 5, true), (5, 5));
        assert_eq!(shared_room(10, 50, 50, true), (3, 7));
        assert_eq!(shared_room(10, 50, 1, false), (9, 1));
        for room in 0..3 {
            let (first, second) = shared_room(room, 50, 50, false);
            assert!(first + second <= room.max(3));
        }
    }

    #[test]
    fn what_is_chosen_is_seen() {
        let mut scroll = Scroll::default();
        scroll.show(7, 3);
        assert_eq!(scroll.seen(20, 3), 5..8);
        scroll.show(6, 3);
        assert_eq!(scroll.seen(20, 3), 5..8);
        scroll.show(2, 3);
        assert_eq!(scroll.seen(20, 3), 2..5);
    }

    #[test]
    fn a_step_ends_at_the_first_and_the_last() {
        assert_eq!(Step::Up.from(0, 3, 1), 0);
        assert_eq!(Step::Down.from(2, 3, 1), 2);
        assert_eq!(Step::PageDown.from(0, 3, 9), 2);
        assert_eq!(Step::End.from(0, 0, 1), 0);
    }
}
