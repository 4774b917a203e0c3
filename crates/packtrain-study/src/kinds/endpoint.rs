//! Hosts whose wire is faster than their processor: what each makes of the frames that come (`packtrain_sim::endpoint`).
//!
//! There may be several, so that one with a filter stands beside one without: of the same seed and load, the same frames come to each.

mod file;

use packtrain_settings::toml_reader::{Errors, Table};
use packtrain_sim::endpoint::{self, EndpointConfig, Intake, Level, Saturation};

use crate::expression::near;
use crate::model::{Model, Outcome, Progress};

/// Frames a second, but for `capacity` all counted.
const RATES: [&str; 10] = [
    "wire",
    "offered",
    "handled",
    "useful",
    "rejected",
    "taken",
    "ring_drops",
    "backlog_drops",
    "interrupts",
    "capacity",
];
/// Shares of what was offered to the backlog queue, in the order of [`Level::ALL`].
const LEVELS: [&str; Level::ALL.len()] = [
    "level_success",
    "level_low",
    "level_moderate",
    "level_high",
    "level_drop",
];
/// Shares of the processor's time.
const TIMES: [&str; 6] = [
    "busy",
    "time_interrupts",
    "time_driver",
    "time_filter",
    "time_useful",
    "time_useless",
];
/// Where the queue first says that it is full: frames a second that are handled there, and bit/s that are offered.
const SATURATION: [&str; 2] = ["saturation", "saturation_rate"];

#[derive(Clone, Debug, PartialEq)]
struct EndpointSettings {
    name: String,
    config: EndpointConfig,
    /// Whether it is looked for.
    saturation: bool,
}

pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Box<dyn Model>> {
    let endpoints = file::read(table, errors)?;
    Some(Box::new(Endpoints(endpoints)))
}

struct Endpoints(Vec<EndpointSettings>);

impl EndpointSettings {
    /// An end point that polls has no backlog queue.
    fn has(&self, fact: &str) -> bool {
        let interrupts = self.config.intake == Intake::Interrupts;
        RATES.contains(&fact)
            || TIMES.contains(&fact)
            || interrupts && LEVELS.contains(&fact)
            || self.saturation && SATURATION.contains(&fact)
    }

    fn run(&self, seed: u64, mut set: impl FnMut(&str, f64)) -> u64 {
        let mut config = self.config.clone();
        config.traffic.seed = seed;
        let result = endpoint::run(&config);
        let counts = &result.counts;
        let rates = [
            result.wire_per_second,
            result.offered_per_second,
            result.handled_per_second,
            result.useful_per_second,
            result.per_second(counts.rejected),
            result.per_second(counts.backlog_taken),
            result.per_second(counts.ring_dropped),
            result.per_second(counts.backlog_dropped),
            result.per_second(counts.interrupts),
            endpoint::capacity_per_second(&config),
        ];
        let offered = counts.levels.iter().sum::<u64>() as f64;
        let levels = Level::ALL.map(|level| counts.at_level(level) as f64 / offered);
        let time = &counts.time;
        let times = [
            time.busy_ps(),
            time.interrupts_ps,
            time.driver_ps,
            time.filter_ps,
            time.stack_useful_ps,
            time.stack_useless_ps,
        ];
        let times = times.map(|picos| result.share(picos));
        let saturation = self.saturation.then(|| endpoint::first_full(&config));
        let saturation = saturation.map(|found| match found {
            Some(Saturation {
                offered_bps,
                result,
            }) => [result.handled_per_second, offered_bps as f64],
            // The wire is too slow for it.
            None => [f64::NAN; 2],
        });
        let all = RATES.iter().zip(rates);
        let all = all.chain(LEVELS.iter().zip(levels));
        let all = all.chain(TIMES.iter().zip(times));
        let all = all.chain(SATURATION.iter().zip(saturation.into_iter().flatten()));
        all.filter(|(fact, _)| self.has(fact))
            .for_each(|(fact, value)| set(fact, value));
        counts.offered
    }
}

impl Model for Endpoints {
    fn run(&self, seed: u64, progress: &dyn Progress) -> Outcome {
        let mut outcome = Outcome::default();
        for (number, endpoint) in self.0.iter().enumerate() {
            let facts = &mut outcome.facts;
            let frames = endpoint.run(seed, |fact, value| {
                facts.set(fact, &[&endpoint.name], value)
            });
            outcome.events += frames;
            progress.at((number + 1) as f64 / self.0.len() as f64);
        }
        outcome
    }

    fn knows_fact(&self, fact: &str, of: &[&str]) -> Result<(), String> {
        let [name] = of else {
            return Err(format!(
                "{fact} is of one end point, as in {fact}({})",
                self.0[0].name
            ));
        };
        match self.0.iter().find(|endpoint| endpoint.name == *name) {
            Some(endpoint) if endpoint.has(fact) => Ok(()),
            Some(_) if LEVELS.contains(&fact) => Err(format!(
                "{name} polls: it has no backlog queue, and no {fact}"
            )),
            Some(_) => Err(format!(
                "{name} has no {fact}: say saturation = true, so that it is looked for"
            )),
            None => {
                let known: Vec<String> = self.0.iter().map(|e| e.name.clone()).collect();
                let near = near(name, &known);
                Err(format!("there is no end point {name} ({near})"))
            }
        }
    }

    fn fact_names(&self) -> Vec<String> {
        let all = RATES.iter().chain(&LEVELS).chain(&TIMES).chain(&SATURATION);
        all.map(|name| (*name).to_owned()).collect()
    }

    fn knows_series(&self, name: &str) -> Result<(), String> {
        super::unnamed::no_series(name)
    }
}

#[cfg(test)]
mod tests;
