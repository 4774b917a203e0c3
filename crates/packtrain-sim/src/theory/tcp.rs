//! TCP in closed form: what losses leave of it, how it begins, how full its sawtooth keeps a line.

use packtrain_proto::time::Duration;

/// √(3/2)/(RTT·√p) for a receiver that acknowledges every segment, √(3/4)/(RTT·√p) for one that does so
/// with every second, in segments a second (Mathis, Semke, Mahdavi and Ott 1997, equation 3 and table 1:
/// losses at even distances, no timeouts, no limit by windows).
pub fn mathis_segments_per_second(loss: f64, rtt: Duration, segments_per_ack: u32) -> f64 {
    assert!(0.0 < loss && loss < 1.0, "a loss of {loss}");
    (1.5 / f64::from(segments_per_ack) / loss).sqrt() / rtt.as_secs_f64()
}

#[derive(Clone, Copy, Debug)]
pub struct Padhye {
    pub rtt: Duration,
    /// The first timeout of a row, T₀.
    pub timeout: Duration,
    /// b: 2 with delayed acknowledgements, 1 without.
    pub segments_per_ack: u32,
    /// W_max: infinite if neither buffer nor receiver limits it.
    pub window_segments_max: f64,
}

impl Padhye {
    /// What a sender sends, repeats included, in segments a second (Padhye, Firoiu, Towsley and Kurose
    /// 2000, section II-C, the full model): Reno, and a loss takes all that follows it in its round. `loss`
    /// is of the first in a round.
    pub fn segments_per_second(&self, loss: f64) -> f64 {
        assert!(0.0 < loss && loss < 1.0, "a loss of {loss}");
        let p = loss;
        let b = f64::from(self.segments_per_ack);
        let (rtt, timeout) = (self.rtt.as_secs_f64(), self.timeout.as_secs_f64());
        let free = self.mean_window(p);
        let limit = self.window_segments_max;
        let (window, rounds) = match free < limit {
            true => (free, b / 2.0 * free + 1.0),
            false => (limit, b / 8.0 * limit + (1.0 - p) / (p * limit) + 2.0),
        };
        let ends_by_timeout = timeout_share(p, window);
        let segments = (1.0 - p) / p + window + ends_by_timeout / (1.0 - p);
        // Six doublings: the paper's f(p).
        let doublings = [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        let f = doublings.iter().rev().fold(0.0, |sum, term| sum * p + term);
        segments / (rtt * rounds + ends_by_timeout * timeout * f / (1.0 - p))
    }

    /// At the end of a row of rounds without loss, if nothing limits it (their E[W]).
    fn mean_window(&self, p: f64) -> f64 {
        let b = f64::from(self.segments_per_ack);
        let part = (2.0 + b) / (3.0 * b);
        part + (8.0 * (1.0 - p) / (3.0 * b * p) + part * part).sqrt()
    }
}

/// Q: of the losses in a window, those that three duplicates do not tell of (section II-B).
fn timeout_share(p: f64, window: f64) -> f64 {
    let arrives = |segments: f64| libm::pow(1.0 - p, segments);
    let few = (1.0 - arrives(3.0)) * (1.0 + arrives(3.0) * (1.0 - arrives(window - 3.0)));
    (few / (1.0 - arrives(window))).min(1.0)
}

/// Round trips in which a sender without loss sends as many segments: each is 1 + 1/b times the one before
/// it (Cardwell, Savage and Anderson 2000).
pub fn slow_start_rounds(segments: u64, first_window: u64, segments_per_ack: u32) -> u32 {
    assert!(first_window > 0, "nothing is sent");
    let growth = 1.0 + 1.0 / f64::from(segments_per_ack);
    let (mut sent, mut window, mut rounds) = (0.0, first_window as f64, 0);
    // So that what is exactly a round's sum is not one more by rounding.
    while sent < segments as f64 - 1e-6 {
        sent += window;
        window *= growth;
        rounds += 1;
    }
    rounds
}

/// From the first segment until the last has left, with every segment acknowledged: all of them one after
/// the other, and after each window what is missing of a round trip (Kurose and Ross, "TCP latency", for
/// a first window of one). The round trip is that of a segment without the time that it takes to send.
pub fn slow_start_time(
    segments: u64,
    first_window: u64,
    segment_time: Duration,
    rtt: Duration,
) -> Duration {
    assert!(first_window > 0, "nothing is sent");
    let each_s = segment_time.as_secs_f64();
    let (mut sent, mut window, mut stalled_s) = (first_window, first_window, 0.0);
    while sent < segments {
        stalled_s += (each_s + rtt.as_secs_f64() - window as f64 * each_s).max(0.0);
        window *= 2;
        sent += window;
    }
    Duration::from_secs_f64(segments as f64 * each_s + stalled_s)
}

/// Of a line that one flow has for itself, its window going from `beta` of the most to the most by even
/// steps a round trip, behind a queue of `buffer` bandwidth-delay products. Below the product the line is
/// idle in part; above, it is full and round trips become longer. With the product as unit and m = 1 +
/// buffer, as much as (m² − β²m²)/2 is carried in a time of (1 − βm) + (m² − 1)/2: the geometry of
/// Appenzeller, Keslassy and McKeown (2004), section 2. Reno has a β of 1/2: 75 % without a queue.
pub fn aimd_utilisation(beta: f64, buffer: f64) -> f64 {
    let most = 1.0 + buffer;
    if beta * most >= 1.0 {
        return 1.0;
    }
    let carried = most * most * (1.0 - beta * beta) / 2.0;
    carried / (1.0 - beta * most + (most * most - 1.0) / 2.0)
}

pub const RENO_BETA: f64 = 0.5;
/// RFC 9438, section 4.6.
pub const CUBIC_BETA: f64 = 0.7;

/// The same for CUBIC (RFC 9438, section 4.2), whose window W(t) = C(t − K)³ + W_max follows the clock
/// and not the round trips, and is lost again where it was lost before: 92.5 % without a queue. Where
/// round trips are so short that it does as Reno does, it is not this.
pub fn cubic_utilisation(buffer: f64) -> f64 {
    let most = 1.0 + buffer;
    let depth = 1.0 - CUBIC_BETA;
    // The part of the time in which the line is full: m(1 − depth·v³) ≥ 1 for v, counted from the end.
    let full = libm::cbrt((1.0 - 1.0 / most) / depth).min(1.0);
    full + most * ((1.0 - full) - depth * (1.0 - libm::pow(full, 4.0)) / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn is_about(told: f64, exact: f64, relative: f64) -> bool {
        (told / exact - 1.0).abs() < relative
    }

    /// The constants of their table: 1.22 and 0.87.
    #[test]
    fn mathis_has_his_constants() {
        assert!(is_about(
            mathis_segments_per_second(0.01, RTT, 1),
            122.474,
            1e-5
        ));
        assert!(is_about(
            mathis_segments_per_second(0.01, RTT, 2),
            86.603,
            1e-5
        ));
        assert!(is_about(
            mathis_segments_per_second(0.0001, RTT, 1),
            1224.74,
            1e-5
        ));
    }

    /// By the paper's equations, reckoned apart from this.
    #[test]
    fn padhye_has_the_numbers_of_the_full_model() {
        for (loss, segments_per_ack, window_segments_max, exact) in [
            (0.001, 1, f64::INFINITY, 376.602280),
            (0.01, 1, f64::INFINITY, 98.829121),
            (0.01, 2, f64::INFINITY, 69.524463),
            (0.01, 2, 8.0, 52.433104),
            (0.1, 2, f64::INFINITY, 9.105989),
        ] {
            let model = Padhye {
                rtt: RTT,
                timeout: Duration::from_secs(1),
                segments_per_ack,
                window_segments_max,
            };
            let told = model.segments_per_second(loss);
            assert!(is_about(told, exact, 1e-7), "{loss}: {told}");
        }
    }

    #[test]
    fn padhye_is_the_window_s_rate_where_nothing_is_lost_and_mathis_where_timeouts_are_rare() {
        let model = |window_segments_max| Padhye {
            rtt: RTT,
            timeout: RTT,
            segments_per_ack: 1,
            window_segments_max,
        };
        let limited = model(20.0).segments_per_second(1e-9);
        assert!(is_about(limited, 200.0, 1e-5), "{limited}");
        let free = model(f64::INFINITY).segments_per_second(1e-6);
        let mathis = mathis_segments_per_second(1e-6, RTT, 1);
        assert!(is_about(free, mathis, 0.01), "{free}, {mathis}");
    }

    #[test]
    fn rounds_double_and_with_delayed_acknowledgements_grow_by_half() {
        for (segments, rounds) in [(1, 1), (10, 1), (11, 2), (30, 2), (31, 3), (70, 3), (71, 4)] {
            assert_eq!(slow_start_rounds(segments, 10, 1), rounds, "{segments}");
        }
        // 2, 3, 4.5, 6.75: their sum is 16.25.
        for (segments, rounds) in [(2, 1), (5, 2), (9, 3), (10, 4), (16, 4), (17, 5)] {
            assert_eq!(slow_start_rounds(segments, 2, 2), rounds, "{segments}");
        }
    }

    #[test]
    fn a_beginning_waits_for_round_trips_until_its_windows_fill_them() {
        let [each, rtt] = [1, 10].map(Duration::from_millis);
        // Windows of 1, 2, 4, 8, 16 wait 10, 9, 7, 3 and 0 ms after them.
        for (segments, millis) in [
            (1, 1),
            (2, 12),
            (3, 13),
            (4, 23),
            (8, 34),
            (15, 41),
            (16, 45),
            (100, 129),
        ] {
            let told = slow_start_time(segments, 1, each, rtt);
            let away = told.as_secs_f64() * 1e3 - f64::from(millis);
            assert!(away.abs() < 1e-5, "{segments}: {told:?}");
        }
    }

    #[test]
    fn sawteeth_keep_a_line_as_full_as_their_geometry_says() {
        for (beta, buffer, exact) in [
            (RENO_BETA, 0.0, 0.75),
            (RENO_BETA, 0.25, 0.892_857),
            (RENO_BETA, 1.0, 1.0),
            (RENO_BETA, 3.0, 1.0),
            (CUBIC_BETA, 0.0, 0.85),
            (CUBIC_BETA, 0.5, 1.0),
        ] {
            let told = aimd_utilisation(beta, buffer);
            assert!(is_about(told, exact, 1e-6), "{beta}, {buffer}: {told}");
        }
        assert!(is_about(cubic_utilisation(0.0), 0.925, 1e-9));
        assert_eq!(cubic_utilisation(0.43), 1.0);
    }

    /// A window's mean over its time, step by step.
    #[test]
    fn sawteeth_agree_with_their_sum_over_time() {
        const STEPS: i32 = 100_000;
        for buffer in [0.0, 0.1, 0.3] {
            let most = 1.0 + buffer;
            let part = |step: i32| f64::from(step) / f64::from(STEPS);
            // Reno: each step of the window lasts a round trip, which the queue makes longer.
            let windows = (0..STEPS).map(|step| most * (0.5 + 0.5 * part(step)));
            let (carried, time) = windows.fold((0.0, 0.0), |(carried, time), window| {
                (carried + window, time + f64::max(window, 1.0))
            });
            let reno = aimd_utilisation(RENO_BETA, buffer);
            assert!(is_about(reno, carried / time, 1e-4), "{buffer}: {reno}");
            let windows = (0..STEPS).map(|step| most * (1.0 - 0.3 * part(step).powi(3)));
            let mean = windows.map(|window| window.min(1.0)).sum::<f64>() / f64::from(STEPS);
            let cubic = cubic_utilisation(buffer);
            assert!(is_about(cubic, mean, 1e-4), "{buffer}: {cubic}");
        }
    }
}
