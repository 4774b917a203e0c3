//! Where captured frames go: to a file that Wireshark reads, or to lines for a person.

use std::io::{self, BufWriter, Write};

use super::line::line;
use crate::capture::{Direction, Dropped, Frame, Path};
use crate::linux::local_time;
use crate::pcapng::{self, Interface, Packet, Statistics};

/// Frames by the engine, and direct ones: people tell them apart by the names of the interfaces.
const INTERFACES: [Path; 2] = [Path::Engine, Path::Direct];

/// Most that is put together before it is written.
const BUFFER_BYTES: usize = 256 << 10;

pub(super) trait Sink {
    fn frame(&mut self, frame: &Frame) -> io::Result<()>;
    /// Nothing more is there for the moment.
    fn pause(&mut self) -> io::Result<()>;
    fn end(&mut self, dropped: &Dropped) -> io::Result<()>;
}

/// For programs.
pub(super) struct File<W: Write> {
    out: BufWriter<W>,
    /// Most bytes that are kept of a frame.
    snap_len: usize,
    block: Vec<u8>,
    /// By interface.
    captured: [u64; 2],
    times: Option<(u64, u64)>,
}

impl<W: Write> File<W> {
    /// Begins it; `snap_len` 0: all.
    pub(super) fn begin(out: W, name: &str, snap_len: u32) -> io::Result<File<W>> {
        let mut head = Vec::new();
        pcapng::section_header(&mut head, concat!("packtrain ", env!("CARGO_PKG_VERSION")));
        for path in INTERFACES {
            let (name, description) = match path {
                Path::Engine => (name.to_owned(), "by the engine"),
                Path::Direct => (format!("{name} direct"), "in the kernel, past the engine"),
            };
            let interface = Interface {
                name,
                description: Some(description.to_owned()),
                speed_bps: None,
                snap_len,
            };
            pcapng::interface_description(&mut head, &interface);
        }
        let mut file = File {
            out: BufWriter::with_capacity(BUFFER_BYTES, out),
            snap_len: match snap_len {
                0 => usize::MAX,
                snap_len => snap_len as usize,
            },
            block: Vec::new(),
            captured: [0; 2],
            times: None,
        };
        file.out.write_all(&head)?;
        // Whoever reads it knows now that it has begun.
        file.out.flush()?;
        Ok(file)
    }
}

fn interface_of(path: Path) -> usize {
    match path {
        Path::Engine => 0,
        Path::Direct => 1,
    }
}

impl<W: Write> Sink for File<W> {
    fn frame(&mut self, frame: &Frame) -> io::Result<()> {
        let interface = interface_of(frame.path);
        let packet = Packet {
            interface: interface as u32,
            unix_nanos: frame.unix_nanos,
            bytes: &frame.bytes[..frame.bytes.len().min(self.snap_len)],
            len: frame.len as u32,
            direction: Some(match frame.direction {
                Direction::In => pcapng::Direction::In,
                Direction::Out => pcapng::Direction::Out,
            }),
            comment: None,
        };
        self.block.clear();
        pcapng::enhanced_packet(&mut self.block, &packet);
        self.out.write_all(&self.block)?;
        self.captured[interface] += 1;
        let (first, _) = self.times.unwrap_or((frame.unix_nanos, 0));
        self.times = Some((first, frame.unix_nanos));
        Ok(())
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// What was dropped on `pt0` may have been direct frames that came: nobody has looked at them.
    fn end(&mut self, dropped: &Dropped) -> io::Result<()> {
        let (from_unix_nanos, until_unix_nanos) = self.times.unwrap_or_default();
        for path in INTERFACES {
            let interface = interface_of(path);
            let dropped = match path {
                Path::Engine => dropped.host,
                Path::Direct => dropped.links,
            };
            let statistics = Statistics {
                interface: interface as u32,
                from_unix_nanos,
                until_unix_nanos,
                received: self.captured[interface] + dropped,
                dropped,
            };
            self.block.clear();
            pcapng::interface_statistics(&mut self.block, &statistics);
            self.out.write_all(&self.block)?;
        }
        self.out.flush()
    }
}

/// For a person.
pub(super) struct Lines<W: Write> {
    out: BufWriter<W>,
    /// Whoever looks sees each line when it comes.
    at_once: bool,
}

impl<W: Write> Lines<W> {
    pub(super) fn begin(out: W, at_once: bool) -> Lines<W> {
        Lines {
            out: BufWriter::with_capacity(BUFFER_BYTES, out),
            at_once,
        }
    }
}

impl<W: Write> Sink for Lines<W> {
    fn frame(&mut self, frame: &Frame) -> io::Result<()> {
        let unix_s = (frame.unix_nanos / 1_000_000_000) as i64;
        let line = line(frame, local_time::offset_s(unix_s));
        writeln!(self.out, "{line}")
    }

    fn pause(&mut self) -> io::Result<()> {
        match self.at_once {
            true => self.out.flush(),
            false => Ok(()),
        }
    }

    fn end(&mut self, _dropped: &Dropped) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng::tests::{Read, word};

    fn frame(direction: Direction, path: Path) -> Frame {
        Frame {
            unix_nanos: 1_700_000_000_000_000_001,
            direction,
            path,
            bytes: (0..60).collect(),
            len: 1514,
        }
    }

    #[test]
    fn a_file_has_an_interface_for_each_path_and_a_direction_for_each_frame() {
        let mut out = Vec::new();
        let mut file = File::begin(&mut out, "pt7", 20).unwrap();
        file.frame(&frame(Direction::Out, Path::Direct)).unwrap();
        file.frame(&frame(Direction::In, Path::Engine)).unwrap();
        let dropped = Dropped {
            host: 3,
            links: 5,
            witnesses: 9,
        };
        file.end(&dropped).unwrap();
        drop(file);
        let blocks = Read::all(&out);
        let kinds: Vec<u32> = blocks.iter().map(|block| block.kind).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6, 6, 5, 5]);
        let name = |at: usize| blocks[at].options(8).remove(0);
        assert_eq!(name(1), (2, b"pt7".to_vec()));
        assert_eq!(name(2), (2, b"pt7 direct".to_vec()));
        for (at, interface, flags) in [(3, 1, 2u32), (4, 0, 1)] {
            let block: &Read = &blocks[at];
            assert_eq!(word(&block.body, 0), interface);
            assert_eq!((block.frame().len(), word(&block.body, 16)), (20, 1514));
            let direction = (2, flags.to_le_bytes().to_vec());
            assert_eq!(block.options(20 + 20)[0], direction);
        }
        for (at, received, dropped) in [(5, 4u64, 3u64), (6, 6, 5)] {
            let options = blocks[at].options(12);
            assert_eq!(options[2].1, received.to_le_bytes());
            assert_eq!(options[3].1, dropped.to_le_bytes());
        }
    }

    #[test]
    fn lines_are_written_at_once_where_somebody_looks() {
        for (at_once, at_the_pause) in [(true, 1), (false, 0)] {
            let mut lines = Lines::begin(Vec::new(), at_once);
            lines.frame(&frame(Direction::In, Path::Direct)).unwrap();
            lines.pause().unwrap();
            let written = lines.out.get_ref().split(|b| *b == b'\n').count() - 1;
            assert_eq!(written, at_the_pause);
            lines.end(&Dropped::default()).unwrap();
            assert!(lines.out.get_ref().ends_with(b", 1514 B\n"));
        }
    }
}
