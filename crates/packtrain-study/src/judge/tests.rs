use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::sweep::{Plan, sweep};

/// A thing whose level is F to the power of p.
const TEXT: &str = r#"
title = "Powers"
kind = "fake"
[parameters.F]
default = 2
[parameters.p]
default = 2
[parameters.how]
default = "slow"
one_of = ["slow", "very-fast"]
[let]
half = "p / 2"
double = "2 * F"
y_is_known = "1"
[[thing]]
name = "a"
level = "${F ^ p * if(how == 'slow', 1, 3)}"
[[value]]
name = "y"
is = "level(a)"
[[value]]
name = "unknown"
is = "0 / 0 * y"
{expects}"#;

/// With expectations of it.
fn judged(expects: &str, vary: &[&str], quick: bool) -> Vec<Verdict> {
    let text = TEXT.replace("{expects}", expects);
    let scenario = Scenario::read(Path::new("powers.toml"), &text).unwrap();
    let vary: Vec<String> = vary.iter().map(|text| (*text).to_owned()).collect();
    let plan = Plan {
        quick,
        settings: scenario.settings(false, &[]).unwrap(),
        varied: scenario.varied(false, &vary).unwrap(),
        seeds: vec![1, 2],
    };
    let results = sweep(&scenario, plan, 1, None, &()).unwrap();
    judge(&scenario, &results)
}

fn over_f(that: &str) -> String {
    format!("[[expect]]\nsays = \"s\"\nover = \"F\"\nthat = \"{that}\"\n")
}

fn each(that: &str) -> String {
    format!("[[expect]]\nsays = \"s\"\nthat = \"{that}\"\n")
}

#[test]
fn what_holds_at_each_point_is_met_and_what_fails_at_one_is_not() {
    let verdicts = judged(&(each("y == F ^ p") + &each("y < 9")), &["F=1..4"], false);
    assert_eq!(verdicts[0].met(), Some(true));
    assert_eq!(verdicts[0].checks.len(), 4);
    assert_eq!(verdicts[1].met(), Some(false));
    assert!(!all_met(&verdicts));
    let failed: Vec<&Check> = verdicts[1]
        .checks
        .iter()
        .filter(|check| !check.met)
        .collect();
    assert_eq!(
        failed
            .iter()
            .map(|check| check.at.as_str())
            .collect::<Vec<_>>(),
        ["F = 3", "F = 4"]
    );
    assert_eq!(failed[0].terms, [("y".to_owned(), 9.0)]);
}

#[test]
fn over_a_sweep_the_points_are_seen_together_in_order() {
    for that in [
        "abs(slope(y) - p) < 1e-9",
        "first(y) == 1 and last(y) == 16",
        "least(y) == 1 and most(y) == 16 and mean(y) == 7.5 and middle(y) == 6.5",
        "rises(y)",
        "argmax(y) == 4",
        "at(y, 3) == 9 and at(y, p) == 4",
        "half == 1",
    ] {
        // As they were asked for, not as they are large.
        let verdicts = judged(&over_f(that), &["F=4,1,3,2"], false);
        assert_eq!(verdicts[0].met(), Some(true), "{that}: {verdicts:?}");
        assert_eq!(verdicts[0].checks[0].at, "over F");
    }
    let verdict = &judged(&over_f("not rises(y) or last(y) < 16"), &["F=1..4"], false)[0];
    assert_eq!(verdict.met(), Some(false));
    let terms = &verdict.checks[0].terms;
    assert_eq!(
        *terms,
        [("rises(y)".to_owned(), 1.0), ("last(y)".to_owned(), 16.0)]
    );
}

#[test]
fn each_combination_of_the_others_is_judged_by_itself() {
    let verdicts = judged(
        &over_f("abs(slope(y) - 2) < 0.1"),
        &["F=1..4", "p=1,2"],
        false,
    );
    let checks: Vec<(&str, bool)> = verdicts[0]
        .checks
        .iter()
        .map(|check| (check.at.as_str(), check.met))
        .collect();
    assert_eq!(checks, [("over F, p = 1", false), ("over F, p = 2", true)]);
}

#[test]
fn over_words_a_point_is_asked_for_by_its_word() {
    let over_how = |that: &str| over_f(that).replace("over = \"F\"", "over = \"how\"");
    let vary = ["how=very-fast,slow", "F=2,4"];
    let right =
        "at(y, 'very-fast') == 3 * at(y, 'slow') and least(y) == F ^ p and most(y) == 3 * F ^ p";
    let verdicts = judged(&over_how(right), &vary, false);
    assert_eq!(verdicts[0].met(), Some(true), "{verdicts:?}");
    assert_eq!(verdicts[0].checks[1].at, "over how, F = 4");
    // Not even what stands beside it is known to be wrong.
    let verdicts = judged(&over_how("at(y, 'fast') > 0 and 1"), &vary, false);
    assert_eq!(verdicts[0].met(), None);
    let why_not = verdicts[0].why_not.as_deref();
    assert_eq!(why_not, Some("no point is at how = fast"));
    // What is asked for in a branch that is not taken is not asked for.
    let verdicts = judged(&over_how("y_is_known or at(y, 'fast') > 0"), &vary, false);
    assert_eq!(verdicts[0].met(), Some(true), "{verdicts:?}");
}

#[test]
fn what_no_run_shows_is_not_judged() {
    for vary in [&[][..], &["p=1,2"], &["F=3"]] {
        let verdicts = judged(&over_f("rises(y)"), vary, false);
        assert_eq!(verdicts[0].met(), None);
        assert_eq!(
            verdicts[0].why_not.as_deref(),
            Some("only a sweep over F shows it")
        );
        assert!(all_met(&verdicts));
    }
}

#[test]
fn of_what_is_no_number_nothing_is_true() {
    for that in ["unknown < 1", "not unknown < 1", "y > 0 or unknown < 1"] {
        let verdicts = judged(&each(that), &[], false);
        assert_eq!(verdicts[0].met(), Some(false), "{that}");
        assert_eq!(
            verdicts[0].checks[0].trouble.as_deref(),
            Some("unknown is no number")
        );
    }
    let trouble = |that: &str| {
        let verdicts = judged(&over_f(that), &["F=0..3"], false);
        assert_eq!(verdicts[0].met(), Some(false), "{that}");
        verdicts[0].checks[0].trouble.clone().unwrap()
    };
    assert_eq!(trouble("not slope(y) > 5"), "slope(y) is no number");
    assert_eq!(
        trouble("not rises(y) or least(unknown) < 1"),
        "least(unknown) is no number"
    );
    let unknown = &judged(&each("not (0/0 > y)"), &[], false)[0];
    assert_eq!(unknown.met(), Some(false));
    let trouble = unknown.checks[0].trouble.as_deref();
    assert_eq!(trouble, Some("it is no number"));
    let absent = &judged(&over_f("at(y, 7) == 1"), &["F=0..3"], false)[0];
    assert_eq!(
        (absent.met(), absent.why_not.as_deref()),
        (None, Some("no point is at F = 7"))
    );
}

#[test]
fn what_can_be_judged_of_no_run_is_told_before_any() {
    let text = TEXT.replace("{expects}", &over_f("double > 0"));
    let scenario = Scenario::read(Path::new("powers.toml"), &text).unwrap();
    let plan = |vary: &[&str]| Plan {
        quick: false,
        settings: scenario.settings(false, &[]).unwrap(),
        varied: {
            let vary: Vec<String> = vary.iter().map(|text| (*text).to_owned()).collect();
            scenario.varied(false, &vary).unwrap()
        },
        seeds: vec![1],
    };
    let error = sweep(&scenario, plan(&["F=1..3"]), 1, None, &()).unwrap_err();
    let error = error.to_string();
    let begin = "the expectation \"s\" cannot be judged: double differs from point to point";
    assert!(error.starts_with(begin), "{error}");
    // Where nobody asks for it nothing is wrong.
    assert!(sweep(&scenario, plan(&["p=1,2"]), 1, None, &()).is_ok());
}

#[test]
fn the_quick_form_may_have_an_expectation_of_its_own() {
    let expect = each("y == 5") + "quick = \"y == 4\"\n";
    assert_eq!(judged(&expect, &[], false)[0].met(), Some(false));
    let quick = &judged(&expect, &[], true)[0];
    assert_eq!((quick.met(), quick.that.as_str()), (Some(true), "y == 4"));
}

#[test]
fn the_top_is_that_of_the_parabola_through_the_greatest_and_its_neighbours_or_an_end() {
    let parabola = |x: f64| 7.0 - 2.0 * (x - 3.2) * (x - 3.2);
    let xs = [0.5, 1.0, 2.0, 3.0, 5.0, 9.0];
    let found = argmax(&xs, &xs.map(parabola));
    assert!((found - 3.2).abs() < 1e-12, "{found}");
    for (ys, found) in [
        ([5.0, 4.0, 3.0], 1.0),
        ([3.0, 4.0, 5.0], 4.0),
        ([2.0, 2.0, 2.0], 1.0),
        ([1.0, 2.0, 2.0], 3.0),
        ([-5.0, -2.0, -5.0], 2.5),
    ] {
        let top = argmax(&[1.0, 2.0, 4.0], &ys);
        assert!((top - found).abs() < 1e-12, "{ys:?}: {top}");
    }
    assert_eq!(argmax(&[2.0], &[7.0]), 2.0);
    assert!(argmax(&[], &[]).is_nan());
    assert!(argmax(&[1.0, 2.0, 4.0], &[1.0, f64::NAN, 0.0]).is_nan());
    // Words have no place on an axis.
    assert!(argmax(&[f64::NAN, f64::NAN], &[1.0, 2.0]).is_nan());
}

proptest! {
    #[test]
    fn a_top_lies_beside_the_greatest(ys in prop::collection::vec(0_u8..20, 1..10), steps in prop::collection::vec(1_u8..9, 10)) {
        let ys: Vec<f64> = ys.into_iter().map(f64::from).collect();
        let mut x = 0.0;
        let xs: Vec<f64> = steps.iter().take(ys.len()).map(|step| { x += f64::from(*step); x }).collect();
        let top = argmax(&xs, &ys);
        let most = ys.iter().copied().fold(0.0, f64::max);
        let greatest = ys.iter().position(|y| *y == most).expect("there is one");
        let beside = xs[greatest.saturating_sub(1)]..=xs[(greatest + 1).min(xs.len() - 1)];
        prop_assert!(beside.contains(&top), "{} of {:?}, {:?}", top, xs, ys);
    }

    #[test]
    fn the_slope_of_a_power_is_its_exponent(power in -3.0..3.0_f64, factor in 0.1..10.0_f64, xs in prop::collection::btree_set(1_u32..100, 2..10)) {
        let xs: Vec<f64> = xs.into_iter().map(f64::from).collect();
        let ys: Vec<f64> = xs.iter().map(|x| factor * x.powf(power)).collect();
        prop_assert!((slope(&xs, &ys) - power).abs() < 1e-9);
    }
}
