//! Groups of IP as Ethernet addresses, and those that every host is in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packtrain_proto::wire::ethernet::MacAddr;

/// RFC 1112, section 6.4, and RFC 2464, section 7.
pub fn ethernet_of(group: IpAddr) -> MacAddr {
    match group {
        // The last 23 bits: 32 groups share an address.
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(group) => {
            let octets = group.octets();
            MacAddr([0x33, 0x33, octets[12], octets[13], octets[14], octets[15]])
        }
    }
}

/// What a host with this address is in without asking for it: all hosts (RFC 1112, section 4), all nodes and the address's own
/// solicited-node group (RFC 4291, section 2.8).
pub fn joined_with(address: IpAddr) -> Vec<MacAddr> {
    let groups: Vec<IpAddr> = match address {
        IpAddr::V4(_) => vec![Ipv4Addr::new(224, 0, 0, 1).into()],
        IpAddr::V6(address) => {
            let [.., b, c] = address.segments();
            let solicited = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | b & 0xff, c);
            vec![
                Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
                solicited.into(),
            ]
        }
    };
    groups.into_iter().map(ethernet_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(group: &str) -> String {
        ethernet_of(group.parse().unwrap()).to_string()
    }

    #[test]
    fn groups_have_the_addresses_of_the_rfcs() {
        assert_eq!(ethernet("224.0.0.251"), "01:00:5e:00:00:fb");
        assert_eq!(ethernet("239.129.2.3"), "01:00:5e:01:02:03");
        assert_eq!(ethernet("ff02::fb"), "33:33:00:00:00:fb");
        assert_eq!(ethernet("ff02::1:ff0a:0b0c"), "33:33:ff:0a:0b:0c");
    }

    #[test]
    fn an_address_brings_its_groups() {
        let joined = |address: &str| {
            let groups = joined_with(address.parse().unwrap());
            groups.iter().map(MacAddr::to_string).collect::<Vec<_>>()
        };
        assert_eq!(joined("10.1.0.1"), ["01:00:5e:00:00:01"]);
        let expected = ["33:33:00:00:00:01", "33:33:ff:ab:cd:ef"];
        assert_eq!(joined("fd00::12ab:cdef"), expected);
    }
}
