//! The line's end: polled by its event loop, never blocking it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::{Timespec, epoll};
use rustix::net::sockopt::socket_peercred;

use super::{Request, Response, socket_address};

/// Longest request, with its line feed: a class with all conditions and prefixes that it can have.
const REQUEST_BYTES_MAX: usize = 8192;
const CLIENTS_MAX: usize = 16;
/// The listener's mark in the epoll set; clients have their slot's number.
const LISTENER: u64 = u64::MAX;

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
    accepted: u64,
    own_uid: u32,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    uid: u32,
    /// Counts up with each accepted client: the lowest is the oldest.
    serial: u64,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    phase: Phase,
    /// Once answered it is parked instead of sent away.
    waits_for_end: bool,
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
            accepted: 0,
            own_uid,
        })
    }

    /// Readable when [`ControlServer::handle`] has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Does what can be done now: takes clients in, reads, answers by `answer`, writes. Bounded:
    /// what is left over makes [`ControlServer::fd`] readable again at once.
    pub fn handle(&mut self, answer: Answer<'_>) {
        let mut events = Vec::with_capacity(CLIENTS_MAX + 1);
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
                slot => self.handle_client(slot as usize, answer),
            }
        }
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
        self.clients[slot] = Some(Client {
            stream,
            uid: credentials.uid.as_raw(),
            serial: self.accepted,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            phase: Phase::Reading,
            waits_for_end: false,
        });
    }

    /// A slot for a newcomer. The oldest client that is neither parked nor owed an answer makes room:
    /// whoever only connects and stays silent must not lock the others out.
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
                client
                    .as_ref()
                    .filter(|c| open(c))
                    .map(|c| (slot, c.serial))
            })
            .min_by_key(|&(_, serial)| serial)?;
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
        self.settle(slot, fate);
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
        match self.stream.read(&mut chunk) {
            Ok(0) => return Fate::Goes,
            Ok(len) => self.input.extend_from_slice(&chunk[..len]),
            Err(error) => return fate_of(&error),
        }
        let reply = match self.input.iter().position(|&b| b == b'\n') {
            Some(end) if end < REQUEST_BYTES_MAX => self.respond(end, own_uid, answer),
            None if self.input.len() < REQUEST_BYTES_MAX => return Fate::Stays,
            _ => Response::Error(format!("a request has at most {REQUEST_BYTES_MAX} bytes")).into(),
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
        if request.is_mutating() && self.uid != 0 && self.uid != own_uid {
            return Response::Denied.into();
        }
        let ends = request == Request::Down {};
        let reply = answer(request, Asker(self.serial));
        self.waits_for_end = ends && reply == Reply::Now(Response::Done);
        reply
    }

    fn answer(&mut self, response: &Response) -> Fate {
        self.output = serde_json::to_vec(response).expect("a response has no key but strings");
        self.output.push(b'\n');
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

fn fate_of(error: &io::Error) -> Fate {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Fate::Stays,
        _ => Fate::Goes,
    }
}
