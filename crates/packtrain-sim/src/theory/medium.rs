//! A shared medium with collisions: the part of the time in which it carries frames.

use packtrain_proto::time::Duration;

/// Of stations that always have something to send and each try with 1/Q in a slot, which is the longest
/// round trip (Metcalfe and Boggs 1976, section 6): P/C ÷ (P/C + W·T), W = (1 − A)/A slots, A = (1 − 1/Q)^(Q−1).
/// Real stations back off in their own way, and capture the medium: they do better than this with few.
pub fn csma_cd_efficiency(stations: u32, frame: Duration, slot: Duration) -> f64 {
    assert!(stations > 0, "nobody sends");
    let others = f64::from(stations - 1);
    let one_alone = libm::pow(1.0 - 1.0 / f64::from(stations), others);
    let slots = (1.0 - one_alone) / one_alone;
    let frame_s = frame.as_secs_f64();
    frame_s / (frame_s + slots * slot.as_secs_f64())
}

/// The textbooks' 1/(1 + 6.44a) for many stations, where a is the propagation from end to end in times of
/// a frame: e slots of 2a until one has the medium, and a until the others no longer hear it. Tanenbaum
/// (Computer Networks, section 4.3) leaves out the last and has 5.44; by Metcalfe and Boggs, who do not count
/// the slot in which it succeeds, it is 3.44.
pub fn csma_cd_efficiency_of_many(a: f64) -> f64 {
    1.0 / (1.0 + (1.0 + 2.0 * std::f64::consts::E) * a)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 Mbit/s, slots of 16 µs, frames of 4096, 1024, 512 and 48 bits, reckoned apart from this.
    #[test]
    fn the_first_ethernet_has_the_efficiency_of_its_model() {
        for (stations, printed) in [
            (1, [1.0, 1.0, 1.0, 1.0]),
            (2, [0.9884, 0.9552, 0.9143, 0.5000]),
            (3, [0.9856, 0.9446, 0.8951, 0.4444]),
            (5, [0.9834, 0.9367, 0.8810, 0.4096]),
            (10, [0.9818, 0.9310, 0.8709, 0.3874]),
            (256, [0.9803, 0.9257, 0.8616, 0.3686]),
        ] {
            for (bits, printed) in [4096, 1024, 512, 48].into_iter().zip(printed) {
                let frame = Duration::from_nanos(bits * 1000 / 3);
                let told = csma_cd_efficiency(stations, frame, Duration::from_micros(16));
                assert!((told - printed).abs() < 6e-5, "{stations}, {bits}: {told}");
            }
        }
    }

    #[test]
    fn many_stations_have_the_textbooks_constants() {
        assert!((csma_cd_efficiency_of_many(0.1) - 1.0 / 1.643_656).abs() < 1e-6);
        assert_eq!(csma_cd_efficiency_of_many(0.0), 1.0);
        let (frame, end_to_end) = (Duration::from_millis(1), Duration::from_micros(100));
        let told = csma_cd_efficiency(1_000_000, frame, 2 * end_to_end);
        assert!((told - 1.0 / 1.343_656).abs() < 1e-5, "{told}");
    }
}
