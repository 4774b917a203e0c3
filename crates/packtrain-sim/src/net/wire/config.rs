//! What a wire is like.

use packtrain_proto::time::Duration;

use crate::frame::WIRE_OVERHEAD_BYTES;
use crate::net::arq::ArqConfig;
use crate::net::bit_errors::BitErrorConfig;
use crate::net::corruption::CorruptionConfig;
use crate::net::fec::FecConfig;
use crate::net::jitter::JitterConfig;
use crate::net::loss::LossConfig;
use crate::net::packet_cap::PacketCapConfig;
use crate::net::processing::ProcessingConfig;
use crate::net::queue::{Discipline, QueueConfig, QueueLimit};
use crate::net::rate::RateConfig;
use crate::net::reordering::ReorderingConfig;

#[derive(Clone, Debug, PartialEq)]
pub struct WireConfig {
    /// `None`: what is offered leaves at once.
    pub rate: Option<RateConfig>,
    pub queue: QueueConfig,
    /// Most frames a second, however short.
    pub packet_cap: Option<PacketCapConfig>,
    /// What a router does with each data unit before it sends it.
    pub processing: Option<ProcessingConfig>,
    pub loss: Option<LossConfig>,
    pub bit_errors: Option<BitErrorConfig>,
    /// What flipped bits are mended by.
    pub fec: Option<FecConfig>,
    /// What `loss` and `bit_errors` take goes again.
    pub arq: Option<ArqConfig>,
    pub corruption: Option<CorruptionConfig>,
    /// Probability of a frame to come again.
    pub duplication: Option<f64>,
    pub delay: Duration,
    pub jitter: Option<JitterConfig>,
    pub reordering: Option<ReorderingConfig>,
}

impl WireConfig {
    /// A wire that does nothing to its frames but carry them.
    pub fn perfect(rate_bps: u64, delay: Duration) -> WireConfig {
        WireConfig {
            rate: Some(RateConfig::ethernet(rate_bps)),
            ..WireConfig::unrated(delay)
        }
    }

    /// The same, as fast as it is fed.
    pub fn unrated(delay: Duration) -> WireConfig {
        WireConfig {
            rate: None,
            queue: QueueConfig::drop_tail(512 * 1024),
            packet_cap: None,
            processing: None,
            loss: None,
            bit_errors: None,
            fec: None,
            arq: None,
            corruption: None,
            duplication: None,
            delay,
            jitter: None,
            reordering: None,
        }
    }

    /// Whether it makes a difference to the wire if several frames come as one that is still to be cut.
    /// Who drives it cuts them first where it does.
    pub fn counts_frames(&self) -> bool {
        let carries_only = WireConfig {
            rate: self.rate,
            queue: self.queue,
            ..WireConfig::unrated(self.delay)
        };
        let by_bytes = matches!(self.queue.limit, QueueLimit::Bytes(_));
        let drops_tail = self.queue.discipline == Discipline::DropTail;
        *self != carries_only || !by_bytes || !drops_tail
    }

    /// Whether a frame may arrive before one that left before it.
    pub fn reorders(&self) -> bool {
        self.reordering.is_some() || self.jitter.is_some_and(|jitter| !jitter.keeps_order)
    }

    /// The longest that a frame of so many bytes, which is not to be cut any more, takes when nothing stands before it and it
    /// has its token.
    pub fn passage_max(&self, bytes: usize) -> Duration {
        let bits = 8 * (bytes + WIRE_OVERHEAD_BYTES) as u64;
        let nanos = self.rate.map_or(0, |rate| 1_000_000_000 * bits / rate.bps);
        let processing = self.processing.map(|processing| processing.per_unit);
        let jitter = self.jitter.map(|jitter| jitter.distribution.max());
        let hold = self.reordering.map(|reordering| reordering.hold_max);
        Duration::from_nanos(nanos)
            + processing.unwrap_or_default()
            + self.delay
            + jitter.unwrap_or_default()
            + hold.unwrap_or_default()
    }
}
