//! What of a scenario's file is the same in every run.

pub mod settable;

use std::collections::BTreeSet;
use std::path::Path;

use packtrain_settings::toml_reader::{
    self, Errors, FileError, FileErrors, Table, string, wrong_type,
};
use toml::Spanned;
use toml::de::DeValue;

use self::settable::{parameters, quick, sweep};
use super::{Expect, Let, Plot, Reported, Scenario, ValueSpec, X};
use crate::expression::{Expression, check_name, near};
use crate::kinds::read::tables;
use crate::model::SIZE;
use crate::parameters::Parameters;
use crate::quantity::Quantity;

/// A column of the results beside those of parameters and values.
pub const SEED: &str = "seed";

/// What every kind has: read here, with its expressions.
pub const COMMON: [&str; 13] = [
    "title",
    "kind",
    "paper",
    "shows",
    "assumes",
    "parameters",
    "quick",
    "sweep",
    "let",
    "value",
    "plot",
    "reported",
    "expect",
];

/// The scenario as far as it could be read, and what is wrong; an error where nothing could be.
pub fn read(path: &Path, text: &str) -> Result<(Scenario, Vec<FileError>), FileErrors> {
    let mut found = None;
    let result = toml_reader::read(path, text, |table, errors| {
        found = Some(scenario(path, text, table, errors));
        Some(())
    });
    match (result, found) {
        (Ok(()), Some(scenario)) => Ok((scenario, Vec::new())),
        (Err(errors), Some(scenario)) => Ok((scenario, errors.0)),
        (Err(errors), None) => Err(errors),
        (Ok(()), None) => unreachable!("it was read"),
    }
}

fn scenario<'a>(
    path: &Path,
    text: &str,
    table: &mut Table<'a>,
    errors: &mut Errors<'_>,
) -> Scenario {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let title = table.required("title", errors, |v| string(v).map(str::to_owned));
    let mut kind = crate::kinds::DEFAULT.to_owned();
    table.optional("kind", errors, &mut kind, kind_of);
    let mut paper = None;
    table.optional("paper", errors, &mut paper, some_text);
    let shows = words(table, "shows", errors);
    let assumes = table.list("assumes", errors, |value, errors| {
        let text = string(value.get_ref()).map(str::to_owned);
        errors.take(value.span(), "assumes", text)
    });
    let mut names = BTreeSet::new();
    let parameters = parameters(table, &mut names, errors);
    let quick = quick(table, &parameters, errors);
    let sweep = sweep(table, &parameters, errors);
    let lets = lets(table, &mut names, errors);
    let values = tables(table, "value", errors, |table, errors| {
        value(table, &mut names, errors)
    });
    let plots = tables(table, "plot", errors, |table, errors| {
        plot(table, &parameters, &values, errors)
    });
    let known: Vec<String> = values.iter().map(|value| value.name.clone()).collect();
    let reported = tables(table, "reported", errors, |table, errors| {
        reported(table, &known, errors)
    });
    let expects = tables(table, "expect", errors, |table, errors| {
        expect(table, &parameters, errors)
    });
    Scenario {
        name: name.into_owned(),
        path: path.to_owned(),
        directory: None,
        read_capture: None,
        text: text.to_owned(),
        title: title.unwrap_or_default(),
        kind,
        paper,
        shows,
        assumes,
        parameters,
        quick,
        sweep,
        lets,
        values,
        plots,
        reported,
        expects,
    }
}

fn some_text(value: &DeValue<'_>) -> Result<Option<String>, String> {
    string(value).map(|text| Some(text.to_owned()))
}

fn kind_of(value: &DeValue<'_>) -> Result<String, String> {
    let kind = string(value)?;
    let known = crate::kinds::NAMES;
    match known.contains(&kind) {
        true => Ok(kind.to_owned()),
        false => Err(format!(
            "there is no kind {kind}; there are {}",
            known.join(", ")
        )),
    }
}

/// A text, or nothing; without the spaces that a file breaks its lines with.
fn words(table: &mut Table<'_>, key: &'static str, errors: &mut Errors<'_>) -> String {
    let mut text = String::new();
    table.optional(key, errors, &mut text, |v| string(v).map(str::to_owned));
    let paragraphs = text.split("\n\n");
    let joined = paragraphs.map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    joined.collect::<Vec<_>>().join("\n\n")
}

/// Named tables or values, in the order of the file.
fn named<'a>(
    table: &mut Table<'a>,
    key: &'static str,
    like: &str,
    names: &mut BTreeSet<String>,
    errors: &mut Errors<'_>,
) -> Vec<(&'a str, &'a Spanned<DeValue<'a>>, usize)> {
    let Some(value) = table.get(key) else {
        return Vec::new();
    };
    let Some(inner) = Table::of(value, key, like, errors) else {
        return Vec::new();
    };
    let mut entries: Vec<_> = inner.entries().collect();
    entries.sort_by_key(|(_, span, _)| span.start);
    let mut found = Vec::new();
    for (name, span, value) in entries {
        let key = format!("{key}.{name}");
        if let Some(()) = errors.take(span.clone(), &key, new_name(name, names)) {
            found.push((name, value, errors.line_of(&span)));
        }
    }
    found
}

fn new_name(name: &str, names: &mut BTreeSet<String>) -> Result<(), String> {
    check_name(name)?;
    if name == SEED {
        return Err(format!("{name} is what the column of seeds is called"));
    }
    match names.insert(name.to_owned()) {
        true => Ok(()),
        false => Err(format!("{name} is the name of something else already")),
    }
}

fn unread_expression() -> Expression {
    Expression::parse("1").expect("it is a number")
}

/// A number or a text, as a text.
fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    toml_reader::parse_scalar::<String>(value).or_else(|error| match value.as_bool() {
        Some(truth) => Ok(u8::from(truth).to_string()),
        None => Err(error),
    })
}

fn texts(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let like = || wrong_type("a list of texts, as in [\"drop-tail\", \"drr\"]", value);
    let array = value.as_array().ok_or_else(like)?;
    let texts = array
        .iter()
        .map(|item| string(item.get_ref()).map(str::to_owned));
    texts.collect()
}

fn expression(value: &DeValue<'_>) -> Result<Expression, String> {
    Expression::parse(&scalar(value)?).map_err(|error| error.to_string())
}

fn lets(table: &mut Table<'_>, names: &mut BTreeSet<String>, errors: &mut Errors<'_>) -> Vec<Let> {
    let mut lets = Vec::new();
    for (name, value, line) in named(table, "let", "[let]", names, errors) {
        let read = expression(value.get_ref());
        let read = errors.take(value.span(), &format!("let.{name}"), read);
        lets.push(Let {
            name: name.to_owned(),
            is: read.unwrap_or_else(unread_expression),
            line,
        });
    }
    lets
}

fn line_of(table: &Table<'_>, key: &str, errors: &Errors<'_>) -> usize {
    errors.line_of(&table.span_of(key))
}

fn value(
    table: &mut Table<'_>,
    names: &mut BTreeSet<String>,
    errors: &mut Errors<'_>,
) -> Option<ValueSpec> {
    let name = table.required("name", errors, |v| string(v).map(str::to_owned));
    let is = table.required("is", errors, expression);
    let unit = words(table, "unit", errors);
    let says = words(table, "says", errors);
    let name = name?;
    if let Err(message) = new_name(&name, names) {
        table.refuse(Some("name"), message, errors);
    }
    Some(ValueSpec {
        name,
        is: is.unwrap_or_else(unread_expression),
        unit,
        says,
        line: line_of(table, "is", errors),
    })
}

fn plot(
    table: &mut Table<'_>,
    parameters: &Parameters,
    values: &[ValueSpec],
    errors: &mut Errors<'_>,
) -> Option<Plot> {
    let title = table.required("title", errors, |v| string(v).map(str::to_owned));
    let x = table.required("x", errors, |v| {
        let x = string(v)?;
        match x {
            "time" => Ok(X::Time),
            name => match parameters.get(name) {
                Ok(_) => Ok(X::Parameter(name.to_owned())),
                Err(_) if name == SIZE => Ok(X::Size),
                Err(error) => Err(format!("time, {SIZE}, or a parameter: {error}")),
            },
        }
    });
    let of_one_run = matches!(x, Some(X::Time | X::Size));
    let known: Vec<String> = values.iter().map(|value| value.name.clone()).collect();
    let y = table.required("y", errors, |v| {
        let names = match v {
            DeValue::String(text) => vec![text.to_string()],
            _ => texts(v)?,
        };
        match names
            .iter()
            .find(|name| !of_one_run && !known.contains(name))
        {
            _ if names.is_empty() => Err("at least one".into()),
            Some(unknown) => Err(no_value(unknown, &known)),
            None => Ok(names),
        }
    });
    let mut log = (false, false);
    table.optional("log", errors, &mut log, |v| match string(v)? {
        "x" => Ok((true, false)),
        "y" => Ok((false, true)),
        "xy" => Ok((true, true)),
        other => Err(format!("{other:?} is none of x, y, xy")),
    });
    let mut paper = None;
    table.optional("paper", errors, &mut paper, some_text);
    Some(Plot {
        title: title?,
        x: x?,
        y: y?,
        log_x: log.0,
        log_y: log.1,
        paper,
        line: line_of(table, "y", errors),
    })
}

/// What a paper reports.
fn reported(table: &mut Table<'_>, known: &[String], errors: &mut Errors<'_>) -> Option<Reported> {
    let value = table.required("value", errors, |v| {
        let name = string(v)?;
        match known.iter().any(|value| value == name) {
            true => Ok(name.to_owned()),
            false => Err(no_value(name, known)),
        }
    });
    let points = table.required("points", errors, points);
    Some(Reported {
        value: value?,
        points: points?,
    })
}

fn no_value(name: &str, known: &[String]) -> String {
    format!("there is no value {name} ({})", near(name, known))
}

fn points(value: &DeValue<'_>) -> Result<Vec<(f64, f64)>, String> {
    let like = || wrong_type("pairs of numbers, as in [[13, 169]]", value);
    let number = |value: &Spanned<DeValue<'_>>| {
        let text = scalar(value.get_ref()).map_err(|_| like())?;
        Quantity::parse(&text)
            .map(|quantity| quantity.value)
            .ok_or_else(like)
    };
    let array = value.as_array().ok_or_else(like)?;
    let mut points = Vec::new();
    for pair in array.iter() {
        match pair.get_ref().as_array().map(|pair| &**pair) {
            Some([x, y]) => points.push((number(x)?, number(y)?)),
            _ => return Err(like()),
        }
    }
    Ok(points)
}

fn expect(
    table: &mut Table<'_>,
    parameters: &Parameters,
    errors: &mut Errors<'_>,
) -> Option<Expect> {
    let says = table.required("says", errors, |v| string(v).map(str::to_owned));
    let that = table.required("that", errors, expression);
    let mut quick = None;
    table.optional("quick", errors, &mut quick, |v| expression(v).map(Some));
    let mut over = None;
    table.optional("over", errors, &mut over, |v| {
        let name = string(v)?;
        parameters.get(name).map_err(|error| error.to_string())?;
        Ok(Some(name.to_owned()))
    });
    Some(Expect {
        says: says?,
        that: that?,
        quick,
        over,
        line: line_of(table, "that", errors),
        quick_line: line_of(table, "quick", errors),
    })
}
