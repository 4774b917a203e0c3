use super::*;
use proptest::prelude::*;

fn candidate(at: usize, rate_mbit: u64, ahead_bytes: usize, delay_ms: u64) -> Candidate {
    Candidate {
        at,
        link: LinkId(at as u8),
        settings: LinkSettings::default(),
        served: Served::default(),
        admission: Admission::default(),
        standing: Standing::Open,
        in_doubt: None,
        has_room: true,
        rate: Rate::Measured(rate_mbit * 1_000_000),
        ahead_bytes,
        delay: Duration::from_millis(delay_ms),
    }
}

fn chosen(candidates: &[Candidate], balance: Balance, last: u8) -> Option<usize> {
    let policy = Policy {
        balance,
        spills: false,
    };
    chosen_by(candidates, policy, last)
}

fn chosen_by(candidates: &[Candidate], policy: Policy, last: u8) -> Option<usize> {
    let part = taking_part(candidates.iter().copied(), policy, 1500);
    choose(&part, policy.balance, LinkId(last), |_| true)
}

fn of_tier(tier: u8, candidate: Candidate) -> Candidate {
    let settings = LinkSettings {
        tier,
        ..candidate.settings
    };
    Candidate {
        settings,
        ..candidate
    }
}

#[test]
fn a_train_takes_the_link_by_which_it_arrives_first() {
    use Balance::EarliestFinish;
    let fast = candidate(0, 100, 12_500, 0);
    let slow = candidate(1, 20, 0, 0);
    assert_eq!(chosen(&[fast, slow], EarliestFinish, 0), Some(1));
    let far = candidate(1, 20, 0, 2);
    assert_eq!(chosen(&[fast, far], EarliestFinish, 0), Some(0));
    let full = Candidate {
        has_room: false,
        ..fast
    };
    assert_eq!(
        chosen(&[full, far], EarliestFinish, 0),
        Some(1),
        "or it waits"
    );
    let new = Candidate {
        rate: Rate::Expected(u64::MAX),
        ..far
    };
    let near = Candidate {
        delay: Duration::ZERO,
        ..new
    };
    assert_eq!(chosen(&[fast, near], EarliestFinish, 0), Some(1));
}

#[test]
fn links_that_are_alike_take_turns() {
    for balance in [Balance::EarliestFinish, Balance::RoundRobin] {
        let alike = [0, 1, 2].map(|at| candidate(at, 100, 0, 1));
        let mut last = 0;
        let order = [(); 6].map(|()| {
            last = chosen(&alike, balance, last as u8).unwrap();
            last
        });
        assert_eq!(order, [1, 2, 0, 1, 2, 0], "{balance:?}");
    }
}

#[test]
fn a_backup_waits_for_the_active_link_to_fail_and_not_for_it_to_be_full() {
    let mut links = [0, 1].map(|at| candidate(at, 100, 0, 1));
    assert_eq!(chosen(&links, Balance::ActiveBackup, 0), Some(0));
    links[0].has_room = false;
    assert_eq!(chosen(&links, Balance::ActiveBackup, 0), None);
    links[0].standing = Standing::Silent;
    assert_eq!(chosen(&links, Balance::ActiveBackup, 0), Some(1));
    assert_eq!(chosen(&links[..1], Balance::ActiveBackup, 0), None);
    links[0].has_room = true;
    assert_eq!(chosen(&links[..1], Balance::ActiveBackup, 0), Some(0));
}

#[test]
fn a_link_that_all_others_would_have_to_wait_for_takes_no_part() {
    let fast = Candidate {
        has_room: false,
        ..candidate(0, 1000, 0, 0)
    };
    let late = candidate(1, 1000, 0, 300);
    assert_eq!(chosen(&[fast, late], Balance::EarliestFinish, 0), None);
    // 100 ms of 2 Gbit/s are more than a receiver can hold.
    let less = candidate(1, 1000, 0, 100);
    assert_eq!(chosen(&[fast, less], Balance::EarliestFinish, 0), None);
    let slow_fast = Candidate {
        has_room: false,
        ..candidate(0, 10, 0, 0)
    };
    let slow_late = candidate(1, 10, 0, 100);
    assert_eq!(
        chosen(&[slow_fast, slow_late], Balance::EarliestFinish, 0),
        Some(1)
    );
    assert_eq!(chosen(&[late], Balance::EarliestFinish, 0), Some(1));
}

#[test]
fn a_higher_tier_waits_until_no_link_of_a_lower_one_works_or_has_room_if_it_spills() {
    for balance in Balance::ALL {
        let [keeps, spills] = [false, true].map(|spills| Policy { balance, spills });
        let mut links = [(2, 0), (1, 1), (3, 2), (2, 3)]
            .map(|(tier, at)| of_tier(tier, candidate(at, 100, 0, 1)));
        assert_eq!(chosen_by(&links, keeps, 0), Some(1), "{balance:?}");
        assert_eq!(chosen_by(&links, spills, 0), Some(1), "{balance:?}");
        links[1].has_room = false;
        assert_eq!(chosen_by(&links, keeps, 1), None, "{balance:?}");
        let next = chosen_by(&links, spills, 1);
        assert!(matches!(next, Some(0 | 3)), "{balance:?}: {next:?}");
        assert!(next == Some(0) || balance != Balance::ActiveBackup);
        links[1].standing = Standing::Silent;
        let next = chosen_by(&links, keeps, 1);
        assert!(matches!(next, Some(0 | 3)), "{balance:?}: {next:?}");
        links[0].standing = Standing::Retiring;
        assert_eq!(chosen_by(&links, keeps, 1), Some(3), "{balance:?}");
        assert_eq!(chosen_by(&links[..3], keeps, 1), Some(2), "{balance:?}");
        // Who still waits for what stands on the one that leaves takes nothing before.
        let mut two = [links[0], links[3]];
        two[1].standing = Standing::Joining;
        assert_eq!(chosen_by(&two, keeps, 1), Some(0), "{balance:?}");
        assert_eq!(chosen_by(&two[1..], keeps, 1), Some(3), "{balance:?}");
    }
}

#[test]
fn where_flows_keep_to_links_only_one_with_frames_is_chosen_and_none_waits_for_room_elsewhere() {
    let mut links = [0, 1, 2].map(|at| candidate(at, 100, 0, 1));
    // What stands before a link now is no reason for flows to leave it.
    links[1].ahead_bytes = 100 << 20;
    let policy = Policy {
        balance: Balance::HashIp,
        spills: false,
    };
    let part = taking_part(links.iter().copied(), policy, 1500);
    let among: Vec<usize> = part.iter().map(|(c, _)| c.at).collect();
    assert_eq!(among, [0, 1, 2]);
    let choose_of = |has: &[u8]| {
        choose(&part, policy.balance, LinkId(0), |link| {
            has.contains(&link.0)
        })
    };
    assert_eq!(choose_of(&[1]), Some(1));
    assert_eq!(choose_of(&[0, 2]), Some(2));
    assert_eq!(choose_of(&[]), None);
}

/// Everything from the words alone, and slowly.
fn model(all: &[Candidate], policy: Policy, last: u8) -> Option<usize> {
    let best = all.iter().map(|c| c.standing).min()?;
    let mut part: Vec<&Candidate> = all.iter().filter(|c| c.standing == best).collect();
    if !policy.spills {
        let tier = part.iter().map(|c| c.settings.tier).min()?;
        part.retain(|c| c.settings.tier == tier);
    }
    if policy.balance == Balance::ActiveBackup {
        let all = part.clone();
        let first = |tier| {
            all.iter()
                .filter(|c| c.settings.tier == tier)
                .map(|c| c.link)
                .min()
        };
        part.retain(|c| Some(c.link) == first(c.settings.tier));
    }
    part.retain(|c| c.has_room);
    let tier = part.iter().map(|c| c.settings.tier).min()?;
    part.retain(|c| c.settings.tier == tier);
    match policy.balance {
        Balance::EarliestFinish | Balance::Duplicate => {
            let first = part.iter().map(|c| c.finish(1500)).min()?;
            part.retain(|c| c.finish(1500) == first);
        }
        Balance::Weighted => {
            let least = part.iter().map(|c| c.served).min()?;
            part.retain(|c| c.served == least);
        }
        _ => {}
    }
    let after = part
        .iter()
        .filter(|c| c.link.0 > last)
        .min_by_key(|c| c.link);
    let next = after.or_else(|| part.iter().min_by_key(|c| c.link))?;
    Some(next.at)
}

proptest! {
    /// Links near each other: none is too slow for the others.
    #[test]
    fn the_choice_is_what_the_policy_says(
        links in proptest::collection::vec(
            (0u8..4, any::<bool>(), 1u64..4, 0usize..3, 1u8..4, 0usize..3),
            0..9
        ),
        last in 0u8..9,
        policy in (0..Balance::ALL.len(), any::<bool>()),
    ) {
        use Standing::*;
        let balance = Balance::ALL[policy.0];
        let policy = Policy { balance, spills: policy.1 && !balance.keeps_flows() };
        let all: Vec<Candidate> = links
            .iter()
            .enumerate()
            .map(|(at, &(standing, has_room, rate, ahead, tier, served))| {
                let mut candidate = of_tier(tier, candidate(at, rate, ahead * 1500, 1));
                candidate.served.add(served * 1500, 1);
                Candidate {
                    standing: [Open, Silent, Joining, Retiring][usize::from(standing)],
                    has_room,
                    ..candidate
                }
            })
            .collect();
        prop_assert_eq!(chosen_by(&all, policy, last), model(&all, policy, last));
    }

    #[test]
    fn whoever_takes_part_and_has_room_is_not_kept_waiting(
        links in proptest::collection::vec(
            (0u8..4, any::<bool>(), proptest::option::of(1u64..1000), 0usize..100_000, 0u64..100),
            1..9
        ),
        last in 0u8..9,
        balance in 0..Balance::ALL.len(),
    ) {
        use Standing::*;
        let balance = Balance::ALL[balance];
        let policy = Policy { balance, spills: false };
        let all: Vec<Candidate> = links
            .iter()
            .enumerate()
            .map(|(at, &(standing, has_room, rate, ahead, delay))| Candidate {
                standing: [Open, Silent, Joining, Retiring][usize::from(standing)],
                has_room,
                rate: match rate {
                    Some(mbit) => Rate::Measured(mbit * 1_000_000),
                    None => Rate::Expected(u64::MAX),
                },
                ..candidate(at, 1, ahead, delay)
            })
            .collect();
        let part = taking_part(all.iter().copied(), policy, 1500);
        let part: Vec<Candidate> = part.into_iter().map(|(c, _)| c).collect();
        let best = all.iter().map(|c| c.standing).min();
        prop_assert!(!part.is_empty() && part.iter().all(|c| Some(c.standing) == best));
        let chosen = chosen(&all, balance, last);
        prop_assert_eq!(chosen.is_some(), part.iter().any(|c| c.has_room));
        if let Some(at) = chosen {
            prop_assert!(all[at].has_room && part.iter().any(|c| c.at == at));
            if balance == Balance::EarliestFinish {
                let sooner = |c: &&Candidate| c.has_room && c.finish(1500) < all[at].finish(1500);
                prop_assert_eq!(part.iter().filter(sooner).count(), 0);
            }
        }
    }
}

#[test]
fn a_link_in_doubt_is_passed_over_for_those_of_its_tier_and_for_no_other() {
    let doubted = Candidate {
        in_doubt: Some(Duration::from_millis(20)),
        ..candidate(0, 100, 0, 1)
    };
    let policy = |balance| Policy {
        balance,
        spills: false,
    };
    let part_of = |candidates: &[Candidate], balance| -> Vec<usize> {
        let part = taking_part(candidates.iter().copied(), policy(balance), 1500);
        part.iter().map(|(c, _)| c.at).collect()
    };
    let other = candidate(1, 100, 0, 1);
    for balance in [
        Balance::EarliestFinish,
        Balance::RoundRobin,
        Balance::Weighted,
    ] {
        assert_eq!(part_of(&[doubted, other], balance), [1]);
        let later = |ms: u64| candidate(1, 100, 0, 1 + ms);
        assert_eq!(part_of(&[doubted, later(5)], balance), [1]);
        assert_eq!(part_of(&[doubted, later(6)], balance), [0, 1]);
        assert_eq!(part_of(&[doubted, later(6), other], balance), [1, 1]);
        let beyond = of_tier(other.settings.tier + 1, other);
        assert_eq!(part_of(&[doubted, beyond], balance), [0]);
        assert_eq!(part_of(&[doubted], balance), [0]);
    }
    assert_eq!(part_of(&[doubted, other], Balance::ActiveBackup), [0]);
    assert_eq!(part_of(&[doubted, other], Balance::HashPort), [0, 1]);
}
