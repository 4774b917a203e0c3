//! What is checked: a setting each, and what is right for it.

use std::time::Duration;

use super::stage::Stage;
use crate::lab::Result;

/// Makes the traffic; `true`: in the short form.
pub(super) type Measure = Box<dyn Fn(&Stage, bool) -> Result<Measured>>;

/// A setting, and how to see whether a wire has it.
pub(super) struct Check {
    /// As on the command line of `lab set`.
    pub(super) setting: String,
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    /// Part of the short form.
    pub(super) short: bool,
    /// Above this at the 99th percentile the run says nothing.
    pub(super) late_max_us: f64,
    /// The same, in all its time.
    pub(super) away_max_ms: f64,
    pub(super) measure: Measure,
}

/// One number, and between which it is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) set: f64,
    pub(super) value: f64,
    pub(super) within: [f64; 2],
    /// Of a wire that is to be busy all the time: the share in which it was.
    pub(super) busy: Option<f64>,
}

impl Measured {
    fn new(set: f64, value: f64, within: [f64; 2]) -> Measured {
        Measured {
            set,
            value,
            within,
            busy: None,
        }
    }
}

/// Bytes of a frame without FCS.
const SMALL: usize = 60;
const LARGE: usize = 1514;
/// With preamble, FCS and the gap.
const WIRE_OVERHEAD: usize = 24;

/// Of what is about how many and not about when.
const LATE_MAX_US: f64 = 20_000.0;
/// Of what is about when: what the delay of a wire may be off at the 99th percentile.
const LATE_MAX_OF_TIMES_US: f64 = 300.0;

/// The machine's own, of two seconds of traffic.
const AWAY_MAX_MS: f64 = 100.0;
const AWAY_MAX_OF_TIMES_MS: f64 = 10.0;

/// Standard deviations of a count that chance decides: one run of a thousand is beyond.
const DEVIATIONS: f64 = 3.3;

pub(super) fn all() -> Vec<Check> {
    let mut all = Vec::new();
    for (rate, bps, frame, short) in [
        ("1mbit", 1e6, SMALL, false),
        ("10mbit", 10e6, SMALL, true),
        ("100mbit", 100e6, SMALL, false),
        ("100mbit", 100e6, LARGE, false),
        ("622mbit", 622e6, LARGE, false),
    ] {
        all.push(rate_check(format!("--rate {rate}"), bps, frame, short));
    }
    all.push(ip_rate_check());
    for (delay, us, short) in [
        ("0ms", 0.0, false),
        ("1ms", 1e3, false),
        ("20ms", 20e3, true),
        ("198ms", 198e3, false),
    ] {
        all.push(delay_check(delay, us, short, Percentile::Mean, 100.0));
        all.push(delay_check(delay, us, short, Percentile::P99, 300.0));
    }
    all.extend(jitter_checks());
    all.push(share_check("--loss 1%", 0.01, SMALL, false, 1.0));
    all.push(share_check("--loss 10%", 0.1, SMALL, true, 1.0));
    all.push(bursts_check());
    all.push(periodic_check());
    all.push(bit_errors_check());
    all.push(share_check("--corrupt 5%", 0.05, LARGE, false, 1.0));
    all.push(duplicates_check());
    all.push(reordering_check());
    all.push(cap_check());
    all.push(queue_check());
    all
}

/// Long enough for the figure, or for a look.
fn seconds(whole: f64, short: bool) -> Duration {
    Duration::from_secs_f64(if short { whole / 4.0 } else { whole })
}

fn rate_check(setting: String, bps: f64, frame: usize, short: bool) -> Check {
    let bits = 8 * (frame + WIRE_OVERHEAD);
    let what = if frame == SMALL {
        "frames of 60 bytes"
    } else {
        "frames of 1514 bytes"
    };
    Check {
        setting,
        what,
        unit: "/s",
        short,
        late_max_us: LATE_MAX_US,
        away_max_ms: AWAY_MAX_MS,
        measure: Box::new(move |stage, short| {
            let busy_before_s = stage.busy_s()?;
            let report = stage.send(frame, None, seconds(2.0, short))?;
            let set = bps / bits as f64;
            let value = report.delivered_per_second;
            let lasted_s = report.delivered as f64 / value;
            let busy_s = stage.busy_s()? - busy_before_s;
            Ok(Measured {
                busy: Some(busy_s / lasted_s),
                ..Measured::new(set, value, [0.99 * set, 1.01 * set])
            })
        }),
    }
}

fn ip_rate_check() -> Check {
    Check {
        setting: "--rate 10mbit:ip".to_owned(),
        what: "frames of 1514 bytes",
        unit: "/s",
        short: false,
        late_max_us: LATE_MAX_US,
        away_max_ms: AWAY_MAX_MS,
        measure: Box::new(|stage, short| {
            let set = 10e6 / (8.0 * 1500.0);
            // No port of the sender has this rate, so nothing holds it back.
            let offered = Some((1.5 * set) as u64);
            let report = stage.send(LARGE, offered, seconds(2.0, short))?;
            Ok(Measured {
                set,
                value: report.delivered_per_second,
                within: [0.99 * set, 1.01 * set],
                busy: None,
            })
        }),
    }
}

#[derive(Clone, Copy)]
enum Percentile {
    Mean,
    P99,
}

fn delay_check(delay: &str, us: f64, short: bool, of: Percentile, more_us: f64) -> Check {
    Check {
        setting: format!("--delay {delay}"),
        what: match of {
            Percentile::Mean => "one way, mean",
            Percentile::P99 => "one way, 99 %",
        },
        unit: "us",
        short,
        late_max_us: LATE_MAX_OF_TIMES_US,
        away_max_ms: AWAY_MAX_OF_TIMES_MS,
        measure: Box::new(move |stage, short| {
            let report = stage.send(SMALL, Some(2000), seconds(2.0, short))?;
            Ok(Measured {
                set: us,
                value: match of {
                    Percentile::Mean => report.delay_mean_us,
                    Percentile::P99 => report.delay_p99_us,
                },
                within: [us, us + more_us],
                busy: None,
            })
        }),
    }
}

/// The mean of what is added, and how far it spreads.
fn jitter_checks() -> Vec<Check> {
    let check = |jitter: &str, mean_us: f64, deviation_us: f64, is_mean: bool| Check {
        setting: format!("--delay 20ms --jitter {jitter},unordered"),
        what: if is_mean {
            "one way, mean"
        } else {
            "one way, deviation"
        },
        unit: "us",
        short: false,
        late_max_us: LATE_MAX_OF_TIMES_US,
        away_max_ms: AWAY_MAX_OF_TIMES_MS,
        measure: Box::new(move |stage, short| {
            let report = stage.send(SMALL, Some(5000), seconds(4.0, short))?;
            let count = report.delivered.max(1) as f64;
            // Of a mean the error is that of so many draws; of a deviation it depends on the tail.
            let (set, value, error) = match is_mean {
                true => (mean_us, report.delay_mean_us, deviation_us / count.sqrt()),
                false => (deviation_us, report.delay_deviation_us, deviation_us * 0.01),
            };
            let error = DEVIATIONS * error;
            // What is late is late by as much as a delay may be.
            Ok(Measured {
                set,
                value,
                within: [set - error, set + error + 100.0],
                busy: None,
            })
        }),
    };
    let uniform = 5000.0 / 12f64.sqrt();
    vec![
        check("uniform:5ms", 22_500.0, uniform, true),
        check("uniform:5ms", 22_500.0, uniform, false),
        check("normal:2ms", 20_000.0, 2000.0, true),
        check("normal:2ms", 20_000.0, 2000.0, false),
        check("pareto:1ms", 21_000.0, 1880.0, true),
    ]
}

/// The bounds of a count of `n` that each meet a fate with a probability. `spread`: how much further
/// than independent ones such counts spread.
fn binomial(n: u64, share: f64, spread: f64) -> [f64; 2] {
    let n = n as f64;
    let deviation = (n * share * (1.0 - share)).sqrt() * spread;
    [-1.0, 1.0].map(|sign| (n * share + sign * DEVIATIONS * deviation) / n)
}

/// 10⁵ frames, of which a share does not arrive.
fn share_check(setting: &str, share: f64, frame: usize, short: bool, spread: f64) -> Check {
    Check {
        setting: setting.to_owned(),
        what: "share lost",
        unit: "of frames",
        short,
        late_max_us: LATE_MAX_US,
        away_max_ms: AWAY_MAX_MS,
        measure: Box::new(move |stage, short| {
            let report = stage.send(frame, Some(40_000), seconds(2.5, short))?;
            Ok(Measured {
                set: share,
                value: report.lost() as f64 / report.sent as f64,
                within: binomial(report.sent, share, spread),
                busy: None,
            })
        }),
    }
}

/// Bursts: in the bad state, which lasts 10 frames, half of them are lost.
fn bursts_check() -> Check {
    let (to_bad, to_good): (f64, f64) = (0.01, 0.1);
    let bad = to_bad / (to_bad + to_good);
    // What happens to one frame tells of the next ones, this much.
    let correlation = 1.0 - to_bad - to_good;
    let spread = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
    share_check(
        "--loss gilbert:1%,10%,0%,50%",
        bad * 0.5,
        SMALL,
        false,
        spread,
    )
}

fn periodic_check() -> Check {
    Check {
        setting: "--loss every:100".to_owned(),
        what: "frames lost",
        unit: "",
        short: true,
        late_max_us: LATE_MAX_US,
        away_max_ms: AWAY_MAX_MS,
        measure: Box::new(|stage, short| {
            let report = stage.send(SMALL, Some(20_000), seconds(2.0, short))?;
            let set = (report.sent / 100) as f64;
            Ok(Measured {
                set,
                value: report.lost() as f64,
                // The count began with a frame before ours.
                within: [set, set + 1.0],
                busy: None,
            })
        }),
    }
}

/// Long frames die as often as their bits are many.
fn bit_errors_check() -> Check {
    let bits = 8.0 * (LARGE + 4) as f64;
    let share = 1.0 - (1.0 - 1e-6f64).powf(bits);
    share_check("--bit-errors 1e-6", share, LARGE, false, 1.0)
}

fn duplicates_check() -> Check {
    Check {
        setting: "--duplicate 5%".to_owned(),
        what: "share that came again",
        unit: "of frames",
        short: false,
        late_max_us: LATE_MAX_US,
        away_max_ms: AWAY_MAX_MS,
        measure: Box::new(|stage, short| {
            let report = stage.send(SMALL, Some(40_000), seconds(2.5, short))?;
            // One in twenty of those comes a third time.
            let share = 0.05 + 0.05 * 0.05;
            Ok(Measured {
                set: share,
                value: report.duplicated as f64 / report.sent as f64,
                within: binomial(report.sent, share, 1.1),
                busy: None,
            })
        }),
    }
}

fn reordering_check() -> Check {
    Check {
        setting: "--reorder 2%:10ms".to_owned(),
        what: "share overtaken",
        unit: "of frames",
        short: false,
        late_max_us: LATE_MAX_US,
        away_max_ms: AWAY_MAX_MS,
        measure: Box::new(|stage, short| {
            let report = stage.send(SMALL, Some(40_000), seconds(2.5, short))?;
            let [least, most] = binomial(report.sent, 0.02, 1.0);
            Ok(Measured {
                set: 0.02,
                value: report.reordered as f64 / report.sent as f64,
                // Who is held for less than until the next bundle leaves is not overtaken: the
                // sender sends what is due every 0.2 ms.
                within: [0.95 * least, most],
                busy: None,
            })
        }),
    }
}

fn cap_check() -> Check {
    Check {
        setting: "--packets-per-second 5000:64".to_owned(),
        what: "frames of 60 bytes",
        unit: "/s",
        short: false,
        late_max_us: LATE_MAX_US,
        away_max_ms: AWAY_MAX_MS,
        measure: Box::new(|stage, short| {
            let report = stage.send(SMALL, Some(8000), seconds(4.0, short))?;
            Ok(Measured {
                set: 5000.0,
                value: report.delivered_per_second,
                within: [4950.0, 5050.0],
                busy: None,
            })
        }),
    }
}

fn queue_check() -> Check {
    const ROOM: f64 = 100.0;
    const RATE_BPS: f64 = 1e6;
    Check {
        setting: "--rate 1mbit --port-rate none --queue 100p".to_owned(),
        what: "frames of a burst",
        unit: "that arrive",
        short: true,
        late_max_us: LATE_MAX_US,
        away_max_ms: AWAY_MAX_MS,
        measure: Box::new(|stage, _| {
            let duration = Duration::from_millis(3);
            let report = stage.send(SMALL, None, duration)?;
            // What leaves while the burst comes makes room, and while the last messages come,
            // which say that it is over, and are not counted.
            let a_frame_s = 8.0 * (SMALL + WIRE_OVERHEAD) as f64 / RATE_BPS;
            let left = duration.as_secs_f64() / a_frame_s;
            Ok(Measured {
                set: ROOM + left,
                value: report.delivered as f64,
                // A message of those that found the way may still stand there.
                within: [ROOM - 2.0, ROOM + left + 2.0],
                busy: None,
            })
        }),
    }
}
