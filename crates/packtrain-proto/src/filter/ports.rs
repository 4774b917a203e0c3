//! Whether a socket has the port that a packet is for.

use super::frame::{Frame, Protocol};
use super::host::Host;
use super::reason::Reason;

/// Why a frame to an address of ours goes no further, or may; `None`: it is not asked, or the port is open.
///
/// Only of the interface's own addresses: what is for another one of this host's may be routed, or be for a
/// socket that is bound elsewhere.
pub(super) fn judge(host: &Host, frame: &Frame) -> Option<Reason> {
    if frame.is_tagged {
        return None;
    }
    let endpoint = frame.endpoint()?;
    if !host.interface.addresses.contains(&endpoint.address) || host.open.contains(&endpoint) {
        return None;
    }
    Some(match endpoint.protocol {
        _ if host.redirects_ports => Reason::Redirected,
        Protocol::Tcp => Reason::ClosedTcp,
        Protocol::Udp => Reason::ClosedUdp,
    })
}
