//! Our socket goes from one place to the other while frames come; and what decides where it stands.

use packtrain_proto::offload::Offload;

use super::reception_tests::{
    ASKER_IP, BOTH, Cable, HOST_IP, MARK, Ours, PATIENCE, Stack, cable, guard_of, index_of,
    open_ours, take,
};
use super::tests::{HOST, IPV4, LINK, PACKTRAIN, PLAIN, arp, frame};
use super::*;
use crate::linux::packet_socket::PacketSocket;
use crate::linux::test_namespace::{in_namespace, ip, run};

/// As the daemon does it, but without its patience: the kernel says when no processor has a frame in hand any more.
fn hand_over(guard: &mut Guard, to: Reception) {
    let no_frame_in_hand = || {
        /// `MEMBARRIER_CMD_GLOBAL`: each processor has left whatever it did.
        const GLOBAL: libc::c_int = 1;
        // SAFETY: plain integers; nothing of ours is touched.
        let waited = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
        assert_eq!(waited, 0, "{}", io::Error::last_os_error());
    };
    guard.give_to(GivesTo::Both).unwrap();
    no_frame_in_hand();
    guard.give_to(GivesTo::One(to)).unwrap();
    no_frame_in_hand();
    guard.forget_tapped().unwrap();
}

#[allow(clippy::disallowed_methods)] // frames take their time on a busy machine
fn wait_for_one(socket: &mut PacketSocket) -> Vec<u8> {
    let begun = std::time::Instant::now();
    loop {
        if let Some((frame, _)) = take(socket).pop() {
            return frame;
        }
        assert!(begun.elapsed() < PATIENCE, "nothing came");
    }
}

/// While both stand, each frame comes to one of them, and the guard says to which.
#[test]
#[allow(clippy::disallowed_methods)] // frames take their time on a busy machine
fn who_goes_from_one_place_to_the_other_misses_nothing_and_gets_nothing_twice() {
    in_namespace(|| {
        let mut cable = cable();
        let [mut tap, mut by_type] = BOTH.map(|r| open_ours(&cable.guard, r, cable.a0));
        let kinds = [
            frame(LINK, PLAIN, PACKTRAIN),
            frame(LINK, MARK, IPV4),
            frame(HOST, PLAIN, IPV4),
            frame(MacAddr::BROADCAST, PLAIN, IPV4),
        ];
        for reception in BOTH.into_iter().cycle().take(20) {
            hand_over(&mut cable.guard, reception);
            for kind in &kinds {
                cable.far.send(kind, Offload::NONE).unwrap();
            }
            let mut there = Vec::new();
            let begun = std::time::Instant::now();
            while there.len() < kinds.len() {
                there.extend(take(match reception {
                    Reception::Tap => &mut tap,
                    Reception::ByType => &mut by_type,
                }));
                assert!(begun.elapsed() < PATIENCE, "{reception:?}: {there:x?}");
            }
            for kind in &kinds {
                let times = there.iter().filter(|(frame, _)| frame == kind).count();
                assert_eq!(times, 1, "{reception:?}");
            }
            let elsewhere = take(match reception {
                Reception::Tap => &mut by_type,
                Reception::ByType => &mut tap,
            });
            assert_eq!(elsewhere, [], "{reception:?}");
        }
    });
}

/// However a test ends, whoever sends meanwhile ends too: else it would be waited for without an end.
struct Ends<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// The same while another processor has frames in hand; and trains and frames without a sequence keep their order.
#[test]
#[allow(clippy::disallowed_methods)] // frames take their time on a busy machine
fn nor_does_who_goes_while_frames_come() {
    const MOVES: usize = 60;
    in_namespace(|| {
        let Cable { mut guard, a0, far } = cable();
        let ended = std::sync::atomic::AtomicBool::new(false);
        let numbered = |kind: &[u8], number: u32| {
            let mut bytes = kind.to_vec();
            bytes[20..24].copy_from_slice(&number.to_be_bytes());
            bytes
        };
        // Of what is for everybody a copy comes, behind what came meanwhile.
        let to_all = frame(MacAddr::BROADCAST, PLAIN, IPV4);
        let ours = [
            frame(LINK, PLAIN, PACKTRAIN),
            frame(LINK, MARK, IPV4),
            frame(HOST, PLAIN, IPV4),
        ];
        let (mut came, mut came_to_all) = (Vec::new(), Vec::new());
        let mut note = |frames: Vec<Ours>| {
            for (bytes, _) in frames {
                let number = u32::from_be_bytes(bytes[20..24].try_into().unwrap());
                match ours.iter().position(|kind| kind[..14] == bytes[..14]) {
                    Some(kind) => came.push((number, kind)),
                    None => came_to_all.push(number),
                }
            }
        };
        let sent = std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let mut far = far;
                let mut number = 0;
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    for kind in ours.iter().chain([&to_all]) {
                        far.send(&numbered(kind, number), Offload::NONE).unwrap();
                    }
                    number += 1;
                    // No socket holds more than it gets while the guard changes.
                    if number % 4 == 0 {
                        std::thread::sleep(std::time::Duration::from_micros(100));
                    }
                }
                number
            });
            let ends = Ends(&ended);
            let mut socket = open_ours(&guard, Reception::Tap, a0);
            let moves = [Reception::ByType, Reception::Tap].into_iter().cycle();
            for reception in moves.take(MOVES) {
                let other = open_ours(&guard, reception, a0);
                hand_over(&mut guard, reception);
                let mut former = std::mem::replace(&mut socket, other);
                note(take(&mut former));
                assert_eq!(former.dropped().unwrap(), 0, "it holds too little");
            }
            drop(ends);
            let sent = sender.join().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
            note(take(&mut socket));
            sent
        });
        assert!(sent as usize > 20 * MOVES, "{sent} frames of each kind");
        // What came before the first socket is not counted.
        let first = came[0];
        let expected: Vec<_> = (first.0..sent)
            .flat_map(|number| (0..ours.len()).map(move |kind| (number, kind)))
            .skip(first.1)
            .collect();
        assert_eq!(came.len(), expected.len(), "of {sent} of each kind");
        let turn = came.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(turn, None, "of {sent}, after {MOVES} moves: not in order");
        came_to_all.sort_unstable();
        let expected: Vec<_> = (came_to_all[0]..sent).collect();
        assert_eq!(came_to_all, expected);
    });
}

#[test]
fn our_socket_stands_behind_tc_unless_something_else_takes_frames_there() {
    in_namespace(|| {
        use Reception::{ByType, Tap};
        let mut cable = cable();
        assert_eq!(cable.guard.gives_to(), GivesTo::One(Tap));
        assert_eq!(cable.guard.best_reception(), ByType);
        // Who only looks at the link takes nothing.
        ip("link set a0 promisc on");
        assert_eq!(cable.guard.best_reception(), ByType);
        ip("link set a0 promisc off");
        ip("link add bridge0 type bridge");
        for (what, comes, goes) in [
            (
                "a bridge",
                "link set a0 master bridge0",
                "link set a0 nomaster",
            ),
            (
                "a macvlan",
                "link add macvlan0 link a0 type macvlan mode bridge",
                "link del macvlan0",
            ),
        ] {
            ip(comes);
            assert_eq!(cable.guard.best_reception(), Tap, "{what}");
            ip(goes);
            assert_eq!(cable.guard.best_reception(), ByType, "{what} has gone");
        }
        cable.guard.set_promiscuous(true).unwrap();
        assert_eq!(
            cable.guard.best_reception(),
            Tap,
            "all that comes in is ours"
        );
        cable.guard.set_promiscuous(false).unwrap();
        run("nft add table netdev t");
        assert_eq!(cable.guard.best_reception(), ByType, "nobody looks yet");
        run("nft add chain netdev t c { type filter hook ingress device a0 priority 0 ; }");
        let hooked = "it may drop all that it does not know";
        assert_eq!(cable.guard.best_reception(), Tap, "{hooked}");
        run("nft delete table netdev t");
        assert_eq!(cable.guard.best_reception(), ByType);
        let before = guard_of(cable.a0);
        let first = "who comes first decides what others see";
        assert_eq!(cable.guard.best_reception(), Tap, "{first}");
        assert_eq!(before.best_reception(), ByType);
        drop(before);
        assert_eq!(cable.guard.best_reception(), ByType);
        ip("link del a0");
        assert_eq!(cable.guard.best_reception(), Tap, "nobody can say");
    });
    in_namespace(|| {
        let host = Host {
            ifindex: 1,
            address: HOST,
        };
        let guard = Guard::attach(1, LINK, host, Attachment::Clsact).unwrap();
        assert_eq!(guard.best_reception(), Reception::Tap, "in the old way");
    });
}

/// A line was started anew: the former daemon's guard is still there, behind that of the new one.
#[test]
#[allow(clippy::disallowed_methods)] // frames take their time on a busy machine
fn behind_another_guard_a_former_one_gives_nobody_anything_twice() {
    in_namespace(|| {
        for former_stands in BOTH {
            for stands in BOTH {
                let mut cable = cable();
                cable.guard.give_to(GivesTo::One(former_stands)).unwrap();
                let mut guard = guard_of(cable.a0);
                guard.give_to(GivesTo::One(stands)).unwrap();
                let mut ours = open_ours(&guard, stands, cable.a0);
                let stack = Stack::open(cable.a0);
                let kinds = [
                    frame(HOST, PLAIN, IPV4),
                    frame(LINK, MARK, IPV4),
                    frame(LINK, PLAIN, PACKTRAIN),
                    frame(MacAddr::BROADCAST, PLAIN, IPV4),
                    arp(1, ASKER_IP, HOST_IP),
                ];
                for kind in &kinds {
                    cable.far.send(kind, Offload::NONE).unwrap();
                }
                let mut there = Vec::new();
                let begun = std::time::Instant::now();
                while there.len() < kinds.len() {
                    there.extend(take(&mut ours));
                    assert!(begun.elapsed() < PATIENCE, "{former_stands:?}, {stands:?}");
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
                there.extend(take(&mut ours));
                for kind in &kinds {
                    let times = there.iter().filter(|(frame, _)| frame == kind).count();
                    assert_eq!(times, 1, "{former_stands:?}, {stands:?}: {kind:x?}");
                }
                assert_eq!(there.len(), kinds.len());
                assert_eq!(stack.take(), [(IPV4, kinds[3].clone())]);
                ip("link del a0");
            }
        }
    });
}

/// A bridge has the link, and the daemon has not heard of it; or there is no daemon, and the line stays.
#[test]
#[allow(clippy::disallowed_methods)] // frames take their time on a busy machine
fn what_is_ours_is_not_forwarded_by_a_bridge() {
    in_namespace(|| {
        let mut cable = cable();
        let by_type = GivesTo::One(Reception::ByType);
        cable.guard.give_to(by_type).unwrap();
        ip("link add bridge0 type bridge mcast_snooping 0");
        ip("link set bridge0 addrgenmode none up");
        ip("link add c0 type veth peer name d0");
        for end in ["c0", "d0"] {
            ip(&format!("link set {end} addrgenmode none up"));
        }
        for port in ["a0", "c0"] {
            ip(&format!("link set {port} master bridge0"));
        }
        let begun = std::time::Instant::now();
        let forwards = |port: &str| run(&format!("ip -d link show {port}")).contains("forwarding");
        while !["a0", "c0"].into_iter().all(forwards) {
            assert!(begun.elapsed() < PATIENCE, "the bridge does not begin");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut behind = PacketSocket::open(index_of("d0")).unwrap();
        let lost = |guard: &Guard| guard.counters().unwrap().ingress.get(Verdict::Lost);
        // Netfilter would look into IPv4.
        const UNKNOWN: u16 = 0x88b6;
        let to_all = frame(MacAddr::BROADCAST, PLAIN, UNKNOWN);
        let sent = [
            frame(MacAddr::HELLO, PLAIN, PACKTRAIN),
            frame(HOST, PLAIN, UNKNOWN),
            to_all.clone(),
        ];
        for frame in &sent {
            cable.far.send(frame, Offload::NONE).unwrap();
        }
        // The bridge has something to say as well.
        let mut take_forwarded = || {
            let mut frames = take(&mut behind);
            frames.retain(|(bytes, _)| bytes[6..12] == PLAIN.0);
            frames
        };
        let begun = std::time::Instant::now();
        let mut forwarded = Vec::new();
        while forwarded.is_empty() || lost(&cable.guard) < sent.len() as u64 {
            forwarded.extend(take_forwarded());
            assert!(begun.elapsed() < PATIENCE, "{forwarded:x?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        forwarded.extend(take_forwarded());
        assert_eq!(forwarded, [(to_all, Offload::NONE)], "and once");
    });
}

/// Another program kept a frame from the guard that the socket before tc had taken.
#[test]
fn what_was_taken_before_is_not_said_of_a_later_frame() {
    in_namespace(|| {
        let Cable { mut guard, a0, far } = cable();
        let mut far = far;
        let mut tap = open_ours(&guard, Reception::Tap, a0);
        let front = guard_of(a0);
        far.send(&frame(HOST, PLAIN, IPV4), Offload::NONE).unwrap();
        wait_for_one(&mut tap);
        drop((tap, front));
        let mut ours = open_ours(&guard, Reception::ByType, a0);
        hand_over(&mut guard, Reception::ByType);
        let sent = frame(HOST, PLAIN, IPV4);
        far.send(&sent, Offload::NONE).unwrap();
        assert_eq!(wait_for_one(&mut ours), sent);
    });
}
