//! People's own rules about frames that arrive: which pass, which do not, and which pass at what rate.
//!
//! A [`RuleSet`] is a list of [`Rule`]s. The first that allows or denies a frame decides; a rule that limits
//! drops what is above its rate, and lets what is within go on to the next rule. So a list of rules means what it
//! says from top to bottom, and [`model`] is that, written down.
//!
//! The program that sees each frame first has no time to go from top to bottom: it reads an [`Image`] of the same rules,
//! which costs it about the same for one rule as for hundreds.

pub mod bucket;
pub mod condition;
pub mod facts;
#[cfg(test)]
mod generate;
pub mod image;
pub mod limit;
pub mod model;
pub mod name;
pub mod rule;
pub mod set;
pub mod text;

pub use bucket::Buckets;
pub use condition::{Cast, RuleCondition, RuleMatch, RuleTest};
pub use facts::RuleFacts;
pub use image::{Image, ImageError};
pub use limit::{Limit, LimitError, LimitTextError, Per, Unit};
pub use model::Decision;
pub use name::{NameError, RuleName, SetName};
pub use rule::{Rule, Verdict, VerdictError};
pub use set::{NamedSet, RuleSet, RuleSetError};
pub use text::RuleMatchError;

/// Rules of a filter.
pub const RULES_MAX: usize = 512;
/// Prefixes of all named sets of a filter: of IPv4 all have room in an [`Image`], of IPv6 a hundred thousand that are asked of
/// one end.
pub const SET_PREFIXES_MAX: usize = 131_072;
