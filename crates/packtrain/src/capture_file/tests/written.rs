//! Whatever is written reads back exactly, however it comes, and up to where it is cut.

use std::io::{self, Read};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::build::{
    KUZNETZOV, MICROS, NANOS, block, enhanced, interface, obsolete, option, pcap_header,
    pcap_packet, section,
};
use super::{Big, LinkType, Little, Owned, read, read_from};

/// A file, what is to be read from it, and where its records end; those that are no packets give nothing.
#[derive(Clone, Debug)]
struct Written {
    file: Vec<u8>,
    records: Vec<Record>,
}

#[derive(Clone, Debug)]
struct Record {
    start: usize,
    end: usize,
    frame: Option<Owned>,
}

impl Written {
    fn append(&mut self, bytes: &[u8], frame: Option<Owned>) {
        let start = self.file.len();
        self.file.extend(bytes);
        let end = self.file.len();
        self.records.push(Record { start, end, frame });
    }

    fn frames_before(&self, end: usize) -> Vec<Owned> {
        let whole = self.records.iter().filter(|record| record.end <= end);
        whole.filter_map(|record| record.frame.clone()).collect()
    }
}

/// A packet as it is captured: its time in nanoseconds, its bytes, how many more there were.
type Captured = (u64, Vec<u8>, u32);

fn captured() -> impl Strategy<Value = Captured> {
    let bytes = prop_oneof![
        8 => vec(any::<u8>(), 0..200),
        1 => vec(any::<u8>(), 9_000..10_000),
    ];
    (
        0..4_000_000_000_000_000_000u64,
        bytes,
        prop_oneof![Just(0u32), 1..2_000u32],
    )
}

fn owned(number: usize, nanos: u64, (_, bytes, more): &Captured) -> Owned {
    Owned {
        number: number as u64,
        at: Some(Duration::from_nanos(nanos)),
        bytes: bytes.clone(),
        len_on_wire: bytes.len() + *more as usize,
        link_type: LinkType::ETHERNET,
        fcs_len: 0,
    }
}

fn pcap() -> impl Strategy<Value = Written> {
    let kind = (0..3usize, any::<bool>());
    (kind, vec(captured(), 0..12)).prop_map(|((magic, is_big), packets)| {
        let order = if is_big { Big } else { Little };
        let (magic, tick) = [(MICROS, 1000), (NANOS, 1), (KUZNETZOV, 1000)][magic];
        let mut written = Written {
            file: pcap_header(order, magic, 1),
            records: Vec::new(),
        };
        for (number, packet) in (1..).zip(&packets) {
            let (nanos, bytes, more) = packet;
            let ticks = nanos / tick;
            let second = 1_000_000_000 / tick;
            let at = ((ticks / second) as u32, (ticks % second) as u32);
            let mut record = pcap_packet(order, at, bytes, bytes.len() as u32 + more);
            if magic == KUZNETZOV {
                record.splice(16..16, [0x5a; 8]);
            }
            written.append(&record, Some(owned(number, ticks * tick, packet)));
        }
        written
    })
}

/// Of interfaces that count time in units of their own.
fn pcapng() -> impl Strategy<Value = Written> {
    let resolutions = vec(prop_oneof![Just(3u8), Just(6), Just(9)], 1..4);
    let kinds = (any::<proptest::sample::Index>(), 0..5u8);
    (any::<bool>(), resolutions, vec((captured(), kinds), 0..12)).prop_map(
        |(is_big, resolutions, packets)| {
            let order = if is_big { Big } else { Little };
            let mut written = Written {
                file: section(order),
                records: Vec::new(),
            };
            for resolution in &resolutions {
                let resolution = option(order, 9, &[*resolution]);
                written.append(&interface(order, 1, 0, &[resolution]), None);
            }
            let mut number = 0;
            for (packet, (interface, kind)) in packets {
                let at = interface.index(resolutions.len());
                let tick = 10u64.pow(9 - u32::from(resolutions[at]));
                let (nanos, bytes, more) = &packet;
                let (ticks, len) = (nanos / tick, bytes.len() as u32 + more);
                let record = match kind {
                    0 => {
                        written.append(&block(order, 5, bytes), None);
                        continue;
                    }
                    1 => obsolete(order, at as u16, ticks, bytes, len),
                    _ => enhanced(order, at as u32, ticks, bytes, len),
                };
                number += 1;
                written.append(&record, Some(owned(number, ticks * tick, &packet)));
            }
            written
        },
    )
}

/// Gives pieces of these lengths, in turns.
struct Pieces {
    file: Vec<u8>,
    at: usize,
    lengths: Vec<usize>,
    turn: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        let len = self.lengths[self.turn % self.lengths.len()];
        let len = len.min(buffer.len()).min(self.file.len() - self.at);
        buffer[..len].copy_from_slice(&self.file[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back_in_pieces_of_any_length(
        written in prop_oneof![pcap(), pcapng()],
        lengths in vec(prop_oneof![4 => 1..100usize, 1 => 1..20_000usize], 1..5),
    ) {
        let pieces = Pieces { file: written.file.clone(), at: 0, lengths, turn: 0 };
        let (frames, error) = read_from(pieces);
        prop_assert_eq!(error, None);
        prop_assert_eq!(frames, written.frames_before(usize::MAX));
    }

    #[test]
    fn a_file_that_is_cut_reads_up_to_there_and_names_the_packet(
        written in prop_oneof![pcap(), pcapng()],
        cut in any::<proptest::sample::Index>(),
    ) {
        let header_len = written.records.first().map_or(written.file.len(), |first| first.start);
        let cut = header_len + cut.index(written.file.len() - header_len + 1);
        let (frames, error) = read(&written.file[..cut]);
        let before = written.frames_before(cut);
        let within = written.records.iter().find(|it| it.start < cut && cut < it.end);
        let told = within.map(|record| {
            let place = match (&record.frame, cut - record.start) {
                // The type of a block has four bytes.
                (Some(frame), len) if written.file[0] != 0x0a || len >= 4 => {
                    format!("packet {}", frame.number)
                }
                _ => "block".to_owned(),
            };
            format!("f: {place} at byte {}: the file ends in the middle of it", record.start)
        });
        prop_assert_eq!(frames, before);
        prop_assert_eq!(error, told);
    }
}
