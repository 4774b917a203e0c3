//! From where to where an axis goes, and what stands at it.

use crate::quantity::Dimension;

/// More would stand too close.
const TICKS_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub least: f64,
    pub most: f64,
    pub log: bool,
    pub ticks: Vec<f64>,
}

/// What stands at the ticks of x.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Labels {
    #[default]
    Numbers,
    /// With a unit at each: 1000000 of bit/s is 1mbit.
    Of(Dimension),
    /// The values are their places, from 0 on.
    Words(Vec<String>),
}

impl Labels {
    pub fn label(&self, tick: f64) -> String {
        match self {
            Labels::Of(dimension) if *dimension != Dimension::Number => dimension.print(tick),
            Labels::Words(words) => words.get(tick as usize).cloned().unwrap_or_default(),
            _ => Axis::label(tick),
        }
    }

    pub fn axis(&self, values: impl Iterator<Item = f64>, log: bool) -> Axis {
        match self {
            Labels::Words(words) => Axis::of_words(words.len()),
            _ => Axis::of(values, log, false),
        }
    }
}

impl Axis {
    /// Each has as much room as the others.
    fn of_words(count: usize) -> Axis {
        Axis {
            least: -0.5,
            most: count as f64 - 0.5,
            log: false,
            ticks: (0..count).map(|i| i as f64).collect(),
        }
    }

    /// Of all these values; those that are none, or have no logarithm, are left out. `zero`: from nothing on, where that is
    /// not far.
    pub fn of(values: impl Iterator<Item = f64>, log: bool, zero: bool) -> Axis {
        let right = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let (least, most) = right.fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(least, most), value| (least.min(value), most.max(value)),
        );
        match (least <= most, log) {
            (false, false) => Axis::linear(0.0, 1.0),
            (false, true) => Axis::logarithmic(1.0, 10.0),
            (true, true) => Axis::logarithmic(least, most),
            (true, false) if zero && least >= 0.0 && least < 0.6 * most => Axis::linear(0.0, most),
            (true, false) => Axis::linear(least, most),
        }
    }

    fn linear(least: f64, most: f64) -> Axis {
        let (least, most) = match most > least {
            true => (least, most),
            // One value alone stands in the middle.
            false => {
                let room = if least == 0.0 { 1.0 } else { least.abs() * 0.1 };
                (least - room, most + room)
            }
        };
        let step = nice_step((most - least) / TICKS_MAX as f64);
        let (first, last) = ((least / step + 1e-9).floor(), (most / step - 1e-9).ceil());
        let count = (last - first).round() as usize;
        let ticks: Vec<f64> = (0..=count).map(|i| (first + i as f64) * step).collect();
        Axis {
            least: ticks[0],
            most: ticks[count],
            log: false,
            ticks,
        }
    }

    fn logarithmic(least: f64, most: f64) -> Axis {
        let decades = libm::log10(most / least);
        let factors: &[f64] = match decades {
            d if d < 1.2 => &[1.0, 2.0, 3.0, 5.0, 7.0],
            d if d < 3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let (first, last) = (
            libm::log10(least).floor() as i32,
            libm::log10(most).ceil() as i32,
        );
        let each = ((last - first) as usize / TICKS_MAX + 1) as i32;
        let all: Vec<f64> = (first..=last)
            .filter(|power| (power - first) % each == 0)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .collect();
        // From the last tick below to the first one above.
        let below = all
            .iter()
            .rposition(|tick| *tick <= least * 1.000_001)
            .unwrap_or(0);
        let above = all.iter().position(|tick| *tick >= most / 1.000_001);
        let above = above
            .unwrap_or(all.len() - 1)
            .max((below + 1).min(all.len() - 1));
        let ticks = all[below..=above].to_vec();
        Axis {
            least: ticks[0].min(least),
            most: ticks[ticks.len() - 1].max(most),
            log: true,
            ticks,
        }
    }

    /// From 0 to 1, or beyond for what lies beyond; `None`: it has no place.
    pub fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || self.log && value <= 0.0 {
            return None;
        }
        let scale = |value: f64| if self.log { libm::log(value) } else { value };
        let (least, most) = (scale(self.least), scale(self.most));
        let place = (scale(value) - least) / (most - least);
        place.is_finite().then_some(place)
    }

    /// As short as the ticks allow.
    pub fn label(tick: f64) -> String {
        if tick == 0.0 {
            return "0".into();
        }
        let rounded: f64 = format!("{tick:.6e}").parse().expect("a number");
        match rounded.abs() {
            size if (1e-4..1e7).contains(&size) => rounded.to_string(),
            _ => format!("{rounded:e}"),
        }
    }
}

/// 1, 2 or 5 times a power of ten, and no less.
fn nice_step(step: f64) -> f64 {
    let power = libm::pow(10.0, libm::log10(step).floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power >= step * 0.999_999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn axis(values: &[f64], log: bool) -> Axis {
        Axis::of(values.iter().copied(), log, true)
    }

    #[test]
    fn ticks_are_round_numbers_around_all_values() {
        assert_eq!(
            axis(&[1.0, 13.0], false).ticks,
            [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
        );
        assert_eq!(axis(&[998.1, 999.4], false).ticks.first(), Some(&998.0));
        assert_eq!(
            axis(&[1.0, 13.0], true).ticks,
            [1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0]
        );
        assert_eq!(
            axis(&[1e-6, 0.5], true).ticks,
            [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0]
        );
        // Nothing, one value, or none that has a logarithm.
        assert_eq!(axis(&[], false).ticks.len(), 6);
        assert!(axis(&[5.0], false).place(5.0).unwrap() > 0.3);
        assert_eq!(axis(&[0.0, f64::NAN], true).place(0.0), None);
        assert_eq!(Axis::label(0.1 + 0.2), "0.3");
        assert_eq!(Axis::label(2e9), "2e9");
    }

    proptest! {
        #[test]
        fn every_value_has_a_place_within(values in prop::collection::vec(1e-9..1e12_f64, 1..20), log: bool) {
            let axis = axis(&values, log);
            prop_assert!(axis.ticks.len() <= 40, "{axis:?}");
            for value in values {
                let place = axis.place(value).unwrap();
                prop_assert!((-1e-6..=1.000_001).contains(&place), "{value} {axis:?}");
            }
        }
    }
}
