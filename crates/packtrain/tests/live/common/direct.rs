//! Which way a host's frames take to its only peer.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::wait_for;
use packtrain::status::PeerPath;

use super::cabled::status;

/// It opens once the peers know each other and the links were looked at; where marks do not pass, when the next kind is
/// tried.
const SOON: Duration = Duration::from_secs(30);

/// The way, and why it is not the direct one.
pub fn path(host: &Host) -> (PeerPath, Option<String>) {
    let peer = status(host).peers.into_iter().next().expect("a peer");
    (peer.path, peer.path_because)
}

pub fn wait_for_direct(host: &Host) {
    wait_for("the direct path", SOON, || path(host).0 == PeerPath::Direct).unwrap();
}
