//! How many calls, or players of a game, a link of 1 Mbit/s carries well, each way of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use packtrain_proto::wire::coded::Coding;

use super::UNCODED;
use super::coded::Ends;
use super::search::Search;
use super::streams::{self, Arrived, NumberOf, Stream, WARM_UP};
use super::traffic::game::{self, Side};
use super::traffic::packet;
use super::traffic::speech::Speech;
use super::traffic::voice::{self, Background};
use crate::lab::bench_aggregation::emodel::call_score;
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::path_use::PathCounts;
use crate::lab::one_link::stage::{Line, Plan, Shape};
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, Row, paths_during};
use crate::lab::{Result, pause};

const RATE_MBIT: u32 = 1;
const DURATION: Duration = Duration::from_secs(4);
const TWICE: Target = Target::RatioAtLeast(2.0);
/// The next one's queue is empty.
const SETTLE: Duration = Duration::from_millis(700);

/// What is carried well: of every end, so much.
const LOSS_MAX: f64 = 0.01;
const SCORE_MIN: f64 = 4.0;
/// Of all: what grows during a run reaches it, and is not carried, however short the run. It leaves a call 50 of the
/// 150 ms from mouth to ear that ITU-T G.114 has for good.
const DELAY_P99_MAX_MS: f64 = 100.0;

/// Ethernet's header: what the shaper of the link counts besides packets.
const ETHERNET_BYTES: f64 = 14.0;
/// And a train's own, about.
const TRAIN_BYTES: f64 = ETHERNET_BYTES + 16.0;

/// How a run went.
#[derive(Clone, Copy, Debug)]
struct Trial {
    loss_worst: f64,
    delay_p99_ms: f64,
    /// Of a call.
    score_worst: Option<f64>,
}

impl Trial {
    fn of(arrived: &[Vec<Arrived>; 2], are_calls: bool) -> Trial {
        let all = || arrived.iter().flatten();
        let score = |arrived: &Arrived| call_score(&arrived.delays_ms, arrived.sent);
        Trial {
            loss_worst: all().map(Arrived::loss).fold(0.0, f64::max),
            delay_p99_ms: arrived
                .iter()
                .map(|way| streams::delay_p99_ms(way.iter()))
                .fold(0.0, f64::max),
            score_worst: are_calls.then(|| all().map(score).fold(5.0, f64::min)),
        }
    }

    fn is_good(&self) -> bool {
        const ROUNDING: f64 = 1e-9;
        self.loss_worst <= LOSS_MAX + ROUNDING
            && self.delay_p99_ms <= DELAY_P99_MAX_MS
            && self.score_worst.is_none_or(|score| score >= SCORE_MIN)
    }
}

/// … and which way the frames took.
struct Tried {
    trial: Trial,
    paths: Vec<PathCounts>,
}

/// The most that was carried well, and how that went.
struct Found {
    count: usize,
    best: Option<Tried>,
}

impl Found {
    fn number(&self, of: impl Fn(&Trial) -> f64) -> f64 {
        self.best.as_ref().map_or(f64::NAN, |best| of(&best.trial))
    }
}

/// Something of which there are more and more: what two hosts say to each other.
struct Load<'a> {
    make: &'a (dyn Fn(usize) -> [Stream; 2] + 'a),
    number_of: NumberOf,
    are_calls: bool,
    made: RefCell<Vec<[Stream; 2]>>,
}

impl<'a> Load<'a> {
    fn new(
        make: &'a (dyn Fn(usize) -> [Stream; 2] + 'a),
        number_of: NumberOf,
        are_calls: bool,
    ) -> Load<'a> {
        Load {
            make,
            number_of,
            are_calls,
            made: RefCell::default(),
        }
    }

    /// The first so many, of each direction.
    fn streams(&self, count: usize) -> [Vec<Stream>; 2] {
        let mut made = self.made.borrow_mut();
        while made.len() < count {
            let next = (self.make)(made.len());
            made.push(next);
        }
        [0, 1].map(|way| made[..count].iter().map(|both| both[way].clone()).collect())
    }

    /// Between hosts of its own: a line remembers for a while what it has found out where there were too many.
    fn try_with(&self, packtrain: &Path, part: &str, way: Way, count: usize) -> Result<Tried> {
        let [there, back] = self.streams(count);
        let plan = Plan {
            shape: Shape::Mbit(RATE_MBIT),
            ways: &[way],
        };
        let line = Line::set(packtrain, plan)?;
        pause(SETTLE);
        let send = || streams::both_ways(&line, way, [&there, &back], self.number_of);
        let (arrived, paths) = paths_during(part, &line, send)?;
        let trial = Trial::of(&arrived, self.are_calls);
        eprintln!("  {count} by {}: {trial:?}", way.heading());
        Ok(Tried { trial, paths })
    }

    /// Near `guess`, by steps of this share of it.
    fn most(
        &self,
        (packtrain, part): (&Path, &str),
        way: Way,
        guess: usize,
        step: f64,
    ) -> Result<Found> {
        let mut search = Search::near(guess, (guess as f64 * step) as usize);
        let mut best = None;
        while let Some(count) = search.next() {
            let tried = self.try_with(packtrain, part, way, count)?;
            let is_good = tried.trial.is_good();
            search.tell(count, is_good);
            if is_good {
                best = Some(tried);
            }
        }
        Ok(Found {
            count: search.carried(),
            best,
        })
    }

    /// As many as the link's rate would carry, if trains were always full and links too.
    fn guess(&self, way: Way) -> usize {
        const OF: usize = 16;
        let streams = self.streams(OF);
        let bytes_a_second = |streams: &[Stream]| {
            let payloads: Vec<&[Vec<u8>]> = streams.iter().map(|s| &s.packets[..]).collect();
            let packets = packet::in_turns(&payloads);
            let per_second: u32 = streams.iter().map(|stream| stream.per_second).sum();
            let bytes = match way {
                Way::Pt0 => {
                    let coded = Ends::default().pass(Coding::Mixing, &packets);
                    coded.train_bytes as f64 + coded.trains as f64 * TRAIN_BYTES
                }
                _ => packets
                    .iter()
                    .map(|p| p.len() as f64 + ETHERNET_BYTES)
                    .sum(),
            };
            bytes / packets.len() as f64 * f64::from(per_second) / OF as f64
        };
        let of_one = streams.iter().map(|way| bytes_a_second(way));
        let of_one = of_one.fold(1.0, f64::max);
        (f64::from(RATE_MBIT) * 1e6 / 8.0 / of_one) as usize
    }
}

fn measure(bench: &mut Bench, packtrain: &Path, what: &str, load: &Load<'_>) -> Result<()> {
    let part = format!("{what} over {RATE_MBIT} Mbit/s");
    let mut runs = Runs::of_ways(&UNCODED);
    // Later rounds begin where the ones before have ended.
    let mut before = BTreeMap::new();
    for round in 0..bench.rounds {
        eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
        for way in UNCODED {
            let (guess, step) = match before.get(&way) {
                Some(&found) => (found, 0.03),
                None => (load.guess(way), 0.1),
            };
            let found = load.most((packtrain, &part), way, guess, step)?;
            for path in found.best.iter().flat_map(|best| &best.paths) {
                bench.note_path(path.clone());
            }
            before.insert(way, found.count);
            runs.push(way, found);
        }
    }
    let mut rows: Vec<Row<Found>> = vec![
        ("carried well", (Unit::Count, TWICE), |found| {
            found.count as f64
        }),
        (
            "their p99 delay",
            (Unit::Microseconds, Target::Shown),
            |found| found.number(|trial| trial.delay_p99_ms * 1e3),
        ),
        (
            "the largest share lost of one",
            (Unit::Ratio, Target::Shown),
            |found| found.number(|trial| trial.loss_worst),
        ),
    ];
    if load.are_calls {
        rows.push((
            "MOS of the worst call",
            (Unit::Ratio, Target::Shown),
            |found| found.number(|trial| trial.score_worst.unwrap_or(f64::NAN)),
        ));
    }
    bench.compare_rows(&part, &rows, &runs);
    Ok(())
}

/// Of what is heard in pauses, each by itself. Without a program that speaks there are none.
pub fn calls(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let Some(speech) = Speech::of_programs()? else {
        eprintln!(
            "calls: skipped: neither flite nor espeak-ng is installed, and a voice has to be one"
        );
        return Ok(());
    };
    let kinds = [
        ("calls that mute in pauses", Background::Muted),
        ("calls from quiet rooms (-65 dBm0)", Background::Dbm0(-65.0)),
        ("calls from offices (-50 dBm0)", Background::Dbm0(-50.0)),
    ];
    let seconds = (WARM_UP + DURATION).as_secs_f64();
    let packets = (seconds * f64::from(voice::PACKETS_PER_SECOND)) as usize;
    for (what, background) in kinds {
        let make = |call: usize| {
            [0, 1].map(|end| Stream {
                packets: voice::call(&speech, background, call as u64 * 2 + end, packets),
                per_second: voice::PACKETS_PER_SECOND,
            })
        };
        let load = Load::new(&make, voice::number, true);
        measure(bench, packtrain, what, &load)?;
    }
    Ok(())
}

/// From a server to its players, and back.
pub fn games(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    const SEED: u64 = 1;
    let seconds = (WARM_UP + DURATION).as_secs_f64();
    let make = |player: usize| {
        [Side::Server, Side::Player].map(|side| Stream {
            packets: game::packets(side, player, SEED, seconds),
            per_second: game::rate_of(player),
        })
    };
    let load = Load::new(&make, game::number, false);
    measure(bench, packtrain, "players of a game", &load)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(sent: usize, came: usize, delay_ms: f64) -> Vec<Arrived> {
        vec![Arrived {
            sent,
            delays_ms: vec![delay_ms; came],
        }]
    }

    #[test]
    fn every_end_has_to_be_good() {
        let is_good = |a, b, are_calls| Trial::of(&[a, b], are_calls).is_good();
        let good = || arrived(200, 200, 30.0);
        assert!(is_good(good(), good(), true));
        assert!(is_good(arrived(200, 198, 30.0), good(), true));
        assert!(!is_good(arrived(200, 197, 30.0), good(), false), "loss");
        assert!(!is_good(good(), arrived(200, 200, 101.0), false), "delay");
        assert!(!is_good(good(), arrived(0, 0, 0.0), false), "nothing sent");
    }

    #[test]
    fn as_many_are_guessed_as_a_link_carries_of_packets() {
        let make = |_| {
            [(); 2].map(|()| Stream {
                packets: vec![vec![0; 172]; 50],
                per_second: 50,
            })
        };
        let load = Load::new(&make, voice::number, true);
        // 1,000,000 / (8 · 50 · (172 + 28 + 14)) is 11.7.
        assert_eq!(load.guess(Way::Bare), 11);
        assert!(load.guess(Way::Pt0) > 100);
    }
}
