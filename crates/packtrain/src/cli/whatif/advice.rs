//! What to make of the numbers, in one sentence.

use serde::Serialize;

use super::document::PolicyResults;

/// Less than so many percent is nothing that anybody would notice.
const SAVED_MIN: f64 = 5.0;
/// Drops, percent of the frames, that count as such.
const DROPPED_MIN: f64 = 0.1;
/// A wire with so many is short of more than packing can give.
const DROPPED_MUCH: f64 = 5.0;
/// What a frame may be later, at the ninety-ninth percentile, before it is told beside the gain, ms.
const LATER_MS: f64 = 1.0;
/// Half of the frames come so much earlier, ms, where a queue does not stand any more.
const EARLIER_MS: f64 = 5.0;
/// What coming earlier counts at most beside what is saved, percent.
const EARLIER_MERIT_MAX: f64 = 20.0;
/// How much better another policy has to be before it is recommended instead, percent.
const BETTER_BY: f64 = 3.0;
/// Frames of so many bytes on average fill theirs by themselves.
const LARGE_BYTES: f64 = 1000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    NoFrames,
    NothingToGain,
    Gain,
    GainThatCostsTime,
    FewerDrops,
    LessDelay,
    TooMuchForTheWire,
    Harm,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    pub kind: Kind,
    pub text: String,
    /// The policy that it is about, as in `policies`; `None` where none is to be used.
    pub policy: Option<String>,
}

/// What it goes by, of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    pub name: String,
    pub saved_frames_percent: f64,
    pub saved_bytes_percent: f64,
    pub dropped_percent: f64,
    pub plain_dropped_percent: f64,
    pub added_p50_ms: f64,
    pub added_p99_ms: f64,
    pub frame_bytes_mean: f64,
    /// Of the frames, those that went past the engine.
    pub direct_percent: f64,
    /// Of the saved bytes, what compression has added, percent of what the frames cost plainly.
    pub compression_percent: f64,
}

impl Told {
    pub fn of(
        policy: &PolicyResults,
        frames: u64,
        plain_dropped: u64,
        frame_bytes_mean: f64,
    ) -> Told {
        let percent = |part: f64, whole: f64| {
            if whole > 0.0 {
                100.0 * part / whole
            } else {
                0.0
            }
        };
        let sent = &policy.sent;
        Told {
            name: policy.name.clone(),
            saved_frames_percent: policy.saved_frames_percent,
            saved_bytes_percent: policy.saved_bytes_percent,
            dropped_percent: percent(policy.dropped as f64, frames as f64),
            plain_dropped_percent: percent(plain_dropped as f64, frames as f64),
            added_p50_ms: policy.added_delay.p50_ms,
            added_p99_ms: policy.added_delay.p99_ms,
            frame_bytes_mean,
            direct_percent: percent(sent.direct.frames, sent.total.frames),
            compression_percent: policy.compression.as_ref().map_or(0.0, |compression| {
                let added = compression.headers_bytes + compression.payload_bytes;
                percent(added as f64, policy.before.bytes)
            }),
        }
    }

    /// What a wire is relieved of: frames where these are what it is short of, and bytes elsewhere.
    fn gain(&self, is_capped: bool) -> f64 {
        match is_capped {
            true => self.saved_frames_percent.max(self.saved_bytes_percent),
            false => self.saved_bytes_percent,
        }
    }

    /// Drops count first, then what is saved, less what is waited for it: a percent a millisecond. What comes earlier
    /// counts likewise, but not without a bound.
    fn merit(&self, is_capped: bool) -> f64 {
        let earlier = (-self.added_p50_ms).clamp(0.0, EARLIER_MERIT_MAX);
        self.gain(is_capped) + earlier - 10.0 * self.dropped_percent - self.added_p99_ms.max(0.0)
    }
}

/// `told`: the policy that was asked for first. `is_capped`: the wire passes only so many frames a second.
pub fn recommend(told: &[Told], is_capped: bool) -> Recommendation {
    let Some(asked) = told.first() else {
        return Recommendation {
            kind: Kind::NoFrames,
            text: "Nothing can be said: there is no frame in the capture that could be sent again."
                .into(),
            policy: None,
        };
    };
    let merit = |one: &Told| one.merit(is_capped);
    let best = told.iter().max_by(|a, b| merit(a).total_cmp(&merit(b)));
    let one = match best {
        Some(best) if merit(best) > merit(asked) + BETTER_BY => best,
        _ => asked,
    };
    let (kind, text) = sentence(one, is_capped);
    let advises = matches!(
        kind,
        Kind::Gain | Kind::GainThatCostsTime | Kind::FewerDrops | Kind::LessDelay
    );
    let named = match told.len() > 1 && advises {
        true => format!("With {}: {text}", one.name),
        false => capitalized(&text),
    };
    Recommendation {
        kind,
        text: named,
        policy: advises.then(|| one.name.clone()),
    }
}

fn sentence(one: &Told, is_capped: bool) -> (Kind, String) {
    let gain = one.gain(is_capped);
    let (frames, bytes) = (one.saved_frames_percent, one.saved_bytes_percent);
    let fewer = one.plain_dropped_percent - one.dropped_percent;
    if fewer < -DROPPED_MIN {
        return (
            Kind::Harm,
            format!(
                "leave it: {:.1} % of the frames are dropped, and {:.1} % without it.",
                one.dropped_percent, one.plain_dropped_percent
            ),
        );
    }
    if one.dropped_percent > DROPPED_MUCH && fewer < one.plain_dropped_percent / 10.0 {
        return (
            Kind::TooMuchForTheWire,
            format!(
                "this is too much for the wire either way: {:.0} % of the frames are dropped, and {:.0} % without it.",
                one.dropped_percent, one.plain_dropped_percent
            ),
        );
    }
    if fewer > DROPPED_MIN {
        let still = match one.dropped_percent > DROPPED_MUCH {
            true => ", though the wire stays too slow for all of it",
            false => "",
        };
        return (
            Kind::FewerDrops,
            format!(
                "worth it: {:.1} % of the frames are dropped instead of {:.1} %{still}.",
                one.dropped_percent, one.plain_dropped_percent
            ),
        );
    }
    if one.added_p50_ms < -EARLIER_MS && one.added_p99_ms <= LATER_MS + EARLIER_MS {
        return (
            Kind::LessDelay,
            format!(
                "worth it: half of the frames come {:.1} ms earlier or more, and hardly one later than {:.1} ms (p99); \
                 {frames:.0} % of the frames and {bytes:.0} % of the bytes on the wire are saved.",
                -one.added_p50_ms,
                one.added_p99_ms.max(0.0)
            ),
        );
    }
    if gain < SAVED_MIN {
        if one.added_p99_ms > LATER_MS {
            let saves = match bytes < 0.0 {
                true => format!("costs {:.1} % more bytes", -bytes),
                false => format!("saves {bytes:.1} % of the bytes"),
            };
            return (
                Kind::Harm,
                format!(
                    "leave it: it {saves}, and frames come up to {:.1} ms later (p99).",
                    one.added_p99_ms
                ),
            );
        }
        return (
            Kind::NothingToGain,
            format!("nothing to gain here: {}.", why_not(one)),
        );
    }
    let how = match one.compression_percent > bytes / 2.0 {
        true => ", most of it by compression",
        false => "",
    };
    let saved = format!(
        "{frames:.0} % of the frames and {bytes:.0} % of the bytes on the wire are saved{how}"
    );
    if one.added_p99_ms > LATER_MS {
        return (
            Kind::GainThatCostsTime,
            format!(
                "worth it where frames may come up to {:.1} ms later (p99): {saved}.",
                one.added_p99_ms
            ),
        );
    }
    (
        Kind::Gain,
        format!("worth it: {saved}, and frames come no later than {LATER_MS:.0} ms more (p99)."),
    )
}

/// Of what is most likely the cause.
fn why_not(one: &Told) -> &'static str {
    if one.frame_bytes_mean > LARGE_BYTES {
        "the frames are large already, and go as they are"
    } else if one.direct_percent > 90.0 {
        "the wire is seldom busy, so frames leave as they come"
    } else {
        "few frames find others to share a train with"
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
