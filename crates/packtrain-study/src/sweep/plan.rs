//! What is run, by what somebody asks for and what the file says of the rest.

use crate::parameters::{SettingError, Settings};
use crate::scenario::Scenario;
use crate::vary::{Vary, VaryError};

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub quick: bool,
    pub settings: Settings,
    pub varied: Vec<Vary>,
    pub seeds: Vec<u64>,
}

impl Plan {
    /// `sets`: as in `F=13`.
    pub fn of_run(
        scenario: &Scenario,
        quick: bool,
        sets: &[String],
        seed: u64,
    ) -> Result<Plan, SettingError> {
        Ok(Plan {
            quick,
            settings: scenario.settings(quick, sets)?,
            varied: Vec::new(),
            seeds: vec![seed],
        })
    }

    /// `vary`: as in `F=1..13`; nothing, and it is as the file has it, but for what is set.
    pub fn of_sweep(
        scenario: &Scenario,
        quick: bool,
        sets: &[String],
        vary: &[String],
        seeds: Option<u32>,
    ) -> Result<Plan, VaryError> {
        let settings = scenario.settings(quick, sets)?;
        let is_set = |name: &str| {
            let mut set = sets.iter().filter_map(|text| text.split_once('='));
            set.any(|(set, _)| set.trim() == name)
        };
        let mut varied = scenario.varied(quick, vary)?;
        if vary.is_empty() {
            varied.retain(|vary| !is_set(&vary.name));
        } else if let Some(both) = varied.iter().find(|vary| is_set(&vary.name)) {
            return Err(VaryError::SetAndVaried {
                name: both.name.clone(),
            });
        }
        let seeds = seeds.unwrap_or(scenario.seeds(quick));
        Ok(Plan {
            quick,
            settings,
            varied,
            seeds: (1..=u64::from(seeds)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Value;
    use crate::scenario::tests::whole;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn sweep(sets: &[&str], vary: &[&str], seeds: Option<u32>) -> Result<Plan, String> {
        let plan = Plan::of_sweep(&whole(), false, &texts(sets), &texts(vary), seeds);
        plan.map_err(|error| error.to_string())
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.varied.iter().map(|vary| vary.name.as_str()).collect()
    }

    #[test]
    fn a_sweep_that_is_told_nothing_is_the_one_of_the_file() {
        let plan = sweep(&[], &[], None).unwrap();
        assert_eq!(names(&plan), ["F", "how"]);
        assert_eq!(plan.seeds, [1, 2, 3]);
        let quick = Plan::of_sweep(&whole(), true, &[], &[], Some(1)).unwrap();
        assert_eq!((names(&quick), &quick.seeds[..]), (vec!["F"], &[1][..]));
        assert_eq!(quick.settings.get("rtt"), Some(&Value::Number(0.01)));
    }

    #[test]
    fn what_is_set_is_not_varied_unless_both_are_asked_for() {
        let plan = sweep(&["F=7"], &[], None).unwrap();
        assert_eq!(names(&plan), ["how"]);
        assert_eq!(plan.settings.get("F"), Some(&Value::Number(7.0)));
        let plan = sweep(&["F=7"], &["how=drr"], None).unwrap();
        assert_eq!(names(&plan), ["how"]);
        assert_eq!(
            sweep(&["F=7"], &["F=1..3"], None).unwrap_err(),
            "F is set and varied"
        );
    }

    #[test]
    fn a_run_is_one_point_with_one_seed() {
        let plan = Plan::of_run(&whole(), false, &texts(&["F=7"]), 9).unwrap();
        assert!(plan.varied.is_empty());
        assert_eq!(plan.seeds, [9]);
        let error = Plan::of_run(&whole(), false, &texts(&["F=44"]), 9).unwrap_err();
        assert_eq!(error.to_string(), "F=44: F is a whole number from 1 to 43");
    }
}
