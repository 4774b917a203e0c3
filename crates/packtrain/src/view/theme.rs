//! Colours and letters of a view: few, each with one meaning, and nothing that is said by colour alone.
//!
//! Text has the terminal's own colours, and no background is painted but by turning the two round, so that every
//! view can be read on whatever a terminal shows it; the sixteen colours that follow a terminal's own scheme are the only ones.

use clap::ValueEnum;
use ratatui::style::{Color, Modifier, Style};

/// What a person has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ThemeName {
    /// As the terminal says (COLORFGBG, TERM, NO_COLOR); where it does not, colours for a dark one that can be read on a light one.
    #[default]
    Auto,
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// No colours.
    Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// What went as it should.
    pub good: Style,
    /// What did not, or was taken away.
    pub bad: Style,
    /// What is drawn of numbers.
    pub chart: Style,
    pub title: Style,
    /// Over the columns of a table.
    pub heading: Style,
    /// Over those of the table that keys go to.
    pub heading_focused: Style,
    pub selected: Style,
    /// What nobody may overlook.
    pub alarm: Style,
    pub faint: Style,
    pub key: Style,
}

impl Theme {
    /// `lookup` reads the environment.
    pub fn of(name: ThemeName, lookup: impl Fn(&str) -> Option<String>) -> Theme {
        // <https://no-color.org>: whatever it says, if it says anything.
        let is_plain = lookup("NO_COLOR").is_some_and(|value| !value.is_empty());
        match name {
            _ if is_plain => Theme::PLAIN,
            ThemeName::Plain => Theme::PLAIN,
            ThemeName::Light => Theme::LIGHT,
            ThemeName::Dark => Theme::DARK,
            ThemeName::Auto if lookup("TERM").is_some_and(|term| is_monochrome(&term)) => {
                Theme::PLAIN
            }
            ThemeName::Auto => match lookup("COLORFGBG").as_deref().and_then(is_light) {
                Some(true) => Theme::LIGHT,
                Some(false) | None => Theme::DARK,
            },
        }
    }

    pub const PLAIN: Theme = {
        let none = Style::new();
        let turned = none.add_modifier(Modifier::REVERSED);
        Theme {
            good: none,
            bad: none.add_modifier(Modifier::BOLD),
            chart: none,
            title: none.add_modifier(Modifier::BOLD),
            heading: none.add_modifier(Modifier::UNDERLINED),
            heading_focused: turned,
            selected: turned,
            alarm: turned.add_modifier(Modifier::BOLD),
            faint: none.add_modifier(Modifier::DIM),
            key: turned,
        }
    };
    pub const DARK: Theme = Theme::coloured(Color::Green, Color::LightRed, Color::Cyan);
    /// Cyan and the light red are too pale there.
    pub const LIGHT: Theme = Theme::coloured(Color::Green, Color::Red, Color::Blue);

    const fn coloured(good: Color, bad: Color, accent: Color) -> Theme {
        let plain = Theme::PLAIN;
        Theme {
            good: plain.good.fg(good),
            bad: Style::new().fg(bad),
            chart: plain.chart.fg(accent),
            title: plain.title.fg(accent),
            heading: plain.heading.fg(accent),
            heading_focused: plain.heading_focused.fg(accent),
            alarm: plain.alarm.fg(bad),
            key: plain.key.fg(accent),
            ..plain
        }
    }
}

/// The terminals of old, and variants without colours (term(7)).
fn is_monochrome(term: &str) -> bool {
    matches!(term, "vt52" | "vt100" | "vt102" | "vt220") || term.ends_with("-m")
}

/// Of `COLORFGBG`, which rxvt, Konsole and others set: `15;0`, or `0;default;15`. White and the light grey are light.
fn is_light(value: &str) -> Option<bool> {
    let background: u8 = value.rsplit(';').next()?.parse().ok()?;
    Some(matches!(background, 7 | 15))
}

/// What is drawn of letters that are more than ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glyphs {
    /// From nothing to the whole.
    pub levels: &'static [&'static str],
    pub is_ascii: bool,
}

impl Glyphs {
    pub const UNICODE: Glyphs = Glyphs {
        levels: &[" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
        is_ascii: false,
    };
    pub const ASCII: Glyphs = Glyphs {
        levels: &[" ", ".", ":", "|"],
        is_ascii: true,
    };

    /// As the locale says (setlocale(3)): the first of these that is set.
    pub fn of(lookup: impl Fn(&str) -> Option<String>) -> Glyphs {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"];
        let set = names.into_iter().filter_map(lookup);
        let locale = set.into_iter().find(|value| !value.is_empty());
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        match locale.contains("utf-8") || locale.contains("utf8") {
            true => Glyphs::UNICODE,
            false => Glyphs::ASCII,
        }
    }

    /// `text` in so many letters: what is cut off is shown by its last ones.
    pub fn fitted(&self, text: &str, letters: usize) -> String {
        let text = match self.is_ascii {
            true => text
                .replace('…', "...")
                .replace(|c: char| !c.is_ascii(), "?"),
            false => text.into(),
        };
        if text.chars().count() <= letters {
            return text;
        }
        let sign = if self.is_ascii { ".." } else { "…" };
        let kept = letters.saturating_sub(sign.chars().count());
        let cut: String = text.chars().take(kept).collect();
        format!("{}{sign}", cut.trim_end())
            .chars()
            .take(letters)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(name: ThemeName, set: &[(&str, &str)]) -> Theme {
        Theme::of(name, |key| value(set, key))
    }

    fn value(set: &[(&str, &str)], key: &str) -> Option<String> {
        let found = set.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| (*value).into())
    }

    #[test]
    fn a_terminal_that_says_what_it_is_is_believed_and_a_person_more() {
        let auto = ThemeName::Auto;
        assert_eq!(theme(auto, &[]), Theme::DARK);
        assert_eq!(theme(auto, &[("COLORFGBG", "0;15")]), Theme::LIGHT);
        assert_eq!(theme(auto, &[("COLORFGBG", "0;default;15")]), Theme::LIGHT);
        assert_eq!(theme(auto, &[("COLORFGBG", "15;0")]), Theme::DARK);
        assert_eq!(theme(auto, &[("COLORFGBG", "default")]), Theme::DARK);
        assert_eq!(theme(auto, &[("TERM", "xterm-256color")]), Theme::DARK);
        assert_eq!(theme(auto, &[("TERM", "vt220")]), Theme::PLAIN);
        let light = [("COLORFGBG", "0;15"), ("TERM", "vt220")];
        assert_eq!(theme(ThemeName::Dark, &light), Theme::DARK);
        assert_eq!(theme(ThemeName::Plain, &light), Theme::PLAIN);
    }

    #[test]
    fn no_color_is_heeded_unless_it_is_empty() {
        let none = [("NO_COLOR", "1")];
        assert_eq!(theme(ThemeName::Light, &none), Theme::PLAIN);
        let empty = [("NO_COLOR", "")];
        assert_eq!(theme(ThemeName::Light, &empty), Theme::LIGHT);
    }

    #[test]
    fn no_theme_paints_a_background_or_sets_black_or_white_text() {
        for theme in [Theme::PLAIN, Theme::DARK, Theme::LIGHT] {
            let Theme {
                good,
                bad,
                chart,
                title,
                heading,
                heading_focused,
                selected,
                alarm,
                faint,
                key,
            } = theme;
            for style in [
                good,
                bad,
                chart,
                title,
                heading,
                heading_focused,
                selected,
                alarm,
                faint,
                key,
            ] {
                assert_eq!(style.bg, None);
                let unseen = [Color::Black, Color::White, Color::Gray, Color::Yellow];
                assert!(!unseen.iter().any(|colour| style.fg == Some(*colour)));
            }
        }
    }

    #[test]
    fn letters_are_those_of_the_locale() {
        let glyphs = |set: &[(&str, &str)]| Glyphs::of(|key| value(set, key));
        assert_eq!(glyphs(&[("LANG", "de_DE.UTF-8")]), Glyphs::UNICODE);
        assert_eq!(glyphs(&[("LANG", "C.utf8")]), Glyphs::UNICODE);
        let over = [("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")];
        assert_eq!(glyphs(&over), Glyphs::ASCII);
        let empty = [("LANG", "de_DE.UTF-8"), ("LC_ALL", "")];
        assert_eq!(glyphs(&empty), Glyphs::UNICODE);
        assert_eq!(glyphs(&[]), Glyphs::ASCII);
    }

    #[test]
    fn what_does_not_fit_is_cut_and_shows_it() {
        let text = "a bridge, a bond …";
        assert_eq!(Glyphs::UNICODE.fitted(text, 18), text);
        assert_eq!(Glyphs::UNICODE.fitted(text, 10), "a bridge,…");
        assert_eq!(Glyphs::ASCII.fitted(text, 30), "a bridge, a bond ...");
        assert_eq!(Glyphs::ASCII.fitted(text, 10), "a bridge..");
        assert_eq!(Glyphs::ASCII.fitted(text, 1), ".");
        assert_eq!(Glyphs::ASCII.fitted(text, 0), "");
    }
}
