//! A small HTTP server on the host, and who asks it while the flood goes on: how long that takes, and what TCP sends again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::flooding::{Flooded, Load, flood_beside};
use super::mix::{HOST, paper};
use super::row::{Compared, Row};
use super::stage::{HOST_CPU, Layout, Stage, WIRE_CPU};
use super::way::{Standing, Way};
use super::{Bench, carried};
use crate::lab::figure::{Target, Unit};
use crate::lab::{Error, Result, now, pause, port};
use crate::linux::scheduling::{run_before_all, run_in_real_time, stay_on};

const WAYS: [Way; 4] = [Way::NoFlood, Way::Without, Way::Filter, Way::WithoutAgain];
const SIZE: usize = 64;
/// 1000 Mbit/s: the most that the paper sent.
const PER_SECOND: u64 = 1_488_095;
const PORT: u16 = 8080;
/// Each has a connection that it keeps, and a time at which each request is due: who waits for an answer is late with the
/// next, which counts.
const CLIENTS: usize = 4;
const EVERY: Duration = Duration::from_millis(5);
const FLOOD: Duration = Duration::from_secs(3);
/// Who has no answer by then begins anew.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const REQUEST: &[u8] = b"GET /index.html HTTP/1.1\r\nHost: host\r\n\r\n";
const BODY_LEN: usize = 1024;
const END_OF_HEADER: &[u8] = b"\r\n\r\n";

/// What those who ask have seen.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// From when it was due, of those that were answered; in order.
    waits_us: Vec<f64>,
    unanswered: u64,
}

struct Run {
    asked: Asked,
    flooded: Flooded,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let stage = Stage::set(Layout::OneProcessor)?;
    let mix = paper(SIZE);
    let runs = bench.in_turns("HTTP", &stage, &WAYS, |standing| {
        let load = Load {
            mix: &mix,
            size: SIZE,
            per_second: Some(match standing.way() {
                // Not none at all, for then nothing could be seen to have come.
                Way::NoFlood => 10,
                _ => PER_SECOND,
            }),
            duration: FLOOD,
        };
        let (flooded, asked) = serve(standing, || {
            flood_beside(&stage, standing, load, || ask(&stage, FLOOD))
        })?;
        Ok(Run { asked, flooded })
    })?;
    let both = Compared(Way::Filter, Way::Without);
    let by_filter = carried(runs.of(Way::Filter).iter().map(|run| &run.flooded));
    let mut push = |name, compared, kind, number: &dyn Fn(&Run) -> f64| {
        bench.push(Row::new(
            name,
            compared,
            kind,
            &runs.map(number),
            &by_filter,
        ));
    };
    let time = (Unit::Microseconds, Target::RatioShown);
    push(
        "HTTP during a flood, 64 B, 1000 Mbit/s: p50, from when it was due",
        both,
        time,
        &|run| run.asked.percentile_us(0.5),
    );
    push("  … p99", both, time, &|run| {
        run.asked.percentile_us(0.99)
    });
    let count = (Unit::Count, Target::DifferenceShown);
    let answered = |run: &Run| run.asked.waits_us.len() as f64;
    push(
        "  … answered, of 2400 that were due",
        both,
        count,
        &answered,
    );
    push("  … segments sent again", both, count, &|run| {
        run.flooded.counts.sent_again as f64
    });
    let same = Compared(Way::WithoutAgain, Way::Without);
    push(
        "  … A/A: answered, the same against itself",
        same,
        count,
        &answered,
    );
    Ok(())
}

impl Asked {
    /// Who got no answer has waited longer than all who did.
    fn percentile_us(&self, share: f64) -> f64 {
        let all = self.waits_us.len() as u64 + self.unanswered;
        let rank = (all as f64 * share).ceil().max(1.0) as usize - 1;
        match self.waits_us.get(rank) {
            Some(&wait) => wait,
            None if all == 0 => f64::NAN,
            None => FLOOD.as_secs_f64() * 1e6,
        }
    }
}

fn failed(what: &str, source: io::Error) -> Error {
    Error::Start {
        command: format!("HTTP of the host: {what}"),
        source,
    }
}

/// Answers whoever asks, while `beside` is done.
fn serve<T>(standing: &Standing<'_>, beside: impl FnOnce() -> Result<T>) -> Result<T> {
    let bind = || {
        let listener = port::once_free(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listener = standing.stage().host.in_namespace(bind)?;
    let listener = listener.map_err(|error| failed("listener", error))?;
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => drop(scope.spawn(|| answer(stream, &ends))),
                    Err(_) => pause(LOOK_EVERY / 4),
                }
            }
        });
        let done = beside();
        ends.store(true, Ordering::Relaxed);
        done
    })
}

/// An error is the client's to see.
fn answer(mut stream: TcpStream, ends: &AtomicBool) -> io::Result<()> {
    // Before the driver: what is waited for is what that has not come to yet.
    stay_on(HOST_CPU).and_then(|()| run_before_all())?;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let mut text = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_LEN}\r\n\r\n").into_bytes();
    text.resize(text.len() + BODY_LEN, b'x');
    let mut asked = Vec::new();
    let mut buffer = [0; 1024];
    while !ends.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(len) => asked.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if asked.ends_with(END_OF_HEADER) {
            stream.write_all(&text)?;
            asked.clear();
        }
    }
    Ok(())
}

/// For so long; where the flood is made, and before it.
fn ask(stage: &Stage, duration: Duration) -> Result<Asked> {
    let start = now();
    let mut all = Asked::default();
    let each = || {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    // Not all at once.
                    let first = start + EVERY * number as u32 / CLIENTS as u32;
                    scope.spawn(move || client(first, start + duration))
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().expect("who asks has no reason to panic"))
                .collect::<Vec<_>>()
        })
    };
    for asked in stage.wire.in_namespace(each)? {
        let asked = asked.map_err(|error| failed("who asks", error))?;
        all.waits_us.extend(asked.waits_us);
        all.unanswered += asked.unanswered;
    }
    all.waits_us.sort_by(f64::total_cmp);
    Ok(all)
}

fn client(first: Instant, until: Instant) -> io::Result<Asked> {
    stay_on(WIRE_CPU)?;
    run_in_real_time()?;
    let mut asked = Asked::default();
    let mut connection = None;
    let mut due = first;
    while due < until {
        pause(due.saturating_duration_since(now()));
        let left = until.saturating_duration_since(now());
        if left.is_zero() {
            asked.unanswered += 1;
        } else {
            match request(&mut connection, left.min(PATIENCE)) {
                Ok(()) => asked
                    .waits_us
                    .push(now().saturating_duration_since(due).as_secs_f64() * 1e6),
                Err(_) => {
                    connection = None;
                    asked.unanswered += 1;
                }
            }
        }
        due += EVERY;
    }
    Ok(asked)
}

fn request(connection: &mut Option<TcpStream>, patience: Duration) -> io::Result<()> {
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect_timeout(&SocketAddr::from((HOST, PORT)), patience)?;
            stream.set_nodelay(true)?;
            connection.insert(stream)
        }
    };
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(REQUEST)?;
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&buffer[..len]);
        let header = read
            .windows(END_OF_HEADER.len())
            .position(|bytes| bytes == END_OF_HEADER);
        if header.is_some_and(|at| read.len() >= at + END_OF_HEADER.len() + BODY_LEN) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_got_no_answer_has_waited_longest() {
        let asked = Asked {
            waits_us: vec![1.0, 2.0, 3.0],
            unanswered: 1,
        };
        assert_eq!(asked.percentile_us(0.5), 2.0);
        assert_eq!(asked.percentile_us(0.75), 3.0);
        assert_eq!(asked.percentile_us(0.99), 3e6);
        assert!(Asked::default().percentile_us(0.5).is_nan());
    }
}
