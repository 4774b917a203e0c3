//! A run of stations: what is counted once its beginning is over, and what is sampled as it goes on.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::stations::{Counts, SegmentCount, StationCount, Stations};
use packtrain_sim::tcp::sender::SenderCounters;

use super::build::{Built, build};
use super::facts::{self, AGAIN, LOST, SHARE};
use super::{SegmentKind, StationsSettings};
use crate::model::{Facts, Outcome, Progress, Series};

/// So many times one hears how far a run is.
const REPORTS: u32 = 100;

pub fn run(settings: &StationsSettings, seed: u64, progress: &dyn Progress) -> Outcome {
    let Built { setup, stations } = build(settings, seed);
    let mut run = Run {
        settings,
        classes: stations,
        stations: Stations::new(setup),
        sampled: Sampled::new(settings),
    };
    let before = run.goes_on(progress);
    run.outcome(&before)
}

struct Run<'a> {
    settings: &'a StationsSettings,
    classes: Vec<core::ops::Range<usize>>,
    stations: Stations,
    sampled: Sampled,
}

/// What series go on from.
struct Sampled {
    at: Instant,
    /// Bytes by then: of applications, and of segments.
    applications: Vec<u64>,
    segments: Vec<u64>,
    series: Vec<Series>,
}

impl Sampled {
    fn new(settings: &StationsSettings) -> Sampled {
        let applications = settings.applications.iter();
        let names = applications.map(|of| facts::rate_of(&of.name));
        let segments = settings.segments.iter();
        let names = names.chain(segments.map(|of| facts::throughput_of(&of.name)));
        let series = names.map(|name| Series {
            name,
            unit: "bit/s".into(),
            points: Vec::new(),
        });
        Sampled {
            at: Instant::ZERO,
            applications: vec![0; settings.applications.len()],
            segments: vec![0; settings.segments.len()],
            series: match settings.times.sample {
                Some(_) => series.collect(),
                None => Vec::new(),
            },
        }
    }
}

/// What is counted from the beginning on.
struct Before {
    senders: Vec<SenderCounters>,
    delivered: Vec<Vec<u64>>,
}

impl Run<'_> {
    /// To its end; what had been counted when its beginning was over.
    fn goes_on(&mut self, progress: &dyn Progress) -> Before {
        let times = self.settings.times;
        let step = times.sample.unwrap_or(times.length / REPORTS);
        let step = step.max(Duration::from_nanos(1));
        let begins = Instant::ZERO + times.ignore;
        self.go_on(begins, step, progress);
        self.stations.begin_counting();
        // These begin anew then, too.
        self.sampled.applications.fill(0);
        self.sampled.segments.fill(0);
        let before = self.before();
        self.go_on(Instant::ZERO + times.length, step, progress);
        progress.at(1.0);
        before
    }

    fn go_on(&mut self, until: Instant, step: Duration, progress: &dyn Progress) {
        let length = self.settings.times.length.as_secs_f64();
        while self.stations.now() < until {
            let next = self.stations.now() + step;
            self.stations.run_until(next.min(until));
            if self.settings.times.sample.is_some() {
                self.sample();
            }
            let now = self.stations.now().since(Instant::ZERO).as_secs_f64();
            progress.at(now / length);
        }
    }

    fn before(&self) -> Before {
        let applications = 0..self.settings.applications.len();
        let delivered = applications.clone();
        Before {
            senders: applications.map(|of| self.stations.senders(of)).collect(),
            delivered: delivered
                .map(|of| self.stations.delivered(of).collect())
                .collect(),
        }
    }

    /// Continues all series by what was since the last time.
    fn sample(&mut self) {
        let now = self.stations.now();
        let over = now.since(self.sampled.at).as_secs_f64();
        self.sampled.at = now;
        let applications = 0..self.settings.applications.len();
        let applications: Vec<u64> = applications
            .map(|of| self.stations.report(of).bytes)
            .collect();
        let counts = self.stations.counts();
        let segments: Vec<u64> = counts.segments.iter().map(|of| of.bytes).collect();
        let before = self
            .sampled
            .applications
            .iter()
            .chain(&self.sampled.segments);
        let bytes = applications.iter().chain(&segments).zip(before);
        let rates = bytes.map(|(now, before)| (now - before) as f64 * 8.0 / over);
        let at = now.since(Instant::ZERO).as_secs_f64();
        for (series, rate) in self.sampled.series.iter_mut().zip(rates) {
            series.points.push((at, rate));
        }
        self.sampled.applications = applications;
        self.sampled.segments = segments;
    }

    fn outcome(mut self, before: &Before) -> Outcome {
        let mut facts = Facts::default();
        let seconds = self.stations.counting_for().as_secs_f64();
        let counts = self.stations.counts();
        for application in 0..self.settings.applications.len() {
            self.facts_of_application(application, before, seconds, &mut facts);
        }
        for (segment, count) in counts.segments.iter().enumerate() {
            self.facts_of_segment(segment, count, seconds, &mut facts);
        }
        for class in 0..self.settings.stations.len() {
            self.facts_of_stations(class, &counts, &mut facts);
        }
        Outcome {
            facts,
            series: std::mem::take(&mut self.sampled.series),
            events: self.stations.events_done(),
            hops: counts.segments.iter().map(|segment| segment.frames).sum(),
        }
    }

    fn facts_of_application(
        &self,
        number: usize,
        before: &Before,
        seconds: f64,
        facts: &mut Facts,
    ) {
        let settings = &self.settings.applications[number];
        let name = settings.name.as_str();
        let report = self.stations.report(number);
        let senders = self.stations.senders(number);
        let then = &before.senders[number];
        let mut set = |fact: &str, value: f64| facts.set(fact, &[name], value);
        set("goodput", report.bytes as f64 * 8.0 / seconds);
        set(
            "longest_pause",
            self.stations.longest_pause(number).as_secs_f64(),
        );
        set("sent", (senders.segments - then.segments) as f64);
        let retransmitted = senders.retransmitted - then.retransmitted;
        set("retransmitted", retransmitted as f64);
        set("timeouts", (senders.timeouts - then.timeouts) as f64);
        if facts::comes_to_an_end(settings) {
            set("done", report.done as f64);
            set("done_per_second", report.done as f64 / seconds);
        }
        if facts::is_flood(settings) {
            set(LOST, report.lost as f64);
        }
        if facts::is_over_udp(settings) {
            set(AGAIN, report.again as f64);
        }
        if facts::comes_to_an_end(settings) {
            facts.set_times("time", name, &report.times);
        }
        let delivered = self.stations.delivered(number);
        let delivered = delivered.zip(&before.delivered[number]);
        let rates = delivered.map(|(now, then)| (now - then) as f64 * 8.0 / seconds);
        facts.set_each(name, rates.collect());
    }

    fn facts_of_segment(
        &self,
        number: usize,
        count: &SegmentCount,
        seconds: f64,
        facts: &mut Facts,
    ) {
        let settings = &self.settings.segments[number];
        let mut set = |fact: &str, value: f64| facts.set(fact, &[&settings.name], value);
        // Each port's way in is busy by itself, but for a hub's.
        let ways = match settings.kind {
            SegmentKind::Hub { .. } => 1,
            _ => self.ports_of(number).max(1),
        };
        let busy = count.busy.as_secs_f64() / seconds;
        set("frames", count.frames as f64);
        set("bytes", count.bytes as f64);
        set("throughput", count.bytes as f64 * 8.0 / seconds);
        set("utilisation", busy / ways as f64);
        set("queue_full", count.queue_full as f64);
        set("cut", count.cut as f64);
        if let SegmentKind::Hub { rate_bps } = settings.kind {
            let collision = count.collision.as_secs_f64() / seconds;
            set("collisions", count.collisions as f64);
            set("failed_attempts", count.failed_attempts as f64);
            set("collision_share", collision);
            set("carried_share", busy - collision);
            let bits = self.content_bytes_on(number) as f64 * 8.0;
            set("efficiency", bits / (rate_bps as f64 * seconds));
            set("given_up", count.given_up as f64);
        }
    }

    /// Of the applications that have all of their stations there.
    fn content_bytes_on(&self, segment: usize) -> u64 {
        let is_there = |class: &usize| {
            let mut links = self.settings.stations[*class].links.iter();
            links.any(|link| link.on == segment)
        };
        let applications = self.settings.applications.iter().enumerate();
        let there = applications.filter(|(_, of)| of.kind.classes().iter().all(is_there));
        there
            .map(|(number, _)| self.stations.report(number).bytes)
            .sum()
    }

    fn ports_of(&self, segment: usize) -> usize {
        let of_class = |class: &super::StationSettings| {
            let links = class.links.iter().filter(|link| link.on == segment);
            links.count() * class.count as usize
        };
        self.settings.stations.iter().map(of_class).sum()
    }

    fn facts_of_stations(&self, class: usize, counts: &Counts, facts: &mut Facts) {
        let settings = &self.settings.stations[class];
        let mut all = StationCount::default();
        let mut links = vec![0u64; settings.links.len()];
        let (mut frames, mut drops) = (0, 0);
        for station in &counts.stations[self.classes[class].clone()] {
            all.trains += station.trains;
            all.frames_in_trains += station.frames_in_trains;
            all.marked += station.marked;
            all.plain += station.plain;
            all.aggregates += station.aggregates;
            all.aggregated += station.aggregated;
            frames += station.ports.iter().map(|port| port.frames).sum::<u64>();
            drops += station.drops.iter().map(|(_, count)| count).sum::<u64>();
            for (link, port) in links.iter_mut().zip(&station.ports) {
                *link += port.bytes;
            }
        }
        let bytes: u64 = links.iter().sum();
        let mut set = |fact: &str, value: f64| facts.set(fact, &[&settings.name], value);
        set("frames", frames as f64);
        set("bytes", bytes as f64);
        set("trains", all.trains as f64);
        set("frames_in_trains", all.frames_in_trains as f64);
        // What goes alone is a train of one, whatever it goes as.
        set("frames_per_train", all.frames_per_train().unwrap_or(1.0));
        set("marked", all.marked as f64);
        set("plain", all.plain as f64);
        set("aggregates", all.aggregates as f64);
        set("drops", drops as f64);
        for (number, link) in links.iter().enumerate() {
            let share = *link as f64 / bytes.max(1) as f64;
            set(&format!("{SHARE}{}", number + 1), share);
        }
    }
}
