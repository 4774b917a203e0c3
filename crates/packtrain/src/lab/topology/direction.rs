//! One direction of a wire: the port that sends into it, and what happens on the way.

use serde::{Deserialize, Serialize};

pub use packtrain_settings::wire::{
    Counts, Discipline, Jitter, JitterKind, Loss, PacketRate, Queue, QueueLimit, Rate, Reorder,
    WireSettings,
};

/// What Linux gives an Ethernet interface (`txqueuelen`).
pub const PORT_QUEUE_PACKETS_DEFAULT: u32 = 1000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Of the host that sends; empty where a switch or a hub does, whose queue is the wire's.
    pub port: Port,
    pub wire: WireSettings,
}

/// A host's own port: a qdisc of the kernel there, so that sockets feel it as they would a NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// With Ethernet framing counted, as NICs send; `None`: as fast as the host can.
    pub rate_bps: Option<u64>,
    /// `None`: what the kernel gives it.
    pub queue_packets: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_survives_its_way_through_json() {
        let losses = ["1%", "gilbert:1%,25%,0%,100%", "every:100", "frames:3,7"];
        let jitters = ["1ms", "normal:1ms", "pareto:1ms,unordered", "0"];
        let disciplines = [
            "drop-tail",
            "codel:ecn",
            "ecn:30kb",
            "codel",
            "drr:19500b,1250kb",
            "fq-codel",
            "short-first",
            "red:1kb,2kb,2.5%,ecn",
        ];
        let others = losses.into_iter().zip(jitters).cycle();
        for (discipline, (loss, jitter)) in disciplines.into_iter().zip(others) {
            let direction = Direction {
                port: Port {
                    rate_bps: Some(1_000_000),
                    queue_packets: Some(50),
                },
                wire: WireSettings {
                    rate: "599mbit:ip".parse().ok(),
                    queue: Queue {
                        limit: "50p".parse().unwrap(),
                        discipline: discipline.parse().unwrap(),
                    },
                    packets_per_second: "5000:64".parse().ok(),
                    loss: loss.parse().ok(),
                    bit_error_rate: Some(1e-6),
                    corrupt: Some(0.07),
                    duplicate: Some(0.03),
                    delay_ns: 99_000_000,
                    jitter: jitter.parse().ok(),
                    reorder: "1%:5ms".parse().ok(),
                },
            };
            let json = serde_json::to_string(&direction).unwrap();
            assert_eq!(serde_json::from_str::<Direction>(&json).unwrap(), direction);
        }
    }

    #[test]
    fn a_lab_that_was_made_before_codel_could_mark_is_still_read() {
        let before = r#"{"co_del":{"target_us":5000,"interval_us":100000}}"#;
        let read = serde_json::from_str::<Discipline>(before).unwrap();
        assert_eq!(read.to_string(), "codel:5ms,100ms");
    }
}
