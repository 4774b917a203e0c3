//! The page that says what keys do and what words mean: the same shape in every view.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::table::Look;

pub fn draw_help_page(
    frame: &mut Frame,
    area: Rect,
    look: &Look,
    title: &str,
    keys: &[(&str, &str)],
    texts: &[&str],
) {
    let theme = &look.theme;
    let mut lines = vec![Line::styled(title, theme.title)];
    for (key, what) in keys {
        let what = look.glyphs.fitted(what, usize::from(area.width));
        lines.push(Line::from(vec![
            Span::styled(format!("  {key:<16}"), theme.title),
            Span::raw(what),
        ]));
    }
    lines.push(Line::default());
    lines.extend(texts.iter().map(|text| Line::raw(*text)));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}
