//! Which parts a sender has, and what it tells of itself.

use packtrain_proto::time::{Duration, Instant};

use super::super::pacer::SpacingConfig;
use super::super::scoreboard::Detection;

/// How a window comes down to what it is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reduction {
    /// It is that at once: nothing leaves until what is under way has come down to it.
    #[default]
    Halving,
    /// In proportion to what is delivered ([`super::super::prr`]).
    Prr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// Bytes of content of a segment.
    pub mss: u32,
    pub initial_window_segments: u32,
    /// Where slow start is to end, if something is known. A path that is remembered for spacing sets it, too.
    pub ssthresh_segments: Option<u32>,
    /// `None`: segments leave as fast as the interface takes them.
    pub spacing: Option<SpacingConfig>,
    /// It leaves at its part of what the path carries, by what all flows that do so have found out.
    pub auto: bool,
    /// The window is CUBIC's, out of slow start, and not Reno's.
    pub cubic: bool,
    /// Of CUBIC: while the window stays the same, for how many segments it grows by one is found out anew after so long, and not with
    /// each acknowledgement.
    pub cubic_holds: Option<Duration>,
    /// The window grows by acknowledgements, and not by what they acknowledge: with delayed ones by half as much in slow start, as
    /// before RFC 3465 (Linux before 2.6.14).
    pub counts_acknowledgements: bool,
    /// Of CUBIC: slow start ends before the queue is full.
    pub hystart: bool,
    pub detection: Detection,
    pub recovery: Reduction,
    /// A lost tail is found by a probe. It needs [`Detection::Rack`].
    pub tail_probe: bool,
    /// It asks for marks instead of losses, and understands them.
    pub ecn: bool,
    /// All changes of the window and of the interval are kept ([`super::Sender::windows`], [`super::super::pacer::Pacer::log`]):
    /// for as long as it lives, so not where it lives long.
    pub record: bool,
}

impl Default for SenderConfig {
    fn default() -> SenderConfig {
        SenderConfig {
            mss: 1460,
            initial_window_segments: 10,
            ssthresh_segments: None,
            spacing: None,
            auto: false,
            cubic: false,
            cubic_holds: None,
            counts_acknowledgements: false,
            hystart: false,
            detection: Detection::Sack,
            recovery: Reduction::Halving,
            tail_probe: false,
            ecn: false,
            record: true,
        }
    }
}

impl SenderConfig {
    /// As most hosts have it. Linux understands marks, but does not ask for them (`tcp_ecn` = 2).
    pub fn linux() -> SenderConfig {
        SenderConfig {
            cubic: true,
            // `HZ / 32`: as long as a window of a few segments waits for its next acknowledgements.
            cubic_holds: Some(Duration::from_nanos(1_000_000_000 / 32)),
            hystart: true,
            detection: Detection::Rack,
            recovery: Reduction::Prr,
            tail_probe: true,
            ..SenderConfig::default()
        }
    }

    /// # Panics
    /// If a part is there without one that it needs.
    pub(super) fn check(&self) {
        assert!(self.mss > 0, "segments without content");
        assert!(self.cubic || !self.hystart, "HyStart is a part of CUBIC");
        let rack = self.detection == Detection::Rack;
        assert!(rack || !self.tail_probe, "a tail probe needs RACK");
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments with data, those that went again included.
    pub segments: u64,
    pub retransmitted: u64,
    /// Times the window was cut for a loss that acknowledgements told of, or their absence before the timer expired.
    pub fast_recoveries: u64,
    /// Times the timer expired with data under way.
    pub timeouts: u64,
    /// Times the window was old after idleness.
    pub restarts: u64,
    /// Segments that were sent because nothing came.
    pub probes: u64,
    /// Times the window was cut for a loss that only a probe's acknowledgement told of.
    pub probes_repaired: u64,
    /// Times the window was cut for a mark.
    pub marks: u64,
}

impl core::ops::AddAssign for SenderCounters {
    fn add_assign(&mut self, other: SenderCounters) {
        self.segments += other.segments;
        self.retransmitted += other.retransmitted;
        self.fast_recoveries += other.fast_recoveries;
        self.timeouts += other.timeouts;
        self.restarts += other.restarts;
        self.probes += other.probes;
        self.probes_repaired += other.probes_repaired;
        self.marks += other.marks;
    }
}

/// The window at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub at: Instant,
    pub cwnd_bytes: u64,
    pub ssthresh_bytes: u64,
}
