//! Trains that leave coded: they restore, to who takes such, and of a damaged one nothing comes out.

use packtrain_proto::time::Instant;

use super::{Checkers, inside};
use crate::frame::Frame;
use crate::simulator::StationId;
use crate::workload::identity::identify;

/// Coded trains that left, and how they were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodedTrains {
    pub trains: u64,
    pub deltas: u64,
    pub lz4_blocks: u64,
    /// Those that are compressed with a dictionary.
    pub by_dictionary: u64,
    pub zstandard_blocks: u64,
    pub mixed_blocks: u64,
}

impl Checkers {
    /// What an engine has coded must restore to what its checksum says, for who has only read the document. Gives
    /// the train as it was.
    pub(super) fn look_at_coding(
        &mut self,
        station: StationId,
        frame: &Frame,
        now: Instant,
    ) -> Vec<u8> {
        let restored = inside::restored(&frame.bytes);
        match &restored {
            None => {
                let text = format!("{station:?} sends a coded train that does not restore");
                self.object("unchanged", now, text);
            }
            Some(restored) => {
                self.coded.trains += 1;
                self.coded.deltas += restored.deltas as u64;
                self.coded.lz4_blocks += restored.lz4_blocks as u64;
                self.coded.by_dictionary += u64::from(restored.dictionary.is_some());
                self.coded.zstandard_blocks += restored.zstandard_blocks as u64;
                self.coded.mixed_blocks += restored.mixed_blocks as u64;
            }
        }
        inside::with_subframes(&frame.bytes, restored)
    }

    /// A coded train is damaged, and no FCS tells: nothing of it may come out.
    pub fn damaged(&mut self, frame: &Frame) {
        let starts = inside::starts(&frame.bytes);
        let frames = starts
            .iter()
            .filter_map(|start| identify(start, &self.flows));
        let items = inside::items(&frame.bytes);
        self.accounted.train_damaged(items, frames);
    }

    /// Frames that began in such trains.
    pub fn frames_damaged(&self) -> u64 {
        self.accounted.frames_damaged()
    }

    /// A host is sent a coded train that it cannot take: it takes none, or has not the dictionary that this one is
    /// compressed with.
    pub fn sent_coded_all_the_same(&mut self, station: StationId, coding: u8, now: Instant) {
        if !self.faults.alters {
            let text =
                format!("{station:?} takes no trains of coding {coding} so, and is sent one");
            self.object("addressee", now, text);
        }
    }
}
