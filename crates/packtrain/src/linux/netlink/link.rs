//! An interface as rtnetlink tells it.

use packtrain_proto::wire::ethernet::MacAddr;

use super::message::{Attributes, u16_at, u32_at, value_string, value_u32};

/// Bytes of `ifinfomsg`: family (1), padding (1), type (2), index (4), flags (4), change (4).
pub(super) const IFINFO_LEN: usize = 16;

/// `IFLA_INFO_KIND` inside `IFLA_LINKINFO`.
const IFLA_INFO_KIND: u16 = 1;
/// What the kind says of it, there as well.
const IFLA_INFO_DATA: u16 = 2;
/// In the data of a VLAN.
const IFLA_VLAN_ID: u16 = 1;

/// `IF_OPER_UNKNOWN` in `IFLA_OPERSTATE`: no driver has changed the carrier since the interface was made.
const OPER_UNKNOWN: u8 = 0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub ifindex: u32,
    pub name: String,
    /// All zero where the interface has no Ethernet address.
    pub address: MacAddr,
    /// Payload bytes after the EtherType.
    pub mtu: u32,
    /// What the driver allows; `None` where it does not say.
    pub mtu_min: Option<u32>,
    pub mtu_max: Option<u32>,
    /// An Ethernet interface (`ARPHRD_ETHER`), whatever carries it.
    pub is_ethernet: bool,
    /// As the administrator wants it.
    pub up: bool,
    /// As the wire says; only an interface that is up knows.
    pub carrier: bool,
    /// Its driver has told of a carrier, ever. One that never does has it for ever, with a cable or without.
    pub reports_carrier: bool,
    /// How often it has lost it, ever: who looks late sees a link that is up before and after. `None`
    /// where the kernel does not count.
    pub carrier_losses: Option<u32>,
    /// The bridge, bond or team that it is a port of.
    pub master: Option<u32>,
    /// The interface below (a VLAN) or the other end (a veth).
    pub lower: Option<u32>,
    /// `veth`, `tun`, `vlan`, …; `None` for what has a driver and nothing more.
    pub kind: Option<String>,
    /// Of a VLAN.
    pub vlan_id: Option<u16>,
    /// The root qdisc.
    pub qdisc: Option<String>,
    /// How many want it promiscuous.
    pub promiscuity: u32,
}

impl Link {
    /// From the payload of a `RTM_NEWLINK` or `RTM_DELLINK`; `None` where it is no such thing, or
    /// is what a bridge tells of its ports (family `AF_BRIDGE`), which has half of it only.
    pub(super) fn parse(payload: &[u8]) -> Option<Link> {
        let header = payload.get(..IFINFO_LEN)?;
        if i32::from(header[0]) != libc::AF_UNSPEC {
            return None;
        }
        let flags = u32_at(header, 8);
        let mut link = Link {
            ifindex: u32_at(header, 4),
            name: String::new(),
            address: MacAddr::default(),
            mtu: 0,
            mtu_min: None,
            mtu_max: None,
            is_ethernet: u16_at(header, 2) == libc::ARPHRD_ETHER,
            up: flags & libc::IFF_UP as u32 != 0,
            carrier: flags & libc::IFF_LOWER_UP as u32 != 0,
            reports_carrier: true,
            carrier_losses: None,
            master: None,
            lower: None,
            kind: None,
            vlan_id: None,
            qdisc: None,
            promiscuity: 0,
        };
        for (kind, value) in Attributes(&payload[IFINFO_LEN..]) {
            match kind {
                libc::IFLA_IFNAME => link.name = value_string(value),
                libc::IFLA_ADDRESS if value.len() == 6 => {
                    link.address = MacAddr::from_slice(value);
                }
                libc::IFLA_MTU => link.mtu = value_u32(value)?,
                libc::IFLA_MIN_MTU => link.mtu_min = value_u32(value),
                // 0 is how drivers say that they have no maximum.
                libc::IFLA_MAX_MTU => link.mtu_max = value_u32(value).filter(|mtu| *mtu != 0),
                libc::IFLA_OPERSTATE => link.reports_carrier = value.first() != Some(&OPER_UNKNOWN),
                libc::IFLA_CARRIER_DOWN_COUNT => link.carrier_losses = value_u32(value),
                libc::IFLA_MASTER => link.master = value_u32(value),
                libc::IFLA_LINK => link.lower = value_u32(value),
                libc::IFLA_QDISC => link.qdisc = Some(value_string(value)),
                libc::IFLA_PROMISCUITY => link.promiscuity = value_u32(value)?,
                libc::IFLA_LINKINFO => {
                    let of = |kind| Attributes(value).find(|(of, _)| *of == kind);
                    link.kind = of(IFLA_INFO_KIND).map(|(_, value)| value_string(value));
                    if link.kind.as_deref() == Some("vlan") {
                        let data = of(IFLA_INFO_DATA).map_or(&[][..], |(_, value)| value);
                        let id = Attributes(data).find(|(kind, _)| *kind == IFLA_VLAN_ID);
                        link.vlan_id = id.filter(|(_, v)| v.len() >= 2).map(|(_, v)| u16_at(v, 0));
                    }
                }
                _ => {}
            }
        }
        Some(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = (4 + value.len()) as u16;
        let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn told(kind: &str, data: &[u8]) -> Link {
        let kind = attribute(IFLA_INFO_KIND, &[kind.as_bytes(), &[0]].concat());
        let info = [kind, attribute(IFLA_INFO_DATA, data)].concat();
        let payload = [vec![0; IFINFO_LEN], attribute(libc::IFLA_LINKINFO, &info)].concat();
        Link::parse(&payload).unwrap()
    }

    #[test]
    fn whose_state_is_unknown_has_never_told_of_a_carrier() {
        for (state, reports) in [(OPER_UNKNOWN, false), (2, true), (6, true)] {
            let payload = [
                vec![0; IFINFO_LEN],
                attribute(libc::IFLA_OPERSTATE, &[state]),
            ]
            .concat();
            assert_eq!(Link::parse(&payload).unwrap().reports_carrier, reports);
        }
        assert!(Link::parse(&[0; IFINFO_LEN]).unwrap().reports_carrier);
    }

    #[test]
    fn a_vlan_says_its_number_and_the_same_attribute_of_another_kind_is_none() {
        let flags = attribute(2, &[0; 8]);
        let data = [flags, attribute(IFLA_VLAN_ID, &100u16.to_ne_bytes())].concat();
        let vlan = told("vlan", &data);
        assert_eq!(
            (vlan.kind.as_deref(), vlan.vlan_id),
            (Some("vlan"), Some(100))
        );
        assert_eq!(told("macvlan", &data).vlan_id, None);
        assert_eq!(told("vlan", &attribute(IFLA_VLAN_ID, &[1])).vlan_id, None);
        assert_eq!(told("vlan", &[]).vlan_id, None);
    }
}
