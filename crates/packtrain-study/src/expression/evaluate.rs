//! A tree becomes a value.

use super::{ExpressionError, Kind, Node, Operator, Value, error, near};

/// What names stand for where an expression is.
pub trait Names {
    fn value(&self, name: &str) -> Option<Value>;

    /// A function that is not the language's own; `None`: there is none of this name.
    fn call(&self, function: &str, arguments: &[Argument<'_>]) -> Option<Result<f64, String>>;

    /// For errors.
    fn known_names(&self) -> Vec<String>;

    fn known_functions(&self) -> Vec<String>;

    /// Why a name stands for nothing here, where there is more to say than that.
    fn why_not(&self, _name: &str) -> Option<String> {
        None
    }
}

/// Of a function that is not the language's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// One alone: of a line or a flow, or of a value.
    Name(&'a str),
    Number(f64),
    /// In quotes: a word that is none of a name's.
    Text(&'a str),
}

/// With the least and the most number of arguments.
const OWN: [(&str, usize, usize); 10] = [
    ("if", 3, 3),
    ("min", 1, usize::MAX),
    ("max", 1, usize::MAX),
    ("abs", 1, 1),
    ("sqrt", 1, 1),
    ("ln", 1, 1),
    ("exp", 1, 1),
    ("floor", 1, 1),
    ("ceil", 1, 1),
    ("round", 1, 1),
];

pub fn own_function(name: &str) -> Option<(usize, usize)> {
    let found = OWN.iter().find(|(own, ..)| *own == name);
    found.map(|(_, least, most)| (*least, *most))
}

pub fn evaluate(text: &str, node: &Node, names: &dyn Names) -> Result<Value, ExpressionError> {
    let number = |node: &Node| match evaluate(text, node, names)? {
        Value::Number(number) => Ok(number),
        Value::Text(found) => {
            let message = format!("the text {found:?}, where a number is wanted");
            Err(error(text, node.at, message))
        }
    };
    let of = match &node.kind {
        Kind::Number(number) => *number,
        Kind::Text(found) => return Ok(Value::Text(found.clone())),
        Kind::Name(name) => {
            return names
                .value(name)
                .ok_or_else(|| unknown_name(text, node, name, names));
        }
        Kind::Negate(of) => -number(of)?,
        Kind::Not(of) => not(number(of)?),
        Kind::Binary(Operator::And, of) => match number(&of[0])? {
            0.0 => 0.0,
            left => and(left, number(&of[1])?),
        },
        // One is true where not both are false.
        Kind::Binary(Operator::Or, of) => match not(number(&of[0])?) {
            0.0 => 1.0,
            neither => not(and(neither, not(number(&of[1])?))),
        },
        Kind::Binary(operator @ (Operator::Equal | Operator::NotEqual), of) => {
            let [left, right] = [&of[0], &of[1]].map(|node| evaluate(text, node, names));
            let (left, right) = (left?, right?);
            if matches!(left, Value::Number(_)) != matches!(right, Value::Number(_)) {
                let message = "a number is compared with a text".into();
                return Err(error(text, node.at, message));
            }
            match (left, right) {
                (Value::Number(left), Value::Number(right)) => binary(*operator, left, right),
                (left, right) => truth((left == right) == (*operator == Operator::Equal)),
            }
        }
        Kind::Binary(Operator::Add, of) => {
            let [left, right] = [&of[0], &of[1]].map(|node| evaluate(text, node, names));
            match (left?, right?) {
                (Value::Number(left), Value::Number(right)) => left + right,
                // As each is put into a text.
                (left, right) => return Ok(Value::Text(format!("{left}{right}"))),
            }
        }
        Kind::Binary(operator, of) => binary(*operator, number(&of[0])?, number(&of[1])?),
        Kind::Call(function, arguments) => {
            check_arguments(text, node, function, arguments)?;
            match (function.as_str(), own_function(function)) {
                ("if", _) => {
                    let condition = number(&arguments[0])?;
                    let is_true = condition != 0.0 && !condition.is_nan();
                    let taken = if is_true { 1 } else { 2 };
                    return evaluate(text, &arguments[taken], names);
                }
                (function, Some(_)) => {
                    let numbers: Result<Vec<f64>, _> = arguments.iter().map(number).collect();
                    own(function, &numbers?)
                }
                (function, None) => {
                    let arguments: Result<Vec<Argument<'_>>, _> = arguments
                        .iter()
                        .map(|argument| match &argument.kind {
                            Kind::Name(name) => Ok(Argument::Name(name)),
                            Kind::Text(found) => Ok(Argument::Text(found)),
                            _ => number(argument).map(Argument::Number),
                        })
                        .collect();
                    called(text, node, function, &arguments?, names)?
                }
            }
        }
    };
    Ok(Value::Number(of))
}

/// Without evaluating: in what is not reached, too, and where values are not known yet.
pub fn check(text: &str, node: &Node, names: &dyn Names) -> Result<(), ExpressionError> {
    match &node.kind {
        Kind::Number(_) | Kind::Text(_) => Ok(()),
        Kind::Name(name) => match names.value(name) {
            Some(_) => Ok(()),
            None => Err(unknown_name(text, node, name, names)),
        },
        Kind::Negate(of) | Kind::Not(of) => check(text, of, names),
        Kind::Binary(_, of) => of.iter().try_for_each(|node| check(text, node, names)),
        Kind::Call(function, arguments) => {
            check_arguments(text, node, function, arguments)?;
            if own_function(function).is_some() {
                return arguments
                    .iter()
                    .try_for_each(|node| check(text, node, names));
            }
            let mut given = Vec::new();
            for argument in arguments {
                given.push(match &argument.kind {
                    Kind::Name(name) => Argument::Name(name),
                    Kind::Number(number) => Argument::Number(*number),
                    Kind::Text(found) => Argument::Text(found),
                    _ => {
                        check(text, argument, names)?;
                        Argument::Number(1.0)
                    }
                });
            }
            called(text, node, function, &given, names).map(|_| ())
        }
    }
}

fn check_arguments(
    text: &str,
    node: &Node,
    function: &str,
    arguments: &[Node],
) -> Result<(), ExpressionError> {
    let Some((least, most)) = own_function(function) else {
        return Ok(());
    };
    if (least..=most).contains(&arguments.len()) {
        return Ok(());
    }
    let wanted = match (least, most) {
        (1, 1) => "one argument".to_owned(),
        (least, usize::MAX) => format!("at least {least} argument"),
        (least, _) => format!("{least} arguments"),
    };
    let message = format!("{function} has {wanted}, and not {}", arguments.len());
    Err(error(text, node.at, message))
}

fn called(
    text: &str,
    node: &Node,
    function: &str,
    arguments: &[Argument<'_>],
    names: &dyn Names,
) -> Result<f64, ExpressionError> {
    match names.call(function, arguments) {
        Some(result) => result.map_err(|message| error(text, node.at, message)),
        None => {
            let mut known = names.known_functions();
            known.extend(OWN.iter().map(|(name, ..)| (*name).to_owned()));
            let message = format!(
                "there is no function {function} ({})",
                near(function, &known)
            );
            Err(error(text, node.at, message))
        }
    }
}

fn unknown_name(text: &str, node: &Node, name: &str, names: &dyn Names) -> ExpressionError {
    if let Some(message) = names.why_not(name) {
        return error(text, node.at, message);
    }
    let mut known = names.known_names();
    // Who forgets what it is of writes the function alone.
    if names
        .known_functions()
        .iter()
        .any(|function| function == name)
    {
        let message = format!("{name} is a function: say what it is of, as in {name}(…)");
        return error(text, node.at, message);
    }
    known.sort();
    known.dedup();
    let message = format!("nothing is called {name} ({})", near(name, &known));
    error(text, node.at, message)
}

fn own(function: &str, of: &[f64]) -> f64 {
    let first = of[0];
    // Nothing is known of what is not a number: neither is the least of several.
    let fold = |choose: fn(f64, f64) -> f64| {
        let all = of.iter().copied();
        all.reduce(|a, b| {
            if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                choose(a, b)
            }
        })
        .expect("at least one")
    };
    match function {
        "min" => fold(f64::min),
        "max" => fold(f64::max),
        "abs" => first.abs(),
        "sqrt" => first.sqrt(),
        "ln" => libm::log(first),
        "exp" => libm::exp(first),
        "floor" => first.floor(),
        "ceil" => first.ceil(),
        "round" => first.round(),
        _ => unreachable!("{function} is none of the language's own"),
    }
}

fn binary(operator: Operator, a: f64, b: f64) -> f64 {
    // Of what is no number nobody knows whether it is less, nor whether it is not.
    let compared = |of: bool| match a.is_nan() || b.is_nan() {
        true => f64::NAN,
        false => truth(of),
    };
    match operator {
        Operator::Less => compared(a < b),
        Operator::LessOrEqual => compared(a <= b),
        Operator::Greater => compared(a > b),
        Operator::GreaterOrEqual => compared(a >= b),
        Operator::Equal => compared(a == b),
        Operator::NotEqual => compared(a != b),
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Power => libm::pow(a, b),
        Operator::Add | Operator::And | Operator::Or => unreachable!("evaluated by itself"),
    }
}

fn not(of: f64) -> f64 {
    match of.is_nan() {
        true => of,
        false => truth(of == 0.0),
    }
}

/// False where one is false, whatever the other one is.
fn and(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        _ if a == 0.0 || b == 0.0 => 0.0,
        (false, false) => 1.0,
        _ => f64::NAN,
    }
}

fn truth(of: bool) -> f64 {
    f64::from(u8::from(of))
}
