//! What is printed, written and drawn of a study: a form a file.

pub mod command;
pub mod csv;
pub mod html;
pub mod json;
pub mod progress;
pub mod svg;
pub mod text;
mod wrap;

use crate::expression::Value;
use crate::judge::Verdict;
use crate::parameters::Parameter;
use crate::scenario::Scenario;
use crate::sweep::Results;
use crate::vary::Vary;

/// Everything that there is to say of a run or a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Study<'a> {
    pub scenario: &'a Scenario,
    pub results: &'a Results,
    pub verdicts: &'a [Verdict],
    /// How to repeat it.
    pub command: &'a str,
    /// Of the program.
    pub version: &'a str,
}

impl Study<'_> {
    fn varied(&self, name: &str) -> Option<&Vary> {
        let mut varied = self.results.plan.varied.iter();
        varied.find(|vary| vary.name == name)
    }

    fn is_varied(&self, name: &str) -> bool {
        self.varied(name).is_some()
    }

    /// Each parameter that has one value throughout, with that.
    fn constants(&self) -> impl Iterator<Item = (&Parameter, &Value)> {
        let all = self.scenario.parameters.0.iter();
        let constants = all.filter(|parameter| !self.is_varied(&parameter.name));
        constants.filter_map(|parameter| {
            let value = self.results.plan.settings.get(&parameter.name)?;
            Some((parameter, value))
        })
    }

    /// As in `1, 4, 7`; of many the ends.
    fn varied_words(&self, name: &str) -> String {
        const LISTED_MAX: usize = 16;
        let parameter = self.scenario.parameters.get(name);
        let (Some(vary), Ok(parameter)) = (self.varied(name), parameter) else {
            return String::new();
        };
        let words: Vec<String> = vary
            .values
            .iter()
            .map(|value| parameter.print(value))
            .collect();
        match words.as_slice() {
            [first, .., last] if words.len() > LISTED_MAX => {
                format!("{first} to {last} ({} values)", words.len())
            }
            words => words.join(", "),
        }
    }

    fn seeds_words(&self) -> String {
        match self.results.plan.seeds.as_slice() {
            [seed] => format!("seed {seed}"),
            seeds => format!("{} seeds", seeds.len()),
        }
    }
}

/// A mean and how far the true one may be from it, for people.
fn interval(of: crate::interval::Interval) -> String {
    let digits = 4;
    match of.half_width {
        Some(half) => format!(
            "{} ± {}",
            crate::quantity::short(of.mean, digits),
            crate::quantity::short(half, 2)
        ),
        None => crate::quantity::short(of.mean, digits),
    }
}

#[cfg(test)]
pub mod tests;
