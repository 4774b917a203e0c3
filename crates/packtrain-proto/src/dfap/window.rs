//! How long packets wait for others: section 2.2 of the paper.
//!
//! An exponential back-off in reverse order: the more wait already, the shorter.
//!
//! ```text
//!  N packets wait      1 … 9    10    11    12    13 … 15    16 and more, or bytes ≥ MTU − 34
//!  window, ticks         10     5     2     1        0       0
//! ```
//!
//! The wait is a random number of ticks up to the window, or, *straight*, the window itself. Our reading: windows
//! of less than a tick are none, and however often a wait is begun anew, none ends later than ten ticks
//! after the first packet came (the paper has no bound).

use crate::random::Random;
use crate::time::Duration;

/// So many packets wait no longer.
pub const PACKETS_MAX: usize = 16;
/// Nor do so many bytes less than the MTU.
pub const SPARE_BYTES: usize = 34;
/// The longest window, and the bound of all waits together.
pub const TICKS_MAX: u32 = 10;

/// Which of the paper's two calculations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calculation {
    Random,
    Straight,
}

/// Whether so many packets, of so many bytes together, leave now.
pub fn is_due(packets: usize, bytes: usize, mtu: usize) -> bool {
    packets >= PACKETS_MAX || bytes + SPARE_BYTES >= mtu
}

/// Ticks that so many packets wait at most.
pub fn ticks_max(packets: usize) -> u32 {
    match packets {
        0..10 => TICKS_MAX,
        // 52 / (10 · 2^(N − 10)), floored.
        _ => 52 / 10u32.saturating_mul(1 << (packets - 10).min(8)),
    }
}

/// How long they wait from now on; zero: they leave.
pub fn wait(
    packets: usize,
    calculation: Calculation,
    tick: Duration,
    random: &mut Random,
) -> Duration {
    let window = ticks_max(packets);
    let ticks = match calculation {
        Calculation::Random => random.up_to(u64::from(window)) as u32,
        Calculation::Straight => window,
    };
    tick * ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_formula() {
        let windows: Vec<u32> = (1..=16).map(ticks_max).collect();
        assert_eq!(
            windows,
            [10, 10, 10, 10, 10, 10, 10, 10, 10, 5, 2, 1, 0, 0, 0, 0]
        );
        for packets in 10..40 {
            let exact = 52.0 / (10.0 * 2f64.powi(packets as i32 - 10));
            assert_eq!(f64::from(ticks_max(packets)), exact.floor(), "{packets}");
        }
    }

    #[test]
    fn many_packets_or_a_full_frame_wait_no_longer() {
        assert!(!is_due(15, 1465, 1500));
        assert!(is_due(16, 16, 1500));
        assert!(is_due(1, 1466, 1500));
        assert!(
            is_due(1, 0, 30),
            "an MTU that is smaller than what is spared"
        );
    }

    #[test]
    fn a_random_wait_takes_each_tick_of_the_window_and_a_straight_one_all() {
        let mut random = Random::new(5);
        let tick = Duration::from_millis(10);
        for packets in [1, 10, 11, 12, 13] {
            let window = ticks_max(packets);
            let mut seen = vec![0; window as usize + 1];
            for _ in 0..2000 {
                let wait = wait(packets, Calculation::Random, tick, &mut random);
                seen[(wait.as_millis() / 10) as usize] += 1;
            }
            assert!(seen.iter().all(|&n| n > 100), "{packets}: {seen:?}");
            let straight = wait(packets, Calculation::Straight, tick, &mut random);
            assert_eq!(straight, tick * window);
        }
    }
}
