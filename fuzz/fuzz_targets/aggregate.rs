//! Any bytes as an aggregate, and as a station's message: no panic, every packet lies inside and apart from the others,
//! and what was understood is understood the same again when it is written anew.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtrain_proto::buffer::{Buffer, LARGE_CAPACITY};
use packtrain_proto::wire::dfap::{self, Aggregate};
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, MacAddr};
use packtrain_proto::wire::station::StationMessage;

type Packets<'a> = Vec<(u16, &'a [u8])>;

fn packets(data: &[u8]) -> Option<Packets<'_>> {
    let aggregate = Aggregate::parse(data).ok()?;
    let mut end = 0;
    let packet = |at| {
        let (kind, range) = aggregate.packet(at);
        assert!(range.start >= end + dfap::TYPE_LEN && range.end <= data.len());
        end = range.end;
        (kind, &data[range])
    };
    Some((0..aggregate.len()).map(packet).collect())
}

fuzz_target!(|data: &[u8]| {
    if let Ok(said) = StationMessage::parse(data) {
        let mut buffer = Buffer::with_capacity(100);
        said.emit(&mut buffer);
        assert_eq!(StationMessage::parse(&buffer), Ok(said));
    }
    // What does not fit a buffer cannot have been received.
    let Some(found) = packets(data).filter(|_| data.len() <= 65_535) else {
        return;
    };
    let outer = Header {
        destination: MacAddr([2; 6]),
        source: MacAddr([4; 6]),
        ether_type: dfap::ETHER_TYPE,
    };
    let mut buffer = Buffer::with_capacity(2 * LARGE_CAPACITY);
    dfap::emit(&mut buffer, &outer, found.iter().copied());
    // A packet that says to be shorter than padding made it was read so the first time.
    assert_eq!(packets(&buffer[HEADER_LEN..]), Some(found));
});
