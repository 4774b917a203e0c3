use super::astray::*;
use super::gaps::*;
use super::*;
use crate::trunk::balance::span_trains_max;
use proptest::prelude::*;

pub(super) const WAIT_MAX: Duration = Duration::from_millis(50);
const STALL_MAX: Duration = Duration::from_secs(3);
pub(super) const WAITS: (Duration, Duration) = (WAIT_MAX, STALL_MAX);
pub(super) const LINK: LinkId = LinkId(0);

fn train(n: u32) -> Buffer {
    let mut buffer = Buffer::with_capacity(64);
    assert!(buffer.push(&n.to_be_bytes()));
    buffer
}

fn number(held: &Held) -> u32 {
    u32::from_be_bytes(held.buffer[..4].try_into().unwrap())
}

/// A train that tells of nothing under way, as all do until one tells of something.
pub(super) fn insert(
    r: &mut Resequencer,
    n: u32,
    link: LinkId,
    now: Instant,
) -> Result<(), Refused> {
    if !r.under_way.names_links() {
        told(r, n, &[]);
    }
    r.insert(Sequence(n), Some(link), train(n), 0, now)
        .map_err(|(_, refused)| refused)
}

pub(super) fn drain(r: &mut Resequencer, now: Instant) -> Vec<u32> {
    core::iter::from_fn(|| r.poll(now))
        .map(|(held, _)| number(&held))
        .collect()
}

#[test]
fn a_link_that_loses_and_keeps_order_is_soon_not_waited_for() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let mut now = Instant::ZERO;
    for n in 0..10 {
        let waits = (WAIT_START / (1 << n)).max(WAIT_MIN);
        insert(&mut r, 2 * n + 2, LINK, now).unwrap();
        assert_eq!(drain(&mut r, now), [] as [u32; 0]);
        assert_eq!(r.poll_timeout(), Some(now + waits));
        now += waits;
        assert_eq!(drain(&mut r, now), [2 * n + 2]);
    }
    assert_eq!(r.stats.gaps, 10);
}

#[test]
fn who_did_not_look_in_time_reads_what_has_come_before_anything_is_given_up() {
    let holding_2_and_4 = || {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        for n in [2, 4] {
            insert(&mut r, n, LINK, Instant::ZERO).unwrap();
        }
        assert_eq!(drain(&mut r, Instant::ZERO), [] as [u32; 0]);
        r
    };
    let due = Instant::ZERO + WAIT_START;
    let mut r = holding_2_and_4();
    r.forgive_lateness(due + LATE);
    assert_eq!(drain(&mut r, due + LATE), [2, 4], "hardly late");

    let now = due + LATE * 2;
    let mut r = holding_2_and_4();
    r.forgive_lateness(now);
    assert_eq!(drain(&mut r, now), [] as [u32; 0]);
    assert_eq!(r.poll_timeout(), Some(now + LATE));
    for (n, came) in [(1, &[1, 2][..]), (3, &[3, 4])] {
        r.forgive_lateness(now);
        insert(&mut r, n, LINK, now).unwrap();
        assert_eq!(drain(&mut r, now), came);
    }

    let mut r = holding_2_and_4();
    r.forgive_lateness(now);
    r.forgive_lateness(now + LATE);
    assert_eq!(drain(&mut r, now + LATE), [2, 4], "lost all the same");

    // Who looks so seldom always.
    let mut r = holding_2_and_4();
    let mut at = now;
    let mut came = Vec::new();
    for _ in 0..4 {
        r.forgive_lateness(at);
        came.extend(drain(&mut r, at));
        at += LATE * 4;
    }
    assert_eq!(came, [2, 4]);
}

#[test]
fn where_nothing_may_be_lost_a_gap_is_waited_for_as_long_as_its_sender_has_a_copy() {
    let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let holding_2 = |kept_from: u32| {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        insert(&mut r, 2, LINK, ms(0)).unwrap();
        let says = (Repairing::Lossless, Some(Sequence(kept_from)));
        r.on_told(Sequence(2), core::iter::empty(), says, ms(0));
        assert_eq!(drain(&mut r, ms(0)), [] as [u32; 0]);
        (r, says)
    };
    let silent_ms = 4000;
    let (mut r, says) = holding_2(1);
    // The same marker again and again.
    for at in [3900, 5900] {
        assert_eq!(drain(&mut r, ms(at)), [] as [u32; 0]);
        r.on_told(Sequence(2), core::iter::empty(), says, ms(at));
        assert_eq!(r.poll_timeout(), Some(ms(at + silent_ms)));
    }
    insert(&mut r, 1, LINK, ms(9000)).unwrap();
    assert_eq!(drain(&mut r, ms(9000)), [1, 2]);

    let (mut r, says) = holding_2(1);
    for at in (0..10_000).step_by(100) {
        r.on_told(Sequence(2), core::iter::empty(), says, ms(at));
        assert_eq!(drain(&mut r, ms(at)), [] as [u32; 0]);
    }
    assert_eq!(drain(&mut r, ms(10_000)), [2], "whatever it says");

    let (mut r, _) = holding_2(2);
    assert_eq!(r.poll_timeout(), Some(ms(0) + WAIT_START), "it has none");
    assert_eq!(drain(&mut r, ms(50)), [2]);
}

#[test]
fn what_left_before_its_sender_was_heard_comes_all_the_same_where_that_has_copies() {
    let says = (Repairing::Lossless, Some(Sequence(3)));
    for (is_heard_first, came) in [(true, &[3, 4, 5][..]), (false, &[5])] {
        // It had sent up to 4.
        let mut r = Resequencer::new(Sequence(5), 1 << 20, WAITS);
        if is_heard_first {
            r.may_begin_earlier();
        }
        r.on_told(Sequence(5), core::iter::empty(), says, Instant::ZERO);
        for n in [5, 4, 3] {
            let _ = insert(&mut r, n, LINK, Instant::ZERO);
        }
        assert_eq!(drain(&mut r, Instant::ZERO), came);
        // What has come is not begun with again.
        r.on_told(Sequence(6), core::iter::empty(), says, Instant::ZERO);
        assert_eq!(r.expected(), Sequence(6));
    }
    // Another lane has gone on without 3, and does not wait for less than that any more.
    let mut r = Resequencer::new(Sequence(5), 1 << 20, WAITS);
    r.may_begin_earlier();
    r.give_up_to(Sequence(3));
    r.give_up_to(Sequence(2));
    r.on_told(Sequence(5), core::iter::empty(), says, Instant::ZERO);
    let refused = [5, 4, 3].map(|n| insert(&mut r, n, LINK, Instant::ZERO).err());
    assert_eq!(refused, [None, None, Some(Refused::Late)]);
    assert_eq!(drain(&mut r, Instant::ZERO), [4, 5]);
    // Of an older train than its sender had sent last, by a slower link.
    let mut r = Resequencer::new(Sequence(5), 1 << 20, WAITS);
    r.may_begin_earlier();
    r.on_told(Sequence(4), core::iter::empty(), says, Instant::ZERO);
    assert_eq!((r.expected(), r.is_untouched()), (Sequence(3), false));
    assert_eq!(r.under_way.told_at(), Instant::ZERO);
    // Where something may be lost, and of what is too far to be true.
    for says in [
        (Repairing::InTime, None),
        (Repairing::Lossless, Some(Sequence(5).minus(5000))),
    ] {
        let mut r = Resequencer::new(Sequence(5), 1 << 20, WAITS);
        r.may_begin_earlier();
        r.on_told(Sequence(5), core::iter::empty(), says, Instant::ZERO);
        assert_eq!((r.expected(), r.is_untouched()), (Sequence(5), false));
    }
}

#[test]
fn in_a_hurry_nothing_is_waited_for_once() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    r.hurry();
    for n in [2, 4] {
        insert(&mut r, n, LINK, Instant::ZERO).unwrap();
    }
    assert_eq!(drain(&mut r, Instant::ZERO), [] as [u32; 0]);
    r.hurry();
    assert_eq!(drain(&mut r, Instant::ZERO), [2, 4]);
    insert(&mut r, 6, LINK, Instant::ZERO).unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO), [] as [u32; 0]);
}

/// Told by a train or marker: what is under way on other links.
fn told(r: &mut Resequencer, by: u32, links: &[(LinkId, u32)]) {
    told_at(r, by, links, Instant::ZERO);
}

pub(super) fn told_at(r: &mut Resequencer, by: u32, links: &[(LinkId, u32)], now: Instant) {
    let links = links.iter().map(|&(link, n)| (link, Sequence(n)));
    r.on_told(Sequence(by), links, (Repairing::No, None), now);
}

#[test]
fn on_two_links_a_gap_waits_until_both_have_something_newer() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let other = LinkId(1);
    insert(&mut r, 1, LINK, Instant::ZERO).unwrap();
    insert(&mut r, 2, other, Instant::ZERO).unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO), [1, 2]);
    told(&mut r, 4, &[(other, 3)]);
    insert(&mut r, 4, LINK, Instant::ZERO).unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO), [] as [u32; 0]);
    assert_eq!(r.poll_timeout(), Some(Instant::ZERO + STALL_MAX));
    let later = Instant::ZERO + WAIT_START * 3;
    insert(&mut r, 5, other, later).unwrap();
    assert_eq!(drain(&mut r, later), [] as [u32; 0], "perhaps overtaken");
    assert_eq!(drain(&mut r, later + WAIT_START), [4, 5]);
}

#[test]
fn a_link_that_is_idle_or_was_given_nothing_so_old_is_not_waited_for() {
    for under_way in [&[][..], &[(LinkId(1), 2)]] {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        for n in [1, 2] {
            insert(&mut r, n, LINK, Instant::ZERO).unwrap();
        }
        drain(&mut r, Instant::ZERO);
        told(&mut r, 4, under_way);
        insert(&mut r, 4, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO + WAIT_START), [4]);
    }
}

#[test]
fn a_marker_by_the_link_itself_says_that_nothing_more_is_coming() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let other = LinkId(1);
    told(&mut r, 2, &[(other, 1)]);
    insert(&mut r, 2, LINK, Instant::ZERO).unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO + WAIT_MAX), [] as [u32; 0]);
    let later = Instant::ZERO + WAIT_MAX;
    r.note(other, Sequence(2), later);
    assert_eq!(drain(&mut r, later), [] as [u32; 0]);
    assert_eq!(drain(&mut r, later + WAIT_START), [2]);
}

#[test]
fn what_an_older_train_tells_is_not_believed_against_a_newer_one() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    told(&mut r, 5, &[(LinkId(1), 4)]);
    insert(&mut r, 5, LINK, Instant::ZERO).unwrap();
    told(&mut r, 3, &[]);
    insert(&mut r, 3, LINK, Instant::ZERO).unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO + WAIT_MAX), [] as [u32; 0]);
    assert_eq!(drain(&mut r, Instant::ZERO + STALL_MAX), [3, 5]);
    // Nor what tells of trains that nobody can have reached.
    told(&mut r, 100_000, &[]);
    r.note(LinkId(1), Sequence(100_000), Instant::ZERO);
    told(&mut r, 8, &[(LinkId(1), 7)]);
    insert(&mut r, 8, LINK, Instant::ZERO).unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO + WAIT_MAX), [] as [u32; 0]);
}

#[test]
fn a_replay_fills_its_gap_and_tells_nothing_of_the_link_by_which_it_came() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    insert(&mut r, 1, LINK, Instant::ZERO).unwrap();
    drain(&mut r, Instant::ZERO);
    told(&mut r, 4, &[(LinkId(0xff), 3)]);
    insert(&mut r, 4, LINK, Instant::ZERO).unwrap();
    let later = Instant::ZERO + STALL_MIN / 2;
    assert_eq!(drain(&mut r, later), [] as [u32; 0]);
    for n in [2, 3] {
        r.insert(Sequence(n), None, train(n), 0, later).unwrap();
    }
    assert_eq!(drain(&mut r, later), [2, 3, 4]);
    let again = r.insert(Sequence(3), None, train(3), 0, later);
    assert_eq!(again.unwrap_err().1, Refused::Duplicate);
    assert_eq!(r.stats.reordered, 0);
}

/// Trains 1 and 2 went by two links, and 3 by a third that died: it comes again before anything has told of
/// more than one link.
#[test]
fn a_replay_that_comes_before_all_that_tells_of_links_makes_nobody_give_up_what_they_carry() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    insert(&mut r, 1, LINK, Instant::ZERO).unwrap();
    r.insert(Sequence(3), None, train(3), 0, Instant::ZERO)
        .unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO + WAIT_MAX), [1]);
    assert_eq!(r.poll_timeout(), Some(Instant::ZERO + STALL_MIN));
}

#[test]
fn the_train_behind_a_gap_says_so_however_long_it_takes_to_come() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    told(&mut r, 1, &[]);
    let replay = |r: &mut Resequencer, n| r.insert(Sequence(n), None, train(n), 0, Instant::ZERO);
    replay(&mut r, 3).unwrap();
    assert!(r.poll(Instant::ZERO).is_none());
    // The first is lost, and nothing is known of the second.
    let later = Instant::ZERO + WAIT_START;
    assert!(r.poll(later).is_none());
    assert_eq!(r.expected(), Sequence(2));
    replay(&mut r, 2).unwrap();
    let after_gap = [(); 2].map(|()| r.poll(later).expect("it is there").1);
    assert_eq!(after_gap, [true, false]);
}

#[test]
fn a_link_that_reorders_is_waited_for_from_the_second_time_on() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    insert(&mut r, 2, LINK, at(0)).unwrap();
    assert_eq!(drain(&mut r, at(16)), [2]);
    assert_eq!(insert(&mut r, 1, LINK, at(20)), Err(Refused::Late));
    insert(&mut r, 4, LINK, at(21)).unwrap();
    assert_eq!(drain(&mut r, at(60)), [] as [u32; 0]);
    insert(&mut r, 3, LINK, at(61)).unwrap();
    assert_eq!(drain(&mut r, at(61)), [3, 4]);
    assert_eq!(r.stats.reordered, 2);
}

#[test]
fn a_rare_straggler_is_an_accident_many_are_a_habit_and_habits_are_forgotten() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let mut next = 1;
    // So many trains in order, then two that are swapped.
    let mut straggler_after = |r: &mut Resequencer, in_order: u32| {
        let swapped = next + in_order;
        for n in (next..swapped).chain([swapped + 1, swapped]) {
            insert(r, n, LINK, Instant::ZERO).unwrap();
            drain(r, Instant::ZERO);
        }
        next = swapped + 2;
        r.reorders(Instant::ZERO)
    };
    for _ in 0..20 {
        assert!(!straggler_after(&mut r, 2000), "one in 2000");
    }
    let often = (0..20)
        .map(|_| straggler_after(&mut r, 100))
        .collect::<Vec<_>>();
    assert!(!often[0] && often[19], "one in 100: {often:?}");
    assert!(!straggler_after(&mut r, 9000), "since then it kept order");
    assert!(
        (0..20)
            .map(|_| straggler_after(&mut r, 100))
            .last()
            .unwrap()
    );
    assert!(!r.reorders(Instant::ZERO + FADE_AFTER * 2), "long ago");
}

#[test]
fn each_refusal_has_its_reason() {
    let mut r = Resequencer::new(Sequence::FIRST, 2 * 64 + 10, WAITS);
    insert(&mut r, 1, LINK, Instant::ZERO).unwrap();
    assert_eq!(
        insert(&mut r, 1, LINK, Instant::ZERO),
        Err(Refused::Duplicate)
    );
    drain(&mut r, Instant::ZERO);
    assert_eq!(
        insert(&mut r, 1, LINK, Instant::ZERO),
        Err(Refused::Duplicate)
    );
    assert_eq!(
        insert(&mut r, 2 + 4096, LINK, Instant::ZERO),
        Err(Refused::Jump)
    );
    insert(&mut r, 4, LINK, Instant::ZERO).unwrap();
    insert(&mut r, 5, LINK, Instant::ZERO).unwrap();
    assert_eq!(insert(&mut r, 6, LINK, Instant::ZERO), Err(Refused::Full));
    assert_eq!(drain(&mut r, Instant::ZERO + WAIT_START), [4, 5]);
    assert_eq!(insert(&mut r, 3, LINK, Instant::ZERO), Err(Refused::Late));
    assert_eq!(
        insert(&mut r, 3, LINK, Instant::ZERO),
        Err(Refused::Duplicate)
    );
}

/// A copy shows now and then whether a silent link works again, while all that is new goes by others.
#[test]
fn a_train_let_through_is_a_duplicate_as_long_as_one_may_be_tried_with_it() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    for n in 1..=WINDOW as u32 + 1 {
        insert(&mut r, n, LINK, Instant::ZERO).unwrap();
        drain(&mut r, Instant::ZERO);
    }
    let mut again = |n: u32| {
        let taken = r.insert(Sequence(n), None, train(n), 0, Instant::ZERO);
        taken.map_err(|(_, refused)| refused)
    };
    assert_eq!(again(2), Err(Refused::Duplicate));
    assert_eq!(again(1), Err(Refused::Jump), "nobody is so far behind");
}

#[test]
fn what_was_waited_for_in_vain_comes_too_late_and_nothing_is_learned_of_it() {
    let now = Instant::ZERO;
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    for n in [1, 3, 6] {
        insert(&mut r, n, LINK, now).unwrap();
    }
    assert_eq!(drain(&mut r, now), [1]);
    let wait = r.wait;
    r.give_up_to(Sequence(4));
    assert_eq!(drain(&mut r, now), [3], "and 5 is waited for");
    for n in [2, 4] {
        assert_eq!(insert(&mut r, n, LINK, now), Err(Refused::Late));
    }
    insert(&mut r, 5, LINK, now).unwrap();
    let (held, after_gap) = r.poll(now).expect("it is due");
    assert_eq!((number(&held), after_gap), (5, true));
    assert_eq!(drain(&mut r, now), [6]);
    assert_eq!((r.stats.gaps, r.wait <= wait), (2, true));

    // Of what nothing is held at all, too; and of what nobody can have sent nothing.
    r.give_up_to(Sequence(8));
    r.give_up_to(Sequence(8 + span_trains_max(0)));
    assert_eq!(drain(&mut r, now), [] as [u32; 0]);
    assert_eq!(r.expected(), Sequence(9));
    assert_eq!(insert(&mut r, 8, LINK, now), Err(Refused::Late));
    insert(&mut r, 9, LINK, now).unwrap();
    assert_eq!(drain(&mut r, now), [9]);
}

proptest! {
    /// Whatever arrives, in whatever order: what comes out rises, each once, and everything that
    /// was taken comes out.
    #[test]
    fn what_comes_out_rises_and_all_that_was_taken_comes_out(
        arrivals in proptest::collection::vec((1u32..200, 0u8..3, 0u64..2000), 1..300)
    ) {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let mut now = Instant::ZERO;
        let mut taken = Vec::new();
        let mut out = Vec::new();
        for (n, link, micros) in arrivals {
            now += Duration::from_micros(micros);
            if insert(&mut r, n, LinkId(link), now).is_ok() {
                taken.push(n);
            }
            out.extend(drain(&mut r, now));
            if r.held_trains() > 0 {
                prop_assert!(r.poll_timeout().is_some_and(|at| at > now));
            }
        }
        now += WAIT_MAX;
        for _ in 0..300 {
            out.extend(drain(&mut r, now));
            now += STALL_MAX;
        }
        prop_assert!(out.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", out);
        taken.sort_unstable();
        prop_assert_eq!(out, taken);
        prop_assert_eq!(r.held_bytes(), 0);
    }
}

#[test]
fn a_sender_that_names_what_may_come_again_and_again_is_waited_for_but_not_for_ever() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let replayed = LinkId(0xff);
    told_at(&mut r, 2, &[(replayed, 1)], Instant::ZERO);
    insert(&mut r, 2, LINK, Instant::ZERO).unwrap();
    let mut now = Instant::ZERO;
    while drain(&mut r, now).is_empty() {
        assert!(now <= Instant::ZERO + STALL_MAX * CLAIMS_MAX, "{now:?}");
        told_at(&mut r, 2, &[(replayed, 1)], now);
        now += STALL_MIN / 2;
    }
    assert_eq!(now, Instant::ZERO + STALL_MAX * CLAIMS_MAX);
    // Once it does not any more, the wait is the usual one; while it is silent, its word holds for longer.
    told_at(&mut r, 4, &[(replayed, 3)], now);
    insert(&mut r, 4, LINK, now).unwrap();
    assert_eq!(drain(&mut r, now), [] as [u32; 0]);
    let again = now + STALL_MIN / 2;
    told_at(&mut r, 4, &[(replayed, 3)], again);
    assert_eq!(r.poll_timeout(), Some(again + STALL_MAX));
    told_at(&mut r, 4, &[], again + WAIT_START);
    assert_eq!(r.poll_timeout(), Some(again + STALL_MIN));
}

#[test]
fn of_two_markers_that_overtake_each_other_both_are_believed() {
    // The older one names the link by which the train had left, the newer one that it is sent again
    // because that link has died. It works again since, and has brought something newer.
    let (dead, replayed) = (LinkId(1), LinkId(0xff));
    let older = |r: &mut Resequencer| told(r, 3, &[(dead, 1)]);
    let newer = |r: &mut Resequencer| told(r, 3, &[(replayed, 1)]);
    for newer_comes_first in [false, true] {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        insert(&mut r, 3, LINK, Instant::ZERO).unwrap();
        r.note(dead, Sequence(3), Instant::ZERO);
        if newer_comes_first {
            newer(&mut r);
            older(&mut r);
        } else {
            older(&mut r);
            newer(&mut r);
        }
        insert(&mut r, 2, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO + WAIT_MAX), [] as [u32; 0]);
        assert_eq!(insert(&mut r, 1, LINK, Instant::ZERO), Ok(()));
        assert_eq!(drain(&mut r, Instant::ZERO), [1, 2, 3]);
    }
}

#[test]
fn links_without_end_that_a_forger_names_take_no_memory() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    for link in 0..=u8::MAX {
        told(&mut r, 3, &[(LinkId(link), 1)]);
    }
    insert(&mut r, 3, LINK, Instant::ZERO).unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO + STALL_MAX), [3]);
    assert!(r.under_way.claims() <= 2 * crate::wire::train::NEWEST_MAX);
}

#[test]
fn trains_behind_a_fence_wait_though_they_are_here_and_gaps_among_them_too() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let later = Instant::ZERO + STALL_MAX;
    r.fence = Some(Sequence(3));
    for n in [1, 2, 3, 5] {
        insert(&mut r, n, LINK, Instant::ZERO).unwrap();
    }
    assert_eq!(drain(&mut r, later), [1, 2]);
    assert!(r.is_fenced());
    assert_eq!(r.poll_timeout(), None);
    // What has no sequence goes behind all that is here.
    assert_eq!(r.newest_held(), Some(Sequence(5)));
    r.fence = None;
    assert_eq!(drain(&mut r, Instant::ZERO), [3]);
    assert!(r.poll_timeout().is_some());
    assert_eq!(drain(&mut r, later), [5]);
    // One of the past is one of now; and a hurry knows none.
    r.fence = Some(Sequence(1));
    assert_eq!(r.newest_held(), Some(Sequence(5)));
    r.hurry();
    assert!(!r.is_fenced());
}

#[test]
fn a_train_crowds_a_fence_before_there_is_no_place_or_no_room_for_it() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    insert(&mut r, 1, LINK, Instant::ZERO).unwrap();
    r.fence = Some(Sequence(2));
    let far = Sequence(1 + FENCED_MAX as u32);
    assert!(
        !r.crowds_fence(far, 64),
        "it is before the fence that one is due"
    );
    assert_eq!(drain(&mut r, Instant::ZERO), [1]);
    assert!(!r.crowds_fence(far, 64) && r.crowds_fence(far.next(), 64));
    assert!(!r.crowds_fence(Sequence(2), 3 << 18) && r.crowds_fence(Sequence(2), (3 << 18) + 1));
    r.fence = None;
    assert!(!r.crowds_fence(far.next(), 64));
}

#[test]
fn a_fence_holds_no_more_than_there_is_room_for() {
    let mut r = Resequencer::new(Sequence::FIRST, 4096, WAITS);
    r.fence = Some(Sequence(1));
    let mut let_through = Vec::new();
    for n in 1..=100 {
        insert(&mut r, n, LINK, Instant::ZERO).unwrap();
        let_through.extend(drain(&mut r, Instant::ZERO));
        assert!(r.held_bytes() <= 4096);
    }
    assert_eq!(
        let_through,
        (1..=let_through.len() as u32).collect::<Vec<_>>()
    );
    assert!((50..100).contains(&let_through.len()), "{let_through:?}");
}

mod window;
