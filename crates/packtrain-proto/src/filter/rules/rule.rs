//! A rule: some frames, and what becomes of them.

use core::fmt;
use core::str::FromStr;

use super::condition::RuleMatch;
use super::limit::{Limit, LimitTextError};
use super::name::RuleName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub name: RuleName,
    pub verdict: Verdict,
    pub matches: RuleMatch,
}

/// What becomes of the frames that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They pass, and no rule behind this one is asked.
    Allow,
    /// They are dropped.
    Deny,
    /// What is above the limit is dropped; the rules behind this one decide on the others.
    Limit(Limit),
}

/// Why a text is no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerdictError {
    #[error("{0:?} is no verdict: allow, deny, or limit and how much, as in \"limit 1000/s\"")]
    Unknown(String),
    #[error("limit: {0}")]
    Limit(#[from] LimitTextError),
}

impl FromStr for Verdict {
    type Err = VerdictError;

    fn from_str(text: &str) -> Result<Verdict, VerdictError> {
        match text.trim() {
            "allow" => Ok(Verdict::Allow),
            "deny" => Ok(Verdict::Deny),
            text => match text.strip_prefix("limit ") {
                Some(limit) => Ok(Verdict::Limit(limit.parse()?)),
                None => Err(VerdictError::Unknown(text.into())),
            },
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Allow => f.write_str("allow"),
            Verdict::Deny => f.write_str("deny"),
            Verdict::Limit(limit) => write!(f, "limit {limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_comes_back_as_it_was_written() {
        for text in ["allow", "deny", "limit 1000/s burst 50 per source"] {
            assert_eq!(text.parse::<Verdict>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_verdict_is_told_why() {
        let error = |text: &str| text.parse::<Verdict>().unwrap_err().to_string();
        assert_eq!(
            error("drop"),
            "\"drop\" is no verdict: allow, deny, or limit and how much, as in \"limit 1000/s\""
        );
        assert_eq!(
            error("limit 5"),
            "limit: \"5\" is no amount a second: write 1000/s, 10mbit/s or 1MB/s"
        );
    }
}
