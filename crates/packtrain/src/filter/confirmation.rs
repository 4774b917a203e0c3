//! What does not stay unless somebody says that it shall: nobody locks himself out of a host that he reaches by the
//! interface, because who is locked out cannot say so.
//!
//! Times are those of [`crate::clock::Clock::boot`]: a host that was suspended meanwhile wakes with the wait over,
//! for whoever was to confirm has waited all that time.

use std::time::Duration;

use packtrain_proto::time::Instant;

use super::rules::Former;

/// How long may be waited, seconds.
pub const CONFIRM_SECONDS: std::ops::RangeInclusive<u64> = 1..=3600;

/// What becomes of it when nobody confirms.
#[derive(Debug)]
pub enum Undo {
    /// The filter ends.
    Filter,
    /// The rules are what they were.
    Rules(Former),
}

#[derive(Debug)]
pub struct Unconfirmed {
    /// As in "rule web added".
    pub what: String,
    pub undo: Undo,
    pub wait: Duration,
    pub until: Instant,
}

/// At most one thing waits.
#[derive(Debug, Default)]
pub struct Confirmation(Option<Unconfirmed>);

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfirmError {
    #[error("nothing of the filter of {interface} waits to be confirmed")]
    NothingWaits { interface: String },
    #[error(
        "{what} waits to be confirmed, for another {seconds_left} s: until then nothing else changes"
    )]
    Waits {
        what: String,
        seconds_left: f64,
        interface: String,
    },
    #[error(
        "the filter of {interface} stays, and its rules, whatever becomes of its process: no change of them can wait to be confirmed"
    )]
    Stays { interface: String },
    #[error("{0} seconds: a confirmation is waited for 1 to 3600")]
    Seconds(u64),
}

impl ConfirmError {
    pub fn exit_code(&self) -> u8 {
        match self {
            ConfirmError::NothingWaits { .. } => 12,
            ConfirmError::Waits { .. } => 13,
            ConfirmError::Stays { .. } | ConfirmError::Seconds(_) => 2,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            ConfirmError::NothingWaits { .. } => {
                Some("it was confirmed already, or its time was over and it was undone".into())
            }
            ConfirmError::Waits { interface, .. } => Some(format!(
                "it stays with: packtrain filter confirm {interface}"
            )),
            ConfirmError::Stays { .. } | ConfirmError::Seconds(_) => None,
        }
    }
}

impl Confirmation {
    /// Whether a change of the rules may be made, that waits for a confirmation of its own for `wait`.
    ///
    /// As long as the filter itself waits, a change that does not is a part of it: it stays or goes with it. While
    /// another change waits there is none, so that it is always plain what is confirmed, and what comes back.
    pub fn allows(
        &self,
        wait: Option<Duration>,
        interface: &str,
        now: Instant,
    ) -> Result<(), ConfirmError> {
        match &self.0 {
            None => Ok(()),
            Some(Unconfirmed {
                undo: Undo::Filter, ..
            }) if wait.is_none() => Ok(()),
            Some(unconfirmed) => Err(ConfirmError::Waits {
                what: unconfirmed.what.clone(),
                seconds_left: seconds_left(unconfirmed, now),
                interface: interface.into(),
            }),
        }
    }

    /// # Panics
    /// If something waits already.
    pub fn wait_for(&mut self, unconfirmed: Unconfirmed) {
        let before = self.0.replace(unconfirmed);
        assert!(before.is_none(), "one thing waits at a time");
    }

    /// What has waited stays.
    pub fn confirm(&mut self) -> Option<Unconfirmed> {
        self.0.take()
    }

    /// What was not confirmed in time: whoever asks undoes it.
    pub fn overdue(&mut self, now: Instant) -> Option<Unconfirmed> {
        self.0.take_if(|unconfirmed| now >= unconfirmed.until)
    }

    pub fn waiting(&self) -> Option<&Unconfirmed> {
        self.0.as_ref()
    }
}

/// As people and documents are told: a tenth is enough, and there is none left only when it is over.
pub fn seconds_left(unconfirmed: &Unconfirmed, now: Instant) -> f64 {
    let millis = unconfirmed.until.since(now).as_millis();
    millis.div_ceil(100) as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(5_000_000_000);

    fn after(millis: u64) -> Instant {
        START + Duration::from_millis(millis)
    }

    fn unconfirmed(undo: Undo) -> Unconfirmed {
        let wait = Duration::from_secs(30);
        Unconfirmed {
            what: "rule web added".into(),
            undo,
            wait,
            until: START + wait,
        }
    }

    fn waiting(undo: Undo) -> Confirmation {
        let mut confirmation = Confirmation::default();
        confirmation.wait_for(unconfirmed(undo));
        confirmation
    }

    #[test]
    fn what_is_not_confirmed_is_undone_once_and_not_a_moment_early() {
        let mut confirmation = waiting(Undo::Filter);
        assert!(confirmation.overdue(after(29_999)).is_none());
        let undone = confirmation
            .overdue(after(30_000))
            .expect("its time is over");
        assert_eq!(undone.what, "rule web added");
        assert!(confirmation.overdue(after(30_000)).is_none());
        assert!(confirmation.confirm().is_none());
    }

    #[test]
    fn what_is_confirmed_stays_for_ever() {
        let mut confirmation = waiting(Undo::Filter);
        assert!(confirmation.confirm().is_some());
        assert!(confirmation.overdue(after(1_000_000)).is_none());
        assert!(confirmation.waiting().is_none());
    }

    #[test]
    fn a_change_beside_one_that_waits_is_refused_but_a_part_of_the_filter_that_does() {
        let wait = Some(Duration::from_secs(1));
        let none = Confirmation::default();
        assert_eq!(none.allows(None, "eth1", START), Ok(()));
        assert_eq!(none.allows(wait, "eth1", START), Ok(()));
        let filter = waiting(Undo::Filter);
        assert_eq!(filter.allows(None, "eth1", START), Ok(()));
        let refused = filter.allows(wait, "eth1", after(25_049)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "rule web added waits to be confirmed, for another 5 s: until then nothing else changes"
        );
        assert_eq!(refused.exit_code(), 13);
        let rules = waiting(Undo::Rules(Former::default()));
        for wait in [None, wait] {
            assert!(rules.allows(wait, "eth1", START).is_err());
        }
    }

    #[test]
    fn time_is_left_until_it_is_over() {
        let unconfirmed = unconfirmed(Undo::Filter);
        let left = [0, 1, 29_999, 30_000, 30_001].map(|at| seconds_left(&unconfirmed, after(at)));
        assert_eq!(left, [30.0, 30.0, 0.1, 0.0, 0.0]);
    }
}
