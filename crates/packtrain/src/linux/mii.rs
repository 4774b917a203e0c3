//! Whether somebody is at the other end of a cable, asked of drivers that never tell (MII registers, else ethtool): as the ELT
//! paper's Link Inspector does, and bonding with `use_carrier=0`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::ethtool;
use super::sys::{check, interface_request, interface_socket};

const SIOCGMIIPHY: u32 = 0x8947;
const SIOCGMIIREG: u32 = 0x8948;
/// The register of an Ethernet transceiver that says how it is (IEEE 802.3 clause 22), and the bit for a link.
const STATUS: u16 = 1;
const LINK: u16 = 0x0004;

/// `struct mii_ioctl_data`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Registers {
    phy: u16,
    register: u16,
    value_in: u16,
    value_out: u16,
}

/// `None`: its driver cannot say.
pub fn has_link(interface: &str) -> Option<bool> {
    by_registers(interface)
        .or_else(|_| ethtool::link(interface))
        .ok()
}

fn by_registers(interface: &str) -> io::Result<bool> {
    let socket = interface_socket()?;
    let mut registers = ask(&socket, interface, SIOCGMIIPHY, Registers::default())?;
    registers.register = STATUS;
    // A link that was lost is remembered until it is read.
    ask(&socket, interface, SIOCGMIIREG, registers)?;
    let now = ask(&socket, interface, SIOCGMIIREG, registers)?;
    Ok(now.value_out & LINK != 0)
}

fn ask(
    socket: &OwnedFd,
    interface: &str,
    what: u32,
    registers: Registers,
) -> io::Result<Registers> {
    let mut request = interface_request(interface)?;
    let data = (&raw mut request.ifr_ifru).cast::<Registers>();
    // SAFETY: the union has room for the four numbers, is aligned for a pointer and so for them, and lives across the call,
    // which reads and writes them there; any bits are a value of each.
    unsafe {
        data.write(registers);
        check(libc::ioctl(socket.as_raw_fd(), what as _, &raw mut request))?;
        Ok(data.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::{in_namespace, ip};

    #[test]
    fn who_can_say_does_and_of_others_nothing_is_known() {
        in_namespace(|| {
            ip("link add a0 type veth peer name b0");
            ip("link set a0 up");
            assert_eq!(has_link("a0"), Some(false), "its other end is down");
            ip("link set b0 up");
            assert_eq!(has_link("a0"), Some(true));
            ip("link set b0 down");
            assert_eq!(has_link("a0"), Some(false));
            assert_eq!(has_link("nothere"), None);
        });
    }
}
