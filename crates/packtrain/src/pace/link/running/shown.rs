//! What it says of itself.

use super::super::PaceError;
use super::super::document::{KIND, LinkPacerDocument, SpacingDocument};
use super::super::plan::PlannedGap;
use super::RunningPacer;
use crate::linux::gap_qdisc::{self, Counters};
use crate::linux::host_state::Change;

/// Why HTB and nothing else: as measured, in docs/pacing.md.
const CARRIER_BECAUSE: &str =
    "it puts each gap behind its frame, where tbf puts it before the next; fq is not used";

impl RunningPacer {
    pub(super) fn document(&mut self) -> Result<LinkPacerDocument, PaceError> {
        let counters = gap_qdisc::counters(&mut self.netlink, self.ifindex)?;
        let counters = counters.ok_or_else(|| PaceError::TakenAway(self.name.clone()))?;
        let sent_bytes = self.netlink.transmit_bytes(self.ifindex)?;
        let rules = self.rule_documents()?;
        let gap = self.plan.gap;
        Ok(LinkPacerDocument {
            kind: KIND.into(),
            interface: self.name.clone(),
            known_as: self.settings.interface.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: Some(std::process::id()),
            undo: self.state.changes().iter().map(Change::to_string).collect(),
            spacing: gap.map(|gap| self.spacing_document(gap, counters, sent_bytes)),
            rules,
        })
    }

    fn spacing_document(
        &self,
        planned: PlannedGap,
        counters: Counters,
        sent_bytes: u64,
    ) -> SpacingDocument {
        let PlannedGap {
            asked,
            line,
            line_rate_source,
            gap,
        } = planned;
        let gso = self.plan.spacing.gso;
        SpacingDocument {
            carrier: "htb".into(),
            carrier_because: CARRIER_BECAUSE.into(),
            asked,
            gap_bytes: gap.bytes(),
            gap_ns: line.nanos(gap.bytes().into()),
            line_rate_bps: line.rate_bps,
            line_rate_source: line_rate_source.as_str().into(),
            mtu: line.mtu,
            payload_rate_bps: line.payload_rate_bps(gap),
            busy_factor: line.busy_factor(gap),
            gso: gso.as_str().into(),
            gso_because: self.settings.gso.because(gso).into(),
            burst_ns: self.settings.burst.as_nanos() as u64,
            queue_frames_max: self.settings.queue_frames_max,
            queue_frames: counters.queue_frames,
            queue_bytes: counters.queue_bytes,
            sent_frames: counters.sent_frames,
            sent_bytes: sent_bytes.saturating_sub(self.sent_bytes_before),
            dropped_frames: counters.dropped_frames,
        }
    }
}
