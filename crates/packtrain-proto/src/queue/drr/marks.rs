//! Marks against RFC 8289's pseudocode, in which a frame that can be marked is, goes on, and counts as dropped.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::tests::{PARAMS, frame};
use super::{FlowQueues, Signal};
use crate::queue::codel::Aqm;
use crate::queue::frame::{CopyOf, QueuedFrame};
use crate::time::{Duration, Instant};

const MTU: usize = 1514;
const LEN: usize = 600;
const MS: u64 = 1_000_000;
/// Where the second byte of IPv4 stands in a frame without a tag.
const TOS: usize = 15;

/// Of one flow, and capable of marks or not.
fn numbered(number: u32, is_capable: bool, now: u64) -> QueuedFrame {
    let mut queued = QueuedFrame {
        enqueued: Instant::from_nanos(now),
        ..frame(LEN, 0)
    };
    queued.buffer[..14].copy_from_slice(&[2; 14]);
    queued.buffer[12..14].copy_from_slice(&[8, 0]);
    queued.buffer[14] = 0x45;
    queued.buffer[TOS] = if is_capable { 0b10 } else { 0 };
    queued.buffer[40..44].copy_from_slice(&number.to_be_bytes());
    queued
}

fn number_of(frame: &QueuedFrame) -> u32 {
    u32::from_be_bytes(frame.buffer[40..44].try_into().expect("four bytes"))
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u32,
    is_capable: bool,
    enqueued: u64,
}

/// RFC 8289, section 5, in nanoseconds; `drop` says whether the packet is gone.
#[derive(Debug, Default)]
struct Model {
    queue: VecDeque<Packet>,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// What was marked last was by schedule: its successor has not been looked at.
    scheduled: bool,
    dropped: Vec<u32>,
    marked: Vec<u32>,
}

impl Model {
    fn control_law(t: u64, count: u32) -> u64 {
        t + (PARAMS.codel.interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<Packet>, bool) {
        let packet = self.queue.pop_front();
        let mut ok_to_drop = false;
        match packet {
            None => self.first_above_time = 0,
            Some(packet) => {
                let sojourn = u128::from(now - packet.enqueued);
                if sojourn < PARAMS.codel.target.as_nanos() || self.queue.len() * LEN <= MTU {
                    self.first_above_time = 0;
                } else if self.first_above_time == 0 {
                    self.first_above_time = now + PARAMS.codel.interval.as_nanos() as u64;
                } else {
                    ok_to_drop = now >= self.first_above_time;
                }
            }
        }
        (packet, ok_to_drop)
    }

    fn drop(&mut self, packet: Option<Packet>) -> bool {
        let packet = packet.expect("ok to drop");
        let list = match packet.is_capable {
            true => &mut self.marked,
            false => &mut self.dropped,
        };
        list.push(packet.number);
        !packet.is_capable
    }

    fn deque(&mut self, now: u64) -> Option<Packet> {
        if self.queue.is_empty() {
            // A flow is forgotten when nothing is left of it.
            *self = Model {
                dropped: std::mem::take(&mut self.dropped),
                marked: std::mem::take(&mut self.marked),
                ..Model::default()
            };
        }
        let (mut packet, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            } else if std::mem::take(&mut self.scheduled) {
                self.drop_next = Model::control_law(self.drop_next, self.count);
            }
            self.scheduled = false;
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if !self.drop(packet) {
                    self.scheduled = true;
                    return packet;
                }
                (packet, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = Model::control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            if self.drop(packet) {
                (packet, _) = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            let since = now as i64 - self.drop_next as i64;
            let recently = since < 16 * PARAMS.codel.interval.as_nanos() as i64;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.drop_next = Model::control_law(now, self.count);
            self.lastcount = self.count;
        }
        packet
    }
}

struct Both {
    queues: FlowQueues,
    model: Model,
    dropped: Vec<u32>,
    marks: usize,
    left: Vec<(u32, bool)>,
}

impl Both {
    fn new() -> Both {
        Both {
            queues: FlowQueues::new(1514),
            model: Model::default(),
            dropped: Vec::new(),
            marks: 0,
            left: Vec::new(),
        }
    }

    fn push(&mut self, number: u32, is_capable: bool, now: u64) {
        self.queues.push(numbered(number, is_capable, now));
        self.model.queue.push_back(Packet {
            number,
            is_capable,
            enqueued: now,
        });
    }

    /// `looks`: so often is it asked who is next before that leaves.
    fn take(&mut self, now: u64, looks: u32) -> Result<(), TestCaseError> {
        let mut flow = None;
        for _ in 0..looks {
            flow = self
                .queues
                .select(
                    Instant::from_nanos(now),
                    &PARAMS,
                    MTU,
                    &mut |signal| match signal {
                        Signal::Dropped(frame) => self.dropped.push(number_of(&frame)),
                        Signal::Marked => self.marks += 1,
                    },
                );
        }
        let frame = flow.map(|flow| {
            let frame = self.queues.pop(flow);
            self.queues.charge(flow, LEN);
            frame
        });
        let expected = self.model.deque(now);
        prop_assert_eq!(
            frame.as_ref().map(number_of),
            expected.map(|packet| packet.number)
        );
        prop_assert_eq!(&self.dropped, &self.model.dropped);
        prop_assert_eq!(self.marks, self.model.marked.len());
        if let Some(frame) = frame {
            let is_marked = self.model.marked.contains(&number_of(&frame));
            prop_assert_eq!(frame.buffer[TOS] == 0b11, is_marked);
            self.left.push((number_of(&frame), is_marked));
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_can_be_marked_is_when_the_rfc_would_drop_it_and_leaves(
        // Tenths of milliseconds between arrivals and between departures, how many, a pause, and of how many one is not capable.
        phases in prop::collection::vec((0u64..30, 1u64..30, 1usize..200, 0u64..3000, 1u32..5), 1..6),
        looks in 1u32..4,
    ) {
        let mut both = Both::new();
        let mut now = MS;
        let mut number = 0;
        for (arrival, departure, count, pause, every) in phases {
            let (mut arrives, mut departs) = (now, now);
            for _ in 0..count {
                now = arrives.min(departs);
                if arrives <= departs {
                    number += 1;
                    both.push(number, every > 1 && number % every > 0, now);
                    arrives += arrival * MS / 10;
                } else {
                    both.take(now, looks)?;
                    departs += departure * MS / 10;
                }
            }
            for _ in 0..count {
                now += departure * MS / 10;
                both.take(now, looks)?;
            }
            now += pause * MS;
        }
    }
}

#[test]
fn of_a_standing_queue_of_capable_frames_none_is_lost_and_marks_come_as_often_as_drops() {
    let run = |is_capable: bool| {
        let mut both = Both::new();
        for number in 0..4000 {
            both.push(number, is_capable, 0);
        }
        for tick in 0..1000 {
            both.take(20 * MS + tick * MS, 1).unwrap();
        }
        (both.dropped.len(), both.marks)
    };
    let (drops, marks) = (run(false), run(true));
    assert_eq!((drops.1, marks.0), (0, 0));
    assert!((20..40).contains(&marks.1) && marks.1.abs_diff(drops.0) <= 1);
}

/// What a queue that stands does to frames like these: dropped, marked. `piece`: bytes of the first that have left.
fn fate(of: impl Fn(QueuedFrame) -> QueuedFrame, ecn: bool, piece: usize) -> (usize, usize) {
    let mut queues = FlowQueues::new(1514);
    (0..100).for_each(|n| _ = queues.push(of(numbered(n, true, 0))));
    let aqm = Aqm { ecn, ..PARAMS };
    let (mut dropped, mut marked) = (0, 0);
    for ms in [20, 130] {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let flow = queues.select(now, &aqm, MTU, &mut |signal| match signal {
            Signal::Dropped(_) => dropped += 1,
            Signal::Marked => marked += 1,
        });
        if ms == 20 {
            queues.take_piece(flow.unwrap(), piece);
        }
    }
    (dropped, marked)
}

#[test]
fn without_ecn_and_of_copies_nothing_is_marked_and_what_has_begun_is_left_alone() {
    assert_eq!(fate(|frame| frame, true, 0), (0, 1));
    assert_eq!(fate(|frame| frame, false, 0), (1, 0));
    let copy = |frame| QueuedFrame {
        copy: Some(CopyOf {
            frame: 1,
            copies: 2,
        }),
        ..frame
    };
    assert_eq!(fate(copy, true, 0), (1, 0));
    assert_eq!(fate(|frame| frame, true, 100), (0, 0));
}

#[test]
fn a_head_that_was_marked_and_cannot_leave_is_not_asked_about_again() {
    let mut queues = FlowQueues::new(1514);
    (0..100).for_each(|n| _ = queues.push(numbered(n, true, 0)));
    let mut marked = 0;
    for ms in [20, 130, 1000, 2000, 3000] {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let flow = queues.select(now, &PARAMS, MTU, &mut |_| marked += 1);
        assert_eq!(number_of(queues.head(flow.unwrap())), 0);
    }
    assert_eq!(marked, 1);
}
