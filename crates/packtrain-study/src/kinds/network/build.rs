//! The settings of a network as a fabric that can be run, and where in it everything is found again.

use core::ops::Range;

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::fabric::{
    Backpressure, DatagramsConfig, Ends, FabricConfig, FlowConfig, LineId, RouteConfig, Source,
    UNLIMITED_BYTES, VisitorsConfig,
};
use packtrain_sim::net::processing::ProcessingConfig;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};
use packtrain_sim::tcp::scoreboard;
use packtrain_sim::tcp::sender::{Reduction, SenderConfig};

use super::line::LineSettings;
use super::tcp::{Congestion, Counting, Detection, Halving, Preset, TcpSettings};
use super::{HEADER_BYTES, NetworkSettings, PathSettings, SourceSettings, Starts};

#[derive(Debug)]
pub struct Built {
    pub config: FabricConfig,
    /// Of each class of flows, its connections.
    pub flows: Vec<Range<u32>>,
    /// Of each class of datagrams, its stations.
    pub datagrams: Vec<Range<u32>>,
}

/// Of the classes, in the order flows, visitors, datagrams.
pub fn group(index: usize) -> u16 {
    u16::try_from(index).expect("no file has so many classes")
}

pub fn build(settings: &NetworkSettings, seed: u64) -> Built {
    let mut random = Random::new(seed);
    let lines = settings.lines.iter().map(wire).collect();
    let mut built = Built {
        config: FabricConfig {
            lines,
            seed: random.next(),
            ..FabricConfig::default()
        },
        flows: Vec::new(),
        datagrams: Vec::new(),
    };
    let mut groups = 0..;
    let mut next_group = || group(groups.next().expect("without end"));
    for class in &settings.flows {
        let group = next_group();
        let first = built.config.flows.len() as u32;
        for _ in 0..class.count {
            let route = built.route(&class.path);
            built.config.flows.push(FlowConfig {
                ends: ends(&class.tcp),
                route,
                group,
                starts: starts(&class.starts, &mut random),
                writes: match class.fed_by {
                    Some(_) => Vec::new(),
                    None => vec![(Duration::ZERO, class.writes.unwrap_or(UNLIMITED_BYTES))],
                },
                feeds: None,
            });
        }
        if let Some(by) = class.fed_by {
            let feeders = built.flows[by].clone();
            for (from, to) in feeders.zip(first..) {
                built.config.flows[from as usize].feeds = Some(to);
            }
        }
        built.flows.push(first..first + class.count);
    }
    for class in &settings.visitors {
        let group = next_group();
        let route = built.route(&class.path);
        built.config.visitors.push(VisitorsConfig {
            ends: ends(&class.tcp),
            routes: vec![route],
            group,
            arrivals: class.arrivals,
            sizes: class.sizes.clone(),
            at_once_max: class.at_once,
            starts: class.starts,
        });
    }
    for class in &settings.datagrams {
        let group = next_group();
        let first = built.config.datagrams.len() as u32;
        let route = built.route(&class.path);
        for _ in 0..class.count {
            built.config.datagrams.push(DatagramsConfig {
                route: route.clone(),
                group,
                source: source(&class.source),
                starts: starts(&class.starts, &mut random),
                reply_bytes: class.reply_bytes,
                ecn: class.ecn,
            });
        }
        built.datagrams.push(first..first + class.count);
    }
    built
}

impl Built {
    fn route(&mut self, path: &PathSettings) -> RouteConfig {
        let id = |line: &usize| *line as LineId;
        let interface = path.interface.as_ref().map(|line| {
            self.config.lines.push(wire(line));
            self.config.lines.len() as LineId - 1
        });
        RouteConfig {
            forward: interface
                .into_iter()
                .chain(path.forward.iter().map(id))
                .collect(),
            back: path.back.iter().map(id).collect(),
        }
    }
}

pub fn wire(line: &LineSettings) -> WireConfig {
    let mut wire = line.wire.config();
    wire.processing = line.processing.map(|processing| ProcessingConfig {
        per_unit: processing.time,
        masked: processing.masked,
    });
    wire.arq = line.arq;
    wire.fec = line.fec;
    wire
}

fn starts(starts: &Starts, random: &mut Random) -> Duration {
    random.duration(starts.first, starts.last)
}

fn source(settings: &SourceSettings) -> Source {
    match settings {
        SourceSettings::Drawn { arrivals, sizes } => Source::Drawn {
            arrivals: *arrivals,
            sizes: sizes.clone(),
        },
        SourceSettings::AfterReply {
            think,
            patience,
            packet_bytes,
        } => Source::AfterReply {
            think: *think,
            patience: *patience,
            packet_bytes: *packet_bytes,
        },
        SourceSettings::Capture(packets) => Source::Given(packets.clone()),
    }
}

pub fn ends(tcp: &TcpSettings) -> Ends {
    let mut ends = Ends {
        sender: sender(tcp),
        ..Ends::default()
    };
    if let Some(delay) = tcp.delayed_ack {
        ends.receiver.delayed_ack = delay;
    }
    if let Some(bytes) = tcp.window_bytes {
        ends.receiver.window_bytes = bytes;
    }
    if let Some(frames) = tcp.backpressure {
        ends.backpressure = match frames {
            Some(frames) => Backpressure::Frames(frames as usize),
            None => Backpressure::None,
        };
    }
    ends
}

/// Of its data units, as IP counts them.
pub fn packet_bytes_max(tcp: &TcpSettings) -> u32 {
    sender(tcp).mss + HEADER_BYTES
}

/// What the file does not say is as the preset has it, unless what it says excludes that.
fn sender(tcp: &TcpSettings) -> SenderConfig {
    let preset = match tcp.preset {
        Some(Preset::Linux) => SenderConfig::linux(),
        None => SenderConfig::default(),
    };
    let cubic = tcp
        .congestion
        .map_or(preset.cubic, |congestion| congestion == Congestion::Cubic);
    let detection = tcp
        .detection
        .map_or(preset.detection, |detection| match detection {
            Detection::Reno => scoreboard::Detection::RENO,
            Detection::NewReno => scoreboard::Detection::NEW_RENO,
            Detection::Sack => scoreboard::Detection::Sack,
            Detection::Rack => scoreboard::Detection::Rack,
        });
    let is_rack = detection == scoreboard::Detection::Rack;
    SenderConfig {
        mss: tcp.mss.unwrap_or(preset.mss),
        initial_window_segments: tcp
            .initial_window_segments
            .unwrap_or(preset.initial_window_segments),
        ssthresh_segments: tcp.ssthresh_segments.or(preset.ssthresh_segments),
        spacing: tcp.spacing.map(|precision| SpacingConfig {
            precision,
            path: None,
            round_trip: RoundTrip::Least,
        }),
        auto: tcp.auto.unwrap_or(preset.auto),
        cubic,
        cubic_holds: preset.cubic_holds,
        counts_acknowledgements: tcp.counting == Some(Counting::Acknowledgements),
        hystart: cubic && tcp.hystart.unwrap_or(preset.hystart),
        detection,
        recovery: tcp
            .halving
            .map_or(preset.recovery, |halving| match halving {
                Halving::Classic => Reduction::Halving,
                Halving::Prr => Reduction::Prr,
            }),
        tail_probe: is_rack && tcp.tail_probe.unwrap_or(preset.tail_probe),
        ecn: tcp.ecn.unwrap_or(preset.ecn),
        record: false,
    }
}

/// The time at which a run is over so much.
pub fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}
