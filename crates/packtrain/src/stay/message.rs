//! What passes between a keeper, its daemon, and the one after.

use packtrain_proto::wire::ethernet::MacAddr;
use serde::{Deserialize, Serialize};

/// Of [`Asked`] and [`Answer`], and of how the TAP that is handed over is set up.
pub(super) const FORMAT: u32 = 1;

/// Of destinations, and of sources.
pub const PEERS_MAX: usize = 256;

/// From the daemon to the keeper that it has spawned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// All that there is to keep from now on. With it come the descriptors: of `pt0`, of the direct path, and of each guard.
    Keep(Kept),
    /// The daemon ends as somebody has asked it to: the log says nothing that is missed.
    Leaving,
    /// The daemon takes everything apart itself.
    End,
}

/// What a keeper keeps, beside the descriptors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub line: String,
    /// `pt0`'s.
    pub ifindex: u32,
    /// How long, when nobody comes.
    pub stay_s: u64,
    /// The `pt0`s of peers to which frames can go directly.
    pub destinations: Vec<[u8; 6]>,
    /// Where they go, for those to which they do not now.
    pub entries: Vec<EntryKept>,
    /// By which outer addresses direct frames of peers are known. Of a few hundred.
    pub sources: Vec<[u8; 6]>,
    pub words: Vec<WordKept>,
    pub guards: Vec<GuardKept>,
}

/// An entry of a map of the direct path, of this version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryKept {
    #[serde(with = "hex")]
    pub key: Vec<u8>,
    #[serde(with = "hex")]
    pub value: Vec<u8>,
}

/// What is to be said on a link in the place of the engine ([`packtrain_proto::engine::Word`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordKept {
    pub ifindex: u32,
    #[serde(with = "hex")]
    pub away: Vec<u8>,
    #[serde(with = "hex")]
    pub goodbye: Vec<u8>,
}

/// One guard, told from the next one of the same link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardKept {
    pub ifindex: u32,
    pub since_ns: u64,
}

/// From the next daemon, or `packtrain down`, to a keeper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Asked {
    /// Answered with `pt0`'s descriptor.
    TakeOver { format: u32 },
    /// Whoever took it over carries the frames now.
    LetGo,
    /// Undo everything. The connection ends when that is done.
    End,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Given {
        ifindex: u32,
        destinations: Vec<[u8; 6]>,
        sources: Vec<[u8; 6]>,
    },
    Refused {
        reason: String,
    },
}

impl Kept {
    pub(super) fn addresses(destinations: &[[u8; 6]]) -> Vec<MacAddr> {
        destinations.iter().copied().map(MacAddr).collect()
    }
}

/// Bytes as text that is half as long as a list of numbers.
mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        to.serialize_str(&digits.collect::<String>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let byte = |digits: &[u8]| {
            let digits = str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.ok_or_else(|| D::Error::custom("not bytes in hexadecimal digits"))
    }
}

pub(super) fn to_bytes(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("a message is plain JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fd_passing;
    use crate::settings::LINKS_MAX;

    #[test]
    fn the_most_that_a_line_keeps_fits_one_message() {
        let frame = vec![255; 1514];
        let word = WordKept {
            ifindex: u32::MAX,
            away: frame.clone(),
            goodbye: frame,
        };
        let entry = EntryKept {
            key: vec![255; 8],
            value: vec![255; 32],
        };
        let guard = GuardKept {
            ifindex: u32::MAX,
            since_ns: u64::MAX,
        };
        let kept = Told::Keep(Kept {
            line: "a-name-of-15-by".into(),
            ifindex: u32::MAX,
            stay_s: u64::MAX,
            destinations: vec![[255; 6]; PEERS_MAX],
            entries: vec![entry; PEERS_MAX],
            sources: vec![[255; 6]; PEERS_MAX],
            words: vec![word; LINKS_MAX],
            guards: vec![guard; LINKS_MAX],
        });
        let bytes = to_bytes(&kept);
        let (here, there) = fd_passing::pair().unwrap();
        fd_passing::send(&here, &bytes, &[]).unwrap();
        let message = fd_passing::receive(&there).unwrap().unwrap();
        let read: Told = serde_json::from_slice(&message.bytes).unwrap();
        assert_eq!(read, kept);
    }
}
