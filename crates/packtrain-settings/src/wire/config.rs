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

/// Of RED's average: an eighth of what Floyd and Jacobson call a good lower bound for bursts of fifty packets.
const RED_WEIGHT: f64 = 0.002;

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
    QueueConfig {
        limit,
        discipline: discipline_of(queue.discipline),
    }
}

fn discipline_of(discipline: Discipline) -> queue::Discipline {
    let codel = |target_us, interval_us| CodelParams {
        target: Duration::from_micros(target_us),
        interval: Duration::from_micros(interval_us),
    };
    match discipline {
        Discipline::DropTail => queue::Discipline::DropTail,
        Discipline::CoDel {
            target_us,
            interval_us,
            ecn,
        } => queue::Discipline::Codel {
            params: codel(target_us, interval_us),
            ecn,
        },
        Discipline::EcnAbove { bytes } => queue::Discipline::MarkAbove {
            bytes: bytes as usize,
        },
        Discipline::Drr {
            quantum_bytes,
            flow_bytes_max,
        } => queue::Discipline::Drr {
            quantum_bytes: quantum_bytes as usize,
            flow_limit_bytes: flow_bytes_max.map(|bytes| bytes as usize),
        },
        Discipline::FqCoDel {
            quantum_bytes,
            target_us,
            interval_us,
            ecn,
        } => queue::Discipline::FqCodel {
            quantum_bytes: quantum_bytes as usize,
            params: codel(target_us, interval_us),
            ecn,
        },
        Discipline::ShortFirst { threshold_bytes } => {
            queue::Discipline::ShortFirst { threshold_bytes }
        }
        Discipline::Red {
            least_bytes,
            most_bytes,
            probability_max,
            ecn,
        } => queue::Discipline::Red {
            min_bytes: least_bytes as usize,
            max_bytes: most_bytes as usize,
            max_probability: probability_max,
            weight: RED_WEIGHT,
            ecn,
            gentle: true,
        },
    }
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

    #[test]
    fn every_discipline_is_the_simulators_of_the_same_name() {
        let of = |text: &str| discipline_of(text.parse().unwrap());
        let codel = CodelParams {
            target: Duration::from_millis(6),
            interval: Duration::from_millis(120),
        };
        assert_eq!(of("drop-tail"), queue::Discipline::DropTail);
        for ecn in [false, true] {
            let with = |text: &str| of(&format!("{text}{}", if ecn { ",ecn" } else { "" }));
            let params = codel;
            assert_eq!(
                with("codel:6ms,120ms"),
                queue::Discipline::Codel { params, ecn }
            );
            let fq_codel = queue::Discipline::FqCodel {
                quantum_bytes: 19_500,
                params,
                ecn,
            };
            assert_eq!(with("fq-codel:19500b,6ms,120ms"), fq_codel);
            let red = queue::Discipline::Red {
                min_bytes: 100 << 10,
                max_bytes: 300 << 10,
                max_probability: 0.1,
                weight: 0.002,
                ecn,
                gentle: true,
            };
            assert_eq!(with("red:100kb,300kb,10%"), red);
        }
        let bytes = 30 << 10;
        assert_eq!(of("ecn:30kb"), queue::Discipline::MarkAbove { bytes });
        for (text, flow_limit_bytes) in [("drr:19500b", None), ("drr:19500b,9kb", Some(9 << 10))] {
            let drr = queue::Discipline::Drr {
                quantum_bytes: 19_500,
                flow_limit_bytes,
            };
            assert_eq!(of(text), drr);
        }
        let threshold_bytes = 50 << 10;
        let short_first = queue::Discipline::ShortFirst { threshold_bytes };
        assert_eq!(of("short-first:50kb"), short_first);
    }
}
