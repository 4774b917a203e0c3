//! By what a direct frame is known at the other end, and which of these a path tries.
//!
//! ```text
//!   source ──(4 in vain)──▶ none ──(4 in vain)──▶ vlan ──(4 in vain)──▶ source, one question every 5 s, by each
//!      ▲                      │                    │                     in turn
//!      └── answers cease, or the host uses the link itself: begin anew ──┘
//!
//! Those that are not possible are left out.
//! ```
//!
//! Both ends try in the same order, and only ever follow each other forward: who is asked by a later kind than
//! its own goes over to it. So they meet, whichever began first, and cannot change places for ever.

/// By what a direct frame is known, in the order in which they are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectKind {
    /// The direct mark as outer source.
    #[default]
    Source,
    /// The two links' own addresses, between links that nothing else uses.
    None,
    /// The two links' own addresses, in a VLAN that both lines name.
    Vlan,
}

/// Why a path does not use one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KindRefused {
    /// Our host uses the link itself, or the VLAN.
    OwnTraffic,
    /// The peer does not offer it: its host uses the link itself, or it does not know the kind, or another VLAN.
    NotOffered,
    /// Another line was heard from the same link of the peer: its frames would look the same.
    OtherLine,
    /// What was sent so was not answered.
    Unanswered,
    /// Another one works, or is tried first.
    NotTried,
}

/// Some of the kinds; the first always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    none: bool,
    vlan: bool,
}

impl Kinds {
    /// The first, and those of which this is so.
    pub fn with(is_possible: impl Fn(DirectKind) -> bool) -> Kinds {
        Kinds {
            none: is_possible(DirectKind::None),
            vlan: is_possible(DirectKind::Vlan),
        }
    }

    pub fn has(self, kind: DirectKind) -> bool {
        match kind {
            DirectKind::Source => true,
            DirectKind::None => self.none,
            DirectKind::Vlan => self.vlan,
        }
    }

    fn has_more_than(self, others: Kinds) -> bool {
        let mut all = DirectKind::ALL.into_iter();
        all.any(|kind| self.has(kind) && !others.has(kind))
    }

    /// The next one of these, and after the last the first.
    fn after(self, kind: DirectKind) -> DirectKind {
        let mut later = DirectKind::ALL.into_iter().filter(|other| *other > kind);
        later.find(|other| self.has(*other)).unwrap_or_default()
    }
}

impl DirectKind {
    pub const ALL: [DirectKind; 3] = [DirectKind::Source, DirectKind::None, DirectKind::Vlan];
}

/// So many questions by one kind, before the next is tried.
const ASKED_MANY: u32 = 4;
/// So many questions in a row by an earlier kind than ours: the peer does not hear our answers.
const BEGGED_MANY: u32 = 4;

/// What a path tries, or uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindChoice {
    kind: DirectKind,
    /// Those that were possible when it was asked last.
    usable: Kinds,
    /// Questions by it since it is the one.
    asked: u32,
    /// All were asked in vain: from then on each in its turn, and seldom.
    is_seldom: bool,
    in_vain: [bool; DirectKind::ALL.len()],
    begged: u32,
}

impl KindChoice {
    pub fn kind(&self) -> DirectKind {
        self.kind
    }

    pub fn is_seldom(&self) -> bool {
        self.is_seldom
    }

    /// Whether it was asked in vain since all began anew.
    pub fn was_in_vain(&self, kind: DirectKind) -> bool {
        self.in_vain[kind as usize]
    }

    /// With the first again.
    pub fn begin_anew(&mut self) {
        *self = KindChoice::default();
    }

    /// It is time to ask. Whether what is known of the kind before does not count any more. Where one has become
    /// possible, all begin anew.
    pub fn on_question(&mut self, usable: Kinds) -> bool {
        let before = self.kind;
        let next = usable.after(before);
        if usable.has_more_than(std::mem::replace(&mut self.usable, usable)) {
            *self = KindChoice {
                usable,
                asked: 1,
                ..KindChoice::default()
            };
            return true;
        }
        if self.asked >= ASKED_MANY || self.is_seldom && self.asked > 0 {
            self.in_vain[before as usize] = true;
            // Where there is only one, the questions themselves become fewer.
            if next != before {
                self.is_seldom |= next < before;
                (self.kind, self.asked) = (next, 0);
            }
        }
        self.asked = self.asked.saturating_add(1);
        self.kind != before
    }

    /// The peer has said something of direct frames by this kind, and perhaps asked. Whether ours is another one
    /// from now on.
    pub fn on_report(&mut self, by: DirectKind, asks: bool, is_known: bool, usable: Kinds) -> bool {
        if by > self.kind && usable.has(by) && (asks || !is_known) {
            // What the peer has given up is of no use to us either.
            self.in_vain[..by as usize].fill(true);
            (self.kind, self.usable) = (by, usable);
            (self.asked, self.begged) = (0, 0);
            return true;
        }
        let begs = asks && is_known && by < self.kind;
        self.begged = if begs { self.begged + 1 } else { 0 };
        if self.begged >= BEGGED_MANY {
            self.begin_anew();
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DirectKind::{None, Source, Vlan};
    use proptest::prelude::*;

    const SOURCE: Kinds = Kinds {
        none: false,
        vlan: false,
    };
    const BOTH: Kinds = Kinds {
        none: true,
        vlan: false,
    };
    const ALL: Kinds = Kinds {
        none: true,
        vlan: true,
    };

    #[test]
    fn each_kind_is_asked_four_times_and_then_all_in_turns_and_seldom() {
        let mut choice = KindChoice::default();
        let asked: Vec<_> = (0..12)
            .map(|_| {
                choice.on_question(BOTH);
                (choice.kind(), choice.is_seldom())
            })
            .collect();
        let (first, second) = ([(Source, false); 4], [(None, false); 4]);
        let after = [(Source, true), (None, true), (Source, true), (None, true)];
        assert_eq!(asked, [first, second, after].concat());
        assert!(choice.was_in_vain(Source) && choice.was_in_vain(None));
        choice.begin_anew();
        assert_eq!(choice, KindChoice::default());
    }

    #[test]
    fn those_that_are_not_possible_are_left_out() {
        let order = |usable| {
            let mut choice = KindChoice::default();
            let mut asked: Vec<_> = (0..20)
                .map(|_| {
                    choice.on_question(usable);
                    choice.kind()
                })
                .collect();
            asked.dedup();
            asked
        };
        let only_vlan = Kinds { none: false, ..ALL };
        assert_eq!(order(ALL)[..5], [Source, None, Vlan, Source, None]);
        assert_eq!(order(only_vlan)[..4], [Source, Vlan, Source, Vlan]);
    }

    #[test]
    fn one_that_becomes_possible_lets_all_begin_anew() {
        let mut choice = KindChoice::default();
        for _ in 0..20 {
            choice.on_question(SOURCE);
        }
        assert!(choice.on_question(BOTH));
        let kinds: Vec<_> = (0..4)
            .map(|_| {
                choice.on_question(BOTH);
                choice.kind()
            })
            .collect();
        assert_eq!(kinds, [Source, Source, Source, None]);
        assert!(!choice.is_seldom());
    }

    #[test]
    fn where_there_is_one_nothing_else_is_tried() {
        let mut choice = KindChoice::default();
        for _ in 0..100 {
            assert!(!choice.on_question(SOURCE));
            assert_eq!((choice.kind(), choice.is_seldom()), (Source, false));
        }
        assert!(choice.was_in_vain(Source));
        assert!(!choice.on_report(None, true, false, SOURCE));
    }

    #[test]
    fn who_is_asked_by_a_later_kind_follows_and_who_is_asked_by_an_earlier_one_does_not() {
        // (ours, by, asks, known) → ours afterwards
        let cases = [
            (Source, None, true, true, None),
            (Source, None, true, false, None),
            (Source, None, false, false, None),
            (Source, None, false, true, Source),
            (None, Source, true, true, None),
            (None, Source, true, false, None),
            (None, None, true, true, None),
            (Source, Source, true, true, Source),
        ];
        for (ours, by, asks, known, expected) in cases {
            let mut choice = KindChoice {
                kind: ours,
                ..KindChoice::default()
            };
            let moved = choice.on_report(by, asks, known, BOTH);
            assert_eq!((choice.kind(), moved), (expected, expected != ours));
        }
    }

    #[test]
    fn a_peer_that_asks_again_and_again_by_an_earlier_kind_does_not_hear_ours() {
        let mut choice = KindChoice {
            kind: None,
            ..KindChoice::default()
        };
        for _ in 0..3 {
            assert!(!choice.on_report(Source, true, true, BOTH));
        }
        // Something else in between.
        assert!(!choice.on_report(None, false, true, BOTH));
        for _ in 0..3 {
            assert!(!choice.on_report(Source, true, true, BOTH));
        }
        assert!(choice.on_report(Source, true, true, BOTH));
        assert_eq!(choice, KindChoice::default());
    }

    proptest! {
        /// Over a network that lets some kinds pass, each way its own, whoever begins when: they meet.
        #[test]
        fn two_ends_meet_at_a_kind_that_passes_both_ways(
            source_passes in any::<[bool; 2]>(),
            none_passes in any::<[bool; 2]>(),
            lead in 0usize..20,
        ) {
            let passes = |from: usize, kind| match kind {
                Source => source_passes[from],
                None => none_passes[from],
                Vlan => true,
            };
            let mut ends = [KindChoice::default(), KindChoice::default()];
            let mut known = [false; 2];
            for _ in 0..lead {
                ends[0].on_question(ALL);
            }
            for _ in 0..80 {
                for asker in 0..2 {
                    if known[asker] {
                        continue;
                    }
                    ends[asker].on_question(ALL);
                    let (mut from, mut asks) = (asker, true);
                    // A question, its answer, which may ask in its turn, and so on.
                    for _ in 0..6 {
                        let by = ends[from].kind();
                        if !passes(from, by) {
                            break;
                        }
                        let to = 1 - from;
                        let moved = ends[to].on_report(by, asks, known[to], ALL);
                        known[to] &= !moved;
                        // What answers a question by the same kind makes it known.
                        known[to] |= from != asker && ends[to].kind() == by;
                        if !asks {
                            break;
                        }
                        (from, asks) = (to, !known[to]);
                    }
                }
            }
            prop_assert_eq!(known, [true; 2]);
            for (from, end) in ends.iter().enumerate() {
                prop_assert!(passes(from, end.kind()));
            }
        }
    }
}
