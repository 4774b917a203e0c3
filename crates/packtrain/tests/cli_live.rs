//! The real binary between network namespaces: what a person does, and what a person does wrong.

mod common;

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use packtrain::lab::namespaces::Namespace;
use packtrain::lab::pcapng;
use packtrain::lab::wait_for;
use serde_json::Value;

const PACKTRAIN: &str = env!("CARGO_BIN_EXE_packtrain");
/// `nobody`.
const OTHER_UID: u32 = 65_534;

/// A namespace with an `eth1` that ends in another one's.
struct Host(Namespace);

#[derive(Debug, PartialEq)]
struct Outcome {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        Outcome {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Host {
    fn pair() -> (Host, Host) {
        let (a, b) = (
            Namespace::create("cli").unwrap(),
            Namespace::create("cli").unwrap(),
        );
        let (a, b) = (Host(a), Host(b));
        a.sh(&format!(
            "ip link add eth1 type veth peer name eth1 netns {}",
            b.0.name()
        ));
        a.sh("ip link set eth1 up");
        b.sh("ip link set eth1 up");
        a.settle();
        b.settle();
        (a, b)
    }

    fn alone() -> Host {
        let host = Host::create();
        host.sh("ip link add eth1 type veth peer name eth2 && ip link set eth1 up");
        host.sh("ip link set eth2 up");
        host.settle();
        host
    }

    fn sh(&self, line: &str) -> String {
        self.0
            .sh(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn packtrain(&self, arguments: &str) -> Outcome {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        self.words(&words)
    }

    /// As above, where arguments have spaces in them.
    fn words(&self, arguments: &[&str]) -> Outcome {
        let words = [&[PACKTRAIN], arguments].concat();
        self.0.try_exec(words).unwrap().into()
    }

    /// As above, and it has to succeed.
    fn done(&self, arguments: &str) -> Outcome {
        let outcome = self.packtrain(arguments);
        assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.err);
        outcome
    }

    fn fails(&self, arguments: &str, code: i32, error: &str) {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        self.fails_words(&words, code, error);
    }

    fn fails_words(&self, arguments: &[&str], code: i32, error: &str) {
        let outcome = self.words(arguments);
        assert_eq!(
            (outcome.code, outcome.err.as_str()),
            (code, error),
            "{arguments:?}"
        );
        assert_eq!(outcome.out, "");
    }

    /// As somebody who is not root.
    fn as_other(&self, arguments: &str) -> Outcome {
        let path = format!("/run/netns/{}", self.0.name());
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={path}"))
            .args(["setpriv", "--reuid", &OTHER_UID.to_string()]);
        command
            .args(["--clear-groups", "--", PACKTRAIN])
            .args(arguments.split_whitespace());
        command.arg0("nsenter").output().unwrap().into()
    }

    fn status(&self, name: &str) -> Value {
        serde_json::from_str(&self.done(&format!("status {name} --json")).out).unwrap()
    }

    fn pid(&self, name: &str) -> u64 {
        self.status(name)["pid"].as_u64().unwrap()
    }

    /// Waits until the status of pt0 is as asked.
    fn wait(&self, what: &str, ready: impl Fn(&Value) -> bool) {
        wait_for(what, Duration::from_secs(5), || ready(&self.status("pt0")))
            .unwrap_or_else(|error| panic!("{error}: {:#}", self.status("pt0")));
    }

    /// What a line may have changed, in words that do not change by themselves.
    fn dump(&self) -> String {
        self.sh(
            "ip -d link show | sed 's/if[0-9]*:/:/'; ip address show | grep -v valid_lft; \
             ip route show table all; tc qdisc show; tc filter show dev eth1 ingress; \
             ethtool -k eth1 2>/dev/null; grep -r . /proc/sys/net/ipv4/conf/eth1",
        )
    }

    /// The dump is still the same; if not, only what differs is shown.
    fn is_as(&self, before: &str, when: &str) {
        let after = self.dump();
        let only = |a: &str, b: &str| -> Vec<String> {
            a.lines()
                .filter(|line| !b.lines().any(|l| l == *line))
                .map(String::from)
                .collect()
        };
        let (gone, new) = (only(before, &after), only(&after, before));
        assert!(
            gone.is_empty() && new.is_empty(),
            "{when}: gone: {gone:#?}, new: {new:#?}"
        );
    }

    /// Addresses come up by themselves, after a while; what is compared must not be on its way.
    fn settle(&self) {
        wait_for("link-local addresses", Duration::from_secs(5), || {
            let there = self.sh("ip -6 route show table local dev eth1");
            there.contains("fe80::") && !self.sh("ip address").contains("tentative")
        })
        .unwrap();
    }

    /// Without the second that the kernel looks for somebody else with a link-local address.
    fn create() -> Host {
        let host = Host(Namespace::create("cli").unwrap());
        host.sh("echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad");
        host.sh("echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad");
        host
    }

    fn has(&self, interface: &str) -> bool {
        self.0
            .try_exec(["ip", "link", "show", interface])
            .unwrap()
            .status
            .success()
    }
}

impl Drop for Host {
    /// The namespace ends what runs in it; a line that could end by itself has no excuse.
    fn drop(&mut self) {
        let _ = self.0.try_exec([PACKTRAIN, "down", "--all"]);
    }
}

fn schema_problems(document: &Value) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/status.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    validator
        .iter_errors(document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

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
        wait_for("the line", Duration::from_secs(5), || {
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
        log.contains("eth1 has joined") && log.contains("pt0 stands"),
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

#[test]
fn classes_are_added_listed_and_removed_by_their_names() {
    live!();
    let host = Host::alone();
    host.fails_words(
        &["class", "list"],
        9,
        "error: a line is not running\n       no line runs in this network namespace\n",
    );
    host.done("up pt0 --link eth1");
    let add = |more: &[&str]| host.words(&[&["class", "add"], more].concat());
    let added = add(&["--match", "udp  and dport 5060", "--pack", "now"]);
    assert_eq!(
        added,
        Outcome {
            code: 0,
            out: "pt0 has class class1: udp dport 5060\n".into(),
            err: String::new(),
        }
    );
    let words = [
        "pt0",
        "--name",
        "first",
        "--before",
        "class1",
        "--match",
        "mark 7/0xff",
    ];
    let first = add(&[&words[..], &["--path", "engine", "--json"]].concat());
    let first: Value = serde_json::from_str(&first.out).unwrap();
    let nothing = serde_json::json!({"frames": 0, "bytes": 0});
    assert_eq!(
        first,
        serde_json::json!({
            "name": "first",
            "match": "mark 0x7/0xff",
            "pack": "queued",
            "path": "engine",
            "taken": nothing,
        })
    );
    let listed = host.done("class list");
    let names: Vec<&str> = listed
        .out
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        names,
        [
            "CLASS",
            "first",
            "class1",
            "arp",
            "icmp6",
            "icmp",
            "dns",
            "ef",
            "tcp-empty",
            "rest"
        ]
    );
    let listed: Value = serde_json::from_str(&host.done("class list pt0 --json").out).unwrap();
    assert_eq!(listed, host.status("pt0")["classes"]);
    assert_eq!(listed[0], first);
    assert_eq!(schema_problems(&host.status("pt0")), Vec::<String>::new());

    host.fails_words(
        &["class", "add", "--name", "first", "--match", "udp"],
        2,
        "error: there is a class first already\n",
    );
    let has = "       the line has: first, class1, arp, icmp6, icmp, dns, ef, tcp-empty\n";
    let unknown = format!("error: there is no class secnod\n{has}");
    host.fails("class remove pt0 secnod", 4, &unknown);
    host.fails("class add --match udp --before secnod", 4, &unknown);
    for name in [
        "first",
        "class1",
        "arp",
        "icmp6",
        "icmp",
        "dns",
        "tcp-empty",
    ] {
        let removed = host.done(&format!("class remove pt0 {name}")).out;
        assert_eq!(removed, format!("pt0 has no class {name} any more\n"));
    }
    let last: Value = serde_json::from_str(&host.done("class remove pt0 ef --json").out).unwrap();
    assert_eq!(
        (&last["name"], &last["match"]),
        (&"ef".into(), &"dscp ef".into())
    );
    host.fails(
        "class remove pt0 ef",
        4,
        "error: there is no class ef\n       the line has no classes\n",
    );
    let left: Value = serde_json::from_str(&host.done("class list --json").out).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(
        (&left[0]["name"], &left[0]["match"]),
        (&"rest".into(), &Value::Null)
    );
}

#[test]
fn who_is_not_root_sees_classes_and_changes_none() {
    live!();
    let host = Host::alone();
    host.done("up pt0 --link eth1");
    assert_eq!(host.as_other("class list pt0").code, 0);
    for arguments in ["class add pt0 --match udp", "class remove pt0 dns"] {
        let refused = host.as_other(arguments);
        assert_eq!((refused.code, refused.out.as_str()), (7, ""), "{arguments}");
    }
    assert_eq!(host.status("pt0")["classes"].as_array().unwrap().len(), 7);
}

#[test]
fn a_class_that_needs_the_direct_path_is_refused_where_there_is_none_with_the_reason() {
    live!();
    let host = Host::alone();
    for (option, because) in [
        ("--path engine", "its path is engine"),
        ("--no-marked-frames", "it has no marked frames"),
    ] {
        host.done(&format!("up pt0 --link eth1 {option}"));
        host.fails_words(
            &["class", "add", "--name", "m", "--match", "udp mark 7"],
            2,
            &format!("error: class m: frames show no mark on pt0, because {because}\n"),
        );
        host.fails_words(
            &["class", "add", "--match", "udp", "--path", "direct"],
            2,
            &format!("error: class class1: no frame goes direct on pt0, because {because}\n"),
        );
        assert_eq!(host.status("pt0")["classes"].as_array().unwrap().len(), 7);
        // What needs neither is taken.
        host.done("class add --match udp --path engine --pack 5ms");
        host.done("down pt0");
    }
    let file = std::env::temp_dir().join(format!("packtrain-{}-mark.toml", std::process::id()));
    let line = "name = 'pt0'\npath = 'engine'\n[[link]]\nname = 'eth1'\n";
    std::fs::write(
        &file,
        format!("{line}[[class]]\nname = 'm'\nmatch = 'mark 7'\n"),
    )
    .unwrap();
    let before = host.dump();
    let run = host.words(&["run", file.to_str().unwrap()]);
    std::fs::remove_file(file).unwrap();
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    // Behind what the line in the foreground logs.
    let error = "error: class m: frames show no mark on pt0, because its path is engine\n";
    assert!(run.err.ends_with(error), "{}", run.err);
    host.is_as(&before, "a start that was refused");
}

#[test]
fn of_several_lines_the_one_that_is_meant_has_to_be_named() {
    live!();
    let host = Host::alone();
    host.done("up pt0 --link eth1");
    host.done("up pt1 --link eth2 --line-id 7");
    let error = "error: several lines run: name one of pt0, pt1\n";
    host.fails("class list", 2, error);
    host.fails("class add --match udp", 2, error);
    host.done("class add pt1 --match udp");
    let count = |line: &str| host.status(line)["classes"].as_array().unwrap().len();
    assert_eq!((count("pt0"), count("pt1")), (7, 8));
}

#[test]
fn a_capture_is_sorted_by_the_classes_of_a_line_that_runs() {
    live!();
    let host = Host::alone();
    host.done("up pt0 --link eth1");
    host.words(&[
        "class",
        "add",
        "--name",
        "lldp",
        "--match",
        "ethertype lldp",
    ]);
    let mut capture = Vec::new();
    pcapng::section_header(&mut capture, "a test");
    let interface = pcapng::Interface {
        name: "eth1".into(),
        speed_bps: None,
        snap_len: 0,
    };
    pcapng::interface_description(&mut capture, &interface);
    let frame = [&[2; 12][..], &[0x88, 0xcc], &[0; 46]].concat();
    let packet = pcapng::Packet {
        interface: 0,
        unix_nanos: 0,
        bytes: &frame,
        len: frame.len() as u32,
        comment: None,
    };
    pcapng::enhanced_packet(&mut capture, &packet);
    let file = std::env::temp_dir().join(format!("packtrain-{}-line.pcapng", std::process::id()));
    std::fs::write(&file, capture).unwrap();
    let words = [
        "class",
        "test",
        file.to_str().unwrap(),
        "--json",
        "--line",
        "pt0",
    ];
    let sorted = host.words(&words);
    std::fs::remove_file(file).unwrap();
    let sorted: Value = serde_json::from_str(&sorted.out).unwrap();
    assert_eq!(sorted["frames"][0]["class"], "lldp");
    let first = serde_json::json!({"name": "lldp", "frames": 1, "bytes": 60});
    assert_eq!(sorted["classes"][0], first);
    // Asking changes nothing.
    assert_eq!(host.status("pt0")["classes"][0]["taken"]["frames"], 0);
}
