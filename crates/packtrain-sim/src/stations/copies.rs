//! Files that are copied from a server's disks: to themselves, or to another host.
//!
//! The array is one queue in front of a rate; a chunk that does not follow the last one costs a seek.
//! Nothing is cached: what is read is read from the disks, and what is copied there is written at once.

use packtrain_proto::time::{Duration, Instant};

use super::application::Application;
use super::config::{CopiesConfig, Disks};
use super::core::{Core, Event};
use super::report::Report;

/// Where on the disks something was done: of a copy's source, or of its target.
type Place = (usize, bool);

#[derive(Debug)]
struct Queue {
    disks: Disks,
    free_at: Instant,
    last: Option<Place>,
}

impl Queue {
    /// When a chunk is read or written that is asked for now.
    fn ask(&mut self, place: Place, bytes: u64, now: Instant) -> Instant {
        let seek = match self.last == Some(place) {
            true => Duration::ZERO,
            false => self.disks.seek,
        };
        let nanos = 1_000_000_000 * bytes / self.disks.bytes_per_s;
        self.last = Some(place);
        self.free_at = self.free_at.max(now) + seek + Duration::from_nanos(nanos);
        self.free_at
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// Of a local copy.
    Writing,
    /// All that it may send is on its way.
    Sending,
}

#[derive(Debug)]
struct Copy {
    /// `None`: to the same disks.
    connection: Option<u32>,
    state: State,
    /// Of the file: read so far, and there so far.
    read: u64,
    there: u64,
    chunk: u64,
    began: Instant,
    /// It waits for the others.
    has_ended: bool,
}

#[derive(Debug)]
pub struct Copies {
    application: usize,
    config: CopiesConfig,
    queue: Queue,
    copies: Vec<Copy>,
    report: Report,
}

impl Copies {
    pub fn new(config: CopiesConfig, application: usize, core: &mut Core) -> Copies {
        assert!(config.remote <= config.copies && config.chunk_bytes > 0);
        let way = (config.server, config.reader);
        let copies = (0..config.copies).map(|number| Copy {
            connection: (number < config.remote)
                .then(|| core.connect(application, way, &config.ends)),
            state: State::Reading,
            read: 0,
            there: 0,
            chunk: 0,
            began: Instant::ZERO,
            has_ended: false,
        });
        let copies = copies.collect();
        core.plan(Instant::ZERO + config.starts, Event::Start { application });
        Copies {
            application,
            queue: Queue {
                disks: config.disks,
                free_at: Instant::ZERO,
                last: None,
            },
            copies,
            config,
            report: Report::default(),
        }
    }

    fn read(&mut self, number: usize, core: &mut Core) {
        let copy = &mut self.copies[number];
        copy.state = State::Reading;
        copy.chunk = self
            .config
            .chunk_bytes
            .min(self.config.file_bytes - copy.read);
        self.use_disks(number, false, core);
    }

    fn use_disks(&mut self, number: usize, writes: bool, core: &mut Core) {
        let chunk = self.copies[number].chunk;
        let at = self.queue.ask((number, writes), chunk, core.now());
        let event = Event::Timer {
            application: self.application,
            token: number as u64,
        };
        core.plan(at, event);
    }

    /// Reads on, unless too much is on its way, or all of the file is read.
    fn go_on(&mut self, number: usize, core: &mut Core) {
        let copy = &self.copies[number];
        let connection = copy.connection.expect("only these wait");
        let has_room = core.unacknowledged(connection) < self.config.socket_bytes;
        if copy.state == State::Sending && has_room && copy.read < self.config.file_bytes {
            self.read(number, core);
        }
    }

    fn begin(&mut self, number: usize, core: &mut Core) {
        let copy = &mut self.copies[number];
        (copy.read, copy.there, copy.began) = (0, 0, core.now());
        copy.has_ended = false;
        self.read(number, core);
    }

    fn there(&mut self, number: usize, bytes: u64, core: &mut Core) {
        let copy = &mut self.copies[number];
        copy.there += bytes;
        if copy.there < self.config.file_bytes {
            return;
        }
        copy.has_ended = true;
        self.report.ended(copy.began, core.now());
        if !self.config.together {
            return self.begin(number, core);
        }
        if self.copies.iter().all(|copy| copy.has_ended) {
            (0..self.copies.len()).for_each(|number| self.begin(number, core));
        }
    }
}

impl Application for Copies {
    fn start(&mut self, core: &mut Core) {
        for number in 0..self.copies.len() {
            if let Some(connection) = self.copies[number].connection {
                core.open(connection);
            }
            self.begin(number, core);
        }
    }

    fn delivered(&mut self, connection: u32, bytes: u64, core: &mut Core) {
        let mut copies = self.copies.iter();
        let of = |copy: &Copy| copy.connection == Some(connection);
        let number = copies.position(of).expect("a connection of its own");
        self.there(number, bytes, core);
    }

    fn acknowledged(&mut self, connection: u32, core: &mut Core) {
        let mut copies = self.copies.iter();
        if let Some(number) = copies.position(|copy| copy.connection == Some(connection)) {
            self.go_on(number, core);
        }
    }

    /// A chunk is read or written.
    fn timer(&mut self, token: u64, core: &mut Core) {
        let number = token as usize;
        let copy = &mut self.copies[number];
        let chunk = copy.chunk;
        self.report.came(chunk, core.now());
        match (copy.state, copy.connection) {
            (State::Reading, None) => {
                copy.read += chunk;
                copy.state = State::Writing;
                self.use_disks(number, true, core);
            }
            (State::Reading, Some(connection)) => {
                copy.read += chunk;
                copy.state = State::Sending;
                core.write(connection, chunk);
                self.go_on(number, core);
            }
            (State::Writing, _) => {
                self.there(number, chunk, core);
                let copy = &self.copies[number];
                if copy.state == State::Writing && !copy.has_ended {
                    self.read(number, core);
                }
            }
            (State::Sending, _) => unreachable!("the disks do nothing for it"),
        }
    }

    fn report(&self) -> &Report {
        &self.report
    }

    fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }
}
