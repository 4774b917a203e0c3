//! What compressing costs: the processor time of the polls that give compressed trains, told to the engine, which weighs it
//! against what the link gains.
//!
//! Where nothing is compressed, no clock is read. Where compressing goes on, one poll in eight is timed. It is the thread's
//! own time: what others do with the processor meanwhile costs a train nothing.

use packtrain_proto::time::Duration;

/// So many are timed when compressing begins, and one in so many after these.
const FIRST_TIMED: u32 = 8;
const TIMED_ONE_IN: u32 = 8;
/// It goes on no longer after so many polls that compressed nothing.
const IDLE_POLLS_MAX: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct CodingTime {
    /// What the engine had compressed at the last poll.
    compressed: u64,
    /// Since compressing began; `None`: it does not go on.
    polls: Option<u32>,
    idle_polls: u32,
    samples: [Sample; 3],
    sampled: usize,
}

/// Bytes compressed, and what that took.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    bytes: u64,
    took: Duration,
}

impl CodingTime {
    /// Whether the next poll is to be timed.
    pub(super) fn times_next(&self) -> bool {
        self.polls
            .is_some_and(|polls| polls < FIRST_TIMED || polls.is_multiple_of(TIMED_ONE_IN))
    }

    /// A poll is over, and the engine has compressed so much, ever. Gives what the engine is to be told.
    #[inline]
    pub(super) fn on_poll(
        &mut self,
        compressed: u64,
        took: Option<Duration>,
    ) -> Option<(u64, Duration)> {
        let bytes = compressed - self.compressed;
        if bytes == 0 && self.polls.is_none() {
            return None;
        }
        self.compressed = compressed;
        self.while_it_goes_on(bytes, took)
    }

    fn while_it_goes_on(&mut self, bytes: u64, took: Option<Duration>) -> Option<(u64, Duration)> {
        if bytes == 0 {
            self.idle_polls += 1;
            if self.idle_polls >= IDLE_POLLS_MAX {
                self.polls = None;
            }
            return None;
        }
        self.idle_polls = 0;
        self.polls = Some(self.polls.map_or(0, |polls| polls.wrapping_add(1)));
        let took = took.filter(|took| !took.is_zero())?;
        self.sample(Sample { bytes, took })
    }

    /// Of three the one in the middle: an interrupt is charged to whom it meets, and one train that took ten times as long would
    /// make compressing look worth nothing.
    fn sample(&mut self, sample: Sample) -> Option<(u64, Duration)> {
        self.samples[self.sampled] = sample;
        self.sampled = (self.sampled + 1) % self.samples.len();
        if self.sampled > 0 {
            return None;
        }
        let per_byte = |of: &Sample| of.took.as_nanos() as u64 * 1000 / of.bytes;
        self.samples.sort_unstable_by_key(per_byte);
        let Sample { bytes, took } = self.samples[1];
        Some((bytes, took))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_micros(10);

    #[test]
    fn no_clock_is_read_where_nothing_is_compressed() {
        let mut time = CodingTime::default();
        for _ in 0..1000 {
            assert!(!time.times_next());
            assert_eq!(time.on_poll(0, None), None);
        }
    }

    #[test]
    fn the_first_polls_are_timed_and_one_in_eight_while_compressing_goes_on() {
        let mut time = CodingTime::default();
        let mut compressed = 0;
        let mut timed = Vec::new();
        for poll in 0..40 {
            if time.times_next() {
                timed.push(poll);
            }
            compressed += 1000;
            time.on_poll(compressed, None);
        }
        assert_eq!(timed, [1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 25, 33]);
        // It ends, and no clock is read from then on.
        for _ in 0..IDLE_POLLS_MAX {
            time.on_poll(compressed, None);
        }
        assert!(!time.times_next());
    }

    #[test]
    fn the_engine_is_told_what_lies_in_the_middle_of_three() {
        let mut time = CodingTime::default();
        time.on_poll(500, None);
        let long = Duration::from_millis(9);
        assert_eq!(time.on_poll(1500, Some(TOOK)), None);
        assert_eq!(time.on_poll(2500, Some(long)), None);
        // Polls that compressed nothing tell nothing.
        assert_eq!(time.on_poll(2500, Some(long)), None);
        assert_eq!(time.on_poll(4500, Some(TOOK)), Some((1000, TOOK)));
        assert_eq!(time.on_poll(5500, Some(TOOK)), None);
    }
}
