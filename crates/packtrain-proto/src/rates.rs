//! Bytes, times and rates. A division of 128 bits takes several times as long as one of 64, and these are asked for each train.

use crate::time::Duration;

const NANOS_A_SECOND: u64 = 1_000_000_000;

/// `rate`: bytes a second.
pub(crate) fn bytes_in(time: Duration, rate: u64) -> usize {
    mul_div(rate, time.as_nanos() as u64, NANOS_A_SECOND) as usize
}

/// `bps`: bit/s.
pub(crate) fn time_of(bytes: usize, bps: u64) -> Duration {
    Duration::from_nanos(mul_div(bytes as u64, 8 * NANOS_A_SECOND, bps.max(1)))
}

pub(crate) fn bytes_a_second(bytes: u64, time: Duration) -> u64 {
    mul_div(bytes, NANOS_A_SECOND, (time.as_nanos() as u64).max(1))
}

/// a × b / c, of which what does not fit is cut off.
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => (u128::from(a) * u128::from(b) / u128::from(c)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_product_of_any_size_is_divided_without_loss(
            a: u64, b: u64, shift in 0..64_u32, c in 1..u64::MAX
        ) {
            let (a, b) = (a >> shift, b >> (shift / 2));
            let exact = u128::from(a) * u128::from(b) / u128::from(c);
            prop_assume!(exact <= u128::from(u64::MAX));
            prop_assert_eq!(u128::from(mul_div(a, b, c)), exact);
        }
    }
}
