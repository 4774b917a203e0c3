//! Blocks that go to and fro: one end writes, the other one has all of it and writes as much.

use packtrain_proto::time::Instant;

use super::application::Application;
use super::config::PingPongConfig;
use super::core::{Core, Event};
use super::report::Report;

/// A connection each way, of which the second has the next number.
#[derive(Debug)]
struct Pair {
    to: u32,
    fro: u32,
    /// Of the block that is on its way.
    came: u64,
    began: Instant,
}

#[derive(Debug)]
pub struct PingPong {
    application: usize,
    config: PingPongConfig,
    pairs: Vec<Pair>,
    report: Report,
}

impl PingPong {
    pub fn new(config: PingPongConfig, application: usize, core: &mut Core) -> PingPong {
        assert!(config.bytes > 0, "a block of nothing never comes");
        let pairs = config.pairs.iter().map(|&(a, b)| Pair {
            to: core.connect(application, (a, b), &config.ends),
            fro: core.connect(application, (b, a), &config.ends),
            came: 0,
            began: Instant::ZERO,
        });
        let pairs = pairs.collect();
        core.plan(Instant::ZERO + config.starts, Event::Start { application });
        PingPong {
            application,
            config,
            pairs,
            report: Report::default(),
        }
    }

    /// The next block goes this way, at once or when the one end has turned round.
    fn next(&mut self, connection: u32, core: &mut Core) {
        match self.config.turnaround.is_zero() {
            true => self.write(connection, core),
            false => {
                let event = Event::Timer {
                    application: self.application,
                    token: u64::from(connection),
                };
                core.plan(core.now() + self.config.turnaround, event);
            }
        }
    }

    fn write(&mut self, connection: u32, core: &mut Core) {
        let now = core.now();
        let pair = self.pairs.iter_mut().find(|pair| pair.to == connection);
        if let Some(pair) = pair {
            pair.began = now;
        }
        core.write(connection, self.config.bytes);
    }
}

impl Application for PingPong {
    fn start(&mut self, core: &mut Core) {
        for pair in 0..self.pairs.len() {
            let (to, fro) = (self.pairs[pair].to, self.pairs[pair].fro);
            core.open(to);
            core.open(fro);
            self.write(to, core);
        }
    }

    fn delivered(&mut self, connection: u32, bytes: u64, core: &mut Core) {
        let now = core.now();
        self.report.came(bytes, now);
        let mut pairs = self.pairs.iter_mut();
        let pair = pairs.find(|pair| pair.to == connection || pair.fro == connection);
        let pair = pair.expect("a connection of its own");
        pair.came += bytes;
        if pair.came < self.config.bytes {
            return;
        }
        pair.came = 0;
        let next = match connection == pair.to {
            true => pair.fro,
            false => {
                self.report.ended(pair.began, now);
                pair.to
            }
        };
        self.next(next, core);
    }

    fn timer(&mut self, token: u64, core: &mut Core) {
        self.write(token as u32, core);
    }

    fn report(&self) -> &Report {
        &self.report
    }

    fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }
}
