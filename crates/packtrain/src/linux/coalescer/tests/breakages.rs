//! The checker, checked: each way in which the coalescer is made to seem broken must be noticed, each time, and by its
//! name.
//!
//! The saboteur alters what was written to the host, so what is tested has no hooks in it.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::checker::{Written, check};
use super::kernel_cut::folded_sum;
use super::{Recorder, give, segments_and_datagrams};

/// Rows of frames that a breakage may take to come to light.
const ROWS: usize = 300;

macro_rules! breakages {
    ($($(#[$doc:meta])* $name:ident => $($watcher:literal)|+,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Breakage { $($(#[$doc])* $name,)* }
        impl Breakage {
            const ALL: &'static [Breakage] = &[$(Breakage::$name,)*];

            /// What is said of it. More than one where it depends on what is hit.
            fn watchers(self) -> &'static [&'static str] {
                match self { $(Breakage::$name => &[$($watcher),+],)* }
            }
        }
    };
}

breakages! {
    /// Each datagram but the first begins a byte earlier than it did.
    BoundaryEarlier => "boundary",
    /// … or a byte later.
    BoundaryLater => "boundary",
    /// What follows of another flow is taken in as if it were of this one. A segment that pushes does so at the end
    /// of all then; and a datagram may be the very one that this flow has had before.
    FlowsMerged => "flow" | "TCP flags" | "order",
    ChecksumStartWrong => "a checksum that does not start at its protocol's header",
    ChecksumOffsetWrong => "a checksum that is not where its protocol has it",
    /// The sum so far, of the pseudo header, is another.
    PseudoHeaderWrong => "checksum",
    /// It goes out as if its checksum were finished.
    ChecksumLeftUnfinished => "a GSO frame with a finished checksum",
    /// The kind of the other protocol.
    KindWrong => "a GSO type that is not of its protocol"
        | "a checksum that is not where its protocol has it",
    /// Of datagrams that is another order.
    PayloadsSwapped => "payload" | "order",
    /// The one before it pushes in its place.
    LastOneLost => "lost" | "order" | "TCP flags" | "headers that leave nothing to cut",
    WrittenTwice => "order" | "invented",
    WrittenInAnotherOrder => "order",
    LengthOfTheFirst => "an IP packet of another length",
    HeaderChecksumOfTheFirst => "a wrong checksum of its IP header",
    /// Identifications go on from another one.
    IdentificationWrong => "identification",
    /// All push, or the last does not.
    PushWrong => "TCP flags",
    Finished => "TCP flags",
    /// What the network has said of its congestion is lost.
    CongestionMarkLost => "traffic class",
    SequenceWrong => "sequence",
}

/// One that was put together, with what its vnet header says.
struct Together<'a> {
    written: &'a mut Written,
    v4: bool,
    is_tcp: bool,
    transport: usize,
    payload: usize,
    size: usize,
}

impl Together<'_> {
    fn of(written: &mut Written) -> Option<Together<'_>> {
        let size = usize::from(u16::from_ne_bytes([written.header[4], written.header[5]]));
        if written.header[1] == 0 {
            return None;
        }
        let v4 = written.frame[12] == 8;
        let transport = if v4 { 34 } else { 54 };
        let is_tcp = written.frame[if v4 { 23 } else { 20 }] == 6;
        let payload = match is_tcp {
            true => transport + usize::from(written.frame[transport + 12] >> 4) * 4,
            false => transport + 8,
        };
        Some(Together {
            written,
            v4,
            is_tcp,
            transport,
            payload,
            size,
        })
    }

    fn add_to_header(&mut self, at: usize, more: i16) {
        let header = &mut self.written.header[at..at + 2];
        let value = u16::from_ne_bytes([header[0], header[1]]).wrapping_add_signed(more);
        header.copy_from_slice(&value.to_ne_bytes());
    }

    fn put(&mut self, at: usize, value: usize) {
        self.written.frame[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
    }

    fn word(&self, at: usize) -> usize {
        usize::from(u16::from_be_bytes([
            self.written.frame[at],
            self.written.frame[at + 1],
        ]))
    }

    /// Every length and checksum as the frame is now: this mistake is not the one that is to be found.
    fn mend(&mut self) {
        let len = self.written.frame.len();
        if self.v4 {
            self.put(16, len - 14);
            self.put(24, 0);
            let checksum = !folded_sum(&self.written.frame[14..34]) & 0xffff;
            self.put(24, checksum);
        } else {
            self.put(18, len - 54);
        }
        let (protocol, at) = if self.is_tcp { (6, 16) } else { (17, 6) };
        if !self.is_tcp {
            self.put(self.transport + 4, len - self.transport);
        }
        let addresses = if self.v4 { 26..34 } else { 22..54 };
        let length = ((len - self.transport) as u16).to_be_bytes();
        let pseudo = [&self.written.frame[addresses], &[0, protocol], &length].concat();
        self.put(self.transport + at, folded_sum(&pseudo));
    }

    /// Says whether anything is other than it was.
    fn sabotage(&mut self, breakage: Breakage) -> bool {
        let before = self.written.clone();
        let (transport, payload, size) = (self.transport, self.payload, self.size);
        let forbids_fragments = self.v4 && self.word(20) == 0x4000;
        match breakage {
            Breakage::BoundaryEarlier if size > 1 => self.add_to_header(4, -1),
            Breakage::BoundaryLater => self.add_to_header(4, 1),
            Breakage::ChecksumStartWrong => self.add_to_header(6, -2),
            Breakage::ChecksumOffsetWrong => self.add_to_header(8, 2),
            Breakage::PseudoHeaderWrong => {
                self.written.frame[transport + if self.is_tcp { 16 } else { 6 }] ^= 0x40;
            }
            Breakage::ChecksumLeftUnfinished => self.written.header[0] = 0,
            Breakage::KindWrong => {
                self.written.header[1] = match self.written.header[1] {
                    1 => 4,
                    4 => 5,
                    _ => 1,
                }
            }
            Breakage::PayloadsSwapped => {
                let (first, rest) = self.written.frame[payload..].split_at_mut(size);
                if rest.len() >= size {
                    first.swap_with_slice(&mut rest[..size]);
                }
            }
            Breakage::LastOneLost => {
                let bytes = self.written.frame.len() - payload;
                let last = (bytes - 1) % size + 1;
                self.written.frame.truncate(payload + bytes - last);
                self.mend();
            }
            Breakage::LengthOfTheFirst => {
                let (at, header) = if self.v4 { (16, 20) } else { (18, 0) };
                self.put(at, header + payload - transport + size);
                if self.v4 {
                    self.put(24, 0);
                    let checksum = !folded_sum(&self.written.frame[14..34]) & 0xffff;
                    self.put(24, checksum);
                }
            }
            Breakage::HeaderChecksumOfTheFirst if self.v4 => self.written.frame[24] ^= 1,
            Breakage::IdentificationWrong if self.v4 && !forbids_fragments => {
                self.put(18, self.word(18) + 1);
                self.mend();
            }
            Breakage::PushWrong if self.is_tcp => self.written.frame[transport + 13] ^= 0x08,
            Breakage::Finished if self.is_tcp => self.written.frame[transport + 13] |= 0x01,
            Breakage::CongestionMarkLost => {
                let (at, bits) = if self.v4 { (15, 0x03) } else { (15, 0x30) };
                self.written.frame[at] &= !bits;
                self.mend();
            }
            Breakage::SequenceWrong if self.is_tcp => self.written.frame[transport + 7] ^= 1,
            _ => {}
        }
        *self.written != before
    }
}

/// Once in a row, where it can be.
fn sabotage(breakage: Breakage, written: &mut Vec<Written>) -> bool {
    match breakage {
        Breakage::FlowsMerged => merge_flows(written),
        Breakage::WrittenTwice => {
            let again = written[written.len() / 2].clone();
            written.insert(written.len() / 2, again);
            true
        }
        Breakage::WrittenInAnotherOrder => {
            let last = written.len() - 1;
            written.swap(0, last);
            written[0].frame != written[last].frame
        }
        _ => written
            .iter_mut()
            .filter_map(Together::of)
            .any(|mut one| one.sabotage(breakage)),
    }
}

/// The first of two rows of different flows takes the second one's payload.
fn merge_flows(written: &mut Vec<Written>) -> bool {
    for at in 1..written.len() {
        let [one, two] = &mut written[at - 1..=at] else {
            unreachable!("two of them");
        };
        let (Some(mut one), Some(two)) = (Together::of(one), Together::of(two)) else {
            continue;
        };
        let flow = |of: &Together<'_>| of.written.frame[of.transport..][..4].to_vec();
        let alike = (one.v4, one.is_tcp) == (two.v4, two.is_tcp);
        let is_whole = (one.written.frame.len() - one.payload) % one.size == 0;
        let bytes = one.written.frame.len() + two.written.frame.len();
        // A mistake that the kernel would not take is no danger.
        let is_long = bytes > 60_000 || bytes > 100 * one.size;
        if !alike || !is_whole || is_long || flow(&one) == flow(&two) {
            continue;
        }
        let more = two.written.frame[two.payload..].to_vec();
        one.written.frame.extend(more);
        one.mend();
        written.remove(at);
        return true;
    }
    false
}

/// Rows of frames, and what was written of each.
fn rows() -> Vec<(Vec<Written>, Vec<Vec<u8>>)> {
    let mut runner = TestRunner::deterministic();
    let row = |_| {
        let tree = segments_and_datagrams().new_tree(&mut runner);
        let frames = tree.expect("nothing is filtered").current();
        let host = Recorder::default();
        give(&frames, 0, &host);
        let written = host.written.take();
        assert_eq!(check(&written, &frames), Ok(()), "without a breakage");
        (written, frames)
    };
    (0..ROWS).map(row).collect()
}

#[test]
fn every_breakage_is_noticed_each_time_and_by_its_name() {
    let rows = rows();
    let mut failures = Vec::new();
    for &breakage in Breakage::ALL {
        let name = |(written, frames): &(Vec<Written>, Vec<Vec<u8>>)| {
            let mut written = written.clone();
            let strikes = sabotage(breakage, &mut written);
            let noticed = strikes.then(|| check(&written, frames))?;
            Some(noticed.map_or_else(|wrong| wrong.what, |()| "nothing"))
        };
        let mut names: Vec<_> = rows.iter().filter_map(name).collect();
        let struck = names.len();
        names.sort_unstable();
        names.dedup();
        println!("{breakage:?}, {struck} times: {names:?}");
        let is_known = |name: &&str| breakage.watchers().contains(name);
        if struck < 10 || !names.iter().all(is_known) {
            failures.push(breakage);
        }
    }
    assert!(failures.is_empty(), "see above: {failures:?}");
}
