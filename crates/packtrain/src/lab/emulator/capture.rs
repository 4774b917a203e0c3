//! What is on the wires, as pcapng for whoever watches.
//!
//! ```text
//!  emulator: sightings ── Captures ──► backlog, bounded ──► Capture::stream: a thread for each
//!                            │                                │
//!                            └─ no room: counted              └─► cut, put in order, written
//! ```
//! The emulator only hands over what it has seen, and never waits: a reader that is too slow loses frames
//! of its file, and no wire runs late for it. How many are lost is in the file's statistics. To put frames in order and to write them
//! takes about as much of a processor as to carry them: who measures has them held until he has measured.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Instant;
use packtrain_sim::frame::FRAME_BYTES_MIN;
use packtrain_sim::net::network::{Keep, Sighting, WireId};
use packtrain_sim::net::nic;
use packtrain_sim::net::rate::RateConfig;
use packtrain_sim::net::wire::WireDrop;

use crate::clock::Wall;
use crate::lab::{pause, wait_for};
use crate::pcapng::{self, Interface, Packet, Statistics};

/// Most that waits for a capture's thread: a fifth of a second at 3 Gbit/s.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub frames: usize,
    pub bytes: usize,
}

pub const BOUNDS: Bounds = Bounds {
    frames: 1 << 17,
    bytes: 64 << 20,
};

/// Of a capture that is held: some gigabytes on the wires, of which it keeps the heads.
pub const HELD_BOUNDS: Bounds = Bounds {
    frames: 1 << 23,
    bytes: 2 << 30,
};

/// Written at once.
const WRITE_BYTES: usize = 64 * 1024;
/// How long nothing may come before we look whether somebody still reads.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The same where it is held.
const HELD_LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// The largest frame that is still to be cut: its first segment is so much older than its last.
const LARGEST_FRAME_BYTES: u64 = 64 * 1024;
/// Frames are not held longer than this to be put in order, on however slow a wire: somebody watches.
const HOLD_MAX: Duration = Duration::from_millis(100);
const HELD_FRAMES_MAX: usize = 16_384;
/// How long a reader may take for the last of it when the lab goes.
const LAST_WORDS_MAX: Duration = Duration::from_millis(500);

/// What a capture keeps of what it sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// It ends after so many.
    pub frames: Option<u64>,
    /// Most bytes of each; 0: all.
    pub snap_len: u32,
    /// Nothing is put in order and written before the reader wants no more: meanwhile the processors have nothing to do with it. Of what
    /// crosses in one piece only the headers are kept: some gigabytes of content would be more than there is room for.
    pub held: bool,
}

impl Limits {
    pub fn bounds(&self) -> Bounds {
        if self.held { HELD_BOUNDS } else { BOUNDS }
    }
}

/// What was seen, on which of the capture's interfaces, and how fast its wire was then.
#[derive(Debug)]
struct Seen {
    interface: u32,
    sighting: Arc<Sighting>,
    rate: Option<RateConfig>,
}

/// What was handed over to a capture's thread and is not written yet.
#[derive(Debug)]
struct Backlog {
    bounds: Bounds,
    frames: AtomicUsize,
    bytes: AtomicUsize,
    /// By interface: as many frames as a wire would have carried.
    dropped: Vec<AtomicU64>,
}

impl Backlog {
    /// Whether there is room. Only the emulator adds, so what it finds free stays free.
    fn admit(&self, interface: u32, sighting: &Sighting) -> bool {
        let len = sighting.frame.bytes.len();
        let has_room = self.frames.load(Relaxed) < self.bounds.frames
            && self.bytes.load(Relaxed) + len <= self.bounds.bytes;
        if has_room {
            self.frames.fetch_add(1, Relaxed);
            self.bytes.fetch_add(len, Relaxed);
        } else {
            let frames = sighting.segment_count() as u64;
            self.dropped[interface as usize].fetch_add(frames, Relaxed);
        }
        has_room
    }

    fn release(&self, sighting: &Sighting) {
        self.frames.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(sighting.frame.bytes.len(), Relaxed);
    }
}

/// The emulator's end of a capture.
#[derive(Debug)]
struct Feed {
    number: u64,
    interfaces: BTreeMap<WireId, u32>,
    limits: Limits,
    batches: Sender<Vec<Seen>>,
    backlog: Arc<Backlog>,
}

/// All captures of an emulator.
#[derive(Debug, Default)]
pub struct Captures {
    feeds: Vec<Feed>,
    begun: u64,
}

impl Captures {
    /// Interfaces of the capture are the wires, in their order.
    pub fn begin(
        &mut self,
        wires: Vec<(WireId, Interface)>,
        limits: Limits,
        bounds: Bounds,
        clock: (Wall, Instant),
    ) -> Capture {
        let (batches, receiver) = channel();
        let backlog = Arc::new(Backlog {
            bounds,
            frames: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            dropped: wires.iter().map(|_| AtomicU64::new(0)).collect(),
        });
        self.begun += 1;
        let number = self.begun;
        let numbered = wires.iter().zip(0..);
        self.feeds.push(Feed {
            number,
            interfaces: numbered.map(|((wire, _), i)| (*wire, i)).collect(),
            limits,
            batches,
            backlog: backlog.clone(),
        });
        let (wall, began) = clock;
        Capture {
            number,
            captured: vec![0; wires.len()],
            interfaces: wires.into_iter().map(|(_, interface)| interface).collect(),
            batches: receiver,
            held: VecDeque::new(),
            backlog,
            limits,
            wall,
            began,
            latest: began,
        }
    }

    /// Nothing more is handed over to it. The wires that it was of.
    pub fn end(&mut self, number: u64) -> Vec<WireId> {
        let Some(at) = self.feeds.iter().position(|feed| feed.number == number) else {
            return Vec::new();
        };
        let gone = self.feeds.swap_remove(at);
        gone.interfaces.into_keys().collect()
    }

    /// How much of a frame on this wire, by the one who wants most; `None`: nobody wants any.
    pub fn wanted_of(&self, wire: WireId) -> Option<Keep> {
        let of = |feed: &Feed| Keep {
            bytes: match feed.limits.snap_len {
                0 => usize::MAX,
                snap_len => snap_len as usize,
            },
            heads_only: feed.limits.held,
        };
        let feeds = self.feeds.iter();
        feeds
            .filter(|feed| feed.interfaces.contains_key(&wire))
            .map(of)
            .reduce(|one, other| Keep {
                bytes: one.bytes.max(other.bytes),
                heads_only: one.heads_only && other.heads_only,
            })
    }

    /// Hands over what was seen since the last time.
    pub fn tell(
        &mut self,
        sightings: Vec<Sighting>,
        rate_of: impl Fn(WireId) -> Option<RateConfig>,
    ) {
        if sightings.is_empty() {
            return;
        }
        let sightings: Vec<Arc<Sighting>> = sightings.into_iter().map(Arc::new).collect();
        for feed in &self.feeds {
            let mut batch = Vec::new();
            for sighting in &sightings {
                let Some(&interface) = feed.interfaces.get(&sighting.wire) else {
                    continue;
                };
                if feed.backlog.admit(interface, sighting) {
                    batch.push(Seen {
                        interface,
                        sighting: sighting.clone(),
                        rate: rate_of(sighting.wire),
                    });
                }
            }
            if !batch.is_empty() {
                // If its thread has ended, we hear of it soon.
                let _ = feed.batches.send(batch);
            }
        }
    }

    /// Ends all of them, and waits until they have said their last, but not for long.
    pub fn finish(&mut self) {
        let feeds = self.feeds.drain(..);
        let backlogs: Vec<Weak<Backlog>> =
            feeds.map(|feed| Arc::downgrade(&feed.backlog)).collect();
        let ended = || backlogs.iter().all(|backlog| backlog.strong_count() == 0);
        // Who does not read goes without.
        let _ = wait_for("the captures to end", LAST_WORDS_MAX, ended);
    }
}

/// The end of a capture that writes.
#[derive(Debug)]
pub struct Capture {
    pub number: u64,
    interfaces: Vec<Interface>,
    /// By interface: frames that were written.
    captured: Vec<u64>,
    batches: Receiver<Vec<Seen>>,
    /// What came of them while nothing was to be written.
    held: VecDeque<Vec<Seen>>,
    backlog: Arc<Backlog>,
    limits: Limits,
    wall: Wall,
    began: Instant,
    /// When the youngest of the frames was seen.
    latest: Instant,
}

impl Capture {
    /// Writes until the emulator hands over nothing more or the limit is reached. Once
    /// `has_gone` says that the reader wants no more, `stop` asks the emulator to end it, and what was
    /// seen before is still written.
    pub fn stream(
        mut self,
        mut to: impl Write,
        mut has_gone: impl FnMut() -> bool,
        stop: impl FnOnce(),
    ) -> io::Result<()> {
        let mut stop = Some(stop);
        let mut out = Vec::with_capacity(2 * WRITE_BYTES);
        self.write_head(&mut out);
        if self.limits.held {
            to.write_all(&out)?;
            to.flush()?;
            out.clear();
            self.hold_until(&mut has_gone);
        }
        let mut order = Order::default();
        // The head is due at once: who reads wants to see that it has begun.
        let mut idle = true;
        while !self.is_full() {
            if idle || out.len() >= WRITE_BYTES {
                to.write_all(&out)?;
                to.flush()?;
                out.clear();
                if has_gone()
                    && let Some(stop) = stop.take()
                {
                    stop();
                }
            }
            let wait = if idle {
                order.hold().unwrap_or(LOOK_INTERVAL)
            } else {
                Duration::ZERO
            };
            match self.next_batch(wait) {
                Ok(batch) => {
                    idle = false;
                    for seen in batch {
                        self.put_in_order(seen, &mut order);
                        self.write_due(&mut order, &mut out);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    if idle {
                        order.hold_nothing();
                        self.write_due(&mut order, &mut out);
                    }
                    idle = true;
                }
            }
        }
        order.hold_nothing();
        self.write_due(&mut order, &mut out);
        self.write_statistics(&mut out);
        to.write_all(&out)?;
        to.flush()
    }

    fn hold_until(&mut self, has_gone: &mut impl FnMut() -> bool) {
        while !has_gone() {
            match self.batches.recv_timeout(HELD_LOOK_INTERVAL) {
                Ok(batch) => self.held.push_back(batch),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.held.extend(self.batches.try_iter());
            // One waking for many of them.
            pause(HELD_LOOK_INTERVAL);
        }
    }

    /// Without a wait where there is none to be: that costs a look at the clock.
    fn next_batch(&mut self, wait: Duration) -> Result<Vec<Seen>, RecvTimeoutError> {
        if let Some(batch) = self.held.pop_front() {
            return Ok(batch);
        }
        match self.batches.try_recv() {
            Ok(batch) => Ok(batch),
            Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) if wait.is_zero() => Err(RecvTimeoutError::Timeout),
            Err(TryRecvError::Empty) => self.batches.recv_timeout(wait),
        }
    }

    fn is_full(&self) -> bool {
        let captured = self.captured.iter().sum();
        self.limits.frames.is_some_and(|most| most <= captured)
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        pcapng::section_header(out, "packtrain");
        for interface in &self.interfaces {
            pcapng::interface_description(out, interface);
        }
    }

    fn put_in_order(&mut self, seen: Seen, order: &mut Order) {
        let Seen {
            interface,
            sighting,
            rate,
        } = seen;
        self.backlog.release(&sighting);
        self.latest = self.latest.max(sighting.at);
        order.saw(sighting.at, rate);
        let comment = sighting.dropped.map(comment_on);
        for seen in on_the_wire(Arc::unwrap_or_clone(sighting), rate) {
            order.put(interface, seen, comment);
        }
    }

    fn write_due(&mut self, order: &mut Order, out: &mut Vec<u8>) {
        while !self.is_full() {
            let Some(held) = order.next() else { return };
            let there = held.bytes.len();
            let kept = match self.limits.snap_len as usize {
                0 => there,
                snap_len => there.min(snap_len),
            };
            let packet = Packet {
                interface: held.interface,
                unix_nanos: self.wall.unix_nanos(held.at),
                bytes: &held.bytes[..kept],
                len: held.len as u32,
                direction: None,
                comment: held.comment,
            };
            pcapng::enhanced_packet(out, &packet);
            self.captured[held.interface as usize] += 1;
        }
    }

    fn write_statistics(&self, out: &mut Vec<u8>) {
        for ((captured, dropped), interface) in
            self.captured.iter().zip(&self.backlog.dropped).zip(0..)
        {
            let dropped = dropped.load(Relaxed);
            let statistics = Statistics {
                interface,
                from_unix_nanos: self.wall.unix_nanos(self.began),
                until_unix_nanos: self.wall.unix_nanos(self.latest),
                received: captured + dropped,
                dropped,
            };
            pcapng::interface_statistics(out, &statistics);
        }
    }
}

/// A frame between its being seen and its being written.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    at: Instant,
    /// What has the same time stays in the order in which it came.
    number: u64,
    interface: u32,
    bytes: Vec<u8>,
    len: usize,
    comment: Option<&'static str>,
}

/// Puts frames in the order of their times. They come in that order but for segments of a frame that
/// crossed whole: it was seen when its last bit was there, and other wires went on meanwhile.
#[derive(Debug, Default)]
struct Order {
    held: BinaryHeap<Reverse<Held>>,
    put: u64,
    /// How long the largest frame takes on the slowest wire so far: nothing on a wire without a rate.
    hold: Duration,
    latest: Instant,
    /// Nothing comes any more that is older.
    settled: Instant,
}

impl Order {
    /// How long to wait for what may come before something that is held; `None`: nothing is.
    fn hold(&self) -> Option<Duration> {
        (!self.held.is_empty()).then_some(self.hold)
    }

    fn saw(&mut self, at: Instant, rate: Option<RateConfig>) {
        if let Some(rate) = rate {
            let nanos = 8 * LARGEST_FRAME_BYTES * 1_000_000_000 / rate.bps;
            self.hold = self.hold.max(Duration::from_nanos(nanos)).min(HOLD_MAX);
        }
        self.latest = self.latest.max(at);
        let hold = self.hold.as_nanos() as u64;
        let settled = self.latest.as_nanos().saturating_sub(hold);
        self.settled = self.settled.max(Instant::from_nanos(settled));
    }

    fn put(&mut self, interface: u32, seen: OnTheWire, comment: Option<&'static str>) {
        let number = self.put;
        self.put += 1;
        self.held.push(Reverse(Held {
            at: seen.at,
            number,
            interface,
            bytes: seen.bytes,
            len: seen.len,
            comment,
        }));
    }

    /// Time enough has passed.
    fn hold_nothing(&mut self) {
        self.settled = self.latest;
    }

    fn next(&mut self) -> Option<Held> {
        let Reverse(first) = self.held.peek()?;
        let is_due = first.at <= self.settled || self.held.len() > HELD_FRAMES_MAX;
        is_due.then(|| self.held.pop().expect("looked before").0)
    }
}

/// A frame as a wire would have carried it.
#[derive(Debug, PartialEq, Eq)]
struct OnTheWire {
    /// When its last bit was there.
    at: Instant,
    /// Perhaps only the first of them.
    bytes: Vec<u8>,
    len: usize,
}

/// What a wire would have carried of it.
///
/// What crossed in one piece took its time as all that it becomes: the last was there when it was, and
/// the others earlier by what the wire takes for those behind them. What was dropped was so at one time.
fn on_the_wire(sighting: Sighting, rate: Option<RateConfig>) -> Vec<OnTheWire> {
    let (at, len, dropped) = (sighting.at, sighting.len, sighting.dropped);
    if sighting.frame.offload == Offload::NONE {
        let mut bytes = sighting.frame.bytes;
        // The card does so, behind whatever a virtual interface has seen.
        let padded = len.max(FRAME_BYTES_MIN);
        if bytes.len() == len {
            bytes.resize(padded, 0);
        }
        let len = padded;
        return vec![OnTheWire { at, bytes, len }];
    }
    // What no card can cut was dropped for it, and is shown as it came.
    let frames = nic::to_wire(sighting.in_full()).unwrap_or_else(|| vec![sighting.frame]);
    let rate = rate.filter(|_| dropped.is_none());
    let mut bits_behind = 0;
    let mut timed: Vec<_> = frames
        .into_iter()
        .rev()
        .map(|frame| {
            let earlier = rate.map_or(0, |rate| {
                u128::from(bits_behind) * 1_000_000_000 / u128::from(rate.bps)
            });
            bits_behind += rate.map_or(0, |rate| rate.bits(&frame));
            let at = at.as_nanos().saturating_sub(earlier as u64);
            OnTheWire {
                at: Instant::from_nanos(at),
                len: frame.bytes.len(),
                bytes: frame.bytes,
            }
        })
        .collect();
    timed.reverse();
    timed
}

/// What the file says of a frame that went no further.
fn comment_on(reason: WireDrop) -> &'static str {
    match reason {
        WireDrop::QueueFull => "dropped: queue full",
        WireDrop::Codel => "dropped: codel",
        WireDrop::Early => "dropped: early",
        WireDrop::Cut => "dropped: cut",
        WireDrop::TooLong => "dropped: too long",
        WireDrop::Loss => "dropped: loss",
        WireDrop::BitErrors => "dropped: bit errors",
        WireDrop::Corrupted => "dropped: corrupted",
        WireDrop::BadOffload => "dropped: bad offload",
        WireDrop::Collisions => "dropped: collisions",
    }
}

#[cfg(test)]
mod tests;
