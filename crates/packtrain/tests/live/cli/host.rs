//! A host, and the real binary on it.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use packtrain::lab::namespaces::Namespace;
use packtrain::lab::wait_for;
use serde_json::Value;

pub const PACKTRAIN: &str = env!("CARGO_BIN_EXE_packtrain");
/// `nobody`.
pub const OTHER_UID: u32 = 65_534;

/// A namespace with an `eth1` that ends in another one's.
pub struct Host(pub Namespace);

#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        Outcome {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Host {
    pub fn pair() -> (Host, Host) {
        let (a, b) = (
            Namespace::create("cli").unwrap(),
            Namespace::create("cli").unwrap(),
        );
        let (a, b) = (Host(a), Host(b));
        a.sh(&format!(
            "ip link add eth1 type veth peer name eth1 netns {}",
            b.0.name()
        ));
        a.sh("ip link set eth1 up");
        b.sh("ip link set eth1 up");
        a.settle();
        b.settle();
        (a, b)
    }

    pub fn alone() -> Host {
        let host = Host::create();
        host.sh("ip link add eth1 type veth peer name eth2 && ip link set eth1 up");
        host.sh("ip link set eth2 up");
        host.settle();
        host
    }

    pub fn sh(&self, line: &str) -> String {
        self.0
            .sh(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub fn packtrain(&self, arguments: &str) -> Outcome {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        self.words(&words)
    }

    /// As above, where arguments have spaces in them.
    pub fn words(&self, arguments: &[&str]) -> Outcome {
        let words = [&[PACKTRAIN], arguments].concat();
        self.0.try_exec(words).unwrap().into()
    }

    /// As above, and it has to succeed.
    pub fn done(&self, arguments: &str) -> Outcome {
        let outcome = self.packtrain(arguments);
        assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.err);
        outcome
    }

    pub fn fails(&self, arguments: &str, code: i32, error: &str) {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        self.fails_words(&words, code, error);
    }

    pub fn fails_words(&self, arguments: &[&str], code: i32, error: &str) {
        let outcome = self.words(arguments);
        assert_eq!(
            (outcome.code, outcome.err.as_str()),
            (code, error),
            "{arguments:?}"
        );
        assert_eq!(outcome.out, "");
    }

    /// As somebody who is not root.
    pub fn as_other(&self, arguments: &str) -> Outcome {
        let path = format!("/run/netns/{}", self.0.name());
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={path}"))
            .args(["setpriv", "--reuid", &OTHER_UID.to_string()]);
        command
            .args(["--clear-groups", "--", PACKTRAIN])
            .args(arguments.split_whitespace());
        command.arg0("nsenter").output().unwrap().into()
    }

    pub fn status(&self, name: &str) -> Value {
        serde_json::from_str(&self.done(&format!("status {name} --json")).out).unwrap()
    }

    pub fn pid(&self, name: &str) -> u64 {
        self.status(name)["pid"].as_u64().unwrap()
    }

    /// Waits until the status of pt0 is as asked.
    pub fn wait(&self, what: &str, ready: impl Fn(&Value) -> bool) {
        wait_for(what, Duration::from_secs(5), || ready(&self.status("pt0")))
            .unwrap_or_else(|error| panic!("{error}: {:#}", self.status("pt0")));
    }

    /// What a line may have changed, in words that do not change by themselves.
    pub fn dump(&self) -> String {
        self.sh(
            "ip -d link show | sed 's/if[0-9]*:/:/'; ip address show | grep -v valid_lft; \
             ip route show table all; tc qdisc show; tc filter show dev eth1 ingress; \
             ethtool -k eth1 2>/dev/null; grep -r . /proc/sys/net/ipv4/conf/eth1",
        )
    }

    /// The dump is still the same; if not, only what differs is shown.
    pub fn is_as(&self, before: &str, when: &str) {
        let after = self.dump();
        let only = |a: &str, b: &str| -> Vec<String> {
            a.lines()
                .filter(|line| !b.lines().any(|l| l == *line))
                .map(String::from)
                .collect()
        };
        let (gone, new) = (only(before, &after), only(&after, before));
        assert!(
            gone.is_empty() && new.is_empty(),
            "{when}: gone: {gone:#?}, new: {new:#?}"
        );
    }

    /// Addresses come up by themselves, after a while; what is compared must not be on its way.
    pub fn settle(&self) {
        wait_for("link-local addresses", Duration::from_secs(5), || {
            let there = self.sh("ip -6 route show table local dev eth1");
            there.contains("fe80::") && !self.sh("ip address").contains("tentative")
        })
        .unwrap();
    }

    /// Without the second that the kernel looks for somebody else with a link-local address.
    pub fn create() -> Host {
        let host = Host(Namespace::create("cli").unwrap());
        host.sh("echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad");
        host.sh("echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad");
        host
    }

    pub fn has(&self, interface: &str) -> bool {
        self.0
            .try_exec(["ip", "link", "show", interface])
            .unwrap()
            .status
            .success()
    }
}

impl Drop for Host {
    /// The namespace ends what runs in it; a line, a filter or a pacer that could end by itself has no excuse.
    fn drop(&mut self) {
        let _ = self.0.try_exec([PACKTRAIN, "pace", "off"]);
        let _ = self.0.try_exec([PACKTRAIN, "filter", "off"]);
        let _ = self.0.try_exec([PACKTRAIN, "down", "--all"]);
    }
}

pub fn schema_problems(document: &Value) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/status.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    validator
        .iter_errors(document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}
