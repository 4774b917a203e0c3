//! At tc ingress of a member link: the line's guard is the first there, whichever of both came first, and the filter
//! judges what that leaves to the link.

use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::MacAddr;

use super::*;
use crate::linux::guard::{Attachment, Guard, Host, Reception};
use crate::linux::netlink::{Link, Netlink};
use crate::linux::packet_socket::{Frames, PacketSocket};
use crate::linux::test_namespace::{in_namespace, ip};

const PT0: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0xaa]);
const STRANGER: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 0x77]);
const SENDER: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 0x02]);

/// A link, and the far end of its cable.
fn cable() -> (Link, PacketSocket) {
    ip("link add eth1 type veth peer name far");
    ip("link set eth1 addrgenmode none up");
    ip("link set far addrgenmode none up");
    let index_of = |name: &str| {
        let link = Netlink::open().unwrap().link_by_name(name).unwrap();
        link.expect("it is there")
    };
    let mut far = PacketSocket::create().unwrap();
    far.bind(index_of("far").ifindex, Frames::None).unwrap();
    (index_of("eth1"), far)
}

fn guard(link: &Link) -> Guard {
    let host = Host {
        ifindex: 1,
        address: PT0,
    };
    Guard::attach(link.ifindex, link.address, host, Attachment::Tcx).unwrap()
}

fn filter(link: &Link) -> Filter {
    let mut filter = Filter::load().unwrap();
    let settings = Settings {
        policy: Policy::Nima,
        ..Settings::default()
    };
    filter.set(settings).unwrap();
    filter.attach(link.ifindex, Mode::Tc).unwrap();
    filter
}

fn send(far: &mut PacketSocket, to: MacAddr) {
    let mut frame = [to.0, SENDER.0].concat();
    frame.extend([0x12, 0x34]);
    frame.resize(60, 0);
    far.send(&frame, Offload::default()).unwrap();
}

/// Its socket stands where it does without a filter, what is pt0's is withheld from the filter, and the rest is judged.
fn both_do_their_part(link: &Link, far: &mut PacketSocket, guard: &Guard, filter: &Filter) {
    assert_eq!(guard.best_reception(), Reception::ByType);
    for to in [PT0, link.address, STRANGER] {
        send(far, to);
    }
    let counted = filter.counters().unwrap();
    let frames = |reason| counted.get(reason).frames;
    assert_eq!(
        (frames(Reason::Ours), frames(Reason::ForeignUnicast)),
        (1, 1)
    );
    let handled: u64 = counted.iter().map(|(_, traffic)| traffic.frames).sum();
    assert_eq!(handled, 2);
}

#[test]
fn a_filter_that_comes_to_a_guarded_link_stands_behind_the_guard() {
    in_namespace(|| {
        let (link, mut far) = cable();
        let guard = guard(&link);
        let filter = filter(&link);
        both_do_their_part(&link, &mut far, &guard, &filter);
    });
}

#[test]
fn a_guard_that_comes_to_a_filtered_link_stands_before_the_filter() {
    in_namespace(|| {
        let (link, mut far) = cable();
        let filter = filter(&link);
        let guard = guard(&link);
        both_do_their_part(&link, &mut far, &guard, &filter);
    });
}

#[test]
fn behind_a_guard_and_before_all_others_and_first_without_a_guard() {
    in_namespace(|| {
        let (link, _far) = cable();
        // Of others there may be any: another filter has another name than the guard, too.
        let other = filter(&link);
        let guard = guard(&link);
        let behind = filter(&link);
        let is_first = |filter: &Filter| match &filter.hold {
            Some(Hold::Link(attached)) => attached.is_first().unwrap(),
            other => panic!("{other:?}"),
        };
        assert!(!is_first(&other) && !is_first(&behind));
        drop(guard);
        assert!(is_first(&behind) && !is_first(&other));
        let newest = filter(&link);
        assert!(is_first(&newest));
    });
}
