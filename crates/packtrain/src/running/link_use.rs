//! Whether a member link, or a VLAN on it, serves the line alone, so that direct frames on it need no mark.

use std::net::IpAddr;

use packtrain_proto::config::Unused;

use crate::linux::netlink::{InterfaceAddress, Link};

use super::RunningLine;

/// That every interface gives itself.
fn is_its_own(address: &InterfaceAddress) -> bool {
    match address.prefix.address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// No interface of that VLAN on top of it in this network namespace. A port's frames are for what it is a port of.
fn has_no_vlan(link: &Link, vlan: u16, others: &[Link]) -> bool {
    let is_it = |other: &Link| other.lower == Some(link.ifindex) && other.vlan_id == Some(vlan);
    link.master.is_none() && !others.iter().any(is_it)
}

/// No address but those that every interface gives itself, not a port of anything, and nothing on top of it in this
/// network namespace.
fn is_unused_by_host(link: &Link, addresses: &[InterfaceAddress], others: &[Link]) -> bool {
    // The other end of a veth names it as well, and is not on top of it.
    let is_on_top =
        |other: &Link| other.lower == Some(link.ifindex) && other.kind.as_deref() != Some("veth");
    link.master.is_none() && addresses.iter().all(is_its_own) && !others.iter().any(is_on_top)
}

impl RunningLine {
    /// An address of a member link, or something on top of it, has come or gone.
    pub(super) fn read_member_addresses(&mut self, ifindex: u32) {
        let addresses = match self.site.netlink.addresses(ifindex) {
            Ok(addresses) => addresses,
            Err(error) => {
                tracing::warn!("{error}");
                return self.line.link_use(ifindex, Unused::default());
            }
        };
        let unused = self.unused(ifindex, &addresses);
        // First nothing is taken without a mark any more, then the link answers for its address.
        self.line.link_use(ifindex, unused);
        self.handle_events();
        let mut members = self.members.iter_mut();
        if let Some(member) = members.find(|m| m.ifindex() == Some(ifindex)) {
            member.set_addresses(&addresses);
        }
    }

    /// What cannot be seen is taken for used.
    fn unused(&mut self, ifindex: u32, addresses: &[InterfaceAddress]) -> Unused {
        let vlan = self.site.settings.direct_vlan;
        // Of most links that is all there is to know.
        if vlan.is_none() && !addresses.iter().all(is_its_own) {
            return Unused::default();
        }
        let Ok(others) = self.site.netlink.links() else {
            return Unused::default();
        };
        let link = others.iter().find(|link| link.ifindex == ifindex);
        link.map_or(Unused::default(), |link| Unused {
            untagged: is_unused_by_host(link, addresses, &others),
            vlan: vlan.is_some_and(|vlan| has_no_vlan(link, vlan, &others)),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use packtrain_proto::wire::ethernet::MacAddr;

    use super::*;
    use crate::linux::netlink::IpPrefix;

    pub(in crate::running) fn link(ifindex: u32) -> Link {
        Link {
            ifindex,
            name: format!("eth{ifindex}"),
            address: MacAddr([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            mtu_min: None,
            mtu_max: None,
            is_ethernet: true,
            up: true,
            carrier: true,
            reports_carrier: true,
            carrier_losses: None,
            master: None,
            lower: None,
            kind: None,
            vlan_id: None,
            qdisc: None,
            promiscuity: 0,
        }
    }

    fn addresses(texts: &[&str]) -> Vec<InterfaceAddress> {
        let address = |text: &&str| InterfaceAddress {
            ifindex: 1,
            prefix: text.parse::<IpPrefix>().unwrap(),
            tentative: false,
            link_scope: false,
        };
        texts.iter().map(address).collect()
    }

    #[test]
    fn an_interface_of_the_vlan_on_top_of_the_link_uses_it_and_others_do_not() {
        let vlan = |lower, id| Link {
            lower: Some(lower),
            kind: Some("vlan".into()),
            vlan_id: Some(id),
            ..link(9)
        };
        let is_free = |other: Link| has_no_vlan(&link(1), 100, &[link(1), other]);
        assert!(!is_free(vlan(1, 100)));
        assert!(is_free(vlan(1, 101)) && is_free(vlan(2, 100)) && is_free(link(2)));
        let port = Link {
            master: Some(5),
            ..link(1)
        };
        assert!(!has_no_vlan(&port, 100, &[]));
    }

    #[test]
    fn a_link_with_an_address_of_its_own_is_used_and_one_with_link_local_ones_is_not() {
        let cases: [(&[&str], bool); 6] = [
            (&[], true),
            (&["fe80::1/64"], true),
            (&["fe80::1/64", "febf::2/64"], true),
            (&["10.8.0.1/24"], false),
            (&["169.254.3.4/16"], false),
            (&["fe80::1/64", "fd00::1/64"], false),
        ];
        for (texts, unused) in cases {
            let found = is_unused_by_host(&link(1), &addresses(texts), &[link(1), link(2)]);
            assert_eq!(found, unused, "{texts:?}");
        }
    }

    #[test]
    fn what_is_on_top_of_a_link_or_takes_it_as_a_port_uses_it() {
        let on_top = |kind: &str, lower: u32| Link {
            kind: Some(kind.into()),
            lower: Some(lower),
            ..link(2)
        };
        let unused = |other: Link| is_unused_by_host(&link(1), &[], &[link(1), other]);
        assert!(!unused(on_top("vlan", 1)) && !unused(on_top("macvlan", 1)));
        assert!(unused(on_top("vlan", 3)) && unused(on_top("veth", 1)));
        let port = Link {
            master: Some(7),
            ..link(1)
        };
        assert!(!is_unused_by_host(&port, &[], &[]));
    }
}
