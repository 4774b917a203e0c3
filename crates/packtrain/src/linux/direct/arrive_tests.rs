//! `direct_arrive`, behind a guard, on frames that come by a cable.

use super::arrived::{key as arrived_key, place as arrived_place};
use super::tests::{IPV4, PT0, frame, index_of, segment_of};
use super::*;
use crate::linux::guard::{Attachment, Guard, Host};
use crate::linux::packet_socket::{Frames, PacketSocket};
use crate::linux::test_namespace::{in_namespace, ip};
use packtrain_proto::offload::Offload;

const LINK: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
const NUMBER: u8 = 3;

fn peer(number: u16) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    MacAddr([0x02, 0x70, 0x74, 1, high, low])
}

fn mark(number: u16) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    MacAddr([0x0a, 0, 0, 0, high, low])
}

/// Another peer whose frames would be counted in the same place as those of peer 0.
fn one_that_meets_peer_0() -> u16 {
    let place = |number| arrived_place(arrived_key((peer(number), NUMBER)));
    let mut others = 1..u16::MAX;
    let meets = others.find(|&number| place(number) == place(0));
    meets.expect("one of 65,000 in 1,024 places")
}

/// A host whose `pt0` is reached by the cable `a0`, `b0`, and who sends into that.
struct Cabled {
    path: DirectPath,
    socket: PacketSocket,
    _guard: Guard,
}

impl Cabled {
    fn new(peers: &[u16]) -> Cabled {
        ip("link add a0 type veth peer name b0");
        ip(&format!("link set b0 address {LINK} up"));
        ip("link set a0 up");
        ip("link add pt0 type veth peer name other");
        ip(&format!("link set pt0 address {PT0} addrgenmode none up"));
        let (a0, b0, pt0) = (index_of("a0"), index_of("b0"), index_of("pt0"));
        let path = DirectPath::attach(pt0, PT0, false).unwrap();
        let host = Host {
            ifindex: pt0,
            address: PT0,
        };
        let mut guard = Guard::attach(b0, LINK, host, Attachment::best().unwrap()).unwrap();
        guard.set_link_number(NUMBER).unwrap();
        let sources: Vec<_> = peers.iter().map(|&n| (mark(n), peer(n))).collect();
        assert_eq!(guard.set_sources(&[], &sources).unwrap(), 0);
        let mut socket = PacketSocket::create().unwrap();
        socket.bind(a0, Frames::All).unwrap();
        Cabled {
            path,
            socket,
            _guard: guard,
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.socket.send(bytes, Offload::NONE).expect("sent");
    }

    fn arrived(&self, number: u16) -> Came {
        self.path.arrived((peer(number), NUMBER)).unwrap()
    }

    /// On a busy machine they come later.
    #[allow(clippy::disallowed_methods)]
    fn wait_for(&self, peers: &[u16], frames: u32) {
        let arrived = || -> u32 { peers.iter().map(|&n| self.arrived(n).frames).sum() };
        let begin = std::time::Instant::now();
        while arrived() < frames && begin.elapsed().as_secs() < 5 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(arrived(), frames);
    }
}

#[test]
fn each_peers_frames_are_counted_also_where_two_meet_in_one_place() {
    in_namespace(|| {
        let peers = [0, one_that_meets_peer_0(), 7];
        let mut cabled = Cabled::new(&peers);
        for (peer, frames) in [(0, 5), (1, 70), (0, 2), (2, 11), (1, 1)] {
            for _ in 0..frames {
                cabled.send(&frame(LINK, mark(peers[peer]), IPV4, 1, 100));
            }
        }
        cabled.wait_for(&peers, 89);
        let frames = peers.map(|number| cabled.arrived(number));
        assert_eq!(frames, [7, 71, 11].map(Came::from));
        let path = &cabled.path;
        assert_eq!(path.arrived((peer(0), NUMBER + 1)).unwrap(), Came::from(0));
        assert_eq!(path.arrived((peer(1), NUMBER)).unwrap(), Came::from(0));
    });
}

#[test]
#[allow(clippy::disallowed_methods)] // late is late by the clock
fn what_comes_long_behind_later_frames_of_its_flow_is_counted_and_what_comes_just_behind_is_not() {
    in_namespace(|| {
        const LEN: u16 = 100;
        let pause = || std::thread::sleep(std::time::Duration::from_millis(2));
        let peers = [0, one_that_meets_peer_0()];
        let mut cabled = Cabled::new(&peers);
        cabled.path.watch_flows(true).unwrap();
        let segment = |number: u16, port: u16, place: u32| {
            let sequence = (u32::MAX - 450).wrapping_add(place.wrapping_mul(LEN.into()));
            segment_of(
                port,
                sequence,
                (LINK, mark(number)),
                port.is_multiple_of(2),
                LEN,
            )
        };
        let (mut came, mut late) = (0, [0; 2]);
        // The second peer's are counted among others; one flow is of IPv6, and all wrap.
        for (at, number) in peers.into_iter().enumerate() {
            for port in [1, 2].map(|port| port + 10 * number) {
                for place in [0, 1, 2, 5, 6] {
                    cabled.send(&segment(number, port, place));
                    pause();
                }
                // Something later was there for 4 ms.
                for place in [3, 4] {
                    cabled.send(&segment(number, port, place));
                    pause();
                }
                cabled.send(&segment(number, port, 7));
                (came, late[at]) = (came + 8, late[at] + 2);
            }
        }
        cabled.wait_for(&peers, came);
        let counted = peers.map(|number| cabled.arrived(number).late);
        assert_eq!(counted, late.map(Some));
        // In the same moment, unless somebody else had the processor in between.
        let in_a_moment = (0..50).any(|attempt| {
            let before = cabled.arrived(0).late;
            for place in [20, 22, 21, 23] {
                cabled.send(&segment(0, 100 + attempt, place));
            }
            came += 4;
            cabled.wait_for(&peers, came);
            cabled.arrived(0).late == before
        });
        assert!(in_a_moment);
        // After a pause, or far away, a flow begins anew: it may have gone by the engine meanwhile.
        let before = cabled.arrived(0).late;
        for (port, back) in [(201, 2), (203, 3 << 23)] {
            for place in [3, 4, 5] {
                cabled.send(&segment(0, port, place));
                pause();
            }
            if back == 2 {
                std::thread::sleep(std::time::Duration::from_millis(150));
            }
            for place in [5u32.wrapping_sub(back), 6u32.wrapping_sub(back)] {
                cabled.send(&segment(0, port, place));
                pause();
            }
            came += 5;
        }
        // What an acknowledgement is padded with is no payload.
        for data in [0, 0, 0, 50] {
            let mut bytes = segment_of(205, 77, (LINK, mark(0)), false, data);
            bytes.extend([0; 6]);
            cabled.send(&bytes);
            pause();
        }
        came += 4;
        cabled.wait_for(&peers, came);
        assert_eq!(cabled.arrived(0).late, before);
        // Neither datagrams nor segments without payload are in any order.
        let before = cabled.arrived(0).late;
        for sequence in [5000, 9000, 5000] {
            cabled.send(&segment_of(7, sequence, (LINK, mark(0)), false, 0));
            cabled.send(&frame(LINK, mark(0), IPV4, 8, 100));
            pause();
        }
        cabled.wait_for(&peers, came + 6);
        assert_eq!(cabled.arrived(0).late, before);
        cabled.path.watch_flows(false).unwrap();
        assert_eq!(cabled.arrived(0).late, None, "nobody looks");
    });
}
