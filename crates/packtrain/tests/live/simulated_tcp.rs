//! The simulator's TCP and this kernel's, on wires that are the same, for the same time (docs/validation.md): Reno and CUBIC where
//! a wire loses, and before a queue. The kernel's connections go at once, each over a wire of its own.

mod connection;

use std::fmt;
use std::io::Write;

use packtrain::lab::emulator::lateness::LatenessSummary;
use packtrain::lab::emulator::plan::config_of;
use packtrain::lab::processors::Ticks;
use packtrain::lab::topology::direction::{Counts, Loss, Queue, QueueLimit, Rate, WireSettings};
use packtrain::lab::topology::{Direction, Host, Name, Port, Topology};
use packtrain::lab::wire;
use packtrain::settings::MTU_DEFAULT;
use packtrain_proto::time;
use packtrain_sim::fabric::{Ends, Fabric, FabricConfig};
use packtrain_sim::net::wire::WireConfig;

use crate::common::skipped;
use crate::common::standing::Standing;
use crate::common::steady::judge;

const BPS: u64 = 50_000_000;
const PORT_BPS: u64 = 1_000_000_000;
/// Slow start, and how its window comes down to what losses leave: HyStart ends it where round trips say so, and a kernel's are not
/// the simulator's to a tenth of a millisecond.
const IGNORED_S: usize = 3;
const COUNTED_S: usize = 7;
const WITHIN: f64 = 0.05;
/// No queue: nothing comes near it.
const DEEP_PACKETS: u32 = 10_000;
/// A full segment with the time stamps that only the kernel sends, on the wire, and one without.
const TIME_STAMPS: f64 = 1526.0 / 1538.0;

/// As long as the smallest queue holds: what hosts have sent comes at once after that, and has no room there.
const AWAY_MAX_MS: f64 = 10.0;
/// Of all processors: where no time is left, part of what a kernel does for its connections waits for its turn among programs. No
/// excuse for a figure that is wrong each time: it may be so for as long as tests run.
const USED_MAX: f64 = 0.9;
const TRIES: usize = 3;

/// A connection, and the wire that it has.
#[derive(Clone, Copy)]
struct Row {
    cubic: bool,
    round_trip_ms: u64,
    /// Each so-many-th frame there. Of 400 and more it does not matter that ARP's and the first ones of the connection count, too.
    lost: Option<u64>,
    queue_packets: u32,
}

const fn lossy(cubic: bool, every: u64) -> Row {
    Row {
        cubic,
        round_trip_ms: 40,
        lost: Some(every),
        queue_packets: DEEP_PACKETS,
    }
}

const fn queued(cubic: bool) -> Row {
    Row {
        cubic,
        round_trip_ms: 20,
        lost: None,
        // Half of what is under way.
        queue_packets: 42,
    }
}

const ROWS: [Row; 6] = [
    lossy(false, 400),
    lossy(true, 400),
    lossy(false, 1000),
    lossy(true, 1000),
    queued(false),
    queued(true),
];

impl Row {
    fn congestion_control(&self) -> &'static str {
        if self.cubic { "cubic" } else { "reno" }
    }

    fn directions(&self) -> [Direction; 2] {
        let back = Direction {
            port: Port {
                rate_bps: Some(PORT_BPS),
                queue_packets: None,
            },
            wire: WireSettings {
                rate: Some(Rate {
                    bps: BPS,
                    counts: Counts::Ethernet,
                }),
                queue: Queue {
                    limit: QueueLimit::Packets(self.queue_packets),
                    ..Queue::default()
                },
                delay_ns: self.round_trip_ms * 1_000_000 / 2,
                ..WireSettings::default()
            },
        };
        let mut there = back.clone();
        there.wire.loss = self.lost.map(|every| Loss::Periodic { every });
        [there, back]
    }

    /// Content that has arrived, for each second.
    fn simulated(&self) -> Vec<u64> {
        let port = WireConfig::perfect(PORT_BPS, time::Duration::ZERO);
        let [there, back] = self.directions().each_ref().map(config_of);
        let config = FabricConfig::bulk(vec![port, there], vec![back], Ends::linux(self.cubic));
        let mut fabric = Fabric::new(&config, ());
        let seconds = 0..IGNORED_S + COUNTED_S;
        let arrived = seconds.map(|_| {
            let before = fabric.count(0);
            fabric.run_for(time::Duration::from_secs(1));
            (fabric.count(0) - before).delivered_bytes
        });
        arrived.collect()
    }

    /// What of that the line would leave if the simulator sent time stamps. Where losses leave it half empty they do not matter.
    fn share_of_time_stamps(&self) -> f64 {
        self.lost.map_or(TIME_STAMPS, |_| 1.0)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} ms, ",
            self.congestion_control(),
            self.round_trip_ms
        )?;
        match self.lost {
            Some(every) => write!(f, "each {every}th lost"),
            None => write!(f, "queue of {} packets", self.queue_packets),
        }
    }
}

/// Of all seconds, and what is counted.
#[derive(Clone, Debug)]
struct Goodput {
    mbps: f64,
    each_second: Vec<f64>,
}

impl Goodput {
    fn of(seconds: &[u64], share: f64) -> Goodput {
        let mbps = |&bytes: &u64| bytes as f64 * 8e-6 * share;
        let each_second: Vec<f64> = seconds.iter().map(mbps).collect();
        let counted = &each_second[IGNORED_S..];
        Goodput {
            mbps: counted.iter().sum::<f64>() / counted.len() as f64,
            each_second,
        }
    }
}

impl fmt::Display for Goodput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.1?})", self.mbps, self.each_second)
    }
}

/// Two hosts with a wire for each row.
fn lab(rows: &[Row]) -> Standing {
    let mut topology = Topology::new("simtcp");
    let [a, b] = ["a", "b"].map(|name| name.parse::<Name>().expect("a name"));
    topology.hosts = [&a, &b]
        .map(|name| Host {
            name: name.clone(),
            packtrain: false,
            up: Vec::new(),
        })
        .into();
    for row in rows {
        topology.connect(&a, &b, MTU_DEFAULT, row.directions());
    }
    let lab = Standing::up("simtcp", &topology);
    let [a, b] = [0, 1].map(|host| &lab.hosts[host].namespace);
    for (interface, _) in &lab.lab.addresses()[0].links {
        // What the kernel sends in one piece is cut before it is queued or lost.
        for feature in ["tso", "gso"] {
            wire::offload(a, interface, feature, false).unwrap();
        }
    }
    // Room from the beginning: programs that are late are not to be seen.
    let room = "4096 4194304 16777216";
    a.sysctl("net/ipv4/tcp_wmem", room).unwrap();
    b.sysctl("net/ipv4/tcp_rmem", room).unwrap();
    lab
}

#[derive(Debug)]
struct Measured {
    kernel: Vec<Goodput>,
    wires: LatenessSummary,
    /// Of the processors' time.
    used: f64,
    /// It says nothing: the wires were away to the last.
    not_judged: bool,
}

impl Measured {
    fn wires_were_away(&self) -> bool {
        self.wires.away_max_ms > AWAY_MAX_MS
    }
}

/// All rows at once.
fn measure(lab: &Standing, rows: &[Row]) -> Measured {
    let [a, b] = [0, 1].map(|host| &lab.hosts[host].namespace);
    let addresses = &lab.lab.addresses()[1].links;
    lab.lab.lateness().unwrap();
    let before = Ticks::now().unwrap();
    let kernel = std::thread::scope(|scope| {
        let connections = rows.iter().zip(addresses).map(|(row, &(_, at))| {
            let with = row.congestion_control();
            scope.spawn(move || connection::carry(a, b, at, with, IGNORED_S + COUNTED_S))
        });
        let connections: Vec<_> = connections.collect();
        let ended = connections.into_iter().map(|one| one.join().unwrap());
        ended.map(|seconds| Goodput::of(&seconds, 1.0)).collect()
    });
    Measured {
        kernel,
        wires: lab.lab.lateness().unwrap(),
        used: Ticks::now().unwrap().used_since(before),
        not_judged: false,
    }
}

/// Again when it is wrong and the machine was busy meanwhile. The last one counts, if its wires were there.
fn measure_in_time(
    measure: impl Fn() -> Measured,
    is_right: impl Fn(&Measured) -> bool,
) -> Measured {
    let mut left = TRIES;
    loop {
        left -= 1;
        let measured = measure();
        let was_busy = left > 0 && measured.used > USED_MAX;
        if is_right(&measured) || !(was_busy || measured.wires_were_away()) {
            return measured;
        }
        say(&format!("DISCARDED: {measured:?}"));
        if left == 0 {
            say("NOT JUDGED: the wires were away to the last");
            return Measured {
                not_judged: true,
                ..measured
            };
        }
    }
}

/// Past the test harness, which shows what a test prints only when it fails.
fn say(line: &str) {
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "{line}").expect("standard error is open");
}

#[test]
fn a_kernel_and_the_simulator_carry_as_much_over_the_same_wires_within_a_twentieth() {
    live!(alone);
    let missing = connection::unavailable("cubic").map(|error| format!("no CUBIC: {error}"));
    let without_cubic = skipped("simulated_tcp: rows of CUBIC", missing);
    let rows: Vec<Row> = ROWS
        .into_iter()
        .filter(|row| !(row.cubic && without_cubic))
        .collect();
    let simulated = rows
        .iter()
        .map(|row| Goodput::of(&row.simulated(), row.share_of_time_stamps()));
    let simulated: Vec<Goodput> = simulated.collect();
    let ratios = |measured: &Measured| -> Vec<f64> {
        let pairs = simulated.iter().zip(&measured.kernel);
        pairs
            .map(|(ours, kernel)| ours.mbps / kernel.mbps)
            .collect()
    };
    let is_right = |measured: &Measured| {
        let ratios = ratios(measured);
        ratios.iter().all(|ratio| (ratio - 1.0).abs() <= WITHIN)
    };
    let lab = lab(&rows);
    let and_say = || {
        let measured = measure(&lab, &rows);
        for (index, ratio) in ratios(&measured).iter().enumerate() {
            let (row, ours, kernel) = (rows[index], &simulated[index], &measured.kernel[index]);
            println!("{row}: ratio {ratio:.3}\n  kernel    {kernel}\n  simulator {ours}");
        }
        let used = 100.0 * measured.used;
        println!(
            "{used:.0} % of the processors used, wires {:?}",
            measured.wires
        );
        measured
    };
    judge(
        "Mbit/s of a kernel, where the simulator has other ones",
        || measure_in_time(and_say, is_right),
        |measured| measured.not_judged || is_right(measured),
    );
}
