//! rtnetlink, as much as packtrain needs: links, addresses, and what changes about them.
//!
//! Synchronous: a request is answered by the kernel before the call that sent it returns, so there
//! is nothing to wait for. [`Monitor`] is the other direction, with a descriptor for the event loop.

mod address;
mod link;
mod local_routes;
pub(in crate::linux) mod message;
mod monitor;
mod socket;

use std::ffi::CStr;
use std::io;
use std::net::IpAddr;

use packtrain_proto::wire::ethernet::MacAddr;

pub use self::address::{InterfaceAddress, IpPrefix, IpPrefixError};
pub use self::link::Link;
pub use self::local_routes::{LocalPrefix, LocalRoutes};
pub use self::monitor::{Monitor, NetEvent};

use self::address::IFADDR_LEN;
use self::link::IFINFO_LEN;
use self::message::{Attributes, Request};
use self::socket::{Refusal, RouteSocket};

/// How often a dump is asked again that something changed under.
const DUMP_ATTEMPTS_MAX: u32 = 16;
/// Payload bytes that no frame exceeds.
const PAIR_MTU: u32 = 65_535;
/// `RTEXT_FILTER_SKIP_STATS`: counters that nobody here reads.
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;

/// What could not be done, on which interface, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {}{}", .reason.clone().unwrap_or_else(|| .source.to_string()), hint(.source))]
pub struct NetlinkError {
    /// As in "bring eth1 up".
    action: String,
    /// The kernel's own words, where it has any.
    reason: Option<String>,
    source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            " (this needs CAP_NET_ADMIN: run it as root, or in a network namespace of your own)"
        }
        _ => "",
    }
}

impl NetlinkError {
    /// The kernel's `errno`.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    pub fn is_permission_denied(&self) -> bool {
        matches!(self.errno(), Some(libc::EPERM | libc::EACCES))
    }

    /// The interface is not there (any more).
    pub fn is_no_such_interface(&self) -> bool {
        self.errno() == Some(libc::ENODEV)
    }
}

/// For where the kernel's reason is enough, because the caller says what was tried.
impl From<NetlinkError> for io::Error {
    fn from(error: NetlinkError) -> io::Error {
        error.source
    }
}

/// A connection to rtnetlink of the thread's network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: RouteSocket,
}

impl Netlink {
    pub fn open() -> Result<Netlink, NetlinkError> {
        match RouteSocket::open(0, false) {
            Ok(socket) => Ok(Netlink { socket }),
            Err(source) => Err(NetlinkError {
                action: "open a netlink socket".into(),
                reason: None,
                source,
            }),
        }
    }

    /// All interfaces of the namespace.
    pub fn links(&mut self) -> Result<Vec<Link>, NetlinkError> {
        let request = link_request(libc::RTM_GETLINK, libc::NLM_F_DUMP, 0)
            .attribute_u32(libc::IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
        self.dump("list the interfaces", request, Link::parse)
    }

    /// `None` where there is no such interface.
    pub fn link_by_name(&mut self, name: &str) -> Result<Option<Link>, NetlinkError> {
        // The kernel answers "out of range" to a longer one.
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Ok(None);
        }
        let request = link_request(libc::RTM_GETLINK, libc::NLM_F_ACK, 0)
            .attribute_str(libc::IFLA_IFNAME, name)
            .attribute_u32(libc::IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
        self.one_link(&format!("look at {name}"), request)
    }

    pub fn link(&mut self, ifindex: u32) -> Result<Option<Link>, NetlinkError> {
        let request = link_request(libc::RTM_GETLINK, libc::NLM_F_ACK, ifindex)
            .attribute_u32(libc::IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
        self.one_link(&format!("look at interface {ifindex}"), request)
    }

    /// Frames that an interface was given and did not send, ever: of a TAP, those that its ring had no
    /// room for.
    pub fn transmit_dropped(&mut self, ifindex: u32) -> Result<u64, NetlinkError> {
        /// `tx_dropped`.
        const TX_DROPPED: usize = 7;
        self.link_counter(ifindex, TX_DROPPED, "drops")
    }

    /// Bytes of frames that an interface has sent, ever, as its driver counts them.
    pub fn transmit_bytes(&mut self, ifindex: u32) -> Result<u64, NetlinkError> {
        /// `tx_bytes`.
        const TX_BYTES: usize = 3;
        self.link_counter(ifindex, TX_BYTES, "bytes")
    }

    /// One of `struct rtnl_link_stats64`, by how many stand before it.
    fn link_counter(
        &mut self,
        ifindex: u32,
        number: usize,
        what: &str,
    ) -> Result<u64, NetlinkError> {
        let request = link_request(libc::RTM_GETLINK, libc::NLM_F_ACK, ifindex);
        let mut counted = 0;
        self.socket
            .transact(request, |message| {
                let Some(attributes) = message.payload.get(IFINFO_LEN..) else {
                    return;
                };
                let stats = Attributes(attributes)
                    .find(|(kind, _)| *kind == libc::IFLA_STATS64)
                    .and_then(|(_, value)| value.get(8 * number..8 * number + 8)?.try_into().ok());
                counted = stats.map_or(counted, u64::from_ne_bytes);
            })
            .map_err(|refusal| {
                failed(
                    format!("count the {what} of {}", interface(ifindex)),
                    refusal,
                )
            })?;
        Ok(counted)
    }

    fn one_link(&mut self, action: &str, request: Request) -> Result<Option<Link>, NetlinkError> {
        let mut found = None;
        let result = self
            .socket
            .transact(request, |message| found = Link::parse(message.payload));
        match result {
            Err(refusal) if refusal.error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(refusal) => Err(failed(action.into(), refusal)),
            Ok(()) => Ok(found),
        }
    }

    /// The addresses of one interface.
    pub fn addresses(&mut self, ifindex: u32) -> Result<Vec<InterfaceAddress>, NetlinkError> {
        let mut fixed = [0; IFADDR_LEN];
        fixed[4..8].copy_from_slice(&ifindex.to_ne_bytes());
        let request = Request::new(libc::RTM_GETADDR, libc::NLM_F_DUMP, &fixed);
        let action = format!("list the addresses of {}", interface(ifindex));
        let all = self.dump(&action, request, InterfaceAddress::parse)?;
        Ok(all
            .into_iter()
            .filter(|address| address.ifindex == ifindex)
            .collect())
    }

    pub fn set_up(&mut self, ifindex: u32, up: bool) -> Result<(), NetlinkError> {
        let mut fixed = link_header(ifindex);
        let flag = libc::IFF_UP as u32;
        fixed[8..12].copy_from_slice(&(if up { flag } else { 0 }).to_ne_bytes());
        fixed[12..16].copy_from_slice(&flag.to_ne_bytes());
        let request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &fixed);
        let state = if up { "up" } else { "down" };
        self.change(|| format!("bring {} {state}", interface(ifindex)), request)
    }

    /// Two interfaces of which each receives what the other sends, both down. That the one has this address is how it is known
    /// again later.
    pub fn add_pair(
        &mut self,
        one: &str,
        address: MacAddr,
        other: &str,
    ) -> Result<(), NetlinkError> {
        /// `VETH_INFO_PEER`.
        const PEER: u16 = 1;
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request = link_request(libc::RTM_NEWLINK, flags, 0)
            .attribute_str(libc::IFLA_IFNAME, one)
            .attribute(libc::IFLA_ADDRESS, &address.0)
            .attribute_u32(libc::IFLA_MTU, PAIR_MTU)
            .nested(libc::IFLA_LINKINFO, |info| {
                info.attribute_str(libc::IFLA_INFO_KIND, "veth").nested(
                    libc::IFLA_INFO_DATA,
                    |data| {
                        data.nested(PEER, |peer| {
                            peer.fixed(&link_header(0))
                                .attribute_str(libc::IFLA_IFNAME, other)
                                .attribute_u32(libc::IFLA_MTU, PAIR_MTU)
                        })
                    },
                )
            });
        self.change(|| format!("make the interfaces {one} and {other}"), request)
    }

    /// An interface on top of another one, by which frames leave as they are given to it; down. It goes with that one.
    pub fn add_on_top(&mut self, name: &str, lower: u32) -> Result<(), NetlinkError> {
        /// `IFLA_MACVLAN_MODE`, and `MACVLAN_MODE_PRIVATE`: it is alone there.
        const MODE: u16 = 1;
        const PRIVATE: u32 = 1;
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request = link_request(libc::RTM_NEWLINK, flags, 0)
            .attribute_str(libc::IFLA_IFNAME, name)
            .attribute_u32(libc::IFLA_LINK, lower)
            .nested(libc::IFLA_LINKINFO, |info| {
                info.attribute_str(libc::IFLA_INFO_KIND, "macvlan")
                    .nested(libc::IFLA_INFO_DATA, |data| {
                        data.attribute_u32(MODE, PRIVATE)
                    })
            });
        let below = interface(lower);
        self.change(
            || format!("make {name} on top of {below} (macvlan)"),
            request,
        )
    }

    /// The interface goes, and with it the other end of a pair, and what is on top of it.
    pub fn delete_interface(&mut self, ifindex: u32) -> Result<(), NetlinkError> {
        let request = link_request(libc::RTM_DELLINK, libc::NLM_F_ACK, ifindex);
        self.change(|| format!("delete {}", interface(ifindex)), request)
    }

    /// `mtu` in payload bytes after the EtherType.
    pub fn set_mtu(&mut self, ifindex: u32, mtu: u32) -> Result<(), NetlinkError> {
        let request = link_request(libc::RTM_NEWLINK, libc::NLM_F_ACK, ifindex)
            .attribute_u32(libc::IFLA_MTU, mtu);
        self.change(
            || format!("set the MTU of {} to {mtu}", interface(ifindex)),
            request,
        )
    }

    /// Frames that wait in the interface's own queue: of a TAP, between the kernel and its program.
    pub fn set_queue_len(&mut self, ifindex: u32, frames: u32) -> Result<(), NetlinkError> {
        let request = link_request(libc::RTM_NEWLINK, libc::NLM_F_ACK, ifindex)
            .attribute_u32(libc::IFLA_TXQLEN, frames);
        self.change(
            || format!("set the queue of {} to {frames}", interface(ifindex)),
            request,
        )
    }

    /// The largest frame that the host's stack makes for this interface, bytes: those that are cut
    /// into segments later.
    pub fn set_gso_max_size(&mut self, ifindex: u32, bytes: u32) -> Result<(), NetlinkError> {
        let request = link_request(libc::RTM_NEWLINK, libc::NLM_F_ACK, ifindex)
            .attribute_u32(libc::IFLA_GSO_MAX_SIZE, bytes);
        self.change(
            || format!("set the GSO size of {} to {bytes}", interface(ifindex)),
            request,
        )
    }

    /// How many segments the host's stack puts into one frame for this interface at most.
    pub fn set_gso_max_segs(&mut self, ifindex: u32, segments: u32) -> Result<(), NetlinkError> {
        let request = link_request(libc::RTM_NEWLINK, libc::NLM_F_ACK, ifindex)
            .attribute_u32(libc::IFLA_GSO_MAX_SEGS, segments);
        self.change(
            || {
                format!(
                    "set the segments in a frame of {} to {segments}",
                    interface(ifindex)
                )
            },
            request,
        )
    }

    pub fn set_mac_address(&mut self, ifindex: u32, mac: MacAddr) -> Result<(), NetlinkError> {
        let request = link_request(libc::RTM_NEWLINK, libc::NLM_F_ACK, ifindex)
            .attribute(libc::IFLA_ADDRESS, &mac.0);
        self.change(
            || format!("give {} the address {mac}", interface(ifindex)),
            request,
        )
    }

    /// An address that is there already is an error (`EEXIST`).
    pub fn add_address(&mut self, ifindex: u32, prefix: IpPrefix) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = address_request(libc::RTM_NEWADDR, flags, ifindex, prefix);
        if let Some(broadcast) = broadcast_of(prefix) {
            request = request.attribute(libc::IFA_BROADCAST, &broadcast);
        }
        self.change(
            || format!("add {prefix} to {}", interface(ifindex)),
            request,
        )
    }

    pub fn delete_address(&mut self, ifindex: u32, prefix: IpPrefix) -> Result<(), NetlinkError> {
        let request = address_request(libc::RTM_DELADDR, libc::NLM_F_ACK, ifindex, prefix);
        self.change(
            || format!("delete {prefix} from {}", interface(ifindex)),
            request,
        )
    }

    /// A request that is answered by yes or no. The text is only made for a no.
    pub(in crate::linux) fn change(
        &mut self,
        action: impl FnOnce() -> String,
        request: Request,
    ) -> Result<(), NetlinkError> {
        self.socket
            .transact(request, |_| {})
            .map_err(|refusal| failed(action(), refusal))
    }

    pub(in crate::linux) fn dump<T>(
        &mut self,
        action: &str,
        request: Request,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, NetlinkError> {
        let mut attempts = 0;
        loop {
            let mut found = Vec::new();
            let result = self.socket.transact(request.clone(), |message| {
                found.extend(parse(message.payload))
            });
            attempts += 1;
            match result {
                Ok(()) => return Ok(found),
                Err(refusal)
                    if refusal.error.kind() == io::ErrorKind::Interrupted
                        && attempts < DUMP_ATTEMPTS_MAX => {}
                Err(refusal) => return Err(failed(action.into(), refusal)),
            }
        }
    }
}

fn failed(action: String, refusal: Refusal) -> NetlinkError {
    NetlinkError {
        action,
        reason: refusal.reason,
        source: refusal.error,
    }
}

fn link_header(ifindex: u32) -> [u8; IFINFO_LEN] {
    let mut fixed = [0; IFINFO_LEN];
    fixed[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    fixed
}

fn link_request(kind: u16, flags: i32, ifindex: u32) -> Request {
    Request::new(kind, flags, &link_header(ifindex))
}

fn address_request(kind: u16, flags: i32, ifindex: u32, prefix: IpPrefix) -> Request {
    let (family, octets) = match prefix.address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let mut fixed = [0; IFADDR_LEN];
    fixed[0] = family as u8;
    fixed[1] = prefix.prefix_len;
    fixed[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    Request::new(kind, flags, &fixed)
        .attribute(libc::IFA_LOCAL, &octets)
        .attribute(libc::IFA_ADDRESS, &octets)
}

/// As `ip address add … brd +`; networks of one or two hosts have none.
fn broadcast_of(prefix: IpPrefix) -> Option<[u8; 4]> {
    match prefix.address {
        IpAddr::V4(address) if prefix.prefix_len < 31 => {
            let hosts = u32::MAX
                .checked_shr(u32::from(prefix.prefix_len))
                .unwrap_or(0);
            Some((u32::from(address) | hosts).to_be_bytes())
        }
        _ => None,
    }
}

/// The interface's name now, or its number when it has gone: for messages.
pub(in crate::linux) fn interface(ifindex: u32) -> String {
    let mut name = [0u8; libc::IFNAMSIZ];
    // SAFETY: the buffer has the IFNAMSIZ bytes that the call may write.
    let found = unsafe { libc::if_indextoname(ifindex, name.as_mut_ptr().cast()) };
    match CStr::from_bytes_until_nul(&name) {
        Ok(name) if !found.is_null() => name.to_string_lossy().into_owned(),
        _ => format!("interface {ifindex}"),
    }
}

#[cfg(test)]
mod tests;
