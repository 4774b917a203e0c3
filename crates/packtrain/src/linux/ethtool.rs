//! Offloads of an interface, by the ethtool ioctls.

use std::io;
use std::os::fd::AsRawFd;

use super::sys::{check, interface_request, interface_socket};

const SIOCETHTOOL: u32 = 0x8946;
const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;

const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
/// Command, speed (Mbit/s), eight bytes, four bytes, seven reserved words.
const LINK_SETTINGS_WORDS: usize = 12;
const LINK_SETTINGS_SPEED: usize = 1;
const LINK_MODES_WORDS_MAX: usize = 3 * i8::MAX as usize;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Whether received segments are put together (generic receive offload).
///
/// Packet sockets see frames after it. On a veth, which has it off by default, it makes no
/// difference while the other end sends GSO frames whole, and bulk TCP through a line two to
/// three times as fast where they come as single segments (0.7 against 2.0 Gbit/s).
pub fn gro(interface: &str) -> io::Result<bool> {
    Ok(ethtool(interface, ETHTOOL_GGRO, 0)? != 0)
}

/// Needs CAP_NET_ADMIN.
pub fn set_gro(interface: &str, on: bool) -> io::Result<()> {
    ethtool(interface, ETHTOOL_SGRO, u32::from(on)).map(drop)
}

/// Whether its driver sees somebody at the other end of the cable. An error where it cannot say.
pub fn link(interface: &str) -> io::Result<bool> {
    Ok(ethtool(interface, ETHTOOL_GLINK, 0)? != 0)
}

/// At which rate the interface says that it sends, bit/s. `None`: it does not know, as without a cable, or in a virtual machine.
pub fn speed_bps(interface: &str) -> io::Result<Option<u64>> {
    let mut settings = LinkSettings {
        head: [0; LINK_SETTINGS_WORDS],
        modes: [0; LINK_MODES_WORDS_MAX],
    };
    settings.head[0] = ETHTOOL_GLINKSETTINGS;
    // The kernel is asked first how many words a set of link modes has: it says so as a negative number.
    for _ in 0..2 {
        let mut request = interface_request(interface)?;
        request.ifr_ifru.ifru_data = (&raw mut settings).cast();
        let socket = interface_socket()?;
        // SAFETY: the request points to `settings`, which has room for the fixed part and for three sets of link modes of the
        // most words that the kernel's signed byte can name, and both outlive the call.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) })?;
        let words = settings.mode_words();
        if words >= 0 {
            break;
        }
        settings.set_mode_words(words.saturating_neg());
        settings.head[0] = ETHTOOL_GLINKSETTINGS;
    }
    Ok(match settings.head[LINK_SETTINGS_SPEED] {
        0 | u32::MAX => None,
        mbits => Some(u64::from(mbits) * 1_000_000),
    })
}

/// `struct ethtool_link_settings` and the link modes behind it (supported, advertised, the partner's).
#[repr(C)]
struct LinkSettings {
    head: [u32; LINK_SETTINGS_WORDS],
    modes: [u32; LINK_MODES_WORDS_MAX],
}

impl LinkSettings {
    /// `link_mode_masks_nwords`: after command, speed and seven bytes more.
    fn mode_words(&self) -> i8 {
        self.head[3].to_ne_bytes()[3] as i8
    }

    fn set_mode_words(&mut self, words: i8) {
        let mut bytes = self.head[3].to_ne_bytes();
        bytes[3] = words as u8;
        self.head[3] = u32::from_ne_bytes(bytes);
    }
}

fn ethtool(interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    let mut request = interface_request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = interface_socket()?;
    // SAFETY: the request points to `value`, which has the layout that all commands read and
    // write, and both outlive the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) })?;
    Ok(value.data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::{in_namespace, ip, run};

    #[test]
    fn a_veth_says_ten_gigabits_and_lo_says_nothing() {
        in_namespace(|| {
            ip("link add a0 type veth peer name b0");
            assert_eq!(speed_bps("a0").unwrap(), Some(10_000_000_000));
            assert!(speed_bps("lo").is_err(), "it has no settings of the kind");
            assert_eq!(
                speed_bps("nothere").unwrap_err().raw_os_error(),
                Some(libc::ENODEV)
            );
        });
    }

    #[test]
    fn gro_is_as_ethtool_shows_it() {
        in_namespace(|| {
            ip("link add a0 type veth peer name b0");
            let shown = || {
                let features = run("ethtool -k a0");
                let line = features
                    .lines()
                    .find(|l| l.starts_with("generic-receive-offload:"));
                line.expect("a line for GRO").contains(": on")
            };
            for on in [true, false, true] {
                set_gro("a0", on).unwrap();
                assert_eq!((gro("a0").unwrap(), shown()), (on, on));
            }
            assert_eq!(
                gro("nothere").unwrap_err().raw_os_error(),
                Some(libc::ENODEV)
            );
        });
    }
}
