//! The Internet checksum (RFC 1071), and the sums that TCP and UDP start from.
//!
//! Written apart from the engine's, which it helps to check.

/// The sum of 16-bit words, folded to 16 bits, not complemented.
pub fn sum(start: u16, bytes: &[u8]) -> u16 {
    let mut total = u64::from(start);
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        total += u64::from(u32::from_be_bytes(*word));
    }
    for (i, byte) in rest.iter().enumerate() {
        total += u64::from(*byte) << if i % 2 == 0 { 8 } else { 0 };
    }
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Where a TCP or UDP segment stands in a frame, as far as checksums go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// First byte of the TCP or UDP header, from the first byte of the frame.
    pub start: usize,
    /// End of the segment: a frame may be padded behind it.
    pub end: usize,
    pub protocol: u8,
    /// First byte of the IP header.
    pub network: usize,
    pub ipv6: bool,
}

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

impl Transport {
    /// Finds it behind at most two VLAN tags; `None` for everything else.
    pub fn find(frame: &[u8]) -> Option<Transport> {
        let mut at = 12;
        let mut kind = word(frame, at)?;
        for _ in 0..2 {
            if matches!(kind, 0x8100 | 0x88a8) {
                at += 4;
                kind = word(frame, at)?;
            }
        }
        let network = at + 2;
        let (start, end, protocol, ipv6) = match kind {
            0x0800 => {
                let header = usize::from(*frame.get(network)? & 15) * 4;
                let total = usize::from(word(frame, network + 2)?);
                if word(frame, network + 6)? & 0x3fff != 0 {
                    return None; // a fragment: its checksum covers what is not here
                }
                (
                    network + header,
                    network + total,
                    *frame.get(network + 9)?,
                    false,
                )
            }
            0x86dd => {
                let payload = usize::from(word(frame, network + 4)?);
                (
                    network + 40,
                    network + 40 + payload,
                    *frame.get(network + 6)?,
                    true,
                )
            }
            _ => return None,
        };
        let fits = matches!(protocol, TCP | UDP) && start + 8 <= end && end <= frame.len();
        fits.then_some(Transport {
            start,
            end,
            protocol,
            network,
            ipv6,
        })
    }

    /// Where the checksum field is, counted from `start`.
    pub fn field_offset(&self) -> usize {
        if self.protocol == TCP { 16 } else { 6 }
    }

    pub fn field(&self, frame: &[u8]) -> u16 {
        let at = self.start + self.field_offset();
        u16::from_be_bytes([frame[at], frame[at + 1]])
    }

    /// The sum of the pseudo header: what the field of a partial checksum holds.
    pub fn pseudo_header_sum(&self, frame: &[u8]) -> u16 {
        let addresses = if self.ipv6 {
            &frame[self.network + 8..self.network + 40]
        } else {
            &frame[self.network + 12..self.network + 20]
        };
        let length = (self.end - self.start) as u32;
        let mut rest = [0; 8];
        rest[..4].copy_from_slice(&length.to_be_bytes());
        rest[7] = self.protocol;
        sum(sum(0, addresses), &rest)
    }

    pub fn put_partial(&self, frame: &mut [u8]) {
        let value = self.pseudo_header_sum(frame);
        self.put(frame, value);
    }

    pub fn put_finished(&self, frame: &mut [u8]) {
        self.put(frame, 0);
        let value = !sum(self.pseudo_header_sum(frame), &frame[self.start..self.end]);
        // RFC 768: a sum of 0 goes as 0xffff, because 0 says that there is none.
        self.put(frame, if value == 0 { 0xffff } else { value });
    }

    /// Whether the field holds the checksum of everything.
    pub fn is_finished(&self, frame: &[u8]) -> bool {
        let total = sum(self.pseudo_header_sum(frame), &frame[self.start..self.end]);
        total == 0xffff
    }

    /// Whether the field holds the sum of the pseudo header, as a partial checksum does.
    pub fn is_partial(&self, frame: &[u8]) -> bool {
        // 0 and 0xffff are the same number to a ones' complement sum.
        let (held, meant) = (self.field(frame), self.pseudo_header_sum(frame));
        held == meant || (held % 0xffff == 0 && meant % 0xffff == 0)
    }

    fn put(&self, frame: &mut [u8], value: u16) {
        let at = self.start + self.field_offset();
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_has_its_sum() {
        assert_eq!(
            sum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            0xddf2
        );
    }

    #[test]
    fn an_odd_byte_counts_as_the_high_one() {
        assert_eq!(sum(0, &[0x12]), 0x1200);
        assert_eq!(
            sum(0, &[1, 2, 3, 4, 5, 6, 7]),
            sum(0, &[1, 2, 3, 4, 5, 6, 7, 0])
        );
    }
}
