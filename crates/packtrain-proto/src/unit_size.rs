//! How long trains are: as long as passes a path, or shorter where that carries more.
//!
//! Where bits are wrong, a long train dies sooner than a short one. Which length is best depends on what becomes of those that die:
//!
//! - *They go again* (`docs/design/0015-repair.md`). Then TCP sees no loss, and what is left is a balance: of S bytes h are overhead, and
//!   what is lost goes twice. (1 − h/S)·(1 − p)^8S is greatest where S² − hS = h/8p: about √(h/8p), a thousand bytes at 10⁻⁵.
//! - *They do not.* Then TCP halves its window at each, and waits for timeouts where windows are small: the best it has is at θ = N·p, bits
//!   of a train times the rate, of 0.04 to 0.15 by its round trip (`docs/papers/xlf.md`, figure 8). A frame that is longer than a train
//!   is lost with any of its trains, and gains nothing by shorter ones: so none is shorter than `pt0`'s frames.
//!
//! The law of Divakaran et al. (2009, Lemma 7.1) has its top at θ = 0.6438, where almost half of the trains are lost. No TCP keeps to it:
//! it is there to be compared with.
//!
//! A size changes when the law says for a while that another one is better by more than measuring it is wrong; at once where hardly
//! anything passes.

use crate::time::{Duration, Instant};
use crate::wire::ethernet::{HEADER_LEN, on_wire};
use crate::wire::subframe;
use crate::wire::train;

/// No train is made shorter than this, bytes of a frame: what needs more than one cannot be told from what is in it.
pub const SIZE_MIN: usize = 256 + HEADER_LEN;
/// Lemma 7.1.
const THETA_LEMMA: f64 = 0.6438;
/// Of TCP, by milliseconds of its round trip.
const THETA_TCP: [(f64, f64); 4] = [(5.0, 0.040), (10.0, 0.060), (20.0, 0.082), (100.0, 0.15)];
/// While none is known.
const ROUND_TRIP_UNKNOWN: Duration = Duration::from_millis(10);
/// By so much it has to carry more.
const GAIN_MIN: f64 = 0.01;
/// … or be so much longer or shorter, where what is carried cannot be told.
const RATIO_MIN: f64 = 1.25;
/// For so long.
const LASTS: Duration = Duration::from_millis(500);
/// It changes at once where so many die.
const DEADLY: f64 = 0.5;

/// By what the size of trains is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeLaw {
    /// What carries most for TCP, whether or not lost trains go again.
    #[default]
    Tcp,
    /// Lemma 7.1 of the XLF paper.
    Lemma,
    /// So many payload bytes, as of a link's MTU; less where less passes.
    Fixed(u16),
}

/// Why trains on a path are as long as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeBecause {
    /// As long as the links of both ends take.
    #[default]
    LinkMtu,
    /// What stands between them takes less.
    PathMtu,
    /// Longer ones die of bits that are wrong.
    BitErrors,
    /// No longer one has arrived, and several were lost.
    LongLost,
    /// The settings say so.
    Fixed,
    /// Small frames would wait for longer ones for too long, at the link's rate.
    SandDelay,
}

/// What is known of a path.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Bytes of the longest frame that both ends take, and of the longest that passes.
    pub nominal: usize,
    pub passes: usize,
    /// Of a bit to be wrong.
    pub error_rate: Option<f64>,
    /// Lost trains go again.
    pub repairs: bool,
    pub round_trip: Option<Duration>,
    /// Bytes of a train that has the longest frame of `pt0` whole.
    pub whole: usize,
    /// Nothing longer seems to arrive.
    pub doubted: Option<usize>,
}

/// Of a train that is full of one frame's pieces, bytes on the wire that carry nothing of it.
pub fn overhead() -> usize {
    on_wire(1500) - 1500 + HEADER_LEN + train::HEADER_LEN + subframe::HEADER_LEN
}

/// The share of a link's time that brings something new, with trains of so many bytes of which those that die go again.
pub fn carried(bytes: usize, error_rate: f64) -> f64 {
    let on_wire = on_wire(bytes) as f64;
    let useful = (on_wire - overhead() as f64).max(0.0);
    useful / on_wire * lives(bytes, error_rate)
}

/// (1 − p)^8S by squares: no `pow`, which differs from machine to machine.
fn lives(bytes: usize, error_rate: f64) -> f64 {
    let (mut power, mut all, mut left) = (1.0 - error_rate, 1.0, 8 * bytes);
    while left > 0 {
        if left & 1 == 1 {
            all *= power;
        }
        power *= power;
        left >>= 1;
    }
    all
}

/// Where TCP carries most whose losses are its own business. Below the shortest round trip that was measured, timeouts take as many of
/// them as they are shorter: about as its root.
fn theta_tcp(round_trip: Duration) -> f64 {
    let millis = round_trip.as_nanos() as f64 / 1e6;
    let (first, last) = (THETA_TCP[0], THETA_TCP[3]);
    if millis <= first.0 {
        return first.1 * (millis / first.0).sqrt().max(0.25);
    }
    let between = THETA_TCP.windows(2).find(|pair| millis <= pair[1].0);
    between.map_or(last.1, |pair| {
        let part = (millis - pair[0].0) / (pair[1].0 - pair[0].0);
        pair[0].1 + part * (pair[1].1 - pair[0].1)
    })
}

/// Bytes of the best train, whatever passes.
fn wanted(law: SizeLaw, error_rate: f64, on: &Conditions) -> f64 {
    let by_theta = |theta: f64| theta / (8.0 * error_rate);
    match law {
        SizeLaw::Fixed(bytes) => f64::from(bytes) + HEADER_LEN as f64,
        SizeLaw::Lemma => by_theta(THETA_LEMMA),
        SizeLaw::Tcp if on.repairs => {
            let h = overhead() as f64;
            // On the wire, where what is around a frame takes its time as well.
            let around = (on_wire(1500) - 1500) as f64;
            (h + (h * h + h / (2.0 * error_rate)).sqrt()) / 2.0 - around
        }
        SizeLaw::Tcp => {
            let theta = theta_tcp(on.round_trip.unwrap_or(ROUND_TRIP_UNKNOWN));
            by_theta(theta).max(on.whole as f64)
        }
    }
}

/// The best size of trains as things are, bytes of a frame, and why.
pub fn best(law: SizeLaw, on: &Conditions) -> (usize, SizeBecause) {
    let longest = match on.passes < on.nominal {
        true => (on.passes, SizeBecause::PathMtu),
        false => (on.nominal, SizeBecause::LinkMtu),
    };
    let least = SIZE_MIN.min(longest.0);
    let of_law = match (law, on.error_rate) {
        (SizeLaw::Fixed(_), _) => Some((0.0, SizeBecause::Fixed)),
        (_, Some(rate)) if rate > 0.0 => Some((rate, SizeBecause::BitErrors)),
        _ => None,
    };
    let of_law = of_law.map(|(rate, why)| {
        let bytes = wanted(law, rate, on).clamp(least as f64, 1e6);
        (bytes as usize, why)
    });
    let of_doubt = on
        .doubted
        .map(|bytes| (bytes.max(least), SizeBecause::LongLost));
    let shorter = of_law
        .into_iter()
        .chain(of_doubt)
        .filter(|(bytes, _)| *bytes < longest.0);
    shorter.min_by_key(|(bytes, _)| *bytes).unwrap_or(longest)
}

/// The size of a path's trains, which follows what is known of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnitSize {
    /// `None`: as long as passes.
    chosen: Option<(usize, SizeBecause)>,
    /// Since when another one is better.
    since: Option<Instant>,
}

impl UnitSize {
    /// Bytes of the longest train, where so many pass.
    pub fn limit(&self, passes: usize) -> usize {
        self.chosen.map_or(passes, |(bytes, _)| bytes.min(passes))
    }

    /// Something but what passes decides it: bytes.
    pub fn chosen(&self) -> Option<usize> {
        self.chosen.map(|(bytes, _)| bytes)
    }

    /// Bytes of the longest train, and why.
    pub fn now(&self, on: &Conditions) -> (usize, SizeBecause) {
        match self.chosen {
            Some((bytes, because)) if bytes < on.passes => (bytes, because),
            _ => best(
                SizeLaw::Tcp,
                &Conditions {
                    error_rate: None,
                    doubted: None,
                    ..*on
                },
            ),
        }
    }

    /// Says whether it changes.
    pub fn follow(&mut self, law: SizeLaw, on: &Conditions, now: Instant) -> bool {
        use SizeBecause::{BitErrors, Fixed, LinkMtu, LongLost, PathMtu, SandDelay};
        let (bytes, because) = best(law, on);
        let to = match because {
            // What small frames wait for changes with each measured rate, and is no law's business.
            LinkMtu | PathMtu | SandDelay => None,
            BitErrors | LongLost | Fixed => Some((bytes, because)),
        };
        let before = self.limit(on.passes);
        if self.chosen.map(|(_, why)| why) == to.map(|(_, why)| why) && before == bytes {
            self.since = None;
            return false;
        }
        let of_errors =
            |chosen: Option<(usize, SizeBecause)>| chosen.is_none_or(|(_, why)| why == BitErrors);
        let waits = of_errors(self.chosen) && of_errors(to);
        let rate = on.error_rate.unwrap_or_default();
        if waits && lives(before, rate) > DEADLY {
            let gains = match law {
                SizeLaw::Tcp if on.repairs => {
                    carried(bytes, rate) > carried(before, rate) * (1.0 + GAIN_MIN)
                }
                _ => {
                    let ratio = bytes as f64 / before as f64;
                    !(1.0 / RATIO_MIN..=RATIO_MIN).contains(&ratio)
                }
            };
            if !gains {
                self.since = None;
                return false;
            }
            if now.since(*self.since.get_or_insert(now)) < LASTS {
                return false;
            }
        }
        self.since = None;
        self.chosen = to;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn path(nominal: usize, error_rate: f64, repairs: bool) -> Conditions {
        Conditions {
            nominal,
            passes: nominal,
            error_rate: Some(error_rate).filter(|rate| *rate > 0.0),
            repairs,
            round_trip: Some(Duration::from_millis(10)),
            whole: 1600,
            doubted: None,
        }
    }

    proptest! {
        /// Against all sizes.
        #[test]
        fn no_size_carries_more_than_the_best_where_lost_trains_go_again(
            power in 2.0f64..9.0, nominal in 300usize..65_014
        ) {
            let rate = 10f64.powf(-power);
            let (bytes, because) = best(SizeLaw::Tcp, &path(nominal, rate, true));
            prop_assert!(bytes <= nominal && bytes >= SIZE_MIN.min(nominal));
            let most = (SIZE_MIN.min(nominal)..=nominal).step_by(7).chain([nominal]);
            let most = most.map(|bytes| carried(bytes, rate)).fold(0.0, f64::max);
            prop_assert!(carried(bytes, rate) >= most * 0.999, "{} {}: {} of {}", rate, bytes, carried(bytes, rate), most);
            prop_assert_eq!(because == SizeBecause::LinkMtu, bytes == nominal);
        }

        /// The lemma's own goodput, N(1 − P)/√P.
        #[test]
        fn no_size_has_more_by_the_lemma_than_the_lemmas(power in 4.0f64..7.0) {
            let rate = 10f64.powf(-power);
            let (bytes, _) = best(SizeLaw::Lemma, &path(1_000_000, rate, false));
            let goodput = |bytes: usize| {
                let live = lives(bytes, rate);
                bytes as f64 * live / (1.0 - live).sqrt()
            };
            let most = (300..1_000_000).step_by(97).map(goodput).fold(0.0, f64::max);
            prop_assert!(goodput(bytes) >= most * 0.999);
        }

        /// Whatever is measured, in whichever order: no black hole, and not nothing.
        #[test]
        fn it_is_never_more_than_passes_and_never_next_to_nothing(
            steps in prop::collection::vec(
                (270usize..65_014, 0usize..2, 0.0f64..9.0, any::<bool>(), prop::option::of(0usize..2000), 0u64..900), 1..40
            ),
            law in prop_oneof![
                Just(SizeLaw::Tcp), Just(SizeLaw::Lemma), (0u16..).prop_map(SizeLaw::Fixed)
            ]
        ) {
            let (mut size, mut millis) = (UnitSize::default(), 0);
            for (nominal, less, power, repairs, doubted, after) in steps {
                millis += after;
                let passes = nominal - less * (nominal - 270) / 2;
                let on = Conditions { passes, doubted, ..path(nominal, 10f64.powf(-power), repairs) };
                size.follow(law, &on, at(millis));
                let (bytes, _) = size.now(&on);
                prop_assert_eq!(bytes, size.limit(passes));
                prop_assert!(bytes <= passes && bytes >= SIZE_MIN.min(passes));
            }
        }
    }

    #[test]
    fn where_nothing_is_wrong_trains_are_as_long_as_passes() {
        let on = path(9014, 0.0, true);
        assert_eq!(best(SizeLaw::Tcp, &on), (9014, SizeBecause::LinkMtu));
        let on = Conditions { passes: 1514, ..on };
        assert_eq!(best(SizeLaw::Tcp, &on), (1514, SizeBecause::PathMtu));
        assert_eq!(
            best(SizeLaw::Fixed(1500), &path(9014, 1e-5, true)),
            (1514, SizeBecause::Fixed)
        );
        assert_eq!(
            best(SizeLaw::Fixed(9000), &on),
            (1514, SizeBecause::PathMtu)
        );
        let doubted = Conditions {
            doubted: Some(1514),
            ..path(9014, 1e-8, true)
        };
        assert_eq!(best(SizeLaw::Tcp, &doubted), (1514, SizeBecause::LongLost));
    }

    #[test]
    fn tcp_has_the_sizes_that_were_measured_of_it() {
        for (millis, theta) in [
            (5, 0.04),
            (10, 0.06),
            (20, 0.082),
            (60, 0.116),
            (100, 0.15),
            (900, 0.15),
        ] {
            let found = theta_tcp(Duration::from_millis(millis));
            assert!((found / theta - 1.0).abs() < 1e-3, "{millis}: {found}");
        }
        let (bytes, why) = best(SizeLaw::Tcp, &path(65_014, 1e-6, false));
        assert_eq!((bytes, why), (7500, SizeBecause::BitErrors));
        let (bytes, _) = best(SizeLaw::Tcp, &path(65_014, 1e-4, false));
        assert_eq!(bytes, 1600, "pieces live no longer");
    }

    #[test]
    fn a_size_changes_when_another_one_is_better_for_a_while_and_at_once_where_nothing_passes() {
        let (mut size, law) = (UnitSize::default(), SizeLaw::Tcp);
        assert!(!size.follow(law, &path(9014, 1e-6, true), at(0)));
        assert!(!size.follow(law, &path(9014, 1e-6, true), at(400)));
        assert!(size.follow(law, &path(9014, 1e-6, true), at(500)));
        let chosen = size.chosen().unwrap();
        assert!((2500..3500).contains(&chosen), "{chosen}");
        // As wrong as it is measured.
        for n in 0..20 {
            let rate = if n % 2 == 0 { 0.8e-6 } else { 1.3e-6 };
            assert!(!size.follow(law, &path(9014, rate, true), at(1000 + 600 * n)));
        }
        // A moment of something else.
        assert!(!size.follow(law, &path(9014, 1e-5, true), at(20_000)));
        assert!(!size.follow(law, &path(9014, 1e-6, true), at(20_400)));
        assert!(!size.follow(law, &path(9014, 1e-5, true), at(20_600)));
        assert!(size.follow(law, &path(9014, 1e-5, true), at(21_100)));
        assert!(!size.follow(law, &path(9014, 0.0, true), at(22_000)));
        assert!(size.follow(law, &path(9014, 0.0, true), at(22_500)));
        assert_eq!(size.chosen(), None);
        assert!(
            size.follow(law, &path(65_014, 1e-5, true), at(23_000)),
            "none passes"
        );
    }

    #[test]
    fn what_is_asked_for_is_so_at_once() {
        let (mut size, on) = (UnitSize::default(), path(9014, 1e-6, true));
        assert!(size.follow(SizeLaw::Fixed(4000), &on, at(0)));
        assert_eq!(size.now(&on), (4014, SizeBecause::Fixed));
        assert!(size.follow(SizeLaw::Fixed(9000), &on, at(1)));
        assert_eq!(size.now(&on), (9014, SizeBecause::LinkMtu));
    }
}
