//! What a frame is, from where it was seen.

use std::collections::HashMap;

use packtrain_proto::wire::ethernet::MacAddr;

use super::{Direction, Path, Place, Seen, View, Witnesses};
use crate::linux::direct::take_mark;

/// Peers that are remembered after they have left: what was on its way to them is still to be named.
const PEERS_MAX: usize = 1 << 14;

/// A frame as the two `pt0`s know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub unix_nanos: u64,
    pub direction: Direction,
    pub path: Path,
    /// As many of them as are kept.
    pub bytes: Vec<u8>,
    /// How many there were.
    pub len: usize,
}

#[derive(Debug, Default)]
pub struct Sorter {
    host_address: MacAddr,
    /// `pt0`s by the addresses of their links.
    peers: HashMap<MacAddr, MacAddr>,
    pub witnesses: Witnesses,
}

impl Sorter {
    /// What the line has told.
    pub fn learn(&mut self, view: &View) {
        self.host_address = view.address;
        if self.peers.len() > PEERS_MAX {
            self.peers.clear();
        }
        self.peers.extend(view.peers.iter().copied());
    }

    /// Whether its destination is one that the line has not told of.
    pub fn is_for_a_stranger(&self, seen: &Seen) -> bool {
        let destination = seen.bytes.first_chunk::<6>();
        seen.place == Place::Link
            && destination.is_some_and(|to| !self.peers.contains_key(&MacAddr(*to)))
    }

    /// When all witnesses have been heard that were there before it.
    pub fn sort(&mut self, seen: Seen) -> Frame {
        let Seen {
            place,
            unix_nanos,
            mut bytes,
            len,
        } = seen;
        let (direction, path) = match place {
            Place::Link => {
                self.restore(&mut bytes);
                (Direction::Out, Path::Direct)
            }
            Place::Host(Direction::Out) => {
                // Where a class asks for marks, they leave pt0 in the place of its address.
                take_mark(&mut bytes, self.host_address);
                (Direction::Out, Path::Engine)
            }
            Place::Host(Direction::In) => match self.witnesses.take(unix_nanos, &bytes, len) {
                true => (Direction::In, Path::Direct),
                false => (Direction::In, Path::Engine),
            },
        };
        Frame {
            unix_nanos,
            direction,
            path,
            bytes,
            len,
        }
    }

    /// Puts the two `pt0`s' addresses in the place of the two links'. The destination of somebody whom the
    /// line does not know any more stays.
    fn restore(&self, frame: &mut [u8]) {
        let Some([destination, source]) = addresses(frame) else {
            return;
        };
        if let Some(pt0) = self.peers.get(&MacAddr(*destination)) {
            *destination = pt0.0;
        }
        *source = self.host_address.0;
    }
}

fn addresses(frame: &mut [u8]) -> Option<[&mut [u8; 6]; 2]> {
    let (destination, rest) = frame.split_first_chunk_mut()?;
    Some([destination, rest.first_chunk_mut()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const PEER_LINK: MacAddr = MacAddr([0, 0x16, 0x3e, 0, 0, 2]);
    const DIRECT_MARK: MacAddr = MacAddr([0x5a, 0x4c, 0x3e, 0, 0, 0xa4]);

    fn sorter() -> Sorter {
        let mut sorter = Sorter::default();
        sorter.learn(&View {
            ifindex: 5,
            address: HOST,
            links: Vec::new(),
            peers: vec![(PEER_LINK, PEER)],
        });
        sorter
    }

    fn seen(place: Place, to: MacAddr, from: MacAddr, rest: &[u8]) -> Seen {
        let bytes = [&to.0, &from.0, rest].concat();
        Seen {
            place,
            unix_nanos: 1000,
            len: bytes.len(),
            bytes,
        }
    }

    const TAGGED: [u8; 8] = [0x81, 0, 0, 5, 8, 0, 0x45, 0];

    #[test]
    fn a_direct_frame_that_leaves_has_the_addresses_of_both_pt0s_again_and_its_tag() {
        let frame = sorter().sort(seen(Place::Link, PEER_LINK, DIRECT_MARK, &TAGGED));
        assert_eq!(frame.bytes, [&PEER.0[..], &HOST.0, &TAGGED].concat());
        let what = (frame.direction, frame.path, frame.len, frame.unix_nanos);
        assert_eq!(what, (Direction::Out, Path::Direct, 20, 1000));
    }

    #[test]
    fn a_peer_is_known_after_it_has_left_and_a_stranger_keeps_its_address() {
        let mut sorter = sorter();
        let to_peer = seen(Place::Link, PEER_LINK, DIRECT_MARK, &TAGGED);
        sorter.learn(&View {
            ifindex: 5,
            address: HOST,
            links: Vec::new(),
            peers: Vec::new(),
        });
        assert!(!sorter.is_for_a_stranger(&to_peer));
        assert_eq!(sorter.sort(to_peer).bytes[..6], PEER.0);
        let other = MacAddr([0, 0x16, 0x3e, 0, 0, 3]);
        let to_other = seen(Place::Link, other, DIRECT_MARK, &TAGGED);
        assert!(sorter.is_for_a_stranger(&to_other));
        assert_eq!(
            sorter.sort(to_other).bytes[..12],
            [other.0, HOST.0].concat()
        );
        // Whoever else is spoken to by the engine is nobody's concern here.
        let out = Place::Host(Direction::Out);
        assert!(!sorter.is_for_a_stranger(&seen(out, other, HOST, &TAGGED)));
    }

    #[test]
    fn of_what_comes_that_with_a_witness_came_directly() {
        let mut sorter = sorter();
        let place = Place::Host(Direction::In);
        let on_the_link = seen(Place::Link, PEER_LINK, DIRECT_MARK, &TAGGED);
        sorter.witnesses.add(1000, &on_the_link.bytes, 20);
        for path in [Path::Direct, Path::Engine] {
            let frame = sorter.sort(seen(place, HOST, PEER, &TAGGED));
            assert_eq!((frame.direction, frame.path), (Direction::In, path));
            assert_eq!(frame.bytes[..12], [HOST.0, PEER.0].concat());
        }
    }

    #[test]
    fn a_mark_on_its_way_to_the_engine_is_not_taken_for_an_address() {
        let mut sorter = sorter();
        let place = Place::Host(Direction::Out);
        let marked = MacAddr([0x03, 0x70, 0, 0, 0, 7]);
        let frame = sorter.sort(seen(place, PEER, marked, &TAGGED));
        assert_eq!(frame.bytes[..12], [PEER.0, HOST.0].concat());
        assert_eq!(frame.path, Path::Engine);
    }

    #[test]
    fn a_frame_that_was_cut_within_its_addresses_is_left_as_it_is() {
        let mut cut = seen(Place::Link, PEER_LINK, DIRECT_MARK, &TAGGED);
        cut.bytes.truncate(9);
        assert_eq!(sorter().sort(cut).bytes[..6], PEER_LINK.0);
    }
}
