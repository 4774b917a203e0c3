//! The settings of stations as a setup that can be run, and where in it everything is found again.

use core::ops::Range;

use packtrain_proto::config::{Config, NodeId};
use packtrain_proto::dfap::best_fit::Order;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_settings::wire::WireSettings;
use packtrain_sim::fabric::Ends;
use packtrain_sim::net::cut::{Cut, Outage};
use packtrain_sim::net::network::{self, PortId, SegmentConfig};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::stations::{
    self, ApplicationConfig, BulkConfig, CopiesConfig, FloodConfig, Kind, Line, PingPongConfig,
    Setup, StationConfig, TransactionsConfig,
};

use super::{
    ApplicationKind, ApplicationSettings, CutSettings, LinkSettings, Over, PacktrainSettings,
    SegmentKind, SegmentSettings, StationsSettings, Ways,
};
use crate::kinds::network::build::{ends, wire};
use crate::kinds::network::line::LineSettings;

#[derive(Debug)]
pub struct Built {
    pub setup: Setup,
    /// Of each class, its stations.
    pub stations: Vec<Range<usize>>,
}

pub fn build(settings: &StationsSettings, seed: u64) -> Built {
    // What is cut for good is so until after the end.
    let ends = settings.times.length + Duration::from_secs(1);
    let mut segments: Vec<Segment> = settings.segments.iter().map(Segment::new).collect();
    let mut stations = Vec::new();
    let mut setup = Setup {
        seed,
        ..Setup::default()
    };
    for class in &settings.stations {
        let first = setup.stations.len();
        for _ in 0..class.count {
            let links = class.links.iter();
            let ports = links.map(|link| segments[link.on].plug(link.on, link));
            let ports = ports.collect();
            setup.stations.push(StationConfig {
                ports,
                kind: match &class.packtrain {
                    None => Kind::Plain,
                    Some(packtrain) => Kind::Packtrain(Box::new(line(packtrain))),
                },
            });
        }
        stations.push(first..setup.stations.len());
    }
    let all = segments.into_iter().map(|segment| segment.config(ends));
    setup.segments = all.collect();
    let applications = settings.applications.iter();
    let applications = applications.map(|of| application(of, &stations));
    setup.applications = applications.collect();
    Built { setup, stations }
}

/// One that grows with what is plugged in.
struct Segment<'a> {
    settings: &'a SegmentSettings,
    up: Vec<WireConfig>,
    down: Vec<WireConfig>,
    /// `None`: of all ports.
    cuts: Vec<(CutSettings, Option<usize>)>,
}

impl<'a> Segment<'a> {
    fn new(settings: &'a SegmentSettings) -> Segment<'a> {
        Segment {
            settings,
            up: Vec::new(),
            down: Vec::new(),
            cuts: settings.cuts.iter().map(|cut| (*cut, None)).collect(),
        }
    }

    fn plug(&mut self, segment: usize, link: &LinkSettings) -> PortId {
        let port = self.up.len();
        match &self.settings.kind {
            SegmentKind::Cable(line) => self.up.push(wire(&of_link(line, link))),
            SegmentKind::Switch(line) => {
                let line = of_link(line, link);
                // What is sent to a switch waits with who sends it, and meets what may happen behind it.
                let up = WireSettings {
                    rate: line.wire.rate,
                    delay_ns: line.wire.delay_ns,
                    ..WireSettings::default()
                };
                self.up.push(up.config());
                self.down.push(wire(&line));
            }
            SegmentKind::Hub { .. } => {
                self.up.push(WireConfig::unrated(Duration::ZERO));
                self.down.push(WireConfig::unrated(Duration::ZERO));
            }
        }
        self.cuts
            .extend(link.cuts.iter().map(|cut| (*cut, Some(port))));
        PortId { segment, port }
    }

    fn config(mut self, ends: Duration) -> SegmentConfig {
        self.cuts.sort_by_key(|(cut, _)| cut.from);
        let outages = self.cuts.iter().map(|(cut, port)| Outage {
            from: Instant::ZERO + cut.from,
            until: Instant::ZERO + cut.until.unwrap_or(ends.max(cut.from * 2)),
            seen: cut.seen,
            lag: [Duration::ZERO; 2],
            port: *port,
        });
        SegmentConfig {
            kind: match self.settings.kind {
                SegmentKind::Cable(_) => network::SegmentKind::Cable,
                SegmentKind::Switch(_) => network::SegmentKind::Switch,
                SegmentKind::Hub { rate_bps } => network::SegmentKind::Hub { rate_bps },
            },
            mtu: self.settings.mtu,
            carries_offload: false,
            cut: Cut::new(outages.collect()),
            up: self.up,
            down: self.down,
        }
    }
}

fn of_link(line: &LineSettings, link: &LinkSettings) -> LineSettings {
    let mut line = line.clone();
    line.wire.rate = link.rate.or(line.wire.rate);
    if let Some(delay) = link.delay {
        line.wire.delay_ns = delay.as_nanos() as u64;
    }
    line
}

fn line(settings: &PacktrainSettings) -> Line {
    let mut config = Config::new(NodeId(1), MacAddr::default());
    config.mode = settings.mode;
    config.rest.pack = settings.pack.pack;
    config.rest.on_backlog = settings.pack.on_backlog;
    config.balance = settings.balance;
    config.detection_time = settings.liveness;
    config.hold_time = settings.hold_time;
    config.limits.repair_within = settings.repair;
    config.coded_trains = settings.coded;
    config.dfap.tick = settings.dfap_tick;
    if settings.dfap_strict {
        config.dfap.order = Order::Strict;
    }
    Line {
        config,
        classes: (!settings.default_classes).then(Vec::new),
    }
}

fn application(settings: &ApplicationSettings, stations: &[Range<usize>]) -> ApplicationConfig {
    let ends: Ends = ends(&settings.tcp);
    let starts = settings.starts;
    let only = |class: usize| stations[class].start;
    match &settings.kind {
        ApplicationKind::Bulk(ways) => ApplicationConfig::Bulk(BulkConfig {
            streams: pairs(ways, stations),
            ends,
            starts,
        }),
        ApplicationKind::Flood {
            ways,
            bytes,
            under_way,
        } => ApplicationConfig::Flood(FloodConfig {
            streams: pairs(ways, stations),
            bytes: *bytes,
            under_way: *under_way,
            starts,
        }),
        ApplicationKind::PingPong {
            ways,
            bytes,
            turnaround,
        } => ApplicationConfig::PingPong(PingPongConfig {
            pairs: pairs(ways, stations),
            bytes: *bytes,
            turnaround: *turnaround,
            ends,
            starts,
        }),
        ApplicationKind::Transactions {
            server,
            clients,
            at_once,
            over,
            kinds,
            file_bytes,
            service,
            think,
        } => ApplicationConfig::Transactions(TransactionsConfig {
            server: only(*server),
            clients: clients
                .iter()
                .flat_map(|class| stations[*class].clone())
                .collect(),
            at_once: *at_once as usize,
            over: match *over {
                Over::Udp { timeout } => stations::Over::Udp { timeout },
                Over::Tcp => stations::Over::Tcp(ends),
            },
            kinds: kinds.clone(),
            file_bytes: *file_bytes,
            service: *service,
            think: *think,
            starts,
        }),
        ApplicationKind::Copies {
            server,
            reader,
            disks,
            file_bytes,
            copies,
            remote,
            together,
            chunk_bytes,
            socket_bytes,
        } => ApplicationConfig::Copies(CopiesConfig {
            server: only(*server),
            reader: only(*reader),
            disks: *disks,
            file_bytes: *file_bytes,
            copies: *copies as usize,
            remote: *remote as usize,
            together: *together,
            chunk_bytes: *chunk_bytes,
            socket_bytes: *socket_bytes,
            ends,
            starts,
        }),
    }
}

/// Nobody sends to itself.
fn pairs(ways: &Ways, stations: &[Range<usize>]) -> Vec<(usize, usize)> {
    let of = |classes: &[usize]| -> Vec<usize> {
        classes
            .iter()
            .flat_map(|class| stations[*class].clone())
            .collect()
    };
    let (from, to) = (of(&ways.from), of(&ways.to));
    let all = from
        .iter()
        .flat_map(|from| to.iter().map(move |to| (*from, *to)));
    let pairs = all.filter(|(from, to)| from != to);
    pairs
        .flat_map(|pair| (0..ways.count).map(move |_| pair))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_of_a_class_has_a_way_to_everybody_of_the_other_but_himself() {
        let stations = [0..1, 1..4];
        let ways = Ways {
            from: vec![1],
            to: vec![0, 1],
            count: 1,
        };
        let expected = vec![
            (1, 0),
            (1, 2),
            (1, 3),
            (2, 0),
            (2, 1),
            (2, 3),
            (3, 0),
            (3, 1),
            (3, 2),
        ];
        assert_eq!(pairs(&ways, &stations), expected);
        let ways = Ways {
            from: vec![0],
            to: vec![0, 1],
            count: 2,
        };
        assert_eq!(
            pairs(&ways, &stations),
            [(0, 1), (0, 1), (0, 2), (0, 2), (0, 3), (0, 3)]
        );
    }
}
