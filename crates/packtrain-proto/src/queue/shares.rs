//! Flows that keep each to one of several links: which link.
//!
//! A hash puts each flow into one of 256 shares, and each share belongs to one link by highest random weight
//! (Thaler and Ravishankar, *A name-based mapping scheme for rendezvous*, 1996): of the numbers that
//! a hash gives a share with each link, the largest wins. A link that leaves takes along only its own shares, and one that
//! comes takes only those that are its own from then on; all others stay where they are. A link of weight *w* draws *w*
//! numbers, so it wins *w* times as many shares as one of weight 1.

use arrayvec::ArrayVec;

use crate::config::LinkId;
use crate::wire::hello::LINKS_MAX;

/// How much of what several links carry is a link's, beside the others.
pub type Weight = u8;

/// As many as a byte tells apart.
const SHARES: usize = 1 << u8::BITS;

#[derive(Debug)]
pub struct Shares {
    links: ArrayVec<(LinkId, Weight), LINKS_MAX>,
    /// The place among `links` of the one that each share belongs to.
    places: Box<[u8; SHARES]>,
}

impl Default for Shares {
    fn default() -> Shares {
        Shares {
            links: ArrayVec::new(),
            places: Box::new([0; SHARES]),
        }
    }
}

impl Shares {
    /// Among these links from now on; of more than a line has, among the first. Says whether that is not as before.
    pub fn divide(&mut self, links: &[(LinkId, Weight)]) -> bool {
        let links = &links[..links.len().min(LINKS_MAX)];
        if self.links[..] == *links {
            return false;
        }
        self.links = links.iter().copied().collect();
        for share in 0..SHARES {
            let winner = owner_of(share as u8, links.iter().copied());
            let place = links.iter().position(|link| Some(*link) == winner);
            self.places[share] = place.unwrap_or(0) as u8;
        }
        true
    }

    pub fn links(&self) -> &[(LinkId, Weight)] {
        &self.links
    }

    pub fn place_of_link(&self, link: LinkId) -> Option<usize> {
        self.links.iter().position(|(of, _)| *of == link)
    }

    pub fn place_of_share(&self, share: u8) -> usize {
        usize::from(self.places[usize::from(share)])
    }
}

/// Which of these links a share belongs to.
pub fn owner_of(
    share: u8,
    links: impl Iterator<Item = (LinkId, Weight)>,
) -> Option<(LinkId, Weight)> {
    links.max_by_key(|&link| highest(share, link))
}

/// The largest of a link's numbers with a share; of two that are equal, one is larger all the same.
fn highest(share: u8, (link, weight): (LinkId, Weight)) -> (u64, LinkId) {
    let numbers = (0..weight.max(1)).map(|n| number([share, link.0, n]));
    (numbers.max().expect("one at least"), link)
}

/// SplitMix64's mixing of a counter (Steele, Lea, Flood 2014). Which share a flow is in, nobody outside can
/// choose; so these numbers need no key.
fn number(of: [u8; 3]) -> u64 {
    let [a, b, c] = of.map(u64::from);
    let mut z = (a | b << 8 | c << 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owners(links: &[(LinkId, Weight)]) -> Vec<LinkId> {
        let mut shares = Shares::default();
        shares.divide(links);
        let owner = |share| links[shares.place_of_share(share)].0;
        (0..=u8::MAX).map(owner).collect()
    }

    fn count(owners: &[LinkId], link: u8) -> usize {
        owners.iter().filter(|owner| owner.0 == link).count()
    }

    #[test]
    fn links_have_shares_by_their_weights() {
        for count_of_links in 2..=8u8 {
            let links: Vec<_> = (0..count_of_links).map(|n| (LinkId(n), 1)).collect();
            let owners = owners(&links);
            let fair = SHARES as f64 / f64::from(count_of_links);
            for link in 0..count_of_links {
                let has = count(&owners, link) as f64;
                // Six deviations of a fair draw.
                let deviation = (fair * (1.0 - 1.0 / f64::from(count_of_links))).sqrt();
                assert!(
                    (has - fair).abs() < 6.0 * deviation,
                    "{link} of {count_of_links}: {has}"
                );
            }
        }
        let owners = owners(&[(LinkId(0), 1), (LinkId(1), 3)]);
        let heavy = count(&owners, 1);
        assert!((165..=219).contains(&heavy), "{heavy} of 256, 192 expected");
    }

    #[test]
    fn the_same_links_again_change_nothing() {
        let mut shares = Shares::default();
        assert!(shares.divide(&[(LinkId(3), 1), (LinkId(5), 1)]));
        assert!(!shares.divide(&[(LinkId(3), 1), (LinkId(5), 1)]));
        assert!(shares.divide(&[(LinkId(3), 1), (LinkId(5), 2)]));
        assert_eq!(shares.place_of_link(LinkId(5)), Some(1));
        assert_eq!(shares.place_of_link(LinkId(4)), None);
        assert!(shares.divide(&[]));
        assert!((0..=u8::MAX).all(|share| shares.place_of_share(share) == 0));
    }

    proptest! {
        #[test]
        fn when_a_link_leaves_only_its_own_shares_move(
            weights in proptest::collection::vec(1u8..6, 2..9),
            gone in any::<proptest::sample::Index>(),
        ) {
            let mut links: Vec<_> = weights
                .iter()
                .enumerate()
                .map(|(n, &weight)| (LinkId(n as u8 * 7), weight))
                .collect();
            let before = owners(&links);
            let (gone, _) = links.remove(gone.index(links.len()));
            let after = owners(&links);
            for (before, after) in before.iter().zip(&after) {
                prop_assert!(before == after || *before == gone);
                prop_assert_ne!(*after, gone);
            }
        }
    }
}
