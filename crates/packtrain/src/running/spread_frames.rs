//! How large the frames are that the host makes while flows are spread over links past the engine.
//!
//! There each frame goes by one link. One of 64 KB is on a link of 1 Gbit/s for half a millisecond, and all that was sent meanwhile by
//! one of 4 is there before it: TCP takes it for lost. So while flows are spread, frames are what the slowest of the links takes in so
//! short a time that nobody minds. It costs processor time, a little for each frame, and so they are no smaller than they have to be,
//! and as large as ever when nothing is spread.

use std::collections::BTreeMap;
use std::time::Duration;

use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::linux::intake::FRAME_BYTES_MAX;

/// On the slowest link. The program takes those that are on it for 0.2 ms at most (`bpf/way.bpf.h`), and a rate is measured as much too low now and then.
const FRAME_TIME: Duration = Duration::from_micros(132);
/// Smaller ones cost more than the links bring.
const FRAME_BYTES_MIN: u32 = 12_000;
/// The program spreads over links that are slower by so much, where a frame is short there, and else by so much.
const SLOWER_SHORT: u64 = 5;
const SLOWER: u64 = 3;
const SHORT: Duration = Duration::from_micros(200);
/// Without a frame that was spread for so long, frames are as large as ever; and larger ones are wanted for so long before they are made.
const SPREAD_FOR: Duration = Duration::from_secs(5);

/// A link to a peer over which flows may be spread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub to: MacAddr,
    /// As far as it is known.
    pub rate_bps: Option<u64>,
}

#[derive(Debug)]
pub(super) struct SpreadFrames {
    /// Frames that were spread, ever, and when there were more of them last.
    spread: u64,
    spread_at: Option<Instant>,
    /// The largest that the host makes.
    bytes: u32,
    /// Since when larger ones are wanted.
    larger_since: Option<Instant>,
}

impl SpreadFrames {
    pub(super) fn new() -> SpreadFrames {
        SpreadFrames {
            spread: 0,
            spread_at: None,
            bytes: FRAME_BYTES_MAX,
            larger_since: None,
        }
    }

    pub(super) fn are_as_large_as_ever(&self) -> bool {
        self.bytes == FRAME_BYTES_MAX
    }

    /// `spread`: frames, ever. The largest frame that the host is to make from now on, where that is another.
    pub(super) fn look(&mut self, spread: u64, ways: &[Way], now: Instant) -> Option<u32> {
        if std::mem::replace(&mut self.spread, spread) != spread {
            self.spread_at = Some(now);
        }
        let is_spread = self.spread_at.is_some_and(|at| now.since(at) < SPREAD_FOR);
        let wanted = match is_spread {
            true => frame_bytes(ways),
            false => FRAME_BYTES_MAX,
        };
        // Each change has all sockets look for their route again, and what is measured moves a little all the time; now and then
        // so much that a link takes part in one look and not in the next.
        let is_smaller = wanted < self.bytes - self.bytes / 4;
        let is_larger = wanted > self.bytes + self.bytes / 4
            || wanted == FRAME_BYTES_MAX && self.bytes < FRAME_BYTES_MAX;
        if !is_larger {
            self.larger_since = None;
        }
        let changes = match is_larger {
            true => !is_spread || now.since(*self.larger_since.get_or_insert(now)) >= SPREAD_FOR,
            false => is_smaller,
        };
        changes.then(|| {
            self.larger_since = None;
            self.bytes = wanted;
            wanted
        })
    }
}

/// What the slowest link takes in so short a time, of those that take part.
fn frame_bytes(ways: &[Way]) -> u32 {
    let mut by_peer: BTreeMap<MacAddr, Vec<u64>> = BTreeMap::new();
    for way in ways {
        by_peer.entry(way.to).or_default().extend(way.rate_bps);
    }
    // Over one that is known nothing is spread, or not for long.
    let several = by_peer.values().filter(|rates| rates.len() > 1);
    let slowest = several.filter_map(|rates| {
        let fastest = *rates.iter().max()?;
        let takes_part = |rate: &&u64| {
            let slower = match time_of(FRAME_BYTES_MIN, **rate) > SHORT {
                true => SLOWER,
                false => SLOWER_SHORT,
            };
            **rate * slower >= fastest
        };
        rates.iter().filter(takes_part).min().copied()
    });
    slowest.min().map_or(FRAME_BYTES_MAX, |rate_bps| {
        let bytes = u128::from(rate_bps / 8) * FRAME_TIME.as_nanos() / 1_000_000_000;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        bytes.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX)
    })
}

fn time_of(bytes: u32, rate_bps: u64) -> Duration {
    Duration::from_nanos(u64::from(bytes) * 8_000_000_000 / rate_bps.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn ways(rates_mbit: &[u64]) -> Vec<Way> {
        let way = |mbit: &u64| Way {
            to: PEER,
            rate_bps: (*mbit > 0).then_some(mbit * 1_000_000),
        };
        rates_mbit.iter().map(way).collect()
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn frames_are_what_the_slowest_link_that_takes_part_takes_in_132_us() {
        let of = |rates: &[u64]| frame_bytes(&ways(rates));
        assert_eq!(of(&[4000, 4000]), 65_536);
        assert_eq!(of(&[4000, 2500]), 41_250);
        assert_eq!(of(&[8000, 2200]), 36_300);
        assert_eq!(of(&[4000, 1000]), 16_500);
        // As small as they get, they are on it for 0.19 ms; on the next one for longer.
        assert_eq!(of(&[2400, 500]), FRAME_BYTES_MIN);
        assert_eq!(of(&[2200, 460]), 36_300);
        assert_eq!(of(&[1200, 460]), FRAME_BYTES_MIN);
        assert_eq!(of(&[10_000, 1000]), 65_536, "it takes no part");
        assert_eq!(of(&[4000, 0]), 65_536, "not known yet");
        assert_eq!(of(&[]), 65_536);
    }

    #[test]
    fn links_are_compared_with_those_to_the_same_peer() {
        let mut two = ways(&[10_000, 10_000]);
        two.extend(
            ways(&[1000, 1000])
                .into_iter()
                .map(|way| Way { to: OTHER, ..way }),
        );
        assert_eq!(frame_bytes(&two), 16_500);
    }

    #[test]
    fn they_are_large_again_when_nothing_was_spread_for_a_while() {
        let mut frames = SpreadFrames::new();
        let links = ways(&[4000, 1000]);
        assert_eq!(frames.look(0, &links, at(0)), None, "nothing is spread");
        assert_eq!(frames.look(9, &links, at(50)), Some(16_500));
        for ms in (100..5000).step_by(50) {
            assert_eq!(frames.look(9, &links, at(ms)), None, "{ms}");
        }
        assert_eq!(frames.look(9, &links, at(5050)), Some(65_536));
        assert_eq!(frames.look(10, &links, at(5100)), Some(16_500));
    }

    /// A look every 50 ms, at such rates, for so long. What the frames became, and after how many ms.
    fn looks(frames: &mut SpreadFrames, now: &mut u64, rates: &[u64], ms: u64) -> Vec<(u32, u64)> {
        let begin = *now;
        let mut changes = Vec::new();
        while *now < begin + ms {
            // Something is spread all the time.
            let change = frames.look(*now + 1, &ways(rates), at(*now));
            changes.extend(change.map(|bytes| (bytes, *now - begin)));
            *now += 50;
        }
        changes
    }

    #[test]
    fn they_follow_rates_that_change_by_a_quarter_down_at_once_and_up_after_a_while() {
        let (mut frames, mut now) = (SpreadFrames::new(), 0);
        let mut look = |rates: &[u64], ms| looks(&mut frames, &mut now, rates, ms);
        assert_eq!(look(&[4000, 2000], 10_000), [(33_000, 0)]);
        assert_eq!(look(&[4000, 1600], 10_000), []);
        assert_eq!(look(&[4000, 2450], 10_000), []);
        assert_eq!(look(&[4000, 1400], 100), [(23_100, 0)]);
        assert_eq!(look(&[4000, 3200], 10_000), [(52_800, 5000)]);
        // As large as ever is said, however near it was.
        assert_eq!(look(&[4000, 4000], 10_000), [(65_536, 5000)]);
        assert_eq!(look(&[4000, 3200], 10_000), []);
    }

    #[test]
    fn a_link_that_is_a_fifth_as_fast_or_just_less_does_not_change_them_all_the_time() {
        let (mut frames, mut now) = (SpreadFrames::new(), 0);
        for _ in 0..100 {
            let mut look = |rates: &[u64], ms| looks(&mut frames, &mut now, rates, ms);
            let changes = [look(&[5010, 998], 1000), look(&[4990, 1005], 1000)].concat();
            assert!(
                changes.iter().all(|(bytes, _)| *bytes < 17_000),
                "{changes:?}"
            );
        }
    }
}
