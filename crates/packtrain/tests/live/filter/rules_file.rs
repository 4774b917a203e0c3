//! Rules and sets from a file, on a filter that runs: what they decide, and what stays when others come.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use packtrain::pcapng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::filtered;
use crate::cli::host::Host;

/// Files that are gone again with their test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let name = format!("packtrain-{}-rules", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Pings that go on, a hundred a second.
struct Pings(Option<Child>);

impl Drop for Pings {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Pings {
    fn from(host: &Host, source: &str) -> Pings {
        let words = ["ping", "-n", "-q", "-i", "0.01", "-I", source, "10.1.0.1"];
        let child = host.0.command(words).stdout(Stdio::piped()).spawn();
        Pings(Some(child.unwrap()))
    }

    /// How many were sent, and how many came back.
    fn end(mut self) -> (u64, u64) {
        let child = self.0.take().unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let counted = text.lines().find(|line| line.contains(" received"));
        let counted = counted.unwrap_or_else(|| panic!("{text}"));
        let number = |part: &str| -> u64 {
            let digits = part.trim().split(' ').next().unwrap();
            digits.parse().unwrap_or_else(|_| panic!("{text}"))
        };
        let mut parts = counted.split(',');
        (number(parts.next().unwrap()), number(parts.next().unwrap()))
    }
}

/// How many of five pings are answered.
fn answered(host: &Host, source: &str) -> u64 {
    let line = format!("ping -n -q -c 5 -i 0.01 -W 1 -I {source} 10.1.0.1 || true");
    let said = host.sh(&line);
    let before = said.split(" received").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

fn json(host: &Host, arguments: &str) -> Value {
    serde_json::from_str(&host.done(arguments).out).unwrap()
}

/// What a rule has decided, in frames.
fn frames_of(host: &Host, rule: &str) -> u64 {
    let rules = json(host, "filter rules --json");
    let rules = rules.as_array().unwrap();
    let rule = rules.iter().find(|document| document["name"] == rule);
    rule.expect("it is there")["frames"].as_u64().unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    let names = list.as_array().unwrap().iter();
    names.map(|name| name.as_str().unwrap()).collect()
}

const RULES: &str = "\
[sets]
blocked = { file = 'blocked.txt' }
friends = ['10.1.0.2']

[[rule]]
name = 'friends'
verdict = 'allow'
match = 'icmp src @friends'

[[rule]]
name = 'blocked'
verdict = 'deny'
match = 'src @blocked'

[[rule]]
name = 'few'
limit = '1/s burst 8'
match = 'icmp size 600-'
";

/// With 10.1.0.3 among them.
fn ten_thousand() -> String {
    let others = (0..9999).map(|n| format!("172.{}.{}.0/28\n", 16 + n / 200, n % 200));
    others.chain(["10.1.0.3 # it is there\n".into()]).collect()
}

#[test]
fn ten_thousand_prefixes_are_loaded_under_traffic_and_what_stays_goes_on_counting() {
    live!();
    let (a, b) = filtered("");
    let folder = Folder::new();
    folder.write("blocked.txt", ten_thousand());
    let rules = folder.write("rules.toml", RULES);
    let load = format!("filter load eth1 {rules}");
    let pings = Pings::from(&b, "10.1.0.2");
    assert_eq!(answered(&b, "10.1.0.3"), 5);

    // What would change is said first, and nothing has.
    let would = json(&a, &format!("{load} --dry-run --json"));
    assert_eq!(names(&would["added"]), ["friends", "blocked", "few"]);
    assert_eq!(answered(&b, "10.1.0.3"), 5);
    let said = a.done(&load).out;
    assert_eq!(
        said,
        "eth1 has 3 rules and 2 sets\n  added    friends, blocked, few\n  set blocked 10,000 prefixes, added\n  \
         set friends 1 prefix, added\n"
    );
    assert_eq!(answered(&b, "10.1.0.3"), 0);
    assert_eq!(frames_of(&a, "blocked"), 5);
    assert!(frames_of(&a, "friends") > 0);
    // The bucket has five left of its eight.
    let large = |count: u32| {
        let line =
            format!("ping -n -q -c {count} -i 0.01 -W 1 -s 600 -I 10.1.0.4 10.1.0.1 || true");
        let said = b.sh(&line);
        let before = said.split(" received").next().unwrap();
        let answered: u32 = before.rsplit(' ').next().unwrap().parse().unwrap();
        answered
    };
    b.sh("ip address add 10.1.0.4/24 dev eth1");
    assert_eq!(large(3), 3);

    // Another rule comes before them, and the others go on with their counts and their buckets.
    let more = "[[rule]]\nname = 'lldp'\nverdict = 'allow'\nmatch = 'ethertype 0x88cc'\n";
    let (sets, own) = RULES.split_at(RULES.find("[[rule]]").unwrap());
    let other = folder.write("other.toml", [sets, more, own].concat());
    let changes = json(&a, &format!("filter load eth1 {other} --json"));
    assert_eq!(names(&changes["added"]), ["lldp"]);
    assert_eq!(names(&changes["kept"]), ["friends", "blocked", "few"]);
    assert_eq!(frames_of(&a, "blocked"), 5);
    // Two more, should it take so long.
    let passed = large(20);
    assert!((5..=8).contains(&passed), "{passed}");

    // One set changes, and all else stays.
    let set = json(&a, "filter set eth1 blocked remove 10.1.0.3 --json");
    assert_eq!(
        (&set["prefixes"], &set["removed"]),
        (&9999.into(), &1.into())
    );
    assert_eq!(names(&set["rules"]), ["blocked"]);
    assert_eq!(answered(&b, "10.1.0.3"), 5);
    assert_eq!(frames_of(&a, "blocked"), 5);
    let said = a
        .done("filter set eth1 blocked add 10.1.0.3 10.1.0.3 172.16.0.0/28")
        .out;
    assert_eq!(said, "eth1 has set blocked: 10,000 prefixes, 1 added\n");
    assert_eq!(answered(&b, "10.1.0.3"), 0);
    assert_eq!(frames_of(&a, "blocked"), 10);
    let sets = json(&a, "filter sets --json");
    assert_eq!(sets[0]["prefixes"].as_array().unwrap().len(), 10_000);
    assert_eq!(
        a.done("filter sets").out,
        "SET      PREFIXES  USED BY\nblocked    10,000  blocked\nfriends         1  friends\n"
    );

    // What runs is a file again, in which nothing is new.
    let again = folder.write("again.toml", a.done("filter rules --toml").out);
    let changes = json(&a, &format!("filter load eth1 {again} --json"));
    assert_eq!(
        names(&changes["kept"]),
        ["lldp", "friends", "blocked", "few"]
    );
    assert_eq!(changes["sets"][0]["change"], "kept");
    assert_eq!(frames_of(&a, "blocked"), 10);

    // Rules by hand may use sets that are there.
    a.words(&[
        "filter",
        "deny",
        "eth1",
        "udp src @blocked",
        "--name",
        "udp",
    ]);
    a.fails(
        "filter set eth1 blocked remove --all",
        2,
        "error: set blocked is used by rules blocked, udp\n       remove them first, or load a file without them\n",
    );
    explained(&a, &folder);
    wrong(&a, &folder);
    let (sent, received) = pings.end();
    // The last one may be on its way.
    assert!(sent > 100 && sent - received <= 1, "{received} of {sent}");
    from_the_first_frame_on(&a, &b, &rules);
}

/// A capture is judged by what runs.
fn explained(a: &Host, folder: &Folder) {
    let mut file = Vec::new();
    pcapng::section_header(&mut file, "a test");
    let interface = pcapng::Interface {
        name: "eth1".into(),
        description: None,
        speed_bps: None,
        snap_len: 0,
    };
    pcapng::interface_description(&mut file, &interface);
    let mut frame = vec![0; 42];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[17] = 28;
    frame[23] = 17;
    frame[26..34].copy_from_slice(&[10, 1, 0, 3, 10, 1, 0, 1]);
    let packet = pcapng::Packet {
        interface: 0,
        unix_nanos: 1_700_000_000_000_000_000,
        bytes: &frame,
        len: frame.len() as u32,
        direction: None,
        comment: None,
    };
    pcapng::enhanced_packet(&mut file, &packet);
    let path = folder.write("frames.pcapng", file);
    let explain = format!("filter explain {path} --interface eth1 --json");
    let outcome = a.done(&explain);
    let frame: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(
        (&frame["verdict"], &frame["rule"]),
        (&"drop".into(), &"blocked".into())
    );
    assert_eq!(
        outcome.err,
        "note: eth1 has a filter: judged by its 5 rules and its policy; --no-rules leaves them out\n"
    );
    let frame = json(a, &format!("{explain} --no-rules"));
    assert_eq!(
        (&frame["reason"], &frame["rule"]),
        (&"foreign_unicast".into(), &Value::Null)
    );
}

/// Nothing changes.
fn wrong(a: &Host, folder: &Folder) {
    let before = a.done("filter rules --toml").out;
    let path = folder.write(
        "wrong.toml",
        "[[rule]]\nverdict = 'deny'\nmatch = 'src @none'\n",
    );
    a.fails(
        &format!("filter load eth1 {path}"),
        3,
        &format!(
            "error: {path}:3:1: rule.match: there is no set @none in [sets] (the file has none)\n"
        ),
    );
    a.fails(
        "filter set eth1 friends remove 10.1.0.2 10.1.0.9",
        4,
        "error: set friends has no 10.1.0.9\n       nothing has changed\n",
    );
    a.fails(
        "filter set eth1 none remove 10.1.0.2",
        4,
        "error: there is no set none\n       the filter has: blocked, friends\n",
    );
    let other = a.as_other("filter set eth1 friends add 10.1.0.9");
    assert_eq!(
        (other.code, other.err.as_str()),
        (
            7,
            "error: not allowed: only root may change the filter of eth1\n"
        )
    );
    assert_eq!(a.done("filter rules --toml").out, before);
}

fn from_the_first_frame_on(a: &Host, b: &Host, rules: &str) {
    a.done("filter off");
    a.done(&format!("filter on eth1 --mode tc --config {rules}"));
    assert_eq!(answered(b, "10.1.0.3"), 0);
    assert_eq!(answered(b, "10.1.0.2"), 5);
    assert_eq!(frames_of(a, "blocked"), 5);
}
