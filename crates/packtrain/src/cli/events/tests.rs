use super::*;
use crate::events::tests::all_kinds;
use crate::events::{Stamp, What};

/// As a pipe gets it.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn record(what: What) -> Record {
    let at = Stamp {
        unix_ns: 1_795_676_401_123_456_789,
        monotonic_ns: 7,
    };
    Record::new(3, at, what)
}

#[test]
fn each_kind_is_one_line_whose_columns_stand_below_each_other() {
    for what in all_kinds() {
        let columns = what.columns();
        let line = plain(&text(&record(what)));
        // Whatever the place: date, time, and two spaces.
        assert_eq!(&line[19..20], ".", "{line}");
        let rest = &line[25..];
        assert!(rest.starts_with(columns.kind), "{line}");
        assert!(rest[9..].starts_with(&columns.subject), "{line}");
        if !columns.state.is_empty() && columns.subject.len() <= 17 {
            assert!(rest[28..].starts_with(&columns.state), "{line}");
        }
        assert!(
            line.ends_with(&columns.details) && !line.contains('\n'),
            "{line}"
        );
    }
    let what = all_kinds()
        .into_iter()
        .find(|what| what.to_string() == "link eth1 down: carrier lost");
    let line = text(&record(what.unwrap()));
    assert_eq!(
        &plain(&line)[25..],
        "link     eth1               down      carrier lost"
    );
    assert!(line.contains('\u{1b}'), "in colour, until it is taken out");
}

#[test]
fn a_time_may_be_how_long_ago_or_a_date() {
    let ago = |text: &str| match text.parse() {
        Ok(Since::Ago(ago)) => ago.as_secs(),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(
        ["30s", "10m", "10min", "2h", "1d"].map(ago),
        [30, 600, 600, 7200, 86_400]
    );
    let at = "2026-11-26T07:00:01.5Z".parse();
    let unix_ns = 1_795_676_401_500_000_000;
    assert_eq!(at, Ok(Since::At { unix_ns }));
    assert!("2026-11-26 07:00:01".parse::<Since>().is_ok());
    for text in [
        "",
        "s",
        "10",
        "-1s",
        "1.5h",
        "10w",
        "yesterday",
        "99999999999999999999s",
        "2026-11-26",
    ] {
        assert!(text.parse::<Since>().is_err(), "{text}");
    }
    // Before 1970 is the beginning.
    let ages = Since::Ago(Duration::from_secs(u64::MAX / 2));
    assert_eq!(ages.unix_ns(Clock::start()), 0);
}

fn reader(json: bool) -> Reader<Vec<u8>> {
    Reader {
        json,
        ended: None,
        out: Vec::new(),
    }
}

#[test]
fn what_a_newer_line_tells_is_passed_on_as_it_is() {
    let newer = br#"{"sequence":9,"time":"2026-11-26T07:00:01.123456Z","monotonic_ns":1,"kind":"tide","is":"high"}"#;
    for json in [true, false] {
        let mut reader = reader(json);
        reader.print(newer).unwrap();
        assert_eq!(reader.out, [&newer[..], b"\n"].concat());
    }
}

#[test]
fn that_the_line_has_ended_is_remembered_with_why() {
    let mut reader = reader(false);
    for what in all_kinds() {
        let is_end = matches!(
            &what,
            What::Line {
                state: UpOrDown::Down,
                ..
            }
        );
        let line = serde_json::to_vec(&record(what)).unwrap();
        reader.print(&line).unwrap();
        assert_eq!(reader.ended.is_some(), is_end || reader.ended.is_some());
    }
    assert_eq!(reader.ended.as_deref(), Some("it cannot go on"));
}
