//! One of our links to one of a peer's: what is known of its other end, what is in flight there, and what it may be used for.

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::config::LinkId;
use crate::direct::counts::DirectCounts;
use crate::direct::fence::FenceWait;
use crate::direct::gate::DirectGate;
use crate::direct::kinds::KindChoice;
use crate::direct::striping::Striping;
use crate::link::TRAIN_MTU_MIN;
use crate::stats::PathState;
use crate::time::{Duration, Instant};
use crate::trunk::balance::admission::Admission;
use crate::trunk::balance::weighted::Served;
use crate::trunk::damping::Damping;
use crate::trunk::error_watch::ErrorWatch;
use crate::trunk::flight::Flight;
use crate::trunk::lane::LaneId;
use crate::trunk::liveness::Session;
use crate::trunk::path_mtu::PathMtu;
use crate::trunk::told::{ToldRate, ToldState};
use crate::unit_size::{Conditions, UnitSize};
use crate::wire::ethernet::{self, MacAddr};
use crate::wire::hello::{LINKS_MAX, LinkRecord};
use crate::wire::liveness::State;
use crate::wire::sequence::Sequence;

/// More of them an acknowledgement does not name.
const SAID_FENCES_MAX: usize = 64;

/// One of our links to one of the peer's.
#[derive(Debug)]
pub struct Path {
    pub link: LinkId,
    pub remote_link: LinkId,
    pub remote_address: MacAddr,
    pub remote_mtu: u16,
    pub remote_carrier: bool,
    pub flight: Flight,
    /// When the other end was.
    pub last_heard: Instant,
    /// All links of the peer that are heard on this one of ours, and when last: a switch may lie between.
    pub(super) heard: Vec<(LinkId, Instant)>,
    /// Its trains were not acknowledged for too long.
    pub silent: Option<Silence>,
    /// Whether its two links hear each other; `None`: nobody asks.
    pub session: Option<Session>,
    pub damping: Damping,
    /// What went by another path before, without a sequence, must arrive first.
    pub joining: bool,
    /// Our link had no carrier, and nothing was heard on it since: its other end may still have none.
    pub unheard: bool,
    /// Its other end is gone, and what is under way is lost.
    pub broken: bool,
    pub trains_tx: u64,
    /// How long frames may be that pass it, where that can be asked.
    pub mtu: Option<PathMtu>,
    /// Bytes of the longest train by it, so that small frames need not wait, and of the longest frame that goes as it is.
    pub sand_max: usize,
    pub sand_whole_max: usize,
    /// How long trains are made by it.
    pub size: UnitSize,
    /// Whether it loses by bit errors, where it is the only one.
    pub errors: ErrorWatch,
    /// What it has carried for its weight.
    pub served: Served,
    /// Whether others are to wait for what it carries.
    pub admission: Admission,
    /// Of frames that went past both engines.
    pub direct: DirectCounts,
    /// By what those are known.
    pub direct_kinds: KindChoice,
    /// When another line was heard from the same link of the peer.
    pub other_line: Option<Instant>,
    /// To those, by what both ends have counted.
    pub direct_gate: DirectGate,
    /// Whether frames of one flow go by it and by others.
    pub striping: Striping,
    /// The newest trains by this path that have said what the raised fences of their lane say.
    pub(super) said_fences: VecDeque<(LaneId, Sequence)>,
    /// Trains, by whichever path, that wait for direct frames of this one.
    pub fence: FenceWait,
    /// What the owner was told of it.
    pub told: ToldState<PathState>,
    pub told_rate: ToldRate,
    /// What passes it, payload bytes, as was told; `None`: what both its ends take.
    pub told_mtu: Option<u16>,
}

impl Path {
    pub(super) fn new(link: LinkId, record: &LinkRecord, flight: Flight, now: Instant) -> Path {
        Path {
            link,
            remote_link: record.link,
            remote_address: record.address,
            remote_mtu: record.mtu,
            remote_carrier: record.carrier,
            flight,
            last_heard: now,
            heard: vec![(record.link, now)],
            silent: None,
            session: None,
            damping: Damping::default(),
            joining: false,
            unheard: false,
            broken: false,
            trains_tx: 0,
            mtu: None,
            sand_max: usize::MAX,
            sand_whole_max: usize::MAX,
            size: UnitSize::default(),
            errors: ErrorWatch::default(),
            served: Served::default(),
            admission: Admission::default(),
            direct: DirectCounts::default(),
            direct_kinds: KindChoice::default(),
            other_line: None,
            direct_gate: DirectGate::default(),
            striping: Striping::default(),
            said_fences: VecDeque::new(),
            fence: FenceWait::default(),
            told: ToldState::default(),
            told_rate: ToldRate::default(),
            told_mtu: None,
        }
    }

    /// This train says what the raised fences of its lane say.
    pub fn note_said_fences(&mut self, lane: LaneId, sequence: Sequence) {
        if self.said_fences.len() == SAID_FENCES_MAX {
            self.said_fences.pop_front();
        }
        self.said_fences.push_back((lane, sequence));
    }

    pub fn has_heard(&self, remote_link: LinkId) -> bool {
        self.heard.iter().any(|(link, _)| *link == remote_link)
    }

    pub(super) fn note_heard(&mut self, remote_link: LinkId, now: Instant) {
        self.unheard = false;
        match self.heard.iter_mut().find(|(link, _)| *link == remote_link) {
            Some((_, heard)) => *heard = now,
            None => {
                // A peer names no more links than that at once.
                if self.heard.len() >= LINKS_MAX {
                    let oldest = (0..self.heard.len()).min_by_key(|&at| self.heard[at].1);
                    self.heard.swap_remove(oldest.expect("some"));
                }
                self.heard.push((remote_link, now));
            }
        }
        if self.remote_link == remote_link {
            self.last_heard = now;
        }
    }

    /// Bytes of the largest train that is made for it, outer header included, over our link of `frame_max`.
    pub fn train_max(&self, frame_max: usize) -> usize {
        self.size.limit(self.pass_max(frame_max)).min(self.sand_max)
    }

    /// … that passes it.
    pub fn pass_max(&self, frame_max: usize) -> usize {
        let nominal = self.nominal_max(frame_max);
        let found = self.mtu.as_ref().map(PathMtu::bytes);
        found.map_or(nominal, |found| found.min(nominal))
    }

    /// What decides how long trains by it are, over our link of `frame_max`. `whole`: of a train that has the longest frame of `pt0` whole.
    /// `repairs`: what it loses goes, or would go, again.
    pub fn conditions(
        &self,
        (frame_max, whole): (usize, usize),
        repairs: bool,
        now: Instant,
    ) -> Conditions {
        let asks = self.mtu.is_some();
        Conditions {
            nominal: self.nominal_max(frame_max),
            passes: self.pass_max(frame_max),
            error_rate: self.flight.errors().map(|known| known.rate),
            repairs,
            round_trip: self.flight.round_trip(),
            whole,
            doubted: self.flight.black_hole_above(now).filter(|_| !asks),
        }
    }

    /// … as both ends say.
    pub fn nominal_max(&self, frame_max: usize) -> usize {
        frame_max.min(usize::from(self.remote_mtu) + ethernet::HEADER_LEN)
    }

    /// What our link of `frame_max` and the other end take may be something else; and once it is known to live it can be
    /// asked what passes.
    pub fn follow_mtu(&mut self, frame_max: usize, answers_polls: bool, now: Instant) {
        let nominal = self.nominal_max(frame_max);
        if let Some(mtu) = &mut self.mtu {
            return mtu.set_nominal(nominal);
        }
        let is_up = |session: &Session| session.state() == State::Up;
        if answers_polls && self.session.as_ref().is_some_and(is_up) {
            self.mtu = Some(PathMtu::new(nominal, self.trains_tx > 0, now));
        }
    }

    /// Long frames are lost on it: they may not pass any more.
    pub fn doubt_mtu(&mut self, now: Instant) {
        if let Some(mtu) = &mut self.mtu {
            mtu.doubt(now);
        }
    }

    /// Nothing shows that it works, and something that it does not.
    pub fn is_silent(&self) -> bool {
        self.silent.is_some() || self.session.as_ref().is_some_and(Session::has_failed)
    }

    /// It is to show first that it works.
    pub fn is_held(&self) -> bool {
        let is_watched =
            |session: &Session| !session.works() || self.damping.held_until().is_some();
        self.session.as_ref().is_some_and(is_watched)
    }

    /// Whether the other end takes trains.
    pub fn is_open(&self) -> bool {
        self.remote_carrier && !self.unheard && self.remote_mtu >= TRAIN_MTU_MIN
    }
}

/// One of our links that answers one of the peer's.
#[derive(Debug)]
pub struct Answering {
    pub link: LinkId,
    pub session: Session,
}

/// Of a path: a copy of one of its trains, sent again and again, shows when it works again.
#[derive(Debug)]
pub struct Silence {
    pub sample: Buffer,
    pub next_try: Instant,
    pub interval: Duration,
    /// Since when a try is due and the link's local queue is full.
    pub no_room_since: Option<Instant>,
    /// How long nothing had been acknowledged by then.
    pub unanswered_for: Duration,
}
