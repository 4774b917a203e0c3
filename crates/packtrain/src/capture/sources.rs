//! The sockets of a capture, kept in step with the line's links.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::{Direction, LinkView, Place, Seen, View, WITNESS_BYTES, Wanted};
use crate::linux::capture_socket::{CaptureSocket, FrameBuffer, Passed};
use crate::linux::socket_filter::{Filter, WHOLE};

/// Frames that are read from one socket before the others have their turn.
const TURN: usize = 512;
/// Witnesses are as many as frames, or more, and small.
const WITNESS_TURN: usize = 8 * TURN;
/// Whatever is kept of a frame in the end: it is compared with its witness.
const SNAP_LEN_MIN: u32 = WITNESS_BYTES as u32;

/// What the kernel dropped because we did not read in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Frames on `pt0`.
    pub host: u64,
    /// Direct frames that left.
    pub links: u64,
    /// Witnesses: their frames count as the engine's.
    pub witnesses: u64,
}

impl Dropped {
    /// Frames that are missing.
    pub fn frames(&self) -> u64 {
        self.host + self.links
    }
}

#[derive(Debug)]
pub struct Sources {
    wanted: Wanted,
    snap_len: u32,
    host: Option<(u32, CaptureSocket)>,
    links: Vec<Link>,
    /// Of sockets that are closed.
    dropped: Dropped,
    buffer: FrameBuffer,
}

#[derive(Debug)]
struct Link {
    view: LinkView,
    leaving: Option<CaptureSocket>,
    /// Of those that have no mark.
    leaving_unmarked: Option<CaptureSocket>,
    leaving_tagged: Option<CaptureSocket>,
    witnesses: Vec<CaptureSocket>,
}

impl Sources {
    /// `snap_len`: about so many bytes of a frame are enough; 0: all. No socket yet.
    pub fn new(wanted: Wanted, snap_len: u32) -> Sources {
        Sources {
            wanted,
            snap_len: match snap_len {
                0 => WHOLE,
                snap_len => snap_len.max(SNAP_LEN_MIN),
            },
            host: None,
            links: Vec::new(),
            dropped: Dropped::default(),
            buffer: FrameBuffer::default(),
        }
    }

    /// Watches what the line has now; `opened` is given each new socket.
    pub fn follow(
        &mut self,
        view: &View,
        opened: &mut dyn FnMut(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let (here, gone) = std::mem::take(&mut self.links)
            .into_iter()
            .partition(|link| view.links.contains(&link.view));
        self.links = here;
        for mut link in gone {
            self.dropped = sum(self.dropped, link.dropped());
        }
        // The links first: a witness has to be there before its frame.
        for &link in &view.links {
            if !self.links.iter().any(|known| known.view == link) {
                let link = self.open_link(link, opened)?;
                self.links.extend(link);
            }
        }
        let is_open = |(ifindex, _): &(u32, CaptureSocket)| *ifindex == view.ifindex;
        if self.wanted.needs_host() && !self.host.as_ref().is_some_and(is_open) {
            self.dropped.host += self.host.take().map_or(0, |(_, s)| dropped(s));
            let filter = match self.wanted.may_come() {
                true => Filter::Any,
                false => Filter::Outgoing,
            };
            let socket = CaptureSocket::create()?;
            if self.wanted.direction == Some(Direction::In) {
                socket.ignore_outgoing()?;
            }
            match socket.watch(view.ifindex, &filter.compile(self.snap_len)) {
                // It goes, and the line with it: whoever asks next is told.
                Err(error) if is_gone(&error) => return Ok(()),
                result => result?,
            }
            opened(socket.as_fd())?;
            self.host = Some((view.ifindex, socket));
        }
        Ok(())
    }

    /// `None`: it has gone since the line told of it.
    fn open_link(
        &self,
        view: LinkView,
        opened: &mut dyn FnMut(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Option<Link>> {
        let mut open = |filter: Filter| -> io::Result<CaptureSocket> {
            let mut socket = CaptureSocket::create()?;
            let snap_len = match filter {
                Filter::MaybeDirectTo(_)
                | Filter::MaybeUnmarkedTo(_)
                | Filter::MaybeTaggedTo(..) => {
                    socket.ignore_outgoing()?;
                    WITNESS_BYTES as u32
                }
                _ => self.snap_len,
            };
            // It is no part of the frame that the host has sent.
            if let Filter::MaybeTaggedTo(..) | Filter::OutgoingTaggedFrom(..) = filter {
                socket.leave_tags_out();
            }
            socket.watch(view.ifindex, &filter.compile(snap_len))?;
            opened(socket.as_fd())?;
            Ok(socket)
        };
        let mut both = || -> io::Result<Link> {
            let leaving = self.wanted.takes_direct_out();
            let tagged = view.tagged.map(|vlan| (view.address, vlan));
            let mut witnesses = Vec::new();
            if self.wanted.may_come() {
                witnesses.push(open(match view.unmarked {
                    false => Filter::MaybeDirectTo(view.address),
                    true => Filter::MaybeUnmarkedTo(view.address),
                })?);
                if let Some((address, vlan)) = tagged {
                    witnesses.push(open(Filter::MaybeTaggedTo(address, vlan))?);
                }
            }
            Ok(Link {
                view,
                leaving: match leaving {
                    true => Some(open(Filter::OutgoingFrom(view.direct_mark))?),
                    false => None,
                },
                leaving_unmarked: match leaving && view.unmarked {
                    true => Some(open(Filter::OutgoingUnmarkedFrom(view.address))?),
                    false => None,
                },
                leaving_tagged: match tagged.filter(|_| leaving) {
                    Some((address, vlan)) => Some(open(Filter::OutgoingTaggedFrom(address, vlan))?),
                    None => None,
                },
                witnesses,
            })
        };
        match both() {
            Err(error) if is_gone(&error) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Reads what waits, some of it at least: frames to `frame`, the beginning of witnesses to `witness`. A witness of each frame has been read before this returns. Says whether an interface has
    /// told that it is down or gone.
    pub fn read(
        &mut self,
        frame: &mut dyn FnMut(Seen),
        witness: &mut dyn FnMut(&Passed<'_>),
    ) -> io::Result<bool> {
        let Sources {
            host,
            links,
            buffer,
            ..
        } = self;
        let mut down = false;
        // pt0 before the links: a witness is queued before its frame is.
        if let Some((_, socket)) = host {
            down |= read(socket, buffer, TURN, &mut |passed| {
                let direction = match passed.outgoing {
                    true => Direction::Out,
                    false => Direction::In,
                };
                frame(seen(Place::Host(direction), &passed));
            })?;
        }
        for link in links {
            for socket in &link.witnesses {
                down |= read(socket, buffer, WITNESS_TURN, &mut |passed| {
                    witness(&passed);
                })?;
            }
            let leaving = [&link.leaving, &link.leaving_unmarked, &link.leaving_tagged];
            for socket in leaving.into_iter().flatten() {
                down |= read(socket, buffer, TURN, &mut |passed| {
                    frame(seen(Place::Link, &passed));
                })?;
            }
        }
        Ok(down)
    }

    /// Since the beginning.
    pub fn dropped(&mut self) -> Dropped {
        let mut all = self.dropped;
        if let Some((_, socket)) = &mut self.host {
            all.host += socket.dropped().unwrap_or(0);
        }
        for link in &mut self.links {
            all = sum(all, link.dropped());
        }
        all
    }
}

impl Link {
    fn dropped(&mut self) -> Dropped {
        let of = |socket: &mut CaptureSocket| socket.dropped().unwrap_or(0);
        let leaving = [
            &mut self.leaving,
            &mut self.leaving_unmarked,
            &mut self.leaving_tagged,
        ];
        Dropped {
            host: 0,
            links: leaving.into_iter().flatten().map(of).sum(),
            witnesses: self.witnesses.iter_mut().map(of).sum(),
        }
    }
}

fn dropped(mut socket: CaptureSocket) -> u64 {
    socket.dropped().unwrap_or(0)
}

fn sum(a: Dropped, b: Dropped) -> Dropped {
    Dropped {
        host: a.host + b.host,
        links: a.links + b.links,
        witnesses: a.witnesses + b.witnesses,
    }
}

fn seen(place: Place, passed: &Passed<'_>) -> Seen {
    Seen {
        place,
        unix_nanos: passed.unix_nanos,
        bytes: passed.bytes.to_vec(),
        len: passed.len,
    }
}

/// Says whether the interface is down or gone.
fn read(
    socket: &CaptureSocket,
    buffer: &mut FrameBuffer,
    at_most: usize,
    take: &mut dyn FnMut(Passed<'_>),
) -> io::Result<bool> {
    for _ in 0..at_most {
        match socket.receive(buffer) {
            Ok(Some(passed)) => take(passed),
            Ok(None) => break,
            Err(error) if is_gone(&error) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO)
    )
}
