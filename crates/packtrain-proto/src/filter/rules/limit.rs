//! How much of what a rule matches passes.
//!
//! A token bucket: it fills at the rate, holds a burst, and a frame takes its size, or one, out of it. A frame that finds
//! too little is dropped, and takes nothing.

mod text;

pub use text::LimitTextError;

/// Fastest rate. Tokens of a second times a second's nanoseconds are below 2⁶⁴, so that whoever fills the bucket
/// multiplies in 64 bits. In bytes it is 144 Gbit/s.
pub const PER_SECOND_MAX: u64 = 18_000_000_000;
/// Largest burst.
pub const BURST_MAX: u64 = u32::MAX as u64;
/// Smallest burst in bytes: a full frame of Ethernet without its FCS. Under less, no such frame would ever pass.
pub const BURST_BYTES_MIN: u64 = 1514;
/// What a burst in packets is at least where nobody chose one: five, as nft and iptables have it, because what belongs
/// together comes together (a resolver's two questions, a few SYNs of a page) also where the rate is small.
const DEFAULT_PACKETS_MIN: u64 = 5;
/// … and in bytes: a jumbo frame, which would else never pass a slow limit, whatever the time.
const DEFAULT_BYTES_MIN: u64 = 9216;

/// A rate, and what may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    per_second: u64,
    unit: Unit,
    burst: u64,
    per: Per,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Packets,
    /// Of the frame, from the destination address on, without a checksum.
    Bytes,
}

/// Who shares a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// All that the rule matches.
    #[default]
    Rule,
    /// What comes from one IP address; all that is not IP together.
    Source,
}

/// Why a limit is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    #[error("a limit of nothing a second lets nothing pass: deny it")]
    Nothing,
    #[error("{0} a second are more than a limit can count: at most {PER_SECOND_MAX}; allow it")]
    TooFast(u64),
    #[error("a burst of 0 packets lets nothing pass: at least 1")]
    NoBurst,
    #[error("a burst of {0} bytes lets no full frame pass: at least {BURST_BYTES_MIN}")]
    SmallBurst(u64),
    #[error("a burst of {0} is too large: at most {BURST_MAX}")]
    LargeBurst(u64),
}

impl Limit {
    /// `burst`: `None` for a tenth of a second's worth, which is longer than frames take from an interrupt to the next, and
    /// shorter than anybody notices; and at least 5 packets or 9,216 bytes.
    pub fn new(
        per_second: u64,
        unit: Unit,
        burst: Option<u64>,
        per: Per,
    ) -> Result<Limit, LimitError> {
        if per_second == 0 {
            return Err(LimitError::Nothing);
        }
        if per_second > PER_SECOND_MAX {
            return Err(LimitError::TooFast(per_second));
        }
        let burst = burst.unwrap_or(default_burst(per_second, unit));
        match unit {
            Unit::Packets if burst == 0 => return Err(LimitError::NoBurst),
            Unit::Bytes if burst < BURST_BYTES_MIN => return Err(LimitError::SmallBurst(burst)),
            _ if burst > BURST_MAX => return Err(LimitError::LargeBurst(burst)),
            _ => {}
        }
        Ok(Limit {
            per_second,
            unit,
            burst,
            per,
        })
    }

    /// Packets or bytes.
    pub fn per_second(&self) -> u64 {
        self.per_second
    }

    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Packets or bytes that the bucket holds.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    pub fn per(&self) -> Per {
        self.per
    }
}

const _: () = assert!(PER_SECOND_MAX / 10 <= BURST_MAX, "a default is possible");
const _: () = assert!(PER_SECOND_MAX.checked_mul(1_000_000_000).is_some());

fn default_burst(per_second: u64, unit: Unit) -> u64 {
    let least = match unit {
        Unit::Packets => DEFAULT_PACKETS_MIN,
        Unit::Bytes => DEFAULT_BYTES_MIN,
    };
    (per_second / 10).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(per_second: u64, unit: Unit) -> u64 {
        Limit::new(per_second, unit, None, Per::Rule)
            .unwrap()
            .burst()
    }

    #[test]
    fn a_burst_is_a_tenth_of_a_second_and_at_least_what_comes_together() {
        assert_eq!(burst(1000, Unit::Packets), 100);
        assert_eq!(burst(1, Unit::Packets), 5);
        assert_eq!(burst(1_250_000, Unit::Bytes), 125_000);
        assert_eq!(burst(1000, Unit::Bytes), 9216);
        assert_eq!(burst(PER_SECOND_MAX, Unit::Bytes), 1_800_000_000);
    }

    #[test]
    fn what_limits_nothing_or_everything_is_refused() {
        let error = |per_second, unit, burst| {
            let limit = Limit::new(per_second, unit, burst, Per::Rule);
            limit.unwrap_err().to_string()
        };
        assert_eq!(
            error(0, Unit::Packets, None),
            "a limit of nothing a second lets nothing pass: deny it"
        );
        assert_eq!(
            error(18_000_000_001, Unit::Bytes, None),
            "18000000001 a second are more than a limit can count: at most 18000000000; allow it"
        );
        assert_eq!(
            error(9, Unit::Packets, Some(0)),
            "a burst of 0 packets lets nothing pass: at least 1"
        );
        assert_eq!(
            error(9, Unit::Bytes, Some(1513)),
            "a burst of 1513 bytes lets no full frame pass: at least 1514"
        );
        assert_eq!(
            error(9, Unit::Packets, Some(1 << 32)),
            "a burst of 4294967296 is too large: at most 4294967295"
        );
    }
}
