//! What an application says of itself, in values that can be compared: no times, and nothing that chance decides.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Outcome {
    values: Map<String, Value>,
    /// What is not as it has to be for the application to have worked at all.
    #[serde(skip)]
    wrong: Vec<String>,
}

impl Outcome {
    pub(super) fn new() -> Outcome {
        Outcome::default()
    }

    /// A value that says nothing by itself.
    pub(super) fn with(mut self, what: &str, value: impl Into<Value>) -> Outcome {
        self.values.insert(what.to_owned(), value.into());
        self
    }

    /// One that is right when it is this.
    pub(super) fn wanted(
        self,
        what: &str,
        value: impl Into<Value>,
        right: impl Into<Value>,
    ) -> Outcome {
        let (value, right) = (value.into(), right.into());
        let is_right = value == right;
        let mut outcome = self.with(what, value);
        if !is_right {
            outcome.wrong.push(format!("{what} should be {right}"));
        }
        outcome
    }

    /// The members of a document.
    pub(super) fn of(document: Map<String, Value>) -> Outcome {
        Outcome {
            values: document,
            wrong: Vec::new(),
        }
    }

    /// Those of another one as well.
    pub(super) fn and(mut self, other: Outcome) -> Outcome {
        self.values.extend(other.values);
        self.wrong.extend(other.wrong);
        self
    }

    /// Each value under another name, so that it can stand beside others of the kind.
    pub(super) fn called(self, name: &str) -> Outcome {
        let values = self.values.into_iter();
        let values = values.map(|(what, value)| (format!("{name}, {what}"), value));
        Outcome {
            values: values.collect(),
            wrong: self.wrong,
        }
    }

    /// Of a document that a script has made: this one is right when it is that.
    pub(super) fn is(mut self, what: &str, right: impl Into<Value>) -> Outcome {
        let value = self.values.remove(what).unwrap_or_default();
        self.wanted(what, value, right)
    }

    pub(super) fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// On one line: `address 10.7.0.105, router 10.7.0.2`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (what, value)) in self.values.iter().enumerate() {
            let between = if number == 0 { "" } else { ", " };
            match value {
                Value::String(text) => write!(f, "{between}{what} {text}")?,
                other => write!(f, "{between}{what} {other}")?,
            }
        }
        for wrong in &self.wrong {
            write!(f, "; {wrong}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_it_should_be_is_told() {
        let outcome = |pings| Outcome::new().wanted("pings", pings, 3);
        assert!(outcome(3).is_right() && !outcome(2).is_right());
        assert_eq!(outcome(2).to_string(), "pings 2; pings should be 3");
        assert!(!outcome(2).and(Outcome::new()).is_right());
        let document = serde_json::json!({ "frames": 7 });
        let document = document.as_object().unwrap().clone();
        assert!(Outcome::of(document.clone()).is("frames", 7).is_right());
        assert!(!Outcome::of(document).is("others", 1).is_right());
    }

    #[test]
    fn it_is_read_on_one_line() {
        let outcome = Outcome::new()
            .with("address", "10.7.0.105")
            .with("pings", 3)
            .with("routers", vec!["a", "b"]);
        assert_eq!(
            outcome.to_string(),
            r#"address 10.7.0.105, pings 3, routers ["a","b"]"#
        );
    }
}
