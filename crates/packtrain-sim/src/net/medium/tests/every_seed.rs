//! What holds in every seed, whatever is done to a medium.

use super::*;

/// What is done to a medium, from outside, at set times.
#[derive(Clone, Debug)]
enum Act {
    Offer(usize, Frame),
    Cut(usize),
    Mend(usize),
    Rate(u64),
}

struct Plan {
    config: MediumConfig,
    acts: Vec<(Instant, Act)>,
}

impl Plan {
    /// Bursts from some stations, at loads below and above what the medium carries. `faults`: cuts, and
    /// other rates.
    fn random(seed: u64, faults: bool) -> Plan {
        let mut random = Random::new(seed);
        let rate_bps = *random.pick(&[10_000_000, 100_000_000]);
        let stations = random.between(2, 6) as usize;
        let half_a_slot = 255;
        let config = MediumConfig {
            rate_bps,
            stations,
            queue_bytes_max: random.magnitude(1000, 20_000) as usize,
            propagation: bits(random.between(1, half_a_slot), rate_bps),
        };
        let mean_bits = random.magnitude(100, 10_000);
        let mut now = 0;
        let mut acts = Vec::new();
        for id in 0..600 {
            now += match random.chance(0.3) {
                true => 0,
                false => random.below(2 * mean_bits),
            };
            let station = random.below(stations as u64) as usize;
            let act = match random.below(60) {
                0 if faults => Act::Cut(station),
                1..=3 if faults => Act::Mend(station),
                4 if faults => Act::Rate(*random.pick(&[10_000_000, 100_000_000])),
                _ => {
                    let bytes = *random.pick(&[64, 64, 512, 1518]);
                    Act::Offer(station, frame(id, bytes))
                }
            };
            acts.push((Instant::ZERO + bits(now, rate_bps), act));
        }
        Plan { config, acts }
    }

    fn medium(&self, seed: u64) -> Medium {
        Medium::new(self.config, Random::new(seed))
    }
}

/// Does it, and returns how many frames a cut has taken.
fn act(medium: &mut Medium, act: &Act, now: Instant) -> u64 {
    match act {
        Act::Offer(station, frame) => drop(medium.offer(*station, frame.clone(), now)),
        Act::Cut(station) => return medium.cut(*station, now).len() as u64,
        Act::Mend(station) => medium.mend(*station, now),
        Act::Rate(rate_bps) => {
            let propagation = MediumConfig::propagation_of_one_hub(*rate_bps);
            medium.set_rate(*rate_bps, propagation, now);
        }
    }
    0
}

fn play(plan: &Plan, seed: u64) -> (Medium, Vec<Heard>) {
    let mut medium = plan.medium(seed);
    let mut heard = Vec::new();
    for (now, what) in &plan.acts {
        heard.extend(run(&mut medium, *now));
        act(&mut medium, what, *now);
    }
    heard.extend(run(&mut medium, Instant::from_nanos(u64::MAX / 2)));
    (medium, heard)
}

#[test]
fn every_frame_offered_is_heard_given_up_refused_cut_or_still_there() {
    let mut ends = [0u64; 4];
    for seed in 0..200 {
        let plan = Plan::random(seed, seed % 2 == 1);
        let mut medium = plan.medium(seed);
        let (mut heard, mut given_up) = (0, 0);
        for (now, what) in &plan.acts {
            act(&mut medium, what, *now);
            let on_their_way = |edge: &&Edge| matches!(edge.what, EdgeKind::EndsWhole { .. });
            let on_their_way = medium.edges.iter().filter(on_their_way).count() as u64;
            medium.handle(*now, |what| match what {
                Heard::Frame { .. } => heard += 1,
                Heard::GivenUp { .. } => given_up += 1,
            });
            let stations = 0..plan.config.stations;
            let held: u64 = stations
                .clone()
                .map(|s| medium.queued_frames(s) as u64)
                .sum();
            let sum = |of: fn(&StationCounters) -> u64| -> u64 {
                stations
                    .clone()
                    .map(|s| of(medium.station_counters(s)))
                    .sum()
            };
            let refused = sum(|c| c.queue_full) + sum(|c| c.cut);
            assert_eq!(
                sum(|c| c.offered_frames),
                heard + given_up + refused + held + on_their_way,
                "seed {seed} at {now:?}"
            );
            assert_eq!(sum(|c| c.sent_frames), heard + on_their_way);
            assert_eq!(sum(|c| c.excessive_collisions), given_up);
            for station in stations.clone() {
                let bytes = medium.stations[station].queue.iter();
                let bytes: usize = bytes.map(|frame| frame.bytes.len()).sum();
                assert_eq!(bytes, medium.queued_bytes(station));
            }
        }
        let sum = |of: fn(&StationCounters) -> u64| -> u64 {
            let stations = medium.stations.iter();
            stations.map(|s| of(&s.counters)).sum()
        };
        for (end, of) in ends.iter_mut().zip([
            heard,
            sum(|c| c.queue_full),
            sum(|c| c.cut),
            sum(|c| c.collisions),
        ]) {
            *end += u64::from(of > 0);
        }
    }
    assert!(ends.iter().all(|&seeds| seeds > 40), "{ends:?}");
}

#[test]
fn no_two_frames_overlap_and_96_bits_are_between_any_two_as_they_are_heard() {
    let mut frames = 0;
    for seed in 0..200 {
        let mut plan = Plan::random(seed, seed % 2 == 1);
        plan.acts.retain(|(_, act)| !matches!(act, Act::Rate(_)));
        let (medium, heard) = play(&plan, seed);
        let rate_bps = plan.config.rate_bps;
        let mut free_at = Instant::ZERO;
        for heard in &heard {
            let Heard::Frame {
                begun_at,
                at,
                frame,
                ..
            } = heard
            else {
                continue;
            };
            let bytes = frame.bytes.len() as u64 + 4;
            assert_eq!(*at, *begun_at + bits(64 + 8 * bytes, rate_bps));
            assert!(
                *begun_at >= free_at,
                "seed {seed}: {begun_at:?}, {free_at:?}"
            );
            free_at = *at + bits(96, rate_bps);
            frames += 1;
        }
        assert!(heard.windows(2).all(|pair| pair[0].at() <= pair[1].at()));
        let late = medium.stations.iter().map(|s| s.counters.late_collisions);
        assert_eq!(late.sum::<u64>(), 0, "seed {seed}");
    }
    assert!(frames > 10_000, "{frames}");
}

#[test]
fn each_collision_belongs_to_an_attempt_of_a_frame() {
    let mut saturated = Saturated::new(32, 64, 5);
    saturated.run(Duration::from_secs(5));
    let mut excessive = 0;
    for station in &saturated.medium.stations {
        let c = &station.counters;
        let of_sent: u64 = (0..).zip(c.sent_at_attempt).map(|(k, n)| k * n).sum();
        let of_first = station.attempts as u64;
        let pending = station.sending.is_some_and(|s| !s.collided);
        let first = of_first - u64::from(pending);
        assert_eq!(
            c.collisions,
            of_sent + ATTEMPTS_MAX as u64 * c.excessive_collisions + first
        );
        assert_eq!(c.sent_at_attempt.iter().sum::<u64>(), c.sent_frames);
        assert_eq!(
            c.sent_frames,
            c.sent_at_attempt[0] + c.single_collisions() + c.multiple_collisions()
        );
        assert_eq!(c.late_collisions, 0);
        excessive += c.excessive_collisions;
    }
    assert!(excessive > 0, "none was given up in all this");
}

#[test]
fn a_seed_replays_a_run_and_another_one_is_another_run() {
    let plan = Plan::random(3, true);
    assert_eq!(play(&plan, 3).1, play(&plan, 3).1);
    assert_ne!(play(&plan, 3).1, play(&plan, 4).1);
}

#[test]
fn whoever_comes_late_finds_what_it_would_have_found_in_time() {
    for seed in 0..100 {
        let plan = Plan::random(seed, true);
        let (in_time, expected) = play(&plan, seed);
        let (mut medium, mut heard) = (plan.medium(seed), Vec::new());
        let mut random = Random::new(seed + 1);
        for (now, what) in &plan.acts {
            if random.chance(0.1) {
                medium.handle(*now, |what| heard.push(what));
                assert!(medium.next_at().is_none_or(|at| at > *now));
            }
            act(&mut medium, what, *now);
        }
        medium.handle(Instant::from_nanos(u64::MAX / 2), |what| heard.push(what));
        assert_eq!(heard, expected, "seed {seed}");
        for (one, other) in medium.stations.iter().zip(&in_time.stations) {
            assert_eq!(one.counters, other.counters);
        }
        assert_eq!(medium.counters(), in_time.counters());
    }
}
