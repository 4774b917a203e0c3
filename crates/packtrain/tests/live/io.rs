//! The TAP and the packet sockets against the kernel, between two network namespaces.

mod forwarder;
mod testbed;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use forwarder::Line;
use nix::sys::socket::{setsockopt, sockopt};
use packtrain::linux::epoll::{Epoll, Interest, Ready};
use packtrain::linux::packet_socket::{PacketSocket, SendError};
use packtrain::linux::tap::Tap;
use packtrain_proto::buffer::{Buffer, BufferPool};
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::wire::ethernet::MacAddr;
use testbed::{Side, Testbed, ifindex};

use crate::common::cabled::now;

const PATIENCE: Duration = Duration::from_secs(5);

/// Byte `at` of every test transfer.
fn pattern(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

/// Sends `total` bytes by TCP from one namespace to the other, checks each, and gives bit/s.
fn tcp_transfer(from: &Side, to: &Side, at: &'static str, total: usize) -> f64 {
    let address: SocketAddr = at.parse().expect("an address");
    let listener = to.enter(move || TcpListener::bind(address)).expect("bind");
    let block: Vec<u8> = (0..1 << 20).map(pattern).collect();
    let expected = block.clone();
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accept");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        let mut bytes = vec![0; 1 << 18];
        let mut at = 0;
        while at < total {
            let n = stream.read(&mut bytes).expect("read");
            assert!(n > 0, "ended at {at} of {total}");
            let mut checked = 0;
            while checked < n {
                let start = (at + checked) % expected.len();
                let len = (n - checked).min(expected.len() - start);
                let (got, want) = (
                    &bytes[checked..checked + len],
                    &expected[start..start + len],
                );
                assert!(got == want, "a byte changed near {}", at + checked);
                checked += len;
            }
            at += n;
        }
    });
    let started = now();
    from.enter(move || {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("connect");
        stream.set_write_timeout(Some(PATIENCE)).expect("timeout");
        for _ in 0..total / block.len() {
            stream.write_all(&block).expect("write");
        }
    });
    receiver.join().expect("the receiver");
    total as f64 * 8.0 / started.elapsed().as_secs_f64()
}

#[test]
fn pings_of_every_size_pass() {
    live!();
    let bed = Testbed::create();
    let _line = Line::start(&bed, 1500);
    for size in ["0", "56", "1472"] {
        let ping = [
            "ping",
            "-c",
            "3",
            "-i",
            "0.01",
            "-W",
            "2",
            "-s",
            size,
            "10.77.0.2",
        ];
        let printed = bed.a.run(&ping);
        assert!(printed.contains("3 received"), "{printed}");
    }
}

#[test]
fn a_tcp_transfer_passes_intact_in_frames_of_64_kb() {
    live!();
    let bed = Testbed::create();
    let total = 512 << 20;
    for (number, side) in (1..).zip(bed.sides()) {
        side.run(&["ip", "link", "set", "wire", "arp", "on"]);
        side.run(&[
            "ip",
            "address",
            "add",
            &format!("10.78.0.{number}/24"),
            "dev",
            "wire",
        ]);
    }
    let direct_bps = tcp_transfer(&bed.a, &bed.b, "10.78.0.2:5001", total);
    for side in bed.sides() {
        side.run(&["ip", "address", "flush", "dev", "wire"]);
        side.run(&["ip", "link", "set", "wire", "arp", "off"]);
    }
    let line = Line::start(&bed, 1500);
    let forwarded_bps = tcp_transfer(&bed.a, &bed.b, "10.77.0.2:5001", total);
    let seen = &line.seen;
    println!(
        "bulk TCP: {:.2} Gbit/s direct, {:.2} forwarded, ratio {:.2}; longest frame {}, refused {}",
        direct_bps / 1e9,
        forwarded_bps / 1e9,
        forwarded_bps / direct_bps,
        seen.longest.load(Ordering::Relaxed),
        seen.refused.load(Ordering::Relaxed),
    );
    assert!(seen.longest.load(Ordering::Relaxed) > 32_768);
    assert!(seen.tcp_gso_frames.load(Ordering::Relaxed) > 1000);
    // The other direction, by the same code with the roles changed.
    tcp_transfer(&bed.b, &bed.a, "10.77.0.1:5001", 64 << 20);
}

#[test]
fn udp_gso_passes_as_one_frame_and_arrives_as_its_datagrams() {
    live!();
    let bed = Testbed::create();
    let line = Line::start(&bed, 1500);
    const SEGMENT: usize = 1200;
    const SEGMENTS: usize = 20;
    let receiver = bed
        .b
        .enter(|| UdpSocket::bind("10.77.0.2:5002"))
        .expect("bind");
    receiver.set_read_timeout(Some(PATIENCE)).expect("timeout");
    bed.a.enter(|| {
        let sender = UdpSocket::bind("10.77.0.1:0").expect("bind");
        // The first datagram waits for ARP; it goes alone.
        sender.send_to(b"first", "10.77.0.2:5002").expect("send");
        setsockopt(&sender, sockopt::UdpGsoSegment, &(SEGMENT as i32)).expect("UDP_SEGMENT");
        let bytes: Vec<u8> = (0..SEGMENT * SEGMENTS - 100).map(pattern).collect();
        sender.send_to(&bytes, "10.77.0.2:5002").expect("send");
    });
    let mut bytes = vec![0; 65_536];
    assert_eq!(receiver.recv(&mut bytes).expect("the first"), 5);
    for segment in 0..SEGMENTS {
        let len = receiver.recv(&mut bytes).expect("a datagram");
        let start = segment * SEGMENT;
        assert_eq!(
            len,
            if segment == SEGMENTS - 1 {
                SEGMENT - 100
            } else {
                SEGMENT
            }
        );
        assert!(
            bytes[..len]
                .iter()
                .zip(start..)
                .all(|(&byte, at)| byte == pattern(at))
        );
    }
    assert_eq!(line.seen.udp_gso_frames.load(Ordering::Relaxed), 1);
}

/// Packet sockets on both ends of a testbed's cable.
fn ends(bed: &Testbed) -> [PacketSocket; 2] {
    bed.sides().map(|side| {
        side.enter(|| PacketSocket::open(ifindex("wire")))
            .expect("a socket")
    })
}

fn receive(socket: &mut PacketSocket, pool: &mut BufferPool) -> (Buffer, Offload) {
    let mut epoll = Epoll::new().expect("epoll");
    epoll.add(socket.as_fd(), 0, Interest::Read).expect("add");
    loop {
        if let Some(frame) = socket.receive(pool).expect("receive") {
            return frame;
        }
        assert_eq!(
            epoll.wait(Some(PATIENCE)).expect("wait").count(),
            1,
            "nothing arrives"
        );
    }
}

/// An Ethernet frame of `len` bytes: 14 of header, the rest a pattern.
fn frame(ether_type: u16, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(ether_type.to_be_bytes());
    frame.extend((frame.len()..len).map(pattern));
    frame
}

#[test]
fn vlan_tags_stand_in_the_frame_again() {
    live!();
    let bed = Testbed::create();
    let [mut sender, mut receiver] = ends(&bed);
    let mut pool = BufferPool::new();
    for tag_protocol in [0x8100u16, 0x88a8] {
        for len in [60, 1514, 1518] {
            if len > 1514 && tag_protocol != 0x8100 {
                continue; // only the ordinary tag comes on top of the MTU
            }
            let mut sent = frame(tag_protocol, len);
            sent[14..18].copy_from_slice(&[0x20, 0x64, 0x88, 0xb6]);
            sender.send(&sent, Offload::NONE).expect("send");
            let (received, offload) = receive(&mut receiver, &mut pool);
            assert_eq!(received[..], sent[..], "{tag_protocol:#x}, {len} bytes");
            assert_eq!(offload, Offload::NONE);
            pool.give_back(received);
        }
    }
}

/// A TCP segment of `payload_len` bytes over IPv4, after `tag`; its checksum is partial.
fn tcp_frame(tag: &[u8], payload_len: usize) -> (Vec<u8>, PartialChecksum) {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(tag);
    frame.extend([0x08, 0x00]);
    let network = frame.len();
    let total = (40 + payload_len) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = internet_sum(&frame[network..]);
    frame[network + 10..network + 12].copy_from_slice(&(!sum).to_be_bytes());
    let mut pseudo = frame[network + 12..network + 20].to_vec();
    pseudo.extend([0, 6]);
    pseudo.extend((20 + payload_len as u16).to_be_bytes());
    frame.extend([
        0x10, 0, 0x10, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff,
    ]);
    frame.extend(internet_sum(&pseudo).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload_len).map(pattern));
    (
        frame,
        PartialChecksum {
            start: network as u16 + 20,
            offset: 16,
        },
    )
}

fn internet_sum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|b| u32::from(b[0]) << 8 | u32::from(*b.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn a_gso_frame_crosses_as_one_with_its_tag_and_its_metadata() {
    live!();
    let bed = Testbed::create();
    let [mut sender, mut receiver] = ends(&bed);
    let mut pool = BufferPool::new();
    for tag in [&[][..], &[0x81, 0x00, 0x20, 0x64]] {
        for payload_len in [1449, 3000, 30_000, 65_160] {
            let (sent, checksum) = tcp_frame(tag, payload_len);
            let header_len = checksum.start + 20;
            let gso = Gso {
                kind: GsoKind::TcpV4,
                ecn: false,
                header_len,
                segment_len: 1448,
            };
            let offload = Offload {
                checksum: Some(checksum),
                gso: Some(gso),
            };
            sender.send(&sent, offload).expect("send");
            let (received, received_offload) = receive(&mut receiver, &mut pool);
            assert!(
                received[..] == sent[..],
                "{} of {} bytes",
                received.len(),
                sent.len()
            );
            assert_eq!(received_offload, offload);
            pool.give_back(received);
        }
        let (sent, checksum) = tcp_frame(tag, 100);
        let offload = Offload {
            checksum: Some(checksum),
            gso: None,
        };
        sender.send(&sent, offload).expect("send");
        let (received, received_offload) = receive(&mut receiver, &mut pool);
        assert_eq!((&received[..], received_offload), (&sent[..], offload));
    }
}

#[test]
fn own_frames_are_not_received() {
    live!();
    let bed = Testbed::create();
    let [mut sender, mut receiver] = ends(&bed);
    let mut pool = BufferPool::new();
    sender
        .send(&frame(0x88b6, 60), Offload::NONE)
        .expect("send");
    receive(&mut receiver, &mut pool);
    assert!(sender.receive(&mut pool).expect("receive").is_none());
}

#[test]
fn the_local_queue_is_told_in_frame_bytes_and_wakes_when_it_falls() {
    live!();
    let bed = Testbed::create();
    let [mut sender, _receiver] = ends(&bed);
    let rate = ["rate", "1mbit", "burst", "3000", "limit", "10000000"];
    bed.a.run(
        &[
            &["tc", "qdisc", "add", "dev", "wire", "root", "tbf"][..],
            &rate,
        ]
        .concat(),
    );
    for len in [60, 300, 1514] {
        assert_eq!(sender.queued_bytes().expect("queue"), 0);
        let limit = 20 * 1514;
        sender.set_queue_limit(limit).expect("limit");
        let mut sent = 0;
        let started = now();
        let blocked = loop {
            match sender.send(&frame(0x88b6, len), Offload::NONE) {
                Ok(()) => sent += len,
                Err(error) => break error,
            }
        };
        assert!(matches!(blocked, SendError::WouldBlock), "{blocked}");
        let gone_bytes = |since: Instant| 3000 + since.elapsed().as_micros() as usize / 8;
        let queued = sender.queued_bytes().expect("queue");
        let standing_least = sent.saturating_sub(gone_bytes(started));
        println!("{len}-byte frames: {sent} bytes sent, {queued} said to stand");
        assert!(queued <= sent, "{queued} of {sent}");
        assert!(
            queued * 4 >= standing_least * 3,
            "{queued}, at least {standing_least} stand"
        );
        assert!(
            sent <= 2 * limit + 1514 || len < 1514,
            "{sent} bytes let in"
        );

        let mut epoll = Epoll::new().expect("epoll");
        epoll
            .add(sender.as_fd(), 0, Interest::ReadWrite)
            .expect("add");
        let woken: Vec<Ready> = epoll.wait(Some(PATIENCE)).expect("wait").collect();
        assert!(woken.iter().any(|ready| ready.writable), "{woken:?}");
        let left = sender.queued_bytes().expect("queue");
        println!("{len}-byte frames: woken at {left}");
        let drained = gone_bytes(started) >= sent;
        assert!(
            (left > 0 || drained) && left <= limit,
            "woken at {left} of {limit}"
        );
        while sender.queued_bytes().expect("queue") > 0 {
            assert!(started.elapsed() < PATIENCE, "the queue never drains");
            epoll
                .wait(Some(Duration::from_millis(2)))
                .expect("wait")
                .for_each(drop);
        }
    }
}

#[test]
fn refusals_of_the_kernel_are_told_apart() {
    live!();
    let bed = Testbed::create();
    let [mut sender, mut receiver] = ends(&bed);
    let too_large = sender.send(&frame(0x88b6, 1519), Offload::NONE);
    assert!(
        matches!(too_large, Err(SendError::TooLarge)),
        "{too_large:?}"
    );
    let lie = PartialChecksum {
        start: 60_000,
        offset: 16,
    };
    let offload = Offload {
        checksum: Some(lie),
        gso: None,
    };
    let lied = sender.send(&frame(0x0800, 100), offload);
    assert!(matches!(lied, Err(SendError::Other(_))), "{lied:?}");

    let tbf = ["tbf", "rate", "8kbit", "burst", "1600", "limit", "1600"];
    bed.a
        .run(&[&["tc", "qdisc", "add", "dev", "wire", "root"][..], &tbf].concat());
    let refused = (0..10).find_map(|_| sender.send(&frame(0x88b6, 1500), Offload::NONE).err());
    assert!(matches!(refused, Some(SendError::NoBuffer)), "{refused:?}");

    bed.a.run(&["ip", "link", "set", "wire", "down"]);
    let down = sender.send(&frame(0x88b6, 60), Offload::NONE);
    assert!(matches!(down, Err(SendError::LinkDown)), "{down:?}");
    // The socket tells of it once, and works again when the interface does.
    let mut pool = BufferPool::new();
    assert!(sender.receive(&mut pool).is_err());
    assert!(
        sender
            .receive(&mut pool)
            .expect("no second error")
            .is_none()
    );
    bed.a.run(&["tc", "qdisc", "del", "dev", "wire", "root"]);
    bed.a.run(&["ip", "link", "set", "wire", "up"]);
    while receiver.receive(&mut pool).is_err() {}
    sender
        .send(&frame(0x88b6, 77), Offload::NONE)
        .expect("send");
    while receive(&mut receiver, &mut pool).0.len() != 77 {}

    let b = bed.b.name().to_string();
    bed.a.run(&["ip", "-n", &b, "link", "del", "wire"]);
    let gone = sender.send(&frame(0x88b6, 60), Offload::NONE);
    assert!(matches!(gone, Err(SendError::LinkDown)), "{gone:?}");
}

/// Why trains are no longer than their link's MTU (docs/design/0009-aggregation.md): the kernel cuts what is too long by its
/// EtherType, and nothing cuts ours.
#[test]
fn a_train_longer_than_the_links_mtu_is_sent_under_no_gso_type() {
    live!();
    let bed = Testbed::create();
    let [mut sender, mut receiver] = ends(&bed);
    let train = frame(0x88b5, 14 + 30_000);
    let plain = sender.send(&train, Offload::NONE);
    assert!(matches!(plain, Err(SendError::TooLarge)), "{plain:?}");
    for (kind, start, offset, header_len) in [
        (GsoKind::UdpL4, 34, 6, 42),
        (GsoKind::TcpV4, 34, 16, 54),
        (GsoKind::TcpV6, 54, 16, 74),
    ] {
        let gso = Some(Gso {
            kind,
            ecn: false,
            header_len,
            segment_len: 1400,
        });
        let partial = PartialChecksum { start, offset };
        for (checksum, told) in [
            (None, nix::libc::EINVAL),
            (Some(partial), nix::libc::ENOMEM),
        ] {
            match sender.send(&train, Offload { checksum, gso }) {
                Err(SendError::Other(error)) => {
                    assert_eq!(error.raw_os_error(), Some(told), "{kind:?}, {checksum:?}");
                }
                sent => panic!("{kind:?}, {checksum:?}: {sent:?}"),
            }
        }
    }
    // Not a piece of them has left.
    sender
        .send(&frame(0x88b5, 77), Offload::NONE)
        .expect("send");
    let mut pool = BufferPool::new();
    loop {
        let came = receive(&mut receiver, &mut pool).0;
        if came[12..14] == [0x88, 0xb5] {
            assert_eq!(came.len(), 77);
            return;
        }
    }
}

#[test]
fn memberships_are_seen_by_the_interface_and_vanish_with_the_socket() {
    live!();
    let bed = Testbed::create();
    let [socket, _other] = ends(&bed);
    socket.set_promiscuous(true).expect("promiscuous");
    socket.set_all_multicast(true).expect("all multicast");
    socket.add_multicast(MacAddr::HELLO).expect("multicast");
    let link = || bed.a.run(&["ip", "-d", "link", "show", "dev", "wire"]);
    let groups = || bed.a.run(&["ip", "maddress", "show", "dev", "wire"]);
    assert!(
        link().contains("promiscuity 1") && link().contains("allmulti 1"),
        "{}",
        link()
    );
    assert!(groups().contains("03:70:74:00:00:01"), "{}", groups());
    socket.set_promiscuous(false).expect("promiscuous");
    assert!(link().contains("promiscuity 0"), "{}", link());
    // A veth has no filter for unicast addresses: it can only take them all.
    let address = MacAddr([2, 9, 9, 9, 9, 9]);
    socket.add_unicast(address).expect("unicast");
    assert!(link().contains("promiscuity 1"), "{}", link());
    socket.remove_unicast(address).expect("unicast");
    assert!(link().contains("promiscuity 0"), "{}", link());
    drop(socket);
    assert!(link().contains("allmulti 0"), "{}", link());
    assert!(!groups().contains("03:70:74:00:00:01"), "{}", groups());
}

#[test]
fn what_nobody_reads_in_time_is_counted() {
    live!();
    let bed = Testbed::create();
    let [mut sender, mut receiver] = ends(&bed);
    let mut pool = BufferPool::new();
    let total = 40_000u64;
    for _ in 0..total {
        sender
            .send(&frame(0x88b6, 1000), Offload::NONE)
            .expect("send");
    }
    let mut received = 0;
    while let Some((frame, _)) = receiver.receive(&mut pool).expect("receive") {
        received += 1;
        pool.give_back(frame);
    }
    let dropped = receiver.dropped().expect("statistics");
    assert!(dropped > 0);
    assert_eq!(received + dropped, total);
    assert_eq!(receiver.dropped().expect("statistics"), dropped);
}

#[test]
fn a_name_that_is_taken_is_an_error_of_its_own() {
    live!();
    let bed = Testbed::create();
    bed.a.run(&["ip", "tuntap", "add", "idle0", "mode", "tap"]);
    bed.a.enter(|| {
        let create = |name| Tap::create(name, MacAddr([2, 0, 0, 0, 0, 1]));
        let _tap = create("pt0").expect("a TAP");
        for name in ["pt0", "idle0", "wire", "lo"] {
            let error = create(name).expect_err(name);
            assert_eq!(
                error.raw_os_error(),
                Some(nix::libc::EBUSY),
                "{name}: {error}"
            );
        }
        let long = create("a-name-of-sixteen").expect_err("too long");
        assert_eq!(long.kind(), std::io::ErrorKind::InvalidInput);
    });
    let shown = bed.a.run(&["ip", "link", "show"]);
    assert!(!shown.contains("pt0"), "it outlived its owner: {shown}");
}

#[test]
fn a_tap_has_the_address_and_the_offloads_that_it_was_created_for() {
    live!();
    let bed = Testbed::create();
    let tap = bed
        .a
        .enter(|| Tap::create("pt0", MacAddr([2, 1, 2, 3, 4, 5])))
        .expect("a TAP");
    let shown = bed.a.run(&["ip", "link", "show", "dev", "pt0"]);
    assert!(shown.contains("02:01:02:03:04:05"), "{shown}");
    let offloads = bed.a.run(&["ethtool", "-k", "pt0"]);
    for offload in [
        "tx-checksumming: on",
        "tx-tcp-segmentation: on",
        "tx-tcp6-segmentation: on",
    ] {
        assert!(offloads.contains(offload), "{offloads}");
    }
    assert_eq!(tap.ifindex(), bed.a.enter(|| ifindex("pt0")));
}
