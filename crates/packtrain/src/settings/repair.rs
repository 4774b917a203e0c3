//! Within which time what a link has lost goes again, as a person wants it: of a line, and of a class.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use packtrain_proto::class::Repairs;
use packtrain_proto::config::REPAIR_WITHIN;

use super::values::off_or_time;
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
    let within = off_or_time(text, WITHIN_MIN..=WITHIN_MAX);
    within
        .map(RepairPolicy)
        .ok_or_else(|| RepairError(text.into()))
}

/// What becomes of a class's frames that a link loses, in words: `line`, `off`, `20ms`, `lossless`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassRepair(pub Repairs);

/// Why a text says nothing of that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} does not say how what is lost goes again: line, off, lossless, or within {least} to {most}", least = Time::from(WITHIN_MIN), most = Time::from(WITHIN_MAX))]
pub struct ClassRepairError(String);

impl FromStr for ClassRepair {
    type Err = ClassRepairError;

    fn from_str(text: &str) -> Result<ClassRepair, ClassRepairError> {
        let repairs = match text {
            "line" => Repairs::Line,
            "lossless" => Repairs::Lossless,
            text => match parse_repair(text) {
                Ok(RepairPolicy(None)) => Repairs::Off,
                Ok(RepairPolicy(Some(within))) => Repairs::Within(within),
                Err(RepairError(text)) => return Err(ClassRepairError(text)),
            },
        };
        Ok(ClassRepair(repairs))
    }
}

impl fmt::Display for ClassRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Repairs::Line => f.pad("line"),
            Repairs::Off => f.pad("off"),
            Repairs::Within(within) => f.pad(&Time::from(within).to_string()),
            Repairs::Lossless => f.pad("lossless"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_says_it_in_a_word_or_a_time() {
        for text in ["line", "off", "lossless", "20ms", "1s"] {
            let repair: ClassRepair = text.parse().unwrap();
            assert_eq!(repair.to_string(), text);
        }
        for wrong in ["on", "2s", "0s", "20", ""] {
            assert_eq!(
                wrong.parse::<ClassRepair>().unwrap_err().to_string(),
                format!(
                    "{wrong:?} does not say how what is lost goes again: line, off, lossless, or within 1ms to 1s"
                )
            );
        }
    }

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
