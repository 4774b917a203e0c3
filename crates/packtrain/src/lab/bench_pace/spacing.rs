//! How exactly segments are spaced on the wire: what is between two of them against what was asked for.
//!
//! A full segment should leave each 10 µs to 10 ms. The socket is told its rate (`SO_MAX_PACING_RATE`, which is also all that a
//! program of `sock_ops` could do), or a rule gives it (`packtrain pace rule`, by the congestion control); each as TCP makes its
//! pieces by itself, a millisecond's worth at a time, and one by one (`gso_max_segs 1`). It is looked at on two wires: a bare
//! veth, whose frames the kernel stamps at the receiver's end as they come in; and the long line of the other parts, where
//! the capture has the emulator's own lateness in it.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::Bench;
use super::flow::{self, Sender};
use super::stage::{self, SEGMENT_BYTES, Setting};
use super::trace::{Segment, tcp_segment};
use super::way::CUBIC;
use crate::lab::namespaces::Namespace;
use crate::lab::one_link::stage::cpu_of_host;
use crate::lab::sample::Sample;
use crate::lab::stream::Amount;
use crate::lab::table::{Table, time};
use crate::lab::{Error, Result, wire};
use crate::linux::capture_socket::{CaptureSocket, FrameBuffer};
use crate::linux::netlink::Netlink;
use crate::linux::socket_filter::Filter;

const INTERVALS_US: [u64; 7] = [10, 30, 100, 300, 1000, 3000, 10_000];
const PORT: u16 = 5003;
/// So long at least, and so many intervals.
const LASTS_LEAST: Duration = Duration::from_millis(500);
const INTERVALS_LEAST: u32 = 200;
/// The whole packet of a full segment.
const PACKET_BITS: u64 = 1500 * 8;
const SNAP_LEN: u32 = 134;
/// Segments so soon behind another were sent with it.
const TOGETHER_US: f64 = 2.0;
const NETWORK: &str = "10.31.0";

/// By how much intervals were off, µs, and how many segments went together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Errors {
    pub intervals: usize,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// The share of segments that came right behind another.
    pub together: f64,
}

impl Errors {
    /// `asked_us`: the interval that each of these should have been. `None`: there was none.
    pub fn of(intervals: &[(f64, f64)]) -> Option<Errors> {
        let mut off: Vec<f64> = intervals
            .iter()
            .map(|(was, asked)| (was - asked).abs())
            .collect();
        off.sort_by(f64::total_cmp);
        if off.is_empty() {
            return None;
        }
        // The least that so large a share does not exceed.
        let at = |share: f64| off[(share * off.len() as f64).ceil() as usize - 1];
        let sum: f64 = intervals.iter().map(|(was, _)| was).sum();
        let together = intervals.iter().filter(|(was, _)| *was <= TOGETHER_US);
        Some(Errors {
            intervals: off.len(),
            mean_us: sum / off.len() as f64,
            p50_us: at(0.5),
            p99_us: at(0.99),
            together: together.count() as f64 / off.len() as f64,
        })
    }
}

/// One interval of the table, a value a round.
#[derive(Clone, Debug, Serialize)]
pub struct SpacingRow {
    how: &'static str,
    wire: &'static str,
    asked_us: f64,
    mean_us: Sample,
    error_p50_us: Sample,
    error_p99_us: Sample,
    together: Sample,
}

impl SpacingRow {
    fn new(how: &'static str, wire: &'static str, asked_us: f64) -> SpacingRow {
        SpacingRow {
            how,
            wire,
            asked_us,
            mean_us: Sample::default(),
            error_p50_us: Sample::default(),
            error_p99_us: Sample::default(),
            together: Sample::default(),
        }
    }

    fn add(&mut self, errors: Errors) {
        self.mean_us.push(errors.mean_us);
        self.error_p50_us.push(errors.p50_us);
        self.error_p99_us.push(errors.p99_us);
        self.together.push(errors.together);
    }
}

/// Who says how fast, and how many segments may leave in one piece.
#[derive(Clone, Copy)]
struct How {
    name: &'static str,
    by_rule: bool,
    most: Option<u16>,
}

const HOW: [How; 4] = [
    How {
        name: "SO_MAX_PACING_RATE",
        by_rule: false,
        most: None,
    },
    How {
        name: "SO_MAX_PACING_RATE, gso_max_segs 1",
        by_rule: false,
        most: Some(1),
    },
    How {
        name: "packtrain's rule",
        by_rule: true,
        most: None,
    },
    How {
        name: "packtrain's rule, gso_max_segs 1",
        by_rule: true,
        most: Some(1),
    },
];

impl How {
    /// What the socket itself is told.
    fn bytes_per_second(self, interval_us: u64) -> Option<u64> {
        (!self.by_rule).then_some(SEGMENT_BYTES * 1_000_000 / interval_us)
    }

    /// The congestion control that a sender asks for. A rule brings its own.
    fn congestion(self) -> Option<&'static str> {
        match self.by_rule {
            true => None,
            false => CUBIC.congestion,
        }
    }

    fn prepare(self, host: &Namespace, packtrain: &Path, interval_us: u64) -> Result<()> {
        if !self.by_rule {
            return Ok(());
        }
        let packtrain = packtrain.as_os_str();
        let rate = format!("{}bit", PACKET_BITS * 1_000_000 / interval_us);
        let words = [
            "pace", "rule", "add", "--match", "any", "--share", "stream", "--rate", &rate,
        ];
        let words = words.map(OsStr::new);
        host.exec([&[packtrain][..], &words].concat()).map(drop)
    }

    fn end(self, host: &Namespace, packtrain: &Path) -> Result<()> {
        if !self.by_rule {
            return Ok(());
        }
        let words = ["pace", "tcp", "off"].map(OsStr::new);
        host.exec([&[packtrain.as_os_str()][..], &words].concat())
            .map(drop)
    }
}
/// Faster than the line itself nothing comes out of it.
const ON_THE_LINE_US: [u64; 4] = [100, 300, 1000, 10_000];
/// Until a window is as large as the rate wants it.
const LINE_LASTS: Duration = Duration::from_secs(6);

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let mut rows: Vec<SpacingRow> = Vec::new();
    let mut add = |row: (&'static str, &'static str, u64), errors: Option<Errors>| {
        let Some(errors) = errors else {
            return;
        };
        let same =
            |of: &&mut SpacingRow| (of.how, of.wire, of.asked_us) == (row.0, row.1, row.2 as f64);
        match rows.iter_mut().find(same) {
            Some(of) => of.add(errors),
            None => {
                let mut of = SpacingRow::new(row.0, row.1, row.2 as f64);
                of.add(errors);
                rows.push(of);
            }
        }
    };
    for round in 0..bench.rounds {
        for how in HOW {
            let name = how.name;
            eprintln!("spacing: round {} of {}, {name}", round + 1, bench.rounds);
            let stage = Stage::set(how.most)?;
            for us in INTERVALS_US {
                how.prepare(&stage.a, bench.packtrain, us)?;
                add((name, "veth", us), stage.measure(how, us)?);
                how.end(&stage.a, bench.packtrain)?;
            }
            for us in ON_THE_LINE_US {
                add((name, "the long line", us), on_the_line(bench, how, us)?);
            }
        }
    }
    rows.sort_by_key(|row| (row.how, std::cmp::Reverse(row.wire)));
    bench.spacings.extend(rows);
    Ok(())
}

/// Of one connection on the long line, which has it for itself.
fn on_the_line(bench: &Bench<'_>, how: How, interval_us: u64) -> Result<Option<Errors>> {
    let stage = stage::Stage::set(bench.packtrain, Setting::PAPER)?;
    let a = &stage.a.namespace;
    send_in_pieces_of(a, how.most)?;
    how.prepare(a, bench.packtrain, interval_us)?;
    let rate = how.bytes_per_second(interval_us);
    let amount = Amount::Time(LINE_LASTS);
    let run = stage.traced(|| stage.carry_paced(how.congestion(), amount, rate))?;
    let intervals = between(&run.trace.arrived, interval_us as f64, 0.5);
    how.end(a, bench.packtrain)?;
    stage.end(&CUBIC)?;
    Ok(Errors::of(&intervals))
}

/// TCP puts so many segments into one piece at most.
fn send_in_pieces_of(host: &Namespace, most: Option<u16>) -> Result<()> {
    // Where the way is short it otherwise makes large pieces whatever the rate is: this is about long ones.
    host.sysctl("net/ipv4/tcp_tso_rtt_log", "0")?;
    let Some(most) = most else {
        return Ok(());
    };
    let most = most.to_string();
    host.exec(["ip", "link", "set", "eth0", "gso_max_segs", &most])
        .map(drop)
}

/// Two hosts with a bare cable, on which each segment is a frame.
struct Stage {
    a: Namespace,
    b: Namespace,
}

impl Stage {
    fn set(most: Option<u16>) -> Result<Stage> {
        let (a, b) = (Namespace::create("space")?, Namespace::create("space")?);
        wire::veth((&a, "eth0"), (&b, "eth0"))?;
        for (number, host) in (1..).zip([&a, &b]) {
            wire::add_address(host, "eth0", &format!("{NETWORK}.{number}/24"))?;
            for feature in ["tso", "gso", "gro"] {
                wire::offload(host, "eth0", feature, false)?;
            }
        }
        send_in_pieces_of(&a, most)?;
        Ok(Stage { a, b })
    }

    fn measure(&self, how: How, interval_us: u64) -> Result<Option<Errors>> {
        let failed = |source| Error::Start {
            command: "capture at the receiver".into(),
            source,
        };
        let capture = self.b.in_namespace(|| -> Result<CaptureSocket> {
            let link = Netlink::open()?.link_by_name("eth0")?;
            let socket = CaptureSocket::create().map_err(failed)?;
            socket.ignore_outgoing().map_err(failed)?;
            let ifindex = link.map_or(0, |link| link.ifindex);
            let filter = Filter::Any.compile(SNAP_LEN);
            socket.watch(ifindex, &filter).map_err(failed)?;
            Ok(socket)
        })??;
        let interval = Duration::from_micros(interval_us);
        let lasts = LASTS_LEAST.max(interval * INTERVALS_LEAST);
        let address: IpAddr = format!("{NETWORK}.2").parse().expect("an address");
        let sender = Sender {
            host: &self.a,
            congestion: how.congestion(),
            bytes_per_second: how.bytes_per_second(interval_us),
        };
        let at = SocketAddr::new(address, PORT);
        let cpus = [0, 1].map(cpu_of_host);
        flow::carry(sender, &self.b, at, Amount::Time(lasts), cpus)?;
        let mut buffer = FrameBuffer::default();
        let mut seen = Vec::new();
        while let Some(passed) = capture.receive(&mut buffer).map_err(failed)? {
            if let Some(segment) = tcp_segment(passed.bytes, passed.len as u32) {
                seen.push(Segment {
                    at: passed.unix_nanos,
                    ..segment
                });
            }
        }
        Ok(Errors::of(&between(&seen, interval_us as f64, 0.2)))
    }
}

/// What was between each two full segments, and what should have been, µs: those of a frame in one piece came together. The
/// first part of the time is none of it: a connection begins with a burst, and with a small window.
fn between(seen: &[Segment], asked_us: f64, without: f64) -> Vec<(f64, f64)> {
    let data: Vec<&Segment> = seen.iter().filter(|segment| segment.payload > 0).collect();
    let (Some(first), Some(last)) = (data.first(), data.last()) else {
        return Vec::new();
    };
    let lasted = last.at.saturating_sub(first.at) as f64;
    let from = first.at + (without * lasted) as u64;
    let mut intervals = Vec::new();
    for pair in data.windows(2).filter(|pair| pair[0].at >= from) {
        let was_us = pair[1].at.saturating_sub(pair[0].at) as f64 / 1e3;
        intervals.push((was_us, asked_us));
        let more = u64::from(pair[1].payload).div_ceil(SEGMENT_BYTES) - 1;
        intervals.extend((0..more).map(|_| (0.0, asked_us)));
    }
    intervals
}

pub fn spacings_table(rows: &[SpacingRow]) -> Table {
    let mut table = Table::new(&[
        "spaced by",
        "on",
        "asked",
        "mean",
        "off by, p50",
        "p99",
        "sent together",
    ]);
    for row in rows {
        table.row([
            row.how.to_owned(),
            row.wire.to_owned(),
            time(row.asked_us),
            time(row.mean_us.median()),
            time(row.error_p50_us.median()),
            time(row.error_p99_us.median()),
            format!("{:.0} %", 100.0 * row.together.median()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::trace::tests::full;
    use super::*;

    #[test]
    fn errors_are_of_what_was_against_what_was_asked() {
        let intervals: Vec<(f64, f64)> = (0..100)
            .map(|i| {
                (
                    if i == 99 {
                        900.0
                    } else {
                        100.0 + f64::from(i % 2)
                    },
                    100.0,
                )
            })
            .collect();
        let errors = Errors::of(&intervals).unwrap();
        assert_eq!((errors.intervals, errors.p50_us), (100, 0.0));
        assert_eq!((errors.p99_us, errors.together), (1.0, 0.0));
        assert!((errors.mean_us - 108.49).abs() < 1e-9, "{errors:?}");
        assert_eq!(Errors::of(&[]), None);
    }

    #[test]
    fn segments_of_one_piece_came_together_and_the_beginning_does_not_count() {
        // A burst of five at once, then one each 100 µs until 1000 µs, the last two in one piece.
        let mut seen: Vec<Segment> = (0..5).map(|i| full(i, 0.0)).collect();
        seen.extend((1..=9).map(|i| full(4 + i, 100.0 * i as f64)));
        seen.push(Segment {
            payload: 2 * 1448,
            ..full(14, 1000.0)
        });
        let intervals = between(&seen, 100.0, 0.2);
        assert_eq!(intervals.len(), 8 + 1);
        assert_eq!(intervals.iter().filter(|(was, _)| *was == 0.0).count(), 1);
        let errors = Errors::of(&intervals).unwrap();
        assert!((errors.together - 1.0 / 9.0).abs() < 1e-9);
        assert_eq!((errors.p50_us, errors.p99_us), (0.0, 100.0));
        assert!(between(&[], 1.0, 0.2).is_empty());
    }
}
