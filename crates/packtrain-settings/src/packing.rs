//! When frames leave, as people write it: for a class, and for what no class matches.

use std::fmt;
use std::str::FromStr;

use packtrain_proto::class::{Action, HOLD_MAX, Pack};
use packtrain_proto::time::Duration;

use crate::units::Time;

const ON_BACKLOG: &str = "on-backlog";

/// When frames leave, in words: `queued` (or `immediate`), `now`, `500us` (or `budget 500us`), `scaled 2ms`, `auto`,
/// `dfap-random`, `dfap-straight`; and behind those that wait, `on-backlog`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackPolicy {
    pub pack: Pack,
    /// They wait only while a link to there has a backlog.
    pub on_backlog: bool,
}

/// Why a text does not say when frames leave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackPolicyError {
    #[error(
        "{0:?} does not say when frames leave: queued, now, how long they may wait, as in 500us, \
         scaled 2ms, auto, dfap-random or dfap-straight"
    )]
    Syntax(String),
    #[error("frames wait {most} at most, not {given}")]
    TooLong { given: String, most: Time },
    #[error("{0:?} does not wait, so on-backlog says nothing")]
    NoWait(String),
}

impl From<&Action> for PackPolicy {
    fn from(action: &Action) -> PackPolicy {
        PackPolicy {
            pack: action.pack,
            on_backlog: action.on_backlog,
        }
    }
}

impl FromStr for PackPolicy {
    type Err = PackPolicyError;

    fn from_str(text: &str) -> Result<PackPolicy, PackPolicyError> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let on_backlog = words.len() > 1 && words.last() == Some(&ON_BACKLOG);
        if on_backlog {
            words.pop();
        }
        let wait = |time: &str| time_of(time, text);
        let pack = match words[..] {
            ["queued" | "immediate"] => Pack::Queued,
            ["now"] => Pack::Now,
            ["dfap-random"] => Pack::DfapRandom,
            ["dfap-straight"] => Pack::DfapStraight,
            ["auto"] => Pack::Auto,
            ["scaled", time] => wait(time)?.map_or(Pack::Queued, Pack::Scaled),
            [time] | ["budget", time] => wait(time)?.map_or(Pack::Queued, Pack::Within),
            _ => return Err(PackPolicyError::Syntax(text.into())),
        };
        if on_backlog && !pack.may_wait() {
            return Err(PackPolicyError::NoWait(words.join(" ")));
        }
        Ok(PackPolicy { pack, on_backlog })
    }
}

/// `None`: no time at all.
fn time_of(word: &str, text: &str) -> Result<Option<Duration>, PackPolicyError> {
    let time: Time = word
        .parse()
        .map_err(|_| PackPolicyError::Syntax(text.into()))?;
    match Duration::from(time) {
        Duration::ZERO => Ok(None),
        wait if wait > HOLD_MAX => Err(PackPolicyError::TooLong {
            given: word.into(),
            most: HOLD_MAX.into(),
        }),
        wait => Ok(Some(wait)),
    }
}

impl fmt::Display for PackPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = match self.pack {
            Pack::Queued => "queued".to_owned(),
            Pack::Now => "now".to_owned(),
            Pack::Within(budget) => Time::from(budget).to_string(),
            Pack::Scaled(most) => format!("scaled {}", Time::from(most)),
            Pack::DfapRandom => "dfap-random".to_owned(),
            Pack::DfapStraight => "dfap-straight".to_owned(),
            Pack::Auto => "auto".to_owned(),
        };
        if self.on_backlog {
            text.push(' ');
            text.push_str(ON_BACKLOG);
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_frames_leave_is_a_word_or_a_time() {
        for text in [
            "queued",
            "now",
            "500us",
            "1.5ms",
            "100ms",
            "scaled 2ms",
            "auto",
            "dfap-random",
            "dfap-straight on-backlog",
            "500us on-backlog",
        ] {
            assert_eq!(text.parse::<PackPolicy>().unwrap().to_string(), text);
        }
        for (other, text) in [
            ("0", "queued"),
            ("immediate", "queued"),
            ("budget  2ms", "2ms"),
        ] {
            assert_eq!(other.parse::<PackPolicy>().unwrap().to_string(), text);
        }
        let error = |text: &str| text.parse::<PackPolicy>().unwrap_err().to_string();
        assert_eq!(error("101ms"), "frames wait 100ms at most, not 101ms");
        assert_eq!(error("scaled 1s"), "frames wait 100ms at most, not 1s");
        for wrong in [
            "soon",
            "500",
            "",
            "on-backlog",
            "scaled",
            "budget now",
            "now now",
        ] {
            let begin = format!("{wrong:?} does not say when frames leave: queued, now, ");
            assert!(error(wrong).starts_with(&begin), "{}", error(wrong));
        }
        assert_eq!(
            error("now on-backlog"),
            "\"now\" does not wait, so on-backlog says nothing"
        );
    }
}
