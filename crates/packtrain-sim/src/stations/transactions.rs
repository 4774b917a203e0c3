//! Small requests and their answers in closed loops: what PostMark makes of NFS.
//!
//! Each loop has one request under way. The server knows nothing but what a request tells it, and answers one after
//! the other; one that came twice, twice.

use std::collections::{BTreeMap, VecDeque};

use packtrain_proto::time::{Duration, Instant};

use super::application::Application;
use super::config::{Over, Step, TransactionsConfig, With};
use super::core::{Core, Event};
use super::datagram::{BYTES_MIN, Datagram};
use super::report::Report;
use crate::random::Random;

/// A time-out is doubled no more often.
const DOUBLINGS_MAX: u32 = 6;

/// What a token of a timer is about: in its upper bits.
const THINK: u64 = 0;
const SERVE: u64 = 1;
const IMPATIENT: u64 = 2;
const WHAT_SHIFT: u32 = 62;

/// One transaction after the other.
#[derive(Debug)]
struct Loop {
    client: usize,
    kind: usize,
    step: usize,
    file_bytes: u64,
    began: Instant,
    /// Of the request that is not answered; none has 0.
    serial: u64,
    sent: u32,
}

/// A request, or its answer in a stream.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: u32,
    serial: u64,
    bytes: u64,
    reply_bytes: u64,
}

/// Of one client, where requests go by TCP.
#[derive(Debug)]
struct Stream {
    there: u32,
    back: u32,
    /// In the order in which they were written; of the first one so much has come.
    requests: VecDeque<Message>,
    request_came: u64,
    replies: VecDeque<Message>,
    reply_came: u64,
}

#[derive(Debug)]
pub struct Transactions {
    application: usize,
    config: TransactionsConfig,
    loops: Vec<Loop>,
    streams: Vec<Stream>,
    /// With the server.
    served: BTreeMap<u64, Message>,
    serves: u64,
    free_at: Instant,
    serials: u64,
    random: Random,
    report: Report,
}

impl Transactions {
    pub fn new(config: TransactionsConfig, application: usize, core: &mut Core) -> Transactions {
        assert!(!config.kinds.is_empty() && config.at_once > 0);
        let random = core.fork_random();
        let streams = match &config.over {
            Over::Udp { .. } => Vec::new(),
            Over::Tcp(ends) => {
                let clients = config.clients.iter();
                let stream = |&client: &usize| Stream {
                    there: core.connect(application, (client, config.server), ends),
                    back: core.connect(application, (config.server, client), ends),
                    requests: VecDeque::new(),
                    request_came: 0,
                    replies: VecDeque::new(),
                    reply_came: 0,
                };
                clients.map(stream).collect()
            }
        };
        let clients = (0..config.clients.len()).flat_map(|n| vec![n; config.at_once]);
        let loops = clients.map(|client| Loop {
            client,
            kind: 0,
            step: 0,
            file_bytes: 0,
            began: Instant::ZERO,
            serial: 0,
            sent: 0,
        });
        core.plan(Instant::ZERO + config.starts, Event::Start { application });
        Transactions {
            application,
            loops: loops.collect(),
            streams,
            config,
            served: BTreeMap::new(),
            serves: 0,
            free_at: Instant::ZERO,
            serials: 0,
            random,
            report: Report::default(),
        }
    }

    fn begin(&mut self, number: usize, core: &mut Core) {
        let weights: u64 = self.config.kinds.iter().map(|kind| kind.weight).sum();
        let mut drawn = self.random.below(weights);
        let kind = self.config.kinds.iter().position(|kind| {
            let is_it = drawn < kind.weight;
            drawn = drawn.saturating_sub(kind.weight);
            is_it
        });
        let (least, most) = self.config.file_bytes;
        let begins = &mut self.loops[number];
        begins.kind = kind.expect("below the sum of weights");
        begins.step = 0;
        begins.file_bytes = self.random.between(least, most);
        begins.began = core.now();
        self.ask(number, core);
    }

    fn step(&self, asks: &Loop) -> Step {
        self.config.kinds[asks.kind].steps[asks.step]
    }

    /// The request of its step.
    fn ask(&mut self, number: usize, core: &mut Core) {
        self.serials += 1;
        self.loops[number].serial = self.serials;
        self.loops[number].sent = 0;
        self.send_request(number, core);
    }

    fn send_request(&mut self, number: usize, core: &mut Core) {
        let asks = &self.loops[number];
        let step = self.step(asks);
        let with = |with| match step.file == Some(with) {
            true => asks.file_bytes,
            false => 0,
        };
        let message = Message {
            from: number as u32,
            serial: asks.serial,
            bytes: (step.request_bytes + with(With::Request)).max(BYTES_MIN),
            reply_bytes: (step.reply_bytes + with(With::Reply)).max(BYTES_MIN),
        };
        let client = asks.client;
        let asks = &mut self.loops[number];
        match self.config.over {
            Over::Tcp(_) => {
                let stream = &mut self.streams[client];
                stream.requests.push_back(message);
                core.write(stream.there, message.bytes);
            }
            Over::Udp { timeout } => {
                let timeout = timeout * (1 << asks.sent.min(DOUBLINGS_MAX));
                asks.sent += 1;
                let datagram = Datagram {
                    application: self.application as u16,
                    is_reply: false,
                    from: message.from,
                    serial: message.serial,
                    reply_bytes: message.reply_bytes as u32,
                    bytes: message.bytes as u32,
                };
                let way = (self.config.clients[client], self.config.server);
                self.wake(core, timeout, IMPATIENT, message.serial);
                core.send(way, datagram);
            }
        }
    }

    /// A request has come to the server whole.
    fn serve(&mut self, message: Message, core: &mut Core) {
        self.free_at = self.free_at.max(core.now()) + self.config.service;
        let number = self.serves;
        self.serves += 1;
        self.served.insert(number, message);
        match self.free_at == core.now() {
            true => self.reply(number, core),
            false => self.wake(core, self.free_at.since(core.now()), SERVE, number),
        }
    }

    fn reply(&mut self, number: u64, core: &mut Core) {
        let message = self.served.remove(&number).expect("it is there once");
        let client = self.loops[message.from as usize].client;
        match self.config.over {
            Over::Tcp(_) => {
                let stream = &mut self.streams[client];
                stream.replies.push_back(message);
                core.write(stream.back, message.reply_bytes);
            }
            Over::Udp { .. } => {
                let datagram = Datagram {
                    application: self.application as u16,
                    is_reply: true,
                    from: message.from,
                    serial: message.serial,
                    reply_bytes: 0,
                    bytes: message.reply_bytes as u32,
                };
                core.send((self.config.server, self.config.clients[client]), datagram);
            }
        }
    }

    fn answered(&mut self, number: usize, serial: u64, core: &mut Core) {
        let now = core.now();
        let asks = &mut self.loops[number];
        if asks.serial != serial {
            return; // it was answered twice
        }
        asks.serial = 0;
        asks.step += 1;
        if self.has_ended(number) {
            self.report.ended(self.loops[number].began, now);
        }
        match self.config.think.is_zero() {
            true => self.go_on(number, core),
            false => self.wake(core, self.config.think, THINK, number as u64),
        }
    }

    fn has_ended(&self, number: usize) -> bool {
        let asks = &self.loops[number];
        asks.step == self.config.kinds[asks.kind].steps.len()
    }

    /// With the next request, or the next transaction.
    fn go_on(&mut self, number: usize, core: &mut Core) {
        match self.has_ended(number) {
            true => self.begin(number, core),
            false => self.ask(number, core),
        }
    }

    fn wake(&self, core: &mut Core, after: Duration, what: u64, number: u64) {
        let event = Event::Timer {
            application: self.application,
            token: what << WHAT_SHIFT | number,
        };
        core.plan(core.now() + after, event);
    }
}

/// Those of `messages` that have come whole, with `bytes` more.
fn whole(
    messages: &mut VecDeque<Message>,
    came: &mut u64,
    len: impl Fn(&Message) -> u64,
) -> Option<Message> {
    let first = messages.front()?;
    let len = len(first);
    if *came < len {
        return None;
    }
    *came -= len;
    messages.pop_front()
}

impl Application for Transactions {
    fn start(&mut self, core: &mut Core) {
        for stream in &self.streams {
            core.open(stream.there);
            core.open(stream.back);
        }
        for number in 0..self.loops.len() {
            self.begin(number, core);
        }
    }

    fn delivered(&mut self, connection: u32, bytes: u64, core: &mut Core) {
        self.report.came(bytes, core.now());
        let mut streams = self.streams.iter();
        let of = |stream: &Stream| stream.there == connection || stream.back == connection;
        let client = streams.position(of).expect("a connection of its own");
        if self.streams[client].there == connection {
            self.streams[client].request_came += bytes;
            loop {
                let stream = &mut self.streams[client];
                let (requests, came) = (&mut stream.requests, &mut stream.request_came);
                let Some(message) = whole(requests, came, |message| message.bytes) else {
                    break;
                };
                self.serve(message, core);
            }
            return;
        }
        self.streams[client].reply_came += bytes;
        loop {
            let stream = &mut self.streams[client];
            let (replies, came) = (&mut stream.replies, &mut stream.reply_came);
            let Some(message) = whole(replies, came, |message| message.reply_bytes) else {
                break;
            };
            self.answered(message.from as usize, message.serial, core);
        }
    }

    fn datagram(&mut self, datagram: &Datagram, core: &mut Core) {
        self.report.came(u64::from(datagram.bytes), core.now());
        if datagram.is_reply {
            return self.answered(datagram.from as usize, datagram.serial, core);
        }
        let message = Message {
            from: datagram.from,
            serial: datagram.serial,
            bytes: u64::from(datagram.bytes),
            reply_bytes: u64::from(datagram.reply_bytes),
        };
        self.serve(message, core);
    }

    fn timer(&mut self, token: u64, core: &mut Core) {
        let number = token & ((1 << WHAT_SHIFT) - 1);
        match token >> WHAT_SHIFT {
            THINK => self.go_on(number as usize, core),
            SERVE => self.reply(number, core),
            _ => {
                let mut loops = self.loops.iter();
                if let Some(asks) = loops.position(|asks| asks.serial == number) {
                    self.report.again += 1;
                    self.send_request(asks, core);
                }
            }
        }
    }

    fn report(&self) -> &Report {
        &self.report
    }

    fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }
}
