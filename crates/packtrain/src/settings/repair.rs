//! Within which time what a link has lost goes again, as a person wants it.

use packtrain_proto::config::REPAIR_WITHIN;
use std::time::Duration;

use crate::units::Time;

const WITHIN_MIN: Duration = Duration::from_millis(1);
const WITHIN_MAX: Duration = Duration::from_secs(1);

/// `None`: what is lost is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairPolicy(pub Option<Duration>);

impl Default for RepairPolicy {
    fn default() -> RepairPolicy {
        RepairPolicy(Some(REPAIR_WITHIN))
    }
}

/// Why a text is no such time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time to repair within: off, or {least} to {most}", least = Time::from(WITHIN_MIN), most = Time::from(WITHIN_MAX))]
pub struct RepairError(String);

pub fn parse_repair(text: &str) -> Result<RepairPolicy, RepairError> {
    if text == "off" {
        return Ok(RepairPolicy(None));
    }
    let within = text.parse::<Time>().map(Duration::from);
    let known = within
        .ok()
        .filter(|time| (WITHIN_MIN..=WITHIN_MAX).contains(time));
    known
        .map(|within| RepairPolicy(Some(within)))
        .ok_or_else(|| RepairError(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_goes_again_within_a_second_at_most_or_not_at_all() {
        let millis = |n| Ok(RepairPolicy(Some(Duration::from_millis(n))));
        assert_eq!(parse_repair("50ms"), millis(50));
        assert_eq!(parse_repair("1ms"), millis(1));
        assert_eq!(parse_repair("1s"), millis(1000));
        assert_eq!(parse_repair("off"), Ok(RepairPolicy(None)));
        for wrong in ["1001ms", "0s", "50", "on", ""] {
            assert_eq!(
                parse_repair(wrong).unwrap_err().to_string(),
                format!("{wrong:?} is no time to repair within: off, or 1ms to 1s")
            );
        }
    }
}
