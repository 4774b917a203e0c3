use std::path::Path;

use super::*;
use crate::judge::judge;
use crate::sweep::{Plan, single, sweep};

const TEXT: &str = r#"
title = "Levels & <things>"
kind = "fake"
paper = "P, Fig. 1"
shows = "What it shows."
assumes = ["nothing"]
[parameters.F]
says = "how many"
default = 2
least = 1
[parameters.rtt]
default = "100ms"
[parameters.how]
default = "a, b"
one_of = ["a, b", "c"]
[[thing]]
name = "a"
level = "${F * 100}"
noise = 1
kind = "${how}"
[[value]]
name = "level"
is = "level(a)"
unit = "m"
says = "how high"
[[value]]
name = "third"
is = "level / 3"
[[value]]
name = "none"
is = "0 / 0 * level"
[[plot]]
title = "Levels & <more>"
x = "F"
y = ["level", "third"]
log = "xy"
paper = "P, Fig. 1"
[[plot]]
title = "Over time"
x = "time"
y = ["level(a)"]
[[reported]]
value = "level"
points = [[1, 110], [3, 290]]
[[expect]]
says = "high enough"
that = "level > 99"
[[expect]]
says = "low enough"
that = "level < 250"
[[expect]]
says = "it grows"
over = "F"
that = "abs(slope(level) - 1) < 0.1"
"#;

fn scenario() -> Scenario {
    Scenario::read(Path::new("levels.toml"), TEXT).unwrap()
}

fn study<T>(vary: &[&str], seeds: &[u64], with: impl FnOnce(&Study<'_>) -> T) -> T {
    study_of(&scenario(), vary, seeds, with)
}

fn study_of<T>(
    scenario: &Scenario,
    vary: &[&str],
    seeds: &[u64],
    with: impl FnOnce(&Study<'_>) -> T,
) -> T {
    let vary: Vec<String> = vary.iter().map(|text| (*text).to_owned()).collect();
    let plan = Plan {
        quick: false,
        settings: scenario.settings(false, &[]).unwrap(),
        varied: scenario.varied(false, &vary).unwrap(),
        seeds: seeds.to_vec(),
    };
    let results = match vary.is_empty() {
        true => single(scenario, plan, &()),
        false => sweep(scenario, plan, 2, None, &()),
    };
    let results = results.unwrap();
    let verdicts = judge(scenario, &results);
    with(&Study {
        scenario,
        results: &results,
        verdicts: &verdicts,
        command: "packtrain sim sweep levels.toml --vary 'F=1..3'",
        version: "0.1.0",
    })
}

/// Whether each element is closed in its order, and nothing stands where it must not.
pub fn check_xml(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        assert!(!before.contains('>'), "a > in text: {before}");
        for (at, _) in before.match_indices('&') {
            let entity = &before[at..];
            let known = ["&lt;", "&gt;", "&amp;", "&quot;"];
            assert!(
                known.iter().any(|known| entity.starts_with(known)),
                "{entity}"
            );
        }
        let (tag, behind) = after.split_once('>').expect("a tag ends");
        rest = behind;
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "in {text}");
        } else if !tag.ends_with('/') {
            open.push(name);
            // Of style and no markup: it has > at will.
            if name == "style" {
                rest = &rest[rest.find("</style>").expect("it ends")..];
            }
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?}");
}

#[test]
fn a_sweep_is_printed_as_a_table_with_its_verdicts() {
    let text = study(&["F=1..3"], &[1], text::text);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Levels & <things> (levels; P, Fig. 1)");
    assert_eq!(lines[1], "rtt = 100ms, how = a, b, seed 1");
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(3), ["F", "level", "third", "none"]);
    assert_eq!(words(4), ["m"]);
    assert_eq!(words(5)[0], "1");
    assert_eq!(words(5)[3], "nan");
    assert_eq!(
        lines[9],
        "met      high enough: level > 99 (at each of 3 points)"
    );
    assert_eq!(lines[10], "NOT MET  low enough: level < 250");
    assert!(
        lines[11].starts_with("           F = 3: level = "),
        "{}",
        lines[11]
    );
    assert!(
        lines[12]
            .starts_with("met      it grows: abs(slope(level) - 1) < 0.1 (over F: slope(level) = ")
    );
    assert_eq!(lines.len(), 13);
}

#[test]
fn a_run_is_printed_with_what_each_value_is() {
    let text = study(&[], &[4], text::text);
    let row = text.lines().find(|line| line.starts_with("level")).unwrap();
    assert!(row.contains(" m  how high"), "{row}");
    assert!(
        text.contains(
            "-        it grows: abs(slope(level) - 1) < 0.1 (only a sweep over F shows it)"
        )
    );
    let several = study(&["F=1..2"], &[1, 2, 3], text::text);
    assert!(
        several.contains(" ± ") && several.contains("3 seeds"),
        "{several}"
    );
}

#[test]
fn what_is_explained_is_what_can_be_set_and_what_is_expected() {
    let text = text::explain(&scenario());
    for part in [
        "levels: Levels & <things>\nPaper: P, Fig. 1\n\nWhat it shows.\n",
        "  F = 2: how many; a number of at least 1\n",
        "  rtt = 100ms: a time, as in 100ms, 5us or 2s\n",
        "  how = a, b: one of a, b, c\n",
        "Assumed:\n  nothing\n",
        "  level [m]: how high\n",
        "  Levels & <more>, over F (P, Fig. 1)\n",
        "  Over time, over time, of a run\n",
        "  it grows: abs(slope(level) - 1) < 0.1, over F\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_list_has_a_row_a_scenario_and_a_sweep_is_explained_with_its_values() {
    let scenarios = [scenario(), crate::scenario::tests::whole()];
    assert_eq!(
        text::list(&scenarios),
        "NAME    PAPER      TITLE\nlevels  P, Fig. 1  Levels & <things>\nthings  P, Fig. 1  Things\n"
    );
    let list: serde_json::Value = serde_json::from_str(&json::list(&scenarios)).unwrap();
    assert_eq!(list[1]["name"], "things");
    let swept = "\nSwept (sim sweep):\n  F = 1, 2, 3; how = drr, drop-tail, with 3 seeds; quick F = 1, 2, with 3 seeds\n";
    let text = text::explain(&scenarios[1]);
    assert!(text.contains(swept), "{text}");
    assert!(!text::explain(&scenarios[0]).contains("Swept"));
}

#[test]
fn what_is_explained_to_programs_has_base_units_and_bounds() {
    let scenario = crate::scenario::tests::whole();
    let of: serde_json::Value = serde_json::from_str(&json::explain(&scenario)).unwrap();
    let rtt = &of["parameters"][1];
    assert_eq!(
        (&rtt["default"], &rtt["quick"]),
        (&0.1.into(), &0.01.into())
    );
    assert_eq!(
        (&rtt["least"], rtt["most"].is_null()),
        (&0.001.into(), true)
    );
    assert_eq!(of["parameters"][2]["one_of"][1], "drr");
    assert_eq!(of["sweep"]["vary"]["how"][0], "drr");
    assert_eq!(of["quick_sweep"]["vary"].as_object().unwrap().len(), 1);
    assert_eq!(of["expectations"][1]["quick"], "rises(ratio)");
    assert_eq!(of["plots"][1]["x"], "time");
}

#[test]
fn what_was_expected_is_coloured_where_there_are_colours() {
    let text = study(&["F=1..3"], &[1], |study| {
        text::text_with(study, |part, text| format!("<{part:?} {text}>"))
    });
    for part in [
        "<Title Levels & <things>> (levels; P, Fig. 1)\n",
        "\n<Met met     > high enough: ",
        "\n<NotMet NOT MET > low enough: ",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// Fields of a line of RFC 4180 without line breaks in them.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                fields.last_mut().unwrap().push(chars.next().unwrap())
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

#[test]
fn csv_is_read_back_as_the_very_same_numbers() {
    study(&["F=1..3", "how=c"], &[1, 2], |study| {
        let text = csv::csv(study);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("F,how,seed,level,third,none"));
        for point in &study.results.points {
            for run in &point.runs {
                let fields = fields(lines.next().unwrap());
                let f = point.settings.get("F").unwrap().number().unwrap();
                assert_eq!(fields[0].parse::<f64>(), Ok(f));
                assert_eq!(fields[1], "c");
                assert_eq!(fields[2].parse::<u64>(), Ok(run.seed));
                let numbers = [fields[3].parse::<f64>(), fields[4].parse::<f64>()];
                assert_eq!(numbers, [Ok(run.values[0]), Ok(run.values[1])]);
                assert_eq!(fields[5], "", "what is none is empty");
            }
        }
        assert_eq!(lines.next(), None);
    });
    assert_eq!(fields("a,\"b, \"\"c\"\"\",d"), ["a", "b, \"c\"", "d"]);
}

#[test]
fn the_document_has_every_number_and_null_for_what_is_none() {
    study(&["F=1..3"], &[1, 2], |study| {
        let document: serde_json::Value = serde_json::from_str(&json::text(study)).unwrap();
        assert_eq!(document["packtrain_sim"], 1);
        assert_eq!(document["varied"][0], "F");
        assert_eq!(document["settings"][0]["text"], "100ms");
        let third = &document["points"][2];
        assert_eq!(third["at"]["F"], 3);
        let level = &third["values"]["level"];
        assert!((level["mean"].as_f64().unwrap() - 300.0).abs() < 1.0);
        assert!(level["half_width"].as_f64().unwrap() > 0.0);
        assert_eq!(level["runs"].as_array().unwrap().len(), 2);
        assert!(third["values"]["none"]["mean"].is_null());
        assert_eq!(document["expectations"][1]["met"], false);
        assert_eq!(document["met"], false);
    });
    let run: serde_json::Value = serde_json::from_str(&study(&[], &[1], json::text)).unwrap();
    assert_eq!(run["series"][0]["points"].as_array().unwrap().len(), 10);
    assert!(run["expectations"][2]["met"].is_null());
}

#[test]
fn plots_are_drawn_of_what_there_is_and_are_well_formed() {
    study(&["F=1..3"], &[1, 2], |study| {
        let plots = svg::plots(study);
        let files: Vec<&str> = plots.iter().map(|plot| plot.file.as_str()).collect();
        assert_eq!(files, ["levels-1.svg"], "a sweep has nothing over time");
        let svg = plots[0].chart.svg();
        check_xml(&svg);
        assert!(svg.contains("Levels &amp; &lt;more&gt;"));
        assert!(svg.contains("Beside it: P, Fig. 1"));
        assert!(svg.contains("level, as the paper has it"));
        assert_eq!(plots[0].chart.panels.len(), 2, "one for each unit");
    });
    let mut run = study(&[], &[1], svg::plots);
    let time = run.pop().unwrap();
    assert_eq!(time.file, "levels-2.svg");
    assert!(run.is_empty(), "a run has one point over F, and no line");
    assert!(study(&["rtt=10ms,20ms"], &[1], svg::plots).is_empty());
    check_xml(&time.chart.svg());
}

#[test]
fn a_line_is_drawn_for_each_combination_of_what_else_is_varied() {
    study(&["F=1..3", "rtt=10ms,20ms"], &[1], |study| {
        let chart = &svg::plots(study)[0].chart;
        let names: Vec<&str> = chart.panels[0]
            .lines
            .iter()
            .map(|line| line.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "level, rtt = 10ms",
                "level, rtt = 20ms",
                "level, as the paper has it"
            ]
        );
    });
}

#[test]
fn the_page_has_everything_and_names_no_other_file() {
    study(&["F=1..3"], &[1, 2], |study| {
        let page = html::html(study);
        for part in [
            "<h1>Levels &amp; &lt;things&gt;</h1>",
            "What it shows.",
            "<svg ",
            "not met",
            "packtrain sim sweep levels.toml --vary 'F=1..3'",
            "<td>F<td>1, 2, 3<td>how many",
            "<li>nothing</li>",
        ] {
            assert!(page.contains(part), "{part}");
        }
        for other in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(other), "{other}");
        }
        assert_eq!(page.matches("<style>").count(), 1);
        for drawn in page.split("<svg ").skip(1) {
            let end = drawn.find("</svg>").unwrap() + "</svg>".len();
            check_xml(&format!("<svg {}", &drawn[..end]));
        }
    });
}

#[test]
fn the_documents_are_what_their_schema_says() {
    for vary in [&[][..], &["F=1..3", "how=c"]] {
        check_schema(None, &study(vary, &[1], json::text));
    }
    let scenarios = [scenario(), crate::scenario::tests::whole()];
    check_schema(Some("list"), &json::list(&scenarios));
    scenarios
        .iter()
        .for_each(|scenario| check_schema(Some("explain"), &json::explain(scenario)));
}

/// `part`: of its definitions.
fn check_schema(part: Option<&str>, document: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sim.schema.json");
    let schema = std::fs::read_to_string(path).unwrap();
    let mut schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    only_what_is_named(&mut schema);
    if let Some(part) = part {
        schema = schema["$defs"][part].take();
    }
    let schema = jsonschema::validator_for(&schema).unwrap();
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    let errors: Vec<String> = schema
        .iter_errors(&document)
        .map(|e| e.to_string())
        .collect();
    assert_eq!(errors, [""; 0]);
}

/// A field that the schema forgot is a mistake here; a reader has to bear with it.
fn only_what_is_named(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(fields) => {
            fields.values_mut().for_each(only_what_is_named);
            let is_named = fields.get("properties").is_some_and(|p| p.is_object());
            if is_named && fields.get("type").is_some_and(|t| t == "object") {
                fields.insert("additionalProperties".into(), false.into());
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(only_what_is_named),
        _ => {}
    }
}

#[test]
fn over_words_each_has_its_place_and_over_a_time_ticks_have_units() {
    let over = |name: &str, vary: &[&str]| {
        let text = TEXT.replace("x = \"F\"", &format!("x = \"{name}\""));
        let scenario = Scenario::read(Path::new("levels.toml"), &text).unwrap();
        study_of(&scenario, vary, &[1, 2], |study| {
            svg::plots(study)[0].chart.svg()
        })
    };
    let words = over("how", &["how=c", "F=1..3"]);
    check_xml(&words);
    assert!(words.contains(">c</text>"), "{words}");
    assert_eq!(
        words.matches("class=\"path").count(),
        0,
        "words have no order"
    );
    assert!(words.contains("class=\"mark m0\""));
    let times = over("rtt", &["rtt=10ms,100ms"]);
    assert!(
        times.contains(">10ms</text>") && times.contains(">100ms</text>"),
        "{times}"
    );
}
