//! Times, counted in buckets so narrow that a quantile is at most a thirty-second too long.

use packtrain_proto::time::Duration;

/// Buckets in each power of two.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Counts of times from zero on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// As many as were needed so far: most times are short.
    counts: Vec<u64>,
    total: u64,
    sum_nanos: u128,
    max_nanos: u64,
}

impl Histogram {
    pub fn record(&mut self, nanos: u64) {
        let at = bucket(nanos);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.total += 1;
        self.sum_nanos += u128::from(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
    }

    /// All that another has.
    pub fn add(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.sum_nanos += other.sum_nanos;
        self.max_nanos = self.max_nanos.max(other.max_nanos);
    }

    pub fn count(&self) -> u64 {
        self.total
    }

    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max_nanos)
    }

    pub fn mean(&self) -> Duration {
        let mean = self.sum_nanos / u128::from(self.total.max(1));
        Duration::from_nanos(mean as u64)
    }

    /// The time that the given share of all is no longer than; zero of none.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.nanos_at(rank(share, self.total)))
    }

    /// Of the so-manieth shortest, from 1.
    fn nanos_at(&self, rank: u64) -> u64 {
        let mut before = 0;
        for (at, &count) in self.counts.iter().enumerate() {
            before += count;
            if before >= rank && count > 0 {
                return longest_of(at).min(self.max_nanos);
            }
        }
        self.max_nanos
    }
}

/// Differences of times, of either sign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    below_zero: Histogram,
    others: Histogram,
}

impl Differences {
    pub fn record(&mut self, nanos: i64) {
        match nanos < 0 {
            true => self.below_zero.record(nanos.unsigned_abs()),
            false => self.others.record(nanos as u64),
        }
    }

    pub fn count(&self) -> u64 {
        self.below_zero.total + self.others.total
    }

    pub fn mean_nanos(&self) -> i64 {
        let sum = self.others.sum_nanos as i128 - self.below_zero.sum_nanos as i128;
        (sum / i128::from(self.count().max(1))) as i64
    }

    pub fn max_nanos(&self) -> i64 {
        match self.others.total {
            0 => self.quantile_nanos(1.0),
            _ => self.others.max_nanos as i64,
        }
    }

    /// The difference that the given share of all is no greater than; zero of none.
    pub fn quantile_nanos(&self, share: f64) -> i64 {
        if self.count() == 0 {
            return 0;
        }
        let rank = rank(share, self.count());
        match rank <= self.below_zero.total {
            // The greatest is the one that is least below zero.
            true => -(self.below_zero.nanos_at(self.below_zero.total - rank + 1) as i64),
            false => self.others.nanos_at(rank - self.below_zero.total) as i64,
        }
    }
}

fn rank(share: f64, total: u64) -> u64 {
    ((share * total as f64).ceil() as u64).clamp(1, total.max(1))
}

fn bucket(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let step = (nanos >> (power - STEP_BITS)) & (STEPS - 1);
    (u64::from(power - STEP_BITS + 1) * STEPS + step) as usize
}

fn longest_of(bucket: usize) -> u64 {
    let (power, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    match power {
        0 => step,
        _ => {
            let width = 1u64 << (power - 1);
            (STEPS + step) * width + (width - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_time_is_in_a_bucket_that_ends_at_most_a_thirty_second_later() {
        for nanos in (0..100_000).chain((17..63).map(|bit| (1 << bit) + 12_345)) {
            let longest = longest_of(bucket(nanos));
            assert!(longest >= nanos && longest - nanos <= nanos / 32, "{nanos}");
        }
        assert_eq!(longest_of(bucket(u64::MAX)), u64::MAX);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_list(mut values in prop::collection::vec(-1_000_000i64..1_000_000, 1..200)) {
            let mut differences = Differences::default();
            values.iter().for_each(|&value| differences.record(value));
            values.sort_unstable();
            for share in [0.01, 0.5, 0.99, 1.0] {
                let exact = values[(share * values.len() as f64).ceil() as usize - 1];
                let told = differences.quantile_nanos(share);
                prop_assert!((told - exact).abs() <= exact.abs() / 32, "{share}: {told} for {exact}");
            }
            prop_assert_eq!(differences.count(), values.len() as u64);
            prop_assert_eq!(differences.mean_nanos(), values.iter().sum::<i64>() / values.len() as i64);
        }
    }
}
