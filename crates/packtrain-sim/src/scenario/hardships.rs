//! What happens to hosts and to what their links take, in the midst of traffic: processes that do not run for a while,
//! interfaces that are set to take less, and segments that come to let less pass and do not say so.

use packtrain_proto::time::{Duration, Instant};

use crate::net::network::{Network, PortId};
use crate::random::Random;
use crate::simulator::{Event, StationId};

/// From what nobody notices up to what all take for a failure of all links.
const STOPPED_NS: (u64, u64) = (1_000_000, 3_000_000_000);
/// … and up to what peers, who say hello each second, put up with.
const BEARABLE_NS: (u64, u64) = (1_000_000, 1_500_000_000);
/// … and up to what leaves a peer that says hello at such times just known. What was lost goes again all the same, where nothing
/// may be.
const JUST_BEARABLE_NS: (u64, u64) = (1_000_000, 2_200_000_000);
/// How long less passes.
const NARROW_NS: (u64, u64) = (5_000_000, 4_000_000_000);
/// What is less than any link needs for trains is no link.
const MTU_MIN: u64 = 400;

/// Processes that do not run, and nothing else, and for less than it takes until their peers give them up: nothing is lost by it.
pub fn draw_stops(seed: u64, hosts: usize, traffic: Duration) -> Vec<(Instant, Event)> {
    let random = &mut Random::new(seed ^ 0x73_746f_7073);
    stops(random, BEARABLE_NS, hosts, traffic)
}

/// The same, and longer.
pub fn draw_long_stops(seed: u64, hosts: usize, traffic: Duration) -> Vec<(Instant, Event)> {
    let random = &mut Random::new(seed ^ 0x6c6f_6e67_7374);
    stops(random, JUST_BEARABLE_NS, hosts, traffic)
}

fn stops(
    random: &mut Random,
    for_ns: (u64, u64),
    hosts: usize,
    traffic: Duration,
) -> Vec<(Instant, Event)> {
    if !random.chance(0.3) {
        return Vec::new();
    }
    let count = random.between(1, 3);
    let stop = |_| {
        let station = StationId(random.below(hosts as u64) as usize);
        let (from, until) = span(for_ns, traffic, random);
        (from, Event::Stop { station, until })
    };
    (0..count).map(stop).collect()
}

/// Somewhere in the midst of the traffic, and over before its end.
fn span((min, max): (u64, u64), traffic: Duration, random: &mut Random) -> (Instant, Instant) {
    let (first, last) = (traffic / 5, traffic * 9 / 10);
    let from = Instant::ZERO + random.duration(first, last);
    let lasts = Duration::from_nanos(random.magnitude(min, max));
    (from, (from + lasts).min(Instant::ZERO + last))
}

/// By a random of their own, so that nothing else of a seed depends on them. `ports`: by station, those of its links.
pub fn draw(
    seed: u64,
    ports: &[Vec<PortId>],
    network: &Network,
    traffic: Duration,
) -> Vec<(Instant, Event)> {
    let mut random = Random::new(seed ^ 0x6861_7264_7368);
    let mut drawn = stops(&mut random, STOPPED_NS, ports.len(), traffic);
    let less_than = |mtu: u16, random: &mut Random| {
        let most = u64::from(mtu).max(MTU_MIN + 1);
        random.between(MTU_MIN, most - 1) as u16
    };
    if random.chance(0.25) {
        let station = random.below(ports.len() as u64) as usize;
        let port = *random.pick(&ports[station]);
        let station = StationId(station);
        let whole = network.port_mtu(port);
        let (from, until) = span(NARROW_NS, traffic, &mut random);
        for (at, mtu) in [(from, less_than(whole, &mut random)), (until, whole)] {
            let event = Event::LinkMtu { station, port, mtu };
            drawn.push((at, event));
        }
    }
    if random.chance(0.3) {
        let station = random.below(ports.len() as u64) as usize;
        let segment = random.pick(&ports[station]).segment;
        let (from, until) = span(NARROW_NS, traffic, &mut random);
        let less = less_than(network.mtu(segment), &mut random);
        for (at, mtu) in [(from, Some(less)), (until, None)] {
            drawn.push((at, Event::PathMtu { segment, mtu }));
        }
    }
    drawn
}
