use super::*;
use crate::model::Progress;
use crate::run::run;

const WHOLE: &str = r#"
title = "Things"
kind = "fake"
paper = "P, Fig. 1"
shows = """
What it
shows.

More."""
assumes = ["nothing"]

[parameters.F]
says = "how many"
default = 4
least = 1
most = 43
whole = true

[parameters.rtt]
default = "100ms"
least = "1ms"

[parameters.how]
default = "drr"
one_of = ["drop-tail", "drr"]

[quick]
F = 2
rtt = "10ms"

[sweep]
vary = ["F=1..3", "how=drr,drop-tail"]
seeds = 3
quick_vary = "F=1,2"

[let]
squared = "F ^ 2"
after = "squared + 1"

[[thing]]
name = "a"
level = "${F}"
kind = "${how}:${1500*F}b"

[[thing]]
each = "i=1..${F}"
name = "t${i}"
level = "${i * squared}"

[[value]]
name = "ratio"
is = "level(t1) / level(a)"
unit = "m"
says = "how much"

[[value]]
name = "twice"
is = "2 * ratio + after * 0 + length(a) * 0"

[[plot]]
title = "One"
x = "F"
y = ["ratio", "twice"]
log = "xy"

[[plot]]
title = "Two"
x = "time"
y = "level(a)"

[[reported]]
value = "ratio"
points = [[1, 1], [4, 4.5]]

[[expect]]
says = "it is F"
that = "ratio == F"

[[expect]]
says = "it grows"
over = "F"
that = "abs(slope(ratio) - 1) < 0.1 and at(ratio, 1) == 1"
quick = "rises(ratio)"
"#;

pub fn whole() -> Scenario {
    Scenario::read(Path::new("things.toml"), WHOLE).unwrap()
}

fn errors(text: &str) -> String {
    match Scenario::read(Path::new("s.toml"), text) {
        Ok(scenario) => panic!("{scenario:?} was read"),
        Err(errors) => errors.to_string(),
    }
}

fn values(scenario: &Scenario, settings: &Settings) -> Vec<f64> {
    let prepared = scenario.prepare(settings).unwrap();
    run(scenario, &prepared, 1, &()).unwrap().0.values
}

#[test]
fn a_scenario_is_read_and_its_values_are_what_its_expressions_say() {
    let scenario = whole();
    assert_eq!(scenario.name, "things");
    assert_eq!(scenario.shows, "What it shows.\n\nMore.");
    assert_eq!(scenario.paper.as_deref(), Some("P, Fig. 1"));
    assert_eq!(scenario.reported[0].points, [(1.0, 1.0), (4.0, 4.5)]);
    let names: Vec<&str> = scenario
        .parameters
        .0
        .iter()
        .map(|p| p.name.as_str())
        .collect();
    assert_eq!(names, ["F", "rtt", "how"], "in the order of the file");
    assert_eq!(
        values(&scenario, &scenario.settings(false, &[]).unwrap()),
        [4.0, 8.0]
    );
    let quick = scenario.settings(true, &[]).unwrap();
    assert_eq!(quick.get("rtt"), Some(&Value::Number(0.01)));
    assert_eq!(values(&scenario, &quick), [2.0, 4.0]);
    let set = scenario.settings(true, &["F=3".to_owned()]).unwrap();
    assert_eq!(values(&scenario, &set), [3.0, 6.0]);
}

/// The fake ones have their number for a size: t1, t2 … have a level of so many times F squared.
#[test]
fn what_each_of_several_has_is_fitted_and_plotted_by_their_size() {
    let text = WHOLE
        .replace("level(t1) / level(a)", "power_of_size(level, t)")
        .replace("x = \"time\"", "x = \"size\"")
        .replace("y = \"level(a)\"", "y = \"level(t)\"");
    let scenario = Scenario::read(Path::new("s.toml"), &text).unwrap();
    let prepared = scenario.prepare(&scenario.parameters.defaults()).unwrap();
    let (run, series) = run(&scenario, &prepared, 1, &()).unwrap();
    assert!((run.values[0] - 1.0).abs() < 1e-9, "{run:?}");
    let by_size = series
        .iter()
        .find(|series| series.name == "level(t) by size");
    let points = [(1.0, 16.0), (2.0, 32.0), (3.0, 48.0), (4.0, 64.0)];
    assert_eq!(by_size.unwrap().points, points);
    assert!(
        errors(&text.replace("\"level(t)\"", "\"level(u)\""))
            .contains("plot.y: power_of_size is of flows: no u")
    );
    assert!(
        errors(&text.replace("\"level(t)\"", "\"level\"")).contains("write it as in rate(east)")
    );
}

#[test]
fn a_sweep_is_as_the_file_has_it_or_as_it_is_asked_for() {
    let scenario = whole();
    let counts = |quick, asked: &[&str]| -> Vec<usize> {
        let asked: Vec<String> = asked.iter().map(|text| (*text).to_owned()).collect();
        let varied = scenario.varied(quick, &asked).unwrap();
        varied.iter().map(|vary| vary.values.len()).collect()
    };
    assert_eq!(counts(false, &[]), [3, 2]);
    assert_eq!(counts(true, &[]), [2]);
    assert_eq!(counts(true, &["how=drr"]), [1]);
    assert_eq!((scenario.seeds(false), scenario.seeds(true)), (3, 3));
}

#[test]
fn all_mistakes_are_told_at_once_with_file_line_key_and_what_is_allowed() {
    let text = WHOLE
        .replace("default = 4", "default = 44")
        .replace("least = \"1ms\"", "least = \"1mbit\"")
        .replace("F = 2\n", "F = 0\n")
        .replace("[\"F=1..3\"", "[\"F=0..3\"")
        .replace("seeds = 3", "seeds = 0")
        .replace("log = \"xy\"", "log = \"z\"")
        .replace("y = [\"ratio\", \"twice\"]", "y = [\"ration\"]")
        .replace("paper =", "papers =");
    assert_eq!(
        errors(&text),
        "s.toml:4: papers: unknown key (known here: assumes, expect, kind, let, paper, parameters, plot, quick, \
         reported, shows, sweep, thing, title, value)\n\
         s.toml:14: parameters.F.default: F=44: F is a whole number from 1 to 43\n\
         s.toml:21: parameters.rtt.least: \"1mbit\" is no time, as the default is: write it as in 100ms, 5us or 2s\n\
         s.toml:28: quick.F: F=0: F is a whole number from 1 to 43\n\
         s.toml:32: sweep.vary: F=0: F is a whole number from 1 to 43\n\
         s.toml:33: sweep.seeds: 0 is not within 1 to 10000\n\
         s.toml:63: plot.y: there is no value ration (near it: ratio)\n\
         s.toml:64: plot.log: \"z\" is none of x, y, xy"
    );
}

#[test]
fn expressions_that_cannot_be_computed_are_told_where_they_stand() {
    let changed = |from: &str, to: &str| {
        assert!(WHOLE.contains(from), "{from}");
        errors(&WHOLE.replace(from, to))
    };
    assert_eq!(
        changed("level = \"${F}\"", "level = \"${G}\""),
        "s.toml:42: thing.level: nothing is called G (near it: F) (at character 1 of \"G\")"
    );
    assert_eq!(
        changed("F ^ 2", "F ^"),
        "s.toml:37: let.squared: it ends where a value is wanted (at character 4 of \"F ^\")"
    );
    assert_eq!(
        changed("squared + 1", "aftr + 1"),
        "s.toml:38: let.after: nothing is called aftr (known here: F, how, rtt, squared) (at character 1 of \
         \"aftr + 1\")"
    );
    assert_eq!(
        changed("level(t1) /", "level(t9) /"),
        "s.toml:52: value.is: there is no level(t9); level is of a; t1; t2; t3; t4 (at character 1 of \
         \"level(t9) / level(a)\")"
    );
    assert_eq!(
        changed("2 * ratio", "2 * levels(a)"),
        "s.toml:58: value.is: there is no function levels (near it: level) (at character 5 of \"2 * levels(a) + after * 0 + \
         length(a) * 0\")"
    );
    assert_eq!(
        changed("y = \"level(a)\"", "y = \"level(b)\""),
        "s.toml:69: plot.y: there is no series level(b) (near it: level(a), level(t1), level(t2))"
    );
    assert_eq!(
        changed("ratio == F", "ratio == level(a)"),
        "s.toml:77: expect.that: there is no function level (known here: if, min, max, abs, sqrt, ln, exp, floor, ceil, \
         round) (at character 10 of \"ratio == level(a)\")"
    );
    assert_eq!(
        changed("slope(ratio) - 1", "slope(ratio) - ratio"),
        "s.toml:82: expect.that: ratio differs from point to point: say of which, as in mean(ratio), first(ratio) or \
         at(ratio, 13) (at character 20 of \"abs(slope(ratio) - ratio) < 0.1 and at(ratio, 1) == 1\")"
    );
    assert_eq!(
        changed("rises(ratio)", "rises(a)"),
        "s.toml:83: expect.quick: rises is of a value: a is none (known here: ratio, twice) (at character 1 of \
         \"rises(a)\")"
    );
    let over_words = WHOLE.replace("over = \"F\"", "over = \"how\"");
    assert_eq!(
        errors(
            &over_words
                .replace(" and at(ratio, 1) == 1", "")
                .replace("rises(ratio)", "at(ratio, 'drr')")
        ),
        "s.toml:82: expect.that: how has words, and no order: say of which, as in at(ratio, 'drr') (at character 5 of \
         \"abs(slope(ratio) - 1) < 0.1\")"
    );
    assert_eq!(
        changed("at(ratio, 1)", "at(ratio)"),
        "s.toml:82: expect.that: at has a value and a number, as in at(ratio, 13) (at character 33 of \
         \"abs(slope(ratio) - 1) < 0.1 and at(ratio) == 1\")"
    );
}

#[test]
fn what_is_wrong_at_one_setting_alone_is_told_when_it_is_set() {
    let text = WHOLE.replace("level = \"${F}\"", "level = \"${F / (F - 5)}\"");
    let scenario = Scenario::read(Path::new("s.toml"), &text).unwrap();
    let set = scenario.settings(false, &["F=5".to_owned()]).unwrap();
    let errors = scenario.prepare(&set).unwrap_err().to_string();
    assert!(
        errors.starts_with("s.toml:42: thing.level: ${F / (F - 5)} is inf, which is no number"),
        "{errors}"
    );
}

#[test]
fn names_are_given_once_and_an_each_is_a_range() {
    let changed = |from: &str, to: &str| errors(&WHOLE.replace(from, to));
    assert_eq!(
        changed("name = \"ratio\"", "name = \"F\"")
            .lines()
            .next()
            .unwrap(),
        "s.toml:51: value.name: F is the name of something else already"
    );
    assert_eq!(
        changed("i=1..${F}", "i=1..5000").lines().next().unwrap(),
        "s.toml:46: thing.each: i=1..5000: more than 1000 of them"
    );
    assert_eq!(
        changed("i=1..${F}", "often").lines().next().unwrap(),
        "s.toml:46: thing.each: write it as in each = \"i=1..25\", and use i in its expressions"
    );
    assert_eq!(errors("kind = \"fake\"\n"), "s.toml:1: title: is missing");
    assert!(errors("title = \"x\nkind").starts_with("s.toml:"));
    assert!(errors("title = \"x\"\nkind = \"none\"").contains(
        "kind: there is no kind none; there are network, units, bits, endpoint, stations, fake"
    ));
}

#[test]
fn a_run_says_how_far_it_is() {
    struct Seen(std::cell::RefCell<Vec<f64>>);
    impl Progress for Seen {
        fn at(&self, share: f64) {
            self.0.borrow_mut().push(share);
        }
    }
    let scenario = whole();
    let prepared = scenario.prepare(&scenario.parameters.defaults()).unwrap();
    let seen = Seen(Default::default());
    run(&scenario, &prepared, 1, &seen).unwrap();
    assert_eq!(*seen.0.borrow(), [0.5, 1.0]);
}

#[test]
fn what_no_run_can_mend_is_told_before_one() {
    let text = |more: &str| {
        format!(
            "title = \"x\"\nkind = \"fake\"\n[parameters.F]\ndefault = 2\n[parameters.how]\ndefault = \"a\"\n\
             one_of = [\"a\", \"b\"]\n[[thing]]\nname = \"t\"\nlevel = 1\n{more}"
        )
    };
    let value = "[[value]]\nname = \"y\"\nis = \"level(t)\"\n";
    let over = |over: &str, that: &str| {
        let expect = format!("[[expect]]\nsays = \"s\"\nover = \"{over}\"\nthat = \"{that}\"\n");
        errors(&text(&(value.to_owned() + &expect)))
    };
    for (error, message) in [
        (
            errors(&text("[[value]]\nname = \"y\"\nis = \"how\"\n")),
            "s.toml:13: value.is: a text, where a number is wanted",
        ),
        (
            errors(&text("[[value]]\nname = \"seed\"\nis = \"1\"\n")),
            "s.toml:12: value.name: seed is what the column of seeds is called",
        ),
        (
            over("F", "at(y, G) > 1"),
            "s.toml:17: expect.that: nothing is called G (near it: F)",
        ),
        (
            over("F", "at(y, 'a') > 1"),
            "s.toml:17: expect.that: 'a' is a text, where a number is wanted",
        ),
        (
            over("how", "at(y, 1) > 1"),
            "s.toml:17: expect.that: it has words: say of which, as in at(ratio, 'drr')",
        ),
    ] {
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn bounds_of_words_and_bounds_that_leave_nothing_are_refused() {
    let text = "title = \"x\"\nkind = \"fake\"\n[parameters.F]\ndefault = 2\nleast = 3\nmost = 1\n\
                [parameters.how]\ndefault = \"a\"\none_of = [\"a\"]\nleast = 1\nwhole = true\n\
                [parameters.n]\ndefault = 1.5\nwhole = true\n[[thing]]\nname = \"t\"\nlevel = 1\n";
    assert_eq!(
        errors(text),
        "s.toml:4: parameters.F.default: F=2: F is a number from 3 to 1\n\
         s.toml:5: parameters.F.least: 3 is above 1\n\
         s.toml:10: parameters.how.least: it is one of some words, and no number\n\
         s.toml:11: parameters.how.whole: it is one of some words, and no number\n\
         s.toml:13: parameters.n.default: n=1.5: n is a whole number, as in 13"
    );
}

#[test]
fn names_that_need_each_other_are_each_told() {
    let text = "title = \"x\"\nkind = \"fake\"\n[let]\na = \"b + 1\"\nb = \"a + b\"\nc = \"a + d\"\n\
                [[thing]]\nname = \"t\"\nlevel = 1\n";
    assert_eq!(
        errors(text),
        "s.toml:4: let.a: b is not known yet: what uses it stands below it (at character 1 of \"b + 1\")\n\
         s.toml:5: let.b: b is not known yet: what uses it stands below it (at character 5 of \"a + b\")\n\
         s.toml:6: let.c: nothing is called d (near it: a, b) (at character 5 of \"a + d\")"
    );
}
