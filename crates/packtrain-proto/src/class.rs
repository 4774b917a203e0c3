//! Classes: which frames are to be treated in a way of their own.
//!
//! A class is a [`Match`] and an [`Action`]. A line has a list of them, and the first that matches a
//! frame is its class; what none matches is in the class *rest*. People's own classes stand before
//! the [`defaults`], which they can take away too.

pub mod condition;
pub mod facts;
pub mod prefix;
pub mod ranges;
pub mod table;
pub(crate) mod text;
pub mod words;

use core::fmt;
use core::str::FromStr;

use crate::time::Duration;
use crate::trunk::via::{LinkSet, Via};

pub use condition::{Condition, Match, Side, Test};
pub use facts::Facts;
pub use table::{ClassId, ClassTable};
pub use text::MatchError;

/// Classes of a line, the rest not counted.
pub const CLASSES_MAX: usize = 64;
/// Values in the matches of a line's classes altogether: each is a comparison for each frame, at worst.
pub const VALUES_MAX: usize = 4096;
/// What no class matches is called so.
pub const REST: &str = "rest";
/// Longest time that a class lets its frames wait for others to share their train.
pub const HOLD_MAX: Duration = Duration::from_millis(100);

/// Some frames, and what is done with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    pub name: ClassName,
    pub matches: Match,
    pub action: Action,
    /// The links of `action`, as their owner calls them. They may not all be there.
    pub links: Vec<String>,
}

/// What is done with the frames of a class. The default is what is done with all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Action {
    pub pack: Pack,
    /// They wait only while a link to there has a backlog.
    pub on_backlog: bool,
    pub path: ClassPath,
    /// Its frames may be lost with a link: no copy of them is needed.
    pub loss_ok: bool,
    pub compress: Compress,
    /// Where there are several links, its frames go by two of them.
    pub duplicate: bool,
    /// Its frames go by these links while one of them works; by none: by whichever.
    pub links: LinkSet,
    pub repairs: Repairs,
}

/// What becomes of a class's frames that a link loses which lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum Repairs {
    /// What the line says of all.
    #[default]
    Line,
    /// They do not go again, and nobody waits for them.
    Off,
    /// They go again, where they may still arrive so soon after they left first.
    Within(Duration),
    /// They go again until they have arrived, and what came after them waits for that.
    Lossless,
}

impl Repairs {
    /// Also by an only link, and whatever the line says.
    pub fn are_asked_for(self) -> bool {
        matches!(self, Repairs::Within(_) | Repairs::Lossless)
    }
}

impl Action {
    /// Which way its frames take. Who waits for others to share a train is not to go past them, and
    /// only the engine sends twice, or again, or by some links alone.
    pub fn kernel_path(&self) -> KernelPath {
        match (self.path, self.pack) {
            (ClassPath::Direct, _) => KernelPath::Direct,
            (ClassPath::Engine, _) => KernelPath::Engine,
            (ClassPath::Auto, pack) if pack.may_wait() => KernelPath::Engine,
            (ClassPath::Auto, _) if self.duplicate || !self.links.is_empty() => KernelPath::Engine,
            (ClassPath::Auto, _) if self.repairs.are_asked_for() => KernelPath::Engine,
            (ClassPath::Auto, _) if self.loss_ok => KernelPath::LossOk,
            (ClassPath::Auto, _) => KernelPath::Auto,
        }
    }

    /// How trains of its frames go.
    pub fn via(&self) -> Via {
        Via {
            links: self.links,
            repairs: self.repairs,
        }
    }
}

/// Which frames go past the engine, each where all before it do too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelPath {
    /// None.
    Engine,
    /// Those that nothing is lost by.
    Auto,
    /// Also where only the engine has a copy of them when a link takes them with it.
    LossOk,
    /// Also where they would be better off in the engine.
    Direct,
}

/// When a frame leaves, and with which others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum Pack {
    /// When the link has room, with whatever waits already.
    #[default]
    Queued,
    /// Ahead of all others, but for those of its own flow.
    Now,
    /// It may wait so long for others to fill its train, even while the link has room, where some are to
    /// be expected.
    Within(Duration),
    /// It waits so long, times the share of a train that would be empty; anew with each that comes.
    Scaled(Duration),
    /// It waits as the DFAP paper has it, a random number of ticks, while there is traffic enough.
    DfapRandom,
    /// … or as many as the paper's window has.
    DfapStraight,
    /// It waits where that costs nothing: while a link is short of frames a second and trains are half empty, for as
    /// long as one of them takes, and where others are to be expected.
    Auto,
}

impl Pack {
    pub fn may_wait(self) -> bool {
        !matches!(self, Pack::Queued | Pack::Now)
    }

    /// The paper's traffic count switches it.
    pub fn counts_traffic(self) -> bool {
        matches!(self, Pack::DfapRandom | Pack::DfapStraight)
    }
}

/// Which way frames take where there are two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum ClassPath {
    /// Direct while the line has nothing to gain by the engine.
    #[default]
    Auto,
    /// Always by the engine.
    Engine,
    /// Past the engine wherever there is a direct path, also while others are better off in the engine.
    Direct,
}

/// What is done to frames so that a train carries more of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compress {
    /// What is worth it on the link by which they go.
    #[default]
    Auto,
    /// Their headers are told apart from each other, and no more.
    Headers,
    /// Nothing.
    Off,
}

/// A class's name: 1 to 31 of letters, digits, `-`, `_` and `.`, the first a letter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassName(String);

impl ClassName {
    const LEN_MAX: usize = 31;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text names no class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassNameError {
    #[error("a class's name has 1 to 31 characters, this one has {0}")]
    Length(usize),
    #[error("a class's name begins with a letter, not with {0:?}")]
    Start(char),
    #[error("a class's name has letters, digits, '-', '_' and '.', and no {0:?}")]
    Character(char),
    #[error("\"rest\" is what no class matches")]
    Reserved,
}

impl FromStr for ClassName {
    type Err = ClassNameError;

    fn from_str(text: &str) -> Result<ClassName, ClassNameError> {
        if text.is_empty() || text.len() > Self::LEN_MAX {
            return Err(ClassNameError::Length(text.chars().count()));
        }
        let first = text.chars().next().expect("it is not empty");
        if !first.is_ascii_alphabetic() {
            return Err(ClassNameError::Start(first));
        }
        let wrong = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.');
        if let Some(c) = text.chars().find(wrong) {
            return Err(ClassNameError::Character(c));
        }
        if text == REST {
            return Err(ClassNameError::Reserved);
        }
        Ok(ClassName(text.into()))
    }
}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a host wants at once, whatever else it sends: who is where, what a name means, whether
/// somebody answers, what has arrived; and what its sender has marked for it (RFC 3246).
pub fn defaults() -> Vec<Class> {
    let now = |name: &str, matches: &str| Class {
        name: name.parse().expect("a right name"),
        matches: matches.parse().expect("a right match"),
        links: Vec::new(),
        action: Action {
            pack: Pack::Now,
            ..Action::default()
        },
    };
    vec![
        now("arp", "arp"),
        // Neighbour discovery is ICMPv6.
        now("icmp6", "icmp6"),
        now("icmp", "icmp"),
        now("dns", "udp port 53,5353"),
        now("ef", "dscp ef"),
        now("tcp-empty", "tcp empty"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_rest_is_taken() {
        for good in ["a", "voice", "Call-1_b.c", &"x".repeat(31)] {
            assert_eq!(good.parse::<ClassName>().unwrap().as_str(), good);
        }
        let error = |text: &str| text.parse::<ClassName>().unwrap_err();
        assert_eq!(error(""), ClassNameError::Length(0));
        assert_eq!(error(&"x".repeat(32)), ClassNameError::Length(32));
        assert_eq!(error("1a"), ClassNameError::Start('1'));
        assert_eq!(error("a b"), ClassNameError::Character(' '));
        assert_eq!(error("rest"), ClassNameError::Reserved);
    }

    #[test]
    fn the_defaults_have_different_names() {
        let mut names: Vec<ClassName> = defaults().into_iter().map(|class| class.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
