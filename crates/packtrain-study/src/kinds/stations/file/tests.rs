use std::path::Path;

use packtrain_proto::class::Pack;
use packtrain_settings::toml_reader;
use packtrain_sim::stations::{ApplicationConfig, Kind};

use super::super::build::build;
use super::super::{ApplicationKind, Over, facts};
use super::*;

const WHOLE: &str = r#"
[run]
seconds = 10
ignore = "200ms"

[[segment]]
name = "switch"
kind = "switch"
rate = "1gbit"
delay = "1us"
queue = "512kb"
mtu = 9000
cut = "8s..9s:unseen"

[[segment]]
name = "hub"
kind = "hub"
rate = "10mbit"

[[station]]
name = "server"
links = [{ on = "switch", rate = "100mbit", cut = ["1s..2s"] }, { on = "switch", count = 1, rate = "100mbit" }, { on = "switch", cut = "none" }, "hub"]
pack = "500us on-backlog"
default_classes = false
balance = "round-robin"
liveness = "off"
hold_time = "1s"
repair = "20ms"
coded = false

[[station]]
name = "clients"
count = "3"
mode = "plain"
links = ["hub"]

[[station]]
name = "aggregators"
count = 2
mode = "dfap"
pack = "dfap-random"
dfap_tick = "1ms"
dfap_strict = true
links = ["hub"]

[[application]]
name = "stream"
kind = "bulk"
from = "clients"
to = ["server", "aggregators"]
preset = "linux"

[[application]]
name = "pings"
kind = "ping-pong"
from = "server"
to = "clients"
count = 2
bytes = "1kb"
turnaround = "20us"
starts = "300ms"

[[application]]
name = "files"
kind = "transactions"
server = "server"
clients = ["clients", "aggregators"]
at_once = 8
over = "udp"
timeout = "1s"
file = "10b..500b"
service = "100us"
think = "50us"
transaction = [{ name = "read", weight = 3, steps = ["120b > 120b", "120b > 120b+file"] }]

[[application]]
name = "copies"
kind = "copies"
server = "server"
reader = "server2"
disk_rate = "320mbit"
disk_seek = "1ms"
file = "1mb"
copies = 8
remote = 3
together = true

[[station]]
name = "server2"
links = ["switch"]
"#;

fn settings(text: &str) -> Result<StationsSettings, String> {
    let read = toml_reader::read(Path::new("s.toml"), text, |table, errors| {
        let settings = read(table, errors);
        table.refuse_the_rest(errors);
        settings
    });
    read.map_err(|errors| errors.to_string())
}

fn changed(from: &str, to: &str) -> String {
    assert!(WHOLE.contains(from), "{from}");
    settings(&WHOLE.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn everything_that_the_file_says_is_in_the_settings() {
    let all = settings(WHOLE).unwrap();
    assert_eq!(all.segments[0].mtu, 9000);
    let cut = all.segments[0].cuts[0];
    assert_eq!((cut.until, cut.seen), (Some(Duration::from_secs(9)), false));
    assert_eq!(
        all.segments[1].kind,
        SegmentKind::Hub {
            rate_bps: 10_000_000
        }
    );
    let server = &all.stations[0];
    assert_eq!(server.links.len(), 4);
    assert_eq!(server.links[1].rate, "100mbit".parse().ok());
    assert!(server.links[0].cuts[0].seen && server.links[2].cuts.is_empty());
    let line = server.packtrain.unwrap();
    assert_eq!(line.pack.pack, Pack::Within(Duration::from_micros(500)));
    assert!(line.pack.on_backlog && !line.default_classes && !line.coded);
    assert_eq!((line.balance, line.liveness), (Balance::RoundRobin, None));
    assert_eq!(
        (line.hold_time, line.repair),
        (Duration::from_secs(1), Some(Duration::from_millis(20)))
    );
    assert_eq!(
        (all.stations[1].count, all.stations[1].packtrain),
        (3, None)
    );
    let dfap = all.stations[2].packtrain.unwrap();
    assert_eq!((dfap.mode, dfap.dfap_strict), (Mode::Dfap, true));
    assert_eq!(dfap.dfap_tick, Duration::from_millis(1));
    let ApplicationKind::Transactions {
        over,
        file_bytes,
        kinds,
        ..
    } = &all.applications[2].kind
    else {
        panic!("{:?}", all.applications[2]);
    };
    let timeout = Duration::from_secs(1);
    assert_eq!((*over, *file_bytes), (Over::Udp { timeout }, (10, 500)));
    assert_eq!((kinds[0].weight, kinds[0].steps.len()), (3, 2));
}

#[test]
fn each_link_has_a_port_of_its_own_with_its_rate_and_its_cuts() {
    let built = build(&settings(WHOLE).unwrap(), 1);
    let setup = &built.setup;
    let ports = |station: usize| {
        let ports = setup.stations[station].ports.iter();
        ports
            .map(|port| (port.segment, port.port))
            .collect::<Vec<_>>()
    };
    assert_eq!(ports(0), [(0, 0), (0, 1), (0, 2), (1, 0)]);
    assert_eq!(ports(3), [(1, 3)]);
    assert_eq!(ports(6), [(0, 3)]);
    assert_eq!(built.stations, [0..1, 1..4, 4..6, 6..7]);
    let rates = setup.segments[0]
        .up
        .iter()
        .map(|wire| wire.rate.unwrap().bps);
    let rates: Vec<u64> = rates.map(|bps| bps / 1_000_000).collect();
    assert_eq!(rates, [100, 100, 1000, 1000]);
    assert_eq!(setup.segments[1].up.len(), 6);
    let cuts = setup.segments[0].cut.outages();
    let ports: Vec<Option<usize>> = cuts.iter().map(|cut| cut.port).collect();
    assert_eq!(ports, [Some(0), None]);
    assert!(matches!(setup.stations[1].kind, Kind::Plain));
    let ApplicationConfig::Bulk(stream) = &setup.applications[0] else {
        panic!("{:?}", setup.applications[0]);
    };
    assert_eq!(stream.streams.len(), 9);
    assert!(stream.ends.sender.cubic);
}

#[test]
fn what_does_not_fit_together_is_told_at_its_line() {
    for (from, to, error) in [
        (
            "kind = \"switch\"",
            "kind = \"router\"",
            "s.toml:8: segment.kind: \"router\" is none of cable, switch, hub",
        ),
        (
            "mtu = 9000",
            "mtu = 1000",
            "s.toml:12: segment.mtu: \"1000\" is not a whole number from 1500 to 65521",
        ),
        (
            "8s..9s:unseen",
            "9s..8s",
            "s.toml:13: segment.cut: \"9s..8s\" is no cut: write it as in 5s..10s, 5s.. for good, or 5s..10s:unseen where cards keep their carrier",
        ),
        (
            "8s..9s:unseen",
            "1.5s..9s",
            "s.toml:13: segment.cut: at 1.5 s something else of the segment is still cut: one is over before the next begins",
        ),
        (
            "rate = \"10mbit\"",
            "rate = \"10mbit\"\ndelay = \"1us\"",
            "s.toml:19: segment.delay: unknown key (known here: cut, kind, name, rate)",
        ),
        (
            "kind = \"hub\"",
            "kind = \"cable\"",
            "s.toml:16: segment.name: hub is a cable, which has two ends, and 6 are plugged in",
        ),
        (
            "on = \"switch\", count = 1",
            "on = \"swich\", count = 2",
            "s.toml:22: station.links.on: there is no segment swich (near it: switch)",
        ),
        (
            "count = 1, rate",
            "count = 17, rate",
            "s.toml:22: station.links.count: \"17\" is not a whole number from 0 to 16",
        ),
        (
            "mode = \"plain\"\nlinks = [\"hub\"]",
            "mode = \"plain\"\nlinks = [\"hub\", \"switch\"]",
            "s.toml:35: station.links: one without packtrain has one link, and not 2",
        ),
        (
            "mode = \"plain\"\nlinks = [\"hub\"]",
            "mode = \"plain\"\nlinks = [{ on = \"hub\", rate = \"1gbit\" }]",
            "s.toml:35: station.links.rate: a hub's links all have the hub's rate",
        ),
        (
            "mode = \"plain\"\nlinks = [\"hub\"]",
            "mode = \"plain\"",
            "s.toml:31: station.links: is missing: where it is plugged in, as in links = [\"hub\"]",
        ),
        (
            "mode = \"plain\"",
            "mode = \"packets\"",
            "s.toml:34: station.mode: \"packets\" is none of plain, trains, dfap",
        ),
        (
            "\"500us on-backlog\"",
            "\"later\"",
            "s.toml:23: station.pack: \"later\" does not say when frames leave: queued, now, how long they may wait, as in 500us, scaled 2ms, auto, dfap-random or dfap-straight",
        ),
        (
            "liveness = \"off\"",
            "liveness = \"3s\"",
            "s.toml:26: station.liveness: \"3s\" is not a time from 10ms to 2s",
        ),
        (
            "name = \"clients\"",
            "name = \"hub\"",
            "s.toml:32: station.name: hub is the name of two",
        ),
        (
            "from = \"clients\"",
            "from = \"client\"",
            "s.toml:49: application.from: there is no station client (near it: clients)",
        ),
        (
            "preset = \"linux\"",
            "size = 9000",
            "s.toml:51: application.size: stations' packets have 1500 bytes at most: an mss of 1460",
        ),
        (
            "server = \"server\"\nclients",
            "server = \"clients\"\nclients",
            "s.toml:66: application.server: clients are 3: it is one alone",
        ),
        (
            "10b..500b",
            "10b..2kb",
            "s.toml:71: application.file: with a file there are datagrams of 2168 bytes, and 1472 fit into a packet: less, or over = \"tcp\"",
        ),
        (
            "120b > 120b+file",
            "120b, 120b",
            "s.toml:74: transaction.steps: \"120b, 120b\" is no request with its answer: write it as in 120b > 120b, with +file behind what the file goes with",
        ),
        (
            "remote = 3",
            "remote = 9",
            "s.toml:85: application.remote: \"9\" is not a whole number from 0 to 8",
        ),
        (
            "reader = \"server2\"",
            "reader = \"server\"",
            "s.toml:80: application.reader: the other host is another one than the server",
        ),
        (
            "kind = \"bulk\"",
            "kind = \"stream\"",
            "s.toml:48: application.kind: \"stream\" is none of bulk, flood, ping-pong, transactions, copies",
        ),
        (
            "turnaround",
            "turn",
            "s.toml:60: application.turn: unknown key (known here: auto, backpressure, bytes, congestion, count, counting, delayed_ack, detection, ecn, from, halving, hystart, initial_window, kind, mss, name, preset, size, spacing, ssthresh, starts, tail_probe, to, turnaround, window)",
        ),
        (
            "[[segment]]\nname = \"switch\"",
            "[[segments]]\nname = \"switch\"",
            "s.toml:6: segments: unknown key (known here: application, run, segment, station)",
        ),
    ] {
        let errors = changed(from, to);
        assert!(
            errors.lines().any(|line| line == error),
            "{from} -> {to}:\n{errors}\n{error}"
        );
    }
}

#[test]
fn what_could_not_be_read_is_the_only_mistake_of_those_who_name_it() {
    assert_eq!(
        changed("kind = \"hub\"", "kind = \"bus\""),
        "s.toml:17: segment.kind: \"bus\" is none of cable, switch, hub"
    );
    assert_eq!(
        changed("name = \"clients\"", "name = \"cli-ents\""),
        "s.toml:32: station.name: \"cli-ents\" is no name: letters, digits and _, beginning with a letter, at most 32"
    );
    let nothing = settings("[run]\nseconds = 1\n").unwrap_err();
    assert!(
        nothing.contains("segment: there is at least one [[segment]]"),
        "{nothing}"
    );
}

#[test]
fn facts_are_of_those_that_have_them() {
    let all = settings(WHOLE).unwrap();
    let knows = |fact: &str, of: &str| facts::knows(&all, fact, &[of]);
    for (fact, of) in [
        ("goodput", "stream"),
        ("time_p99", "files"),
        ("again", "files"),
        ("frames", "switch"),
        ("frames", "clients"),
        ("collisions", "hub"),
        ("share_4", "server"),
        ("jain", "stream"),
    ] {
        assert_eq!(knows(fact, of), Ok(()), "{fact}({of})");
    }
    for (fact, of, error) in [
        (
            "done",
            "stream",
            "stream has no done (known here: pings, files, copies)",
        ),
        ("again", "pings", "pings has no again (known here: files)"),
        (
            "collisions",
            "switch",
            "switch has no collisions (known here: hub)",
        ),
        ("share_5", "server", "nothing here has share_5: not server"),
    ] {
        assert_eq!(knows(fact, of).unwrap_err(), error);
    }
}

#[test]
fn nobody_asks_himself_and_who_sends_to_somebody_is_plugged_in_where_he_is() {
    let errors = changed(
        "clients = [\"clients\", \"aggregators\"]",
        "clients = [\"clients\", \"server\"]",
    );
    let error = "application.clients: the server is none of its clients";
    assert!(errors.contains(error), "{errors}");
    for (from, to, error) in [
        (
            "to = [\"server\", \"aggregators\"]",
            "to = [\"server\", \"server2\"]",
            "application.to: clients and server2",
        ),
        (
            "name = \"server2\"\nlinks = [\"switch\"]",
            "name = \"server2\"\nlinks = [\"far\"]\n[[segment]]\nname = \"far\"\nkind = \"switch\"",
            "application.reader: server and server2",
        ),
    ] {
        let errors = changed(from, to);
        let error = format!("{error} have no segment in common");
        assert!(errors.contains(&error), "{errors}");
    }
}
