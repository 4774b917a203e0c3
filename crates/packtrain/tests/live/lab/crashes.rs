//! Whatever ends the commands and the processes of a lab: nothing stays that `lab down` does not remove.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::world::{World, runs, soon};
use crate::common::cabled::pause;

/// From before there is anything of a lab to when it stands.
const MOMENTS_MS: [u64; 7] = [0, 4, 10, 20, 40, 80, 160];

fn signal(pid: u32, signal: Signal) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

#[test]
fn a_lab_whose_emulator_was_killed_says_so_and_is_removed_by_down() {
    live!();
    let world = World::new();
    world.done("up --lab killed");
    let remains = world.remains("killed");
    let emulator = world.emulator("killed");
    signal(emulator, Signal::KILL);
    soon("the emulator to end", || !runs(emulator));

    let list = world.done("list");
    let said = "its wires carry nothing: the emulator of the lab does not answer: ";
    assert!(
        list.contains(said) && list.contains("packtrain lab down killed\n"),
        "{list}"
    );
    super::standing::assert_as_the_schema_says(&world);
    assert!(world.document("killed")["error"].is_string());
    let set = world.lab("set a-b.0 --delay 1ms");
    assert_eq!(set.code, 11, "{set:?}");
    assert!(
        set.err
            .ends_with("\n       its process has ended, or hangs: packtrain lab down killed\n"),
        "{set:?}"
    );
    assert_eq!(world.on("killed", "a", "echo still there"), "still there\n");

    world.done("down");
    remains.assert_gone(&world);
}

fn has_socket(pid: u32) -> bool {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let mut descriptors = descriptors.into_iter().flatten().flatten();
    descriptors.any(|entry| {
        let what = std::fs::read_link(entry.path());
        what.is_ok_and(|what| what.to_string_lossy().starts_with("socket:"))
    })
}

#[test]
fn a_lab_whose_emulator_hangs_says_so_and_is_removed_by_down() {
    live!();
    let world = World::new();
    world.done("up --lab stuck --links 1 --no-packtrain");
    let remains = world.remains("stuck");
    signal(world.emulator("stuck"), Signal::STOP);
    // It is waited for by both at once.
    let mut list = world.lab_command("list");
    let list = list.stdout(Stdio::piped()).spawn().unwrap();
    soon("the list to ask", || has_socket(list.id()));
    // The emulator is killed when the patience of `down` is over, by when that of `list` is, too.
    pause(Duration::from_secs(1));
    world.done("down");
    remains.assert_gone(&world);
    let list = list.wait_with_output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(
        list.contains("does not answer: no answer within 5 s;"),
        "{list}"
    );
}

#[test]
fn a_lab_whose_record_is_broken_is_removed_by_down() {
    live!();
    let world = World::new();
    world.done("up --lab torn --links 1");
    let remains = world.remains("torn");
    world.shell("echo '{' > /run/packtrain/labs/torn/lab.json");
    let list = world.lab("list");
    assert!(
        list.code == 1 && list.err.contains("/labs/torn/lab.json"),
        "{list:?}"
    );
    world.done("down --all");
    remains.assert_gone(&world);
}

#[test]
fn down_all_removes_what_an_up_left_that_was_killed_at_any_moment() {
    live!();
    let world = World::new();
    for ms in MOMENTS_MS {
        let mut up = world.lab_command("up --lab killed");
        let mut up = up
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        pause(Duration::from_millis(ms));
        up.kill().unwrap();
        up.wait().unwrap();
        world.done("list");
        world.done("down --all");
        world.assert_empty(&format!("after {ms} ms and kill -9"));
    }
    world.done("up --lab killed");
    world.done("down killed");
}

#[test]
fn an_up_that_is_interrupted_at_any_moment_leaves_nothing() {
    live!();
    let world = World::new();
    for ms in MOMENTS_MS {
        let mut up = world.lab_command("up --lab broken");
        let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let up = up.unwrap();
        pause(Duration::from_millis(ms));
        signal(up.id(), Signal::INT);
        let output = up.wait_with_output().unwrap();
        let when = format!("after {ms} ms and SIGINT: {output:?}");
        match output.status.code() {
            // It stood before the signal came.
            Some(0) => assert_eq!(world.done("down broken"), ""),
            // Before it had begun, or in the middle.
            code => assert!(code.is_none_or(|code| code == 130), "{when}"),
        }
        world.assert_empty(&when);
    }
}

#[test]
fn down_ends_what_runs_on_the_hosts_and_the_second_one_finds_no_lab() {
    live!();
    let world = World::new();
    world.done("up --lab busy --links 1 --no-packtrain");
    world.on("busy", "b", "iperf3 -s -D");
    // It has to be killed.
    world.on(
        "busy",
        "a",
        "sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 &",
    );
    let listens = || world.try_on("busy", "b", "ss -Hltn | grep -q :5201").code == 0;
    soon("iperf3 to listen", listens);
    let remains = world.remains("busy");
    world.done("down busy");
    remains.assert_gone(&world);
    world.fails(
        "down busy",
        9,
        "error: no lab is named busy\n       none stands; `packtrain lab up` makes one\n",
    );
    world.fails(
        "down",
        9,
        "error: no lab stands here\n       `packtrain lab up` makes one\n",
    );
    // Nothing is left to be taken down, which is what was wanted.
    assert_eq!(world.done("down --all"), "");
}

#[test]
fn an_up_that_fails_leaves_nothing() {
    live!();
    let world = World::new();
    world.write(
        "/run/wrong.toml",
        "[[host]]\nname = 'a'\nup = ['--mtu', '1']\n[[host]]\nname = 'b'\n[[wire]]\nends = ['a', 'b']\n",
    );
    let up = world.lab("up --lab wrong /run/wrong.toml");
    assert_eq!(up.code, 1, "{up:?}");
    assert!(up.err.contains("an MTU of 1 bytes is too small"), "{up:?}");
    world.assert_empty("after a failure");
}

#[test]
fn a_host_that_deletes_an_interface_takes_the_end_of_one_wire_and_nothing_else() {
    live!();
    let world = World::new();
    world.done("up --lab gone --no-packtrain");
    world.on("gone", "a", "ip link delete eth0");
    let wires = |world: &World| {
        let text = world.done("list --lab gone --json");
        let labs: serde_json::Value = serde_json::from_str(&text).unwrap();
        labs[0]["wires"].as_array().unwrap().len()
    };
    // It goes on answering, and carrying what goes over the other wire.
    assert_eq!(wires(&world), 2);
    world.on("gone", "a", "ping -q -c2 -i0.2 -W1 b.eth1");
    world.on("gone", "b", "ping -q -c2 -i0.2 -W1 a.eth1");
    assert_eq!(wires(&world), 2);
    world.done("down gone");
}
