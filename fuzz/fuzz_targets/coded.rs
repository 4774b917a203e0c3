//! Any bytes as a coded train: no panic, and no more than a train may hold. And as frames that are coded: each comes
//! out as it went in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtrain_proto::class::ClassId;
use packtrain_proto::coding::coder::{Coder, Finished, Treatment};
use packtrain_proto::coding::dictionary::{Dictionary, Zstd};
use packtrain_proto::coding::restore::Restorer;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::coded::{Coding, PLAIN_MAX};
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};
use packtrain_proto::wire::subframe::{InnerHeader, Subframe};

const TYPES: [u16; 5] = [
    ether_type::IPV4,
    ether_type::IPV6,
    ether_type::VLAN,
    ether_type::ARP,
    0x9000,
];
const CODINGS: [Coding; 4] = [Coding::Headers, Coding::Lz4, Coding::Zstd, Coding::Mixing];
const TREATMENTS: [Treatment; 4] = [
    Treatment::Plain,
    Treatment::Headers,
    Treatment::Payload,
    Treatment::Trial(ClassId(7)),
];

struct Both {
    coder: Coder,
    restorer: Restorer,
    out: Vec<u8>,
}

impl Both {
    fn new() -> Both {
        let bytes: Vec<u8> = (0..600u32).map(|n| (n * n >> 5) as u8).collect();
        let dictionary = Dictionary::new(&bytes).expect("as long as one has to be");
        let zstd = || Some(Zstd::new(&dictionary).expect("memory"));
        let (mut coder, mut restorer) = (Coder::default(), Restorer::default());
        coder.set_dictionary(zstd());
        restorer.set_dictionary(zstd());
        Both {
            coder,
            restorer,
            out: vec![0; PLAIN_MAX + 100],
        }
    }

    fn restore(&mut self, coded: &[u8]) {
        if let Ok(len) = self.restorer.restore(coded, &mut self.out) {
            assert!(len <= PLAIN_MAX);
        }
    }

    /// A frame is a byte that says what it is, one or two of length, and what it is; one that repeats another says how far
    /// back, and which byte differs.
    fn pass(&mut self, choices: u8, mut data: &[u8]) {
        let coding = CODINGS[usize::from(choices) % CODINGS.len()];
        self.coder.begin(coding, 300 + usize::from(choices) * 10);
        let mut frames: Vec<(InnerHeader, Vec<u8>)> = Vec::new();
        while let [what, len, rest @ ..] = data {
            let repeats = what & 0x80 != 0 && !frames.is_empty();
            let (frame, used) = if repeats {
                let back = usize::from(*len & 0x0f) % frames.len();
                let (header, mut payload) = frames[frames.len() - 1 - back].clone();
                if let [at, to, ..] = *rest {
                    let at = usize::from(at) % payload.len();
                    payload[at] = to;
                }
                ((header, payload), rest.len().min(2))
            } else {
                let len = usize::from(*len)
                    .clamp(1, rest.len().max(1))
                    .min(rest.len());
                if len == 0 {
                    break;
                }
                let header = InnerHeader {
                    addresses: (what & 0x40 != 0).then_some((MacAddr([2; 6]), MacAddr([4; 6]))),
                    ether_type: TYPES[usize::from(*what & 7) % TYPES.len()],
                    offload: Offload::NONE,
                };
                ((header, rest[..len].to_vec()), len)
            };
            data = &rest[used..];
            let treatment = TREATMENTS[usize::from(what >> 4 & 3)];
            let promised = self.coder.room(treatment);
            let mut is_put = self.coder.put_frame(&frame.0, &frame.1, treatment);
            assert!(is_put || promised < frame.1.len() + 17);
            while !is_put && self.coder.make_room() {
                is_put = self.coder.put_frame(&frame.0, &frame.1, treatment);
            }
            if !is_put {
                break;
            }
            frames.push(frame);
        }
        let plain = match self.coder.finish() {
            Finished::Plain(plain) => plain,
            Finished::Coded(head, content) => {
                let coded = [&head.to_bytes(), content].concat();
                assert!(coded.len() <= 300 + usize::from(choices) * 10);
                let len = self.restorer.restore(&coded, &mut self.out);
                &self.out[..len.expect("what was coded is restored")]
            }
        };
        let mut rest = plain;
        for (header, payload) in &frames {
            let (subframe, len) = Subframe::parse(rest)
                .expect("a subframe")
                .expect("one more");
            let (header, payload) = (*header, &payload[..]);
            assert_eq!(subframe, Subframe::Frame { header, payload });
            rest = &rest[len..];
        }
        assert!(rest.is_empty());
    }
}

thread_local! {
    static BOTH: std::cell::RefCell<Both> = std::cell::RefCell::new(Both::new());
}

fuzz_target!(|data: &[u8]| {
    let [choices, rest @ ..] = data else {
        return;
    };
    BOTH.with_borrow_mut(|both| match choices & 1 {
        0 => both.restore(rest),
        _ => both.pass(choices >> 1, rest),
    });
});
