//! Any bytes as a hello, and as a liveness message: no panic, bounded lists, and what was understood is understood the
//! same again when it is written anew.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtrain_proto::buffer::{Buffer, LARGE_CAPACITY};
use packtrain_proto::wire::hello::{Hello, LINKS_MAX, SOFTWARE_LEN_MAX, STATIONS_MAX};
use packtrain_proto::wire::liveness::{self, Liveness};

fuzz_target!(|message: &[u8]| {
    if message.len() > 65_535 {
        return;
    }
    if let Ok(said) = Liveness::parse(message) {
        let mut buffer = Buffer::with_capacity(LARGE_CAPACITY);
        said.emit(&mut buffer);
        // What is long is padded by who sends it.
        buffer.pad_to(message.len().max(liveness::LEN).min(LARGE_CAPACITY));
        assert_eq!(Liveness::parse(&buffer), Ok(said));
    }
    let Ok(hello) = Hello::parse(message) else {
        return;
    };
    assert!(hello.links.len() <= LINKS_MAX);
    assert!(hello.stations.len() <= STATIONS_MAX);
    assert!(hello.software.len() <= 255);
    if hello.software.len() > SOFTWARE_LEN_MAX {
        return; // taken from others, never sent
    }
    let mut buffer = Buffer::with_capacity(LARGE_CAPACITY);
    hello.emit(&mut buffer);
    assert_eq!(buffer.len(), hello.buffer_len());
    assert_eq!(Hello::parse(&buffer), Ok(hello));
});
