//! A `/run` and an `/etc` of a test's own: its labs are all that stand there, whatever else stands on
//! this machine, and `lab down --all` means them alone.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use packtrain::lab::wait_for;
use serde_json::Value;

use crate::common::packtrain;

/// What takes longer than this will not happen.
pub const SOON: Duration = Duration::from_secs(6);

/// Holds the mounts until its standard input closes, be it that the test was killed, and takes down
/// what still stands there. $1 is packtrain.
const HOLDER: &str = r#"
trap '' INT TERM HUP
set -e
mount -t tmpfs packtrain-test /run
mkdir /run/etc
# What is in /etc/netns comes and goes with other tests.
find /etc -mindepth 1 -maxdepth 1 ! -name netns -exec cp -a -t /run/etc {} +
mount --bind /run/etc /etc
echo ready
cat
"$1" lab down --all
"#;

pub struct World {
    holder: Child,
}

#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        Outcome {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl World {
    pub fn new() -> World {
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", HOLDER, "sh"])
            .arg(packtrain())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare is there");
        let mut ready = String::new();
        let stdout = holder.stdout.take().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut ready)
            .expect("a line");
        assert_eq!(ready, "ready\n", "the mounts could not be made");
        World { holder }
    }

    /// A program and its arguments, to be run there: words without quotes.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--mount", "--target", &self.holder.id().to_string(), "--"])
            .args(line.split_whitespace())
            .stdin(Stdio::null());
        command
    }

    pub fn shell(&self, script: &str) -> Outcome {
        let mut command = self.command("sh -c");
        command
            .arg(script)
            .output()
            .expect("nsenter is there")
            .into()
    }

    /// `packtrain lab …`, to be run there.
    pub fn lab_command(&self, line: &str) -> Command {
        self.command(&format!("{} lab {line}", packtrain().display()))
    }

    pub fn lab(&self, line: &str) -> Outcome {
        let output = self.lab_command(line).output();
        output.expect("nsenter is there").into()
    }

    /// As above, and it has to succeed; its standard output.
    pub fn done(&self, line: &str) -> String {
        let outcome = self.lab(line);
        assert_eq!(
            outcome.code, 0,
            "lab {line}: {}{}",
            outcome.out, outcome.err
        );
        outcome.out
    }

    /// As above, and it has to fail so.
    pub fn fails(&self, line: &str, code: i32, error: &str) {
        let outcome = self.lab(line);
        let is = (outcome.code, outcome.err.as_str(), outcome.out.as_str());
        assert_eq!(is, (code, error, ""), "lab {line}");
    }

    /// A shell line on a host of a lab; its standard output. It has to succeed.
    pub fn on(&self, lab: &str, host: &str, script: &str) -> String {
        let outcome = self.try_on(lab, host, script);
        assert_eq!(
            outcome.code, 0,
            "{host} of {lab}: {script}: {}{}",
            outcome.out, outcome.err
        );
        outcome.out
    }

    pub fn try_on(&self, lab: &str, host: &str, script: &str) -> Outcome {
        self.on_command(lab, host, script)
            .output()
            .expect("nsenter is there")
            .into()
    }

    pub fn on_command(&self, lab: &str, host: &str, script: &str) -> Command {
        let mut command = self.lab_command(&format!("exec --lab {lab} {host} -- sh -c"));
        command.arg(script);
        command
    }

    /// Whether one of a few pings comes back.
    pub fn pings(&self, lab: &str, host: &str, to: &str) -> bool {
        let script = format!("ping -c3 -i0.05 -W0.3 -q {to}");
        self.try_on(lab, host, &script).code == 0
    }

    /// The document of `lab list --json`.
    pub fn document(&self, lab: &str) -> Value {
        let text = self.done(&format!("list --lab {lab} --json"));
        let mut labs: Value = serde_json::from_str(&text).unwrap();
        labs[0].take()
    }

    /// The wire's direction in which this node sends.
    pub fn direction(&self, lab: &str, wire: &str, from: &str) -> Value {
        let document = self.document(lab);
        let wires = document["wires"].as_array().unwrap().iter();
        let directions = wires
            .filter(|w| w["name"] == wire)
            .flat_map(|w| w["directions"].as_array().unwrap());
        let mut found = directions.filter(|d| d["from"] == from);
        found.next().expect("it is a wire of this lab").clone()
    }

    pub fn emulator(&self, lab: &str) -> u32 {
        let record = self.shell(&format!("cat /run/packtrain/labs/{lab}/lab.json"));
        let record: Value = serde_json::from_str(&record.out).unwrap();
        record["emulator"]["pid"].as_u64().unwrap() as u32
    }

    /// What keeps a lab of this name in being: its emulator, and the inodes of its hosts' namespaces.
    pub fn remains(&self, lab: &str) -> Remains {
        let inodes = self.shell(&format!("stat -c %i /run/netns/pt-{lab}-*"));
        Remains {
            emulator: self.emulator(lab),
            namespaces: inodes.out.lines().map(String::from).collect(),
        }
    }

    /// Nothing at all is left of any lab.
    pub fn assert_empty(&self, when: &str) {
        let files = self.shell("ls -d /run/netns/* /run/packtrain/labs /etc/netns 2>/dev/null");
        assert_eq!(files.out, "", "left behind {when}");
        let here = mount_namespace(self.holder.id());
        let emulators: Vec<u32> = processes()
            .filter(|&pid| mount_namespace(pid) == here && is_packtrain(pid))
            .collect();
        assert!(emulators.is_empty(), "still run {when}: {emulators:?}");
    }
}

/// What a lab would leave if it left something.
pub struct Remains {
    emulator: u32,
    namespaces: BTreeSet<String>,
}

impl Remains {
    pub fn assert_gone(&self, world: &World) {
        world.assert_empty("after down");
        assert!(!runs(self.emulator), "the emulator still runs");
        assert!(!self.namespaces.is_empty(), "there was nothing to look for");
        let inside: Vec<u32> = processes().filter(|&pid| self.holds(pid)).collect();
        assert!(inside.is_empty(), "still run on its hosts: {inside:?}");
    }

    fn holds(&self, pid: u32) -> bool {
        let link = std::fs::read_link(format!("/proc/{pid}/ns/net"));
        let link = link.map(|path| path.to_string_lossy().into_owned());
        link.is_ok_and(|text| {
            let inode = text.trim_start_matches("net:[").trim_end_matches(']');
            self.namespaces.contains(inode) && runs(pid)
        })
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn mount_namespace(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()
}

fn is_packtrain(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|path| path == packtrain())
}

/// A zombie has ended too: whoever adopted it may be slow to look.
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// A topology file in the world.
impl World {
    pub fn write(&self, path: &str, text: &str) {
        let mut command = self.command("tee");
        let mut child = command
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

pub fn soon(what: &str, ready: impl FnMut() -> bool) {
    wait_for(what, SOON, ready).unwrap();
}

/// The numbers of `rtt min/avg/max/mdev = …`, in milliseconds.
pub fn round_trips_ms(ping: &str) -> [f64; 4] {
    let line = ping.lines().find(|line| line.starts_with("rtt "));
    let line = line.unwrap_or_else(|| panic!("no answer: {ping}"));
    let numbers = line.split_whitespace().nth(3).unwrap();
    let numbers: Vec<f64> = numbers.split('/').map(|n| n.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}
