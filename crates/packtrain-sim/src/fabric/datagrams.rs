//! What sources of datagrams do, and those who answer.

use super::packet::{Datagram, Load, Packet};
use super::{Event, Fabric, Observer, source};
use crate::event_queue::Queue;

impl<O: Observer, Q: Queue<Event>> Fabric<O, Q> {
    pub(super) fn send_datagram(&mut self, number: u32) {
        let now = self.now;
        let station = &mut self.stations[number as usize];
        let (datagram, next) = station.next(number, now);
        let (at, line) = (station.way.forward, station.way.interface);
        let waits = station.waits_since.is_some();
        let packet = Packet {
            at,
            generation: 0,
            group: station.config.group,
            load: Load::Datagram(datagram),
        };
        if let Some(next) = next {
            let event = match waits {
                true => Event::Impatient(number, now),
                false => Event::Datagram(number),
            };
            self.events.push(now + next, event);
        }
        let bytes = u64::from(datagram.packet_bytes);
        self.count_of(&packet, |count| {
            count.sent += 1;
            count.sent_bytes += bytes;
        });
        self.offer(line, packet);
    }

    pub(super) fn receive_datagram(&mut self, packet: &Packet, datagram: &Datagram) {
        let now = self.now;
        let number = datagram.source;
        let station = &mut self.stations[number as usize];
        if datagram.is_reply {
            if let Some(think) = station.replied(datagram, now) {
                self.events.push(now + think, Event::Datagram(number));
            }
            return;
        }
        station
            .delays
            .record(now.since(datagram.sent).as_nanos() as u64);
        let (reply, ecn) = (station.config.reply_bytes, station.ecn());
        let back = station.way.back;
        let bytes = u64::from(datagram.packet_bytes);
        self.count_of(packet, |count| {
            count.arrived += 1;
            count.arrived_bytes += bytes;
            count.delivered_bytes += bytes - source::PACKET_BYTES_MIN;
        });
        if let Some(packet_bytes) = reply {
            let reply = Datagram {
                packet_bytes,
                is_reply: true,
                ecn,
                ..*datagram
            };
            self.begin(Packet {
                at: back,
                load: Load::Datagram(reply),
                ..*packet
            });
        }
    }
}
