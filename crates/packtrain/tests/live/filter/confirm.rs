//! What nobody confirms goes by itself, and leaves what was there before.

use std::process::Stdio;
use std::time::Duration;

use super::*;
use crate::common::cabled::pause;

#[test]
fn a_filter_that_nobody_confirms_is_gone_and_the_host_as_it_was() {
    live!();
    let (a, b) = Host::pair();
    a.sh("ip address add 10.1.0.1/24 dev eth1");
    b.sh("ip address add 10.1.0.2/24 dev eth1");
    let before = a.dump();
    let on = a.done("filter on eth1 --mode generic --confirm 1s");
    assert_eq!(
        on.err,
        "note: the filter of eth1 is taken off in 1 s, unless you say: packtrain filter confirm eth1\n"
    );
    wait_for("the filter to go", SOON, || !has_program(&a)).unwrap();
    let gone = || a.packtrain("filter confirm eth1");
    wait_for("its process to end", SOON, || gone().code == 9).unwrap();
    a.is_as(&before, "after the time was over");
    // Why it has gone can be read, until another one comes.
    let said = gone().err;
    assert!(
        said.starts_with("error: no receive filter runs on eth1\n"),
        "{said}"
    );
    let log = said.trim().rsplit(' ').next().expect("its path");
    let log = a.sh(&format!("cat {log}"));
    let why = "nobody has said `packtrain filter confirm eth1` within 1 s: the filter of eth1 is taken off";
    assert!(log.contains(why), "{log}");
    a.done("filter on eth1 --mode generic");
    a.done("filter off eth1");
    assert_eq!(
        a.packtrain("filter off eth1").err,
        "error: no receive filter runs on eth1\n"
    );

    let foreground = a.packtrain("filter on eth1 --mode generic --foreground --confirm 1");
    assert_eq!(foreground.code, 14, "{}", foreground.err);
    let last = foreground.err.lines().last();
    assert_eq!(last, Some(format!("error: {why}").as_str()));
    assert!(!has_program(&a));
}

#[test]
fn a_filter_that_is_confirmed_in_time_stays() {
    live!();
    // What is not watched lasts for ever, once it is confirmed.
    let (a, b) = filtered("--mode generic --watchdog off --confirm 3s");
    let waits = document(&a);
    assert_eq!(waits["unconfirmed"], "the filter");
    let left = waits["confirm_seconds_left"].as_f64().expect("a time");
    assert!(left > 0.0 && left <= 3.0, "{left}");
    let seen = a.done("filter status eth1").out;
    assert!(
        seen.contains("UNCONFIRMED: the filter: undone in "),
        "{seen}"
    );
    assert_eq!(a.as_other("filter confirm eth1").code, 7);
    assert_eq!(
        a.done("filter confirm").out,
        "eth1: confirmed: the filter\n"
    );
    let stays = document(&a);
    assert_eq!(stays["unconfirmed"], Value::Null);
    assert_eq!(stays["confirm_seconds_left"], Value::Null);
    a.fails(
        "filter confirm eth1",
        12,
        "error: nothing of the filter of eth1 waits to be confirmed\n       \
         it was confirmed already, or its time was over and it was undone\n",
    );
    // Longer than the program was told that it may do without.
    pause(Duration::from_millis(4200));
    let before = frames(&a, "foreign_arp");
    asks_for_others(&b);
    assert!(frames(&a, "foreign_arp") > before);
    assert_eq!(frames(&a, "unrefreshed"), 0);
    assert!(has_program(&a));
}

#[test]
fn a_process_that_hangs_while_it_waits_leaves_nobody_locked_out() {
    live!();
    let (a, b) = filtered("--mode generic --watchdog off --confirm 2s");
    // A part of the filter that waits.
    a.words(&["filter", "deny", "eth1", "icmp"]);
    assert_eq!(pings(&b, 2, 56), 0);
    let stopped = Stopped::stop(pid_of(&a));
    wait_for("everything to pass", SOON, || pings(&b, 1, 56) == 1).unwrap();
    assert!(has_program(&a));
    drop(stopped);
    wait_for("the filter to go", SOON, || !has_program(&a)).unwrap();
}

#[test]
fn rules_that_nobody_confirms_are_as_before_and_count_on_while_frames_pass() {
    live!();
    let (a, b) = filtered("--mode generic");
    let deny = |name: &str, matches: &str, more: &[&str]| {
        let words = ["filter", "deny", "eth1", matches, "--name", name];
        a.words(&[&words, more].concat())
    };
    deny("large", "icmp size 500-", &[]);
    deny("other", "udp dport 9", &[]);
    assert_eq!(pings(&b, 5, 600), 0);
    let before = rules(&a);
    assert_eq!(before[0]["frames"], 5);

    // Small ones come all the time, and none of them is missed.
    let beside = b.0.command([
        "ping", "-n", "-q", "-c", "500", "-i", "0.01", "-W", "2", "10.1.0.1",
    ]);
    let beside = { beside }.stdout(Stdio::piped()).spawn().unwrap();
    let removed = a.done("filter remove eth1 large --confirm 3s");
    assert_eq!(removed.out, "eth1 has no rule large any more\n");
    assert_eq!(
        removed.err,
        "note: the rules are as before in 3 s, unless you say: packtrain filter confirm eth1\n"
    );
    assert_eq!(pings(&b, 5, 600), 5);
    let refused = deny("late", "icmp", &[]);
    assert_eq!(refused.code, 13, "{}", refused.err);
    let begins = "error: rule large removed waits to be confirmed, for another ";
    assert!(refused.err.starts_with(begins), "{}", refused.err);
    let seen = a.done("filter rules eth1").out;
    assert!(seen.contains("UNCONFIRMED: rule large removed"), "{seen}");
    wait_for("the rules to be as before", SOON, || rules(&a) == before).unwrap();
    assert_eq!(pings(&b, 3, 600), 0);
    assert_eq!(rules(&a)[0]["frames"], 8);

    // Those that a change has left count on, through it and through its end.
    let more = ["--before", "large", "--confirm", "1s"];
    assert_eq!(deny("first", "tcp dport 9", &more).code, 0);
    assert_eq!(pings(&b, 2, 600), 0);
    wait_for("the rules to be as before", SOON, || {
        rules(&a)[0]["name"] == "large"
    })
    .unwrap();
    let after = rules(&a);
    assert_eq!(
        (&after[0]["frames"], &after[1]["name"]),
        (&Value::from(10), &Value::from("other"))
    );
    assert_eq!(after.as_array().map(Vec::len), Some(2));
    let beside = beside.wait_with_output().unwrap();
    assert_eq!(answered(&String::from_utf8_lossy(&beside.stdout)), 500);

    assert_eq!(deny("huge", "icmp size 900-", &["--confirm", "60"]).code, 0);
    let confirmed = a.done("filter confirm eth1 --json").out;
    let confirmed: Value = serde_json::from_str(&confirmed).unwrap();
    assert_eq!(confirmed["confirmed"], "rule huge added");
    assert!(
        confirmed["seconds_left"].as_f64() > Some(1.0),
        "{confirmed}"
    );
    assert_eq!(rules(&a)[2]["name"], "huge");
}
