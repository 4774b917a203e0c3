//! What waits, by the order in which it goes: one of the disciplines, or first in, first out.

use std::collections::VecDeque;

use packtrain_proto::time::Instant;

use super::config::Discipline;
use super::drr::Drr;
use super::fq_codel::FqCodel;
use super::short_first::ShortFirst;
use crate::net::carried::Carried;

#[derive(Clone, Debug)]
pub(super) struct Waiting<F> {
    pub frame: F,
    pub entered: Instant,
}

/// What waits, by the order in which it goes.
#[derive(Debug)]
pub(super) enum Order<F> {
    /// The first one is chosen where it stands.
    Fifo(VecDeque<Waiting<F>>),
    Drr(Box<Drr<F>>),
    FqCodel(Box<FqCodel<F>>),
    ShortFirst(Box<ShortFirst<F>>),
}

impl<F: Carried> Order<F> {
    pub fn new(discipline: &Discipline) -> Order<F> {
        match *discipline {
            Discipline::DropTail
            | Discipline::Codel { .. }
            | Discipline::MarkAbove { .. }
            | Discipline::Red { .. } => Order::Fifo(VecDeque::new()),
            Discipline::Drr { quantum_bytes, .. } => Order::Drr(Box::new(Drr::new(quantum_bytes))),
            Discipline::FqCodel { quantum_bytes, .. } => {
                Order::FqCodel(Box::new(FqCodel::new(quantum_bytes)))
            }
            Discipline::ShortFirst { threshold_bytes } => {
                Order::ShortFirst(Box::new(ShortFirst::new(threshold_bytes)))
            }
        }
    }

    pub fn push(&mut self, waiting: Waiting<F>) {
        match self {
            Order::Fifo(fifo) => fifo.push_back(waiting),
            Order::Drr(drr) => drr.push(waiting),
            Order::FqCodel(fq) => fq.push(waiting),
            Order::ShortFirst(short_first) => short_first.push(waiting),
        }
    }

    /// Takes out what goes next.
    pub fn choose(&mut self) -> Option<Waiting<F>> {
        match self {
            Order::Fifo(fifo) => fifo.pop_front(),
            Order::Drr(drr) => drr.choose(),
            Order::FqCodel(fq) => fq.choose(),
            Order::ShortFirst(short_first) => short_first.choose(),
        }
    }

    /// Everything, in the order in which it came; of the same instant in some other.
    pub fn drain(&mut self) -> Vec<Waiting<F>> {
        let mut all = match self {
            Order::Fifo(fifo) => return fifo.drain(..).collect(),
            Order::Drr(drr) => drr.drain(),
            Order::FqCodel(fq) => fq.drain(),
            Order::ShortFirst(short_first) => short_first.drain(),
        };
        all.sort_by_key(|waiting| waiting.entered);
        all
    }
}
