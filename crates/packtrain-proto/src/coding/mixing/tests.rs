use super::*;
use proptest::prelude::*;

fn segments() -> impl Strategy<Value = Vec<(Segment, Vec<u8>)>> {
    let kind = prop_oneof![
        Just(Kind::Bytes),
        Just(Kind::Samples(Law::Mu)),
        Just(Kind::Samples(Law::A)),
    ];
    let byte = prop_oneof![any::<u8>(), 0..4_u8];
    let bytes = prop::collection::vec(byte, 1..400);
    let one = (kind, 0..400_usize, bytes)
        .prop_map(|(kind, body_len, bytes)| (Segment { kind, body_len }, bytes));
    prop::collection::vec(one, 1..12)
}

/// Blocks, and what each restores to.
fn blocks(writer: &mut Writer, of: &[Vec<(Segment, Vec<u8>)>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    writer.begin_train();
    let mut block = |segments: &Vec<(Segment, Vec<u8>)>| {
        writer.begin_block();
        for (segment, bytes) in segments {
            writer.put(*segment, bytes);
        }
        let plain = segments.iter().flat_map(|(_, bytes)| bytes.clone());
        let said = writer.block_len();
        let block = writer.finish_block().to_vec();
        assert_eq!(block.len(), said);
        (block, plain.collect())
    };
    of.iter().map(&mut block).collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read(trains in prop::collection::vec(prop::collection::vec(segments(), 1..3), 1..3)) {
        let (mut writer, mut reader) = (Writer::default(), Reader::default());
        for train in &trains {
            reader.begin_train();
            for (block, plain) in blocks(&mut writer, train) {
                let mut out = vec![0; plain.len()];
                prop_assert_eq!(reader.restore(&block, &mut out), Some(()));
                prop_assert_eq!(out, plain);
            }
        }
    }

    /// Whatever it is, it ends, and fills no more than it may.
    #[test]
    fn what_nobody_wrote_does_no_harm(block in prop::collection::vec(any::<u8>(), 0..200), len in 0..3000_usize) {
        let mut reader = Reader::default();
        let mut out = vec![0; len];
        let _ = reader.restore(&block, &mut out);
    }
}

#[test]
fn what_is_taken_back_is_not_in_the_block() {
    let segment = Segment::of_bytes();
    let mut writer = Writer::default();
    writer.begin_train();
    writer.put(segment, b"the first of a few");
    let mark = writer.mark();
    writer.put(segment, b"and what did not fit any more");
    writer.end_at(mark);
    let block = writer.finish_block().to_vec();
    let mut out = [0; 18];
    assert_eq!(Reader::default().restore(&block, &mut out), Some(()));
    assert_eq!(&out, b"the first of a few");
}

#[test]
fn silence_takes_nothing_and_a_sine_little() {
    let mut writer = Writer::default();
    let len_of = |writer: &mut Writer, samples: &[u8]| {
        writer.begin_train();
        let segment = Segment {
            kind: Kind::Samples(Law::Mu),
            body_len: samples.len(),
        };
        writer.put(segment, samples);
        writer.finish_block().len()
    };
    let silent = len_of(&mut writer, &[0xff; 160]);
    assert!(silent < 20, "{silent}");
    // A thousand hertz, by table 6 of G.711.
    let row = [0x1e, 0x0b, 0x0b, 0x1e, 0x9e, 0x8b, 0x8b, 0x9e];
    let sine: Vec<u8> = row.iter().copied().cycle().take(160).collect();
    let sine = len_of(&mut writer, &sine);
    assert!(sine < 70, "{sine}");
}

#[test]
fn no_train_takes_more_time_than_it_may() {
    let segment = Segment::of_bytes();
    let mut writer = Writer::default();
    writer.begin_train();
    let mut plain_len = 0;
    while writer.takes(1) {
        writer.put(segment, b"x");
        plain_len += 1;
    }
    let block = writer.finish_block().to_vec();
    let mut out = vec![0; plain_len];
    assert_eq!(Reader::default().restore(&block, &mut out), Some(()));
    // One more segment would be refused, whatever it is.
    let mut out = vec![0; plain_len + 1];
    assert_eq!(Reader::default().restore(&block, &mut out), None);
}
