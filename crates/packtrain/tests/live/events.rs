//! What a line tells while things happen to it: in the right order, with the right reasons, and at once.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use packtrain::clock::Clock;
use packtrain::events::{
    LinkBecause, LinkChange, PathUse, PathWhy, PeerBecause, Record, UpOrDown, What,
};
use packtrain::lab::cable::Side;
use packtrain::lab::host::Host;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::cabled::{Cabled, status};
use crate::common::undo::{SOON, kill};
use crate::common::{B, packtrain, pings_whole};

/// `packtrain events --follow`, and when each line of it came.
struct Follower {
    child: Child,
    lines: Receiver<(String, u64)>,
}

impl Follower {
    fn start(host: &Host, more: &[&str]) -> Follower {
        let program = packtrain().to_str().expect("a path");
        let words = [&[program, "events", "pt0", "--follow"], more].concat();
        let mut command = host.namespace.command(words);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let clock = Clock::start();
            for line in out.lines().map_while(Result::ok) {
                if tell.send((line, clock.monotonic_nanos())).is_err() {
                    return;
                }
            }
        });
        Follower { child, lines }
    }

    /// All records up to the one that is looked for, and how long after `since` that came.
    #[track_caller]
    fn until(&self, since: u64, is_it: impl Fn(&What) -> bool) -> (Vec<Record>, Duration) {
        let mut records: Vec<Record> = Vec::new();
        loop {
            let Ok((line, at)) = self.lines.recv_timeout(SOON) else {
                panic!("it never came: {records:#?}");
            };
            let record: Record = serde_json::from_str(&line).unwrap();
            let is_last = is_it(&record.what);
            records.push(record);
            if is_last {
                return (records, Duration::from_nanos(at.saturating_sub(since)));
            }
        }
    }

    /// Code, and what it said at its end.
    fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        let mut err = self.child.stderr.take().unwrap();
        err.read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

fn link(of: &str, state: LinkChange, because: Option<LinkBecause>) -> impl Fn(&What) -> bool {
    let of = of.to_owned();
    move |what| matches!(what, What::Link { link, state: s, because: b, .. } if (link, *s, *b) == (&of, state, because))
}

fn path(of: &str, state: PathUse, because: Option<PathWhy>) -> impl Fn(&What) -> bool {
    let of = of.to_owned();
    move |what| matches!(what, What::Path { link, state: s, because: b, .. } if (link, *s, *b) == (&of, state, because))
}

/// In this order, whatever else there is between.
#[track_caller]
fn assert_order(records: &[Record], wanted: &[&dyn Fn(&What) -> bool]) {
    let mut rest = records.iter();
    for (n, is_it) in wanted.iter().enumerate() {
        assert!(
            rest.any(|record| is_it(&record.what)),
            "number {n} of {records:#?}"
        );
    }
}

#[track_caller]
fn assert_no_gap(records: &[Record]) {
    for pair in records.windows(2) {
        assert_eq!(pair[1].sequence, pair[0].sequence + 1);
        assert!(pair[1].monotonic_ns >= pair[0].monotonic_ns);
    }
}

#[test]
fn what_happens_to_cables_and_a_peer_is_told_in_order_with_its_reason_and_soon() {
    live!();
    use LinkBecause::{Asked, CarrierLost};
    use LinkChange::{Down, Joined, Leaving, Left, Up};
    use PathUse::{Closed, Gone, Open, Retiring};
    let clock = Clock::start();
    let now = || clock.monotonic_nanos();
    let mut cabled = Cabled::up_unshaped("events", 2);
    let follower = Follower::start(&cabled.a, &["--json"]);
    let reader = Follower::start(&cabled.a, &[]);

    // Those that were before it looked.
    let (begun, _) = follower.until(0, path("eth2", Open, None));
    assert_eq!(begun[0].sequence, 1);
    assert_no_gap(&begun);
    let line_up =
        |what: &What| matches!(what, What::Line { line, state: UpOrDown::Up, .. } if line == "pt0");
    let peer_up = |what: &What| {
        matches!(
            what,
            What::Peer {
                state: UpOrDown::Up,
                ..
            }
        )
    };
    let joined = |of| link(of, Joined, None);
    assert_order(
        &begun,
        &[&joined("eth1"), &joined("eth2"), &line_up, &peer_up],
    );
    assert_order(&begun, &[&peer_up, &path("eth1", Open, None)]);

    // A cable is pulled at its other end, and put back.
    let cut_at = now();
    cabled.cables[1].cut(Side::B).unwrap();
    let lost = link("eth2", Down, Some(CarrierLost));
    let (records, link_told) = follower.until(cut_at, &lost);
    let happened = records.last().unwrap().monotonic_ns.saturating_sub(cut_at);
    let closed = |what: &What| matches!(what, What::Path { link, state: Closed, before: Some(Open), .. } if link == "eth2");
    let also = records.iter().any(|record| closed(&record.what));
    let path_told = match also {
        true => link_told,
        false => follower.until(cut_at, closed).1,
    };
    println!(
        "a cut cable: by the daemon after {:?}, read after {link_told:?}, of the path {path_told:?}",
        Duration::from_nanos(happened)
    );
    let mended_at = now();
    cabled.cables[1].mend(Side::B).unwrap();
    let (records, told) = follower.until(mended_at, path("eth2", Open, None));
    assert_order(
        &records,
        &[&link("eth2", Up, None), &path("eth2", Open, None)],
    );
    println!("mended: the path is open again after {told:?}");
    // Between the two it may have been held back: it has failed.
    let began = records.iter().find_map(|record| match &record.what {
        What::Path {
            link,
            before,
            lasted_ns,
            ..
        } if link == "eth2" => Some((*before, *lasted_ns)),
        _ => None,
    });
    let (before, lasted_ns) = began.unwrap();
    assert_eq!(before, Some(Closed));
    let lasted = Duration::from_nanos(lasted_ns.unwrap());
    assert!(lasted < Duration::from_nanos(now() - cut_at), "{lasted:?}");

    // What is measured by some traffic stands in the status.
    assert!(pings_whole(&cabled.a, B, 500));
    let peer = status(&cabled.a).peers.remove(0);
    let used = peer.links.iter().filter(|path| path.round_trip_s.is_some());
    let mut of_used = used.map(|path| (path.round_trip_jitter_s, path.tx_later_s));
    let is_known = |(jitter, later): (Option<f64>, Option<f64>)| {
        jitter.is_some_and(|s| s < 1.0) && later.is_some_and(|s| s < 1.0)
    };
    assert!(of_used.any(is_known), "{peer:#?}");
    assert!(
        peer.links.iter().any(|path| path.rx_loss_ppm == Some(0)),
        "{peer:#?}"
    );

    // A link leaves by command.
    cabled
        .a
        .packtrain(&["link", "remove", "pt0", "eth2"])
        .unwrap();
    let (records, _) = follower.until(0, link("eth2", Left, Some(Asked)));
    let steps: [&dyn Fn(&What) -> bool; 4] = [
        &link("eth2", Leaving, Some(Asked)),
        &path("eth2", Retiring, Some(PathWhy::Retiring)),
        &path("eth2", Gone, None),
        &link("eth2", Left, Some(Asked)),
    ];
    assert_order(&records, &steps);

    // The peer dies, and is started anew.
    kill(&cabled.b, Signal::KILL);
    cabled.b_up();
    let restarted = |what: &What| {
        matches!(
            what,
            What::Peer {
                because: Some(PeerBecause::Restarted),
                ..
            }
        )
    };
    let (records, _) = follower.until(0, peer_up);
    assert_order(&records, &[&restarted, &peer_up]);
    let node = |record: &Record| match &record.what {
        What::Peer { node_id, .. } => Some(node_id.clone()),
        _ => None,
    };
    let nodes: Vec<String> = records.iter().filter_map(node).collect();
    assert_ne!(nodes.first(), nodes.last());

    // Who only looks, and who has seen enough.
    let looked = cabled
        .a
        .packtrain(&["events", "-n", "2", "--json"])
        .unwrap();
    assert_eq!(looked.lines().count(), 2);
    let looked = cabled
        .a
        .packtrain(&["events", "pt0", "--since", "1h"])
        .unwrap();
    assert!(
        looked.contains("line     pt0                up\n"),
        "{looked}"
    );
    let mut lines = std::iter::from_fn(|| reader.lines.recv_timeout(SOON).ok());
    let told = "link     eth2               down      carrier lost";
    assert!(lines.any(|(line, _)| line.ends_with(told)), "{told}");
    kill_process(Pid::from_child(&reader.child), Signal::INT).unwrap();
    assert_eq!(reader.end(), (Some(0), "interrupted; pt0 goes on\n".into()));

    cabled.a.packtrain(&["down", "pt0"]).unwrap();
    let is_end = |what: &What| {
        matches!(
            what,
            What::Line {
                state: UpOrDown::Down,
                ..
            }
        )
    };
    let (rest, _) = follower.until(0, is_end);
    assert_no_gap(&rest);
    assert_eq!(
        follower.end(),
        (Some(9), "error: pt0 has ended: packtrain down\n".into())
    );
}
