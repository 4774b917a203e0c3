//! What of a scenario can be set and varied: its parameters, its quick form and its sweep.

use std::collections::BTreeSet;

use packtrain_settings::toml_reader::{self, Errors, Table, boolean, wrong_type};
use toml::de::DeValue;

use super::super::SweepPlan;
use super::{named, scalar, texts, words};
use crate::expression::Value;
use crate::parameters::{Kind, Parameter, Parameters, Range};
use crate::quantity::Quantity;
use crate::vary::Vary;

/// Of a point.
pub const SEEDS_MAX: u32 = 10_000;

pub fn parameters(
    table: &mut Table<'_>,
    names: &mut BTreeSet<String>,
    errors: &mut Errors<'_>,
) -> Parameters {
    let mut parameters = Parameters::default();
    for (name, value, _) in named(table, "parameters", "[parameters.F]", names, errors) {
        let key = format!("parameters.{name}");
        let Some(mut table) = Table::of(value, &key, "[parameters.F]", errors) else {
            continue;
        };
        let read = parameter(name, &mut table, errors);
        parameters.0.push(read.unwrap_or_else(|| unread(name)));
        table.refuse_the_rest(errors);
    }
    parameters
}

/// In place of one that could not be read, so that whoever uses it is not wrong as well.
fn unread(name: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        says: String::new(),
        default: Value::Number(1.0),
        kind: Kind::Number(Range::default()),
    }
}

fn parameter(name: &str, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Parameter> {
    let says = words(table, "says", errors);
    let mut one_of = Vec::new();
    table.optional("one_of", errors, &mut one_of, texts);
    let default = table.required("default", errors, scalar);
    let mut limits = [None, None];
    let [least, most] = &mut limits;
    table.optional("least", errors, least, |value| scalar(value).map(Some));
    table.optional("most", errors, most, |value| scalar(value).map(Some));
    let mut whole = false;
    table.optional("whole", errors, &mut whole, boolean);
    if !one_of.is_empty() {
        let bounds = [
            ("least", limits[0].is_some()),
            ("most", limits[1].is_some()),
            ("whole", whole),
        ];
        for (key, _) in bounds.into_iter().filter(|(_, is_said)| *is_said) {
            let message = "it is one of some words, and no number".to_owned();
            table.refuse(Some(key), message, errors);
        }
    }
    let default = default?;
    let kind = match one_of.is_empty() {
        false => Kind::Choice(one_of),
        true => {
            let Some(quantity) = Quantity::parse(&default) else {
                let message = format!(
                    "{default:?} is no number: write it as in 13, \"100ms\", \"1gbit\" or \"12.5mb\", or say one_of"
                );
                table.refuse(Some("default"), message, errors);
                return None;
            };
            let dimension = quantity.dimension;
            let keys = ["least", "most"];
            let [least, most] = [0, 1].map(|i| {
                let text = limits[i].as_ref()?;
                let value = Quantity::of(dimension, text);
                if value.is_none() {
                    let message = format!(
                        "{text:?} is no {}, as the default is: write it as in {}",
                        dimension.name(),
                        dimension.like()
                    );
                    table.refuse(Some(keys[i]), message, errors);
                }
                value
            });
            if let (Some(low), Some(high)) = (least, most)
                && low > high
            {
                let message = format!(
                    "{} is above {}",
                    dimension.print(low),
                    dimension.print(high)
                );
                table.refuse(Some("least"), message, errors);
            }
            Kind::Number(Range {
                dimension,
                least,
                most,
                whole,
            })
        }
    };
    let mut parameter = Parameter {
        name: name.to_owned(),
        says,
        default: Value::Number(1.0),
        kind,
    };
    match parameter.parse(&default) {
        Ok(value) => parameter.default = value,
        Err(error) => {
            table.refuse(Some("default"), error.to_string(), errors);
            // Something that is allowed, so that whoever uses it is not wrong as well.
            parameter.default = match &parameter.kind {
                Kind::Number(range) => Value::Number(range.least.or(range.most).unwrap_or(1.0)),
                Kind::Choice(words) => Value::Text(words[0].clone()),
            };
        }
    }
    Some(parameter)
}

pub fn quick(
    table: &mut Table<'_>,
    parameters: &Parameters,
    errors: &mut Errors<'_>,
) -> Vec<(String, Value)> {
    let Some(value) = table.get("quick") else {
        return Vec::new();
    };
    let Some(inner) = Table::of(value, "quick", "[quick]", errors) else {
        return Vec::new();
    };
    let mut quick = Vec::new();
    for (name, span, value) in inner.entries() {
        let read = scalar(value.get_ref()).and_then(|text| {
            let parameter = parameters.get(name).map_err(|error| error.to_string())?;
            parameter.parse(&text).map_err(|error| error.to_string())
        });
        let read = errors.take(span, &format!("quick.{name}"), read);
        quick.extend(read.map(|value| (name.to_owned(), value)));
    }
    quick
}

pub fn sweep(table: &mut Table<'_>, parameters: &Parameters, errors: &mut Errors<'_>) -> SweepPlan {
    let mut plan = SweepPlan {
        vary: Vec::new(),
        seeds: 1,
        quick_vary: None,
        quick_seeds: None,
    };
    let Some(value) = table.get("sweep") else {
        return plan;
    };
    let Some(mut table) = Table::of(value, "sweep", "[sweep]", errors) else {
        return plan;
    };
    let vary = |value: &DeValue<'_>| {
        let list = match value {
            DeValue::String(text) => vec![text.to_string()],
            DeValue::Array(_) => texts(value)?,
            other => return Err(wrong_type("\"F=1..13\" or a list of such", other)),
        };
        let read = list.iter().map(|text| Vary::parse(text, parameters));
        read.collect::<Result<Vec<Vary>, _>>()
            .map_err(|error| error.to_string())
    };
    let seeds = |value: &DeValue<'_>| {
        let seeds = toml_reader::integer(value)?;
        let right = (1..=SEEDS_MAX).contains(&seeds);
        right
            .then_some(seeds)
            .ok_or_else(|| format!("{seeds} is not within 1 to {SEEDS_MAX}"))
    };
    table.optional("vary", errors, &mut plan.vary, vary);
    table.optional("seeds", errors, &mut plan.seeds, seeds);
    table.optional("quick_vary", errors, &mut plan.quick_vary, |v| {
        vary(v).map(Some)
    });
    table.optional("quick_seeds", errors, &mut plan.quick_seeds, |v| {
        seeds(v).map(Some)
    });
    table.refuse_the_rest(errors);
    plan
}
