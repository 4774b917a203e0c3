//! What a filter is asked about its rules and sets, and what it answers.

use serde::Serialize;

use super::rules::{NewRule, Rules, RulesError};
use crate::control::{Request, Response};
use crate::linux::filter::Filter;

pub fn respond(rules: &mut Rules, filter: &mut Filter, request: Request) -> Response {
    match request {
        Request::RuleAdd {
            name,
            verdict,
            matches,
            before,
        } => {
            let new = NewRule {
                name: name.as_deref(),
                verdict: &verdict,
                matches: &matches,
                before: before.as_deref(),
            };
            answer(rules.add(&new, filter), Response::Rule)
        }
        Request::RuleRemove { name } => answer(rules.remove(&name, filter), Response::Rule),
        Request::Rules {} => Response::Rules(json(&rules.texts())),
        Request::RulesLoad { rules: texts } => {
            let read = texts.read().map_err(RulesError::Text);
            let loaded = read.and_then(|now| rules.load(now, filter));
            answer(loaded, Response::RulesLoaded)
        }
        Request::SetChange { name, add, remove } => answer(
            rules.change_set(&name, &add, &remove, filter),
            Response::Set,
        ),
        Request::SetRemove { name } => answer(rules.remove_set(&name, filter), Response::Set),
        _ => Response::Error("this is a receive filter, and no line".into()),
    }
}

fn json(document: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(document).expect("plain JSON")
}

fn answer<T: Serialize>(
    outcome: Result<T, RulesError>,
    response: impl Fn(serde_json::Value) -> Response,
) -> Response {
    let error = match outcome {
        Ok(document) => return response(json(&document)),
        Err(error) => error,
    };
    let has = |what: &str, names: &[String]| match names.is_empty() {
        true => format!("the filter has no {what}"),
        false => format!("the filter has: {}", names.join(", ")),
    };
    let (exit_code, hint) = match &error {
        RulesError::Text(_) | RulesError::Twice(_) => (2, None),
        RulesError::NoSuchRule { rules, .. } => (4, Some(has("rules", rules))),
        RulesError::NoSuchSet { sets, .. } => (4, Some(has("sets", sets))),
        RulesError::NotInSet { .. } => (4, Some("nothing has changed".into())),
        RulesError::SetInUse { .. } => (
            2,
            Some("remove them first, or load a file without them".into()),
        ),
        RulesError::Filter(_) => (1, None),
    };
    Response::Refused {
        exit_code,
        message: error.to_string(),
        hint,
    }
}
