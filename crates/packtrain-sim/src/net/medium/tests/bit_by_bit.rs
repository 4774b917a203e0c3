//! Clause 4 once more: bit by bit, slowly, over the whole history, with both parts of the gap.

use super::*;

#[derive(Clone, Copy, PartialEq)]
enum Deference {
    No,
    Busy { was_transmitting: bool },
    Part1 { since: u64, was_transmitting: bool },
    Part2 { since: u64 },
}

struct SlowStation {
    random: Random,
    queue: VecDeque<(u32, u64)>,
    attempts: u32,
    ready: u64,
    transmitting: Option<usize>,
    deference: Deference,
}

struct Transmission {
    from: usize,
    begin: u64,
    end: u64,
    collided: bool,
}

#[derive(Debug, PartialEq)]
enum SlowHeard {
    Frame(u32),
    GivenUp(u32),
}

/// `offers`: when, who, which, how many bits with the preamble. Returns when what was heard, in bits.
fn slow_model(
    stations: usize,
    way: u64,
    seed: u64,
    offers: &[(u64, usize, u32, u64)],
    until: u64,
) -> Vec<(u64, usize, SlowHeard)> {
    let mut random = Random::new(seed);
    let mut all: Vec<SlowStation> = (0..stations)
        .map(|_| SlowStation {
            random: random.fork(),
            queue: VecDeque::new(),
            attempts: 0,
            ready: 0,
            transmitting: None,
            deference: Deference::No,
        })
        .collect();
    let mut history: Vec<Transmission> = Vec::new();
    let mut heard = Vec::new();
    let mut offers = offers.iter().peekable();
    for now in 0..until {
        while let Some(&(_, who, id, bits)) = offers.next_if(|offer| offer.0 == now) {
            if all[who].queue.is_empty() {
                all[who].ready = now;
            }
            all[who].queue.push_back((id, bits));
        }
        for (who, station) in all.iter_mut().enumerate() {
            let Some(index) = station.transmitting.filter(|&i| history[i].end == now) else {
                continue;
            };
            station.transmitting = None;
            let id = station.queue[0].0;
            let done = match history[index].collided {
                false => Some((now + way, who, SlowHeard::Frame(id))),
                true if station.attempts == 16 => Some((now, who, SlowHeard::GivenUp(id))),
                true => None,
            };
            match done {
                Some(what) => {
                    heard.push(what);
                    station.queue.pop_front();
                    station.attempts = 0;
                    station.ready = now;
                }
                None => {
                    let k = station.attempts.min(10);
                    station.ready = now + 512 * station.random.below(2u64.pow(k));
                }
            }
        }
        for (who, station) in all.iter_mut().enumerate() {
            // What began or ended in the last slots is all that can be heard.
            let recent = &history[history.len().saturating_sub(4 * stations)..];
            let carrier = recent
                .iter()
                .any(|t| t.from != who && t.begin + way <= now && now < t.end + way);
            let transmitting = station.transmitting.is_some();
            let waiting = !transmitting && !station.queue.is_empty() && station.ready <= now;
            let mut may_begin = false;
            loop {
                let next = match station.deference {
                    Deference::No if carrier => Deference::Busy {
                        was_transmitting: false,
                    },
                    Deference::No => {
                        may_begin = waiting;
                        Deference::No
                    }
                    Deference::Busy { was_transmitting } if carrier || transmitting => {
                        Deference::Busy {
                            was_transmitting: was_transmitting || transmitting,
                        }
                    }
                    Deference::Busy { was_transmitting } => Deference::Part1 {
                        since: now,
                        was_transmitting,
                    },
                    Deference::Part1 { since, .. } if now - since == 64 => {
                        Deference::Part2 { since }
                    }
                    Deference::Part1 {
                        was_transmitting: false,
                        ..
                    } if carrier => Deference::Busy {
                        was_transmitting: false,
                    },
                    Deference::Part2 { since } if now - since == 96 => {
                        may_begin = waiting;
                        Deference::No
                    }
                    same => same,
                };
                let settled = next == station.deference || may_begin;
                station.deference = next;
                if settled {
                    break;
                }
            }
            if may_begin {
                station.attempts += 1;
                station.transmitting = Some(history.len());
                station.deference = Deference::Busy {
                    was_transmitting: true,
                };
                history.push(Transmission {
                    from: who,
                    begin: now,
                    end: now + station.queue[0].1,
                    collided: false,
                });
            }
            if let Some(index) = station.transmitting.filter(|_| carrier) {
                let own = &mut history[index];
                if !own.collided {
                    own.collided = true;
                    own.end = now.max(own.begin + 64) + 32;
                }
            }
        }
    }
    for (i, whole) in history.iter().enumerate().filter(|(_, t)| !t.collided) {
        let alone = |(j, other): (usize, &Transmission)| {
            i == j || other.end <= whole.begin || whole.end <= other.begin
        };
        let near = history.iter().enumerate().skip(i.saturating_sub(40));
        assert!(near.take(80).all(alone), "a whole frame met another");
    }
    heard.sort_by_key(|heard| heard.0);
    heard
}

fn compare(
    config: MediumConfig,
    seed: u64,
    offers: &[(u64, usize, u32, u64)],
    until: u64,
) -> [usize; 2] {
    let way = (config.propagation.as_nanos() / BIT.as_nanos()) as u64;
    let mut expected = slow_model(config.stations, way, seed, offers, until);
    expected.retain(|heard| heard.0 < until);
    let mut medium = Medium::new(config, Random::new(seed));
    for &(when, who, id, bits) in offers {
        let bytes = (bits - PREAMBLE_BITS) / 8;
        let offered = medium.offer(who, frame(id, bytes as usize), at(when));
        offered.unwrap();
    }
    let mut heard = Vec::new();
    medium.handle(at(until - 1), |what| {
        let (from, kind) = match &what {
            Heard::Frame { from, frame, .. } => (*from, SlowHeard::Frame(id(frame))),
            Heard::GivenUp { from, frame, .. } => (*from, SlowHeard::GivenUp(id(frame))),
        };
        heard.push((what.at(), from, kind));
    });
    let given_up = |heard: &&(_, _, SlowHeard)| matches!(heard.2, SlowHeard::GivenUp(_));
    let counts = [heard.len(), heard.iter().filter(given_up).count()];
    let expected = expected.into_iter();
    assert!(
        heard
            .into_iter()
            .eq(expected.map(|(bits, from, kind)| (at(bits), from, kind))),
        "seed {seed}"
    );
    counts
}

#[test]
fn the_rules_followed_bit_by_bit_come_to_the_same() {
    let mut compared = 0;
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let stations = random.between(2, 5) as usize;
        let config = MediumConfig {
            queue_bytes_max: usize::MAX,
            propagation: BIT * random.between(1, 255) as u32,
            ..MediumConfig::one_hub(RATE_BPS, stations)
        };
        let mean = random.magnitude(500, 8000);
        let mut now = 0;
        let offers: Vec<(u64, usize, u32, u64)> = (0..150)
            .map(|id| {
                now += random.below(2 * mean);
                let bytes = *random.pick(&[64, 65, 200, 1518]);
                let who = random.below(stations as u64) as usize;
                (now, who, id, PREAMBLE_BITS + 8 * bytes)
            })
            .collect();
        compared += compare(config, seed, &offers, now + 50_000)[0];
    }
    assert!(compared > 2500, "{compared}");
}

#[test]
fn the_rules_followed_bit_by_bit_give_up_the_same_frames() {
    let config = MediumConfig {
        queue_bytes_max: usize::MAX,
        ..MediumConfig::one_hub(RATE_BPS, 2)
    };
    let offers: Vec<_> = (0..8000)
        .map(|id| (0, id as usize % 2, id, SHORT))
        .collect();
    let counts = compare(config, 1, &offers, 3_000_000);
    assert!(counts[0] > 3000 && counts[1] > 0, "{counts:?}");
}
