//! What a capture shows of its own wire: how much went over it at most.

use packtrain_proto::time::{Duration, Instant};

/// Long enough that one burst of a card is no rate.
pub const WINDOW: Duration = Duration::from_millis(100);

/// Frames of one direction, or of all; in windows of [`WINDOW`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    window: u64,
    frames: u64,
    wire_bytes: u64,
    frames_max: u64,
    wire_bytes_max: u64,
}

impl Peak {
    pub fn frame(&mut self, at: Instant, frames: u64, wire_bytes: u64) {
        let window = at.as_nanos() / WINDOW.as_nanos() as u64;
        if window != self.window {
            (self.window, self.frames, self.wire_bytes) = (window, 0, 0);
        }
        self.frames += frames;
        self.wire_bytes += wire_bytes;
        self.frames_max = self.frames_max.max(self.frames);
        self.wire_bytes_max = self.wire_bytes_max.max(self.wire_bytes);
    }

    pub fn packets_per_second(&self) -> u64 {
        self.frames_max * (1_000_000_000 / WINDOW.as_nanos() as u64)
    }

    pub fn bits_per_second(&self) -> u64 {
        8 * self.wire_bytes_max * (1_000_000_000 / WINDOW.as_nanos() as u64)
    }
}
