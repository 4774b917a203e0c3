//! Readers of events: those who stay, those who only look, and those who do not read.

use std::io::{BufRead, BufReader};

use super::*;

fn publish(server: &mut ControlServer, n: u64) {
    let what = What::Home {
        link: format!("eth{n}"),
    };
    let at = Stamp {
        unix_ns: n,
        monotonic_ns: n,
    };
    server.publish(what, at);
}

/// Lets the server do all that it can do now.
fn settle(server: &mut ControlServer) {
    while wait_readable(server, 20) {
        server.handle(&mut |request, _| unreachable!("{request:?} is no line's to answer"));
    }
}

fn ask(name: &str, request: &str) -> BufReader<UnixStream> {
    let mut stream = raw(name);
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

const FOLLOW: &str = "{\"request\":\"events\",\"follow\":true}\n";

fn line(reader: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line
}

fn record(reader: &mut BufReader<UnixStream>) -> Record {
    let line = line(reader);
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
fn who_looks_gets_what_was_and_the_connection_ends() {
    let name = unique_name();
    let mut server = ControlServer::bind(&name).unwrap();
    (1..=5).for_each(|n| publish(&mut server, n));
    for (more, sequences) in [
        ("", &[1, 2, 3, 4, 5][..]),
        (",\"last\":2", &[4, 5]),
        (",\"last\":0", &[]),
        (",\"since_unix_ns\":4", &[4, 5]),
    ] {
        let request = format!("{{\"request\":\"events\",\"follow\":false{more}}}\n");
        let mut reader = ask(&name, &request);
        settle(&mut server);
        let head: Response = serde_json::from_str(&line(&mut reader)).unwrap();
        let expected = Response::Events {
            kept: 5,
            forgotten: 0,
        };
        assert_eq!(head, expected);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        let read = rest
            .lines()
            .map(|line| serde_json::from_str::<Record>(line).unwrap());
        assert_eq!(
            read.map(|r| r.sequence).collect::<Vec<_>>(),
            sequences,
            "{more}"
        );
    }
}

#[test]
fn who_follows_gets_what_was_and_what_comes_and_wakes_nobody_meanwhile() {
    let name = unique_name();
    let mut server = ControlServer::bind(&name).unwrap();
    publish(&mut server, 1);
    let mut reader = ask(&name, FOLLOW);
    settle(&mut server);
    assert!(line(&mut reader).contains("\"kept\":1"));
    assert_eq!(record(&mut reader).sequence, 1);
    assert!(!wait_readable(&server, 20));
    for n in 2..5 {
        publish(&mut server, n);
        server.tell_followers();
        assert_eq!(record(&mut reader).sequence, n);
        assert!(
            !wait_readable(&server, 20),
            "an event makes nobody readable"
        );
    }
    // The client's own way to read, and to be told of the end.
    drop(reader);
    settle(&mut server);
    let followed = {
        let name = name.clone();
        std::thread::spawn(move || {
            let mut connection = Connection::open(&name).unwrap();
            let request = Request::Events {
                follow: true,
                last: Some(2),
                since_unix_ns: None,
            };
            let forgotten = connection.ask_for_events(request).unwrap();
            connection.wait_for_ever().unwrap();
            let mut lines = 0;
            while connection.next_line().unwrap().is_some() {
                lines += 1;
            }
            (forgotten, lines)
        })
    };
    assert!(wait_readable(&server, 900));
    settle(&mut server);
    drop(server);
    assert_eq!(followed.join().unwrap(), (0, 2));
}

#[test]
fn who_does_not_read_is_told_how_much_is_lost_and_the_server_never_waits() {
    let name = unique_name();
    let mut server = ControlServer::bind(&name).unwrap();
    let mut slow = ask(&name, FOLLOW);
    let mut quick = ask(&name, FOLLOW);
    settle(&mut server);
    line(&mut quick);
    const EVENTS: u64 = 20_000;
    for n in 1..=EVENTS {
        publish(&mut server, n);
        server.tell_followers();
        assert_eq!(record(&mut quick).sequence, n, "the other one has them all");
    }
    // It has had what its socket holds. When there is room again it has the count, and what is kept.
    line(&mut slow);
    let (mut expected, mut lost) = (1, 0);
    while expected <= EVENTS {
        if slow.buffer().is_empty() {
            settle(&mut server);
        }
        let record = record(&mut slow);
        if let What::Lost { count } = record.what {
            lost += count;
            expected += count - 1;
        }
        assert_eq!(record.sequence, expected);
        expected += 1;
    }
    let kept = EVENTS_KEPT_MAX as u64;
    assert!(lost > 10_000 && lost < EVENTS - kept, "{lost}");
    assert!(!wait_readable(&server, 20));
}

#[test]
fn only_so_many_follow_and_one_that_goes_makes_room() {
    let name = unique_name();
    let mut server = ControlServer::bind(&name).unwrap();
    publish(&mut server, 1);
    let mut readers: Vec<_> = (0..FOLLOWERS_MAX).map(|_| ask(&name, FOLLOW)).collect();
    settle(&mut server);
    for reader in &mut readers {
        assert!(line(reader).contains("kept"));
    }
    let mut refused = ask(&name, FOLLOW);
    settle(&mut server);
    let answer: Response = serde_json::from_str(&line(&mut refused)).unwrap();
    let Response::Refused { message, .. } = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(message, "16 follow it already, and no line has more");
    assert_eq!(line(&mut refused), "", "and the connection ends");
    // Others are answered all the same.
    let mut looks = ask(&name, "{\"request\":\"events\",\"follow\":false}\n");
    settle(&mut server);
    assert!(line(&mut looks).contains("kept"));
    readers.pop();
    settle(&mut server);
    let mut next = ask(&name, FOLLOW);
    settle(&mut server);
    assert!(line(&mut next).contains("kept"));
}
