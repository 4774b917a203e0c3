//! A queue of ours before a link: when it is asked for, and that frames go through it, and no others.

use std::time::{Duration, Instant};

use packtrain_proto::offload::Offload;

use super::tests::{IPV4, PEER, PT0, destination, frame, index_of};
use super::*;
use crate::linux::netlink::Netlink;
use crate::linux::packet_socket::{Frames, PacketSocket, SendError};
use crate::linux::shaper::{Names, Shaper};
use crate::linux::test_namespace::{in_namespace, ip, run};

/// 20 Mbit/s drain so many bytes a millisecond.
const RATE: u32 = 2500;
/// A frame of the flow with the Ethernet header.
const FRAME_BYTES: u64 = 1014;

/// A `pt0` whose direct frames leave by `a0`, at 20 Mbit/s, and come to `b0`.
struct Over {
    path: DirectPath,
    socket: PacketSocket,
    a0: u32,
}

fn over_a_slow_link(test: impl FnOnce(&mut Over) + Send + 'static) {
    in_namespace(|| {
        ip("link add a0 type veth peer name b0");
        run("tc qdisc add dev a0 root tbf rate 20mbit burst 20000 limit 4000000");
        ip("link add pt0 type veth peer name other");
        ip(&format!("link set pt0 address {PT0} addrgenmode none"));
        for name in ["a0", "b0", "pt0"] {
            run(&format!("sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1"));
            ip(&format!("link set {name} up"));
        }
        let (a0, pt0) = (index_of("a0"), index_of("pt0"));
        let mut path = DirectPath::attach(pt0, PT0, false).unwrap();
        let over_a0 = Destination {
            ifindex: a0,
            ..destination()
        };
        path.set_destinations(&[over_a0]).unwrap();
        let mut socket = PacketSocket::create().unwrap();
        socket.bind(pt0, Frames::All).unwrap();
        test(&mut Over { path, socket, a0 });
    });
}

impl Over {
    fn send(&mut self, frames: usize) {
        for _ in 0..frames {
            match self
                .socket
                .send(&frame(PEER, PT0, IPV4, 1, 1000), Offload::NONE)
            {
                // As much as may stands there already.
                Ok(()) | Err(SendError::WouldBlock) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// A sender that keeps the link's queue filled, until it is as is asked for.
    #[allow(clippy::disallowed_methods)] // a queue stands in real time
    fn keep_filled_until(&mut self, mut is_so: impl FnMut(&DirectPath) -> bool) -> Duration {
        let begin = Instant::now();
        while !is_so(&self.path) {
            assert!(begin.elapsed() < Duration::from_secs(10), "it never is so");
            self.send(10);
            std::thread::sleep(Duration::from_millis(2));
        }
        begin.elapsed()
    }

    fn asked_at(&self) -> u64 {
        self.path.standing(3).unwrap().asked_at
    }

    fn shaper(&self) -> Shaper {
        let carry = self.path.carry_program().try_clone_to_owned().unwrap();
        Shaper::make(Names::of(77, 1), &carry).unwrap()
    }
}

#[test]
fn where_a_queue_stands_one_of_ours_is_asked_for_before_the_path_closes() {
    over_a_slow_link(|over| {
        over.path.let_ask_for_queues(RATE / 2).unwrap();
        over.keep_filled_until(|path| path.standing(3).unwrap().asked_at != 0);
        assert!(over.path.closed_links().unwrap().is_empty());
        let standing = over.path.standing(3).unwrap();
        let rate = standing.stood_left * 1_000_000 / standing.stood_ns;
        assert!(
            (2000..3000).contains(&rate),
            "{rate} bytes a ms: {standing:?}"
        );
        // Nobody gives it one.
        let took = over.keep_filled_until(|path| path.closed_links().unwrap() == [3]);
        assert!(took > Duration::from_millis(200), "{took:?}");
    });
}

#[test]
fn a_link_that_is_slow_enough_for_the_engine_is_closed_at_once() {
    over_a_slow_link(|over| {
        over.path.let_ask_for_queues(RATE * 2).unwrap();
        over.keep_filled_until(|path| path.closed_links().unwrap() == [3]);
        assert_eq!(over.asked_at(), 0);
    });
}

#[test]
fn frames_go_through_the_queue_and_what_stands_below_it_closes_nothing() {
    over_a_slow_link(|over| {
        over.path.let_ask_for_queues(RATE / 2).unwrap();
        over.keep_filled_until(|path| path.standing(3).unwrap().asked_at != 0);
        let mut shaper = over.shaper();
        shaper.set_rate(Some(10_000_000), 3000).unwrap();
        let shaped_by = ShapedBy {
            enters_by: Some(shaper.ifindex()),
            ifindex: over.a0,
        };
        over.path.shape_by(Some(shaped_by)).unwrap();
        let sent = |shaper: &mut Shaper| shaper.queue().unwrap().sent_bytes;
        let before = sent(&mut shaper);
        let tally = over.path.tally().unwrap();
        let took = over.keep_filled_until(|_| sent(&mut shaper) - before > 400_000);
        assert!(took > Duration::from_millis(200), "10 Mbit/s: {took:?}");
        assert!(over.path.closed_links().unwrap().is_empty());
        let queue = shaper.queue().unwrap();
        assert!(queue.frames > 0, "more is sent than it lets out");
        let waiting = u64::from(tally.waiting().unwrap());
        let wanted = u64::from(queue.bytes) / FRAME_BYTES;
        // Some leave between the two looks.
        assert!(
            waiting > 0 && waiting.abs_diff(wanted) <= wanted / 2 + 20,
            "{waiting} of {queue:?}"
        );
        assert_eq!(over.path.state().unwrap().tickets, 0, "none to the engine");
        // Who is away from its end: then what stands closes the path as without one.
        over.path.let_ask_for_queues(0).unwrap();
        shaper.set_rate(None, 0).unwrap();
        over.keep_filled_until(|path| path.closed_links().unwrap() == [3]);
    });
}

#[test]
#[allow(clippy::disallowed_methods)] // whether something comes is seen in time
fn what_others_send_into_it_goes_nowhere_and_its_interfaces_go_with_it() {
    over_a_slow_link(|over| {
        let shaper = over.shaper();
        let shaped_by = ShapedBy {
            enters_by: Some(shaper.ifindex()),
            ifindex: over.a0,
        };
        over.path.shape_by(Some(shaped_by)).unwrap();
        let mut netlink = Netlink::open().unwrap();
        let a0 = over.a0;
        let mut sent = || netlink.transmit_bytes(a0).unwrap();
        let before = sent();
        let mut stranger = PacketSocket::create().unwrap();
        stranger.bind(shaper.ifindex(), Frames::All).unwrap();
        for _ in 0..10 {
            stranger
                .send(&frame(PEER, PT0, IPV4, 1, 100), Offload::NONE)
                .unwrap();
        }
        over.send(5);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(sent() - before, 5 * FRAME_BYTES);
        let name = shaper.names().upper.clone();
        drop(shaper);
        let mut netlink = Netlink::open().unwrap();
        for name in [name.as_str(), "ptr77", "pts77"] {
            assert_eq!(netlink.link_by_name(name).unwrap(), None);
        }
    });
}

#[test]
fn what_was_dropped_in_the_queue_is_not_waited_for() {
    over_a_slow_link(|over| {
        let mut shaper = over.shaper();
        shaper.set_rate(Some(64_000), 3000).unwrap();
        let shaped_by = ShapedBy {
            enters_by: Some(shaper.ifindex()),
            ifindex: over.a0,
        };
        over.path.shape_by(Some(shaped_by)).unwrap();
        over.send(100);
        let mut tally = over.path.tally().unwrap();
        assert!(tally.waiting().unwrap() > 50);
        // With all that is in it.
        drop(shaper);
        assert!(tally.waiting().unwrap() > 50);
        tally.look_whether_gone(true).unwrap();
        assert!(
            tally.waiting().unwrap() > 50,
            "they may be just on their way"
        );
        tally.look_whether_gone(true).unwrap();
        assert_eq!(tally.waiting().unwrap(), 0);
    });
}
