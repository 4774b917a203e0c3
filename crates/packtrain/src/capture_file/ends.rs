//! Which end of a link that has no addresses has sent a packet, and which group of Ethernet's one of IP's is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// As the host sees it that captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
}

/// The first IP addresses that were seen, of each version: those of its source are taken for the host's own. What
/// that host exchanges with others is told apart then; what others exchange through it goes by the order of their
/// addresses, so that the two ways of a conversation are always two.
#[derive(Debug, Default)]
pub struct Ends {
    v4: Option<IpAddresses>,
    v6: Option<IpAddresses>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpAddresses {
    pub source: IpAddr,
    pub destination: IpAddr,
}

impl Ends {
    pub fn direction(&mut self, of: Option<&IpAddresses>) -> Direction {
        let Some(of) = of else {
            return Direction::Out;
        };
        let first = match of.source {
            IpAddr::V4(_) => self.v4.get_or_insert(*of),
            IpAddr::V6(_) => self.v6.get_or_insert(*of),
        };
        if of.source == first.source || of.destination == first.destination {
            Direction::Out
        } else if of.destination == first.source
            || of.source == first.destination
            || of.source > of.destination
        {
            Direction::In
        } else {
            Direction::Out
        }
    }
}

impl IpAddresses {
    /// Of a packet whose addresses are there.
    pub fn of(ethertype: u16, packet: &[u8]) -> Option<IpAddresses> {
        let (source, destination) = match ethertype {
            0x0800 => {
                let at = |at| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?).into());
                (at(12)?, at(16)?)
            }
            0x86dd => {
                let at = |at| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?).into());
                (at(8)?, at(24)?)
            }
            _ => return None,
        };
        Some(IpAddresses {
            source,
            destination,
        })
    }

    /// Where it goes to many.
    pub fn group(&self) -> Option<[u8; 6]> {
        match self.destination {
            IpAddr::V4(Ipv4Addr::BROADCAST) => Some([0xff; 6]),
            IpAddr::V4(v4) if v4.is_multicast() => {
                let [_, b, c, d] = v4.octets();
                Some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
            }
            IpAddr::V6(v6) if v6.is_multicast() => {
                let [.., a, b, c, d] = v6.octets();
                Some([0x33, 0x33, a, b, c, d])
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(source: &str, destination: &str) -> IpAddresses {
        IpAddresses {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    #[test]
    fn all_that_one_host_exchanges_has_its_direction_whoever_speaks_first() {
        for (first, own) in [(Direction::Out, "10.0.0.5"), (Direction::In, "10.0.0.5")] {
            let mut ends = Ends::default();
            let mut look =
                |source, destination| ends.direction(Some(&addresses(source, destination)));
            let began = match first {
                Direction::Out => look(own, "8.8.8.8"),
                Direction::In => look("8.8.8.8", own),
            };
            assert_eq!(began, Direction::Out, "the first is taken for the host's");
            let opposite = |is_own| match (first, is_own) {
                (Direction::Out, true) | (Direction::In, false) => Direction::Out,
                _ => Direction::In,
            };
            for other in ["1.1.1.1", "93.184.216.34", "8.8.8.8"] {
                assert_eq!(look(own, other), opposite(true), "to {other}");
                assert_eq!(look(other, own), opposite(false), "from {other}");
            }
        }
    }

    #[test]
    fn what_others_exchange_has_two_directions() {
        let mut ends = Ends::default();
        let mut look = |source, destination| ends.direction(Some(&addresses(source, destination)));
        look("fd00::1", "fd00::2");
        assert_eq!(look("fd00::7", "fd00::9"), Direction::Out);
        assert_eq!(look("fd00::9", "fd00::7"), Direction::In);
        // The other version has ends of its own.
        assert_eq!(look("10.0.0.9", "10.0.0.1"), Direction::Out);
        assert_eq!(look("10.0.0.1", "10.0.0.9"), Direction::In);
    }

    #[test]
    fn groups_of_ip_are_groups_of_ethernet() {
        for (destination, group) in [
            ("224.0.0.251", Some([0x01, 0, 0x5e, 0, 0, 0xfb])),
            ("239.255.1.2", Some([0x01, 0, 0x5e, 0x7f, 1, 2])),
            ("255.255.255.255", Some([0xff; 6])),
            ("10.0.0.255", None),
        ] {
            assert_eq!(addresses("10.0.0.1", destination).group(), group);
        }
        let group = addresses("fe80::1", "ff02::1:ff00:1234").group();
        assert_eq!(group, Some([0x33, 0x33, 0xff, 0, 0x12, 0x34]));
        assert_eq!(addresses("fe80::1", "fe80::2").group(), None);
    }
}
