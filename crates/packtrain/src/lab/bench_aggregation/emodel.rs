//! What a call sounds like: the E-model of ITU-T G.107, as Cole and Rosenbluth reduced it to what a network does to
//! a call (*Voice over IP Performance Monitoring*, 2001), for G.711 without loss concealment.
//!
//! R = 94.2 − Id − Ie, of a delay d from mouth to ear in milliseconds and a share e of packets that are not heard:
//! Id = 0.024 d + 0.11 (d − 177.3) where d is above 177.3, and Ie = 30 ln(1 + 15 e), for losses that are independent
//! of each other. The mean opinion score follows from R by G.107, annex B.

/// The rating that is left when nothing is lost and nothing takes time.
const R_MAX: f64 = 94.2;
/// From here on speakers notice that they wait for each other, ms.
const CONVERSATION_MS: f64 = 177.3;
/// G.711 sends what it has heard for so long, ms; it looks at nothing that comes after it.
pub const PACKET_MS: f64 = 20.0;

/// `delay_ms`: from mouth to ear. `loss`: share of the packets, 0 to 1.
pub fn rating(delay_ms: f64, loss: f64) -> f64 {
    let late_ms = (delay_ms - CONVERSATION_MS).max(0.0);
    let of_delay = 0.024 * delay_ms + 0.11 * late_ms;
    let of_loss = 30.0 * (15.0 * loss).ln_1p();
    R_MAX - of_delay - of_loss
}

/// From 1, bad, to 4.5.
pub fn opinion_score(rating: f64) -> f64 {
    match rating {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        // Annex B's cubic falls below 1 for ratings of less than 6.5, where no score is.
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

/// The score of one direction of a call, of which these packets came, so many ms after they were sent, of so many.
/// What comes is held until it is played, all packets equally late, by a jitter buffer of that depth which is best
/// for the call: one that is played out too early loses the packets that come later.
pub fn call_score(delays_ms: &[f64], sent: usize) -> f64 {
    let mut sorted = delays_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    let heard_by = |(before, &played_ms): (usize, &f64)| {
        let heard = (before + 1) as f64 / sent.max(1) as f64;
        opinion_score(rating(PACKET_MS + played_ms, 1.0 - heard.min(1.0)))
    };
    sorted.iter().enumerate().map(heard_by).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_about(value: f64, expected: f64, within: f64) {
        assert!((value - expected).abs() <= within, "{value}, {expected}");
    }

    #[test]
    fn the_scores_are_those_of_annex_b() {
        for (r, score) in [
            (100.0, 4.5),
            (94.0, 4.42),
            (93.2, 4.41),
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
            (0.0, 1.0),
            (-5.0, 1.0),
            (3.0, 1.0),
        ] {
            // As printed there: 80 is 4.024.
            is_about(opinion_score(r), score, 0.0065);
        }
    }

    #[test]
    fn ratings_are_those_of_cole_and_rosenbluth() {
        // Of delay alone: the knee, and what lies beyond it.
        is_about(rating(0.0, 0.0), 94.2, 1e-9);
        is_about(rating(177.3, 0.0), 94.2 - 4.2552, 1e-9);
        is_about(rating(277.3, 0.0), 94.2 - 4.2552 - 2.4 - 11.0, 1e-9);
        // Of loss alone: 30 ln(1 + 15 e) is 4.2 for 1 %, 16.8 for 5 %, and 27.5 for 10 %.
        for (loss, lost) in [(0.01, 4.19), (0.05, 16.79), (0.1, 27.49)] {
            is_about(rating(0.0, loss), 94.2 - lost, 0.01);
        }
    }

    #[test]
    fn a_call_is_as_good_as_its_best_jitter_buffer_makes_it() {
        let even = [5.0; 100];
        let best = opinion_score(rating(25.0, 0.0));
        is_about(call_score(&even, 100), best, 1e-9);
        // One straggler of a hundred, by two seconds: it is given up, and not waited for.
        let mut delays = even;
        delays[17] = 2000.0;
        is_about(
            call_score(&delays, 100),
            opinion_score(rating(25.0, 0.01)),
            1e-9,
        );
        // By a few milliseconds: it is waited for.
        delays[17] = 9.0;
        is_about(
            call_score(&delays, 100),
            opinion_score(rating(29.0, 0.0)),
            1e-9,
        );
        // What never came is lost to any.
        is_about(
            call_score(&even[..90], 100),
            opinion_score(rating(25.0, 0.1)),
            1e-9,
        );
        assert_eq!(call_score(&[], 100), 1.0);
    }
}
