//! CUBIC's window by its losses.

use packtrain_proto::time::Duration;
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::tcp::sender::SenderConfig;
use packtrain_sim::theory::tcp::mathis_segments_per_second;

use crate::support::{Path, ms, unrecorded};

/// RFC 9438, section 5.1 (equation 5, with C = 0.4): losses at even distances, and where it is not as Reno.
fn window(loss: f64, rtt: Duration) -> f64 {
    1.054 * rtt.as_secs_f64().powf(0.75) / loss.powf(0.75)
}

#[test]
fn losses_at_even_distances_leave_what_its_response_function_says() {
    let rtt = ms(100);
    // At 1e-4 and 100 ms the RFC's own table has 187 segments, and 18,740 at 1e-6.
    for (loss, seconds) in [(1e-3, 400), (1e-4, 400)] {
        let path = Path {
            sender: unrecorded(SenderConfig {
                cubic: true,
                ..SenderConfig::default()
            }),
            ..Path::lossy(
                rtt,
                LossConfig::Periodic {
                    every: (1.0 / loss) as u64,
                },
            )
        };
        let measured =
            path.segments_per_second(Duration::from_secs(100), Duration::from_secs(seconds));
        let told = window(loss, rtt) / rtt.as_secs_f64();
        let reno = mathis_segments_per_second(loss, rtt, 1);
        let ratio = measured / told.max(reno);
        println!("cubic by losses, {loss}: {ratio:.3}");
        // At 1e-3 both are about as large, and each moment has the larger of the two (RFC 9438, 4.3): more than either mean.
        // And the form has each loss where the plateau is reached, which is so flat that it comes much earlier or later.
        let expected = if reno > told { 0.95..1.25 } else { 0.85..1.2 };
        assert!(expected.contains(&ratio), "at {loss}: {ratio}");
    }
}
