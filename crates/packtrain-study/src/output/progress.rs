//! How far it is, in a line for a person who waits. What the time is, others know.

use std::time::Duration;

const BAR_COLUMNS: usize = 30;
/// Of less nothing is foretold.
const SHARE_MIN: f64 = 0.002;

/// As in `█████░░░░░ 50 %, 3 of 6 runs, 2 min 10 s left`.
pub fn line(share: f64, done: usize, runs: usize, left: Option<Duration>) -> String {
    let share = share.clamp(0.0, 1.0);
    let full = (share * BAR_COLUMNS as f64) as usize;
    let mut line = format!(
        "{}{} {:.0} %",
        "█".repeat(full),
        "░".repeat(BAR_COLUMNS - full),
        (share * 100.0).floor()
    );
    if runs > 1 {
        line += &format!(", {done} of {runs} runs");
    }
    if let Some(left) = left {
        line += &format!(", {} left", words(left));
    }
    line
}

/// How long it is going to take, if it goes on as it went. `before`: what was done when it began.
pub fn left(before: f64, share: f64, elapsed: Duration) -> Option<Duration> {
    let gone = share - before;
    let seconds = elapsed.as_secs_f64() * (1.0 - share) / gone;
    match gone >= SHARE_MIN {
        true => Duration::try_from_secs_f64(seconds.max(0.0)).ok(),
        false => None,
    }
}

fn words(time: Duration) -> String {
    let seconds = (time.as_secs_f64()).ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_drawn_and_what_is_left_is_told() {
        let left = Some(Duration::from_secs(130));
        assert_eq!(
            line(0.5, 3, 6, left),
            "███████████████░░░░░░░░░░░░░░░ 50 %, 3 of 6 runs, 2 min 10 s left"
        );
        assert_eq!(
            line(0.999, 0, 1, None),
            "█████████████████████████████░ 99 %"
        );
        assert!(line(1.0, 6, 6, None).starts_with(&"█".repeat(BAR_COLUMNS)));
        assert_eq!(words(Duration::from_millis(59_100)), "1 min 0 s");
        assert_eq!(words(Duration::from_secs(7260)), "2 h 1 min");
        // Less than a terminal's width, whatever happens.
        let longest = line(0.999, 99_999, 100_000, Some(Duration::from_secs(360_000)));
        assert!(longest.chars().count() < 80, "{longest}");
    }

    #[test]
    fn what_was_kept_of_an_earlier_try_makes_nothing_look_fast() {
        let ten = Duration::from_secs(10);
        assert_eq!(left(0.0, 0.5, ten), Some(ten));
        assert_eq!(left(0.5, 0.75, ten), Some(ten));
        assert_eq!(left(0.5, 0.5, ten), None);
        assert_eq!(left(0.0, 1.0, ten), Some(Duration::ZERO));
    }
}
