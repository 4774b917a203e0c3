//! How long a small frame may wait at a link behind longer ones, as a person wants it.

use std::time::Duration;

use packtrain_proto::sand::SAND_DELAY_MAX;

use super::values::off_or_time;
use crate::units::Time;

const DELAY_MIN: Duration = Duration::from_micros(50);
const DELAY_MAX: Duration = Duration::from_millis(100);

/// `None`: as long as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandDelay(pub Option<Duration>);

impl Default for SandDelay {
    fn default() -> SandDelay {
        SandDelay(Some(SAND_DELAY_MAX))
    }
}

/// Why a text is no such time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time that small frames may wait: off, or {least} to {most}", least = Time::from(DELAY_MIN), most = Time::from(DELAY_MAX))]
pub struct SandDelayError(String);

pub fn parse_sand_delay(text: &str) -> Result<SandDelay, SandDelayError> {
    let delay = off_or_time(text, DELAY_MIN..=DELAY_MAX);
    delay
        .map(SandDelay)
        .ok_or_else(|| SandDelayError(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_frames_wait_for_a_tenth_of_a_second_at_most_or_as_long_as_it_takes() {
        let micros = |n| Ok(SandDelay(Some(Duration::from_micros(n))));
        assert_eq!(parse_sand_delay("200us"), micros(200));
        assert_eq!(parse_sand_delay("50us"), micros(50));
        assert_eq!(parse_sand_delay("100ms"), micros(100_000));
        assert_eq!(parse_sand_delay("off"), Ok(SandDelay(None)));
        for wrong in ["49us", "101ms", "0s", "200", "on", ""] {
            assert_eq!(
                parse_sand_delay(wrong).unwrap_err().to_string(),
                format!("{wrong:?} is no time that small frames may wait: off, or 50us to 100ms")
            );
        }
    }
}
