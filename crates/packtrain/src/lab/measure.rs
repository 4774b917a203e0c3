//! The measuring programs that everybody knows, and what they say: iperf3 and ping.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::Value;

use super::namespaces::{Namespace, Process};
use super::{Error, Result, now, pause};

/// One TCP flow.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Bulk {
    /// Received payload, bit/s.
    pub goodput_bps: f64,
    /// How long it was received for.
    pub seconds: f64,
    pub retransmits: u64,
    /// Of the first flow's own segments, mean: how long they stood in queues, wherever these are.
    pub round_trip_mean_us: f64,
}

/// iperf3's other end, on its usual port, for any number of runs one after the other. What it prints
/// nobody reads, and in a pipe it would stop the server when that is full.
pub fn iperf3_server(host: &Namespace) -> Result<Process> {
    host.spawn(["iperf3", "-s", "--logfile", "/dev/null"])
}

/// One CUBIC flow to `to`, where [`iperf3_server`] runs. `more`: further options.
pub fn bulk(from: &Namespace, to: &str, duration: Duration, more: &[&str]) -> Result<Bulk> {
    let seconds = duration.as_secs().max(1).to_string();
    // The congestion control is named because the system's own may be another (BBR here).
    let mut words = vec!["iperf3", "-J", "-C", "cubic", "-t", &seconds, "-c", to];
    words.extend(more);
    let value = iperf3(from, &words)?;
    read_bulk(&value).ok_or_else(|| unexpected(&value))
}

/// All flows together; those of both directions, where there are such.
fn read_bulk(value: &Value) -> Option<Bulk> {
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_f64);
    let back_bps = number("/end/sum_received_bidir_reverse/bits_per_second");
    let back_again = number("/end/sum_sent_bidir_reverse/retransmits");
    let again = number("/end/sum_sent/retransmits").unwrap_or(0.0) + back_again.unwrap_or(0.0);
    Some(Bulk {
        goodput_bps: number("/end/sum_received/bits_per_second")? + back_bps.unwrap_or(0.0),
        seconds: number("/end/sum_received/seconds")?,
        retransmits: again as u64,
        round_trip_mean_us: number("/end/streams/0/sender/mean_rtt").unwrap_or(f64::NAN),
    })
}

/// Runs an iperf3 client, again for a while as long as the server is not there yet, or busy with
/// the end of the last run.
pub fn iperf3(from: &Namespace, words: &[&str]) -> Result<Value> {
    /// The last: it was let in, and then the server saw that the last run's streams are still there.
    const NOT_YET: [&str; 3] = ["unable to connect", "busy", "Connection reset by peer"];
    let start = now();
    loop {
        let output = from.try_exec(words)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let value: Value = serde_json::from_str(&text).map_err(|error| Error::Unexpected {
            program: words.join(" "),
            text: format!("{error}: {text}"),
        })?;
        match value.get("error").and_then(Value::as_str) {
            None => return Ok(value),
            Some(error)
                if NOT_YET.iter().any(|what| error.contains(what))
                    && start.elapsed() < Duration::from_secs(3) =>
            {
                pause(Duration::from_millis(50));
            }
            Some(_) => return Err(unexpected(&value)),
        }
    }
}

fn unexpected(value: &Value) -> Error {
    let text = value
        .get("error")
        .map_or_else(|| "no sum".to_owned(), Value::to_string);
    Error::Unexpected {
        program: "iperf3".to_owned(),
        text,
    }
}

/// Round trips of a row of pings.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RoundTrips {
    pub sent: u64,
    pub received: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

impl RoundTrips {
    /// `times` in nanoseconds, of `sent` that were asked.
    pub fn of(times: &Histogram<u64>, sent: u64) -> RoundTrips {
        let micros = |ns: u64| ns as f64 / 1e3;
        RoundTrips {
            sent,
            received: times.len(),
            p50_us: micros(times.value_at_quantile(0.5)),
            p99_us: micros(times.value_at_quantile(0.99)),
            max_us: micros(times.max()),
        }
    }
}

/// Pings until it is stopped; finish with [`round_trips`] of what [`Process::interrupt`] gives.
pub fn ping(from: &Namespace, to: &str, interval: Duration) -> Result<Process> {
    from.spawn(["ping", "-n", "-i", &interval.as_secs_f64().to_string(), to])
}

/// A given number of pings, and what they say.
pub fn ping_count(
    from: &Namespace,
    to: &str,
    interval: Duration,
    count: u32,
) -> Result<RoundTrips> {
    let interval = interval.as_secs_f64().to_string();
    let count = count.to_string();
    // Loss makes ping fail, and is a result here.
    let output = from.try_exec(["ping", "-n", "-i", &interval, "-c", &count, "-W", "1", to])?;
    round_trips(&String::from_utf8_lossy(&output.stdout))
}

/// A long row of pings: not how soon each is answered, but whether, and how evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Echoes {
    pub sent: u64,
    pub received: u64,
    pub duplicated: u64,
    /// Came after one with a higher number.
    pub reordered: u64,
    /// The longest time between two answers.
    pub gap_max_us: f64,
}

impl Echoes {
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

/// Pings every `interval`, `count` times, and how evenly the answers came.
pub fn echoes(from: &Namespace, to: &str, interval: Duration, count: u32) -> Result<Echoes> {
    let (interval, count) = (interval.as_secs_f64().to_string(), count.to_string());
    // Loss makes ping fail, and is a result here.
    let words = [
        "ping", "-n", "-D", "-i", &interval, "-c", &count, "-W", "1", to,
    ];
    let output = from.try_exec(words)?;
    read_echoes(&String::from_utf8_lossy(&output.stdout))
}

fn read_echoes(text: &str) -> Result<Echoes> {
    let mut echoes = Echoes {
        sent: round_trips(text)?.sent,
        ..Echoes::default()
    };
    let (mut newest, mut last_s) = (0, None);
    for line in text.lines() {
        let stamp = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let number = line.split_once("icmp_seq=");
        let number = number.and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
        // Lines without a time are of errors, as "Destination Host Unreachable".
        let (Some((stamp, _)), Some(number), true) = (stamp, number, line.contains("time=")) else {
            continue;
        };
        if line.contains("DUP!") {
            echoes.duplicated += 1;
            continue;
        }
        echoes.received += 1;
        echoes.reordered += u64::from(number < newest);
        newest = newest.max(number);
        if let Ok(at_s) = stamp.parse::<f64>() {
            let gap_us = (at_s - last_s.unwrap_or(at_s)) * 1e6;
            echoes.gap_max_us = echoes.gap_max_us.max(gap_us);
            last_s = Some(at_s);
        }
    }
    Ok(echoes)
}

/// CUBIC as [`bulk`] has it, and the round trips of pings beside it, every 10 ms.
pub fn bulk_and_ping(
    from: &Namespace,
    to: &str,
    duration: Duration,
    more: &[&str],
) -> Result<(Bulk, RoundTrips)> {
    let ping = ping(from, to, Duration::from_millis(10))?;
    let bulk = bulk(from, to, duration, more)?;
    Ok((bulk, round_trips(&ping.interrupt()?)?))
}

/// Reads what iputils' ping printed.
pub fn round_trips(text: &str) -> Result<RoundTrips> {
    let mut times = Histogram::<u64>::new_with_max(60_000_000_000, 3).expect("bounds in order");
    for line in text.lines().filter(|line| !line.contains("DUP!")) {
        let time = line
            .split_once("time=")
            .and_then(|(_, rest)| rest.split(' ').next());
        if let Some(ms) = time.and_then(|time| time.parse::<f64>().ok()) {
            times.saturating_record((ms * 1e6) as u64);
        }
    }
    let sent = text
        .lines()
        .find(|line| line.contains("packets transmitted"))
        .and_then(|line| line.split(' ').next()?.parse().ok())
        .ok_or_else(|| Error::Unexpected {
            program: "ping".to_owned(),
            text: text.to_owned(),
        })?;
    Ok(RoundTrips::of(&times, sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_are_read_and_duplicates_are_not_counted() {
        let text = "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.050 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=2.00 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=2.10 ms (DUP!)

--- 10.0.0.2 ping statistics ---
3 packets transmitted, 2 received, +1 duplicates, 33.3333% packet loss, time 20ms
rtt min/avg/max/mdev = 0.050/1.025/2.000/0.975 ms
";
        let trips = round_trips(text).unwrap();
        assert_eq!((trips.sent, trips.received), (3, 2));
        assert!((trips.p50_us - 50.0).abs() < 0.1, "{trips:?}");
        assert!((trips.max_us - 2000.0).abs() < 2.0, "{trips:?}");
    }

    #[test]
    fn a_row_of_answers_is_read_with_its_longest_gap() {
        let text = "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
[1700000000.100000] 64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.050 ms
[1700000000.101000] 64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time=0.05 ms
[1700000000.108500] 64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=7.0 ms
[1700000000.108600] 64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=7.1 ms (DUP!)
[1700000000.109000] From 10.0.0.1 icmp_seq=4 Destination Host Unreachable

--- 10.0.0.2 ping statistics ---
4 packets transmitted, 3 received, +1 duplicates, 25% packet loss, time 20ms
";
        let echoes = read_echoes(text).unwrap();
        let counts = (echoes.lost(), echoes.duplicated, echoes.reordered);
        assert_eq!(counts, (1, 1, 1), "{echoes:?}");
        assert!((echoes.gap_max_us - 7500.0).abs() < 1.0, "{echoes:?}");
    }

    #[test]
    fn goodput_is_of_all_flows_and_of_both_directions() {
        let sum = |bps: f64, again: u64| serde_json::json!({"bits_per_second": bps, "seconds": 2.0, "retransmits": again});
        let mut value = serde_json::json!({"end": {
            "sum_sent": sum(3.1e9, 2),
            "sum_received": sum(3e9, 0),
            "streams": [{"sender": {"mean_rtt": 627}}],
        }});
        let one_way = read_bulk(&value).unwrap();
        assert_eq!((one_way.goodput_bps, one_way.retransmits), (3e9, 2));
        assert_eq!((one_way.round_trip_mean_us, one_way.seconds), (627.0, 2.0));
        value["end"]["sum_sent_bidir_reverse"] = sum(2.1e9, 3);
        value["end"]["sum_received_bidir_reverse"] = sum(2e9, 0);
        let both = read_bulk(&value).unwrap();
        assert_eq!((both.goodput_bps, both.retransmits), (5e9, 5));
        assert!(read_bulk(&serde_json::json!({"end": {}})).is_none());
    }

    #[test]
    fn what_is_no_summary_of_ping_is_an_error() {
        assert!(round_trips("ping: connect: Network is unreachable").is_err());
    }
}
