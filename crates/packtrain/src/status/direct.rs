//! What went past the engine.

use std::fmt;

use packtrain_proto::stats::{self, Closures};
use serde::{Deserialize, Serialize};

use super::Traffic;

/// What went past the engine, in the kernel: counted neither in `host` nor in `trains`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direct {
    pub tx: Traffic,
    pub rx: Traffic,
    /// The VLAN that the settings name for it.
    #[serde(default)]
    pub vlan: Option<u16>,
    /// The engine carries all it can, over several links: flows that begin now go past it.
    pub takes_surplus: bool,
    /// How often that was.
    pub surpluses: u64,
    /// How often flows that never rest were let rest for some milliseconds, that they may change to it, and how often they did not
    /// in time.
    #[serde(default)]
    pub rests: u64,
    #[serde(default)]
    pub rests_in_vain: u64,
    /// Small frames, however many, go past the engine, which was full of them and is not known to carry more.
    #[serde(default)]
    pub leaves_small_frames: bool,
    /// How often that was.
    #[serde(default)]
    pub small_frames_left: u64,
    /// What either way was seen to carry of them.
    #[serde(default)]
    pub small_frames_per_second: SmallFrameRates,
    /// How often it was closed, and because of what.
    pub closures: u64,
    #[serde(default)]
    pub closures_because: ClosuresBecause,
    /// How often peers began or ceased to be sent to directly.
    pub changes: u64,
    /// How often a flow that went directly came back to the engine; wraps.
    #[serde(default)]
    pub flow_returns: u32,
    /// Of those sent, as far as peers have told.
    #[serde(default)]
    pub lost: u64,
    /// How often trains of a peer waited for direct frames that had left before, and how often in vain.
    #[serde(default)]
    pub fences: u64,
    #[serde(default)]
    pub fences_given_up: u64,
    /// Of those sent, frames of flows that were spread over links.
    #[serde(default)]
    pub striped: u64,
    /// … which peers had long after later ones of their flow, and how often that was so many that a link got no more of them
    /// for a while.
    #[serde(default)]
    pub late: u64,
    #[serde(default)]
    pub striping_given_up: u64,
}

/// Small frames a second, measured when they were many last; by the engine, when it could take no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmallFrameRates {
    pub direct: Option<u64>,
    pub engine: Option<u64>,
}

impl From<stats::SmallFrameRates> for SmallFrameRates {
    fn from(rates: stats::SmallFrameRates) -> SmallFrameRates {
        let stats::SmallFrameRates { direct, engine } = rates;
        SmallFrameRates { direct, engine }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosuresBecause {
    /// A queue stood on a link, or small frames were many.
    pub congestion: u64,
    /// A queue stood behind a link: answers came late.
    pub delay: u64,
    /// Frames were lost on the way.
    pub loss: u64,
    /// Flows that were spread over links came in disorder.
    #[serde(default)]
    pub disorder: u64,
}

impl From<Closures> for ClosuresBecause {
    fn from(closures: Closures) -> ClosuresBecause {
        let Closures {
            congestion,
            delay,
            loss,
            disorder,
        } = closures;
        ClosuresBecause {
            congestion,
            delay,
            loss,
            disorder,
        }
    }
}

/// Those that there were, with commas.
impl fmt::Display for ClosuresBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = [
            (self.congestion, "congestion"),
            (self.delay, "delay"),
            (self.loss, "loss"),
            (self.disorder, "disorder"),
        ];
        let mut between = "";
        for (n, cause) in causes.into_iter().filter(|(n, _)| *n > 0) {
            write!(f, "{between}{n} {cause}")?;
            between = ", ";
        }
        Ok(())
    }
}

/// A queue of ours before a link ([`LinkStatus::direct_shaper`](super::LinkStatus::direct_shaper)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectShaper {
    /// The one that has it.
    pub interface: String,
    /// What it lets out.
    pub rate_bps: u64,
    /// The largest frame that the host makes meanwhile; at the link's rate it lasts half of what a small one may wait.
    pub frame_bytes_max: u32,
    /// What waits there, a GSO frame as one, and how many frames found it full.
    pub frames: u32,
    pub bytes: u32,
    pub dropped: u32,
}
