//! What losses leave of TCP.

use packtrain_proto::time::Duration;
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::tcp::scoreboard::Detection;
use packtrain_sim::tcp::sender::SenderConfig;
use packtrain_sim::theory::tcp::{Padhye, mathis_segments_per_second};

use crate::support::{Path, ms, unrecorded};

const RTT: Duration = ms(100);

fn even(loss: f64) -> LossConfig {
    LossConfig::Periodic {
        every: (1.0 / loss) as u64,
    }
}

/// The same round by round, in segments a round trip: the window is `low` in the one that repairs the loss, and grows from there
/// to twice as much, 1.5 low² + 2.5 low segments in low + 2 rounds.
fn by_rounds(loss: f64) -> f64 {
    let segments = 1.0 / loss;
    let low = (-2.5 + (6.25 + 6.0 * segments).sqrt()) / 3.0;
    segments / (low + 2.0)
}

#[test]
fn losses_at_even_distances_leave_what_mathis_says() {
    for (loss, seconds) in [(0.001, 600), (0.01, 300)] {
        let path = Path::lossy(RTT, even(loss));
        let measured =
            path.segments_per_second(Duration::from_secs(30), Duration::from_secs(seconds));
        let ratio = measured / mathis_segments_per_second(loss, RTT, 1);
        let exact = measured * RTT.as_secs_f64() / by_rounds(loss);
        println!("even, {loss}: {ratio:.3}, by rounds {exact:.3}");
        // He has no round that repairs; neither has windows of whole segments.
        assert!((0.84..1.0).contains(&ratio), "at {loss}: {ratio}");
        assert!((0.95..1.0).contains(&exact), "at {loss}: {exact}");
    }
}

#[test]
fn losses_by_chance_leave_it_within_the_spread_that_is_known_of_it() {
    for (loss, seconds) in [(0.001, 1500), (0.01, 600)] {
        let path = Path::lossy(RTT, LossConfig::Bernoulli { probability: loss });
        let measured =
            path.segments_per_second(Duration::from_secs(30), Duration::from_secs(seconds));
        let ratio = measured / mathis_segments_per_second(loss, RTT, 1);
        println!("by chance, {loss}: {ratio:.3}");
        // Ott, Kemperman and Mathis (1996): by chance the constant is 1.31 and not 1.22; and two losses in a window are
        // one event for those who have SACK.
        assert!((0.85..1.2).contains(&ratio), "at {loss}: {ratio}");
    }
}

#[test]
fn delayed_acknowledgements_change_nothing_where_bytes_are_counted() {
    // Mathis' other constant is for those who count acknowledgements (RFC 3465).
    let path = Path {
        delayed_ack: Some(ms(40)),
        ..Path::lossy(RTT, even(0.001))
    };
    let measured = path.segments_per_second(Duration::from_secs(30), Duration::from_secs(300));
    let ratio = measured / mathis_segments_per_second(0.001, RTT, 1);
    println!("delayed: {ratio:.3}");
    assert!((0.9..1.0).contains(&ratio), "{ratio}");
}

#[test]
fn reno_is_what_padhye_says_within_the_spread_of_his_own_measurements() {
    for (loss, seconds) in [(0.001, 1500), (0.01, 600)] {
        let path = Path {
            sender: unrecorded(SenderConfig {
                detection: Detection::RENO,
                ..SenderConfig::default()
            }),
            ..Path::lossy(RTT, LossConfig::Bernoulli { probability: loss })
        };
        let measured =
            path.segments_per_second(Duration::from_secs(30), Duration::from_secs(seconds));
        let padhye = Padhye {
            rtt: RTT,
            // The variance's part is 200 ms at least.
            timeout: ms(300),
            segments_per_ack: 1,
            window_segments_max: f64::INFINITY,
        };
        let ratio = measured / padhye.segments_per_second(loss);
        println!("padhye, {loss}: {ratio:.3}");
        assert!((0.8..1.3).contains(&ratio), "at {loss}: {ratio}");
    }
}
