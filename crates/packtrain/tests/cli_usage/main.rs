//! The real binary, used wrongly: text and exit code of each error that needs no rights.

mod binary;
mod classes;
mod dictionary;
mod filter;
mod pace;
mod sim;
mod whatif;

use binary::{Outcome, TestFile, packtrain};

const LAB_COMMANDS: [&str; 9] = [
    "up", "exec", "shell", "list", "set", "cut", "mend", "graph", "down",
];

#[test]
fn wrong_values_are_refused_with_their_reason_and_code() {
    let up = ["up", "pt0", "--link", "eth1"];
    for (more, code, text) in [
        (
            &["--mtu", "65522"][..],
            2,
            "error: an MTU of 65522 bytes is too large: at most 65521\n",
        ),
        (
            &["--mtu", "67"],
            6,
            "error: an MTU of 67 bytes is too small: at least 68\n",
        ),
        (
            &["--mtu", "1279", "--address", "fd00::1/64"],
            6,
            "error: MTU 1279 is too small for fd00::1/64: IPv6 needs at least 1280\n",
        ),
        (&["--link", "eth1"], 2, "error: link eth1 is named twice\n"),
        (
            &["--link", "pt0"],
            2,
            "error: pt0 cannot be a link of itself\n",
        ),
        (
            &["--address", "10.9.0.1/24", "--address", "10.9.0.1/24"],
            2,
            "error: address 10.9.0.1/24 is named twice\n",
        ),
    ] {
        let result = packtrain(&[&up[..], more].concat());
        assert_eq!((result.code, result.err.as_str()), (code, text), "{more:?}");
        assert_eq!(result.out, "");
    }
}

#[test]
fn what_clap_refuses_names_the_option_and_has_code_2() {
    for (arguments, text) in [
        (
            &["up", "pt0"][..],
            "--link <IF[,tier=N][,weight=N][,rate=RATE][,lag]>",
        ),
        (
            &["up", "a/b", "--link", "eth1"],
            "an interface name has no '/'",
        ),
        (
            &["up", "pt0", "--link", "a-name-that-is-too-long"],
            "1 to 15 bytes, this one has 23",
        ),
        (
            &["up", "pt0", "--link", "e", "--address", "10.9.0.1"],
            "has no prefix length",
        ),
        (
            &["up", "pt0", "--link", "e", "--address", "224.0.0.1/4"],
            "no address that a host can",
        ),
        (
            &["up", "pt0", "--link", "e", "--mtu", "many"],
            "'many' for '--mtu <BYTES>'",
        ),
        (
            &["up", "pt0", "--link", "e", "--mac", "01:00:00:00:00:01"],
            "is a group address",
        ),
        (
            &["up", "pt0", "--link", "e", "--mac", "02:00"],
            "six pairs of hexadecimal digits",
        ),
        (
            &["up", "pt0", "--link", "e", "--log-level", "loud"],
            "[possible values: error, warn",
        ),
        (
            &["up", "pt0", "--link", "e", "--path", "kernel"],
            "'kernel' for '--path <POLICY>'\n  [possible values: auto, engine]",
        ),
        (
            &["up", "pt0", "--link", "e", "--balance", "lacp"],
            "'lacp' for '--balance <POLICY>'\n  [possible values: earliest-finish, round-robin, \
             active-backup, weighted, duplicate, hash-mac, hash-ip, hash-port]",
        ),
        (
            &["up", "pt0", "--link", "e,tier=0"],
            "\"0\" is no tier: 1 to 9, where 1 is used first",
        ),
        (
            &["up", "pt0", "--link", "e,metric=3"],
            "\"metric=3\" says nothing of a link: tier=N, weight=N, rate=RATE or lag behind its name",
        ),
        (
            &[
                "up",
                "pt0",
                "--link",
                "e",
                "--balance",
                "hash-ip",
                "--tier-spill",
            ],
            "with balance hash-ip each flow keeps to its link, and none can spill to another tier",
        ),
        (
            &["link", "add", "pt0", "e", "--weight", "101"],
            "\"101\" is no weight: 1 to 100",
        ),
        (
            &["link", "set", "pt0", "e"],
            "<--tier <N>|--weight <N>|--rate <RATE|none>|--lag <on|off>>",
        ),
        (
            &["link", "set", "pt0", "e", "--rate", "fast"],
            "\"fast\" is no rate: write it as in 100mbit, 64kbit or 1.5gbit",
        ),
        (&["link", "clear"], "<NAME>"),
        (&["link", "add", "pt0"], "<IF>"),
        (
            &["link", "remove", "pt0", "a/b"],
            "an interface name has no '/'",
        ),
        (&["down"], "<NAME|--all>"),
        (&["down", "pt0", "--all"], "cannot be used with"),
        (&["peer", "list"], "<NAME>"),
        (&["class", "add", "pt0"], "--match <CONDITIONS>"),
        (
            &["class", "add", "--match", "upd dport 53"],
            "\"upd\" begins no condition: arp, ip, ip6, tcp, ",
        ),
        (
            &["class", "add", "--match", "udp or tcp"],
            "there is no \"or\": write a class for each",
        ),
        (
            &["class", "add", "--match", "mark 0x1ffffffff"],
            "'mark 0x1ffffffff' for '--match <CONDITIONS>'",
        ),
        (
            &["class", "add", "--match", "udp", "--pack", "soon"],
            "\"soon\" does not say when frames leave: queued, now, how long",
        ),
        (
            &["class", "add", "--match", "udp", "--pack", "101ms"],
            "frames wait 100ms at most, not 101ms",
        ),
        (
            &["class", "add", "--match", "udp", "--path", "kernel"],
            "'kernel' for '--path <PATH>'\n  [possible values: auto, engine, direct]",
        ),
        (
            &["class", "add", "--match", "udp", "--compress", "lz4"],
            "'lz4' for '--compress <WHAT>'\n  [possible values: auto, headers, off]",
        ),
        (
            &["up", "pt0", "--link", "eth1", "--compress", "lz4"],
            "'lz4' for '--compress <WHAT>'\n  [possible values: auto, headers, off]",
        ),
        (
            &["class", "add", "--match", "udp", "--name", "rest"],
            "\"rest\" is what no class matches",
        ),
        (&["class", "remove", "pt0"], "<CLASS>"),
        (
            &["class", "remove", "pt0", "7up"],
            "a class's name begins with a letter, not with '7'",
        ),
        (&["class", "test"], "<FILE.pcap>"),
        (
            &["capture", "--path", "kernel"],
            "'kernel' for '--path <PATH>'\n  [possible values: direct, engine, both]",
        ),
        (
            &["capture", "--direction", "up"],
            "'up' for '--direction <DIRECTION>'\n  [possible values: in, out, both]",
        ),
        (&["capture", "-c", "0"], "'0' for '--count <N>'"),
        (&["events", "a/b"], "an interface name has no '/'"),
        (&["events", "-n", "few"], "'few' for '--count <COUNT>'"),
        (
            &["events", "--since", "yesterday"],
            "'yesterday' for '--since <TIME>': neither how long ago, like 30s, 10m, 2h or 1d, nor a time",
        ),
        (
            &["events", "--since", "2026-02-30 00:00:00"],
            "'2026-02-30 00:00:00' for '--since <TIME>'",
        ),
        (
            &["events", "--since", "1h", "-n", "3"],
            "cannot be used with",
        ),
        (
            &["up", "pt0", "--link", "eth1", "--stay=0"],
            "'0' for '--stay",
        ),
        (&["run", "pt0.toml", "--stay=3601"], "'3601' for '--stay"),
        (&["capture", "-l", "-w", "-"], "cannot be used with"),
        (
            &["class", "test", "-", "--line", "pt0", "--file", "pt0.toml"],
            "cannot be used with",
        ),
        (&["stauts"], "a similar subcommand exists: 'status'"),
    ] {
        let result = packtrain(arguments);
        assert_eq!(result.code, 2, "{arguments:?}: {}", result.err);
        assert!(result.err.starts_with("error: "), "{}", result.err);
        assert!(result.err.contains(text), "{arguments:?}: {}", result.err);
    }
}

#[test]
fn a_wrong_file_is_told_with_file_line_and_key_and_has_code_3() {
    let file = TestFile::new(
        "wrong.toml",
        "name = 'pt0'\nmtu = '9000'\nrate = 3\n[[link]]\nname = 7\n",
    );
    let path = file.path();
    for arguments in [&["run", path][..], &["run", "--check", path]] {
        let result = packtrain(arguments);
        assert_eq!(result.code, 3);
        assert_eq!(
            result.err,
            format!(
                "error: {path}:2: mtu: expected an integer, found a string\n\
                 error: {path}:3: rate: unknown key (known here: addresses, balance, class, \
                 coded_trains, compress, default_classes, dfap_ether_type, dfap_stations, dfap_strict, dfap_tick, dictionary, direct_vlan, ecn, elephant_bytes, flow_queue, hold_time, line_id, \
                 link, liveness, log_level, mac, marked_frames, max_sand_delay, mode, mtu, name, pack, path, repair, short_flows_first, size, stay, \
                 tier_spill, wait_links)\n\
                 error: {path}:5: link.name: expected a string, found an integer\n"
            )
        );
    }
}

#[test]
fn a_file_that_is_not_there_has_code_3_and_a_right_one_can_be_checked() {
    let result = packtrain(&["run", "/nonexistent/pt0.toml"]);
    assert_eq!(
        (result.code, result.err.as_str()),
        (
            3,
            "error: /nonexistent/pt0.toml: No such file or directory (os error 2)\n"
        )
    );
    let file = TestFile::new("right.toml", "name = 'pt7'\n[[link]]\nname = 'eth1'\n");
    let result = packtrain(&["run", "--check", file.path()]);
    assert_eq!(
        (result.code, result.out),
        (0, format!("{}: right, for line pt7\n", file.path()))
    );
}

#[test]
fn help_has_examples_and_exit_codes_and_version_says_itself() {
    let help = packtrain(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(
        help.out.contains("Examples:") && help.out.contains("Exit codes:"),
        "{}",
        help.out
    );
    assert!(
        help.out.lines().all(|line| line.chars().count() <= 100),
        "{}",
        help.out
    );
    for command in ["up", "run", "status", "events", "capture", "down"] {
        let help = packtrain(&[command, "--help"]);
        assert!(
            help.code == 0 && help.out.contains("Examples:"),
            "{}",
            help.out
        );
    }
    for command in ["add", "remove", "list", "test"] {
        let help = packtrain(&["class", command, "--help"]);
        let example = format!("Examples:\n  packtrain class {command}");
        assert!(
            help.code == 0 && help.out.contains(&example),
            "{}",
            help.out
        );
        assert!(help.out.lines().all(|line| line.chars().count() <= 100));
    }
    assert!(!packtrain(&["up", "--help"]).out.contains("--detached"));
    for command in ["list", "explain", "run", "sweep"] {
        let help = packtrain(&["sim", command, "--help"]);
        let example = format!("Examples:\n  packtrain sim {command}");
        assert!(
            help.code == 0 && help.out.contains(&example),
            "{}",
            help.out
        );
        assert!(help.out.lines().all(|line| line.chars().count() <= 100));
    }
    for command in LAB_COMMANDS {
        let help = packtrain(&["lab", command, "--help"]);
        let example = format!("Examples:\n  packtrain lab {command}");
        assert!(
            help.code == 0 && help.out.contains(&example),
            "{}",
            help.out
        );
        assert!(help.out.lines().all(|line| line.chars().count() <= 100));
    }
    let lab = packtrain(&["lab", "--help"]);
    assert!(!lab.out.contains("emulate"), "{}", lab.out);

    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        packtrain(&["version"]).out,
        format!("packtrain {version}\nwire format 1\n")
    );
    assert_eq!(
        packtrain(&["--version"]).out,
        format!("packtrain {version}\n")
    );
}

#[test]
fn completions_know_the_commands_of_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let result = packtrain(&["completions", shell]);
        assert_eq!(result.code, 0);
        for word in [
            "status",
            "peer",
            "wait-links",
            "events",
            "capture",
            "direction",
            "port-queue",
        ] {
            assert!(result.out.contains(word), "{shell}: {word}");
        }
        for command in LAB_COMMANDS {
            // Each shell has words of its own around it.
            let known = result.out.lines().any(|line| {
                line.contains("lab")
                    && line
                        .split(|c: char| !c.is_alphanumeric())
                        .any(|w| w == command)
            });
            assert!(known, "{shell}: lab {command}");
        }
    }
}

#[test]
fn a_setting_of_a_wire_that_is_wrong_is_told_what_is_right() {
    for (setting, text) in [
        (
            &["--delay", "5parsec"][..],
            "\"5parsec\" is no time: write it as in 20ms, 5us or 2s",
        ),
        (
            &["--delay", "5"],
            "\"5\" is no time: write it as in 20ms, 5us or 2s",
        ),
        (&["--delay", "3s"], "a time of 3s is too large: at most 2s"),
        (
            &["--rate", "10mb"],
            "\"10mb\" is no rate: write it as in 100mbit, 64kbit or 1.5gbit",
        ),
        (
            &["--rate", "10"],
            "a rate of 10 is too small: at least 1kbit",
        ),
        (
            &["--loss", "101%"],
            "a share of 101% is too large: at most 100% (1.0)",
        ),
        (
            &["--loss", "some"],
            "\"some\" is no loss: write it as in 1%, gilbert:1%,25%,0%,100%, every:100 or \
             frames:3,7",
        ),
        (
            &["--queue", "many"],
            "\"many\" is no size: write it as in 256kb",
        ),
        (
            &["--lab", "My-Lab"],
            "a lab's name is a lower-case letter, and up to 15 more",
        ),
    ] {
        let result = packtrain(&[&["lab", "set", "a-b.0"], setting].concat());
        assert_eq!(result.code, 2, "{setting:?}: {}", result.err);
        assert!(result.err.contains(text), "{setting:?}: {}", result.err);
    }
    let nothing = packtrain(&["lab", "set", "a-b.0"]);
    assert_eq!(
        (nothing.code, nothing.err.as_str()),
        (
            2,
            "error: nothing to set: name a setting, as in --delay 5ms\n"
        )
    );
}

#[test]
fn a_topology_that_cannot_be_read_is_told_by_its_name_and_needs_no_rights() {
    let absent = packtrain(&["lab", "up", "absent.toml"]);
    assert_eq!(
        (absent.code, absent.err.as_str()),
        (
            3,
            "error: absent.toml: No such file or directory (os error 2)\n"
        )
    );
    let no_name = packtrain(&["lab", "graph", "ring"]);
    assert_eq!(no_name.code, 2);
    assert!(
        no_name
            .err
            .starts_with("error: there is no topology \"ring\"; there are pair, ")
            && no_name
                .err
                .ends_with("a file of one's own is written with its .toml\n"),
        "{}",
        no_name.err
    );
    let file = TestFile::new(
        "topology.toml",
        "[[host]]\nname = 'a'\n[[wire]]\nends = ['a', 'b']\nrate = 'fast'\n",
    );
    for command in ["up", "graph"] {
        let wrong = packtrain(&["lab", command, file.path()]);
        assert_eq!(wrong.code, 3, "{}", wrong.err);
        let place = format!("error: {}:5: wire.rate: ", file.path());
        assert!(wrong.err.contains(&place), "{}", wrong.err);
    }
}

#[test]
fn a_line_that_does_not_run_has_code_9() {
    for arguments in [
        &["status", "pt-none"][..],
        &["down", "pt-none"],
        &["peer", "list", "pt-none"],
        &["class", "list", "pt-none"],
        &["events", "pt-none"],
        &["events", "pt-none", "--follow"],
        &["capture", "pt-none"],
        &["class", "add", "pt-none", "--match", "udp"],
        &["class", "remove", "pt-none", "dns"],
        // Before it waits for anything on its standard input.
        &["class", "test", "-", "--line", "pt-none"],
    ] {
        let result = packtrain(arguments);
        assert_eq!(result.code, 9, "{arguments:?}");
        assert!(
            result.err.starts_with("error: pt-none is not running\n"),
            "{}",
            result.err
        );
    }
}

#[test]
fn colour_is_for_terminals_alone() {
    let result = packtrain(&["status", "pt-none"]);
    assert!(!result.err.contains('\u{1b}'), "{:?}", result.err);
}

#[test]
fn a_capture_without_a_file_is_refused_with_what_shows_frames_on_a_terminal() {
    let Outcome { code, out, err } = packtrain(&["lab", "capture", "a-b.0"]);
    assert_eq!((code, &*out), (2, ""));
    assert!(err.contains("-w FILE") && err.contains("tshark"), "{err}");
}
