//! Files as other programs write them, and as none should.

use crate::capture_file::byte_order::ByteOrder::{self, Big, Little};

pub const MICROS: u32 = 0xa1b2_c3d4;
pub const NANOS: u32 = 0xa1b2_3c4d;
pub const KUZNETZOV: u32 = 0xa1b2_cd34;

pub const ETHERNET: u16 = 1;

pub fn u16(order: ByteOrder, number: u16) -> [u8; 2] {
    match order {
        Little => number.to_le_bytes(),
        Big => number.to_be_bytes(),
    }
}

pub fn u32(order: ByteOrder, number: u32) -> [u8; 4] {
    match order {
        Little => number.to_le_bytes(),
        Big => number.to_be_bytes(),
    }
}

/// Bytes that are told apart.
pub fn frame(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at + len) as u8).collect()
}

pub fn pcap_header(order: ByteOrder, magic: u32, link_type: u32) -> Vec<u8> {
    let mut file = u32(order, magic).to_vec();
    file.extend(u16(order, 2));
    file.extend(u16(order, 4));
    file.extend([0; 8]);
    file.extend(u32(order, 262_144));
    file.extend(u32(order, link_type));
    file
}

pub fn pcap_packet(order: ByteOrder, at: (u32, u32), bytes: &[u8], len_on_wire: u32) -> Vec<u8> {
    let words = [at.0, at.1, bytes.len() as u32, len_on_wire];
    let mut packet: Vec<u8> = words.iter().flat_map(|word| u32(order, *word)).collect();
    packet.extend(bytes);
    packet
}

pub fn block(order: ByteOrder, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let len = u32(order, padded as u32 + 12);
    let mut block = u32(order, kind).to_vec();
    block.extend(len);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(len);
    block
}

pub fn section(order: ByteOrder) -> Vec<u8> {
    let mut body = u32(order, 0x1a2b_3c4d).to_vec();
    body.extend(u16(order, 1));
    body.extend(u16(order, 0));
    body.extend([0xff; 8]);
    body.extend(option(order, 4, b"by hand"));
    block(order, 0x0a0d_0d0a, &body)
}

pub fn option(order: ByteOrder, code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = u16(order, code).to_vec();
    option.extend(u16(order, value.len() as u16));
    option.extend(value);
    option.resize(4 + value.len().next_multiple_of(4), 0);
    option
}

pub fn interface(order: ByteOrder, link_type: u16, snap_len: u32, options: &[Vec<u8>]) -> Vec<u8> {
    let mut body = u16(order, link_type).to_vec();
    body.extend([0; 2]);
    body.extend(u32(order, snap_len));
    body.extend(options.concat());
    block(order, 1, &body)
}

pub fn enhanced(order: ByteOrder, interface: u32, ticks: u64, bytes: &[u8], len: u32) -> Vec<u8> {
    block(
        order,
        6,
        &packet(order, u32(order, interface), ticks, bytes, len),
    )
}

/// With a number of drops behind its interface.
pub fn obsolete(order: ByteOrder, interface: u16, ticks: u64, bytes: &[u8], len: u32) -> Vec<u8> {
    let [a, b] = u16(order, interface);
    let [c, d] = u16(order, 7);
    block(order, 2, &packet(order, [a, b, c, d], ticks, bytes, len))
}

fn packet(order: ByteOrder, first: [u8; 4], ticks: u64, bytes: &[u8], len: u32) -> Vec<u8> {
    let mut body = first.to_vec();
    let words = [(ticks >> 32) as u32, ticks as u32, bytes.len() as u32, len];
    body.extend(words.iter().flat_map(|word| u32(order, *word)));
    body.extend(bytes);
    body
}

pub fn simple(order: ByteOrder, bytes: &[u8], len: u32) -> Vec<u8> {
    block(order, 3, &[&u32(order, len)[..], bytes].concat())
}

pub fn pcap_of_three() -> Vec<u8> {
    let mut file = pcap_header(Little, MICROS, 1);
    for len in [60, 61, 62] {
        file.extend(pcap_packet(Little, (len, 0), &frame(len as usize), 62));
    }
    file
}

/// Two sections, several interfaces, and every kind of block: six packets, of which two are no frames.
pub fn pcapng_of_everything() -> Vec<u8> {
    let mut file = section(Big);
    file.extend(interface(Big, ETHERNET, 0, &[option(Big, 2, b"eth0")]));
    file.extend(interface(Big, 113, 0, &[]));
    file.extend(enhanced(Big, 0, 1_000_000, &frame(60), 60));
    file.extend(block(Big, 4, &[0; 4]));
    file.extend(obsolete(Big, 0, 2_000_000, &frame(61), 61));
    file.extend(block(Big, 9, b"__REALTIME_TIMESTAMP=1\n"));
    file.extend(block(Big, 0xbad, &[0, 0, 0, 1]));
    file.extend(block(Big, 0x4d4d_4d4d, &[]));
    file.extend(section(Little));
    let nanos = option(Little, 9, &[9]);
    let end = option(Little, 0, &[]);
    file.extend(interface(Little, ETHERNET, 33, &[nanos, end]));
    file.extend(enhanced(Little, 0, 5, &frame(33), 1514));
    file.extend(simple(Little, &frame(33), 60));
    file.extend(block(Little, 5, &[0; 12]));
    file
}
