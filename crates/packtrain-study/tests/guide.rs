//! The user's guide, `docs/simulator.md`, says what there is.

use std::path::Path;

use packtrain_study::kinds::{network, stations};
use packtrain_study::scenario::Scenario;
use packtrain_study::vary::points;
use packtrain_study::{builtin, expression};

fn guide() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulator.md");
    std::fs::read_to_string(path).unwrap()
}

/// What stands in fences of TOML.
fn scenarios(guide: &str) -> Vec<&str> {
    let blocks = guide.split("\n```toml\n").skip(1);
    blocks
        .map(|rest| rest.split_once("\n```").unwrap().0)
        .collect()
}

fn is_told(guide: &str, word: &str) -> bool {
    ["`", "`[", "`[["].iter().any(|open| {
        let begins = format!("{open}{word}");
        let mut at = guide.match_indices(&begins);
        at.any(|(at, _)| {
            let behind = guide[at + begins.len()..].chars().next();
            behind.is_some_and(|c| !c.is_alphanumeric() && c != '_')
        })
    })
}

#[test]
fn each_scenario_in_the_guide_can_be_run_as_it_stands() {
    let guide = guide();
    let scenarios = scenarios(&guide);
    assert!(!scenarios.is_empty());
    for text in scenarios {
        let scenario = Scenario::read(Path::new("guide.toml"), text)
            .unwrap_or_else(|errors| panic!("{errors}"));
        for quick in [false, true] {
            let settings = scenario.settings(quick, &[]).unwrap();
            let varied = scenario.varied(quick, &[]).unwrap();
            for point in points(&settings, &varied).unwrap() {
                if let Err(errors) = scenario.prepare(&point) {
                    panic!("{point:?}: {errors}");
                }
            }
        }
    }
}

#[test]
fn the_guide_lists_the_scenarios_that_come_along_and_no_other() {
    let guide = guide();
    let row = |name: &str| {
        let scenario = builtin::read(name).unwrap().unwrap();
        let paper = scenario.paper.unwrap_or_default();
        format!("| `{name}` | {paper} | {} |\n", scenario.title)
    };
    let rows: String = builtin::names().map(row).collect();
    let table = guide.split_once("| name | paper | title |\n|---|---|---|\n");
    let told = table.unwrap().1.split_once("\n\n").unwrap().0;
    assert_eq!(format!("{told}\n"), rows, "the table has to be:\n{rows}");
}

#[test]
fn the_guide_tells_every_fact_function_and_key() {
    let guide = guide();
    let untold = |words: Vec<String>| -> Vec<String> {
        let untold = words.into_iter().filter(|word| !is_told(&guide, word));
        untold.collect()
    };
    assert_eq!(untold(facts_of_all_kinds()), [""; 0]);
    assert_eq!(untold(own_functions()), [""; 0]);
    let over = packtrain_study::scenario::OVER.map(str::to_owned);
    assert_eq!(untold(over.to_vec()), [""; 0]);
    let keys = known_keys();
    assert!(keys.len() > 60, "{keys:?}");
    assert_eq!(untold(keys), [""; 0]);
}

fn facts_of_all_kinds() -> Vec<String> {
    let mut all = stations::facts::names();
    // One for each link.
    all.retain(|fact| stations::facts::link_of_share(fact).is_none_or(|link| link < 2));
    all.extend(network::facts::names());
    for name in builtin::names() {
        let scenario = builtin::read(name).unwrap().unwrap();
        let prepared = scenario.prepare(&scenario.parameters.defaults()).unwrap();
        if !["network", "stations"].contains(&scenario.kind.as_str()) {
            all.extend(prepared.model.fact_names());
        }
    }
    all
}

/// Those of the language, as an error names them.
fn own_functions() -> Vec<String> {
    let text =
        "title = \"x\"\n[let]\na = \"zzzzzzzz(1)\"\n[run]\nseconds = 1\n[[line]]\nname = \"l\"\n";
    let errors = Scenario::read(Path::new("s.toml"), text).unwrap_err();
    let functions = known(&errors.to_string());
    assert!(functions.len() >= 10, "{functions:?}");
    functions
}

/// Of all sections, as errors about one that there is not name them.
fn known_keys() -> Vec<String> {
    let text = "title = \"x\"\nzz = 1\n[parameters.p]\ndefault = 1\nzz = 1\n[sweep]\nzz = 1\n\
                [run]\nseconds = 1\nzz = 1\n[[line]]\nname = \"l\"\nrate = \"1mbit\"\nzz = 1\n\
                [[flow]]\nname = \"f\"\npath = [\"l\"]\nzz = 1\n\
                [[visitors]]\nname = \"v\"\npath = [\"l\"]\narrivals = \"poisson:1/s\"\nsizes = \"fixed:1kB\"\nzz = 1\n\
                [[datagrams]]\nname = \"a\"\npath = [\"l\"]\narrivals = \"poisson:1/s\"\nsizes = \"fixed:1kB\"\nzz = 1\n\
                [[datagrams]]\nname = \"b\"\npath = [\"l\"]\nafter_reply = \"0s\"\nreply = 200\nsizes = \"fixed:1kB\"\nzz = 1\n\
                [[value]]\nname = \"y\"\nis = \"1\"\nzz = 1\n[[plot]]\ntitle = \"t\"\nx = \"p\"\ny = \"y\"\nzz = 1\n\
                [[reported]]\nvalue = \"y\"\npoints = [[1, 1]]\nzz = 1\n[[expect]]\nsays = \"s\"\nthat = \"1\"\nzz = 1\n";
    let others = [
        "title = \"x\"\nkind = \"units\"\n[units]\nsizes = \"fixed:1kB\"\nflows = 1\nzz = 1\n",
        "title = \"x\"\nkind = \"bits\"\n[bits]\ntheta = 0.05\nbit_errors = 1e-6\nzz = 1\n",
        "title = \"x\"\nkind = \"endpoint\"\n[run]\nseconds = 1\n[[endpoint]]\nname = \"e\"\nmix = { unicast = 1, zz = 1 }\n\
         costs = { zz = 1 }\nzz = 1\n",
        "title = \"x\"\nkind = \"stations\"\n[run]\nseconds = 1\n[[segment]]\nname = \"s\"\nkind = \"switch\"\nzz = 1\n\
         [[station]]\nname = \"a\"\nlinks = [{ on = \"s\", zz = 1 }]\nzz = 1\n\
         [[station]]\nname = \"b\"\nlinks = [\"s\"]\n\
         [[application]]\nname = \"p\"\nkind = \"ping-pong\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1kb\"\nzz = 1\n\
         [[application]]\nname = \"f\"\nkind = \"flood\"\nfrom = \"a\"\nto = \"b\"\nbytes = 1000\nzz = 1\n\
         [[application]]\nname = \"t\"\nkind = \"transactions\"\nserver = \"a\"\nclients = \"b\"\nzz = 1\n\
         [[application]]\nname = \"c\"\nkind = \"copies\"\nserver = \"a\"\nreader = \"b\"\ndisk_rate = \"1mbit\"\n\
         file = \"1kb\"\ncopies = 1\nzz = 1\n",
    ];
    let mut keys = vec!["pcap".to_owned(), "each".to_owned()];
    for text in others.iter().chain([&text]) {
        let errors = Scenario::read(Path::new("s.toml"), text).unwrap_err();
        assert_eq!(errors.0.len(), text.matches("zz").count(), "{errors}");
        keys.extend(errors.0.iter().flat_map(|error| known(&error.message)));
    }
    keys.sort();
    keys.dedup();
    keys
}

fn known(message: &str) -> Vec<String> {
    let Some((_, known)) = message.split_once("(known here: ") else {
        panic!("{message}");
    };
    let words = known.split_once(')').unwrap().0.split(", ");
    words.map(str::to_owned).collect()
}

#[test]
fn what_the_guide_says_of_expressions_is_so() {
    struct Nothing;
    impl expression::Names for Nothing {
        fn value(&self, _: &str) -> Option<expression::Value> {
            None
        }
        fn call(&self, _: &str, _: &[expression::Argument<'_>]) -> Option<Result<f64, String>> {
            None
        }
        fn known_names(&self) -> Vec<String> {
            Vec::new()
        }
        fn known_functions(&self) -> Vec<String> {
            Vec::new()
        }
    }
    for (text, value) in [
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("'drr' == 'drr'", 1.0),
    ] {
        let expression = expression::Expression::parse(text).unwrap();
        assert_eq!(expression.number(&Nothing), Ok(value), "{text}");
    }
}

/// What is printed before a run's results, in a fence of the guide.
#[test]
fn the_run_in_the_guide_is_of_the_settings_that_the_scenario_has() {
    let scenario = builtin::read("xlf-drr").unwrap().unwrap();
    let settings = scenario.settings(true, &[]).unwrap();
    let words = scenario.parameters.0.iter().map(|parameter| {
        let value = settings.get(&parameter.name).unwrap();
        format!("{} = {}, ", parameter.name, parameter.print(value))
    });
    let line = words.collect::<String>() + "seed 1, the quick form";
    assert!(
        guide().contains(&format!("\n{line}\n")),
        "it has to be: {line}"
    );
}
