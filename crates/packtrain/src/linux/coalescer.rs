//! Datagrams of one flow that come one after the other go to the host as one GSO frame.
//!
//! A frame written to a TAP costs about a microsecond and a half of system call, routing and socket
//! look-up, most of it whatever its size. The kernel cuts a UDP GSO frame only where it has to, at the
//! socket, as it does with what its own GRO has put together. What a program receives is
//! the same: only what cutting gives back to the byte is put together. An IPv4 identification may
//! change where fragmenting is forbidden, because there it means nothing (RFC 6864).

use std::io;

use packtrain_proto::engine::Delivery;
use packtrain_proto::gso::UDP_CHECKSUM_OFFSET;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::wire::checksum::{add, sum};
use packtrain_proto::wire::ethernet::{HEADER_LEN, ether_type};
use packtrain_proto::wire::packet::{
    IPV4_HEADER_LEN, IPV6_HEADER_LEN, UDP_HEADER_LEN, field, protocol,
};

/// Half of what the kernel's own senders put together (`UDP_MAX_SEGMENTS`).
const FRAMES_MAX: usize = 64;
/// Headers, and a payload of each frame.
pub const PARTS_MAX: usize = 1 + FRAMES_MAX;
/// IPv4 counts to 65,535, its header included.
const BYTES_MAX: usize = 65_000;
const HEADERS_MAX: usize = HEADER_LEN + IPV6_HEADER_LEN + UDP_HEADER_LEN;
const DONT_FRAGMENT: u16 = 0x4000;

/// Where frames are given to the host.
pub trait Host {
    fn send(&self, delivery: &Delivery<'_>) -> io::Result<()>;
    /// One frame of several parts: at most [`PARTS_MAX`].
    fn send_parts(&self, offload: Offload, parts: &[io::IoSlice<'_>]) -> io::Result<()>;
}

/// Frames that will go together.
#[derive(Debug)]
pub struct Coalescer {
    /// The frames, one after the other.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    run: Option<Run>,
    /// Kernels before 6.2 have no such frames.
    works: bool,
    counters: CoalescerCounters,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoalescerCounters {
    /// Frames that were given to the host in company.
    pub frames: u64,
    /// GSO frames that they made.
    pub together: u64,
}

/// What the next frame has to fit to.
#[derive(Clone, Copy, Debug)]
struct Run {
    ip_len: usize,
    /// UDP payload of every frame but the last.
    payload_len: usize,
    /// A shorter one has come: it is the last.
    ended: bool,
}

/// A UDP datagram of which every length and checksum is right.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    ip_len: usize,
    payload_len: usize,
}

impl Coalescer {
    pub fn new() -> Coalescer {
        Coalescer {
            bytes: Vec::with_capacity(BYTES_MAX),
            ends: Vec::with_capacity(FRAMES_MAX),
            run: None,
            works: true,
            counters: CoalescerCounters::default(),
        }
    }

    pub fn counters(&self) -> CoalescerCounters {
        self.counters
    }

    /// Gives the frame to the host, now or with [`Coalescer::flush`]; order is kept. Says how many
    /// frames the host did not take.
    pub fn send(&mut self, delivery: &Delivery<'_>, host: &impl Host) -> usize {
        let datagram = match delivery.offload.is_none() && self.works {
            true => Datagram::parse(delivery.head, delivery.body),
            false => None,
        };
        let Some(datagram) = datagram else {
            return self.flush(host) + usize::from(host.send(delivery).is_err());
        };
        let refused = match self.takes(&datagram, delivery) {
            true => 0,
            false => self.flush(host),
        };
        let run = self.run.get_or_insert(Run {
            ip_len: datagram.ip_len,
            payload_len: datagram.payload_len,
            ended: false,
        });
        run.ended = datagram.payload_len < run.payload_len;
        self.bytes.extend_from_slice(delivery.head);
        self.bytes.extend_from_slice(delivery.body);
        self.ends.push(self.bytes.len());
        refused
    }

    /// Whether the datagram follows those that wait, and cutting would give all of them back.
    fn takes(&self, datagram: &Datagram, delivery: &Delivery<'_>) -> bool {
        let Some(run) = self.run.filter(|run| !run.ended) else {
            return false;
        };
        let first = &self.bytes[..self.ends[0]];
        let (head, packet) = first.split_at(HEADER_LEN);
        let same = |range: core::ops::Range<usize>| packet[range.clone()] == delivery.body[range];
        let same_ip = match run.ip_len {
            IPV4_HEADER_LEN => {
                let id = |packet: &[u8]| word(packet, field::IPV4_ID);
                let next = id(packet).wrapping_add(self.ends.len() as u16);
                let free = word(packet, field::IPV4_FRAGMENT) == DONT_FRAGMENT;
                // All but length, identification and checksum.
                same(0..2) && same(6..10) && same(12..20) && (free || id(delivery.body) == next)
            }
            _ => same(0..4) && same(6..IPV6_HEADER_LEN),
        };
        datagram.ip_len == run.ip_len
            && datagram.payload_len <= run.payload_len
            && head == delivery.head
            && same_ip
            && same(run.ip_len..run.ip_len + 4)
            && self.ends.len() < FRAMES_MAX
            && self.bytes.len() + delivery.len() <= BYTES_MAX
    }

    /// Gives the host what waits, and says how many frames it did not take.
    pub fn flush(&mut self, host: &impl Host) -> usize {
        let Some(run) = self.run.take() else {
            return 0;
        };
        let mut refused = 0;
        if self.ends.len() == 1 || !self.sent_together(run, host) {
            let mut start = 0;
            for &end in &self.ends {
                let (head, body) = self.bytes[start..end].split_at(HEADER_LEN);
                let delivery = Delivery {
                    head,
                    body,
                    offload: Offload::NONE,
                };
                refused += usize::from(host.send(&delivery).is_err());
                start = end;
            }
        }
        self.bytes.clear();
        self.ends.clear();
        refused
    }

    fn sent_together(&mut self, run: Run, host: &impl Host) -> bool {
        let headers_len = HEADER_LEN + run.ip_len + UDP_HEADER_LEN;
        let payload_bytes = self.bytes.len() - self.ends.len() * headers_len;
        let mut headers = [0; HEADERS_MAX];
        let headers = &mut headers[..headers_len];
        headers.copy_from_slice(&self.bytes[..headers_len]);
        let offload = write_headers(headers, run, payload_bytes);

        let mut parts = [io::IoSlice::new(&[]); PARTS_MAX];
        parts[0] = io::IoSlice::new(headers);
        let mut start = 0;
        for (part, &end) in parts[1..].iter_mut().zip(&self.ends) {
            *part = io::IoSlice::new(&self.bytes[start + headers_len..end]);
            start = end;
        }
        match host.send_parts(offload, &parts[..1 + self.ends.len()]) {
            Ok(()) => {
                self.counters.frames += self.ends.len() as u64;
                self.counters.together += 1;
                true
            }
            Err(error) => {
                self.works &= error.kind() != io::ErrorKind::InvalidInput;
                false
            }
        }
    }
}

impl Default for Coalescer {
    fn default() -> Coalescer {
        Coalescer::new()
    }
}

/// Makes the headers of the first datagram those of all of them.
fn write_headers(headers: &mut [u8], run: Run, payload_bytes: usize) -> Offload {
    let udp_len = (UDP_HEADER_LEN + payload_bytes) as u16;
    let (ip, udp) = headers[HEADER_LEN..].split_at_mut(run.ip_len);
    if run.ip_len == IPV4_HEADER_LEN {
        let total_len = IPV4_HEADER_LEN as u16 + udp_len;
        ip[field::IPV4_TOTAL_LEN].copy_from_slice(&total_len.to_be_bytes());
        ip[field::IPV4_CHECKSUM].fill(0);
        let checksum = !sum(ip);
        ip[field::IPV4_CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    } else {
        ip[field::IPV6_PAYLOAD_LEN].copy_from_slice(&udp_len.to_be_bytes());
    }
    udp[field::UDP_LEN].copy_from_slice(&udp_len.to_be_bytes());
    let at = usize::from(UDP_CHECKSUM_OFFSET);
    udp[at..at + 2].copy_from_slice(&pseudo_header(ip, udp_len).to_be_bytes());
    Offload {
        checksum: Some(PartialChecksum {
            start: (HEADER_LEN + run.ip_len) as u16,
            offset: UDP_CHECKSUM_OFFSET,
        }),
        gso: Some(Gso {
            kind: GsoKind::UdpL4,
            ecn: false,
            header_len: (HEADER_LEN + run.ip_len + UDP_HEADER_LEN) as u16,
            segment_len: run.payload_len as u16,
        }),
    }
}

/// The sum of the pseudo header of a datagram of `udp_len` bytes behind this IP header.
fn pseudo_header(ip: &[u8], udp_len: u16) -> u16 {
    let addresses = match ip.len() {
        IPV4_HEADER_LEN => &ip[field::IPV4_ADDRESSES],
        _ => &ip[field::IPV6_ADDRESSES],
    };
    add(sum(addresses), add(u16::from(protocol::UDP), udp_len))
}

fn word(bytes: &[u8], range: core::ops::Range<usize>) -> u16 {
    u16::from_be_bytes([bytes[range.start], bytes[range.start + 1]])
}

impl Datagram {
    /// Nothing that could not be told again from the first one's headers: no options, no fragment, no
    /// padding, no missing or wrong checksum.
    fn parse(head: &[u8], packet: &[u8]) -> Option<Datagram> {
        let ip_len = match u16::from_be_bytes([head[12], head[13]]) {
            ether_type::IPV4 => IPV4_HEADER_LEN,
            ether_type::IPV6 => IPV6_HEADER_LEN,
            _ => return None,
        };
        // With at least a byte of payload.
        if packet.len() <= ip_len + UDP_HEADER_LEN {
            return None;
        }
        let (ip, udp) = packet.split_at(ip_len);
        let ip_is_right = if ip_len == IPV4_HEADER_LEN {
            ip[0] == 0x45
                && ip[field::IPV4_PROTOCOL] == protocol::UDP
                && usize::from(word(ip, field::IPV4_TOTAL_LEN)) == packet.len()
                && word(ip, field::IPV4_FRAGMENT) & !DONT_FRAGMENT == 0
                // In this form, because that is how it will be written again.
                && sum(ip) == u16::MAX
                && ip[field::IPV4_CHECKSUM] != [0xff, 0xff]
        } else {
            ip[0] >> 4 == 6
                && ip[field::IPV6_NEXT_HEADER] == protocol::UDP
                && usize::from(word(ip, field::IPV6_PAYLOAD_LEN)) == udp.len()
        };
        let at = usize::from(UDP_CHECKSUM_OFFSET);
        let right = ip_is_right
            && usize::from(word(udp, field::UDP_LEN)) == udp.len()
            && udp[at..at + 2] != [0, 0]
            && add(pseudo_header(ip, udp.len() as u16), sum(udp)) == u16::MAX;
        right.then(|| Datagram {
            ip_len,
            payload_len: udp.len() - UDP_HEADER_LEN,
        })
    }
}

#[cfg(test)]
mod tests;
