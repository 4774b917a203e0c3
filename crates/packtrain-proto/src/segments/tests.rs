use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const AGE_MAX: Duration = Duration::from_millis(3500);
const A: LinkId = LinkId(1);
const B: LinkId = LinkId(2);
const C: LinkId = LinkId(3);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Segments, and what they said of homes that moved since it was asked last.
struct Bed {
    segments: Segments,
    moved: Vec<LinkId>,
}

impl Bed {
    /// These links have had carrier for long.
    fn settled(links: &[LinkId]) -> Bed {
        let mut bed = Bed {
            segments: Segments::new(AGE_MAX),
            moved: Vec::new(),
        };
        for &link in links {
            bed.carrier(link, true, 0);
        }
        bed.update(1000);
        bed
    }

    fn carrier(&mut self, link: LinkId, carrier: bool, ms: u64) {
        self.segments.set_carrier(link, carrier, at(ms));
        self.update(ms);
    }

    fn echo(&mut self, sent: LinkId, heard: LinkId, ms: u64) {
        self.segments.on_echo(sent, heard, at(ms));
        self.update(ms);
    }

    fn update(&mut self, ms: u64) {
        let moved = &mut self.moved;
        self.segments.update(at(ms), |link| moved.push(link));
    }

    fn moved(&mut self) -> Vec<LinkId> {
        std::mem::take(&mut self.moved)
    }

    fn standings<const N: usize>(&self, links: [LinkId; N]) -> [Standing; N] {
        links.map(|link| self.segments.standing(link))
    }
}

#[test]
fn the_first_link_with_carrier_is_home_at_once_and_the_next_waits_for_its_hellos() {
    let mut bed = Bed::settled(&[]);
    bed.carrier(B, true, 0);
    bed.carrier(A, true, 0);
    assert_eq!(
        bed.standings([A, B]),
        [Standing::Settling, Standing::Home],
        "it was there first"
    );
    assert_eq!(bed.segments.heads(), [A, B]);
    assert_eq!(bed.segments.poll_timeout(), Some(at(150)));
    bed.update(149);
    assert_eq!(bed.segments.standing(A), Standing::Settling);
    bed.update(150);
    assert_eq!(bed.standings([A, B]), [Standing::Home; 2]);
    assert_eq!(bed.segments.poll_timeout(), None);
    assert_eq!(bed.moved(), []);
}

#[test]
fn a_link_that_hears_another_stands_beside_it_until_that_is_over() {
    let mut bed = Bed::settled(&[]);
    bed.carrier(A, true, 0);
    bed.carrier(B, true, 0);
    bed.echo(B, A, 10);
    assert_eq!(bed.segments.standing(B), Standing::Beside(A));
    assert_eq!(bed.segments.heads(), [A]);
    assert!(!bed.segments.on_echo(A, B, at(1000)), "no news");
    bed.update(4499);
    assert_eq!(bed.segments.standing(B), Standing::Beside(A));
    assert_eq!(bed.moved(), []);
    bed.update(4500);
    // Somebody cut the segment in two: those on B's part believe us behind A.
    assert_eq!(bed.standings([A, B]), [Standing::Home; 2]);
    assert_eq!(bed.moved(), [B]);
}

#[test]
fn when_two_segments_become_one_the_lower_home_stays_and_says_so() {
    let mut bed = Bed::settled(&[A, B, C]);
    assert_eq!(bed.standings([A, B, C]), [Standing::Home; 3]);
    bed.echo(C, B, 2000);
    assert_eq!(bed.segments.standing(C), Standing::Beside(B));
    bed.echo(A, C, 2000);
    assert_eq!(
        bed.standings([A, B, C]),
        [Standing::Home, Standing::Beside(A), Standing::Beside(A)]
    );
    assert_eq!(bed.moved(), [B, A]);
}

#[test]
fn when_a_home_dies_one_of_its_segment_takes_over_and_keeps_it() {
    let mut bed = Bed::settled(&[A, B, C]);
    bed.echo(A, B, 2000);
    assert_eq!(bed.moved(), [A]);
    bed.carrier(A, false, 2100);
    assert_eq!(
        bed.standings([A, B, C]),
        [Standing::Down, Standing::Home, Standing::Home]
    );
    assert_eq!(bed.moved(), [B], "nothing for C");
    assert_eq!(bed.segments.head_of(A), Some(B), "who is there is behind B");
    assert!(!bed.segments.listens(A));
    bed.carrier(A, true, 2200);
    assert_eq!(bed.segments.standing(A), Standing::Settling);
    bed.echo(B, A, 2201);
    assert_eq!(bed.segments.standing(A), Standing::Beside(B));
    assert_eq!(bed.moved(), []);
}

#[test]
fn a_home_of_a_segment_of_its_own_that_dies_leaves_nobody_to_tell() {
    let mut bed = Bed::settled(&[A, B]);
    bed.carrier(A, false, 2000);
    assert_eq!(bed.standings([A, B]), [Standing::Down, Standing::Home]);
    assert_eq!(bed.segments.head_of(A), None);
    assert!(bed.segments.listens(A), "what was under way");
    bed.carrier(A, true, 9000);
    bed.update(9150);
    assert_eq!(bed.segments.standing(A), Standing::Home);
    assert_eq!(bed.moved(), []);
}

#[test]
fn who_is_home_again_after_another_was_has_that_said_even_if_none_was_left_between() {
    let mut bed = Bed::settled(&[A, B]);
    bed.echo(A, B, 2000);
    bed.carrier(A, false, 2100);
    bed.carrier(B, false, 2200);
    assert_eq!(bed.moved(), [A, B]);
    assert_eq!(bed.segments.heads(), []);
    bed.carrier(A, true, 2300);
    assert_eq!(bed.segments.standing(A), Standing::Home);
    assert_eq!(bed.moved(), [A]);
}

#[test]
fn a_home_that_retires_gives_way_if_there_is_another() {
    let mut bed = Bed::settled(&[A, B, C]);
    bed.echo(A, B, 2000);
    bed.moved();
    bed.segments.retire(A);
    bed.segments.retire(C);
    bed.update(2000);
    assert_eq!(
        bed.standings([A, B, C]),
        [Standing::Beside(B), Standing::Home, Standing::Home]
    );
    assert_eq!(bed.moved(), [B]);
    bed.segments.retire(B);
    bed.update(2000);
    assert_eq!(bed.segments.standing(B), Standing::Home, "none is better");
    bed.carrier(C, false, 2001);
    bed.segments.remove(C);
    bed.update(2001);
    assert_eq!(bed.segments.heads(), [B]);
}

#[test]
fn a_link_of_a_lower_tier_is_home_wherever_the_other_was_and_as_long_as_it_works() {
    let mut bed = Bed::settled(&[A, B, C]);
    bed.echo(A, B, 2000);
    assert_eq!(bed.moved(), [A], "B was one, and is none any more");
    bed.segments.set_tier(A, 2);
    bed.update(2001);
    assert_eq!(bed.standings([A, B]), [Standing::Beside(B), Standing::Home]);
    assert_eq!(
        bed.segments.standing(C),
        Standing::Home,
        "another segment's"
    );
    assert_eq!(bed.moved(), [B]);
    bed.carrier(B, false, 2002);
    assert_eq!(bed.segments.standing(A), Standing::Home);
    assert_eq!(bed.moved(), [A]);
    bed.carrier(B, true, 2003);
    assert!(bed.segments.is_home(A), "it is not known yet where that is");
    bed.echo(A, B, 2010);
    assert_eq!(bed.standings([A, B]), [Standing::Home, Standing::Beside(A)]);
    assert_eq!(bed.moved(), [], "what waits for B goes by A");
    bed.update(2011);
    assert_eq!(bed.standings([A, B]), [Standing::Beside(B), Standing::Home]);
    assert_eq!(bed.moved(), [B]);
}

#[test]
fn our_own_sleep_is_no_silence() {
    let mut bed = Bed::settled(&[A, B]);
    bed.echo(A, B, 2000);
    bed.segments
        .forgive(Duration::from_millis(8000), at(10_000));
    bed.update(10_000);
    assert_eq!(bed.segments.standing(B), Standing::Beside(A));
    bed.update(13_500);
    assert_eq!(bed.segments.standing(B), Standing::Home);
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Carrier(u8, bool),
    Echo(u8, u8),
    Retire(u8),
    Tier(u8, u8),
    Remove(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let link = 0u8..6;
    let step = prop_oneof![
        3 => (0u64..1200).prop_map(Step::Wait),
        3 => (link.clone(), any::<bool>()).prop_map(|(link, up)| Step::Carrier(link, up)),
        6 => (link.clone(), link.clone()).prop_map(|(sent, heard)| Step::Echo(sent, heard)),
        1 => link.clone().prop_map(Step::Retire),
        2 => (link.clone(), 1u8..4).prop_map(|(link, tier)| Step::Tier(link, tier)),
        1 => link.prop_map(Step::Remove),
    ];
    proptest::collection::vec(step, 1..120)
}

/// All that ever happened, asked the slow way.
#[derive(Default)]
struct Model {
    up_since: BTreeMap<LinkId, Instant>,
    retiring: BTreeSet<LinkId>,
    /// Those that are not of the first.
    tiers: BTreeMap<LinkId, u8>,
    /// `(sent, heard, when)`, since the carrier of both.
    echoes: Vec<(LinkId, LinkId, Instant)>,
}

impl Model {
    fn down(&mut self, link: LinkId) {
        self.up_since.remove(&link);
        self.echoes.retain(|&(a, b, _)| a != link && b != link);
    }

    /// The union of pairs, searched again until it no longer grows.
    fn segment_of(&self, link: LinkId, now: Instant) -> BTreeSet<LinkId> {
        let mut segment = BTreeSet::from([link]);
        loop {
            let before = segment.len();
            for &(a, b, heard) in &self.echoes {
                let holds = now.since(heard) < AGE_MAX;
                if holds && (segment.contains(&a) || segment.contains(&b)) {
                    segment.extend([a, b]);
                }
            }
            if segment.len() == before {
                return segment;
            }
        }
    }
}

/// What holds after each step. `before`: the homes before it, and who was on their segments.
/// `beside`: those that stood beside a home.
fn check(
    bed: &mut Bed,
    model: &Model,
    (before, beside): (&BTreeMap<LinkId, BTreeSet<LinkId>>, &BTreeSet<LinkId>),
    now: Instant,
) {
    let segments = &bed.segments;
    let up: BTreeSet<LinkId> = model.up_since.keys().copied().collect();
    let homes: BTreeSet<LinkId> = up
        .iter()
        .copied()
        .filter(|&l| segments.is_home(l))
        .collect();
    assert_eq!(
        up.is_empty(),
        homes.is_empty(),
        "a home whenever a link is up"
    );
    let mut heads = BTreeSet::new();
    for &link in &up {
        let segment = model.segment_of(link, now);
        let head = segments.head_of(link).expect("it has carrier");
        heads.insert(head);
        assert!(segment.contains(&head));
        for &other in &segment {
            assert_eq!(segments.head_of(other), Some(head), "one head a segment");
        }
        // In the order of their numbers: of equal tiers the first.
        let tier = |l: &LinkId| (model.tiers.get(l).copied().unwrap_or(1), *l);
        let candidates = |was_home: bool, retiring: bool| {
            let suits = |l: &&LinkId| {
                (!was_home || before.contains_key(l)) && model.retiring.contains(l) == retiring
            };
            segment.iter().filter(suits).copied().min_by_key(tier)
        };
        let takes_over = candidates(true, false).and_then(|home| {
            let of_lower_tier = |l: &&LinkId| {
                beside.contains(l) && !model.retiring.contains(l) && tier(l).0 < tier(&home).0
            };
            let lower = segment.iter().filter(of_lower_tier).copied();
            lower.min_by_key(tier)
        });
        let expected = takes_over
            .or(candidates(true, false))
            .or(candidates(false, false))
            .or(candidates(true, true))
            .or(candidates(false, true));
        assert_eq!(Some(head), expected);
        match segments.standing(link) {
            Standing::Down => panic!("{link:?} has carrier"),
            Standing::Home => assert_eq!(head, link),
            Standing::Beside(it) => assert!(it == head && it != link),
            Standing::Settling => {
                assert_eq!(head, link);
                assert!(now.since(model.up_since[&link]) < SETTLING);
                assert!(segment.iter().all(|l| !before.contains_key(l)));
            }
        }
    }
    assert_eq!(heads.iter().copied().collect::<Vec<_>>(), segments.heads());
    // Whoever is left of the segment of a home that is one no more, and has a home, is told.
    for (home, of) in before.iter().filter(|(home, _)| !homes.contains(home)) {
        for link in of.iter().filter(|link| up.contains(link)) {
            let head = segments.head_of(*link).expect("it has carrier");
            let told = bed.moved.contains(&head);
            assert!(told || !homes.contains(&head) || head == *home, "{home:?}");
        }
    }
    assert!(bed.moved.iter().all(|link| homes.contains(link)));
    bed.moved.clear();
}

proptest! {
    #[test]
    fn there_is_one_home_a_segment_and_it_stays_and_who_loses_it_is_told(steps in steps()) {
        let mut bed = Bed::settled(&[]);
        let mut model = Model::default();
        let mut ms = 0;
        for step in steps {
            let up = |link: &LinkId| model.up_since.contains_key(link);
            let homes = model.up_since.keys().filter(|&&link| bed.segments.is_home(link));
            // As it was when this was last decided.
            let segment_of = |link: &LinkId| {
                let head = bed.segments.head_of(*link);
                let all = model.up_since.keys().copied();
                all.filter(|l| bed.segments.head_of(*l) == head).collect::<BTreeSet<_>>()
            };
            let before = homes.map(|home| (*home, segment_of(home))).collect();
            let stands_beside = |link: &&LinkId| {
                let standing = bed.segments.standing(**link);
                matches!(standing, Standing::Beside(_))
            };
            let beside = model.up_since.keys().filter(stands_beside).copied().collect();
            match step {
                Step::Wait(wait) => {
                    ms += wait;
                    bed.update(ms);
                }
                Step::Carrier(link, carrier) => {
                    let link = LinkId(link);
                    if carrier && !up(&link) {
                        model.up_since.insert(link, at(ms));
                    } else if !carrier {
                        model.down(link);
                    }
                    bed.carrier(link, carrier, ms);
                }
                Step::Echo(sent, heard) => {
                    let (sent, heard) = (LinkId(sent), LinkId(heard));
                    if up(&sent) && up(&heard) {
                        model.echoes.push((sent, heard, at(ms)));
                    }
                    bed.echo(sent, heard, ms);
                }
                Step::Retire(link) => {
                    if bed.segments.member(LinkId(link)).is_some() {
                        model.retiring.insert(LinkId(link));
                    }
                    bed.segments.retire(LinkId(link));
                    bed.update(ms);
                }
                Step::Tier(link, tier) => {
                    let link = LinkId(link);
                    if bed.segments.member(link).is_some() {
                        model.tiers.insert(link, tier);
                    }
                    bed.segments.set_tier(link, tier);
                    bed.update(ms);
                }
                Step::Remove(link) => {
                    let link = LinkId(link);
                    model.down(link);
                    model.retiring.remove(&link);
                    model.tiers.remove(&link);
                    bed.carrier(link, false, ms);
                    check(&mut bed, &model, (&before, &beside), at(ms));
                    bed.segments.remove(link);
                    bed.update(ms);
                    continue;
                }
            }
            check(&mut bed, &model, (&before, &beside), at(ms));
        }
    }
}
