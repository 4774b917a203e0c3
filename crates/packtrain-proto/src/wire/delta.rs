//! DELTA: a whole frame told apart from an earlier one of the same train. The diagram is in docs/wire-format.md.
//!
//! What differs in the headers is found by their [`Layout`]; all else must be equal, or the frame is not written
//! so. Who writes builds what the receiver will build, and compares: nothing is lost by what a layout got wrong.

use super::checksum;
use super::layout::{FIELDS_MAX, Field, HEADERS_MAX, Layout, Rule, Spelling};
use super::packet::protocol;

/// The kind of a subframe, beside those of [`super::subframe`].
pub const KIND: u8 = 4;

mod flag {
    /// The slot follows; else it is that of the frame before.
    pub const SLOT: u8 = 0x80;
    /// The length follows; else it is that of the reference.
    pub const LENGTH: u8 = 0x40;
    /// What is not as expected follows.
    pub const FIELDS: u8 = 0x20;
    /// An RTP header stands behind UDP's.
    pub const RTP: u8 = 0x10;
}

/// Frames that later ones of a train can be told apart from, at most.
pub const SLOTS_MAX: usize = 64;
/// In the byte of the slot: the frame gets a slot of its own, and does not take that of its reference.
const NEW_SLOT: u8 = 0x80;

/// Why a DELTA cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeltaError {
    #[error("ends within a subframe")]
    Truncated,
    #[error("no frame in this slot")]
    EmptySlot,
    #[error("a number that is too long, or a mask of fields that are not there")]
    BadNumber,
    #[error("shorter than its headers, or longer than a frame")]
    BadLength,
    #[error("RTP where there is no room for it")]
    NoRtp,
}

/// What stands before the fields of a DELTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// `None`: the slot of the frame before.
    pub slot: Option<Slot>,
    /// `None`: the length of the reference's payload.
    pub len: Option<u16>,
    pub is_rtp: bool,
    has_fields: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub number: u8,
    /// This frame gets one of its own.
    pub opens_new: bool,
}

impl Head {
    /// From the front of `bytes`, of which the first is known to be a DELTA's; and its length.
    pub fn parse(bytes: &[u8]) -> Result<(Head, usize), DeltaError> {
        let first = *bytes.first().ok_or(DeltaError::Truncated)?;
        let mut at = 1;
        let slot = match first & flag::SLOT {
            0 => None,
            _ => {
                let byte = *bytes.get(at).ok_or(DeltaError::Truncated)?;
                at += 1;
                Some(Slot {
                    number: byte & !NEW_SLOT,
                    opens_new: byte & NEW_SLOT != 0,
                })
            }
        };
        let len = match first & flag::LENGTH {
            0 => None,
            _ => {
                let (len, bytes) = number(&bytes[at..])?;
                at += bytes;
                Some(u16::try_from(len).map_err(|_| DeltaError::BadLength)?)
            }
        };
        let head = Head {
            slot,
            len,
            is_rtp: first & flag::RTP != 0,
            has_fields: first & flag::FIELDS != 0,
        };
        Ok((head, at))
    }
}

/// A number of up to 32 bits, seven a byte, the lowest first; and how many bytes it has.
fn number(bytes: &[u8]) -> Result<(u32, usize), DeltaError> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let value = u32::try_from(value).map_err(|_| DeltaError::BadNumber)?;
            return Ok((value, at + 1));
        }
    }
    Err(match bytes.len() < 5 {
        true => DeltaError::Truncated,
        false => DeltaError::BadNumber,
    })
}

fn put_number(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The frame that another one is told apart from: what follows its EtherType.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    pub payload: &'a [u8],
    pub layout: Layout,
}

/// Writes a frame behind `out`; `false`, and nothing written, if it cannot be told apart from this one.
/// `slot`: `None` if it is that of the frame before. `layout` is the frame's own.
pub fn write(
    reference: Reference<'_>,
    slot: Option<Slot>,
    payload: &[u8],
    layout: Layout,
    out: &mut Vec<u8>,
) -> bool {
    if reference.layout != layout {
        return false;
    }
    let is_rtp = is_rtp(reference, payload);
    let layout = match is_rtp {
        true => layout.with_rtp(payload.len()).expect("it may be RTP"),
        false => layout,
    };
    let start = out.len();
    out.push(KIND | if is_rtp { flag::RTP } else { 0 });
    if let Some(slot) = slot {
        out[start] |= flag::SLOT;
        out.push(slot.number | if slot.opens_new { NEW_SLOT } else { 0 });
    }
    if payload.len() != reference.payload.len() {
        out[start] |= flag::LENGTH;
        put_number(payload.len() as u32, out);
    }
    let headers = &payload[..usize::from(layout.len)];
    let mut built = [0; HEADERS_MAX];
    let built = &mut built[..headers.len()];
    built.copy_from_slice(&reference.payload[..headers.len()]);
    let mut told = Told::default();
    for (bit, field) in layout.fields().iter().enumerate() {
        let place = layout.place(field);
        let range = place..place + usize::from(field.width);
        let (before, actual) = (&reference.payload[range.clone()], &headers[range.clone()]);
        let is_expected = match field.rule {
            Rule::Same => before == actual,
            Rule::NetworkSum => actual == network_sum(payload, layout).to_be_bytes(),
            Rule::TransportSum => {
                actual == expected_transport_sum(before, payload, layout).to_be_bytes()
            }
            _ => load(actual) == expected(field, reference, layout, payload.len()),
        };
        if !is_expected {
            told.add(bit, field, actual, || {
                expected(field, reference, layout, payload.len())
            });
        }
        built[range].copy_from_slice(actual);
    }
    if built != headers {
        out.truncate(start);
        return false;
    }
    if told.mask != 0 {
        out[start] |= flag::FIELDS;
        put_number(told.mask, out);
        out.extend_from_slice(&told.values[..told.len]);
    }
    out.extend_from_slice(&payload[headers.len()..]);
    true
}

/// Whether a frame and its reference both look like RTP of one kind: then its fields are worth being told apart.
fn is_rtp(reference: Reference<'_>, payload: &[u8]) -> bool {
    let at = usize::from(reference.layout.len);
    reference.layout.may_be_rtp(reference.payload)
        && reference.layout.may_be_rtp(payload)
        // All but the marker.
        && reference.payload[at] == payload[at]
        && (reference.payload[at + 1] ^ payload[at + 1]) & 0x7f == 0
}

/// What is not as expected: which fields, and their values in their order.
struct Told {
    mask: u32,
    values: [u8; VALUES_LEN_MAX],
    len: usize,
}

const NUMBER_LEN_MAX: usize = 5;
/// Both addresses of IPv6, and all other fields of a list at their longest.
const VALUES_LEN_MAX: usize = 2 * 16 + FIELDS_MAX * NUMBER_LEN_MAX;

impl Default for Told {
    fn default() -> Told {
        Told {
            mask: 0,
            values: [0; VALUES_LEN_MAX],
            len: 0,
        }
    }
}

impl Told {
    fn add(&mut self, bit: usize, field: &Field, actual: &[u8], expected: impl Fn() -> u32) {
        self.mask |= 1 << bit;
        if field.spelling == Spelling::Whole {
            self.values[self.len..self.len + actual.len()].copy_from_slice(actual);
            self.len += actual.len();
            return;
        }
        let mut rest = zigzag(load(actual).wrapping_sub(expected()), actual.len());
        while rest >= 0x80 {
            self.values[self.len] = rest as u8 | 0x80;
            self.len += 1;
            rest >>= 7;
        }
        self.values[self.len] = rest as u8;
        self.len += 1;
    }
}

/// A distance between values of so many bytes, its sign in the lowest bit.
fn zigzag(distance: u32, width: usize) -> u32 {
    let unused = 32 - 8 * width as u32;
    let signed = (distance << unused) as i32 >> unused;
    (signed << 1 ^ signed >> 31) as u32
}

fn unzigzag(number: u32) -> u32 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

#[inline]
fn load(bytes: &[u8]) -> u32 {
    match *bytes {
        [a] => u32::from(a),
        [a, b] => u32::from(u16::from_be_bytes([a, b])),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]),
        _ => unreachable!("fields have one, two or four bytes; addresses are not counted with"),
    }
}

fn store(value: u32, bytes: &mut [u8]) {
    let whole = value.to_be_bytes();
    let unused = whole.len() - bytes.len();
    bytes.copy_from_slice(&whole[unused..]);
}

/// What a field of a frame of `len` bytes is expected to be; sums are not asked for here.
#[inline]
fn expected(field: &Field, reference: Reference<'_>, layout: Layout, len: usize) -> u32 {
    let (place, width) = (layout.place(field), usize::from(field.width));
    let before = load(&reference.payload[place..place + width]);
    let headers_len = usize::from(layout.len);
    let more = match field.rule {
        Rule::Next => 1,
        Rule::Identification => u32::from(before != 0),
        Rule::Length => (len as u32).wrapping_sub(reference.payload.len() as u32),
        Rule::AfterSegment => (transport_end(reference.payload, layout) - headers_len) as u32,
        Rule::AfterSamples => (reference.payload.len() - headers_len) as u32,
        Rule::Same | Rule::NetworkSum | Rule::TransportSum => 0,
    };
    before.wrapping_add(more) & (u32::MAX >> (32 - 8 * width))
}

/// The right checksum of an IPv4 header.
fn network_sum(payload: &[u8], layout: Layout) -> u16 {
    let header = &payload[usize::from(layout.network_at)..usize::from(layout.transport_at)];
    !checksum::add(checksum::sum(&header[..10]), checksum::sum(&header[12..]))
}

/// A sender of UDP that left its checksum out goes on with that.
fn expected_transport_sum(before: &[u8], payload: &[u8], layout: Layout) -> u16 {
    match before == [0, 0] && !layout.is_tcp() {
        true => 0,
        false => transport_sum(payload, layout),
    }
}

/// The right checksum of a TCP segment or UDP datagram.
fn transport_sum(payload: &[u8], layout: Layout) -> u16 {
    let segment = &payload[usize::from(layout.transport_at)..transport_end(payload, layout)];
    let (at, protocol) = match layout.is_tcp() {
        true => (16, protocol::TCP),
        false => (6, protocol::UDP),
    };
    let parts = [
        checksum::sum(&segment[..at]),
        checksum::sum(&segment[at + 2..]),
        checksum::sum(&payload[layout.addresses()]),
        u16::from(protocol),
        segment.len() as u16,
    ];
    match (!parts.into_iter().fold(0, checksum::add), layout.is_tcp()) {
        // 0 says that there is none (RFC 768).
        (0, false) => 0xffff,
        (sum, _) => sum,
    }
}

/// Where a segment or datagram ends: where IP says, for what follows is padding.
fn transport_end(payload: &[u8], layout: Layout) -> usize {
    let network = usize::from(layout.network_at);
    let length = |at: usize| load(&payload[network + at..network + at + 2]) as usize;
    let says = match layout.is_ipv4() {
        true => network + length(2),
        false => usize::from(layout.transport_at) + length(4),
    };
    says.max(usize::from(layout.len)).min(payload.len())
}

/// Restores a frame: what follows its EtherType, into `out`, which is as long as that is. `bytes` begin behind the
/// [`Head`]; gives how many of them were the frame's.
pub fn restore(
    head: &Head,
    bytes: &[u8],
    reference: Reference<'_>,
    out: &mut [u8],
) -> Result<usize, DeltaError> {
    let layout = match head.is_rtp {
        false => reference.layout,
        true => {
            let layout = reference.layout.with_rtp(reference.payload.len());
            layout.ok_or(DeltaError::NoRtp)?
        }
    };
    let headers_len = usize::from(layout.len);
    if out.len() < headers_len {
        return Err(DeltaError::BadLength);
    }
    let (mask, mut at) = match head.has_fields {
        true => number(bytes)?,
        false => (0, 0),
    };
    let fields = layout.fields();
    if mask >> fields.len() != 0 {
        return Err(DeltaError::BadNumber);
    }
    out[..headers_len].copy_from_slice(&reference.payload[..headers_len]);
    let len = out.len();
    for (bit, field) in fields.iter().enumerate() {
        let is_told = mask >> bit & 1 == 1;
        let place = layout.place(field);
        let value = &mut out[place..place + usize::from(field.width)];
        match (field.rule, field.spelling) {
            (_, Spelling::Whole) if is_told => {
                let told = bytes
                    .get(at..at + value.len())
                    .ok_or(DeltaError::Truncated)?;
                value.copy_from_slice(told);
                at += told.len();
            }
            (_, Spelling::Distance) if is_told => {
                let (distance, bytes) = number(&bytes[at..])?;
                at += bytes;
                let expected = expected(field, reference, layout, len);
                store(expected.wrapping_add(unzigzag(distance)), value);
            }
            (Rule::Same | Rule::NetworkSum | Rule::TransportSum, _) => {}
            _ => store(expected(field, reference, layout, len), value),
        }
    }
    let literal = bytes
        .get(at..at + len - headers_len)
        .ok_or(DeltaError::Truncated)?;
    out[headers_len..].copy_from_slice(literal);
    // Sums come last: they are over what all else has become.
    for (bit, field) in fields.iter().enumerate() {
        if mask >> bit & 1 == 1 {
            continue;
        }
        let place = layout.place(field);
        let sum = match field.rule {
            Rule::NetworkSum => network_sum(out, layout),
            Rule::TransportSum => {
                expected_transport_sum(&reference.payload[place..place + 2], out, layout)
            }
            _ => continue,
        };
        out[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }
    Ok(at + len - headers_len)
}
