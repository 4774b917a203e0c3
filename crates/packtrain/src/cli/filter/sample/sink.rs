//! Where samples go: to a file that Wireshark reads, or to lines for a person.

use std::io::{self, BufWriter, Write};

use crate::cli::filter::explain::in_words;
use crate::cli::filter::view::words;
use crate::cli::output::BAD;
use crate::linux::filter::samples::{Sample, SampleCounts};
use crate::linux::local_time;
use crate::pcapng::{self, Direction, Interface, Packet, Statistics};

/// Longest description that keeps the columns in line.
const WHAT_WIDTH: usize = 42;

/// With what only the process knows.
#[derive(Debug)]
pub struct Named<'a> {
    pub sample: &'a Sample,
    pub unix_nanos: u64,
    /// The rule that has dropped it.
    pub rule: Option<String>,
}

impl Named<'_> {
    fn why(&self) -> String {
        let why = words(self.sample.reason);
        match &self.rule {
            Some(rule) => format!("{why}: {rule}"),
            None => why.into(),
        }
    }
}

pub trait Sink {
    fn sample(&mut self, sample: &Named<'_>) -> io::Result<()>;
    /// Nothing more is there for the moment.
    fn pause(&mut self) -> io::Result<()>;
    fn end(&mut self, counts: &SampleCounts) -> io::Result<()>;
}

pub struct Pcapng {
    out: BufWriter<Box<dyn Write>>,
    block: Vec<u8>,
    times: Option<(u64, u64)>,
}

impl Pcapng {
    pub fn begin(out: Box<dyn Write>, interface: &str, snap_len: u32) -> io::Result<Pcapng> {
        let mut block = Vec::new();
        pcapng::section_header(&mut block, concat!("packtrain ", env!("CARGO_PKG_VERSION")));
        let interface = Interface {
            name: interface.into(),
            description: Some("samples of what its receive filter drops".into()),
            speed_bps: None,
            snap_len,
        };
        pcapng::interface_description(&mut block, &interface);
        let mut file = Pcapng {
            out: BufWriter::new(out),
            block,
            times: None,
        };
        file.write_block()?;
        file.out.flush()?;
        Ok(file)
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

impl Sink for Pcapng {
    fn sample(&mut self, named: &Named<'_>) -> io::Result<()> {
        let why = format!("{}: {}", named.sample.reason.as_str(), named.why());
        let packet = Packet {
            interface: 0,
            unix_nanos: named.unix_nanos,
            bytes: &named.sample.bytes,
            len: named.sample.len,
            direction: Some(Direction::In),
            comment: Some(&why),
        };
        pcapng::enhanced_packet(&mut self.block, &packet);
        let (first, _) = self.times.unwrap_or((named.unix_nanos, 0));
        self.times = Some((first, named.unix_nanos));
        self.write_block()
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// All that the filter has dropped for these reasons meanwhile was received; what is not in the file was dropped by who samples.
    fn end(&mut self, counts: &SampleCounts) -> io::Result<()> {
        let (from_unix_nanos, until_unix_nanos) = self.times.unwrap_or_default();
        let statistics = Statistics {
            interface: 0,
            from_unix_nanos,
            until_unix_nanos,
            received: counts.dropped,
            dropped: counts.dropped.saturating_sub(counts.sampled),
        };
        pcapng::interface_statistics(&mut self.block, &statistics);
        self.write_block()?;
        self.out.flush()
    }
}

pub struct Lines<W: Write> {
    out: W,
}

impl<W: Write> Lines<W> {
    pub fn begin(out: W) -> Lines<W> {
        Lines { out }
    }
}

impl<W: Write> Sink for Lines<W> {
    fn sample(&mut self, named: &Named<'_>) -> io::Result<()> {
        const SECOND: u64 = 1_000_000_000;
        let unix_s = (named.unix_nanos / SECOND) as i64;
        let of_day = (unix_s + local_time::offset_s(unix_s)).rem_euclid(86_400);
        writeln!(
            self.out,
            "{:02}:{:02}:{:02}.{:06}  {:>5} B  {:<WHAT_WIDTH$}  {BAD}{}{BAD:#}",
            of_day / 3600,
            of_day / 60 % 60,
            of_day % 60,
            named.unix_nanos % SECOND / 1000,
            named.sample.len,
            in_words(&named.sample.bytes),
            named.why()
        )
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn end(&mut self, _counts: &SampleCounts) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use packtrain_proto::filter::Reason;

    use super::*;
    use crate::pcapng::tests::{Read, word};

    fn sample() -> Sample {
        Sample {
            monotonic_nanos: 5,
            reason: Reason::Denied,
            rule: 0,
            rules_image: 1,
            len: 1514,
            bytes: [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xcc], &[7; 46]].concat(),
        }
    }

    fn named(sample: &Sample) -> Named<'_> {
        Named {
            sample,
            unix_nanos: 1_700_000_000_123_456_789,
            rule: Some("strangers".into()),
        }
    }

    #[derive(Clone, Default)]
    struct Shared(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_says_of_each_frame_why_it_was_dropped_and_how_many_there_were() {
        let shared = Shared::default();
        let mut file = Pcapng::begin(Box::new(shared.clone()), "eth7", 60).unwrap();
        file.sample(&named(&sample())).unwrap();
        let counts = SampleCounts {
            dropped: 40,
            sampled: 1,
            missed: 2,
        };
        file.end(&counts).unwrap();
        let out = shared.0.borrow().clone();
        let blocks = Read::all(&out);
        let kinds: Vec<u32> = blocks.iter().map(|block| block.kind).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 5]);
        assert_eq!(
            (blocks[2].frame().len(), word(&blocks[2].body, 16)),
            (60, 1514)
        );
        let comment = &blocks[2].options(20 + 60)[1];
        assert_eq!(comment, &(1, b"denied: by a rule: strangers".to_vec()));
        let options = blocks[3].options(12);
        assert_eq!(options[2].1, 40u64.to_le_bytes());
        assert_eq!(options[3].1, 39u64.to_le_bytes());
    }

    #[test]
    fn a_line_says_when_how_long_what_and_why() {
        let mut lines = Lines::begin(Vec::new());
        lines.sample(&named(&sample())).unwrap();
        let text = anstream::adapter::strip_bytes(&lines.out).into_vec();
        let text = String::from_utf8(text).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words[0].ends_with(".123456"), "{text}");
        assert_eq!(words[1..3], ["1514", "B"], "{text}");
        assert!(text.ends_with("by a rule: strangers\n"), "{text}");
        assert!(text.contains("ff:ff:ff:ff:ff:ff"), "{text}");
    }
}
