//! Of a filter at work: what stays only if somebody confirms it.

use std::time::Duration;

use super::RunningFilter;
use crate::control::{Request, Response};
use crate::filter::confirmation::{self, CONFIRM_SECONDS, ConfirmError, Unconfirmed, Undo};
use crate::filter::error::RunError;
use crate::filter::rules::Former;

impl RunningFilter {
    /// Of the filter as a whole, from when it is attached.
    pub(super) fn wait_for_own_confirmation(
        &mut self,
        note: &mut dyn FnMut(&str),
    ) -> Result<(), RunError> {
        let Some(wait) = self.settings.confirm else {
            return Ok(());
        };
        let known_as = &self.settings.interface;
        note(&format!(
            "the filter of {known_as} is taken off in {} s, unless you say: packtrain filter confirm {known_as}",
            wait.as_secs()
        ));
        self.wait_for("the filter".into(), Undo::Filter, wait);
        // The program lets everything pass by itself when the time is over.
        self.tell()
    }

    /// Makes a change, which stays if it is not to be confirmed.
    pub(super) fn change_rules(
        &mut self,
        change: Request,
        confirm_seconds: Option<u64>,
    ) -> Response {
        let wait = match self.wait_allowed(confirm_seconds) {
            Ok(wait) => wait,
            Err(error) => return not_confirmed(&error),
        };
        let response = self.respond_about_rules(change.clone());
        let Some(former) = self.rules.take_former() else {
            // It was refused.
            return response;
        };
        let what = words(&change, &response);
        let Some(wait) = wait else {
            tracing::info!("{what}");
            return response;
        };
        match self.undo_later(what, former, wait) {
            Ok(()) => response,
            Err(error) => Response::Error(error.to_string()),
        }
    }

    fn wait_allowed(&self, confirm_seconds: Option<u64>) -> Result<Option<Duration>, ConfirmError> {
        if let Some(seconds) = confirm_seconds.filter(|it| !CONFIRM_SECONDS.contains(it)) {
            return Err(ConfirmError::Seconds(seconds));
        }
        let wait = confirm_seconds.map(Duration::from_secs);
        let known_as = self.settings.interface.as_str();
        if self.settings.stays && (wait.is_some() || self.confirmation.waiting().is_some()) {
            return Err(ConfirmError::Stays {
                interface: known_as.into(),
            });
        }
        self.confirmation
            .allows(wait, known_as, self.clock.boot())?;
        Ok(wait)
    }

    fn undo_later(&mut self, what: String, former: Former, wait: Duration) -> Result<(), RunError> {
        let seconds = wait.as_secs();
        tracing::info!("{what}, and undone in {seconds} s unless confirmed");
        self.wait_for(what, Undo::Rules(former), wait);
        self.tell()
    }

    fn wait_for(&mut self, what: String, undo: Undo, wait: Duration) {
        self.confirmation.wait_for(Unconfirmed {
            what,
            undo,
            wait,
            until: self.clock.boot() + wait,
        });
    }

    pub(super) fn confirm(&mut self) -> Response {
        let Some(confirmed) = self.confirmation.confirm() else {
            return not_confirmed(&ConfirmError::NothingWaits {
                interface: self.settings.interface.to_string(),
            });
        };
        tracing::info!("{}: confirmed", confirmed.what);
        if matches!(confirmed.undo, Undo::Filter) {
            self.settings.confirm = None;
            self.filter.keep();
        }
        // The program has been told until when; if it cannot be told anew, it is within a second.
        if let Err(error) = self.tell() {
            tracing::warn!("{error}");
        }
        Response::Confirmed {
            seconds_left: confirmation::seconds_left(&confirmed, self.clock.boot()),
            unconfirmed: confirmed.what,
        }
    }

    /// What was not confirmed in time is as if it had never been.
    pub(super) fn undo_what_is_overdue(&mut self) -> Result<(), RunError> {
        let Some(overdue) = self.confirmation.overdue(self.clock.boot()) else {
            return Ok(());
        };
        match overdue.undo {
            Undo::Filter => {
                self.filter.take_away()?;
                Err(RunError::NotConfirmed {
                    interface: self.name.clone(),
                    known_as: self.settings.interface.to_string(),
                    wait: overdue.wait,
                })
            }
            Undo::Rules(former) => {
                // One that stays has no such change.
                let back = self.rules.go_back(former, &mut self.filter);
                back.map_err(RunError::NotUndone)?;
                tracing::warn!(
                    "{}, and not confirmed within {} s: the rules are as they were before",
                    overdue.what,
                    overdue.wait.as_secs()
                );
                self.tell()
            }
        }
    }
}

/// What was done, as people are told of it.
fn words(change: &Request, response: &Response) -> String {
    match (change, response) {
        (Request::RuleAdd { .. }, Response::Rule(rule)) => {
            let name = rule["name"].as_str().unwrap_or_default();
            format!("rule {name} added")
        }
        (Request::RuleRemove { name }, _) => format!("rule {name} removed"),
        (Request::RulesLoad { .. }, _) => "rules loaded".into(),
        (Request::SetChange { name, .. }, _) => format!("set {name} changed"),
        (Request::SetRemove { name }, _) => format!("set {name} removed"),
        _ => "the rules changed".into(),
    }
}

fn not_confirmed(error: &ConfirmError) -> Response {
    Response::Refused {
        exit_code: error.exit_code(),
        message: error.to_string(),
        hint: error.hint(),
    }
}
