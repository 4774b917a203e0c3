//! What is done to frames so that a train carries more of them, as people write it: for a class, and for what no class
//! matches.

use std::fmt;
use std::str::FromStr;

use packtrain_proto::class::Compress;

/// How frames are coded in trains to peers that take such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CompressPolicy {
    /// Their headers are told apart from each other, and payload is compressed where that is worth it on the link.
    #[default]
    Auto,
    /// Their headers are told apart from each other, and no more.
    Headers,
    /// Nothing: they stand in their train as they are.
    Off,
}

impl CompressPolicy {
    pub const NAMES: &'static str = "auto, headers or off";

    pub fn as_str(self) -> &'static str {
        match self {
            CompressPolicy::Auto => "auto",
            CompressPolicy::Headers => "headers",
            CompressPolicy::Off => "off",
        }
    }
}

impl fmt::Display for CompressPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a text does not say what is compressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} does not say what is compressed: {names}", names = CompressPolicy::NAMES)]
pub struct CompressPolicyError(String);

impl FromStr for CompressPolicy {
    type Err = CompressPolicyError;

    fn from_str(text: &str) -> Result<CompressPolicy, CompressPolicyError> {
        use CompressPolicy::{Auto, Headers, Off};
        [Auto, Headers, Off]
            .into_iter()
            .find(|policy| policy.as_str() == text)
            .ok_or_else(|| CompressPolicyError(text.into()))
    }
}

impl From<CompressPolicy> for Compress {
    fn from(policy: CompressPolicy) -> Compress {
        match policy {
            CompressPolicy::Auto => Compress::Auto,
            CompressPolicy::Headers => Compress::Headers,
            CompressPolicy::Off => Compress::Off,
        }
    }
}

impl From<Compress> for CompressPolicy {
    fn from(compress: Compress) -> CompressPolicy {
        match compress {
            Compress::Auto => CompressPolicy::Auto,
            Compress::Headers => CompressPolicy::Headers,
            Compress::Off => CompressPolicy::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_has_one_name_everywhere() {
        for text in ["auto", "headers", "off"] {
            let policy: CompressPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
            assert_eq!(CompressPolicy::from(Compress::from(policy)), policy);
        }
        assert_eq!(
            "lz4".parse::<CompressPolicy>().unwrap_err().to_string(),
            "\"lz4\" does not say what is compressed: auto, headers or off"
        );
    }
}
