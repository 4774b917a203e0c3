//! A TCP connection that the kernel paces, to see how exactly: on `lo` of a network namespace that nobody else knows, which goes with the
//! thread that made it.
//!
//! Segments leave one by one there (`gso_max_segs` 1), and a packet socket has the kernel's time of each. So what is seen is what
//! a connection's own timer does, which runs in a softirq: no program's wake-up is in it. Nobody is woken while segments leave, for the
//! receiver asks to be told when all have come.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use super::super::capture_socket::{CaptureSocket, FrameBuffer};
use super::super::netlink::{Netlink, NetlinkError};
use super::super::socket_filter::Filter;
use super::super::sys::{check, get_option, set_option};
use super::super::tcp_pacing;

/// As `ps -L` shows the thread.
pub const THREAD_NAME: &str = "pace-precision";

/// Of a segment without options. A flight of [`FLIGHT_MAX`] has to fit into the window that a connection begins with.
const SEGMENT_BYTES: libc::c_int = 500;
/// Segments that are given to the connection at once.
pub const FLIGHT_MAX: usize = 64;
/// A frame's headers, which are all that is looked at.
const SNAP_LEN: u32 = 66;
/// Each flight takes tens of milliseconds. Who has to wait so long for one has no time for others either.
const PATIENCE: Duration = Duration::from_secs(1);

/// The kernel paces none of a connection's first ten segments, and stamps frames only a moment after it was first asked to.
const WARM_UP: (Duration, usize) = (Duration::from_millis(1), 20);

#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("cannot begin a thread: {0}")]
    Thread(io::Error),
    #[error("cannot make a network namespace: {0}")]
    Namespace(io::Error),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error("a paced connection to itself: {0}")]
    Connection(#[from] io::Error),
    #[error("{seen} segments of {sent} were seen to leave")]
    Unseen { seen: usize, sent: usize },
    #[error("it takes too long: segments do not come")]
    TooLate,
}

#[derive(Debug)]
pub struct Probe {
    sender: TcpStream,
    receiver: TcpStream,
    capture: CaptureSocket,
    buffer: FrameBuffer,
    /// Payload of a segment.
    segment_bytes: usize,
}

/// Does `work` on a thread of its own, in a network namespace that ends with it.
pub fn on_thread<T: Send + 'static>(
    work: impl FnOnce(&mut Probe) -> Result<T, ProbeError> + Send + 'static,
) -> Result<JoinHandle<Result<T, ProbeError>>, ProbeError> {
    let thread = Builder::new().name(THREAD_NAME.to_owned());
    thread
        .spawn(|| work(&mut Probe::open()?))
        .map_err(ProbeError::Thread)
}

impl Probe {
    /// The calling thread is in another network namespace from here on.
    fn open() -> Result<Probe, ProbeError> {
        // SAFETY: no pointers; the namespace changes for this thread alone.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map_err(ProbeError::Namespace)?;
        let mut netlink = Netlink::open()?;
        let lo = netlink.link_by_name("lo")?;
        let lo = lo.ok_or_else(|| ProbeError::Namespace(io::ErrorKind::NotFound.into()))?;
        // Before the connection, which asks its interface when it is made.
        netlink.set_gso_max_segs(lo.ifindex, 1)?;
        netlink.set_up(lo.ifindex, true)?;
        pace_as_told();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        choose_reno(&listener)?;
        let sender = connected(listener.local_addr()?.port())?;
        let (receiver, _) = listener.accept()?;
        receiver.set_read_timeout(Some(PATIENCE))?;
        let capture = CaptureSocket::create()?;
        capture.watch(lo.ifindex, &Filter::Outgoing.compile(SNAP_LEN))?;
        let segment = get_option(sender.as_raw_fd(), libc::SOL_TCP, libc::TCP_MAXSEG)?;
        let mut probe = Probe {
            sender,
            receiver,
            capture,
            buffer: FrameBuffer::default(),
            segment_bytes: segment.max(1) as usize,
        };
        let (interval, segments) = WARM_UP;
        probe.flight(interval, segments)?;
        Ok(probe)
    }

    /// Sends so many segments, no more than [`FLIGHT_MAX`], to leave so far apart; what was between each two of them.
    pub fn flight(
        &mut self,
        interval: Duration,
        segments: usize,
    ) -> Result<Vec<Duration>, ProbeError> {
        let bytes = segments.min(FLIGHT_MAX) * self.segment_bytes;
        let nanos = interval.as_nanos().max(1) as u64;
        tcp_pacing::limit(
            &self.sender,
            self.segment_bytes as u64 * 1_000_000_000 / nanos,
        )?;
        let all = bytes as libc::c_int;
        let receiver = self.receiver.as_raw_fd();
        set_option(receiver, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &all)?;
        self.sender.write_all(&vec![0; bytes])?;
        self.take(bytes)?;
        let mut left_at = Vec::with_capacity(segments);
        while let Some(frame) = self.capture.receive(&mut self.buffer)? {
            // What is shorter is an acknowledgement.
            if frame.len > self.segment_bytes {
                left_at.push(frame.unix_nanos);
            }
        }
        if left_at.len() * self.segment_bytes < bytes {
            return Err(ProbeError::Unseen {
                seen: left_at.len(),
                sent: segments,
            });
        }
        let gaps = left_at
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]));
        Ok(gaps.map(Duration::from_nanos).collect())
    }

    /// Waits until all these are there, and takes them.
    fn take(&mut self, bytes: usize) -> Result<(), ProbeError> {
        let mut fds = [PollFd::new(&self.receiver, PollFlags::IN)];
        let patience = PATIENCE.try_into().expect("a second");
        loop {
            match poll(&mut fds, Some(&patience)) {
                Ok(0) => return Err(ProbeError::TooLate),
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        self.receiver.read_exact(&mut vec![0; bytes])?;
        Ok(())
    }
}

/// TCP's pacing never goes beyond a multiple of window ÷ round trip, 2 and 1.2 by default. Where a processor is busy the round trip on `lo`
/// is one of milliseconds; then that would be slower than what is asked for. Where it cannot be written, gaps are seen longer than
/// they should be.
fn pace_as_told() {
    for name in ["tcp_pacing_ss_ratio", "tcp_pacing_ca_ratio"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv4/{name}"), "1000");
    }
}

/// It is in every kernel, and who has chosen is left alone by a pacer of all network namespaces.
fn choose_reno(socket: &impl AsRawFd) -> io::Result<()> {
    let (level, option) = (libc::SOL_TCP, libc::TCP_CONGESTION);
    set_option(socket.as_raw_fd(), level, option, b"reno")
}

fn connected(port: u16) -> io::Result<TcpStream> {
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    let socket: OwnedFd = socket_with(AddressFamily::INET, kind, flags, None)?;
    choose_reno(&socket)?;
    let (level, option) = (libc::SOL_TCP, libc::TCP_MAXSEG);
    set_option(socket.as_raw_fd(), level, option, &SEGMENT_BYTES)?;
    // It is paced from its first segment on.
    tcp_pacing::limit(socket.as_fd(), u64::from(u32::MAX))?;
    connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}
