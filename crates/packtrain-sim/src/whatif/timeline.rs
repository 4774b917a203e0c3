//! Frames on the wires over time, in a bounded number of steps: the longer the capture, the longer a step.

use packtrain_proto::time::{Duration, Instant};

pub const STEPS_MAX: usize = 256;
/// Of a step at first, in bits of nanoseconds: about a millisecond.
const STEP_BITS_MIN: u32 = 20;

/// What left within a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub plain: u64,
    pub with: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// When the first step begins.
    begins: Instant,
    doublings: u32,
    steps: Vec<Step>,
}

impl Timeline {
    pub fn from(begins: Instant) -> Timeline {
        Timeline {
            begins,
            ..Timeline::default()
        }
    }

    pub fn plain(&mut self, at: Instant, frames: u64) {
        self.at(at).plain += frames;
    }

    pub fn with(&mut self, at: Instant, frames: u64) {
        self.at(at).with += frames;
    }

    /// What another one has counted, from the same time on.
    pub fn add(&mut self, other: &Timeline) {
        let mut other = other.clone();
        debug_assert_eq!(self.begins, other.begins);
        while self.doublings < other.doublings {
            self.double();
        }
        while other.doublings < self.doublings {
            other.double();
        }
        let len = self.steps.len().max(other.steps.len());
        self.steps.resize(len, Step::default());
        for (sum, step) in self.steps.iter_mut().zip(other.steps) {
            sum.plain += step.plain;
            sum.with += step.with;
        }
    }

    pub fn step(&self) -> Duration {
        Duration::from_nanos(1 << self.bits())
    }

    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn bits(&self) -> u32 {
        STEP_BITS_MIN + self.doublings
    }

    fn at(&mut self, at: Instant) -> &mut Step {
        let nanos = at.since(self.begins).as_nanos() as u64;
        while (nanos >> self.bits()) as usize >= STEPS_MAX {
            self.double();
        }
        let number = (nanos >> self.bits()) as usize;
        if number >= self.steps.len() {
            self.steps.resize(number + 1, Step::default());
        }
        &mut self.steps[number]
    }

    fn double(&mut self) {
        self.doublings += 1;
        let pairs = self.steps.chunks(2);
        let sum = |pair: &[Step]| Step {
            plain: pair.iter().map(|step| step.plain).sum(),
            with: pair.iter().map(|step| step.with).sum(),
        };
        self.steps = pairs.map(sum).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_frame_is_in_the_step_of_its_time_however_long_it_lasts(
            begins in 0u64..1 << 40,
            times in prop::collection::vec((0u32..44, any::<u64>(), any::<bool>()), 1..200),
        ) {
            let times: Vec<(u64, bool)> = times
                .into_iter()
                .map(|(bits, nanos, is_plain)| (nanos & ((1 << bits) - 1), is_plain))
                .collect();
            let begun = || Timeline::from(Instant::from_nanos(begins));
            let mut timeline = begun();
            let mut apart = [begun(), begun()];
            for &(nanos, is_plain) in &times {
                let at = Instant::from_nanos(begins + nanos);
                for timeline in [&mut timeline, &mut apart[usize::from(is_plain)]] {
                    match is_plain {
                        true => timeline.plain(at, 1),
                        false => timeline.with(at, 1),
                    }
                }
            }
            let [mut sum, plain] = apart;
            sum.add(&plain);
            prop_assert_eq!(&sum, &timeline);
            prop_assert!(timeline.steps().len() <= STEPS_MAX);
            let step = timeline.step().as_nanos() as u64;
            let mut expected = vec![Step::default(); timeline.steps().len()];
            for (nanos, is_plain) in times {
                let of = &mut expected[(nanos / step) as usize];
                *(if is_plain { &mut of.plain } else { &mut of.with }) += 1;
            }
            prop_assert_eq!(timeline.steps(), expected);
        }
    }
}
