//! Bytes in proportion to weights: each link has a *deficit* like a flow under deficit round robin, counted the other way
//! round, as what it has carried for its weight. The one that has carried least is next.
//!
//! A link that has no room is passed over, and what it could not carry meanwhile it does not catch up: as
//! long as all have room their bytes are as their weights, and one that was full for a while, or away, does not
//! have the others stand idle afterwards.

use crate::queue::shares::Weight;

/// Of a byte, so that small trains count by heavy weights too.
const PARTS: u64 = 1 << 16;

/// What a link has carried for its weight since those beside it have, parts of a byte. 0: it is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Served(u64);

impl Served {
    /// Another one was next, which had `least`: nobody has had less, unless it was passed over.
    pub fn settle(&mut self, least: Served) {
        self.0 = self.0.saturating_sub(least.0);
    }

    pub fn add(&mut self, bytes: usize, weight: Weight) {
        self.0 += bytes as u64 * PARTS / u64::from(weight.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRAIN_MAX: usize = 9000;

    /// The link that is next of those with room, and what it has after.
    fn step(
        served: &mut [Served],
        weights: &[Weight],
        has_room: &[bool],
        bytes: usize,
    ) -> Option<usize> {
        let at = (0..served.len())
            .filter(|&at| has_room[at])
            .min_by_key(|&at| served[at])?;
        let least = served[at];
        served.iter_mut().for_each(|served| served.settle(least));
        served[at].add(bytes, weights[at]);
        Some(at)
    }

    #[test]
    fn a_link_that_was_full_catches_nothing_up() {
        let mut served = [Served::default(); 2];
        let full = [true, false];
        for _ in 0..1000 {
            assert_eq!(step(&mut served, &[1, 1], &full, 1500), Some(0));
        }
        let next = |_| step(&mut served, &[1, 1], &[true; 2], 1500).unwrap();
        let order: Vec<usize> = (0..6).map(next).collect();
        assert!(
            order.iter().filter(|&&at| at == 1).count() <= 4,
            "{order:?}"
        );
        assert!(order.contains(&0), "{order:?}");
    }

    proptest! {
        /// Counted over any stretch in which both had room, however the others came and went: no two differ by more than a
        /// train of each.
        #[test]
        fn links_that_have_room_share_by_their_weights(
            weights in proptest::collection::vec(1u8..=9, 2..6),
            steps in proptest::collection::vec((1..=TRAIN_MAX, any::<[bool; 6]>()), 1..400),
        ) {
            let mut served = vec![Served::default(); weights.len()];
            // For each pair: what each has carried since either had no room last.
            let mut since = vec![[0.0f64; 2]; weights.len() * weights.len()];
            for (bytes, rooms) in steps {
                // The first two have room more often than not.
                let mut rooms = rooms;
                rooms[0] |= bytes % 50 != 0;
                rooms[1] |= bytes % 70 != 0;
                let chosen = step(&mut served, &weights, &rooms[..weights.len()], bytes);
                for a in 0..weights.len() {
                    for b in 0..a {
                        let pair = &mut since[a * weights.len() + b];
                        if !rooms[a] || !rooms[b] {
                            *pair = [0.0; 2];
                            continue;
                        }
                        for (side, at) in [a, b].into_iter().enumerate() {
                            if chosen == Some(at) {
                                pair[side] += bytes as f64 / f64::from(weights[at]);
                            }
                        }
                        let train = |at: usize| TRAIN_MAX as f64 / f64::from(weights[at]);
                        // It may have begun with one of them a train ahead.
                        let apart_max = 2.0 * train(a).max(train(b)) + train(a) + train(b) + 1.0;
                        prop_assert!((pair[0] - pair[1]).abs() <= apart_max, "{:?}", pair);
                    }
                }
            }
        }
    }
}
