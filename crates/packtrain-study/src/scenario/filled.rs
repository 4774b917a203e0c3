//! The file with numbers in place of its expressions, read as its kind.

use packtrain_settings::toml_reader::{Errors, FileErrors, read_changed};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::{Scenario, Scope, file};
use crate::expression::{Value, check_name};
use crate::kinds::{self, Place};
use crate::model::Model;
use crate::parameters::Settings;
use crate::template::{expand, has_expressions};

/// Tables of an `each`: more are a mistake.
const EACH_MAX: usize = 1000;

pub fn read(scenario: &Scenario, scope: &Scope<'_>) -> Result<Box<dyn Model>, FileErrors> {
    read_changed(
        &scenario.path,
        &scenario.text,
        |root, errors| fill(root, scope, errors),
        |table, errors| {
            file::COMMON.iter().for_each(|key| {
                table.get(key);
            });
            let place = Place {
                directory: scenario.directory.as_deref(),
            };
            let model = kinds::read(&scenario.kind, table, place, errors);
            table.refuse_the_rest(errors);
            model
        },
    )
}

/// All but what is read with its expressions.
fn fill(root: &mut DeTable<'_>, scope: &Scope<'_>, errors: &mut Errors<'_>) {
    for (key, value) in root.iter_mut() {
        if file::COMMON.contains(&key.get_ref().as_ref()) {
            continue;
        }
        if let DeValue::Array(tables) = value.get_mut() {
            repeat(tables, key.get_ref(), scope, errors);
        }
        fill_value(value, key.get_ref(), scope, errors);
    }
}

fn fill_value(
    value: &mut Spanned<DeValue<'_>>,
    key: &str,
    scope: &Scope<'_>,
    errors: &mut Errors<'_>,
) {
    let span = value.span();
    match value.get_mut() {
        DeValue::String(text) if has_expressions(text) => match expand(text, scope) {
            Ok(expanded) => *text = expanded.into(),
            Err(error) => errors.add(span, Some(key.into()), error.to_string()),
        },
        DeValue::Array(items) => {
            for item in items.iter_mut() {
                fill_value(item, key, scope, errors);
            }
        }
        DeValue::Table(table) => {
            for (name, value) in table.iter_mut() {
                fill_value(value, &format!("{key}.{}", name.get_ref()), scope, errors);
            }
        }
        _ => {}
    }
}

/// `each = "i=1..25"` stands for so many tables, with i in their expressions.
fn repeat(tables: &mut DeArray<'_>, key: &str, scope: &Scope<'_>, errors: &mut Errors<'_>) {
    let is_repeated = |value: &Spanned<DeValue<'_>>| {
        let table = value.get_ref().as_table();
        table.is_some_and(|table| table.contains_key("each"))
    };
    if !tables.iter().any(is_repeated) {
        return;
    }
    let mut all = DeArray::new();
    for mut value in std::mem::replace(tables, DeArray::new()) {
        let each = match value.get_mut() {
            DeValue::Table(table) => table.remove("each"),
            _ => None,
        };
        let Some(each) = each else {
            all.push(value);
            continue;
        };
        let range = each_of(each.get_ref(), scope);
        match range {
            Ok((name, numbers)) => {
                for number in numbers {
                    let mut inner = Scope::of(&Settings::default(), &scope.names);
                    let number = Value::Number(number as f64);
                    inner.names.insert(0, (name.clone(), number));
                    let mut copy = value.clone();
                    fill_value(&mut copy, key, &inner, errors);
                    all.push(copy);
                }
            }
            Err(message) => errors.add(each.span(), Some(format!("{key}.each")), message),
        }
    }
    *tables = all;
}

fn each_of(
    value: &DeValue<'_>,
    scope: &Scope<'_>,
) -> Result<(String, std::ops::RangeInclusive<i64>), String> {
    let like = || "write it as in each = \"i=1..25\", and use i in its expressions".to_owned();
    let text = value.as_str().ok_or_else(like)?;
    let text = expand(text, scope).map_err(|error| error.to_string())?;
    let (name, range) = text.split_once('=').ok_or_else(like)?;
    let (from, to) = range.split_once("..").ok_or_else(like)?;
    check_name(name.trim())?;
    let [from, to] = [from, to].map(|number| number.trim().parse::<i64>());
    let (from, to) = (from.map_err(|_| like())?, to.map_err(|_| like())?);
    let most = EACH_MAX as i64;
    match to.checked_sub(from) {
        Some(steps) if steps < most => Ok((name.trim().to_owned(), from..=to)),
        _ => Err(format!("{text}: more than {EACH_MAX} of them")),
    }
}
