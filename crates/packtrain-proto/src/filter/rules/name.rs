//! Names of rules and of address sets: 1 to 31 of letters, digits, `-`, `_` and `.`, the first a letter. The same as of
//! classes, but that nothing is taken: there is no rule of the rest.

use core::fmt;
use core::str::FromStr;

const LEN_MAX: usize = 31;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName(String);

/// Written behind an `@` where a rule asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetName(String);

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a {what}'s name has 1 to 31 characters, this one has {count}")]
    Length { what: &'static str, count: usize },
    #[error("a {what}'s name begins with a letter, not with {first:?}")]
    Start { what: &'static str, first: char },
    #[error("a {what}'s name has letters, digits, '-', '_' and '.', and no {wrong:?}")]
    Character { what: &'static str, wrong: char },
}

impl RuleName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SetName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RuleName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<RuleName, NameError> {
        checked("rule", text).map(RuleName)
    }
}

impl FromStr for SetName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<SetName, NameError> {
        checked("set", text).map(SetName)
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn checked(what: &'static str, text: &str) -> Result<String, NameError> {
    let count = text.chars().count();
    let first = match text.chars().next() {
        Some(first) if count <= LEN_MAX => first,
        _ => return Err(NameError::Length { what, count }),
    };
    if !first.is_ascii_alphabetic() {
        return Err(NameError::Start { what, first });
    }
    let is_wrong = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.');
    match text.chars().find(is_wrong) {
        Some(wrong) => Err(NameError::Character { what, wrong }),
        None => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for good in ["a", "ssh", "Block-1_b.c", &"x".repeat(31)] {
            assert_eq!(good.parse::<RuleName>().unwrap().as_str(), good);
            assert_eq!(good.parse::<SetName>().unwrap().to_string(), good);
        }
    }

    #[test]
    fn what_is_no_name_is_told_why() {
        let rule = |text: &str| text.parse::<RuleName>().unwrap_err().to_string();
        let set = |text: &str| text.parse::<SetName>().unwrap_err().to_string();
        assert_eq!(
            rule(""),
            "a rule's name has 1 to 31 characters, this one has 0"
        );
        assert_eq!(
            set(&"ä".repeat(32)),
            "a set's name has 1 to 31 characters, this one has 32"
        );
        assert_eq!(
            rule("1a"),
            "a rule's name begins with a letter, not with '1'"
        );
        assert_eq!(
            set("a b"),
            "a set's name has letters, digits, '-', '_' and '.', and no ' '"
        );
    }
}
