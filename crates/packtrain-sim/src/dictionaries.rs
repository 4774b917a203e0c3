//! What simulated hosts may have been given to compress payload with.

use std::sync::LazyLock;

use packtrain_proto::coding::dictionary::Dictionary;

/// One of those that a simulation has: whoever reads a train that is compressed with one has to try, for it does not say
/// with which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// What flows say whose content shrinks, in each order.
    Words,
    /// The same bytes, the last ones first.
    Backwards,
}

static WORDS: LazyLock<(Vec<u8>, Dictionary)> = LazyLock::new(|| with_bytes(words()));
static BACKWARDS: LazyLock<(Vec<u8>, Dictionary)> =
    LazyLock::new(|| with_bytes(words().into_iter().rev().collect()));

fn words() -> Vec<u8> {
    const WORDS: [&[u8]; 4] = [b"status: ", b"request ", b"0000001 ", b"\"name\": "];
    let pair = |n: usize| [WORDS[n / 4 % 4], WORDS[n % 4]].concat();
    (0..32).flat_map(pair).collect()
}

fn with_bytes(bytes: Vec<u8>) -> (Vec<u8>, Dictionary) {
    let dictionary = Dictionary::new(&bytes).expect("long enough, and of no format");
    (bytes, dictionary)
}

impl Known {
    pub const ALL: [Known; 2] = [Known::Words, Known::Backwards];

    fn both(self) -> &'static (Vec<u8>, Dictionary) {
        match self {
            Known::Words => &WORDS,
            Known::Backwards => &BACKWARDS,
        }
    }

    pub fn bytes(self) -> &'static [u8] {
        &self.both().0
    }

    pub fn dictionary(self) -> &'static Dictionary {
        &self.both().1
    }

    /// Which of them this one is.
    pub fn of(dictionary: &Dictionary) -> Option<Known> {
        let mut all = Known::ALL.into_iter();
        all.find(|known| known.dictionary() == dictionary)
    }
}
