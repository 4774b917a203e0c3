//! A fabric put together: its ways, and the places of those who send.

use packtrain_proto::time::Instant;

use super::config::{DatagramsConfig, Ends, FlowConfig, LineId, RouteConfig, VisitorsConfig};
use super::connection::{Connection, Way};
use super::count::Count;
use super::source::Station;
use super::visitors::Class;
use super::{END, Event, Fabric, Observer};
use crate::event_queue::Queue;
use crate::random::Random;

impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    pub(super) fn add_flow(&mut self, config: &FlowConfig) {
        let way = self.way(&config.route);
        let mut ends = config.ends;
        ends.receiver.is_taken = config.feeds.is_some();
        let index = self.place(&ends, way, config.group);
        let connection = &mut self.connections[index as usize];
        connection.writes_left = config.writes.len();
        connection.feeds = config.feeds;
        let starts = Instant::ZERO + config.starts;
        self.events.push(starts, Event::Connect(index));
        for &(after, bytes) in &config.writes {
            self.events.push(starts + after, Event::Write(index, bytes));
        }
    }

    pub(super) fn add_visitors(&mut self, config: &VisitorsConfig, random: Random) {
        let ways = config.routes.iter().map(|route| self.way(route)).collect();
        self.count_group(config.group);
        let number = self.classes.len() as u32;
        let mut class = Class::new(config.clone(), ways, random);
        let first = Instant::ZERO + config.starts + class.gap();
        self.classes.push(class);
        self.events.push(first, Event::Visit(number));
    }

    pub(super) fn add_datagrams(&mut self, config: &DatagramsConfig, random: Random) {
        let way = self.way(&config.route);
        self.count_group(config.group);
        let station = Station::new(config.clone(), way, random);
        if let Some(starts) = station.starts() {
            let number = self.stations.len() as u32;
            let first = Instant::ZERO + starts;
            self.events.push(first, Event::Datagram(number));
        }
        self.stations.push(station);
    }

    pub(super) fn way(&mut self, route: &RouteConfig) -> Way {
        let mut add = |lines: &[LineId]| {
            let known = |line: &LineId| (*line as usize) < self.lines.len();
            assert!(
                lines.iter().all(known),
                "a route over lines that are not there"
            );
            let at = self.hops.len() as u32;
            self.hops.extend_from_slice(lines);
            self.hops.push(END);
            at
        };
        let interface = *route.forward.first().expect("a route has lines");
        Way {
            forward: add(&route.forward),
            back: add(&route.back),
            interface,
        }
    }

    pub(super) fn count_group(&mut self, group: u16) {
        let groups = usize::from(group) + 1;
        self.groups
            .resize(self.groups.len().max(groups), Count::default());
    }

    /// A place for a connection, a new one or that of one that is gone.
    pub(super) fn place(&mut self, ends: &Ends, way: Way, group: u16) -> u32 {
        self.count_group(group);
        let freed = self.free.pop();
        let before = freed.map(|index| &self.connections[index as usize]);
        let generation = before.map_or(0, |before| before.generation.wrapping_add(1));
        let mut connection = Connection::new(ends, way, group, generation);
        connection.sender.join(&self.destination);
        match freed {
            Some(index) => {
                self.connections[index as usize] = connection;
                index
            }
            None => {
                self.connections.push(connection);
                self.connections.len() as u32 - 1
            }
        }
    }
}
