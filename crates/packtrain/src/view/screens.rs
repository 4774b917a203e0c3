//! What tests see of a view: letters, and how they stand out.

use std::fmt::Write as _;

use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use ratatui::{Frame, Terminal};

pub fn drawn(width: u16, height: u16, draw: impl FnOnce(&mut Frame)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(draw).unwrap();
    terminal.backend().buffer().clone()
}

pub fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area().width);
    let rows = buffer.content().chunks(width);
    let lines = rows.map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// A letter for each cell: its colour, or how else it stands out; in capitals what is turned round.
pub fn styles(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area().width);
    let letter = |cell: &Cell| {
        assert_eq!(cell.bg, Color::Reset);
        let letter = match cell.fg {
            Color::Reset if cell.modifier.contains(Modifier::REVERSED) => 'x',
            Color::Reset if cell.modifier.contains(Modifier::BOLD) => 'o',
            Color::Reset if cell.modifier.contains(Modifier::UNDERLINED) => '_',
            Color::Reset if cell.modifier.contains(Modifier::DIM) => '-',
            Color::Reset => '.',
            Color::Green => 'g',
            Color::Red => 'r',
            Color::LightRed => 'l',
            Color::Cyan => 'c',
            Color::Blue => 'b',
            other => panic!("{other}"),
        };
        match cell.modifier.contains(Modifier::REVERSED) {
            true => letter.to_ascii_uppercase(),
            false => letter,
        }
    };
    let mut lines = String::new();
    for row in buffer.content().chunks(width) {
        let line: String = row.iter().map(letter).collect();
        let _ = writeln!(lines, "{}", line.trim_end_matches('.'));
    }
    lines
}

/// What a file beside the tests of `view` says. `PACKTRAIN_WRITE_SCREENS=1` writes it anew: read what has changed.
pub fn is_as(view: &str, file: &str, seen: &str) {
    let path = format!(
        "{}/src/view/{view}/tests/{file}",
        env!("CARGO_MANIFEST_DIR")
    );
    if std::env::var_os("PACKTRAIN_WRITE_SCREENS").is_some() {
        std::fs::write(&path, seen).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == seen, "{file} is otherwise:\n{seen}");
}
