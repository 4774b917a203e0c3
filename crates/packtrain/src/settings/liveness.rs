//! How links are asked whether they live, as a person wants it.

use packtrain_proto::config::{DETECTION_TIME, HOLD_TIME};
use std::time::Duration;

use super::values::off_or_time;
use crate::units::Time;

const DETECTION_MIN: Duration = Duration::from_millis(10);
const DETECTION_MAX: Duration = Duration::from_secs(2);
const HOLD_MAX: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivenessSettings {
    /// A link that is silent for so long is dead, where another one lives.
    pub detection: Detection,
    /// So long a link has to work that failed, before it carries anything again.
    pub hold_time: Duration,
}

/// `None`: nobody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detection(pub Option<Duration>);

impl Default for LivenessSettings {
    fn default() -> LivenessSettings {
        LivenessSettings {
            detection: Detection(Some(DETECTION_TIME)),
            hold_time: HOLD_TIME,
        }
    }
}

/// Why a text is no such time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LivenessError {
    #[error("{0:?} is no time to find a dead link: off, or {least} to {most}", least = Time::from(DETECTION_MIN), most = Time::from(DETECTION_MAX))]
    Detection(String),
    #[error("{0:?} is no time to hold a link back: 0s to {most}", most = Time::from(HOLD_MAX))]
    Hold(String),
}

pub fn parse_detection(text: &str) -> Result<Detection, LivenessError> {
    off_or_time(text, DETECTION_MIN..=DETECTION_MAX)
        .map(Detection)
        .ok_or_else(|| LivenessError::Detection(text.into()))
}

pub fn parse_hold_time(text: &str) -> Result<Duration, LivenessError> {
    let time = text.parse::<Time>().map(Duration::from).ok();
    time.filter(|time| *time <= HOLD_MAX)
        .ok_or_else(|| LivenessError::Hold(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detection_time_is_one_that_a_host_can_keep() {
        let millis = |n| Ok(Detection(Some(Duration::from_millis(n))));
        assert_eq!(parse_detection("40ms"), millis(40));
        assert_eq!(parse_detection("10ms"), millis(10));
        assert_eq!(parse_detection("2s"), millis(2000));
        assert_eq!(parse_detection("off"), Ok(Detection(None)));
        for wrong in ["9ms", "2001ms", "40", "", "on"] {
            assert_eq!(
                parse_detection(wrong).unwrap_err().to_string(),
                format!("{wrong:?} is no time to find a dead link: off, or 10ms to 2s")
            );
        }
    }

    #[test]
    fn a_link_is_held_back_for_two_seconds_at_first_at_most() {
        assert_eq!(parse_hold_time("0s"), Ok(Duration::ZERO));
        assert_eq!(parse_hold_time("2s"), Ok(HOLD_MAX));
        assert_eq!(
            parse_hold_time("3s").unwrap_err().to_string(),
            "\"3s\" is no time to hold a link back: 0s to 2s"
        );
    }
}
