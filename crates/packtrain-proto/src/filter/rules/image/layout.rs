//! Where things stand in an image: the diagram is in [`super`].

use super::dimension::DIMENSIONS;
use super::{ENTRIES_MAX, IMAGE_WORDS_MAX, ROWS_MAX};
use crate::filter::rules::RULES_MAX;

/// Of this layout. It says which words are read how; who does not know it reads nothing.
pub const VERSION: u32 = 2;

/// Words of the header.
pub mod header {
    pub const VERSION: usize = 0;
    pub const WORDS: usize = 1;
    pub const DIMENSIONS: usize = 2;
    pub const ENTRIES: usize = 3;
    pub const ROW_WORDS: usize = 4;
    pub const ROWS: usize = 5;
    pub const ROW_COUNT: usize = 6;
    pub const VERDICTS: usize = 7;
    pub const LIMITS: usize = 8;
    pub const LIMIT_COUNT: usize = 9;
    /// [`super::DIMENSION_WORDS`] for each dimension.
    pub const DIMENSION: usize = 16;
}

/// Words of a dimension in the header.
pub mod place {
    /// Of a table or of a sorted list.
    pub const OFFSET: usize = 0;
    /// Of a table: the values less one.
    pub const MASK: usize = 1;
    /// References.
    pub const V4: usize = 0;
    pub const V6: usize = 1;
    /// The row of frames without such a value.
    pub const ABSENT: usize = 2;
}

/// Words of an IPv6 window.
pub mod window {
    /// 4 words each: bits before the window, and what they are.
    pub const MASK: usize = 0;
    pub const BASE: usize = 4;
    /// The window stands in the first (0) or in the last (1) 64 bits.
    pub const HALF: usize = 8;
    pub const SHIFT: usize = 9;
    pub const INDEX_MASK: usize = 10;
    /// The reference for addresses that begin otherwise.
    pub const OUTSIDE: usize = 11;
    pub const ROOT: usize = 12;
}

/// The number that a frame has in [`Dimension::Kinds`](super::Dimension::Kinds): a cast, and a bit each.
pub mod kind {
    pub const UNICAST: u32 = 0;
    pub const MULTICAST: u32 = 1;
    pub const BROADCAST: u32 = 2;
    /// Of a frame without a whole Ethernet header.
    pub const CAST_UNKNOWN: u32 = 3;
    pub const CAST_MASK: u32 = 3;
    pub const FRAGMENT: u32 = 1 << 2;
    /// SYN without ACK.
    pub const SYN: u32 = 1 << 3;
    /// TCP without payload.
    pub const EMPTY: u32 = 1 << 4;
    pub const COUNT: u32 = 1 << 5;
}

pub const DIMENSION_WORDS: usize = 4;
pub const HEADER_WORDS: usize = 80;
pub const LIMIT_WORDS: usize = 8;
/// Of those, the one that names the bucket.
pub const LIMIT_BUCKET: usize = 6;
/// Of a value in a sorted list, and of one in an IPv6 leaf.
pub const SORTED_WORDS: usize = 2;
pub const LEAF6_WORDS: usize = 5;
/// Most words of a row.
pub const ROW_WORDS_MAX: usize = ENTRIES_MAX / 64;

/// A reference with this bit is an offset, without it a row.
pub const REFERENCE_OFFSET: u32 = 1 << 31;
/// … and with this one too, that of an IPv6 window.
pub const REFERENCE_WINDOW: u32 = 1 << 30;
/// Windows one behind the other.
pub const WINDOWS_MAX: u32 = 3;
/// References of an IPv4 root: one for each of the first 16 bits.
pub const ROOT4_WORDS: usize = 1 << 16;
/// Largest root of an IPv6 window.
pub const ROOT6_BITS_MAX: u32 = 16;

/// Steps that find a place in any list: each leaves half of it, rounded up. Of 16 bits, and of as many as an image has room
/// for.
pub const STEPS_16: u32 = 16;
pub const STEPS: u32 = 19;

pub const VERDICT_ALLOW: u32 = 0;
pub const VERDICT_DENY: u32 = 1;
pub const VERDICT_LIMIT: u32 = 2;
pub const VERDICT_SHIFT: u32 = 14;
pub const VERDICT_LIMIT_SHIFT: u32 = 16;

const _: () = {
    assert!(header::LIMIT_COUNT < header::DIMENSION);
    assert!(header::DIMENSION + 16 * DIMENSION_WORDS == HEADER_WORDS);
    assert!(DIMENSIONS <= 16, "a place each");
    assert!(ENTRIES_MAX.is_multiple_of(64));
    assert!(IMAGE_WORDS_MAX.is_power_of_two(), "it is a mask");
    assert!(IMAGE_WORDS_MAX <= REFERENCE_WINDOW as usize);
    assert!(ROWS_MAX - 1 <= u16::MAX as usize);
    assert!(RULES_MAX <= 1 << VERDICT_SHIFT);
    assert!(window::ROOT == window::OUTSIDE + 1);
    assert!(IMAGE_WORDS_MAX / SORTED_WORDS <= 1 << STEPS);
};
