//! `packtrain whatif`, on captures of known traffic.

use serde_json::{Value, json};

use crate::binary::{Outcome, TestFile, packtrain, packtrain_reading};

/// When, in microseconds, and the frame.
pub type Sent = (u64, Vec<u8>);

pub fn udp(from: u8, to: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let total = (28 + payload.len()) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x08, 0x00, 0x45, 0];
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, from, 10, 9, 0, to]);
    for number in [port, port, total - 20, 0] {
        frame.extend(number.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

/// A payload like no other, and like nothing that compresses.
fn payload(number: u64, len: usize) -> Vec<u8> {
    let mut state = number + 1;
    let mut next = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Telephone calls, two seconds of them: a small frame each 20 ms.
fn calls() -> Vec<Sent> {
    let frame = |n: u64| {
        let (packet, call) = (n / 30, n % 30);
        let at = packet * 20_000 + call * 20_000 / 30;
        (at, udp(1, 2, 10_000 + call as u16, &payload(n, 60)))
    };
    (0..3000).map(frame).collect()
}

/// Full-size frames at 9.5 Mbit/s.
fn bulk() -> Vec<Sent> {
    let frame = |n: u64| (n * 1300, udp(1, 2, 5001, &payload(n, 1472)));
    (0..1000).map(frame).collect()
}

pub fn pcap(sent: &[Sent]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    for word in [0, 0, 65_535, 1u32] {
        file.extend(word.to_le_bytes());
    }
    for (at, frame) in sent {
        let (len, at) = (frame.len() as u32, *at as u32);
        for word in [at / 1_000_000, at % 1_000_000, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn whatif(file: &TestFile, more: &[&str]) -> Outcome {
    packtrain(&[&["whatif", file.path()], more].concat())
}

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/whatif.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The published schema lets later versions have more fields; the one that this version is held to does not.
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

/// The document, which is as the schema says.
fn document(outcome: &Outcome) -> Value {
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    let mut schema = schema();
    close(&mut schema);
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert_eq!(problems, Vec::<String>::new());
    document
}

#[test]
fn small_frames_over_a_wire_short_of_frames_share_them_and_wait_no_more() {
    let file = TestFile::new("whatif-calls.pcap", pcap(&calls()));
    let more = ["--packets-per-second", "1000", "--json"];
    let outcome = whatif(&file, &more);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let document = document(&outcome);
    let policy = &document["policies"][0];
    // Without acknowledgements, which take the other cable: calls go one way here.
    let trains = |which: &str| policy["classes"][0][which]["frames"].as_f64().unwrap();
    assert!(trains("after") < 0.8 * trains("before"), "{policy}");
    // Plainly, a third of the frames stands in the queue at last.
    assert!(
        policy["added_delay"]["p50_ms"].as_f64().unwrap() < -100.0,
        "{policy}"
    );
    assert_eq!(policy["dropped"], 0);
    assert_eq!(policy["conversations"].as_array().unwrap().len(), 5);
    assert_eq!(policy["others"]["conversations"], 25);
    assert_eq!(document["recommendation"]["kind"], "less_delay");
    // A second run says the same.
    assert_eq!(whatif(&file, &more).out, outcome.out);
}

#[test]
fn what_frames_cost_plainly_is_what_anybody_counts() {
    let sent = [calls(), bulk()].concat();
    let file = TestFile::new("whatif-plain.pcap", pcap(&sent));
    let document = document(&whatif(&file, &["--json"]));
    // Padded to 60 bytes; preamble 8, FCS 4, gap 12.
    let bytes: usize = sent.iter().map(|(_, frame)| frame.len().max(60) + 24).sum();
    assert_eq!(
        document["plain"]["wire"],
        json!({"frames": sent.len() as f64, "bytes": bytes as f64})
    );
    assert_eq!(document["capture"]["replayed"], sent.len());
    let classes = document["policies"][0]["classes"].as_array().unwrap();
    let frames: u64 = classes
        .iter()
        .map(|class| class["frames"].as_u64().unwrap())
        .sum();
    assert_eq!(frames, sent.len() as u64);
}

#[test]
fn full_size_frames_gain_nothing() {
    let file = TestFile::new("whatif-bulk.pcap", pcap(&bulk()));
    let outcome = whatif(&file, &["--rate", "10mbit"]);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let last = outcome.out.lines().last().unwrap();
    assert_eq!(
        last,
        "Nothing to gain here: the frames are large already, and go as they are."
    );
}

#[test]
fn policies_stand_side_by_side() {
    let file = TestFile::new("whatif-compare.pcap", pcap(&calls()));
    let more = ["--packets-per-second", "1000", "--compare"];
    let text = whatif(&file, &more).out;
    for row in [
        "  without packtrain ",
        "  --pack queued --compress off ",
        "  --pack queued --compress headers ",
        "  --pack auto --compress auto ",
        "  --pack 2ms --compress auto ",
        "  --pack now --compress auto ",
        "  --pack 'scaled 2ms' --compress auto ",
        "  --pack dfap-random --compress auto ",
        "  --pack dfap-straight --compress auto ",
        "  the first over two links ",
    ] {
        assert!(text.contains(row), "{row:?} in {text}");
    }
    let document = document(&whatif(&file, &[&more[..], &["--json"]].concat()));
    assert_eq!(document["policies"].as_array().unwrap().len(), 10);
    let csv = whatif(&file, &[&more[..], &["--csv"]].concat()).out;
    let columns = |line: &str| line.split(',').count();
    let heading = csv.lines().next().unwrap();
    assert!(
        csv.lines().all(|line| columns(line) == columns(heading)),
        "{csv}"
    );
    assert_eq!(
        csv.lines().filter(|line| line.contains(",all,")).count(),
        11
    );
}

#[test]
fn two_links_stand_beside_others_unless_somebody_says_how_many_there_are() {
    let file = TestFile::new("whatif-links.pcap", pcap(&calls()));
    let run = |more: &[&str]| {
        let wire = ["--packets-per-second", "1000", "--path", "engine"];
        let outcome = whatif(&file, &[&wire[..], more, &["--json"]].concat());
        document(&outcome)
    };
    let both = run(&["--compare"]);
    let (one, two) = (&both["policies"][0], &both["two_links"]);
    assert_eq!((&one["links"], &two["links"]), (&json!(1), &json!(2)));
    assert_eq!(both["wire"]["links"], 1);
    assert_eq!(two["name"], "--pack queued --compress auto --links 2");
    assert_ne!(one["delay"], two["delay"]);
    // It is what one gets who has two.
    let asked = run(&["--links", "2"]);
    assert_eq!(asked["policies"][0], *two);
    assert_eq!(asked["two_links"], Value::Null);
    let one_alone = ["--links", "1", "--compare", "--top", "0"];
    assert_eq!(run(&one_alone)["two_links"], Value::Null);
}

#[test]
fn a_wire_of_which_nothing_is_said_is_that_of_the_capture() {
    let wire = |outcome: &Outcome| {
        let document = document(outcome);
        let wire = &document["wire"];
        (wire["rate_bps"].clone(), wire["rate_source"].clone())
    };
    let file = TestFile::new("whatif-wire.pcap", pcap(&bulk()));
    // 9.5 Mbit/s and what Ethernet spends beside it.
    let outcome = whatif(&file, &["--json"]);
    assert_eq!(wire(&outcome), (json!(10_000_000), json!("peak")));
    let text = whatif(&file, &[]).out;
    let told = "the wire carries 10 Mbit/s, the least usual rate that its busiest tenth of a second fits into (--rate)";
    assert!(text.contains(told), "{text}");
    let outcome = whatif(&file, &["--json", "--rate", "3mbit"]);
    assert_eq!(wire(&outcome), (json!(3_000_000), json!("asked")));
    let outcome = whatif(&file, &["--json", "--packets-per-second", "1000"]);
    assert_eq!(wire(&outcome), (Value::Null, json!("asked")));

    // An interface that says how fast it is; a pipe is not read twice, and need not be.
    let mut capture = Vec::new();
    packtrain::pcapng::section_header(&mut capture, "test");
    let interface = packtrain::pcapng::Interface {
        name: "eth1".into(),
        description: None,
        speed_bps: Some(7_000_000),
        snap_len: 0,
    };
    packtrain::pcapng::interface_description(&mut capture, &interface);
    for (at, frame) in bulk() {
        let packet = packtrain::pcapng::Packet {
            interface: 0,
            unix_nanos: at * 1000,
            bytes: &frame,
            len: frame.len() as u32,
            direction: None,
            comment: None,
        };
        packtrain::pcapng::enhanced_packet(&mut capture, &packet);
    }
    let said = (json!(7_000_000), json!("interface"));
    let file = TestFile::new("whatif-speed.pcapng", &capture);
    assert_eq!(wire(&whatif(&file, &["--json"])), said);
    let piped = |bytes: &[u8]| packtrain_reading(&["whatif", "-", "--json"], bytes);
    assert_eq!(wire(&piped(&capture)), said);
    let text = packtrain_reading(&["whatif", "-"], &capture).out;
    assert!(
        text.starts_with("capture    standard input: 1,000 of 1,000 frames "),
        "{text}"
    );
    let nothing_said = (json!(1_000_000_000), json!("default"));
    assert_eq!(wire(&piped(&pcap(&bulk()))), nothing_said);
}

#[test]
fn what_a_full_queue_refuses_is_told() {
    let file = TestFile::new("whatif-refused.pcap", pcap(&calls()));
    // The direct path knows nothing of packets, and fills the queue before it closes.
    let more = ["--rate", "200kbit", "--queue", "3kb", "--links", "1"];
    let refused = document(&whatif(&file, &[&more[..], &["--json"]].concat()));
    let refused = refused["policies"][0]["refused"].as_u64().unwrap();
    assert!(refused > 0);
    let text = whatif(&file, &more).out;
    let line = format!("  refused    {refused} trains and frames, by a full queue before a wire\n");
    assert!(text.contains(&line), "{text}");
    let csv = whatif(&file, &[&more[..], &["--csv"]].concat()).out;
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = lines[0].iter().position(|&heading| heading == "refused");
    assert_eq!(lines[1][at.unwrap()], refused.to_string());
    let page = TestFile::new("whatif-refused.html", "");
    whatif(&file, &[&more[..], &["--report", page.path()]].concat());
    let html = std::fs::read_to_string(page.path()).unwrap();
    assert!(html.contains(&format!("; {refused} trains and frames refused")));
}

#[test]
fn what_is_drawn_is_of_no_colour_and_eighty_columns_where_there_is_no_terminal() {
    let file = TestFile::new("whatif-drawn.pcap", pcap(&calls()));
    let text = whatif(&file, &["--packets-per-second", "1000"]).out;
    for title in [
        "\nFrames on the wire over time, up to ",
        "\nTrains by how full they are, up to ",
        "\nFrames that come so much later at most, up to all of them\n",
    ] {
        assert!(text.contains(title), "{title:?} in {text}");
    }
    assert!(text.contains('█') && !text.contains('\x1b'), "{text}");
    let drawn = text.lines().filter(|line| line.contains(['█', '▁']));
    assert!(drawn.map(|line| line.chars().count()).max() <= Some(80));
}

#[test]
fn a_broken_file_is_an_error_and_what_was_good_before_is_told() {
    let mut capture = pcap(&calls()[..100]);
    capture.truncate(capture.len() - 7);
    let file = TestFile::new("whatif-broken.pcap", &capture);
    let outcome = whatif(&file, &["--json"]);
    assert_eq!(outcome.code, 3);
    assert!(
        outcome.err.contains("packet 100 at byte "),
        "{}",
        outcome.err
    );
    let document = document(&outcome);
    assert_eq!(document["capture"]["replayed"], 99);
    let broken = document["capture"]["broken"].as_str().unwrap();
    assert!(broken.contains("packet 100 "), "{broken}");
    // One that is none has nothing to tell.
    let outcome = whatif(&TestFile::new("whatif-none.pcap", "no capture"), &[]);
    assert_eq!((outcome.code, outcome.out.as_str()), (3, ""));
}

#[test]
fn one_side_is_looked_at_alone_with_what_a_filter_would_drop() {
    let mut sent = calls();
    sent.truncate(200);
    let strangers = (0..7).map(|n| (n * 1000, udp(2, 3, 9, &payload(n, 100))));
    sent.extend(strangers);
    let file = TestFile::new("whatif-host.pcap", pcap(&sent));
    let document = document(&whatif(&file, &["--host", "02:00:00:00:00:01", "--json"]));
    assert_eq!(document["capture"]["replayed"], 200);
    assert_eq!(document["capture"]["of_others"], 7);
    assert_eq!(document["filter"]["foreign_unicast"]["frames"], 7);
}

#[test]
fn of_an_empty_capture_nothing_is_said() {
    let outcome = whatif(&TestFile::new("whatif-empty.pcap", pcap(&[])), &["--json"]);
    assert_eq!(outcome.code, 0);
    let document = document(&outcome);
    assert_eq!(document["plain"], Value::Null);
    assert_eq!(document["recommendation"]["kind"], "no_frames");
}

#[test]
fn a_report_is_a_page_that_needs_no_other() {
    let file = TestFile::new("whatif-page-<b>.pcap", pcap(&calls()));
    let page = TestFile::new("whatif-page.html", "");
    let outcome = whatif(&file, &["--rate", "1mbit", "--report", page.path()]);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let html = std::fs::read_to_string(page.path()).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    assert!(html.contains("<svg") && html.contains("prefers-color-scheme: dark"));
    assert!(!html.contains("http") && !html.contains("src=") && !html.contains("<b>"));
    let advice = outcome.out.lines().last().unwrap();
    assert!(html.contains(advice), "{advice}");

    let outcome = whatif(&file, &["--report", "/nowhere/page.html"]);
    assert_eq!(outcome.code, 1);
    let error = "error: /nowhere/page.html: No such file or directory";
    assert!(outcome.err.starts_with(error), "{}", outcome.err);
}

#[test]
fn a_class_of_the_command_line_is_one_of_the_line() {
    let file = TestFile::new("whatif-class.pcap", pcap(&calls()));
    let class = "udp dport 10000-10009; pack now; name some";
    let outcome = whatif(&file, &["--class", class, "--rate", "1mbit", "--json"]);
    let document = document(&outcome);
    let of = &document["policies"][0]["classes"];
    assert_eq!(
        (&of[0]["name"], &of[0]["frames"]),
        (&json!("some"), &json!(1000))
    );
    assert_eq!(
        (&of[1]["name"], &of[1]["frames"]),
        (&json!("rest"), &json!(2000))
    );

    let outcome = whatif(&file, &["--class", "udp; pack soon"]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome
            .err
            .contains("\"soon\" does not say when frames leave"),
        "{}",
        outcome.err
    );
    let outcome = whatif(&file, &["--class", "udp; name a", "--class", "tcp; name a"]);
    assert_eq!(
        (outcome.code, outcome.err.as_str()),
        (2, "error: there is a class a already\n")
    );
}
