//! How many frames went directly, and whether flows came back: what a line asks between two frames.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use packtrain_proto::stats::Traffic;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::linux::bpf_map::{MapError, sum_over_processors, word_of};

/// As in bpf/direct.h.
const SENDING_MAX: u32 = 1024;
/// Bytes of `struct direct_state`, and where `left` stands in it.
pub(super) const STATE_LEN: usize = 48;
const LEFT_AT: usize = 12;

/// A peer's `pt0`, and the number of the link by which frames go to it.
pub type SentTo = (MacAddr, u8);

#[derive(Debug)]
pub struct Tally {
    state: MapHandle,
    sending: MapHandle,
    shaping: MapHandle,
    /// Of what went into a queue of ours and was not seen to leave it, so much is not there any more: it was dropped.
    gone: u64,
    /// What was not seen to leave it at the last look, when it was empty.
    unseen: Option<u64>,
    left: u32,
    /// Those that may be destinations now.
    counted: Vec<(SentTo, u32)>,
    /// Those that were before: what flows have sent there must not be overtaken, and what was just on its way
    /// there is counted a moment later.
    former: Vec<(SentTo, u32)>,
}

impl Tally {
    pub(super) fn of(
        state: &MapHandle,
        sending: &MapHandle,
        shaping: &MapHandle,
    ) -> libbpf_rs::Result<Tally> {
        Ok(Tally {
            state: MapHandle::try_from(state)?,
            sending: MapHandle::try_from(sending)?,
            shaping: MapHandle::try_from(shaping)?,
            gone: 0,
            unseen: None,
            left: 0,
            counted: Vec::new(),
            former: Vec::new(),
        })
    }

    pub fn set_counted(&mut self, counted: Vec<(SentTo, u32)>) {
        self.former = std::mem::replace(&mut self.counted, counted);
        let counted = &self.counted;
        self.former.retain(|former| !counted.contains(former));
    }

    /// Frames that are in a queue of ours before their link, a GSO frame as its segments. Not fewer, but by what passes between the
    /// counts of two processors.
    pub fn waiting(&self) -> Result<u32, MapError> {
        let waiting = self.not_seen_to_leave()?.saturating_sub(self.gone);
        Ok(u32::try_from(waiting).unwrap_or(u32::MAX))
    }

    /// That queue is empty, and nothing comes.
    pub fn nothing_waits(&mut self) -> Result<(), MapError> {
        self.gone = self.not_seen_to_leave()?;
        Ok(())
    }

    /// Now and then: whether that queue is empty. What is missing at two such looks that is as much does not wait, it was dropped.
    pub fn look_whether_gone(&mut self, is_empty: bool) -> Result<(), MapError> {
        let unseen = match is_empty {
            true => Some(self.not_seen_to_leave()?),
            false => None,
        };
        let before = std::mem::replace(&mut self.unseen, unseen);
        if let Some(unseen) = unseen.filter(|_| unseen == before) {
            self.gone = unseen;
        }
        Ok(())
    }

    fn not_seen_to_leave(&self) -> Result<u64, MapError> {
        let [entered, left] = sum_over_processors("shaping", &self.shaping, 0)?;
        Ok(entered.saturating_sub(left))
    }

    /// Whether flows have come back to the engine since this was asked last.
    pub fn have_flows_left(&mut self) -> Result<bool, MapError> {
        let left = word_of(&self.state()?, LEFT_AT);
        Ok(std::mem::replace(&mut self.left, left) != left)
    }

    /// Frames that went to the engine, ever.
    pub fn tickets(&self) -> Result<u64, MapError> {
        let state = self.state()?;
        Ok(u64::from_ne_bytes(
            state[..8].try_into().expect("eight bytes"),
        ))
    }

    fn state(&self) -> Result<[u8; STATE_LEN], MapError> {
        let mut value = [0; STATE_LEN];
        let found = self
            .state
            .lookup_into(&0u32.to_ne_bytes(), &mut value, MapFlags::ANY);
        found.map_err(|source| MapError {
            map: "state",
            source,
        })?;
        Ok(value)
    }

    /// Frames that have gone to each, a GSO frame as its segments; wraps, from where it was when the
    /// destination was new.
    pub fn counts(&self) -> impl Iterator<Item = Result<(SentTo, u32), MapError>> + '_ {
        self.counted
            .iter()
            .chain(&self.former)
            .map(|&(to, place)| Ok((to, sent(&self.sending, place)?.1)))
    }
}

/// What was sent to one, and how many frames that becomes on the wire; these wrap.
pub(super) fn sent(sending: &MapHandle, place: u32) -> Result<(Traffic, u32), MapError> {
    let [frames, bytes, segments] = sum_over_processors("sending", sending, place)?;
    Ok((Traffic { frames, bytes }, segments as u32))
}

/// Which entry of the map `sending` counts for which destination. One that comes back finds its own again, and
/// what it had counted.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: BTreeMap<SentTo, u32>,
    /// Given to others since this was read.
    taken_away: Vec<(SentTo, u32)>,
}

impl Places {
    pub(super) fn get(&self, to: SentTo) -> Option<u32> {
        self.places.get(&to).copied()
    }

    /// All of these at once, which are fewer than there are places.
    pub(super) fn of(&mut self, wanted: &[SentTo]) -> Vec<u32> {
        let of_one = |to: &SentTo| match self.places.get(to) {
            Some(place) => *place,
            None => {
                let place = self.free(wanted);
                self.places.insert(*to, place);
                place
            }
        };
        wanted.iter().map(of_one).collect()
    }

    /// A new one, or that of one that is not wanted any more.
    fn free(&mut self, wanted: &[SentTo]) -> u32 {
        if (self.places.len() as u32) < SENDING_MAX {
            return self.places.len() as u32;
        }
        let mut known = self.places.keys();
        let unwanted = known.find(|to| !wanted.contains(to)).copied();
        let unwanted = unwanted.expect("fewer are wanted than there are places");
        let place = self.places.remove(&unwanted).expect("it was found");
        self.taken_away.push((unwanted, place));
        place
    }

    pub(super) fn take_taken_away(&mut self) -> Vec<(SentTo, u32)> {
        std::mem::take(&mut self.taken_away)
    }

    /// Those of the link of this number.
    pub(super) fn of_link(&self, link: u8) -> impl Iterator<Item = u32> + '_ {
        let of_it = self.places.iter().filter(move |((_, of), _)| *of == link);
        of_it.map(|(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(number: u32) -> SentTo {
        let [a, b, c, d] = number.to_be_bytes();
        (MacAddr([2, 0, a, b, c, d]), 0)
    }

    #[test]
    fn who_comes_back_has_the_place_that_it_had_and_no_two_have_the_same() {
        let mut places = Places::default();
        assert_eq!(places.of(&[to(7), to(8)]), [0, 1]);
        assert_eq!(places.of(&[to(9)]), [2]);
        assert_eq!(places.of(&[to(8), to(7)]), [1, 0]);
        let other_link = (to(7).0, 1);
        assert_eq!(places.of(&[other_link, to(9)]), [3, 2]);
    }

    #[test]
    fn when_all_are_taken_those_that_nobody_wants_are_given_away() {
        let mut places = Places::default();
        for begin in (0..20_000).step_by(256) {
            let wanted: Vec<SentTo> = (begin..begin + 256).map(to).collect();
            let mut given = places.of(&wanted);
            given.sort_unstable();
            given.dedup();
            assert_eq!(given.len(), 256);
            assert!(given.iter().all(|place| *place < SENDING_MAX));
            // What those have counted that had them before is settled then.
            let taken_away = places.take_taken_away().len();
            assert_eq!(taken_away, if begin < 1024 { 0 } else { 256 });
        }
        assert_eq!(places.of_link(0).count(), 1024);
        assert_eq!(places.of_link(1).count(), 0);
    }
}
