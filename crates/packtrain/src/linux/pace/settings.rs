//! `struct pace_settings` of bpf/pace.h.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::pacing::hystart::Thresholds;
use packtrain_proto::wire::packet::IpVersion;

use super::super::sys::check;
use super::{Cgroup, TcpError, padded};

/// As in bpf/pace.h.
pub const PORTS_MAX: usize = 16;
pub const PREFIXES_MAX: usize = 16;

/// First and last.
pub type Ports = (u16, u16);

/// An address and its mask as the program compares them: IPv4 as ::ffff:0:0/96.
pub(super) fn mapped(prefix: &Prefix) -> (u128, u128) {
    let (address, mask) = prefix.address_and_mask();
    match prefix.version() {
        IpVersion::V6 => (address, mask),
        IpVersion::V4 => (0xffff << 32 | address, u128::MAX << 32 | mask),
    }
}

/// Which connections are paced, and how.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// The network namespace whose connections are taken; `None`: all of the cgroup.
    pub netns: Option<u64>,
    /// T.
    pub precision: Duration,
    /// How long a path is remembered; `None`: not at all.
    pub remembered: Option<Duration>,
    /// `None`: slow start does not end by it.
    pub hystart: Option<Thresholds>,
    /// None: all.
    pub remote_ports: Vec<Ports>,
    pub local_ports: Vec<Ports>,
    pub prefixes: Vec<Prefix>,
    /// Of connections that are there already; `None`: all.
    pub cgroup: Option<Cgroup>,
    /// Also connections whose application has chosen a congestion control itself.
    pub overrides: bool,
    /// Also connections that no rule is about; …
    pub spaces: bool,
    /// … of these none that is there already.
    pub only_new: bool,
}

/// `sizeof(struct pace_settings)`.
const SETTINGS_LEN: usize = 736;

impl Settings {
    /// Of lists no more than [`PORTS_MAX`] and [`PREFIXES_MAX`] count: who fills them asks for no more.
    pub(super) fn encode(&self, name: &str) -> Vec<u8> {
        let thresholds = self.hystart.unwrap_or_default();
        let count = |len: usize, max: usize| len.min(max) as u32;
        let (level, cgroup) = match &self.cgroup {
            Some(cgroup) if !cgroup.is_root() => (cgroup.level(), cgroup.number()),
            _ => (0, 0),
        };
        let mut bytes = Vec::with_capacity(SETTINGS_LEN);
        for word in [
            self.netns.unwrap_or(0),
            self.precision.as_nanos() as u64,
            self.remembered.unwrap_or_default().as_nanos() as u64,
        ] {
            bytes.extend(word.to_ne_bytes());
        }
        for word in [
            u32::from(self.remembered.is_some()),
            u32::from(self.hystart.is_some()),
            thresholds.min_us,
            thresholds.max_us,
            count(self.remote_ports.len(), PORTS_MAX),
            count(self.local_ports.len(), PORTS_MAX),
            count(self.prefixes.len(), PREFIXES_MAX),
            level,
            u32::from(self.overrides),
            u32::from(self.spaces),
            u32::from(self.only_new),
            0,
        ] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(cgroup.to_ne_bytes());
        bytes.extend(padded(name));
        for ports in [&self.remote_ports, &self.local_ports] {
            for place in 0..PORTS_MAX {
                let (first, last) = ports.get(place).copied().unwrap_or_default();
                bytes.extend(first.to_ne_bytes());
                bytes.extend(last.to_ne_bytes());
            }
        }
        for place in 0..PREFIXES_MAX {
            let (address, mask) = self.prefixes.get(place).map(mapped).unwrap_or_default();
            bytes.extend(address.to_be_bytes());
            bytes.extend(mask.to_be_bytes());
        }
        bytes
    }
}

/// What tells the calling thread's network namespace from all others of the host, ever.
pub fn netns_cookie() -> Result<u64, TcpError> {
    let socket = super::super::sys::interface_socket().map_err(TcpError::Cookie)?;
    let mut cookie = 0u64;
    let mut len = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, which `cookie` has.
    let read = check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut len,
        )
    });
    read.map_err(|error: io::Error| TcpError::Cookie(error))?;
    Ok(cookie)
}

const SO_NETNS_COOKIE: libc::c_int = 71;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_lie_where_the_program_reads_them() {
        let settings = Settings {
            netns: Some(7),
            precision: Duration::from_millis(1),
            remembered: Some(Duration::from_secs(600)),
            hystart: None,
            remote_ports: vec![(80, 80), (8000, 8999)],
            local_ports: Vec::new(),
            prefixes: vec!["192.0.2.0/24".parse().unwrap()],
            cgroup: None,
            overrides: true,
            spaces: true,
            only_new: false,
        };
        let bytes = settings.encode("packtrain_cps");
        assert_eq!(bytes.len(), SETTINGS_LEN);
        let u64_at = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let u32_at = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(
            (u64_at(0), u64_at(8), u64_at(16)),
            (7, 1_000_000, 600_000_000_000)
        );
        assert_eq!(
            (u32_at(24), u32_at(28), u32_at(32), u32_at(36)),
            (1, 0, 4_000, 16_000)
        );
        assert_eq!(
            (u32_at(40), u32_at(44), u32_at(48), u32_at(56)),
            (2, 0, 1, 1)
        );
        assert_eq!((u32_at(60), u32_at(64)), (1, 0));
        assert_eq!(&bytes[80..94], b"packtrain_cps\0");
        assert_eq!(
            bytes[96..104],
            [80u16, 80, 8000, 8999].map(u16::to_ne_bytes).concat()
        );
        // ::ffff:192.0.2.0, and 120 bits of mask.
        assert_eq!(
            bytes[224..240],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 0]
        );
        assert_eq!(
            bytes[240..256],
            [0xff; 15].into_iter().chain([0]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_namespace_has_a_cookie_of_its_own() {
        use crate::linux::test_namespace::in_namespace;
        let here = netns_cookie().unwrap();
        assert_eq!(netns_cookie().unwrap(), here);
        in_namespace(move || assert_ne!(netns_cookie().unwrap(), here));
    }
}
