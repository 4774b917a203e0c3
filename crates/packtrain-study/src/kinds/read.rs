//! Values as the sections of a kind have them: numbers within limits, with units, and words.

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table, boolean, parse_scalar, string};
use toml::de::DeValue;

use crate::expression::check_name;
use crate::parameters::Range;
use crate::quantity::{Dimension, Quantity};

/// All tables of a key, without what is wrong in them.
pub fn tables<'a, T>(
    table: &mut Table<'a>,
    key: &'static str,
    errors: &mut Errors<'_>,
    mut read: impl FnMut(&mut Table<'a>, &mut Errors<'_>) -> Option<T>,
) -> Vec<T> {
    table.list(key, errors, |value, errors| {
        let mut table = Table::of(value, key, &format!("[[{key}]]"), errors)?;
        let item = read(&mut table, errors);
        table.refuse_the_rest(errors);
        item
    })
}

/// Within limits, in base units. A number may stand as a text, as it does where an expression stood.
pub fn quantity(
    dimension: Dimension,
    least: f64,
    most: f64,
) -> impl Fn(&DeValue<'_>) -> Result<f64, String> {
    let range = Range {
        dimension,
        least: Some(least),
        most: Some(most),
        whole: false,
    };
    move |value| within(range, value)
}

/// A whole number within limits.
pub fn whole(least: u32, most: u32) -> impl Fn(&DeValue<'_>) -> Result<u32, String> {
    let read = count(least.into(), most.into());
    move |value| read(value).map(|value| value as u32)
}

/// As [`whole`], up to what a floating-point number says exactly.
pub fn count(least: u64, most: u64) -> impl Fn(&DeValue<'_>) -> Result<u64, String> {
    let range = Range {
        least: Some(least as f64),
        most: Some(most as f64),
        whole: true,
        ..Range::default()
    };
    move |value| within(range, value).map(|value| value as u64)
}

/// Bytes, with their unit.
pub fn bytes(least: u64, most: u64) -> impl Fn(&DeValue<'_>) -> Result<u64, String> {
    let read = quantity(Dimension::Size, least as f64, most as f64);
    move |value| read(value).map(|bytes| bytes.round() as u64)
}

/// Where a number without a unit is one of bytes as well.
pub fn plain_bytes(least: u64, most: u64) -> impl Fn(&DeValue<'_>) -> Result<u64, String> {
    let with_unit = bytes(least, most);
    let alone = count(least, most);
    move |value| with_unit(value).or_else(|_| alone(value))
}

/// As [`plain_bytes`], of a packet.
pub fn packet_bytes(least: u32, most: u32) -> impl Fn(&DeValue<'_>) -> Result<u32, String> {
    let read = plain_bytes(least.into(), most.into());
    move |value| read(value).map(|bytes| bytes as u32)
}

/// A day of virtual time.
pub const SECONDS_MAX: f64 = 86_400.0;

/// A time, or a number of seconds.
pub fn seconds(least: f64) -> impl Fn(&DeValue<'_>) -> Result<Duration, String> {
    let time = quantity(Dimension::Time, least, SECONDS_MAX);
    let number = quantity(Dimension::Number, least, SECONDS_MAX);
    move |value| {
        let alone = parse_scalar::<String>(value)?;
        let alone = Quantity::parse(&alone).is_some_and(|q| q.dimension == Dimension::Number);
        let seconds = if alone { number(value) } else { time(value) };
        Ok(Duration::from_nanos((seconds? * 1e9).round() as u64))
    }
}

fn within(range: Range, value: &DeValue<'_>) -> Result<f64, String> {
    let text = parse_scalar::<String>(value)?;
    let read = Quantity::of(range.dimension, &text).filter(|value| range.contains(*value));
    read.ok_or_else(|| format!("{text:?} is not {}", range.words()))
}

/// `none`, or what `read` reads.
pub fn or_none<T>(
    read: impl Fn(&DeValue<'_>) -> Result<T, String>,
) -> impl Fn(&DeValue<'_>) -> Result<Option<T>, String> {
    move |value| match value.as_str() {
        Some("none") => Ok(None),
        _ => read(value).map(Some),
    }
}

/// For a setting that a file need not have.
pub fn some<T>(
    read: impl Fn(&DeValue<'_>) -> Result<T, String>,
) -> impl Fn(&DeValue<'_>) -> Result<Option<T>, String> {
    move |value| read(value).map(Some)
}

/// True or false; or as a text, where an expression stood.
pub fn truth(value: &DeValue<'_>) -> Result<bool, String> {
    match value.as_str() {
        Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        _ => boolean(value),
    }
}

/// One of some words.
pub fn word<T: Copy, const N: usize>(
    words: [(&'static str, T); N],
) -> impl Fn(&DeValue<'_>) -> Result<T, String> {
    move |value| {
        let text = string(value)?;
        let known = words.iter().find(|(word, _)| *word == text);
        known.map(|(_, is)| *is).ok_or_else(|| {
            let known = words.map(|(word, _)| word);
            format!("{text:?} is none of {}", known.join(", "))
        })
    }
}

/// A name that expressions can ask for.
pub fn name(value: &DeValue<'_>) -> Result<String, String> {
    let text = string(value)?;
    check_name(text).map(|()| text.to_owned())
}
