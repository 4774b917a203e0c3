//! The newer format: blocks, of which some are packets, in sections that have interfaces of their own.
//!
//! After draft-ietf-opsawg-pcapng; [`crate::pcapng`] writes it. A section is in the byte order of
//! whoever wrote it, which its header tells.
//!
//! ```text
//!  0            4     8                          len - 4     len
//! +------------+-----+--------------------------+-----------+
//! | block type | len | body, 4 × n bytes        | len again |
//! +------------+-----+--------------------------+-----------+
//!  section header      byte order (4), major (2), minor (2), length (8), options
//!  interface           link type (2), unused (2), snap len (4), options
//!  enhanced packet     interface (4), time (4 + 4, the upper half first),
//!                      bytes kept (4), on the wire (4), the bytes, options
//!  packet, obsolete    interface (2), drops (2), and on as the enhanced one
//!  simple packet       on the wire (4), the bytes: of the first interface, at no time
//!  option              code (2), length (2), value, padded to a multiple of 4; the last has code 0
//! ```

use super::byte_order::ByteOrder;
use super::ends::Direction;
use super::error::Cause;
use super::framing::Framing;
use super::input::{Input, Part};
use super::link_type::LinkType;
use super::time::Clock;
use super::{Link, Packet};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const JOURNAL_ENTRY: u32 = 9;
const CUSTOM: u32 = 0xbad;
const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const MAJOR: u16 = 1;

/// Type and length, and the length again.
const HEAD_BYTES: usize = 8;
const TAIL_BYTES: usize = 4;
/// Most that a section may have: a table of them is kept.
const INTERFACES_MAX: usize = 1 << 16;

mod option {
    pub const END: u16 = 0;
    /// Of a packet.
    pub const EPB_FLAGS: u16 = 2;
    /// Of an interface.
    pub const IF_SPEED: u16 = 8;
    pub const IF_TSRESOL: u16 = 9;
    pub const IF_FCSLEN: u16 = 13;
    pub const IF_TSOFFSET: u16 = 14;
}

/// The section that is being read.
#[derive(Debug)]
pub struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: LinkType,
    /// Most bytes kept of a packet; 0: all.
    snap_len: u32,
    clock: Clock,
    /// How many bytes of an FCS stand behind its packets.
    fcs_len: u8,
    speed_bps: Option<u64>,
}

/// It reads the same in both byte orders.
pub fn is_section_header(kind: [u8; 4]) -> bool {
    u32::from_le_bytes(kind) == SECTION_HEADER
}

impl Pcapng {
    /// The first section, whose block type is read.
    pub fn begin(input: &mut Input) -> Result<Pcapng, Cause> {
        let mut pcapng = Pcapng {
            order: ByteOrder::Little,
            interfaces: Vec::new(),
        };
        pcapng.block(input)?;
        Ok(pcapng)
    }

    pub fn next(&mut self, input: &mut Input) -> Result<Option<Packet>, Cause> {
        while input.begin(Part::Block, 4)? {
            if let Some(packet) = self.block(input)? {
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }

    /// The rest of a block whose type is read.
    fn block(&mut self, input: &mut Input) -> Result<Option<Packet>, Cause> {
        let kind = input.record().try_into().expect("four bytes");
        if is_section_header(kind) {
            self.section(input)?;
            return Ok(None);
        }
        let packet = match self.order.u32(&kind, 0) {
            INTERFACE_DESCRIPTION => {
                let interface = self.interface(self.whole(input, 8)?)?;
                if self.interfaces.len() == INTERFACES_MAX {
                    return malformed(format!("more than {INTERFACES_MAX} interfaces"));
                }
                self.interfaces.push(interface);
                return Ok(None);
            }
            ENHANCED_PACKET => {
                input.turns_out(Part::Packet);
                let block = self.whole(input, 20)?;
                self.packet(block, self.order.u32(block, 8))?
            }
            OBSOLETE_PACKET => {
                input.turns_out(Part::Packet);
                let block = self.whole(input, 20)?;
                self.packet(block, self.order.u16(block, 8).into())?
            }
            SIMPLE_PACKET => {
                input.turns_out(Part::Packet);
                self.simple_packet(self.whole(input, 4)?)?
            }
            other => {
                // Wireshark shows and numbers them between the frames.
                if matches!(other, JOURNAL_ENTRY | CUSTOM | CUSTOM_NOT_COPIED) {
                    input.turns_out(Part::Packet);
                }
                let len = self.len(input, 0)?;
                self.pass(input, len)?;
                return Ok(None);
            }
        };
        Ok(Some(packet))
    }

    /// A header: what follows has a byte order of its own, and interfaces of its own.
    fn section(&mut self, input: &mut Input) -> Result<(), Cause> {
        input.read_to(HEAD_BYTES + 4)?;
        let magic = input.record()[HEAD_BYTES..].try_into().expect("four bytes");
        self.order = match ByteOrder::of(magic, BYTE_ORDER) {
            Some(order) => order,
            None => return malformed("a section header without its byte order"),
        };
        self.interfaces.clear();
        let len = self.len(input, 16)?;
        input.read_to(HEAD_BYTES + 16)?;
        let header = input.record();
        let (major, minor) = (self.order.u16(header, 12), self.order.u16(header, 14));
        if major != MAJOR {
            return Err(Cause::Version {
                format: "pcapng",
                major,
                minor,
            });
        }
        self.pass(input, len)
    }

    fn interface(&self, block: &[u8]) -> Result<Interface, Cause> {
        let mut interface = Interface {
            link_type: LinkType(self.order.u16(block, 8).into()),
            snap_len: self.order.u32(block, 12),
            clock: Clock::DEFAULT,
            fcs_len: 0,
            speed_bps: None,
        };
        self.options(&block[16..], |code, value| {
            match (code, value) {
                (option::IF_TSRESOL, [resolution]) => interface.clock.resolution = *resolution,
                (option::IF_TSOFFSET, [_, _, _, _, _, _, _, _]) => {
                    interface.clock.offset_seconds = self.order.i64(value, 0);
                }
                (option::IF_SPEED, [_, _, _, _, _, _, _, _]) => {
                    // Nobody knows what 0 is to mean.
                    let speed_bps = self.order.i64(value, 0) as u64;
                    interface.speed_bps = (speed_bps > 0).then_some(speed_bps);
                }
                (option::IF_FCSLEN, [len]) => interface.fcs_len = fcs_bytes(*len),
                (option::IF_TSRESOL | option::IF_TSOFFSET | option::IF_FCSLEN, _) => return false,
                _ => {}
            }
            true
        })?;
        Ok(interface)
    }

    /// Looks at each, and says of which that it cannot be so long.
    fn options(
        &self,
        mut options: &[u8],
        mut look: impl FnMut(u16, &[u8]) -> bool,
    ) -> Result<(), Cause> {
        while let Some((head, rest)) = options.split_at_checked(4) {
            let (code, len) = (self.order.u16(head, 0), self.order.u16(head, 2));
            let len = usize::from(len);
            let Some((value, _)) = rest.split_at_checked(len) else {
                return malformed(format!("option {code} of {len} bytes does not fit"));
            };
            if code == option::END {
                break;
            }
            if !look(code, value) {
                return malformed(format!("option {code} of {len} bytes"));
            }
            // Whole blocks are multiples of four, and so what is left of one.
            options = &rest[len.next_multiple_of(4)..];
        }
        Ok(())
    }

    fn packet(&self, block: &[u8], interface: u32) -> Result<Packet, Cause> {
        const BYTES_AT: usize = 28;
        let interface = self.described(interface)?;
        let word = |at| self.order.u32(block, at);
        let ticks = u64::from(word(12)) << 32 | u64::from(word(16));
        let (len, len_on_wire) = (word(20) as usize, word(24));
        if len > block.len() - BYTES_AT {
            return malformed(format!("{len} bytes do not fit into its block"));
        }
        let mut packet = Packet {
            at: interface.clock.time(ticks),
            bytes: BYTES_AT..BYTES_AT + len,
            len_on_wire,
            link: interface.link()?,
            direction: None,
        };
        let options_at = packet.bytes.end.next_multiple_of(4);
        if options_at < block.len() {
            self.packet_options(&block[options_at..], &mut packet)?;
        }
        Ok(packet)
    }

    fn packet_options(&self, options: &[u8], packet: &mut Packet) -> Result<(), Cause> {
        self.options(options, |code, value| {
            match (code, value) {
                (option::EPB_FLAGS, [_, _, _, _]) => {
                    let flags = self.order.u32(value, 0);
                    packet.direction = match flags & 3 {
                        1 => Some(Direction::In),
                        2 => Some(Direction::Out),
                        _ => None,
                    };
                    let fcs_len = (flags >> 5 & 0xf) as u8;
                    if fcs_len > 0 {
                        packet.link.fcs_len = fcs_len;
                    }
                }
                (option::EPB_FLAGS, _) => return false,
                _ => {}
            }
            true
        })
    }

    fn simple_packet(&self, block: &[u8]) -> Result<Packet, Cause> {
        const BYTES_AT: usize = 12;
        let interface = self.described(0)?;
        let len_on_wire = self.order.u32(block, 8);
        // What is kept of it is not said: the block's length has the padding in it.
        let len = match interface.snap_len {
            0 => len_on_wire,
            snap_len => len_on_wire.min(snap_len),
        } as usize;
        if len > block.len() - BYTES_AT {
            return malformed(format!("{len} bytes do not fit into its block"));
        }
        Ok(Packet {
            at: None,
            bytes: BYTES_AT..BYTES_AT + len,
            len_on_wire,
            link: interface.link()?,
            direction: None,
        })
    }

    fn described(&self, interface: u32) -> Result<&Interface, Cause> {
        match self.interfaces.get(interface as usize) {
            Some(interface) => Ok(interface),
            None => malformed(format!(
                "it is of interface {interface}, and {} are described",
                self.interfaces.len()
            )),
        }
    }

    /// All of a block but the length behind it; its body has `body_bytes_min` at least.
    fn whole<'a>(&self, input: &'a mut Input, body_bytes_min: usize) -> Result<&'a [u8], Cause> {
        let len = self.len(input, body_bytes_min)?;
        input.read_to(len as usize)?;
        let (block, tail) = input.record().split_at(len as usize - TAIL_BYTES);
        self.check_tail(tail, len)?;
        Ok(block)
    }

    fn len(&self, input: &mut Input, body_bytes_min: usize) -> Result<u32, Cause> {
        input.read_to(HEAD_BYTES)?;
        let len = self.order.u32(input.record(), 4);
        let len_min = HEAD_BYTES + body_bytes_min + TAIL_BYTES;
        if (len as usize) < len_min || !len.is_multiple_of(4) {
            return malformed(format!("a block cannot have {len} bytes"));
        }
        Ok(len)
    }

    /// Passes over the rest of a block of `len` bytes.
    fn pass(&self, input: &mut Input, len: u32) -> Result<(), Cause> {
        let read = input.record().len();
        input.skip((len as usize - TAIL_BYTES - read) as u64)?;
        input.read_to(TAIL_BYTES)?;
        self.check_tail(input.record(), len)
    }

    fn check_tail(&self, tail: &[u8], len: u32) -> Result<(), Cause> {
        match self.order.u32(tail, 0) {
            tail if tail == len => Ok(()),
            tail => malformed(format!(
                "a block of {len} bytes, of {tail} by what its end says"
            )),
        }
    }
}

impl Interface {
    /// Of one that has packets: a file may describe others as well.
    fn link(&self) -> Result<Link, Cause> {
        Ok(Link {
            link_type: self.link_type,
            framing: Framing::of(self.link_type)?,
            fcs_len: self.fcs_len,
            speed_bps: self.speed_bps,
        })
    }
}

/// It is said in bits, and the draft's example is 4. No FCS has that many.
fn fcs_bytes(said: u8) -> u8 {
    match said {
        0..8 => said,
        bits => bits.div_ceil(8),
    }
}

fn malformed<T>(what: impl Into<String>) -> Result<T, Cause> {
    Err(Cause::Malformed(what.into()))
}
