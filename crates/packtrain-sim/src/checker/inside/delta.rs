//! Coded subframes: DELTA among the others, and the slots that it refers to.

use core::ops::Range;

use super::coded::Restored;
use super::headers::{Expected, Field, Headers, Ip, be16, fields};

const DELTA: u8 = 4;
/// A flag of subframes that must not be set; DELTA has another meaning for it.
const RESERVED: u8 = 0x10;
const SLOTS: usize = 64;
/// Whose frames carry no others.
const PACKTRAIN: u16 = 0x88b5;
const GSO_KINDS: [u8; 3] = [1, 2, 3];

/// Bytes, the first ones first; `None` where there are no more.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes taken.
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, at: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Padding of one byte: too short for a length.
    pub fn is_one_zero(&self) -> bool {
        self.rest == [0]
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        self.at += len;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub fn be16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| be16(bytes, 0))
    }

    /// Seven bits a byte, the lowest first.
    pub fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for n in 0.. {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * n);
            if number > u64::from(u32::MAX) || n > 4 {
                return None;
            }
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number as u32)
    }
}

/// A frame that others may be told apart from.
#[derive(Clone, Debug)]
struct Slot {
    /// Of its subframe, with the kind FRAME.
    first: u8,
    /// Its addresses and its EtherType, as far as its subframe had them.
    fields: Vec<u8>,
    payload: Vec<u8>,
}

/// `None`: none is told, and the payload tells none either.
fn ether_type(first: u8, fields: &[u8], payload: &[u8]) -> Option<u16> {
    match (first & super::ETHER_TYPE.0, payload[0] >> 4) {
        (0, 4) => Some(0x0800),
        (0, 6) => Some(0x86dd),
        (0, _) => None,
        _ => Some(be16(fields, fields.len() - 2)),
    }
}

impl Slot {
    fn ether_type(&self) -> Option<u16> {
        ether_type(self.first, &self.fields, &self.payload)
    }
}

#[derive(Debug)]
struct Slots {
    frames: Vec<Option<Slot>>,
    next: usize,
    /// That which the frame before has got.
    newest: Option<usize>,
}

impl Slots {
    fn put(&mut self, slot: Option<usize>, frame: Slot) {
        let slot = slot.unwrap_or_else(|| {
            let next = self.next;
            self.next = (next + 1) % SLOTS;
            next
        });
        self.frames[slot] = Some(frame);
        self.newest = Some(slot);
    }
}

/// Where DELTAs stand among coded subframes, for who breaks them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spots {
    /// Their first bytes.
    pub firsts: Vec<usize>,
    pub values: Vec<Value>,
}

/// A value that a DELTA tells of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub mask: Range<usize>,
    /// Of the field, in the mask.
    pub bit: usize,
    pub bytes: Range<usize>,
}

/// The subframes that coded ones restore to, of no more than so many bytes.
pub fn subframes(from: &mut Reader<'_>, len_max: usize) -> Option<Restored> {
    let mut restored = Restored::default();
    let mut slots = Slots {
        frames: vec![None; SLOTS],
        next: 0,
        newest: None,
    };
    while let Some(first) = from.byte() {
        let kind = first & 0x0f;
        if kind == 0 {
            break;
        }
        if kind == DELTA {
            let (slot, frame) = delta(first, from, &slots, &mut restored.spots)?;
            let out = &mut restored.subframes;
            out.push(frame.first);
            out.extend((frame.payload.len() as u16).to_be_bytes());
            out.extend(&frame.fields);
            out.extend(&frame.payload);
            slots.put(slot, frame);
            restored.deltas += 1;
        } else {
            as_it_is(first, from, &mut restored.subframes, &mut slots)?;
        }
        if restored.subframes.len() > len_max {
            return None;
        }
    }
    Some(restored)
}

/// FRAME, FIRST or NEXT, if it is as it must be.
fn as_it_is(first: u8, from: &mut Reader<'_>, out: &mut Vec<u8>, slots: &mut Slots) -> Option<()> {
    let kind = first & 0x0f;
    let len = from.be16()?;
    let has = |(flag, len): (u8, usize)| if first & flag == 0 { 0 } else { len };
    let offload = has(super::OFFLOAD);
    let position = match kind {
        super::FRAME => 0,
        super::FIRST | super::NEXT => 4,
        _ => return None,
    };
    let fields = from.take(has(super::ADDRESSES) + has(super::ETHER_TYPE))?;
    let others = from.take(offload + position)?;
    let payload = from.take(len.into())?;
    let is_right = match kind {
        super::FIRST => be16(others, offload + 2) > len,
        super::NEXT => first & 0xf0 == 0 && be16(others, 2).checked_add(len).is_some(),
        _ => true,
    };
    if payload.is_empty() || first & RESERVED != 0 || !is_right {
        return None;
    }
    if kind != super::NEXT {
        let ether_type = ether_type(first, fields, payload)?;
        let gso_kind = others.first().filter(|_| offload > 0);
        let is_known = gso_kind.is_none_or(|kind| GSO_KINDS.contains(&(kind & 0x7f)));
        if ether_type == PACKTRAIN || !is_known {
            return None;
        }
    }
    out.push(first);
    out.extend(len.to_be_bytes());
    out.extend(fields);
    out.extend(others);
    out.extend(payload);
    if kind == super::FRAME && offload == 0 {
        let frame = Slot {
            first,
            fields: fields.to_vec(),
            payload: payload.to_vec(),
        };
        slots.put(None, frame);
    }
    Some(())
}

/// The frame, and the slot that it takes; `None`: the next.
fn delta(
    first: u8,
    from: &mut Reader<'_>,
    slots: &Slots,
    spots: &mut Spots,
) -> Option<(Option<usize>, Slot)> {
    spots.firsts.push(from.at - 1);
    let has = |flag: u8| first & flag != 0;
    let (named, takes_next) = match has(0x80) {
        true => {
            let byte = from.byte()?;
            (Some(usize::from(byte & 0x7f)), byte & 0x80 != 0)
        }
        false => (slots.newest, false),
    };
    let reference = slots.frames.get(named?)?.as_ref()?;
    let len = match has(0x40) {
        true => from.number()? as usize,
        false => reference.payload.len(),
    };
    let is_rtp = has(0x10);
    let headers = Headers::of(reference.ether_type()?, &reference.payload, is_rtp);
    if is_rtp && headers.rtp.is_none() || len < headers.end || len == 0 || len > 65_535 {
        return None;
    }
    let list = fields(&headers, &reference.payload);
    let mut told: Vec<Option<Told<'_>>> = vec![None; list.len()];
    if has(0x20) {
        let mask_at = from.at;
        let mask = from.number()?;
        let place = mask_at..from.at;
        if mask >> list.len() != 0 {
            return None;
        }
        for (i, field) in list.iter().enumerate() {
            if mask >> i & 1 == 1 {
                let start = from.at;
                told[i] = Some(match field.is_distance {
                    true => Told::Distance(from.number()?),
                    false => Told::Value(from.take(field.len)?),
                });
                spots.values.push(Value {
                    mask: place.clone(),
                    bit: i,
                    bytes: start..from.at,
                });
            }
        }
    }
    let behind = from.take(len - headers.end)?;
    let payload = [&reference.payload[..headers.end], behind].concat();
    let payload = put_together(payload, &reference.payload, &headers, &list, &told)?;
    let frame = Slot {
        payload,
        ..reference.clone()
    };
    let frame_headers = Headers::of(frame.ether_type()?, &frame.payload, is_rtp);
    if frame_headers != headers {
        return None; // one with other headers is no DELTA
    }
    Some((if takes_next { None } else { named }, frame))
}

#[derive(Clone, Copy, Debug)]
enum Told<'a> {
    Distance(u32),
    Value(&'a [u8]),
}

fn put_together(
    mut payload: Vec<u8>,
    reference: &[u8],
    headers: &Headers,
    list: &[Field],
    told: &[Option<Told<'_>>],
) -> Option<Vec<u8>> {
    let is_checksum = |field: &Field| {
        matches!(
            field.expected,
            Expected::HeaderChecksum | Expected::TransportChecksum
        )
    };
    let both = list.iter().zip(told);
    for (field, told) in both.clone().filter(|(field, _)| !is_checksum(field)) {
        let place = field.at..field.at + field.len;
        match told {
            Some(Told::Value(value)) => payload[place].copy_from_slice(value),
            None if field.len > 4 => {} // an IPv6 address: the reference's
            _ => {
                let distance = match told {
                    Some(Told::Distance(number)) => signed(*number),
                    _ => 0,
                };
                let expected = expected(field, reference, payload.len(), headers);
                let value = (expected + distance) as u64;
                payload[place].copy_from_slice(&value.to_be_bytes()[8 - field.len..]);
            }
        }
    }
    // These are over what all others say.
    for (field, told) in both.filter(|(field, _)| is_checksum(field)) {
        let place = field.at..field.at + 2;
        match told {
            Some(Told::Value(value)) => payload[place].copy_from_slice(value),
            _ => {
                let sum = match field.expected {
                    Expected::HeaderChecksum => header_checksum(&payload, headers.ip?),
                    _ if is_udp(headers) && reference[place.clone()] == [0, 0] => 0,
                    _ => transport_checksum(&payload, headers, field.at),
                };
                payload[place].copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
    Some(payload)
}

/// 2d for d ≥ 0, −2d − 1 for d < 0.
fn signed(number: u32) -> i64 {
    let half = i64::from(number >> 1);
    if number & 1 == 0 { half } else { -half - 1 }
}

/// In as many bits as it takes: who writes it takes the lowest.
fn expected(field: &Field, reference: &[u8], len: usize, headers: &Headers) -> i64 {
    let bytes = &reference[field.at..field.at + field.len];
    let before = bytes
        .iter()
        .fold(0, |sum, &byte| sum << 8 | i64::from(byte));
    match field.expected {
        Expected::Identification if before == 0 => 0,
        Expected::Identification | Expected::OneMore => before + 1,
        Expected::Length => before + len as i64 - reference.len() as i64,
        Expected::TcpSequence => before + carried(reference, headers),
        Expected::RtpTime => before + (reference.len() - headers.end) as i64,
        _ => before,
    }
}

/// Bytes behind the headers, up to where the IP length says or the frame ends.
fn carried(payload: &[u8], headers: &Headers) -> i64 {
    let end = headers.ip.map_or(0, |ip| ip_end(payload, ip));
    end.min(payload.len()).saturating_sub(headers.end) as i64
}

/// Where a packet ends by its IP length.
fn ip_end(payload: &[u8], ip: Ip) -> usize {
    match ip.is_v6 {
        false => ip.at + usize::from(be16(payload, ip.at + 2)),
        true => ip.at + 40 + usize::from(be16(payload, ip.at + 4)),
    }
}

fn is_udp(headers: &Headers) -> bool {
    headers.transport.is_some_and(|transport| !transport.is_tcp)
}

fn header_checksum(payload: &[u8], ip: Ip) -> u16 {
    let mut header = payload[ip.at..ip.end].to_vec();
    header[10..12].fill(0);
    !sum(&header)
}

fn transport_checksum(payload: &[u8], headers: &Headers, field_at: usize) -> u16 {
    let (Some(ip), Some(transport)) = (headers.ip, headers.transport) else {
        return 0;
    };
    let end = ip_end(payload, ip).max(headers.end).min(payload.len());
    let mut segment = payload[transport.at..end].to_vec();
    let field = field_at - transport.at;
    if let Some(field) = segment.get_mut(field..field + 2) {
        field.fill(0);
    }
    let addresses = match ip.is_v6 {
        false => ip.at + 12..ip.at + 20,
        true => ip.at + 8..ip.at + 40,
    };
    let protocol = if transport.is_tcp { 6 } else { 17 };
    let mut pseudo = payload[addresses].to_vec();
    pseudo.extend((segment.len() as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, protocol]);
    pseudo.extend(segment);
    match !sum(&pseudo) {
        0 if !transport.is_tcp => 0xffff,
        sum => sum,
    }
}

/// Of 16-bit numbers, in ones' complement.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let word = |two: &[u8]| u64::from(two[0]) << 8 | u64::from(*two.get(1).unwrap_or(&0));
    let mut sum: u64 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
