//! What an engine puts on a link never makes a small frame wait for longer than it may.
//!
//! Nothing overtakes on a link, so what a frame waits for that comes now is what stands there, and what stands there is what the engine put
//! there. Looked at when it gives a train, or a frame with its mark: what stood before has to be less than the bound allows at the link's
//! measured rate, and what is given no longer than a third of that. Of both less than three packets, and one, is never asked for.
//! An owner that is late may need more to keep a link busy, and its engine says so: then what is given may be as long as in a millisecond, for
//! the host may have made it before it was told, and as much may stand as the engine says to need, up to that.
//!
//! What cards fill short frames up with is known to an engine when it is told of the queue, and is not counted before.
//!
//! Of one of several links, how long what is given is alone: what may stand there is not bounded.
//!
//! Not asked: of a link that has not been seen draining, frames for hosts without packtrain, which nobody can cut, copies of trains that are
//! from before, and what goes past the engine. How long a frame waits in the engine for its turn is another checker's.

use packtrain_proto::sand::{FRAMES_MIN, PACKET_MAX, SAND_DELAY_LATE_MAX};
use packtrain_proto::stats::LinkSand;
use packtrain_proto::time::Duration;

/// The engine measures once more while it gives.
const RATE_TOLERANCE_PERCENT: u64 = 125;
/// Acknowledgements, hellos and markers ask for no room, and short frames are longer on a wire than in an engine.
const MESSAGES: usize = 2 * PACKET_MAX;

/// A frame of `len` bytes is put on a link on which so much stands. `bound`: what the engine was told; `said`: what it says of the link.
pub fn check(
    (standing, is_alone): (usize, bool),
    len: usize,
    bound: Duration,
    said: &LinkSand,
) -> Result<(), String> {
    let Some(rate_bps) = said.rate_bps else {
        return Ok(());
    };
    let rate = rate_bps / 8 * RATE_TOLERANCE_PERCENT / 100;
    let takes = |time: Duration| (time.as_nanos() * u128::from(rate) / 1_000_000_000) as usize;
    let late = match said.is_late {
        true => bound.max(SAND_DELAY_LATE_MAX),
        false => bound,
    };
    let needed = said
        .waits_max
        .map_or(late, |needed| needed.clamp(bound, late));
    let longest_max = takes(late / 3).max(PACKET_MAX);
    let standing_max = takes(needed).max(FRAMES_MIN * PACKET_MAX) + MESSAGES;
    if len > longest_max {
        return Err(format!(
            "{len} bytes went at once, of {longest_max} that may"
        ));
    }
    match is_alone && standing > standing_max {
        true => Err(format!(
            "{standing} bytes stood when more was put there, of {standing_max} that may"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_and_what_is_given_is_bounded_by_the_rate_but_for_a_few_packets() {
        let bound = Duration::from_micros(200);
        let said = |mbit: u64, is_late| LinkSand {
            rate_bps: Some(mbit * 1_000_000),
            is_late,
            ..LinkSand::default()
        };
        let is_well =
            |standing, len, said: &LinkSand| check((standing, true), len, bound, said).is_ok();
        // 1 Gbit/s: 25,000 bytes, and a quarter more that it may be wrong.
        assert!(is_well(34_000, 10_400, &said(1000, false)));
        assert!(is_well(0, 52_000, &said(1000, true)));
        assert!(!is_well(34_500, 1514, &said(1000, false)));
        assert!(!is_well(0, 10_500, &said(1000, false)));
        assert!(is_well(150_000, 1514, &said(1000, true)));
        assert!(!is_well(160_000, 1514, &said(1000, true)));
        // It needed that for a moment, and no longer so much.
        let no_more = LinkSand {
            waits_max: Some(Duration::from_micros(400)),
            ..said(1000, true)
        };
        assert!(is_well(60_000, 52_000, &no_more));
        assert!(!is_well(66_000, 1514, &no_more));
        let lies = LinkSand {
            waits_max: Some(Duration::from_secs(1)),
            ..said(1000, false)
        };
        assert!(!is_well(34_500, 1514, &lies));
        // 10 Mbit/s: packets are never cut, and three may stand.
        assert!(is_well(7570, 1514, &said(10, false)));
        assert!(!is_well(7571, 1514, &said(10, false)));
        assert!(!is_well(0, 1515, &said(10, false)));
        assert!(is_well(1 << 20, 1 << 16, &LinkSand::default()));
        // One of several.
        let beside_others =
            |standing, len| check((standing, false), len, bound, &said(1000, false)).is_ok();
        assert!(beside_others(150_000, 10_400));
        assert!(!beside_others(0, 10_500));
    }
}
