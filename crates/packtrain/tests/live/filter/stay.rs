//! A filter that stays when its process ends, however that does.

use packtrain::lab::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{asks_for_others, document, filtered, has_program};
use crate::common::undo::SOON;

#[test]
fn a_filter_that_stays_keeps_its_rules_lets_pass_the_rest_and_is_taken_over_and_away() {
    live!();
    let (a, b) = filtered("--stay --watchdog 2");
    a.done("filter deny eth1 icmp --name silent");
    assert_eq!(document(&a)["stays"], true);
    let pings = || b.sh("ping -n -c 1 -W 0.3 10.1.0.1 || true");
    assert!(pings().contains("100% packet loss"));

    let pid = Pid::from_raw(document(&a)["pid"].as_u64().unwrap() as i32).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    wait_for("its process to be gone", SOON, || {
        document(&a)["pid"] == Value::Null
    })
    .unwrap();
    assert!(has_program(&a));
    let seen = a.done("filter status eth1").out;
    assert!(seen.contains("its process has ended"), "{seen}");
    // Its rules decide, and from when the watchdog has fired nothing else does.
    wait_for("the rest to pass", SOON * 2, || {
        asks_for_others(&b);
        document(&a)["reasons"]["unrefreshed"]["frames"].as_u64() > Some(0)
    })
    .unwrap();
    assert!(pings().contains("100% packet loss"));

    // The next one takes its place, with rules of its own.
    a.done("filter on eth1 --stay");
    assert!(document(&a)["pid"].as_u64().is_some());
    assert!(pings().contains(" 0% packet loss"));
    a.done("filter off eth1");
    assert!(!has_program(&a));

    // And one that nobody takes over is taken away all the same.
    a.done("filter on eth1 --stay --mode tc");
    let pid = Pid::from_raw(document(&a)["pid"].as_u64().unwrap() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    wait_for("its process to be gone", SOON, || {
        document(&a)["pid"] == Value::Null
    })
    .unwrap();
    assert_eq!(document(&a)["mode"], "tc");
    a.done("filter off");
    a.fails(
        "filter off eth1",
        9,
        "error: no receive filter runs on eth1\n",
    );
}

#[test]
fn a_filter_that_stays_is_watched() {
    live!();
    let (a, _b) = crate::cli::host::Host::pair();
    a.fails(
        "filter on eth1 --stay --watchdog off",
        2,
        "error: --stay needs the watchdog: what the process told the program would hold for ever otherwise\n",
    );
}

#[test]
fn a_filter_that_is_to_stay_once_it_is_confirmed_locks_nobody_out_before() {
    live!();
    let path = std::env::temp_dir().join(format!("pt-stay-{}.toml", std::process::id()));
    std::fs::write(&path, "[[rule]]\nverdict = 'deny'\nmatch = 'icmp'\n").unwrap();
    let more = format!("--stay --config {}", path.display());
    let (a, b) = filtered(&format!("{more} --watchdog 60 --confirm 5"));
    let pings = || b.sh("ping -n -c 1 -W 0.3 10.1.0.1 || true");
    assert!(pings().contains("100% packet loss"));
    let pid = Pid::from_raw(document(&a)["pid"].as_u64().unwrap() as i32).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    wait_for("everything to pass", SOON * 2, || {
        pings().contains(" 0% packet loss")
    })
    .unwrap();
    // It is taken over as any other, and stays when somebody has confirmed it.
    a.done(&format!("filter on eth1 {more} --confirm 60"));
    a.done("filter confirm eth1");
    std::fs::remove_file(&path).unwrap();
    let pid = Pid::from_raw(document(&a)["pid"].as_u64().unwrap() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    wait_for("its process to be gone", SOON, || {
        document(&a)["pid"] == Value::Null
    })
    .unwrap();
    assert!(pings().contains("100% packet loss"));
    a.done("filter off eth1");
    assert!(!has_program(&a));
}
