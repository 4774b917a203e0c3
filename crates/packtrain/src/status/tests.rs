//! Documents against the schema in `docs/`, and what they say.

use packtrain_proto::config::LinkSettings;
use packtrain_proto::direct::OpenTo;
use packtrain_proto::stats::{self, DropReason, Snapshot};
use serde_json::Value;

use super::samples::{busy_snapshot, facts, quiet_snapshot};
use super::*;
use crate::settings::values::BalancePolicy;

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/status.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The published schema lets documents of later versions have more fields; the one that this
/// version's documents are held to does not.
fn closed(mut schema: Value) -> Value {
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
    close(&mut schema);
    schema
}

fn problems(schema: &Value, document: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    validator
        .iter_errors(document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

#[test]
fn every_document_is_as_the_schema_says_and_has_no_field_that_it_does_not_describe() {
    use LinkCondition::{Absent, Down, NoCarrier, Up};
    let strict = closed(schema());
    for (snapshot, conditions) in [
        (quiet_snapshot(), &[Up][..]),
        (quiet_snapshot(), &[Absent]),
        (busy_snapshot(), &[Up, Absent, Down, NoCarrier]),
    ] {
        let document = StatusDocument::build(&snapshot, &facts(conditions));
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(problems(&strict, &value), Vec::<String>::new());
        let back: StatusDocument = serde_json::from_value(value).unwrap();
        assert_eq!(back, document);
    }
}

#[test]
fn a_field_of_a_later_version_is_allowed_and_a_missing_or_wrong_one_is_not() {
    let document = StatusDocument::build(&busy_snapshot(), &facts(&[LinkCondition::Up]));
    let good = serde_json::to_value(&document).unwrap();
    let schema = schema();

    let mut later = good.clone();
    later["links"][0]["temperature_c"] = 40.into();
    assert!(problems(&schema, &later).is_empty());

    for key in good.as_object().unwrap().keys() {
        let mut missing = good.clone();
        missing.as_object_mut().unwrap().shift_remove(key);
        assert!(!problems(&schema, &missing).is_empty(), "{key} is required");
    }
    for (pointer, wrong) in [
        ("/mtu", Value::from(-1)),
        ("/node_id", 5.into()),
        ("/address", "02:00".into()),
        ("/links/0/state", "sideways".into()),
        ("/links/0/tx/frames", "7".into()),
        ("/peers/0/capabilities", 3.into()),
        ("/trains/flush/full", Value::Null),
        ("/drops/runt", 1.5.into()),
        ("/drops/bad_luck", 1.into()),
    ] {
        let mut value = good.clone();
        if let Some(place) = value.pointer_mut(pointer) {
            *place = wrong;
        } else {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            value.pointer_mut(parent).unwrap()[key] = wrong;
        }
        assert!(!problems(&schema, &value).is_empty(), "{pointer}");
    }
}

#[test]
fn the_schema_knows_each_reason_to_drop_and_no_other() {
    let known = &schema()["$defs"]["drops"]["propertyNames"]["enum"];
    let known: std::collections::BTreeSet<&str> = known
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| reason.as_str().unwrap())
        .collect();
    let engine = DropReason::ALL.iter().map(|reason| reason.as_str());
    assert_eq!(known, engine.chain(drop_reason::ALL).collect());
}

#[test]
fn drops_outside_of_the_engine_are_told_beside_its_own() {
    let document = StatusDocument::build(&busy_snapshot(), &facts(&[LinkCondition::Up]));
    assert_eq!(document.drops["intake_full"], 3);
    assert_eq!(document.drops["runt"], 1);
    assert_eq!(document.links[0].drops["socket_overrun"], 5);
    assert!(
        !document.links[0].drops.contains_key("socket_truncated"),
        "it never happened"
    );
}

#[test]
fn every_field_has_a_description() {
    fn undescribed(value: &Value, path: &str, list: &mut Vec<String>) {
        for (name, field) in value["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}/{name}");
            if field["description"].as_str().is_none_or(str::is_empty) {
                list.push(path.clone());
            }
            undescribed(field, &path, list);
            undescribed(&field["items"], &path, list);
        }
    }
    let schema = schema();
    let mut list = Vec::new();
    undescribed(&schema, "", &mut list);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        undescribed(definition, name, &mut list);
    }
    assert_eq!(list, Vec::<String>::new());
}

#[test]
fn links_are_named_in_peers_and_hosts_and_a_forgotten_one_by_number() {
    let document = StatusDocument::build(&busy_snapshot(), &facts(&[LinkCondition::Up]));
    assert_eq!(document.peers[0].links[0].link, "eth1");
    assert_eq!(document.hosts[0].link, "eth1");
    assert_eq!(document.hosts[1].link, "#77");
    assert_eq!(
        document.hosts.len(),
        2,
        "a peer's link is no host without packtrain"
    );
    assert_eq!(
        document.peers[0].capabilities,
        [
            "marked_frames",
            "gso_in_trains",
            "coded_trains",
            "liveness",
            "repair",
            "polls"
        ]
    );
}

#[test]
fn the_mean_is_of_trains_sent_and_unknown_before_the_first() {
    let mean = |snapshot| {
        let document = StatusDocument::build(&snapshot, &facts(&[LinkCondition::Up]));
        document.trains.frames_per_train_mean
    };
    assert_eq!(mean(quiet_snapshot()), None);
    assert_eq!(mean(busy_snapshot()), Some(2.5));
}

#[test]
fn what_trains_have_saved_adds_up_and_is_no_share_of_nothing() {
    let coding = |snapshot: &Snapshot| {
        let document = StatusDocument::build(snapshot, &facts(&[LinkCondition::Up]));
        document.coding
    };
    let quiet = coding(&quiet_snapshot());
    assert_eq!(
        (quiet.saved.headers.percent, quiet.cpu_s_per_mb),
        (None, None)
    );
    let busy = coding(&busy_snapshot());
    let Saved {
        framing,
        padding,
        headers,
        payload,
    } = busy.saved;
    let all = [framing, padding, headers, payload];
    let bytes: i64 = all.iter().map(|saved| saved.bytes).sum();
    assert_eq!(bytes as u64, busy.frame_bytes - busy.train_bytes);
    assert_eq!(
        all.map(|saved| saved.percent),
        [20.0, 5.0, 25.0, 10.0].map(Some)
    );
    assert_eq!(busy.cpu_s_per_mb, Some(0.006_25));
    // What trains have of their own is more than a frame alone gains by one.
    let mut alone = busy_snapshot();
    alone.coding = stats::CodingSnapshot {
        frame_bytes: 1000,
        train_bytes: 1040,
        ..Default::default()
    };
    let alone = coding(&alone).saved.framing;
    assert_eq!((alone.bytes, alone.percent), (-40, Some(-4.0)));
}

#[test]
fn the_dictionary_is_told_with_its_file_and_what_it_was_used_for() {
    let document =
        |snapshot: &Snapshot| StatusDocument::build(snapshot, &facts(&[LinkCondition::Up]));
    let busy = document(&busy_snapshot());
    let dictionary = Dictionary {
        id: "1003e603".into(),
        bytes: 8192,
        file: Some("/etc/packtrain/json.dict".into()),
        trains_tx: 1,
        trains_rx: 2,
    };
    assert_eq!(busy.dictionary, Some(dictionary));
    assert_eq!(busy.peers[0].dictionary.as_deref(), Some("1003e603"));
    assert_eq!(document(&quiet_snapshot()).dictionary, None);
    // The schema knows each reason, and no other.
    use stats::DictionaryUnused::*;
    let all = [
        NoneHere,
        NotUp,
        NotCoded,
        NoneThere,
        AnotherThere,
        Classes,
        RateUnknown,
        FastLinks,
    ];
    let told = all.map(|why| {
        let mut snapshot = busy_snapshot();
        snapshot.peers[0].dictionary_unused = Some(why);
        Value::from(document(&snapshot).peers[0].dictionary_unused.clone())
    });
    let known = &schema()["$defs"]["peer"]["properties"]["dictionary_unused"]["enum"];
    assert_eq!(known.as_array().unwrap()[1..], told);
    assert_eq!(known[0], Value::Null);
}

#[test]
fn what_a_person_should_know_is_said_plainly() {
    use LinkCondition::{Absent, Down, NoCarrier, Up};
    let warnings =
        |snapshot: &Snapshot, facts: &LineFacts| StatusDocument::build(snapshot, facts).warnings;
    assert_eq!(
        warnings(&quiet_snapshot(), &facts(&[Up])),
        ["no peer answers: frames go plain"]
    );
    assert_eq!(
        warnings(&quiet_snapshot(), &facts(&[Absent, Down, NoCarrier])),
        [
            "eth1 does not exist: it joins when it appears",
            "eth2 is set down",
            "eth3 has no carrier",
            "no link is up: nothing travels",
        ]
    );
    assert_eq!(
        warnings(&busy_snapshot(), &facts(&[Up])),
        Vec::<String>::new()
    );

    let mut large = busy_snapshot();
    large.mtu = 9000;
    let mut told = facts(&[Up]);
    told.up = false;
    told.warnings.push("the daemon's own".into());
    assert_eq!(
        warnings(&large, &told),
        [
            "pt0 is set down",
            "hosts without packtrain get no frame above 1500 bytes, and pt0 has an MTU of 9000",
            "the daemon's own",
        ]
    );
    let mut tiny = facts(&[Up]);
    tiny.links[0].mtu = Some(500);
    assert_eq!(
        warnings(&busy_snapshot(), &tiny)[0],
        "eth1 is not used: its MTU is below 576"
    );
    let mut short = busy_snapshot();
    short.peers[0].paths[0].measures.mtu = Some(1484);
    assert_eq!(
        warnings(&short, &facts(&[Up])),
        ["eth1: frames over 1484 bytes do not pass, though both ends take 1500"]
    );
}

#[test]
fn a_peers_words_cannot_steer_a_terminal() {
    let mut snapshot = busy_snapshot();
    snapshot.peers[0].software = format!("evil\u{1b}[2J\n{}", "x".repeat(1000));
    let document = StatusDocument::build(&snapshot, &facts(&[LinkCondition::Up]));
    let version = &document.peers[0].version;
    assert!(
        version.starts_with("evil?[2J?xx") && version.chars().count() == 64,
        "{version}"
    );
}

#[test]
fn the_schema_knows_each_use_of_a_path_and_each_balance() {
    use clap::ValueEnum;
    use stats::PathState::{Backup, Closed, Joining, Open, Retiring, Silent, TooSlow};
    let strict = closed(schema());
    for state in [Open, Closed, Joining, Silent, Retiring, Backup, TooSlow] {
        let mut snapshot = busy_snapshot();
        snapshot.peers[0].paths[0].state = state;
        let document = StatusDocument::build(&snapshot, &facts(&[LinkCondition::Up]));
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(problems(&strict, &value), Vec::<String>::new());
    }
    for open_to in [OpenTo::Nobody, OpenTo::Classes, OpenTo::LossOk, OpenTo::All] {
        let mut snapshot = busy_snapshot();
        snapshot.peers[0].paths[0].direct = Some(open_to);
        let document = StatusDocument::build(&snapshot, &facts(&[LinkCondition::Up]));
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(problems(&strict, &value), Vec::<String>::new());
    }
    for &balance in BalancePolicy::value_variants() {
        let mut told = facts(&[LinkCondition::Up]);
        told.balance = balance;
        let document = StatusDocument::build(&quiet_snapshot(), &told);
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(problems(&strict, &value), Vec::<String>::new());
    }
}

#[test]
fn what_a_link_is_used_for_is_told_of_each() {
    let mut told = facts(&[LinkCondition::Up, LinkCondition::Absent]);
    told.tier_spill = true;
    told.links[1].used = LinkSettings {
        tier: 2,
        weight: 3,
        rate_max_bps: Some(20_000_000),
        in_lag: true,
    };
    let document = StatusDocument::build(&busy_snapshot(), &told);
    let used = |link: &Link| (link.tier, link.weight, link.rate_max_bps);
    assert_eq!(used(&document.links[0]), (1, 1, None));
    assert_eq!(used(&document.links[1]), (2, 3, Some(20_000_000)));
    assert_eq!(
        (document.tier_spill, document.peers[0].tier),
        (true, Some(1))
    );
    let strict = closed(schema());
    let value = serde_json::to_value(&document).unwrap();
    assert_eq!(problems(&strict, &value), Vec::<String>::new());
}

#[test]
fn a_line_without_links_says_how_it_gets_one() {
    let document = StatusDocument::build(&quiet_snapshot(), &facts(&[]));
    let no_links = "pt0 has no links: packtrain link add pt0 gives it one";
    assert!(
        document.warnings.contains(&no_links.to_owned()),
        "{:?}",
        document.warnings
    );
}

#[test]
fn what_was_sent_without_a_copy_is_warned_of() {
    let mut snapshot = busy_snapshot();
    let warnings = |snapshot: &Snapshot| {
        StatusDocument::build(snapshot, &facts(&[LinkCondition::Up])).warnings
    };
    assert_eq!(warnings(&snapshot), Vec::<String>::new());
    snapshot.replay.not_kept = 3;
    assert_eq!(
        warnings(&snapshot),
        ["memory for copies ran out (3 trains): a link that dies loses frames"]
    );
}

#[test]
fn why_the_direct_path_was_closed_is_said_of_what_there_was() {
    let because = |congestion, delay, loss, disorder| ClosuresBecause {
        congestion,
        delay,
        loss,
        disorder,
    };
    for (because, text) in [
        (because(0, 0, 0, 0), ""),
        (because(0, 2, 0, 0), "2 delay"),
        (because(1, 0, 3, 2), "1 congestion, 3 loss, 2 disorder"),
    ] {
        assert_eq!(because.to_string(), text);
    }
}
