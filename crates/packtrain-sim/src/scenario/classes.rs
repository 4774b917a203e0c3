//! Classes that a seed gives to each host, and changes while it runs.
//!
//! They ask for what the workload's frames have, so that most match some frames and few match all; a class
//! that goes by size divides a flow, whose frames are then treated in different ways and must keep their order.

use packtrain_proto::class::{self, Action, Class, ClassPath, Compress, Pack, Repairs};
use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::trunk::via::LinkSet;

use crate::random::Random;
use crate::simulator::{Event, Simulator, Station, StationId};
use crate::workload::flow::Flow;

const BUDGET_MIN_NS: u64 = 50_000;
const BUDGET_MAX_NS: u64 = 20_000_000;

/// For each host that runs the engine. Drawn by a generator of its own, so that nothing else of a seed depends
/// on it.
pub fn give(simulator: &mut Simulator, seed: u64, traffic: Duration) {
    give_tables(simulator, seed, traffic, |flows, random| {
        table(flows, by_packing, random)
    });
}

/// The same, and they say which frames go past the engine.
pub fn give_with_paths(simulator: &mut Simulator, seed: u64, traffic: Duration) {
    give_tables(simulator, seed, traffic, table_with_paths);
}

/// The same, with every way to wait for others, those of the DFAP paper too: often all frames do.
pub fn give_with_waits(simulator: &mut Simulator, seed: u64, traffic: Duration) {
    give_tables(simulator, seed, traffic, |flows, random| {
        let mut classes = match random.chance(0.5) {
            true => table(flows, by_waiting, random).unwrap_or_default(),
            false => Vec::new(),
        };
        let rest = Class {
            name: "others".parse().expect("a right name"),
            matches: "any".parse().expect("a right match"),
            links: Vec::new(),
            action: by_waiting(random),
        };
        classes.push(rest);
        Some(classes)
    });
}

/// Nothing of what anybody sends may be lost. Often some flows have links of their own, and come to others while it runs, and some
/// go twice.
pub fn give_lossless(simulator: &mut Simulator, seed: u64, traffic: Duration) {
    let mut random = Random::new(seed ^ 0x006c_6f73_736c_6573);
    let flows = simulator.checkers.flows().to_vec();
    for n in 0..simulator.stations.len() {
        let Station::Packtrain(host) = &mut simulator.stations[n] else {
            continue;
        };
        let has_lanes = random.chance(0.5);
        host.give_classes(lossless_table(&flows, has_lanes, &mut random));
        let changes = match has_lanes && random.chance(0.5) {
            true => random.between(1, 4),
            false => 0,
        };
        for _ in 0..changes {
            let after = random.duration(Duration::ZERO, traffic);
            let station = StationId(n);
            let classes = lossless_table(&flows, true, &mut random);
            let event = Event::Classes { station, classes };
            simulator.queue.push(Instant::ZERO + after, event);
        }
    }
}

fn lossless_table(flows: &[Flow], has_lanes: bool, random: &mut Random) -> Vec<Class> {
    let mut classes = match has_lanes {
        true => some_lanes(flows, random),
        false => Vec::new(),
    };
    classes.push(Class {
        name: "others".parse().expect("a right name"),
        matches: "any".parse().expect("a right match"),
        links: Vec::new(),
        action: by_packing(random),
    });
    for class in &mut classes {
        class.action.repairs = Repairs::Lossless;
        class.action.duplicate = random.chance(0.15);
        class.action.compress = compress(random);
    }
    classes
}

fn give_tables(
    simulator: &mut Simulator,
    seed: u64,
    traffic: Duration,
    draw: fn(&[Flow], &mut Random) -> Option<Vec<Class>>,
) {
    let mut random = Random::new(seed ^ 0x0063_6c61_7373_6573);
    // Each by numbers of its own: what else a seed becomes stays what it was.
    let mut of_coding = Random::new(seed ^ 0x0063_6f64_696e_6700);
    let mut of_sending = Random::new(seed ^ 0x0074_7769_6365);
    let sends_twice = of_sending.chance(0.3);
    let mut of_lanes = Random::new(seed ^ 0x006c_616e_6573);
    let mut of_links = Random::new(seed ^ 0x6c69_6e6b_7300);
    let names_links = of_lanes.chance(0.3);
    let mut of_repairs = Random::new(seed ^ 0x7265_7061_6972);
    let says_repairs = of_repairs.chance(0.3);
    let mut of_others = of_repairs.fork();
    let mut draw = |flows: &[Flow], random: &mut Random| {
        let mut classes = draw(flows, random)?;
        for class in &mut classes {
            class.action.compress = compress(&mut of_coding);
            class.action.duplicate = sends_twice && of_sending.chance(0.4);
            if names_links && of_links.chance(0.5) {
                class.action.links = some_links(&mut of_links);
            }
            if says_repairs && of_repairs.chance(0.6) {
                class.action.repairs = repairs(&mut of_repairs);
            }
        }
        Some(classes)
    };
    let flows = simulator.checkers.flows().to_vec();
    for n in 0..simulator.stations.len() {
        let Station::Packtrain(host) = &mut simulator.stations[n] else {
            continue;
        };
        if let Some(classes) = draw(&flows, &mut random) {
            host.give_classes(classes);
        }
        let changes = match random.chance(0.4) {
            true => random.between(1, 3),
            false => 0,
        };
        let mut change = |after: Duration, classes| {
            let station = StationId(n);
            let event = Event::Classes { station, classes };
            simulator.queue.push(Instant::ZERO + after, event);
        };
        for _ in 0..changes {
            let after = random.duration(Duration::ZERO, traffic);
            let classes = draw(&flows, &mut random).unwrap_or_else(class::defaults);
            change(after, classes);
        }
        // Flows come to other links, and from them, again and again.
        let more = match names_links {
            true => of_lanes.between(2, 8),
            false => 0,
        };
        for _ in 0..more {
            let after = of_lanes.duration(Duration::ZERO, traffic);
            let mut classes = some_lanes(&flows, &mut of_lanes);
            for class in &mut classes {
                if says_repairs && of_others.chance(0.5) {
                    class.action.repairs = repairs(&mut of_others);
                }
            }
            change(after, classes);
        }
    }
}

/// `None`: those with which an engine starts.
fn table(
    flows: &[Flow],
    action: fn(&mut Random) -> Action,
    random: &mut Random,
) -> Option<Vec<Class>> {
    let count = match random.below(10) {
        0..=1 => return None,
        2 => 0,
        _ => random.between(1, 6),
    };
    let mut classes: Vec<Class> = (0..count)
        .map(|n| Class {
            name: format!("c{n}").parse().expect("a right name"),
            matches: matches(flows, random).parse().expect("a right match"),
            links: Vec::new(),
            action: action(random),
        })
        .collect();
    if random.chance(0.3) {
        classes.extend(class::defaults());
    }
    Some(classes)
}

/// Often all that no other class matches may be lost with a link: over several, hardly a frame goes past the
/// engine else.
fn table_with_paths(flows: &[Flow], random: &mut Random) -> Option<Vec<Class>> {
    let drawn = match random.chance(0.5) {
        true => table(flows, by_path, random),
        false => None,
    };
    let rest = Class {
        name: "others".parse().expect("a right name"),
        matches: "any".parse().expect("a right match"),
        links: Vec::new(),
        action: Action {
            loss_ok: random.chance(0.7),
            ..Action::default()
        },
    };
    let mut classes = drawn.unwrap_or_default();
    classes.push(rest);
    Some(classes)
}

/// Flows by some links, and all others by any.
fn some_lanes(flows: &[Flow], random: &mut Random) -> Vec<Class> {
    let count = random.between(0, 2);
    let class = |n| Class {
        name: format!("c{n}").parse().expect("a right name"),
        matches: match random.chance(0.5) {
            true => "any".into(),
            false => {
                let [low, high] = flow_numbers(flows, random);
                format!("dport {}-{}", 2048 + low, 2048 + high)
            }
        }
        .parse()
        .expect("a right match"),
        links: Vec::new(),
        action: Action {
            links: some_links(random),
            ..Action::default()
        },
    };
    (0..count).map(class).collect()
}

fn repairs(random: &mut Random) -> Repairs {
    match random.below(4) {
        0 => Repairs::Off,
        1 => Repairs::Within(random.duration(Duration::from_millis(1), Duration::from_secs(1))),
        _ => Repairs::Lossless,
    }
}

/// By their numbers: hosts have one or more of them, and one that nobody has is none that works.
fn some_links(random: &mut Random) -> LinkSet {
    let count = random.between(1, 2);
    (0..count).map(|_| LinkId(random.below(4) as u8)).collect()
}

fn compress(random: &mut Random) -> Compress {
    use Compress::{Auto, Headers, Off};
    *random.pick(&[Auto, Auto, Auto, Headers, Off])
}

fn by_packing(random: &mut Random) -> Action {
    Action {
        pack: pack(random),
        ..Action::default()
    }
}

fn by_waiting(random: &mut Random) -> Action {
    let time = Duration::from_nanos(random.magnitude(BUDGET_MIN_NS, BUDGET_MAX_NS));
    let ways = [
        Pack::Queued,
        Pack::Now,
        Pack::Within(time),
        Pack::Scaled(time),
        Pack::Scaled(time),
        Pack::DfapRandom,
        Pack::DfapRandom,
        Pack::DfapStraight,
        Pack::DfapStraight,
        Pack::Auto,
    ];
    Action {
        pack: *random.pick(&ways),
        on_backlog: random.chance(0.1),
        ..Action::default()
    }
}

fn by_path(random: &mut Random) -> Action {
    use ClassPath::{Auto, Direct, Engine};
    Action {
        pack: match random.chance(0.3) {
            true => pack(random),
            false => Pack::Queued,
        },
        path: *random.pick(&[Auto, Auto, Auto, Direct, Direct, Engine]),
        loss_ok: random.chance(0.5),
        ..Action::default()
    }
}

fn pack(random: &mut Random) -> Pack {
    match random.below(5) {
        0..=1 => Pack::Now,
        2..=3 => {
            let budget = random.magnitude(BUDGET_MIN_NS, BUDGET_MAX_NS);
            Pack::Within(Duration::from_nanos(budget))
        }
        _ => Pack::Queued,
    }
}

fn matches(flows: &[Flow], random: &mut Random) -> String {
    let first = condition(flows, random);
    match random.below(4) {
        0 => format!("{first} {}", condition(flows, random)),
        1 => "any".into(),
        _ => first,
    }
}

fn condition(flows: &[Flow], random: &mut Random) -> String {
    let not = match random.chance(0.15) {
        true => "not ",
        false => "",
    };
    let [low, high] = flow_numbers(flows, random);
    let test = match random.below(10) {
        0..=3 => {
            let size = random.magnitude(64, 4096);
            let bounds = [format!("-{size}"), format!("{size}-")];
            format!("size {}", random.pick(&bounds))
        }
        4 => format!("sport {}-{}", 1024 + low, 1024 + high),
        5 => format!("dport {}-{}", 2048 + low, 2048 + high),
        6 => format!("src 10.{}.{}.0/24", low >> 8, low & 0xff),
        7 => format!("dst fd70:7400::{:x}:{:x}/120", low >> 8, (low & 0xff) << 8),
        8 => "ip6".into(),
        _ => (*random.pick(&["udp", "tcp", "arp", "proto 253", "tcp empty", "vlan any"])).into(),
    };
    format!("{not}{test}")
}

/// The first and the last of some flows.
fn flow_numbers(flows: &[Flow], random: &mut Random) -> [u64; 2] {
    let mut number = || random.below(flows.len() as u64);
    let (a, b) = (number(), number());
    [a.min(b), a.max(b)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::flow::tests::one_of_each;

    #[test]
    fn tables_of_all_kinds_are_drawn_and_each_way_of_packing() {
        let flows = one_of_each();
        let mut random = Random::new(1);
        let tables: Vec<_> = (0..300)
            .map(|_| table(&flows, by_packing, &mut random))
            .collect();
        assert!(tables.iter().any(Option::is_none));
        assert!(tables.iter().flatten().any(Vec::is_empty));
        let packs = || tables.iter().flatten().flatten().map(|c| c.action.pack);
        assert!(packs().any(|pack| pack == Pack::Now));
        assert!(packs().any(|pack| pack == Pack::Queued));
        let budgets = packs().filter_map(|pack| match pack {
            Pack::Within(budget) => Some(budget),
            _ => None,
        });
        assert!(budgets.clone().any(|b| b < Duration::from_micros(200)));
        assert!(budgets.clone().any(|b| b > Duration::from_millis(10)));
        assert!(budgets.max() <= Some(Duration::from_nanos(BUDGET_MAX_NS)));
    }
}
