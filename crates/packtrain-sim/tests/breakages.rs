//! The checkers, checked: each way in which the engine is made to seem broken must be noticed, by
//! the checker whose business it is.

use packtrain_sim::sabotage::Breakage;
use packtrain_sim::scenario::{Order, Report, Sabotage, direct, links, mesh, pair, three};
use packtrain_sim::simulator::StationId;

/// Seeds that a breakage may take to come to light.
const SEEDS_MAX: u64 = 60;

/// Who is to notice. More than one where a mistake breaks more than one promise, and which one is
/// seen first is chance.
fn watchers(breakage: Breakage) -> &'static [&'static str] {
    match breakage {
        Breakage::DuplicateDelivered | Breakage::DuplicateDeliveredLate => &["once"],
        Breakage::BroadcastDeliveredTwice | Breakage::ReplayedAfterRestart => &["once"],
        // What is held for too long comes too late.
        Breakage::GapReleasedEarly => &["in order", "accounted"],
        Breakage::FlowReordered | Breakage::LanesNotOrdered | Breakage::UrgentOvertakesItsFlow => {
            &["in order"]
        }
        Breakage::HoldNeverEnds
        | Breakage::HoldEndsLate
        | Breakage::HeldWithoutClass
        | Breakage::UrgentHeld
        | Breakage::ClassesKept => &["held within"],
        Breakage::ReplayDeliveredTwice => &["once"],
        // A flow that has come to another lane does not wait for ever for what is lost.
        Breakage::MarkerLies | Breakage::ReplayLostSilently => &["accounted", "in order"],
        Breakage::GroupCopyLostSilently => &["accounted"],
        Breakage::LosslessNotSaid | Breakage::CopiesDenied => &["accounted"],
        Breakage::AcknowledgedUnseen => &["drained", "accounted", "in order"],
        Breakage::LinkKeptIdle => &["work conserving", "held within"],
        Breakage::DeathDenied => &["found dead", "work conserving"],
        // The line does without the link, and the link never comes back.
        Breakage::LinkSwallows => &["progress"],
        Breakage::DeliveryDroppedSilently
        | Breakage::DeliveryLeaks
        | Breakage::TrainLostSilently => &["accounted"],
        Breakage::DeliveredToWrongHost => &["addressee"],
        Breakage::TrainsToEverybody => &["addressee"],
        Breakage::QueueUnbounded | Breakage::ReassemblyUnbounded => &["bounded"],
        // An engine's frames overtake direct ones, or the other way round.
        Breakage::DirectTooEarly | Breakage::FencesNotRaised | Breakage::FlowChangesLink => {
            &["in order"]
        }
        Breakage::SandBoundIgnored => &["sand bound"],
        Breakage::QuantumIgnored | Breakage::NewFlowsLast => &["starved"],
        Breakage::DirectLostSilently => &["accounted"],
        Breakage::BoundaryMoved => &["unchanged"],
        // An aggregate that lies may be refused as a whole.
        Breakage::OffsetWrong => &["unchanged", "accounted"],
        // What was in it is missing; or it is said to be damaged where no wire does that.
        Breakage::BlockLost | Breakage::BlockCutShort => &["accounted"],
        Breakage::DeltaOfAnotherSlot | Breakage::FieldNotTold | Breakage::ChecksumNotLookedAt => {
            &["unchanged", "well formed"]
        }
        Breakage::TimeGoesBack => &["time moves on"],
        Breakage::TransmitLeaks | Breakage::NeverWakes => &["progress"],
        Breakage::TrainTooLong => &["well formed"],
        Breakage::DrainedTooEarly => &["drained"],
        Breakage::SegmentLengthChanged => &["unchanged", "well formed"],
        // A header that is hit may make it malformed, another's, or nobody's.
        Breakage::ByteChanged
        | Breakage::Truncated
        | Breakage::EtherTypeChanged
        | Breakage::HoleDelivered
        | Breakage::SegmentsSwapped
        | Breakage::FragmentsSwapped
        | Breakage::AddressesSwapped
        | Breakage::VlanTagChanged
        | Breakage::Invented
        | Breakage::ChecksumLeftUnfinished => &["unchanged", "well formed"],
    }
}

fn run_of(breakage: Breakage) -> fn(Order) -> Report {
    match breakage {
        // Needs somebody without packtrain, or a third.
        Breakage::TrainsToEverybody => three::run,
        Breakage::GroupCopyLostSilently => mesh::run,
        Breakage::OffsetWrong => three::run_aggregates,
        Breakage::DeathDenied => links::run_silent_cuts,
        // Where some wires are far longer than others.
        Breakage::LanesNotOrdered => links::run,
        Breakage::LosslessNotSaid | Breakage::CopiesDenied => links::run_lossless,
        // Where wires lose, and are not cut.
        Breakage::AcknowledgedUnseen => links::run,
        _ if breakage.needs_direct() => direct::run_carrier_cuts,
        _ if breakage.needs_links() => links::run_carrier_cuts,
        _ => pair::run,
    }
}

/// The first seed in which it struck and was noticed, and by whom.
fn notice(breakage: Breakage, run: fn(Order) -> Report) -> (u64, &'static str) {
    let mut strikes = 0;
    for seed in 0..SEEDS_MAX {
        for station in [StationId(0), StationId(1)] {
            let sabotage = Some(Sabotage { station, breakage });
            let report = run(Order {
                sabotage,
                ..Order::new(seed)
            });
            strikes += report.strikes;
            if let Some(violation) = report.violation {
                // Whoever objects to the engine itself says nothing of the breakage: the seeds' own tests do.
                if run(Order::new(seed)).violation.is_some() {
                    continue;
                }
                let by = violation.checker;
                assert!(
                    watchers(breakage).contains(&by),
                    "{breakage:?} in seed {seed}: noticed by the wrong one, {violation}"
                );
                return (seed, by);
            }
        }
    }
    panic!("{breakage:?} struck {strikes} times in {SEEDS_MAX} seeds, and nobody noticed");
}

fn every_one_is_noticed(breakages: impl Iterator<Item = Breakage>) {
    let mut failures = Vec::new();
    for breakage in breakages {
        match std::panic::catch_unwind(|| notice(breakage, run_of(breakage))) {
            Ok((seed, by)) => println!("{breakage:?}: seed {seed}, {by}"),
            Err(_) => failures.push(breakage),
        }
    }
    assert!(failures.is_empty(), "see above: {failures:?}");
}

#[test]
fn every_breakage_is_noticed_by_the_checker_whose_business_it_is() {
    assert!(Breakage::ALL.len() >= 20);
    let all = Breakage::ALL.iter().copied();
    let is_of_one_link = |breakage: &Breakage| !breakage.needs_links() && !breakage.needs_direct();
    every_one_is_noticed(all.filter(is_of_one_link));
}

#[test]
fn every_breakage_of_several_links_is_noticed_too() {
    let all = Breakage::ALL.iter().copied();
    every_one_is_noticed(all.filter(|breakage| breakage.needs_links()));
}

#[test]
fn every_breakage_of_the_direct_path_is_noticed_too() {
    let all = Breakage::ALL.iter().copied();
    every_one_is_noticed(all.filter(|breakage| breakage.needs_direct()));
}

/// Where each link keeps its order, and where its card does not.
#[test]
fn flows_that_change_too_early_over_one_link_are_noticed_too() {
    for breakage in [Breakage::DirectTooEarly, Breakage::FencesNotRaised] {
        let (seed, by) = notice(breakage, direct::run);
        println!("{breakage:?}: seed {seed}, {by}");
    }
}

/// Where frames for everybody go to each segment, and some of these are cut off, what is excused must hide
/// nothing.
#[test]
fn what_is_lost_silently_among_three_hosts_is_noticed_too() {
    for breakage in [
        Breakage::TrainLostSilently,
        Breakage::DeliveryDroppedSilently,
        Breakage::GroupCopyLostSilently,
    ] {
        let (seed, by) = notice(breakage, mesh::run);
        println!("{breakage:?}: seed {seed}, {by}");
    }
}

#[test]
fn without_a_breakage_the_same_seeds_pass() {
    for seed in 0..SEEDS_MAX {
        for run in [pair::run, three::run, direct::run] {
            assert_eq!(run(Order::new(seed)).violation, None, "seed {seed}");
        }
    }
}

#[test]
fn without_a_breakage_the_same_seeds_pass_over_several_links() {
    for seed in 0..SEEDS_MAX {
        for run in [links::run_carrier_cuts, links::run_lossless] {
            assert_eq!(run(Order::new(seed)).violation, None, "seed {seed}");
        }
    }
}

#[test]
fn without_a_breakage_the_same_seeds_pass_past_the_engine_on_several_links() {
    for seed in 0..SEEDS_MAX {
        let report = direct::run_carrier_cuts(Order::new(seed));
        assert_eq!(report.violation, None, "seed {seed}");
    }
}
