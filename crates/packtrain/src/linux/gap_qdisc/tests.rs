//! The gap's queues against the kernel, in namespaces.

use packtrain_proto::config::LinkOrder;
use packtrain_proto::pacing::gap::{Gap, Line};

use super::*;
use crate::linux::test_namespace::{in_namespace, ip, run};

fn spacing(gap: u64, gso: Gso) -> Spacing {
    let line = Line {
        rate_bps: 1_000_000_000,
        mtu: 1500,
    };
    Spacing {
        charge: line.charge(Gap::of_bytes(gap).unwrap()),
        mtu: line.mtu,
        burst: Duration::from_micros(64),
        gso,
        queue_frames_max: 70,
    }
}

fn with_link(test: impl FnOnce(&mut Netlink, u32) + Send + 'static) {
    in_namespace(|| {
        ip("link add a0 type veth peer name b0");
        for link in ["a0", "b0"] {
            ip(&format!("link set {link} up"));
        }
        let mut netlink = Netlink::open().unwrap();
        let a0 = netlink.link_by_name("a0").unwrap().unwrap().ifindex;
        test(&mut netlink, a0);
    });
}

fn shown() -> String {
    run("tc -d qdisc show dev a0") + &run("tc -d class show dev a0")
}

fn shows(parts: &[&str]) {
    let shown = shown();
    for part in parts {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
}

#[test]
fn tc_shows_what_was_put_and_what_it_was_changed_to() {
    with_link(|netlink, a0| {
        put(netlink, a0, spacing(512, Gso::Split)).unwrap();
        assert_eq!(root(netlink, a0).unwrap(), Root::Ours);
        shows(&[
            "qdisc htb 7063: root",
            "qdisc tbf 7064: parent 7063:1",
            "qdisc pfifo 7065: parent 7064:1 limit 70p",
            "class htb 7063:1 root leaf 7064: prio 0",
            "rate 1Gbit overhead 524 ceil 1Gbit",
            "mpu 584b",
        ]);
        assert!(!shown().contains("tsize"), "{}", shown());

        let whole = Spacing {
            queue_frames_max: 9,
            ..spacing(100, Gso::Whole)
        };
        change(netlink, a0, whole).unwrap();
        shows(&[
            "tsize 32700",
            "limit 9p",
            "rate 1Gbit overhead 112 ceil 1Gbit",
        ]);
        change(netlink, a0, spacing(512, Gso::Split)).unwrap();
        assert!(!shown().contains("tsize"), "{}", shown());

        // What the line above goes by.
        let seen = tc::link_queue(netlink, a0).unwrap().unwrap();
        assert_eq!((seen.kind.as_str(), seen.order), ("htb", LinkOrder::Whole));
        let counted = counters(netlink, a0).unwrap().unwrap();
        assert_eq!((counted.queue_frames, counted.dropped_frames), (0, 0));

        remove(netlink, a0).unwrap();
        assert_eq!(root(netlink, a0).unwrap(), Root::Default);
        assert_eq!(counters(netlink, a0).unwrap(), None);
        assert_eq!(
            run("tc qdisc show dev a0"),
            "qdisc noqueue 0: root refcnt 2 \n"
        );
    });
}

#[test]
fn what_somebody_has_put_there_is_told_from_what_the_kernel_has() {
    with_link(|netlink, a0| {
        assert_eq!(root(netlink, a0).unwrap(), Root::Default);
        run("tc qdisc add dev a0 root handle 5: pfifo");
        let foreign = Root::Foreign {
            kind: "pfifo".into(),
            handle: 0x5_0000,
        };
        assert_eq!(root(netlink, a0).unwrap(), foreign);
        // Also one of our number.
        run("tc qdisc replace dev a0 root handle 7063: pfifo");
        assert!(matches!(root(netlink, a0).unwrap(), Root::Foreign { .. }));
    });
}
