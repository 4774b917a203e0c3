//! Second interfaces over a cable that do nothing with frames: what `pt0` costs beyond these is its own.

use packtrain_proto::wire::ethernet::MacAddr;

use super::way::Way;
use crate::lab::namespaces::Namespace;
use crate::lab::{Result, wire};
use crate::linux::floor::Floor;
use crate::linux::netlink::Netlink;

/// The kernel's own. Whether this kernel has it.
pub fn macvlan(hosts: [&Namespace; 2]) -> Result<bool> {
    let (name, cable) = (Way::Macvlan.interface(), Way::Macvlan.cable());
    let cable = cable.expect("a cable of its own");
    // Private: in other modes it looks first who else on this cable a frame may be for.
    let add = format!("ip link add {name} link {cable} type macvlan mode private");
    for (number, host) in hosts.into_iter().enumerate() {
        if host.sh(&add).is_err() {
            return Ok(false);
        }
        up(host, number, Way::Macvlan)?;
    }
    Ok(true)
}

/// Two BPF programs and a TAP, at both ends. Nothing where the kernel does not take them.
pub fn floor(hosts: [&Namespace; 2]) -> Result<Option<[Floor; 2]>> {
    let (name, cable) = (Way::Floor.interface(), Way::Floor.cable());
    let cable = cable.expect("a cable of its own");
    let make = |number: u8| -> Result<Option<Floor>> {
        let mac = MacAddr([0x02, 0x66, 0, 0, 0, number + 1]);
        hosts[usize::from(number)].in_namespace(|| -> Result<_> {
            let link = Netlink::open()?.link_by_name(cable)?;
            let over = |link| {
                let floor = Floor::over(link, name, mac);
                floor.map_err(|error| eprintln!("{error}")).ok()
            };
            Ok(link.and_then(|link| over(link.ifindex)))
        })?
    };
    let [Some(a), Some(b)] = [make(0)?, make(1)?] else {
        return Ok(None);
    };
    for (number, host) in hosts.into_iter().enumerate() {
        up(host, number, Way::Floor)?;
    }
    Ok(Some([a, b]))
}

fn up(host: &Namespace, number: usize, way: Way) -> Result<()> {
    let name = way.interface();
    host.exec(["ip", "link", "set", name, "up"])?;
    wire::add_address(host, name, &way.addresses()[number])
}
