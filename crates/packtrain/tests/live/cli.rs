//! The real binary between network namespaces: what a person does, and what a person does wrong.

mod classes;
pub mod host;

use std::time::Duration;

use packtrain::lab::wait_for;
use packtrain::linux::scheduling::run_in_real_time;
use serde_json::Value;

use host::{Host, Outcome, PACKTRAIN, schema_problems};

#[test]
fn up_returns_when_the_line_stands_and_down_when_nothing_is_left() {
    live!();
    let (a, b) = Host::pair();
    let before = a.dump();

    let up = a.done("up pt0 --link eth1 --address 10.9.0.1/24 --mtu 9000");
    assert_eq!((up.out.as_str(), up.err.as_str()), ("", ""));
    let shown = a.sh("ip address show pt0");
    assert!(
        shown.contains("UP") && shown.contains("mtu 9000"),
        "{shown}"
    );
    assert!(shown.contains("10.9.0.1/24"), "{shown}");
    b.done("up pt0 --link eth1 --address 10.9.0.2/24 --mtu 9000");

    a.sh("ping -c 2 -i 0.2 -W 2 10.9.0.2");
    a.wait("the peer", |status| status["peers"][0]["up"] == true);
    a.sh("ping -c 2 -i 0.2 -W 2 -s 8000 -M do 10.9.0.2");

    let status = a.status("pt0");
    assert_eq!(schema_problems(&status), Vec::<String>::new());
    assert_eq!(status["addresses"][0], "10.9.0.1/24");
    assert_eq!(status["links"][0]["name"], "eth1");
    assert_eq!(status["links"][0]["state"], "up");
    assert_eq!(
        status["peers"][0]["addresses"][0],
        b.status("pt0")["address"]
    );
    assert!(
        status["trains"]["tx"]["pieces"].as_u64() > Some(0),
        "{status:#}"
    );
    assert_eq!(status["warnings"], serde_json::json!([]));
    let seen = a.done("status").out;
    assert!(
        seen.contains("line pt0: up") && seen.contains("link eth1: up"),
        "{seen}"
    );
    assert!(
        a.done("peer list pt0").out.starts_with("ADDRESS"),
        "a table"
    );
    let peers: Value = serde_json::from_str(&a.done("peer list pt0 --json").out).unwrap();
    assert_eq!(peers[0]["node_id"], b.status("pt0")["node_id"]);

    let down = a.done("down pt0");
    assert_eq!((down.out.as_str(), down.err.as_str()), ("", ""));
    assert!(!a.has("pt0"));
    a.is_as(&before, "");
    a.fails(
        "status pt0",
        9,
        "error: pt0 is not running\n       no line runs in this network namespace\n",
    );
    b.wait("its goodbye", |status| {
        status["peers"] == serde_json::json!([])
    });
    b.wait("the warning", |status| {
        status["warnings"]
            .to_string()
            .contains("no peer answers: frames go plain")
    });
}

#[test]
fn lines_of_different_namespaces_never_see_each_other_and_several_of_one_do() {
    live!();
    let (a, b) = Host::pair();
    a.sh("ip link add eth5 type veth peer name eth6 && ip link set eth5 up");
    a.done("up pt0 --link eth1");
    a.done("up pt1 --link eth5 --line-id 7");
    assert_eq!(
        b.done("status").out,
        "no line runs in this network namespace\n"
    );
    assert_eq!(b.done("status --json").out, "[]\n");
    b.fails(
        "down pt1",
        9,
        "error: pt1 is not running\n       no line runs in this network namespace\n",
    );
    a.fails(
        "down pt5",
        9,
        "error: pt5 is not running\n       running in this network namespace: pt0, pt1\n",
    );
    b.done("down --all");
    let all: Value = serde_json::from_str(&a.done("status --json").out).unwrap();
    assert_eq!(all[0]["name"], "pt0");
    assert_eq!(
        (&all[1]["name"], &all[1]["line_id"]),
        (&"pt1".into(), &7.into())
    );
    a.done("down --all");
    assert!(!a.has("pt0") && !a.has("pt1"));
    assert_eq!(
        a.done("status").out,
        "no line runs in this network namespace\n"
    );
}

#[test]
fn each_wrong_use_of_up_has_its_words_and_its_code() {
    live!();
    let host = Host::alone();
    host.sh("ip link add busy type bridge; ip link set eth2 mtu 575");
    let before = host.dump();
    host.fails(
        "up pt0 --link eth8 --link eth9",
        4,
        "error: no such interface: eth8, eth9\n       with --wait-links the line starts and \
         waits for its links\n",
    );
    host.fails(
        "up pt0 --link lo",
        4,
        "error: lo is not an Ethernet interface\n",
    );
    host.fails(
        "up pt0 --link eth2",
        6,
        "error: eth2 has an MTU of 575: a link needs at least 576\n",
    );
    host.fails(
        "up busy --link eth1",
        8,
        "error: the name busy is taken: there is an interface of that name (bridge)\n",
    );
    host.is_as(&before, "");

    host.done("up pt0 --link eth1");
    let pid = host.pid("pt0");
    host.fails(
        "up pt0 --link eth1",
        10,
        &format!("error: pt0 is running already (pid {pid})\n"),
    );
    host.fails(
        "up pt1 --link eth1",
        5,
        "error: eth1 is in line pt0 already: an interface belongs to one line\n",
    );
    host.fails(
        "up pt1 --link pt0",
        5,
        "error: pt0 is in line pt0 already: an interface belongs to one line\n",
    );
    // In the foreground, the same.
    host.fails_in_foreground("up pt1 --link eth1 --foreground", 5);
    assert!(!host.has("pt1"));
}

impl Host {
    fn fails_in_foreground(&self, arguments: &str, code: i32) {
        let outcome = self.packtrain(arguments);
        assert_eq!(outcome.code, code, "{}", outcome.err);
        assert!(outcome.err.starts_with("error: "), "{}", outcome.err);
    }
}

#[test]
fn without_rights_the_missing_capability_is_named() {
    live!();
    let host = Host::alone();
    let outcome = host.as_other("up pt0 --link eth1");
    assert_eq!(outcome.code, 7);
    assert_eq!(
        outcome.err,
        "error: not allowed: this needs CAP_NET_ADMIN and CAP_NET_RAW and CAP_BPF\n       \
         run it as root, or in a user and network namespace of your own\n"
    );
    let without_raw = host.0.try_exec([
        "setpriv",
        "--bounding-set",
        "-net_raw",
        "--inh-caps",
        "-net_raw",
        PACKTRAIN,
        "up",
        "pt0",
        "--link",
        "eth1",
    ]);
    let without_raw = Outcome::from(without_raw.unwrap());
    assert_eq!(without_raw.code, 7);
    assert!(
        without_raw
            .err
            .starts_with("error: not allowed: this needs CAP_NET_RAW\n")
    );

    host.done("up pt0 --link eth1");
    let outcome = host.as_other("down pt0");
    assert_eq!(
        (outcome.code, outcome.err.as_str()),
        (7, "error: not allowed: only root may end pt0\n")
    );
    let outcome = host.as_other("status pt0");
    assert!(
        outcome.code == 0 && outcome.out.starts_with("line pt0: up"),
        "{outcome:?}"
    );
}

#[test]
fn what_stops_nothing_is_a_note() {
    live!();
    let host = Host::alone();
    host.sh("ip address add 192.0.2.1/24 dev eth1; ip link set eth2 down");
    let up = host.done("up pt0 --link eth1 --link eth2 --link eth9");
    assert_eq!(
        up.err,
        "note: eth9 does not exist yet: it joins when it appears\n\
         note: eth2 is set down: it joins when it is set up (ip link set eth2 up)\n\
         note: eth1 has an address of its own (192.0.2.1/24): it goes on working on eth1, beside \
         the line; pt0 does not take it over\n"
    );
    let states: Vec<Value> = host.status("pt0")["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["state"].clone())
        .collect();
    assert_eq!(states, ["no-carrier", "down", "absent"]);

    host.sh("ip link set eth2 up");
    host.wait("both links", |s| {
        s["links"][0]["state"] == "up" && s["links"][1]["state"] == "up"
    });
}

#[test]
fn a_link_that_is_absent_joins_when_it_appears_and_again_when_it_comes_back() {
    live!();
    let (a, b) = Host::pair();
    let up = a.done("up pt0 --link wire --wait-links --address 10.9.0.1/24");
    assert!(
        up.err
            .contains("note: wire does not exist yet: it joins when it appears\n")
    );
    assert!(up.err.contains("the MAC address of pt0 is"), "{}", up.err);
    assert_eq!(a.status("pt0")["links"][0]["state"], "absent");
    b.done("up pt0 --link eth1 --address 10.9.0.2/24");

    a.sh("ip link set eth1 down; ip link set eth1 name wire; ip link set wire up");
    a.wait("the link", |status| status["links"][0]["state"] == "up");
    a.sh("ping -c 1 -W 2 10.9.0.2");

    a.sh("ip link set wire down");
    a.wait("that it is down", |status| {
        status["links"][0]["state"] == "down"
    });
    a.sh("ip link set wire up; ip link set wire name other");
    a.wait("that it stays under another name", |status| {
        status["links"][0]["state"] == "up"
            && status["warnings"]
                .to_string()
                .contains("wire is named other now")
    });
    a.sh("ip link delete other");
    a.wait("that it is gone", |status| {
        status["links"][0]["state"] == "absent"
    });
    a.sh(&format!(
        "ip link add wire type veth peer name eth1 netns {}",
        b.0.name()
    ));
    a.sh("ip link set wire up");
    b.sh("ip link set eth1 up");
    a.wait("the peer over the new link", |status| {
        status["peers"][0]["up"] == true
    });
    a.sh("ping -c 1 -W 2 10.9.0.2");
}

#[test]
fn what_people_do_to_pt0_by_hand_is_followed_and_its_deletion_ends_the_line() {
    live!();
    let host = Host::alone();
    host.done("up pt0 --link eth1 --address 10.9.0.1/24");
    host.sh("ip link set pt0 mtu 4000; ip address add 10.9.1.1/24 dev pt0");
    host.wait("the MTU and the address", |s| {
        s["mtu"] == 4000 && s["addresses"].to_string().contains("10.9.1.1/24")
    });
    host.sh("ip address del 10.9.0.1/24 dev pt0; ip link set pt0 down");
    host.wait("that it is down", |s| {
        s["up"] == false && !s["addresses"].to_string().contains("10.9.0.1/24")
    });
    host.sh("ip link set pt0 up; ip link add br0 type bridge; ip link set pt0 master br0");
    host.wait("the bridge", |s| {
        s["up"] == true && s["promiscuous"] == true
    });
    host.sh("ip link set pt0 nomaster");
    host.wait("that it left the bridge", |s| s["promiscuous"] == false);

    host.sh("ip link delete pt0");
    wait_for("the end of the line", Duration::from_secs(5), || {
        host.packtrain("status pt0").code == 9
    })
    .unwrap();
    host.done("up pt0 --link eth1");
}

#[test]
fn after_kill_9_the_next_up_or_down_leaves_the_host_as_it_was() {
    live!();
    let host = Host::alone();
    let before = host.dump();
    for next in ["up", "down"] {
        host.done("up pt0 --link eth1 --address 10.9.0.1/24");
        let pid = host.pid("pt0");
        host.sh(&format!("kill -9 {pid}"));
        wait_for("its end", Duration::from_secs(5), || !host.has("pt0")).unwrap();
        if next == "up" {
            host.done("up pt0 --link eth1");
        }
        host.done("down pt0");
        host.is_as(&before, next);
    }
    host.fails(
        "down pt0",
        9,
        "error: pt0 is not running\n       no line runs in this network namespace\n",
    );
}

#[test]
fn a_line_goes_before_other_programs_but_not_where_a_nice_value_was_chosen_for_it() {
    live!();
    let host = Host::alone();
    let nice = |pid: &str| host.sh(&format!("ps -o ni= -p {pid}")).trim().to_owned();
    let class = |pid: &str| host.sh(&format!("ps -o cls= -p {pid}")).trim().to_owned();
    let session = |pid: &str| host.sh(&format!("cat /proc/{pid}/autogroup 2>/dev/null || true"));
    let own = nice(&std::process::id().to_string());
    let may_be_first = std::thread::spawn(|| run_in_real_time().is_ok());
    let expected = match may_be_first.join().unwrap() {
        // Those have no nice value.
        true => ("RR", "-"),
        false => ("TS", "-10"),
    };
    host.done("up pt0 --link eth1");
    let pid = host.pid("pt0").to_string();
    if own == "0" {
        // A line that stands begins with it, and one that still has much to do leaves it for a second.
        wait_for("the class", Duration::from_secs(10), || {
            (&*class(&pid), &*nice(&pid)) == expected
        })
        .unwrap();
        let session = session(&pid);
        assert!(
            session.is_empty() || session.ends_with(" nice -10\n"),
            "{session}"
        );
    } else {
        assert_eq!((&*class(&pid), nice(&pid)), ("TS", own.clone()));
    }
    host.done("down pt0");

    host.sh(&format!("nice -n 7 {PACKTRAIN} up pt0 --link eth1"));
    let pid = host.pid("pt0").to_string();
    let chosen = own.parse::<i32>().unwrap() + 7;
    assert_eq!((&*class(&pid), nice(&pid)), ("TS", chosen.to_string()));
    let session = session(&pid);
    assert!(
        session.is_empty() || session.ends_with(" nice 0\n"),
        "{session}"
    );
}

#[test]
fn a_signal_ends_a_line_in_the_foreground_and_undoes_everything() {
    live!();
    let host = Host::alone();
    let before = host.dump();
    let file = std::env::temp_dir().join(format!("packtrain-{}-run.toml", std::process::id()));
    std::fs::write(
        &file,
        "name = 'pt0'\naddresses = ['10.9.0.1/24']\n[[link]]\nname = 'eth1'\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    for (signal, words) in [
        ("INT", vec!["up", "pt0", "--link", "eth1", "--foreground"]),
        ("TERM", vec!["run", file]),
        ("HUP", vec!["run", file]),
    ] {
        let line = host.0.spawn([PACKTRAIN].into_iter().chain(words)).unwrap();
        // The kernel looks at programs for seconds, where processors are busy.
        wait_for("the line", Duration::from_secs(20), || {
            host.packtrain("status pt0").code == 0
        })
        .unwrap();
        host.sh(&format!("kill -{signal} {}", host.pid("pt0")));
        line.finish()
            .unwrap_or_else(|error| panic!("{signal}: {error}"));
        host.is_as(&before, signal);
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn an_up_that_is_interrupted_leaves_either_a_line_or_nothing() {
    live!();
    let host = Host::alone();
    let before = host.dump();
    // The later, the nearer to the line standing; it takes some 30 ms.
    for delay_ms in [0, 2, 5, 10, 15, 20, 30] {
        let up = host.sh(&format!(
            "{PACKTRAIN} up pt0 --link eth1 & up=$!; sleep 0.{delay_ms:03}; kill -INT $up; \
             wait $up; echo $?"
        ));
        match up.trim() {
            // Before signals were caught the shell's own words: 128 + SIGINT, too.
            "130" => {}
            "0" => drop(host.done("down pt0")),
            other => panic!("{delay_ms} ms: {other}"),
        }
        wait_for("nothing left", Duration::from_secs(5), || {
            host.packtrain("status pt0").code == 9 && host.dump() == before
        })
        .unwrap_or_else(|error| panic!("{delay_ms} ms: {error}"));
    }
}

#[test]
fn the_address_of_pt0_is_the_same_at_each_start_and_node_ids_are_not() {
    live!();
    let host = Host::alone();
    let start = |more: &str| {
        host.done(&format!("up pt0 --link eth1 {more}"));
        let status = host.status("pt0");
        host.done("down pt0");
        (status["address"].clone(), status["node_id"].clone())
    };
    let (first, second) = (start(""), start(""));
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1);
    assert_eq!(start("--mac 02:00:00:00:00:77").0, "02:00:00:00:00:77");
}

#[test]
fn what_up_prints_can_be_captured_and_the_log_is_where_the_documentation_says() {
    live!();
    let host = Host::alone();
    // A line that kept the pipe open would keep the shell waiting for as long as it lives.
    let printed = host.sh(&format!(
        "timeout 10 sh -c 'x=$({PACKTRAIN} up pt0 --link eth1 2>&1); echo got$x'"
    ));
    assert_eq!(printed, "got\n");
    let inode = host.sh("readlink /proc/self/ns/net | tr -dc 0-9");
    let log = std::fs::read_to_string(format!("/run/packtrain/{inode}/pt0.log")).unwrap();
    assert!(
        log.contains("link eth1 joined: MTU 1500") && log.contains("line pt0 up"),
        "{log}"
    );
    assert!(!log.contains('\u{1b}'), "no colour in a file");

    // A second up is refused, and takes nothing from the line that runs.
    assert_eq!(host.packtrain("up pt0 --link eth1").code, 10);
    let dir = format!("/run/packtrain/{inode}");
    let files = || {
        let mut names: Vec<String> = std::fs::read_dir(&dir)
            .map(|dir| {
                dir.map(|e| e.unwrap().file_name().into_string().unwrap())
                    .collect()
            })
            .unwrap_or_default();
        // The kernel gives numbers of namespaces anew: others' logs may lie beside ours.
        names.retain(|name| name.starts_with("pt0."));
        names.sort();
        names
    };
    assert_eq!(files(), ["pt0.json", "pt0.log"]);
    host.done("down pt0");
    assert_eq!(files(), Vec::<String>::new());
}
