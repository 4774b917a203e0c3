//! Small frames that go ahead of all leaves.

use super::*;

/// How many frames have gone past the leaves.
fn past_leaves() -> u64 {
    let text = run("tc -s -d qdisc show dev t0");
    let mut words = text.split_whitespace();
    let count = words.find(|word| *word == "direct_packets_stat");
    count.and(words.next()).unwrap().parse().unwrap()
}

fn flow(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.connect(("10.9.0.2", port)).unwrap();
    socket
}

#[test]
fn small_frames_of_who_sends_little_go_past_the_leaves_and_others_do_not() {
    in_namespace(|| {
        let (_tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        intake.set_rate(Some(100 * MEGABIT), usize::MAX).unwrap();
        let sends = |socket: &UdpSocket, frames: usize, payload: usize| {
            let before = past_leaves();
            for _ in 0..frames {
                socket.send(&vec![0; payload]).unwrap();
                pause(Duration::from_millis(1));
            }
            past_leaves() - before
        };
        let little = flow(1000);
        assert_eq!(sends(&little, 100, 36), 100, "0.6 of 1.5 Mbit/s");
        assert_eq!(sends(&flow(1001), 20, 300), 0, "they are no sand");
        // Since that one, others of the flow may wait in its leaf.
        assert_eq!(sends(&little, 1, 300), 0);
        assert_eq!(sends(&little, 20, 36), 0);
        let much = flow(1002);
        let before = past_leaves();
        for _ in 0..1000 {
            much.send(&[0; 36]).unwrap();
        }
        let past = past_leaves() - before;
        assert!((5..500).contains(&past), "{past}");
        // Each sends little, and all together too much.
        let many: Vec<UdpSocket> = (0..100).map(|n| flow(2000 + n)).collect();
        let before = past_leaves();
        for _ in 0..20 {
            many.iter().for_each(|one| drop(one.send(&[0; 36])));
        }
        let past = past_leaves() - before;
        assert!((20..1500).contains(&past), "{past}");
    });
}

/// Whose frames are long and short, with pauses after which those that were in a leaf may go past it again.
#[test]
fn a_flow_keeps_its_order_whichever_way_its_frames_take() {
    in_namespace(|| {
        let (mut tap, mut intake) = tap(HERE, "10.9.0.1", THERE, "10.9.0.2");
        intake.set_rate(Some(20 * MEGABIT), usize::MAX).unwrap();
        let (flood, _) = flood(1400);
        let reader = Beside::start(move |stop| {
            let mut pool = BufferPool::new();
            let mut numbers = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                wait_readable(&tap, 20);
                while let Some((frame, _)) = tap.receive(&mut pool).unwrap() {
                    if frame[36..38] == 1000u16.to_be_bytes() {
                        numbers.push(u16::from_be_bytes([frame[42], frame[43]]));
                    }
                    pool.give_back(frame);
                }
            }
            (tap, numbers)
        });
        let (ours, mut number) = (flow(1000), 0u16);
        let before = past_leaves();
        let mut send = |payload: usize| {
            let mut bytes = vec![0; payload];
            bytes[..2].copy_from_slice(&number.to_be_bytes());
            ours.send(&bytes).unwrap();
            number += 1;
        };
        for _ in 0..3 {
            (0..4).for_each(|_| send(36));
            (0..6).for_each(|n| send(if n % 2 == 0 { 1200 } else { 36 }));
            pause(Duration::from_millis(1300));
        }
        assert!(past_leaves() - before >= 12, "each time anew");
        flood.stop();
        pause(Duration::from_millis(300));
        let (_tap, numbers) = reader.stop();
        assert_eq!(numbers, (0..number).collect::<Vec<u16>>());
    });
}
