//! A TAP and a cable, each frame passed on as it is: the plumbing without the engine.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use packtrain::linux::epoll::{Epoll, Interest};
use packtrain::linux::packet_socket::{PacketSocket, SendError};
use packtrain::linux::tap::Tap;
use packtrain_proto::buffer::BufferPool;
use packtrain_proto::engine::Delivery;
use packtrain_proto::offload::GsoKind;
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr};

use super::testbed::{Side, Testbed, ifindex};

/// What passed, either way.
#[derive(Debug, Default)]
pub struct Seen {
    pub tcp_gso_frames: AtomicU64,
    pub udp_gso_frames: AtomicU64,
    pub longest: AtomicU64,
    pub refused: AtomicU64,
}

/// `pt0` in both namespaces of a testbed, as 10.77.0.1 and 10.77.0.2, joined by forwarders.
pub struct Line {
    pub seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Line {
    pub fn start(bed: &Testbed, mtu: u16) -> Line {
        let mut line = Line {
            seen: Arc::default(),
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for (number, side) in (1..).zip(bed.sides()) {
            line.start_side(side, number, mtu);
        }
        line
    }

    fn start_side(&mut self, side: &Side, number: u8, mtu: u16) {
        let mac = MacAddr([2, 0x70, 0x74, 0, 0, number]);
        let tap = side.enter(move || Tap::create("pt0", mac)).expect("a TAP");
        let link = side
            .enter(|| PacketSocket::open(ifindex("wire")))
            .expect("a packet socket");
        side.run(&["ip", "link", "set", "pt0", "mtu", &mtu.to_string(), "up"]);
        side.run(&[
            "ip",
            "address",
            "add",
            &format!("10.77.0.{number}/24"),
            "dev",
            "pt0",
        ]);
        let (seen, stop) = (self.seen.clone(), self.stop.clone());
        self.threads
            .push(std::thread::spawn(move || forward(tap, link, &seen, &stop)));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn forward(mut tap: Tap, mut link: PacketSocket, seen: &Seen, stop: &AtomicBool) {
    let mut pool = BufferPool::new();
    let mut epoll = Epoll::new().expect("epoll");
    epoll.add(tap.as_fd(), 0, Interest::Read).expect("add");
    epoll.add(link.as_fd(), 1, Interest::Read).expect("add");
    while !stop.load(Ordering::Relaxed) {
        epoll
            .wait(Some(Duration::from_millis(50)))
            .expect("wait")
            .for_each(drop);
        loop {
            let mut idle = true;
            if let Some((frame, offload)) = tap.receive(&mut pool).expect("from the TAP") {
                idle = false;
                note(seen, frame.len(), offload.gso.map(|gso| gso.kind));
                match link.send(&frame, offload) {
                    Ok(()) => {}
                    Err(SendError::WouldBlock | SendError::NoBuffer) => count(&seen.refused),
                    Err(error) => panic!("{} bytes, {offload:?}: {error}", frame.len()),
                }
                pool.give_back(frame);
            }
            if let Some((frame, offload)) = link.receive(&mut pool).expect("from the link") {
                idle = false;
                let (head, body) = frame.split_at(HEADER_LEN);
                tap.send(&Delivery {
                    head,
                    body,
                    offload,
                })
                .expect("to the TAP");
                pool.give_back(frame);
            }
            if idle {
                break;
            }
        }
    }
    assert_eq!(tap.counters().unrepresentable, 0);
    assert_eq!(
        (link.counters().unrepresentable, link.counters().truncated),
        (0, 0)
    );
}

fn note(seen: &Seen, len: usize, gso: Option<GsoKind>) {
    seen.longest.fetch_max(len as u64, Ordering::Relaxed);
    match gso {
        Some(GsoKind::UdpL4) => count(&seen.udp_gso_frames),
        Some(GsoKind::TcpV4 | GsoKind::TcpV6) => count(&seen.tcp_gso_frames),
        None => {}
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
