//! Any bytes as a train: no panic, every subframe moves on, and what was understood is understood
//! the same again when it is written anew.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtrain_proto::buffer::{Buffer, LARGE_CAPACITY};
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr};
use packtrain_proto::wire::subframe::Subframe;
use packtrain_proto::wire::train::{
    Ack, Behind, Fence, NEWEST_MAX, Newest, Options, Train, TrainWriter,
};

fn subframes(message: &[u8], mut at: usize) -> Vec<Subframe<'_>> {
    let mut found = Vec::new();
    while let Ok(Some((subframe, len))) = Subframe::parse(&message[at..]) {
        assert!(len > 0 && at + len <= message.len());
        at += len;
        found.push(subframe);
    }
    found
}

fuzz_target!(|message: &[u8]| {
    // What does not fit a buffer cannot have been received.
    if message.len() > 65_535 {
        return;
    }
    let Ok(train) = Train::parse(message) else {
        return;
    };
    let acks: Vec<Ack> = train.acks().collect();
    let found = subframes(message, train.subframes_at);

    let mut buffer = Buffer::with_capacity(2 * LARGE_CAPACITY);
    let (to, from) = (MacAddr([2; 6]), MacAddr([4; 6]));
    // One option of each kind is written; more than one may have been read.
    let newest: Vec<Newest> = train.newest().take(NEWEST_MAX).collect();
    let fences: Vec<Fence> = train.fences().collect();
    let behind: Vec<Behind> = train.behind().collect();
    let options = Options {
        kept_from: train.kept_from(),
        acks: &acks,
        newest: &newest,
        direct: train.direct_report(),
        fences: &fences,
        behind: &behind,
    };
    let mut writer = TrainWriter::begin(&mut buffer, to, from, &train.header, &options);
    for subframe in &found {
        match *subframe {
            Subframe::Frame { header, payload } => writer.put_frame(&header, payload),
            Subframe::First {
                header,
                id,
                total_len,
                payload,
            } => writer.put_first(&header, id, total_len, payload),
            Subframe::Next {
                id,
                offset,
                payload,
            } => writer.put_next(id, offset, payload),
        }
    }
    let written = &buffer[HEADER_LEN..];
    let again = Train::parse(written).expect("our own train");
    assert_eq!(again.header, train.header);
    assert!(again.acks().eq(acks));
    assert_eq!(again.direct_report(), train.direct_report());
    assert!(again.newest().eq(newest));
    assert!(again.fences().eq(fences));
    assert!(again.behind().eq(behind));
    assert_eq!(subframes(written, again.subframes_at), found);
});
