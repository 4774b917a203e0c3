//! What a kind of scenario has to do: be run, and say what it found out.

use std::collections::BTreeMap;

use packtrain_proto::time::Duration;
use packtrain_sim::statistics::{Histogram, Line, jain_index};

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

/// What goes on during a run, or is of each of its flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// As in `cwnd(xl)`.
    pub name: String,
    pub unit: String,
    /// Seconds, and what it was then; or bytes of a data unit.
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
/// Likewise: the power of its data units' size with which something of a flow grows, over the flows of some classes.
pub const POWER_OF_SIZE: &str = "power_of_size";
pub const SIZE: &str = "size";

/// Whether a class is called so, or is one of several, as those of an `each`, that are called so with a number each.
pub fn is_of(class: &str, name: &str) -> bool {
    let number = class.strip_prefix(name);
    number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

impl Facts {
    pub fn set(&mut self, fact: &str, of: &[&str], value: f64) {
        let of = of.iter().map(|name| (*name).to_owned()).collect();
        self.all.insert((fact.to_owned(), of), value);
    }

    /// Mean, median and 99th percentile, as `FACT_mean`, `FACT_p50` and `FACT_p99`, in seconds. Of nobody they are no numbers:
    /// nothing is true of them that is expected.
    pub fn set_times(&mut self, fact: &str, of: &str, times: &Histogram) {
        let mut set = |what: &str, time: Duration| {
            let seconds = match times.count() {
                0 => f64::NAN,
                _ => time.as_secs_f64(),
            };
            self.set(&format!("{fact}_{what}"), &[of], seconds);
        };
        set("mean", times.mean());
        set("p50", times.quantile(0.5));
        set("p99", times.quantile(0.99));
    }

    /// The rate of each flow of a class: `jain(class, …)` is of these.
    pub fn set_each(&mut self, class: &str, rates: Vec<f64>) {
        self.each.insert(class.to_owned(), rates);
    }

    pub fn get(&self, fact: &str, of: &[&str]) -> Result<f64, String> {
        match (fact, of) {
            (JAIN, _) => return self.jain(of),
            (POWER_OF_SIZE, [fact, of @ ..]) => {
                let points = self.by_size(fact, of)?;
                let line = Line::through_logarithms(&points);
                return Ok(line.map_or(f64::NAN, |line| line.slope));
            }
            _ => {}
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
        self.are_flows(JAIN, of)?;
        let asked = |class: &str| of.is_empty() || self.is_asked(class, of);
        let classes = self.each.iter().filter(|(class, _)| asked(class));
        let rates: Vec<f64> = classes.flat_map(|(_, rates)| rates).copied().collect();
        // Where nobody has anything nothing is known.
        Ok(jain_index(&rates).unwrap_or(f64::NAN))
    }

    /// Something of each class beside the size of its data units.
    pub fn by_size(&self, fact: &str, of: &[&str]) -> Result<Vec<(f64, f64)>, String> {
        self.are_flows(POWER_OF_SIZE, of)?;
        let classes = self.each.keys().filter(|class| self.is_asked(class, of));
        let point = |class: &String| Ok((self.get(SIZE, &[class])?, self.get(fact, &[class])?));
        classes.map(point).collect()
    }

    /// What a class itself is called is that one alone: east1 is not east10.
    fn is_asked(&self, class: &str, of: &[&str]) -> bool {
        let mut names = of.iter();
        names.any(|name| match self.each.contains_key(*name) {
            true => class == *name,
            false => is_of(class, name),
        })
    }

    fn are_flows(&self, fact: &str, of: &[&str]) -> Result<(), String> {
        let is_none = |name: &&&str| self.each.keys().all(|class| !is_of(class, name));
        let Some(unknown) = of.iter().find(is_none) else {
            return Ok(());
        };
        let known: Vec<String> = self.each.keys().cloned().collect();
        Err(format!(
            "{fact} is of flows: no {unknown} ({})",
            near(unknown, &known)
        ))
    }

    /// Each once.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.all.keys().map(|(name, _)| name.clone()).collect();
        if !self.each.is_empty() {
            names.extend([JAIN, POWER_OF_SIZE].map(str::to_owned));
        }
        names.sort();
        names.dedup();
        names
    }
}

/// Of facts that flows have.
pub fn unit_of(fact: &str) -> &'static str {
    match fact {
        "rate" | "goodput" | "goodput_mean" | "goodput_least" | "goodput_most" => "bit/s",
        "size" | "cwnd_mean" => "bytes",
        "first_cut" | "first_repair" => "s",
        _ => "",
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
        Argument::Text(text) => Err(format!(
            "{fact} is of names, as in {fact}(bottleneck), and not of '{text}'"
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
    fn a_power_of_the_size_is_over_all_flows_that_are_called_so_with_a_number() {
        let mut facts = Facts::default();
        for (class, size) in [
            ("east1", 1e3),
            ("east2", 2e3),
            ("east10", 9e3),
            ("easter", 5.0),
        ] {
            facts.set(SIZE, &[class], size);
            facts.set("rate", &[class], 7.0 * size.sqrt());
            facts.set("drops", &[class], if size < 5e3 { 0.0 } else { 1.0 });
            facts.set_each(class, vec![1.0]);
        }
        let power = facts.get(POWER_OF_SIZE, &["rate", "east"]).unwrap();
        assert!((power - 0.5).abs() < 1e-12);
        assert_eq!(facts.by_size("rate", &["east"]).unwrap().len(), 3);
        assert_eq!(
            facts.by_size("rate", &["east1", "easter"]).unwrap().len(),
            2
        );
        // Nothing has no logarithm, and one flow no slope.
        assert!(
            facts
                .get(POWER_OF_SIZE, &["drops", "east"])
                .unwrap()
                .is_nan()
        );
        assert!(
            facts
                .get(POWER_OF_SIZE, &["rate", "easter"])
                .unwrap()
                .is_nan()
        );
        let error = facts.get(POWER_OF_SIZE, &["rate", "west"]).unwrap_err();
        assert!(
            error.starts_with("power_of_size is of flows: no west"),
            "{error}"
        );
        assert_eq!(facts.get(JAIN, &["east"]), Ok(1.0));
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
