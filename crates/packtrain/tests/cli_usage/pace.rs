//! `packtrain pace`, used wrongly, and its help.

use crate::binary::packtrain;

#[test]
fn wrong_gaps_are_refused_with_their_reason() {
    let link = ["pace", "link", "eth1"];
    for (more, text) in [
        (
            &["--gap", "11B"][..],
            "a gap of 11 bytes is less than Ethernet's own: 12 at least on the wire",
        ),
        (
            &["--gap", "soon"],
            "\"soon\" is no gap: write it as in 512B or 4us",
        ),
        (
            &["--gap", "4m"],
            "\"4m\" is no gap: write it as in 512B or 4us",
        ),
        (&["--register", "7"], "7 is not in 8..=1023"),
        (&["--register", "1024"], "1024 is not in 8..=1023"),
        (&["--rate", "fast"], "\"fast\" is no rate"),
        (
            &["--gap", "512B", "--burst", "11ms"],
            "11ms is too much: at most 10ms",
        ),
        (
            &["--gap", "512B", "--line-rate", "own"],
            "write it as in 100mbit, 64kbit or 1.5gbit, or auto",
        ),
        (
            &["--gap", "512B", "--gso", "never"],
            "[possible values: auto, split, whole]",
        ),
        (&["--gap", "512B", "--rate", "1gbit"], "cannot be used with"),
        (&["off", "--gap", "512B"], "cannot be used with"),
        (&["on"], "[possible values: off]"),
        (
            &["--gso", "whole"],
            "error: how large is the gap to be?\n       say one of --gap 512B, --gap 4us, --register 508 and --rate 599mbit\n",
        ),
    ] {
        let result = packtrain(&[&link[..], more].concat());
        assert_eq!(result.code, 2, "{more:?}: {}", result.err);
        assert!(result.err.contains(text), "{more:?}: {}", result.err);
        assert_eq!(result.out, "");
    }
}

#[test]
fn a_precision_is_a_time_or_is_measured() {
    for wrong in ["9us", "101ms", "1", "often"] {
        let result = packtrain(&["pace", "tcp", "on", "--precision", wrong]);
        assert_eq!(result.code, 2, "{wrong}: {}", result.err);
        let text = "a time from 10us to 100ms, or auto";
        assert!(result.err.contains(text), "{wrong}: {}", result.err);
    }
    let help = packtrain(&["pace", "tcp", "on", "--help"]);
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    assert!(help.out.contains("[default: auto]"), "{}", help.out);
}

#[test]
fn what_a_rule_of_an_interface_cannot_have_is_refused_with_the_reason() {
    let rate = ["--rate", "40mbit"];
    let link = ["--link", "pt-none"];
    for (matches, more, text) in [
        (
            "udp dport 443",
            &[&rate[..]][..],
            "UDP is paced where it leaves, and not at its sockets as TCP is: say by which interface, as in --link eth1",
        ),
        (
            "tcp",
            &[&rate, &link],
            "TCP is paced at its sockets, which lose nothing by it: leave out --link",
        ),
        (
            "icmp",
            &[&rate, &link],
            "no UDP datagram can match \"icmp\", and rules of an interface are about UDP",
        ),
        (
            "udp",
            &[&["--auto"], &link],
            "--auto is nothing for UDP, which nobody acknowledges where we see it: say a --rate",
        ),
        (
            "udp",
            &[&rate, &link, &["--share", "stream"]],
            "what a rule of an interface is about waits in one queue, and shares its rate: --share rule is all that it can have",
        ),
        (
            "tcp",
            &[&rate, &["--queue", "9"]],
            "required arguments were not provided",
        ),
    ] {
        let words = [
            &["pace", "rule", "add", "--match", matches],
            &more.concat()[..],
        ]
        .concat();
        let result = packtrain(&words);
        assert_eq!((result.code, result.out.as_str()), (2, ""), "{words:?}");
        assert!(result.err.contains(text), "{words:?}: {}", result.err);
    }
}

#[test]
fn what_is_not_there_is_told() {
    for (arguments, code, text) in [
        (
            &["pace", "measure", "pt-none"][..],
            4,
            "error: no such interface: pt-none\n       ip link lists those there are\n",
        ),
        (
            &["pace", "measure", "lo"],
            4,
            "error: lo is not an Ethernet interface\n",
        ),
        (
            &["pace", "off", "pt-none"],
            9,
            "error: the pacer of pt-none does not run\n",
        ),
        (
            &["pace", "status", "pt-none"],
            9,
            "error: the pacer of pt-none does not run\n",
        ),
        (
            &["pace", "rule", "remove", "a", "--link", "pt-none"],
            9,
            "error: the pacer of pt-none does not run\n",
        ),
    ] {
        let result = packtrain(arguments);
        let told = (result.code, result.err.as_str(), result.out.as_str());
        assert_eq!(told, (code, text, ""), "{arguments:?}");
    }
}

#[test]
fn every_command_shows_how_it_is_used() {
    for (command, text) in [
        ("link", "packtrain pace link eth1 --rate 599mbit"),
        ("measure", "packtrain pace measure eth1"),
        ("off", "packtrain pace off eth1"),
        ("status", "packtrain pace status"),
        ("top", "packtrain pace top --batch -n 1"),
    ] {
        let help = packtrain(&["pace", command, "--help"]);
        assert_eq!((help.code, help.err.as_str()), (0, ""));
        assert!(help.out.contains(text), "{}", help.out);
    }
    assert_eq!(packtrain(&["pace"]).code, 2);
}

#[test]
fn top_says_what_it_takes_and_what_to_do_without_a_terminal() {
    for (more, code, text) in [
        // Before it looks for a pacer.
        (
            &[][..],
            2,
            "error: standard output is no terminal: `packtrain pace top --batch` prints text and `--json` JSON, again and \
             again; `packtrain pace tcp status --json` once\n",
        ),
        (
            &["--interval", "61"],
            2,
            "'61' for '--interval <SECONDS>': a time in seconds, 0.2 to 60",
        ),
        (&["-n", "3"], 2, "required arguments were not provided"),
        (&["-b", "-n", "0"], 2, "'0' for '--count <COUNT>'"),
        (&["eth1"], 2, "unexpected argument 'eth1'"),
        (&["--batch"], 9, "error: the pacer of TCP does not run\n"),
        (
            &["--json", "-n", "1"],
            9,
            "error: the pacer of TCP does not run\n",
        ),
    ] {
        let result = packtrain(&[&["pace", "top"], more].concat());
        assert_eq!(result.code, code, "{more:?}: {}", result.err);
        assert!(result.err.contains(text), "{more:?}: {}", result.err);
        assert_eq!(result.out, "");
    }
    let help = packtrain(&["pace", "top", "--help"]).out;
    assert!(
        help.starts_with("Watch the TCP streams that are paced"),
        "{help}"
    );
    assert!(help.contains("Keys:\n  q, Esc, Ctrl-C"), "{help}");
    assert!(help.contains("exit code 9"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100));
    let script = packtrain(&["completions", "bash"]).out;
    assert!(
        script.contains("packtrain__subcmd__pace__subcmd__top"),
        "no completions of it"
    );
}
