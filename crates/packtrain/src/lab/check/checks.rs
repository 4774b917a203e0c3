//! What is checked: a setting each, and what is right for it.

use std::time::Duration;

use super::stage::{SMALL, Stage};
use crate::lab::Result;
use crate::lab::messages::Report;

/// Makes the traffic; `true`: in the short form.
pub(super) type Measure = Box<dyn Fn(&Stage, bool) -> Result<Measured>>;

/// A setting, and how to see whether a wire has it.
pub(super) struct Check {
    /// As on the command line of `lab set`.
    pub(super) setting: String,
    /// What is tried is none of those.
    pub(super) name: Option<&'static str>,
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    /// Part of the short form.
    pub(super) short: bool,
    /// Above this at the 99th percentile the run says nothing.
    pub(super) late_max_us: f64,
    /// The same, in all its time.
    pub(super) away_max_ms: f64,
    /// By the clocks of who sends and who receives, which may have been late too. What counts frames is not.
    pub(super) is_timed: bool,
    /// No processor sleeps meanwhile.
    pub(super) keeps_awake: bool,
    /// A figure that the hosts have a part of, whatever the wire does.
    pub(super) hosts: Option<fn(&Report) -> f64>,
    pub(super) measure: Measure,
}

impl Check {
    /// About how many, and not part of the short form.
    fn new(
        setting: impl Into<String>,
        (what, unit): (&'static str, &'static str),
        measure: impl Fn(&Stage, bool) -> Result<Measured> + 'static,
    ) -> Check {
        Check {
            setting: setting.into(),
            name: None,
            what,
            unit,
            short: false,
            late_max_us: LATE_MAX_US,
            away_max_ms: AWAY_MAX_MS,
            is_timed: false,
            keeps_awake: false,
            hosts: None,
            measure: Box::new(measure),
        }
    }

    /// About how many in a time, to a percent.
    fn of_rates(self) -> Check {
        Check {
            away_max_ms: AWAY_MAX_OF_RATES_MS,
            is_timed: true,
            ..self
        }
    }

    /// About when.
    fn of_times(self) -> Check {
        Check {
            late_max_us: LATE_MAX_OF_TIMES_US,
            away_max_ms: AWAY_MAX_OF_TIMES_MS,
            is_timed: true,
            keeps_awake: true,
            ..self
        }
    }

    /// The hosts take their time as well.
    fn beside_hosts(self, figure: fn(&Report) -> f64) -> Check {
        Check {
            hosts: Some(figure),
            ..self
        }
    }

    fn named(self, name: &'static str) -> Check {
        Check {
            name: Some(name),
            ..self
        }
    }

    /// As it is called in the table.
    pub(super) fn name(&self) -> &str {
        self.name.unwrap_or(&self.setting)
    }

    fn in_short(self) -> Check {
        Check {
            short: true,
            ..self
        }
    }
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

/// Bytes of the longest frame, without FCS.
const LARGE: usize = 1514;
/// With preamble, FCS and the gap.
const WIRE_OVERHEAD: usize = 24;

/// Of what is about how many and not about when.
const LATE_MAX_US: f64 = 20_000.0;
/// Of what is about when: what the delay of a wire may be off at the 99th percentile.
const LATE_MAX_OF_TIMES_US: f64 = 300.0;

/// The machine's own, of two seconds of traffic.
const AWAY_MAX_MS: f64 = 100.0;
const AWAY_MAX_OF_RATES_MS: f64 = 20.0;
const AWAY_MAX_OF_TIMES_MS: f64 = 10.0;

/// Standard deviations of a count that chance decides: one run of a thousand is beyond.
const DEVIATIONS: f64 = 3.3;

pub(super) fn all() -> Vec<Check> {
    let mut all = vec![
        rate_check("1mbit", 1e6, SMALL),
        rate_check("10mbit", 10e6, SMALL).in_short(),
        rate_check("100mbit", 100e6, SMALL),
        rate_check("100mbit", 100e6, LARGE),
        rate_check("622mbit", 622e6, LARGE),
        ip_rate_check(),
    ];
    for (delay, us) in [("0ms", 0.0), ("1ms", 1e3), ("20ms", 20e3), ("198ms", 198e3)] {
        let [mean, tail] = delay_checks(delay, us);
        match delay {
            "20ms" => all.extend([mean.in_short(), tail.in_short()]),
            _ => all.extend([mean, tail]),
        }
    }
    all.extend([
        jitter_mean_check("uniform:5ms", 2_500.0, UNIFORM_DEVIATION_US),
        jitter_deviation_check("uniform:5ms", UNIFORM_DEVIATION_US),
        jitter_mean_check("normal:2ms", 0.0, 2_000.0),
        jitter_deviation_check("normal:2ms", 2_000.0),
        // Its deviation is its tail's, which few frames meet.
        jitter_mean_check("pareto:1ms", 1_000.0, 1_880.0),
        lost_check("--loss 1%", 0.01, SMALL, 1.0),
        lost_check("--loss 10%", 0.1, SMALL, 1.0).in_short(),
        bursts_check(),
        periodic_check().in_short(),
        bit_errors_check(),
        lost_check("--corrupt 5%", 0.05, LARGE, 1.0),
        duplicates_check(),
        reordering_check(),
        cap_check(),
        queue_check().in_short(),
        codel_check(),
        ecn_check().in_short(),
        cut_check("a cut", false),
        cut_check("a silent cut", true).in_short(),
    ]);
    all
}

/// Of 0 to 5 ms, each as likely: 5 ms / √12.
const UNIFORM_DEVIATION_US: f64 = 1_443.4;

/// Long enough for the figure, or for a look.
fn seconds(whole: f64, short: bool) -> Duration {
    Duration::from_secs_f64(if short { whole / 4.0 } else { whole })
}

fn frames_of(bytes: usize) -> &'static str {
    match bytes {
        SMALL => "frames of 60 bytes",
        _ => "frames of 1514 bytes",
    }
}

/// A percent above and below.
fn percent(set: f64) -> [f64; 2] {
    [0.99 * set, 1.01 * set]
}

fn rate_check(rate: &str, bps: f64, frame: usize) -> Check {
    let set = bps / (8 * (frame + WIRE_OVERHEAD)) as f64;
    let setting = format!("--rate {rate}");
    Check::new(setting, (frames_of(frame), "/s"), move |stage, short| {
        let busy_before_s = stage.busy_s()?;
        let report = stage.send(frame, None, seconds(2.0, short))?;
        let value = report.delivered_per_second;
        let lasted_s = report.delivered as f64 / value;
        let busy_s = stage.busy_s()? - busy_before_s;
        Ok(Measured {
            busy: Some(busy_s / lasted_s),
            ..Measured::new(set, value, percent(set))
        })
    })
    .of_rates()
}

fn ip_rate_check() -> Check {
    let set = 10e6 / (8.0 * 1500.0);
    // No port of the sender has this rate, so nothing holds it back.
    let offered = Some((1.5 * set) as u64);
    let what = (frames_of(LARGE), "/s");
    Check::new("--rate 10mbit:ip", what, move |stage, short| {
        let report = stage.send(LARGE, offered, seconds(2.0, short))?;
        Ok(Measured::new(
            set,
            report.delivered_per_second,
            percent(set),
        ))
    })
    .of_rates()
}

/// The mean and the 99th percentile, each with what a wire of the lab may be off beside what the hosts take.
fn delay_checks(delay: &str, us: f64) -> [Check; 2] {
    let check = |what, most_us: f64, of: fn(&Report) -> f64| {
        let setting = format!("--delay {delay}");
        Check::new(setting, (what, "us"), move |stage, short| {
            let report = stage.send(SMALL, Some(2000), seconds(2.0, short))?;
            Ok(Measured::new(us, of(&report), [us, us + most_us]))
        })
        .of_times()
        .beside_hosts(of)
    };
    [
        check("one way, mean", 100.0, |report| report.delay_mean_us),
        check("one way, 99 %", 300.0, |report| report.delay_p99_us),
    ]
}

/// Before jitter, which may be negative.
const JITTER_DELAY_US: f64 = 20_000.0;
/// What is late is late by as much as a delay may be.
const JITTER_LATE_US: f64 = 100.0;

fn jitter_check(
    jitter: &str,
    what: &'static str,
    measure: impl Fn(&Report) -> Measured + 'static,
) -> Check {
    let setting = format!("--delay 20ms --jitter {jitter},unordered");
    Check::new(setting, (what, "us"), move |stage, short| {
        Ok(measure(&stage.send(
            SMALL,
            Some(5000),
            seconds(4.0, short),
        )?))
    })
    .of_times()
}

fn jitter_mean_check(jitter: &str, mean_us: f64, deviation_us: f64) -> Check {
    jitter_check(jitter, "one way, mean", move |report| {
        let set = JITTER_DELAY_US + mean_us;
        let draws = report.delivered.max(1) as f64;
        let error = DEVIATIONS * deviation_us / draws.sqrt();
        let within = [set - error, set + error + JITTER_LATE_US];
        Measured::new(set, report.delay_mean_us, within)
    })
    .beside_hosts(|report| report.delay_mean_us)
}

fn jitter_deviation_check(jitter: &str, set: f64) -> Check {
    jitter_check(jitter, "one way, deviation", move |report| {
        // Of so many draws it is off by half a percent, where there is no long tail.
        let error = DEVIATIONS * 0.01 * set;
        let within = [set - error, set + error + JITTER_LATE_US];
        Measured::new(set, report.delay_deviation_us, within)
    })
}

/// The bounds of a share of `n` frames, of which each meets a fate with a probability. `spread`: how
/// much further than that of independent ones it spreads.
fn binomial(n: u64, share: f64, spread: f64) -> [f64; 2] {
    let n = n as f64;
    let deviation = (share * (1.0 - share) / n).sqrt() * spread;
    [-1.0, 1.0].map(|sign| share + sign * DEVIATIONS * deviation)
}

/// 10⁵ frames, and what became of them.
fn many(stage: &Stage, frame: usize, short: bool) -> Result<Report> {
    stage.send(frame, Some(40_000), seconds(2.5, short))
}

fn share_of(count: u64, report: &Report) -> f64 {
    count as f64 / report.sent as f64
}

fn lost_check(setting: &str, share: f64, frame: usize, spread: f64) -> Check {
    Check::new(setting, ("share lost", "of frames"), move |stage, short| {
        let report = many(stage, frame, short)?;
        let within = binomial(report.sent, share, spread);
        Ok(Measured::new(
            share,
            share_of(report.lost(), &report),
            within,
        ))
    })
}

/// Bursts: in the bad state, which lasts 10 frames, half of them are lost.
fn bursts_check() -> Check {
    let (to_bad, to_good): (f64, f64) = (0.01, 0.1);
    let bad = to_bad / (to_bad + to_good);
    // What happens to one frame tells of the next ones, this much.
    let correlation = 1.0 - to_bad - to_good;
    let spread = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
    lost_check("--loss gilbert:1%,10%,0%,50%", bad * 0.5, SMALL, spread)
}

fn periodic_check() -> Check {
    Check::new("--loss every:100", ("frames lost", ""), |stage, short| {
        let report = stage.send(SMALL, Some(20_000), seconds(2.0, short))?;
        let set = (report.sent / 100) as f64;
        // The count began with a frame before ours.
        Ok(Measured::new(set, report.lost() as f64, [set, set + 1.0]))
    })
}

/// Long frames die as often as their bits are many.
fn bit_errors_check() -> Check {
    let bits = 8.0 * (LARGE + 4) as f64;
    let share = 1.0 - (1.0 - 1e-6f64).powf(bits);
    lost_check("--bit-errors 1e-6", share, LARGE, 1.0)
}

fn duplicates_check() -> Check {
    // One in twenty of those comes a third time.
    let share = 0.05 + 0.05 * 0.05;
    let what = ("share that came again", "of frames");
    Check::new("--duplicate 5%", what, move |stage, short| {
        let report = many(stage, SMALL, short)?;
        let within = binomial(report.sent, share, 1.1);
        Ok(Measured::new(
            share,
            share_of(report.duplicated, &report),
            within,
        ))
    })
}

fn reordering_check() -> Check {
    let what = ("share overtaken", "of frames");
    Check::new("--reorder 2%:10ms", what, |stage, short| {
        let report = many(stage, SMALL, short)?;
        let [least, most] = binomial(report.sent, 0.02, 1.0);
        // Who is held for less than until the next bundle leaves is not overtaken: the sender sends
        // what is due every 0.2 ms.
        let within = [0.95 * least, most];
        Ok(Measured::new(
            0.02,
            share_of(report.reordered, &report),
            within,
        ))
    })
}

fn cap_check() -> Check {
    let what = (frames_of(SMALL), "/s");
    Check::new("--packets-per-second 5000:64", what, |stage, short| {
        let report = stage.send(SMALL, Some(8000), seconds(4.0, short))?;
        let set = 5000.0;
        Ok(Measured::new(
            set,
            report.delivered_per_second,
            percent(set),
        ))
    })
}

fn queue_check() -> Check {
    const ROOM: f64 = 100.0;
    const RATE_BPS: f64 = 1e6;
    const BURST: Duration = Duration::from_millis(12);
    let what = ("frames of a burst", "that arrive");
    Check::new(
        "--rate 1mbit --port-rate none --queue 100p",
        what,
        |stage, _| {
            let report = stage.send(SMALL, None, BURST)?;
            // What leaves while the burst comes makes room, and while the last messages come, which say
            // that it is over, and are not counted.
            let a_frame_s = 8.0 * (SMALL + WIRE_OVERHEAD) as f64 / RATE_BPS;
            let left = BURST.as_secs_f64() / a_frame_s;
            // A message of those that found the way may still stand there.
            let within = [ROOM - 2.0, ROOM + left + 2.0];
            let set = ROOM + left;
            Ok(Measured {
                // Who sends hardly more than it holds does not show that it has an end.
                busy: Some((report.sent as f64 / (1.5 * set)).min(1.0)),
                ..Measured::new(set, report.delivered as f64, within)
            })
        },
    )
}

/// A queue that a fifth too many frames keep standing: CoDel drops first after an interval, and then after
/// interval / √n each, until what was too many has gone (RFC 8289, 5).
fn codel_check() -> Check {
    const RATE_BPS: f64 = 10e6;
    const OFFERED: f64 = 1.2;
    const INTERVAL_S: f64 = 0.1;
    const TARGET_S: f64 = 0.005;
    let what = ("frames dropped by a queue", "that stands");
    let setting =
        "--rate 10mbit --port-rate none --queue 20000p --queue-discipline codel:5ms,100ms";
    let a_frame_s = 8.0 * (LARGE + WIRE_OVERHEAD) as f64 / RATE_BPS;
    Check::new(setting, what, move |stage, short| {
        let offered = (OFFERED / a_frame_s) as u64;
        let report = stage.send(LARGE, Some(offered), seconds(2.0, short))?;
        let above_after_s = TARGET_S / (OFFERED - 1.0);
        let stands_s = report.delivered as f64 * a_frame_s - above_after_s - INTERVAL_S;
        let mut due_s = 0.0;
        let mut dropped = 0.0;
        while due_s < stands_s {
            dropped += 1.0;
            due_s += INTERVAL_S / f64::sqrt(dropped);
        }
        let within = [0.95 * dropped - 2.0, 1.05 * dropped + 2.0];
        Ok(Measured::new(dropped, report.lost() as f64, within))
    })
}

/// Who finds more than a threshold before it is marked.
fn ecn_check() -> Check {
    const FRAMES: usize = 500;
    const BEFORE_MARKS: f64 = 101.0;
    const RATE_BPS: f64 = 10e6;
    let what = ("frames of a burst", "with a mark");
    let setting = "--rate 10mbit --port-rate none --queue 1000p --queue-discipline ecn:6000b";
    Check::new(setting, what, |stage, _| {
        let (took, marked) = stage.send_ecn(SMALL, FRAMES)?;
        let a_frame_s = 8.0 * (SMALL + WIRE_OVERHEAD) as f64 / RATE_BPS;
        let left = took.as_secs_f64() / a_frame_s;
        let set = FRAMES as f64 - BEFORE_MARKS;
        let within = [set - left - 2.0, set + 2.0];
        Ok(Measured::new(set, marked as f64, within))
    })
    .of_rates()
}

/// What it takes beside the cut itself to be told of, and for the next frame to come.
const CUT_TOLD_MS: f64 = 20.0 + AWAY_MAX_OF_RATES_MS;

fn cut_check(setting: &'static str, silent: bool) -> Check {
    Check::new("", ("time without a frame", "ms"), move |stage, _| {
        let (lasted, report) = stage.send_under_cut(silent, Duration::from_millis(400))?;
        let set = lasted.as_secs_f64() * 1e3;
        let value = report.gap_max_us / 1e3;
        Ok(Measured::new(
            set,
            value,
            [set - CUT_TOLD_MS, set + CUT_TOLD_MS],
        ))
    })
    .named(setting)
    .of_rates()
}
