//! The gap behind each frame of an interface (section 3 of the CPS paper): bytes, time and rate, and what a shaper is to
//! charge for a frame so that this gap follows it.
//!
//! ```text
//!        ┌──────────┬──────────────────────────────┬─────┬─────────────────────┐
//!  wire  │ preamble │ header, payload, padding     │ FCS │ gap                 │ preamble …
//!        └──────────┴──────────────────────────────┴─────┴─────────────────────┘
//! bytes       8       the frame's length, 60 at least  4    12 at least (802.3)
//! ```
//! A *gap* here is what is really idle between the last bit of an FCS and the first one of the next preamble, in byte times of
//! the interface's line rate. The paper's driver has a register for it that counts 4 less: its default of 8 is the standard's 12,
//! its largest, 1023, is 1027 on the wire.
//!
//! A shaper of the kernel knows a frame's length and adds a constant to it, its *overhead*: preamble, FCS and gap. It has 16
//! bits for that. A larger gap takes a lower rate of the shaper's as well ([`Line::charge`]).

/// Preamble with its start delimiter, and FCS.
pub const AROUND_LEN: u32 = 8 + 4;
/// Header and payload of the shortest frame.
pub const FRAME_LEN_MIN: u32 = 60;
const HEADER_LEN: u32 = 14;
/// IPv4 and TCP with time stamps, which each segment of a GSO frame has.
const SEGMENT_HEADERS_LEN: u32 = 20 + 32;

/// IEEE 802.3.
pub const GAP_BYTES_MIN: u32 = 12;
/// 80 ms at 10 Gbit/s.
pub const GAP_BYTES_MAX: u32 = 100_000_000;

/// What the paper's register may hold, and what it counts less than is on the wire.
pub const REGISTER_MIN: u32 = 8;
pub const REGISTER_MAX: u32 = 1023;
const REGISTER_COUNTS_LESS: u32 = 4;

/// What a shaper adds to each length has 16 bits, with the shortest frame's own 60 bytes.
const OVERHEAD_MAX: u32 = u16::MAX as u32 - FRAME_LEN_MIN;

/// Idle bytes between two frames on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap(u32);

/// Why there is no such gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GapError {
    #[error(
        "a gap of {bytes} bytes is less than Ethernet's own: {GAP_BYTES_MIN} at least on the wire"
    )]
    TooSmall { bytes: u64 },
    #[error("a gap of {bytes} bytes is too large: at most {GAP_BYTES_MAX}")]
    TooLarge { bytes: u64 },
    #[error("{value} is no value of the register: {REGISTER_MIN} to {REGISTER_MAX}")]
    NoRegister { value: u32 },
    #[error(
        "full-size frames carry {most_bps} bit/s of IP packets at most on a line of {line_rate_bps} bit/s, which is less than {rate_bps}"
    )]
    RateTooLarge {
        rate_bps: u64,
        most_bps: u64,
        line_rate_bps: u64,
    },
}

impl Gap {
    pub fn of_bytes(bytes: u64) -> Result<Gap, GapError> {
        if bytes < GAP_BYTES_MIN.into() {
            return Err(GapError::TooSmall { bytes });
        }
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= GAP_BYTES_MAX => Ok(Gap(bytes)),
            _ => Err(GapError::TooLarge { bytes }),
        }
    }

    /// What the paper's driver leaves with this value in its register.
    pub fn of_register(value: u32) -> Result<Gap, GapError> {
        if !(REGISTER_MIN..=REGISTER_MAX).contains(&value) {
            return Err(GapError::NoRegister { value });
        }
        Ok(Gap(value + REGISTER_COUNTS_LESS))
    }

    pub fn bytes(self) -> u32 {
        self.0
    }
}

/// An interface as a wire sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// At which its bits leave.
    pub rate_bps: u64,
    /// Payload bytes of its largest frame.
    pub mtu: u32,
}

/// What a shaper of a rate spends on a frame: its length and so many bytes more, and on a short one as on one of 60.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    pub rate_bps: u64,
    pub overhead: u16,
    /// Charged at least.
    pub least: u16,
}

impl Line {
    /// Header and payload of a full-size frame.
    pub fn full_len(self) -> u32 {
        self.mtu + HEADER_LEN
    }

    /// Nanoseconds that so many bytes take.
    pub fn nanos(self, bytes: u64) -> u64 {
        let bits = u128::from(bytes) * 8;
        saturate(div_round(bits * 1_000_000_000, self.rate_bps.into()))
    }

    /// The gap of at least so long.
    pub fn gap_of_nanos(self, nanos: u64) -> Result<Gap, GapError> {
        let bits = u128::from(nanos) * u128::from(self.rate_bps);
        Gap::of_bytes(saturate(bits.div_ceil(8_000_000_000)))
    }

    /// Bits of IP packets a second that full-size frames with this gap carry. Smaller ones carry less.
    pub fn payload_rate_bps(self, gap: Gap) -> u64 {
        let bits = u128::from(self.rate_bps) * u128::from(self.mtu);
        saturate(bits / self.full_bytes(gap))
    }

    /// The smallest gap with which no more than so many bits of IP packets a second leave.
    pub fn gap_of_payload_rate(self, rate_bps: u64) -> Result<Gap, GapError> {
        let most_bps = self.payload_rate_bps(Gap(GAP_BYTES_MIN));
        if rate_bps > most_bps || rate_bps == 0 {
            return Err(GapError::RateTooLarge {
                rate_bps,
                most_bps,
                line_rate_bps: self.rate_bps,
            });
        }
        let bits = u128::from(self.rate_bps) * u128::from(self.mtu);
        let bytes = bits.div_ceil(rate_bps.into());
        let frame = u128::from(self.full_len() + AROUND_LEN);
        Gap::of_bytes(saturate(bytes.saturating_sub(frame)).max(GAP_BYTES_MIN.into()))
    }

    /// How many times as long the interface is busy with full-size frames, in the paper's words.
    pub fn busy_factor(self, gap: Gap) -> f64 {
        (f64::from(gap.0) + f64::from(self.mtu)) / f64::from(self.mtu.max(1))
    }

    /// What a shaper has to charge, so that its time is that of the frame with all that is around it and the gap. Exact up
    /// to gaps of 65,463 bytes. Beyond, the shaper runs at a fraction of the line's rate, which makes up for what the overhead
    /// cannot hold: exact for full-size frames, and shorter ones are followed by less, by 2.3 % at most with an MTU of 1500.
    pub fn charge(self, gap: Gap) -> Charge {
        let full = u128::from(self.full_len());
        let bytes = self.full_bytes(gap);
        let fraction = bytes.div_ceil(full + u128::from(OVERHEAD_MAX)).max(1);
        let overhead = div_round(bytes, fraction).saturating_sub(full);
        let overhead = overhead.min(OVERHEAD_MAX.into()) as u16;
        Charge {
            rate_bps: saturate(u128::from(self.rate_bps) / fraction),
            overhead,
            least: overhead + FRAME_LEN_MIN as u16,
        }
    }

    /// Of a full-size frame, with all that is around it and the gap.
    fn full_bytes(self, gap: Gap) -> u128 {
        u128::from(self.full_len() + AROUND_LEN) + u128::from(gap.0)
    }
}

impl Charge {
    /// Nanoseconds that a frame of `len` bytes takes, with the gap behind it.
    pub fn nanos(self, len: u32) -> u64 {
        let bytes = (u64::from(len) + u64::from(self.overhead)).max(self.least.into());
        Line {
            rate_bps: self.rate_bps,
            mtu: 0,
        }
        .nanos(bytes)
    }
}

/// How long frames count, where a GSO frame leaves whole: as long as all that its segments take together.
///
/// A shaper adds the overhead once to each frame that it sees. The table adds it for the other segments, and their headers; the
/// lengths of frames that one segment is are left as they are, so that what stands in the queue is told in its own bytes.
/// Segments are not known from a length: they are taken for TCP's over IPv4 with time stamps, as large as the MTU allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeTable {
    /// Entries are in units of 2 to the power of this.
    pub size_log: u8,
    /// Of lengths 0 and 1, 2 and 3, and so on.
    pub entries: Vec<u16>,
}

impl SizeTable {
    /// Two lengths share an entry.
    pub const CELL_LOG: u8 = 1;
    /// As many as an attribute of netlink holds. Longer frames count as the last one and a small frame.
    pub const ENTRIES: usize = 32_700;

    pub fn of(charge: Charge, mtu: u32) -> SizeTable {
        let counted = |cell: usize| counted_len((cell << Self::CELL_LOG) as u32, charge, mtu);
        let most = counted(Self::ENTRIES - 1);
        let size_log = (0..=30).find(|log| most >> log <= u16::MAX.into());
        let size_log = size_log.expect("44 segments with 65,535 bytes each are 2^22");
        let half = (1u32 << size_log) / 2;
        let entries = (0..Self::ENTRIES).map(|cell| ((counted(cell) + half) >> size_log) as u16);
        SizeTable {
            size_log,
            entries: entries.collect(),
        }
    }

    /// What the kernel makes of a length (`__qdisc_calculate_pkt_len` of net/sched/sch_api.c).
    pub fn counted(&self, len: u32) -> u32 {
        let cell = (len >> Self::CELL_LOG) as usize;
        let entries = self.entries.len();
        let counted = match self.entries.get(cell) {
            Some(counted) => u32::from(*counted),
            None => {
                let rest = u32::from(self.entries[cell % entries]);
                u32::from(self.entries[entries - 1]) * (cell / entries) as u32 + rest
            }
        };
        (counted << self.size_log).max(1)
    }
}

fn counted_len(len: u32, charge: Charge, mtu: u32) -> u32 {
    let more = segments(len, mtu) - 1;
    let headers = HEADER_LEN + SEGMENT_HEADERS_LEN;
    len + more * (headers + u32::from(charge.overhead))
}

/// Of a frame of so many bytes, that is cut where it is longer than the MTU allows.
pub fn segments(len: u32, mtu: u32) -> u32 {
    let largest = mtu + HEADER_LEN;
    let headers = HEADER_LEN + SEGMENT_HEADERS_LEN;
    match len <= largest || largest <= headers {
        true => 1,
        false => (len - headers).div_ceil(largest - headers),
    }
}

fn div_round(dividend: u128, divisor: u128) -> u128 {
    let divisor = divisor.max(1);
    (dividend + divisor / 2) / divisor
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIGABIT: Line = Line {
        rate_bps: 1_000_000_000,
        mtu: 1500,
    };

    fn gap(bytes: u64) -> Gap {
        Gap::of_bytes(bytes).unwrap()
    }

    /// Time of a frame and of the gap behind it, written out.
    fn obvious_nanos(line: Line, len: u32, gap: Gap) -> f64 {
        let mut bytes = 0.0;
        for part in [8, len.max(60), 4, gap.bytes()] {
            bytes += f64::from(part);
        }
        bytes * 8.0 * 1e9 / line.rate_bps as f64
    }

    #[test]
    fn the_registers_values_are_on_the_wire_what_they_count_and_four_more() {
        let bytes = |value| Gap::of_register(value).map(Gap::bytes);
        assert_eq!(bytes(8), Ok(12));
        assert_eq!(bytes(1023), Ok(1027));
        assert_eq!(bytes(7), Err(GapError::NoRegister { value: 7 }));
        assert_eq!(bytes(1024), Err(GapError::NoRegister { value: 1024 }));
    }

    #[test]
    fn what_no_gap_can_be_is_told() {
        let error = Gap::of_bytes(11).unwrap_err().to_string();
        assert_eq!(
            error,
            "a gap of 11 bytes is less than Ethernet's own: 12 at least on the wire"
        );
        let error = Gap::of_bytes(u64::MAX).unwrap_err();
        assert!(matches!(error, GapError::TooLarge { .. }));
    }

    #[test]
    fn the_papers_rate_is_a_gap_of_979_bytes_of_a_gigabit() {
        // 599 Mbit/s of IP packets: 1500 bytes in 2504.2 byte times, of which the frame takes 1526.
        let gap = GIGABIT.gap_of_payload_rate(599_000_000).unwrap();
        assert_eq!(gap.bytes(), 979);
        assert!(GIGABIT.payload_rate_bps(gap) <= 599_000_000);
        assert_eq!(GIGABIT.nanos(979), 7832);
        assert_eq!(GIGABIT.gap_of_nanos(4000).unwrap().bytes(), 500);
        assert_eq!(GIGABIT.busy_factor(super::Gap(1500)), 2.0);
        let error = GIGABIT.gap_of_payload_rate(980_000_000).unwrap_err();
        assert_eq!(
            error.to_string(),
            "full-size frames carry 975292587 bit/s of IP packets at most on a line of 1000000000 bit/s, which is less than 980000000"
        );
    }

    #[test]
    fn a_frame_alone_counts_as_its_length_and_a_gso_frame_as_its_segments() {
        let charge = GIGABIT.charge(gap(1027));
        let table = SizeTable::of(charge, 1500);
        assert_eq!(table.size_log, 1);
        assert_eq!(table.counted(1514), 1514);
        assert_eq!(table.counted(60), 60);
        // Two full segments: 2 × 1448 bytes of payload.
        assert_eq!(table.counted(66 + 2 * 1448), 2 * 1514 + 1039 + 1);
    }

    #[test]
    fn segments_are_as_many_as_tcp_would_send() {
        let tcp = |payload: u32| segments(66 + payload, 1500);
        assert_eq!([tcp(0), tcp(1), tcp(1448), tcp(1449)], [1, 1, 1, 2]);
        assert_eq!(tcp(45 * 1448), 45);
        assert_eq!(segments(9014, 9000), 1);
        // An MTU below the headers: nobody knows.
        assert_eq!(segments(9014, 52), 1);
    }

    proptest! {
        #[test]
        fn a_charge_is_the_time_on_the_wire(
            rate_bps in 1_000_000u64..=100_000_000_000, mtu in 500u32..=9000,
            bytes in 12u64..=65_463, len in 14u32..=9014,
        ) {
            let line = Line { rate_bps, mtu };
            let charge = line.charge(gap(bytes));
            prop_assert_eq!(charge.rate_bps, rate_bps);
            let is = charge.nanos(len) as f64;
            prop_assert!((is - obvious_nanos(line, len, gap(bytes))).abs() <= 1.0);
        }

        #[test]
        fn a_gap_that_is_too_large_for_the_overhead_is_exact_for_full_size_frames(
            mtu in 500u32..=9000, bytes in 65_464u64..=100_000_000, len in 60u32..=9014,
        ) {
            let line = Line { rate_bps: 10_000_000_000, mtu };
            let charge = line.charge(gap(bytes));
            let of = |len| (charge.nanos(len) as f64, obvious_nanos(line, len, gap(bytes)));
            let (is, wanted) = of(line.full_len());
            prop_assert!((is / wanted - 1.0).abs() < 1e-4, "{} {}", is, wanted);
            let (is, wanted) = of(len.min(line.full_len()));
            let short = f64::from(line.full_len()) / 65_475.0;
            prop_assert!(is <= wanted * 1.0001 && is >= wanted * (0.9999 - short), "{} {}", is, wanted);
        }

        #[test]
        fn a_rate_is_kept_and_nearly_used(
            rate_bps in 10_000_000u64..=100_000_000_000, mtu in 100u32..=9000, share in 0.001f64..0.97,
        ) {
            let line = Line { rate_bps, mtu };
            let most = line.payload_rate_bps(gap(12));
            let wanted = (most as f64 * share) as u64;
            let gap = line.gap_of_payload_rate(wanted).unwrap();
            prop_assert!(line.payload_rate_bps(gap) <= wanted);
            // One byte less would be too fast.
            if let Ok(less) = Gap::of_bytes(u64::from(gap.bytes()) - 1) {
                prop_assert!(line.payload_rate_bps(less) >= wanted);
            }
        }

        #[test]
        fn time_and_bytes_are_the_same_gap(rate_bps in 1_000_000u64..=1_000_000_000, bytes in 12u64..=1_000_000) {
            let line = Line { rate_bps, mtu: 1500 };
            let back = line.gap_of_nanos(line.nanos(bytes)).unwrap().bytes();
            prop_assert!(u64::from(back).abs_diff(bytes) <= 1);
        }

        #[test]
        fn a_gso_frame_takes_as_long_as_its_segments(
            mtu in 1000u32..=9000, bytes in 12u64..=65_463, payload in 1u32..=65_400 - 66,
        ) {
            let line = Line { rate_bps: 1_000_000_000, mtu };
            let charge = line.charge(gap(bytes));
            let table = SizeTable::of(charge, mtu);
            let largest = mtu - 52;
            let (full, rest) = (payload / largest, payload % largest);
            let mut wanted = f64::from(full) * obvious_nanos(line, 66 + largest, gap(bytes));
            if rest > 0 {
                wanted += obvious_nanos(line, 66 + rest, gap(bytes));
            }
            let is = charge.nanos(table.counted(66 + payload)) as f64;
            // A cell of the table has several lengths: of some of them the last segment, of a few bytes, is one more or less.
            let few = obvious_nanos(line, 67, gap(bytes));
            prop_assert!((is - wanted).abs() < 0.002 * wanted + few, "{} {}", is, wanted);
        }
    }
}
