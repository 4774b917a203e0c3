//! What names stand for at a place of a scenario.

use super::OVER;
use crate::expression::{Argument, Names, Value};
use crate::model::names_of;
use crate::parameters::Settings;

type FactOf<'a> = &'a dyn Fn(&str, &[&str]) -> Result<f64, String>;
type OverOf<'a> = &'a dyn Fn(&str, &[Argument<'_>]) -> Option<Result<f64, String>>;

/// What names stand for at a place of a scenario.
pub struct Scope<'a> {
    pub names: Vec<(String, Value)>,
    /// Facts of a run, and what they are called.
    pub facts: Option<(FactOf<'a>, Vec<String>)>,
    /// Functions over a sweep.
    pub over: Option<OverOf<'a>>,
    /// Names that stand for nothing here, and why.
    pub without: Vec<(String, String)>,
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scope({:?})", self.names)
    }
}

impl<'a> Scope<'a> {
    pub fn of(settings: &Settings, lets: &[(String, Value)]) -> Scope<'a> {
        Scope {
            names: settings.0.iter().chain(lets).cloned().collect(),
            facts: None,
            over: None,
            without: Vec::new(),
        }
    }

    /// What has a value at each point has none over all of them.
    pub fn exclude(&mut self, name: &str) {
        self.names.retain(|(known, _)| known != name);
        let message = format!(
            "{name} differs from point to point: say of which, as in mean({name}), first({name}) or \
             at({name}, 13)"
        );
        self.without.push((name.to_owned(), message));
    }
}

impl Names for Scope<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let found = self.names.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }

    fn call(&self, function: &str, arguments: &[Argument<'_>]) -> Option<Result<f64, String>> {
        if let Some(over) = self.over {
            return over(function, arguments);
        }
        let (fact, known) = self.facts.as_ref()?;
        if !known.iter().any(|name| name == function) {
            return None;
        }
        let names = names_of(function, arguments);
        Some(names.and_then(|names| fact(function, &names)))
    }

    fn why_not(&self, name: &str) -> Option<String> {
        let found = self.without.iter().find(|(without, _)| without == name);
        found.map(|(_, why)| why.clone())
    }

    fn known_names(&self) -> Vec<String> {
        self.names.iter().map(|(name, _)| name.clone()).collect()
    }

    fn known_functions(&self) -> Vec<String> {
        match (&self.facts, self.over) {
            (_, Some(_)) => OVER.map(str::to_owned).into(),
            (Some((_, known)), _) => known.clone(),
            _ => Vec::new(),
        }
    }
}
