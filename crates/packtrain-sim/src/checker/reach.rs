//! Whom a frame without a copy of its own could not reach: by the carriers of the links, whatever an
//! engine believes of its peers.
//!
//! A frame for everybody, or for a station that nobody knows, goes once to each segment on which its
//! sender has a link with carrier. Where there is none, no copy is made, and nobody counts one as
//! dropped. Excused is a host that shares with the sender only segments that had no copy, each without a
//! carrier at some moment between the sending of the frame and the leaving of its first copy: until then
//! it waits for whichever link comes first, and goes to no other one. A cable that is dead and keeps its
//! carrier excuses nothing here: what it swallows is known as lost.

use packtrain_proto::time::Instant;

use crate::net::network::PortId;
use crate::simulator::StationId;

/// What is known of one frame's copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// When the host sent the frame.
    pub sent_at: Instant,
    /// When the first of them left.
    pub left_at: Instant,
    pub count: u32,
    /// Its sender had not met anybody when one of them left.
    pub before_any_train: bool,
    /// Two of them left on one segment, and their sender could not know that it is one.
    pub twice_unknowingly: bool,
    /// A bit for each segment that got one.
    pub segments: u64,
    /// A bit for each station that one came to, whatever became of it there.
    pub stations: u64,
}

impl Copies {
    pub fn left_on(&mut self, segment: usize, now: Instant) {
        assert!(segment < 64, "a segment has its bit in a u64");
        if self.segments == 0 {
            self.left_at = now;
        }
        self.segments |= 1 << segment;
        self.count += 1;
    }

    pub fn came_to(&mut self, station: StationId) {
        assert!(station.0 < 64, "a station has its bit in a u64");
        self.stations |= 1 << station.0;
    }

    pub fn has_come_to(&self, station: StationId) -> bool {
        self.stations >> station.0 & 1 == 1
    }

    pub fn has_left_on(&self, segment: usize) -> bool {
        self.segments >> segment & 1 == 1
    }
}

/// A station's links to one segment.
#[derive(Debug)]
struct Access {
    station: StationId,
    segment: usize,
    /// All that there ever were.
    ports: Vec<usize>,
    /// Ports of those with carrier.
    carriers: Vec<usize>,
    /// When there was none, from and until; the last one may go on.
    without: Vec<(Instant, Option<Instant>)>,
}

#[derive(Debug, Default)]
pub struct Reach {
    accesses: Vec<Access>,
}

impl Reach {
    /// A link of a station has carrier, or has none, or has left.
    pub fn link(&mut self, station: StationId, port: PortId, carrier: bool, now: Instant) {
        let is_it = |a: &&mut Access| (a.station, a.segment) == (station, port.segment);
        let access = match self.accesses.iter_mut().find(is_it) {
            Some(access) => access,
            None => {
                self.accesses.push(Access {
                    station,
                    segment: port.segment,
                    ports: Vec::new(),
                    carriers: Vec::new(),
                    without: vec![(Instant::ZERO, None)],
                });
                self.accesses.last_mut().expect("just put there")
            }
        };
        if !access.ports.contains(&port.port) {
            access.ports.push(port.port);
        }
        let had_any = !access.carriers.is_empty();
        access.carriers.retain(|&other| other != port.port);
        if carrier {
            access.carriers.push(port.port);
        }
        match (had_any, access.carriers.is_empty()) {
            (true, true) => access.without.push((now, None)),
            (false, false) => access.without.last_mut().expect("it is open").1 = Some(now),
            _ => {}
        }
    }

    /// Whether what left on the segments of these copies may come to a station by more than one port: of
    /// a switch that floods, by each of them.
    pub fn has_several_ports(&self, station: StationId, copies: &Copies) -> bool {
        let of_station = self.accesses.iter().filter(|a| a.station == station);
        let mut reached = of_station.filter(|access| copies.has_left_on(access.segment));
        reached.any(|access| access.ports.len() > 1)
    }

    /// Whether no copy of a frame of `from` could go where `to` is.
    pub fn is_out(&self, from: StationId, to: StationId, copies: &Copies) -> bool {
        let of_receiver = |segment| {
            let mut accesses = self.accesses.iter();
            accesses.any(|a| a.station == to && a.segment == segment)
        };
        let of_sender = self.accesses.iter().filter(|a| a.station == from);
        let mut shared = of_sender
            .filter(|access| of_receiver(access.segment))
            .peekable();
        let are_neighbours = shared.peek().is_some();
        let no_way = shared.all(|access| {
            let mut without = access.without.iter();
            let was_without = without.any(|&(since, until)| {
                since <= copies.left_at && until.is_none_or(|until| until >= copies.sent_at)
            });
            was_without && !copies.has_left_on(access.segment)
        });
        are_neighbours && no_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StationId = StationId(0);
    const B: StationId = StationId(1);
    const C: StationId = StationId(2);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn port(segment: usize, port: usize) -> PortId {
        PortId { segment, port }
    }

    /// A has a cable to B, which is 0, and one to C, which is 1.
    fn two_cables() -> Reach {
        let mut reach = Reach::default();
        for (station, of) in [
            (A, port(0, 0)),
            (B, port(0, 1)),
            (A, port(1, 0)),
            (C, port(1, 1)),
        ] {
            reach.link(station, of, true, at(0));
        }
        reach
    }

    fn copies(sent: u64, left: u64, segments: &[usize]) -> Copies {
        let mut copies = Copies {
            sent_at: at(sent),
            ..Copies::default()
        };
        for &segment in segments {
            copies.left_on(segment, at(left));
        }
        copies
    }

    #[test]
    fn who_is_behind_the_only_link_without_carrier_is_out_while_that_has_none() {
        let mut reach = two_cables();
        reach.link(A, port(1, 0), false, at(10));
        reach.link(A, port(1, 0), true, at(20));
        for (sent, left, out) in [
            (8, 9, false),
            (9, 10, true),
            (12, 12, true),
            (20, 30, true),
            (21, 30, false),
        ] {
            let copies = copies(sent, left, &[0]);
            assert_eq!(reach.is_out(A, C, &copies), out, "{sent} to {left} ms");
            assert!(!reach.is_out(A, B, &copies), "it left by that cable");
        }
        let both = copies(12, 25, &[0, 1]);
        assert!(!reach.is_out(A, C, &both), "it left when that was back");
    }

    #[test]
    fn the_receivers_carrier_excuses_nobody_who_sent_nothing() {
        let mut reach = two_cables();
        reach.link(C, port(1, 1), false, at(10));
        assert!(!reach.is_out(A, C, &copies(12, 12, &[0])));
    }

    #[test]
    fn another_link_to_the_segment_or_another_segment_is_a_way() {
        let mut reach = two_cables();
        reach.link(A, port(1, 2), true, at(0));
        reach.link(A, port(1, 0), false, at(10));
        assert!(!reach.is_out(A, C, &copies(12, 12, &[0])));
        reach.link(A, port(1, 2), false, at(15));
        assert!(reach.is_out(A, C, &copies(16, 16, &[0])));
        reach.link(C, port(0, 2), true, at(16));
        assert!(!reach.is_out(A, C, &copies(17, 17, &[0])));
    }

    #[test]
    fn a_host_with_two_ports_on_a_switch_is_reached_by_both_and_one_with_two_cables_is_not() {
        let mut reach = two_cables();
        for segment in [0, 1] {
            assert!(!reach.has_several_ports(A, &copies(0, 0, &[segment])));
        }
        reach.link(B, port(0, 2), true, at(0));
        reach.link(B, port(0, 2), false, at(1));
        assert!(reach.has_several_ports(B, &copies(0, 0, &[0, 1])));
        assert!(!reach.has_several_ports(B, &copies(0, 0, &[1])));
        assert!(!reach.has_several_ports(A, &copies(0, 0, &[0])));
    }
}
