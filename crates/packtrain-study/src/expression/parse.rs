//! A text becomes a tree.

use super::{ExpressionError, Kind, Node, Operator, TEXT_BYTES_MAX, error};

/// Parentheses, signs and calls within each other.
const DEPTH_MAX: usize = 64;
/// Of an expression: a sum of many is a tree as deep as it is long, and whoever walks it recurses as deeply.
pub const OPERATORS_MAX: usize = 200;

const COMPARISONS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

pub fn parse(text: &str) -> Result<Node, ExpressionError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("longer than {TEXT_BYTES_MAX} bytes");
        return Err(error(text, 0, message));
    }
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        operators: 0,
    };
    let root = parser.or()?;
    parser.space();
    match parser.rest() {
        "" => Ok(root),
        rest if rest.starts_with('=') => Err(parser.wrong("to compare, write ==")),
        _ => Err(parser.wrong(&format!("{} does not belong here", parser.what_stands()))),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    operators: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn wrong(&self, message: &str) -> ExpressionError {
        error(self.text, self.at, message.to_owned())
    }

    fn what_stands(&self) -> String {
        match self.rest().chars().next() {
            Some(c) => format!("{c:?}"),
            None => "the end".into(),
        }
    }

    fn take(&mut self, symbol: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(symbol);
        self.at += if found { symbol.len() } else { 0 };
        found
    }

    /// The word that stands here; it is not taken.
    fn word(&mut self) -> &str {
        self.space();
        let rest = self.rest();
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
        &rest[..end]
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Node, ExpressionError>,
    ) -> Result<Node, ExpressionError> {
        if self.depth == DEPTH_MAX {
            return Err(self.wrong(&format!("nested deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let node = read(self);
        self.depth -= 1;
        node
    }

    fn join(
        &mut self,
        operator: Operator,
        left: Node,
        right: Node,
    ) -> Result<Node, ExpressionError> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX {
            return Err(self.wrong(&format!("more than {OPERATORS_MAX} operators")));
        }
        Ok(Node {
            at: left.at,
            kind: Kind::Binary(operator, Box::new([left, right])),
        })
    }

    fn or(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.and()?;
        while self.take_word("or") {
            let right = self.and()?;
            left = self.join(Operator::Or, left, right)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.not()?;
        while self.take_word("and") {
            let right = self.not()?;
            left = self.join(Operator::And, left, right)?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Node, ExpressionError> {
        self.space();
        let at = self.at;
        if self.take_word("not") {
            let of = Box::new(self.nested(Parser::not)?);
            return Ok(Node {
                at,
                kind: Kind::Not(of),
            });
        }
        let left = self.sum()?;
        let found = COMPARISONS.iter().find(|(symbol, _)| self.take(symbol));
        let Some((_, operator)) = found else {
            return Ok(left);
        };
        let right = self.sum()?;
        if COMPARISONS.iter().any(|(symbol, _)| self.take(symbol)) {
            return Err(self.wrong("comparisons have two sides: join several with and"));
        }
        self.join(*operator, left, right)
    }

    fn sum(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.product()?;
        loop {
            let operator = match () {
                () if self.take("+") => Operator::Add,
                () if self.take("-") => Operator::Subtract,
                () => return Ok(left),
            };
            let right = self.product()?;
            left = self.join(operator, left, right)?;
        }
    }

    fn product(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.unary()?;
        loop {
            let operator = match () {
                () if self.take("*") => Operator::Multiply,
                () if self.take("/") => Operator::Divide,
                () => return Ok(left),
            };
            let right = self.unary()?;
            left = self.join(operator, left, right)?;
        }
    }

    fn unary(&mut self) -> Result<Node, ExpressionError> {
        self.space();
        let at = self.at;
        if self.take("-") {
            let of = Box::new(self.nested(Parser::unary)?);
            return Ok(Node {
                at,
                kind: Kind::Negate(of),
            });
        }
        let base = self.primary()?;
        if !self.take("^") {
            return Ok(base);
        }
        let exponent = self.nested(Parser::unary)?;
        self.join(Operator::Power, base, exponent)
    }

    fn primary(&mut self) -> Result<Node, ExpressionError> {
        self.space();
        let at = self.at;
        let node = |kind| Ok(Node { at, kind });
        match self.rest().chars().next() {
            Some('(') => {
                self.at += 1;
                let inside = self.nested(Parser::or)?;
                self.close(at)?;
                Ok(inside)
            }
            Some(quote @ ('\'' | '"')) => {
                let inside = &self.text[at + 1..];
                let Some(end) = inside.find(quote) else {
                    return Err(self.wrong("a text that does not end"));
                };
                self.at += end + 2;
                node(Kind::Text(inside[..end].to_owned()))
            }
            Some(c) if c.is_ascii_digit() || c == '.' => node(Kind::Number(self.number()?)),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.word().to_owned();
                if ["and", "or", "not"].contains(&name.as_str()) {
                    return Err(self.wrong(&format!("a value is missing before {name}")));
                }
                self.at += name.len();
                match self.take("(") {
                    true => node(Kind::Call(name, self.arguments(at)?)),
                    false => node(Kind::Name(name)),
                }
            }
            None => Err(self.wrong("it ends where a value is wanted")),
            Some(_) => {
                let message = format!("{} where a value is wanted", self.what_stands());
                Err(self.wrong(&message))
            }
        }
    }

    fn arguments(&mut self, opened: usize) -> Result<Vec<Node>, ExpressionError> {
        let mut arguments = Vec::new();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.nested(Parser::or)?);
            if !self.take(",") {
                self.close(opened)?;
                return Ok(arguments);
            }
        }
    }

    fn close(&mut self, opened: usize) -> Result<(), ExpressionError> {
        if self.take(")") {
            return Ok(());
        }
        if self.rest().is_empty() {
            return Err(error(self.text, opened, "its ) is missing".into()));
        }
        Err(self.wrong(&format!("{} where ) is wanted", self.what_stands())))
    }

    fn number(&mut self) -> Result<f64, ExpressionError> {
        let bytes = self.rest().as_bytes();
        let digits = |mut at: usize| {
            while bytes
                .get(at)
                .is_some_and(|b| b.is_ascii_digit() || *b == b'.')
            {
                at += 1;
            }
            at
        };
        let mut end = digits(0);
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let after = digits(end + 1 + sign);
            end = if after > end + 1 + sign { after } else { end };
        }
        let text = &self.rest()[..end];
        let follows = bytes.get(end).is_some_and(|b| b.is_ascii_alphabetic());
        match text.parse() {
            Ok(_) if follows => {
                Err(self
                    .wrong("a number with a unit: expressions count in seconds, bit/s and bytes"))
            }
            Ok(number) => {
                self.at += end;
                Ok(number)
            }
            Err(_) => Err(self.wrong(&format!("{text:?} is no number"))),
        }
    }
}
