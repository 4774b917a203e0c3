//! What the simulator makes of the settings of a wire.

use packtrain_proto::queue::codel::CodelParams;
use packtrain_proto::time::Duration;
use packtrain_sim::net::bit_errors::BitErrorConfig;
use packtrain_sim::net::corruption::CorruptionConfig;
use packtrain_sim::net::jitter::{JitterConfig, JitterDistribution};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::packet_cap::PacketCapConfig;
use packtrain_sim::net::queue::{self, QueueConfig};
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::reordering::ReorderingConfig;
use packtrain_sim::net::wire::WireConfig;

use super::{Counts, Discipline, Jitter, JitterKind, Loss, Queue, QueueLimit, Rate, WireSettings};

impl WireSettings {
    /// The simulator's word for it; what cannot be set here is as on any wire.
    pub fn config(&self) -> WireConfig {
        let mut config = WireConfig::unrated(Duration::from_nanos(self.delay_ns));
        config.rate = self.rate.map(rate_of);
        config.queue = queue_of(self.queue);
        config.packet_cap = self.packets_per_second.map(|cap| PacketCapConfig {
            frames_per_second: cap.rate.into(),
            burst_frames: cap.burst.into(),
        });
        config.loss = self.loss.as_ref().map(loss_of);
        config.bit_errors = self.bit_error_rate.map(|rate| BitErrorConfig { rate });
        config.corruption = self.corrupt.map(|probability| CorruptionConfig {
            probability,
            bits_max: 1,
            fcs: false,
        });
        config.duplication = self.duplicate;
        config.jitter = self.jitter.map(jitter_of);
        config.reordering = self.reorder.map(|reorder| ReorderingConfig {
            probability: reorder.share,
            hold_max: Duration::from_nanos(reorder.hold_ns),
        });
        config
    }
}

fn jitter_of(jitter: Jitter) -> JitterConfig {
    let size = Duration::from_nanos(jitter.size_ns);
    JitterConfig {
        distribution: match jitter.kind {
            JitterKind::Uniform => JitterDistribution::Uniform { max: size },
            JitterKind::Normal => JitterDistribution::Normal { deviation: size },
            JitterKind::Pareto => JitterDistribution::Pareto { mean: size },
        },
        keeps_order: jitter.keep_order,
    }
}

fn rate_of(rate: Rate) -> RateConfig {
    RateConfig {
        bps: rate.bps,
        level: match rate.counts {
            Counts::Ethernet => RateLevel::Ethernet,
            Counts::Ip => RateLevel::Ip,
        },
    }
}

fn queue_of(queue: Queue) -> QueueConfig {
    let limit = match queue.limit {
        QueueLimit::Bytes(bytes) => queue::QueueLimit::Bytes(bytes as usize),
        QueueLimit::Packets(packets) => queue::QueueLimit::Frames(packets as usize),
    };
    let discipline = match queue.discipline {
        Discipline::DropTail => queue::Discipline::DropTail,
        Discipline::CoDel {
            target_us,
            interval_us,
        } => queue::Discipline::Codel {
            params: CodelParams {
                target: Duration::from_micros(target_us),
                interval: Duration::from_micros(interval_us),
            },
            ecn: false,
        },
        Discipline::EcnAbove { bytes } => queue::Discipline::MarkAbove {
            bytes: bytes as usize,
        },
    };
    QueueConfig { limit, discipline }
}

fn loss_of(loss: &Loss) -> LossConfig {
    match loss {
        Loss::Independent { share } => LossConfig::Bernoulli {
            probability: *share,
        },
        Loss::GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_in_good,
            loss_in_bad,
        } => LossConfig::GilbertElliott {
            good_to_bad: *good_to_bad,
            bad_to_good: *bad_to_good,
            loss_in_good: *loss_in_good,
            loss_in_bad: *loss_in_bad,
        },
        Loss::Periodic { every } => LossConfig::Periodic { every: *every },
        Loss::Frames { numbers } => LossConfig::Given {
            frames: numbers.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_reaches_the_simulators_wire() {
        let settings = WireSettings {
            rate: "599mbit:ip".parse().ok(),
            queue: Queue {
                limit: "50p".parse().unwrap(),
                discipline: "codel:6ms,120ms".parse().unwrap(),
            },
            packets_per_second: "5000:64".parse().ok(),
            loss: "every:100".parse().ok(),
            bit_error_rate: Some(1e-6),
            corrupt: Some(0.07),
            duplicate: Some(0.03),
            delay_ns: 99_000_000,
            jitter: "normal:1ms,unordered".parse().ok(),
            reorder: "1%:5ms".parse().ok(),
        };
        let expected = WireConfig {
            rate: Some(RateConfig {
                bps: 599_000_000,
                level: RateLevel::Ip,
            }),
            queue: QueueConfig {
                limit: queue::QueueLimit::Frames(50),
                discipline: queue::Discipline::Codel {
                    params: CodelParams {
                        target: Duration::from_millis(6),
                        interval: Duration::from_millis(120),
                    },
                    ecn: false,
                },
            },
            processing: None,
            packet_cap: Some(PacketCapConfig {
                frames_per_second: 5000,
                burst_frames: 64,
            }),
            loss: Some(LossConfig::Periodic { every: 100 }),
            bit_errors: Some(BitErrorConfig { rate: 1e-6 }),
            fec: None,
            arq: None,
            corruption: Some(CorruptionConfig {
                probability: 0.07,
                bits_max: 1,
                fcs: false,
            }),
            duplication: Some(0.03),
            jitter: Some(JitterConfig {
                distribution: JitterDistribution::Normal {
                    deviation: Duration::from_millis(1),
                },
                keeps_order: false,
            }),
            reordering: Some(ReorderingConfig {
                probability: 0.01,
                hold_max: Duration::from_millis(5),
            }),
            delay: Duration::from_millis(99),
        };
        assert_eq!(settings.config(), expected);
    }
}
