//! What the program decides, against packtrain-proto's decision: step by step, for connections that chance has drawn.

use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput};
use packtrain_proto::pacing::hystart::{
    CSS_GROWTH_DIVISOR, CSS_ROUNDS, FULL_ROUNDS, Hystart, MIN_RTT_DIVISOR, N_RTT_SAMPLE,
    Thresholds, Verdict,
};
use packtrain_proto::pacing::jump::{Jump, RETREAT_MIN};
use packtrain_proto::pacing::memory::{Memory, RAISED_DIVISOR, REPAIR_ROUND_TRIPS, WINDOW_NS_MIN};
use packtrain_proto::pacing::path::{Path, WINDOW_MIN};
use packtrain_proto::pacing::rate;
use packtrain_proto::pacing::spacing::{
    AHEAD_NS, AHEAD_SEGMENTS, CATCH_UP_DIVISOR, EVEN_PRECISIONS, Phase, Seen, Spacing,
};
use packtrain_proto::random::Random;

use super::super::bpf_object::{self, embedded};
use super::{u32_at, u64_at};
use crate::linux::test_namespace::in_namespace;

/// `sizeof(struct pace_trial)`, and where in it what is.
const TRIAL_LEN: usize = 152;
/// `sizeof(struct pace_path)`.
const PATH_LEN: usize = 152;
/// `enum pace_fill`.
const EVEN: u32 = 2;
const BEGIN: u32 = 0;
const ACKNOWLEDGED: u32 = 1;
const END: u32 = 2;
const JUMP: u32 = 8;
const JUMPED: u32 = 9;

/// A connection in the program's keeping.
struct Trial<'a> {
    object: &'a mut Object,
    bytes: [u8; TRIAL_LEN],
}

struct Step<'a> {
    what: u32,
    seen: &'a Seen,
    precision_ns: u64,
    path: Option<&'a Path>,
    rtt_us: u32,
    thresholds: &'a Thresholds,
    /// Jump, or a loss is being repaired; or the window to jump to.
    may: u32,
    /// Segments.
    delivered: u32,
}

impl Trial<'_> {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn step(&mut self, step: &Step<'_>) {
        let seen = step.seen;
        let path_interval_ns = step.path.map_or(0, |path| path.interval_ns(seen.mss));
        self.put(0, &step.precision_ns.to_ne_bytes());
        self.put(8, &path_interval_ns.to_ne_bytes());
        let words = [
            seen.una,
            seen.nxt,
            seen.rtt_us,
            seen.cwnd,
            seen.ssthresh,
            seen.mss,
        ];
        for (place, word) in words.into_iter().enumerate() {
            self.put(24 + 4 * place, &word.to_ne_bytes());
        }
        for (at, word) in [
            (60, step.what),
            (64, step.rtt_us),
            (68, step.thresholds.min_us),
            (72, step.thresholds.max_us),
            (124, step.may),
            (128, step.delivered),
        ] {
            self.put(at, &word.to_ne_bytes());
        }
        self.run();
    }

    fn run(&mut self) {
        let program = self.object.progs_mut().next().expect("the one program");
        let input = ProgramInput {
            context_in: Some(&mut self.bytes),
            ..ProgramInput::default()
        };
        program.test_run(input).expect("it runs");
    }

    fn phase(&self) -> Phase {
        match u32_at(&self.bytes, 56) {
            0 => Phase::Free,
            1 => Phase::Spacing,
            2 => Phase::Clusters,
            other => panic!("phase {other}"),
        }
    }

    fn interval_ns(&self) -> Option<u64> {
        let is_spaced = self.phase() == Phase::Spacing || u32_at(&self.bytes, 104) == EVEN;
        is_spaced.then(|| u64_at(&self.bytes, 16))
    }

    fn window(&self) -> Option<u32> {
        Some(u32_at(&self.bytes, 132)).filter(|window| *window > 0)
    }

    fn opens(&self) -> Option<u32> {
        Some(u32_at(&self.bytes, 140)).filter(|window| *window > 0)
    }

    /// Whether it is time for a jump, and to which window.
    fn jump(&mut self, path: &Path, streams: u32, taken: u64, seen: &Seen) -> Option<u32> {
        let before = self.bytes;
        self.put(8, &taken.to_ne_bytes());
        self.put(16, &path.rate_bytes_per_s.to_ne_bytes());
        for (at, word) in [
            (32, path.rtt_min_us),
            (36, seen.cwnd),
            (60, JUMP),
            (64, streams),
        ] {
            self.put(at, &word.to_ne_bytes());
        }
        self.run();
        let window = self.window();
        self.bytes = before;
        window
    }

    fn verdict(&self) -> Verdict {
        match u32_at(&self.bytes, 76) {
            0 => Verdict::SlowStart,
            1 => Verdict::Conservative,
            2 => Verdict::Over,
            3 => Verdict::Full,
            other => panic!("verdict {other}"),
        }
    }
}

/// A number of so many bits at most, of which few have many: small ones are as likely as large ones.
fn of_any_size(random: &mut Random, bits: u32) -> u32 {
    let bits = random.up_to(u64::from(bits)) as u32;
    (random.up_to((1 << bits) - 1)) as u32
}

#[test]
fn the_program_decides_as_it_is_written_down() {
    let mut object = bpf_object::load(embedded!("pace_try")).expect("it loads");
    let mut random = Random::new(0x005b_ac1e);
    let (mut jumps, mut retreats, mut opened) = (0, 0, 0);
    let (mut verdicts, mut even) = ([0; 4], 0);
    for connection in 0..1000 {
        let mut trial = Trial {
            object: &mut object,
            bytes: [0; TRIAL_LEN],
        };
        let (mut spacing, mut hystart) = (Spacing::default(), Hystart::default());
        let mut jump = Jump::default();
        let mut delivered = random.up_to(u64::MAX) as u32;
        let start = random.up_to(u64::MAX) as u32;
        let mut seen = Seen {
            una: start,
            nxt: start,
            rtt_us: of_any_size(&mut random, 20),
            cwnd: 10,
            ssthresh: [u32::MAX, of_any_size(&mut random, 12)][random.up_to(1) as usize],
            mss: 536 + random.up_to(8500) as u32,
        };
        let path = Path {
            rate_bytes_per_s: 1 + u64::from(of_any_size(&mut random, 30)),
            rtt_min_us: seen.rtt_us,
        };
        let path = (random.up_to(1) == 0).then_some(path);
        let precision_ns = u64::from(of_any_size(&mut random, 24));
        let thresholds = Thresholds::default();
        let mut rtt_us = seen.rtt_us;
        // A queue that stands from some step on, and rounds short enough for slow start to end by it.
        let stands_from = [u32::MAX, random.up_to(99) as u32][random.up_to(1) as usize];
        for step in 0..200 {
            let mut what = match random.up_to(99) {
                _ if step == 0 => BEGIN,
                0 => BEGIN,
                1..=3 => END,
                _ => ACKNOWLEDGED,
            };
            if what == ACKNOWLEDGED {
                let acked = match stands_from {
                    u32::MAX => random.up_to(3) as u32,
                    _ => random.up_to(u64::from(seen.cwnd.min(200))) as u32,
                };
                seen.una = seen.una.wrapping_add(acked * seen.mss);
                delivered = delivered.wrapping_add(acked + random.up_to(1) as u32);
                seen.cwnd = match random.up_to(49) {
                    0 => 1 + of_any_size(&mut random, 10),
                    _ => seen.cwnd + acked,
                };
                // What is acknowledged was sent.
                let sent = seen
                    .una
                    .wrapping_add(seen.cwnd * seen.mss * random.up_to(1) as u32);
                if sent.wrapping_sub(seen.nxt) as i32 > 0 {
                    seen.nxt = sent;
                }
                rtt_us = [0, rtt_us, rtt_us + rtt_us / 7][random.up_to(2) as usize]
                    .min(4_000_000)
                    .max(seen.rtt_us * random.up_to(1) as u32);
                if stands_from != u32::MAX {
                    rtt_us = seen.rtt_us + 20_000 * u32::from(step >= stands_from);
                }
            }
            let may = random.up_to(1) == 0;
            let mut jumps_to = 0;
            if let (ACKNOWLEDGED, Some(path)) = (what, &path) {
                let (streams, taken) = (
                    random.up_to(3) as u32,
                    u64::from(of_any_size(&mut random, 30)),
                );
                let window = spacing
                    .may_jump(&seen)
                    .then(|| path.jump(streams, taken, seen.mss))
                    .filter(|window| *window > 0);
                let (answer, asked) = (trial.jump(path, streams, taken, &seen), seen);
                assert_eq!(answer, window, "{connection}, {step}: {asked:?}");
                if let Some(window) = window.filter(|window| *window > seen.cwnd) {
                    jumps_to = window;
                    what = JUMPED;
                    jumps += 1;
                }
            }
            trial.step(&Step {
                what,
                seen: &seen,
                precision_ns,
                path: path.as_ref(),
                rtt_us,
                thresholds: &thresholds,
                may: if what == JUMPED {
                    jumps_to
                } else {
                    u32::from(may)
                },
                delivered,
            });
            let (una, path) = (seen.una, path.as_ref());
            match what {
                BEGIN => {
                    spacing.begin(&seen, precision_ns, path, may);
                    hystart.begin(seen.nxt);
                    jump.end();
                }
                END => {
                    assert_eq!(trial.window(), jump.lost(delivered), "{connection}, {step}");
                    retreats += u32::from(trial.window().is_some());
                    spacing.end();
                }
                JUMPED => {
                    jump.made(una, jumps_to, seen.mss, delivered);
                    spacing.jumps_to(&seen, jumps_to, precision_ns, path);
                }
                _ => {
                    let left = jump.acknowledged(una, delivered, may);
                    assert_eq!(trial.window(), left, "{connection}, {step}: {seen:?}");
                    spacing.acknowledged(&seen, precision_ns, path);
                    let verdict = hystart.acknowledged(una, seen.nxt, rtt_us, &thresholds);
                    assert_eq!(trial.verdict(), verdict, "{connection}, {step}: {seen:?}");
                    verdicts[verdict as usize] += 1;
                }
            }
            let in_flight = seen.nxt.wrapping_sub(seen.una) / seen.mss;
            let opens = spacing.opens(in_flight, seen.cwnd);
            let decided = (spacing.phase(), spacing.interval_ns(), opens);
            opened += u32::from(opens.is_some());
            even += u32::from(spacing.is_even());
            assert_eq!(
                (trial.phase(), trial.interval_ns(), trial.opens()),
                decided,
                "{connection}, {step}: {seen:?}"
            );
        }
    }
    let seen = [jumps, retreats, opened, even];
    assert!(seen.iter().all(|times| *times > 10), "{seen:?}");
    assert!(verdicts.iter().all(|times| *times > 10), "{verdicts:?}");
}

#[test]
fn the_program_shares_a_rate_and_tries_more_of_it_as_it_is_written_down() {
    const SHARE: u32 = 3;
    const PROBING: u32 = 4;
    let mut object = bpf_object::load(embedded!("pace_try")).expect("it loads");
    let mut random = Random::new(0x5a4e);
    for _ in 0..3000 {
        let bits = random.up_to(40);
        let rate = 1 + random.up_to((1 << bits) - 1);
        let mut trial = Trial {
            object: &mut object,
            bytes: [0; TRIAL_LEN],
        };
        let streams = of_any_size(&mut random, 12);
        let mss = 1 + of_any_size(&mut random, 16);
        let headers = random.up_to(120) as u32;
        let mut ask = |what: u32, streams: u32, path_interval_ns: u64, interval_ns: u64| {
            trial.put(0, &rate.to_ne_bytes());
            trial.put(8, &path_interval_ns.to_ne_bytes());
            trial.put(16, &interval_ns.to_ne_bytes());
            trial.put(24 + 8, &headers.to_ne_bytes());
            trial.put(24 + 12, &streams.to_ne_bytes());
            trial.put(24 + 20, &mss.to_ne_bytes());
            trial.put(60, &what.to_ne_bytes());
            trial.run();
            u64_at(&trial.bytes, 16)
        };
        let shared = rate::share(rate, streams, mss, headers);
        assert_eq!(
            ask(SHARE, streams, 0, 0),
            shared,
            "{rate} {streams} {mss} {headers}"
        );
        let rtt_min_us = of_any_size(&mut random, 22);
        let unit_ns = (u64::from(rtt_min_us) * 1000).max(rate::UNIT_MIN_NS);
        let since_ns = random.up_to(40 * unit_ns);
        let raised = streams % 6;
        let probing = rate::probing(rate, since_ns, rtt_min_us, mss, raised);
        assert_eq!(
            ask(PROBING, raised, since_ns, unit_ns),
            probing,
            "{rate} {since_ns}"
        );
    }
}

impl Trial<'_> {
    fn tried(&self) -> libbpf_rs::MapImpl<'_> {
        let mut maps = self.object.maps();
        maps.next().expect("the one map")
    }

    fn forget(&self) {
        let (key, empty) = (0u32.to_ne_bytes(), [0; PATH_LEN]);
        let tried = self.tried();
        tried
            .update(&key, &empty, MapFlags::ANY)
            .expect("it is there");
    }

    /// What is remembered of a path, in the program's keeping.
    fn memory(&self) -> Memory {
        let value = self.tried().lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let bytes = value.expect("it is read").expect("it is there");
        assert_eq!(bytes.len(), PATH_LEN);
        let word = |place: usize| u64_at(&bytes, 8 * place);
        Memory {
            rate_bytes_per_s: word(0),
            full_at_ns: word(1),
            window_began_ns: word(3),
            window_bytes: word(4),
            window_rate: word(5),
            sustained_rate: word(6),
            cycle_began_ns: word(9),
            rtt_min_us: u32_at(&bytes, 80),
            cut_at_ns: word(11),
            cut_rate_min: word(12),
            raised_at_ns: word(13),
            raised_rate: word(14),
            raised: u32_at(&bytes, 120),
            former_rate: word(16),
        }
    }
}

/// A path that carries what it does for some time, then more or less, with pauses and losses.
#[test]
fn the_program_remembers_a_path_as_it_is_written_down() {
    const DELIVERED: u32 = 5;
    const FULL: u32 = 6;
    const PATH: u32 = 7;
    let mut object = bpf_object::load(embedded!("pace_try")).expect("it loads");
    let mut random = Random::new(0x3e30);
    let (mut known, mut more, mut halved, mut told) = (0, 0, 0, 0);
    for path in 0..100 {
        let mut trial = Trial {
            object: &mut object,
            bytes: [0; TRIAL_LEN],
        };
        trial.forget();
        let mut memory = Memory::default();
        let rtt_us = 1 + of_any_size(&mut random, 19);
        let window_ns = (u64::from(rtt_us) * 250).max(WINDOW_NS_MIN);
        let mut rate = 1000 + u64::from(of_any_size(&mut random, 30));
        let mut now_ns = random.up_to(1 << 40);
        for step in 0..300 {
            let what = match random.up_to(99) {
                0..=3 => FULL,
                4..=9 => PATH,
                _ => DELIVERED,
            };
            let length_ns = match random.up_to(59) {
                0 => random.up_to(8 * window_ns),
                1 => {
                    rate = (rate * (1 + random.up_to(7)) / 4).clamp(1000, 1 << 32);
                    0
                }
                _ => random.up_to(window_ns),
            };
            now_ns += length_ns;
            let bytes = (u128::from(rate) * u128::from(length_ns) / 1_000_000_000) as u32;
            let seen_us =
                [0, rtt_us, rtt_us + of_any_size(&mut random, 20)][random.up_to(2) as usize];
            let age_max_ns = random.up_to(20 * window_ns);
            let is_less = random.up_to(1) as u32;
            trial.put(0, &now_ns.to_ne_bytes());
            trial.put(8, &age_max_ns.to_ne_bytes());
            trial.put(24 + 12, &bytes.to_ne_bytes());
            trial.put(60, &what.to_ne_bytes());
            trial.put(64, &seen_us.to_ne_bytes());
            trial.put(104, &is_less.to_ne_bytes());
            trial.run();
            let before = memory;
            match what {
                DELIVERED => memory.delivered(u64::from(bytes), seen_us, is_less == 1, now_ns),
                FULL => memory.full(is_less == 1, now_ns),
                _ => {
                    let answer = memory.path(seen_us, age_max_ns, now_ns);
                    let rate = answer.map_or(0, |path| path.rate_bytes_per_s);
                    assert_eq!(u64_at(&trial.bytes, 16), rate, "{path}, {step}: {memory:?}");
                    told += u32::from(answer.is_some());
                }
            }
            assert_eq!(trial.memory(), memory, "{path}, {step}");
            let (was, is) = (before.rate_bytes_per_s, memory.rate_bytes_per_s);
            known += u32::from(was == 0 && is > 0);
            more += u32::from(was > 0 && is > was);
            halved += u32::from(was > 0 && is == was / 2);
        }
    }
    let figures = (known, more, halved, told);
    assert!(
        known > 80 && more > 500 && halved > 50 && told > 200,
        "{figures:?}"
    );
}

#[test]
fn the_constants_of_the_program_are_those_of_the_decision() {
    let header = include_str!("../../bpf/pace.h");
    for (name, value) in [
        ("PACE_WINDOW_MIN", WINDOW_MIN),
        ("PACE_RETREAT_MIN", RETREAT_MIN),
        ("PACE_AHEAD_NS", AHEAD_NS as u32),
        ("PACE_AHEAD_SEGMENTS", AHEAD_SEGMENTS as u32),
        ("PACE_EVEN_PRECISIONS", EVEN_PRECISIONS as u32),
        ("PACE_CATCH_UP_DIVISOR", CATCH_UP_DIVISOR as u32),
        ("PACE_N_RTT_SAMPLE", N_RTT_SAMPLE),
        ("PACE_MIN_RTT_DIVISOR", MIN_RTT_DIVISOR),
        ("PACE_CSS_GROWTH_DIVISOR", CSS_GROWTH_DIVISOR),
        ("PACE_CSS_ROUNDS", CSS_ROUNDS),
        ("PACE_FULL_ROUNDS", FULL_ROUNDS),
        ("PACE_PORTS", super::PORTS_MAX as u32),
        ("PACE_PREFIXES", super::PREFIXES_MAX as u32),
        ("PACE_NAME", super::NAME_LEN as u32),
        ("PACE_RULES", super::RULES_MAX as u32),
        ("PACE_ROWS", super::rules::ROWS_MAX as u32),
        ("PACE_WINDOW_NS_MIN", WINDOW_NS_MIN as u32),
        ("PACE_PROBE_EVERY", rate::PROBE_EVERY as u32),
        ("PACE_PROBE_DIVISOR", rate::PROBE_DIVISOR as u32),
        ("PACE_PROBE_SEGMENTS", rate::PROBE_SEGMENTS as u32),
        ("PACE_PROBE_DIVISOR_MIN", rate::PROBE_DIVISOR_MIN as u32),
        ("PACE_RAISED_MAX", rate::RAISED_MAX),
        ("PACE_RAISED_DIVISOR", RAISED_DIVISOR as u32),
        ("PACE_REPAIR_ROUND_TRIPS", REPAIR_ROUND_TRIPS as u32),
    ] {
        let defined = header
            .lines()
            .filter_map(|line| line.strip_prefix("#define "))
            .find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        assert_eq!(defined, Some(value.to_string().as_str()), "{name}");
    }
    assert!(header.contains(&format!("PACE_COUNTERS = {},", super::COUNTERS)));
}

#[test]
fn a_congestion_control_is_there_as_long_as_its_owner_and_two_have_two_names() {
    in_namespace(|| {
        let settings = super::Settings::default();
        let first = super::TcpPacer::load(&settings).expect("it loads");
        let second = super::TcpPacer::load(&settings).expect("it loads");
        assert_ne!(first.name(), second.name());
        for pacer in [&first, &second] {
            assert!(super::is_registered(pacer.name()), "{}", pacer.name());
        }
        let name = first.name().to_owned();
        drop(first);
        assert!(!super::is_registered(&name));
        assert!(super::is_registered(second.name()));
    });
}
