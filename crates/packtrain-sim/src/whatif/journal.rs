//! What became of frames, in the order in which it did: what a replay writes down, and a ledger reads.

use packtrain_proto::time::Instant;

use super::results::WireLoad;

/// A frame that goes past engines, among those of its host: the how-manieth that left, from 0.
pub(super) type Number = u64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Record {
    /// From here on everything counts.
    Begins { at: Instant },
    /// A frame that is not counted any further: no host of packtrain's has sent it.
    NotReplayed,
    /// The frame with this number of the batch leaves its host, from 0.
    Sent {
        frame: u32,
        host: u32,
        at: Instant,
        /// Past the engine: it comes, or is lost, by its number.
        directly: bool,
    },
    /// A queue had no room for it.
    Refused { host: u32, number: Number },
    /// It has come by itself, past the engines.
    CameDirectly {
        from: u32,
        number: Number,
        at: Instant,
    },
    /// It has come by itself, from an engine.
    CamePlainly {
        from: u32,
        fingerprint: u64,
        at: Instant,
    },
    /// An engine gives it to its host, …
    Given { from: u32, fingerprint: u64 },
    /// … and all of those that were given share what has come for this host since.
    Shared {
        host: u32,
        cost: WireLoad,
        at: Instant,
    },
}

/// The records of a batch, those of what was under way from before among them.
#[derive(Debug, Default)]
pub struct Journal(pub(super) Vec<Record>);

impl Journal {
    pub(super) fn write(&mut self, record: Record) {
        self.0.push(record);
    }
}
