//! Labs stand, are listed, and are gone after.

use serde_json::Value;

use super::world::World;

/// Every host pings every other by all its names that `names` gives.
fn assert_all_reach_all(world: &World, lab: &str, names: impl Fn(&Value) -> Vec<String>) {
    let document = world.document(lab);
    let hosts = document["hosts"].as_array().unwrap();
    for from in hosts {
        let others = hosts.iter().filter(|to| to["name"] != from["name"]);
        let to: Vec<String> = others.flat_map(&names).collect();
        // All at once: over long wires each takes its time.
        let script = format!(
            "for name in {}; do ping -c1 -W5 -q $name >/dev/null || echo $name & done; wait",
            to.join(" ")
        );
        let host = from["name"].as_str().unwrap();
        let silent = world.on(lab, host, &script);
        assert_eq!(silent, "", "of {lab}: what {host} does not reach");
    }
}

fn main_name(host: &Value) -> Vec<String> {
    vec![host["name"].as_str().unwrap().to_owned()]
}

/// The published schema lets documents of later versions have more fields; the one that this
/// version's documents are held to does not.
fn close(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(close);
            if map.contains_key("properties") {
                map.insert("additionalProperties".into(), Value::Bool(false));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

pub fn assert_as_the_schema_says(world: &World) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab.schema.json");
    let mut schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    close(&mut schema);
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let document = serde_json::from_str(&world.done("list --json")).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn without_arguments_two_hosts_stand_with_two_links_and_a_line_and_down_leaves_nothing() {
    live!();
    let world = World::new();
    let up = world.done("up");
    assert!(up.starts_with("lab stands after "), "{up}");
    assert!(up.contains(": 2 hosts, 2 wires\n"), "{up}");

    for (host, other) in [("a", "b"), ("b", "a")] {
        let line = world.on("lab", host, "ip -o link show pt0");
        assert!(line.contains(",UP"), "{line}");
        for name in [
            other.to_owned(),
            format!("{other}.eth0"),
            format!("{other}.eth1"),
            format!("{other}.ip6"),
        ] {
            // The first one, too: nothing is still on its way when `up` returns.
            let ping = world.try_on("lab", host, &format!("ping -c1 -W2 -q {name}"));
            assert_eq!(ping.code, 0, "{host} to {name}: {}{}", ping.out, ping.err);
        }
    }
    let list = world.done("list");
    for part in [
        "lab\n",
        "a     pt0 10.9.0.1  eth0 10.100.0.1  eth1 10.100.1.1\n",
        "\na-b.1  b > a  up     100mbit",
    ] {
        assert!(list.contains(part), "no {part:?} in {list}");
    }
    assert_as_the_schema_says(&world);

    let remains = world.remains("lab");
    assert_eq!(world.done("down"), "");
    remains.assert_gone(&world);
    assert_eq!(
        world.done("list"),
        "no lab stands here; `packtrain lab up` makes one\n"
    );
    assert_eq!(world.done("list --json"), "[]\n");
}

#[test]
fn three_hosts_without_packtrain_reach_each_other_by_every_name() {
    live!();
    let world = World::new();
    world.done("up --lab plain --hosts 3 --links 2 --no-packtrain");
    assert_all_reach_all(&world, "plain", |host| {
        let name = host["name"].as_str().unwrap();
        ["", ".ip6", ".eth0", ".eth1"]
            .map(|end| format!("{name}{end}"))
            .to_vec()
    });
    let lines = world.try_on("plain", "a", "ip link show pt0");
    assert!(lines.err.contains("does not exist"), "{lines:?}");
}

#[test]
fn a_lab_stands_as_its_file_describes_it() {
    live!();
    let world = World::new();
    world.write(
        "/run/mine.toml",
        "seed = 7\n\
         [[host]]\nname = 'left'\n\
         [[host]]\nname = 'right'\npacktrain = false\n\
         [[switch]]\nname = 's'\n\
         [[wire]]\nends = ['left', 's']\nrate = '20mbit'\n\
         [[wire]]\nends = ['right', 's']\nrate = '50mbit'\ndelay = '3ms'\n",
    );
    world.done("up --lab filed /run/mine.toml");
    assert_all_reach_all(&world, "filed", main_name);
    let topology = &world.document("filed")["topology"];
    assert_eq!(topology["seed"], 7);
    assert_eq!(topology["wires"][0]["name"], "left-s.0");
    assert_eq!(
        topology["wires"][0]["directions"][1]["wire"]["rate"]["bps"],
        20_000_000
    );
    assert_eq!(
        topology["wires"][1]["directions"][0]["wire"]["delay_ns"],
        3_000_000
    );
    assert!(world.on("filed", "left", "ip -br link").contains("pt0"));
    assert!(!world.on("filed", "right", "ip -br link").contains("pt0"));
}

#[test]
fn a_host_alone_at_a_switch_is_a_lab_too() {
    live!();
    let world = World::new();
    world.write(
        "/run/one.toml",
        "[[host]]\nname = 'a'\n[[switch]]\nname = 's'\n[[wire]]\nends = ['a', 's']\n",
    );
    let up = world.done("up --lab one /run/one.toml");
    assert!(up.contains("exec --lab one a -- packtrain status"), "{up}");
    assert!(!up.contains("ping"), "{up}");
}

#[test]
fn every_ready_topology_stands_and_its_hosts_reach_each_other() {
    live!();
    let world = World::new();
    let ready = world.done("up --ready");
    let names: Vec<&str> = ready
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() >= 10, "{ready}");
    // Much of the time is waiting.
    std::thread::scope(|scope| {
        for names in names.chunks(names.len().div_ceil(3)) {
            scope.spawn(move || {
                let world = World::new();
                names.iter().for_each(|name| assert_stands(&world, name));
            });
        }
    });
}

fn assert_stands(world: &World, name: &str) {
    let up = world.done(&format!("up {name} --lab ready"));
    assert_all_reach_all(world, "ready", main_name);
    assert_as_the_schema_says(world);
    let list = world.done("list");
    for line in up.lines().chain(list.lines()) {
        assert!(line.chars().count() <= 80, "{name}: too long: {line}");
    }
    world.done("down");
    world.assert_empty(name);
}

#[test]
fn two_labs_stand_side_by_side_and_the_last_one_takes_the_common_directories_with_it() {
    live!();
    let world = World::new();
    world.done("up --lab one --links 1 --rate none --no-packtrain");
    world.done("up --lab two --links 1 --rate none --no-packtrain");
    // The same addresses, and other hosts.
    for (lab, mark) in [("one", "first"), ("two", "second")] {
        world.on(lab, "b", &format!("ip link set lo alias {mark}"));
        assert!(world.pings(lab, "a", "b"));
    }
    assert!(
        world
            .on("one", "b", "ip link show lo")
            .contains("alias first")
    );
    let list = world.done("list");
    assert!(
        list.starts_with("one\n") && list.contains("\ntwo\n"),
        "{list}"
    );

    let several = "error: several labs stand: one, two\n       say which: --lab NAME\n";
    for line in [
        "exec a -- true",
        "down",
        "set a-b.0 --delay 1ms",
        "cut a-b.0",
        "graph",
    ] {
        world.fails(line, 2, several);
    }
    world.fails(
        "up --lab one",
        10,
        "error: a lab named one stands already\n       packtrain lab down one, or another name: \
         --lab NAME\n",
    );
    assert!(
        world.pings("one", "a", "b"),
        "the refused one has not touched it"
    );

    world.done("down one");
    assert!(world.pings("two", "a", "b"));
    world.fails(
        "exec --lab one a -- true",
        9,
        "error: no lab is named one\n       there are: two\n",
    );
    world.done("down --lab two");
    world.assert_empty("after both");
}

#[test]
fn a_namespace_of_somebody_else_is_left_alone() {
    live!();
    let world = World::new();
    world.shell("ip netns add pt-mine-b");
    world.fails(
        "up --lab mine",
        1,
        "error: a network namespace named pt-mine-b is there already, and belongs to no lab\n",
    );
    assert_eq!(
        world
            .shell("ls /run/netns; ls -d /etc/netns /run/packtrain/labs")
            .out,
        "pt-mine-b\n"
    );
    world.shell("ip netns delete pt-mine-b");
}

#[test]
fn a_directory_etc_netns_that_was_there_stays() {
    live!();
    let world = World::new();
    world.shell("mkdir /etc/netns");
    world.done("up --lab netns --links 1 --no-packtrain");
    world.done("down");
    assert_eq!(
        world.shell("ls -d /etc/netns /etc/netns/*").out,
        "/etc/netns\n"
    );
}

#[test]
fn what_is_listed_fits_in_80_columns_and_is_aligned() {
    live!();
    let world = World::new();
    world.done("up --lab wide --no-packtrain");
    world.done(
        "set a-b.0 --rate 10mbit --delay 20ms --jitter normal:1ms --loss 20% --bit-errors 1e-9",
    );
    world.done(
        "set a-b.1 --loss gilbert:1%,25%,0%,50% --duplicate 1% --reorder 1%:1ms --corrupt 1%",
    );
    world.done("set a-b.1 --packets-per-second 5000:64 --queue 50p --queue-discipline codel");
    world.on("wide", "a", "ping -f -c60 -q b.eth0 >/dev/null");
    world.on("wide", "a", "ping -f -c60 -q b.eth1 >/dev/null");
    let list = world.done("list");
    assert!(list.contains("lost"), "{list}");
    let wires: Vec<&str> = list
        .lines()
        .skip_while(|line| !line.starts_with("WIRE"))
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(wires.len(), 5, "{list}");
    let delay = wires[0].find("DELAY").expect("a column of delays");
    assert!(wires[1][delay..].starts_with("20ms +normal:1ms"), "{list}");
    for line in &wires[1..] {
        assert!(
            line[..delay].ends_with(' ') && !line[delay..].starts_with(' '),
            "{list}"
        );
    }
    for line in list.lines() {
        assert!(line.chars().count() <= 80, "too long: {line}\n{list}");
    }
    assert_as_the_schema_says(&world);
}

#[test]
fn every_discipline_of_a_queue_is_set_and_listed_as_it_was_said() {
    live!();
    let world = World::new();
    world.done("up --lab queues --links 1 --no-packtrain --queue-discipline drr:19500b,1250kb");
    for (said, listed) in [
        ("", "drr:19500b,1250kb"),
        ("drr", "drr:1514b"),
        ("fq-codel:ecn", "fq-codel:1514b,5ms,100ms,ecn"),
        ("short-first", "short-first:50kb"),
        ("red:100kb,300kb,10%,ecn", "red:100kb,300kb,10%,ecn"),
        ("codel:ecn", "codel:5ms,100ms,ecn"),
        ("ecn:30kb", "ecn:30kb"),
    ] {
        if !said.is_empty() {
            world.done(&format!("set a-b.0 --queue-discipline {said}"));
        }
        let list = world.done("list");
        let shown = format!("queue-discipline {listed}");
        assert!(list.contains(&shown), "{said}: {list}");
        assert_as_the_schema_says(&world);
    }
}
