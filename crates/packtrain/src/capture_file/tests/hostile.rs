//! Files that end anywhere and say anything.

use proptest::prelude::*;

use super::build::{pcap_of_three, pcapng_of_everything};
use super::{error, frames, read};

/// Where the records of a file of ours begin, and where it ends; of pcapng, with the types of its blocks.
fn records(file: &[u8]) -> Vec<(usize, u32)> {
    let word = |at: usize, is_big: bool| {
        let bytes = file[at..at + 4].try_into().unwrap();
        match is_big {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        }
    };
    let (mut at, mut is_big, mut records) = (0, false, Vec::new());
    let is_pcapng = file[0] == 0x0a;
    while at < file.len() {
        let (kind, len) = match (is_pcapng, at) {
            (false, 0) => (0, 24),
            (false, _) => (6, 16 + word(at + 8, false)),
            (true, _) => {
                if word(at, false) == 0x0a0d_0d0a {
                    is_big = file[at + 8] == 0x1a;
                }
                (word(at, is_big), word(at + 4, is_big))
            }
        };
        records.push((at, kind));
        at += len as usize;
    }
    records.push((at, 0));
    records
}

#[test]
fn a_file_cut_anywhere_gives_the_whole_packets_before_the_cut_and_says_so() {
    for file in [pcap_of_three(), pcapng_of_everything()] {
        let whole = frames(&file);
        let records = records(&file);
        let header_len = records[1].0;
        for cut in 0..file.len() {
            let (frames, error) = read(&file[..cut]);
            let is_whole = |(record, next): (&(usize, u32), &(usize, u32))| {
                [2, 3, 6].contains(&record.1) && next.0 <= cut
            };
            let before = records.iter().zip(&records[1..]).filter(|&it| is_whole(it));
            assert_eq!(frames, whole[..before.count()], "cut at {cut}");
            if cut < header_len || !records.iter().any(|&(start, _)| start == cut) {
                let error = error.expect("it is cut");
                let told = match cut {
                    0 => "f: the file is empty",
                    1..4 => "f: not a capture file: neither pcap nor pcapng",
                    _ => ": the file ends in the middle of it",
                };
                assert!(error.ends_with(told), "cut at {cut}: {error}");
            } else {
                assert_eq!(error, None, "cut at {cut}");
            }
        }
    }
}

#[test]
fn the_packet_that_is_cut_is_named() {
    let file = pcap_of_three();
    assert_eq!(
        error(&file[..file.len() - 1]),
        "f: packet 3 at byte 177: the file ends in the middle of it"
    );
    assert_eq!(
        error(&file[..23]),
        "f: file header: the file ends in the middle of it"
    );
    let file = pcapng_of_everything();
    let statistics = file.len() - 24;
    assert_eq!(
        error(&file[..statistics + 9]),
        format!("f: block at byte {statistics}: the file ends in the middle of it")
    );
    let simple = statistics - 52;
    assert_eq!(
        error(&file[..simple + 9]),
        format!("f: packet 6 at byte {simple}: the file ends in the middle of it")
    );
}

/// Whatever the bytes: numbers rise, and no frame has more bytes than it had on the wire.
fn holds(file: &[u8]) -> Result<(), TestCaseError> {
    let (frames, error) = read(file);
    prop_assert!(frames.is_sorted_by(|a, b| a.number < b.number));
    for frame in &frames {
        prop_assert!(frame.number > 0 && frame.bytes.len() <= frame.len_on_wire);
    }
    let given: usize = frames.iter().map(|frame| frame.bytes.len()).sum();
    prop_assert!(given <= file.len());
    // Bytes may begin as packed ones do.
    let names_file = ["f: ", "f (gzip, unpacked): ", "f (zstd, unpacked): "];
    let is_named = |error: &String| names_file.iter().any(|begin| error.starts_with(begin));
    prop_assert!(error.as_ref().is_none_or(is_named), "{error:?}");
    Ok(())
}

#[test]
fn bytes_that_begin_as_packed_ones_do_are_an_error() {
    for first in [&[0x1f, 0x8b, 8, 0][..], &[0x28, 0xb5, 0x2f, 0xfd]] {
        let file = [first, &[0x5a; 40]].concat();
        holds(&file).unwrap();
        assert!(read(&file).1.is_some(), "{first:02x?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_frames_or_an_error(file in proptest::collection::vec(any::<u8>(), 0..300)) {
        holds(&file)?;
    }

    #[test]
    fn any_bytes_behind_a_header_are_frames_or_an_error(
        is_pcapng in any::<bool>(),
        words in proptest::collection::vec(
            prop_oneof![0..100u32, any::<u32>(), Just(0x0d0a_0d0a), Just(0x0a0d_0d0a)],
            0..200,
        ),
    ) {
        let mut file = match is_pcapng {
            true => pcapng_of_everything(),
            false => pcap_of_three(),
        };
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        holds(&file)?;
    }

    #[test]
    fn a_file_with_wrong_bytes_is_frames_or_an_error(
        is_pcapng in any::<bool>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = match is_pcapng {
            true => pcapng_of_everything(),
            false => pcap_of_three(),
        };
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        holds(&file)?;
    }
}
