//! How flows are told apart, and what each may take, as a person wants it.

use packtrain_proto::config::FLOW_QUEUE_BYTES_MAX;
use packtrain_proto::elephants::ELEPHANT_BYTES;

use crate::units::Bytes;

/// Less is no flow: a frame of one.
const ELEPHANT_BYTES_MIN: u64 = 1000;
const ELEPHANT_BYTES_MAX: u64 = 1 << 30;

/// One GSO frame leaves while the next one waits; and what all together may have waiting.
const FLOW_QUEUE_MIN: u64 = 128 << 10;
const FLOW_QUEUE_MAX: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSettings {
    /// A flow that has sent more is an elephant.
    pub elephant_bytes: u32,
    /// Frames are marked rather than dropped whose senders understand that.
    pub ecn: bool,
    pub queue: FlowQueue,
    /// Frames of flows that are no elephants go before those of others.
    pub short_first: bool,
}

/// Bytes that one flow may have waiting; `None`: as many as all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowQueue(pub Option<usize>);

impl Default for FlowQueue {
    fn default() -> FlowQueue {
        FlowQueue(Some(FLOW_QUEUE_BYTES_MAX))
    }
}

impl Default for FlowSettings {
    fn default() -> FlowSettings {
        FlowSettings {
            elephant_bytes: ELEPHANT_BYTES,
            ecn: true,
            queue: FlowQueue::default(),
            short_first: false,
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

/// Why a text is no bound of a flow's queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} does not say how much one flow may have waiting: none, or {least} to {most}", least = Bytes(FLOW_QUEUE_MIN), most = Bytes(FLOW_QUEUE_MAX))]
pub struct FlowQueueError(String);

pub fn parse_flow_queue(text: &str) -> Result<FlowQueue, FlowQueueError> {
    if text == "none" {
        return Ok(FlowQueue(None));
    }
    within(text, FLOW_QUEUE_MIN, FLOW_QUEUE_MAX)
        .map(|bytes| FlowQueue(Some(bytes as usize)))
        .ok_or_else(|| FlowQueueError(text.into()))
}

fn within(text: &str, least: u64, most: u64) -> Option<u64> {
    let Bytes(bytes) = text.parse().ok()?;
    Some(bytes).filter(|bytes| (least..=most).contains(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_may_have_two_large_frames_waiting_at_least() {
        let of = |text| parse_flow_queue(text).map(|FlowQueue(bytes)| bytes);
        assert_eq!(of("none"), Ok(None));
        assert_eq!(of("128kb"), Ok(Some(131_072)));
        assert_eq!(of("16mb"), Ok(Some(16 << 20)));
        assert_eq!(parse_flow_queue("8mb"), Ok(FlowQueue::default()));
        for wrong in ["127kb", "17mb", "1000", "all"] {
            assert_eq!(
                parse_flow_queue(wrong).unwrap_err().to_string(),
                format!(
                    "{wrong:?} does not say how much one flow may have waiting: none, or 128kb to 16mb"
                )
            );
        }
    }

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
