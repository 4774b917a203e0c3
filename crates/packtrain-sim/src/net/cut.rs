//! A cable that is pulled and put back, at set times.
//!
//! *Seen*: both ends lose their carrier, and what stands in queues and on the way is gone. *Unseen*:
//! frames vanish and both ends go on believing in the link (a media converter, a dead switch
//! behind a live port).

use packtrain_proto::time::{Duration, Instant};

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    pub from: Instant,
    pub until: Instant,
    pub seen: bool,
}

/// The outages of one cable, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    outages: Vec<Outage>,
}

impl Cut {
    pub fn new(outages: Vec<Outage>) -> Cut {
        let follow = outages.windows(2).all(|pair| pair[0].until < pair[1].from);
        assert!(
            follow && outages.iter().all(|o| o.from < o.until),
            "outages follow each other"
        );
        Cut { outages }
    }

    /// A few of them, all over before `end`.
    pub fn random(count: u64, start: Instant, end: Instant, random: &mut Random) -> Cut {
        let slot = end.since(start) / count as u32;
        let outages = (0..count as u32)
            .map(|i| {
                let from = start + slot * i + random.duration(Duration::from_nanos(1), slot / 3);
                let until = from + random.duration(Duration::from_nanos(1), slot / 2);
                Outage {
                    from,
                    until,
                    seen: random.chance(0.7),
                }
            })
            .collect();
        Cut::new(outages)
    }

    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    /// The outage that holds at `now`.
    pub fn at(&self, now: Instant) -> Option<&Outage> {
        self.outages
            .iter()
            .find(|outage| outage.from <= now && now < outage.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_holds_from_its_start_until_before_its_end() {
        let at = Instant::from_nanos;
        let cut = Cut::new(vec![Outage {
            from: at(10),
            until: at(20),
            seen: true,
        }]);
        let held: Vec<bool> = [9, 10, 19, 20]
            .iter()
            .map(|&t| cut.at(at(t)).is_some())
            .collect();
        assert_eq!(held, [false, true, true, false]);
    }

    #[test]
    fn random_outages_follow_each_other_and_end_in_time() {
        for seed in 0..100 {
            let (start, end) = (Instant::from_nanos(1000), Instant::from_nanos(1_000_000));
            let cut = Cut::random(3, start, end, &mut Random::new(seed));
            assert_eq!(cut.outages().len(), 3);
            assert!(
                cut.outages()
                    .iter()
                    .all(|o| o.from >= start && o.until < end)
            );
        }
    }
}
