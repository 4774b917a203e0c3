//! The engine is the reference: the same schedule of frames comes out the same, whether kernels carry a good part
//! of it past the engines or none. Wires lose nothing here, so *the same* is each frame of each flow, in its
//! order.

use packtrain_proto::class::{Action, Class, ClassPath};
use packtrain_proto::config::{Config, LinkId, NodeId};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_sim::checker::record::Record;
use packtrain_sim::checker::{Checkers, StationFacts};
use packtrain_sim::event_queue::EventQueue;
use packtrain_sim::host::kernel::{Cards, DirectCounters, Kernel};
use packtrain_sim::host::{Host, Pace};
use packtrain_sim::net::cut::{Cut, Outage};
use packtrain_sim::net::jitter::{JitterConfig, JitterDistribution};
use packtrain_sim::net::network::{Network, PortId, SegmentConfig, SegmentKind};
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::scenario::draw;
use packtrain_sim::simulator::{Event, Simulator, Source, Station, StationId};
use packtrain_sim::workload::Arrivals;
use packtrain_sim::workload::flow::{Dress, Flow, Recipient};

const RATE_BPS: u64 = 1_000_000_000;
const MTU: u16 = 1500;
const FLOWS: u16 = 8;
/// Peers have met, and every path is open.
const START: Duration = Duration::from_secs(3);
const REST: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
struct Line {
    /// Of each cable, there as back.
    delays: Vec<Duration>,
    /// What is added to it, at most.
    jitter_max: Duration,
    cards: Cards,
    /// What the classes let links take with them.
    loss_ok: bool,
    /// Of each cable: from when to when it has no carrier.
    cuts: Vec<Vec<(Duration, Duration)>>,
    /// Of each flow.
    frames: u32,
    seed: u64,
}

impl Line {
    fn over(delays: &[Duration]) -> Line {
        Line {
            delays: delays.to_vec(),
            jitter_max: Duration::ZERO,
            cards: Cards::All,
            loss_ok: delays.len() > 1,
            cuts: vec![Vec::new(); delays.len()],
            frames: 4000,
            seed: 1,
        }
    }

    fn longest(&self) -> Duration {
        self.delays.iter().copied().max().expect("a cable")
    }
}

/// What came of a schedule.
struct Outcome {
    record: Record,
    counters: DirectCounters,
    frames_sent: u64,
}

fn pt0(n: usize) -> MacAddr {
    draw::addresses(n as u8).0
}

/// One in four is of frames that a card cuts, as TCP's are.
fn flow(index: u16) -> Flow {
    let (from, to) = (usize::from(index % 2), usize::from(1 - index % 2));
    let is_cut = index / 2 == 3;
    Flow {
        index,
        from: StationId(from),
        to: Recipient::Station(StationId(to)),
        source: pt0(from),
        destination: pt0(to),
        vlan: None,
        dress: match is_cut {
            true => Dress::Tcp { timestamps: true },
            false => Dress::Udp,
        },
        ipv6: index % 4 == 1,
        segment_len: is_cut.then_some(1000),
        partial_checksum: is_cut,
        ecn: false,
        content_len: if is_cut { (100, 8000) } else { (12, 1400) },
        seed: index.into(),
    }
}

fn cable(line: &Line, number: usize) -> SegmentConfig {
    let mut wire = WireConfig::perfect(RATE_BPS, line.delays[number]);
    wire.jitter = (!line.jitter_max.is_zero()).then_some(JitterConfig {
        distribution: JitterDistribution::Queue {
            max: line.jitter_max,
        },
        keeps_order: true,
    });
    let outages = line.cuts[number].iter().map(|&(from, to)| Outage {
        from: Instant::ZERO + from,
        until: Instant::ZERO + to,
        seen: true,
        lag: [Duration::ZERO; 2],
        port: None,
    });
    SegmentConfig {
        kind: SegmentKind::Cable,
        mtu: MTU,
        carries_offload: number.is_multiple_of(2),
        up: vec![wire; 2],
        down: Vec::new(),
        cut: Cut::new(outages.collect()),
    }
}

/// All frames are of one class, that goes this way.
fn host(n: usize, path: ClassPath, line: &Line, network: &Network) -> (Host, Vec<PortId>) {
    let mut config = Config::new(NodeId(n as u64 + 1), pt0(n));
    config.mtu = MTU;
    let mut host = Host::new(StationId(n), config, Pace::prompt(), Instant::ZERO);
    let random = Random::new(line.seed + n as u64);
    host.give_kernel(Kernel::new(line.cards, random), Instant::ZERO);
    host.give_classes(vec![Class {
        name: "all".parse().expect("a right name"),
        matches: "any".parse().expect("a right match"),
        links: Vec::new(),
        action: Action {
            path,
            loss_ok: line.loss_ok,
            ..Action::default()
        },
    }]);
    let port_of = |segment| PortId { segment, port: n };
    let ports: Vec<PortId> = (0..line.delays.len()).map(port_of).collect();
    for (link, &port) in (0..).zip(&ports) {
        let address = draw::link_address(n as u8, link);
        host.add_link(LinkId(link), port, address, network);
    }
    (host, ports)
}

fn run(line: &Line, path: ClassPath) -> Outcome {
    let flows: Vec<Flow> = (0..FLOWS).map(flow).collect();
    let facts = [0, 1].map(|n| StationFacts {
        address: pt0(n),
        packtrain: true,
        promiscuous: false,
    });
    let segments: Vec<SegmentConfig> = (0..line.delays.len()).map(|n| cable(line, n)).collect();
    let mut faults = draw::faults(&segments[0].up);
    faults.moves_home = line.delays.len() > 1;
    let mut checkers = Checkers::new(flows, facts.into(), faults);
    checkers.keep_record();
    let mut queue = EventQueue::default();
    let network = Network::new(segments, &mut Random::new(line.seed), &mut queue);
    let mut simulator = Simulator::new(network, queue, checkers);
    for n in 0..2 {
        let (host, ports) = host(n, path, line, &simulator.network);
        simulator.add(Station::Packtrain(Box::new(host)), &ports);
    }
    for number in 0..usize::from(FLOWS) {
        simulator.add_source(source(line, number), Instant::ZERO + START);
    }
    let traffic = source(line, 0).arrivals.mean_gap() * line.frames;
    close_links_again_and_again(&mut simulator, line, traffic);
    simulator.start();
    simulator.run_for(START + traffic * 2 + REST);
    assert_eq!(simulator.checkers.violation(), None, "{line:?} {path:?}");
    let counters = simulator.hosts().map(Host::direct_counters);
    let counters = counters.fold(DirectCounters::default(), |sum, host| DirectCounters {
        direct: sum.direct + host.direct,
        engine: sum.engine + host.engine,
        returns: sum.returns + host.returns,
        congested: sum.congested + host.congested,
        came: sum.came + host.came,
    });
    Outcome {
        record: simulator.checkers.record().expect("kept").clone(),
        counters,
        frames_sent: simulator.checkers.frames_sent(),
    }
}

/// Bursts, and between them rests of more than a round trip, in which flows change.
fn source(line: &Line, flow: usize) -> Source {
    Source {
        flow,
        arrivals: Arrivals::Bursts {
            frames: 5,
            mean_gap: Duration::from_millis(5) + line.longest() * 16,
        },
        random: Random::new(line.seed ^ (flow as u64) << 8),
        next_sequence: 0,
        remaining: line.frames,
    }
}

fn close_links_again_and_again(simulator: &mut Simulator, line: &Line, traffic: Duration) {
    let mut random = Random::new(line.seed ^ 0x636c_6f73_6564);
    for n in 0..2 {
        let station = StationId(n);
        let mut at = START;
        while at < START + traffic {
            // More than a round trip later, as a rule.
            let segment = random.below(line.delays.len() as u64) as usize;
            let port = Some(PortId { segment, port: n });
            at += random.duration(
                Duration::from_millis(1),
                Duration::from_millis(15) + line.longest() * 16,
            );
            let closes = Event::ToggleDirect { station, port };
            simulator.queue.push(Instant::ZERO + at, closes);
            at += random.duration(Duration::ZERO, Duration::from_millis(4));
            let opens = Event::ToggleDirect {
                station,
                port: None,
            };
            simulator.queue.push(Instant::ZERO + at, opens);
        }
    }
}

/// Runs it with and without the kernel path. What the first one counted.
fn comes_out_the_same(line: &Line) -> DirectCounters {
    let [direct, engine] = [ClassPath::Auto, ClassPath::Engine].map(|path| run(line, path));
    assert_eq!(
        direct.frames_sent,
        u64::from(FLOWS) * u64::from(line.frames)
    );
    assert_eq!(direct.frames_sent, engine.frames_sent);
    for number in 0..FLOWS {
        let flow = flow(number);
        let segments = |sequence| (0..flow.segment_count(sequence)).map(move |s| (sequence, s));
        let sent: Vec<_> = (0..line.frames).flat_map(segments).collect();
        let came = [&direct, &engine].map(|outcome| outcome.record.of(number.into()));
        assert_eq!(came[1], sent, "flow {number} by the engine, {line:?}");
        assert_eq!(came[0], came[1], "flow {number}, {line:?}");
    }
    let by_engine = engine.counters;
    assert_eq!(
        (by_engine.direct, by_engine.came, by_engine.returns),
        (0, 0, 0)
    );
    assert_eq!(by_engine.engine, engine.frames_sent);
    let counters = direct.counters;
    assert_eq!(counters.direct + counters.engine, direct.frames_sent);
    println!("{line:?}\n  {counters:?}");
    counters
}

/// A good part went directly, and flows changed all the time.
fn assert_many_change(counters: &DirectCounters) {
    let sent = counters.direct + counters.engine;
    assert!(counters.direct > sent / 3, "{counters:?}");
    assert!(counters.engine > sent / 50, "{counters:?}");
    assert!(counters.returns > 200, "{counters:?}");
}

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn over_one_link_the_same_frames_come_out_in_the_same_order() {
    for cards in [Cards::None, Cards::All] {
        for delay in [us(10), us(500), us(10_000)] {
            let line = Line {
                cards,
                ..Line::over(&[delay])
            };
            assert_many_change(&comes_out_the_same(&line));
        }
    }
}

#[test]
fn over_several_links_the_same_frames_come_out_in_the_same_order() {
    for delays in [
        vec![us(10), us(10)],
        vec![us(50), us(2_500)],
        vec![us(10), us(200), us(4_000)],
    ] {
        assert_many_change(&comes_out_the_same(&Line::over(&delays)));
    }
}

#[test]
fn where_delays_vary_the_same_frames_come_out_in_the_same_order() {
    for delays in [vec![us(300)], vec![us(100), us(1_000)]] {
        let line = Line {
            jitter_max: us(2_000),
            seed: 2,
            ..Line::over(&delays)
        };
        assert_many_change(&comes_out_the_same(&line));
    }
}

/// Links are cut in turns, and no class lets a link take frames with it: while both are well all go by the
/// engines, and while one is all alone they go past them.
#[test]
fn with_links_that_are_cut_in_turns_the_same_frames_come_out_in_the_same_order() {
    let s = Duration::from_secs;
    let line = Line {
        loss_ok: false,
        cuts: vec![vec![(s(4), s(6)), (s(12), s(14))], vec![(s(8), s(10))]],
        frames: 10_000,
        ..Line::over(&[us(50), us(300)])
    };
    let counters = comes_out_the_same(&line);
    let sent = counters.direct + counters.engine;
    assert!(counters.direct > sent / 10, "{counters:?}");
    assert!(counters.engine > sent / 10, "{counters:?}");
    assert!(counters.returns > 100, "{counters:?}");
}
