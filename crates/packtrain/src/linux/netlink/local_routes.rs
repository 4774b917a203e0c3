//! What a host answers for: its local IPv4 routes, and when they may have changed.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use super::message::{Attributes, Request};
use super::socket::RouteSocket;
use super::{DUMP_ATTEMPTS_MAX, NetlinkError, failed};

/// Bytes of `rtmsg`: family, lengths of both prefixes, type of service, table, protocol, scope, type, flags (4).
const RTMSG_LEN: usize = 12;
/// Datagrams that are read in a row of what has changed: the rest makes the descriptor readable again.
const DATAGRAMS_MAX: u32 = 64;

/// Addresses that the host takes for its own on any interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalPrefix {
    pub address: Ipv4Addr,
    pub len: u8,
}

/// The local routes of one network namespace, in all tables.
#[derive(Debug)]
pub struct LocalRoutes {
    asks: RouteSocket,
    hears: RouteSocket,
}

impl LocalRoutes {
    pub fn open() -> io::Result<LocalRoutes> {
        let groups = libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV4_IFADDR;
        let asks = RouteSocket::open(0, false)?;
        // A dump of a host with a million routes is then of the local ones; otherwise they are sorted out here.
        asks.ask_strictly();
        Ok(LocalRoutes {
            asks,
            hears: RouteSocket::open(groups as u32, true)?,
        })
    }

    /// Whether something has happened since the last question; of what, nobody asks.
    pub fn have_changed(&mut self) -> io::Result<bool> {
        for asked in 0..DATAGRAMS_MAX {
            match self.hears.receive() {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(asked > 0),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// All there are, in order.
    pub fn read(&mut self) -> Result<Vec<LocalPrefix>, NetlinkError> {
        let mut fixed = [0; RTMSG_LEN];
        fixed[0] = libc::AF_INET as u8;
        fixed[7] = libc::RTN_LOCAL;
        let request = Request::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP, &fixed);
        for attempt in 1.. {
            let mut found = Vec::new();
            let result = self.asks.transact(request.clone(), |message| {
                found.extend(local_prefix(message.payload));
            });
            match result {
                Ok(()) => {
                    found.sort_unstable();
                    found.dedup();
                    return Ok(found);
                }
                Err(refusal)
                    if refusal.error.kind() == io::ErrorKind::Interrupted
                        && attempt < DUMP_ATTEMPTS_MAX => {}
                Err(refusal) => return Err(failed("list the local routes".into(), refusal)),
            }
        }
        unreachable!("the last attempt returns")
    }
}

impl AsFd for LocalRoutes {
    /// Readable when something may have changed.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hears.fd()
    }
}

fn local_prefix(payload: &[u8]) -> Option<LocalPrefix> {
    let header = payload.get(..RTMSG_LEN)?;
    if i32::from(header[0]) != libc::AF_INET || header[7] != libc::RTN_LOCAL {
        return None;
    }
    let destination = Attributes(&payload[RTMSG_LEN..])
        .find(|(kind, _)| *kind == libc::RTA_DST)
        .and_then(|(_, value)| value.first_chunk::<4>().copied());
    Some(LocalPrefix {
        // Without one it is 0.0.0.0/0: everything.
        address: Ipv4Addr::from(destination.unwrap_or_default()),
        len: header[1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::{in_namespace, ip};

    fn prefix(text: &str) -> LocalPrefix {
        let (address, len) = text.split_once('/').unwrap();
        LocalPrefix {
            address: address.parse().unwrap(),
            len: len.parse().unwrap(),
        }
    }

    #[test]
    fn addresses_and_prefixes_of_all_tables_are_there_and_other_routes_are_not() {
        in_namespace(|| {
            let mut routes = LocalRoutes::open().unwrap();
            assert!(!routes.have_changed().unwrap());
            let at_first = [prefix("127.0.0.0/8"), prefix("127.0.0.1/32")];
            assert_eq!(routes.read().unwrap(), at_first);
            ip("address add 10.1.0.1/32 dev lo");
            assert!(routes.have_changed().unwrap());
            assert!(!routes.have_changed().unwrap());
            ip("route add 10.2.0.0/16 dev lo");
            ip("route add local 198.51.100.0/24 dev lo table 77");
            let expected = [
                prefix("10.1.0.1/32"),
                prefix("127.0.0.0/8"),
                prefix("127.0.0.1/32"),
                prefix("198.51.100.0/24"),
            ];
            assert_eq!(routes.read().unwrap(), expected);
            assert!(routes.have_changed().unwrap());
            ip("address del 10.1.0.1/32 dev lo");
            assert!(routes.have_changed().unwrap());
            assert_eq!(routes.read().unwrap().len(), 3);
        });
    }

    #[test]
    fn a_message_cut_at_any_byte_is_no_prefix_or_the_one_that_it_says() {
        let mut payload = vec![2, 24, 0, 0, 255, 2, 254, 2, 0, 0, 0, 0];
        payload.extend_from_slice(&[8, 0, 1, 0, 10, 1, 0, 0]);
        assert_eq!(local_prefix(&payload), Some(prefix("10.1.0.0/24")));
        for len in 0..payload.len() {
            let cut = local_prefix(&payload[..len]);
            assert_eq!(cut.is_some(), len >= RTMSG_LEN, "{len}");
        }
        payload[7] = 1;
        assert_eq!(local_prefix(&payload), None);
    }
}
