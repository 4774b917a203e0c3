//! What the member links carry for their own stacks is none of the line's, while that is busy.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::wire;
use packtrain_proto::wire::ethernet::MacAddr;

use super::SetAtEnd;
use super::frames::{self, frame};
use super::port::{End, SETTLED};
use crate::common::cabled::{MEBIBYTE, pause, status};
use crate::common::direct::wait_for_direct;
use crate::common::{B, Pair, pings_whole, transfer};

const A_LINK: &str = "10.8.0.1";
const B_LINK: &str = "10.8.0.2";
const DHCP_SERVER: u16 = 67;
const DHCP_CLIENT: u16 = 68;

#[test]
fn what_the_links_stacks_say_to_each_other_is_theirs_while_the_line_is_busy() {
    live!();
    let pair = Pair::up("own", 1500).unwrap();
    wire::add_address(&pair.a.namespace, "eth1", &format!("{A_LINK}/24")).unwrap();
    wire::add_address(&pair.b.namespace, "eth1", &format!("{B_LINK}/24")).unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    assert!(pings_whole(&pair.a, B, 56));
    let before = status(&pair.b);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // In parts, so that who looks at all that passes keeps up.
        let bulk = scope.spawn(|| {
            let mut parts = 0;
            while !ended.load(Ordering::Relaxed) {
                assert_eq!(transfer(&pair.a, &pair.b, B, MEBIBYTE), MEBIBYTE);
                parts += 1;
                pause(Duration::from_millis(2));
            }
            parts
        });
        let end_bulk = SetAtEnd(&ended);
        stacks_reach_each_other(&pair);
        leases_are_offered_and_taken(&pair);
        drop(end_bulk);
        let parts = bulk.join().unwrap();
        let direct = status(&pair.b).direct.rx.bytes - before.direct.rx.bytes;
        assert!(direct >= parts * MEBIBYTE, "{direct} bytes of {parts} MiB");
        assert!(parts > 1, "{parts}");
    });
}

fn stacks_reach_each_other(pair: &Pair) {
    for size in [0, 56, 1472] {
        assert!(pings_whole(&pair.a, B_LINK, size), "{size} bytes");
        assert!(pings_whole(&pair.b, A_LINK, size), "{size} bytes back");
    }
    for (from, to, at) in [(&pair.a, &pair.b, B_LINK), (&pair.b, &pair.a, A_LINK)] {
        assert_eq!(transfer(from, to, at, 4 * MEBIBYTE), 4 * MEBIBYTE, "{at}");
    }
}

/// As a client without an address does (RFC 2131): by broadcast, and answered so or to its MAC address.
fn leases_are_offered_and_taken(pair: &Pair) {
    let (mut a, mut b) = (End::of(&pair.a), End::of(&pair.b));
    let server = socket_on_link(&pair.b.namespace, DHCP_SERVER);
    let client = socket_on_link(&pair.a.namespace, DHCP_CLIENT);
    let message = |seed| frames::payload(seed, 300);

    let discover = frames::udp(DHCP_CLIENT, DHCP_SERVER, &message(1));
    let [nobody, everybody] = ["0.0.0.0", "255.255.255.255"].map(|text| text.parse().unwrap());
    let discover = frames::ipv4(nobody, everybody, frames::UDP, &discover);
    a.link
        .send(&frame(MacAddr::BROADCAST, a.link_address, &discover));
    assert_eq!(received(&server), [message(1)], "DISCOVER, once");

    server
        .send_to(&message(2), ("255.255.255.255", DHCP_CLIENT))
        .unwrap();
    assert_eq!(received(&client), [message(2)], "OFFER to all, once");

    // To an address that the client does not have yet: it sees it on a packet socket.
    let offer = frames::udp(DHCP_SERVER, DHCP_CLIENT, &message(3));
    let [from, to] = [B_LINK, "10.8.0.77"].map(|text| text.parse().unwrap());
    let offer = frame(
        a.link_address,
        b.link_address,
        &frames::ipv4(from, to, frames::UDP, &offer),
    );
    a.pt0.take();
    b.link.send(&offer);
    let mut came = a.link.wait_for("OFFER to it", |frame| *frame == offer);
    came.extend(a.link.rest());
    assert_eq!(came.iter().filter(|frame| **frame == offer).count(), 1);
    assert!(
        a.pt0.take().iter().all(|frame| frame[12..] != offer[12..]),
        "never pt0's"
    );
}

/// Gets what comes by the link, and nothing else.
pub fn socket_on_link(host: &Namespace, port: u16) -> UdpSocket {
    let bind = || {
        let socket = UdpSocket::bind(("0.0.0.0", port)).expect("a port");
        setsockopt(&socket, BindToDevice, &"eth1".into()).expect("bound to the link");
        socket.set_broadcast(true).expect("may broadcast");
        socket
    };
    host.in_namespace(bind).unwrap()
}

/// All that comes, and what still comes after the first.
pub fn received(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = [0; 2000];
    let mut patience = Duration::from_secs(5);
    loop {
        socket.set_read_timeout(Some(patience)).unwrap();
        match socket.recv(&mut buffer) {
            Ok(len) => all.push(buffer[..len].to_vec()),
            Err(_) => return all,
        }
        patience = SETTLED;
    }
}

/// LLDP and its like are for the next port and go no further (IEEE 802.1Q, 8.6.3): what one link's agent says
/// is for the other link's, and does not come to `pt0`, which would name a neighbour that it does not have.
#[test]
fn what_is_for_the_next_port_alone_reaches_the_link_and_never_pt0() {
    live!();
    let pair = Pair::up("lldp", 1500).unwrap();
    wait_for_direct(&pair.b);
    let (mut a, mut b) = (End::of(&pair.a), End::of(&pair.b));
    const LLDP: u16 = 0x88cc;
    let nearest_bridge = MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]);
    let rest = frames::typed(LLDP, 1, 100);
    let sent = frame(nearest_bridge, a.link_address, &rest);
    a.link.send(&sent);
    let mut came = b.link.wait_for("LLDP", |frame| *frame == sent);
    came.extend(b.link.rest());
    assert_eq!(came.iter().filter(|frame| **frame == sent).count(), 1);
    let at_pt0 = b.pt0.take();
    assert!(at_pt0.iter().all(|frame| frame[12..] != rest), "at pt0");
}
