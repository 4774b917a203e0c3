//! The wires between the two hosts, in a few words.

use std::time::Duration;

use crate::lab::topology::direction::{Counts, Direction, Loss, Port, Rate};
use crate::lab::topology::{Topology, TopologyOptions};

/// One of them, in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireOf {
    pub rate_mbit: u32,
    pub one_way: Duration,
    /// Share of frames that vanish.
    pub loss: f64,
}

impl WireOf {
    pub const fn mbit(rate_mbit: u32) -> WireOf {
        WireOf {
            rate_mbit,
            one_way: Duration::ZERO,
            loss: 0.0,
        }
    }

    /// With so much more round trip.
    pub const fn farther_by(self, round_trip: Duration) -> WireOf {
        let one_way = Duration::from_micros(round_trip.as_micros() as u64 / 2);
        WireOf { one_way, ..self }
    }

    pub const fn losing(self, loss: f64) -> WireOf {
        WireOf { loss, ..self }
    }

    fn apply(&self, direction: &mut Direction) {
        let bps = u64::from(self.rate_mbit) * 1_000_000;
        let counts = Counts::Ethernet;
        direction.port = Port {
            rate_bps: Some(bps),
            ..direction.port
        };
        direction.wire.rate = Some(Rate { bps, counts });
        direction.wire.delay_ns = self.one_way.as_nanos() as u64;
        direction.wire.loss = (self.loss > 0.0).then_some(Loss::Independent { share: self.loss });
    }
}

/// Two hosts, and these wires between them.
pub fn topology(wires: &[WireOf]) -> Topology {
    let options = TopologyOptions {
        links: wires.len(),
        packtrain: false,
        ..TopologyOptions::default()
    };
    let mut topology = options.topology().expect("two hosts and their wires");
    for (wire, of) in topology.wires.iter_mut().zip(wires) {
        wire.directions.iter_mut().for_each(|way| of.apply(way));
    }
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wires_are_what_was_said_of_each_in_both_directions() {
        let far = WireOf::mbit(40).farther_by(Duration::from_millis(5));
        let topology = topology(&[WireOf::mbit(100), far.losing(0.01)]);
        let [near, far] = &topology.wires[..] else {
            panic!("two wires");
        };
        for direction in &near.directions {
            assert_eq!(direction.port.rate_bps, Some(100_000_000));
            assert_eq!((direction.wire.delay_ns, &direction.wire.loss), (0, &None));
        }
        for direction in &far.directions {
            assert_eq!(direction.wire.rate.unwrap().bps, 40_000_000);
            assert_eq!(direction.wire.delay_ns, 2_500_000);
            let loss = direction.wire.loss.as_ref().and_then(Loss::share);
            assert_eq!(loss, Some(0.01));
        }
        assert!(topology.check().is_empty());
    }
}
