//! What can be wrong with a capture file, where, and what to do about it.

use std::fmt;
use std::io;

use super::input::RECORD_BYTES_MAX;
use super::link_type::LinkType;

#[derive(Debug, thiserror::Error)]
#[error("{file}: {place}{cause}")]
pub struct CaptureError {
    /// Its path, or "standard input".
    pub file: String,
    pub place: Place,
    pub cause: Cause,
}

/// Where in the file. Offsets are in bytes from its beginning, to that of the packet or block.
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
    #[error("{format} version {major}.{minor} is not known")]
    Version {
        format: &'static str,
        major: u16,
        minor: u16,
    },
    #[error("link type {0} is not Ethernet")]
    NotEthernet(LinkType),
    #[error("{0} bytes in the file, and no more than {RECORD_BYTES_MAX} are read")]
    TooLarge(u64),
    /// All before it has been given.
    #[error("the file ends in the middle of it")]
    CutOff,
    #[error("{0}")]
    Malformed(String),
}

/// What a file is packed with that is not a capture by itself.
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
                "unpack it first: {} -dc, by a pipe and - for the file as well",
                compression.program()
            )),
            Cause::NotACapture(None) => {
                Some("other formats that Wireshark reads: rewrite them with editcap -F pcap".into())
            }
            Cause::NotEthernet(_) => Some(
                "capture on an Ethernet interface, as in tcpdump -i eth0 -w eth0.pcap: neither on 'any' nor \
                 on a tunnel"
                    .into(),
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
            [b'B', b'Z', b'h', _] => Some(Compression::Bzip2),
            [0x1f, 0x8b, _, _] => Some(Compression::Gzip),
            [0x04, 0x22, 0x4d, 0x18] => Some(Compression::Lz4),
            [0xfd, b'7', b'z', b'X'] => Some(Compression::Xz),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Compression::Zstd),
            _ => None,
        }
    }

    fn program(self) -> &'static str {
        match self {
            Compression::Bzip2 => "bzip2",
            Compression::Gzip => "gzip",
            Compression::Lz4 => "lz4",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
        }
    }
}

fn not_a_capture(compression: Option<Compression>) -> String {
    match compression {
        Some(compression) => format!("the file is compressed ({})", compression.program()),
        None => "not a capture file: neither pcap nor pcapng".into(),
    }
}
