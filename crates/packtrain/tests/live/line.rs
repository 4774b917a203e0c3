//! Lines with the real engine between network namespaces, told of their links by the test.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use packtrain::clock::Clock;
use packtrain::daemon::{Filter, Line, Report};
use packtrain::lab::namespaces::Namespace;
use packtrain::linux::netlink::{Link, Netlink};
use packtrain::linux::tap::Tap;
use packtrain_proto::config::{Config, LinkState, NodeId, mark_of};
use packtrain_proto::stats::DropReason;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::common::cabled::{now, pause};
use crate::common::steady;

/// What a test asks of a line between two turns.
type Job = Box<dyn FnOnce(&mut Line) + Send>;

/// One host: a namespace, and a thread that drives its line over `wire`.
struct Host {
    namespace: Namespace,
    wake: UnixStream,
    jobs: Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    fn start(namespace: Namespace, number: u8, mtu: u16) -> Host {
        let mac = MacAddr([2, 0x70, 0x74, 0, 0, number]);
        let tap = namespace
            .in_namespace(|| Tap::create("pt0", mac))
            .unwrap()
            .expect("a TAP");
        let node_id = NodeId(u64::from(std::process::id()) << 8 | u64::from(number));
        let config = Config {
            mtu,
            ..Config::new(node_id, mac)
        };
        let line = Line::new(config, tap, ["wire".to_string()], Clock::start()).expect("a line");
        let (wake, woken) = UnixStream::pair().expect("a pair of sockets");
        let (jobs, to_do) = channel();
        line.watch(&woken, 3).expect("watch");
        let thread = std::thread::spawn(move || drive(line, &woken, &to_do));
        let host = Host {
            namespace,
            wake,
            jobs,
            thread: Some(thread),
        };
        host.run(&format!("ip link set pt0 mtu {mtu} up"));
        host.run(&format!("ip address add 10.77.0.{number}/24 dev pt0"));
        host
    }

    fn run(&self, line: &str) -> String {
        self.namespace.sh(line).expect("a command that succeeds")
    }

    /// Does something with the line, on its thread, between two turns.
    fn with_line<T: Send + 'static>(&self, job: impl FnOnce(&mut Line) -> T + Send + 'static) -> T {
        use std::io::Write;
        let (answer, answered) = channel();
        let job: Job = Box::new(move |line| answer.send(job(line)).expect("the test waits"));
        self.jobs.send(job).expect("the line's thread lives");
        (&self.wake)
            .write_all(&[0])
            .expect("the line's thread lives");
        answered.recv().expect("the line's thread lives")
    }

    fn interface(&self) -> (Link, LinkState) {
        let find = || Netlink::open().and_then(|mut netlink| netlink.link_by_name("wire"));
        let link = self
            .namespace
            .in_namespace(find)
            .unwrap()
            .expect("netlink")
            .expect("wire");
        let state = LinkState {
            address: link.address,
            mark: mark_of(link.address),
            mtu: link.mtu as u16,
            carrier: link.up && link.carrier,
            rate_bps: None,
        };
        (link, state)
    }

    /// As netlink would tell.
    fn attach(&self) -> bool {
        let (link, state) = self.interface();
        // Sockets are of the namespace in which they are opened, so not on the line's thread.
        let path = format!("/run/netns/{}", self.namespace.name());
        self.with_line(move |line| {
            let file = std::fs::File::open(path).expect("the namespace's file");
            let kind = rustix::thread::LinkNameSpaceType::Network;
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(kind))
                .expect("setns");
            line.link_appeared("wire", link.ifindex, state, Filter::NONE)
                .expect("attach")
        })
    }

    fn tell_change(&self) {
        let (link, state) = self.interface();
        self.with_line(move |line| line.link_changed(link.ifindex, state));
    }

    fn report(&self) -> Report {
        self.with_line(Line::report)
    }

    /// Processor time that the line's thread has used.
    fn cpu_time(&self) -> Duration {
        self.with_line(|_| {
            let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
        })
    }

    fn peers_up(&self) -> usize {
        self.report()
            .snapshot
            .peers
            .iter()
            .filter(|peer| peer.up)
            .count()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let (closed, _) = channel();
        self.jobs = closed; // the line's thread sees that nobody asks any more
        let _ = self.wake.shutdown(std::net::Shutdown::Both);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended
                .expect("started")
                .expect("the line's thread ends well");
        }
    }
}

fn drive(mut line: Line, woken: &UnixStream, jobs: &Receiver<Job>) {
    use std::io::Read;
    loop {
        let extra = line.turn().expect("a turn");
        while line.poll_event().is_some() {}
        if !extra.contains(3) {
            continue;
        }
        let mut byte = [0];
        if (&*woken).read(&mut byte).unwrap_or(0) == 0 {
            break;
        }
        if let Ok(job) = jobs.recv() {
            job(&mut line);
        }
    }
    line.leave();
}

/// Two hosts with a cable of this MTU, attached where `attached` says.
fn hosts(link_mtu: u16, mtu: u16, attached: bool) -> [Host; 2] {
    let [a, b] = ["lina", "linb"].map(|tag| Namespace::create(tag).expect("a namespace"));
    let peer = b.name();
    a.sh(&format!(
        "ip link add wire type veth peer name wire netns {peer}"
    ))
    .expect("a cable");
    for side in [&a, &b] {
        side.sh("ip link set wire addrgenmode none arp off")
            .expect("quiet");
        side.sh(&format!("ip link set wire mtu {link_mtu} up"))
            .expect("up");
    }
    let hosts = [Host::start(a, 1, mtu), Host::start(b, 2, mtu)];
    if attached {
        hosts.iter().for_each(|host| assert!(host.attach()));
        wait_for("both know each other", || {
            hosts.iter().all(|host| host.peers_up() == 1)
        });
    }
    hosts
}

fn wait_for(what: &str, ready: impl FnMut() -> bool) {
    packtrain::lab::wait_for(what, Duration::from_secs(10), ready).expect("in time");
}

#[track_caller]
fn assert_pings(from: &Host, options: &str) {
    // It waits for two round trips where it had an answer: the last one may come later while the machine is away.
    let ping = || from.run(&format!("ping -c 4 -i 0.02 -W 2 {options} 10.77.0.2"));
    let all_came = |printed: &String| printed.contains(" 4 received");
    steady::judge("pings", ping, all_came);
}

#[test]
fn pings_of_every_size_pass_over_every_link_mtu() {
    live!();
    for link_mtu in [576, 1500, 9000] {
        let [a, b] = hosts(link_mtu, 60_028, true);
        for size in ["0", "56", "1472", "9000", "60000"] {
            assert_pings(&a, &format!("-M do -s {size}"));
        }
        for host in [&a, &b] {
            let drops = host.report().snapshot.drops;
            let reasons: Vec<_> = drops.iter().collect();
            // The host speaks (ND) before there is a link to speak on.
            let lost = drops.total() - drops.get(DropReason::NoLink);
            assert_eq!(lost, 0, "{reasons:?} over an MTU of {link_mtu}");
        }
    }
}

#[test]
fn tcp_both_ways_at_once_stays_whole_and_nothing_is_dropped() {
    live!();
    let [a, b] = hosts(1500, 1500, true);
    let mut server = b.namespace.spawn(["iperf3", "-s", "-1"]).expect("a server");
    wait_for("iperf3 listens", || {
        b.run("ss -Hltn").contains(":5201") && server.is_running()
    });
    let printed = a.run("iperf3 -c 10.77.0.2 -C cubic -t 3 --bidir -f m");
    println!("{printed}");
    server.finish().expect("the server ends");
    for host in [&a, &b] {
        let report = host.report();
        let snapshot = &report.snapshot;
        println!(
            "drops {:?}, {:?}, trains {:?}",
            snapshot.drops.iter().collect::<Vec<_>>(),
            report.members[0].counters,
            snapshot.trains_tx,
        );
        assert!(
            snapshot.host_tx.bytes > 10 << 20,
            "{} bytes",
            snapshot.host_tx.bytes
        );
        assert_eq!(report.tap.unrepresentable, 0);
        assert_eq!(report.members[0].counters.socket.truncated, 0);
    }
}

#[test]
fn over_a_slow_link_the_queue_stands_in_the_engine_and_nothing_stalls() {
    live!(alone);
    let [a, b] = hosts(1500, 1500, true);
    for host in [&a, &b] {
        host.run("tc qdisc add dev wire root tbf rate 20mbit burst 5000 limit 400000");
    }
    let fill = || {
        let mut server = b.namespace.spawn(["iperf3", "-s", "-1"]).expect("a server");
        wait_for("iperf3 listens", || {
            b.run("ss -Hltn").contains(":5201") && server.is_running()
        });
        let refused = || a.report().members[0].counters.refused_queue;
        let refused_before = refused();
        let used = a.cpu_time();
        let json = a.run("iperf3 -J -c 10.77.0.2 -C cubic -t 4");
        let used = a.cpu_time() - used;
        server.finish().expect("the server ends");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let bps = json["end"]["sum_received"]["bits_per_second"]
            .as_f64()
            .expect("a rate");
        let report = a.report();
        println!(
            "{used:?} of processor time, {:.2} Mbit/s of 20, {} retransmissions, queue limit by {:?}, {:?}, drops {:?}",
            bps / 1e6,
            json["end"]["sum_sent"]["retransmits"],
            report.snapshot.links[0].rate_bps,
            report.members[0].counters,
            report.snapshot.drops.iter().collect::<Vec<_>>(),
        );
        assert!(bps > 0.0, "nothing arrived");
        (bps, used, refused() - refused_before)
    };
    // Of a line that spins, the processor time is 4 s.
    let what = "bit/s, processor time for it, and frames that the local queue refused";
    steady::judge(what, fill, |&(bps, used, refused)| {
        bps > 0.8 * 20e6 && used < Duration::from_millis(800) && refused == 0
    });
}

/// In two seconds, each line's thread.
fn assert_both_sleep(hosts: &[Host; 2], when: &str) {
    let sleep = || {
        let before = hosts.each_ref().map(Host::cpu_time);
        hosts[0].run("sleep 2");
        let after = hosts.each_ref().map(Host::cpu_time);
        [after[0] - before[0], after[1] - before[1]]
    };
    let what = format!("processor time in 2 s, {when}");
    steady::judge(&what, sleep, |used| {
        used.iter().all(|&used| used < Duration::from_millis(50))
    });
}

#[test]
fn a_line_with_nothing_to_do_sleeps() {
    live!(alone);
    let hosts = hosts(1500, 1500, true);
    assert_both_sleep(&hosts, "nothing to do");
    let [a, b] = &hosts;
    // Not even with a queue that stands, and a link that is down.
    a.run("tc qdisc add dev wire root tbf rate 8kbit burst 1600 limit 400000");
    a.run("ping -c 50 -i 0.002 -s 1400 -W 0.1 10.77.0.2 || true");
    a.run("ip link set wire down");
    a.tell_change();
    b.tell_change();
    assert_both_sleep(&hosts, "the link down");
}

/// To look after each piece of news takes longer than the next one needs to come.
#[test]
fn news_without_end_keeps_no_frame_waiting() {
    live!();
    let [a, _b] = hosts(1500, 1500, true);
    assert_pings(&a, "-s 56"); // who has the address is known
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    a.with_line(|_| pause(Duration::from_millis(1)));
                }
            });
        }
        let printed = a.run("ping -c 20 -i 0.02 -W 1 10.77.0.2 || true");
        ended.store(true, Ordering::Relaxed);
        assert!(printed.contains(" 20 received"), "{printed}");
    });
}

#[test]
fn a_link_joins_when_it_appears_and_again_after_it_was_gone() {
    live!();
    let [a, b] = hosts(1500, 1500, false);
    assert_eq!(a.report().members[0].ifindex, None);
    assert!(b.attach() && a.attach());
    assert!(!a.attach(), "it is attached already");
    wait_for("both know each other", || {
        a.peers_up() == 1 && b.peers_up() == 1
    });
    assert_pings(&a, "");

    let (link, _) = a.interface();
    let (peer_link, _) = b.interface();
    a.run("ip link del wire");
    assert!(a.with_line(move |line| line.link_gone(link.ifindex)));
    assert!(b.with_line(move |line| line.link_gone(peer_link.ifindex)));
    assert!(!b.with_line(move |line| line.link_gone(peer_link.ifindex)));
    assert_eq!(a.report().members[0].ifindex, None);
    a.run(&format!(
        "ip link add wire type veth peer name wire netns {}",
        b.namespace.name()
    ));
    for host in [&a, &b] {
        host.run("ip link set wire addrgenmode none arp off up");
    }
    assert!(a.attach() && b.attach());
    wait_for("both know each other again", || {
        a.peers_up() == 1 && b.peers_up() == 1
    });
    assert_pings(&a, "");
}

#[test]
fn a_link_that_is_set_down_and_up_goes_on() {
    live!();
    let [a, b] = hosts(1500, 1500, true);
    for _ in 0..3 {
        a.run("ip link set wire down");
        a.tell_change();
        b.tell_change();
        a.run("ip link set wire up");
        wait_for("carrier", || {
            a.interface().1.carrier && b.interface().1.carrier
        });
        a.tell_change();
        b.tell_change();
        wait_for("both know each other", || {
            a.peers_up() == 1 && b.peers_up() == 1
        });
        assert_pings(&a, "");
    }
}

#[test]
fn who_leaves_is_forgotten_at_once() {
    live!();
    let leave = || {
        let [a, b] = hosts(1500, 1500, true);
        drop(b);
        let left = now();
        wait_for("it to be forgotten", || a.peers_up() == 0);
        left.elapsed()
    };
    // Less than the silence after which it would be without a goodbye.
    let at_most = Duration::from_millis(1500);
    steady::judge("until it was forgotten", leave, |&after| after < at_most);
}

#[test]
fn a_host_interface_that_is_deleted_ends_the_line() {
    live!();
    let [a, b] = hosts(1500, 1500, true);
    drop(b);
    let Host { namespace, .. } = &a;
    let mac = MacAddr([2, 0, 0, 0, 0, 9]);
    let tap = namespace
        .in_namespace(|| Tap::create("pt9", mac))
        .unwrap()
        .expect("a TAP");
    let config = Config::new(NodeId(9), mac);
    let mut line = Line::new(config, tap, ["absent".to_string()], Clock::start()).expect("a line");
    line.turn().expect("nothing to do yet");
    namespace.sh("ip link del pt9").expect("delete");
    wait_for("the line ends", || line.turn().is_err());
}
