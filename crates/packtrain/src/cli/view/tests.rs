use super::*;
use crate::status::samples::{busy_snapshot, facts, quiet_snapshot};
use crate::status::{Coding, PeerLink};
use packtrain_proto::class::Pack;
use packtrain_proto::config::LinkId;
use packtrain_proto::queue::pressure::AutoChoice;
use packtrain_proto::stats::{
    Drops, LinkSnapshot, PathSnapshot, PathState, ReplaySnapshot, Snapshot,
};

/// As a pipe gets it.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn a_line_without_peers_says_plainly_that_frames_go_plain() {
    let document = StatusDocument::build(
        &quiet_snapshot(),
        &facts(&[LinkCondition::Up, LinkCondition::Absent]),
    );
    let pid = std::process::id();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        plain(&line(&document)),
        format!(
            "line pt0: up
  address    02:00:00:00:00:01, 10.9.0.1/24
  mtu        1500
  node       0123456789abcdef, line 0, packtrain {version}
  running    for 1 min 1 s, pid {pid}
  peers      none: no host with packtrain answers, frames go plain
  from host  0 frames, 0 B
  by ring    40; 2 by the TAP, 1 of them because it was full
  to host    0 frames, 0 B
  together   12 datagrams as 3, 40 segments as 2 GSO frames
  trains     0 sent; 0 received
  unpacked   0 as they are and 0 plain sent
  drops      3 intake_full

link eth1: up
  address    02:00:00:00:00:02, mtu 1500
  drained    4 Gbit/s past the engine, 250.0 ms ago
  shaped     past the engine in ptq7, 980 Mbit/s, 12,500 bytes a frame at most
  backlog    0 B queued, 0 B in flight
  watched by acknowledgements
  sent       0 frames, 0 B
  received   0 frames, 0 B
  drops      5 socket_overrun

link eth2: absent

warning: eth2 does not exist: it joins when it appears
warning: no peer answers: frames go plain
"
        )
    );
    assert_eq!(
        peer_table(&document),
        "pt0 has no peer: no host with packtrain answers, frames go plain\n"
    );
}

#[test]
fn where_flows_may_be_lost_with_a_link_it_is_said_over_which_they_are_spread() {
    let mut document = StatusDocument::build(&busy_snapshot(), &facts(&[LinkCondition::Up]));
    let path = document.peers[0].links[0].clone();
    let mut said = |loss_ok: bool, paths: &[(&str, Option<&str>, bool)]| {
        document.classes[0].loss_ok = loss_ok;
        let paths = paths
            .iter()
            .map(|&(link, direct, direct_stripes)| PeerLink {
                link: link.to_owned(),
                direct: direct.map(str::to_owned),
                direct_stripes,
                ..path.clone()
            });
        document.peers[0].links = paths.collect();
        let text = plain(&line(&document));
        let mut rows = text.lines();
        rows.find_map(|row| row.strip_prefix("  loss ok    ").map(str::to_owned))
    };
    let open = Some("loss_ok");
    let both = [("a", open, true), ("b", open, true)];
    assert_eq!(
        said(true, &both).unwrap(),
        "past the engine, TCP spread over a, b"
    );
    assert_eq!(said(false, &both), None);
    let late = [("a", open, true), ("b", open, true), ("c", open, false)];
    assert_eq!(
        said(true, &late).unwrap(),
        "past the engine, TCP spread over a, b; c not"
    );
    let apart = [("a", open, true), ("b", open, false)];
    assert_eq!(
        said(true, &apart).unwrap(),
        "past the engine, each flow by one link"
    );
    assert_eq!(said(true, &[("a", open, true), ("b", None, false)]), None);
}

#[test]
fn a_busy_line_fits_80_columns_and_shows_its_peer() {
    let document = StatusDocument::build(&busy_snapshot(), &facts(&[LinkCondition::Up]));
    let text = plain(&line(&document));
    for row in text.lines() {
        assert!(row.chars().count() <= WIDTH, "{row}");
    }
    for part in [
        "trains     4 sent, 2.5 frames each; 0 received",
        "rate       100 Mbit/s, measured 250.0 ms ago",
        "backlog    3.0 KiB queued, 5.9 KiB in flight",
        "sent       1,234,567 frames, 1.4 GiB",
        "peer 02:00:00:00:00:08: up",
        "takes      marked_frames, gso_in_trains, coded_trains, liveness, repair,\n\
         \x20            polls; mtu 9000\n",
        "eth1 to 02:00:00:00:00:09, 317 µs, 99 Mbit/s, 2 trains lost, trains\n\
         \x20            of 1500 for bit errors of 1.5e-6, reorders\n",
        "waited     12,345 small frames: half within 590 µs, 99 % within 950 µs\n",
        "small ones at eth1 485 µs at most, 1,514 bytes at once; late for less\n",
        "measured   rate 1.2 s ago, least 317 µs, jitter 20 µs, lost 0 % out, 0.1234 %\n\
         \x20            in\n",
        "held       12,346 of 1,234,567 trains received, p99 88 µs, 2.3 ms at most",
        "on wire    390.6 KiB for 976.6 KiB of frames\n",
        "saved by   framing 195.3 KiB (20.0%), padding 48.8 KiB (5.0%), headers 244.1\n\
         \x20            KiB (25.0%), payload 97.7 KiB (10.0%)\n",
        "coded      3 sent, 1,234 frames told apart, 2 received; 6.2 ms CPU per MB\n\
         \x20            compressed\n",
        "dictionary 1003e603, 8.0 KiB of /etc/packtrain/json.dict; trains with it: 1\n\
         \x20            sent, 2 received\n",
        "dictionary the same, used where it is worth it\n",
        "too long   1,034 frames, of 1,000 their senders were told\n",
        "hosts without packtrain: 2",
        "aggregates 3 sent, 15.0 frames each; 0 received",
        "waits      on by traffic count: 1,235 frames/s on average",
        "sent to    02:00:00:00:00:1e\n",
        "02:00:00:00:00:14 on eth1, heard 12.0 s ago",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
}

#[test]
fn what_trains_cost_more_than_they_save_is_said_as_such_and_nothing_before_the_first() {
    let said = |coding: Coding| {
        let mut out = String::new();
        write_coding(&mut out, &coding);
        out
    };
    assert_eq!(said(Coding::default()), "");
    let mut alone = Coding {
        frame_bytes: 1000,
        train_bytes: 1040,
        ..Coding::default()
    };
    alone.saved.framing.bytes = -40;
    alone.saved.framing.percent = Some(-4.0);
    assert_eq!(
        said(alone),
        "  on wire    1.0 KiB for 1000 B of frames\n  saved by   framing -40 B (-4.0%)\n"
    );
}

#[test]
fn why_a_peer_and_the_line_do_not_use_a_dictionary_is_said_where_either_has_one() {
    let said = |theirs: Option<u32>, unused| {
        let mut snapshot = busy_snapshot();
        snapshot.dictionary = None;
        snapshot.peers[0].dictionary = theirs;
        snapshot.peers[0].dictionary_unused = Some(unused);
        let document = StatusDocument::build(&snapshot, &facts(&[LinkCondition::Up]));
        let text = plain(&line(&document));
        let said = text
            .lines()
            .find_map(|row| row.strip_prefix("  dictionary "));
        said.unwrap_or_default().to_owned()
    };
    use packtrain_proto::stats::DictionaryUnused::*;
    for (theirs, unused, text) in [
        (None, NoneHere, ""),
        (
            Some(0xabc),
            NoneHere,
            "00000abc; not used: this line has none",
        ),
        (None, NoneThere, "none; ours is not used"),
        (
            Some(0xabc),
            AnotherThere,
            "00000abc; not used: ours is another one",
        ),
        (Some(0xabc), NotUp, "00000abc; not used: it is not up"),
        (None, NotCoded, "none; not used: trains to it are not coded"),
        (
            Some(0xabc),
            Classes,
            "00000abc; not used: no class has its payload compressed",
        ),
        (
            Some(0xabc),
            RateUnknown,
            "00000abc; not used: how fast its links are is not known yet",
        ),
        (
            Some(0xabc),
            FastLinks,
            "00000abc; not used: its links are faster than compressing is",
        ),
    ] {
        assert_eq!(said(theirs, unused), text);
    }
}

#[test]
fn how_many_of_the_hosts_frames_came_by_the_ring_is_said_once_it_was_used() {
    let text = |frames, tap_frames, full| {
        let counted = HostRing {
            frames,
            tap_frames,
            full,
        };
        ring(counted).unwrap_or_default()
    };
    assert_eq!(text(1_234_567, 1_890, 0), "1,234,567; 1,890 by the TAP");
    assert_eq!(
        text(0, 9, 4),
        "0; 9 by the TAP, 4 of them because it was full"
    );
    // It is closed, or there were only large ones: nothing is to be said of it.
    assert_eq!(text(0, 9, 0), "");
}

#[test]
fn a_line_without_a_ring_says_nothing_of_one() {
    let mut told = facts(&[LinkCondition::Up]);
    for intake in [told.intake.map(|i| Intake { ring: None, ..i }), None] {
        told.intake = intake;
        let text = plain(&line(&StatusDocument::build(&quiet_snapshot(), &told)));
        assert!(!text.contains("by ring"), "{text}");
    }
}

#[test]
fn where_small_frames_go_that_were_too_many_for_the_engine_is_said_with_what_either_way_carried() {
    let mut snapshot = busy_snapshot();
    let said = |snapshot: &Snapshot| {
        let document = StatusDocument::build(snapshot, &facts(&[LinkCondition::Up]));
        let text = plain(&line(&document));
        let said = text.lines().find(|row| row.contains("when many"));
        said.map(str::to_owned)
    };
    // Only one way was measured: nothing was chosen.
    snapshot.direct.small_frames_per_second.direct = Some(1_190_000);
    assert_eq!(said(&snapshot), None);
    snapshot.direct.small_frames_per_second.engine = Some(1_250_000);
    assert_eq!(
        said(&snapshot).unwrap(),
        "  small ones are packed when many: 1,250,000/s packed, 1,190,000/s directly"
    );
    snapshot.direct.small_frames_per_second.direct = None;
    snapshot.direct.leaves_small_frames = true;
    assert_eq!(
        said(&snapshot).unwrap(),
        "  small ones go directly when many: 1,250,000/s packed"
    );
}

#[test]
fn what_auto_does_with_frames_is_said_where_a_class_packs_by_it() {
    let mut snapshot = busy_snapshot();
    let said = |snapshot: &Snapshot| {
        let document = StatusDocument::build(snapshot, &facts(&[LinkCondition::Up]));
        let text = plain(&line(&document));
        let said = text.lines().find(|row| row.contains("auto packs"));
        said.map(str::to_owned)
    };
    assert_eq!(said(&snapshot), None);
    snapshot.classes[0].action.pack = Pack::Auto;
    assert_eq!(
        said(&snapshot).unwrap(),
        "  auto packs frames wait 200 µs at most: the link is short of frames a second"
    );
    snapshot.peers[0].auto = AutoChoice::Alone;
    assert_eq!(
        said(&snapshot).unwrap(),
        "  auto packs at once: no other frame is to be expected so soon"
    );
}

#[test]
fn several_links_and_paths_stand_beside_each_other_within_80_columns() {
    let mut snapshot = busy_snapshot();
    snapshot.links.push(LinkSnapshot {
        id: LinkId(1),
        home: false,
        retiring: true,
        trains_tx: 1_234_567,
        drops: Drops::default(),
        ..snapshot.links[0].clone()
    });
    let path = snapshot.peers[0].paths[0].clone();
    snapshot.peers[0].paths[1] = PathSnapshot {
        link: LinkId(1),
        state: PathState::TooSlow,
        lost_trains: 0,
        reordering_seen: false,
        ..path
    };
    snapshot.replay = ReplaySnapshot {
        kept_trains: 12,
        kept_bytes: 18_432,
        kept_bytes_max_seen: 16 << 20,
        waiting_trains: 2,
        replayed: 40,
        repaired: 7,
        not_repaired: 2,
        duplicated: 3000,
        not_duplicated: 5,
        not_kept: 1,
    };
    let up = LinkCondition::Up;
    let mut told = facts(&[up, up, LinkCondition::Absent]);
    told.links[1].drops.clear();
    let text = plain(&line(&StatusDocument::build(&snapshot, &told)));
    for row in text.lines() {
        assert!(row.chars().count() <= WIDTH, "{row}");
    }
    for part in [
        "  copies of  12 trains until acknowledged, 18.0 KiB; 16.0 MiB at most so far\n\
             \x20 sent again 40 trains, 7 repaired, 2 wait, 1 were without a copy, 2 lost\n\
             \x20 sent twice 3,000 trains, by two links; 5 by one\n",
        "links: 3, earliest-finish\n\
             \x20 LINK  STATE     MTU   RATE        SENT     RECEIVED  TRAINS OUT  IN\n\
             \x20 eth1  up, home  1500  100 Mbit/s  1.4 GiB  500 B     0           0\n\
             \x20 eth2  leaving   1500  100 Mbit/s  1.4 GiB  500 B     1,234,567   0\n\
             \x20 eth3  absent    -     -           0 B      0 B       0           0\n\
             \x20 drops      on eth1: ",
        "  PATH  TO                 STATE     RTT     RATE       IN FLIGHT  LOST\n\
             \x20 eth1  02:00:00:00:00:09  open      317 µs  99 Mbit/s  5.9 KiB    2, reorders\n\
             \x20 eth2  02:00:00:00:00:09  too slow  317 µs  99 Mbit/s  5.9 KiB    0\n\
             \x20 PATH  RATE SEEN  LEAST RTT  JITTER  LOST OUT  IN        LATER OUT  IN\n\
             \x20 eth1  1.2 s ago  317 µs     20 µs   0 %       0.1234 %  0 µs       12.3 ms\n\
             \x20 eth2  1.2 s ago  317 µs     20 µs   0 %       0.1234 %  0 µs       12.3 ms\n",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
}

#[test]
fn what_a_single_path_is_not_used_for_is_said_with_its_reason() {
    let mut snapshot = busy_snapshot();
    snapshot.peers[0].paths.truncate(1);
    snapshot.peers[0].paths[0].state = PathState::Silent;
    let document = StatusDocument::build(&snapshot, &facts(&[LinkCondition::Up]));
    let text = plain(&line(&document));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("reorders, silent: its other end is not heard"),
        "{text}"
    );
}

#[test]
fn what_stays_when_the_daemon_ends_is_told_and_why_nothing_would() {
    let text = |kept, carries| {
        stays(Stay {
            seconds: 60,
            kept,
            carries,
        })
    };
    assert_eq!(text(true, true), "60 s when its daemon ends");
    assert!(text(true, false).contains("no frames can go directly now"));
    assert!(text(false, true).starts_with("no: its keeper is not at work"));
}
