//! The lab itself: namespaces appear, carry traffic, and are gone again whatever happens.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use packtrain::lab::messages::{Load, measure};
use packtrain::lab::namespaces::{Namespace, sweep};
use packtrain::lab::{wait_for, wire};

use crate::common::steady;

fn exists(name: &str) -> bool {
    Path::new("/run/netns").join(name).exists()
}

#[test]
fn two_namespaces_on_a_cable_ping_each_other_and_are_gone_after() {
    live!();
    let name;
    {
        let a = Namespace::create("lab").unwrap();
        let b = Namespace::create("lab").unwrap();
        name = a.name().to_owned();
        wire::veth((&a, "eth1"), (&b, "eth1")).unwrap();
        wire::add_address(&a, "eth1", "10.1.0.1/24").unwrap();
        wire::add_address(&b, "eth1", "10.1.0.2/24").unwrap();
        a.exec(["ping", "-c1", "-W2", "10.1.0.2"]).unwrap();
        let listener = a.in_namespace(|| std::net::TcpListener::bind("10.1.0.1:7").unwrap());
        assert!(listener.is_ok());
        assert!(exists(&name));
    }
    assert!(!exists(&name));
}

#[test]
fn a_failed_command_is_an_error_that_holds_what_the_program_said() {
    live!();
    let a = Namespace::create("lab").unwrap();
    let error = a.exec(["ip", "link", "show", "nothing"]).unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
}

#[test]
fn namespaces_and_what_runs_in_them_are_gone_after_kill_9_of_their_lab() {
    live!();
    // This test again, as a program of its own that stays in the middle.
    const CHILD: &str = "PACKTRAIN_TEST_LAB_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let a = Namespace::create("lab").unwrap();
        let mut sleeper = a.command(["sleep", "300"]).spawn().unwrap();
        println!("lab {} {}", a.name(), sleeper.id());
        let _ = sleeper.wait();
        return;
    }
    let (_, module) = module_path!().split_once("::").expect("not the root");
    let test = "namespaces_and_what_runs_in_them_are_gone_after_kill_9_of_their_lab";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}"), "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("lab pt-"))
        .expect("the child says its namespace");
    let mut words = line.split_whitespace().skip_while(|&w| w != "lab").skip(1);
    let name = words.next().unwrap().to_owned();
    let sleeper = Path::new("/proc").join(words.next().unwrap());
    assert!(exists(&name) && sleeper.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the guard to clean up", Duration::from_secs(10), || {
        !exists(&name) && !sleeper.exists()
    })
    .unwrap();
}

#[test]
fn the_namespace_of_a_dead_process_is_swept_and_that_of_a_living_one_stays() {
    live!();
    let living = Namespace::create("lab").unwrap();
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let dead = format!("pt-lab-{}-0", child.id());
    packtrain::lab::namespaces::run("ip", ["netns", "add", &dead]).unwrap();
    assert!(exists(&dead));
    sweep();
    assert!(!exists(&dead));
    assert!(exists(living.name()));
}

#[test]
fn small_messages_over_a_bare_cable_all_arrive_once_and_in_order() {
    live!(alone);
    let a = Namespace::create("lab").unwrap();
    let b = Namespace::create("lab").unwrap();
    wire::veth((&a, "eth1"), (&b, "eth1")).unwrap();
    wire::add_address(&a, "eth1", "10.1.0.1/24").unwrap();
    wire::add_address(&b, "eth1", "10.1.0.2/24").unwrap();
    let load = Load {
        size: 64,
        duration: Duration::from_millis(500),
        rate_per_second: Some(10_000),
        real_time: false,
    };
    let send = || {
        let report = measure(&a, &b, "10.1.0.2:7777".parse().unwrap(), load).unwrap();
        assert_eq!(report.lost(), 0, "{report:?}");
        assert_eq!((report.reordered, report.duplicated), (0, 0), "{report:?}");
        assert!(report.delay_p50_us > 0.0 && report.delay_p50_us <= report.delay_p99_us);
        report
    };
    steady::judge("messages of 5000", send, |report| report.sent >= 4000);
}
