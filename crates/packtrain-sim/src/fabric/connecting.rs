//! What connections do when something comes, or may leave: those that stay, those that go, and proxies between two.

use super::config::LineId;
use super::packet::{Load, Packet};
use super::{Event, Fabric, Observer, arm};
use crate::event_queue::Queue;
use crate::tcp::segment::{Content, Segment};

impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    /// The sender sends as much as it wants to and the interface takes.
    pub(super) fn pump(&mut self, index: u32) {
        let now = self.now;
        loop {
            let connection = &mut self.connections[index as usize];
            let line = connection.way.interface as usize;
            if self.lines[line].wire.queued_frames() >= connection.interface_frames_max {
                if !connection.is_waiting && !connection.is_done() {
                    connection.is_waiting = true;
                    self.lines[line].waiting.push_back(index);
                }
                connection.sender.wait_for_room();
                break;
            }
            let Some((data, ecn)) = connection.sender.poll_transmit(now) else {
                break;
            };
            let segment = Segment {
                ecn,
                ..Segment::data(index, data)
            };
            let packet = Packet {
                at: connection.way.forward,
                generation: connection.generation,
                group: connection.group,
                load: Load::Segment(segment),
            };
            let bytes = packet.packet_bytes() as u64;
            self.count_of(&packet, |count| {
                count.sent += 1;
                count.sent_bytes += bytes;
            });
            self.offer(line as LineId, packet);
        }
        let connection = &mut self.connections[index as usize];
        let timeout = connection.sender.poll_timeout();
        let event = Event::SenderTimer(index);
        arm(&mut self.events, &mut connection.sender_due, timeout, event);
    }

    /// A frame has left, so there is room for the one who waits longest and still has something to send.
    pub(super) fn wake(&mut self, id: LineId) {
        let line = id as usize;
        while let Some(index) = self.lines[line].waiting.pop_front() {
            let queued_before = self.lines[line].wire.queued_frames();
            self.connections[index as usize].is_waiting = false;
            self.pump(index);
            let has_used_it = self.lines[line].wire.queued_frames() > queued_before;
            if has_used_it || self.connections[index as usize].is_waiting {
                break;
            }
        }
    }

    pub(super) fn receive_data(&mut self, packet: &Packet, segment: &Segment) {
        let now = self.now;
        let index = segment.flow;
        let Content::Data(data) = &segment.content else {
            return;
        };
        let receiver = &mut self.connections[index as usize].receiver;
        let delivered = receiver.handle(data, segment.ecn, now);
        if !data.syn {
            self.observer.arrived(index, data, now);
            let bytes = packet.packet_bytes() as u64;
            let new = delivered
                .as_ref()
                .map_or(0, |range| range.end - range.start);
            self.count_of(packet, |count| {
                count.arrived += 1;
                count.arrived_bytes += bytes;
                count.delivered_bytes += new;
            });
        }
        if let Some(range) = delivered {
            let connection = &self.connections[index as usize];
            if let Some(visit) = connection.visit.filter(|visit| range.end == visit.bytes) {
                self.classes[visit.class as usize].completes(&visit, now);
            }
            let feeds = connection.feeds;
            let bytes = range.end - range.start;
            self.observer.delivered(index, range, now);
            if let Some(next) = feeds {
                self.connections[next as usize].sender.write(bytes);
                self.pump(next);
            }
        }
        self.answer(index);
    }

    /// What a proxy's further end has acknowledged makes room at its nearer one.
    pub(super) fn take_on(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let Some(from) = connection.fed_by else {
            return;
        };
        let acknowledged = connection.sender.acknowledged();
        let more = acknowledged - connection.fed_acknowledged;
        connection.fed_acknowledged = acknowledged;
        self.connections[from as usize].receiver.take(more);
        self.answer(from);
    }

    pub(super) fn answer(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let said = connection.receiver.poll_transmit();
        let timeout = connection.receiver.poll_timeout();
        let event = Event::ReceiverTimer(index);
        arm(
            &mut self.events,
            &mut connection.receiver_due,
            timeout,
            event,
        );
        let Some(said) = said else {
            return;
        };
        let packet = Packet {
            at: connection.way.back,
            generation: connection.generation,
            group: connection.group,
            load: Load::Segment(Segment::acknowledgement(index, said)),
        };
        self.begin(packet);
    }

    pub(super) fn visit(&mut self, number: u32) {
        let now = self.now;
        let class = &mut self.classes[number as usize];
        let comes = class.comes(number, now);
        let next = now + class.gap();
        self.events.push(next, Event::Visit(number));
        let Some((visit, way)) = comes else {
            return;
        };
        let (ends, group) = (class.config.ends, class.config.group);
        let index = self.place(&ends, way, group);
        let connection = &mut self.connections[index as usize];
        connection.visit = Some(visit);
        connection.sender.connect();
        connection.sender.write(visit.bytes);
        self.pump(index);
    }

    /// A visitor whose last byte is acknowledged makes room.
    pub(super) fn leave_if_done(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let leaves = connection.visit.take_if(|_| connection.sender.is_done());
        if let Some(visit) = leaves {
            if connection.is_waiting {
                let interface = connection.way.interface as usize;
                self.lines[interface]
                    .waiting
                    .retain(|&waits| waits != index);
            }
            let counters = connection.sender.counters;
            self.classes[visit.class as usize].leaves(&counters);
            self.free.push(index);
        }
    }
}
