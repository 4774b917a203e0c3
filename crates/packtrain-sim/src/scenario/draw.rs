//! What a seed may draw: wires, their faults, and the mixture of flows.

use core::num::NonZero;

use packtrain_proto::coding::dictionary::Dictionary;
use packtrain_proto::config::{Config, NodeId};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::dfap::ETHER_TYPE_OF_FOOTNOTE;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::checker::NetworkFaults;
use crate::dictionaries::Known;
use crate::host::Pace;
use crate::net::corruption::CorruptionConfig;
use crate::net::cut::Cut;
use crate::net::jitter::{JitterConfig, JitterDistribution};
use crate::net::loss::LossConfig;
use crate::net::queue::QueueConfig;
use crate::net::reordering::ReorderingConfig;
use crate::net::wire::WireConfig;
use crate::random::Random;
use crate::simulator::Source;
use crate::workload::flow::{Dress, Flow};
use crate::workload::mix::{Endpoint, Scale, random_arrivals, random_flow};

/// What kind of trouble a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// Any of loss, corruption found by the FCS, jitter, cuts: the order stays.
    InOrder,
    /// The same, and frames that overtake or come twice.
    Any,
    /// Bytes that change unnoticed: only the hosts' own health is checked.
    Altering,
}

impl Trouble {
    pub fn draw(random: &mut Random) -> Trouble {
        match random.below(20) {
            0..=2 => Trouble::None,
            3..=9 => Trouble::InOrder,
            10..=17 => Trouble::Any,
            _ => Trouble::Altering,
        }
    }
}

fn loss(more: &impl Fn(f64) -> f64, random: &mut Random) -> LossConfig {
    if random.chance(0.5) {
        LossConfig::Bernoulli {
            probability: more(0.003 + 0.1 * random.unit() * random.unit()),
        }
    } else {
        LossConfig::GilbertElliott {
            good_to_bad: more(0.003 + 0.02 * random.unit()),
            bad_to_good: 0.05 + 0.5 * random.unit(),
            loss_in_good: 0.0,
            loss_in_bad: 0.3 + 0.7 * random.unit(),
        }
    }
}

/// One direction of a cable. Effort makes faults more likely, for wires that carry little.
pub fn wire(
    rate_bps: u64,
    delay: Duration,
    trouble: Trouble,
    effort: u32,
    random: &mut Random,
) -> WireConfig {
    let more =
        |probability: f64| (probability * f64::from(1u32 << effort)).min(probability.max(0.3));
    let mut config = WireConfig::perfect(rate_bps, delay);
    config.queue = QueueConfig::drop_tail(random.magnitude(96 << 10, 1 << 20) as usize);
    if trouble == Trouble::None {
        return config;
    }
    if random.chance(0.35) {
        let max = Duration::from_nanos(random.magnitude(10_000, 5_000_000));
        config.jitter = Some(JitterConfig {
            distribution: JitterDistribution::Queue { max },
            keeps_order: true,
        });
    }
    if random.chance(0.4) {
        config.loss = Some(loss(&more, random));
    }
    if trouble == Trouble::Altering || random.chance(0.25) {
        config.corruption = Some(CorruptionConfig {
            probability: more(0.005 + 0.05 * random.unit()),
            bits_max: random.between(1, 8),
            fcs: trouble != Trouble::Altering,
        });
    }
    if matches!(trouble, Trouble::Any | Trouble::Altering) {
        if random.chance(0.5) {
            config.duplication = Some(more(0.005 + 0.1 * random.unit() * random.unit()));
        }
        if random.chance(0.6) {
            config.reordering = Some(ReorderingConfig {
                probability: more(0.01 + 0.1 * random.unit()),
                // Long enough to be overtaken at all: some frames' worth of the line.
                hold_max: Duration::from_nanos(
                    random.magnitude(100_000, 20_000_000) + 12_000 * 1_000_000_000 * 4 / rate_bps,
                ),
            });
        }
    }
    config
}

pub fn cut(trouble: Trouble, traffic: Duration, random: &mut Random) -> Cut {
    if trouble == Trouble::None || !random.chance(0.25) {
        return Cut::default();
    }
    let start = Instant::ZERO + traffic / 5;
    Cut::random(
        random.between(1, 3),
        start,
        Instant::ZERO + traffic * 9 / 10,
        random,
    )
}

pub fn faults(wires: &[WireConfig]) -> NetworkFaults {
    NetworkFaults {
        duplicates: wires.iter().any(|w| w.duplication.is_some()),
        reorders: wires.iter().any(WireConfig::reorders),
        alters: wires.iter().any(|w| w.corruption.is_some_and(|c| !c.fcs)),
        moves_home: false,
    }
}

pub fn link_mtu(random: &mut Random) -> u16 {
    *random.pick(&[576, 1280, 1500, 1500, 1500, 4000, 9000])
}

pub fn host_mtu(link_mtu: u16, random: &mut Random) -> u16 {
    *random.pick(&[link_mtu, link_mtu, 1500, 9000, 65_521])
}

/// How much is sent for how long, on a line of this rate.
pub fn scale(rate_bps: u64, load: f64, effort: u32, random: &mut Random) -> Scale {
    let budget = random
        .magnitude(300_000, 1_500_000)
        .min(rate_bps / 8)
        .max(100_000);
    let bytes = budget << effort;
    let nanos = bytes as f64 * 8e9 / (rate_bps as f64 * load);
    // Peers need a moment to find each other: shorter runs would never see a train.
    let least = Duration::from_millis(600 << effort);
    let most = Duration::from_secs(6 << effort);
    let duration = Duration::from_nanos(nanos as u64).clamp(least, most);
    // What hardly happens in a flood may happen in a stream, and the other way round: frames that
    // are spread out do not wait for each other, and are not packed; but none overtakes another.
    let spread_bps = (bytes as f64 * 8.0 / (duration.as_secs_f64() * load)) as u64;
    let rate_bps = if effort % 2 == 1 {
        spread_bps.clamp(1, rate_bps)
    } else {
        rate_bps
    };
    Scale {
        rate_bps,
        duration,
        bytes,
    }
}

/// The address of host number `n`'s `pt0`, and of its link.
pub fn addresses(n: u8) -> (MacAddr, MacAddr) {
    (
        MacAddr([0x02, 0x70, 0, 0, 0, n]),
        MacAddr([0x00, 0x16, 0x3e, 0, 0, 0x10 + n]),
    )
}

/// The address of host number `n`'s link number `link`.
pub fn link_address(n: u8, link: u8) -> MacAddr {
    MacAddr([0x00, 0x16, 0x3e, 1 + link, 0, 0x10 + n])
}

/// Stations behind a bridge of host number `n`.
pub fn behind(n: u8) -> Vec<MacAddr> {
    (1..=3)
        .map(|k| MacAddr([0x02, 0x99, 0, 0, n, 0x40 + k]))
        .collect()
}

/// Half of the hosts are prompt; the others take frames in batches and wake up late.
pub fn pace(random: &mut Random) -> Pace {
    let mut some = |max: u64| match random.below(2) {
        0 => Duration::ZERO,
        _ => Duration::from_nanos(random.magnitude(1000, max)),
    };
    let (batch, lateness_max) = (some(300_000), some(2_000_000));
    Pace {
        batch,
        lateness_max,
        random: random.fork(),
    }
}

pub fn config(address: MacAddr, mtu: u16, random: &mut Random) -> Config {
    let mut config = Config::new(NodeId(random.next().max(1)), address);
    config.mtu = mtu;
    config.seed = random.next();
    // Some take no coded trains, and send none.
    config.coded_trains = !config.seed.is_multiple_of(8);
    // Some take long to mix.
    config.mixing_ns = if config.seed.is_multiple_of(5) {
        const { NonZero::new(5000).expect("it is not 0") }
    } else {
        config.mixing_ns
    };
    config.short_flows_first = config.seed % 7 < 2;
    // Tight bounds in some runs: what is never reached is never tested.
    if random.chance(0.25) {
        let limits = &mut config.limits;
        limits.queued_frames_max = random.magnitude(64, 4096) as usize;
        limits.queued_bytes_max = random.magnitude(256 << 10, 4 << 20) as usize;
        // By the seed that the host has already: no other draw depends on it.
        if config.seed.is_multiple_of(3) {
            limits.flow_queue_bytes_max = Some(limits.queued_bytes_max / 8);
        }
        limits.reassembly_bytes_max = random.magnitude(256 << 10, 4 << 20) as usize;
        limits.resequencer_bytes_max = random.magnitude(256 << 10, 4 << 20) as usize;
    }
    config
}

/// Which dictionaries the two hosts of a pair have been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dictionaries {
    None,
    Same,
    Different,
    /// Only the host of this number has one.
    OnlyOne(usize),
}

impl Dictionaries {
    /// Drawn by a generator of its own: nothing else of a seed depends on it.
    pub fn draw(seed: u64) -> Dictionaries {
        let mut random = Random::new(seed ^ 0x7a73_7464);
        match random.below(8) {
            0 | 1 => Dictionaries::Same,
            2 => Dictionaries::Different,
            3 => Dictionaries::OnlyOne(random.below(2) as usize),
            _ => Dictionaries::None,
        }
    }

    pub fn of(self, host: usize) -> Option<Dictionary> {
        let known = match self {
            Dictionaries::Same => Known::Words,
            Dictionaries::Different => Known::ALL[host],
            Dictionaries::OnlyOne(which) if which == host => Known::Words,
            _ => return None,
        };
        Some(known.dictionary().clone())
    }
}

/// How the DFAP paper's protocol is set; drawn by a generator of its own.
pub fn dfap(config: &mut Config, seed: u64) {
    let mut random = Random::new(seed ^ 0x0064_6661_7001);
    config.dfap.tick = Duration::from_nanos(random.magnitude(50_000, 10_000_000));
    if random.chance(0.3) {
        config.dfap.ether_type = ETHER_TYPE_OF_FOOTNOTE;
    }
}

/// Flows and their sources; each begins at its own time.
#[derive(Debug)]
pub struct Traffic {
    /// The segment's: what a group frame may have to reach everybody as it is.
    pub link_mtu: u16,
    pub flows: Vec<Flow>,
    pub sources: Vec<(Source, Instant)>,
    pub probes: Vec<usize>,
}

impl Traffic {
    pub fn new(link_mtu: u16) -> Traffic {
        Traffic {
            link_mtu,
            flows: Vec::new(),
            sources: Vec::new(),
            probes: Vec::new(),
        }
    }

    /// A flow with a share of the load.
    pub fn add(
        &mut self,
        from: &Endpoint,
        to: Option<&Endpoint>,
        load: f64,
        share: f64,
        scale: Scale,
        random: &mut Random,
    ) {
        let mtu = from.mtu.min(to.map_or(self.link_mtu, |to| to.mtu));
        let flow = random_flow(self.flows.len() as u16, from, to, mtu, random);
        self.add_flow(flow, load, share, scale, random);
    }

    /// Group frames that are all too long for the segment: each peer is sent its own. (Short ones
    /// of the same flow would go as they are, and overtake them.)
    pub fn add_long_group_flow(
        &mut self,
        from: &Endpoint,
        load: f64,
        share: f64,
        scale: Scale,
        random: &mut Random,
    ) {
        let mut flow = random_flow(self.flows.len() as u16, from, None, from.mtu, random);
        flow.dress = Dress::Udp;
        flow.vlan = None;
        let headers = flow.headers_len(0) - 14;
        flow.content_len = (usize::from(self.link_mtu), usize::from(from.mtu) - headers);
        self.add_flow(flow, load, share, scale, random);
    }

    /// Frames for a host without packtrain that are all too long for it: their sender is told, and none of them comes.
    pub fn add_too_long_flow(
        &mut self,
        from: &Endpoint,
        to: &Endpoint,
        share: f64,
        scale: Scale,
        random: &mut Random,
    ) {
        let mut flow = random_flow(self.flows.len() as u16, from, Some(to), from.mtu, random);
        flow.dress = Dress::Udp;
        flow.vlan = None;
        flow.segment_len = None;
        let headers = flow.headers_len(0) - 14;
        flow.content_len = (usize::from(self.link_mtu), usize::from(from.mtu) - headers);
        self.add_flow(flow, 0.01, share, scale, random);
    }

    fn add_flow(&mut self, flow: Flow, load: f64, share: f64, scale: Scale, random: &mut Random) {
        let arrivals = random_arrivals(&flow, load, scale, random);
        let sample = 64.min(flow.frames_max());
        let total: usize = (0..sample)
            .map(|s| flow.headers_len(s) + flow.content_len(s))
            .sum();
        let mean = (total as u64 / u64::from(sample)).max(1);
        let frames = (scale.bytes as f64 * share / mean as f64) as u32;
        let source = Source {
            flow: self.flows.len(),
            arrivals,
            random: random.fork(),
            next_sequence: 0,
            remaining: frames.clamp(4, 100_000).min(flow.frames_max()),
        };
        // Some begin while nobody knows anybody yet.
        let start = random.duration(Duration::ZERO, scale.duration / 2);
        self.sources.push((source, Instant::ZERO + start));
        self.flows.push(flow);
    }

    /// A flow that only probes, of short frames.
    pub fn add_probe(&mut self, from: &Endpoint, to: &Endpoint, random: &mut Random) {
        let index = self.flows.len() as u16;
        let mut flow = random_flow(index, from, Some(to), 576, random);
        // Nothing that a path may have a reason to drop.
        flow.dress = Dress::Udp;
        flow.segment_len = None;
        flow.content_len = (12, 400);
        self.probes.push(self.flows.len());
        self.flows.push(flow);
    }
}
