//! What a kind of scenario has to do: be run, and say what it found out.

use std::collections::BTreeMap;

use packtrain_sim::statistics::jain_index;

use crate::expression::{Argument, near};

/// A kind of scenario, ready to be run.
pub trait Model {
    fn run(&self, seed: u64, progress: &dyn Progress) -> Outcome;

    /// Whether a run will have such a fact; the error says what there is.
    fn knows_fact(&self, fact: &str, of: &[&str]) -> Result<(), String>;

    /// The facts that there are, for errors.
    fn fact_names(&self) -> Vec<String>;

    /// Whether a run will have such a series, as in `cwnd(xl)`.
    fn knows_series(&self, name: &str) -> Result<(), String>;
}

/// Who wants to know how far a run is.
pub trait Progress {
    /// From 0 to 1; it never falls.
    fn at(&self, share: f64);
}

/// Nobody.
impl Progress for () {
    fn at(&self, _: f64) {}
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub facts: Facts,
    pub series: Vec<Series>,
    /// Of the simulator.
    pub events: u64,
    /// Packets, each as often as it was passed on.
    pub hops: u64,
}

/// What goes on during a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// As in `cwnd(xl)`.
    pub name: String,
    pub unit: String,
    /// Seconds, and what it was then.
    pub points: Vec<(f64, f64)>,
}

/// What a run found out, by name and what it is of: `throughput(bottleneck)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    all: BTreeMap<(String, Vec<String>), f64>,
    /// What each of a class has, for what is asked of several classes together.
    each: BTreeMap<String, Vec<f64>>,
}

/// The fact that is computed here, of what each flow of some classes has.
pub const JAIN: &str = "jain";

impl Facts {
    pub fn set(&mut self, fact: &str, of: &[&str], value: f64) {
        let of = of.iter().map(|name| (*name).to_owned()).collect();
        self.all.insert((fact.to_owned(), of), value);
    }

    /// The rate of each flow of a class: `jain(class, …)` is of these.
    pub fn set_each(&mut self, class: &str, rates: Vec<f64>) {
        self.each.insert(class.to_owned(), rates);
    }

    pub fn get(&self, fact: &str, of: &[&str]) -> Result<f64, String> {
        if fact == JAIN {
            return self.jain(of);
        }
        let owned: Vec<String> = of.iter().map(|name| (*name).to_owned()).collect();
        if let Some(value) = self.all.get(&(fact.to_owned(), owned)) {
            return Ok(*value);
        }
        let there = self.all.keys().filter(|(name, _)| name == fact);
        let there: Vec<String> = there.map(|(_, of)| of.join(", ")).collect();
        let asked = of.join(", ");
        Err(match there.is_empty() {
            true => format!("there is no fact {fact} ({})", near(fact, &self.names())),
            false => format!(
                "there is no {fact}({asked}); {fact} is of {}",
                there.join("; ")
            ),
        })
    }

    /// 1 where all have the same, 1/n where one has all.
    fn jain(&self, of: &[&str]) -> Result<f64, String> {
        if let Some(unknown) = of.iter().find(|name| !self.each.contains_key(**name)) {
            let known: Vec<String> = self.each.keys().cloned().collect();
            return Err(format!(
                "{JAIN} is of flows: no {unknown} ({})",
                near(unknown, &known)
            ));
        }
        let asked = |class: &&String| of.is_empty() || of.contains(&class.as_str());
        let classes = self.each.iter().filter(|(class, _)| asked(class));
        let rates: Vec<f64> = classes.flat_map(|(_, rates)| rates).copied().collect();
        // Where nobody has anything nothing is known.
        Ok(jain_index(&rates).unwrap_or(f64::NAN))
    }

    /// Each once.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.all.keys().map(|(name, _)| name.clone()).collect();
        if !self.each.is_empty() {
            names.push(JAIN.into());
        }
        names.sort();
        names.dedup();
        names
    }
}

/// The names that a fact is asked of.
pub fn names_of<'a>(fact: &str, arguments: &[Argument<'a>]) -> Result<Vec<&'a str>, String> {
    let name = |argument: &Argument<'a>| match *argument {
        Argument::Name(name) => Ok(name),
        Argument::Number(number) => Err(format!(
            "{fact} is of names, as in {fact}(bottleneck), and not of {}",
            crate::quantity::number(number)
        )),
    };
    arguments.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let mut facts = Facts::default();
        facts.set("throughput", &["bottleneck"], 1e9);
        facts.set("throughput", &["return"], 1e6);
        facts.set_each("xl", vec![1.0, 1.0, 1.0]);
        facts.set_each("packets", vec![3.0]);
        facts
    }

    #[test]
    fn a_fact_is_asked_by_its_name_and_what_it_is_of() {
        assert_eq!(facts().get("throughput", &["return"]), Ok(1e6));
        assert_eq!(
            facts().get("throughput", &["back"]).unwrap_err(),
            "there is no throughput(back); throughput is of bottleneck; return"
        );
        assert_eq!(
            facts().get("thruput", &["return"]).unwrap_err(),
            "there is no fact thruput (near it: throughput)"
        );
        assert_eq!(
            names_of("drops", &[Argument::Number(2.0)]).unwrap_err(),
            "drops is of names, as in drops(bottleneck), and not of 2"
        );
    }

    #[test]
    fn fairness_is_of_single_flows_of_the_classes_that_are_asked_for_or_of_all() {
        assert_eq!(facts().get(JAIN, &["xl"]), Ok(1.0));
        assert_eq!(facts().get(JAIN, &[]), Ok(36.0 / (4.0 * 12.0)));
        assert_eq!(
            facts().get(JAIN, &["packets", "xl"]),
            facts().get(JAIN, &[])
        );
        assert_eq!(
            facts().get(JAIN, &["xxl"]).unwrap_err(),
            "jain is of flows: no xxl (near it: xl)"
        );
    }
}
