//! Numbers with units as they stand in scenarios: the units of a wire's settings, in the base units
//! that expressions count in.

use std::fmt;

/// What a number is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dimension {
    #[default]
    Number,
    /// Seconds.
    Time,
    /// Bits a second.
    Rate,
    /// Bytes; 1 kb is 1024 of them, as `tc` has it.
    Size,
}

/// Each with the smaller ones behind it.
const TIME_UNITS: [(&str, f64); 6] = [
    ("h", 3600.0),
    ("min", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("ns", 1e-9),
];
const RATE_UNITS: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
const SIZE_UNITS: [(&str, f64); 4] = [
    ("gb", 1_073_741_824.0),
    ("mb", 1_048_576.0),
    ("kb", 1024.0),
    ("b", 1.0),
];

/// Beyond, a number is printed in digits that it does not have.
const DIGITS: usize = 12;

impl Dimension {
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Dimension::Number => &[],
            Dimension::Time => &TIME_UNITS,
            Dimension::Rate => &RATE_UNITS,
            Dimension::Size => &SIZE_UNITS,
        }
    }

    /// As in "a time".
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Number => "number",
            Dimension::Time => "time",
            Dimension::Rate => "rate",
            Dimension::Size => "size",
        }
    }

    pub fn like(self) -> &'static str {
        match self {
            Dimension::Number => "13 or 0.5",
            Dimension::Time => "100ms, 5us or 2s",
            Dimension::Rate => "1gbit or 1.5mbit",
            Dimension::Size => "12.5mb, 256kb or 1500b",
        }
    }

    /// In the unit that says it shortest.
    pub fn print(self, value: f64) -> String {
        let units = self.units();
        let Some(&smallest) = units.last() else {
            return number(value);
        };
        if value == 0.0 {
            let unit = if self == Dimension::Time {
                "s"
            } else {
                smallest.0
            };
            return format!("0{unit}");
        }
        let is_short = |unit: f64| {
            let thousandths = value.abs() / unit * 1e3;
            thousandths >= 1e3
                && (thousandths - thousandths.round()).abs() < 1e-6 * thousandths
                && thousandths.round() % 10.0 == 0.0
        };
        let fits = |unit: f64| value.abs() >= unit;
        let found = units.iter().find(|(_, unit)| is_short(*unit));
        let found = found.or_else(|| units.iter().find(|(_, unit)| fits(*unit)));
        let (name, unit) = *found.unwrap_or(&smallest);
        format!("{}{name}", number(value / unit))
    }
}

/// A number, and what it is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// In base units.
    pub value: f64,
    pub dimension: Dimension,
}

impl Quantity {
    /// `None`: no number, or one of an unknown unit.
    pub fn parse(text: &str) -> Option<Quantity> {
        let text = text.trim().to_ascii_lowercase();
        let end = number_end(&text);
        let (digits, unit) = text.split_at(end);
        let value: f64 = digits.parse().ok()?;
        if unit.is_empty() {
            return Some(Quantity {
                value,
                dimension: Dimension::Number,
            });
        }
        [Dimension::Time, Dimension::Rate, Dimension::Size]
            .into_iter()
            .find_map(|dimension| {
                let known = dimension.units().iter().find(|(name, _)| *name == unit)?;
                Some(Quantity {
                    value: scaled(value, known.1),
                    dimension,
                })
            })
    }

    /// As [`Quantity::parse`]; nothing is nothing in every unit.
    pub fn of(dimension: Dimension, text: &str) -> Option<f64> {
        let quantity = Quantity::parse(text)?;
        let right = quantity.dimension == dimension || quantity.value == 0.0;
        right.then_some(quantity.value)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.dimension.print(self.value))
    }
}

/// 12us is 12 divided by a million, which is nearer to it than 12 times a millionth.
fn scaled(value: f64, unit: f64) -> f64 {
    if unit < 1.0 {
        value / (1.0 / unit).round()
    } else {
        value * unit
    }
}

/// Where the digits end: sign, point and exponent belong to them.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes
            .get(at)
            .is_some_and(|b| b.is_ascii_digit() || *b == b'.')
        {
            at += 1;
        }
        at
    };
    let sign = |at: usize| at + usize::from(matches!(bytes.get(at), Some(b'-' | b'+')));
    let end = digits(sign(0));
    if bytes.get(end) == Some(&b'e') {
        let exponent = sign(end + 1);
        let after = digits(exponent);
        if after > exponent {
            return after;
        }
    }
    end
}

/// Whole ones without a fraction, others with as many digits as a computation leaves right.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return match value {
            v if v.is_nan() => "nan".into(),
            v if v > 0.0 => "inf".into(),
            _ => "-inf".into(),
        };
    }
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{:.0}", value + 0.0);
    }
    let rounded = format!("{value:.*e}", DIGITS - 1);
    let rounded: f64 = rounded.parse().expect("it was printed as a number");
    rounded.to_string()
}

/// With so many digits that count, for people.
pub fn short(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return number(value + 0.0);
    }
    let exponent = libm::log10(value.abs()).floor() as i32;
    if !(-4..9).contains(&exponent) {
        let text = format!("{value:.*e}", digits.saturating_sub(1));
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", without_zeros(mantissa));
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> (f64, Dimension) {
        let quantity = Quantity::parse(text).unwrap();
        (quantity.value, quantity.dimension)
    }

    #[test]
    fn a_unit_says_what_a_number_is_of_and_base_units_are_what_it_becomes() {
        assert_eq!(parsed("100ms"), (0.1, Dimension::Time));
        assert_eq!(parsed("12us"), (12e-6, Dimension::Time));
        assert_eq!(parsed("2min"), (120.0, Dimension::Time));
        assert_eq!(parsed("1gbit"), (1e9, Dimension::Rate));
        assert_eq!(parsed("12.5MB"), (13_107_200.0, Dimension::Size));
        assert_eq!(parsed("-1.5e3"), (-1500.0, Dimension::Number));
        assert_eq!(parsed("1e-6"), (1e-6, Dimension::Number));
        for text in ["", "ms", "1 2", "5p", "1.2.3", "inf", "nan", "1e", "--1"] {
            assert_eq!(Quantity::parse(text), None, "{text:?}");
        }
        assert_eq!(Quantity::of(Dimension::Time, "0"), Some(0.0));
        assert_eq!(Quantity::of(Dimension::Time, "5"), None);
    }

    #[test]
    fn a_quantity_is_printed_in_the_unit_that_says_it_shortest() {
        let prints = [
            (0.1, Dimension::Time, "100ms"),
            (1.5, Dimension::Time, "1.5s"),
            (120.0, Dimension::Time, "2min"),
            (12e-6, Dimension::Time, "12us"),
            (0.0, Dimension::Time, "0s"),
            (1.2e9, Dimension::Rate, "1.2gbit"),
            (12_500_000.0, Dimension::Size, "12500000b"),
            (13_107_200.0, Dimension::Size, "12.5mb"),
            (1.0 / 3.0, Dimension::Time, "333.333333333ms"),
        ];
        for (value, dimension, text) in prints {
            assert_eq!(dimension.print(value), text);
        }
    }

    #[test]
    fn whole_numbers_have_no_fraction_and_others_no_digits_that_are_noise() {
        assert_eq!(number(12_500_000.0), "12500000");
        assert_eq!(number(-0.0), "0");
        assert_eq!(number(0.1 + 0.2), "0.3");
        assert_eq!(number(1e-7), "0.0000001");
        assert_eq!(number(19.0 / 3.0), "6.33333333333");
        assert_eq!(short(1234.567, 4), "1235");
        assert_eq!(short(0.999_96, 4), "1");
        assert_eq!(short(0.012_345_6, 4), "0.01235");
        assert_eq!(short(1.5e-7, 4), "1.5e-7");
        assert_eq!(short(f64::NAN, 4), "nan");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_as_nearly_the_same(value in 1e-9..1e12_f64, which in 0..4) {
            let dimension = [Dimension::Number, Dimension::Time, Dimension::Rate, Dimension::Size];
            let dimension = dimension[which as usize];
            let read = Quantity::of(dimension, &dimension.print(value)).unwrap();
            // A rate or a size below its smallest unit has fewer digits.
            prop_assert!((read - value).abs() <= 1e-9 * value.abs().max(1e-3));
        }
    }
}
