//! Whether a station can know which of its links are on one segment: by its own hellos to the group, which come back on the others.
//!
//! It says hello by each of them, and waits. Where a wire lets none of these come back in all that time, they count as links to as many
//! segments, and a frame that goes to each segment goes to one of them twice. Who gets both by one port takes both, for two that are equal
//! are no copies there. Nobody can set that right, and it ends with the first hello that passes.

use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

use crate::net::network::PortId;
use crate::simulator::StationId;

/// So often it says hello by a link that has just come …
const ROUNDS: u32 = 2;
/// … and so long after the first of these it believes that nobody of its own hears them.
const WAITED: Duration = Duration::from_millis(140);

/// What a station has said by one of its links, since it began or that had carrier last.
#[derive(Debug)]
struct Said {
    station: StationId,
    port: PortId,
    source: MacAddr,
    first_at: Instant,
    hellos: u32,
}

/// What it said by one of its links it has heard by another one, since both have had carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heard {
    station: StationId,
    segment: usize,
    ports: [usize; 2],
}

#[derive(Debug, Default)]
pub struct Echoes {
    said: Vec<Said>,
    heard: Vec<Heard>,
}

impl Echoes {
    /// A hello to the group leaves.
    pub fn said(&mut self, station: StationId, port: PortId, source: MacAddr, now: Instant) {
        let mut said = self.said.iter_mut();
        match said.find(|said| (said.station, said.port) == (station, port)) {
            Some(said) => said.hellos += 1,
            None => self.said.push(Said {
                station,
                port,
                source,
                first_at: now,
                hellos: 1,
            }),
        }
    }

    /// One has come to a station, by this port.
    pub fn came(&mut self, station: StationId, port: PortId, source: MacAddr) {
        let mut own = self.said.iter().filter(|said| said.station == station);
        if let Some(said) = own.find(|said| said.source == source)
            && said.port.segment == port.segment
        {
            let heard = Heard {
                station,
                segment: port.segment,
                ports: [said.port.port, port.port],
            };
            if !self.heard.contains(&heard) {
                self.heard.push(heard);
            }
        }
    }

    /// What was heard of the others, and by them, holds.
    pub fn carrier_lost(&mut self, station: StationId, port: PortId) {
        self.said
            .retain(|said| (said.station, said.port) != (station, port));
        self.heard.retain(|heard| {
            (heard.station, heard.segment) != (station, port.segment)
                || !heard.ports.contains(&port.port)
        });
    }

    pub fn restarted(&mut self, station: StationId) {
        self.said.retain(|said| said.station != station);
        self.heard.retain(|heard| heard.station != station);
    }

    /// Whether it has done what it can, and all the same cannot know of some of its links that they are on one segment, which is this.
    pub fn is_blind(&self, station: StationId, segment: usize, now: Instant) -> bool {
        let is_here = |said: &&Said| (said.station, said.port.segment) == (station, segment);
        let has_asked = |said: &&Said| said.hellos >= ROUNDS && now.since(said.first_at) >= WAITED;
        let mut asked = self.said.iter().filter(is_here).filter(has_asked);
        let Some(first) = asked.next() else {
            return false;
        };
        let known = self.known_beside(first);
        asked.any(|said| !known.contains(&said.port.port))
    }

    /// Ports of all links of a station that it knows to be on one segment with this one.
    fn known_beside(&self, said: &Said) -> Vec<usize> {
        let mut known = vec![said.port.port];
        let mut looked_at = 0;
        while let Some(&port) = known.get(looked_at) {
            looked_at += 1;
            let is_here = |heard: &&Heard| {
                (heard.station, heard.segment) == (said.station, said.port.segment)
                    && heard.ports.contains(&port)
            };
            for other in self
                .heard
                .iter()
                .filter(is_here)
                .flat_map(|heard| heard.ports)
            {
                if !known.contains(&other) {
                    known.push(other);
                }
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: StationId = StationId(1);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn port(port: usize) -> PortId {
        PortId { segment: 3, port }
    }

    fn address(port: usize) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, port as u8])
    }

    /// By two links, so many times.
    fn says(echoes: &mut Echoes, rounds: &[u64]) {
        for &ms in rounds {
            for of in [0, 1] {
                echoes.said(STATION, port(of), address(of), at(ms));
            }
        }
    }

    #[test]
    fn who_has_asked_and_waited_and_heard_nothing_of_itself_cannot_know() {
        let mut echoes = Echoes::default();
        says(&mut echoes, &[0]);
        assert!(!echoes.is_blind(STATION, 3, at(200)), "asked once");
        says(&mut echoes, &[100]);
        assert!(!echoes.is_blind(STATION, 3, at(139)), "did not wait");
        assert!(echoes.is_blind(STATION, 3, at(140)));
        assert!(!echoes.is_blind(STATION, 2, at(140)));
        assert!(!echoes.is_blind(StationId(0), 3, at(140)));
        echoes.came(StationId(0), port(0), address(1));
        echoes.came(STATION, port(0), address(7));
        assert!(echoes.is_blind(STATION, 3, at(140)), "others' hellos");
        echoes.came(STATION, port(0), address(1));
        assert!(!echoes.is_blind(STATION, 3, at(140)));
    }

    #[test]
    fn who_begins_anew_or_whose_link_does_has_to_ask_again() {
        let mut echoes = Echoes::default();
        says(&mut echoes, &[0, 100]);
        echoes.came(STATION, port(0), address(1));
        echoes.carrier_lost(STATION, port(1));
        assert!(!echoes.is_blind(STATION, 3, at(200)), "one link is alone");
        says(&mut echoes, &[300, 400]);
        assert!(echoes.is_blind(STATION, 3, at(440)));
        echoes.restarted(STATION);
        assert!(!echoes.is_blind(STATION, 3, at(440)));
        echoes.said(STATION, port(0), address(0), at(500));
        echoes.said(STATION, port(0), address(0), at(600));
        assert!(!echoes.is_blind(STATION, 3, at(700)), "by one link");
    }

    #[test]
    fn a_third_link_that_loses_its_carrier_takes_nothing_with_it_that_others_know() {
        let mut echoes = Echoes::default();
        says(&mut echoes, &[0, 100]);
        echoes.came(STATION, port(1), address(0));
        for ms in [0, 100] {
            echoes.said(STATION, port(2), address(2), at(ms));
        }
        assert!(echoes.is_blind(STATION, 3, at(140)), "of the third");
        echoes.came(STATION, port(1), address(2));
        assert!(!echoes.is_blind(STATION, 3, at(140)), "by way of another");
        echoes.carrier_lost(STATION, port(2));
        assert!(!echoes.is_blind(STATION, 3, at(140)), "the two know");
        echoes.said(STATION, port(2), address(2), at(150));
        assert!(!echoes.is_blind(STATION, 3, at(400)), "asked once");
        echoes.said(STATION, port(2), address(2), at(250));
        assert!(echoes.is_blind(STATION, 3, at(400)), "it begins anew");
    }
}
