//! Small cases by pencil, and what packtrain's hosts must do to them.

use packtrain_proto::time::{Duration, Instant};

use super::*;
use crate::fabric::Ends;
use crate::net::cut::{Cut, Outage};
use crate::net::loss::LossConfig;
use crate::net::network::{PortId, SegmentConfig};

const PORTS: [PortId; 2] = [
    PortId {
        segment: 0,
        port: 0,
    },
    PortId {
        segment: 0,
        port: 1,
    },
];
/// Hosts that run packtrain have met by then.
const MET: Duration = Duration::from_millis(100);

fn station(packtrain: bool, ports: &[PortId]) -> StationConfig {
    match packtrain {
        true => StationConfig::packtrain(ports),
        false => StationConfig::plain(ports[0]),
    }
}

/// Two hosts on a cable of 100 Mbit/s and a microsecond.
fn pair(packtrain: bool, application: ApplicationConfig) -> Stations {
    Stations::new(Setup {
        segments: vec![segments::cable(100_000_000, Duration::from_micros(1))],
        stations: PORTS.map(|port| station(packtrain, &[port])).to_vec(),
        applications: vec![application],
        seed: 1,
    })
}

fn ping_pong(packtrain: bool, bytes: u64) -> Stations {
    let config = PingPongConfig {
        pairs: vec![(0, 1)],
        bytes,
        turnaround: Duration::ZERO,
        ends: Ends::default(),
        starts: MET,
    };
    pair(packtrain, ApplicationConfig::PingPong(config))
}

fn bulk(streams: &[(usize, usize)]) -> ApplicationConfig {
    ApplicationConfig::Bulk(BulkConfig {
        streams: streams.to_vec(),
        ends: Ends::default(),
        starts: MET,
    })
}

/// What happens in so much time after the hosts have met, and begun.
fn after_a_while(mut stations: Stations, time: Duration) -> Stations {
    stations.run_for(MET + Duration::from_millis(50));
    stations.begin_counting();
    stations.run_for(time);
    stations
}

#[test]
fn a_block_goes_to_and_fro_in_the_time_that_its_frames_and_their_acknowledgements_take() {
    let stations = after_a_while(ping_pong(false, 100), Duration::from_millis(20));
    let report = stations.report(0);
    // 178 bytes on the wire; before it the acknowledgement of the last one, of 84; and the cable.
    let one_way = Duration::from_nanos(14_240 + 6_720 + 1_000);
    assert_eq!(report.times.mean(), 2 * one_way);
    assert_eq!(report.times.quantile(0.0).as_nanos() / 1000, 43);
    assert_eq!(report.done, 20_000_000 / 43_920);
    assert!(stations.longest_pause(0) <= one_way);
}

#[test]
fn blocks_of_packtrains_hosts_take_no_longer_than_the_others_and_a_few_frames() {
    for bytes in [20, 1460, 20_000] {
        let plain = after_a_while(ping_pong(false, bytes), Duration::from_millis(50));
        let packed = after_a_while(ping_pong(true, bytes), Duration::from_millis(50));
        let (plain, packed) = (plain.report(0).times.mean(), packed.report(0).times.mean());
        println!("{bytes}: {plain:?} {packed:?}");
        assert!(
            packed < plain + Duration::from_micros(30),
            "{bytes}: {plain:?} {packed:?}"
        );
    }
}

#[test]
fn bulk_has_what_headers_leave_of_the_line() {
    let line_bps = 1e8 * 1460.0 / 1538.0;
    for packtrain in [false, true] {
        let stations = pair(packtrain, bulk(&[(0, 1)]));
        let stations = after_a_while(stations, Duration::from_millis(500));
        let ratio = stations.goodput_bps(0) / line_bps;
        println!("packtrain {packtrain}: {ratio}");
        assert!((ratio - 1.0).abs() < 0.01, "packtrain {packtrain}: {ratio}");
        assert_eq!(stations.senders(0).retransmitted, 0);
        let delivered: u64 = stations.delivered(0).sum();
        assert!(delivered > stations.report(0).bytes, "some came before");
    }
}

/// Seven clients and a server on a hub of 10 Mbit/s.
fn shared(packtrain: bool, over: Over) -> Stations {
    let port = |port| PortId { segment: 0, port };
    let ports = (0..8).map(port);
    let application = TransactionsConfig {
        server: 0,
        clients: (1..8).collect(),
        at_once: 8,
        over,
        kinds: TransactionKind::postmark(),
        file_bytes: (10, 500),
        service: Duration::from_micros(100),
        think: Duration::from_micros(100),
        starts: MET,
    };
    let stations = Stations::new(Setup {
        segments: vec![segments::hub(10_000_000, 8)],
        stations: ports.map(|port| station(packtrain, &[port])).collect(),
        applications: vec![ApplicationConfig::Transactions(application)],
        seed: 3,
    });
    after_a_while(stations, Duration::from_millis(1000))
}

#[test]
fn on_a_hub_aggregation_makes_fewer_frames_and_collisions_of_as_many_transactions() {
    for over in [Over::udp(), Over::Tcp(Ends::default())] {
        let [plain, packed] = [false, true].map(|packtrain| shared(packtrain, over));
        let done = |stations: &Stations| stations.report(0).done as f64;
        let (before, after) = (plain.counts().segments[0], packed.counts().segments[0]);
        println!("{} {before:?}\n{} {after:?}", done(&plain), done(&packed));
        assert!(done(&packed) > 0.9 * done(&plain));
        let each = |count: u64, stations: &Stations| count as f64 / done(stations);
        assert!(each(after.frames, &packed) < 0.9 * each(before.frames, &plain));
        let (before, after) = (before.failed_attempts, after.failed_attempts);
        assert!(each(after, &packed) < 0.9 * each(before, &plain));
    }
}

#[test]
fn what_waits_for_a_hubs_medium_stands_in_the_local_queue_until_it_has_left() {
    use crate::event_queue::EventQueue;
    use crate::frame::Frame;
    use crate::net::network::{NetEvent, Network, Outcome};
    use crate::random::Random;
    use packtrain_proto::offload::Offload;

    let mut events = EventQueue::<NetEvent>::default();
    let hub = segments::hub(10_000_000, 2);
    let mut network = Network::new(vec![hub], &mut Random::new(1), &mut events);
    let frame = |len: usize| Frame::new(vec![2; len], Offload::NONE);
    for len in [1000, 500] {
        let sent = network.transmit(PORTS[0], frame(len), Instant::ZERO, &mut events);
        assert_eq!(sent, Ok(()));
    }
    assert_eq!(network.rate_bps(PORTS[0]), Some(10_000_000));
    let mut seen = Vec::new();
    while let Some((at, event)) = events.pop() {
        if let Outcome::MediumDrained { segment: 0 } = network.handle(event, at, &mut events) {
            seen.push((at.as_nanos() / 1000, network.local_queue_bytes(PORTS[0])));
        }
    }
    // With preamble and check sequence 1012 bytes; a gap of 12, and 512.
    assert_eq!(seen, [(809, 500), (1228, 0)]);
}

/// A server with links of 100 Mbit/s and one with a link of 1 Gbit/s, on a switch; the server's last
/// one is cut in this time.
fn trunk(links: usize, cut: Option<(Duration, Duration)>, seen: bool) -> Stations {
    let mut rates = vec![100_000_000; links];
    rates.push(1_000_000_000);
    let mut switch = segments::switch(&rates, Duration::from_micros(1));
    if let Some((from, until)) = cut {
        switch.cut = Cut::new(vec![Outage {
            from: Instant::ZERO + from,
            until: Instant::ZERO + until,
            seen,
            lag: [Duration::ZERO; 2],
            port: Some(links - 1),
        }]);
    }
    let port = |port| PortId { segment: 0, port };
    let of_server: Vec<PortId> = (0..links).map(port).collect();
    Stations::new(Setup {
        segments: vec![switch],
        stations: vec![
            StationConfig::packtrain(&of_server),
            StationConfig::packtrain(&[port(links)]),
        ],
        applications: vec![bulk(&[(0, 1)])],
        seed: 1,
    })
}

#[test]
fn two_links_carry_what_two_can_and_a_dead_one_leaves_what_one_can() {
    let time = Duration::from_millis(500);
    let goodput = |stations| after_a_while(stations, time).goodput_bps(0);
    let forever = (Duration::ZERO, Duration::from_secs(1000));
    let one = goodput(trunk(1, None, true));
    let dead = goodput(trunk(2, Some(forever), true));
    let two = goodput(trunk(2, None, true));
    println!("{one} {dead} {two}");
    // Who has two links packs full frames too, in trains with headers of their own.
    assert!((0.96..1.01).contains(&(dead / one)), "{one} {dead}");
    assert!((1.85..2.01).contains(&(two / one)), "{one} {two}");
}

#[test]
fn when_a_link_is_cut_the_others_go_on() {
    let cut = (Duration::from_millis(400), Duration::from_millis(1000));
    // Cards tell at once; else four messages of ten milliseconds have to be missing.
    for (seen, pause_max_ms) in [(true, 10), (false, 200)] {
        let stations = trunk(2, Some(cut), seen);
        let stations = after_a_while(stations, Duration::from_millis(1000));
        let pause = stations.longest_pause(0);
        println!("seen {seen}: {pause:?}");
        assert!(pause < Duration::from_millis(pause_max_ms), "{pause:?}");
        assert!(stations.counts().segments[0].cut > 0, "the cut met nothing");
        let ports = &stations.counts().stations[0].ports;
        assert!(ports[1].bytes > 0 && ports[1].bytes < ports[0].bytes);
    }
}

#[test]
fn what_nobody_gets_any_more_is_a_pause_that_lasts() {
    let cut = (Duration::from_millis(400), Duration::from_secs(1000));
    let stations = after_a_while(trunk(1, Some(cut), true), Duration::from_millis(500));
    let pause = stations.longest_pause(0);
    let expected = MET + Duration::from_millis(50 + 500) - cut.0;
    assert!(
        pause >= expected && pause < expected + Duration::from_millis(2),
        "{pause:?}"
    );
}

/// RFC 6675 does not find out that what went again is lost again: that is left to the timer. A queue that the window
/// fills to the last byte takes nothing that no acknowledgement has made room for, and so what the timer sends least of all.
#[test]
fn a_sender_whose_repairs_are_lost_is_not_shut_out_by_the_queue_that_it_has_filled() {
    for links in [1, 2] {
        let mut rates = vec![100_000_000; links];
        rates.push(1_000_000_000);
        let port = |port| PortId { segment: 0, port };
        let of_server: Vec<PortId> = (0..links).map(port).collect();
        let stations = Stations::new(Setup {
            segments: vec![segments::switch(&rates, Duration::from_micros(1))],
            stations: vec![
                StationConfig::packtrain(&of_server),
                StationConfig::packtrain(&[port(links)]),
            ],
            applications: vec![bulk(&[(1, 0)])],
            seed: 1,
        });
        let stations = after_a_while(stations, Duration::from_millis(1500));
        println!(
            "{links} links: {} {:?}",
            stations.goodput_bps(0),
            stations.senders(0)
        );
        assert!(
            stations.goodput_bps(0) > 60e6,
            "{links} links: {}",
            stations.goodput_bps(0)
        );
    }
}

#[test]
fn a_flood_fills_the_line_and_replaces_what_is_lost() {
    for (packtrain, loss) in [(false, None), (true, None), (false, Some(0.1))] {
        let mut cable = segments::cable(100_000_000, Duration::from_micros(1));
        cable.up[0].loss = loss.map(|probability| LossConfig::Bernoulli { probability });
        let flood = FloodConfig {
            streams: vec![(0, 1)],
            bytes: 1000,
            under_way: 32,
            starts: MET,
        };
        let stations = Stations::new(Setup {
            segments: vec![cable],
            stations: PORTS.map(|port| station(packtrain, &[port])).to_vec(),
            applications: vec![ApplicationConfig::Flood(flood)],
            seed: 1,
        });
        let stations = after_a_while(stations, Duration::from_millis(500));
        let came = stations.goodput_bps(0) / 1e8;
        println!("{packtrain} {loss:?}: {came}");
        let lost = stations.report(0).lost as f64 / (500e-3 * 1e8 / 8.0 / 1066.0);
        match loss {
            None => assert!(came > 0.92 && lost == 0.0, "{packtrain}: {came} {lost}"),
            Some(_) => assert!((0.08..0.12).contains(&lost) && came > 0.8, "{came} {lost}"),
        }
    }
}

fn copies(remote: usize) -> Stations {
    let config = CopiesConfig {
        server: 0,
        reader: 1,
        disks: Disks {
            bytes_per_s: 40_000_000,
            seek: Duration::from_millis(1),
        },
        file_bytes: 1 << 20,
        copies: 8,
        remote,
        together: false,
        chunk_bytes: 64 << 10,
        socket_bytes: 64 << 10,
        ends: Ends::default(),
        starts: MET,
    };
    let stations = pair(false, ApplicationConfig::Copies(config));
    after_a_while(stations, Duration::from_secs(2))
}

#[test]
fn local_copies_have_the_disks_and_remote_ones_the_line() {
    // A chunk and a seek: eight copies never ask for what follows.
    let chunk_s = 65_536.0 / 40e6 + 1e-3;
    let disks = copies(0).report(0).bytes as f64 / 2.0;
    assert!((disks * chunk_s / 65_536.0 - 1.0).abs() < 0.02, "{disks}");
    let line = copies(8).report(0).bytes as f64 / 2.0;
    let line_bytes_per_s = 1e8 / 8.0 * 1460.0 / 1538.0;
    assert!((line / line_bytes_per_s - 1.0).abs() < 0.02, "{line}");
}

#[test]
fn a_lost_request_is_sent_again() {
    let mut cable = segments::cable(100_000_000, Duration::from_micros(1));
    cable.up[0].loss = Some(LossConfig::Bernoulli { probability: 0.05 });
    let timeout = Duration::from_millis(5);
    let stations = with_requests(cable, timeout);
    let report = stations.report(0);
    println!("{} {}", report.done, report.again);
    let steps = 9.0 / 4.0 * report.done as f64;
    let share = report.again as f64 / steps;
    assert!((0.03..0.08).contains(&share), "{share}");
    assert!(report.times.quantile(0.99) > timeout);
}

fn with_requests(cable: SegmentConfig, timeout: Duration) -> Stations {
    let application = TransactionsConfig {
        server: 1,
        clients: vec![0],
        at_once: 2,
        over: Over::Udp { timeout },
        kinds: TransactionKind::postmark(),
        file_bytes: (10, 500),
        service: Duration::from_micros(50),
        think: Duration::from_micros(10),
        starts: MET,
    };
    let stations = Stations::new(Setup {
        segments: vec![cable],
        stations: PORTS.map(StationConfig::plain).to_vec(),
        applications: vec![ApplicationConfig::Transactions(application)],
        seed: 1,
    });
    after_a_while(stations, Duration::from_millis(500))
}

#[test]
fn a_seed_gives_the_same_run() {
    let run = || {
        let stations = shared(true, Over::udp());
        let report = stations.report(0);
        (report.done, report.bytes, stations.counts())
    };
    assert_eq!(run(), run());
}

/// All that was under way is gone, and nothing comes that would tell.
#[test]
fn a_flood_goes_on_after_everything_of_it_was_lost_at_once() {
    let from = Duration::from_millis(500);
    for packtrain in [false, true] {
        let mut cable = segments::cable(10_000_000, Duration::from_micros(1));
        cable.cut = Cut::new(vec![Outage {
            from: Instant::ZERO + from,
            until: Instant::ZERO + from + Duration::from_millis(30),
            seen: false,
            lag: [Duration::ZERO; 2],
            port: None,
        }]);
        let flood = FloodConfig {
            streams: vec![(0, 1)],
            bytes: 1000,
            under_way: 4,
            starts: MET,
        };
        let mut stations = Stations::new(Setup {
            segments: vec![cable],
            stations: PORTS.map(|port| station(packtrain, &[port])).to_vec(),
            applications: vec![ApplicationConfig::Flood(flood)],
            seed: 1,
        });
        stations.run_for(Duration::from_secs(7));
        stations.begin_counting();
        stations.run_for(Duration::from_secs(1));
        let goodput = stations.goodput_bps(0);
        assert!(goodput > 8e6, "packtrain {packtrain}: {goodput}");
    }
}
