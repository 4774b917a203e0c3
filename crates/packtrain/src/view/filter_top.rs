//! Receive filters as they work: what they let pass and what they drop, a second and in all, and why.
//!
//! [`FilterTop`] is what is shown and what keys do; it neither asks nor waits. [`report`] says the same in lines.

mod draw;
mod reading;
pub mod report;
mod watched;

use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use self::watched::State;
pub use self::watched::{Answer, Watched};
use super::inputs::Then;
use super::table::{Look, Scroll, Step};
use crate::settings::values::InterfaceName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pane {
    Filters,
    Reasons,
    Rules,
}

/// By what rows stand in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Rate,
    Total,
    Name,
    /// In which rules are asked.
    Order,
}

impl Sort {
    fn as_str(self) -> &'static str {
        match self {
            Sort::Rate => "rate",
            Sort::Total => "total",
            Sort::Name => "name",
            Sort::Order => "order",
        }
    }

    fn next_of_reasons(self) -> Sort {
        match self {
            Sort::Rate => Sort::Total,
            Sort::Total => Sort::Name,
            Sort::Name | Sort::Order => Sort::Rate,
        }
    }

    fn next_of_rules(self) -> Sort {
        match self {
            Sort::Order => Sort::Rate,
            Sort::Rate => Sort::Total,
            Sort::Total => Sort::Name,
            Sort::Name => Sort::Order,
        }
    }
}

#[derive(Debug)]
pub struct FilterTop {
    look: Look,
    interval: Duration,
    /// In the order in which they were found.
    filters: Vec<Watched>,
    /// What is shown instead, as it was when somebody has stopped it.
    paused: Option<Vec<Watched>>,
    chosen: usize,
    focus: Pane,
    reasons_sort: Sort,
    rules_sort: Sort,
    filters_scroll: Scroll,
    reasons_scroll: Scroll,
    rules_scroll: Scroll,
    shows_help: bool,
}

impl FilterTop {
    pub fn new(look: Look, interval: Duration) -> FilterTop {
        FilterTop {
            look,
            interval,
            filters: Vec::new(),
            paused: None,
            chosen: 0,
            focus: Pane::Reasons,
            reasons_sort: Sort::Rate,
            rules_sort: Sort::Order,
            filters_scroll: Scroll::default(),
            reasons_scroll: Scroll::default(),
            rules_scroll: Scroll::default(),
            shows_help: false,
        }
    }

    /// Says whether it is a new one.
    pub fn watch(&mut self, interface: &InterfaceName) -> bool {
        let is_new = self.filters.iter().all(|f| f.interface != *interface);
        if is_new {
            self.filters.push(Watched::new(interface.clone()));
            let nobody_reads = self.filters.iter().all(|f| f.state == State::Asked);
            if self.filters.len() > 1 && nobody_reads {
                // There is something to choose from.
                self.focus = Pane::Filters;
            }
        }
        is_new
    }

    /// What one of them has answered; says whether something that is shown has changed.
    pub fn take(&mut self, interface: &InterfaceName, answer: Answer, asked_ns: u64) -> bool {
        let Some(filter) = self.filters.iter_mut().find(|f| f.interface == *interface) else {
            return false;
        };
        let had_ended = filter.state == State::Ended;
        let is_end = matches!(answer, Answer::Ended);
        filter.take(answer, asked_ns);
        self.paused.is_none() && !self.shows_help && !(had_ended && is_end)
    }

    fn shown(&self) -> &[Watched] {
        self.paused.as_deref().unwrap_or(&self.filters)
    }

    /// There is a list of them.
    fn has_list(&self) -> bool {
        self.shown().len() > 1
    }

    pub fn handle_key(&mut self, key: KeyEvent) -> Then {
        if let Some(then) = Then::of_control(&key) {
            return then;
        }
        if self.shows_help {
            self.shows_help = false;
            return Then::Draw;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Then::Quit,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Char('s') => self.sort_otherwise(),
            KeyCode::Char('p' | ' ') => {
                self.paused = match self.paused {
                    Some(_) => None,
                    None => Some(self.filters.clone()),
                };
                self.chosen = self.chosen.min(self.shown().len().saturating_sub(1));
            }
            KeyCode::Char('r') => {
                let shown = self.paused.iter_mut().flatten();
                self.filters
                    .iter_mut()
                    .chain(shown)
                    .for_each(Watched::reset);
            }
            KeyCode::Tab => self.focus = self.pane_behind(1),
            KeyCode::BackTab => self.focus = self.pane_behind(-1),
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

    fn sort_otherwise(&mut self) {
        match self.focus {
            Pane::Rules => self.rules_sort = self.rules_sort.next_of_rules(),
            // The list stays as it is: who walks through it would lose his place.
            Pane::Reasons | Pane::Filters => {
                self.reasons_sort = self.reasons_sort.next_of_reasons();
            }
        }
    }

    fn sort_of_focus(&self) -> Sort {
        match self.focus {
            Pane::Rules => self.rules_sort,
            Pane::Reasons | Pane::Filters => self.reasons_sort,
        }
    }

    fn pane_behind(&self, by: isize) -> Pane {
        let panes: &[Pane] = match self.has_list() {
            true => &[Pane::Filters, Pane::Reasons, Pane::Rules],
            false => &[Pane::Reasons, Pane::Rules],
        };
        let at = panes.iter().position(|pane| *pane == self.focus);
        let count = panes.len() as isize;
        panes[(at.unwrap_or(0) as isize + by).rem_euclid(count) as usize]
    }

    fn step(&mut self, step: Step) {
        match self.focus {
            Pane::Reasons => self.reasons_scroll.step(step),
            Pane::Rules => self.rules_scroll.step(step),
            Pane::Filters => {
                let count = self.shown().len();
                let page = self.filters_scroll.room();
                let chosen = step.from(self.chosen, count, page);
                if chosen != self.chosen {
                    self.chosen = chosen;
                    self.reasons_scroll = Scroll::default();
                    self.rules_scroll = Scroll::default();
                }
            }
        }
    }

    pub fn draw(&mut self, frame: &mut Frame) {
        draw::draw(self, frame);
    }
}

#[cfg(test)]
pub(in crate::view) mod tests;
