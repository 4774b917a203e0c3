use super::super::direction::{Loss, Port, QueueLimit};
use super::*;

fn topology(text: &str) -> Topology {
    parse(Path::new("net.toml"), text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> String {
    parse(Path::new("net.toml"), text).unwrap_err().to_string()
}

/// Two hosts before it, so that it can be about wires alone. The wire begins on line 3.
fn wire_errors(text: &str) -> String {
    errors(&format!(
        "host = [{{ name = 'a' }}, {{ name = 'b' }}]\nswitch = [{{ name = 's' }}]\n[[wire]]\n{text}"
    ))
}

#[test]
fn a_file_describes_hosts_nodes_and_wires() {
    let topology = topology(
        r#"
        about = "Two hosts, links of 100 and 20 Mbit/s"
        seed = 7
        [[host]]
        name = "a"
        up = ["--balance", "round-robin"]
        [[host]]
        name = "b"
        packtrain = false
        [[switch]]
        name = "s"
        [[wire]]
        ends = ["a", "b"]
        rate = "100mbit"
        delay = "5ms"
        mtu = 9000
        [wire.from.a]
        rate = "20mbit"
        loss = "1%"
        port_queue = 50
        [[wire]]
        ends = ["s", "b"]
        queue = "100p"
        "#,
    );
    assert_eq!(topology.name, "net");
    assert_eq!(
        topology.about.as_deref(),
        Some("Two hosts, links of 100 and 20 Mbit/s")
    );
    assert_eq!(topology.seed, 7);
    assert_eq!(topology.hosts[0].up, ["--balance", "round-robin"]);
    assert!(topology.hosts[0].packtrain && !topology.hosts[1].packtrain);
    assert_eq!(topology.nodes[0].kind, NodeKind::Switch);

    let wire = topology.wire("a-b.0").unwrap();
    assert_eq!(wire.mtu, 9000);
    let [there, back] = &wire.directions;
    assert_eq!(
        there.port,
        Port {
            rate_bps: Some(20_000_000),
            queue_packets: Some(50)
        }
    );
    assert_eq!(there.wire.rate, "20mbit".parse().ok());
    assert_eq!(there.wire.delay_ns, 5_000_000);
    assert_eq!(there.wire.loss, Some(Loss::Independent { share: 0.01 }));
    assert_eq!(
        back.port,
        Port {
            rate_bps: Some(100_000_000),
            queue_packets: Some(1000)
        }
    );
    assert_eq!(back.wire.rate, "100mbit".parse().ok());
    assert_eq!(back.wire.loss, None);

    let [from_switch, from_host] = &topology.wire("s-b.0").unwrap().directions;
    assert_eq!(from_switch.port, Port::default());
    assert_eq!(from_switch.wire.rate, None);
    assert_eq!(from_host.wire.queue.limit, QueueLimit::Packets(100));
}

#[test]
fn hosts_that_are_described_once_are_wired_once() {
    let topology = topology(
        "[[host]]\nname = 'c'\ncount = 3\n[[switch]]\nname = 's'\n\
         [[wire]]\nends = ['c', 's']\ncount = 2\nrate = 1_000_000\n[wire.from.c]\nrate = 64_000\n",
    );
    let wires: Vec<&str> = topology.wires.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(
        wires,
        ["c1-s.0", "c1-s.1", "c2-s.0", "c2-s.1", "c3-s.0", "c3-s.1"]
    );
    for wire in &topology.wires {
        assert_eq!(wire.directions[0].wire.rate, "64kbit".parse().ok());
        assert_eq!(wire.directions[1].wire.rate, "1mbit".parse().ok());
    }
}

#[test]
fn parts_that_are_not_connected_are_allowed() {
    let topology = topology(
        "host = [{ name = 'a' }, { name = 'b' }, { name = 'c' }, { name = 'd' }]\n\
         wire = [{ ends = ['a', 'b'] }, { ends = ['c', 'd'] }]",
    );
    assert_eq!(topology.wires.len(), 2);
}

#[test]
fn all_mistakes_are_told_at_once_each_with_its_line_and_key() {
    assert_eq!(
        errors(
            "abuot = 'x'\nseed = -1\n[[host]]\nname = 'A'\npacktrain = 1\n[[host]]\nnmae = 'b'\n\
             [[hub]]\nname = 'h'\n[[wire]]\nends = ['a', 'b']\nrate = '5'\nloss = 'often'\n\
             mtu = 50\n[wire.from.c]\n[wire.from.a]\ndelay = 3\nspeed = 1\n"
        ),
        "net.toml:1: abuot: unknown key (known here: about, host, hub, seed, switch, wire)\n\
         net.toml:2: seed: -1 is not within 0 to 4294967295\n\
         net.toml:4: host.name: a name begins with a lower-case letter, \"A\" does not\n\
         net.toml:5: host.packtrain: expected true or false, found an integer\n\
         net.toml:6: host.name: is missing\n\
         net.toml:7: host.nmae: unknown key (known here: count, name, packtrain, up)\n\
         net.toml:8: hub.rate: is missing\n\
         net.toml:12: wire.rate: a rate of 5 is too small: at least 1kbit\n\
         net.toml:13: wire.loss: \"often\" is no loss: write it as in 1%, gilbert:1%,25%,0%,100%, \
         every:100 or frames:3,7\n\
         net.toml:14: wire.mtu: an MTU of 50 bytes is too small: at least 68\n\
         net.toml:15: wire.from.c: no end of this wire: it has a and b\n\
         net.toml:17: wire.from.a.delay: \"3\" is no time: write it as in 20ms, 5us or 2s\n\
         net.toml:18: wire.from.a.speed: unknown key (known here: bit_errors, corrupt, delay, \
         duplicate, jitter, loss, packets_per_second, port_queue, port_rate, queue, \
         queue_discipline, rate, reorder)"
    );
}

#[test]
fn a_wire_has_two_ends_that_are_names() {
    for (text, message) in [
        ("rate = 1000", "net.toml:3: wire.ends: is missing"),
        (
            "ends = 'a-b'",
            "net.toml:4: wire.ends: expected two names, as in [\"a\", \"b\"], found a string",
        ),
        (
            "ends = ['a']",
            "net.toml:4: wire.ends: a wire has two ends, this one has 1",
        ),
        (
            "ends = ['a', 3]",
            "net.toml:4: wire.ends: expected a string, found an integer",
        ),
    ] {
        assert_eq!(wire_errors(text), message);
    }
}

#[test]
fn tables_and_numbers_have_their_types_and_bounds() {
    assert_eq!(
        wire_errors("ends = ['a', 'b']\ncount = 17\nrate = true\nfrom = 3"),
        "net.toml:5: wire.count: 17 is not within 1 to 16\n\
         net.toml:6: wire.rate: expected a string or a number, found a boolean\n\
         net.toml:7: wire.from: expected a table, as in [wire.from.a], found an integer"
    );
    assert_eq!(
        errors("host = [{ name = 'a', count = 0 }, 3]\n"),
        "net.toml:1: host: expected a table, as in [[host]], found an integer\n\
         net.toml:1: host.count: 0 is not within 1 to 64\n\
         net.toml:1: host: a has no wire"
    );
    assert_eq!(
        errors("host = [{ name = 'longname', count = 2 }]\n"),
        "net.toml:1: host.count: a name has 1 to 8 characters, \"longname1\" has 9"
    );
}

#[test]
fn what_contradicts_itself_names_the_line_that_says_so() {
    assert_eq!(
        errors(""),
        "net.toml:1: host: a topology needs at least one host"
    );
    assert_eq!(
        wire_errors("ends = ['a', 'c']\n[[wire]]\nends = ['b', 'b']\n"),
        "net.toml:4: wire.ends: there is no c; there are a, b, s\n\
         net.toml:6: wire.ends: a wire from b to itself"
    );
    assert_eq!(
        wire_errors("ends = ['a', 's']\n[wire.from.s]\nport_queue = 5\n"),
        "net.toml:1: host: b has no wire\n\
         net.toml:6: wire.from.s.port_queue: s is no host, so it has no port of its own"
    );
}

#[test]
fn names_are_one_hosts_or_nodes_each() {
    assert_eq!(
        errors(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'a'\n[[host]]\nname = 'c'\ncount = 2\n\
             [[switch]]\nname = 'c'\n[[hub]]\nname = 'a'\nrate = '10mbit'\n\
             [[wire]]\nends = ['a', 'c']\n"
        ),
        "net.toml:4: host.name: a is the name of two\n\
         net.toml:6: host.name: c is the name of two\n\
         net.toml:11: hub.name: a is the name of two"
    );
}

#[test]
fn a_hub_has_one_rate_and_no_hub_beside_it() {
    assert_eq!(
        errors(
            "[[host]]\nname = 'a'\n[[hub]]\nname = 'h'\nrate = '10mbit'\n[[hub]]\nname = 'i'\n\
             rate = '20mbit'\n[[wire]]\nends = ['a', 'h']\nrate = '1mbit'\n\
             [[wire]]\nends = ['h', 'i']\n[[wire]]\nends = ['a', 'h']\nport_rate = '1mbit'"
        ),
        "net.toml:8: hub.rate: a hub has 10mbit or 100mbit, not 20mbit\n\
         net.toml:11: wire.rate: h has one rate for all, so a wire at it has none of its own\n\
         net.toml:13: wire.ends: h and i would be one shared medium: use one hub\n\
         net.toml:14: wire.rate: h has one rate for all, so a wire at it has none of its own"
    );
}

#[test]
fn switches_in_a_circle_are_refused() {
    let text = "host = [{ name = 'a' }]\n\
                switch = [{ name = 's' }, { name = 't' }, { name = 'u' }]\n\
                [[wire]]\nends = ['a', 's']\ncount = 2\n[[wire]]\nends = ['s', 't']\n\
                [[wire]]\nends = ['t', 'u']\n[[wire]]\nends = ['u', 's']\n";
    assert_eq!(
        errors(text),
        "net.toml:11: wire.ends: u and s are joined already by other wires: frames would circle \
         for ever, for there is no spanning tree here"
    );
}

#[test]
fn a_line_has_as_many_links_as_it_can() {
    assert_eq!(
        errors(
            "host = [{ name = 'a' }, { name = 'b', packtrain = false, up = ['--wait-links'] }]\n\
             [[wire]]\nends = ['a', 'b']\ncount = 16\n[[wire]]\nends = ['a', 'b']\n"
        ),
        "net.toml:1: host: a has 17 wires, a line has at most 16 links\n\
         net.toml:1: host.up: b does not run packtrain, so it takes no arguments for `packtrain \
         up`"
    );
}

#[test]
fn a_lab_has_at_most_64_hosts_and_a_wire_one_group() {
    let text = "[[host]]\nname = 'c'\ncount = 60\n[[host]]\nname = 'd'\ncount = 5\n\
                [[switch]]\nname = 's'\n[[wire]]\nends = ['c', 's']\n[[wire]]\nends = ['d', 's']\n";
    assert_eq!(
        errors(text),
        "net.toml:1: host: 65 hosts are named, a lab has at most 64"
    );
    assert_eq!(
        errors(&text.replace("ends = ['d', 's']", "ends = ['d', 'c']")),
        "net.toml:12: wire.ends: d and c are several each: one end of a wire may be"
    );
}
