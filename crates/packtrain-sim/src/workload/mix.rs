//! A mixture of flows, drawn at random: every dress, every size, every process of arrival.

use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

use super::arrivals::Arrivals;
use super::flow::{DESCRIPTION_LEN, Dress, Flow, Recipient, SEGMENTS_MAX};
use crate::random::Random;
use crate::simulator::StationId;

/// Between whom flows go.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub station: StationId,
    /// Payload bytes after the EtherType of what its host sends.
    pub mtu: u16,
    pub address: MacAddr,
    /// Addresses of other stations behind it, when it stands in a bridge.
    pub behind: Vec<MacAddr>,
    /// Whether its host leaves segmentation and checksums to others.
    pub offloads: bool,
}

/// The slowest way that a mixture goes, so that arrivals have a scale.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub rate_bps: u64,
    /// How long the sources send.
    pub duration: Duration,
    /// All flows together; slow lines carry less.
    pub bytes: u64,
}

const IP_PACKET_MAX: usize = 65_535;
const IPV4_MULTICAST: MacAddr = MacAddr([0x01, 0x00, 0x5e, 0x10, 0x20, 0x30]);
const IPV6_MULTICAST: MacAddr = MacAddr([0x33, 0x33, 0x00, 0x00, 0x00, 0x17]);

/// One flow from `from` to `to`; `None`: to everybody.
pub fn random_flow(
    index: u16,
    from: &Endpoint,
    to: Option<&Endpoint>,
    mtu: u16,
    random: &mut Random,
) -> Flow {
    let mtu = usize::from(mtu);
    let ipv6 = random.chance(0.4);
    let vlan = random.chance(0.1).then(|| random.between(1, 4094) as u16);
    let dress = match random.below(20) {
        0 => Dress::Bare,
        1 => Dress::Tiny {
            payload_len: random.between(1, 11) as usize,
        },
        2 => Dress::Llc,
        3 => Dress::Arp,
        4 => Dress::Other,
        5 => Dress::Fragments,
        6..=11 => Dress::Udp,
        _ => Dress::Tcp {
            timestamps: random.chance(0.5),
        },
    };
    let ipv6 = ipv6 && dress != Dress::Fragments;
    let transport = matches!(dress, Dress::Udp | Dress::Tcp { .. });
    let any_of = |endpoint: &Endpoint, random: &mut Random| {
        if !endpoint.behind.is_empty() && random.chance(0.5) {
            *random.pick(&endpoint.behind)
        } else {
            endpoint.address
        }
    };
    let source = any_of(from, random);
    let destination = match to {
        Some(to) => any_of(to, random),
        None => *random.pick(&[MacAddr::BROADCAST, IPV4_MULTICAST, IPV6_MULTICAST]),
    };
    let mut flow = Flow {
        index,
        from: from.station,
        to: to.map_or(Recipient::All, |to| Recipient::Station(to.station)),
        source,
        destination,
        vlan,
        dress,
        ipv6,
        segment_len: None,
        partial_checksum: transport && from.offloads && random.chance(0.5),
        ecn: random.chance(0.2),
        content_len: (0, 0),
        seed: random.next(),
    };
    // Sequence 0 has the longest headers of every dress; a tag comes on top of the MTU.
    let headers = flow.headers_len(0) - 14 - if flow.vlan.is_some() { 4 } else { 0 };
    let room = mtu - headers;
    let low = DESCRIPTION_LEN;
    flow.content_len = match flow.dress {
        Dress::Arp => (20, 20),
        Dress::Llc => (low, room.min(1400)),
        Dress::Fragments => (16, room.max(24)),
        _ => match random.below(4) {
            0 => (low, (low + 200).min(room)),
            1 => (room - room / 8, room),
            _ => (low, room),
        },
    };
    if transport && to.is_some() && from.offloads && random.chance(0.4) {
        // A path MTU may be below that of `pt0`: segments of any length up to what fits.
        let segment = random.between(room as u64 / 3, room as u64).max(100) as usize;
        let segment = segment.min(room).min(9000);
        // Up to the longest IP packet there is, a tag before it.
        let high = (segment * random.between(2, SEGMENTS_MAX as u64) as usize)
            .min(IP_PACKET_MAX - headers - 4);
        flow.segment_len = Some(segment as u16);
        flow.content_len = (low, high.max(segment));
    }
    flow
}

/// A process of arrivals that offers about `load` of the rate with this flow.
pub fn random_arrivals(flow: &Flow, load: f64, scale: Scale, random: &mut Random) -> Arrivals {
    let sample = 64.min(flow.frames_max());
    let bytes: u64 = (0..sample)
        .map(|s| (flow.headers_len(s) + flow.content_len(s)) as u64)
        .sum();
    let frame_bits = 8 * bytes / u64::from(sample) + 8 * 24;
    let nanos = frame_bits as f64 * 1e9 / (scale.rate_bps as f64 * load.max(1e-9));
    let mean_gap = Duration::from_nanos((nanos as u64).max(10));
    match random.below(4) {
        0 => {
            let frames = random.between(2, 60);
            Arrivals::Bursts {
                frames,
                mean_gap: mean_gap * frames as u32,
            }
        }
        1 => {
            let frames = random.between(2, 60);
            let gap = mean_gap / 4;
            Arrivals::OnOff {
                frames,
                gap,
                pause: mean_gap * frames as u32 - gap * (frames as u32 - 1),
            }
        }
        2 if load > 0.8 => Arrivals::Saturating { gap: mean_gap / 3 },
        _ => Arrivals::Poisson { mean_gap },
    }
}
