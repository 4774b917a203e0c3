//! A kind for tests: things with a level, and noise around it that the seed draws.

use packtrain_settings::toml_reader::{Errors, Table, string};
use packtrain_sim::random::{Random, mix};

use super::read::{name, quantity, whole};
use crate::expression::near;
use crate::model::{Facts, JAIN, Model, Outcome, POWER_OF_SIZE, Progress, SIZE, Series};
use crate::quantity::Dimension;

struct Things(Vec<Thing>);

struct Thing {
    name: String,
    level: f64,
    noise: f64,
    kind: String,
    /// Turns of a loop: some runs take longer than others.
    work: u32,
}

pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Box<dyn Model>> {
    let things = table.list("thing", errors, |value, errors| {
        let mut table = Table::of(value, "thing", "[[thing]]", errors)?;
        let thing_name = table.required("name", errors, name);
        let level = table.required("level", errors, quantity(Dimension::Number, -1e9, 1e9));
        let mut noise = 0.0;
        table.optional(
            "noise",
            errors,
            &mut noise,
            quantity(Dimension::Number, 0.0, 1e6),
        );
        let mut kind = String::new();
        table.optional("kind", errors, &mut kind, |v| string(v).map(str::to_owned));
        let mut work = 0;
        table.optional("work", errors, &mut work, whole(0, 100_000_000));
        table.refuse_the_rest(errors);
        Some(Thing {
            name: thing_name?,
            level: level?,
            noise,
            kind,
            work,
        })
    });
    Some(Box::new(Things(things)))
}

impl Model for Things {
    fn run(&self, seed: u64, progress: &dyn Progress) -> Outcome {
        let mut outcome = Outcome::default();
        progress.at(0.5);
        for (number, thing) in (0..).zip(&self.0) {
            for turn in 0..thing.work {
                std::hint::black_box(turn);
            }
            let mut random = Random::new(mix(seed) ^ mix(number));
            let drawn = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
            let level = thing.level + thing.noise * (drawn - 0.5);
            outcome.facts.set("level", &[&thing.name], level);
            outcome
                .facts
                .set("length", &[&thing.name], thing.kind.len() as f64);
            outcome.facts.set(SIZE, &[&thing.name], number as f64);
            outcome.facts.set_each(&thing.name, vec![level]);
            outcome.series.push(Series {
                name: format!("level({})", thing.name),
                unit: "m".into(),
                points: (0..10)
                    .map(|i| (f64::from(i), level * f64::from(i)))
                    .collect(),
            });
        }
        outcome.events = 1000;
        outcome.hops = 10;
        progress.at(1.0);
        outcome
    }

    fn knows_fact(&self, fact: &str, of: &[&str]) -> Result<(), String> {
        let mut facts = Facts::default();
        for thing in &self.0 {
            facts.set("level", &[&thing.name], 0.0);
            facts.set("length", &[&thing.name], 0.0);
            facts.set(SIZE, &[&thing.name], 1.0);
            facts.set_each(&thing.name, vec![1.0]);
        }
        facts.get(fact, of).map(|_| ())
    }

    fn fact_names(&self) -> Vec<String> {
        ["level", "length", SIZE, JAIN, POWER_OF_SIZE]
            .map(str::to_owned)
            .into()
    }

    fn knows_series(&self, name: &str) -> Result<(), String> {
        let known: Vec<String> = self
            .0
            .iter()
            .map(|t| format!("level({})", t.name))
            .collect();
        match known.iter().any(|series| series == name) {
            true => Ok(()),
            false => Err(format!(
                "there is no series {name} ({})",
                near(name, &known)
            )),
        }
    }
}
