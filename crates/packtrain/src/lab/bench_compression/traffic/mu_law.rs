//! G.711, µ-law: a sample of sixteen bits in eight, in steps that grow with it.

/// What a sine of this level peaks at is the most that can be said: +3.17 dBm0 (G.711, clause 4).
const PEAK_DBM0: f64 = 3.17;
const PEAK: f64 = 32_636.0;
/// The first step of each segment is on a power of two with this.
const BIAS: u32 = 132;
const CLIP: f64 = 32_635.0;

/// What silence is.
#[cfg(test)]
pub const SILENCE: u8 = 0xff;

pub fn encode(sample: f64) -> u8 {
    let magnitude = sample.abs().min(CLIP) as u32 + BIAS;
    let segment = magnitude.ilog2() - 7;
    let step = (magnitude >> (segment + 3)) & 0x0f;
    let sign = if sample < 0.0 { 0x80 } else { 0 };
    !(sign | (segment << 4 | step) as u8)
}

/// The effective value of a sound of this level.
pub fn amplitude(dbm0: f64) -> f64 {
    PEAK / 2.0_f64.sqrt() * 10.0_f64.powf((dbm0 - PEAK_DBM0) / 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the standard's table 2b, its values times four.
    fn decode(code: u8) -> f64 {
        let code = !code;
        let (segment, step) = (u32::from(code >> 4 & 7), u32::from(code & 15));
        let magnitude = (((step << 3) + BIAS) << segment) - BIAS;
        let magnitude = f64::from(magnitude);
        if code & 0x80 == 0 {
            magnitude
        } else {
            -magnitude
        }
    }

    #[test]
    fn the_values_are_those_of_the_standard() {
        // The ends of the scale, and of its first two segments: ±8031, ±33 and ±30, and 0, of fourteen bits.
        for (sample, code) in [
            (32_124.0, 0x80),
            (-32_124.0, 0x00),
            (32_767.0, 0x80),
            (132.0, 0xef),
            (120.0, 0xf0),
            (-120.0, 0x70),
            (8.0, 0xfe),
            (0.0, SILENCE),
        ] {
            assert_eq!(encode(sample), code, "{sample}");
        }
        for code in (0..=255_u8).filter(|&code| code != 0x7f) {
            assert_eq!(encode(decode(code)), code);
        }
    }

    #[test]
    fn a_sine_of_0_dbm0_is_the_row_that_the_standard_gives() {
        // Table 6: 1 kHz, eight samples.
        let row = [0x1e, 0x0b, 0x0b, 0x1e, 0x9e, 0x8b, 0x8b, 0x9e];
        let peak = amplitude(0.0) * 2.0_f64.sqrt();
        let sine = |at: u32| {
            let turns = (f64::from(at) + 4.5) / 8.0;
            encode(peak * (turns * std::f64::consts::TAU).sin())
        };
        assert_eq!(std::array::from_fn(|at| sine(at as u32)), row);
    }
}
