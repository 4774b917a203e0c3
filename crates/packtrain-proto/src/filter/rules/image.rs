//! Rules in the form in which a program in the kernel asks them: one array of words, read with loops that have an end.
//!
//! Bit vectors (T. V. Lakshman and D. Stiliadis, *High-speed policy-based packet forwarding using efficient multi-dimensional
//! range matching*, SIGCOMM 1998, section 4). A *dimension* is one thing that frames have, its source port say. All values
//! that the rules do not tell apart there have the same *row*: a bit for each rule, set where the rule lets
//! these values pass. A frame's value in each dimension gives a row, and the AND of the rows has the bits of the rules that
//! match; the first of them is the first rule. What that costs grows by a word for each 64 rules, and by nothing for
//! the addresses of a set: rows are told apart by what is asked, not by how often.
//!
//! A rule that asks for one of two ends (`host`, `port`) is an OR of dimensions, which rows do not have. It is two
//! *entries*: the one where the source is meant, and the one where the source is not and the destination is. So no
//! frame matches two entries of a rule, and who counts by entries counts each frame once. An entry has the bit, and
//! names its rule.
//!
//! ```text
//! word  0   VERSION
//!       1   words of the image
//!       2   dimensions in use, a bit each: the others need not be looked at
//!       3   entries
//!       4   W: words of 64 bits in a row
//!       5   where the rows are              rows · W · 2 words, the low half of 64 bits first; the first has all entries
//!       6   rows
//!       7   where the entries' verdicts are a word each:
//!                                              31        16 15  14 13        0
//!                                             +------------+------+-----------+
//!                                             |   limit    | kind |   rule    |  kind: 0 allow, 1 deny, 2 limit
//!                                             +------------+------+-----------+
//!       8   where the limits are            8 words each: rate, burst (64 bits, the low half first), unit (0 packets,
//!                                           1 bytes), per (0 rule, 1 source), bucket, 0
//!       9   limits
//!      10 … 15  0
//!      16 + 4·d  of dimension d (Dimension): two words by its shape, the row of frames that have no such value, 0
//!
//! table     | offset | mask   |   up to 16 bits: 2 rows a word, that of the even value in the low half
//! sorted    | offset | 0      |   48 bits: a count, and so often the least value and its row
//!                                 | value, low 32 bits | value, high 16 bits : row |
//! addresses | IPv4   | IPv6   |   a reference each: a row, or, with the top bit, the offset of
//!
//!   IPv4    65,536 references by the first 16 bits, each to a row or to a leaf:
//!           a count, and so often | the last 16 bits of the least address : row |
//!   IPv6    with the next bit too, a window (image/address6.rs), up to three one behind the other:
//!           | mask, 4 | base, 4 | half | shift | index mask | reference outside | references by window value … |
//!           without it, a leaf:
//!           a count, the row of the first, and for each that follows | the least address, 4 words, the first first | row |
//! ```
//!
//! What a frame has in each dimension, and when it has none, is what [`RuleFacts`](super::RuleFacts) says: addresses, protocol
//! and code point where the headers of IP and of the transport are whole; ports of TCP and UDP, but not of fragments; the
//! EtherType behind up to two tags, 0 where the frame ends before; the size in bytes, at most 65,535; MAC addresses as
//! numbers of 48 bits, the first octet the most significant; kinds as [`kind`] has them.
//!
//! A limit's *bucket* is what whoever runs the program gives it: the number of a bucket, or of sources, the number under
//! which theirs are kept. It is the limit's own number at first. So the buckets of a limit that stays when others change
//! stay too.
//!
//! A value's place in a sorted list is the last that is not above it; the first of each list is not above anything that is
//! looked for there, so that an IPv6 leaf does not say where it begins. All offsets are words from the start, and all that
//! they lead to is within the image. A program that has to show that masks what it reads by [`IMAGE_WORDS_MAX`] less one.

mod address4;
mod address6;
mod dimension;
mod entries;
mod layout;
mod read;
mod rows;
mod sweep;
#[cfg(test)]
mod tests;
mod write;

use super::name::RuleName;
use super::set::RuleSet;

pub use dimension::{DIMENSIONS, Dimension};
pub use layout::*;
pub use read::{Entry, EntryVerdict, LimitWords, Row};

/// Largest image: 4 MiB.
pub const IMAGE_WORDS_MAX: usize = 1 << 20;
/// Bits of a row. Rules have one each, or more where they ask for one of two ends.
pub const ENTRIES_MAX: usize = 1024;
/// A row is named by 16 bits.
pub const ROWS_MAX: usize = 1 << 16;

/// What [`RuleSet`] says, as words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    words: Vec<u32>,
}

/// Why there is no image of some rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error(
        "rule {0} is one too many: each host and port doubles a rule, and {ENTRIES_MAX} are possible; \
         write src or dst, sport or dport, where only one is meant"
    )]
    Entries(RuleName),
    #[error(
        "the rules tell more than {ROWS_MAX} groups of values apart, which is all that are possible: \
         put addresses that are treated alike into one set, or write fewer ranges"
    )]
    Rows,
    #[error(
        "the rules take {0} words, and at most {IMAGE_WORDS_MAX} are possible: \
         write fewer prefixes, or fewer rules that ask for different ones"
    )]
    Words(usize),
}

impl Image {
    pub fn compile(rules: &RuleSet) -> Result<Image, ImageError> {
        let words = write::write(rules)?;
        Ok(Image { words })
    }

    /// What the program reads, from the first word on.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Which word has the bucket of a limit.
    pub fn bucket_word(&self, limit: usize) -> usize {
        assert!(limit < self.limits());
        self.words[header::LIMITS] as usize + limit * LIMIT_WORDS + LIMIT_BUCKET
    }
}
