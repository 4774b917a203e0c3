//! Changes of path over long wires: what went one way is under way for long while the next frame of its flow
//! goes the other way.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::thread::scope;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::path_changes::{self, Pace};
use packtrain::lab::topology::TopologyOptions;
use packtrain::lab::wire;
use packtrain::settings::MTU_DEFAULT;

use crate::common::cabled::{now, pause, status};
use crate::common::direct::wait_for_direct;
use crate::common::standing::Standing;
use crate::common::{B, pings_whole, steady};

/// For each millisecond of the round trip, so that as many are sending at any time, however long they rest.
const FLOWS_A_MS: usize = 25;
const PORT: u16 = 7110;
const SENT_FOR: Duration = Duration::from_secs(6);
/// Long enough for some of one to go each way.
const IN_A_BURST: u32 = 4;
/// Less than a burst takes.
const CLOSED_FOR: Duration = Duration::from_micros(2500);
/// Between two looks at what is to be sent.
const TICK: Duration = Duration::from_millis(1);
/// Of the receiver, after the last one.
const SILENCE_MAX: Duration = Duration::from_millis(1500);

/// A burst, and then it rests for some round trips: a flow that does not stays with the engine, and so do all where
/// they never rest together.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    sent: u32,
    of_burst: u32,
}

#[derive(Debug, Default)]
struct Came {
    datagrams: u32,
    /// Behind one with a higher number, or once more.
    out_of_turn: u32,
}

/// Gives how many were sent.
fn send(from: &Host, round_trip: Duration) -> u32 {
    let connect = || {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect((B, PORT)).map(|()| socket)
    };
    let flows = FLOWS_A_MS * round_trip.as_millis() as usize;
    let connect_all = || (0..flows).map(|_| connect()).collect();
    let sockets: std::io::Result<Vec<UdpSocket>> =
        from.namespace.in_namespace(connect_all).unwrap();
    let sockets = sockets.unwrap();
    let mut flows = vec![Flow::default(); flows];
    let rests_for = 8 * round_trip.as_micros() as u64 / TICK.as_micros() as u64;
    let mut random = 1u64;
    let mut one_in = |bound: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
        random < u64::MAX / bound
    };
    let start = now();
    while start.elapsed() < SENT_FOR {
        for (flow, socket) in flows.iter_mut().zip(&sockets) {
            if flow.of_burst == 0 && one_in(rests_for) {
                flow.of_burst = IN_A_BURST;
            }
            if flow.of_burst > 0 {
                socket.send(&flow.sent.to_be_bytes()).unwrap();
                flow.sent += 1;
                flow.of_burst -= 1;
            }
        }
        pause(TICK);
    }
    flows.iter().map(|flow| flow.sent).sum()
}

fn receive(socket: &UdpSocket) -> Came {
    let mut came = Came::default();
    let mut newest = BTreeMap::new();
    let mut datagram = [0; 4];
    loop {
        match socket.recv_from(&mut datagram) {
            Ok((_, from)) => {
                let number = u32::from_be_bytes(datagram);
                let before = newest.insert(from, number);
                came.datagrams += 1;
                came.out_of_turn += u32::from(before.is_some_and(|before| number <= before));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return came,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn assert_changes_lose_nothing(one_way: &str, round_trip: Duration) {
    let mut options = TopologyOptions {
        links: 1,
        ..TopologyOptions::default()
    };
    options.wires.rate = Some("none".parse().unwrap());
    options.wires.delay = Some(one_way.parse().unwrap());
    let standing = Standing::up("changes", &options.topology().unwrap());
    let [a, b] = &standing.hosts[..] else {
        panic!("two hosts");
    };
    wait_for_direct(a);
    // Who is looked for keeps a hundred datagrams, and loses others.
    assert!(pings_whole(a, B, 56));
    let run = || {
        let bind = || UdpSocket::bind((B, PORT));
        let receiver = b.namespace.in_namespace(bind).unwrap().unwrap();
        receiver.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        let before = status(a);
        let (sent, came) = scope(|scope| {
            let receiving = scope.spawn(|| receive(&receiver));
            let sending = || send(a, round_trip);
            let pace = Pace {
                mtu: MTU_DEFAULT.into(),
                closed_for: CLOSED_FOR,
                open_for: 2 * round_trip + CLOSED_FOR,
            };
            let sent = path_changes::during(a, pace, sending).unwrap();
            (sent, receiving.join().unwrap())
        });
        let after = status(a);
        assert_eq!(came.out_of_turn, 0, "{one_way}: {came:?} of {sent}");
        let lost = sent - came.datagrams;
        let changes = after.direct.changes - before.direct.changes;
        let returns = after.direct.flow_returns - before.direct.flow_returns;
        let direct = after.direct.tx.frames - before.direct.tx.frames;
        let engine = after.host.taken.frames - before.host.taken.frames;
        println!(
            "{one_way}: lost {lost}, changes {changes}, returns {returns}, direct {direct}, engine {engine}"
        );
        (lost, changes, returns, direct, engine, after.drops)
    };
    let what =
        format!("datagrams lost, changes, flows that came back, frames each way, drops, {one_way}");
    steady::judge(
        &what,
        run,
        |&(lost, changes, returns, direct, engine, _)| {
            lost == 0 && changes > 80 && returns > 1000 && direct > 500 && engine > 500
        },
    );
}

#[test]
fn flows_that_change_over_a_long_wire_lose_nothing_and_overtake_nothing() {
    live!(alone, wire::shaping_unavailable());
    for (one_way, round_trip_ms) in [("2.5ms", 5), ("25ms", 50)] {
        assert_changes_lose_nothing(one_way, Duration::from_millis(round_trip_ms));
    }
}
