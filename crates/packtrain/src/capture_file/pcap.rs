//! The older format: a header, and behind it packets.
//!
//! After draft-ietf-opsawg-pcap; in the byte order of whoever wrote it, which the first word tells.
//!
//! ```text
//!  0       4               8           16         20          24
//! +-------+---------------+-----------+----------+-----------+
//! | magic | major, minor  | unused    | snap len | link type |
//! +-------+---------------+-----------+----------+-----------+
//!  of each packet:
//!  0         4                  8              12            16
//! +---------+------------------+--------------+-------------+----------------+
//! | seconds | micros or nanos  | bytes kept   | on the wire | as many bytes  |
//! +---------+------------------+--------------+-------------+----------------+
//! ```
//! In files with a magic number of their own, which Kuznetzov's patch of libpcap has left to FRITZ!Box
//! routers, the header of a packet is 8 bytes longer: by interface, protocol and direction.

use std::time::Duration;

use super::byte_order::ByteOrder;
use super::error::Cause;
use super::framing::Framing;
use super::input::{Input, Part};
use super::link_type::LinkType;
use super::{Link, Packet};

const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
const MAGIC_KUZNETZOV: u32 = 0xa1b2_cd34;
/// Mesquita's and Navtel's patches of libpcap, and what Ixia's hardware and software write.
const MAGICS_NOT_READ: [u32; 4] = [0xa1b2_34cd, 0xa12b_3c4d, 0x1c00_01ac, 0x1c00_01ab];
const HEADER_BYTES: usize = 24;
const PACKET_HEADER_BYTES: usize = 16;
const PACKET_HEADER_BYTES_KUZNETZOV: usize = 24;
/// The only one since 1998. Before it the two lengths of a packet stood the other way round, or did not.
const VERSION: (u16, u16) = (2, 4);
/// What of the last word is the link type; above it stands how long an FCS is, in units of two bytes, where a bit says
/// that this is known. As in libpcap.
const LINK_TYPE_BITS: u32 = 0x03ff_ffff;
const FCS_LEN_IS_KNOWN: u32 = 0x0400_0000;
const FCS_LEN_SHIFT: u32 = 28;

/// One of the formats that are nearly this one.
pub fn variant(magic: [u8; 4]) -> Option<u32> {
    let mut variants = MAGICS_NOT_READ.into_iter();
    variants.find(|&number| ByteOrder::of(magic, number).is_some())
}

/// What the first word says.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    order: ByteOrder,
    nanos_per_tick: u64,
    packet_header_bytes: usize,
}

#[derive(Debug)]
pub struct Pcap {
    header: Header,
    link: Link,
}

impl Header {
    pub fn of(magic: [u8; 4]) -> Option<Header> {
        let kinds = [
            (MAGIC_MICROS, 1000, PACKET_HEADER_BYTES),
            (MAGIC_NANOS, 1, PACKET_HEADER_BYTES),
            (MAGIC_KUZNETZOV, 1000, PACKET_HEADER_BYTES_KUZNETZOV),
        ];
        let mut kinds = kinds.into_iter();
        kinds.find_map(|(number, nanos_per_tick, packet_header_bytes)| {
            Some(Header {
                order: ByteOrder::of(magic, number)?,
                nanos_per_tick,
                packet_header_bytes,
            })
        })
    }

    /// The rest of it, its first word being read.
    pub fn read(self, input: &mut Input) -> Result<Pcap, Cause> {
        input.read_to(HEADER_BYTES)?;
        let header = input.record();
        let (major, minor) = (self.order.u16(header, 4), self.order.u16(header, 6));
        if (major, minor) != VERSION {
            return Err(Cause::Version {
                format: "pcap",
                major,
                minor,
            });
        }
        let word = self.order.u32(header, 20);
        let link_type = LinkType(word & LINK_TYPE_BITS);
        Ok(Pcap {
            header: self,
            link: Link {
                link_type,
                framing: Framing::of(link_type)?,
                fcs_len: match word & FCS_LEN_IS_KNOWN {
                    0 => 0,
                    _ => 2 * (word >> FCS_LEN_SHIFT) as u8,
                },
                speed_bps: None,
            },
        })
    }
}

impl Pcap {
    #[inline]
    pub fn next(&mut self, input: &mut Input) -> Result<Option<Packet>, Cause> {
        let Header {
            order,
            nanos_per_tick,
            packet_header_bytes,
        } = self.header;
        if !input.begin(Part::Packet, packet_header_bytes)? {
            return Ok(None);
        }
        let word = |at| order.u32(input.record(), at);
        let (seconds, ticks, len, len_on_wire) = (word(0), word(4), word(8), word(12));
        // The snap length of the file bounds nothing: there are files that are wrong in it.
        let bytes = packet_header_bytes..packet_header_bytes + len as usize;
        input.read_to(bytes.end)?;
        let fraction = Duration::from_nanos(u64::from(ticks) * nanos_per_tick);
        Ok(Some(Packet {
            at: Some(Duration::from_secs(seconds.into()) + fraction),
            bytes,
            len_on_wire,
            link: self.link,
            direction: None,
        }))
    }
}
