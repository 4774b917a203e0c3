//! What happens to hosts and to what their links take, in the midst of traffic: processes that do not run for a while,
//! interfaces that are set to take less, and segments that come to let less pass and do not say so.

use packtrain_proto::time::{Duration, Instant};

use crate::net::network::{Network, PortId};
use crate::random::Random;
use crate::simulator::{Event, StationId};

/// From what nobody notices up to what all take for a failure of all links.
const STOPPED_NS: (u64, u64) = (1_000_000, 3_000_000_000);
/// How long less passes.
const NARROW_NS: (u64, u64) = (5_000_000, 4_000_000_000);
/// What is less than any link needs for trains is no link.
const MTU_MIN: u64 = 400;

/// By a random of their own, so that nothing else of a seed depends on them. `ports`: by station, those of its links.
pub fn draw(
    seed: u64,
    ports: &[Vec<PortId>],
    network: &Network,
    traffic: Duration,
) -> Vec<(Instant, Event)> {
    let mut random = Random::new(seed ^ 0x6861_7264_7368);
    let mut drawn = Vec::new();
    let (first, last) = (traffic / 5, traffic * 9 / 10);
    let span = |(min, max): (u64, u64), random: &mut Random| {
        let from = Instant::ZERO + random.duration(first, last);
        let lasts = Duration::from_nanos(random.magnitude(min, max));
        (from, (from + lasts).min(Instant::ZERO + last))
    };
    if random.chance(0.3) {
        for _ in 0..random.between(1, 3) {
            let station = StationId(random.below(ports.len() as u64) as usize);
            let (from, until) = span(STOPPED_NS, &mut random);
            drawn.push((from, Event::Stop { station, until }));
        }
    }
    let less_than = |mtu: u16, random: &mut Random| {
        let most = u64::from(mtu).max(MTU_MIN + 1);
        random.between(MTU_MIN, most - 1) as u16
    };
    if random.chance(0.25) {
        let station = random.below(ports.len() as u64) as usize;
        let port = *random.pick(&ports[station]);
        let station = StationId(station);
        let whole = network.port_mtu(port);
        let (from, until) = span(NARROW_NS, &mut random);
        for (at, mtu) in [(from, less_than(whole, &mut random)), (until, whole)] {
            let event = Event::LinkMtu { station, port, mtu };
            drawn.push((at, event));
        }
    }
    if random.chance(0.3) {
        let station = random.below(ports.len() as u64) as usize;
        let segment = random.pick(&ports[station]).segment;
        let (from, until) = span(NARROW_NS, &mut random);
        let less = less_than(network.mtu(segment), &mut random);
        for (at, mtu) in [(from, Some(less)), (until, None)] {
            drawn.push((at, Event::PathMtu { segment, mtu }));
        }
    }
    drawn
}
