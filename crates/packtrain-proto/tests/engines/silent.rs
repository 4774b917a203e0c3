//! Links that die one after the other, and nobody is told.

use crate::segments::{Bed, Cable, frame_to, pt0};
use packtrain_proto::config::LinkId;
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;

/// Here is what holds when nothing is repaired.
fn bed_of(links: u8) -> Bed {
    let cables: Vec<Cable> = (0..links)
        .map(|link| Cable::of(&[(0, link), (1, link)]))
        .collect();
    Bed::with(2, &cables, |config| config.limits.repair_within = None)
}

const LINKS: usize = 8;

/// By each link of host 0.
fn trains_sent(bed: &Bed) -> Vec<u64> {
    let snapshot = bed.engines[0].snapshot(bed.now);
    snapshot.links.iter().map(|link| link.trains_tx).collect()
}

#[test]
fn a_train_that_is_sent_again_by_one_dead_link_after_the_other_is_waited_for() {
    let cables: Vec<Cable> = (0..LINKS as u8)
        .map(|link| Cable::of(&[(0, link), (1, link)]))
        .collect();
    // By missing acknowledgements alone: liveness would know of all of them.
    let mut bed = Bed::with(2, &cables, |config| config.detection_time = None);
    bed.run(Duration::from_secs(4));
    let send = |bed: &mut Bed, word: u8| bed.send(0, &frame_to(pt0(1), pt0(0), word));
    for word in 0..4 * LINKS as u8 {
        send(&mut bed, word);
        bed.run(Duration::from_millis(10));
    }
    bed.out[1].clear();

    // The first is lost; of the rest only one is whole, and has room for markers alone for a while.
    let before = trains_sent(&bed);
    bed.cables.iter_mut().for_each(|cable| cable.broken = true);
    send(&mut bed, 100);
    bed.run(Duration::from_micros(100));
    let after = trains_sent(&bed);
    let lost_by = (0..LINKS).find(|&at| after[at] > before[at]);
    let whole = (lost_by.expect("it has left") + 1) % LINKS;
    bed.cables[whole].broken = false;
    send(&mut bed, 101);
    bed.run(Duration::from_micros(100));
    assert_eq!(trains_sent(&bed)[whole], before[whole] + 1);
    let whole_link = (0, LinkId(whole as u8));
    bed.full.insert(whole_link);
    bed.run(Duration::from_millis(1300));
    assert_eq!(bed.out[1].len(), 0, "the one that is lost is tried still");
    bed.full.remove(&whole_link);
    bed.run(Duration::from_secs(2));
    let words: Vec<u8> = bed.out[1].iter().map(|f| f[f.len() - 1]).collect();
    assert_eq!(words, [100, 101]);
    let drops = bed.engines[1].snapshot(bed.now).drops;
    assert_eq!(drops.get(DropReason::Late), 0);
    let replayed = bed.engines[0].snapshot(bed.now).replay.replayed;
    assert!(
        replayed >= 6,
        "{replayed}: by one dead link after the other"
    );
}

#[test]
fn an_acknowledgement_that_a_dead_link_took_along_is_said_again_before_its_own_link_seems_dead() {
    let mut bed = bed_of(2);
    bed.run(Duration::from_secs(4));
    for word in 0..8 {
        for side in 0..2 {
            bed.send(side, &frame_to(pt0(1 - side), pt0(side), word));
            bed.run(Duration::from_millis(10));
        }
    }
    // What the one sends arrives; the other's train, with the acknowledgement, does not.
    let room_by_one = [(0, LinkId(0)), (1, LinkId(1))];
    bed.full.extend(room_by_one);
    bed.cables[0].broken = true;
    bed.run(Duration::from_millis(1));
    bed.send(0, &frame_to(pt0(1), pt0(0), 100));
    bed.run(Duration::from_micros(10));
    bed.send(1, &frame_to(pt0(0), pt0(1), 101));
    bed.run(Duration::from_micros(10));
    bed.full.clear();
    bed.run(Duration::from_secs(1));
    let words = |side: usize| bed.out[side].iter().map(|f| f[f.len() - 1]);
    assert!(words(1).eq((0..8).chain([100])));
    assert!(words(0).eq((0..8).chain([101])));
    let replayed = |side: usize| bed.engines[side].snapshot(bed.now).replay.replayed;
    assert_eq!((replayed(0), replayed(1)), (0, 1));
}

#[test]
fn a_train_that_only_a_link_that_is_gone_has_room_for_holds_nobody_up() {
    let mut bed = bed_of(2);
    for side in 0..2 {
        bed.mtus.insert((side, LinkId(0)), 9000);
        bed.set_carrier(side, 0, true);
    }
    bed.run(Duration::from_secs(4));
    bed.set_carrier(0, 1, false);
    bed.run(Duration::from_secs(1));
    bed.cables[0].broken = true;
    let mut large = frame_to(pt0(1), pt0(0), 1);
    large.resize(5000, 1);
    bed.send(0, &large);
    bed.run(Duration::from_millis(1));
    bed.set_carrier(0, 1, true);
    bed.set_carrier(0, 0, false);
    bed.run(Duration::from_secs(2));
    let seen = bed.engines[0].snapshot(bed.now);
    assert_eq!(seen.drops.get(DropReason::ReplayTooLarge), 1);
    assert_eq!((seen.replay.kept_trains, seen.replay.kept_bytes), (0, 0));
    bed.send(0, &frame_to(pt0(1), pt0(0), 2));
    bed.run(Duration::from_secs(2));
    let words: Vec<u8> = bed.out[1].iter().map(|f| f[f.len() - 1]).collect();
    assert_eq!(words, [2]);
}

#[test]
fn what_may_fit_a_link_that_comes_back_waits_while_there_is_no_other() {
    let mut bed = bed_of(2);
    bed.run(Duration::from_secs(4));
    bed.set_carrier(0, 1, false);
    bed.run(Duration::from_secs(1));
    bed.cables[0].broken = true;
    bed.send(0, &frame_to(pt0(1), pt0(0), 1));
    bed.run(Duration::from_millis(1));
    bed.set_carrier(0, 0, false);
    bed.run(Duration::from_millis(500));
    assert_eq!(bed.engines[0].snapshot(bed.now).replay.waiting_trains, 1);
    bed.cables[0].broken = false;
    bed.set_carrier(0, 0, true);
    bed.run(Duration::from_secs(1));
    assert_eq!(bed.out[1].len(), 1);
}

/// It is acknowledged in its turn, behind a train that nobody sends again: who waits for that one because the probe
/// goes again waits for itself.
#[test]
fn a_probe_that_goes_again_keeps_nobody_waiting_for_what_was_lost_before_it() {
    let mut bed = bed_of(2);
    bed.run(Duration::from_secs(4));
    for word in 0..32 {
        bed.send(0, &frame_to(pt0(1), pt0(0), word));
        bed.run(Duration::from_millis(10));
    }
    bed.out[1].clear();
    // By the second link: one is lost, and counts as lost when the next has arrived.
    bed.full.insert((0, LinkId(0)));
    bed.run(Duration::from_millis(1));
    bed.cables[1].broken = true;
    bed.send(0, &frame_to(pt0(1), pt0(0), 100));
    bed.run(Duration::from_millis(20));
    bed.cables[1].broken = false;
    bed.send(0, &frame_to(pt0(1), pt0(0), 101));
    bed.run(Duration::from_micros(100));
    // The first takes a probe with it, which goes again by the second.
    bed.cables[0].broken = true;
    bed.engines[0].request_drain(1, bed.now);
    bed.run(Duration::from_micros(100));
    let before = trains_sent(&bed);
    bed.set_carrier(0, 0, false);
    bed.send(0, &frame_to(pt0(1), pt0(0), 102));
    bed.run(Duration::from_millis(1));
    assert_eq!(trains_sent(&bed)[1], before[1] + 2);
    assert_eq!(bed.engines[0].snapshot(bed.now).replay.replayed, 1);
    assert_eq!(bed.out[1].len(), 0, "the first may come still");
    bed.run(Duration::from_secs(2));
    let words: Vec<u8> = bed.out[1].iter().map(|f| f[f.len() - 1]).collect();
    assert_eq!(words, [101, 102]);
}

#[test]
fn a_link_is_late_soon_after_it_died_and_long_before_it_counts_as_silent() {
    let mut bed = bed_of(2);
    bed.run(Duration::from_secs(4));
    for word in 0..8 {
        bed.send(0, &frame_to(pt0(1), pt0(0), word));
        bed.run(Duration::from_millis(10));
    }
    let late = |bed: &Bed| -> Vec<LinkId> { bed.engines[0].late_links(bed.now).collect() };
    assert!(!bed.engines[0].awaits_links() && late(&bed).is_empty());
    let before = trains_sent(&bed);
    bed.cables.iter_mut().for_each(|cable| cable.broken = true);
    bed.send(0, &frame_to(pt0(1), pt0(0), 100));
    bed.run(Duration::from_millis(1));
    assert!(bed.engines[0].awaits_links() && late(&bed).is_empty());
    let after = trains_sent(&bed);
    let took_it = (0..2).find(|&at| after[at] > before[at]);
    bed.run(Duration::from_millis(20));
    let took_it = LinkId(took_it.expect("it has left") as u8);
    assert_eq!(late(&bed), [took_it]);
    assert_eq!(bed.engines[0].snapshot(bed.now).replay.replayed, 0);
}
