//! A wire, and what is under way on it.

use std::collections::VecDeque;

use packtrain_proto::time::Instant;

use super::packet::Packet;
use crate::net::wire::Wire;

#[derive(Debug)]
pub struct Line {
    pub wire: Wire<Packet>,
    /// By their time, and equals in the order in which they left. One event stands for all of them: that of the first.
    under_way: VecDeque<(Instant, Packet)>,
    /// The event that was planned for the first.
    pub due: Option<Instant>,
    /// Connections that would send if there were room, the longest waiting first.
    pub waiting: VecDeque<u32>,
}

impl Line {
    pub fn new(wire: Wire<Packet>) -> Line {
        Line {
            wire,
            under_way: VecDeque::new(),
            due: None,
            waiting: VecDeque::new(),
        }
    }

    pub fn first_at(&self) -> Option<Instant> {
        self.under_way.front().map(|(at, _)| *at)
    }

    pub fn pop(&mut self, now: Instant) -> Option<Packet> {
        if self.first_at()? > now {
            return None;
        }
        self.under_way.pop_front().map(|(_, packet)| packet)
    }

    pub fn packets_under_way(&self) -> usize {
        self.under_way.len()
    }
}

/// Puts a packet among those that are under way.
pub fn insert(under_way: &mut VecDeque<(Instant, Packet)>, at: Instant, packet: Packet) {
    // Wires that keep their order never get past the first question.
    let mut index = under_way.len();
    while index > 0 && under_way[index - 1].0 > at {
        index -= 1;
    }
    if index == under_way.len() {
        under_way.push_back((at, packet));
    } else {
        under_way.insert(index, (at, packet));
    }
}

impl Line {
    /// The wire, and where what it sends is put.
    pub fn parts(&mut self) -> (&mut Wire<Packet>, &mut VecDeque<(Instant, Packet)>) {
        (&mut self.wire, &mut self.under_way)
    }
}
