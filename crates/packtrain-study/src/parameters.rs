//! What of a scenario can be set: its parameters, within what they lie, and how a setting is written.

use crate::expression::{Value, near};
use crate::quantity::{Dimension, Quantity, number};

#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub says: String,
    pub default: Value,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Number(Range),
    /// One of these words.
    Choice(Vec<String>),
}

/// Within what a number lies, in base units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    pub dimension: Dimension,
    pub least: Option<f64>,
    pub most: Option<f64>,
    pub whole: bool,
}

/// Why a setting is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("{text:?} sets nothing: write it as in F=13")]
    Syntax { text: String },
    #[error("there is no parameter {name} ({near})")]
    NoParameter { name: String, near: String },
    #[error("{name} is set twice")]
    Twice { name: String },
    #[error("{name}={text}: {name} is {allowed}")]
    NotAllowed {
        name: String,
        text: String,
        allowed: String,
    },
}

impl Range {
    /// As in "a whole number from 1 to 43".
    pub fn words(&self) -> String {
        let kind = match (self.whole, self.dimension) {
            (true, Dimension::Number) => "a whole number".to_owned(),
            (_, dimension) => format!("a {}", dimension.name()),
        };
        let print = |value| self.dimension.print(value);
        match (self.least, self.most) {
            (Some(least), Some(most)) => format!("{kind} from {} to {}", print(least), print(most)),
            (Some(least), None) => format!("{kind} of at least {}", print(least)),
            (None, Some(most)) => format!("{kind} of at most {}", print(most)),
            (None, None) if self.whole && self.dimension == Dimension::Number => {
                format!("{kind}, as in 13")
            }
            (None, None) => format!("{kind}, as in {}", self.dimension.like()),
        }
    }

    pub fn contains(&self, value: f64) -> bool {
        // Steps of a range add up to a little beside its end.
        let slack = |limit: f64| 1e-9 * limit.abs();
        value.is_finite()
            && self.least.is_none_or(|least| value >= least - slack(least))
            && self.most.is_none_or(|most| value <= most + slack(most))
            && !(self.whole && value != value.round())
    }
}

impl Parameter {
    /// As in "a whole number from 1 to 43" or "one of drop-tail, drr".
    pub fn allowed(&self) -> String {
        match &self.kind {
            Kind::Number(range) => range.words(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    pub fn parse(&self, text: &str) -> Result<Value, SettingError> {
        let read = match &self.kind {
            Kind::Number(range) => Quantity::of(range.dimension, text)
                .filter(|value| range.contains(*value))
                .map(Value::Number),
            Kind::Choice(words) => {
                let known = words.iter().find(|word| *word == text);
                known.map(|word| Value::Text(word.clone()))
            }
        };
        read.ok_or_else(|| self.refused(text))
    }

    /// A number in base units, as a range of them has it.
    pub fn check(&self, value: f64) -> Result<Value, SettingError> {
        match &self.kind {
            Kind::Number(range) if range.contains(value) => Ok(Value::Number(value)),
            Kind::Number(range) => Err(self.refused(&range.dimension.print(value))),
            Kind::Choice(_) => Err(self.refused(&number(value))),
        }
    }

    fn refused(&self, text: &str) -> SettingError {
        SettingError::NotAllowed {
            name: self.name.clone(),
            text: text.to_owned(),
            allowed: self.allowed(),
        }
    }

    /// With its unit, as it can be read again.
    pub fn print(&self, value: &Value) -> String {
        match (&self.kind, value) {
            (Kind::Number(range), Value::Number(value)) => range.dimension.print(*value),
            (_, value) => value.to_string(),
        }
    }
}

/// All parameters of a scenario, in the order of its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters(pub Vec<Parameter>);

impl Parameters {
    pub fn get(&self, name: &str) -> Result<&Parameter, SettingError> {
        let found = self.0.iter().find(|parameter| parameter.name == name);
        found.ok_or_else(|| {
            let known: Vec<String> = self.0.iter().map(|p| p.name.clone()).collect();
            SettingError::NoParameter {
                name: name.to_owned(),
                near: match known.is_empty() {
                    true => "the scenario has none".into(),
                    false => near(name, &known),
                },
            }
        })
    }

    pub fn defaults(&self) -> Settings {
        let of = |parameter: &Parameter| (parameter.name.clone(), parameter.default.clone());
        Settings(self.0.iter().map(of).collect())
    }
}

/// A value for each parameter, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(pub Vec<(String, Value)>);

impl Settings {
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    pub fn set(&mut self, name: &str, to: Value) {
        if let Some((_, value)) = self.0.iter_mut().find(|(known, _)| known == name) {
            *value = to;
        }
    }

    /// What `--set` says, one of them `F=13`; each parameter once.
    pub fn apply(&mut self, of: &Parameters, sets: &[String]) -> Result<(), SettingError> {
        let mut seen: Vec<&str> = Vec::new();
        for text in sets {
            let Some((name, value)) = text.split_once('=') else {
                return Err(SettingError::Syntax { text: text.clone() });
            };
            let (name, value) = (name.trim(), value.trim());
            let parameter = of.get(name)?;
            if seen.contains(&name) {
                return Err(SettingError::Twice { name: name.into() });
            }
            seen.push(name);
            self.set(name, parameter.parse(value)?);
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// F, a whole number; rtt, a time; how, a word.
    pub fn three() -> Parameters {
        let number = |name: &str, default, range| Parameter {
            name: name.into(),
            says: String::new(),
            default: Value::Number(default),
            kind: Kind::Number(range),
        };
        let whole = Range {
            least: Some(1.0),
            most: Some(43.0),
            whole: true,
            ..Range::default()
        };
        let time = Range {
            dimension: Dimension::Time,
            least: Some(1e-3),
            ..Range::default()
        };
        Parameters(vec![
            number("F", 13.0, whole),
            number("rtt", 0.1, time),
            Parameter {
                name: "how".into(),
                says: String::new(),
                default: Value::Text("drr".into()),
                kind: Kind::Choice(vec!["drop-tail".into(), "drr".into()]),
            },
        ])
    }

    fn set(texts: &[&str]) -> Result<Settings, String> {
        let mut settings = three().defaults();
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let applied = settings.apply(&three(), &texts);
        applied
            .map(|()| settings)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_setting_takes_the_place_of_the_default() {
        let settings = set(&["F=5", "how=drop-tail", "rtt = 20ms"]).unwrap();
        assert_eq!(settings.get("F"), Some(&Value::Number(5.0)));
        assert_eq!(settings.get("rtt"), Some(&Value::Number(0.02)));
        assert_eq!(settings.get("how"), Some(&Value::Text("drop-tail".into())));
        assert_eq!(set(&[]).unwrap(), three().defaults());
        assert_eq!(three().0[1].print(&Value::Number(0.02)), "20ms");
    }

    #[test]
    fn what_is_not_allowed_is_told_with_what_is() {
        for (text, error) in [
            ("F", "\"F\" sets nothing: write it as in F=13"),
            ("f=5", "there is no parameter f (near it: F)"),
            (
                "capacity=5",
                "there is no parameter capacity (known here: F, rtt, how)",
            ),
            ("F=44", "F=44: F is a whole number from 1 to 43"),
            ("F=2.5", "F=2.5: F is a whole number from 1 to 43"),
            ("F=many", "F=many: F is a whole number from 1 to 43"),
            ("F=5ms", "F=5ms: F is a whole number from 1 to 43"),
            ("rtt=5", "rtt=5: rtt is a time of at least 1ms"),
            ("rtt=0", "rtt=0: rtt is a time of at least 1ms"),
            ("how=red", "how=red: how is one of drop-tail, drr"),
        ] {
            assert_eq!(set(&[text]).unwrap_err(), error);
        }
        assert_eq!(set(&["F=1", "F=2"]).unwrap_err(), "F is set twice");
    }
}
