//! Closed forms that results are held against: they stand beside a simulation and never in it.
//!
//! So the platform's logarithms and powers are good enough here. Each form says whose it is and what it
//! leaves out: where a simulation differs, one of the two is to be explained.

use packtrain_proto::time::Duration;

pub mod medium;
pub mod queueing;
pub mod tcp;

/// What a bottleneck's queue has to hold of a sender whose interface is faster, in bits: (Y − X)·Δt with
/// Δt = X·T/Y, for it sends what is meant for an interval T at once (Hiraki et al. 2003, section 1). T is
/// the round trip for who does not space, and the precision for who does.
pub fn burst_buffer_bits(interface_bps: u64, transfer_bps: u64, interval: Duration) -> f64 {
    assert!(transfer_bps <= interface_bps, "faster than its interface");
    let (interface, transfer) = (interface_bps as f64, transfer_bps as f64);
    let busy_s = transfer * interval.as_secs_f64() / interface;
    (interface - transfer) * busy_s
}

/// Goodput over the normalised size θ = N·p of a data unit of N bits, where each is wrong with p, in units
/// of c/p: θ·e^−θ/√(1 − e^−θ) (Divakaran et al. 2009, equation 3). It is the 1/√P law, so of a TCP that
/// has no timeouts.
pub fn xlf_goodput(theta: f64) -> f64 {
    theta * libm::exp(-theta) / (-libm::expm1(-theta)).sqrt()
}

/// The θ at which [`xlf_goodput`] is greatest (their Lemma 7.1), found by looking for it.
pub fn xlf_best_theta() -> f64 {
    greatest(xlf_goodput, 0.01, 5.0)
}

/// Where a function with one hill is greatest: of three equal parts, one without the top is left out.
fn greatest(function: fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..100 {
        let third = (high - low) / 3.0;
        match function(low + third) < function(high - third) {
            true => low += third,
            false => high -= third,
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gigabit interface into an OC-12 over 198 ms; and what spacing to a millisecond leaves of it.
    #[test]
    fn the_buffer_of_a_burst_is_that_of_its_interval() {
        let round_trip = burst_buffer_bits(1_000_000_000, 599_000_000, Duration::from_millis(198));
        assert!((round_trip / 8.0 - 5_944_925.0).abs() < 1.0, "{round_trip}");
        let spaced = burst_buffer_bits(1_000_000_000, 599_000_000, Duration::from_millis(1));
        assert!((round_trip / spaced - 198.0).abs() < 1e-9, "{spaced}");
        let even = burst_buffer_bits(1_000_000, 1_000_000, Duration::from_secs(1));
        assert_eq!(even, 0.0);
    }

    /// Where the derivative is zero: 1/θ = 1 + 1/(2(e^θ − 1)).
    #[test]
    fn the_best_size_of_an_xlframe_is_that_of_the_lemma() {
        let theta = xlf_best_theta();
        assert!((theta - 0.6438).abs() < 5e-5, "{theta}");
        let slope = 1.0 / theta - 1.0 - 0.5 / theta.exp_m1();
        assert!(slope.abs() < 1e-6, "{slope}");
        assert!(
            (xlf_goodput(theta) - 0.490_839).abs() < 1e-6,
            "{}",
            xlf_goodput(theta)
        );
        assert!(
            (xlf_goodput(1.0) - 0.462_706).abs() < 1e-6,
            "{}",
            xlf_goodput(1.0)
        );
    }
}
