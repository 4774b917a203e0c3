//! The member links of a line, by their numbers.
//!
//! Links come and go by command, and a number is never given to a second one: peers know links by
//! them, and what is still under way from the first would be taken for the second's. So numbers
//! run out; a table says where each is, because it is asked for with every frame.

use packtrain_proto::config::LinkId;

use super::member::{Member, MemberCounters};

/// As many as the wire has numbers (docs/wire-format.md).
const NUMBERS: usize = 256;
const NOWHERE: u8 = u8::MAX;

/// Every number has been given to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{NUMBERS} links have been added since the line was started, and it has no number for another"
)]
pub struct NumbersUsedUp;

#[derive(Debug)]
pub(super) struct Members {
    list: Vec<Member>,
    /// By number: the place in the list.
    places: [u8; NUMBERS],
    /// The number that the next one gets, up to [`NUMBERS`].
    next: usize,
}

impl Members {
    pub(super) fn new() -> Members {
        Members {
            list: Vec::new(),
            places: [NOWHERE; NUMBERS],
            next: 0,
        }
    }

    /// A link of this name, whose interface is not attached yet.
    pub(super) fn add(&mut self, name: String) -> Result<LinkId, NumbersUsedUp> {
        let number = u8::try_from(self.next).map_err(|_| NumbersUsedUp)?;
        let id = LinkId(number);
        self.next += 1;
        self.places[usize::from(number)] = self.list.len() as u8;
        self.list.push(Member {
            id,
            name,
            attached: None,
            was_attached: false,
            leaving: false,
            in_lag: false,
            counters: MemberCounters::default(),
        });
        Ok(id)
    }

    pub(super) fn remove(&mut self, id: LinkId) -> Option<Member> {
        let place = self.place(id)?;
        let member = self.list.remove(place);
        self.places[usize::from(id.0)] = NOWHERE;
        for (place, member) in self.list.iter().enumerate().skip(place) {
            self.places[usize::from(member.id.0)] = place as u8;
        }
        // Nobody has ever heard of it: who tries an interface that cannot be attached uses up nothing.
        if !member.was_attached && usize::from(id.0) + 1 == self.next {
            self.next -= 1;
        }
        Some(member)
    }

    /// Where it stands among those that there are, until one is removed.
    pub(super) fn place(&self, id: LinkId) -> Option<usize> {
        match self.places[usize::from(id.0)] {
            NOWHERE => None,
            place => Some(usize::from(place)),
        }
    }

    /// The one that is attached to this interface.
    pub(super) fn of_interface(&mut self, ifindex: u32) -> Option<&mut Member> {
        self.list.iter_mut().find(|m| m.is_of_interface(ifindex))
    }

    pub(super) fn get_mut(&mut self, id: LinkId) -> Option<&mut Member> {
        let place = self.place(id)?;
        Some(&mut self.list[place])
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Member> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Member> {
        self.list.iter_mut()
    }
}

/// By place, not by number.
impl std::ops::Index<usize> for Members {
    type Output = Member;

    fn index(&self, place: usize) -> &Member {
        &self.list[place]
    }
}

impl std::ops::IndexMut<usize> for Members {
    fn index_mut(&mut self, place: usize) -> &mut Member {
        &mut self.list[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(members: &Members) -> Vec<(u8, &str)> {
        members.iter().map(|m| (m.id.0, m.name.as_str())).collect()
    }

    /// As if its interface had been there.
    fn add_attached(members: &mut Members, name: &str) -> LinkId {
        let id = members.add(name.into()).unwrap();
        members.get_mut(id).unwrap().was_attached = true;
        id
    }

    #[test]
    fn a_number_is_never_given_to_a_second_link_and_finds_the_first_wherever_it_stands() {
        let mut members = Members::new();
        let ids = ["a", "b", "c"].map(|name| add_attached(&mut members, name));
        assert_eq!(members.remove(ids[0]).unwrap().name, "a");
        assert!(members.remove(ids[0]).is_none());
        let d = add_attached(&mut members, "d");
        assert_eq!(names(&members), [(1, "b"), (2, "c"), (3, "d")]);
        for (id, name) in [(ids[1], "b"), (ids[2], "c"), (d, "d")] {
            assert_eq!(members.get_mut(id).unwrap().name, name);
            assert_eq!(members[members.place(id).unwrap()].name, name);
        }
        assert_eq!(members.place(LinkId(200)), None);
    }

    #[test]
    fn numbers_run_out_and_what_was_never_attached_uses_up_none() {
        let mut members = Members::new();
        for _ in 0..1000 {
            let id = members.add("never".into()).unwrap();
            assert_eq!(id, LinkId(0));
            members.remove(id).unwrap();
        }
        for number in 0..=u8::MAX {
            let id = add_attached(&mut members, "often");
            assert_eq!(id, LinkId(number));
            members.remove(id).unwrap();
        }
        assert_eq!(members.add("one more".into()), Err(NumbersUsedUp));
        assert_eq!(members.len(), 0);
    }
}
