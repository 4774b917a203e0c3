//! What the kinds have in common of which a scenario has one thing alone: their facts are of nothing that has a name, as in
//! `ratio()`, and nothing is looked at while they run.

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table};

use crate::expression::near;
use crate::model::{Facts, Outcome};

/// The kind's section.
pub fn section<'a>(
    table: &mut Table<'a>,
    key: &'static str,
    errors: &mut Errors<'_>,
) -> Option<Table<'a>> {
    let like = format!("[{key}]");
    let Some(value) = table.get(key) else {
        let message = format!("is missing: {like} says what is run");
        table.refuse(Some(key), message, errors);
        return None;
    };
    Table::of(value, key, &like, errors)
}

/// What is left of a run's time after what is ignored.
pub fn counted(
    table: &Table<'_>,
    length: Duration,
    ignore: Duration,
    errors: &mut Errors<'_>,
) -> Option<Duration> {
    if length > ignore {
        return Some(length - ignore);
    }
    let message = format!(
        "{} s of {} s: nothing is left to be counted",
        ignore.as_secs_f64(),
        length.as_secs_f64()
    );
    table.refuse(Some("ignore"), message, errors);
    None
}

pub fn knows_fact(known: &[&str], fact: &str, of: &[&str]) -> Result<(), String> {
    if !known.contains(&fact) {
        let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        return Err(format!("there is no fact {fact} ({})", near(fact, &known)));
    }
    match of.is_empty() {
        true => Ok(()),
        false => Err(format!("{fact} is of nothing that has a name: {fact}()")),
    }
}

pub fn no_series(name: &str) -> Result<(), String> {
    Err(format!(
        "there is no series {name}: nothing here is looked at over time"
    ))
}

/// One of each.
pub fn outcome(facts: &[(&str, f64)], events: u64) -> Outcome {
    let mut outcome = Outcome {
        facts: Facts::default(),
        events,
        ..Outcome::default()
    };
    for (fact, value) in facts {
        outcome.facts.set(fact, &[], *value);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_without_names_is_asked_for_without_names() {
        let known = |fact, of: &[&str]| knows_fact(&["ratio", "flows"], fact, of);
        assert_eq!(known("ratio", &[]), Ok(()));
        assert_eq!(
            known("ratios", &[]).unwrap_err(),
            "there is no fact ratios (near it: ratio)"
        );
        assert_eq!(
            known("ratio", &["xl"]).unwrap_err(),
            "ratio is of nothing that has a name: ratio()"
        );
        assert_eq!(
            outcome(&[("ratio", 0.5)], 7).facts.get("ratio", &[]),
            Ok(0.5)
        );
    }
}
