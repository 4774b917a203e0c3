//! A scenario: what is simulated, with which parameters, what is reported of it and what is expected.
//!
//! A file is read twice. Once for what is the same in every run: its parameters, its expressions, what is
//! drawn and expected ([`Scenario::read`]). And once for each setting of the parameters, when every
//! `${expression}` in it is a number and its kind can be read ([`Scenario::prepare`]).

mod file;
mod filled;
mod scope;

use std::path::{Path, PathBuf};

pub use file::settable::SEEDS_MAX;

use packtrain_settings::toml_reader::{FileError, FileErrors};

pub use self::scope::Scope;
use crate::expression::{Argument, Expression, Names as _, Value};
use crate::kinds::ReadCapture;
use crate::model::{Model, POWER_OF_SIZE};
use crate::parameters::{Kind, Parameters, SettingError, Settings};
use crate::vary::{Vary, VaryError};

pub struct Scenario {
    /// Of the file, without its ending.
    pub name: String,
    pub path: PathBuf,
    /// What it names stands there; `None`: it is built in.
    pub directory: Option<PathBuf>,
    /// Who reads the captures that it names.
    pub read_capture: Option<ReadCapture>,
    pub text: String,
    pub title: String,
    pub kind: String,
    /// What of a paper it stands beside.
    pub paper: Option<String>,
    pub shows: String,
    pub assumes: Vec<String>,
    pub parameters: Parameters,
    /// What the quick form sets.
    pub quick: Vec<(String, Value)>,
    pub sweep: SweepPlan,
    pub lets: Vec<Let>,
    pub values: Vec<ValueSpec>,
    pub plots: Vec<Plot>,
    /// What a paper reports.
    pub reported: Vec<Reported>,
    pub expects: Vec<Expect>,
}

/// What a sweep does that is not told what to.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPlan {
    pub vary: Vec<Vary>,
    pub seeds: u32,
    /// Of the quick form, where it is another.
    pub quick_vary: Option<Vec<Vary>>,
    pub quick_seeds: Option<u32>,
}

/// A named value, which may use parameters and those above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    pub name: String,
    pub is: Expression,
    line: usize,
}

/// What is reported.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSpec {
    pub name: String,
    pub is: Expression,
    pub unit: String,
    pub says: String,
    line: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    pub title: String,
    pub x: X,
    /// Values; series where `x` is the time; facts of flows where it is the size.
    pub y: Vec<String>,
    pub log_x: bool,
    pub log_y: bool,
    /// What of a paper's figure it stands beside.
    pub paper: Option<String>,
    line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum X {
    /// Of one run.
    Time,
    /// Of one run, over its flows: the size of their data units.
    Size,
    /// Over the points of a sweep.
    Parameter(String),
}

/// Numbers of a paper, to be drawn beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    pub value: String,
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    pub says: String,
    pub that: Expression,
    /// Where the quick form needs another.
    pub quick: Option<Expression>,
    /// Of a sweep over this parameter; else at each point.
    pub over: Option<String>,
    line: usize,
    quick_line: usize,
}

impl Expect {
    pub fn that(&self, quick: bool) -> &Expression {
        match &self.quick {
            Some(other) if quick => other,
            _ => &self.that,
        }
    }
}

/// A scenario at one setting of its parameters.
pub struct Prepared {
    pub settings: Settings,
    pub lets: Vec<(String, Value)>,
    pub model: Box<dyn Model>,
}

/// Functions of expressions over a sweep: of a value at all points.
pub const OVER: [&str; 10] = [
    "slope", "first", "last", "least", "most", "mean", "middle", "argmax", "rises", "at",
];

impl Scenario {
    /// Reads it, and looks whether its kind can be read with the defaults: all mistakes at once.
    pub fn read(path: &Path, text: &str) -> Result<Scenario, FileErrors> {
        Scenario::read_beside(path, path.parent(), None, text)
    }

    /// As [`Scenario::read`], and captures that it names are read by `read_capture`.
    pub fn read_with_captures(
        path: &Path,
        text: &str,
        read_capture: ReadCapture,
    ) -> Result<Scenario, FileErrors> {
        Scenario::read_beside(path, path.parent(), Some(read_capture), text)
    }

    /// One that is no file here.
    pub fn built_in(name: &str, text: &str) -> Result<Scenario, FileErrors> {
        Scenario::read_beside(Path::new(&format!("{name}.toml")), None, None, text)
    }

    fn read_beside(
        path: &Path,
        directory: Option<&Path>,
        read_capture: Option<ReadCapture>,
        text: &str,
    ) -> Result<Scenario, FileErrors> {
        let (mut scenario, mut errors) = file::read(path, text)?;
        scenario.directory = directory.map(Path::to_owned);
        scenario.read_capture = read_capture;
        let defaults = scenario.parameters.defaults();
        match scenario.prepare(&defaults) {
            Ok(_) if errors.is_empty() => return Ok(scenario),
            Ok(_) => {}
            Err(more) => errors.extend(more.0),
        }
        errors.sort_by_key(|error| error.line);
        Err(once(errors))
    }

    /// The settings with what the quick form sets, and what somebody sets above that.
    pub fn settings(&self, quick: bool, sets: &[String]) -> Result<Settings, SettingError> {
        let mut settings = self.parameters.defaults();
        if quick {
            for (name, value) in &self.quick {
                settings.set(name, value.clone());
            }
        }
        settings.apply(&self.parameters, sets)?;
        Ok(settings)
    }

    /// What is varied: as asked, or as the file has it.
    pub fn varied(&self, quick: bool, asked: &[String]) -> Result<Vec<Vary>, VaryError> {
        if !asked.is_empty() {
            let read = asked.iter().map(|text| Vary::parse(text, &self.parameters));
            return read.collect();
        }
        Ok(match &self.sweep.quick_vary {
            Some(vary) if quick => vary.clone(),
            _ => self.sweep.vary.clone(),
        })
    }

    pub fn seeds(&self, quick: bool) -> u32 {
        match self.sweep.quick_seeds {
            Some(seeds) if quick => seeds,
            _ => self.sweep.seeds,
        }
    }

    /// As it is at these settings, ready to be run.
    pub fn prepare(&self, settings: &Settings) -> Result<Prepared, FileErrors> {
        let lets = self.lets(settings)?;
        let scope = Scope::of(settings, &lets);
        let model = filled::read(self, &scope).map_err(|errors| once(errors.0))?;
        let errors = self.check(settings, &lets, model.as_ref());
        if !errors.is_empty() {
            return Err(FileErrors(errors));
        }
        Ok(Prepared {
            settings: settings.clone(),
            lets,
            model,
        })
    }

    fn lets(&self, settings: &Settings) -> Result<Vec<(String, Value)>, FileErrors> {
        let mut lets: Vec<(String, Value)> = Vec::new();
        let mut errors = Vec::new();
        for (i, of) in self.lets.iter().enumerate() {
            let mut scope = Scope::of(settings, &lets);
            for later in &self.lets[i..] {
                let name = &later.name;
                let message = format!("{name} is not known yet: what uses it stands below it");
                scope.without.push((name.clone(), message));
            }
            let value = of.is.evaluate(&scope).unwrap_or_else(|error| {
                errors.push(self.error(of.line, format!("let.{}", of.name), &error));
                // So that whoever uses it is not wrong as well.
                Value::Number(1.0)
            });
            lets.push((of.name.clone(), value));
        }
        match errors.is_empty() {
            true => Ok(lets),
            false => Err(FileErrors(errors)),
        }
    }

    /// Whether everything that is asked of a run will be there, before hours are spent on it.
    fn check(
        &self,
        settings: &Settings,
        lets: &[(String, Value)],
        model: &dyn Model,
    ) -> Vec<FileError> {
        let mut errors = Vec::new();
        let fact = |fact: &str, of: &[&str]| model.knows_fact(fact, of).map(|()| 1.0);
        let mut scope = Scope::of(settings, lets);
        scope.facts = Some((&fact, model.fact_names()));
        for value in &self.values {
            // With any numbers: a text where a number is wanted is one whatever a run comes to.
            let checked = value.is.check(&scope);
            if let Err(error) = checked.and_then(|()| value.is.number(&scope).map(|_| ())) {
                errors.push(self.error(value.line, "value.is".into(), &error));
            }
            scope.names.push((value.name.clone(), Value::Number(1.0)));
        }
        let values: Vec<String> = self.values.iter().map(|value| value.name.clone()).collect();
        for plot in self.plots.iter().filter(|plot| plot.x == X::Time) {
            for y in &plot.y {
                if let Err(error) = model.knows_series(y) {
                    errors.push(self.error(plot.line, "plot.y".into(), &error));
                }
            }
        }
        for y in self.over_size() {
            let known = fact_of_flows(y)
                .and_then(|(fact, of)| model.knows_fact(POWER_OF_SIZE, &[fact, of]));
            if let Err(error) = known {
                let plot = self.plots.iter().find(|plot| plot.y.contains(y));
                let line = plot.map_or(0, |plot| plot.line);
                errors.push(self.error(line, "plot.y".into(), &error));
            }
        }
        scope.facts = None;
        for expect in &self.expects {
            let words = expect.over.as_deref().filter(|over| self.has_words(over));
            let constants = Scope::of(settings, lets).known_names();
            let over = |function: &str, of: &[Argument<'_>]| {
                check_over(function, of, &values, &constants, words)
            };
            let mut over_all = Scope::of(settings, lets);
            over_all.over = Some(&over);
            let scope = match &expect.over {
                None => &scope,
                Some(parameter) => {
                    over_all.exclude(parameter);
                    values.iter().for_each(|value| over_all.exclude(value));
                    &over_all
                }
            };
            let both = [
                ("that", expect.line, Some(&expect.that)),
                ("quick", expect.quick_line, expect.quick.as_ref()),
            ];
            for (key, line, that) in both {
                if let Some(Err(error)) = that.map(|that| that.check(scope)) {
                    errors.push(self.error(line, format!("expect.{key}"), &error));
                }
            }
        }
        errors
    }

    fn has_words(&self, parameter: &str) -> bool {
        let parameter = self.parameters.get(parameter);
        parameter.is_ok_and(|parameter| matches!(parameter.kind, Kind::Choice(_)))
    }

    fn error(&self, line: usize, key: String, what: &dyn std::fmt::Display) -> FileError {
        FileError {
            file: self.path.display().to_string(),
            line,
            column: None,
            key: Some(key),
            message: what.to_string(),
        }
    }

    /// What is plotted over the size, as in `rate(east)`; each once.
    pub fn over_size(&self) -> Vec<&String> {
        let plots = self.plots.iter().filter(|plot| plot.x == X::Size);
        let mut all: Vec<&String> = plots.flat_map(|plot| &plot.y).collect();
        all.sort();
        all.dedup();
        all
    }

    pub fn value(&self, name: &str) -> Option<&ValueSpec> {
        self.values.iter().find(|value| value.name == name)
    }
}

/// `rate(east)` is the rate of each flow that is called so.
pub fn fact_of_flows(text: &str) -> Result<(&str, &str), String> {
    let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
    parts.ok_or_else(|| {
        format!("{text:?}: write it as in rate(east), of all that are called east, east1, east2")
    })
}

/// The first mistake of each place: what could not be computed is no number either, and each copy of a table has
/// the same.
fn once(mut errors: Vec<FileError>) -> FileErrors {
    errors.dedup_by(|next, first| next.line == first.line && next.key == first.key);
    FileErrors(errors)
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scenario({})", self.path.display())
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prepared({:?})", self.settings)
    }
}

/// Whether a function over a sweep is called as it has to be. `words`: the parameter, if it is one of words.
fn check_over(
    function: &str,
    arguments: &[Argument<'_>],
    values: &[String],
    constants: &[String],
    words: Option<&str>,
) -> Option<Result<f64, String>> {
    if !OVER.contains(&function) {
        return None;
    }
    let of_value = |name: &str| match values.iter().any(|value| value == name) {
        true => Ok(1.0),
        false => {
            let near = crate::expression::near(name, values);
            Err(format!("{function} is of a value: {name} is none ({near})"))
        }
    };
    if let Some(words) = words
        && ["slope", "first", "last", "rises"].contains(&function)
    {
        return Some(Err(format!(
            "{words} has words, and no order: say of which, as in at(ratio, 'drr')"
        )));
    }
    Some(match (function, arguments) {
        ("at", [Argument::Name(_), Argument::Name(x)]) if !constants.iter().any(|c| c == x) => {
            let near = crate::expression::near(x, constants);
            Err(format!("nothing is called {x} ({near})"))
        }
        ("at", [Argument::Name(_), Argument::Number(_)]) if words.is_some() => {
            Err("it has words: say of which, as in at(ratio, 'drr')".into())
        }
        ("at", [Argument::Name(_), Argument::Text(word)]) if words.is_none() => {
            Err(format!("'{word}' is a text, where a number is wanted"))
        }
        ("at", [Argument::Name(name), _]) => of_value(name),
        ("at", _) => Err("at has a value and a number, as in at(ratio, 13)".into()),
        (_, [Argument::Name(name)]) => of_value(name),
        _ => Err(format!(
            "{function} is of one value, as in {function}(ratio)"
        )),
    })
}

#[cfg(test)]
pub mod tests;
