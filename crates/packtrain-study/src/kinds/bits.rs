//! What a size of frames brings where bits are wrong: by the formula, by frames that live or die one by one, and by TCP
//! (`packtrain_sim::bit_error_law`). One run is of one size, so that the best of them is found by a sweep.

use packtrain_settings::toml_reader::{Errors, Table};
use packtrain_sim::bit_error_law::{self, FRAME_BYTES_MAX, FRAME_BYTES_MIN, LawConfig, TcpConfig};
use packtrain_sim::theory;

use super::read::{count, quantity, seconds, truth};
use super::unnamed;
use crate::model::{Model, Outcome, Progress};
use crate::quantity::{Dimension, number};

/// With the fewest frames some are lost and some are not, but with chances of 1 to 10⁸.
const THETA_MIN: f64 = 0.002;
const THETA_MAX: f64 = 5.0;
const FRAMES_MIN: u64 = 10_000;
const FRAMES_MAX: u64 = 1_000_000_000;

/// Of the formula and of single frames.
const OF_FRAMES: [&str; 6] = [
    "theta",
    "frame_bytes",
    "loss_share",
    "goodput_frames",
    "goodput_formula",
    "best_theta",
];
const OF_TCP: [&str; 6] = [
    "goodput_tcp",
    "tcp_rate",
    "tcp_utilisation",
    "tcp_loss_share",
    "tcp_timeouts",
    "tcp_recoveries",
];

pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Box<dyn Model>> {
    section(table, errors).map(|bits| Box::new(bits) as Box<dyn Model>)
}

#[derive(Clone, Debug, PartialEq)]
struct Bits {
    law: LawConfig,
    tcp: Option<TcpConfig>,
}

fn section(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Bits> {
    let mut table = unnamed::section(table, "bits", errors)?;
    let plain = |least, most| quantity(Dimension::Number, least, most);
    let theta = table.required("theta", errors, plain(THETA_MIN, THETA_MAX));
    let bit_errors = table.required("bit_errors", errors, plain(1e-12, 1e-3));
    let mut law = LawConfig::default();
    let frames = count(FRAMES_MIN, FRAMES_MAX);
    table.optional("frames", errors, &mut law.frames, frames);
    let mut with_tcp = true;
    table.optional("tcp", errors, &mut with_tcp, truth);
    let mut tcp = TcpConfig::default();
    let mut rate = tcp.rate_bps as f64;
    table.optional(
        "rate",
        errors,
        &mut rate,
        quantity(Dimension::Rate, 1e3, 1e12),
    );
    tcp.rate_bps = rate.round() as u64;
    table.optional("round_trip", errors, &mut tcp.round_trip, seconds(1e-6));
    table.optional("ignore", errors, &mut tcp.warm_up, seconds(0.0));
    let mut length = tcp.warm_up + tcp.duration;
    table.optional("seconds", errors, &mut length, seconds(1e-3));
    table.refuse_the_rest(errors);
    let (theta, bit_error_rate) = (theta?, bit_errors?);
    (law.bit_error_rate, law.thetas) = (bit_error_rate, vec![theta]);
    (tcp.bit_error_rate, tcp.theta) = (bit_error_rate, theta);
    if with_tcp {
        fits(&table, theta, bit_error_rate, errors);
        tcp.duration = unnamed::counted(&table, length, tcp.warm_up, errors)?;
    }
    Some(Bits {
        law,
        tcp: with_tcp.then_some(tcp),
    })
}

/// A frame has headers, and an IP packet has an end.
fn fits(table: &Table<'_>, theta: f64, bit_error_rate: f64, errors: &mut Errors<'_>) {
    let frame_bytes = (theta / bit_error_rate / 8.0).round();
    let (least, most) = (FRAME_BYTES_MIN as f64, FRAME_BYTES_MAX as f64);
    if (least..=most).contains(&frame_bytes) {
        return;
    }
    let of = |bytes: f64| number(8.0 * bytes * bit_error_rate);
    let message = format!(
        "a frame of {frame_bytes} bytes, and TCP's have {least} to {most}: with bit_errors = {}, theta is from {} to {}; \
         tcp = false leaves TCP out",
        number(bit_error_rate),
        of(least),
        of(most)
    );
    table.refuse(Some("theta"), message, errors);
}

impl Bits {
    fn facts(&self) -> Vec<&'static str> {
        let tcp: &[&str] = if self.tcp.is_some() { &OF_TCP } else { &[] };
        OF_FRAMES.iter().chain(tcp).copied().collect()
    }
}

impl Model for Bits {
    fn run(&self, seed: u64, progress: &dyn Progress) -> Outcome {
        let law = bit_error_law::law(&LawConfig {
            seed,
            ..self.law.clone()
        });
        let at = law.points[0];
        progress.at(0.1);
        let mut facts = vec![
            ("theta", at.theta),
            ("frame_bytes", at.frame_bits as f64 / 8.0),
            ("loss_share", at.lost as f64 / self.law.frames as f64),
            ("goodput_frames", at.goodput),
            ("goodput_formula", at.formula),
            ("best_theta", theory::xlf_best_theta()),
        ];
        let mut events = self.law.frames;
        if let Some(config) = &self.tcp {
            let tcp = bit_error_law::tcp(&TcpConfig { seed, ..*config });
            facts.extend([
                ("goodput_tcp", tcp.goodput),
                ("tcp_rate", tcp.goodput_bps),
                ("tcp_utilisation", tcp.goodput_bps / config.rate_bps as f64),
                ("tcp_loss_share", tcp.lost as f64 / tcp.sent as f64),
                ("tcp_timeouts", tcp.timeouts as f64),
                ("tcp_recoveries", tcp.fast_recoveries as f64),
            ]);
            events += tcp.sent;
        }
        progress.at(1.0);
        unnamed::outcome(&facts, events)
    }

    fn knows_fact(&self, fact: &str, of: &[&str]) -> Result<(), String> {
        if self.tcp.is_none() && OF_TCP.contains(&fact) {
            return Err(format!("{fact} is of TCP, and tcp = false"));
        }
        unnamed::knows_fact(&self.facts(), fact, of)
    }

    fn fact_names(&self) -> Vec<String> {
        // With those that are not there, so that it is said why.
        let all = OF_FRAMES.iter().chain(&OF_TCP);
        all.map(|name| (*name).to_owned()).collect()
    }

    fn knows_series(&self, name: &str) -> Result<(), String> {
        unnamed::no_series(name)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use packtrain_proto::time::Duration;
    use packtrain_settings::toml_reader;

    use super::*;

    const WHOLE: &str = r#"
[bits]
theta = "0.05"
bit_errors = 2.5e-6
frames = 20000
rate = "100mbit"
round_trip = "20ms"
ignore = 5
seconds = 15
"#;

    fn bits(text: &str) -> Result<Bits, String> {
        let read = toml_reader::read(Path::new("b.toml"), text, |table, errors| {
            let bits = section(table, errors);
            table.refuse_the_rest(errors);
            bits
        });
        read.map_err(|errors| errors.to_string())
    }

    #[test]
    fn everything_that_the_file_says_is_in_the_settings() {
        let law = LawConfig {
            bit_error_rate: 2.5e-6,
            thetas: vec![0.05],
            frames: 20_000,
            seed: 1,
        };
        let tcp = TcpConfig {
            theta: 0.05,
            bit_error_rate: 2.5e-6,
            rate_bps: 100_000_000,
            round_trip: Duration::from_millis(20),
            warm_up: Duration::from_secs(5),
            duration: Duration::from_secs(10),
            seed: 1,
        };
        let expected = Bits {
            law,
            tcp: Some(tcp),
        };
        assert_eq!(bits(WHOLE), Ok(expected));
    }

    #[test]
    fn each_mistake_is_told_with_its_line_its_key_and_what_is_allowed() {
        for (from, to, error) in [
            (
                "\"0.05\"",
                "0",
                "b.toml:3: bits.theta: \"0\" is not a number from 0.002 to 5",
            ),
            (
                "\"0.05\"",
                "1.5",
                "b.toml:3: bits.theta: a frame of 75000 bytes, and TCP's have 59 to 65553: with bit_errors = 0.0000025, theta \
                 is from 0.00118 to 1.31106; tcp = false leaves TCP out",
            ),
            (
                "bit_errors =",
                "ber =",
                "b.toml:2: bits.bit_errors: is missing",
            ),
            (
                "20000",
                "200",
                "b.toml:5: bits.frames: \"200\" is not a whole number from 10000 to 1000000000",
            ),
            (
                "seconds = 15",
                "seconds = 5",
                "b.toml:8: bits.ignore: 5 s of 5 s: nothing is left to be counted",
            ),
            (
                "\"20ms\"",
                "\"20mb\"",
                "b.toml:7: bits.round_trip: \"20mb\" is not",
            ),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            let errors = bits(&WHOLE.replacen(from, to, 1)).unwrap_err();
            assert!(errors.contains(error), "{to}: {errors}");
        }
    }

    #[test]
    fn a_run_knows_the_facts_that_it_says_it_does() {
        let bits_with = bits(WHOLE).unwrap();
        let outcome = bits_with.run(1, &());
        for fact in OF_FRAMES.iter().chain(&OF_TCP) {
            assert!(outcome.facts.get(fact, &[]).is_ok(), "{fact}");
            assert_eq!(bits_with.knows_fact(fact, &[]), Ok(()));
        }
        assert_eq!(outcome.facts.names().len(), OF_FRAMES.len() + OF_TCP.len());
        let fact = |name| outcome.facts.get(name, &[]).unwrap();
        assert_eq!(fact("frame_bytes"), 2500.0);
        assert!((fact("goodput_frames") / fact("goodput_formula") - 1.0).abs() < 0.1);
        for loss in ["loss_share", "tcp_loss_share"] {
            assert!((0.03..0.07).contains(&fact(loss)), "{}", fact(loss));
        }
    }

    #[test]
    fn without_tcp_frames_are_of_any_size_and_nothing_is_known_of_it() {
        let text = WHOLE.replacen("\"0.05\"", "1.5\ntcp = false", 1);
        let without = bits(&text).unwrap();
        let facts = without.run(1, &()).facts;
        assert_eq!(facts.names().len(), OF_FRAMES.len());
        assert!(facts.get("goodput_frames", &[]).is_ok());
        assert_eq!(
            without.knows_fact("goodput_tcp", &[]).unwrap_err(),
            "goodput_tcp is of TCP, and tcp = false"
        );
    }
}
