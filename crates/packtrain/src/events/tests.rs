//! Events against the schema in `docs/`, and in words.

use serde_json::Value;

use super::*;

fn stamp(n: u64) -> Stamp {
    Stamp {
        unix_ns: 1_795_676_401_123_456_789 + n,
        monotonic_ns: 9_000_000_000 + n,
    }
}

/// Each kind, with everything and with as little as there may be.
pub(crate) fn all_kinds() -> Vec<What> {
    let peer = || "02:00:00:00:00:08".to_owned();
    let node_id = || "000000000000fedc".to_owned();
    let link = || "eth1".to_owned();
    let path = |state, because, before| What::Path {
        link: link(),
        peer: peer(),
        node_id: node_id(),
        state,
        because,
        silent_ns: (because == Some(PathWhy::Unanswered)).then_some(203_000_000),
        before,
        lasted_ns: before.map(|_| 12_300_000_000),
        skipped: 0,
    };
    let change = |state, because| What::Link {
        link: link(),
        state,
        because,
        mtu: Some(1500),
        address: None,
    };
    let of_peer = |state, because| What::Peer {
        peer: peer(),
        node_id: node_id(),
        state,
        because,
    };
    let mut all = vec![
        What::Line {
            line: "pt0".into(),
            state: UpOrDown::Up,
            because: None,
            message: None,
        },
        What::Link {
            link: link(),
            state: LinkChange::Joined,
            because: None,
            mtu: Some(1500),
            address: Some("02:00:00:00:00:02".into()),
        },
        of_peer(UpOrDown::Up, None),
        path(PathUse::Open, None, None),
        What::Rate {
            link: link(),
            peer: peer(),
            node_id: node_id(),
            before_bps: None,
            rate_bps: 95_400_000,
        },
        What::Rate {
            link: link(),
            peer: peer(),
            node_id: node_id(),
            before_bps: Some(95_400_000),
            rate_bps: 20_000_000,
        },
        What::Mtu {
            link: link(),
            peer: peer(),
            node_id: node_id(),
            before: 9000,
            mtu: 1500,
            mtu_of_ends: 9000,
        },
        What::Direct {
            peer: peer(),
            node_id: node_id(),
            state: OpenOrClosed::Open,
            because: None,
            lasted_ns: 1_500_000_000,
            skipped: 2,
        },
        What::Direct {
            peer: peer(),
            node_id: node_id(),
            state: OpenOrClosed::Closed,
            because: Some("congestion".into()),
            lasted_ns: 60_000_000_000,
            skipped: 0,
        },
        What::Tier {
            peer: peer(),
            node_id: node_id(),
            before: 1,
            tier: 2,
        },
        What::Home { link: link() },
        What::Station {
            station: peer(),
            state: UpOrDown::Up,
        },
        What::Station {
            station: peer(),
            state: UpOrDown::Down,
        },
        What::Lost { count: 37 },
    ];
    let reasons = LinkBecause::ALL.iter();
    all.extend(reasons.map(|because| change(LinkChange::Down, Some(*because))));
    all.extend(LinkChange::ALL.iter().map(|state| change(*state, None)));
    let reasons = PeerBecause::ALL.iter();
    all.extend(reasons.map(|because| of_peer(UpOrDown::Down, Some(*because))));
    let states = PathUse::ALL.iter();
    all.extend(states.map(|state| path(*state, None, Some(PathUse::Open))));
    let reasons = PathWhy::ALL.iter();
    all.extend(reasons.map(|because| path(PathUse::Closed, Some(*because), Some(PathUse::Open))));
    all.extend(LineBecause::ALL.iter().map(|because| What::Line {
        line: "pt0".into(),
        state: UpOrDown::Down,
        because: Some(*because),
        message: (*because == LineBecause::Failed).then(|| "the host's interface is gone".into()),
    }));
    all
}

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn problems(schema: &Value, document: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    let errors = validator.iter_errors(document);
    errors
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

/// The published one lets later versions have more.
fn closed(mut schema: Value) -> Value {
    schema["unevaluatedProperties"] = false.into();
    schema
}

#[test]
fn every_event_is_as_the_schema_says_and_is_read_back() {
    let strict = closed(schema());
    for (n, what) in (1..).zip(all_kinds()) {
        let record = Record::new(n, stamp(n), what);
        let value = serde_json::to_value(&record).unwrap();
        assert_eq!(problems(&strict, &value), Vec::<String>::new(), "{value}");
        assert_eq!(serde_json::from_value::<Record>(value).unwrap(), record);
    }
}

#[test]
fn an_event_that_lacks_something_or_has_another_word_is_none() {
    let schema = schema();
    for what in all_kinds() {
        let record = Record::new(1, stamp(1), what);
        let good = serde_json::to_value(&record).unwrap();
        for key in good.as_object().unwrap().keys() {
            let mut missing = good.clone();
            missing.as_object_mut().unwrap().shift_remove(key);
            assert!(!problems(&schema, &missing).is_empty(), "{key} of {good}");
        }
        for key in ["state", "because", "kind", "time"] {
            let mut wrong = good.clone();
            if let Some(value) = wrong.get_mut(key) {
                *value = "sideways".into();
                // Why a direct path is closed is one of the words of another document.
                let is_free = key == "because" && good["kind"] == "direct";
                assert_eq!(problems(&schema, &wrong).is_empty(), is_free, "{wrong}");
            }
        }
        let mut later = good.clone();
        later["temperature_c"] = 40.into();
        assert!(problems(&schema, &later).is_empty());
    }
}

#[test]
fn every_field_and_every_kind_of_the_schema_has_a_description() {
    let schema = schema();
    let mut objects = vec![("all".to_owned(), &schema)];
    for kind in schema["oneOf"].as_array().unwrap() {
        let name = kind["properties"]["kind"]["const"].as_str().unwrap();
        assert!(kind["description"].is_string(), "{name}");
        objects.push((name.to_owned(), kind));
    }
    for (name, object) in objects {
        for (key, field) in object["properties"].as_object().unwrap() {
            let says = field["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty());
            assert!(says || key == "kind", "{key} of {name}");
        }
    }
}

#[test]
fn the_log_has_the_words_of_the_columns() {
    let text: Vec<String> = all_kinds().iter().map(What::to_string).collect();
    for expected in [
        "line pt0 up",
        "line pt0 down: packtrain down",
        "line pt0 down: it cannot go on: the host's interface is gone",
        "link eth1 joined: MTU 1500, 02:00:00:00:00:02",
        "link eth1 down: carrier lost",
        "link eth1 down: its MTU of 1500 is below 576",
        "peer 02:00:00:00:00:08 up: node 000000000000fedc",
        "peer 02:00:00:00:00:08 down: it said goodbye",
        "path eth1 open: to 02:00:00:00:00:08",
        "path eth1 closed: to 02:00:00:00:00:08; not answered for 203.0 ms; was open for 12.3 s",
        "rate eth1 95.4 Mbit/s: to 02:00:00:00:00:08; was not known",
        "rate eth1 20 Mbit/s: to 02:00:00:00:00:08; was 95.4 Mbit/s",
        "direct 02:00:00:00:00:08 open: was closed for 1.5 s, and other states 2 times between",
        "direct 02:00:00:00:00:08 closed: by the engine: the link's queue stands, or small frames are many; was open for 1 min 0 s",
        "home eth1 moved: hosts without packtrain are reached by it now",
        "station 02:00:00:00:00:08 up: it takes aggregates",
        "lost 37: events before this were forgotten before they were read",
    ] {
        assert!(
            text.iter().any(|text| text == expected),
            "{expected}\n{text:#?}"
        );
    }
}
