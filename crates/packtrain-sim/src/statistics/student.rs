//! Student's distribution: how many errors wide an interval has to be.

use libm::{exp, log};

/// What |t| is below with the given probability, by degrees of freedom: two-sided, so 0.95 gives what
/// tables have under 0.975.
pub fn t_two_sided(degrees: u64, confidence: f64) -> f64 {
    assert!(degrees > 0, "one value tells nothing of its error");
    assert!((0.0..1.0).contains(&confidence), "{confidence}");
    let beyond = 1.0 - confidence;
    let mut high = 1.0;
    while probability_beyond(high, degrees) > beyond {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Until the halves are no longer different numbers, or nearly.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match probability_beyond(middle, degrees) > beyond {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

/// That |t| is greater (Abramowitz and Stegun 26.7.1 and 26.5.27).
fn probability_beyond(t: f64, degrees: u64) -> f64 {
    let degrees = degrees as f64;
    let square = t * t;
    regularised_beta(
        degrees / (degrees + square),
        square / (degrees + square),
        degrees / 2.0,
        0.5,
    )
}

/// The regularised incomplete beta function I_x(a, b); `rest` is 1 − x, without its rounding.
fn regularised_beta(x: f64, rest: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || rest <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction is quick on this side of the mean; beyond it, by the symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - regularised_beta(rest, x, b, a);
    }
    let ln_front = a * log(x) + b * log(rest) + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    exp(ln_front) / a / continued_fraction(x, a, b)
}

/// 1 + d₁/(1 + d₂/(1 + …)) of Abramowitz and Stegun 26.5.8, from the front (Lentz 1976, as modified by
/// Thompson and Barnett 1986).
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    // Terms needed grow with the root of a: this is enough for 10⁸ values.
    const TERMS_MAX: u32 = 100_000;
    const TINY: f64 = 1e-300;
    let kept_off_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for term in 1..TERMS_MAX {
        let m = f64::from(term / 2);
        let coefficient = match term % 2 {
            0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        };
        d = 1.0 / kept_off_zero(1.0 + coefficient * d);
        c = kept_off_zero(1.0 + coefficient / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// By Stirling's series, from where it is exact to the last digits.
fn ln_gamma(x: f64) -> f64 {
    let mut above = x;
    let mut product = 1.0;
    while above < 10.0 {
        product *= above;
        above += 1.0;
    }
    let inverse_square = 1.0 / (above * above);
    // Abramowitz and Stegun 6.1.41.
    let series = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let correction = series
        .iter()
        .rev()
        .fold(0.0, |sum, term| sum * inverse_square + term)
        / above;
    let half_ln_tau = 0.5 * log(std::f64::consts::TAU);
    (above - 0.5) * log(above) - above + half_ln_tau + correction - log(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        for (degrees, confidence, printed) in [
            (1, 0.95, 12.7062),
            (2, 0.95, 4.3027),
            (3, 0.95, 3.1824),
            (4, 0.95, 2.7764),
            (5, 0.95, 2.5706),
            (9, 0.95, 2.2622),
            (10, 0.95, 2.2281),
            (29, 0.95, 2.0452),
            (30, 0.95, 2.0423),
            (120, 0.95, 1.9799),
            (100_000_000, 0.95, 1.9600),
            (5, 0.90, 2.0150),
            (1, 0.99, 63.6567),
            (10, 0.99, 3.1693),
            (10, 0.50, 0.6998),
        ] {
            let told = t_two_sided(degrees, confidence);
            assert!((told - printed).abs() < 1e-4, "{degrees}: {told}");
        }
    }

    /// Of one and of two degrees there are closed forms: tan, and 2p/√(…).
    #[test]
    fn one_and_two_degrees_have_their_closed_forms() {
        for confidence in [0.1f64, 0.5, 0.9, 0.95, 0.999] {
            let one = (confidence * std::f64::consts::FRAC_PI_2).tan();
            let two = confidence * (2.0 / (1.0 - confidence * confidence)).sqrt();
            for (degrees, exact) in [(1, one), (2, two)] {
                let told = t_two_sided(degrees, confidence);
                assert!((told / exact - 1.0).abs() < 1e-10, "{degrees}: {told}");
            }
        }
    }

    #[test]
    fn the_logarithm_of_gamma_is_that_of_factorials_and_of_a_half() {
        let mut factorial: f64 = 1.0;
        for n in 1..20 {
            assert!(
                (ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-12,
                "{n}"
            );
            factorial *= f64::from(n);
        }
        let half = std::f64::consts::PI.sqrt().ln();
        assert!((ln_gamma(0.5) - half).abs() < 1e-12);
    }
}
