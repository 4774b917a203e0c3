//! Coded trains that are damaged after their FCS was looked at: by the memory of a card, or of a switch.
//!
//! The checkers are told of each, and of what was in it: none of that may come out, and all of it is missing.

use crate::checker::inside;
use crate::frame::Frame;
use crate::random::Random;

#[derive(Debug)]
pub struct Damage {
    /// Of a coded train to be hit.
    probability: f64,
    random: Random,
    pub trains: u64,
    /// The network is well again.
    pub is_over: bool,
}

impl Damage {
    pub fn new(probability: f64, random: Random) -> Damage {
        Damage {
            probability,
            random,
            trains: 0,
            is_over: false,
        }
    }

    /// `Some`: it was hit, and is this now.
    pub fn strike(&mut self, frame: &Frame) -> Option<Frame> {
        let is_hit = inside::is_coded(&frame.bytes) && self.random.chance(self.probability);
        if !is_hit || self.is_over {
            return None;
        }
        // The coding is not hit: who does not know one says something else.
        let first = inside::content_at(&frame.bytes)? + 1;
        let mut damaged = frame.clone();
        while inside::restored(&damaged.bytes).is_some() {
            for _ in 0..self.random.between(1, 8) {
                let bit = self.random.below(8 * (frame.bytes.len() - first) as u64);
                damaged.bytes[first + (bit / 8) as usize] ^= 1 << (bit % 8);
            }
        }
        self.trains += 1;
        Some(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Order, pair};
    use crate::simulator::Station;
    use packtrain_proto::stats::DropReason;

    #[test]
    fn a_damaged_coded_train_is_dropped_as_a_whole_and_counted() {
        let (mut trains, mut frames) = (0, 0);
        for seed in 0..60 {
            let mut experiment = pair::build(Order::new(seed));
            if !experiment.faultless {
                continue; // a wire may lose the train, or bring another copy
            }
            for (n, station) in experiment.simulator.stations.iter_mut().enumerate() {
                if let Station::Packtrain(host) = station {
                    host.damage = Some(Damage::new(0.1, Random::new(seed ^ n as u64)));
                }
            }
            let report = experiment.run();
            assert_eq!(report.violation, None, "seed {seed}");
            let now = experiment.simulator.now();
            for host in experiment.simulator.hosts() {
                let counted = host.snapshot(now).drops.get(DropReason::CodedDamaged);
                let damaged = host.damage.as_ref().map_or(0, |damage| damage.trains);
                assert_eq!(counted, damaged, "seed {seed}, {:?}", host.station);
                trains += damaged;
            }
            frames += experiment.simulator.checkers.frames_damaged();
        }
        println!("{trains} trains with {frames} frames");
        assert!(trains > 50 && frames > 2 * trains, "{trains}, {frames}");
    }
}
