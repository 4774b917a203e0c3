//! Where the window is led by what comes, and who takes it back.

use super::*;

#[test]
fn a_sender_far_ahead_is_followed_after_some_trains_in_a_row() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let mut insert = |sequence: u32| {
        let taken = insert(&mut r, sequence, LINK, Instant::ZERO);
        drain(&mut r, Instant::ZERO + WAIT_START);
        taken
    };
    assert_eq!(insert(1), Ok(()));
    // One false sequence is none, and neither is one again and again.
    for _ in 0..3 * STRAYS_MAX {
        assert_eq!(insert(1_000_000), Err(Refused::Jump));
    }
    assert_eq!(insert(2), Ok(()));
    for i in 1..STRAYS_MAX {
        assert_eq!(insert(500_000 + i), Err(Refused::Jump));
    }
    for i in STRAYS_MAX..100 {
        assert_eq!(insert(500_000 + i), Ok(()));
    }
    assert_eq!(insert(3), Err(Refused::Jump));
}

#[test]
fn trains_that_are_sent_again_move_the_window_nowhere_however_many() {
    // A peer that was forgotten and met again: what it sent before may have been delivered then.
    let mut r = Resequencer::new(Sequence(1000), 1 << 20, WAITS);
    let mut replay = |n: u32| {
        let taken = r.insert(Sequence(n), None, train(n), 0, Instant::ZERO);
        taken.map_err(|(_, refused)| refused)
    };
    for n in 900..1000 {
        assert_eq!(replay(n), Err(Refused::Late));
    }
    for n in 0..2 * STRAYS_MAX {
        assert_eq!(replay(50_000 + n), Err(Refused::Jump));
    }
    assert_eq!(replay(1000), Ok(()));
}

#[test]
fn only_the_sender_itself_takes_the_window_back_beyond_its_memory() {
    let mut r = Resequencer::new(Sequence(10_000), 1 << 20, WAITS);
    for n in 1..3 * STRAYS_MAX {
        assert_eq!(insert(&mut r, n, LINK, Instant::ZERO), Err(Refused::Jump));
    }
    // Overtaken by some trains, or ahead of some that are lost: nothing new.
    for (n, newest) in [9_000, 9_998, 9_999, 10_500].into_iter().enumerate() {
        r.on_newest_sent(Sequence(newest), Instant::ZERO);
        let next = 10_000 + n as u32;
        insert(&mut r, next, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO), [next]);
    }
    // Overtaken by very many, it comes not much later than these.
    let late = Instant::ZERO + WAIT_MAX - Duration::from_nanos(1);
    r.on_newest_sent(Sequence(102), late);
    assert_eq!(insert(&mut r, 103, LINK, late), Err(Refused::Jump));
    insert(&mut r, 10_004, LINK, late).unwrap();
    assert_eq!(drain(&mut r, late), [10_004]);
    r.on_newest_sent(Sequence(102), late + WAIT_MAX);
    insert(&mut r, 103, LINK, Instant::ZERO).unwrap();
    let (held, gap) = r.poll(Instant::ZERO).unwrap();
    assert_eq!((number(&held), gap, r.held_bytes()), (103, true, 0));
    r.on_newest_sent(Sequence(1_000_000), Instant::ZERO);
    insert(&mut r, 1_000_001, LINK, Instant::ZERO).unwrap();
    assert_eq!(drain(&mut r, Instant::ZERO), [1_000_001]);
}

/// Its sequence was altered on the way, in a lane in which nothing may be lost: the gap before it is waited for for seconds.
#[test]
fn what_its_sender_has_not_sent_leads_nobody_astray_once_it_has_said_so_for_a_while() {
    let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let says = (Repairing::Lossless, Some(Sequence::FIRST));
    let come = |r: &mut Resequencer, n: u32, at: u64| {
        let taken = r.insert(Sequence(n), Some(LINK), train(n), 0, ms(at));
        taken.expect("there is room");
        drain(r, ms(at))
    };
    for (said, discarded) in [(1, 1), (1025, 0)] {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        assert_eq!(come(&mut r, 1, 0), [1]);
        r.on_told(Sequence(1), core::iter::empty(), says, ms(0));
        assert_eq!(come(&mut r, 1025, 0), [] as [u32; 0]);
        // Three hellos, and a train that has overtaken the last one.
        r.on_newest_sent(Sequence(1), ms(0));
        r.on_newest_sent(Sequence(said), ms(1000));
        assert_eq!(come(&mut r, 3, 1900), [] as [u32; 0]);
        r.on_newest_sent(Sequence(1), ms(2000));
        assert_eq!(
            (r.discarded, r.held_trains() as u64),
            (discarded, 2 - discarded)
        );
        assert_eq!(come(&mut r, 2, 2001), [2, 3]);
        assert_eq!(r.stats.gaps, 0);
    }
}

/// Of a train, or a marker, whose sequence was altered on the way.
#[test]
fn what_its_sender_has_not_sent_tells_nothing_once_it_has_said_so_for_a_while() {
    let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let other = LinkId(1);
    let come = |r: &mut Resequencer, (n, link): (u32, LinkId), at: u64| {
        let taken = r.insert(Sequence(n), Some(link), train(n), 0, ms(at));
        taken.expect("there is room");
        drain(r, ms(at))
    };
    for (is_marker, told_again) in [(false, false), (true, false), (true, true)] {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        told_at(&mut r, 1, &[(other, 1)], ms(0));
        assert_eq!(come(&mut r, (1, LINK), 0), [1]);
        told_at(&mut r, 1025, &[], ms(10));
        match is_marker {
            true => r.note(LINK, Sequence(1025), ms(10)),
            false => assert_eq!(come(&mut r, (1025, LINK), 10), [] as [u32; 0]),
        }
        r.on_newest_sent(Sequence(1), ms(20));
        r.on_newest_sent(Sequence(1), ms(1000));
        if told_again {
            // The hellos are overtaken by what was sent since.
            told_at(&mut r, 1025, &[], ms(1010));
        }
        r.on_newest_sent(Sequence(1), ms(2000));
        // 3 is under way by the other link.
        told_at(&mut r, 4, &[(other, 3)], ms(2001));
        assert_eq!(come(&mut r, (2, other), 2001), [2]);
        assert_eq!(come(&mut r, (4, LINK), 2001), [] as [u32; 0]);
        let waits = drain(&mut r, ms(2001) + WAIT_MAX).is_empty();
        assert_eq!(waits, !told_again, "marker: {is_marker}");
        if waits {
            assert_eq!(come(&mut r, (3, other), 2100), [3, 4]);
            assert_eq!((r.stats.gaps, r.stats.reordered), (0, 0));
        }
    }
}

#[test]
fn a_window_led_astray_by_one_false_sequence_comes_back() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let mut insert = |sequence: u32| {
        let taken = insert(&mut r, sequence, LINK, Instant::ZERO);
        drain(&mut r, Instant::ZERO + WAIT_START);
        taken
    };
    assert_eq!(insert(1), Ok(()));
    assert_eq!(insert(1000), Ok(()));
    for i in 2..1 + STRAYS_MAX {
        assert_eq!(insert(i), Err(Refused::Late));
    }
    for i in 1 + STRAYS_MAX..100 {
        assert_eq!(insert(i), Ok(()));
        assert_eq!(insert(i), Err(Refused::Duplicate));
    }
}

#[test]
fn what_is_so_far_behind_that_its_sender_would_have_waited_is_lost() {
    let other = LinkId(1);
    let mut r = Resequencer::new(Sequence::FIRST, 64 << 20, WAITS);
    let now = Instant::ZERO;
    let first = Sequence::FIRST.0;
    told(&mut r, first + 1, &[(other, first)]);
    // One that claims to be far ahead shows nothing.
    insert(&mut r, first + 4000, LINK, now).unwrap();
    assert_eq!(drain(&mut r, now), [] as [u32; 0]);
    for n in 1..WINDOW as u32 / 2 {
        insert(&mut r, first + n, LINK, now).unwrap();
        assert_eq!(r.poll(now).map(|(held, _)| number(&held)), None, "{n}");
    }
    insert(&mut r, first + WINDOW as u32 / 2, LINK, now).unwrap();
    let all = first + 1..=first + WINDOW as u32 / 2;
    assert!(drain(&mut r, now).into_iter().eq(all));
}

#[test]
fn trains_that_a_stalled_link_delivers_late_do_not_take_the_window_back() {
    let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
    let other = LinkId(1);
    told(&mut r, 51, &[(other, 50)]);
    insert(&mut r, 51, LINK, Instant::ZERO).unwrap();
    let mut now = Instant::ZERO;
    let mut out = Vec::new();
    while out.is_empty() {
        now = r.poll_timeout().unwrap_or(now);
        out = drain(&mut r, now);
    }
    assert_eq!((out, now), (vec![51], Instant::ZERO + STALL_MAX));
    for n in 1..=50 {
        assert_eq!(insert(&mut r, n, other, now), Err(Refused::Late));
    }
    insert(&mut r, 52, LINK, now).unwrap();
    assert_eq!(drain(&mut r, now), [52]);
    // A hello that was overtaken says that the sender is far behind: only when it still does.
    for n in 53..2000 {
        insert(&mut r, n, LINK, now).unwrap();
        drain(&mut r, now);
    }
    r.on_newest_sent(Sequence(500), now);
    assert_ne!(insert(&mut r, 501, LINK, now), Ok(()));
    r.on_newest_sent(Sequence(500), now + BEHIND_FOR);
    insert(&mut r, 501, LINK, now).unwrap();
    assert_eq!(drain(&mut r, now), [501]);
}
