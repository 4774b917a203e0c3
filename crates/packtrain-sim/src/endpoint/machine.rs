//! The processor, and what waits for it.
//!
//! ```text
//!             a frame comes          the ring is empty
//!   stack or ──────────────▶ driver ───────────────────▶ stack, where it was, or idle
//!   idle                     (each frame of the ring: rejected, or to the backlog queue)
//! ```
//!
//! With polling, the driver is followed by the stack with the same frame, and then by the ring's next one.

use std::collections::VecDeque;

use packtrain_proto::time::Duration;

use super::backlog::{Backlog, Level};
use super::traffic::{Kind, Traffic};
use super::{EndpointConfig, Intake, PICOS_PER_NANO};

/// Frames, by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that came to the card.
    pub offered: u64,
    pub ring_dropped: u64,
    /// By the filter.
    pub rejected: u64,
    pub backlog_taken: u64,
    pub backlog_dropped: u64,
    /// What the backlog queue told the driver, in the order of [`Level::ALL`].
    pub levels: [u64; Level::ALL.len()],
    /// With which the stack has done, in the order of [`Kind::ALL`].
    pub stacked: [u64; Kind::ALL.len()],
    pub interrupts: u64,
    pub time: ProcessorTime,
}

/// Of the driver's whole jobs: one that is not finished is counted when it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    pub interrupts_ps: u64,
    pub driver_ps: u64,
    pub filter_ps: u64,
    pub stack_useful_ps: u64,
    /// On frames that it throws away.
    pub stack_useless_ps: u64,
}

impl ProcessorTime {
    pub fn busy_ps(&self) -> u64 {
        let stack = self.stack_useful_ps + self.stack_useless_ps;
        self.interrupts_ps + self.driver_ps + self.filter_ps + stack
    }
}

impl Counts {
    pub fn handled(&self) -> u64 {
        self.rejected + self.stacked.iter().sum::<u64>()
    }

    pub fn useful(&self) -> u64 {
        let wanted = Kind::ALL.into_iter().filter(|kind| kind.is_wanted());
        wanted.map(|kind| self.stacked[kind as usize]).sum()
    }

    pub fn at_level(&self, level: Level) -> u64 {
        self.levels[level as usize]
    }
}

/// What the driver does now.
#[derive(Clone, Copy, Debug)]
struct Job {
    done_ps: u64,
    /// Part of it, before the frame.
    interrupt_ps: u64,
}

#[derive(Debug)]
pub struct Endpoint {
    intake: Intake,
    filters: bool,
    interrupt_ps: u64,
    driver_ps: u64,
    filter_ps: u64,
    stack_ps: [u64; Kind::ALL.len()],

    traffic: Traffic,
    next: (u64, Kind),
    now_ps: u64,
    ring: VecDeque<Kind>,
    ring_slots: usize,
    driver: Option<Job>,
    backlog: Backlog,
    /// The frame that the stack is at, and what is left to do.
    stack: Option<(Kind, u64)>,
    counts: Counts,
}

impl Endpoint {
    pub fn new(config: &EndpointConfig) -> Endpoint {
        assert!(config.ring_slots > 0, "a card without a ring");
        let (costs, bytes) = (&config.costs, config.traffic.frame_bytes);
        let driver_ps = costs.driver_picos(bytes, false);
        let mut traffic = Traffic::new(&config.traffic);
        let next = traffic.arrival();
        Endpoint {
            intake: config.intake,
            filters: config.filter,
            interrupt_ps: PICOS_PER_NANO * costs.interrupt_ns,
            driver_ps,
            filter_ps: costs.driver_picos(bytes, config.filter) - driver_ps,
            stack_ps: Kind::ALL.map(|kind| costs.stack_picos(kind, bytes)),
            traffic,
            next,
            now_ps: 0,
            ring: VecDeque::with_capacity(config.ring_slots),
            ring_slots: config.ring_slots,
            driver: None,
            backlog: Backlog::new(config.backlog),
            stack: None,
            counts: Counts::default(),
        }
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counting begins anew; what waits goes on waiting.
    pub fn forget(&mut self) {
        self.counts = Counts::default();
    }

    /// Frames that have come and of which nothing is decided yet.
    pub fn waiting(&self) -> u64 {
        (self.ring.len() + self.backlog.len() + usize::from(self.stack.is_some())) as u64
    }

    pub fn run_for(&mut self, time: Duration) {
        let until_ps = self.now_ps + PICOS_PER_NANO * time.as_nanos() as u64;
        while self.next.0 <= until_ps {
            self.step();
        }
        self.advance(until_ps);
    }

    /// Whether the backlog queue says within this time that it is full; it stops there.
    pub(super) fn fills_within(&mut self, time: Duration) -> bool {
        let until_ps = self.now_ps + PICOS_PER_NANO * time.as_nanos() as u64;
        while self.next.0 <= until_ps && self.counts.backlog_dropped == 0 {
            self.step();
        }
        self.counts.backlog_dropped > 0
    }

    /// Until the next frame, which comes.
    fn step(&mut self) {
        let (at_ps, kind) = self.next;
        self.next = self.traffic.arrival();
        self.advance(at_ps);
        self.counts.offered += 1;
        if self.ring.len() == self.ring_slots {
            self.counts.ring_dropped += 1;
            return;
        }
        self.ring.push_back(kind);
        let interrupts = self.intake == Intake::Interrupts || self.stack.is_none();
        if self.driver.is_none() && interrupts {
            self.counts.interrupts += 1;
            self.take_from_ring(self.interrupt_ps);
        }
    }

    fn take_from_ring(&mut self, interrupt_ps: u64) {
        let done_ps = self.now_ps + interrupt_ps + self.driver_ps + self.filter_ps;
        self.driver = Some(Job {
            done_ps,
            interrupt_ps,
        });
    }

    /// The processor works until then. What is done at that time is done before what comes at that time.
    fn advance(&mut self, until_ps: u64) {
        loop {
            if let Some(job) = self.driver {
                if job.done_ps > until_ps {
                    break;
                }
                self.now_ps = job.done_ps;
                self.driver_done(job);
                continue;
            }
            let Some((kind, left_ps)) = self.stack.take().or_else(|| self.take_from_backlog())
            else {
                break;
            };
            let spent_ps = left_ps.min(until_ps - self.now_ps);
            self.now_ps += spent_ps;
            let time = &mut self.counts.time;
            match kind.is_wanted() {
                true => time.stack_useful_ps += spent_ps,
                false => time.stack_useless_ps += spent_ps,
            }
            if spent_ps < left_ps {
                self.stack = Some((kind, left_ps - spent_ps));
                break;
            }
            self.counts.stacked[kind as usize] += 1;
            if !self.ring.is_empty() {
                self.take_from_ring(0); // with polling: otherwise the driver would be at it
            }
        }
        self.now_ps = until_ps;
    }

    fn take_from_backlog(&mut self) -> Option<(Kind, u64)> {
        let kind = self.backlog.take()?;
        Some((kind, self.stack_ps[kind as usize]))
    }

    fn driver_done(&mut self, job: Job) {
        self.driver = None;
        self.counts.time.interrupts_ps += job.interrupt_ps;
        self.counts.time.driver_ps += self.driver_ps;
        self.counts.time.filter_ps += self.filter_ps;
        let kind = self.ring.pop_front().expect("the driver had one");
        match (self.filters && !kind.passes(), self.intake) {
            (true, _) => self.counts.rejected += 1,
            (false, Intake::Interrupts) => self.offer(kind),
            (false, Intake::Polling) => {
                self.stack = Some((kind, self.stack_ps[kind as usize]));
                return;
            }
        }
        if !self.ring.is_empty() {
            self.take_from_ring(0);
        }
    }

    fn offer(&mut self, kind: Kind) {
        let level = self.backlog.offer(kind);
        self.counts.levels[level as usize] += 1;
        match level {
            Level::Drop => self.counts.backlog_dropped += 1,
            _ => self.counts.backlog_taken += 1,
        }
    }
}
