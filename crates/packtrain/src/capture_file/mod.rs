//! The frames of a capture file, pcap or pcapng, as tcpdump, Wireshark and the lab write them.
//!
//! ```text
//!  file, or standard input ──► Source: gzip, zstd ──► Input: one record at a time
//!                                                            │
//!                Frame ◄── Framing: as Ethernet frames ◄── Pcap │ Pcapng
//! ```
//! A file is what somebody else has made: whatever it says, memory stays within [`RECORD_BYTES_MAX`], a table of
//! interfaces and the window of its compression, and what cannot be read is told with its place. Frames come in
//! the order of the file, without an FCS where the file says that one was captured.
//!
//! We read it ourselves because the crates that do have faults that a user would meet. `pcap-parser` 0.17
//! passes over the packets of older pcapng files, knows no binary time resolution, takes a malformed block
//! for the end of the file, and forgets why reading failed. `pcap-file` refuses captures over a comment that
//! is not UTF-8 or a packet above the snap length, and its release candidate panics on a time resolution;
//! `rusty-pcap` allocates what the file asks for.
//!
//! A folder with a `mod.rs`, so that `fuzz/` can take it without the crate around it.

mod byte_order;
mod ends;
mod error;
mod framing;
mod input;
mod link_type;
mod pcap;
mod pcapng;
mod source;
mod time;

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

pub use error::{CaptureError, Cause, Compression, Place};
pub use input::RECORD_BYTES_MAX;
pub use link_type::LinkType;

use ends::{Direction, Ends};
use framing::Framing;
use input::{Input, Part};
use pcap::Pcap;
use pcapng::Pcapng;

/// What a path says that means standard input.
const STANDARD_INPUT: &str = "-";

/// A capture file that is being read. [`CaptureFile::next_frame`] until it gives none, or an error.
#[derive(Debug)]
pub struct CaptureFile {
    name: String,
    input: Input,
    format: Format,
    ends: Ends,
    is_over: bool,
}

/// A frame on Ethernet, from its destination address on, or what was captured on another link as one; lent until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// From 1, as Wireshark numbers it.
    pub number: u64,
    /// Since 1970; `None` where the file does not say, or says a time before that.
    pub at: Option<Duration>,
    /// As many of them as were captured.
    pub bytes: &'a [u8],
    /// How many there were: more than `bytes` where the frame was cut in capturing it, never fewer.
    pub len_on_wire: usize,
    /// Of the interface where it was captured. Where that is not Ethernet, the first 14 of its bytes are made up: an
    /// Ethernet header with what is known of it, in the place of what that link has.
    pub link_type: LinkType,
    /// How many bytes of an FCS were behind it, which are counted nowhere else.
    pub fcs_len: usize,
    /// Of the interface, bits a second, where the file says it.
    pub speed_bps: Option<u64>,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A frame within the record that holds it.
#[derive(Debug)]
struct Packet {
    at: Option<Duration>,
    bytes: Range<usize>,
    len_on_wire: u32,
    link: Link,
    direction: Option<Direction>,
}

/// What is known of an interface's packets.
#[derive(Clone, Copy, Debug)]
struct Link {
    link_type: LinkType,
    framing: Framing,
    /// How many bytes of an FCS stand behind each.
    fcs_len: u8,
    speed_bps: Option<u64>,
}

impl CaptureFile {
    /// Opens a file, or standard input for `-`, and reads its header.
    pub fn open(path: &Path) -> Result<CaptureFile, CaptureError> {
        if path == Path::new(STANDARD_INPUT) {
            return CaptureFile::from_reader("standard input", io::stdin());
        }
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => CaptureFile::from_reader(&name, file),
            Err(error) => Err(CaptureError {
                file: name,
                compression: None,
                place: Place::File,
                cause: Cause::Unread(error),
            }),
        }
    }

    /// Reads the header of what comes from `from`, a pipe that is still being written as well; `name` is for
    /// the errors alone.
    pub fn from_reader(
        name: &str,
        from: impl Read + Send + 'static,
    ) -> Result<CaptureFile, CaptureError> {
        let mut input = Input::new(Box::new(from));
        match Format::read(&mut input) {
            Ok(format) => Ok(CaptureFile {
                name: name.into(),
                input,
                format,
                ends: Ends::default(),
                is_over: false,
            }),
            Err(cause) => Err(error(name, &input, cause)),
        }
    }

    /// The next frame; `None` at the end of the file, and after an error, which is told once.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        if self.is_over {
            return Ok(None);
        }
        match self.next_packet() {
            Ok(Some((packet, header))) => Ok(Some(packet.frame(header, &mut self.input))),
            Ok(None) => {
                self.is_over = true;
                Ok(None)
            }
            Err(cause) => {
                self.is_over = true;
                Err(error(&self.name, &self.input, cause))
            }
        }
    }

    fn next_packet(&mut self) -> Result<Option<(Packet, Option<framing::Header>)>, Cause> {
        let input = &mut self.input;
        let packet = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(input)?,
            Format::Pcapng(pcapng) => pcapng.next(input)?,
        };
        let Some(mut packet) = packet else {
            return Ok(None);
        };
        packet.settle_lengths();
        let header = packet.link.framing.header(
            &input.record()[packet.bytes.clone()],
            packet.len_on_wire as usize,
            packet.direction,
            &mut self.ends,
        )?;
        Ok(Some((packet, header)))
    }
}

fn error(name: &str, input: &Input, cause: Cause) -> CaptureError {
    CaptureError {
        file: name.into(),
        compression: input.compression(),
        place: input.place(),
        cause,
    }
}

impl Packet {
    /// Leaves an FCS away. It is the end of the packet as it was on the wire, and is captured where that is.
    fn settle_lengths(&mut self) {
        // There are files that say less than they hold.
        let len = self.bytes.len() as u32;
        let len_on_wire = self.len_on_wire.max(len);
        self.len_on_wire = len_on_wire.saturating_sub(self.link.fcs_len.into());
        self.bytes.end = self.bytes.start + len.min(self.len_on_wire) as usize;
    }

    fn frame(self, header: Option<framing::Header>, input: &mut Input) -> Frame<'_> {
        let (number, end) = (input.packets(), self.bytes.end);
        let len_on_wire = self.len_on_wire as usize;
        let (bytes, len_on_wire) = match header {
            None => (&input.record()[self.bytes], len_on_wire),
            Some(framing::Header { ethernet, replaces }) => (
                input.prepend(ethernet, self.bytes.start + replaces, end),
                len_on_wire - replaces + ethernet.len(),
            ),
        };
        Frame {
            number,
            at: self.at,
            bytes,
            len_on_wire,
            link_type: self.link.link_type,
            fcs_len: self.link.fcs_len.into(),
            speed_bps: self.link.speed_bps,
        }
    }
}

impl Format {
    fn read(input: &mut Input) -> Result<Format, Cause> {
        match input.begin(Part::File, 4) {
            Ok(true) => {}
            Ok(false) => return Err(Cause::Empty),
            // Too short to say what it is the beginning of.
            Err(Cause::CutOff) => return Err(Cause::NotACapture(None)),
            Err(other) => return Err(other),
        }
        let magic = input.record().try_into().expect("four bytes");
        match Compression::of(magic) {
            Some(compression) if compression.is_unpacked() && input.compression().is_none() => {
                input.unpack(compression);
                return Format::read(input);
            }
            _ => {}
        }
        if let Some(header) = pcap::Header::of(magic) {
            input.turns_out(Part::Header);
            return Ok(Format::Pcap(header.read(input)?));
        }
        if pcapng::is_section_header(magic) {
            input.turns_out(Part::Header);
            return Ok(Format::Pcapng(Pcapng::begin(input)?));
        }
        match pcap::variant(magic) {
            Some(magic) => Err(Cause::Variant(magic)),
            None => Err(Cause::NotACapture(Compression::of(magic))),
        }
    }
}

#[cfg(test)]
mod tests;
