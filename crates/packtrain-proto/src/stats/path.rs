//! What is measured of a path, and why it is used as it is.

use serde::Serialize;

use crate::time::Duration;
use crate::trunk::bit_errors::Estimate;
use crate::unit_size::SizeBecause;

/// Beside its round trips and its rate. `None`: never, or not lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathMeasures {
    /// When its rate was seen last.
    pub rate_age: Option<Duration>,
    /// How much round trips differ from the smoothed one, on average: RTTVAR of RFC 6298.
    pub round_trip_deviation: Option<Duration>,
    /// Of a million trains of the last five to ten seconds, those of ours that were lost by what acknowledgements tell, …
    pub tx_loss_ppm: Option<u32>,
    /// … and those of the peer's by what is missing in the row of its sequences.
    pub rx_loss_ppm: Option<u32>,
    /// Payload bytes of the longest frame that passes it, where that was asked; and of one that both ends take.
    pub mtu: Option<u16>,
    pub mtu_of_ends: Option<u16>,
    /// How much later than by the fastest path of the peer a train is there: the wire carries no times, so it is told from
    /// the least round trips, which differ as the ways there do.
    pub tx_later: Option<Duration>,
    /// How much later than the first newer train by another link the peer's came by this one, on average over the last five
    /// to ten seconds. It was sent before that one: its way took so much longer at least.
    pub rx_later: Option<Duration>,
}

/// How long trains are that are made for a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PathSize {
    /// Payload bytes of the longest, as of a link's MTU.
    pub bytes: u16,
    pub because: SizeBecause,
    /// How many bits are wrong. `None`: too few trains were lost to say.
    pub errors: Option<Estimate>,
    /// It is the only one, loses by that, and what it loses goes again.
    pub mends: bool,
    /// It is looked whether it does.
    pub looks: bool,
}

/// Why a path is used as it is, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathBecause {
    /// It answers, and the settings want it.
    Works,
    /// Our link has no carrier, or nobody knows of it any more.
    NoCarrier,
    /// Our link's MTU is too small for trains.
    MtuTooSmall,
    /// The peer says that its end has no carrier, or is to leave.
    PeerEndDead,
    /// The MTU of the peer's end is too small for trains.
    PeerMtuTooSmall,
    /// Nothing has been heard on it since it could be.
    Unheard,
    /// What went another way before has to arrive first.
    Order,
    /// Trains were not acknowledged for so long.
    Unanswered(Duration),
    /// Nothing was heard on it for so long, though it was asked.
    NotHeard(Duration),
    /// The peer says that it does not hear us on it.
    PeerDeaf,
    /// It failed not long ago, and has to work for a while first.
    FailedBefore,
    /// It has not answered yet.
    Unproven,
    /// Our link is to leave.
    Retiring,
    /// The settings use another one.
    NotPreferred,
    /// The others would wait too long for its trains.
    TooSlow,
}
