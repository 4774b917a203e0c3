//! What a filter says of itself: the one document that every view reads.

use std::collections::BTreeMap;

use packtrain_proto::filter::{Policy, Reason};
use packtrain_proto::stats::Traffic;
use serde::{Deserialize, Serialize};

use crate::linux::filter::Counters;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    pub frames: u64,
    pub bytes: u64,
}

/// `filter status --json` of one interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilterDocument {
    /// As it is called now.
    pub interface: String,
    /// As it was called when the filter came: commands go on to say this.
    #[serde(default)]
    pub known_as: String,
    /// Of the program that runs it.
    pub version: String,
    /// None: it has stayed when its process ended, and only its rules decide.
    pub pid: Option<u32>,
    /// When all this was counted: nanoseconds of the host's monotonic clock (`CLOCK_MONOTONIC`), which no time of day is. What
    /// two documents of one `pid` differ by, by the difference of these, are rates. 0: of a program that does not say so.
    #[serde(default)]
    pub time_ns: u64,
    /// It stays when its process ends.
    #[serde(default)]
    pub stays: bool,
    pub policy: String,
    /// `native`, `generic` or `tc`.
    pub mode: String,
    /// `auto` or `off`.
    pub ports: String,
    pub dry_run: bool,
    /// Seconds without a refresh, after which everything passes; null: it is not watched.
    pub watchdog_seconds: Option<f64>,
    /// What is undone unless it is confirmed, in words: "the filter", or which change of its rules; null: nothing.
    #[serde(default)]
    pub unconfirmed: Option<String>,
    /// Seconds until then.
    #[serde(default)]
    pub confirm_seconds_left: Option<f64>,
    /// Whether the interface filters unicast addresses itself, so that few for others come; null: not known.
    #[serde(default)]
    pub filters_unicast: Option<bool>,
    /// The line that the interface is a member link of.
    pub line: Option<String>,
    /// Prefixes that the host answers ARP for.
    pub local_prefixes: u64,
    /// Of those, more than the program can look up: foreign ARP passes as long as there are any.
    pub local_prefixes_refused: u64,
    /// All frames that were judged.
    pub handled: Amount,
    /// Those that went on to the stack.
    pub useful: Amount,
    /// Those that did not; in a dry run, that would not have.
    pub dropped: Amount,
    /// In the order in which they are asked.
    #[serde(default)]
    pub rules: Vec<RuleDocument>,
    /// Another one when there are others.
    #[serde(default)]
    pub rules_version: u32,
    /// By reason, each with its verdict.
    pub reasons: BTreeMap<String, ReasonCount>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleDocument {
    pub name: String,
    /// `allow`, `deny` or `limit`.
    pub verdict: String,
    /// As in `1000/s burst 100 per source`.
    pub limit: Option<String>,
    #[serde(rename = "match")]
    pub matches: String,
    /// That it has decided about: of a limit, those above it.
    pub frames: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCount {
    /// `pass` or `drop`.
    pub verdict: String,
    pub frames: u64,
    pub bytes: u64,
}

impl FilterDocument {
    /// Fills in what was counted.
    pub fn count(&mut self, counters: &Counters) {
        let mut sums = [Amount::default(); 2];
        for (reason, Traffic { frames, bytes }) in counters.iter() {
            let sum = &mut sums[usize::from(reason.is_drop())];
            sum.frames += frames;
            sum.bytes += bytes;
            let count = ReasonCount {
                verdict: verdict_of(reason).into(),
                frames,
                bytes,
            };
            self.reasons.insert(reason.as_str().into(), count);
        }
        [self.useful, self.dropped] = sums;
        self.handled = Amount {
            frames: self.useful.frames + self.dropped.frames,
            bytes: self.useful.bytes + self.dropped.bytes,
        };
    }
}

pub fn verdict_of(reason: Reason) -> &'static str {
    match reason.is_drop() {
        true => "drop",
        false => "pass",
    }
}

/// The policy of a name.
pub fn policy_of(name: &str) -> Option<Policy> {
    let all = [Policy::None, Policy::Nima, Policy::Host];
    all.into_iter().find(|policy| policy_name(*policy) == name)
}

pub fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::None => "none",
        Policy::Nima => "nima",
        Policy::Host => "host",
    }
}
