//! The time of a packet of a pcapng file: how many ticks of its interface's clock since 1970.

use std::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;
/// In `if_tsresol`: a second is divided into a power of two, not of ten.
const BINARY: u8 = 0x80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// `if_tsresol`: the power of ten, or of two, that a second is divided into.
    pub resolution: u8,
    /// `if_tsoffset`: to be added.
    pub offset_seconds: i64,
}

impl Clock {
    /// Of an interface that says nothing: microseconds.
    pub const DEFAULT: Clock = Clock {
        resolution: 6,
        offset_seconds: 0,
    };

    /// Rounded down to nanoseconds; `None` where it is before 1970, or too far behind it.
    pub fn time(self, ticks: u64) -> Option<Duration> {
        // Nearly all files have one of these, and a division of 128 bits would be half of what a packet costs.
        let (seconds, nanos) = match self.resolution {
            6 => (ticks / 1_000_000, ticks % 1_000_000 * 1000),
            9 => (ticks / 1_000_000_000, ticks % 1_000_000_000),
            _ => self.seconds_and_nanos(ticks),
        };
        let seconds = seconds.checked_add_signed(self.offset_seconds)?;
        Some(Duration::new(seconds, nanos as u32))
    }

    fn seconds_and_nanos(self, ticks: u64) -> (u64, u64) {
        // Less than 2^94.
        let scaled = u128::from(ticks) * NANOS_PER_SECOND;
        let power = u32::from(self.resolution & !BINARY);
        let nanos = match self.resolution & BINARY {
            // A tick that short lets all of them last less than a nanosecond.
            0 => 10u128.checked_pow(power).map_or(0, |tick| scaled / tick),
            _ => scaled >> power,
        };
        let seconds = nanos / NANOS_PER_SECOND;
        (seconds as u64, (nanos % NANOS_PER_SECOND) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(resolution: u8, offset_seconds: i64, ticks: u64) -> Option<Duration> {
        let clock = Clock {
            resolution,
            offset_seconds,
        };
        clock.time(ticks)
    }

    #[test]
    fn ticks_are_parts_of_a_second_by_powers_of_ten_and_of_two() {
        assert_eq!(time(0, 0, 7), Some(Duration::from_secs(7)));
        assert_eq!(
            time(6, 0, 1_500_001),
            Some(Duration::from_micros(1_500_001))
        );
        assert_eq!(time(9, 0, 1_500_001), Some(Duration::from_nanos(1_500_001)));
        assert_eq!(time(12, 0, 1_999), Some(Duration::from_nanos(1)));
        assert_eq!(time(0x80 | 1, 0, 3), Some(Duration::from_millis(1500)));
        assert_eq!(
            time(0x80 | 20, 0, 1 << 19),
            Some(Duration::from_millis(500))
        );
    }

    #[test]
    fn an_offset_is_in_seconds_and_may_lead_out_of_what_can_be_said() {
        assert_eq!(time(6, 10, 5), Some(Duration::new(10, 5_000)));
        assert_eq!(time(6, -1, 1_000_005), Some(Duration::from_nanos(5_000)));
        assert_eq!(time(6, -2, 1_000_005), None);
        assert_eq!(time(0, 1, u64::MAX), None);
    }

    #[test]
    fn the_usual_resolutions_are_as_all_the_others() {
        for resolution in [6, 9] {
            let clock = Clock {
                resolution,
                offset_seconds: 0,
            };
            for ticks in [0, 1, 999_999, 1_000_000_007, 1 << 50, u64::MAX] {
                let (seconds, nanos) = clock.seconds_and_nanos(ticks);
                let time = Duration::new(seconds, nanos as u32);
                assert_eq!(clock.time(ticks), Some(time));
            }
        }
    }

    #[test]
    fn no_resolution_and_no_number_of_ticks_is_too_much() {
        for resolution in 0..=u8::MAX {
            for ticks in [0, 1, u64::MAX] {
                let at = time(resolution, 0, ticks).expect("without an offset");
                assert!(at <= Duration::from_secs(ticks));
            }
        }
        assert_eq!(time(0, 0, u64::MAX), Some(Duration::from_secs(u64::MAX)));
    }
}
