//! The settings of one direction of a wire, as plain data: [`spelling`] is how they are written,
//! [`discipline`] what becomes of what waits, [`config`] what the simulator makes of them.

pub mod config;
pub mod discipline;
pub mod spelling;

use serde::{Deserialize, Serialize};

pub use self::discipline::Discipline;

/// A switch of this price gives a port about this much; 20 ms at 100 Mbit/s.
pub const QUEUE_BYTES_DEFAULT: u64 = 256 << 10;

/// From the sender's port to the receiver's. A frame meets the settings in this order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WireSettings {
    /// `None`: no time passes while a frame is sent, and none ever waits.
    pub rate: Option<Rate>,
    pub queue: Queue,
    pub packets_per_second: Option<PacketRate>,
    pub loss: Option<Loss>,
    /// Share of bits that flip; a frame with one of them fails its FCS and is dropped, so long
    /// frames die more often.
    pub bit_error_rate: Option<f64>,
    /// Share of frames that arrive with bits changed that no FCS tells.
    pub corrupt: Option<f64>,
    /// Share of frames that come twice.
    pub duplicate: Option<f64>,
    pub delay_ns: u64,
    pub jitter: Option<Jitter>,
    pub reorder: Option<Reorder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub bps: u64,
    pub counts: Counts,
}

/// Which bytes of a frame take time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// All that Ethernet sends: preamble, header, padding to 64 bytes, FCS, interframe gap.
    #[default]
    Ethernet,
    /// The IP packet alone, as a line of another kind is rated.
    Ip,
}

/// Where frames stand while the wire is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    pub limit: QueueLimit,
    pub discipline: Discipline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    Bytes(u64),
    Packets(u32),
}

impl Default for QueueLimit {
    fn default() -> QueueLimit {
        QueueLimit::Bytes(QUEUE_BYTES_DEFAULT)
    }
}

/// A cap as of a processor that handles so many, however long they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRate {
    pub rate: u32,
    /// Packets that may pass at once after a pause.
    pub burst: u32,
}

/// What is added to the delay, frame by frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    pub kind: JitterKind,
    /// Uniform: at most this much. Normal: the standard deviation. Pareto: the mean.
    pub size_ns: u64,
    /// Who would overtake waits instead.
    pub keep_order: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JitterKind {
    Uniform,
    Normal,
    Pareto,
}

/// Which frames vanish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Each with the same probability, whatever became of the one before.
    Independent { share: f64 },
    /// In bursts: the wire is good or bad, and changes with a probability a frame.
    GilbertElliott {
        good_to_bad: f64,
        bad_to_good: f64,
        loss_in_good: f64,
        loss_in_bad: f64,
    },
    /// The n-th, the 2n-th, and so on.
    Periodic { every: u64 },
    /// These, counted from 1; ascending.
    Frames { numbers: Vec<u64> },
}

impl Loss {
    /// Of many frames; `None` where it is a few in all.
    pub fn share(&self) -> Option<f64> {
        match self {
            Loss::Independent { share } => Some(*share),
            Loss::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_in_good,
                loss_in_bad,
            } => {
                let changes = good_to_bad + bad_to_good;
                // Without changes it stays as it begins, which is good.
                let bad = if changes > 0.0 {
                    good_to_bad / changes
                } else {
                    0.0
                };
                Some(bad * loss_in_bad + (1.0 - bad) * loss_in_good)
            }
            Loss::Periodic { every } => Some(1.0 / *every as f64),
            Loss::Frames { .. } => None,
        }
    }
}

/// Frames held back for a while, so that others overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reorder {
    pub share: f64,
    pub hold_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_lost_is_that_of_the_states_by_the_time_spent_in_them() {
        let bursts = Loss::GilbertElliott {
            good_to_bad: 0.01,
            bad_to_good: 0.24,
            loss_in_good: 0.0,
            loss_in_bad: 0.5,
        };
        assert!((bursts.share().unwrap() - 0.02).abs() < 1e-12);
        let good_for_ever = Loss::GilbertElliott {
            good_to_bad: 0.0,
            bad_to_good: 0.0,
            loss_in_good: 0.25,
            loss_in_bad: 1.0,
        };
        assert_eq!(good_for_ever.share(), Some(0.25));
        assert_eq!(Loss::Periodic { every: 4 }.share(), Some(0.25));
        assert_eq!(Loss::Frames { numbers: vec![3] }.share(), None);
    }
}
