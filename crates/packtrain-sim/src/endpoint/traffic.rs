//! What a segment brings to a host: the mix of the paper's Fig. 3.

use super::PICOS_PER_SECOND;
use crate::frame::{FCS_BYTES, WIRE_OVERHEAD_BYTES};
use crate::random::{Random, ln};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Unicast,
    /// For other stations.
    Promiscuous,
    JoinedGroup,
    ForeignGroup,
    /// To all: its announcements of routes and services.
    Ipx,
    /// To a group of its own.
    NetBeui,
    /// That asks for this host.
    OwnArp,
    ForeignArp,
    /// Other than ARP.
    Broadcast,
    /// Spanning tree, neighbour discovery of switches, types that nobody knows: groups that were not joined, and others.
    Other,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Unicast,
        Kind::Promiscuous,
        Kind::JoinedGroup,
        Kind::ForeignGroup,
        Kind::Ipx,
        Kind::NetBeui,
        Kind::OwnArp,
        Kind::ForeignArp,
        Kind::Broadcast,
        Kind::Other,
    ];

    /// By the paper's algorithm (section 4): what is broadcast and not ARP cannot be judged by its addresses.
    pub fn passes(self) -> bool {
        match self {
            Kind::Unicast | Kind::JoinedGroup | Kind::OwnArp | Kind::Ipx | Kind::Broadcast => true,
            Kind::Promiscuous
            | Kind::ForeignGroup
            | Kind::NetBeui
            | Kind::ForeignArp
            | Kind::Other => false,
        }
    }

    /// Somebody here has a use for it.
    pub fn is_wanted(self) -> bool {
        matches!(self, Kind::Unicast | Kind::JoinedGroup | Kind::OwnArp)
    }
}

/// Parts, in the order of [`Kind::ALL`], of whatever they add up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(pub [u32; Kind::ALL.len()]);

impl Default for Mix {
    /// Fig. 3, in hundredths of a percent. Half of its multicast is of groups that this host has joined, and of its ARP one in
    /// 125 asks for this host: so many end points its network had.
    fn default() -> Mix {
        Mix([500, 6000, 100, 100, 300, 100, 16, 1984, 500, 400])
    }
}

impl Mix {
    /// Nothing else.
    pub fn only(kind: Kind) -> Mix {
        Mix(Kind::ALL.map(|each| u32::from(each == kind)))
    }

    pub fn share(&self, kind: Kind) -> f64 {
        f64::from(self.0[kind as usize]) / self.total() as f64
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|&parts| u64::from(parts)).sum()
    }

    /// Of [0, 2⁶⁴) each has its share.
    fn at(&self, place: u64) -> Kind {
        let mut part = ((u128::from(place) * u128::from(self.total())) >> 64) as u64;
        for (kind, &parts) in Kind::ALL.into_iter().zip(&self.0) {
            match part.checked_sub(u64::from(parts)) {
                Some(left) => part = left,
                None => return kind,
            }
        }
        unreachable!("the parts add up to their total")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At even distances: the paper's "deterministic network traffic flow".
    Periodic,
    /// A frame that is due while the one before it is on the wire follows it.
    Poisson,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficConfig {
    pub wire_bps: u64,
    /// Of the wire's: preambles and gaps count.
    pub offered_bps: u64,
    /// As Ethernet counts, with the check sequence.
    pub frame_bytes: u32,
    pub mix: Mix,
    pub pace: Pace,
    pub seed: u64,
}

impl Default for TrafficConfig {
    fn default() -> TrafficConfig {
        TrafficConfig {
            wire_bps: 1_000_000_000,
            offered_bps: 100_000_000,
            frame_bytes: 300,
            mix: Mix::default(),
            pace: Pace::Periodic,
            seed: 1,
        }
    }
}

impl TrafficConfig {
    /// What the wire spends on a frame.
    pub fn frame_bits(&self) -> u64 {
        8 * (u64::from(self.frame_bytes) + (WIRE_OVERHEAD_BYTES - FCS_BYTES) as u64)
    }

    pub fn wire_per_second(&self) -> f64 {
        self.wire_bps as f64 / self.frame_bits() as f64
    }
}

#[derive(Debug)]
pub struct Traffic {
    config: TrafficConfig,
    /// Apart, so that the kinds are the same at each pace.
    kinds: Random,
    gaps: Random,
    number: u64,
    /// Of the last frame's beginning, and of when it was due.
    begun_ps: u64,
    due_ps: u64,
}

impl Traffic {
    pub fn new(config: &TrafficConfig) -> Traffic {
        assert!(config.frame_bytes >= 64, "Ethernet has 64 bytes at least");
        assert!(
            (1..=config.wire_bps).contains(&config.offered_bps),
            "a load of {} on a wire of {}",
            config.offered_bps,
            config.wire_bps
        );
        assert!(config.mix.total() > 0, "a mix of nothing");
        let mut random = Random::new(config.seed);
        Traffic {
            config: config.clone(),
            kinds: random.fork(),
            gaps: random.fork(),
            number: 0,
            begun_ps: 0,
            due_ps: 0,
        }
    }

    /// The next one: when its last bit has come, and what it is.
    pub fn arrival(&mut self) -> (u64, Kind) {
        let config = &self.config;
        let bits = config.frame_bits();
        let spent_ps = picos(u128::from(bits), config.wire_bps);
        match config.pace {
            Pace::Periodic => {
                let before = u128::from(bits) * u128::from(self.number);
                self.begun_ps = picos(before, config.offered_bps);
            }
            Pace::Poisson => {
                let mean_ps = picos(u128::from(bits), config.offered_bps) as f64;
                self.due_ps += (-ln(1.0 - self.gaps.unit()) * mean_ps) as u64;
                let free_ps = match self.number {
                    0 => 0,
                    _ => self.begun_ps + spent_ps,
                };
                self.begun_ps = self.due_ps.max(free_ps);
            }
        }
        self.number += 1;
        // After the preamble and the frame; the gap is behind it.
        let come_bits = 8 * (PREAMBLE_BYTES + u64::from(config.frame_bytes));
        let come_ps = self.begun_ps + picos(u128::from(come_bits), config.wire_bps);
        (come_ps, config.mix.at(self.kinds.next()))
    }
}

/// With the delimiter.
const PREAMBLE_BYTES: u64 = 8;

fn picos(bits: u128, bps: u64) -> u64 {
    (bits * u128::from(PICOS_PER_SECOND) / u128::from(bps)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(frame_bytes: u32, offered_bps: u64, pace: Pace) -> Traffic {
        Traffic::new(&TrafficConfig {
            frame_bytes,
            offered_bps,
            pace,
            ..TrafficConfig::default()
        })
    }

    /// The last row of the paper's Fig. 4.
    #[test]
    fn a_gigabit_has_the_papers_numbers_of_frames() {
        for (frame_bytes, printed) in [(64, 1_488_095.0), (300, 390_625.0), (1518, 81_274.0)] {
            let config = TrafficConfig {
                frame_bytes,
                ..TrafficConfig::default()
            };
            assert_eq!(config.wire_per_second().floor(), printed);
            for pace in [Pace::Periodic, Pace::Poisson] {
                let mut traffic = traffic(frame_bytes, config.wire_bps, pace);
                let (first_ps, _) = traffic.arrival();
                let last_ps = (0..10_000)
                    .map(|_| traffic.arrival().0)
                    .last()
                    .expect("many");
                let per_second = 1e4 * 1e12 / (last_ps - first_ps) as f64;
                let off = per_second / printed - 1.0;
                let tolerance = match pace {
                    Pace::Periodic => 1e-5,
                    Pace::Poisson => 0.02, // it is idle until its queue has built up
                };
                assert!(off.abs() < tolerance, "{pace:?}, {frame_bytes}: {off}");
            }
        }
    }

    #[test]
    fn frames_come_when_their_last_bit_has() {
        let mut periodic = traffic(64, 10_000_000, Pace::Periodic);
        let come: Vec<u64> = (0..3).map(|_| periodic.arrival().0).collect();
        assert_eq!(come, [576_000, 67_776_000, 134_976_000]);
    }

    #[test]
    fn a_poisson_process_has_its_mean_and_frames_do_not_overlap() {
        let mut poisson = traffic(300, 250_000_000, Pace::Poisson);
        let come: Vec<u64> = (0..20_000).map(|_| poisson.arrival().0).collect();
        assert!(come.windows(2).all(|pair| pair[1] - pair[0] >= 2_560_000));
        let mean_ps = come[come.len() - 1] as f64 / come.len() as f64;
        assert!((mean_ps / 10_240_000.0 - 1.0).abs() < 0.02, "{mean_ps}");
    }

    #[test]
    fn each_kind_has_its_share_of_the_mix() {
        let mut traffic = traffic(64, 10_000_000, Pace::Periodic);
        let mut seen = [0; Kind::ALL.len()];
        (0..20_000).for_each(|_| seen[traffic.arrival().1 as usize] += 1);
        for kind in Kind::ALL {
            let share = f64::from(seen[kind as usize]) / 20_000.0;
            let exact = Mix::default().share(kind);
            let deviation = (exact * (1.0 - exact) / 20_000.0).sqrt();
            assert!((share - exact).abs() < 4.0 * deviation, "{kind:?}: {share}");
        }
        let shares: f64 = Kind::ALL
            .map(|kind| Mix::default().share(kind))
            .iter()
            .sum();
        assert!((shares - 1.0).abs() < 1e-12);
        let passes = Kind::ALL.into_iter().filter(|kind| kind.passes());
        let share: f64 = passes.map(|kind| Mix::default().share(kind)).sum();
        assert!((share - 0.1416).abs() < 1e-12, "{share}");
    }
}
