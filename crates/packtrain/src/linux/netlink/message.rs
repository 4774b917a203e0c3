//! Netlink messages and their attributes, as bytes.
//!
//! ```text
//!  0               4       6       8               12              16
//! +---------------+-------+-------+---------------+---------------+-------
//! |    length     | kind  | flags |   sequence    |    port id    | fixed part, attributes …
//! +---------------+-------+-------+---------------+---------------+-------
//! attribute: length (2, with these four), kind (2), value, padding to a multiple of four
//! ```
//! Numbers are in the host's order. Written by hand, because traffic control needs it anyway and a
//! reader that skips what it does not know cannot be broken by a newer kernel's attribute.

pub(super) const HEADER_LEN: usize = 16;
const ATTRIBUTE_HEADER_LEN: usize = 4;
/// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER` are flags in an attribute's kind.
const ATTRIBUTE_KIND_MASK: u16 = 0x3fff;
const ATTRIBUTE_NESTED: u16 = 0x8000;

const fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// A request under construction.
#[derive(Clone, Debug)]
pub(in crate::linux) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// `fixed` is the structure that follows the header (`ifinfomsg`, `tcmsg`, …).
    pub(in crate::linux) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Request {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = u16::try_from(flags | libc::NLM_F_REQUEST).expect("netlink flags are 16 bits");
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        bytes.resize(aligned(bytes.len()), 0);
        Request { bytes }
    }

    pub(in crate::linux) fn attribute(mut self, kind: u16, value: &[u8]) -> Request {
        let len = u16::try_from(ATTRIBUTE_HEADER_LEN + value.len()).expect("attributes are short");
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(aligned(self.bytes.len()), 0);
        self
    }

    pub(in crate::linux) fn attribute_u32(self, kind: u16, value: u32) -> Request {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// A string with its terminating zero.
    pub(in crate::linux) fn attribute_str(self, kind: u16, value: &str) -> Request {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// A structure before the attributes of a nested one.
    pub(in crate::linux) fn fixed(mut self, fixed: &[u8]) -> Request {
        self.bytes.extend_from_slice(fixed);
        self.bytes.resize(aligned(self.bytes.len()), 0);
        self
    }

    /// An attribute whose value is the attributes that `inside` adds.
    pub(in crate::linux) fn nested(
        mut self,
        kind: u16,
        inside: impl FnOnce(Request) -> Request,
    ) -> Request {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes
            .extend_from_slice(&(kind | ATTRIBUTE_NESTED).to_ne_bytes());
        let mut request = inside(self);
        let len = u16::try_from(request.bytes.len() - start).expect("attributes are short");
        request.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        request
    }

    pub(super) fn with_sequence(mut self, sequence: u32) -> Vec<u8> {
        let len = u32::try_from(self.bytes.len()).expect("requests are short");
        self.bytes[0..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// One message of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(super) payload: &'a [u8],
}

/// The messages of a datagram; ends at the first one whose length cannot be.
#[derive(Clone, Debug)]
pub(super) struct Messages<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let header = self.0.get(..HEADER_LEN)?;
        let len = u32_at(header, 0) as usize;
        let payload = self.0.get(HEADER_LEN..len)?;
        let message = Message {
            kind: u16_at(header, 4),
            flags: u16_at(header, 6),
            sequence: u32_at(header, 8),
            payload,
        };
        self.0 = self.0.get(aligned(len)..).unwrap_or_default();
        Some(message)
    }
}

/// Attributes as (kind, value); ends at the first one whose length cannot be.
#[derive(Clone, Debug)]
pub(in crate::linux) struct Attributes<'a>(pub(in crate::linux) &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let header = self.0.get(..ATTRIBUTE_HEADER_LEN)?;
        let len = usize::from(u16_at(header, 0));
        let value = self.0.get(ATTRIBUTE_HEADER_LEN..len)?;
        let kind = u16_at(header, 2) & ATTRIBUTE_KIND_MASK;
        self.0 = self.0.get(aligned(len)..).unwrap_or_default();
        Some((kind, value))
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

pub(in crate::linux) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The value of a 32-bit attribute; `None` where the kernel gave fewer bytes.
pub(in crate::linux) fn value_u32(value: &[u8]) -> Option<u32> {
    value.get(..4).map(|bytes| u32_at(bytes, 0))
}

/// A string attribute up to its terminating zero.
pub(in crate::linux) fn value_string(value: &[u8]) -> String {
    let end = value
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_is_what_the_readers_see() {
        let bytes = Request::new(16, libc::NLM_F_ACK, &[1, 2, 3])
            .attribute(3, b"pt0\0x")
            .nested(0x12, |inside| {
                inside.attribute_u32(1, 7).attribute_str(2, "veth")
            })
            .with_sequence(9);
        let messages: Vec<_> = Messages(&bytes).collect();
        assert_eq!(messages.len(), 1);
        assert_eq!((messages[0].kind, messages[0].sequence), (16, 9));
        assert_eq!(
            messages[0].flags,
            (libc::NLM_F_ACK | libc::NLM_F_REQUEST) as u16
        );
        let attributes: Vec<_> = Attributes(&messages[0].payload[4..]).collect();
        assert_eq!(attributes[0], (3, &b"pt0\0x"[..]));
        let inside: Vec<_> = Attributes(attributes[1].1).collect();
        assert_eq!(attributes[1].0, 0x12);
        assert_eq!(inside, [(1, &7u32.to_ne_bytes()[..]), (2, &b"veth\0"[..])]);
        assert_eq!(value_string(inside[1].1), "veth");
    }

    #[test]
    fn a_datagram_cut_at_any_byte_ends_the_walk_and_never_panics() {
        let bytes = Request::new(16, 0, &[0; 16])
            .attribute(3, b"a name\0")
            .nested(18, |inside| inside.attribute_str(1, "veth"))
            .with_sequence(1);
        for len in 0..bytes.len() {
            let mut cut = bytes[..len].to_vec();
            assert_eq!(
                Messages(&cut).count(),
                0,
                "whole length is promised, {len} are there"
            );
            if len >= HEADER_LEN {
                cut[0..4].copy_from_slice(&(len as u32).to_ne_bytes());
                let message = Messages(&cut).next().expect("a message of this length");
                let body = message.payload.get(16..).unwrap_or_default();
                assert!(
                    Attributes(body)
                        .flat_map(|(_, value)| Attributes(value))
                        .count()
                        <= 2
                );
            }
        }
    }

    #[test]
    fn a_length_of_zero_does_not_loop() {
        assert_eq!(Messages(&[0; 64]).count(), 0);
        assert_eq!(Attributes(&[0; 64]).count(), 0);
    }
}
