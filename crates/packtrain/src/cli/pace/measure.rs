//! `packtrain pace measure`: the gaps that are really on the wire.

mod chart;
mod report;

use std::io;
use std::time::Duration;

use packtrain_proto::pacing::gap::Line;
use packtrain_proto::time::Duration as Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::report::Measured;
use super::arguments::MeasureArguments;
use super::{ask, read};
use crate::cli::error::CliError;
use crate::cli::patience::Patience;
use crate::cli::{output, show};
use crate::clock::Clock;
use crate::linux::capture_socket::{CaptureSocket, FrameBuffer};
use crate::linux::ethtool;
use crate::linux::netlink::{Link, Netlink};
use crate::linux::socket_filter::Filter;
use crate::pace::Pacer;
use crate::pace::link::PaceError;
use crate::pace::measure::GapTally;
use crate::running::Signals;

/// Nothing of a frame is looked at but its length.
const SNAP_LEN: u32 = 64;
/// The kernel begins to stamp frames a moment after it is asked to.
const UNTIL_STAMPED: Duration = Duration::from_millis(100);
/// Frames are read so often, and not as they come: who measures takes a processor from nobody.
const READ_EVERY: Span = Span::from_millis(10);
const FRAMES_A_TURN_MAX: u32 = 100_000;
const TOLD_EVERY: Span = Span::from_secs(1);

pub fn run(arguments: &MeasureArguments) -> Result<(), CliError> {
    let name = arguments.interface.as_str();
    let link = Netlink::open()?.link_by_name(name)?;
    let link = link.ok_or_else(|| CliError::InterfaceMissing(name.into()))?;
    if !link.is_ethernet {
        return Err(CliError::NotEthernet(name.into()));
    }
    let (rate_bps, line_rate_source) = line_rate(arguments, &link)?;
    let mut tally = GapTally::new(Line {
        rate_bps,
        mtu: link.mtu,
    });
    let mut signals = Signals::catch()?;
    let mut socket = open(&link, arguments.incoming).map_err(not_opened)?;
    let seconds = Span::from_secs(arguments.seconds.into());
    let watched = watch(
        &socket,
        &mut signals,
        arguments.incoming,
        seconds,
        &mut tally,
    );
    output::progress_ends();
    watched.map_err(|e| not_watched(name, e))?;
    let measured = Measured {
        interface: name,
        incoming: arguments.incoming,
        line_rate_source,
        tally: &tally,
        missed_frames: socket.dropped().map_err(not_opened)?,
    };
    match arguments.json {
        true => show::print_json(&measured.document()),
        false => output::text(&measured.text()),
    }
}

/// And who says so.
fn line_rate(arguments: &MeasureArguments, link: &Link) -> Result<(u64, String), CliError> {
    if let Some(rate) = arguments.line_rate {
        return Ok((rate.0, "told".into()));
    }
    let paced = ask(&Pacer::Link(arguments.interface.clone())).and_then(read);
    if let Some(spacing) = paced.ok().and_then(|document| document.spacing) {
        return Ok((spacing.line_rate_bps, "pacer".into()));
    }
    match ethtool::speed_bps(&link.name).ok().flatten() {
        Some(rate_bps) if link.kind.as_deref() != Some("tun") => Ok((rate_bps, "interface".into())),
        _ => Err(PaceError::NoLineRate {
            interface: link.name.clone(),
            because: "its driver does not say",
        }
        .into()),
    }
}

fn open(link: &Link, incoming: bool) -> io::Result<CaptureSocket> {
    let socket = CaptureSocket::create()?;
    // With it the kernel has begun to stamp frames, of which none is taken yet.
    let mut patience = Patience::of(UNTIL_STAMPED);
    while patience.wait() {}
    let filter = match incoming {
        true => {
            socket.ignore_outgoing()?;
            Filter::Any
        }
        false => Filter::Outgoing,
    };
    socket.watch(link.ifindex, &filter.compile(SNAP_LEN))?;
    Ok(socket)
}

/// Until so much time is over, or somebody has had enough.
fn watch(
    socket: &CaptureSocket,
    signals: &mut Signals,
    incoming: bool,
    time: Span,
    tally: &mut GapTally,
) -> io::Result<()> {
    let clock = Clock::start();
    let begins = clock.now();
    let mut told = begins;
    let mut buffer = FrameBuffer::default();
    let step = Timespec::try_from(READ_EVERY).expect("milliseconds");
    loop {
        let signal_fd = signals.fd();
        let mut fds = [PollFd::from_borrowed_fd(signal_fd, PollFlags::IN)];
        match poll(&mut fds, Some(&step)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let now = clock.now();
        // More than so many are the next turn's: it has to end, however many come.
        for _ in 0..FRAMES_A_TURN_MAX {
            let Some(frame) = socket.receive(&mut buffer)? else {
                break;
            };
            if frame.outgoing != incoming {
                let len = u32::try_from(frame.len).unwrap_or(u32::MAX);
                tally.frame(frame.unix_nanos, len);
            }
        }
        if signals.caught() || now >= begins + time {
            return Ok(());
        }
        if now >= told + TOLD_EVERY {
            told = now;
            let seconds = now.since(begins).as_secs();
            output::progress(&format!(
                "{seconds} of {} s: {} frames; Ctrl-C ends it",
                time.as_secs(),
                tally.frames()
            ));
        }
    }
}

fn not_opened(error: io::Error) -> CliError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => CliError::NoRights(vec!["CAP_NET_RAW"]),
        _ => CliError::failed("packet socket", error),
    }
}

fn not_watched(interface: &str, error: io::Error) -> CliError {
    match error.raw_os_error() {
        Some(libc::ENETDOWN) => CliError::Failed(format!("{interface} is down, or gone")),
        _ => CliError::failed("packet socket", error),
    }
}
