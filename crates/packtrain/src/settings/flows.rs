//! How flows are told apart, and what each may take, as a person wants it.

use packtrain_proto::elephants::ELEPHANT_BYTES;

use crate::units::Bytes;

/// Less is no flow: a frame of one.
const ELEPHANT_BYTES_MIN: u64 = 1000;
const ELEPHANT_BYTES_MAX: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSettings {
    /// A flow that has sent more is an elephant.
    pub elephant_bytes: u32,
    /// Frames are marked rather than dropped whose senders understand that.
    pub ecn: bool,
}

impl Default for FlowSettings {
    fn default() -> FlowSettings {
        FlowSettings {
            elephant_bytes: ELEPHANT_BYTES,
            ecn: true,
        }
    }
}

/// Why a text is no number of bytes that makes an elephant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} does not say from how many bytes on a flow is an elephant: {least} to {most}", least = Bytes(ELEPHANT_BYTES_MIN), most = Bytes(ELEPHANT_BYTES_MAX))]
pub struct ElephantError(String);

pub fn parse_elephant_bytes(text: &str) -> Result<u32, ElephantError> {
    within(text, ELEPHANT_BYTES_MIN, ELEPHANT_BYTES_MAX)
        .map(|bytes| bytes as u32)
        .ok_or_else(|| ElephantError(text.into()))
}

fn within(text: &str, least: u64, most: u64) -> Option<u64> {
    let Bytes(bytes) = text.parse().ok()?;
    Some(bytes).filter(|bytes| (least..=most).contains(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_a_thousand_bytes_on_a_flow_may_be_an_elephant() {
        assert_eq!(parse_elephant_bytes("50000b"), Ok(ELEPHANT_BYTES));
        assert_eq!(parse_elephant_bytes("64kb"), Ok(65_536));
        assert_eq!(parse_elephant_bytes("1000b"), Ok(1000));
        assert_eq!(parse_elephant_bytes("1024mb"), Ok(1 << 30));
        for wrong in ["999b", "1025mb", "50000", "many", ""] {
            assert_eq!(
                parse_elephant_bytes(wrong).unwrap_err().to_string(),
                format!(
                    "{wrong:?} does not say from how many bytes on a flow is an elephant: 1000b to 1024mb"
                )
            );
        }
    }
}
