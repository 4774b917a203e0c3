//! Streams that the pacer of TCP has: what each is doing, how fast, and what it has lost; and the paths that are remembered.
//!
//! [`PaceTop`] is what is shown and what keys do; it neither asks nor waits. [`report`] says the same in lines.

mod columns;
mod draw;
mod order;
mod reading;
pub mod report;
mod watched;

use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use self::order::{PathSort, StreamSort};
use self::watched::State;
pub use self::watched::{Answer, Watched};
use super::inputs::Then;
use super::table::{Look, Scroll, Step};

/// Of what is typed to be looked for.
const WORDS_LETTERS_MAX: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pane {
    Streams,
    Paths,
}

#[derive(Debug)]
pub struct PaceTop {
    look: Look,
    interval: Duration,
    tcp: Watched,
    /// What is shown instead, as it was when somebody has stopped it.
    paused: Option<Watched>,
    focus: Pane,
    streams_sort: StreamSort,
    paths_sort: PathSort,
    /// The last come first.
    is_turned: bool,
    /// Only rows that have all of these words.
    words: String,
    /// They are being typed.
    is_typing: bool,
    streams_scroll: Scroll,
    paths_scroll: Scroll,
    shows_help: bool,
}

impl PaceTop {
    pub fn new(look: Look, interval: Duration) -> PaceTop {
        PaceTop {
            look,
            interval,
            tcp: Watched::default(),
            paused: None,
            focus: Pane::Streams,
            streams_sort: StreamSort::Rate,
            paths_sort: PathSort::Full,
            is_turned: false,
            words: String::new(),
            is_typing: false,
            streams_scroll: Scroll::default(),
            paths_scroll: Scroll::default(),
            shows_help: false,
        }
    }

    /// What the pacer has answered; says whether something that is shown has changed.
    pub fn take(&mut self, answer: Answer) -> bool {
        let had_ended = matches!(self.tcp.state, State::Ended { .. });
        let is_end = matches!(answer, Answer::Ended { .. });
        self.tcp.take(answer);
        self.paused.is_none() && !self.shows_help && !(had_ended && is_end)
    }

    fn shown(&self) -> &Watched {
        self.paused.as_ref().unwrap_or(&self.tcp)
    }

    pub fn handle_key(&mut self, key: KeyEvent) -> Then {
        if let Some(then) = Then::of_control(&key) {
            return then;
        }
        if self.shows_help {
            self.shows_help = false;
            return Then::Draw;
        }
        if self.is_typing {
            return self.type_words(key.code);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Then::Quit,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Char('s') => match self.focus {
                Pane::Streams => self.streams_sort = self.streams_sort.next(),
                Pane::Paths => self.paths_sort = self.paths_sort.next(),
            },
            KeyCode::Char('R') => self.is_turned = !self.is_turned,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('p' | ' ') => {
                self.paused = match self.paused {
                    Some(_) => None,
                    None => Some(self.tcp.clone()),
                };
            }
            KeyCode::Char('r') => {
                self.tcp.reset();
                if let Some(paused) = &mut self.paused {
                    paused.reset();
                }
            }
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus = match self.focus {
                    Pane::Streams => Pane::Paths,
                    Pane::Paths => Pane::Streams,
                };
            }
            KeyCode::Up | KeyCode::Char('k') => self.step(Step::Up),
            KeyCode::Down | KeyCode::Char('j') => self.step(Step::Down),
            KeyCode::PageUp => self.step(Step::PageUp),
            KeyCode::PageDown => self.step(Step::PageDown),
            KeyCode::Home => self.step(Step::Start),
            KeyCode::End => self.step(Step::End),
            _ => return Then::Nothing,
        }
        Then::Draw
    }

    /// Rows go and come as they are typed.
    fn type_words(&mut self, code: KeyCode) -> Then {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.words.clear();
                self.is_typing = false;
            }
            KeyCode::Backspace => {
                self.words.pop();
            }
            KeyCode::Char(letter) if self.words.chars().count() < WORDS_LETTERS_MAX => {
                self.words.push(letter);
            }
            _ => return Then::Nothing,
        }
        Then::Draw
    }

    fn step(&mut self, step: Step) {
        match self.focus {
            Pane::Streams => self.streams_scroll.step(step),
            Pane::Paths => self.paths_scroll.step(step),
        }
    }

    pub fn draw(&mut self, frame: &mut Frame) {
        draw::draw(self, frame);
    }
}

#[cfg(test)]
pub(in crate::view) mod tests;
