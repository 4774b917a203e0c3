//! The floor: a program that carries frames between a TAP and a link and does nothing with them.
//! What it costs is the price of passing through user space at all; what `pt0` costs beyond it is
//! the engine's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use packtrain_proto::wire::ethernet::MacAddr;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read, write};

use super::namespaces::{Namespace, Process};
use super::{Result, wait_for, wire};
use crate::linux::netlink::Netlink;
use crate::linux::packet_socket::PacketSocket;
use crate::linux::tap::Tap;

/// The largest frame and its offload header.
const FRAME_MAX: usize = (1 << 16) + 128;
const START_MAX: Duration = Duration::from_secs(3);

/// A relay in `host`, a process of its own as a daemon is; its TAP is up and has the address.
pub fn start(host: &Namespace, packtrain: &Path, link: &str, address: &str) -> Result<Process> {
    let program = packtrain.to_str().expect("a path of ordinary letters");
    let tap = format!("{link}-relay");
    let process = host.spawn([program, "bench", "relay", link, &tap])?;
    wait_for(&format!("{tap} in {}", host.name()), START_MAX, || {
        host.exec(["ip", "link", "set", &tap, "up"]).is_ok()
    })?;
    wire::add_address(host, &tap, address)?;
    Ok(process)
}

/// What `packtrain bench relay` does, until one of the two is gone: a thread for each direction that
/// blocks in one system call and hands on by the next. The offload headers of the two are the same
/// bytes.
pub fn run(link: &str, tap: &str) -> io::Result<()> {
    // A session of its own, as a daemon has: the scheduler shares the processor between sessions.
    // It fails for who leads one already.
    let _ = rustix::process::setsid();
    let tap = Arc::new(Tap::create(tap, address())?);
    let found = Netlink::open().and_then(|mut netlink| netlink.link_by_name(link));
    let found = found.map_err(io::Error::other)?;
    let found = found.ok_or_else(|| io::Error::other(format!("no interface {link}")))?;
    let link = Arc::new(PacketSocket::open(found.ifindex)?);
    for fd in [tap.as_fd(), link.as_fd()] {
        fcntl_setfl(fd, fcntl_getfl(fd)? - OFlags::NONBLOCK)?;
    }
    let (ended, first_end) = mpsc::channel();
    let (from_host, from_link) = ((tap.clone(), link.clone()), (link, tap));
    let ended_too = ended.clone();
    std::thread::spawn(move || ended.send(carry(from_host.0.as_fd(), from_host.1.as_fd())));
    std::thread::spawn(move || ended_too.send(carry(from_link.0.as_fd(), from_link.1.as_fd())));
    // The other thread may block for ever: it ends with the process.
    first_end.recv().expect("each thread says how it ended")
}

fn carry(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    let mut frame = vec![0; FRAME_MAX];
    loop {
        let len = match read(from, &mut frame) {
            Ok(len) => len,
            // The link was set down: it says so once.
            Err(Errno::INTR | Errno::NETDOWN) => continue,
            Err(error) => return Err(error.into()),
        };
        // What is refused is lost, as on any wire.
        let _ = write(to, &frame[..len]);
    }
}

/// Locally administered, and no other relay's on this machine.
fn address() -> MacAddr {
    let [a, b, c, d] = std::process::id().to_be_bytes();
    MacAddr([0x02, 0x72, a, b, c, d])
}
