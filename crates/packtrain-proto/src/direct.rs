//! The direct path: past the engines of both hosts, from one `pt0` to the other. Whoever owns the
//! engine carries the frames; the engine decides where they may go, and says so.

pub mod counts;
pub mod fence;
pub mod gate;
pub mod kinds;
pub mod leave;
pub mod reading;
pub mod rest;
pub mod shaping;
pub mod small_frames;
pub mod striping;
pub mod surplus;

use crate::class::KernelPath;
use crate::config::LinkId;
use crate::direct::kinds::DirectKind;
use crate::time::Duration;
use crate::wire::ethernet::MacAddr;

/// So long the line must be calm before the direct path opens again.
pub const DIRECT_CALM: Duration = Duration::from_secs(2);
/// More than this an engine is not sure to carry: what leaves a link so fast stays direct. As in the programs.
pub const ENGINE_SURE_BPS: u64 = 2_000_000_000;
/// By so many links frames go to one peer directly.
pub const DIRECT_WAYS_MAX: usize = 4;

/// A peer to which frames may go directly, and by which link. Of one peer there may be several, in the order of
/// its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectDestination {
    /// The peer's `pt0`.
    pub address: MacAddr,
    pub link: LinkId,
    /// The outer destination.
    pub remote_address: MacAddr,
    /// The direct mark, or the link's own address.
    pub outer_source: MacAddr,
    pub kind: DirectKind,
    /// In which they go, where that is the kind.
    pub vlan: Option<u16>,
    /// Payload bytes after the EtherType.
    pub payload_max: u16,
    pub open_to: OpenTo,
    /// Of TCP flows that may be lost with a link, each large frame takes the one of several such ways by which it is there
    /// first.
    pub stripes: bool,
}

/// What has come of a peer's direct frames by one link, ever: a GSO frame as its segments. All wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    pub frames: u32,
    /// How many of them long after later ones of their flow, if somebody looks at that.
    pub late: Option<u32>,
}

impl From<u32> for Came {
    /// Nobody looks.
    fn from(frames: u32) -> Came {
        Came { frames, late: None }
    }
}

/// Which frames may go to a destination, from the fewest to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenTo {
    /// None yet: first the peer must have said what it has counted.
    Nobody,
    /// Those of classes that say direct.
    Classes,
    /// … and of those whose frames may be lost with a link.
    LossOk,
    All,
}

impl OpenTo {
    /// Whether frames of a class that goes this way may.
    pub fn takes(self, path: KernelPath) -> bool {
        match self {
            OpenTo::Nobody => false,
            OpenTo::Classes => path >= KernelPath::Direct,
            OpenTo::LossOk => path >= KernelPath::LossOk,
            OpenTo::All => path >= KernelPath::Auto,
        }
    }
}

/// By what a peer's direct frames are known, and whose they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectSource {
    /// A direct mark, or the address of a link of the peer.
    pub outer_source: MacAddr,
    pub kind: DirectKind,
    /// Ours by which alone they are known so; `None`: by all.
    pub link: Option<LinkId>,
    /// The peer's `pt0`.
    pub address: MacAddr,
}
