//! How sure a mean is: Student's interval over runs that differ by their seeds alone.

/// Of 95 %, two-sided, by degrees of freedom from 1.
const STUDENT: [f64; 30] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004,
    2.262_157, 2.228_139, 2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905,
    2.109_816, 2.100_922, 2.093_024, 2.085_963, 2.079_614, 2.073_873, 2.068_658, 2.063_899,
    2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
];
/// Of the normal distribution, which Student's nears.
const NORMAL: f64 = 1.959_964;

/// A mean, and how far from it the true one may lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub mean: f64,
    /// Half the width of the interval of 95 %; `None` of a single run.
    pub half_width: Option<f64>,
}

impl Interval {
    pub fn of(values: &[f64]) -> Interval {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        if values.len() < 2 {
            return Interval {
                mean,
                half_width: None,
            };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        Interval {
            mean,
            half_width: Some(student(values.len() - 1) * deviation / count.sqrt()),
        }
    }
}

/// Above the table by the expansion in 1/n (Abramowitz and Stegun, 26.7.5), right to six digits there.
fn student(freedom: usize) -> f64 {
    if let Some(known) = STUDENT.get(freedom - 1) {
        return *known;
    }
    let (z, n) = (NORMAL, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / n + second / (n * n) + third / (n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_a_textbook() {
        // 2.776 * 1.5811 / sqrt(5)
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(interval.mean, 3.0);
        assert!((interval.half_width.unwrap() - 1.963_243).abs() < 1e-6);
        let alone = Interval::of(&[7.0]);
        assert_eq!((alone.mean, alone.half_width), (7.0, None));
        assert_eq!(Interval::of(&[2.0, 2.0]).half_width, Some(0.0));
    }

    #[test]
    fn beyond_the_table_it_goes_on_without_a_step() {
        for (freedom, known) in [(40, 2.021_075), (60, 2.000_298), (120, 1.979_930)] {
            assert!((student(freedom) - known).abs() < 1e-5, "{freedom}");
        }
        assert!((1..200).all(|freedom| student(freedom) > student(freedom + 1)));
    }
}
