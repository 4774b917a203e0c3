//! What the kernel makes of a frame with a `virtio_net_hdr`, slowly, in the order in which it looks at it.
//!
//! A reading of the kernel's sources of its own, which shares nothing with what is tested: not how headers are read, nor how
//! checksums are counted. What the kernel refuses or its stack would drop is an error that says why.
//!
//! Source: `tun_get_user` (drivers/net/tun.c), `virtio_net_hdr_to_skb` (include/linux/virtio_net.h), `ip_rcv_core`
//! and `inet_gso_segment` (net/ipv4), `ipv6_gso_segment` (net/ipv6), `tcp_gso_segment` and `__udp_gso_segment`
//! (net/ipv4/tcp_offload.c, udp_offload.c), of Linux 6.18.

const NEEDS_CSUM: u8 = 1;
const NONE: u8 = 0;
const TCPV4: u8 = 1;
const TCPV6: u8 = 4;
const UDP_L4: u8 = 5;
const ECN: u8 = 0x80;
const UDP_MAX_SEGMENTS: usize = 128;

const ETHERNET: usize = 14;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

type Refusal = &'static str;

fn word(bytes: &[u8], at: usize) -> usize {
    usize::from(bytes[at]) * 256 + usize::from(bytes[at + 1])
}

fn put(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at] = (value / 256) as u8;
    bytes[at + 1] = (value % 256) as u8;
}

/// RFC 1071, word by word.
pub fn folded_sum(bytes: &[u8]) -> usize {
    let words = bytes
        .chunks(2)
        .map(|pair| usize::from(pair[0]) * 256 + usize::from(*pair.get(1).unwrap_or(&0)));
    fold(words.sum())
}

fn fold(mut sum: usize) -> usize {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// What stands in its place is in the sum already.
fn finish_checksum(frame: &mut [u8], start: usize, offset: usize, is_tcp: bool) {
    let checksum = match !folded_sum(&frame[start..]) & 0xffff {
        0 if !is_tcp => 0xffff,
        checksum => checksum,
    };
    put(frame, start + offset, checksum);
}

/// Frames as they are on a wire whose card does nothing.
pub fn cut(header: &[u8; 10], frame: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
    let host_order = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
    let needs_checksum = header[0] & NEEDS_CSUM != 0;
    let kind = header[1] & !ECN;
    let (header_len, size) = (host_order(2), host_order(4));
    let (start, offset) = (host_order(6), host_order(8));
    if frame.len() < ETHERNET {
        return Err("less than an Ethernet header");
    }
    if header_len > frame.len() {
        return Err("headers longer than the frame");
    }
    if needs_checksum && start + offset + 2 > frame.len() {
        return Err("a checksum outside of the frame");
    }
    let finished = || {
        let mut frame = frame.to_vec();
        if needs_checksum {
            // `skb_checksum_help` makes no difference between protocols, `gso_make_checksum` does.
            finish_checksum(&mut frame, start, offset, false);
        }
        vec![frame]
    };
    if kind == NONE {
        return Ok(finished());
    }
    let ip_version = match word(frame, 12) {
        0x0800 => 4,
        0x86dd => 6,
        _ => return Err("a GSO type that is not of its protocol"),
    };
    let (is_tcp, least) = match (kind, ip_version) {
        (TCPV4, 4) | (TCPV6, 6) => (true, 20),
        (UDP_L4, _) => (false, 8),
        (TCPV4 | TCPV6, _) => return Err("a GSO type that is not of its protocol"),
        _ => return Err("a GSO type that is not known"),
    };
    if !needs_checksum {
        return Err("a GSO frame with a finished checksum");
    }
    if offset != if is_tcp { 16 } else { 6 } {
        return Err("a checksum that is not where its protocol has it");
    }
    if frame.len() < start + least {
        return Err("the end within its headers");
    }
    if size == 0 || frame.len() - (start + least) <= size {
        return Ok(finished());
    }
    if !is_tcp && frame.len() - (start + least) > size * UDP_MAX_SEGMENTS {
        return Err("too many datagrams");
    }
    let transport = ETHERNET + check_ip(frame, ip_version)?;
    if start != transport {
        return Err("a checksum that does not start at its protocol's header");
    }
    let protocol = frame[if ip_version == 4 { 23 } else { 20 }];
    if protocol != if is_tcp { 6 } else { 17 } {
        return Err("a GSO type that is not of its protocol");
    }
    let payload = transport
        + match is_tcp {
            true => usize::from(frame[transport + 12] >> 4) * 4,
            false => 8,
        };
    if payload < transport + least || payload + size >= frame.len() {
        return Err("headers that leave nothing to cut");
    }
    if !is_tcp && word(frame, transport + 4) != frame.len() - transport {
        return Err("a datagram of another length");
    }
    let parts: Vec<&[u8]> = frame[payload..].chunks(size).collect();
    let mut frames = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        let is_last = n + 1 == parts.len();
        let mut one = [&frame[..payload], part].concat();
        let len = one.len();
        // What the sum so far says of the length is taken back.
        let told = 0xffff - (frame.len() - transport);
        let sum = word(&one, transport + offset) + told + (len - transport);
        put(&mut one, transport + offset, fold(sum));
        if is_tcp {
            let sequence = &mut one[transport + 4..transport + 8];
            let first = u32::from_be_bytes(sequence.try_into().expect("four bytes"));
            sequence.copy_from_slice(&first.wrapping_add((n * size) as u32).to_be_bytes());
            if !is_last {
                one[transport + 13] &= !(FIN | PSH);
            }
            if n > 0 {
                one[transport + 13] &= !CWR;
            }
        } else {
            put(&mut one, transport + 4, len - transport);
        }
        if ip_version == 4 {
            put(&mut one, ETHERNET + 2, len - ETHERNET);
            let id = word(frame, ETHERNET + 4) + n;
            put(&mut one, ETHERNET + 4, id & 0xffff);
            put(&mut one, ETHERNET + 10, 0);
            let checksum = !folded_sum(&one[ETHERNET..transport]) & 0xffff;
            put(&mut one, ETHERNET + 10, checksum);
        } else {
            put(&mut one, ETHERNET + 4, len - ETHERNET - 40);
        }
        finish_checksum(&mut one, transport, offset, is_tcp);
        frames.push(one);
    }
    Ok(frames)
}

/// Bytes of an IP header by which the stack takes the packet.
fn check_ip(frame: &[u8], version: u8) -> Result<usize, Refusal> {
    let packet = &frame[ETHERNET..];
    if packet.len() < if version == 4 { 20 } else { 40 } || packet[0] >> 4 != version {
        return Err("no IP header");
    }
    if version == 6 {
        return match word(packet, 4) + 40 == packet.len() {
            true => Ok(40),
            false => Err("an IP packet of another length"),
        };
    }
    let header_len = usize::from(packet[0] & 15) * 4;
    if header_len < 20 || header_len > packet.len() {
        return Err("no IP header");
    }
    if folded_sum(&packet[..header_len]) != 0xffff {
        return Err("a wrong checksum of its IP header");
    }
    if word(packet, 2) != packet.len() {
        return Err("an IP packet of another length");
    }
    if word(packet, 6) & 0x3fff != 0 {
        return Err("a fragment");
    }
    Ok(header_len)
}
