//! `direct_arrive`, behind a guard, on frames that come by a cable.

use super::tests::{IPV4, PT0, frame, index_of};
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

#[test]
#[allow(clippy::disallowed_methods)] // on a busy machine they come later
fn each_peers_frames_are_counted_also_where_two_meet_in_one_place() {
    in_namespace(|| {
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
        let peers = [0, one_that_meets_peer_0(), 7];
        let sources = peers.map(|number| (mark(number), peer(number)));
        assert_eq!(guard.set_sources(&[], &sources).unwrap(), 0);

        let mut socket = PacketSocket::create().unwrap();
        socket.bind(a0, Frames::All).unwrap();
        let mut send = |peer: usize, frames: usize| {
            for _ in 0..frames {
                let bytes = frame(LINK, mark(peers[peer]), IPV4, 1, 100);
                socket.send(&bytes, Offload::NONE).expect("sent");
            }
        };
        send(0, 5);
        send(1, 70);
        send(0, 2);
        send(2, 11);
        send(1, 1);
        let arrived = || peers.map(|number| path.arrived((peer(number), NUMBER)).unwrap());
        let begin = std::time::Instant::now();
        while arrived().iter().sum::<u32>() < 89 && begin.elapsed().as_secs() < 5 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(arrived(), [7, 71, 11]);
        assert_eq!(path.arrived((peer(0), NUMBER + 1)).unwrap(), 0);
        assert_eq!(path.arrived((peer(1), NUMBER)).unwrap(), 0);
    });
}
