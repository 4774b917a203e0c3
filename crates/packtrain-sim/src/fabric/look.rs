//! What can be seen of a fabric from outside.

use std::cell::Ref;

use packtrain_proto::time::Instant;

use super::config::LineId;
use super::connection::Connection;
use super::count::Count;
use super::line::Line;
use super::packet::Packet;
use super::source::Station;
use super::visitors::Class;
use super::{Event, Fabric, Observer};
use crate::event_queue::Queue;
use crate::net::wire::{Wire, WireConfig};
use crate::tcp::auto::Destination;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::Sender;

impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How many have happened. As in other simulators each packet has two on each line: it has left, and it has come.
    pub fn events_done(&self) -> u64 {
        self.events_done
    }

    pub fn events_planned(&self) -> usize {
        self.events.len()
    }

    /// Its counters are of all frames that went by it.
    pub fn wire(&self, line: LineId) -> &Wire<Packet> {
        &self.lines[line as usize].wire
    }

    /// From now on it is another one.
    pub fn set_wire(&mut self, line: LineId, config: &WireConfig) {
        self.lines[line as usize].wire.set(config);
    }

    /// Frames that have left lines: packet-hops.
    pub fn hops_done(&self) -> u64 {
        let lines = self.lines.iter();
        lines.map(|line| line.wire.counters.left).sum()
    }

    pub fn packets_under_way(&self) -> usize {
        self.lines.iter().map(Line::packets_under_way).sum()
    }

    /// What senders with `auto` remember.
    pub fn destination(&self) -> Ref<'_, Destination> {
        self.destination.borrow()
    }

    pub fn sender(&self, flow: u32) -> &Sender {
        &self.connections[flow as usize].sender
    }

    pub fn receiver(&self, flow: u32) -> &Receiver {
        &self.connections[flow as usize].receiver
    }

    pub fn count(&self, flow: u32) -> Count {
        self.connections[flow as usize].count
    }

    pub fn group(&self, group: u16) -> Count {
        let group = self.groups.get(usize::from(group));
        group.copied().unwrap_or_default()
    }

    pub fn class(&self, class: u32) -> &Class {
        &self.classes[class as usize]
    }

    pub fn station(&self, station: u32) -> &Station {
        &self.stations[station as usize]
    }

    /// Packets that came to connections that had gone.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// How long visits and datagrams took is counted from now on.
    pub fn forget_durations(&mut self) {
        for class in &mut self.classes {
            class.durations = Default::default();
        }
        for station in &mut self.stations {
            station.delays = Default::default();
            station.round_trips = Default::default();
        }
    }

    /// Every application has written everything, and every sender knows that it came.
    pub fn is_done(&self) -> bool {
        self.connections.iter().all(Connection::is_done)
    }
}
