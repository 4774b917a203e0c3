//! A cable that is pulled and put back, at set times.
//!
//! *Seen*: both ends lose their carrier, and what stands in queues and on the way is gone; at once, or
//! each end so much later. *Unseen*: frames vanish and both ends go on believing in the link (a media
//! converter, a dead switch behind a live port).

use packtrain_proto::time::{Duration, Instant};

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    pub from: Instant,
    pub until: Instant,
    pub seen: bool,
    /// How much later than the cut, and than its end, each end of a cable has another carrier. Until
    /// then it sends into nothing, and after the end it does not hear yet.
    pub lag: [Duration; 2],
    /// Of a switch: this port alone, and not all of it. Of a cable, if nobody sees it: what is sent there alone, and the other
    /// direction is whole.
    pub port: Option<usize>,
}

impl Outage {
    pub fn lags(&self) -> bool {
        self.seen && self.lag != [Duration::ZERO; 2]
    }

    /// When everything is as it was before.
    pub fn over(&self) -> Instant {
        match self.lags() {
            true => self.until + self.lag[0].max(self.lag[1]),
            false => self.until,
        }
    }
}

/// The outages of one cable, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    outages: Vec<Outage>,
}

impl Cut {
    pub fn new(outages: Vec<Outage>) -> Cut {
        let follow = outages.windows(2).all(|pair| pair[0].over() < pair[1].from);
        let noticed = |o: &Outage| o.lag.iter().all(|&lag| o.from + lag < o.until);
        assert!(
            follow && outages.iter().all(noticed),
            "outages follow each other, and their ends notice"
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
                    lag: [Duration::ZERO; 2],
                    port: None,
                }
            })
            .collect();
        Cut::new(outages)
    }

    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    /// Since when nothing has been wrong; `None` while something is.
    pub fn well_since(&self, now: Instant) -> Option<Instant> {
        let begun = self.outages.iter().take_while(|outage| outage.from <= now);
        match begun.last() {
            None => Some(Instant::ZERO),
            Some(last) => (last.over() <= now).then(|| last.over()),
        }
    }

    /// The outage that nobody sees at `now`.
    pub fn silent(&self, now: Instant) -> Option<&Outage> {
        self.at(now).filter(|outage| !outage.seen)
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
            lag: [Duration::ZERO; 2],
            port: None,
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
