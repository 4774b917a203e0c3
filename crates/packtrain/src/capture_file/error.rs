//! What can be wrong with a capture file, where, and what to do about it.

use std::fmt;
use std::io;

use super::input::RECORD_BYTES_MAX;
use super::link_type::LinkType;
use super::source::WINDOW_LOG_MAX;

#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {place}{cause}", unpacked(*.compression))]
pub struct CaptureError {
    /// Its path, or "standard input".
    pub file: String,
    /// What it is unpacked from.
    pub compression: Option<Compression>,
    pub place: Place,
    pub cause: Cause,
}

/// Where in the file, unpacked. Offsets are in bytes from its beginning, to that of the packet or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// All of it.
    File,
    /// What stands before all packets.
    Header,
    /// Of a pcapng file, and not known to be a packet.
    Block { offset: u64 },
    Packet {
        /// From 1, as Wireshark numbers it.
        number: u64,
        offset: u64,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum Cause {
    #[error("{0}")]
    Unread(io::Error),
    #[error("the file is empty")]
    Empty,
    #[error("{}", not_a_capture(*.0))]
    NotACapture(Option<Compression>),
    #[error("a variant of pcap that is not read, of the magic number {0:#010x}")]
    Variant(u32),
    #[error("{format} version {major}.{minor} is not known")]
    Version {
        format: &'static str,
        major: u16,
        minor: u16,
    },
    #[error("link type {0} is not Ethernet")]
    NotEthernet(LinkType),
    /// Of a link type that is, in general.
    #[error("{0}, which is nothing that Ethernet carries")]
    NoFrame(String),
    #[error("{0} bytes in the file, and no more than {RECORD_BYTES_MAX} are read")]
    TooLarge(u64),
    /// All before it has been given.
    #[error("the file ends in the middle of it")]
    CutOff,
    #[error("{0}")]
    Malformed(String),
    /// All before it has been given.
    #[error("the {0} stream is cut off")]
    StreamCutOff(Compression),
    #[error("the {compression} stream is broken: {reason}")]
    StreamBroken {
        compression: Compression,
        reason: String,
    },
    #[error("to unpack it a window of more than {} MB is needed", WINDOW_BYTES_MAX >> 20)]
    WindowTooLarge,
}

const WINDOW_BYTES_MAX: u64 = 1 << WINDOW_LOG_MAX;

/// What a file is packed with that is not a capture by itself. Gzip and zstd are unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Bzip2,
    Gzip,
    Lz4,
    Xz,
    Zstd,
}

impl CaptureError {
    /// What to do about it, where that is not plain.
    pub fn hint(&self) -> Option<String> {
        match self.cause {
            Cause::NotACapture(Some(compression)) => Some(format!(
                "unpack it first: {compression} -dc, by a pipe and - for the file as well"
            )),
            Cause::WindowTooLarge => Some(
                "unpack it first: zstd -dc --long=31, by a pipe and - for the file as well".into(),
            ),
            Cause::NotACapture(None) | Cause::Variant(_) => {
                Some("other formats that Wireshark reads: rewrite them with editcap -F pcap".into())
            }
            Cause::NotEthernet(_) => Some(
                "capture on an interface that carries Ethernet or IP, as in tcpdump -i eth0 -w eth0.pcap, or on \
                 'any'"
                    .into(),
            ),
            Cause::NoFrame(_) => Some(
                "leave such packets out: tshark -r FILE -Y 'ip or ipv6 or arp' -w OTHER".into(),
            ),
            _ => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Header => f.write_str("file header: "),
            Place::Block { offset } => write!(f, "block at byte {offset}: "),
            Place::Packet { number, offset } => write!(f, "packet {number} at byte {offset}: "),
        }
    }
}

impl Compression {
    pub(super) fn of(magic: [u8; 4]) -> Option<Compression> {
        match magic {
            // Frames that are to be passed over begin what pzstd writes.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some(Compression::Zstd),
            [b'B', b'Z', b'h', _] => Some(Compression::Bzip2),
            [0x1f, 0x8b, _, _] => Some(Compression::Gzip),
            [0x04, 0x22, 0x4d, 0x18] => Some(Compression::Lz4),
            [0xfd, b'7', b'z', b'X'] => Some(Compression::Xz),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Compression::Zstd),
            _ => None,
        }
    }

    pub(super) fn is_unpacked(self) -> bool {
        matches!(self, Compression::Gzip | Compression::Zstd)
    }
}

/// As its program is called.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Bzip2 => "bzip2",
            Compression::Gzip => "gzip",
            Compression::Lz4 => "lz4",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
        })
    }
}

fn unpacked(compression: Option<Compression>) -> String {
    match compression {
        Some(compression) => format!(" ({compression}, unpacked)"),
        None => String::new(),
    }
}

fn not_a_capture(compression: Option<Compression>) -> String {
    match compression {
        Some(compression) => format!("the file is compressed ({compression})"),
        None => "not a capture file: neither pcap nor pcapng".into(),
    }
}
