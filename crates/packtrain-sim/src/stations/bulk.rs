//! As much as TCP carries, for as long as it runs.

use packtrain_proto::time::Instant;

use super::application::Application;
use super::config::BulkConfig;
use super::core::{Core, Event};
use super::report::Report;
use crate::fabric::UNLIMITED_BYTES;

#[derive(Debug)]
pub struct Bulk {
    connections: Vec<u32>,
    report: Report,
}

impl Bulk {
    pub fn new(config: BulkConfig, application: usize, core: &mut Core) -> Bulk {
        let streams = config.streams.iter();
        let connections = streams.map(|&way| core.connect(application, way, &config.ends));
        let connections = connections.collect();
        core.plan(Instant::ZERO + config.starts, Event::Start { application });
        Bulk {
            connections,
            report: Report::default(),
        }
    }
}

impl Application for Bulk {
    fn start(&mut self, core: &mut Core) {
        for &connection in &self.connections {
            core.open(connection);
            core.write(connection, UNLIMITED_BYTES);
        }
    }

    fn delivered(&mut self, _connection: u32, bytes: u64, core: &mut Core) {
        self.report.came(bytes, core.now());
    }

    fn report(&self) -> &Report {
        &self.report
    }

    fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }
}
