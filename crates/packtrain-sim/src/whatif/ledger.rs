//! What a replay did, counted: by frame, class and conversation, beside the same frames on the same wire plainly.
//!
//! It asks the engines nothing and tells them nothing, so it may lag behind: on a thread of its own it takes a good
//! part of the work from that of the replay.

use packtrain_proto::class::REST;
use packtrain_proto::time::{Duration, Instant};

use super::conversations::Conversations;
use super::flight::{Entry, Flight};
use super::histogram::{Differences, Histogram};
use super::intake::Batch;
use super::journal::{Journal, Record};
use super::replay::{Ended, Setup};
use super::results::{ClassResults, Results, Share, WireLoad};
use super::timeline::Timeline;
use super::wire::{Line, WireSettings};

#[derive(Debug)]
pub struct Ledger {
    wire: WireSettings,
    hosts: Vec<Host>,
    counts: Counts,
    class_names: Vec<String>,
    /// By the capture: a plain wire knows of no pauses that were left out.
    captured_at: Instant,
    /// Frames that a host was given since they were charged last.
    given: Vec<Entry>,
}

/// What is known of one that sends.
#[derive(Debug)]
struct Host {
    flight: Flight,
    /// Its cable without packtrain.
    plain: Line,
    /// What has come for it, and with it no frame that was not there already.
    uncharged: WireLoad,
}

#[derive(Debug, Default)]
struct Counts {
    all: Share,
    not_replayed: u64,
    plain_delay: Histogram,
    delay: Histogram,
    added: Differences,
    classes: Vec<(Share, Differences)>,
    conversations: Conversations,
    timeline: Timeline,
}

impl Ledger {
    pub fn new(setup: &Setup) -> Ledger {
        let names = setup.classes.iter().map(|class| class.name.to_string());
        let class_names: Vec<String> = names.chain([REST.to_owned()]).collect();
        Ledger {
            wire: setup.wire,
            hosts: Vec::new(),
            counts: Counts {
                classes: vec![Default::default(); class_names.len()],
                ..Counts::default()
            },
            class_names,
            captured_at: Instant::ZERO,
            given: Vec::new(),
        }
    }

    /// What a replay has written of this batch.
    pub fn read(&mut self, journal: &Journal, batch: &Batch) {
        for record in &journal.0 {
            match *record {
                Record::Begins { at } => self.counts.timeline = Timeline::from(at),
                Record::NotReplayed => self.counts.not_replayed += 1,
                Record::Sent {
                    frame,
                    host,
                    at,
                    directly,
                } => self.sent(batch, frame, host, at, directly),
                Record::Refused { host, number } => {
                    if let Some(entry) = self.host(host).flight.take_numbered(number) {
                        self.counts.on_lost(&entry);
                    }
                }
                Record::CameDirectly { from, number, at } => {
                    let entry = self.host(from).flight.take_numbered(number);
                    self.came(entry, at);
                }
                Record::CamePlainly {
                    from,
                    fingerprint,
                    at,
                } => {
                    let entry = self.host(from).flight.take(fingerprint);
                    self.came(entry, at);
                }
                Record::Given { from, fingerprint } => {
                    let entry = self.host(from).flight.take(fingerprint);
                    self.given.extend(entry);
                }
                Record::Shared { host, cost, at } => self.share(host, cost, at),
            }
        }
    }

    fn host(&mut self, number: u32) -> &mut Host {
        let number = number as usize;
        let wire = self.wire;
        if number >= self.hosts.len() {
            let host = || Host {
                flight: Flight::default(),
                plain: Line::new(wire),
                uncharged: WireLoad::default(),
            };
            self.hosts.resize_with(number + 1, host);
        }
        &mut self.hosts[number]
    }

    fn sent(&mut self, batch: &Batch, frame: u32, host: u32, at: Instant, directly: bool) {
        let frame = &batch.frames()[frame as usize];
        self.captured_at = self.captured_at.max(frame.at);
        let captured_at = self.captured_at;
        let plain = &mut self.host(host).plain;
        let arrives = plain.offer(&frame.cost, captured_at);
        let leaves = at + plain.free_at().since(captured_at);
        let plain_delay = arrives.map(|at| at.since(captured_at));
        let counts = &mut self.counts;
        let conversation = counts.conversations.on_sent(frame);
        let (share, _) = &mut counts.classes[usize::from(frame.class)];
        for share in [&mut counts.all, share] {
            share.on_sent(frame);
            share.plain_dropped += u64::from(plain_delay.is_none());
        }
        match plain_delay {
            Some(delay) => {
                counts.plain_delay.record(delay.as_nanos() as u64);
                counts.timeline.plain(leaves, frame.cost.frames);
            }
            None => counts.conversations.share(conversation).plain_dropped += 1,
        }
        let entry = Entry {
            sent_at: at,
            plain_delay,
            cost: frame.cost,
            class: frame.class,
            conversation,
            fingerprint: (!directly).then_some(frame.fingerprint),
            is_done: false,
        };
        let flight = &mut self.hosts[host as usize].flight;
        flight.add(entry, |entry| counts.on_lost(entry));
    }

    /// A frame has arrived by itself.
    fn came(&mut self, entry: Option<Entry>, at: Instant) {
        if let Some(entry) = entry {
            self.counts.on_delivered(&entry, entry.cost.load(), at);
        }
    }

    /// Those that were given share what has come since frames were given last: mostly one train, that they came in.
    fn share(&mut self, host: u32, cost: WireLoad, at: Instant) {
        let uncharged = &mut self.host(host).uncharged;
        *uncharged += cost;
        if self.given.is_empty() {
            return;
        }
        let uncharged = &mut self.hosts[host as usize].uncharged;
        let cost = std::mem::take(uncharged);
        let bytes: usize = self.given.iter().map(|entry| entry.cost.len).sum();
        let count = self.given.len() as f64;
        for entry in self.given.drain(..) {
            let cost = WireLoad {
                frames: cost.frames / count,
                bytes: cost.bytes * entry.cost.len as f64 / bytes as f64,
            };
            self.counts.on_delivered(&entry, cost, at);
        }
    }

    /// Nothing comes any more. `top`: conversations that are told one by one.
    pub fn finish(mut self, ended: Ended, top: usize) -> Results {
        for host in &mut self.hosts {
            host.flight.end(|entry| self.counts.on_lost(entry));
        }
        let counts = self.counts;
        let classes = self.class_names.into_iter().zip(counts.classes);
        let (conversations, others) = counts.conversations.top(top);
        let mut timeline = ended.timeline;
        timeline.add(&counts.timeline);
        let engines = ended.engines;
        let (fill, drops) = (engines.fill(), engines.drops());
        Results {
            hosts: ended.hosts,
            links: ended.links,
            duration: ended.duration,
            all: counts.all,
            not_replayed: counts.not_replayed,
            plain_delay: counts.plain_delay,
            delay: counts.delay,
            added: counts.added,
            sent: ended.sent,
            trains: engines.trains,
            fill,
            train_frames: engines.frames.into_iter().collect(),
            fills: engines.fills.into_iter().collect(),
            refused: ended.refused,
            drops,
            classes: classes
                .map(|(name, (share, added))| ClassResults { name, share, added })
                .collect(),
            conversations,
            others,
            pause_left_out: ended.pause_left_out,
            coding: engines.coding,
            timeline,
        }
    }
}

impl Counts {
    fn on_delivered(&mut self, entry: &Entry, cost: WireLoad, now: Instant) {
        let delay = now.since(entry.sent_at);
        self.delay.record(delay.as_nanos() as u64);
        let compared = |plain: Duration| delay.as_nanos() as i64 - plain.as_nanos() as i64;
        let added = entry.plain_delay.map(compared);
        let (share, differences) = &mut self.classes[usize::from(entry.class)];
        if let Some(added) = added {
            self.added.record(added);
            differences.record(added);
        }
        let conversation = self.conversations.share(entry.conversation);
        for share in [&mut self.all, share, conversation] {
            share.on_delivered(entry, cost, added);
        }
    }

    fn on_lost(&mut self, entry: &Entry) {
        let (share, _) = &mut self.classes[usize::from(entry.class)];
        let conversation = self.conversations.share(entry.conversation);
        for share in [&mut self.all, share, conversation] {
            share.dropped += 1;
        }
    }
}
