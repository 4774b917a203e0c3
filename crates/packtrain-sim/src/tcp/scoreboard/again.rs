//! What goes again (RFC 6675, section 4, NextSeg; by time, what is lost, from the first on).

use packtrain_proto::time::Instant;

use super::segments::Sent;
use super::{Detector, Part, Scoreboard};

impl Scoreboard {
    /// NextSeg's first rule: what is lost and goes again, of what was sent before `below`; by time, of all.
    pub fn lost(&mut self, below: u64) -> Option<Part> {
        if let Detector::Rack(by_time) = &mut self.detector {
            let number = by_time.next_to_resend(&self.segments)?;
            return self.segments.get(number).map(Sent::part);
        }
        let sent = self.first_to_resend(below)?;
        sent.lost.then(|| sent.part())
    }

    /// Its third rule: what is missing before something that came, though it does not count as lost yet.
    pub fn missing(&mut self, below: u64) -> Option<Part> {
        let Detector::Sack { .. } = &self.detector else {
            return None;
        };
        let end = self.sacked.end()?;
        let sent = self.first_to_resend(below)?;
        (sent.offset < end).then(|| sent.part())
    }

    fn first_to_resend(&mut self, below: u64) -> Option<Sent> {
        // What came since is not looked at again.
        self.resend_from = self.resend_from.max(self.segments.first());
        while self.segments.get(self.resend_from)?.sacked {
            self.resend_from += 1;
        }
        let sent = self.segments.get(self.resend_from);
        sent.filter(|sent| sent.offset < below).copied()
    }

    /// Its fourth: once in a recovery, the last segment that is missing, behind which nothing can come.
    pub fn rescue(&self) -> Option<Part> {
        match &self.detector {
            Detector::Sack { rescued: false, .. } => self.last_missing(),
            _ => None,
        }
    }

    /// The last segment that is missing.
    pub fn last_missing(&self) -> Option<Part> {
        let mut missing = self.segments.descending().filter(|sent| !sent.sacked);
        missing.next().map(Sent::part)
    }

    /// What [`Scoreboard::lost`], [`Scoreboard::missing`] or [`Scoreboard::last_missing`] has named goes again.
    pub fn resend(&mut self, part: Part, now: Instant) {
        let number = self.resend_any(part, now);
        let sent = self.segments.get_mut(number);
        self.pipe -= sent.share();
        sent.resent = true;
        self.pipe += sent.share();
        self.resend_from = number + 1;
        if let Detector::Rack(by_time) = &mut self.detector {
            by_time.resent(number, now);
        }
    }

    /// What [`Scoreboard::rescue`] has named goes again; it does not count as under way twice.
    pub fn resend_rescue(&mut self, part: Part, now: Instant) {
        self.resend_any(part, now);
        if let Detector::Sack { rescued, .. } = &mut self.detector {
            *rescued = true;
        }
    }

    fn resend_any(&mut self, part: Part, now: Instant) -> u64 {
        let number = self.segments.number(part.offset, self.mss);
        let sent = self.segments.get_mut(number);
        debug_assert_eq!(sent.part(), part);
        sent.at = now;
        sent.ambiguous = true;
        number
    }
}
