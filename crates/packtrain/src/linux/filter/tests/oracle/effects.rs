//! What a kernel does with a frame, as far as somebody can notice: what it hands to sockets, what it sends, and what it knows of its
//! neighbours afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{fmt, fs};

use packtrain_proto::wire::ethernet::MacAddr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::host::OWN_IPV4;
use super::packets::{ACK, ARP, ICMP, ICMP6, IGMP, IPV4, IPV6, RST, SYN, TCP};
use crate::linux::netlink::Netlink;
use crate::linux::netlink::message::{Attributes, Request};
use crate::linux::tap::Tap;
use crate::linux::vnet_header;

/// Neighbours in this state are the kernel's own notes on groups.
const NUD_NOARP: u16 = 0x40;
const NDMSG_LEN: usize = 12;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_CACHEINFO: u16 = 3;

#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    /// A socket has had it, by the name of the socket.
    Received(&'static str),
    Sent(Sent),
    /// In words.
    Neighbour(String),
    /// A report of a group is to come, which somebody has asked for: its line in the kernel's list.
    ToReport(String),
}

/// What the host has sent.
#[derive(Clone, PartialEq)]
pub(super) struct Sent {
    pub(super) what: &'static str,
    pub(super) frame: Vec<u8>,
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02x?}", self.what, self.frame)
    }
}

/// What the kernel knows of a neighbour, and how long ago it has heard so, in hundredths of a second.
#[derive(Clone, Debug, PartialEq)]
struct Neighbour {
    address: Option<MacAddr>,
    state: u16,
    confirmed: u32,
    updated: u32,
}

type Neighbours = BTreeMap<IpAddr, Neighbour>;

#[derive(Debug)]
pub(super) enum Socket {
    Messages(OwnedFd),
    Stream(TcpStream),
    Listener(TcpListener),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Messages(fd) => fd.as_fd(),
            Socket::Stream(stream) => stream.as_fd(),
            Socket::Listener(listener) => listener.as_fd(),
        }
    }
}

/// The other end of a host's cable, and an eye on all that is in it.
pub(super) struct Watch {
    tap: Tap,
    netlink: Netlink,
    sockets: Vec<(&'static str, Socket)>,
    neighbours: Neighbours,
    to_report: BTreeSet<String>,
    buffer: Vec<u8>,
}

impl Watch {
    pub(super) fn new(tap: Tap, sockets: Vec<(&'static str, Socket)>) -> Watch {
        let mut watch = Watch {
            tap,
            netlink: Netlink::open().unwrap(),
            sockets,
            neighbours: Neighbours::new(),
            to_report: BTreeSet::new(),
            buffer: vec![0; 1 << 16],
        };
        watch.forget();
        watch
    }

    pub(super) fn ifindex(&self) -> u32 {
        self.tap.ifindex()
    }

    pub(super) fn add(&mut self, name: &'static str, socket: Socket) {
        self.sockets.push((name, socket));
    }

    /// The connection that waits at the listener.
    pub(super) fn accept(&mut self) -> Socket {
        let listener = self.sockets.iter().find_map(|(_, socket)| match socket {
            Socket::Listener(listener) => Some(listener),
            _ => None,
        });
        let (stream, _) = listener.expect("a listener").accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        Socket::Stream(stream)
    }

    /// What has come by itself.
    pub(super) fn forget(&mut self) {
        self.sent();
        self.received();
        self.neighbours = self.read_neighbours();
        self.to_report = groups_to_report();
    }

    /// Gives a frame to the host, which is done with it when this returns.
    pub(super) fn give(&mut self, frame: &[u8]) {
        let header = [0; vnet_header::LEN];
        let parts = [&header[..], frame].map(std::io::IoSlice::new);
        rustix::io::writev(&self.tap, &parts).expect("the interface is up");
    }

    /// What comes of a frame.
    pub(super) fn effects_of(&mut self, frame: &[u8]) -> Vec<Effect> {
        self.sent();
        self.give(frame);
        let mut effects: Vec<Effect> = self.received().into_iter().map(Effect::Received).collect();
        effects.extend(self.sent().into_iter().map(Effect::Sent));
        let neighbours = self.read_neighbours();
        effects.extend(changes(&self.neighbours, &neighbours).map(Effect::Neighbour));
        self.neighbours = neighbours;
        let to_report = groups_to_report();
        let new = to_report.difference(&self.to_report).cloned();
        effects.extend(new.map(Effect::ToReport));
        self.to_report = to_report;
        effects
    }

    /// All frames that wait, but for reports of groups: those are of timers, some time after they were asked for.
    pub(super) fn sent(&mut self) -> Vec<Sent> {
        let mut sent = self.all_sent();
        sent.retain(|sent| sent.what != REPORT);
        sent
    }

    pub(super) fn all_sent(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        loop {
            match rustix::io::read(&self.tap, &mut self.buffer[..]) {
                Ok(len) => {
                    let frame = self.buffer[vnet_header::LEN..len].to_vec();
                    let what = what_is(&frame);
                    sent.push(Sent { what, frame });
                }
                Err(Errno::AGAIN) => return sent,
                Err(error) => panic!("the TAP: {error}"),
            }
        }
    }

    /// The sockets that have had something.
    fn received(&mut self) -> Vec<&'static str> {
        let mut ready: Vec<PollFd<'_>> = self
            .sockets
            .iter()
            .map(|(_, socket)| PollFd::new(socket, PollFlags::IN))
            .collect();
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if poll(&mut ready, Some(&now)).unwrap() == 0 {
            return Vec::new();
        }
        let ready: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut received = Vec::new();
        for ((name, socket), is_ready) in self.sockets.iter().zip(ready) {
            if !is_ready {
                continue;
            }
            match socket {
                Socket::Messages(fd) => {
                    while let Some(message) = next_message(fd, &mut self.buffer) {
                        if !is_own_report(name, message) {
                            received.push(*name);
                        }
                    }
                }
                // At its end it is ready for ever.
                Socket::Stream(stream) => {
                    let mut stream = stream;
                    while stream.read(&mut self.buffer).is_ok_and(|len| len > 0) {
                        received.push(*name);
                    }
                }
                Socket::Listener(listener) => {
                    while listener.accept().is_ok() {
                        received.push(*name);
                    }
                }
            }
        }
        received
    }

    fn read_neighbours(&mut self) -> Neighbours {
        let ifindex = self.ifindex();
        let fixed = [0; NDMSG_LEN];
        let request = Request::new(libc::RTM_GETNEIGH, libc::NLM_F_DUMP, &fixed);
        let all = self
            .netlink
            .dump("list the neighbours", request, |payload| {
                parse_neighbour(payload, ifindex)
            });
        all.unwrap().into_iter().collect()
    }
}

/// `None`: there is none. An error is of an answer to what the socket had sent, which it has had by that.
fn next_message<'a>(socket: &OwnedFd, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    match recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
        Ok((len, _)) => Some(&buffer[..len]),
        Err(Errno::AGAIN) => None,
        Err(_) => Some(&[]),
    }
}

/// What a timer has sent to a group comes back to this host, which is in it.
fn is_own_report(socket: &str, message: &[u8]) -> bool {
    socket == FOR_GROUPS && message.get(12..16) == Some(&OWN_IPV4.octets()[..])
}

/// Those whose timer runs (igmp_mc_seq_show and igmp6_mc_seq_show of the kernel).
fn groups_to_report() -> BTreeSet<String> {
    const TIMER_RUNS: u32 = 1;
    let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap();
    let mut groups = BTreeSet::new();
    for line in read("igmp").lines() {
        // Group, users, whether the timer runs and for how long, reporter.
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [group, _, timer, _] = words[..]
            && timer.starts_with("1:")
        {
            groups.insert(group.to_owned());
        }
    }
    for line in read("igmp6").lines() {
        // Number and name of the interface, group, users, flags, time.
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, group, _, flags, _] = words[..]
            && u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & TIMER_RUNS != 0)
        {
            groups.insert(group.to_owned());
        }
    }
    groups
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(word.try_into().expect("4 bytes")))
}

/// `struct ndmsg`: family, padding, ifindex, state, flags, type; and attributes.
fn parse_neighbour(payload: &[u8], ifindex: u32) -> Option<(IpAddr, Neighbour)> {
    if word(payload, 4)? != ifindex {
        return None;
    }
    let state = u16::from_ne_bytes([*payload.get(8)?, *payload.get(9)?]);
    let (mut ip, mut address, mut ages) = (None, None, (0, 0));
    for (kind, value) in Attributes(payload.get(NDMSG_LEN..)?) {
        match kind {
            NDA_DST => {
                ip = match *value {
                    [a, b, c, d] => Some(IpAddr::from([a, b, c, d])),
                    _ => Some(IpAddr::from(*value.first_chunk::<16>()?)),
                };
            }
            NDA_LLADDR => address = Some(MacAddr(*value.first_chunk()?)),
            // Confirmed, used, updated, references.
            NDA_CACHEINFO => ages = (word(value, 0)?, word(value, 8)?),
            _ => {}
        }
    }
    let neighbour = Neighbour {
        address,
        state,
        confirmed: ages.0,
        updated: ages.1,
    };
    (state != NUD_NOARP).then_some((ip?, neighbour))
}

/// What a frame may have done. Entries that are gone are not among it: time takes them, and no frame.
fn changes(before: &Neighbours, after: &Neighbours) -> impl Iterator<Item = String> {
    after.iter().filter_map(|(ip, now)| {
        let Some(then) = before.get(ip) else {
            return Some(format!("{ip} is new: {now:?}"));
        };
        // Ages only grow, unless it was heard of again.
        let is_heard = now.confirmed < then.confirmed || now.updated < then.updated;
        let is_same = now.address == then.address && now.state == then.state;
        (!is_same || is_heard).then(|| format!("{ip} was {then:?} and is {now:?}"))
    })
}

/// The raw socket for IGMP.
pub(super) const FOR_GROUPS: &str = "a raw socket for IGMP";

pub(super) const REPORT: &str = "a report of groups";
pub(super) const ARP_QUESTION: &str = "an ARP question";
pub(super) const SOLICITATION: &str = "a neighbour solicitation";
pub(super) const RESET: &str = "a reset";
pub(super) const OPEN_ANSWER: &str = "an open port's answer";
pub(super) const OTHER_ICMP6: &str = "another ICMPv6";
pub(super) const UNREACHABLE: &str = "an ICMP that says unreachable";

fn what_is(frame: &[u8]) -> &'static str {
    let Some(&[high, low]) = frame.get(12..14) else {
        return "something short";
    };
    let byte = |at: usize| frame.get(14 + at).copied().unwrap_or(0);
    match u16::from_be_bytes([high, low]) {
        ARP if byte(7) == 1 => ARP_QUESTION,
        ARP => "an ARP answer",
        IPV4 => {
            let message = usize::from(byte(0) & 15) * 4;
            match byte(9) {
                IGMP => REPORT,
                ICMP if byte(message) == 3 => UNREACHABLE,
                ICMP if byte(message) == 0 => "an echo's answer",
                ICMP => "another ICMP",
                TCP => tcp_kind(byte(message + 13)),
                _ => "another IPv4 packet",
            }
        }
        IPV6 => match byte(6) {
            // Behind a hop-by-hop header stand reports of listeners only.
            0 => REPORT,
            ICMP6 => match byte(40) {
                1 => UNREACHABLE,
                129 => "an echo's answer",
                135 => SOLICITATION,
                136 => "a neighbour advertisement",
                _ => OTHER_ICMP6,
            },
            TCP => tcp_kind(byte(40 + 13)),
            _ => "another IPv6 packet",
        },
        _ => "another frame",
    }
}

fn tcp_kind(flags: u8) -> &'static str {
    match flags & (SYN | ACK | RST) {
        flags if flags & RST != 0 => RESET,
        flags if flags == SYN | ACK => OPEN_ANSWER,
        _ => "another segment",
    }
}
