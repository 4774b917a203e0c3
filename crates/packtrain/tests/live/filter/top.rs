//! `packtrain filter top` on a terminal of its own, while frames come: what it shows, and that the terminal is as before
//! when it has ended.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use packtrain::lab::wait_for;
use packtrain::view::terminal::Screen;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, Termios, tcgetattr, tcsetwinsize};
use serde_json::Value;

use super::{document, filtered};
use crate::cli::host::{Host, PACKTRAIN};

const PATIENCE: Duration = Duration::from_secs(15);
/// The terminal is that of a session, as a shell's is: what hangs up or changes is told by signals.
const SESSION: [&str; 2] = ["setsid", "--ctty"];

/// A program on a pseudo terminal, and what somebody would see there.
struct OnTerminal {
    child: Child,
    /// What a person types goes here, and what is written comes from here.
    ours: File,
    /// Kept open, so that it can be looked at when the program is gone.
    theirs: OwnedFd,
    before: Termios,
    shown: Arc<Mutex<vt100::Parser>>,
}

impl OnTerminal {
    fn start(command: &mut Command) -> OnTerminal {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).unwrap();
        let (ours, theirs) = (File::from(pty.master), pty.slave);
        let before = tcgetattr(&theirs).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let child = command
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let size = |n: u16| n.try_into().unwrap();
        let shown = Arc::new(Mutex::new(vt100::Parser::new(size(24), size(80), 0)));
        let (mut written, told) = (ours.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = written.read(&mut bytes) {
                told.lock().unwrap().process(&bytes[..len]);
            }
        });
        OnTerminal {
            child,
            ours,
            theirs,
            before,
            shown,
        }
    }

    fn top(host: &Host, more: &[&str]) -> OnTerminal {
        let words = [&SESSION[..], &[PACKTRAIN, "filter", "top"], more].concat();
        OnTerminal::start(&mut host.0.command(words))
    }

    fn text(&self) -> String {
        self.shown.lock().unwrap().screen().contents()
    }

    fn wait(&self, what: &str, ready: impl Fn(&str) -> bool) {
        wait_for(what, PATIENCE, || ready(&self.text()))
            .unwrap_or_else(|error| panic!("{error}:\n{}", self.text()));
    }

    fn shows(&self, what: &str) {
        self.wait(what, |text| text.contains(what));
    }

    fn types(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&self, rows: u16, columns: u16) {
        let mut size = rustix::termios::tcgetwinsize(&self.theirs).unwrap();
        (size.ws_row, size.ws_col) = (rows, columns);
        // As a terminal does: what is written for the new size is to find that there already.
        let mut shown = self.shown.lock().unwrap();
        let cells = |n: u16| n.try_into().unwrap();
        shown.set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.ours, size).unwrap();
    }

    /// It has the terminal for itself.
    fn has_taken(&self) -> bool {
        let shown = self.shown.lock().unwrap();
        let modes = tcgetattr(&self.theirs).unwrap().local_modes;
        shown.screen().alternate_screen() && !modes.contains(LocalModes::ICANON)
    }

    /// Has ended, and left nothing behind.
    fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("it to end", PATIENCE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .unwrap_or_else(|error| panic!("{error}:\n{}", self.text()));
        wait_for("the screen to be as before", PATIENCE, || {
            let shown = self.shown.lock().unwrap();
            let screen = shown.screen();
            !screen.alternate_screen() && !screen.hide_cursor()
        })
        .unwrap();
        let after = tcgetattr(&self.theirs).unwrap();
        let modes = |t: &Termios| {
            (
                t.input_modes,
                t.output_modes,
                t.control_modes,
                t.local_modes,
            )
        };
        assert_eq!(modes(&after), modes(&self.before));
        status.unwrap()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Frames that are for the first host, one each five milliseconds, until it is dropped.
struct Traffic(Child);

impl Traffic {
    fn start(from: &Host) -> Traffic {
        let words = ["ping", "-n", "-q", "-i", "0.005", "10.1.0.1"];
        let child = from.0.command(words).stdout(Stdio::null()).spawn();
        Traffic(child.unwrap())
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Of the row of all frames: `handled  198  155k  …`.
fn frames_per_s(text: &str) -> Option<f64> {
    let row = text.lines().find(|line| line.starts_with("handled"))?;
    let number = row.split_whitespace().nth(1)?;
    number.parse().ok()
}

#[test]
fn a_terminal_shows_what_passes_a_second_and_is_as_before_when_it_ends() {
    live!();
    let (a, b) = filtered("");
    let _traffic = Traffic::start(&b);
    let mut top = OnTerminal::top(&a, &["eth1", "--interval", "0.3"]);
    top.shows("packtrain filter of eth1");
    assert!(top.has_taken());
    // 200 frames a second are sent; a host that is starved sends some less.
    top.wait("a rate", |text| {
        frames_per_s(text).is_some_and(|rate| (20.0..=400.0).contains(&rate))
    });
    top.shows("to an address of the interface");
    top.types("?");
    top.shows("without preamble");
    top.types("x");
    top.shows("no rules: the policy decides");
    top.resize(5, 20);
    top.shows("small: 20 x 5");
    top.resize(40, 120);
    top.shows("BYTES   SHARE");
    // The first key behind a resize is heard too.
    top.types("?");
    top.shows("without preamble");
    top.types("xq");
    assert!(top.ends().success());
}

#[test]
fn a_filter_that_ends_is_waited_for_and_sigterm_leaves_the_terminal_as_it_was() {
    live!();
    let (a, b) = filtered("--dry-run");
    let _traffic = Traffic::start(&b);
    let mut top = OnTerminal::top(&a, &["-d", "0.2"]);
    top.shows("DRY RUN: nothing is dropped");
    top.wait("a rate", |text| frames_per_s(text) > Some(0.0));
    a.done("filter off");
    top.shows("The filter of eth1 has ended");
    a.done("filter on eth1 --mode tc");
    top.shows("mode tc");
    // A new one counts anew: no rate is more than is sent.
    top.wait("a rate", |text| frames_per_s(text) > Some(0.0));
    assert!(frames_per_s(&top.text()) < Some(400.0), "{}", top.text());
    assert!(!top.text().contains("DRY RUN"));
    let pid = Pid::from_child(&top.child);
    kill_process(pid, Signal::TERM).unwrap();
    assert!(top.ends().success());
}

#[test]
fn a_filter_that_hangs_does_not_keep_keys_waiting() {
    live!();
    let (a, _b) = filtered("");
    let mut top = OnTerminal::top(&a, &["-d", "0.2"]);
    top.shows("packtrain filter of eth1");
    top.shows("mode native");
    let pid = document(&a)["pid"].as_u64().unwrap();
    let pid = Pid::from_raw(pid as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    top.types("p");
    top.shows("PAUSED");
    top.types("p");
    top.wait("it to go on", |text| !text.contains("PAUSED"));
    top.shows("does not answer: no answer within 5 s");
    kill_process(pid, Signal::CONT).unwrap();
    top.wait("it to answer", |text| !text.contains("does not answer"));
    // Ctrl-C, which is a key here.
    top.types("\u{3}");
    assert!(top.ends().success());
}

/// Says to this test that it is the one on the terminal.
const PANICS: &str = "PACKTRAIN_TEST_PANICS";

#[test]
fn a_view_that_panics_leaves_the_terminal_as_it_was_and_what_it_has_said_can_be_read() {
    if std::env::var_os(PANICS).is_some() {
        let _screen = Screen::take().unwrap();
        // Not the thread that draws.
        let _ = std::thread::spawn(|| panic!("a mistake of ours")).join();
        unreachable!("it has ended with the thread");
    }
    live!();
    let this = "filter::top::a_view_that_panics_leaves_the_terminal_as_it_was_and_what_it_has_said_can_be_read";
    let mut command = Command::new(SESSION[0]);
    command
        .arg(SESSION[1])
        .arg(std::env::current_exe().unwrap());
    command
        .args(["--exact", this, "--nocapture"])
        .env(PANICS, "1");
    let mut view = OnTerminal::start(&mut command);
    assert_eq!(view.ends().code(), Some(101));
    view.shows("a mistake of ours");
}

#[test]
fn lines_have_rates_of_each_interval_and_end_with_the_filter() {
    live!();
    let (a, b) = filtered("");
    let _traffic = Traffic::start(&b);
    let lines = a.done("filter top eth1 --json -n 3 -d 0.4").out;
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    for (before, after) in lines.iter().zip(&lines[1..]) {
        let number = |value: &Value| value.as_f64().unwrap();
        let seconds = number(&after["seconds"]);
        let by_stamps = number(&after["time_ns"]) - number(&before["time_ns"]);
        assert!((seconds - by_stamps / 1e9).abs() < 1e-6, "{after}");
        let frames = number(&after["handled"]["frames"]) - number(&before["handled"]["frames"]);
        let rate = number(&after["handled"]["frames_per_s"]);
        assert!(
            frames > 0.0 && (rate - frames / seconds).abs() < 1e-6,
            "{after}"
        );
        assert_eq!(after["reasons"]["ours"]["verdict"], "pass");
    }
    let text = a.done("filter top --batch -n 1 -d 0.2").out;
    assert!(
        text.contains("filter of eth1: policy host") && text.contains("  handled"),
        "{text}"
    );
    // It is no terminal.
    let refused = a.packtrain("filter top");
    assert_eq!(refused.code, 2, "{}", refused.err);
    a.done("filter off");
    let none = "error: no receive filter runs on eth1\n";
    a.fails("filter top eth1 --json", 9, none);
    a.fails("filter top eth1 --batch -n 1", 9, none);
}
