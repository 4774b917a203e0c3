//! The document that text, JSON and CSV are made of; `docs/whatif.schema.json` describes it, and a test keeps the two
//! together. Units are in the names. What a frame costs on a wire is what Ethernet spends on it: preamble, FCS, gap and
//! the padding of short ones.

use packtrain_proto::stats::Traffic;
use packtrain_proto::time::Duration;
use packtrain_sim::whatif::results::{Share, WireLoad};
use packtrain_sim::whatif::{Results, histogram::Differences, histogram::Histogram};
use serde::Serialize;

use super::WhatifArguments;
use super::advice::{Recommendation, Told, recommend};
use super::plan::{Plan, Policy};
use super::rate::{self, Rate, Source};
use super::replays::Replayed;
use crate::capture_file::CaptureError;
use crate::cli::frame_words;
use crate::cli::view::words;
use crate::settings::compress::CompressPolicy;

#[derive(Clone, Debug, Serialize)]
pub struct Document {
    pub capture: Capture,
    pub wire: Wire,
    /// What the numbers rest on.
    pub assumed: Vec<String>,
    /// The same frames on the same wire without packtrain; `None` where there is nothing to replay.
    pub plain: Option<Plain>,
    /// The first is the one that was asked for.
    pub policies: Vec<PolicyResults>,
    /// It once more with a cable more, beside others, where nobody has said how many there are.
    pub two_links: Option<PolicyResults>,
    pub filter: Option<Filter>,
    pub recommendation: Recommendation,
}

#[derive(Clone, Debug, Serialize)]
pub struct Capture {
    pub file: String,
    /// Why not all of it was read.
    pub broken: Option<String>,
    pub frames: u64,
    pub replayed: u64,
    pub hosts: usize,
    pub duration_s: f64,
    /// Longer pauses count as ten seconds.
    pub pauses_left_out_s: f64,
    pub peak: Option<PeakRate>,
    /// Frames of which not all was captured; the rest was filled in with what does not compress.
    pub cut: u64,
    pub offloaded: u64,
    /// Not in the order of their times: put in order, and too late for that.
    pub sorted: u64,
    pub late: u64,
    pub timeless: u64,
    pub made_up_headers: u64,
    /// Sent by hosts without packtrain, as there were too many, or because one side was asked for.
    pub of_others: u64,
    pub left_out: LeftOut,
}

/// Of the busiest sender, in its busiest tenth of a second.
#[derive(Clone, Debug, Serialize)]
pub struct PeakRate {
    pub host: String,
    pub packets_per_second: u64,
    pub bits_per_second: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct LeftOut {
    pub no_frame: u64,
    pub of_packtrain: u64,
    pub too_long: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Wire {
    pub rate_bps: Option<u64>,
    pub rate_source: rate::Source,
    pub packets_per_second: Option<u64>,
    pub delay_ms: f64,
    pub queue_bytes: usize,
    pub mtu: u16,
    pub links: u8,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Load {
    pub frames: f64,
    pub bytes: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Delay {
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Plain {
    pub frames: u64,
    pub wire: Load,
    pub dropped: u64,
    pub delay: Delay,
}

#[derive(Clone, Debug, Serialize)]
pub struct PolicyResults {
    pub name: String,
    pub pack: String,
    pub compress: String,
    pub links: u8,
    /// What the frames that arrived cost without packtrain, and with it, all that engines say to each other included.
    pub before: Load,
    pub after: Load,
    pub saved_frames_percent: f64,
    pub saved_bytes_percent: f64,
    pub delivered: u64,
    pub dropped: u64,
    /// Trains and frames for which the queue before a wire had no room.
    pub refused: u64,
    pub delay: Delay,
    /// Of the frames that arrived both ways; negative where they come earlier.
    pub added_delay: Delay,
    /// The least, that of a hundredth of the frames at most, and so on to the greatest; none of no frames.
    pub added_delay_percentiles_ms: Vec<f64>,
    pub timeline: Timeline,
    pub frames_per_train: Option<f64>,
    pub fill_percent: Option<f64>,
    pub fills: Vec<Fill>,
    pub sent: SentLoads,
    pub compression: Option<Compression>,
    pub engine_drops: Vec<Drop>,
    pub classes: Vec<Part>,
    /// Those that say most.
    pub conversations: Vec<Part>,
    pub others: Others,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct SentLoads {
    pub trains: Load,
    pub marked: Load,
    pub direct: Load,
    pub plain: Load,
    pub control: Load,
    pub total: Load,
}

/// Bytes by which trains are shorter for it, as the engines count.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compression {
    pub headers_bytes: u64,
    pub payload_bytes: u64,
}

/// Frames that left for the wires in each step, from the first frame on.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    pub step_ms: f64,
    pub before: Vec<u64>,
    pub after: Vec<u64>,
}

/// Trains by how full they are, in twentieths.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fill {
    pub percent_max: u8,
    pub trains: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Drop {
    pub reason: &'static str,
    pub count: u64,
}

/// A class, or a conversation.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub name: String,
    pub frames: u64,
    pub bytes: u64,
    pub before: Load,
    pub after: Load,
    pub saved_bytes_percent: f64,
    pub dropped: u64,
    pub plain_dropped: u64,
    pub added_mean_ms: f64,
    /// `None` where no frame arrived both ways.
    pub added_max_ms: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Others {
    pub conversations: u64,
    /// One that came again after it was forgotten counts twice.
    pub is_at_most: bool,
    pub part: Part,
}

/// Frames on the segment that the host has not sent.
#[derive(Clone, Debug, Serialize)]
pub struct Filter {
    pub host: String,
    pub kept: Traffic,
    pub dropped: Traffic,
    pub foreign_unicast: Traffic,
    pub foreign_arp: Traffic,
    pub foreign_solicitations: Traffic,
}

impl Document {
    pub fn build(
        arguments: &WhatifArguments,
        plan: &Plan,
        replayed: Replayed,
        broken: Option<&CaptureError>,
    ) -> Document {
        let wire = plan.wire();
        let first = replayed.results.first();
        let results = plan.replays().zip(&replayed.results);
        let mut policies: Vec<PolicyResults> = results
            .map(|(policy, of)| PolicyResults::of(policy, of))
            .collect();
        let two_links = match plan.two_links {
            Some(_) => policies.pop(),
            None => None,
        };
        let is_capped = wire.packets_per_second.is_some();
        let recommendation = match first.filter(|first| first.all.frames > 0) {
            Some(first) => {
                let all = &first.all;
                let mean = all.bytes as f64 / all.frames as f64;
                let told =
                    |policy: &PolicyResults| Told::of(policy, all.frames, all.plain_dropped, mean);
                recommend(&policies.iter().map(told).collect::<Vec<_>>(), is_capped)
            }
            None => recommend(&[], is_capped),
        };
        Document {
            capture: Capture::of(arguments, &replayed, broken),
            wire: Wire {
                rate_bps: wire.rate_bps,
                rate_source: plan.rate.source,
                packets_per_second: wire.packets_per_second,
                delay_ms: ms(wire.delay),
                queue_bytes: wire.queue_bytes,
                mtu: wire.mtu,
                links: plan.policies[0].links,
            },
            assumed: assumed(&plan.rate, &replayed),
            plain: first.map(|first| Plain {
                frames: first.all.frames,
                wire: first.all.plain.into(),
                dropped: first.all.plain_dropped,
                delay: Delay::of(&first.plain_delay),
            }),
            policies,
            two_links,
            filter: arguments
                .host
                .zip(replayed.filter)
                .map(|(host, counts)| Filter {
                    host: host.to_string(),
                    kept: counts.kept(),
                    dropped: counts.dropped(),
                    foreign_unicast: counts.foreign_unicast,
                    foreign_arp: counts.foreign_arp,
                    foreign_solicitations: counts.foreign_solicitations,
                }),
            recommendation,
        }
    }

    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("numbers and strings");
        text + "\n"
    }
}

impl Capture {
    fn of(
        arguments: &WhatifArguments,
        replayed: &Replayed,
        broken: Option<&CaptureError>,
    ) -> Capture {
        let counts = &replayed.counts;
        let first = replayed.results.first();
        Capture {
            file: arguments.capture.display().to_string(),
            broken: broken.map(ToString::to_string),
            frames: counts.frames,
            replayed: first.map_or(0, |first| first.all.frames),
            hosts: first.map_or(0, |first| first.hosts),
            duration_s: first.map_or(0.0, |first| first.duration.as_secs_f64()),
            pauses_left_out_s: first.map_or(0.0, |first| first.pause_left_out.as_secs_f64()),
            peak: counts.peak.map(|(host, peak)| PeakRate {
                host: host.to_string(),
                packets_per_second: peak.packets_per_second(),
                bits_per_second: peak.bits_per_second(),
            }),
            cut: counts.cut,
            offloaded: counts.offloaded,
            sorted: counts.sorted,
            late: counts.late,
            timeless: counts.timeless,
            made_up_headers: replayed.made_up,
            of_others: first.map_or(0, |first| first.not_replayed),
            left_out: LeftOut {
                no_frame: counts.no_frame,
                of_packtrain: counts.of_packtrain,
                too_long: counts.too_long,
            },
        }
    }
}

fn assumed(rate: &Rate, replayed: &Replayed) -> Vec<String> {
    let mut assumed = vec![
        "hosts send when they did in the capture, whatever becomes of it (open loop)".to_owned(),
        "both ends of each conversation run packtrain, on a full-duplex cable each".to_owned(),
    ];
    let carries = words::rate(rate.bps.unwrap_or_default());
    let why = match rate.source {
        Source::Asked => None,
        Source::Interface => Some("as the capture says of its interface"),
        Source::Peak => Some("the least usual rate that its busiest tenth of a second fits into"),
        Source::Default => Some("as nothing says what it was"),
    };
    if let Some(why) = why {
        assumed.push(format!("the wire carries {carries}, {why} (--rate)"));
    }
    if replayed.counts.cut > 0 {
        assumed.push("what was not captured of a frame does not compress".to_owned());
    }
    if replayed.made_up > 0 {
        assumed.push("frames of links other than Ethernet have a header of Ethernet".to_owned());
    }
    assumed
}

impl PolicyResults {
    fn of(policy: &Policy, results: &Results) -> PolicyResults {
        let (all, sent) = (&results.all, &results.sent);
        let part = |name: String, share: &Share| Part::of(name, share);
        let added = &results.added;
        let drops = results.drops.iter().filter(|(_, count)| *count > 0);
        let conversations = results.conversations.iter();
        PolicyResults {
            name: policy.to_string(),
            pack: policy.pack.to_string(),
            compress: policy.compress.to_string(),
            links: policy.links,
            before: all.delivered_plain.into(),
            after: (all.delivered_cost + sent.control()).into(),
            saved_frames_percent: 100.0 * results.saved_frames(),
            saved_bytes_percent: 100.0 * results.saved_bytes(),
            delivered: all.delivered,
            dropped: all.dropped,
            refused: results.refused,
            delay: Delay::of(&results.delay),
            added_delay: Delay::of_differences(added),
            added_delay_percentiles_ms: percentiles_ms(added),
            timeline: Timeline::of(results),
            frames_per_train: results.frames_per_train(),
            fill_percent: results.fill.map(|fill| 100.0 * fill),
            fills: results
                .fills
                .iter()
                .map(|&(percent_max, trains)| Fill {
                    percent_max,
                    trains,
                })
                .collect(),
            sent: SentLoads {
                trains: sent.trains.into(),
                marked: sent.marked.into(),
                direct: sent.direct.into(),
                plain: sent.plain.into(),
                control: sent.control().into(),
                total: sent.total().into(),
            },
            compression: compression(policy, results),
            engine_drops: drops
                .map(|&(reason, count)| Drop { reason, count })
                .collect(),
            classes: results
                .classes
                .iter()
                .filter(|class| class.share.frames > 0)
                .map(|class| part(class.name.clone(), &class.share))
                .collect(),
            conversations: conversations
                .map(|one| part(frame_words::flow(&one.flow), &one.share))
                .collect(),
            others: Others {
                conversations: results.others.conversations,
                is_at_most: results.others.is_at_most,
                part: part("others".to_owned(), &results.others.share),
            },
        }
    }
}

fn compression(policy: &Policy, results: &Results) -> Option<Compression> {
    let coding = &results.coding;
    (policy.compress != CompressPolicy::Off).then_some(Compression {
        headers_bytes: coding.saved_headers,
        payload_bytes: coding.saved_payload,
    })
}

fn percentiles_ms(times: &Differences) -> Vec<f64> {
    if times.count() == 0 {
        return Vec::new();
    }
    let shares = (0..=100).map(|percent| f64::from(percent) / 100.0);
    let ms = |share| times.quantile_nanos(share) as f64 / 1e6;
    shares.map(ms).collect()
}

impl Timeline {
    fn of(results: &Results) -> Timeline {
        let steps = results.timeline.steps().iter();
        let (before, after) = steps.map(|step| (step.plain, step.with)).unzip();
        Timeline {
            step_ms: ms(results.timeline.step()),
            before,
            after,
        }
    }
}

impl Part {
    fn of(name: String, share: &Share) -> Part {
        let saved = packtrain_sim::whatif::results::saved;
        Part {
            name,
            frames: share.frames,
            bytes: share.bytes,
            before: share.delivered_plain.into(),
            after: share.delivered_cost.into(),
            saved_bytes_percent: 100.0
                * saved(share.delivered_plain.bytes, share.delivered_cost.bytes),
            dropped: share.dropped,
            plain_dropped: share.plain_dropped,
            added_mean_ms: share.added_mean_nanos() as f64 / 1e6,
            added_max_ms: share.added_max.map(|nanos| nanos as f64 / 1e6),
        }
    }
}

impl Delay {
    fn of(times: &Histogram) -> Delay {
        Delay {
            p50_ms: ms(times.quantile(0.5)),
            p99_ms: ms(times.quantile(0.99)),
            max_ms: ms(times.max()),
        }
    }

    fn of_differences(times: &Differences) -> Delay {
        Delay {
            p50_ms: times.quantile_nanos(0.5) as f64 / 1e6,
            p99_ms: times.quantile_nanos(0.99) as f64 / 1e6,
            max_ms: times.max_nanos() as f64 / 1e6,
        }
    }
}

impl From<WireLoad> for Load {
    fn from(load: WireLoad) -> Load {
        Load {
            frames: load.frames,
            bytes: load.bytes,
        }
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
