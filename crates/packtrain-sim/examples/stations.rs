//! Applications on hosts that share segments: what the DFAP and the ELT paper measured, over packtrain's engine and without it:
//! `cargo run --release -p packtrain-sim --example stations`

use packtrain_proto::class::Pack;
use packtrain_proto::config::Mode;
use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::fabric::Ends;
use packtrain_sim::net::cut::{Cut, Outage};
use packtrain_sim::net::network::PortId;
use packtrain_sim::stations::{
    ApplicationConfig, BulkConfig, CopiesConfig, Disks, Kind, Line, Over, PingPongConfig, Setup,
    StationConfig, Stations, TransactionKind, TransactionsConfig, segments,
};
use packtrain_sim::tcp::receiver::ReceiverConfig;
use packtrain_sim::tcp::sender::SenderConfig;

const STARTS: Duration = Duration::from_millis(100);
/// Until then nothing is counted.
const IGNORED: Duration = Duration::from_millis(200);
const LINK_BPS: u64 = 100_000_000;
const CABLE: Duration = Duration::from_micros(1);

fn main() {
    shared_ethernet();
    table_1();
    pulled_cable();
    tokens();
    copies();
}

/// As hosts have them; acknowledgements ride with answers, or nearly so.
fn ends() -> Ends {
    Ends {
        sender: SenderConfig::linux(),
        receiver: ReceiverConfig {
            delayed_ack: Some(Duration::from_millis(40)),
            ..ReceiverConfig::default()
        },
        ..Ends::default()
    }
}

fn port(port: usize) -> PortId {
    PortId { segment: 0, port }
}

fn counted(setup: Setup, time: Duration) -> Stations {
    let mut stations = Stations::new(setup);
    stations.run_for(IGNORED);
    stations.begin_counting();
    stations.run_for(time);
    stations
}

/// How hosts on the hub send.
const WAYS: [&str; 4] = [
    "plain",
    "1-persistent",
    "waits 2 ms",
    "DFAP, random ticks of 1 ms",
];

fn host(way: &str, port: PortId) -> StationConfig {
    let mut line = Line::default();
    match way {
        "plain" => return StationConfig::plain(port),
        "1-persistent" => {}
        "waits 2 ms" => line.config.rest.pack = Pack::Within(Duration::from_millis(2)),
        _ => {
            line.config.mode = Mode::Dfap;
            line.config.rest.pack = Pack::DfapRandom;
            line.config.dfap.tick = Duration::from_millis(1);
            line.classes = Some(Vec::new());
        }
    }
    StationConfig {
        ports: vec![port],
        kind: Kind::Packtrain(Box::new(line)),
    }
}

fn shared_ethernet() {
    println!(
        "DFAP: 7 clients and a server on a hub, PostMark's requests in 8 loops each; hosts take 100 us for one, \
         at 100 Mbit/s 20 us\n\n\
         Mbit/s  over  way                           /s   mean ms   p99 ms  again  frames each  failed attempts each  \
         useful  a train of the server's"
    );
    for (rate_bps, over, name) in [
        (10_000_000, Over::udp(), "UDP"),
        (10_000_000, Over::Tcp(ends()), "TCP"),
        (100_000_000, Over::udp(), "UDP"),
        (100_000_000, Over::Tcp(ends()), "TCP"),
    ] {
        for way in WAYS {
            let time = Duration::from_secs(if rate_bps == 10_000_000 { 10 } else { 2 });
            let stations = counted(transactions(rate_bps, over, way), time);
            let (report, counts) = (stations.report(0), stations.counts());
            let segment = counts.segments[0];
            let done = report.done as f64;
            println!(
                "{:6}  {name}   {way:26} {:5.0} {:9.2} {:8.2} {:6} {:12.2} {:21.2} {:6.1} % {:8.2}",
                rate_bps / 1_000_000,
                done / time.as_secs_f64(),
                report.times.mean().as_secs_f64() * 1e3,
                report.times.quantile(0.99).as_secs_f64() * 1e3,
                report.again,
                segment.frames as f64 / done,
                segment.failed_attempts as f64 / done,
                100.0 * stations.goodput_bps(0) / rate_bps as f64,
                counts.stations[0].frames_per_train().unwrap_or(1.0),
            );
        }
    }
}

fn transactions(rate_bps: u64, over: Over, way: &str) -> Setup {
    let host_time = Duration::from_micros(if rate_bps == 10_000_000 { 100 } else { 20 });
    let application = TransactionsConfig {
        server: 0,
        clients: (1..8).collect(),
        at_once: 8,
        over,
        kinds: TransactionKind::postmark(),
        file_bytes: (10, 500),
        service: host_time,
        think: host_time,
        starts: STARTS,
    };
    Setup {
        segments: vec![segments::hub(rate_bps, 8)],
        stations: (0..8).map(|number| host(way, port(number))).collect(),
        applications: vec![ApplicationConfig::Transactions(application)],
        seed: 1,
    }
}

/// A server with links of 100 Mbit/s and a host with a gigabit, on a switch. The last link of the server's is cut then, or never; `seen`:
/// it has no carrier.
fn trunk(links: usize, cut: Option<(Duration, bool)>, application: ApplicationConfig) -> Setup {
    let mut rates = vec![LINK_BPS; links];
    rates.push(1_000_000_000);
    let mut switch = segments::switch(&rates, CABLE);
    if let Some((from, seen)) = cut {
        switch.cut = Cut::new(vec![Outage {
            from: Instant::ZERO + from,
            until: Instant::ZERO + Duration::from_secs(100_000),
            seen,
            lag: [Duration::ZERO; 2],
            port: Some(links - 1),
        }]);
    }
    let of_server: Vec<PortId> = (0..links).map(port).collect();
    Setup {
        segments: vec![switch],
        stations: vec![
            StationConfig::packtrain(&of_server),
            StationConfig::packtrain(&[port(links)]),
        ],
        applications: vec![application],
        seed: 1,
    }
}

fn bulk() -> ApplicationConfig {
    ApplicationConfig::Bulk(BulkConfig {
        streams: vec![(0, 1)],
        ends: ends(),
        starts: STARTS,
    })
}

fn table_1() {
    println!(
        "\nELT, Table 1: bulk from the server, Mbit/s of content, and each link's part of its bytes\n"
    );
    for (name, links, dead, paper) in [
        ("one link", 1, false, 93.91),
        ("AFT: one of two dead", 2, true, 89.40),
        ("two links", 2, false, 176.35),
    ] {
        let setup = trunk(links, dead.then_some((Duration::ZERO, true)), bulk());
        let stations = counted(setup, Duration::from_secs(2));
        let ports = &stations.counts().stations[0].ports;
        let all: u64 = ports.iter().map(|port| port.bytes).sum();
        let parts = ports.iter().map(|port| port.bytes as f64 / all as f64);
        let parts: Vec<String> = parts.map(|part| format!("{part:.2}")).collect();
        println!(
            "{name:22} {:7.2}   paper {paper:6.2}   {}",
            stations.goodput_bps(0) / 1e6,
            parts.join(" : ")
        );
    }
}

fn pulled_cable() {
    println!(
        "\nELT, a pulled cable: longest time without a byte of bulk over two links, one of which is cut\n"
    );
    for (name, seen) in [("seen by both cards", true), ("seen by nobody", false)] {
        let setup = trunk(2, Some((Duration::from_millis(700), seen)), bulk());
        let stations = counted(setup, Duration::from_secs(2));
        println!("{name:22} {:?}", stations.longest_pause(0));
    }
}

/// The other host has one link, so that its engine knows one path, to one of the server's links: what comes back from it goes over
/// that alone, and two links pay as far as the server's direction is what is slow.
fn tokens() {
    println!(
        "\nELT, Fig. 5: tokens to and fro, MB/s of content both ways; hosts take 20 us for one\n\n\
         bytes   one link, 1 .. 6 pairs                       two links, 1 .. 6 pairs"
    );
    for bytes in (2..=13).map(|exponent| 1 << exponent) {
        let mut line = format!("{bytes:5}");
        for links in [1, 2] {
            line.push_str("  ");
            for pairs in 1..=6 {
                let config = PingPongConfig {
                    pairs: vec![(0, 1); pairs],
                    bytes,
                    turnaround: Duration::from_micros(20),
                    ends: ends(),
                    starts: STARTS,
                };
                let setup = trunk(links, None, ApplicationConfig::PingPong(config));
                let stations = counted(setup, Duration::from_millis(100));
                let rate = stations.goodput_bps(0) / 8e6;
                line.push_str(&format!(" {rate:6.2}"));
            }
        }
        println!("{line}");
    }
}

fn copies() {
    println!(
        "\nELT, Fig. 6: 8 copies at once, 0 .. 8 of them to another host; MB/s of the disks (40 MB/s, 1 ms a seek)\n"
    );
    for links in [1, 2] {
        let mut line = format!("{links} link(s), files of 1 MB  ");
        for remote in 0..=8 {
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
                together: true,
                chunk_bytes: 64 << 10,
                socket_bytes: 64 << 10,
                ends: ends(),
                starts: STARTS,
            };
            let setup = trunk(links, None, ApplicationConfig::Copies(config));
            let stations = counted(setup, Duration::from_secs(1));
            line.push_str(&format!(" {:5.1}", stations.goodput_bps(0) / 8e6));
        }
        println!("{line}");
    }
}
