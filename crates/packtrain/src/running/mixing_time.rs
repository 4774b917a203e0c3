//! How long mixing takes this machine: the first thing that a line needs to know before it codes trains so, or is sent such.

use core::num::NonZero;

use packtrain_proto::coding::mixing::Writer;

use crate::clock::Clock;

/// The quickest of so many counts: caches are cold at first, and interrupts are charged to whom they meet.
const TRIALS: u32 = 4;

/// Nanoseconds a byte, by the processor time of some milliseconds.
pub fn measured(clock: Clock) -> NonZero<u16> {
    let mut writer = Writer::default();
    let trial = |_| {
        let began = clock.thread_cpu();
        let bytes = writer.try_out();
        let took = clock.thread_cpu().saturating_sub(began);
        (took.as_nanos() as u64).div_ceil(bytes as u64)
    };
    let quickest = (0..TRIALS).map(trial).min().unwrap_or(u64::MAX);
    let told = u16::try_from(quickest).unwrap_or(u16::MAX);
    NonZero::new(told).unwrap_or(NonZero::<u16>::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_takes_some_time_and_about_as_long_each_time() {
        let clock = Clock::start();
        let [one, other] = [measured(clock), measured(clock)].map(|ns| f64::from(ns.get()));
        assert!(one > 10.0 && other > 10.0, "{one} ns, {other} ns");
        assert!((0.1..10.0).contains(&(one / other)), "{one} ns, {other} ns");
    }
}
