//! Texts with expressions in them: `${1500*F}b`.

use crate::expression::{Expression, ExpressionError, Names, Value};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    #[error("${{ without its }} in {0:?}")]
    Open(String),
    #[error("${{{expression}}} is {value}, which is no number")]
    NoNumber { expression: String, value: String },
}

pub fn has_expressions(text: &str) -> bool {
    text.contains("${")
}

/// The text with the values in place of the expressions.
pub fn expand(text: &str, names: &dyn Names) -> Result<String, TemplateError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out += before;
        let Some(end) = end(after) else {
            return Err(TemplateError::Open(text.to_owned()));
        };
        let value = Expression::parse(&after[..end])?.evaluate(names)?;
        if matches!(value, Value::Number(number) if !number.is_finite()) {
            return Err(TemplateError::NoNumber {
                expression: after[..end].to_owned(),
                value: value.to_string(),
            });
        }
        out += &value.to_string();
        rest = &after[end + 1..];
    }
    out += rest;
    Ok(out)
}

/// Of the expression: a brace within a text is one of the text.
fn end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '}') => return Some(at),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Argument;

    struct Two;

    impl Names for Two {
        fn value(&self, name: &str) -> Option<Value> {
            match name {
                "F" => Some(Value::Number(13.0)),
                "how" => Some(Value::Text("fq-codel".into())),
                _ => None,
            }
        }

        fn call(&self, _: &str, _: &[Argument<'_>]) -> Option<Result<f64, String>> {
            None
        }

        fn known_names(&self) -> Vec<String> {
            vec!["F".into(), "how".into()]
        }

        fn known_functions(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn expressions_are_replaced_by_what_they_are_and_the_rest_stays() {
        for (text, expanded) in [
            ("plain $ {text}", "plain $ {text}"),
            ("drr:${1500*F}b,${F/4}kb", "drr:19500b,3.25kb"),
            ("${how}", "fq-codel"),
            ("${if(F > 1, '}', \"{\")}!", "}!"),
        ] {
            assert_eq!(expand(text, &Two).unwrap(), expanded);
        }
    }

    #[test]
    fn what_cannot_be_computed_is_told() {
        let error = |text: &str| expand(text, &Two).unwrap_err().to_string();
        assert_eq!(error("a ${F"), "${ without its } in \"a ${F\"");
        assert_eq!(error("${F/0}"), "${F/0} is inf, which is no number");
        assert_eq!(
            error("${F + G}b"),
            "nothing is called G (near it: F) (at character 5 of \"F + G\")"
        );
    }
}
