//! The frames of a capture file, pcap or pcapng, as tcpdump, Wireshark and the lab write them.
//!
//! ```text
//!  file, or standard input ──► Input: one record at a time ──► Pcap │ Pcapng ──► Frame
//! ```
//! A file is what somebody else has made: whatever it says, memory stays within [`RECORD_BYTES_MAX`] and
//! a table of interfaces, and what cannot be read is told with its place. Frames come in the order of the
//! file, an FCS with them where it was captured (Linux gives none).
//!
//! We read it ourselves because the crates that do have faults that a user would meet. `pcap-parser` 0.17
//! passes over the packets of older pcapng files, knows no binary time resolution, takes a malformed block
//! for the end of the file, and forgets why reading failed. `pcap-file` refuses captures over a comment that
//! is not UTF-8 or a packet above the snap length, and its release candidate panics on a time resolution;
//! `rusty-pcap` allocates what the file asks for.
//!
//! A folder with a `mod.rs`, so that `fuzz/` can take it without the crate around it.

mod byte_order;
mod error;
mod input;
mod link_type;
mod pcap;
mod pcapng;
mod time;

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

pub use error::{CaptureError, Cause, Compression, Place};
pub use input::RECORD_BYTES_MAX;
pub use link_type::LinkType;

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
    is_over: bool,
}

/// A frame on Ethernet, from its destination address on; lent until the next one.
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
                is_over: false,
            }),
            Err(cause) => Err(CaptureError {
                file: name.into(),
                place: input.place(),
                cause,
            }),
        }
    }

    /// The next frame; `None` at the end of the file, and after an error, which is told once.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        if self.is_over {
            return Ok(None);
        }
        let packet = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.input),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.input),
        };
        match packet {
            Ok(Some(Packet {
                at,
                bytes,
                len_on_wire,
            })) => Ok(Some(Frame {
                number: self.input.packets(),
                at,
                // There are files that say less than they hold.
                len_on_wire: bytes.len().max(len_on_wire as usize),
                bytes: &self.input.record()[bytes],
            })),
            Ok(None) => {
                self.is_over = true;
                Ok(None)
            }
            Err(cause) => {
                self.is_over = true;
                Err(CaptureError {
                    file: self.name.clone(),
                    place: self.input.place(),
                    cause,
                })
            }
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
        if let Some(header) = pcap::Header::of(magic) {
            input.turns_out(Part::Header);
            return Ok(Format::Pcap(header.read(input)?));
        }
        if pcapng::is_section_header(magic) {
            input.turns_out(Part::Header);
            return Ok(Format::Pcapng(Pcapng::begin(input)?));
        }
        Err(Cause::NotACapture(Compression::of(magic)))
    }
}

#[cfg(test)]
mod tests;
