//! Queues that customers come to by themselves, one server, and room for everybody.

use packtrain_proto::time::Duration;

/// In the mean, of who waits: not of who is served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    pub time: Duration,
    /// How many wait.
    pub queue: f64,
}

/// Everybody takes as long: frames of one size (Pollaczek and Khinchine; Kleinrock 1975, section 5.6).
pub fn m_d_1(load: f64, service: Duration) -> Waiting {
    pollaczek_khinchine(load, service, 0.0)
}

/// Times of service are exponential (Kleinrock 1975, section 3.2).
pub fn m_m_1(load: f64, service: Duration) -> Waiting {
    pollaczek_khinchine(load, service, 1.0)
}

/// With the square of the coefficient of variation of the times of service; how many wait is load times
/// how long, in times of service (Little 1961).
fn pollaczek_khinchine(load: f64, service: Duration, variation: f64) -> Waiting {
    assert!((0.0..1.0).contains(&load), "a load of {load} has no end");
    let services = load * (1.0 + variation) / (2.0 * (1.0 - load));
    Waiting {
        time: service.mul_f64(services),
        queue: load * services,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_service_halves_the_wait() {
        let service = Duration::from_micros(12);
        for (load, services) in [(0.0, 0.0), (0.5, 0.5), (0.8, 2.0), (0.9, 4.5)] {
            let (even, random) = (m_d_1(load, service), m_m_1(load, service));
            let exact_s = services * service.as_secs_f64();
            assert!((even.time.as_secs_f64() - exact_s).abs() < 2e-9, "{even:?}");
            assert!(
                (random.time.as_secs_f64() - 2.0 * exact_s).abs() < 2e-9,
                "{random:?}"
            );
            assert!((even.queue - load * services).abs() < 1e-12, "{even:?}");
            assert!(
                (random.queue - 2.0 * load * services).abs() < 1e-12,
                "{random:?}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "has no end")]
    fn a_queue_that_is_fed_more_than_it_serves_has_no_mean() {
        m_m_1(1.0, Duration::from_micros(1));
    }
}
