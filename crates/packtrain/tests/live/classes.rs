//! Classes on lines between two hosts: which way their frames take, when they leave, and that whoever has no
//! class is treated as before. Counts are exact: nothing else is sent to the addresses meanwhile.

mod calls;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use packtrain::lab::host::Host;
use packtrain::lab::messages::{Load, Report, measure};
use packtrain::lab::namespaces::Process;
use packtrain::lab::{measure as programs, wait_for, wire};
use packtrain::linux::packet_socket::PacketSocket;
use packtrain::status::{PeerPath, StatusDocument, Traffic};
use packtrain_proto::buffer::BufferPool;

use crate::common::cabled::{pause, status};
use crate::common::direct::{path, wait_for_direct};
use crate::common::{A, B, Pair, packtrain, pattern, pings_whole, steady};

const LONG: Duration = Duration::from_secs(10);
/// UDP payload of a datagram.
const PAYLOAD_BYTES: usize = 200;
/// Ethernet, IPv4 and UDP.
const HEADER_BYTES: usize = 14 + 20 + 8;
/// A socket keeps so many for a reader that is late.
const AT_ONCE: u64 = 20;

fn taken(status: &StatusDocument, class: &str) -> Traffic {
    let found = status.classes.iter().find(|known| known.name == class);
    found.unwrap_or_else(|| panic!("{class}: {status:?}")).taken
}

pub fn add(host: &Host, name: &str, words: &[&str]) {
    let words = [&["class", "add", "pt0", "--name", name, "--match"], words].concat();
    host.packtrain(&words).unwrap();
}

fn remove(host: &Host, class: &str) {
    host.packtrain(&["class", "remove", "pt0", class]).unwrap();
}

/// For good, so that nobody asks for an address while frames are counted.
fn know_each_other(pair: &Pair) {
    assert!(pings_whole(&pair.a, B, 56));
    for (here, there, address) in [(&pair.a, &pair.b, B), (&pair.b, &pair.a, A)] {
        let mac = status(there).address;
        let words = ["ip", "neigh", "replace", address, "lladdr", &mac];
        let words = [&words[..], &["dev", "pt0", "nud", "permanent"]].concat();
        here.namespace.exec(words).unwrap();
    }
}

/// Two hosts whose line has a direct path, and who need not ask for each other.
fn pair(tag: &str) -> Pair {
    let pair = Pair::cable(tag, 1500).unwrap();
    for host in [&pair.a, &pair.b] {
        // Two processors that take turns reorder even a bare cable, and the line would see to it.
        wire::receive_on_cpu(&host.namespace, "eth1", 0).unwrap();
    }
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    know_each_other(&pair);
    wait_for_direct(&pair.a);
    pair
}

/// Datagrams of one flow from a to b, each with its number.
struct Flow {
    from: UdpSocket,
    to: UdpSocket,
    next: u64,
}

impl Flow {
    fn new(pair: &Pair, port: u16) -> Flow {
        let to = || UdpSocket::bind((B, port));
        let to = pair.b.namespace.in_namespace(to).unwrap().unwrap();
        to.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let from = || {
            UdpSocket::bind((A, 0)).and_then(|socket| socket.connect((B, port)).map(|()| socket))
        };
        let from = pair.a.namespace.in_namespace(from).unwrap().unwrap();
        Flow { from, to, next: 0 }
    }

    fn set_mark(&self, mark: u32) {
        setsockopt(&self.from, sockopt::Mark, &mark).unwrap();
    }

    /// They all arrive, once, in order and whole.
    fn pass(&mut self, datagrams: u64) {
        let end = self.next + datagrams;
        while self.next < end {
            let numbers = self.next..end.min(self.next + AT_ONCE);
            self.next = numbers.end;
            for number in numbers.clone() {
                self.from.send(&datagram(number)).unwrap();
            }
            for number in numbers {
                let mut buffer = [0; PAYLOAD_BYTES + 1];
                let len = self.to.recv(&mut buffer);
                let len = len.unwrap_or_else(|error| panic!("datagram {number}: {error}"));
                assert_eq!(buffer[..len], datagram(number), "datagram {number}");
            }
        }
    }

    /// One after the other, until the host sends one past the engine: all before it are known to be delivered.
    fn pass_until_direct(&mut self, host: &Host) {
        let before = status(host).direct.tx.frames;
        wait_for("the flow to change its path", LONG, || {
            self.pass(1);
            pause(Duration::from_millis(20));
            status(host).direct.tx.frames > before
        })
        .unwrap();
    }
}

fn datagram(number: u64) -> Vec<u8> {
    let places = number * PAYLOAD_BYTES as u64..;
    let mut bytes: Vec<u8> = places.take(PAYLOAD_BYTES).map(pattern).collect();
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[test]
fn frames_of_a_class_whose_path_is_the_engine_go_there_alone_and_past_it_when_the_class_is_gone() {
    live!();
    let pair = pair("classpath");
    add(&pair.a, "sip", &["udp dport 5060", "--path", "engine"]);
    let (mut of_class, mut other) = (Flow::new(&pair, 5060), Flow::new(&pair, 5061));
    let before = status(&pair.a);
    of_class.pass(300);
    other.pass(200);
    let after = status(&pair.a);
    let counted = taken(&after, "sip");
    let expected = Traffic {
        frames: 300,
        bytes: 300 * (HEADER_BYTES + PAYLOAD_BYTES) as u64,
    };
    assert_eq!(counted, expected);
    assert_eq!(after.direct.tx.frames - before.direct.tx.frames, 200);
    assert_eq!(taken(&after, "rest"), taken(&before, "rest"));
    assert_eq!(path(&pair.a).0, PeerPath::Direct);

    remove(&pair.a, "sip");
    of_class.pass_until_direct(&pair.a);
    let before = status(&pair.a);
    of_class.pass(100);
    let after = status(&pair.a);
    assert_eq!(after.direct.tx.frames - before.direct.tx.frames, 100);
    assert_eq!(after.host.taken, before.host.taken);
    assert_eq!(after.drops.values().sum::<u64>(), 0, "{after:?}");
}

/// Frames that come to a host's `pt0`, with the payload that datagrams have in them altogether.
struct Seen {
    socket: PacketSocket,
    pool: BufferPool,
}

impl Seen {
    fn at(host: &Host) -> Seen {
        let index = status(host).ifindex;
        let socket = host.namespace.in_namespace(|| PacketSocket::open(index));
        Seen {
            socket: socket.unwrap().unwrap(),
            pool: BufferPool::new(),
        }
    }

    /// Datagrams to this port, by the 14 bytes before their IPv4 headers. Several may have become one frame.
    fn datagrams(&mut self, port: u16) -> Vec<(Vec<u8>, usize)> {
        let mut seen = Vec::new();
        while let Ok(Some((frame, _))) = self.socket.receive(&mut self.pool) {
            if frame.get(36..38) != Some(&port.to_be_bytes()) {
                continue;
            }
            let payload = frame.len() - HEADER_BYTES;
            assert_eq!(payload % PAYLOAD_BYTES, 0, "{frame:02x?}");
            seen.push((frame[..14].to_vec(), payload / PAYLOAD_BYTES));
            self.pool.give_back(frame);
        }
        seen
    }
}

fn mac(host: &Host) -> Vec<u8> {
    let text = status(host).address;
    let bytes = text.split(':');
    bytes
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

#[test]
fn a_class_may_ask_for_the_mark_of_a_socket_and_nobody_beyond_the_line_sees_it() {
    live!();
    let pair = pair("classmark");
    // Each of its four bytes is carried.
    for (port, mark) in [(7000, 7), (7001, 0xfedc_ba98)] {
        let matches = format!("mark {mark:#x}");
        add(&pair.a, "marked", &[&matches, "--path", "engine"]);
        let mut seen = Seen::at(&pair.b);
        let mut flow = Flow::new(&pair, port);
        let before = status(&pair.a);
        flow.set_mark(mark);
        flow.pass(100);
        let marked = status(&pair.a);
        assert_eq!(taken(&marked, "marked").frames, 100, "{mark:#x}");
        assert_eq!(marked.direct.tx, before.direct.tx);
        // The same socket, and a mark that differs in one bit.
        for other in [0, mark ^ 0x8000] {
            flow.set_mark(other);
            flow.pass(50);
        }
        let unmarked = status(&pair.a);
        assert_eq!(taken(&unmarked, "marked").frames, 100, "{mark:#x}");
        let rest = taken(&unmarked, "rest").frames - taken(&before, "rest").frames;
        let direct = unmarked.direct.tx.frames - before.direct.tx.frames;
        assert_eq!(rest + direct, 100, "{rest} by the engine, {direct} direct");
        flow.pass_until_direct(&pair.a);
        flow.set_mark(mark);
        flow.pass(10);
        assert_eq!(taken(&status(&pair.a), "marked").frames, 110, "{mark:#x}");

        let header = [&mac(&pair.b), &mac(&pair.a), &[0x08, 0x00][..]].concat();
        let frames = seen.datagrams(port);
        let all: usize = frames.iter().map(|(_, datagrams)| datagrams).sum();
        assert_eq!(all as u64, flow.next);
        for (first, _) in frames {
            assert_eq!(first, header, "{first:02x?}, and not {header:02x?}");
        }
        remove(&pair.a, "marked");
    }
    let after = status(&pair.a);
    assert_eq!(after.drops.values().sum::<u64>(), 0, "{after:?}");
}

/// Classes come and go while datagrams pass whose way they decide: each flow's come all, once, in order. What has no room before
/// a line that had no processor for a while is counted.
#[test]
fn a_flow_whose_class_comes_and_goes_loses_nothing_and_overtakes_nothing() {
    live!(alone);
    let pair = pair("classchange");
    let ended = AtomicBool::new(false);
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let ports = [7000, 7001, 7002, 7003];
        let running = ports.map(|port| {
            let load = Load {
                size: 300,
                duration: Duration::from_secs(5),
                rate_per_second: Some(800),
                real_time: false,
            };
            let at = SocketAddr::new(B.parse().unwrap(), port);
            let pair = &pair;
            scope.spawn(move || measure(&pair.a.namespace, &pair.b.namespace, at, load).unwrap())
        });
        let changing = scope.spawn(|| {
            let mut changes = 0;
            while !ended.load(Ordering::Relaxed) {
                add(&pair.a, "all", &["udp dport 7000-7002", "--path", "engine"]);
                pause(Duration::from_millis(20));
                // It stands before the other, which goes first.
                add(
                    &pair.a,
                    "one",
                    &["udp dport 7001", "--path", "direct", "--before", "all"],
                );
                pause(Duration::from_millis(20));
                remove(&pair.a, "all");
                remove(&pair.a, "one");
                pause(Duration::from_millis(20));
                changes += 1;
            }
            changes
        });
        let reports = running.map(|flow| flow.join().unwrap()).into();
        ended.store(true, Ordering::Relaxed);
        let changes = changing.join().unwrap();
        assert!(changes > 2, "{changes} changes");
        reports
    });
    let (a, b) = (status(&pair.a), status(&pair.b));
    let lost: u64 = reports.iter().map(Report::lost).sum();
    let for_lateness = ["host_overrun", "codel"];
    let late: u64 = for_lateness
        .iter()
        .filter_map(|reason| a.drops.get(*reason))
        .sum();
    assert!(
        lost <= late,
        "{lost} lost: {reports:?}\n{:?}\n{:?}",
        a.drops,
        b.drops
    );
    let orders = reports.iter().map(|r| (r.reordered, r.duplicated));
    assert!(orders.clone().all(|order| order == (0, 0)), "{reports:?}");
    // A run counts only if it was what it is called.
    let (direct, engine) = (a.direct.tx.frames, a.host.taken.frames);
    assert!(
        direct > 4000 && engine > 1000,
        "{direct} direct, {engine} by the engine"
    );
}

/// Sends all that the line takes from a to b, for longer than any test: the other end, and who sends.
fn fill(pair: &Pair, words: &[&str]) -> [Process; 2] {
    let server = programs::iperf3_server(&pair.b.namespace).unwrap();
    // A client that finds nobody on iperf3's port gives up.
    let listens = "grep -q ':1451 .* 0A ' /proc/net/tcp /proc/net/tcp6";
    wait_for("the other end", LONG, || {
        pair.b.namespace.sh(listens).is_ok()
    })
    .unwrap();
    let client = [&["iperf3", "-t", "300", "-c", B], words].concat();
    [server, pair.a.namespace.spawn(client).unwrap()]
}

/// The kernel gives a segmented TCP stream to the line in frames of up to 64 KB, and keeps what it may have to
/// send again: a mark is written into neither.
#[test]
fn a_marked_tcp_stream_arrives_whole_by_the_engine() {
    live!();
    const BYTES: usize = 5_000_000;
    let pair = pair("classtcp");
    add(&pair.a, "marked", &["tcp mark 7", "--path", "engine"]);
    let listen = || TcpListener::bind((B, 7000));
    let listener = pair.b.namespace.in_namespace(listen).unwrap().unwrap();
    let connect = || TcpStream::connect((B, 7000));
    let mut from = pair.a.namespace.in_namespace(connect).unwrap().unwrap();
    let (mut to, _) = listener.accept().unwrap();
    for socket in [&from, &to] {
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket.set_write_timeout(Some(LONG)).unwrap();
    }
    assert_eq!(taken(&status(&pair.a), "marked").frames, 0);
    setsockopt(&from, sockopt::Mark, &7).unwrap();
    let sent: Vec<u8> = (0..BYTES as u64).map(pattern).collect();
    let mut arrived = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            from.write_all(&sent).unwrap();
            from.shutdown(Shutdown::Write).unwrap();
        });
        to.read_to_end(&mut arrived).unwrap();
    });
    assert!(arrived == sent, "{} of {BYTES} bytes", arrived.len());
    let bytes = taken(&status(&pair.a), "marked").bytes;
    assert!(bytes > BYTES as u64, "{bytes} bytes of the class");
}

#[test]
fn a_class_whose_path_is_direct_goes_past_the_engine_while_a_standing_queue_keeps_others_in_it() {
    live!(wire::shaping_unavailable());
    const DATAGRAMS: u64 = 200;
    const ROUNDS: u16 = 8;
    let pair = pair("classdirect");
    for host in [&pair.a, &pair.b] {
        wire::shape(&host.namespace, "eth1", 100).unwrap();
    }
    let [_server, mut bulk] = fill(&pair, &["-C", "cubic"]);
    let congested = (PeerPath::Engine, Some("congestion".to_owned()));
    wait_for("the queue to stand", LONG, || path(&pair.a) == congested).unwrap();
    let of_round = |port: u16| {
        let before = status(&pair.a);
        Flow::new(&pair, port).pass(DATAGRAMS);
        let after = status(&pair.a);
        // What was closed and opened meanwhile says nothing.
        let is_steady = before.direct.changes == after.direct.changes
            && [&before, &after]
                .iter()
                .all(|s| s.peers[0].path == PeerPath::Engine);
        is_steady.then(|| after.direct.tx.frames - before.direct.tx.frames)
    };
    let rounds = |first: u16| -> Vec<u64> {
        let rounds = (first..first + ROUNDS).filter_map(of_round);
        rounds.take(3).collect()
    };
    let without = rounds(6000);
    assert!(
        without.len() == 3 && without.iter().all(|&direct| direct == 0),
        "{without:?}"
    );
    add(
        &pair.a,
        "game",
        &["udp dport 6100-6199", "--path", "direct"],
    );
    wait_for("the queue to stand", LONG, || path(&pair.a) == congested).unwrap();
    let with = rounds(6100);
    let all_direct = with.iter().filter(|&&direct| direct == DATAGRAMS).count();
    // A flow in a few hundred shares its slot with one that is in the engine, and waits as that does.
    assert!(with.len() == 3 && all_direct >= 2, "{with:?}");
    assert!(bulk.is_running());
}

fn messages(pair: &Pair, port: u16, rate_per_second: u64, duration: Duration) -> Report {
    let load = Load {
        size: 64,
        duration,
        rate_per_second: Some(rate_per_second),
        real_time: true,
    };
    let at = SocketAddr::new(B.parse().unwrap(), port);
    // A flow in a few hundred shares its slot with one of those that fill the line, and stands behind its frames:
    // that no message comes says nothing. The next has another port.
    let measured = || measure(&pair.a.namespace, &pair.b.namespace, at, load);
    let report = measured().or_else(|_| measured()).unwrap();
    assert_eq!(
        (report.reordered, report.duplicated),
        (0, 0),
        "{report:?}\n{:?}",
        status(&pair.a)
    );
    report
}

/// Messages beside what fills the line: of a class that says now, and without it.
fn now_and_queued(pair: &Pair) -> [Report; 2] {
    // Often enough that a message finds the others' turns between it and the one before.
    let send = || messages(pair, 7000, 200, Duration::from_secs(3));
    let without = send();
    add(&pair.a, "voice", &["udp dport 7000", "--pack", "now"]);
    // What has become urgent goes past the queues before pt0 when nothing of it can wait there any more.
    pause(Duration::from_millis(2500));
    let with = send();
    assert!(taken(&status(&pair.a), "voice").frames >= with.sent);
    remove(&pair.a, "voice");
    [with, without]
}

fn assert_now_is_sooner(pair: &Pair) {
    let what = "messages that leave now, and those that queue";
    let both = || now_and_queued(pair);
    steady::judge(what, both, |[with, without]| {
        let lost = with.lost() + without.lost();
        lost == 0 && with.delay_p50_us < 0.75 * without.delay_p50_us
    });
}

/// All that waits for the line waits before `pt0`, where the host is held back.
#[test]
fn what_is_to_leave_now_overtakes_the_flows_that_are_held_back_before_a_slow_line() {
    live!(alone, wire::shaping_unavailable());
    let pair = pair("classheld");
    for host in [&pair.a, &pair.b] {
        wire::shape(&host.namespace, "eth1", 5).unwrap();
    }
    let [_server, mut bulk] = fill(&pair, &["-C", "cubic", "-P", "8"]);
    wait_for("the host to be held back", LONG, || {
        let intake = status(&pair.a).intake;
        intake.is_some_and(|intake| intake.rate_bps.is_some() && intake.waiting_frames > 0)
    })
    .unwrap();
    assert_now_is_sooner(&pair);
    assert!(bulk.is_running());
}

/// Where the host is not held back before `pt0`, it waits in the engine.
#[test]
fn what_is_to_leave_now_overtakes_the_flows_that_fill_a_slow_line() {
    live!(alone, wire::shaping_unavailable());
    let pair = pair("classnow");
    for host in [&pair.a, &pair.b] {
        wire::shape(&host.namespace, "eth1", 5).unwrap();
    }
    let pfifo = "tc qdisc replace dev pt0 root pfifo limit 1000";
    pair.a.namespace.sh(pfifo).unwrap();
    let datagrams = ["-u", "-b", "1M", "-l", "1200", "-P", "16"];
    let [_server, mut bulk] = fill(&pair, &datagrams);
    let foreign = (PeerPath::Engine, Some("pt0_qdisc".to_owned()));
    wait_for("queues in the engine", LONG, || {
        path(&pair.a) == foreign && status(&pair.a).queue.flows >= 16
    })
    .unwrap();
    assert_now_is_sooner(&pair);
    assert!(bulk.is_running());
}

#[test]
fn what_may_wait_shares_its_trains_over_an_idle_line_and_is_no_later_than_it_may() {
    live!(alone);
    let pair = pair("classwait");
    let mut port = 7000;
    let mut send = || {
        port += 1;
        let before = status(&pair.a);
        let report = messages(&pair, port, 2000, Duration::from_secs(2));
        let after = status(&pair.a);
        let trains = after.trains.tx.trains - before.trains.tx.trains;
        let direct = after.direct.tx.frames - before.direct.tx.frames;
        (report, trains, direct)
    };
    let (report, _, direct) = send();
    assert!(
        direct >= report.sent,
        "{direct} of {} went direct {:?} {:?}",
        report.sent,
        path(&pair.a),
        status(&pair.a).direct
    );

    add(
        &pair.a,
        "sensors",
        &["udp dport 7000-7999", "--pack", "5ms"],
    );
    let of_class = || {
        let before = taken(&status(&pair.a), "sensors").frames;
        let (report, trains, direct) = send();
        let counted = taken(&status(&pair.a), "sensors").frames - before;
        // With those that find the other end, and those that say that it was all.
        assert!(counted > report.sent, "{counted} of {}", report.sent);
        assert_eq!(direct, 0);
        let per_train = counted as f64 / trains.max(1) as f64;
        (per_train, report)
    };
    steady::judge(
        "messages a train, and their delay",
        of_class,
        |(per_train, report)| {
            // They come every half millisecond: ten in the time that the first may wait.
            report.lost() == 0
                && *per_train > 5.0
                && (1000.0..4000.0).contains(&report.delay_p50_us)
                // Other programs have the processors for milliseconds, also where nothing waits.
                && report.delay_p99_us < 12_000.0
                && report.delay_max_us < 30_000.0
        },
    );
}

/// A file that is gone again with its test.
struct LineFile(std::path::PathBuf);

impl LineFile {
    fn new(name: &str, text: &str) -> LineFile {
        let name = format!("packtrain-{}-{name}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        LineFile(path)
    }
}

impl Drop for LineFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn classes_of_a_file_are_there_from_the_start_and_the_defaults_only_where_they_are_wanted() {
    live!();
    let own = "[[class]]\nname = 'marked'\nmatch = 'mark 7'\npath = 'engine'\n\
               [[class]]\nmatch = 'udp dport 5060'\npack = 'now'\n\
               [[class]]\nname = 'sensors'\nmatch = 'udp dport 6000-6009'\npack = '5ms'\n";
    let defaults = ["arp", "icmp6", "icmp", "dns", "ef", "tcp-empty"];
    for (tag, first, defaults) in [
        ("filedefaults", "", &defaults[..]),
        ("fileown", "default_classes = false\n", &[]),
    ] {
        let pair = Pair::cable(tag, 1500).unwrap();
        let text =
            format!("name = 'pt0'\naddresses = ['{A}/24']\n{first}[[link]]\nname = 'eth1'\n{own}");
        let file = LineFile::new(tag, &text);
        let run = [packtrain().as_os_str(), "run".as_ref(), file.0.as_os_str()];
        let _line = pair.a.namespace.spawn(run).unwrap();
        wait_for("the line", LONG, || pair.a.status().is_ok()).unwrap();
        pair.b_up(&[]).unwrap();
        pair.wait().unwrap();
        let names: Vec<String> = status(&pair.a)
            .classes
            .into_iter()
            .map(|c| c.name)
            .collect();
        let expected = [&["marked", "class1", "sensors"], defaults, &["rest"]].concat();
        assert_eq!(names, expected);
        know_each_other(&pair);
        wait_for_direct(&pair.a);
        // Who else is sent to by the engine has a class of the defaults, or is of the rest.
        let before = status(&pair.a);
        let mut flows = [7000, 5060, 6000].map(|port| Flow::new(&pair, port));
        flows[0].set_mark(7);
        for (flow, datagrams) in flows.iter_mut().zip([30, 40, 50]) {
            flow.pass(datagrams);
        }
        let after = status(&pair.a);
        for (class, by_engine) in [("marked", 30), ("sensors", 50)] {
            assert_eq!(taken(&after, class).frames, by_engine, "{class}");
        }
        let direct = after.direct.tx.frames - before.direct.tx.frames;
        assert_eq!(direct + taken(&after, "class1").frames, 40);
    }
}
