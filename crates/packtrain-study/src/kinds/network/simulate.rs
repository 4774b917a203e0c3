//! A run of a network: what is counted once its beginning is over, and what is looked at as it goes on.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::fabric::visitors::VisitCounters;
use packtrain_sim::fabric::{Count, Fabric, LineId};
use packtrain_sim::net::processing::lookups_per_1500;
use packtrain_sim::net::wire::WireCounters;
use packtrain_sim::statistics::Histogram;
use packtrain_sim::tcp::sender::SenderCounters;

use super::build::{Built, build, group, packet_bytes_max};
use super::watch::Watch;
use super::{LineIndex, NetworkSettings};
use crate::model::{Facts, Outcome, Progress, SIZE, Series};

/// What is averaged over time is looked at so often, or as often as series are taken.
const LOOK: Duration = Duration::from_millis(10);
const ETHERNET_HEADER_BYTES: u64 = 14;

pub fn run(settings: &NetworkSettings, seed: u64, progress: &dyn Progress) -> Outcome {
    let built = build(settings, seed);
    let fabric = Fabric::new(&built.config, Watch::new(built.config.lines.len()));
    let looks = Looks::new(settings);
    let mut run = Run {
        settings,
        built,
        fabric,
        looks,
    };
    let before = run.goes_on(progress);
    run.outcome(&before)
}

struct Run<'a> {
    settings: &'a NetworkSettings,
    built: Built,
    fabric: Fabric<Watch>,
    looks: Looks,
}

/// Packets in each sample.
#[derive(Clone, Copy, Default)]
struct InSamples {
    /// Up to the last sample.
    before: u64,
    /// Of one sample.
    most: u64,
    /// Samples without any.
    none: u64,
}

impl InSamples {
    /// How many have come since. Only what `counts` is remembered.
    fn next(&mut self, packets: u64, counts: bool) -> u64 {
        let now = packets - std::mem::replace(&mut self.before, packets);
        if counts {
            self.most = self.most.max(now);
            self.none += u64::from(now == 0);
        }
        now
    }

    fn set(&self, name: &str, samples: u64, facts: &mut Facts) {
        facts.set("packets_most", &[name], self.most as f64);
        let none = self.none as f64 / samples.max(1) as f64;
        facts.set("packets_none", &[name], none);
    }
}

/// What is looked at again and again.
struct Looks {
    count: u64,
    /// Sums over all looks.
    queued_bytes: Vec<f64>,
    cwnd_bytes: Vec<f64>,
    /// What lines had carried and dropped, and flows had brought, when a series was last continued.
    lines_last: Vec<(u64, u64)>,
    flows_last: Vec<u64>,
    /// Of lines what has left, of flows what has come.
    packets_of_lines: Vec<InSamples>,
    packets_of_flows: Vec<InSamples>,
    /// When the last one ended.
    sampled_at: Instant,
    /// That count.
    samples: u64,
    /// What was dropped of a class until all of it had repaired its first loss.
    first_drops: Vec<u64>,
    first_repaired: Vec<bool>,
    series: Vec<Series>,
}

impl Looks {
    fn new(settings: &NetworkSettings) -> Looks {
        let (lines, flows) = (settings.lines.len(), settings.flows.len());
        let of_lines = settings.lines.iter().flat_map(|line| {
            [
                ("throughput", "bit/s"),
                ("queue", "bytes"),
                ("drops", "1/s"),
                ("packets", "packets"),
            ]
            .map(|(series, unit)| Looks::series(series, &line.name, unit))
        });
        let of_flows = settings.flows.iter().flat_map(|flow| {
            [("rate", "bit/s"), ("cwnd", "bytes"), ("packets", "packets")]
                .map(|(series, unit)| Looks::series(series, &flow.name, unit))
        });
        Looks {
            count: 0,
            queued_bytes: vec![0.0; lines],
            cwnd_bytes: vec![0.0; flows],
            lines_last: vec![(0, 0); lines],
            flows_last: vec![0; flows],
            packets_of_lines: vec![InSamples::default(); lines],
            packets_of_flows: vec![InSamples::default(); flows],
            sampled_at: Instant::ZERO,
            samples: 0,
            first_drops: vec![0; flows],
            first_repaired: vec![false; flows],
            series: match settings.times.sample {
                Some(_) => of_lines.chain(of_flows).collect(),
                None => Vec::new(),
            },
        }
    }

    fn series(series: &str, name: &str, unit: &str) -> Series {
        Series {
            name: format!("{series}({name})"),
            unit: unit.into(),
            points: Vec::new(),
        }
    }
}

/// Everything that was counted up to a time.
struct Before {
    at: Instant,
    lines: Vec<WireCounters>,
    flows: Vec<Vec<(Count, SenderCounters)>>,
    groups: Vec<Count>,
    visits: Vec<VisitCounters>,
    replies: Vec<u64>,
}

impl Run<'_> {
    /// To its end; what had been counted when its beginning was over.
    fn goes_on(&mut self, progress: &dyn Progress) -> Before {
        let times = self.settings.times;
        let sample = times.sample.unwrap_or(LOOK);
        let looks_per_sample = sample.as_nanos().div_ceil(LOOK.as_nanos()).max(1) as u32;
        let step = (sample / looks_per_sample).max(Duration::from_nanos(1));
        let [begins, ends] = [times.ignore, times.length].map(|time| Instant::ZERO + time);
        let mut before = None;
        let mut steps = 0u64;
        while self.fabric.now() < ends {
            let next = (self.fabric.now() + step).min(ends);
            if before.is_none() && begins < next {
                if self.fabric.now() < begins {
                    self.fabric.run_until(begins);
                }
                self.fabric.forget_durations();
                self.forget_peaks();
                before = Some(self.counted());
            }
            self.fabric.run_until(next);
            steps += 1;
            if before.is_some() {
                self.look();
            }
            self.look_at_first_losses();
            if times.sample.is_some() && steps.is_multiple_of(looks_per_sample.into()) {
                self.sample(step * looks_per_sample, begins);
            }
            if steps.is_multiple_of(100) {
                let share = self.fabric.now().since(Instant::ZERO).as_secs_f64();
                progress.at(share / times.length.as_secs_f64());
            }
        }
        progress.at(1.0);
        before.unwrap_or_else(|| self.counted())
    }

    /// From now on only what stands in the queues now counts, and what comes.
    fn forget_peaks(&mut self) {
        for line in 0..self.built.config.lines.len() {
            let queued = self.fabric.wire(line as LineId).queued_bytes();
            self.fabric.observer.forget(line, queued);
        }
    }

    fn look(&mut self) {
        self.looks.count += 1;
        for line in 0..self.settings.lines.len() {
            let queued = self.fabric.wire(line as LineId).queued_bytes();
            self.looks.queued_bytes[line] += queued as f64;
        }
        for class in 0..self.built.flows.len() {
            self.looks.cwnd_bytes[class] += self.cwnd_bytes(class);
        }
    }

    /// From the very beginning: it is there that they happen.
    fn look_at_first_losses(&mut self) {
        for class in 0..self.built.flows.len() {
            if self.looks.first_repaired[class] {
                continue;
            }
            self.looks.first_drops[class] = self.fabric.group(group(class)).dropped;
            let mut flows = self.built.flows[class].clone();
            let repaired = |flow| self.fabric.sender(flow).first_repaired.is_some();
            self.looks.first_repaired[class] = flows.all(repaired);
        }
    }

    /// When the first loss, or mark, was known, after the connection had opened, and how long it took from there until
    /// everything had come that was under way: means over a class. Who has none by the end has it then.
    fn first_losses(&self, class: usize) -> (f64, f64) {
        let ends = self.fabric.now();
        let flows = self.built.flows[class].clone();
        let count = flows.len() as f64;
        let of_flow = |flow| {
            let sender = self.fabric.sender(flow);
            let cut = sender.first_cut.unwrap_or(ends);
            let repaired = sender.first_repaired.unwrap_or(ends);
            let opened = sender.opened.unwrap_or(ends);
            (
                cut.since(opened).as_secs_f64(),
                repaired.since(cut).as_secs_f64(),
            )
        };
        let sum = |(a, b): (f64, f64), (c, d)| (a + c, b + d);
        let (cut, repair) = flows.map(of_flow).fold((0.0, 0.0), sum);
        (cut / count, repair / count)
    }

    /// The mean over a class.
    fn cwnd_bytes(&self, class: usize) -> f64 {
        let flows = self.built.flows[class].clone();
        let count = flows.len() as f64;
        let windows = flows.map(|flow| self.fabric.sender(flow).window().cwnd());
        windows.map(|window| window as f64).sum::<f64>() / count
    }

    /// Continues all series by what was since the last time. What is not whole, or had begun before counting did, does not
    /// count.
    fn sample(&mut self, whole: Duration, begins: Instant) {
        let now = self.fabric.now();
        let began = std::mem::replace(&mut self.looks.sampled_at, now);
        let counts = began >= begins && now.since(began) == whole;
        let at = now.since(Instant::ZERO).as_secs_f64();
        let over = now.since(began).as_secs_f64();
        self.looks.samples += u64::from(counts);
        let mut values = Vec::with_capacity(self.looks.series.len());
        for line in 0..self.settings.lines.len() {
            let wire = self.fabric.wire(line as LineId);
            let (bytes, drops) = (packet_bytes(&wire.counters), wire.counters.dropped());
            let (bytes_last, drops_last) =
                std::mem::replace(&mut self.looks.lines_last[line], (bytes, drops));
            values.push((bytes - bytes_last) as f64 * 8.0 / over);
            values.push(wire.queued_bytes() as f64);
            values.push((drops - drops_last) as f64 / over);
            let packets = &mut self.looks.packets_of_lines[line];
            values.push(packets.next(wire.counters.left, counts) as f64);
        }
        for class in 0..self.built.flows.len() {
            let count = self.fabric.group(group(class));
            let bytes = count.arrived_bytes;
            let last = std::mem::replace(&mut self.looks.flows_last[class], bytes);
            values.push((bytes - last) as f64 * 8.0 / over);
            values.push(self.cwnd_bytes(class));
            let packets = &mut self.looks.packets_of_flows[class];
            values.push(packets.next(count.arrived, counts) as f64);
        }
        for (series, value) in self.looks.series.iter_mut().zip(values) {
            series.points.push((at, value));
        }
    }

    fn counted(&self) -> Before {
        let fabric = &self.fabric;
        let lines = 0..self.settings.lines.len();
        let of_flow = |flow| (fabric.count(flow), fabric.sender(flow).counters);
        let flows = self.built.flows.iter();
        let settings = self.settings;
        let classes = settings.flows.len() + settings.visitors.len() + settings.datagrams.len();
        let stations = self.built.datagrams.iter();
        Before {
            at: fabric.now(),
            lines: lines
                .map(|line| fabric.wire(line as LineId).counters)
                .collect(),
            flows: flows
                .map(|class| class.clone().map(of_flow).collect())
                .collect(),
            groups: (0..classes)
                .map(|class| fabric.group(group(class)))
                .collect(),
            visits: (0..settings.visitors.len() as u32)
                .map(|class| fabric.class(class).counters)
                .collect(),
            replies: stations
                .map(|class| class.clone().map(|one| fabric.station(one).replies).sum())
                .collect(),
        }
    }

    fn outcome(mut self, before: &Before) -> Outcome {
        let mut facts = Facts::default();
        let seconds = self.fabric.now().since(before.at).as_secs_f64();
        for line in 0..self.settings.lines.len() {
            self.facts_of_line(line, before, seconds, &mut facts);
        }
        for class in 0..self.built.flows.len() {
            self.facts_of_flows(class, before, seconds, &mut facts);
        }
        for class in 0..self.settings.visitors.len() {
            self.facts_of_visitors(class, before, seconds, &mut facts);
        }
        for class in 0..self.built.datagrams.len() {
            self.facts_of_datagrams(class, before, seconds, &mut facts);
        }
        Outcome {
            facts,
            series: std::mem::take(&mut self.looks.series),
            events: self.fabric.events_done(),
            hops: self.fabric.hops_done(),
        }
    }

    fn facts_of_line(&self, line: LineIndex, before: &Before, seconds: f64, facts: &mut Facts) {
        let settings = &self.settings.lines[line];
        let wire = self.fabric.wire(line as LineId);
        let (now, then) = (&wire.counters, &before.lines[line]);
        let looks = self.looks.count.max(1) as f64;
        let bytes = packet_bytes(now) - packet_bytes(then);
        // A router whose time does not count looks each unit up all the same.
        let lookups = match settings.processing {
            Some(_) => now.lookups - then.lookups,
            None => now.left - then.left,
        };
        let mut set = |fact: &str, value: f64| facts.set(fact, &[&settings.name], value);
        set("throughput", bytes as f64 * 8.0 / seconds);
        set(
            "utilisation",
            (now.busy - then.busy).as_secs_f64() / seconds,
        );
        set("queue_mean", self.looks.queued_bytes[line] / looks);
        set(
            "queue_max",
            self.fabric.observer.line(line).queued_bytes_max as f64,
        );
        set("drops", (now.dropped() - then.dropped()) as f64);
        set("marks", (now.marked - then.marked) as f64);
        set("sent", (now.left - then.left) as f64);
        set("repeated", (now.repeated - then.repeated) as f64);
        set("lookups", lookups as f64);
        set("longest_pause", now.longest_pause.as_secs_f64());
        set("energy", lookups_per_1500(lookups, bytes));
        let longest_burst = self.fabric.observer.line(line).longest_burst;
        set("longest_burst", longest_burst as f64);
        if self.settings.times.sample.is_some() {
            let packets = &self.looks.packets_of_lines[line];
            packets.set(&settings.name, self.looks.samples, facts);
        }
    }

    fn facts_of_flows(&self, class: usize, before: &Before, seconds: f64, facts: &mut Facts) {
        let name = self.settings.flows[class].name.as_str();
        let flows = self.built.flows[class].clone();
        let then = &before.flows[class];
        let mut rates = Vec::with_capacity(then.len());
        let mut goodputs = Vec::with_capacity(then.len());
        let mut seen = Seen::default();
        for (flow, (count, counters)) in flows.zip(then) {
            let count = self.fabric.count(flow) - *count;
            let now = self.fabric.sender(flow).counters;
            rates.push(count.arrived_bytes as f64 * 8.0 / seconds);
            goodputs.push(count.delivered_bytes as f64 * 8.0 / seconds);
            seen.add(&now, counters);
        }
        let looks = self.looks.count.max(1) as f64;
        let mean = goodputs.iter().sum::<f64>() / goodputs.len() as f64;
        // Of none it is no number, as the mean is.
        let of_all = |choose: fn(f64, f64) -> f64| {
            goodputs.iter().copied().reduce(choose).unwrap_or(f64::NAN)
        };
        let (least, most) = (of_all(f64::min), of_all(f64::max));
        facts.set("goodput_mean", &[name], mean);
        facts.set("goodput_least", &[name], least);
        facts.set("goodput_most", &[name], most);
        facts.set("cwnd_mean", &[name], self.looks.cwnd_bytes[class] / looks);
        let size = packet_bytes_max(&self.settings.flows[class].tcp);
        facts.set(SIZE, &[name], size.into());
        let (first_cut, first_repair) = self.first_losses(class);
        facts.set("first_cut", &[name], first_cut);
        facts.set("first_repair", &[name], first_repair);
        let first_drops = self.looks.first_drops[class];
        facts.set("first_drops", &[name], first_drops as f64);
        facts.set_each(name, rates);
        let count = self.count_since(class, before);
        set_count(name, &count, seconds, facts);
        seen.set(name, count.sent, facts);
        if self.settings.times.sample.is_some() {
            self.looks.packets_of_flows[class].set(name, self.looks.samples, facts);
        }
    }

    fn count_since(&self, class: usize, before: &Before) -> Count {
        self.fabric.group(group(class)) - before.groups[class]
    }

    fn facts_of_visitors(&self, class: usize, before: &Before, seconds: f64, facts: &mut Facts) {
        let name = self.settings.visitors[class].name.as_str();
        let visitors = self.fabric.class(class as u32);
        let (now, then) = (&visitors.counters, &before.visits[class]);
        let count = self.count_since(self.settings.flows.len() + class, before);
        set_count(name, &count, seconds, facts);
        let mut seen = Seen::default();
        seen.add(&now.senders, &then.senders);
        seen.set(name, count.sent, facts);
        facts.set("came", &[name], (now.came - then.came) as f64);
        facts.set("finished", &[name], (now.finished - then.finished) as f64);
        let turned_away = now.turned_away - then.turned_away;
        facts.set("turned_away", &[name], turned_away as f64);
        facts.set_times("duration", name, &visitors.durations);
    }

    fn facts_of_datagrams(&self, class: usize, before: &Before, seconds: f64, facts: &mut Facts) {
        let name = self.settings.datagrams[class].name.as_str();
        let earlier = self.settings.flows.len() + self.settings.visitors.len();
        let count = self.count_since(earlier + class, before);
        set_count(name, &count, seconds, facts);
        let (mut delays, mut round_trips) = (Histogram::default(), Histogram::default());
        let mut replies = 0;
        for station in self.built.datagrams[class].clone() {
            let station = self.fabric.station(station);
            delays.add(&station.delays);
            round_trips.add(&station.round_trips);
            replies += station.replies;
        }
        let answered = replies - before.replies[class];
        facts.set("answered", &[name], answered as f64);
        facts.set_times("delay", name, &delays);
        facts.set_times("round_trip", name, &round_trips);
    }
}

/// What senders count, of a class.
#[derive(Default)]
struct Seen {
    loss_events: u64,
    retransmitted: u64,
    timeouts: u64,
}

impl Seen {
    fn add(&mut self, now: &SenderCounters, then: &SenderCounters) {
        let events =
            |of: &SenderCounters| of.fast_recoveries + of.timeouts + of.marks + of.probes_repaired;
        self.loss_events += events(now) - events(then);
        self.retransmitted += now.retransmitted - then.retransmitted;
        self.timeouts += now.timeouts - then.timeouts;
    }

    fn set(&self, name: &str, sent: u64, facts: &mut Facts) {
        facts.set("loss_events", &[name], self.loss_events as f64);
        let rate = share_of(self.loss_events, sent);
        facts.set("loss_event_rate", &[name], rate);
        facts.set("retransmitted", &[name], self.retransmitted as f64);
        facts.set("timeouts", &[name], self.timeouts as f64);
    }
}

fn set_count(name: &str, count: &Count, seconds: f64, facts: &mut Facts) {
    let mut set = |fact: &str, value: f64| facts.set(fact, &[name], value);
    set("rate", count.arrived_bytes as f64 * 8.0 / seconds);
    set("goodput", count.delivered_bytes as f64 * 8.0 / seconds);
    set("sent", count.sent as f64);
    set("dropped", count.dropped as f64);
    set("lost", count.lost as f64);
    set("drop_rate", share_of(count.dropped, count.sent));
}

/// Of none it is no number: nothing is true of it that is expected.
fn share_of(part: u64, all: u64) -> f64 {
    part as f64 / all as f64
}

/// What has left, as IP counts it.
fn packet_bytes(counters: &WireCounters) -> u64 {
    counters.left_bytes - ETHERNET_HEADER_BYTES * counters.left
}

#[cfg(test)]
mod tests;
