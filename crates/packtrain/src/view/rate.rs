//! How much a second, of what was counted at two moments.

use std::time::Duration;

/// `None`: no time has passed, or the later number is less, for it was counted by somebody else.
pub fn per_second(before: u64, after: u64, between: Duration) -> Option<f64> {
    let counted = after.checked_sub(before)?;
    let seconds = between.as_secs_f64();
    (seconds > 0.0).then(|| counted as f64 / seconds)
}

/// `None`: it is not later.
pub fn between(before_ns: u64, after_ns: u64) -> Option<Duration> {
    let nanos = after_ns.checked_sub(before_ns)?;
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_by_the_time_that_has_passed() {
        let second = Duration::from_secs(1);
        assert_eq!(per_second(100, 350, second), Some(250.0));
        assert_eq!(per_second(100, 350, second / 4), Some(1000.0));
        assert_eq!(per_second(100, 350, second * 5), Some(50.0));
        assert_eq!(per_second(100, 100, second), Some(0.0));
        assert_eq!(
            per_second(0, u64::MAX, second),
            Some(18_446_744_073_709_551_615.0)
        );
    }

    #[test]
    fn there_is_none_where_nothing_can_be_said() {
        let second = Duration::from_secs(1);
        assert_eq!(per_second(101, 100, second), None);
        assert_eq!(per_second(100, 101, Duration::ZERO), None);
        assert_eq!(between(7, 7), None);
        assert_eq!(between(8, 7), None);
        assert_eq!(between(7, 1_000_000_007), Some(second));
    }
}
