//! What changes about links and addresses, as it happens.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::address::InterfaceAddress;
use super::link::Link;
use super::message::{Message, Messages};
use super::socket::RouteSocket;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetEvent {
    /// A link is new, or something about it has changed.
    Link(Link),
    LinkGone {
        ifindex: u32,
        name: String,
    },
    Address(InterfaceAddress),
    AddressGone(InterfaceAddress),
    /// The kernel had more to tell than fits: read everything again.
    Resync,
}

/// Follows links, IPv4 and IPv6 addresses of one network namespace; never blocks.
#[derive(Debug)]
pub struct Monitor {
    socket: RouteSocket,
    /// The rest of the last datagram, so bounded by its length.
    pending: VecDeque<NetEvent>,
}

impl Monitor {
    pub fn open() -> io::Result<Monitor> {
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        let socket = RouteSocket::open(groups as u32, true)?;
        Ok(Monitor {
            socket,
            pending: VecDeque::new(),
        })
    }

    /// Readable when [`Monitor::next_event`] has something. Read on until `None`.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// `None`: nothing more for now.
    pub fn next_event(&mut self) -> io::Result<Option<NetEvent>> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(Some(event));
            }
            match self.socket.receive() {
                Ok(len) => {
                    let events = Messages(self.socket.datagram(len)).filter_map(event_of);
                    self.pending.extend(events);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Ok(Some(NetEvent::Resync));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

fn event_of(message: Message<'_>) -> Option<NetEvent> {
    match message.kind {
        libc::RTM_NEWLINK => Link::parse(message.payload).map(NetEvent::Link),
        libc::RTM_DELLINK => Link::parse(message.payload).map(|link| NetEvent::LinkGone {
            ifindex: link.ifindex,
            name: link.name,
        }),
        libc::RTM_NEWADDR => InterfaceAddress::parse(message.payload).map(NetEvent::Address),
        libc::RTM_DELADDR => InterfaceAddress::parse(message.payload).map(NetEvent::AddressGone),
        _ => None,
    }
}
