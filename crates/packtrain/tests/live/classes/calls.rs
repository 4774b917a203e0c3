//! Programs that people use, on one line, each with a class of its own: who waits for an answer is not held back for
//! others, beside one whose datagrams share their trains.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::measure::{iperf3, iperf3_server};
use packtrain::lab::namespaces::{Process, program_exists};
use packtrain::lab::{unavailable, wait_for, wire};
use packtrain::status::StatusDocument;
use serde_json::Value;

use super::{LONG, add, know_each_other};
use crate::common::cabled::{pause, status};
use crate::common::waits::Waits;
use crate::common::{A, B, Pair, steady};

const NAMES: u8 = 12;
const CALLS: &str = "30";
/// Five of them come in the time that each may wait.
const DATAGRAMS_A_SECOND: &str = "4M";
const PAYLOAD_BYTES: &str = "200";

fn without() -> Option<String> {
    let needs = ["dnsmasq", "sipp", "iperf3"];
    let missing = needs.into_iter().find(|program| !program_exists(program));
    unavailable().or_else(|| missing.map(|program| format!("no `{program}`")))
}

fn name_of(n: u8) -> (String, String) {
    (format!("host{n}.packtrain.test"), format!("192.0.2.{n}"))
}

/// A server for datagrams, once it listens.
fn server(host: &Host, words: &[String], port: u16) -> Process {
    let server = host.namespace.spawn(words).unwrap();
    let listens = format!("grep -q ':{port:04X} ' /proc/net/udp");
    wait_for(&words[0], LONG, || host.namespace.sh(&listens).is_ok()).unwrap();
    server
}

fn words(of: &str) -> Vec<String> {
    of.split_whitespace().map(str::to_owned).collect()
}

fn name_server(host: &Host) -> Process {
    let alone = "--no-resolv --no-hosts --pid-file= --user=root --bind-interfaces";
    let records = (1..=NAMES).map(|n| {
        let (name, address) = name_of(n);
        format!("--host-record={name},{address}")
    });
    let line = format!("dnsmasq -k -C /dev/null {alone} --listen-address={B}");
    server(
        host,
        &words(&line).into_iter().chain(records).collect::<Vec<_>>(),
        53,
    )
}

/// By the C library, as any program does it, with a configuration that only this command sees.
fn resolve(host: &Host, name: &str) -> String {
    let configuration = format!(
        "mount -t tmpfs none /mnt && echo 'nameserver {B}' > /mnt/resolv.conf && \
         echo 'hosts: dns' > /mnt/nsswitch.conf && \
         for file in resolv.conf nsswitch.conf; do mount --bind /mnt/$file /etc/$file || exit; done"
    );
    let line = format!("{configuration}; getent ahostsv4 {name}");
    let said = host.namespace.sh(&line).unwrap();
    said.split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn call(pair: &Pair) {
    let line = format!(
        "sipp -sn uac -i {A} -p 5060 -m {CALLS} -r 40 -d 100 -timeout 10 -nostdin {B}:5060"
    );
    let said = pair.a.namespace.exec(words(&line)).unwrap();
    let successful = said.lines().find(|line| line.contains("Successful call"));
    let calls = successful.and_then(|line| line.split_whitespace().last());
    assert_eq!(calls, Some(CALLS), "{said}");
}

/// What came of a second.
#[derive(Debug)]
struct Second {
    /// On the way.
    lost: f64,
    frames_per_train: f64,
    /// The share of datagrams that waited for others, and of those that did for longer than they may.
    waited: f64,
    too_long: f64,
    /// The share of names asked for, and of calls, that did not leave in the moment in which they came: questions, and
    /// answers.
    queries: [f64; 2],
    calls: [f64; 2],
}

/// More than a program that is about to do something else takes for it, and less than others are waited for.
const A_MOMENT_S: f64 = 0.000_3;
/// Of 2 ms, the end of a bucket. Who is not run in time is late.
const BUDGET_S: f64 = 0.002_4;

fn a_second(pair: &Pair) -> Second {
    let before = [&pair.a, &pair.b].map(status);
    let not_read_before = wire::udp_not_read_in_time(&pair.b.namespace).unwrap();
    let result = std::thread::scope(|scope| {
        let datagrams = scope.spawn(|| {
            let line =
                format!("iperf3 -J -u -b {DATAGRAMS_A_SECOND} -l {PAYLOAD_BYTES} -t 1 -c {B}");
            let words: Vec<&str> = line.split_whitespace().collect();
            iperf3(&pair.a.namespace, &words).unwrap()
        });
        let calls = scope.spawn(|| call(pair));
        for n in 1..=NAMES {
            let (name, address) = name_of(n);
            assert_eq!(resolve(&pair.a, &name), address, "{name}");
            pause(Duration::from_millis(20));
        }
        calls.join().unwrap();
        datagrams.join().unwrap()
    });
    let after = [&pair.a, &pair.b].map(status);
    // What came to the socket of a program that was away for long is not ours to lose.
    let not_read = wire::udp_not_read_in_time(&pair.b.namespace).unwrap() - not_read_before;
    let sum = |what: &str| {
        let number = result.pointer(&format!("/end/sum/{what}"));
        number.and_then(Value::as_f64).unwrap()
    };
    let more = |of: fn(&StatusDocument) -> u64| (of(&after[0]) - of(&before[0])) as f64;
    let trains = more(|status| status.trains.tx.trains);
    let frames = more(|status| status.trains.tx.frames);
    let waits = |end: usize, class: &str| Waits::between(&before[end], &after[end], class);
    let datagrams = waits(0, "numbers");
    let queries = [0, 1].map(|end| waits(end, "dns"));
    let calls = [0, 1].map(|end| waits(end, "sip"));
    // Each was of its class: a question and its answer; INVITE, ACK and BYE, and what is said to them.
    assert!(datagrams.frames as f64 >= sum("packets"), "{datagrams:?}");
    let names = u64::from(NAMES);
    assert!(queries.iter().all(|of| of.frames >= names), "{queries:?}");
    assert!(calls.iter().all(|of| of.frames >= 90), "{calls:?}");
    Second {
        lost: sum("lost_packets") - not_read as f64,
        frames_per_train: frames / trains,
        waited: datagrams.share_longer_than(A_MOMENT_S),
        too_long: datagrams.share_longer_than(BUDGET_S),
        queries: queries.map(|of| of.share_longer_than(A_MOMENT_S)),
        calls: calls.map(|of| of.share_longer_than(A_MOMENT_S)),
    }
}

#[test]
fn names_and_calls_are_answered_at_once_beside_datagrams_that_share_their_trains() {
    live!(alone, without());
    let pair = Pair::up_with("classprograms", 1500, &["--path", "engine"]).unwrap();
    know_each_other(&pair);
    for host in [&pair.a, &pair.b] {
        add(host, "sip", &["udp port 5060", "--pack", "queued"]);
    }
    add(
        &pair.a,
        "numbers",
        &["udp dport 5201", "--pack", "scaled 2ms"],
    );
    let sip = format!("sipp -sn uas -i {B} -p 5060 -nostdin");
    let _servers = [name_server(&pair.b), server(&pair.b, &words(&sip), 5060)];
    let _iperf3 = iperf3_server(&pair.b.namespace).unwrap();
    let run = || a_second(&pair);
    steady::judge("beside each other", run, |second| {
        let at_once = |of: &[f64; 2]| of.iter().all(|&share| share < 0.2);
        second.lost <= 0.0
            && second.frames_per_train > 2.5
            && second.waited > 0.25
            && second.too_long < 0.2
            && at_once(&second.queries)
            && at_once(&second.calls)
    });
}
