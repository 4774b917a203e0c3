//! Frames that come to the host in company are to its programs what they were: to one that reads several datagrams at a
//! time as to one that does not.

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use packtrain::linux::packet_socket::PacketSocket;
use packtrain::status::Coalesced;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::checksum::{add, sum};

use crate::common::cabled::{MEBIBYTE, address, status};
use crate::common::{A, A6, B, B6, Pair, pattern, pings_whole, transfer};

const ROUNDS: u64 = 30;
/// What a program sends at once: runs, a shorter one behind one, some without payload, longer ones behind shorter ones.
const SIZES: [usize; 26] = [
    100, 100, 100, 100, 100, 60, 0, 200, 200, 200, 0, 0, 1, 1, 1, 8, 1400, 1400, 900, 900, 300,
    300, 300, 299, 300, 300,
];

fn payload(number: u64, len: usize) -> Vec<u8> {
    let begin = number * 2048;
    (begin..begin + len as u64).map(pattern).collect()
}

/// One socket that sends, and one that it is connected to.
struct Flow {
    from: UdpSocket,
    to: UdpSocket,
    takes_several: bool,
    /// Reads that had more than one.
    several: u64,
}

impl Flow {
    fn new(pair: &Pair, [ours, theirs]: [&str; 2], port: u16, takes_several: bool) -> Flow {
        let at = SocketAddr::new(address(theirs), port);
        let to = pair.b.namespace.in_namespace(|| UdpSocket::bind(at));
        let to = to.unwrap().unwrap();
        to.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        setsockopt(&to, sockopt::UdpGroSegment, &takes_several).unwrap();
        let connect = || {
            let socket = UdpSocket::bind((address(ours), 0))?;
            socket.connect(at).map(|()| socket)
        };
        Flow {
            from: pair.a.namespace.in_namespace(connect).unwrap().unwrap(),
            to,
            takes_several,
            several: 0,
        }
    }

    /// What one read gives, cut where the kernel says.
    fn read(&mut self) -> Vec<Vec<u8>> {
        let mut buffer = vec![0; 65_536];
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let mut room = nix::cmsg_space!(i32);
        let socket = self.to.as_raw_fd();
        let message =
            recvmsg::<SockaddrStorage>(socket, &mut parts, Some(&mut room), MsgFlags::empty());
        let message = message.expect("a datagram");
        assert!(!message.flags.contains(MsgFlags::MSG_TRUNC));
        let said = message.cmsgs().unwrap().find_map(|said| match said {
            ControlMessageOwned::UdpGroSegments(len) => Some(len as usize),
            _ => None,
        });
        let len = message.bytes;
        match said {
            None => vec![buffer[..len].to_vec()],
            Some(_) if !self.takes_several => panic!("nobody has asked for {said:?} of {len}"),
            Some(segment_len) => {
                self.several += u64::from(segment_len < len);
                buffer[..len]
                    .chunks(segment_len)
                    .map(<[u8]>::to_vec)
                    .collect()
            }
        }
    }

    /// They all come, in order, each as long as it was, and nothing else.
    fn pass(&mut self, first: u64) {
        let sent: Vec<Vec<u8>> = (first..)
            .zip(SIZES)
            .map(|(n, len)| payload(n, len))
            .collect();
        for datagram in &sent {
            self.from.send(datagram).unwrap();
        }
        let mut came = Vec::new();
        while came.len() < sent.len() {
            came.extend(self.read());
        }
        let lens = |of: &[Vec<u8>]| of.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lens(&came), lens(&sent));
        assert!(came == sent, "bytes differ");
    }
}

fn since(before: Coalesced, after: Coalesced) -> Coalesced {
    Coalesced {
        datagrams: after.datagrams - before.datagrams,
        frames: after.frames - before.frames,
        segments: after.segments - before.segments,
        segment_frames: after.segment_frames - before.segment_frames,
    }
}

#[test]
fn programs_get_datagrams_and_streams_as_they_were_though_frames_came_together() {
    live!();
    // Small ones share large trains, and so they come at once.
    let pack = ["--path", "engine", "--pack", "scaled 2ms"];
    let pair = Pair::up_with("together", 9000, &pack).unwrap();
    for families in [[A, B], [A6, B6]] {
        assert!(pings_whole(&pair.a, families[1], 56));
        let mut several = Flow::new(&pair, families, 7400, true);
        let mut one = Flow::new(&pair, families, 7401, false);
        let before = status(&pair.b).coalesced;
        for round in 0..ROUNDS {
            several.pass(round * 100);
            one.pass(round * 100 + 50);
        }
        let made = since(before, status(&pair.b).coalesced);
        // Of each round at most four in a row have no company.
        assert!(
            made.frames > ROUNDS && made.datagrams > 2 * made.frames,
            "{made:?}"
        );
        assert!(several.several > ROUNDS / 2, "{}", several.several);
    }
    let cut = ["ethtool", "-K", "pt0", "gso", "off", "tso", "off"];
    pair.a.namespace.exec(cut).unwrap();
    for to in [B, B6] {
        let before = status(&pair.b).coalesced;
        assert_eq!(transfer(&pair.a, &pair.b, to, MEBIBYTE), MEBIBYTE);
        let made = since(before, status(&pair.b).coalesced);
        assert!(made.segments > 2 && made.segment_frames > 0, "{made:?}");
    }
    datagrams_without_a_checksum_come_one_by_one(&pair);
}

/// A sender may leave it out (`SO_NO_CHECK`), and cutting would put one in.
fn datagrams_without_a_checksum_come_one_by_one(pair: &Pair) {
    const COUNT: usize = 12;
    let mut flow = Flow::new(pair, [A, B], 7402, true);
    let mac = |text: &str| -> Vec<u8> {
        let bytes = text.split(':');
        bytes
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect()
    };
    let here = status(&pair.a);
    let ethernet = [
        mac(&status(&pair.b).address),
        mac(&here.address),
        vec![8, 0],
    ]
    .concat();
    let mut pt0 = pair
        .a
        .namespace
        .in_namespace(|| PacketSocket::open(here.ifindex))
        .unwrap()
        .unwrap();
    for has_checksum in [true, false] {
        let before = status(&pair.b).coalesced;
        for number in 0..COUNT {
            let packet = ipv4_datagram(7402, &payload(number as u64, 120), has_checksum);
            pt0.send(&[&ethernet[..], &packet].concat(), Offload::NONE)
                .unwrap();
        }
        let mut came = Vec::new();
        while came.len() < COUNT {
            came.extend(flow.read());
        }
        let sent: Vec<Vec<u8>> = (0..COUNT as u64)
            .map(|number| payload(number, 120))
            .collect();
        assert!(came == sent, "checksum {has_checksum}");
        let made = since(before, status(&pair.b).coalesced);
        assert_eq!(made.datagrams > 0, has_checksum, "{made:?}");
    }
}

/// From A to B, where fragmenting is forbidden.
fn ipv4_datagram(port: u16, payload: &[u8], has_checksum: bool) -> Vec<u8> {
    let octets = |text: &str| text.parse::<std::net::Ipv4Addr>().unwrap().octets();
    let udp_len = 8 + payload.len() as u16;
    let mut ip = vec![0x45, 0];
    ip.extend((20 + udp_len).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip.extend([octets(A), octets(B)].concat());
    let checksum = !sum(&ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let ports = [7403u16, port, udp_len, 0];
    let mut udp: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
    udp.extend(payload);
    if has_checksum {
        let pseudo = add(sum(&ip[12..20]), add(17, udp_len));
        let checksum = !add(pseudo, sum(&udp));
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    }
    [ip, udp].concat()
}
