//! The ways from one host to the other: each has a cable or a tunnel, a network and a column of its own.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

/// A way from A to B, by B's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Bare,
    Pt0,
    /// A line without the direct path.
    Engine,
    /// A line of which a class says that the bench's messages take the direct path whatever else is seen of it.
    Direct,
    /// A line of which a class says that the bench's messages wait for others, [`Way::PACKED_WITHIN`] at most.
    Packed,
    /// A line that does not code its trains.
    Uncoded,
    /// A line in which flows that are no elephants yet go before those of elephants.
    ShortFirst,
    /// A program that carries frames and does nothing with them.
    Relay,
    /// The kernel's own second interface on a cable: the least that it has.
    Macvlan,
    /// Two BPF programs that write a byte of each address and redirect, and nothing else.
    Floor,
    /// The kernel's own tunnel, over the bare cable.
    Vxlan,
    /// A tunnel in user space, over the bare cable.
    WireGuard,
    /// A tunnel in user space that packs small packets, over the bare cable.
    Simplemux,
}

impl Way {
    /// The first three parts of its addresses: A is 1 there, B is 2.
    fn network(self) -> &'static str {
        match self {
            Way::Bare => "10.8.0",
            Way::Pt0 => "10.9.0",
            Way::Relay => "10.10.0",
            Way::Engine => "10.11.0",
            Way::Vxlan => "10.12.0",
            Way::WireGuard => "10.13.0",
            Way::Direct => "10.14.0",
            Way::Packed => "10.15.0",
            Way::Simplemux => "10.16.0",
            Way::Macvlan => "10.17.0",
            Way::Floor => "10.18.0",
            Way::Uncoded => "10.19.0",
            Way::ShortFirst => "10.20.0",
        }
    }

    pub fn subnet(self) -> String {
        format!("{}.0/24", self.network())
    }

    /// Of A and of B, with the length of the prefix.
    pub fn addresses(self) -> [String; 2] {
        [1, 2].map(|host| format!("{}.{host}/24", self.network()))
    }

    /// The port of B to which messages are sent.
    pub const PORT: u16 = 7777;
    /// As classes write it.
    pub const PACKED_WITHIN: &str = "500us";

    /// B's.
    pub fn to(self) -> String {
        format!("{}.2", self.network())
    }

    pub fn at(self) -> SocketAddr {
        let [_, of_b] = self.ends();
        SocketAddr::new(of_b, Way::PORT)
    }

    /// A's and B's.
    pub fn ends(self) -> [IpAddr; 2] {
        let address = |host| format!("{}.{host}", self.network()).parse();
        [1, 2].map(|host| address(host).expect("an address of ours"))
    }

    /// The interface that has its addresses.
    pub fn interface(self) -> &'static str {
        match self {
            Way::Bare => "eth0",
            Way::Pt0 => "pt0",
            Way::Engine => "pt1",
            Way::Direct => "pt2",
            Way::Packed => "pt3",
            Way::Uncoded => "pt4",
            Way::ShortFirst => "pt5",
            Way::Relay => "eth2-relay",
            Way::Macvlan => "macvlan0",
            Way::Floor => "floor0",
            Way::Vxlan => "vxlan0",
            Way::WireGuard => "wg0",
            Way::Simplemux => "smx0",
        }
    }

    /// The cable of its own, if it has one.
    pub fn cable(self) -> Option<&'static str> {
        match self {
            Way::Bare => Some("eth0"),
            Way::Pt0 => Some("eth1"),
            Way::Relay => Some("eth2"),
            Way::Engine => Some("eth3"),
            Way::Direct => Some("eth4"),
            Way::Packed => Some("eth5"),
            Way::Macvlan => Some("eth6"),
            Way::Floor => Some("eth7"),
            Way::Uncoded => Some("eth8"),
            Way::ShortFirst => Some("eth9"),
            Way::Vxlan | Way::WireGuard | Way::Simplemux => None,
        }
    }

    /// Whether what comes by its cable is taken in by one processor of the host. The bare wire needs it for its
    /// frames to keep their order, and what is compared with it has the same. The engine alone puts them right, and
    /// is slower where every frame of its link goes by way of the other processor.
    pub fn receives_on_one_cpu(self) -> bool {
        let ways = [
            Way::Bare,
            Way::Pt0,
            Way::Direct,
            Way::Packed,
            Way::Uncoded,
            Way::ShortFirst,
            Way::Macvlan,
            Way::Floor,
        ];
        ways.contains(&self)
    }

    /// The line that it is, if it is one.
    pub fn line(self) -> Option<&'static str> {
        match self {
            Way::Pt0 | Way::Engine | Way::Direct | Way::Packed | Way::Uncoded | Way::ShortFirst => {
                Some(self.interface())
            }
            Way::Bare
            | Way::Relay
            | Way::Macvlan
            | Way::Floor
            | Way::Vxlan
            | Way::WireGuard
            | Way::Simplemux => None,
        }
    }

    /// Above its column.
    pub fn heading(self) -> &'static str {
        match self {
            Way::Bare => "bare",
            Way::Pt0 => "pt0",
            Way::Engine => "engine only",
            Way::Direct => "direct only",
            Way::Packed => "packed within 500 µs",
            Way::Uncoded => "no coding",
            Way::ShortFirst => "short flows first",
            Way::Relay => "bare relay",
            Way::Macvlan => "macvlan",
            Way::Floor => "floor",
            Way::Vxlan => "VXLAN",
            Way::WireGuard => "WireGuard",
            Way::Simplemux => "simplemux",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ways_share_an_interface_or_an_address() {
        let ways = [
            Way::Bare,
            Way::Pt0,
            Way::Engine,
            Way::Direct,
            Way::Packed,
            Way::Uncoded,
            Way::ShortFirst,
            Way::Relay,
            Way::Macvlan,
            Way::Floor,
            Way::Vxlan,
            Way::WireGuard,
            Way::Simplemux,
        ];
        for (i, one) in ways.iter().enumerate() {
            for other in &ways[i + 1..] {
                assert_ne!(one.at(), other.at());
                assert_ne!(one.interface(), other.interface());
                assert!(one.cable().is_none() || one.cable() != other.cable());
            }
        }
    }
}
