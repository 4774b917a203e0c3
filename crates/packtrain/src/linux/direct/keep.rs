//! What of a direct path stays when its daemon is gone: a process that holds these descriptors keeps the programs
//! at work, and may say that they have nobody else to give frames to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Destination, DirectPath, entries_of, following, tcx, those_that_fit};
use crate::linux::bpf_map::{KeptMap, word_of};

/// Bytes of `struct direct_orders`, and where it says what is drained, which opening this is, and how often destinations
/// have changed.
const ORDERS_LEN: usize = 64;
const DRAINED: std::ops::Range<usize> = 8..16;
const OPENING: std::ops::Range<usize> = 16..20;
const DESTINATIONS_CHANGE: std::ops::Range<usize> = 44..48;
/// Nothing closes this one.
pub(super) const HELD_OPEN: u32 = 0;
/// The tickets are at the beginning of `struct direct_state`.
const TICKETS: std::ops::Range<usize> = 0..8;
/// Of an array.
const FIRST: [u8; 4] = [0; 4];

/// Descriptors of a path that are enough to keep it.
pub const KEPT_DESCRIPTORS: usize = 5;
/// Nothing is counted there.
const NO_PLACE: u32 = u32::MAX;

/// The entry of a destination, as the programs look it up.
pub type KeptEntry = (Vec<u8>, Vec<u8>);

impl DirectPath {
    /// In the order in which [`KeptPath::new`] takes them.
    pub fn descriptors_to_keep(&self) -> [BorrowedFd<'_>; KEPT_DESCRIPTORS] {
        [
            self.orders_map.as_fd(),
            self.state.as_fd(),
            self.destinations.as_fd(),
            self._leave.as_fd(),
            self._arrive.as_fd(),
        ]
    }
}

/// What [`KeptPath::add_destinations`] takes.
pub fn entries_to_keep(destinations: &[Destination]) -> Vec<KeptEntry> {
    let ways = those_that_fit(destinations).iter().map(|to| (to, NO_PLACE));
    entries_of(&ways.collect::<Vec<_>>()).collect()
}

/// A path without its daemon. The programs are detached when this goes.
#[derive(Debug)]
pub struct KeptPath {
    orders: KeptMap,
    state: KeptMap,
    destinations: KeptMap,
    _programs: [tcx::Attached; 2],
}

impl KeptPath {
    pub fn new(descriptors: [OwnedFd; KEPT_DESCRIPTORS]) -> io::Result<KeptPath> {
        let [orders, state, destinations, leave, arrive] = descriptors;
        Ok(KeptPath {
            orders: KeptMap::array(orders)?,
            state: KeptMap::array(state)?,
            destinations: KeptMap::hash(destinations)?,
            _programs: [leave, arrive].map(tcx::Attached::from),
        })
    }

    /// No queue and no number of small frames closes it: there is no engine that would do better.
    pub fn hold_open(&self) -> io::Result<()> {
        self.give_orders(OPENING, &HELD_OPEN.to_ne_bytes())
    }

    /// Where frames go directly from now on, beside where they do already.
    pub fn add_destinations(&self, entries: &[KeptEntry]) -> io::Result<()> {
        let mut entries = entries.iter();
        let outcome = entries.try_for_each(|(key, value)| self.destinations.set(key, value));
        // What a processor remembers is of before.
        let orders = self.orders.get(&FIRST)?;
        let change = following(word_of(&orders, DESTINATIONS_CHANGE.start));
        self.give_orders(DESTINATIONS_CHANGE, &change.to_ne_bytes())?;
        outcome
    }

    /// Frames that went to the engine, ever.
    pub fn tickets(&self) -> io::Result<u64> {
        let state = self.state.get(&FIRST)?;
        let tickets = state.get(TICKETS).expect("more than that");
        Ok(u64::from_ne_bytes(tickets.try_into().expect("eight bytes")))
    }

    /// Everything that had a ticket up to this one was delivered, or is lost.
    pub fn set_drained(&self, ticket: u64) -> io::Result<()> {
        self.give_orders(DRAINED, &ticket.to_ne_bytes())
    }

    fn give_orders(&self, range: std::ops::Range<usize>, value: &[u8]) -> io::Result<()> {
        let mut orders = self.orders.get(&FIRST)?;
        assert_eq!(orders.len(), ORDERS_LEN);
        orders[range].copy_from_slice(value);
        self.orders.set(&FIRST, &orders)
    }
}

#[cfg(test)]
mod tests {
    use super::super::OpenTo;
    use super::super::close_tests::close;
    use super::super::tests::{GO_ON, REDIRECT};
    use super::super::tests::{IPV4, PEER, PT0, destination, frame, leave, with_path};
    use super::*;

    fn kept(path: &DirectPath) -> KeptPath {
        let descriptors = path.descriptors_to_keep();
        KeptPath::new(descriptors.map(|d| d.try_clone_to_owned().unwrap())).unwrap()
    }

    #[test]
    fn who_keeps_a_path_opens_it_to_every_flow_and_nothing_closes_it() {
        with_path(|path| {
            // By the engine, and then closed.
            let of_flow = |flow| frame(PEER, PT0, IPV4, flow, 100);
            assert_eq!(leave(path, &of_flow(1)).0, GO_ON);
            path.set_destinations(&[destination()]).unwrap();
            close(path, 7);
            let kept = kept(path);
            assert_eq!(kept.tickets().unwrap(), path.state().unwrap().tickets);
            kept.hold_open().unwrap();
            assert_eq!(leave(path, &of_flow(2)).0, REDIRECT);
            assert_eq!(leave(path, &of_flow(1)).0, GO_ON, "it has a ticket");
            kept.set_drained(u64::MAX).unwrap();
            assert_eq!(leave(path, &of_flow(1)).0, REDIRECT);
        });
    }

    #[test]
    fn destinations_that_a_queue_has_closed_are_added() {
        with_path(|path| {
            path.set_destinations(&[]).unwrap();
            let bytes = frame(PEER, PT0, IPV4, 1, 100);
            let kept = kept(path);
            kept.hold_open().unwrap();
            assert_eq!(leave(path, &bytes).0, GO_ON);
            kept.add_destinations(&entries_to_keep(&[destination()]))
                .unwrap();
            kept.set_drained(u64::MAX).unwrap();
            assert_eq!(leave(path, &bytes).0, REDIRECT);
        });
    }

    #[test]
    fn what_was_known_of_a_destination_is_not_after_it_is_added_anew() {
        with_path(|path| {
            let closed = Destination {
                open_to: OpenTo::Classes,
                ..destination()
            };
            path.set_destinations(&[closed]).unwrap();
            let bytes = frame(PEER, PT0, IPV4, 1, 100);
            assert_eq!(leave(path, &bytes).0, GO_ON);
            let kept = kept(path);
            kept.add_destinations(&entries_to_keep(&[destination()]))
                .unwrap();
            kept.set_drained(u64::MAX).unwrap();
            assert_eq!(leave(path, &bytes).0, REDIRECT);
        });
    }

    #[test]
    fn what_are_other_maps_than_ours_is_refused() {
        with_path(|path| {
            let [orders, state, destinations, leave, arrive] = path.descriptors_to_keep();
            let swapped = [destinations, state, orders, leave, arrive];
            let swapped = swapped.map(|d| d.try_clone_to_owned().unwrap());
            let error = KeptPath::new(swapped).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        });
    }
}
