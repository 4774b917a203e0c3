//! What an application says of itself, in values that can be compared: no times, and nothing that chance decides.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Outcome(Map<String, Value>);

impl Outcome {
    pub(super) fn new() -> Outcome {
        Outcome::default()
    }

    pub(super) fn with(mut self, what: &str, value: impl Into<Value>) -> Outcome {
        self.0.insert(what.to_owned(), value.into());
        self
    }

    /// The members of a document.
    pub(super) fn of(document: Map<String, Value>) -> Outcome {
        Outcome(document)
    }

    /// Those of another one as well.
    pub(super) fn and(mut self, other: Outcome) -> Outcome {
        self.0.extend(other.0);
        self
    }
}

/// On one line: `address 10.7.0.105, router 10.7.0.2`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (what, value)) in self.0.iter().enumerate() {
            let between = if number == 0 { "" } else { ", " };
            match value {
                Value::String(text) => write!(f, "{between}{what} {text}")?,
                other => write!(f, "{between}{what} {other}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
