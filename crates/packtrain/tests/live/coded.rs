//! Coded trains over a link of a few Mbit/s: more frames in each than fit as they are, and each frame arrives as it was.

use std::net::UdpSocket;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::{wait_for, wire};
use packtrain::status::StatusDocument;

use crate::classes::add;
use crate::common::cabled::status;
use crate::common::{A, B, Pair, pattern, pings_whole};

const LONG: Duration = Duration::from_secs(10);
const RATE_MBIT: u32 = 4;
/// They leave at once and stand before the link; then all are read, so that no queue stands for long, and none is dropped.
const AT_ONCE: u32 = 80;
const PAYLOAD_BYTES: usize = 60;
/// Of them as they are, so many fit a train at most: an IPv4 and a UDP header before each payload.
const FIT_UNCODED: u16 = (1500 / (20 + 8 + PAYLOAD_BYTES)) as u16;

/// What one flow of datagrams carries.
type Content = fn(u32) -> Vec<u8>;

fn random(number: u32) -> Vec<u8> {
    let begin = u64::from(number) * PAYLOAD_BYTES as u64;
    let bytes = (begin..).map(pattern).take(PAYLOAD_BYTES - 4);
    number.to_be_bytes().into_iter().chain(bytes).collect()
}

fn text(number: u32) -> Vec<u8> {
    let text = format!("{number:08} temperature=21.5 humidity=40.2 pressure=1013 ok");
    let mut bytes = text.into_bytes();
    bytes.resize(PAYLOAD_BYTES, b' ');
    bytes
}

fn up(tag: &str, b_does_without: bool) -> Pair {
    let without = ["--no-coded-trains"];
    up_with(tag, &[], &without[..usize::from(b_does_without)])
}

fn up_with(tag: &str, of_a: &[&str], of_b: &[&str]) -> Pair {
    let pair = Pair::cable(tag, 1500).unwrap();
    for host in [&pair.a, &pair.b] {
        wire::shape(&host.namespace, "eth1", RATE_MBIT).unwrap();
    }
    let path = ["--path", "engine"];
    pair.a_up(&[&path, of_a].concat()).unwrap();
    pair.b_up(&[&path, of_b].concat()).unwrap();
    pair.a.wait_for_peers(1).unwrap();
    pair.b.wait_for_peers(1).unwrap();
    assert!(pings_whole(&pair.a, B, 56));
    pair
}

/// Datagrams from one host to the other, each with its number.
struct Flow {
    from: UdpSocket,
    to: UdpSocket,
    content: Content,
    next: u32,
}

impl Flow {
    fn new(from: (&Host, &str), to: (&Host, &str), port: u16, content: Content) -> Flow {
        let listen = || UdpSocket::bind((to.1, port));
        let listener = to.0.namespace.in_namespace(listen).unwrap().unwrap();
        listener
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let connect = || {
            let socket = UdpSocket::bind((from.1, 0))?;
            socket.connect((to.1, port)).map(|()| socket)
        };
        Flow {
            from: from.0.namespace.in_namespace(connect).unwrap().unwrap(),
            to: listener,
            content,
            next: 0,
        }
    }

    /// They all arrive, once, in order and as they were.
    fn pass(&mut self) {
        let numbers = self.next..self.next + AT_ONCE;
        self.next = numbers.end;
        for number in numbers.clone() {
            self.from.send(&(self.content)(number)).unwrap();
        }
        for number in numbers {
            let mut buffer = [0; PAYLOAD_BYTES + 1];
            let len = self.to.recv(&mut buffer);
            let len = len.unwrap_or_else(|error| panic!("datagram {number}: {error}"));
            assert_eq!(buffer[..len], (self.content)(number), "datagram {number}");
        }
    }

    fn pass_some(&mut self) {
        for _ in 0..10 {
            self.pass();
        }
    }
}

/// Between two looks at who sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Saved {
    coded_trains: u64,
    told_apart: u64,
    headers: i64,
    payload: i64,
}

const NOTHING: Saved = Saved {
    coded_trains: 0,
    told_apart: 0,
    headers: 0,
    payload: 0,
};

fn saved(before: &StatusDocument, after: &StatusDocument) -> Saved {
    let (before, after) = (&before.coding, &after.coding);
    Saved {
        coded_trains: after.coded_tx - before.coded_tx,
        told_apart: after.told_apart - before.told_apart,
        headers: after.saved.headers.bytes - before.saved.headers.bytes,
        payload: after.saved.payload.bytes - before.saved.payload.bytes,
    }
}

fn frames_of_the_longest(status: &StatusDocument) -> u16 {
    let buckets = status.trains.frames_per_train.iter();
    buckets.map(|bucket| bucket.frames).max().unwrap_or(0)
}

fn says_that_it_takes_them(host: &Host) -> bool {
    let peer = status(host).peers.into_iter().next().expect("a peer");
    peer.capabilities.iter().any(|can| can == "coded_trains")
}

#[test]
fn many_small_frames_of_a_flow_share_coded_trains_and_arrive_as_they_were() {
    live!(wire::shaping_unavailable());
    let pair = up("coded", false);
    assert!(says_that_it_takes_them(&pair.b));
    let flow = |port, content: Content| Flow::new((&pair.a, A), (&pair.b, B), port, content);
    let since = |before: &StatusDocument| saved(before, &status(&pair.a));

    // A class that says so is not coded: first, so that the longest train is of these.
    add(&pair.a, "raw", &["udp dport 5001", "--compress", "off"]);
    let before = status(&pair.a);
    flow(5001, text).pass_some();
    assert_eq!(since(&before), NOTHING);
    let longest = frames_of_the_longest(&status(&pair.a));
    assert!(longest <= FIT_UNCODED, "{longest} frames");

    let before = status(&pair.a);
    // Where the machine is away they come one by one for a while.
    let mut each_time = (0..8).map(|_| {
        flow(5002, random).pass_some();
        since(&before)
    });
    let many = |headers: &Saved| headers.coded_trains > 10 && headers.told_apart > 400;
    let headers = each_time
        .find(many)
        .expect("frames that share coded trains");
    // 28 bytes of each, but for what differs, and for the first of a train.
    let least = headers.told_apart as i64 * 20;
    assert!(headers.headers > least, "{headers:?}");
    assert_eq!(headers.payload, 0);
    let longest = frames_of_the_longest(&status(&pair.a));
    assert!(longest > FIT_UNCODED, "{longest} frames");

    // What the link carries is known by now, or soon: it is worth compressing for.
    // A class of its own, for one is not tried again at once that did not shrink.
    add(&pair.a, "text", &["udp dport 5003"]);
    let before = status(&pair.a);
    let mut compressible = flow(5003, text);
    wait_for(
        "payload to be compressed, and its cost to be known",
        LONG,
        || {
            compressible.pass_some();
            let cost = status(&pair.a).coding.cpu_s_per_mb;
            // Unlike what the engine expects of a processor that it does not know.
            let is_measured = cost.is_some_and(|cost| (cost - 0.006).abs() > 1e-9);
            since(&before).payload > 1000 && is_measured
        },
    )
    .unwrap_or_else(|error| panic!("{error}: {:#?}", status(&pair.a)));

    add(
        &pair.a,
        "fixed",
        &["udp dport 5004", "--compress", "headers"],
    );
    let before = status(&pair.a);
    flow(5004, text).pass_some();
    let headers = since(&before);
    assert!(headers.headers > 0 && headers.payload == 0, "{headers:?}");

    let [sent, received] = [&pair.a, &pair.b].map(status);
    assert_eq!(received.coding.coded_rx, sent.coding.coded_tx);
    let shown = pair.a.packtrain(&["status", "pt0"]).unwrap();
    for part in [
        "  on wire ",
        "  saved by ",
        " frames told apart",
        " CPU per MB",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn nothing_is_coded_to_or_from_a_line_that_does_without() {
    live!(wire::shaping_unavailable());
    let pair = up("uncoded", true);
    assert!(says_that_it_takes_them(&pair.b) && !says_that_it_takes_them(&pair.a));
    for (from, to) in [((&pair.a, A), (&pair.b, B)), ((&pair.b, B), (&pair.a, A))] {
        Flow::new(from, to, 5002, text).pass_some();
        let of_sender = status(from.0);
        let none = StatusDocument {
            coding: Default::default(),
            ..of_sender.clone()
        };
        assert_eq!(saved(&none, &of_sender), NOTHING);
        let longest = frames_of_the_longest(&of_sender);
        assert!((5..=FIT_UNCODED).contains(&longest), "{longest} frames");
    }
}

#[test]
fn a_dictionary_that_both_have_is_used_and_status_says_so() {
    live!(wire::shaping_unavailable());
    let path = std::env::temp_dir().join(format!("packtrain-{}-live.dict", std::process::id()));
    let known: Vec<u8> = (0..80).flat_map(text).collect();
    std::fs::write(&path, &known).unwrap();
    let file = path.to_str().expect("a name of ours");
    let with = ["--dictionary", file];
    let pair = up_with("dictionary", &with, &with);
    std::fs::remove_file(&path).unwrap();
    let mut flow = Flow::new((&pair.a, A), (&pair.b, B), 5005, text);
    let trains = |host: &Host| {
        let dictionary = status(host).dictionary.expect("it was given one");
        (dictionary.trains_tx, dictionary.trains_rx)
    };
    wait_for("trains by the dictionary", LONG, || {
        flow.pass_some();
        trains(&pair.a).0 > 5
    })
    .unwrap_or_else(|error| panic!("{error}: {:#?}", status(&pair.a)));
    assert_eq!(trains(&pair.b).1, trains(&pair.a).0);
    let of_a = status(&pair.a);
    let dictionary = of_a.dictionary.expect("it was given one");
    assert_eq!(dictionary.bytes, known.len() as u64);
    assert_eq!(dictionary.file.as_deref(), Some(file));
    let peer = &of_a.peers[0];
    assert_eq!(peer.dictionary, Some(dictionary.id));
    assert_eq!(peer.dictionary_unused, None);
    let shown = pair.a.packtrain(&["status", "pt0"]).unwrap();
    for part in ["  dictionary the same, used ", " trains with it: "] {
        assert!(
            shown.replace("\n            ", "").contains(part),
            "{shown}"
        );
    }
}
