//! Commands pass on what programs say, and say themselves what is wrong.

use std::io::Write;
use std::process::Stdio;

use super::world::{Outcome, World};
use crate::common::packtrain;

#[test]
fn exec_passes_on_exit_code_input_and_output() {
    live!();
    let world = World::new();
    world.done("up --lab exec --links 1");
    for code in [0, 1, 42, 255] {
        assert_eq!(
            world.try_on("exec", "a", &format!("exit {code}")).code,
            code
        );
    }
    let both = world.try_on("exec", "a", "echo out; echo err >&2");
    assert_eq!((both.out.as_str(), both.err.as_str()), ("out\n", "err\n"));

    let mut sort = world.lab_command("exec --lab exec b -- sort -r");
    let mut sort = sort
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = sort.stdin.take().unwrap();
    input.write_all(b"1\n3\n2\n").unwrap();
    drop(input);
    assert_eq!(sort.wait_with_output().unwrap().stdout, b"3\n2\n1\n");
}

#[test]
fn exec_understands_a_program_without_dashes_before_it_too() {
    live!();
    let world = World::new();
    world.done("up --lab dashes --links 1");
    assert_eq!(world.done("exec a echo -n --lab x -- y"), "--lab x -- y");
    assert_eq!(world.done("exec a --lab dashes -- echo hello"), "hello\n");
    assert_eq!(
        world.done("exec --lab dashes a -- echo -- hello"),
        "-- hello\n"
    );
    // It is found though it is not installed.
    let status = world.done("exec a packtrain status");
    assert!(
        status.starts_with("line pt0 is up") || status.contains("pt0"),
        "{status}"
    );
    let nobody = world.lab("exec a no-such-program");
    assert_eq!(
        (nobody.code, nobody.err.as_str()),
        (127, "error: no such program: no-such-program\n"),
    );
}

#[test]
fn a_shell_is_that_of_the_user_and_knows_its_host() {
    live!();
    let world = World::new();
    world.done("up --lab shell --links 1 --no-packtrain");
    let mut shell = world.lab_command("shell a");
    let mut shell = shell
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    writeln!(input, "echo $PACKTRAIN_LAB_HOST; getent hosts b; exit 3").unwrap();
    drop(input);
    let output: Outcome = shell.wait_with_output().unwrap().into();
    assert_eq!(output.code, 3);
    assert_eq!(output.out, "a\n10.9.0.2        b\n");
}

#[test]
fn without_a_lab_each_command_says_how_to_make_one() {
    live!();
    let world = World::new();
    for line in [
        "exec a -- true",
        "shell a",
        "set a-b.0 --delay 1ms",
        "cut a-b.0",
        "mend a-b.0",
        "graph",
        "down",
    ] {
        world.fails(
            line,
            9,
            "error: no lab stands here\n       `packtrain lab up` makes one\n",
        );
    }
    for line in ["list --lab x", "down x", "exec --lab x a -- true"] {
        world.fails(
            line,
            9,
            "error: no lab is named x\n       none stands; `packtrain lab up` makes one\n",
        );
    }
}

#[test]
fn hosts_wires_and_ends_that_are_not_there_are_told_those_that_are() {
    live!();
    let world = World::new();
    world.done("up --lab known --no-packtrain");
    let host = "error: the lab known has no host z; it has a, b\n";
    let wire = "error: there is no wire a-z.0; there are a-b.0, a-b.1\n";
    let end = "error: z is no end of a-b.0; its ends are a and b\n";
    for (line, error) in [
        ("exec z -- true", host),
        ("shell z", host),
        ("set a-z.0 --delay 1ms", wire),
        ("cut a-z.0", wire),
        ("cut --silent --from a a-z.0", wire),
        ("mend a-z.0", wire),
        ("set a-b.0 --from z --delay 1ms", end),
        ("cut --silent --from z a-b.0", end),
        ("mend --from z a-b.0", end),
    ] {
        world.fails(line, 4, error);
    }
    world.fails(
        "list --lab other",
        9,
        "error: no lab is named other\n       there are: known\n",
    );
}

#[test]
fn who_is_not_root_is_told_which_right_is_missing() {
    live!();
    let world = World::new();
    let as_nobody = |line: &str| -> Outcome {
        let packtrain = packtrain().display();
        let setpriv = "setpriv --reuid=65534 --clear-groups";
        let mut command = world.command(&format!("{setpriv} {packtrain} lab {line}"));
        command.output().unwrap().into()
    };
    assert_eq!(
        as_nobody("list").out,
        "no lab stands here; `packtrain lab up` makes one\n"
    );
    let up = as_nobody("up");
    assert_eq!(up.code, 7, "{up:?}");
    assert_eq!(
        up.err,
        "error: no lab can be made here: not root: network namespaces need CAP_SYS_ADMIN\n"
    );
    world.done("up --lab rooted --links 1 --no-packtrain");
    for line in [
        "list",
        "list --json",
        "exec a -- true",
        "shell a",
        "cut a-b.0",
        "down",
        "down --all",
        "list --lab rooted",
    ] {
        let outcome = as_nobody(line);
        let is = (outcome.code, outcome.err.as_str());
        let error = "error: not allowed: the labs here are root's, whose hosts CAP_SYS_ADMIN is \
                     needed to enter\n";
        assert_eq!(is, (7, error), "{line}");
    }
    assert!(world.pings("rooted", "a", "b"));
    // Lines keep their files beside the labs', and theirs anybody may ask for.
    assert_eq!(world.shell("stat -c %a /run/packtrain").out, "755\n");
}
