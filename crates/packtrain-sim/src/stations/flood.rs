//! Stations that always have something to send: datagrams, of which so many are under way all the time.
//!
//! Whoever sends knows at once what has arrived, and nothing goes over the network for that: what is measured is the medium, and
//! not how answers share it. Datagrams of a stream keep their order, so one that is missing is lost, and another one
//! goes in its place. Where all of them are, none comes that would tell: who has heard nothing for long begins anew.

use packtrain_proto::time::{Duration, Instant};

use super::application::Application;
use super::config::FloodConfig;
use super::core::{Core, Event};
use super::datagram::Datagram;
use super::report::Report;

/// Nobody waits so long for a medium that others have.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Stream {
    sent: u64,
    /// When something last came of it, or it began.
    heard_at: Instant,
    /// Serials below it have come, or are lost.
    came_to: u64,
}

#[derive(Debug)]
pub struct Flood {
    application: usize,
    config: FloodConfig,
    streams: Vec<Stream>,
    report: Report,
}

impl Flood {
    pub fn new(config: FloodConfig, application: usize, core: &mut Core) -> Flood {
        core.plan(Instant::ZERO + config.starts, Event::Start { application });
        Flood {
            application,
            streams: config.streams.iter().map(|_| Stream::default()).collect(),
            config,
            report: Report::default(),
        }
    }

    fn send(&mut self, number: usize, core: &mut Core) {
        let stream = &mut self.streams[number];
        let datagram = Datagram {
            application: self.application as u16,
            is_reply: false,
            from: number as u32,
            serial: stream.sent,
            reply_bytes: 0,
            bytes: self.config.bytes,
        };
        stream.sent += 1;
        core.send(self.config.streams[number], datagram);
    }

    /// Those that are missing are lost, and so many go in their place.
    fn go_on(&mut self, number: usize, missing: u64, lost: u64, core: &mut Core) {
        let stream = &mut self.streams[number];
        stream.came_to += missing;
        stream.heard_at = core.now();
        self.report.lost += lost;
        for _ in 0..missing {
            self.send(number, core);
        }
    }

    fn be_patient(&self, number: usize, core: &mut Core) {
        let event = Event::Timer {
            application: self.application,
            token: number as u64,
        };
        core.plan(self.streams[number].heard_at + PATIENCE, event);
    }
}

impl Application for Flood {
    fn start(&mut self, core: &mut Core) {
        for number in 0..self.streams.len() {
            self.streams[number].heard_at = core.now();
            self.be_patient(number, core);
            for _ in 0..self.config.under_way {
                self.send(number, core);
            }
        }
    }

    fn delivered(&mut self, _connection: u32, _bytes: u64, _core: &mut Core) {
        unreachable!("it has no connections");
    }

    fn datagram(&mut self, datagram: &Datagram, core: &mut Core) {
        self.report.came(u64::from(datagram.bytes), core.now());
        let number = datagram.from as usize;
        let came_to = self.streams[number].came_to;
        let done = (datagram.serial + 1).saturating_sub(came_to);
        // All but this one are lost.
        self.go_on(number, done, done.saturating_sub(1), core);
    }

    fn timer(&mut self, token: u64, core: &mut Core) {
        let number = token as usize;
        let stream = &self.streams[number];
        if core.now().since(stream.heard_at) >= PATIENCE {
            let missing = stream.sent - stream.came_to;
            self.go_on(number, missing, missing, core);
        }
        self.be_patient(number, core);
    }

    fn report(&self) -> &Report {
        &self.report
    }

    fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }
}
