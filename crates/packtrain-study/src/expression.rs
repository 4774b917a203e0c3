//! What is computed in a scenario: numbers, names and functions, as on paper.
//!
//! ```text
//! or:       and ( "or" and )*
//! and:      not ( "and" not )*
//! not:      "not" not | sum ( ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum )?
//! sum:      product ( ( "+" | "-" ) product )*
//! product:  unary ( ( "*" | "/" ) unary )*
//! unary:    "-" unary | power
//! power:    primary ( "^" unary )?
//! primary:  number | 'text' | name | name "(" ( or ( "," or )* )? ")" | "(" or ")"
//! ```
//!
//! True is 1 and false is 0. Texts can be compared and chosen, and a sum of which one side is a text is a text: what one side
//! is, and behind it what the other one is.

mod evaluate;
mod parse;

use std::fmt;

pub use evaluate::{Argument, Names};

/// Longer ones are mistakes; and so that nothing here recurses deeply.
pub const TEXT_BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
        }
    }
}

impl fmt::Display for Value {
    /// As it is put into a text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(value) => f.pad(&crate::quantity::number(*value)),
            Value::Text(text) => f.pad(text),
        }
    }
}

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {at} of {text:?})")]
pub struct ExpressionError {
    pub text: String,
    /// From 1.
    pub at: usize,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
struct Node {
    /// Where it begins, in bytes.
    at: usize,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Number(f64),
    Text(String),
    Name(String),
    Call(String, Vec<Node>),
    Negate(Box<Node>),
    Not(Box<Node>),
    Binary(Operator, Box<[Node; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

impl Expression {
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        Ok(Expression {
            text: text.to_owned(),
            root: parse::parse(text)?,
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn evaluate(&self, names: &dyn Names) -> Result<Value, ExpressionError> {
        evaluate::evaluate(&self.text, &self.root, names)
    }

    pub fn number(&self, names: &dyn Names) -> Result<f64, ExpressionError> {
        let value = self.evaluate(names)?;
        value
            .number()
            .ok_or_else(|| error(&self.text, 0, "a text, where a number is wanted".into()))
    }

    /// Whether all names are known, in the branches that are not taken as well.
    pub fn check(&self, names: &dyn Names) -> Result<(), ExpressionError> {
        evaluate::check(&self.text, &self.root, names)
    }

    /// Its names and the calls of functions that are not the language's own, each once, as they are
    /// written: what a reader wants to know the values of.
    pub fn terms(&self) -> Vec<Expression> {
        let mut terms = Vec::new();
        self.collect(&self.root, &mut terms);
        terms
    }

    fn collect(&self, node: &Node, into: &mut Vec<Expression>) {
        let is_own = |function: &str| evaluate::own_function(function).is_some();
        match &node.kind {
            Kind::Number(_) | Kind::Text(_) => {}
            Kind::Call(function, arguments) if is_own(function) => {
                arguments.iter().for_each(|node| self.collect(node, into));
            }
            Kind::Name(name) => add(into, name.clone(), node),
            Kind::Call(function, arguments) => {
                let words: Vec<String> = arguments.iter().map(|node| self.word(node)).collect();
                add(into, format!("{function}({})", words.join(", ")), node);
            }
            Kind::Negate(of) | Kind::Not(of) => self.collect(of, into),
            Kind::Binary(_, of) => of.iter().for_each(|node| self.collect(node, into)),
        }
    }

    /// An argument: a name or a number as a rule.
    fn word(&self, node: &Node) -> String {
        match &node.kind {
            Kind::Name(name) => name.clone(),
            kind => match kind {
                Kind::Number(value) => crate::quantity::number(*value),
                _ => "…".into(),
            },
        }
    }
}

fn add(into: &mut Vec<Expression>, text: String, node: &Node) {
    if into.iter().all(|known| known.text != text) {
        into.push(Expression {
            text,
            root: node.clone(),
        });
    }
}

fn error(text: &str, at: usize, message: String) -> ExpressionError {
    let before = text.get(..at).unwrap_or(text);
    ExpressionError {
        text: text.to_owned(),
        at: before.chars().count() + 1,
        message,
    }
}

/// Those that somebody may have meant; all, where none is near.
pub fn near(name: &str, known: &[String]) -> String {
    const LISTED_MAX: usize = 24;
    let distance = |other: &String| distance(name, other);
    let limit = 1 + name.chars().count() / 3;
    let mut close: Vec<&String> = known
        .iter()
        .filter(|other| distance(other) <= limit || other.starts_with(name) && !name.is_empty())
        .collect();
    close.sort_by_key(|other| (distance(other), (*other).clone()));
    match close.is_empty() {
        false => {
            let close: Vec<&str> = close.into_iter().take(3).map(String::as_str).collect();
            format!("near it: {}", close.join(", "))
        }
        true if known.is_empty() => "nothing has a name here".into(),
        true => {
            let mut listed: Vec<&str> = known.iter().map(String::as_str).collect();
            listed.truncate(LISTED_MAX);
            format!("known here: {}", listed.join(", "))
        }
    }
}

/// Letters to change, add or leave out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, of_a) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, of_b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(of_a != *of_b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// What a name in an expression looks like: parameters, values, lines and flows are called so.
pub fn check_name(name: &str) -> Result<(), String> {
    const LENGTH_MAX: usize = 32;
    let letters = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let first = name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    let word = ["and", "or", "not"].contains(&name);
    if letters && first && name.len() <= LENGTH_MAX && !word {
        return Ok(());
    }
    if word || evaluate::own_function(name).is_some() {
        return Err(format!("{name} is a word of expressions, and no name"));
    }
    Err(format!(
        "{name:?} is no name: letters, digits and _, beginning with a letter, at most {LENGTH_MAX}"
    ))
}

#[cfg(test)]
mod tests;
