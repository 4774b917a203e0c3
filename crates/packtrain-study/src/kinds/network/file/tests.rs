use std::path::Path;

use packtrain_settings::toml_reader;

use super::super::tcp::{Congestion, Counting, Detection, Halving, Preset};
use super::*;
use packtrain_sim::workload::Process;

const WHOLE: &str = r#"
[run]
seconds = "60"
ignore = 10
sample = "100ms"

[[line]]
name = "bottleneck"
rate = "1gbit:ip"
queue = "12500000b"
queue_discipline = "drr:19500b,1250000b"
delay = "50ms"
processing = "12us:masked"
loss = "0.1%"
bit_errors = 1e-9

[[line]]
name = "back"
rate = "none"
delay = "50ms"

[[flow]]
name = "rocks"
count = "9"
size = 19500
interface = { rate = "120mbit:ip", queue = "15000000b" }
path = ["bottleneck"]
back = ["back"]
congestion = "reno"
counting = "acknowledgements"
detection = "sack"
halving = "classic"
delayed_ack = "none"
window = "1gb"
initial_window = 2
backpressure = "none"
starts = "0s..1s"
ecn = "1"

[[flow]]
name = "sand"
preset = "linux"
mss = "1460"
path = ["bottleneck"]
delayed_ack = "40ms"
backpressure = 2
writes = "100mb"
starts = "5s"

[[visitors]]
name = "mice"
path = ["bottleneck"]
arrivals = "poisson:100/s"
sizes = "lomax:1.2,20kB"
at_once = 50

[[datagrams]]
name = "calls"
count = 3
path = ["bottleneck"]
arrivals = "periodic:20ms"
sizes = "fixed:200B"
reply = 200

[[datagrams]]
name = "asks"
path = ["bottleneck"]
after_reply = "0s"
sizes = "fixed:100B"
reply = "1kb"
"#;

fn settings(text: &str) -> Result<NetworkSettings, String> {
    let read = toml_reader::read(Path::new("n.toml"), text, |table, errors| {
        let settings = read(table, Place::default(), errors);
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
    let network = settings(WHOLE).unwrap();
    assert_eq!(
        network.times,
        RunTimes {
            length: Duration::from_secs(60),
            ignore: Duration::from_secs(10),
            sample: Some(Duration::from_millis(100)),
        }
    );
    let bottleneck = &network.lines[0];
    assert_eq!(bottleneck.wire.rate, "1gbit:ip".parse().ok());
    assert_eq!(bottleneck.wire.bit_error_rate, Some(1e-9));
    let discipline = bottleneck.wire.queue.discipline;
    assert_eq!(discipline.to_string(), "drr:19500b,1250000b");
    assert!(bottleneck.processing.unwrap().masked);
    assert_eq!(network.lines[1].wire.rate, None);

    let rocks = &network.flows[0];
    assert_eq!((rocks.count, rocks.tcp.mss), (9, Some(19_460)));
    assert_eq!(
        (&rocks.path.forward[..], &rocks.path.back[..]),
        (&[0][..], &[1][..])
    );
    let interface = rocks.path.interface.as_ref().unwrap();
    assert_eq!(
        (interface.name.as_str(), interface.wire.delay_ns),
        ("rocks", 0)
    );
    let expected = TcpSettings {
        mss: Some(19_460),
        congestion: Some(Congestion::Reno),
        counting: Some(Counting::Acknowledgements),
        detection: Some(Detection::Sack),
        halving: Some(Halving::Classic),
        ecn: Some(true),
        delayed_ack: Some(None),
        window_bytes: Some(65_535 << 14),
        initial_window_segments: Some(2),
        backpressure: Some(None),
        ..TcpSettings::default()
    };
    assert_eq!(rocks.tcp, expected);
    assert_eq!(rocks.starts.last, Duration::from_secs(1));
    assert_eq!(rocks.writes, None);

    let sand = &network.flows[1];
    assert_eq!(sand.tcp.preset, Some(Preset::Linux));
    assert_eq!(sand.tcp.delayed_ack, Some(Some(Duration::from_millis(40))));
    assert_eq!(
        (sand.tcp.backpressure, sand.writes),
        (Some(Some(2)), Some(100 << 20))
    );
    assert_eq!(sand.starts.first, sand.starts.last);

    let mice = &network.visitors[0];
    assert_eq!(
        mice.arrivals,
        Process::Poisson {
            mean_gap: Duration::from_millis(10)
        }
    );
    assert_eq!(mice.at_once, 50);
    assert_eq!(network.datagrams[0].reply_bytes, Some(200));
    let expected = SourceSettings::AfterReply {
        think: Duration::ZERO,
        patience: PATIENCE,
        packet_bytes: 100,
    };
    assert_eq!(network.datagrams[1].source, expected);
}

#[test]
fn what_does_not_fit_together_is_told_at_its_line() {
    for (from, to, error) in [
        (
            "ignore = 10",
            "ignore = 60",
            "n.toml:4: run.ignore: 60 s of 60 s: nothing is left to be counted",
        ),
        (
            "seconds = \"60\"",
            "seconds = 100000",
            "n.toml:3: run.seconds: \"100000\" is not a number from 0.001 to 86400",
        ),
        (
            "\"1gbit:ip\"",
            "\"1tbit\"",
            "n.toml:9: line.rate: \"1tbit\" is no rate: write it as in 100mbit, 64kbit or 1.5gbit",
        ),
        (
            "name = \"back\"",
            "name = \"bottleneck\"",
            "n.toml:18: line.name: bottleneck is the name of two",
        ),
        (
            "path = [\"bottleneck\"]",
            "path = [\"bottelneck\"]",
            "n.toml:27: flow.path: there is no line bottelneck (near it: bottleneck)",
        ),
        (
            "count = \"9\"",
            "count = \"9.5\"",
            "n.toml:24: flow.count: \"9.5\" is not a whole number from 0 to 100000",
        ),
        (
            "size = 19500",
            "size = 70000",
            "n.toml:25: flow.size: \"70000\" is not a whole number from 41 to 65535",
        ),
        (
            "size = 19500",
            "size = 1500\nmss = 1460",
            "n.toml:25: flow.size: either mss or size, which is 40 bytes more",
        ),
        (
            "\"120mbit:ip\"",
            "\"fast\"",
            "n.toml:26: flow.interface.rate: \"fast\" is no rate: write it as in 100mbit, 64kbit or 1.5gbit",
        ),
        (
            "interface = {",
            "interface = { port = 1,",
            "n.toml:26: flow.interface.port: unknown key (known here: arq, bit_errors, corrupt, delay, duplicate, fec, jitter, loss, packets_per_second, processing, queue, queue_discipline, rate, reorder)",
        ),
        (
            "congestion = \"reno\"",
            "congestion = \"vegas\"",
            "n.toml:29: flow.congestion: \"vegas\" is none of reno, cubic",
        ),
        (
            "window = \"1gb\"",
            "window = \"2gb\"",
            "n.toml:34: flow.window: \"2gb\" is not a size from 536b to 1gb",
        ),
        (
            "ecn = \"1\"",
            "ecn = \"yes\"",
            "n.toml:38: flow.ecn: expected true or false, found a string",
        ),
        (
            "starts = \"0s..1s\"",
            "starts = \"2s..1s\"",
            "n.toml:37: flow.starts: \"2s..1s\" is no time to begin: write it as in 0s or, drawn for each, 0s..1s",
        ),
        (
            "name = \"mice\"",
            "name = \"sand\"",
            "n.toml:51: visitors.name: sand is the name of two",
        ),
        (
            "at_once = 50",
            "at_once = 0",
            "n.toml:55: visitors.at_once: \"0\" is not a whole number from 1 to 100000",
        ),
        (
            "fixed:200B",
            "fixed:20B",
            "n.toml:62: datagrams.sizes: packets have 28 to 65535 bytes",
        ),
        (
            "reply = \"1kb\"",
            "",
            "n.toml:68: datagrams.after_reply: nothing answers: say reply, as in reply = 200",
        ),
        (
            "arrivals = \"periodic:20ms\"\n",
            "",
            "n.toml:57: datagrams: one of arrivals, after_reply and pcap says when they leave",
        ),
        (
            "after_reply = \"0s\"",
            "pcap = \"a.pcap\"",
            "n.toml:68: datagrams.pcap: a scenario that is built in has no files beside it",
        ),
        (
            "[run]",
            "[runs]",
            "n.toml:2: runs: unknown key (known here: datagrams, flow, line, run, visitors)",
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
fn a_line_that_cannot_be_read_is_the_only_mistake_of_those_who_name_it() {
    assert_eq!(
        changed("name = \"bottleneck\"", "name = \"bottle-neck\""),
        "n.toml:8: line.name: \"bottle-neck\" is no name: letters, digits and _, beginning with a letter, at most 32"
    );
    assert!(
        settings("[run]\nseconds = 1\n")
            .unwrap_err()
            .contains("line: a network has at least one [[line]]")
    );
}

#[test]
fn a_flow_feeds_one_other_alone() {
    let text = format!(
        "{WHOLE}\n[[flow]]\nname = \"near\"\npath = [\"bottleneck\"]\nfed_by = \"sand\"\n\
         [[flow]]\nname = \"other\"\npath = [\"bottleneck\"]\nfed_by = \"sand\"\n"
    );
    let errors = settings(&text).unwrap_err();
    assert!(
        errors.contains("fed_by: sand feeds near already"),
        "{errors}"
    );
}

/// What needs no time would be done for ever before anything else is.
#[test]
fn what_has_no_end_takes_time() {
    let endless = |line: &str, what: &str| {
        let text = format!(
            "[run]\nseconds = 1\n[[line]]\nname = \"l\"\n{line}\n[[line]]\nname = \"back\"\n{what}\n\
             path = [\"l\"]\nback = [\"back\"]\n"
        );
        settings(&text).err().unwrap_or_default()
    };
    let flow = "[[flow]]\nname = \"f\"";
    let asks = "[[datagrams]]\nname = \"f\"\nsizes = \"fixed:100B\"\nreply = 200";
    let asks_at_once = format!("{asks}\nafter_reply = \"0s\"");
    for what in [flow, &asks_at_once] {
        let errors = endless("", what);
        assert!(
            errors.contains("path: nothing on the way takes time"),
            "{errors}"
        );
        for line in [
            "rate = \"1gbit\"",
            "delay = \"1us\"",
            "processing = \"1us\"",
        ] {
            assert_eq!(endless(line, what), "", "{line}");
        }
    }
    let asks_later = format!("{asks}\nafter_reply = \"1us\"");
    assert_eq!(endless("", &asks_later), "");
    assert_eq!(endless("", &format!("{flow}\nwrites = \"1kb\"")), "");
}
