//! Two hosts over some cables, and flows from one to the other.

use packtrain_proto::class::Class;
use packtrain_proto::config::{Config, LinkId, LinkSettings, NodeId};
use packtrain_proto::engine::Event as EngineEvent;
use packtrain_proto::stats::{LinkSnapshot, PathState, Snapshot};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_sim::checker::{Checkers, StationFacts};
use packtrain_sim::event_queue::EventQueue;
use packtrain_sim::host::{Host, Pace};
use packtrain_sim::net::cut::Cut;
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::network::{Network, PortId, SegmentConfig, SegmentKind};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::scenario::draw;
use packtrain_sim::simulator::{Event, Simulator, Source, Station, StationId};
use packtrain_sim::workload::Arrivals;
use packtrain_sim::workload::flow::{Dress, Flow, Recipient};

/// Peers have met, and every path is open.
pub const START: Duration = Duration::from_secs(3);

fn pt0(n: usize) -> MacAddr {
    draw::addresses(n as u8).0
}

#[derive(Clone, Copy, Debug)]
pub struct Cable {
    pub mbit: u64,
    pub delay: Duration,
    /// Of what either end sends.
    pub loss: Option<f64>,
    /// What its ends say that it carries, if that is not so.
    pub said_mbit: Option<u64>,
    /// At both ends.
    pub settings: LinkSettings,
}

impl Cable {
    pub fn new(mbit: u64, delay_ms: u64) -> Cable {
        Cable {
            mbit,
            delay: Duration::from_millis(delay_ms),
            loss: None,
            said_mbit: None,
            settings: LinkSettings::default(),
        }
    }

    pub fn loses(mut self, part: f64) -> Cable {
        self.loss = Some(part);
        self
    }

    /// Its ends take more than a switch between them passes on.
    pub fn says(mut self, mbit: u64) -> Cable {
        self.said_mbit = Some(mbit);
        self
    }

    pub fn weight(mut self, weight: u8) -> Cable {
        self.settings.weight = weight;
        self
    }

    pub fn tier(mut self, tier: u8) -> Cable {
        self.settings.tier = tier;
        self
    }

    fn segment(&self) -> SegmentConfig {
        let bps = self.mbit * 1_000_000;
        let wire = WireConfig {
            loss: self
                .loss
                .map(|probability| LossConfig::Bernoulli { probability }),
            ..WireConfig::perfect(bps, self.delay)
        };
        let (kind, up, down) = match self.said_mbit {
            None => (SegmentKind::Cable, wire, Vec::new()),
            Some(mbit) => {
                let up = WireConfig::perfect(mbit * 1_000_000, Duration::ZERO);
                (SegmentKind::Switch, up, vec![wire; 2])
            }
        };
        SegmentConfig {
            kind,
            mtu: 1500,
            carries_offload: false,
            up: vec![up; 2],
            down,
            cut: Cut::default(),
        }
    }
}

pub struct Line {
    pub simulator: Simulator,
    flows: usize,
}

impl Line {
    /// Flows of UDP datagrams of so many bytes, each from ports and, every second one, addresses of its own.
    pub fn new(cables: &[Cable], flows: usize, bytes: usize, set: impl Fn(&mut Config)) -> Line {
        let flow = |index: usize| Flow {
            index: index as u16,
            from: StationId(0),
            to: Recipient::Station(StationId(1)),
            source: pt0(0),
            destination: pt0(1),
            vlan: None,
            dress: Dress::Udp,
            ipv6: index % 2 == 1,
            segment_len: None,
            partial_checksum: false,
            ecn: false,
            content_len: (bytes, bytes),
            seed: index as u64,
        };
        let facts = [0, 1].map(|n| StationFacts {
            address: pt0(n),
            packtrain: true,
            promiscuous: false,
        });
        let segments: Vec<SegmentConfig> = cables.iter().map(Cable::segment).collect();
        let faults = draw::faults(&segments[0].up);
        let checkers = Checkers::new((0..flows).map(flow).collect(), facts.into(), faults);
        let mut queue = EventQueue::default();
        let network = Network::new(segments, &mut Random::new(1), &mut queue);
        let mut simulator = Simulator::new(network, queue, checkers);
        for n in 0..2 {
            let mut config = Config::new(NodeId(n as u64 + 1), pt0(n));
            // Bytes on the wire are those of the frames.
            config.coded_trains = false;
            // Bytes are counted here, and what is asked of idle links would be among them.
            config.detection_time = None;
            set(&mut config);
            let mut host = Host::new(StationId(n), config, Pace::prompt(), Instant::ZERO);
            let port = |segment| PortId { segment, port: n };
            for (at, cable) in cables.iter().enumerate() {
                let address = draw::link_address(n as u8, at as u8);
                let id = LinkId(at as u8);
                host.add_link(id, port(at), address, &simulator.network);
                host.give_link_settings(port(at), cable.settings);
            }
            let ports: Vec<PortId> = (0..cables.len()).map(port).collect();
            simulator.add(Station::Packtrain(Box::new(host)), &ports);
        }
        simulator.start();
        simulator.run_for(START);
        Line { simulator, flows }
    }

    /// Each flow sends a datagram each `gap` for so long; then what waits has a while to leave.
    pub fn send(&mut self, gap: Duration, time: Duration, rest: Duration) {
        self.begin(gap, time);
        self.simulator.run_for(time + rest);
        assert_eq!(self.simulator.checkers.violation(), None);
    }

    pub fn begin(&mut self, gap: Duration, time: Duration) {
        for flow in 0..self.flows {
            // Not all at once.
            let after = gap * flow as u32 / self.flows as u32;
            self.begin_flow(flow, after, gap, time);
        }
    }

    /// This one, so much later.
    pub fn begin_flow(&mut self, flow: usize, after: Duration, gap: Duration, time: Duration) {
        let source = Source {
            flow,
            arrivals: Arrivals::OnOff {
                frames: 1,
                gap,
                pause: gap,
            },
            random: Random::new(flow as u64),
            next_sequence: self.simulator.checkers.frames_sent() as u32,
            remaining: (time.as_nanos() / gap.as_nanos()) as u32,
        };
        self.simulator
            .add_source(source, self.simulator.now() + after);
    }

    /// The process of this station does not run for so long, so much later.
    pub fn stop(&mut self, station: usize, after: Duration, time: Duration) {
        let at = self.simulator.now() + after;
        let event = Event::Stop {
            station: StationId(station),
            until: at + time,
        };
        self.simulator.queue.push(at, event);
    }

    pub fn sender(&self) -> Snapshot {
        let host = self.simulator.hosts().next().expect("two");
        host.snapshot(self.simulator.now())
    }

    pub fn receiver(&self) -> Snapshot {
        let host = self.simulator.hosts().nth(1).expect("two");
        host.snapshot(self.simulator.now())
    }

    /// What each link of the sender is used for.
    pub fn states(&self) -> Vec<PathState> {
        let mut paths = self.sender().peers[0].paths.clone();
        paths.sort_by_key(|path| path.link);
        paths.iter().map(|path| path.state).collect()
    }

    /// Bytes that each link of the sender has sent.
    pub fn sent(&self) -> Vec<u64> {
        let bytes = |link: &LinkSnapshot| link.tx.bytes;
        self.sender().links.iter().map(bytes).collect()
    }

    pub fn set(&mut self, cable: usize, settings: LinkSettings) {
        for n in 0..2 {
            let event = Event::LinkSettings {
                station: StationId(n),
                port: PortId {
                    segment: cable,
                    port: n,
                },
                settings,
            };
            self.simulator.queue.push(self.simulator.now(), event);
        }
    }

    /// The sender's frames are of these classes, so much later.
    pub fn give(&mut self, classes: Vec<Class>, after: Duration) {
        let event = Event::Classes {
            station: StationId(0),
            classes,
        };
        self.simulator
            .queue
            .push(self.simulator.now() + after, event);
    }

    /// The sender's changes of tiers.
    pub fn tier_changes(&self) -> Vec<(u8, u8)> {
        let host = self.simulator.hosts().next().expect("two");
        let changes = host.events.iter().filter_map(|event| match event {
            EngineEvent::TierChanged { from, to, .. } => Some((*from, *to)),
            _ => None,
        });
        changes.collect()
    }
}
