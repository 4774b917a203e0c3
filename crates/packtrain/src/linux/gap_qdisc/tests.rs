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
        gap: Some(line.charge(Gap::of_bytes(gap).unwrap())),
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
            "qdisc tbf 7064: parent 7063:2",
            "qdisc pfifo 7065: parent 7064:1 limit 70p",
            "class htb 7063:1 root rate 1Gbit overhead 524",
            "class htb 7063:2 parent 7063:1 leaf 7064: prio 0 quantum 1522 rate 8bit ceil 1Tbit",
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
fn rules_have_classes_below_the_lines_and_keep_them_when_that_changes() {
    with_link(|netlink, a0| {
        let rule = |slot, rate_bps| rules::RuleClass {
            slot: rules::Slot(slot),
            rate_bps,
            queue_frames_max: 30,
        };
        let without_gap = Spacing {
            gap: None,
            gso: Gso::Whole,
            ..spacing(12, Gso::Whole)
        };
        put(netlink, a0, without_gap).unwrap();
        for (slot, rate_bps) in [(0, 15_000_000), (15, 30_000_000)] {
            rules::put(netlink, a0, rule(slot, rate_bps), without_gap).unwrap();
        }
        let of_rules = [
            "class htb 7063:10 parent 7063:1 leaf 7100: prio 0",
            "class htb 7063:1f parent 7063:1 leaf 710f: prio 0",
            "rate 8bit ceil 15140Kbit",
            "rate 8bit ceil 30280Kbit",
            "qdisc tbf 7100: parent 7063:10",
            "qdisc pfifo 7200: parent 7100:1 limit 30p",
            "qdisc pfifo 720f: parent 710f:1 limit 30p",
        ];
        shows(&of_rules);
        shows(&["class htb 7063:1 root rate 1Tbit ceil 1Tbit"]);
        assert!(!shown().contains("tsize"), "{}", shown());
        let seen = tc::link_queue(netlink, a0).unwrap().unwrap();
        assert_eq!((seen.kind.as_str(), seen.order), ("htb", LinkOrder::Flow));

        let mut sorter = Sorter::load().unwrap();
        let matches = "port 53".parse().unwrap();
        let told = [(rules::Slot(15), &matches)].into_iter();
        sorter.tell(told, Otherwise::Spaced).unwrap();
        sorter.attach(netlink, a0).unwrap();
        assert!(run("tc filter show dev a0").contains("packtrain_pace direct-action"));
        change(netlink, a0, spacing(512, Gso::Split)).unwrap();
        shows(&of_rules);
        shows(&["rate 1Gbit overhead 524 ceil 1Gbit"]);
        rules::set(netlink, a0, rule(15, 60_000_000), spacing(512, Gso::Split)).unwrap();
        shows(&["rate 8bit ceil 60560Kbit"]);
        let counted = rules::counters(netlink, a0, rules::Slot(15)).unwrap();
        assert_eq!(counted, Some(rules::RuleCounters::default()));

        sorter.detach(netlink, a0).unwrap();
        for slot in [0, 15] {
            rules::remove(netlink, a0, rules::Slot(slot)).unwrap();
        }
        assert_eq!(rules::counters(netlink, a0, rules::Slot(0)).unwrap(), None);
        let seen = tc::link_queue(netlink, a0).unwrap().unwrap();
        assert_eq!(seen.order, LinkOrder::Whole);
        remove(netlink, a0).unwrap();
        assert_eq!(root(netlink, a0).unwrap(), Root::Default);
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
