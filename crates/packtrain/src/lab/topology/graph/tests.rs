use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;

use super::super::check::Contradiction;
use super::super::options::TopologyOptions;
use super::super::{Host, Node, NodeKind, file, ready};
use super::layout::layout;
use super::*;

fn drawing(name: &str) -> String {
    text::draw(&ready::find(name).unwrap(), None)
}

/// The names of everything in a topology.
fn names(topology: &Topology) -> Vec<String> {
    let hosts = topology.hosts.iter().map(|host| host.name.to_string());
    let nodes = topology.nodes.iter().map(|node| node.name.to_string());
    let wires = topology.wires.iter().map(|wire| wire.name.clone());
    hosts.chain(nodes).chain(wires).collect()
}

/// The names of its elements, if each is closed where it must be.
fn elements(xml: &str) -> Vec<&str> {
    let mut open = Vec::new();
    let mut all = Vec::new();
    let mut rest = xml;
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text:?}");
        assert!(
            !open.is_empty() || text.trim().is_empty(),
            "{text:?} outside"
        );
        let entities = text.split('&').skip(1);
        for entity in entities {
            let name = entity.split_once(';').expect("an entity ends").0;
            assert!(["amp", "lt", "gt", "quot"].contains(&name), "{name}");
        }
        let (tag, after) = after.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let name = tag.split([' ', '/']).next().expect("a tag has a name");
        all.push(name);
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(
        open.is_empty() && rest.trim().is_empty(),
        "{open:?} {rest:?}"
    );
    all
}

#[test]
fn cables_between_two_hosts_are_drawn_below_each_other() {
    let expected = "
┌───┐                 ┌───┐
│ a ├─ a-b.0 100mbit ─┤ b │
│   ├─ a-b.1 20mbit ──┤   │
└───┘                 └───┘
";
    assert_eq!(drawing("unequal"), expected.trim_start());
}

#[test]
fn a_switch_stands_in_the_middle_and_a_plain_host_is_called_so() {
    let expected = "
┌───┐                 ╔═══╗
│ a ├─ a-s.0 100mbit ─╢   ║                 ┌───────┐
└───┘                 ║ s ╟─ c-s.0 100mbit ─┤   c   │
┌───┐                 ║   ║                 │ plain │
│ b ├─ b-s.0 100mbit ─╢   ║                 └───────┘
└───┘                 ╚═══╝
";
    assert_eq!(drawing("mixed"), expected.trim_start());
}

#[test]
fn what_is_too_wide_for_a_terminal_goes_below_its_wire() {
    let expected = "
┌───┐                ╔════╗                      ╔════╗                ┌───┐
│ a ├─ a-r1.0 1gbit ─╢ r1 ╟─ r1-r2.0 599mbit:ip ─╢ r2 ╟─ r2-b.0 1gbit ─┤ b │
└───┘                ╚════╝  99ms                ╚════╝                └───┘
";
    assert_eq!(drawing("lfn-gbe"), expected.trim_start());
}

#[test]
fn a_hub_says_its_rate() {
    let expected = "
┌───┐         ┏━━━━━━━━┓         ┌───┐
│ a ├─ a-h.0 ─┨        ┠─ c-h.0 ─┤ c │
└───┘         ┃   h    ┃         └───┘
┌───┐         ┃ 10mbit ┃         ┌───┐
│ b ├─ b-h.0 ─┨        ┠─ d-h.0 ─┤ d │
└───┘         ┗━━━━━━━━┛         └───┘
";
    assert_eq!(drawing("hub"), expected.trim_start());
}

#[test]
fn wires_that_cannot_be_straight_have_corners_and_cross() {
    let options = TopologyOptions {
        hosts: 3,
        ..TopologyOptions::default()
    };
    let expected = "
                                   ╔════╗
                       ┌───────────╢    ║
                       │ ┌─────────╢ s1 ║
┌───┐                  │ │   ┌─────╢    ║
│ a ├─ a-s1.0 100mbit ─┘ │   │     ╚════╝
│   ├─ a-s2.0 100mbit ───┼───┼───┐ ╔════╗
└───┘                    │   │   └─╢    ║
┌───┐                    │ ┌─┼─────╢ s2 ║
│ b ├─ b-s1.0 100mbit ───┘ │ │ ┌───╢    ║
│   ├─ b-s2.0 100mbit ─────┘ │ │   ╚════╝
└───┘                        │ │
┌───┐                        │ │
│ c ├─ c-s1.0 100mbit ───────┘ │
│   ├─ c-s2.0 100mbit ─────────┘
└───┘
";
    let topology = options.topology().unwrap();
    assert_eq!(text::draw(&topology, None), &expected[1..]);
}

#[test]
fn two_hosts_at_two_switches_have_wires_that_cross() {
    let toml = "
        host = [{ name = 'a' }, { name = 'b' }]
        switch = [{ name = 's' }, { name = 't' }]
        wire = [
            { ends = ['a', 's'] }, { ends = ['a', 't'] },
            { ends = ['b', 's'] }, { ends = ['b', 't'] },
        ]
    ";
    let topology = file::parse(Path::new("net.toml"), toml).unwrap();
    let expected = "
                      ╔═══╗
              ┌───────╢ s ║
┌───┐         │ ┌─────╢   ║
│ a ├─ a-s.0 ─┘ │     ╚═══╝
│   ├─ a-t.0 ───┼───┐ ╔═══╗
└───┘           │   └─╢ t ║
┌───┐           │ ┌───╢   ║
│ b ├─ b-s.0 ───┘ │   ╚═══╝
│   ├─ b-t.0 ─────┘
└───┘
";
    assert_eq!(text::draw(&topology, None), &expected[1..]);
}

#[test]
fn directions_that_differ_have_arrows_and_parts_stand_below_each_other() {
    let toml = "
        host = [{ name = 'a' }, { name = 'b' }, { name = 'c' }, { name = 'd' }, { name = 'e' }]
        [[wire]]
        ends = ['a', 'b']
        [[wire]]
        ends = ['b', 'c']
        [[wire]]
        ends = ['c', 'a']
        delay = '5ms'
        from.a.loss = '1%'
        from.c.rate = '5mbit'
        [[wire]]
        ends = ['d', 'e']
    ";
    let topology = file::parse(Path::new("net.toml"), toml).unwrap();
    let expected = "
┌───┐             ┌───┐         ┌───┐
│   ├─ a-b.0 ─────┤ b ├─ b-c.0 ─┤   │
│ a │             └───┘         │ c │
│   │                           │   │
│   ├─ c-a.0 5ms ───────────────┤   │
└───┘  → loss 1%                └───┘
       ← 5mbit

┌───┐         ┌───┐
│ d ├─ d-e.0 ─┤ e │
└───┘         └───┘
";
    assert_eq!(text::draw(&topology, None), expected.trim_start());
}

/// Two cables: one that is used, one that is broken in three ways.
fn state_of_pair_2(broken: [Carrier; 2]) -> (Topology, State) {
    let topology = ready::find("pair-2").unwrap();
    let mut state = State::default();
    for wire in &topology.wires {
        let directions: [DirectionState; 2] = wire.directions.each_ref().map(Into::into);
        state.wires.insert(wire.name.clone(), directions);
    }
    let used = state.wires.get_mut("a-b.0").unwrap();
    used[0].bits_per_second = Some(93_140_000);
    used[0].utilisation = Some(0.953);
    used[1].delay_ns = 1_500_000;
    let directions = state.wires.get_mut("a-b.1").unwrap();
    for (direction, carrier) in directions.iter_mut().zip(broken) {
        direction.carrier = carrier;
    }
    (topology, state)
}

#[test]
fn a_state_is_drawn_instead_of_what_was_described() {
    let (topology, state) = state_of_pair_2([Carrier::Cut; 2]);
    let expected = "
┌───┐                      ┌───┐
│   ├─ a-b.0 100mbit ──────┤   │
│ a │  → now 93.1mbit 95%  │ b │
│   │  ← 1.5ms             │   │
│   ├╌ a-b.1 CUT 100mbit ╌╌┤   │
└───┘                      └───┘
";
    assert_eq!(text::draw(&topology, Some(&state)), expected.trim_start());
    let (topology, state) = state_of_pair_2([Carrier::Up, Carrier::Silent]);
    let drawing = text::draw(&topology, Some(&state));
    assert!(drawing.contains("├─ a-b.1 100mbit ─"), "{drawing}");
    assert!(drawing.contains("  ← SILENT "), "{drawing}");
}

#[test]
fn a_state_survives_its_way_through_json() {
    let (_, state) = state_of_pair_2([Carrier::Up, Carrier::Silent]);
    let json = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state);
}

#[test]
fn what_is_lost_in_many_ways_is_said_as_a_share() {
    let words = |loss: &str| {
        let direction = DirectionState {
            loss: Some(loss.parse().unwrap()),
            ..DirectionState::default()
        };
        direction.words()[3].clone().unwrap()
    };
    assert_eq!(words("1%"), "loss 1%");
    assert_eq!(words("every:3"), "loss 33.3333%");
    assert_eq!(words("gilbert:1%,24%,0%,50%"), "loss 2%");
    assert_eq!(words("frames:3,7"), "loss frames:3,7");
    let rates = [950, 64_000, 93_140_000, 1_000_000_000].map(short_rate);
    assert_eq!(rates, ["950bit", "64kbit", "93.1mbit", "1gbit"]);
}

#[test]
fn every_ready_topology_fits_a_terminal_and_names_all_that_it_has() {
    for name in ready::names() {
        let topology = ready::find(name).unwrap();
        let drawing = text::draw(&topology, None);
        assert!(
            drawing.lines().all(|line| line.chars().count() <= COLUMNS),
            "{drawing}"
        );
        for name in names(&topology) {
            assert!(drawing.contains(&format!(" {name} ")), "{name}\n{drawing}");
        }
    }
}

#[test]
fn topologies_of_every_size_can_be_drawn() {
    for hosts in [2, 3, 5, 8, 26, 64] {
        for links in [1, 2, 5, 16] {
            let options = TopologyOptions {
                hosts,
                links,
                ..TopologyOptions::default()
            };
            let topology = options.topology().unwrap();
            let drawing = text::draw(&topology, None);
            // Once for all names: the largest drawing has some tens of megabytes.
            let words: BTreeSet<&str> = drawing.split(' ').collect();
            for name in names(&topology) {
                assert!(words.contains(&*name), "{name} of {hosts} and {links}");
            }
        }
    }
}

#[test]
fn an_svg_is_well_formed_and_names_all_that_it_draws() {
    for name in ready::names() {
        let topology = ready::find(name).unwrap();
        let svg = svg::draw(&topology, None);
        let elements = elements(&svg);
        let count = |name| elements.iter().filter(|other| **other == name).count();
        assert_eq!(elements[0], "svg");
        assert_eq!(count("polyline"), topology.wires.len());
        for name in names(&topology) {
            let alone = svg.contains(&format!(">{name}</text>"));
            assert!(alone || svg.contains(&format!(">{name} ")), "{name}\n{svg}");
        }
        assert!(!svg.contains("href") && !svg.contains("url("));
    }
}

#[test]
fn an_svg_escapes_what_people_write() {
    let mut topology = ready::find("pair").unwrap();
    topology.name = "a < \"b\" & \u{7}c".into();
    topology.about = Some("</desc><script>".into());
    let svg = svg::draw(&topology, None);
    assert!(svg.contains("<title>a &lt; &quot;b&quot; &amp;  c</title>"));
    assert!(!elements(&svg).contains(&"script"));
}

/// The steps from cell to cell that a wire takes.
fn steps(points: &[(usize, usize)]) -> Vec<[(usize, usize); 2]> {
    let mut steps = Vec::new();
    for pair in points.windows(2) {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        steps.extend((x0..x1).map(|x| [(x, y0), (x + 1, y0)]));
        steps.extend((y0.min(y1)..y0.max(y1)).map(|y| [(x0, y), (x0, y + 1)]));
    }
    steps
}

proptest! {
    #![proptest_config(ProptestConfig {
        // About one in 300 has wires that change places.
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn however_hosts_are_wired_no_wire_lies_on_another_or_on_a_foreign_label(
        hosts in 2..7usize,
        switches in 0..4usize,
        wires in proptest::collection::vec((0..10usize, 1..10usize, any::<bool>()), 1..16),
    ) {
        let mut topology = Topology::new("net");
        for i in 0..hosts {
            topology.hosts.push(Host {
                name: format!("h{i}").parse().unwrap(),
                packtrain: true,
                up: Vec::new(),
            });
        }
        for i in 0..switches {
            topology.nodes.push(Node {
                name: format!("s{i}").parse().unwrap(),
                kind: NodeKind::Switch,
            });
        }
        for (from, distance, one_way) in wires {
            let [from, to] = [from, from + distance].map(|i| i % (hosts + switches));
            if from == to {
                continue;
            }
            let name = |i: usize| match i.checked_sub(hosts) {
                None => topology.hosts[i].name.clone(),
                Some(i) => topology.nodes[i].name.clone(),
            };
            let [from, to] = [from, to].map(name);
            let mut directions: [Direction; 2] = Default::default();
            directions[0].wire.delay_ns = 5_000_000;
            directions[1].wire.delay_ns = if one_way { 0 } else { 5_000_000 };
            topology.connect(&from, &to, 1500, directions);
            if topology.check().iter().any(|(_, wrong)| matches!(wrong, Contradiction::Loop(..))) {
                topology.wires.pop();
            }
        }
        let layout = layout(&topology, None);
        let mut used = BTreeMap::new();
        for line in &layout.lines {
            for step in steps(&line.points) {
                let before = used.insert(step, line.wire);
                prop_assert_eq!(before, None, "{}", text::draw(&topology, None));
            }
        }
        for line in &layout.lines {
            for (i, label) in line.label.iter().enumerate() {
                let y = line.points[0].1 + i;
                for x in line.label_x..line.label_x + label.chars().count() {
                    let on = used.get(&[(x, y), (x + 1, y)]).copied();
                    prop_assert!(on.is_none_or(|wire| wire == line.wire));
                }
            }
        }
    }
}
