//! Who else is on the segment, and sends what is for nobody whom we look at: addresses that no port of the switch is known to
//! have, ARP and neighbour solicitations of others for others, groups that nobody has joined.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use packtrain_proto::offload::Offload;

use crate::lab::namespaces::Namespace;
use crate::lab::{Error, Result, pause};
use crate::linux::packet_socket::PacketSocket;

/// One of each kind, as often.
const EVERY: Duration = Duration::from_millis(4);

const ETHER_TYPE_IPV4: u16 = 0x0800;
const ETHER_TYPE_ARP: u16 = 0x0806;
const ETHER_TYPE_IPV6: u16 = 0x86dd;
const ETHER_TYPE_IPX: u16 = 0x8137;

/// They send until this is dropped.
#[derive(Debug)]
pub(super) struct Strangers {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Strangers {
    /// By this interface.
    pub(super) fn begin(at: &Namespace, interface: &str) -> Result<Strangers> {
        let mut socket = sender(at, interface)?;
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut round: u16 = 0;
            while !told.load(Ordering::Relaxed) {
                for frame in frames(round) {
                    // A full queue, or an interface that has just gone: the next round is as good.
                    let _ = socket.send(&frame, Offload::NONE);
                }
                round = round.wrapping_add(1);
                pause(EVERY);
            }
        });
        Ok(Strangers {
            over,
            thread: Some(thread),
        })
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket that sends whole frames by an interface of a host.
pub(super) fn sender(at: &Namespace, interface: &str) -> Result<PacketSocket> {
    let open = || -> io::Result<PacketSocket> {
        use crate::linux::packet_socket::Frames;
        let any = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            None,
        )?;
        let index = rustix::net::netdevice::name_to_index(&any, interface)?;
        let mut socket = PacketSocket::create()?;
        socket.bind(index, Frames::None)?;
        Ok(socket)
    };
    at.in_namespace(open)?.map_err(|source| Error::Start {
        command: format!("packet socket on {interface}"),
        source,
    })
}

/// An Ethernet frame, padded to the shortest there is.
pub(super) fn frame(to: [u8; 6], from: [u8; 6], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &from, &ether_type.to_be_bytes(), payload].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// A station that is none of those on the segment.
fn station(number: u16) -> [u8; 6] {
    let [high, low] = number.to_be_bytes();
    [0x02, 0, 0x57, 0, high, low]
}

fn frames(round: u16) -> [Vec<u8>; 6] {
    let [_, low] = round.to_be_bytes();
    let from = station(round % 50);
    let (asker, wanted) = (
        Ipv4Addr::new(10, 7, 0, 200 + low % 25),
        Ipv4Addr::new(10, 7, 0, 225 + low % 25),
    );
    let group = Ipv4Addr::new(239, 99, low, 1);
    let [_, g1, g2, g3] = group.octets();
    [
        frame(
            station(1000 + round % 500),
            from,
            ETHER_TYPE_IPV4,
            &datagram(asker, wanted),
        ),
        frame(
            [0xff; 6],
            from,
            ETHER_TYPE_ARP,
            &question(from, asker, wanted),
        ),
        frame(
            [0x01, 0, 0x5e, g1 & 0x7f, g2, g3],
            from,
            ETHER_TYPE_IPV4,
            &datagram(asker, group),
        ),
        frame(
            [0x33, 0x33, 0xff, 0x99, 0, low],
            from,
            ETHER_TYPE_IPV6,
            &solicitation(low),
        ),
        // Passes: broadcast is for everybody.
        frame([0xff; 6], from, ETHER_TYPE_IPX, &[0xff; 30]),
        // NetBEUI's group, by 802.2.
        frame([0x03, 0, 0, 0, 0, 1], from, 46, &[0xf0; 46]),
    ]
}

fn datagram(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    const PAYLOAD: [u8; 18] = [0x57; 18];
    let len = 20 + 8 + PAYLOAD.len() as u16;
    let mut header = vec![0x45, 0];
    header.extend(len.to_be_bytes());
    header.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    header.extend(from.octets());
    header.extend(to.octets());
    let sum = checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    // A port that nobody has; UDP over IPv4 may go without a checksum.
    header.extend([0x30, 0x39, 0x30, 0x39]);
    header.extend((len - 20).to_be_bytes());
    header.extend([0, 0]);
    header.extend(PAYLOAD);
    header
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn question(from: [u8; 6], asker: Ipv4Addr, wanted: Ipv4Addr) -> Vec<u8> {
    let kind = [0, 1, 8, 0, 6, 4, 0, 1];
    let asker = [&from[..], &asker.octets()].concat();
    let wanted = [&[0; 6][..], &wanted.octets()].concat();
    [&kind[..], &asker, &wanted].concat()
}

/// Of one of a network that is not ours, for another one of it.
fn solicitation(low: u8) -> Vec<u8> {
    let mut from = [0; 16];
    from[..2].copy_from_slice(&[0xfe, 0x80]);
    from[15] = 0x57;
    let mut target = from;
    target[13..].copy_from_slice(&[0x99, 0, low]);
    let mut to = [0; 16];
    to[..2].copy_from_slice(&[0xff, 0x02]);
    to[11..].copy_from_slice(&[1, 0xff, 0x99, 0, low]);
    let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target);
    let len = message.len() as u8;
    let pseudo = [&from[..], &to, &[0, 0, 0, len, 0, 0, 0, 58], &message].concat();
    let sum = checksum(&pseudo).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    let header = [0x60, 0, 0, 0, 0, len, 58, 255];
    [&header[..], &from, &to, &message].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_their_checksums_say() {
        let [unicast, ..] = frames(7);
        assert_eq!(checksum(&unicast[14..34]), 0);
        let packet = solicitation(7);
        let (header, message) = packet.split_at(40);
        let pseudo = [&header[8..], &[0, 0, 0, 24, 0, 0, 0, 58], message].concat();
        assert_eq!(checksum(&pseudo), 0);
    }

    #[test]
    fn no_frame_is_shorter_than_ethernet_has_them() {
        for round in 0..3 {
            assert!(frames(round).iter().all(|frame| frame.len() >= 60));
        }
    }
}
