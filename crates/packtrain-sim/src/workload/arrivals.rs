//! When the frames of a flow come.

use packtrain_proto::time::Duration;

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independent of each other.
    Poisson { mean_gap: Duration },
    /// So many at once, then nothing for a while.
    Bursts { frames: u64, mean_gap: Duration },
    /// At an even pace, with pauses.
    OnOff {
        frames: u64,
        gap: Duration,
        pause: Duration,
    },
    /// Always faster than the line.
    Saturating { gap: Duration },
}

impl Arrivals {
    /// From frame `index` of the flow to the one after it.
    pub fn gap(&self, index: u32, random: &mut Random) -> Duration {
        let ends = |frames: u64| (u64::from(index) + 1).is_multiple_of(frames.max(1));
        match *self {
            Arrivals::Poisson { mean_gap } => random.exponential(mean_gap),
            Arrivals::Bursts { frames, mean_gap } if ends(frames) => random.exponential(mean_gap),
            Arrivals::Bursts { .. } => Duration::ZERO,
            Arrivals::OnOff { frames, pause, .. } if ends(frames) => pause,
            Arrivals::OnOff { gap, .. } | Arrivals::Saturating { gap } => gap,
        }
    }

    /// In the mean over a long time.
    pub fn mean_gap(&self) -> Duration {
        match *self {
            Arrivals::Poisson { mean_gap } => mean_gap,
            Arrivals::Bursts { frames, mean_gap } => mean_gap / frames.max(1) as u32,
            Arrivals::OnOff { frames, gap, pause } => {
                (gap * (frames.max(1) - 1) as u32 + pause) / frames.max(1) as u32
            }
            Arrivals::Saturating { gap } => gap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_keeps_its_mean() {
        let millis = Duration::from_millis;
        for arrivals in [
            Arrivals::Poisson {
                mean_gap: millis(1),
            },
            Arrivals::Bursts {
                frames: 10,
                mean_gap: millis(5),
            },
            Arrivals::OnOff {
                frames: 4,
                gap: millis(1),
                pause: millis(9),
            },
            Arrivals::Saturating { gap: millis(2) },
        ] {
            let mut random = Random::new(1);
            let total: Duration = (0..20_000).map(|i| arrivals.gap(i, &mut random)).sum();
            let ratio = total.as_secs_f64() / 20_000.0 / arrivals.mean_gap().as_secs_f64();
            assert!((0.95..1.05).contains(&ratio), "{arrivals:?}: {ratio}");
        }
    }
}
