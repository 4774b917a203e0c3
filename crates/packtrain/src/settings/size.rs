//! By what the length of trains is chosen, as a person wants it.

use std::fmt;
use std::str::FromStr;

use packtrain_proto::config::SizeLaw;

/// As of a link's MTU: what trains need at least, and what a frame may have at most.
const BYTES_MIN: u16 = 256;
const BYTES_MAX: u16 = 65_521;

/// In words: `tcp`, `lemma`, `1500`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizePolicy(pub SizeLaw);

/// Why a text is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} does not say how long trains are: tcp, lemma, or {BYTES_MIN} to {BYTES_MAX} bytes")]
pub struct SizeError(String);

impl FromStr for SizePolicy {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<SizePolicy, SizeError> {
        let law = match text {
            "tcp" => SizeLaw::Tcp,
            "lemma" => SizeLaw::Lemma,
            text => {
                let bytes = text.parse().ok();
                let known = bytes.filter(|bytes| (BYTES_MIN..=BYTES_MAX).contains(bytes));
                SizeLaw::Fixed(known.ok_or_else(|| SizeError(text.into()))?)
            }
        };
        Ok(SizePolicy(law))
    }
}

impl fmt::Display for SizePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SizeLaw::Tcp => f.pad("tcp"),
            SizeLaw::Lemma => f.pad("lemma"),
            SizeLaw::Fixed(bytes) => f.pad(&bytes.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_or_bytes_that_trains_can_have() {
        for text in ["tcp", "lemma", "256", "1500", "65521"] {
            let policy: SizePolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
        }
        assert_eq!("1500".parse(), Ok(SizePolicy(SizeLaw::Fixed(1500))));
        for wrong in ["", "udp", "255", "65522", "9 kB", "-1"] {
            assert_eq!(
                wrong.parse::<SizePolicy>().unwrap_err().to_string(),
                format!(
                    "{wrong:?} does not say how long trains are: tcp, lemma, or 256 to 65521 bytes"
                )
            );
        }
    }
}
