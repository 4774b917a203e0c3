//! The line's end: polled by its event loop, never blocking it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::{Timespec, epoll};
use rustix::net::sockopt::socket_peercred;

use super::backlog::{Backlog, From as Place};
use super::followers::{FOLLOWERS_MAX, Follower, Progress};
use super::{Request, Response, socket_address};
use crate::events::{Stamp, What};

/// Longest request, with its line feed: a class with all conditions and prefixes that it can have.
const REQUEST_BYTES_MAX: usize = 8192;
/// The same of who may change something, at a server that takes as much: all sets of a receive filter (131,072 prefixes of up
/// to 46 bytes) and its 512 rules. Others cannot have it keep so much for them.
const LONG_REQUEST_BYTES_MAX: usize = 12 << 20;
const CLIENTS_MAX: usize = 16;
/// The listener's mark in the epoll set; clients have their slot's number, and so have followers behind these.
const LISTENER: u64 = u64::MAX;
const FOLLOWERS: u64 = CLIENTS_MAX as u64;

/// Why the socket cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("another process of this network namespace has the control socket of {0}")]
    InUse(String),
    #[error("control socket: {0}")]
    Io(#[from] io::Error),
}

/// Who answers: the line.
type Answer<'a> = &'a mut dyn FnMut(Request, Asker) -> Reply;

/// The listening socket and its clients, behind one descriptor to poll.
#[derive(Debug)]
pub struct ControlServer {
    listener: UnixListener,
    epoll: OwnedFd,
    clients: [Option<Client>; CLIENTS_MAX],
    followers: [Option<Follower>; FOLLOWERS_MAX],
    backlog: Backlog,
    /// There are events that followers were not written yet.
    has_news: bool,
    accepted: u64,
    own_uid: u32,
    takes_long_requests: bool,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    uid: u32,
    /// Counts up with each accepted client: the lowest is the oldest.
    serial: u64,
    input: Vec<u8>,
    /// Most of it.
    input_bytes_max: usize,
    output: Vec<u8>,
    written: usize,
    phase: Phase,
    /// Once answered it is parked instead of sent away.
    waits_for_end: bool,
    /// What it has asked for and no line need be asked for.
    asks_for_events: Option<Asked>,
}

/// For events.
#[derive(Clone, Copy, Debug)]
struct Asked {
    follow: bool,
    from: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    /// Its answer comes later.
    Waiting,
    Writing,
    /// Answered, and waits for the end of the line: that the connection ends is the news.
    Parked,
}

/// Somebody whose answer is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker(u64);

/// What is done about a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Now(Response),
    /// [`ControlServer::answer_later`] gives the answer, within a bounded time. Who waits for one
    /// keeps its place among few: whoever says this bounds how many do.
    Later,
}

impl From<Response> for Reply {
    fn from(response: Response) -> Reply {
        Reply::Now(response)
    }
}

/// What becomes of a client after something happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
}

impl ControlServer {
    pub fn bind(name: &str) -> Result<ControlServer, BindError> {
        let listener =
            UnixListener::bind_addr(&socket_address(name)?).map_err(|e| match e.kind() {
                io::ErrorKind::AddrInUse => BindError::InUse(name.into()),
                _ => BindError::Io(e),
            })?;
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        epoll::add(
            &epoll,
            &listener,
            epoll::EventData::new_u64(LISTENER),
            epoll::EventFlags::IN,
        )
        .map_err(io::Error::from)?;
        let own_uid = rustix::process::geteuid().as_raw();
        let clients = [const { None }; CLIENTS_MAX];
        Ok(ControlServer {
            listener,
            epoll,
            clients,
            followers: [const { None }; FOLLOWERS_MAX],
            backlog: Backlog::new(),
            has_news: false,
            accepted: 0,
            own_uid,
            takes_long_requests: false,
        })
    }

    /// From here on whoever may change something may say more at once.
    pub fn take_long_requests(&mut self) {
        self.takes_long_requests = true;
    }

    /// Readable when [`ControlServer::handle`] has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Does what can be done now: takes clients in, reads, answers by `answer`, writes. Bounded:
    /// what is left over makes [`ControlServer::fd`] readable again at once.
    pub fn handle(&mut self, answer: Answer<'_>) {
        let mut events = Vec::with_capacity(CLIENTS_MAX + FOLLOWERS_MAX + 1);
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spare = rustix::buffer::spare_capacity(&mut events);
        if epoll::wait(&self.epoll, spare, Some(&now)).is_err() {
            return; // interrupted: still readable, so the loop comes back
        }
        for event in events {
            match event.data.u64() {
                LISTENER => self.accept(),
                slot if slot < FOLLOWERS => self.handle_client(slot as usize, answer),
                slot => self.handle_follower((slot - FOLLOWERS) as usize, event.flags),
            }
        }
    }

    /// Something has happened. [`ControlServer::tell_followers`] writes it.
    pub fn publish(&mut self, what: What, at: Stamp) {
        self.backlog.push(what, at);
        self.has_news = true;
    }

    /// Writes what is new to those who have read what was before, as far as their sockets have room.
    pub fn tell_followers(&mut self) {
        if !std::mem::take(&mut self.has_news) {
            return;
        }
        for slot in 0..FOLLOWERS_MAX {
            self.write_to_follower(slot);
        }
    }

    fn write_to_follower(&mut self, slot: usize) {
        let Some(follower) = &mut self.followers[slot] else {
            return;
        };
        // That it hangs up epoll tells in any case, but for half of a connection.
        let flags = match follower.write(&self.backlog) {
            Progress::Done => epoll::EventFlags::RDHUP,
            Progress::More => epoll::EventFlags::RDHUP | epoll::EventFlags::OUT,
            Progress::Gone => return self.remove_follower(slot),
        };
        let data = epoll::EventData::new_u64(FOLLOWERS + slot as u64);
        if epoll::modify(&self.epoll, &follower.stream, data, flags).is_err() {
            self.remove_follower(slot);
        }
    }

    fn handle_follower(&mut self, slot: usize, flags: epoll::EventFlags) {
        use epoll::EventFlags;
        let hangs_up = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        match flags.intersects(hangs_up) {
            true => self.remove_follower(slot),
            false => self.write_to_follower(slot),
        }
    }

    fn remove_follower(&mut self, slot: usize) {
        if let Some(follower) = self.followers[slot].take() {
            let _ = epoll::delete(&self.epoll, &follower.stream);
        }
    }

    /// Somebody asks for events. `None`: the connection stays, and is none of a client's any more.
    fn give_events(&mut self, slot: usize, asked: Asked) -> Option<Fate> {
        let head = Response::Events {
            kept: self.backlog.next() - self.backlog.oldest(),
            forgotten: self.backlog.forgotten(),
        };
        let mut head = line_of(&head);
        let mut place = self.backlog.place(asked.from);
        if !asked.follow {
            self.backlog
                .read(&mut place, u64::MAX, usize::MAX, &mut head);
            return Some(self.clients[slot].as_mut()?.send(head));
        }
        let is_privileged = self.clients[slot].as_ref()?.may_change(self.own_uid);
        let Some(seat) = self.free_seat(is_privileged) else {
            let full = Response::Refused {
                exit_code: 1,
                message: format!("{FOLLOWERS_MAX} follow it already, and no line has more"),
                hint: Some("without --follow the events so far are shown".into()),
            };
            return Some(self.clients[slot].as_mut()?.answer(&full));
        };
        let client = self.clients[slot].take()?;
        let whose = (client.stream, client.uid, client.serial);
        self.followers[seat] = Some(Follower::new(whose, head, place));
        self.write_to_follower(seat);
        None
    }

    /// Who may end the line takes the place of the oldest of those who only may look, if there is no other: they
    /// must not keep each other out for ever.
    fn free_seat(&mut self, is_privileged: bool) -> Option<usize> {
        if let Some(free) = self.followers.iter().position(Option::is_none) {
            return Some(free);
        }
        let own_uid = self.own_uid;
        let taken = self.followers.iter().enumerate();
        let taken = taken.filter_map(|(slot, f)| f.as_ref().map(|f| (slot, f)));
        let others = taken.filter(|(_, f)| is_privileged && f.uid != 0 && f.uid != own_uid);
        let (slot, _) = others.min_by_key(|(_, follower)| follower.serial)?;
        self.remove_follower(slot);
        Some(slot)
    }

    /// The answer to what [`Reply::Later`] was said to. Who does not wait any more misses nothing.
    pub fn answer_later(&mut self, asker: Asker, response: &Response) {
        let waits = |client: &Client| client.serial == asker.0 && client.phase == Phase::Waiting;
        let mut slots = self.clients.iter();
        let Some(slot) = slots.position(|client| client.as_ref().is_some_and(waits)) else {
            return;
        };
        if let Some(client) = &mut self.clients[slot] {
            let fate = client.answer(response);
            self.settle(slot, fate);
        }
    }

    fn accept(&mut self) {
        // One at a time: a storm of clients takes its turn with the frames.
        let Ok((stream, _)) = self.listener.accept() else {
            return;
        };
        let Ok(credentials) = socket_peercred(&stream) else {
            return;
        };
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let Some(slot) = self.free_slot() else {
            return; // all wait for something; dropping the stream says so
        };
        let data = epoll::EventData::new_u64(slot as u64);
        if epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN).is_err() {
            return;
        }
        self.accepted += 1;
        let uid = credentials.uid.as_raw();
        let may_change = uid == 0 || uid == self.own_uid;
        self.clients[slot] = Some(Client {
            stream,
            uid,
            serial: self.accepted,
            input: Vec::new(),
            input_bytes_max: match self.takes_long_requests && may_change {
                true => LONG_REQUEST_BYTES_MAX,
                false => REQUEST_BYTES_MAX,
            },
            output: Vec::new(),
            written: 0,
            phase: Phase::Reading,
            waits_for_end: false,
            asks_for_events: None,
        });
    }

    /// A slot for a newcomer. The oldest client that is neither parked nor owed an answer makes room:
    /// whoever only connects and stays silent must not lock the others out. First of those who only may look.
    fn free_slot(&mut self) -> Option<usize> {
        if let Some(free) = self.clients.iter().position(Option::is_none) {
            return Some(free);
        }
        let open = |client: &Client| !matches!(client.phase, Phase::Parked | Phase::Waiting);
        let (slot, _) = self
            .clients
            .iter()
            .enumerate()
            .filter_map(|(slot, client)| {
                let client = client.as_ref().filter(|client| open(client))?;
                Some((slot, (client.may_change(self.own_uid), client.serial)))
            })
            .min_by_key(|&(_, rank)| rank)?;
        self.remove(slot);
        Some(slot)
    }

    fn handle_client(&mut self, slot: usize, answer: Answer<'_>) {
        let Some(client) = &mut self.clients[slot] else {
            return; // made room for a newcomer within this very batch of events
        };
        let fate = match client.phase {
            Phase::Reading => client.read(self.own_uid, answer),
            Phase::Writing => client.write(),
            // Only its hanging up can have woken us.
            Phase::Waiting | Phase::Parked => Fate::Goes,
        };
        let asked = client.asks_for_events.take();
        match asked.map(|asked| self.give_events(slot, asked)) {
            None => self.settle(slot, fate),
            Some(Some(fate)) => self.settle(slot, fate),
            Some(None) => {}
        }
    }

    fn settle(&mut self, slot: usize, fate: Fate) {
        let Some(client) = &self.clients[slot] else {
            return;
        };
        // One that waits is heard of again only when it hangs up, which epoll always tells.
        let flags = match client.phase {
            Phase::Reading => epoll::EventFlags::IN,
            Phase::Writing => epoll::EventFlags::OUT,
            Phase::Waiting | Phase::Parked => epoll::EventFlags::RDHUP,
        };
        let data = epoll::EventData::new_u64(slot as u64);
        if fate == Fate::Goes || epoll::modify(&self.epoll, &client.stream, data, flags).is_err() {
            self.remove(slot);
        }
    }

    fn remove(&mut self, slot: usize) {
        if let Some(client) = self.clients[slot].take() {
            // Closing would do, were the socket not shared; say it rather than rely on it.
            let _ = epoll::delete(&self.epoll, &client.stream);
        }
    }
}

impl Client {
    fn read(&mut self, own_uid: u32, answer: Answer<'_>) -> Fate {
        let mut chunk = [0; REQUEST_BYTES_MAX];
        let (before, max) = (self.input.len(), self.input_bytes_max);
        match self.stream.read(&mut chunk) {
            Ok(0) => return Fate::Goes,
            Ok(len) => self.input.extend_from_slice(&chunk[..len]),
            Err(error) => return fate_of(&error),
        }
        // What came before has been looked through.
        let end = self.input[before..].iter().position(|&b| b == b'\n');
        let reply = match end.map(|end| before + end) {
            Some(end) if end < max => self.respond(end, own_uid, answer),
            None if self.input.len() < max => return Fate::Stays,
            _ => Response::Error(format!("a request has at most {max} bytes")).into(),
        };
        self.input = Vec::new();
        match reply {
            Reply::Now(response) => self.answer(&response),
            Reply::Later => {
                self.phase = Phase::Waiting;
                Fate::Stays
            }
        }
    }

    fn respond(&mut self, end: usize, own_uid: u32, answer: Answer<'_>) -> Reply {
        let request: Request = match serde_json::from_slice(&self.input[..end]) {
            Ok(request) => request,
            Err(error) => return Response::Error(format!("not understood: {error}")).into(),
        };
        if request.is_mutating() && !self.may_change(own_uid) {
            return Response::Denied.into();
        }
        if let Request::Events {
            follow,
            last,
            since_unix_ns,
        } = request
        {
            let from = match (last, since_unix_ns) {
                (Some(count), _) => Place::Last(count),
                (None, Some(unix_ns)) => Place::Since { unix_ns },
                (None, None) => Place::First,
            };
            self.asks_for_events = Some(Asked { follow, from });
            return Reply::Later;
        }
        let ends = request == Request::Down {};
        let reply = answer(request, Asker(self.serial));
        self.waits_for_end = ends && reply == Reply::Now(Response::Done);
        reply
    }

    fn may_change(&self, own_uid: u32) -> bool {
        self.uid == 0 || self.uid == own_uid
    }

    fn answer(&mut self, response: &Response) -> Fate {
        self.send(line_of(response))
    }

    fn send(&mut self, output: Vec<u8>) -> Fate {
        self.output = output;
        self.phase = Phase::Writing;
        self.write()
    }

    fn write(&mut self) -> Fate {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(len) => self.written += len,
                Err(error) => return fate_of(&error),
            }
        }
        self.output = Vec::new();
        if self.waits_for_end {
            self.phase = Phase::Parked;
            return Fate::Stays;
        }
        Fate::Goes
    }
}

fn line_of(response: &Response) -> Vec<u8> {
    let mut line = serde_json::to_vec(response).expect("a response has no key but strings");
    line.push(b'\n');
    line
}

fn fate_of(error: &io::Error) -> Fate {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Fate::Stays,
        _ => Fate::Goes,
    }
}
