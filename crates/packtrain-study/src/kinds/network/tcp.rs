//! What both ends of connections are like: what the file says of it, and nothing that it does not.

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table};
use packtrain_settings::units::Time;
use toml::de::DeValue;

use super::{HEADER_BYTES, PACKET_BYTES_MAX};
use crate::kinds::read::{bytes, or_none, packet_bytes, some, truth, whole, word};
use crate::quantity::Dimension;

/// `None`: as the preset has it, or the simulator where there is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpSettings {
    pub preset: Option<Preset>,
    /// Bytes of content of a segment.
    pub mss: Option<u32>,
    pub congestion: Option<Congestion>,
    pub counting: Option<Counting>,
    pub detection: Option<Detection>,
    pub halving: Option<Halving>,
    pub hystart: Option<bool>,
    pub tail_probe: Option<bool>,
    pub ecn: Option<bool>,
    /// Of the receiver: how long an acknowledgement may wait; `Some(None)`: not at all.
    pub delayed_ack: Option<Option<Duration>>,
    /// What the receiver has room for.
    pub window_bytes: Option<u64>,
    pub initial_window_segments: Option<u32>,
    pub ssthresh_segments: Option<u32>,
    /// Segments leave no closer than this while slow start lets them.
    pub spacing: Option<Duration>,
    /// They leave at their part of what the path carries.
    pub auto: Option<bool>,
    /// Frames in the queue of the interface; `Some(None)`: all that the window lets.
    pub backpressure: Option<Option<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// As Linux' TCP is without being told anything.
    Linux,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    Reno,
    /// RFC 9438.
    Cubic,
}

/// What the window grows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// RFC 3465, without its limit.
    Bytes,
    /// One segment at most for each, as before that.
    Acknowledgements,
}

/// How a loss is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Three duplicates end in one fast retransmit (RFC 2581).
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 6675.
    Sack,
    /// RFC 8985.
    Rack,
}

/// How the window falls in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halving {
    /// At once, and nothing leaves until half of it has arrived.
    Classic,
    /// RFC 9937.
    Prr,
}

/// 65,535 shifted by 14 (RFC 7323).
const WINDOW_BYTES_MAX: u64 = 65_535 << 14;

pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> TcpSettings {
    let mut tcp = TcpSettings::default();
    let presets = [("linux", Preset::Linux)];
    table.optional("preset", errors, &mut tcp.preset, some(word(presets)));
    mss(&mut tcp.mss, table, errors);
    let congestions = [("reno", Congestion::Reno), ("cubic", Congestion::Cubic)];
    table.optional(
        "congestion",
        errors,
        &mut tcp.congestion,
        some(word(congestions)),
    );
    let countings = [
        ("bytes", Counting::Bytes),
        ("acknowledgements", Counting::Acknowledgements),
    ];
    table.optional("counting", errors, &mut tcp.counting, some(word(countings)));
    let detections = [
        ("reno", Detection::Reno),
        ("newreno", Detection::NewReno),
        ("sack", Detection::Sack),
        ("rack", Detection::Rack),
    ];
    table.optional(
        "detection",
        errors,
        &mut tcp.detection,
        some(word(detections)),
    );
    let halvings = [("classic", Halving::Classic), ("prr", Halving::Prr)];
    table.optional("halving", errors, &mut tcp.halving, some(word(halvings)));
    table.optional("hystart", errors, &mut tcp.hystart, some(truth));
    table.optional("tail_probe", errors, &mut tcp.tail_probe, some(truth));
    table.optional("ecn", errors, &mut tcp.ecn, some(truth));
    table.optional("auto", errors, &mut tcp.auto, some(truth));
    let delay = some(or_none(time(1e-3, 0.5)));
    table.optional("delayed_ack", errors, &mut tcp.delayed_ack, delay);
    table.optional("window", errors, &mut tcp.window_bytes, window);
    let into = &mut tcp.initial_window_segments;
    table.optional("initial_window", errors, into, some(whole(1, 1000)));
    let into = &mut tcp.ssthresh_segments;
    table.optional("ssthresh", errors, into, some(whole(2, 1_000_000)));
    table.optional(
        "spacing",
        errors,
        &mut tcp.spacing,
        or_none(time(1e-6, 1.0)),
    );
    let backpressure = some(or_none(whole(1, 100_000)));
    table.optional("backpressure", errors, &mut tcp.backpressure, backpressure);
    tcp
}

/// Of content (`mss`) or as IP has it (`size`).
fn mss(into: &mut Option<u32>, table: &mut Table<'_>, errors: &mut Errors<'_>) {
    let most = PACKET_BYTES_MAX - HEADER_BYTES;
    table.optional("mss", errors, into, some(packet_bytes(1, most)));
    let mut size = None;
    let of_packet = some(packet_bytes(HEADER_BYTES + 1, PACKET_BYTES_MAX));
    table.optional("size", errors, &mut size, of_packet);
    if let Some(size) = size {
        if into.is_some() {
            let message = "either mss or size, which is 40 bytes more".to_owned();
            table.refuse(Some("size"), message, errors);
        }
        *into = Some(size - HEADER_BYTES);
    }
}

/// One written as 1gb is a little more than there can be.
fn window(value: &DeValue<'_>) -> Result<Option<u64>, String> {
    let window = bytes(536, 1 << 30)(value)?;
    Ok(Some(window.min(WINDOW_BYTES_MAX)))
}

/// Within limits, in seconds, and exact to the nanosecond.
pub fn time(least: f64, most: f64) -> impl Fn(&DeValue<'_>) -> Result<Duration, String> {
    let read = crate::kinds::read::quantity(Dimension::Time, least, most);
    move |value| {
        let seconds = read(value)?;
        let exact = packtrain_settings::toml_reader::parse_scalar::<Time>(value);
        let rounded = Duration::from_nanos((seconds * 1e9).round() as u64);
        Ok(exact.map_or(rounded, Duration::from))
    }
}
