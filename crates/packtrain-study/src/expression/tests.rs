use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

struct Known(BTreeMap<&'static str, Value>);

impl Names for Known {
    fn value(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }

    fn call(&self, function: &str, arguments: &[Argument<'_>]) -> Option<Result<f64, String>> {
        match (function, arguments) {
            ("length", [Argument::Name(name)]) => Some(Ok(name.len() as f64)),
            ("length", _) => Some(Err("length is of a name".into())),
            ("count", arguments) => Some(Ok(arguments.len() as f64)),
            _ => None,
        }
    }

    fn known_names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }

    fn known_functions(&self) -> Vec<String> {
        vec!["length".into(), "count".into()]
    }
}

fn known() -> Known {
    let number = Value::Number;
    let values = [
        ("F", number(13.0)),
        ("rate", number(1e9)),
        ("ratio", number(2.0)),
        ("how", Value::Text("drr".into())),
    ];
    Known(BTreeMap::from(values))
}

fn number(text: &str) -> f64 {
    Expression::parse(text).unwrap().number(&known()).unwrap()
}

fn error_of(text: &str) -> String {
    let parsed = Expression::parse(text);
    let error = parsed.and_then(|expression| expression.evaluate(&known()));
    error.unwrap_err().to_string()
}

#[test]
fn what_binds_closer_is_computed_first() {
    for (text, value) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("2 ^ -1", 0.5),
        ("10 - 2 - 3", 5.0),
        ("12 / 3 / 2", 2.0),
        ("rate * 0.1 / 8", 12_500_000.0),
        ("1500*F-40", 19_460.0),
        ("1 < 2 and not 3 < 2 or 0", 1.0),
        ("not 1 or 1", 1.0),
        ("1e-3 + .5", 0.501),
        ("if(F > 1, ratio, 0)", 2.0),
        ("max(1, F, 3) - min(4, 2)", 11.0),
        ("round(2.5) + floor(-0.5) + ceil(0.2) + abs(-1)", 4.0),
        ("sqrt(16) + ln(exp(2))", 6.0),
        ("length(bottleneck)", 10.0),
        ("count()", 0.0),
        ("how == 'drr' and how != \"codel\"", 1.0),
        ("1 == 1.0", 1.0),
    ] {
        assert_eq!(number(text), value, "{text}");
    }
    let chosen = Expression::parse("if(F == 1, 'drop-tail', how)").unwrap();
    assert_eq!(chosen.evaluate(&known()), Ok(Value::Text("drr".into())));
    let joined = Expression::parse("how + ':' + 1500 * F + 'b,' + (1 + 1) / 4").unwrap();
    let text = Value::Text("drr:19500b,0.5".into());
    assert_eq!(joined.evaluate(&known()), Ok(text));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, error) in [
        (
            "1 +",
            "it ends where a value is wanted (at character 4 of \"1 +\")",
        ),
        (
            "",
            "it ends where a value is wanted (at character 1 of \"\")",
        ),
        ("(1 + 2", "its ) is missing (at character 1 of \"(1 + 2\")"),
        (
            "é + 1",
            "'é' where a value is wanted (at character 1 of \"é + 1\")",
        ),
        (
            "'é' == $",
            "'$' where a value is wanted (at character 8 of \"'é' == $\")",
        ),
        (
            "1 2",
            "'2' does not belong here (at character 3 of \"1 2\")",
        ),
        (
            "F = 1",
            "to compare, write == (at character 3 of \"F = 1\")",
        ),
        (
            "1 < 2 < 3",
            "comparisons have two sides: join several with and (at character 8 of \"1 < 2 < 3\")",
        ),
        (
            "100ms",
            "a number with a unit: expressions count in seconds, bit/s and bytes (at character 1 of \"100ms\")",
        ),
        (
            "1.2.3",
            "\"1.2.3\" is no number (at character 1 of \"1.2.3\")",
        ),
        (
            "and 1",
            "a value is missing before and (at character 1 of \"and 1\")",
        ),
        (
            "'abc",
            "a text that does not end (at character 1 of \"'abc\")",
        ),
        (
            "1 + rato",
            "nothing is called rato (near it: rate, ratio) (at character 5 of \"1 + rato\")",
        ),
        (
            "x",
            "nothing is called x (near it: F) (at character 1 of \"x\")",
        ),
        (
            "capacity",
            "nothing is called capacity (known here: F, how, rate, ratio) (at character 1 of \"capacity\")",
        ),
        (
            "length",
            "length is a function: say what it is of, as in length(…) (at character 1 of \"length\")",
        ),
        (
            "lenght(a)",
            "there is no function lenght (near it: length) (at character 1 of \"lenght(a)\")",
        ),
        (
            "2 * length(1)",
            "length is of a name (at character 5 of \"2 * length(1)\")",
        ),
        (
            "abs(1, 2)",
            "abs has one argument, and not 2 (at character 1 of \"abs(1, 2)\")",
        ),
        (
            "if(1)",
            "if has 3 arguments, and not 1 (at character 1 of \"if(1)\")",
        ),
        (
            "min()",
            "min has at least 1 argument, and not 0 (at character 1 of \"min()\")",
        ),
        (
            "1 - how",
            "the text \"drr\", where a number is wanted (at character 5 of \"1 - how\")",
        ),
        (
            "F == 'drr'",
            "a number is compared with a text (at character 1 of \"F == 'drr'\")",
        ),
    ] {
        assert_eq!(error_of(text), error);
    }
    let deep = "(".repeat(5000);
    assert!(error_of(&deep[..100]).starts_with("nested deeper than 64"));
    assert!(error_of(&deep).starts_with("longer than 4096 bytes"));
}

#[test]
fn a_name_that_is_never_reached_is_checked_as_well() {
    let check = |text: &str| Expression::parse(text).unwrap().check(&known());
    assert_eq!(check("if(0, length(a), F) and how == 'x'"), Ok(()));
    assert!(
        check("if(1, 1, nowhere)")
            .unwrap_err()
            .message
            .contains("nowhere")
    );
    assert!(check("0 and missing(a)").is_err());
    assert!(check("length(1)").is_err());
}

#[test]
fn its_terms_are_its_names_and_the_calls_of_what_it_does_not_know_itself() {
    let expression = Expression::parse("abs(count(ratio, 2) - 2) <= F + F").unwrap();
    let terms = expression.terms();
    let texts: Vec<&str> = terms.iter().map(Expression::text).collect();
    assert_eq!(texts, ["count(ratio, 2)", "F"]);
    assert_eq!(terms[0].number(&known()), Ok(2.0));
}

#[test]
fn names_are_such_as_expressions_read_as_one() {
    for right in ["F", "queue_mean", "s1", "_x"] {
        assert_eq!(check_name(right), Ok(()));
    }
    assert_eq!(
        check_name("a-b").unwrap_err(),
        "\"a-b\" is no name: letters, digits and _, beginning with a letter, at most 32"
    );
    assert_eq!(
        check_name("not").unwrap_err(),
        "not is a word of expressions, and no name"
    );
    assert!(check_name("1a").is_err() && check_name("").is_err());
}

/// The same, computed from right to left over the very text.
fn slow(terms: &[(bool, f64)]) -> f64 {
    terms.iter().fold(
        0.0,
        |sum, (minus, of)| if *minus { sum - of } else { sum + of },
    )
}

proptest! {
    #[test]
    fn long_sums_are_added_from_left_to_right(terms in prop::collection::vec((any::<bool>(), 0.0..1e6_f64), 1..60)) {
        let text: String = terms
            .iter()
            .map(|(minus, of)| format!("{} {of} ", if *minus { "-" } else { "+" }))
            .collect();
        prop_assert_eq!(number(&format!("0 {text}")), slow(&terms));
    }

    #[test]
    fn no_text_is_too_odd_to_be_refused(text in "\\PC{0,40}") {
        let _ = Expression::parse(&text).and_then(|e| e.evaluate(&known()));
    }
}

#[test]
fn a_long_sum_is_refused_before_it_is_too_deep_for_a_stack() {
    let sum = |terms: usize| Expression::parse(&vec!["1"; terms].join(" + "));
    let operators = parse::OPERATORS_MAX;
    assert_eq!(
        sum(operators + 1).unwrap().number(&Known(BTreeMap::new())),
        Ok(operators as f64 + 1.0)
    );
    let error = sum(operators + 2).unwrap_err();
    assert_eq!(error.message, format!("more than {operators} operators"));
    let many = vec!["1 < 2"; operators].join(" and ");
    assert!(Expression::parse(&many).is_err());
}

#[test]
fn of_what_is_no_number_a_comparison_is_neither_true_nor_false() {
    let of = |text: &str| {
        Expression::parse(text)
            .unwrap()
            .number(&Known(BTreeMap::new()))
            .unwrap()
    };
    for unknown in [
        "0/0 > 5",
        "not (0/0 > 5)",
        "0/0 != 0/0",
        "not (0/0 == 1)",
        "1 and 0/0 < 1",
        "0/0 < 1 or 0",
        "not 0/0",
    ] {
        assert!(of(unknown).is_nan(), "{unknown}");
    }
    for (known, value) in [
        ("0 and 0/0 < 1", 0.0),
        ("0/0 < 1 and 0", 0.0),
        ("1 or 0/0 < 1", 1.0),
        ("0/0 < 1 or 1", 1.0),
        ("if(0/0 > 5, 1, 2)", 2.0),
        ("if(not (0/0 > 5), 1, 2)", 2.0),
        ("not 0 and 2 or 0", 1.0),
    ] {
        assert_eq!(of(known), value, "{known}");
    }
}
