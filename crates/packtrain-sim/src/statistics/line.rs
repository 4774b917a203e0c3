//! A straight line through points, by least squares.

use libm::log;

use super::{CONFIDENCE, Interval, t_two_sided};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub slope: f64,
    /// At x = 0.
    pub intercept: f64,
    points: u64,
    slope_error: f64,
}

impl Line {
    /// None if there are not two points that lie at different x.
    pub fn through(points: &[(f64, f64)]) -> Option<Line> {
        let n = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
        let (mut xx, mut xy) = (0.0, 0.0);
        for (x, y) in points {
            xx += (x - mean_x) * (x - mean_x);
            xy += (x - mean_x) * (y - mean_y);
        }
        // Of no points the means are not numbers, and neither is this.
        if xx.is_nan() || xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let intercept = mean_y - slope * mean_x;
        let residuals = points.iter().map(|(x, y)| y - intercept - slope * x);
        let squares: f64 = residuals.map(|residual| residual * residual).sum();
        let freedom = (n - 2.0).max(1.0);
        Some(Line {
            slope,
            intercept,
            points: points.len() as u64,
            slope_error: (squares / freedom / xx).sqrt(),
        })
    }

    /// Through the logarithms: the slope is the exponent of the power law y ∝ xˢˡᵒᵖᵉ. None also if a
    /// coordinate is not above zero, and has none.
    pub fn through_logarithms(points: &[(f64, f64)]) -> Option<Line> {
        let logarithms: Option<Vec<(f64, f64)>> = points
            .iter()
            .map(|&(x, y)| (x > 0.0 && y > 0.0).then(|| (log(x), log(y))))
            .collect();
        Line::through(&logarithms?)
    }

    /// With 95 % confidence, if what the points are away from the line is independent and about normal.
    /// Two points are always on a line, and tell nothing of it.
    pub fn slope_interval(&self) -> Option<Interval> {
        (self.points > 2).then(|| Interval {
            middle: self.slope,
            half_width: t_two_sided(self.points - 2, CONFIDENCE) * self.slope_error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of Anscombe's four (1973).
    const ANSCOMBE: [(f64, f64); 11] = [
        (10.0, 8.04),
        (8.0, 6.95),
        (13.0, 7.58),
        (9.0, 8.81),
        (11.0, 8.33),
        (14.0, 9.96),
        (6.0, 7.24),
        (4.0, 4.26),
        (12.0, 10.84),
        (7.0, 4.82),
        (5.0, 5.68),
    ];

    #[test]
    fn anscombes_points_have_the_line_of_his_paper_and_its_interval() {
        let line = Line::through(&ANSCOMBE).expect("a line");
        assert!((line.slope - 0.50009).abs() < 1e-5, "{line:?}");
        assert!((line.intercept - 3.00009).abs() < 1e-5, "{line:?}");
        assert!((line.slope_error - 0.1179).abs() < 1e-4, "{line:?}");
        let interval = line.slope_interval().expect("of eleven");
        assert!((interval.low() - 0.2333701).abs() < 1e-6, "{interval:?}");
        assert!((interval.high() - 0.7668117).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn a_power_law_has_its_exponent() {
        let points: Vec<_> = (1..10)
            .map(|x| (f64::from(x), 3.0 / f64::from(x).sqrt()))
            .collect();
        let line = Line::through_logarithms(&points).expect("a line");
        assert!((line.slope + 0.5).abs() < 1e-12, "{line:?}");
        assert!((line.intercept.exp() - 3.0).abs() < 1e-12, "{line:?}");
        assert!(line.slope_interval().expect("of nine").half_width < 1e-12);
    }

    #[test]
    fn what_is_no_line_has_none() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(1.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(Line::through_logarithms(&[(0.0, 1.0), (1.0, 2.0)]), None);
        let two = Line::through(&[(0.0, 1.0), (1.0, 3.0)]).expect("a line");
        assert_eq!((two.slope, two.slope_interval()), (2.0, None));
    }
}
