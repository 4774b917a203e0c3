//! How fast the wire is: as was asked for, or that of the capture, as far as it tells.

use std::collections::HashMap;
use std::path::Path;

use packtrain_proto::time::Instant;
use packtrain_sim::whatif::peak::Peak;
use serde::Serialize;

use super::WhatifArguments;
use super::progress::Progress;
use crate::capture_file::{CaptureFile, Frame};

/// Where nothing is said of the wire.
const DEFAULT_BPS: u64 = 1_000_000_000;
/// What Ethernet has, Mbit/s.
const USUAL_MBPS: [u64; 8] = [10, 100, 1000, 2500, 10_000, 25_000, 40_000, 100_000];
/// Senders of which the busiest is looked for.
const SENDERS_MAX: usize = 1024;
/// Ethernet spends so much on a frame beside its bytes; one that a card cuts has headers again in each segment.
const OVERHEAD_BYTES: usize = 24;
const FRAME_BYTES: std::ops::Range<usize> = 60..1514;
const HEADERS_BYTES: usize = 54;

/// Bits a second, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// `None`: as fast as it is fed.
    pub bps: Option<u64>,
    pub source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The command line, be it that there is no rate beside a packet cap.
    Asked,
    /// The interface of the capture.
    Interface,
    /// The least usual one that the busiest tenth of a second fits into.
    Peak,
    Default,
}

impl Rate {
    fn new(bps: u64, source: Source) -> Rate {
        Rate {
            bps: Some(bps),
            source,
        }
    }

    /// What is known before the capture is replayed. A file is read for it, if nothing else tells; a pipe cannot be read twice.
    pub fn before(arguments: &WhatifArguments) -> Rate {
        match (arguments.rate, arguments.packets_per_second) {
            (None, None) => of_file(&arguments.capture),
            (rate, _) => Rate {
                bps: rate.map(|rate| rate.0),
                source: Source::Asked,
            },
        }
    }

    /// … and with its first frame.
    pub fn with_first(&mut self, frame: &Frame<'_>) {
        if let (Source::Default, Some(bps)) = (self.source, frame.speed_bps) {
            *self = Rate::new(bps, Source::Interface);
        }
    }
}

fn of_file(path: &Path) -> Rate {
    let default = Rate::new(DEFAULT_BPS, Source::Default);
    if !path.metadata().is_ok_and(|of| of.is_file()) {
        return default;
    }
    // What is wrong with it is told when it is replayed.
    let Ok(mut capture) = CaptureFile::open(path) else {
        return default;
    };
    let mut peaks: HashMap<[u8; 6], Peak> = HashMap::new();
    let mut progress = Progress::new("looked at");
    let mut is_first = true;
    while let Ok(Some(frame)) = capture.next_frame() {
        if std::mem::take(&mut is_first)
            && let Some(bps) = frame.speed_bps
        {
            return Rate::new(bps, Source::Interface);
        }
        progress.read(frame.number);
        let source = frame
            .bytes
            .get(6..12)
            .and_then(|source| source.try_into().ok());
        let (Some(source), Some(at)) = (source, frame.at) else {
            continue;
        };
        if peaks.len() < SENDERS_MAX || peaks.contains_key(&source) {
            let at = Instant::from_nanos(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
            let (frames, bytes) = on_the_wire(frame.len_on_wire);
            peaks.entry(source).or_default().frame(at, frames, bytes);
        }
    }
    progress.ends();
    let busiest = peaks.values().map(Peak::bits_per_second).max();
    match busiest {
        Some(busiest) => Rate::new(usual_above(busiest), Source::Peak),
        None => default,
    }
}

/// Frames and bytes, as good as they are known without a look into it.
fn on_the_wire(len: usize) -> (u64, u64) {
    let frames = len.div_ceil(FRAME_BYTES.end).max(1);
    let headers = (frames - 1) * HEADERS_BYTES;
    let bytes = len.max(FRAME_BYTES.start) + headers + frames * OVERHEAD_BYTES;
    (frames as u64, bytes as u64)
}

fn usual_above(bps: u64) -> u64 {
    let mut usual = USUAL_MBPS.into_iter().map(|mbps| mbps * 1_000_000);
    usual.find(|&usual| bps <= usual).unwrap_or(bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_rounded_up_to_what_ethernet_has() {
        let told = [
            0,
            10_000_000,
            10_000_001,
            999_999_999,
            2_000_000_000,
            200_000_000_000,
        ];
        let usual = [
            10_000_000,
            10_000_000,
            100_000_000,
            1_000_000_000,
            2_500_000_000,
            200_000_000_000,
        ];
        assert_eq!(told.map(usual_above), usual);
    }

    #[test]
    fn a_frame_that_a_card_cuts_is_several() {
        assert_eq!(on_the_wire(42), (1, 84));
        assert_eq!(on_the_wire(1514), (1, 1538));
        assert_eq!(on_the_wire(2 * 1514), (2, 2 * 1538 + 54));
    }
}
