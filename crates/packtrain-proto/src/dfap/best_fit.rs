//! Which packets share an aggregate: section 2.4 of the paper, *first best-fit*.
//!
//! ```text
//!  take the next ── it fits to those in hand ──▶ it joins them, and nothing is sent yet
//!       │
//!       └── it does not ──▶ the larger of the two is sent, and the smaller stays in hand
//!  none is left ──▶ what is in hand is sent
//! ```
//!
//! The larger first may be the later one of a flow. Our reading: of one flow the older goes first;
//! [`Order::Strict`] is the paper's word.
//!
//! Packets are chained and not copied until their frame is written, as the paper's are.

use std::collections::VecDeque;

use crate::queue::frame::QueuedFrame;
use crate::wire::dfap::{self, PACKETS_MAX, PADDED_LEN, TYPE_MIN, data_len};
use crate::wire::ethernet::ether_type;

/// What of two that do not fit together goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Of one flow the older one, else the larger.
    #[default]
    OfFlows,
    /// The larger.
    Strict,
}

/// Packets for one station on their way into frames.
#[derive(Debug, Default)]
pub struct BestFit {
    /// These leave before all others, one by one.
    alone: VecDeque<QueuedFrame>,
    in_hand: Vec<QueuedFrame>,
    /// What is sent now: one as it is, or several as an aggregate.
    sent: Vec<QueuedFrame>,
}

/// Whether it can ride in an aggregate at all: a whole packet with a type, and with room for it.
pub fn can_ride(frame: &QueuedFrame, data_max: usize) -> bool {
    let kind = frame.header.ether_type;
    frame.offload.gso.is_none()
        && kind >= TYPE_MIN
        && kind != ether_type::PACKTRAIN
        && !dfap::is_aggregate_type(kind)
        && data_len(1, frame.payload().len()) <= data_max
}

fn packet_bytes(frames: &[QueuedFrame]) -> usize {
    frames.iter().map(|frame| frame.payload().len()).sum()
}

impl BestFit {
    /// Frames that were taken, and have not been sent.
    pub fn frames(&self) -> usize {
        self.alone.len() + self.in_hand.len()
    }

    pub fn bytes(&self) -> usize {
        let all = self.alone.iter().chain(&self.in_hand);
        all.map(|frame| frame.buffer.len()).sum()
    }

    /// Takes them back, of each flow in its order.
    pub fn drain(&mut self) -> impl Iterator<Item = QueuedFrame> + '_ {
        self.alone.drain(..).chain(self.in_hand.drain(..))
    }

    /// Takes back those that cannot be sent any more.
    pub fn take_back(&mut self, cannot: impl Fn(&QueuedFrame) -> bool) -> Vec<QueuedFrame> {
        let mut all = self.alone.iter().chain(&self.in_hand);
        if !all.any(&cannot) {
            return Vec::new();
        }
        let (mut taken, alone): (Vec<_>, Vec<_>) = self.alone.drain(..).partition(&cannot);
        self.alone.extend(alone);
        taken.extend(self.in_hand.extract_if(.., |frame| cannot(frame)));
        taken
    }

    /// What is to be sent next, in a data field of at most `data_max` bytes: one frame as it is, several as one
    /// aggregate, or nothing. `take` gives the next that waits.
    pub fn next(
        &mut self,
        data_max: usize,
        order: Order,
        mut take: impl FnMut() -> Option<QueuedFrame>,
    ) -> &mut Vec<QueuedFrame> {
        debug_assert!(self.sent.is_empty(), "it was sent");
        self.part_too_long(data_max);
        if let Some(frame) = self.alone.pop_front() {
            self.sent.push(frame);
            return &mut self.sent;
        }
        loop {
            let Some(next) = take() else {
                std::mem::swap(&mut self.sent, &mut self.in_hand);
                break;
            };
            if self.in_hand.is_empty() || self.fits(&next, data_max) {
                self.in_hand.push(next);
            } else if self.goes_before(&next, order) {
                std::mem::swap(&mut self.sent, &mut self.in_hand);
                self.in_hand.push(next);
                break;
            } else {
                self.sent.push(next);
                break;
            }
        }
        self.keep_padding_off();
        &mut self.sent
    }

    /// One frame as it is, or what is still in hand: nothing is joined.
    pub fn next_alone(
        &mut self,
        data_max: usize,
        take: impl FnOnce() -> Option<QueuedFrame>,
    ) -> &mut Vec<QueuedFrame> {
        self.part_too_long(data_max);
        if let Some(frame) = self.alone.pop_front() {
            self.sent.push(frame);
        } else if self.in_hand.is_empty() {
            self.sent.extend(take());
        } else {
            std::mem::swap(&mut self.sent, &mut self.in_hand);
            self.keep_padding_off();
        }
        &mut self.sent
    }

    /// Gives back what [`BestFit::next`] has lent, emptied: no frame costs an allocation.
    pub fn recycle(&mut self, emptied: Vec<QueuedFrame>) {
        debug_assert!(emptied.is_empty());
        self.sent = emptied;
    }

    fn fits(&self, next: &QueuedFrame, data_max: usize) -> bool {
        let bytes = packet_bytes(&self.in_hand) + next.payload().len();
        let count = self.in_hand.len() + 1;
        // An offset has 16 bits.
        let data_max = data_max.min(usize::from(u16::MAX));
        // What was in hand when no aggregate could be so long may have left its checksum to the card.
        let rides = |f: &QueuedFrame| can_ride(f, data_max) && f.offload.is_none();
        let all_ride = || rides(next) && self.in_hand.iter().all(rides);
        count <= PACKETS_MAX && data_len(count, bytes) <= data_max && all_ride()
    }

    /// Whether those in hand are sent before the next, with which they do not fit. Of equals the older.
    fn goes_before(&self, next: &QueuedFrame, order: Order) -> bool {
        let is_of_flow = |frame: &QueuedFrame| frame.flow_hash == next.flow_hash;
        let keeps = order == Order::OfFlows && self.in_hand.iter().any(is_of_flow);
        keeps || packet_bytes(&self.in_hand) >= next.payload().len()
    }

    /// Those in hand were put together when a longer data field was allowed: each goes alone.
    fn part_too_long(&mut self, data_max: usize) {
        let len = || data_len(self.in_hand.len(), packet_bytes(&self.in_hand));
        if self.in_hand.len() > 1 && len() > data_max {
            self.alone.extend(self.in_hand.drain(..));
        }
    }

    /// What Ethernet pads to its least size ends in padding, and so would its last packet: harmless only where
    /// that says how long it is. Else each goes alone.
    fn keep_padding_off(&mut self) {
        let Some(last) = self.sent.last() else {
            return;
        };
        let len = data_len(self.sent.len(), packet_bytes(&self.sent));
        let is_harmless = || dfap::tells_its_length(last.header.ether_type, last.payload());
        if self.sent.len() > 1 && len < PADDED_LEN && !is_harmless() {
            self.alone.extend(self.sent.drain(1..));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::offload::Offload;
    use crate::time::Instant;
    use crate::wire::ethernet::{HEADER_LEN, Header, MacAddr};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A packet of so many bytes, of a flow; its number is in its first bytes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Packet {
        number: usize,
        bytes: usize,
        flow: u32,
        kind: u16,
    }

    fn frame(packet: Packet) -> QueuedFrame {
        let header = Header {
            destination: MacAddr([2; 6]),
            source: MacAddr([4; 6]),
            ether_type: packet.kind,
        };
        let mut buffer = Buffer::with_capacity(70_000);
        buffer.set_len(HEADER_LEN + packet.bytes);
        buffer[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        QueuedFrame {
            buffer,
            header,
            offload: Offload::NONE,
            enqueued: Instant::from_nanos(packet.number as u64),
            sent: 0,
            piece_id: 0,
            copy: None,
            flow_hash: packet.flow,
            share: 0,
            class: crate::class::ClassId(0),
            lane: crate::trunk::lane::LaneId::FIRST,
            band: crate::queue::band::BandId::FIRST,
            changes_lane: false,
            of_elephant: false,
            short: false,
            marked: false,
            urgent: false,
            hold_until: None,
            random: Default::default(),
        }
    }

    /// The frames that come of these packets: the numbers in each.
    fn sent(packets: &[Packet], data_max: usize, order: Order) -> Vec<Vec<usize>> {
        let mut waiting: VecDeque<QueuedFrame> = packets.iter().map(|&p| frame(p)).collect();
        let mut fit = BestFit::default();
        let mut all = Vec::new();
        loop {
            let next = fit.next(data_max, order, || waiting.pop_front());
            if next.is_empty() {
                assert_eq!((fit.frames(), fit.bytes()), (0, 0));
                return all;
            }
            let number = |frame: QueuedFrame| frame.enqueued.as_nanos() as usize;
            all.push(next.drain(..).map(number).collect());
        }
    }

    /// The paper's text, on lists of packets.
    fn by_the_text(packets: &[Packet], data_max: usize, order: Order) -> Vec<Vec<usize>> {
        let size = |list: &[Packet]| list.iter().map(|p| p.bytes).sum::<usize>();
        let mut sent: Vec<Vec<Packet>> = Vec::new();
        let mut first: Vec<Packet> = Vec::new();
        for &packet in packets {
            let second = vec![packet];
            let both = [&first[..], &second].concat();
            let length = 1 + 2 * (both.len() - 1) + 2 * both.len() + size(&both);
            let all_ride = both
                .iter()
                .all(|p| p.kind >= 1536 && 3 + p.bytes <= data_max);
            let combine = both.len() <= 255 && length <= data_max && all_ride;
            if first.is_empty() || combine {
                first = both;
                continue;
            }
            let one_flow = first.iter().any(|p| p.flow == packet.flow);
            let first_leaves =
                size(&first) >= size(&second) || (order == Order::OfFlows && one_flow);
            let (leaves, stays) = if first_leaves {
                (first, second)
            } else {
                (second, first)
            };
            sent.push(leaves);
            first = stays;
        }
        if !first.is_empty() {
            sent.push(first);
        }
        let numbers = |list: Vec<Packet>| list.iter().map(|p| p.number).collect();
        sent.into_iter().map(numbers).collect()
    }

    fn of_sizes(sizes: &[(usize, u32)]) -> Vec<Packet> {
        let packet = |(number, &(bytes, flow))| Packet {
            number,
            bytes,
            flow,
            kind: 0x0800,
        };
        sizes.iter().enumerate().map(packet).collect()
    }

    #[test]
    fn of_two_that_do_not_fit_the_larger_leaves_and_the_smaller_goes_on() {
        let packets = of_sizes(&[(400, 1), (1200, 2), (300, 3), (900, 4)]);
        assert_eq!(
            sent(&packets, 1500, Order::OfFlows),
            [vec![1], vec![3], vec![0, 2]]
        );
    }

    #[test]
    fn a_flow_keeps_its_order_unless_the_paper_is_taken_by_its_word() {
        let packets = of_sizes(&[(400, 1), (1200, 1), (300, 1)]);
        assert_eq!(
            sent(&packets, 1500, Order::OfFlows),
            [vec![0], vec![1], vec![2]]
        );
        assert_eq!(sent(&packets, 1500, Order::Strict), [vec![1], vec![0, 2]]);
    }

    #[test]
    fn what_cannot_ride_goes_as_it_is() {
        let mut packets = of_sizes(&[(60, 1), (60, 2), (60, 3)]);
        packets[1].kind = 60; // an 802.3 length
        assert_eq!(
            sent(&packets, 1500, Order::OfFlows),
            [vec![0], vec![1], vec![2]]
        );
        let gso = QueuedFrame {
            offload: Offload {
                gso: Some(crate::offload::Gso {
                    kind: crate::offload::GsoKind::TcpV4,
                    header_len: 54,
                    segment_len: 100,
                    ecn: false,
                }),
                checksum: None,
            },
            ..frame(packets[0])
        };
        assert!(
            !can_ride(&gso, 1500)
                && can_ride(&frame(packets[0]), 63)
                && !can_ride(&frame(packets[0]), 62)
        );
    }

    #[test]
    fn what_left_its_checksum_to_the_card_goes_as_it_is_though_longer_frames_have_become_possible()
    {
        let packets = of_sizes(&[(60, 1), (3000, 1), (60, 1)]);
        let mut waiting: VecDeque<_> = packets.into_iter().map(frame).collect();
        let checksum = crate::offload::PartialChecksum {
            start: 34,
            offset: 16,
        };
        waiting[1].offload.checksum = Some(checksum);
        let mut fit = BestFit::default();
        let mut order = Vec::new();
        for data_max in [1500, 9000, 9000] {
            let frames = fit.next(data_max, Order::OfFlows, || waiting.pop_front());
            order.push(
                frames
                    .drain(..)
                    .map(|f| f.enqueued.as_nanos())
                    .collect::<Vec<_>>(),
            );
        }
        assert_eq!(order, [[0], [1], [2]]);
    }

    #[test]
    fn nothing_ends_in_padding_that_does_not_say_where_it_ends() {
        let mut packets = of_sizes(&[(3, 1), (4, 2), (5, 3)]);
        packets.iter_mut().for_each(|packet| packet.kind = 0x88cc);
        assert_eq!(
            sent(&packets, 1500, Order::OfFlows),
            [vec![0], vec![1], vec![2]]
        );
        let mut behind = packets.clone();
        behind.push(Packet {
            number: 3,
            bytes: 1600,
            ..packets[0]
        });
        let all = sent(&behind, 1500, Order::OfFlows);
        assert_eq!(all, [vec![0], vec![1], vec![2], vec![3]]);
        packets[2].bytes = 35;
        assert_eq!(sent(&packets, 1500, Order::OfFlows), [vec![0, 1, 2]]);
    }

    #[test]
    fn what_was_put_together_for_a_longer_frame_goes_one_by_one_and_first() {
        let sizes = [(600, 1), (600, 2), (2900, 3), (100, 3), (100, 1)];
        let mut waiting: VecDeque<_> = of_sizes(&sizes).into_iter().map(frame).collect();
        let mut fit = BestFit::default();
        let mut order: Vec<Vec<u64>> = Vec::new();
        // The largest leaves, two are in hand.
        for data_max in [3000, 1000, 1000, 1000] {
            let frames = fit.next(data_max, Order::OfFlows, || waiting.pop_front());
            order.push(frames.drain(..).map(|f| f.enqueued.as_nanos()).collect());
        }
        assert_eq!(order, [vec![2], vec![0], vec![1], vec![3, 4]]);
    }

    #[test]
    fn without_aggregation_each_goes_alone_and_first_what_is_in_hand() {
        let mut waiting: VecDeque<_> = of_sizes(&[(400, 1), (1200, 2), (9, 3), (9, 4)])
            .into_iter()
            .map(frame)
            .collect();
        let mut fit = BestFit::default();
        let first = fit.next(1500, Order::OfFlows, || waiting.pop_front());
        assert_eq!(first.drain(..).count(), 1);
        let mut order = Vec::new();
        for _ in 0..3 {
            let frames = fit.next_alone(1500, || waiting.pop_front());
            order.extend(frames.drain(..).map(|frame| frame.enqueued.as_nanos()));
        }
        assert_eq!(order, [0, 2, 3]);
        assert!(fit.next_alone(1500, || None).is_empty());
    }

    proptest! {
        #[test]
        fn it_is_what_the_text_says(
            sizes in prop::collection::vec((43usize..2000, 0u32..4), 0..80),
            lengths in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            data_max in prop_oneof![Just(1500usize), 500usize..9000, 9000usize..=65_535],
            strict in any::<bool>(),
        ) {
            let mut packets = of_sizes(&sizes);
            for index in lengths {
                if !packets.is_empty() {
                    index.get_mut(&mut packets[..]).kind = 100;
                }
            }
            let order = if strict { Order::Strict } else { Order::OfFlows };
            let seen = sent(&packets, data_max, order);
            prop_assert_eq!(&seen, &by_the_text(&packets, data_max, order));
            let mut all: Vec<usize> = seen.concat();
            if order == Order::OfFlows {
                for flow in 0..4 {
                    let of_flow = all.iter().copied().filter(|&n| packets[n].flow == flow);
                    prop_assert!(of_flow.is_sorted());
                }
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..packets.len()).collect::<Vec<_>>());
        }
    }
}
