//! The settings of an interface that packtrain may change, and how each is read and written.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::linux::ethtool;
use crate::linux::gap_qdisc::{self, Root};
use crate::linux::netlink::{Link, Netlink};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Setting {
    /// Administratively up: 0 or 1.
    Up,
    /// Payload bytes.
    Mtu,
    /// Generic receive offload: 0 or 1.
    Gro,
    /// `/proc/sys/net/FAMILY/conf/INTERFACE/KEY`, a number.
    Sysctl { family: String, key: String },
    /// Our filter on the link's clsact; `before` is whether the clsact was there.
    ClsactGuard,
    /// The number of the root qdisc ([`gap_qdisc`]); 0: the kernel's own.
    RootQdisc,
    /// An interface that is ours as a whole, and its other end: 1 while it is there.
    Interface,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Up => f.write_str("the state"),
            Setting::Mtu => f.write_str("the MTU"),
            Setting::Gro => f.write_str("generic-receive-offload"),
            Setting::Sysctl { family, key } => write!(f, "net.{family}.{key}"),
            Setting::ClsactGuard => f.write_str("the clsact"),
            Setting::RootQdisc => f.write_str("the root qdisc"),
            Setting::Interface => f.write_str("the interface itself"),
        }
    }
}

impl Setting {
    /// A value of it in words.
    pub(super) fn value(&self, value: i64) -> String {
        match (self, u32::try_from(value)) {
            (Setting::RootQdisc, Ok(0)) => "the kernel's own".into(),
            (Setting::RootQdisc, Ok(handle)) => format!("{:x}:", handle >> 16),
            (Setting::Interface, Ok(0)) => "none".into(),
            (Setting::Interface, _) => "ours".into(),
            _ => value.to_string(),
        }
    }

    /// `link` was just looked up.
    pub(super) fn read(&self, netlink: &mut Netlink, link: &Link) -> io::Result<i64> {
        match self {
            Setting::Up => Ok(i64::from(link.up)),
            Setting::Mtu => Ok(i64::from(link.mtu)),
            Setting::Gro => ethtool::gro(&link.name).map(i64::from),
            Setting::Sysctl { family, key } => read_number(&sysctl_path(family, &link.name, key)),
            Setting::RootQdisc => Ok(match gap_qdisc::root(netlink, link.ifindex)? {
                Root::Default => 0,
                Root::Ours => gap_qdisc::HANDLE.into(),
                // The same number of another kind is none of ours.
                Root::Foreign { handle, .. } if handle == gap_qdisc::HANDLE => -1,
                Root::Foreign { handle, .. } => handle.into(),
            }),
            Setting::Interface => Ok(1),
            Setting::ClsactGuard => unreachable!("it is known by its filter's name"),
        }
    }

    pub(super) fn write(&self, netlink: &mut Netlink, link: &Link, value: i64) -> io::Result<()> {
        match self {
            Setting::Up => netlink
                .set_up(link.ifindex, value != 0)
                .map_err(io::Error::from),
            Setting::Mtu => {
                let mtu = u32::try_from(value).map_err(|_| io::ErrorKind::InvalidInput)?;
                netlink.set_mtu(link.ifindex, mtu).map_err(io::Error::from)
            }
            Setting::Gro => ethtool::set_gro(&link.name, value != 0),
            Setting::Sysctl { family, key } => {
                fs::write(sysctl_path(family, &link.name, key), value.to_string())
            }
            Setting::RootQdisc if value == 0 => {
                gap_qdisc::remove(netlink, link.ifindex).map_err(io::Error::from)
            }
            Setting::Interface if value == 0 => netlink
                .delete_interface(link.ifindex)
                .map_err(io::Error::from),
            Setting::Interface => unreachable!("it is made by the shaper"),
            Setting::RootQdisc => unreachable!("it is put there by the pacer"),
            Setting::ClsactGuard => unreachable!("it is attached and removed by the guard"),
        }
    }
}

fn sysctl_path(family: &str, interface: &str, key: &str) -> PathBuf {
    Path::new("/proc/sys/net")
        .join(family)
        .join("conf")
        .join(interface)
        .join(key)
}

fn read_number(path: &Path) -> io::Result<i64> {
    let text = fs::read_to_string(path)?;
    text.trim()
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, text))
}

/// A setting of an interface of our own, which needs no undo because the interface goes.
pub fn write_sysctl(family: &str, interface: &str, key: &str, value: i64) -> io::Result<()> {
    fs::write(sysctl_path(family, interface, key), value.to_string())
}
