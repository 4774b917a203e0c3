//! What is measured beside it, by programs of their own.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::fixed_run::FixedRun;
use crate::process::{Spent, now};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/ns3_dumbbell.py");
const PYTHON: &str = "PACKTRAIN_NS3_PYTHON";
/// How `packtrain sim` ends when a figure is not what its scenario expects.
const EXPECTATION_UNMET: i32 = 15;
const INSTALL: &str = "not installed: `pip install ns3`, in a Python that it has a wheel for (3.11 has one), and name that by PACKTRAIN_NS3_PYTHON";

/// How much of the run.
#[derive(Clone, Copy, Debug)]
pub struct Ns3 {
    /// `None`: all of it.
    seconds: Option<u64>,
}

impl Default for Ns3 {
    fn default() -> Ns3 {
        Ns3::after_its_beginning(2)
    }
}

impl Ns3 {
    /// All flows have begun by then, and most of slow start is over.
    const BEGINNING_SECONDS: u64 = 3;

    pub fn after_its_beginning(seconds: u64) -> Ns3 {
        Ns3 {
            seconds: Some(seconds),
        }
    }

    pub fn whole() -> Ns3 {
        Ns3 { seconds: None }
    }

    /// What it took, by the names that ours has; or why it did not.
    pub fn run(self, run: &FixedRun) -> Result<Value, String> {
        let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
        let has_it = Command::new(&python)
            .args(["-c", "from ns import ns"])
            .output();
        if !has_it.is_ok_and(|output| output.status.success()) {
            return Err(INSTALL.into());
        }
        let (seconds, ignored) = match self.seconds {
            Some(seconds) => (Self::BEGINNING_SECONDS + seconds, Self::BEGINNING_SECONDS),
            None => (run.seconds, run.seconds.saturating_sub(1).min(10)),
        };
        let numbers = [
            ("--flows", u64::from(run.flows)),
            ("--bottleneck-bps", run.bps),
            ("--source-queue-bytes", run.source_queue_bytes()),
            ("--seconds", seconds),
            ("--ignore-s", ignored),
        ];
        let output = Command::new(&python)
            .arg(SCRIPT)
            .args(
                numbers
                    .iter()
                    .flat_map(|(name, value)| [name.to_string(), value.to_string()]),
            )
            .output()
            .map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&output.stderr);
        let read: Value =
            serde_json::from_slice(&output.stdout).map_err(|_| format!("it failed: {told}"))?;
        // Of a part of the run only what was measured after the beginning is told.
        let which = if self.seconds.is_some() {
            "measured"
        } else {
            "run"
        };
        let mut row = read[which].clone();
        for name in ["simulator", "version", "build", "goodput_bps", "loss_rate"] {
            row[name] = read[name].clone();
        }
        row["virtual_s"] = json!(if self.seconds.is_some() {
            seconds - ignored
        } else {
            seconds
        });
        row["rss_end_kib"] = read["rss_peak_kib"].clone();
        Ok(row)
    }
}

/// A sweep that draws a figure of a paper.
#[derive(Clone, Debug)]
pub struct Figure {
    scenario: &'static str,
    wall_s: f64,
    user_s: f64,
    cores: usize,
}

impl Figure {
    /// Lines of Figure 6, 540 s of virtual time for each point and seed.
    const SCENARIO: &str = "xlf-drr";

    pub fn run(packtrain: &Path) -> Result<Figure, String> {
        let sim = |words: &[&str]| {
            let mut command = Command::new(packtrain);
            command.arg("sim").args(words);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let status = command
                .status()
                .map_err(|error| format!("{}: {error}", packtrain.display()))?;
            // What it says of expectations is not asked here.
            match status.code() {
                Some(0 | EXPECTATION_UNMET) => Ok(()),
                _ => Err(format!("`sim {}`: {status}", words.join(" "))),
            }
        };
        let (began, before) = (now(), Spent::by_children());
        sim(&["sweep", Self::SCENARIO])?;
        Ok(Figure {
            scenario: Self::SCENARIO,
            wall_s: began.elapsed().as_secs_f64(),
            user_s: Spent::by_children().since(before).user,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    pub fn document(&self) -> Value {
        json!({ "scenario": self.scenario, "wall_s": self.wall_s, "user_s": self.user_s, "cores": self.cores })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a full figure of the paper (sim sweep {}): {:.0} s on {} cores, {:.0} s of user time",
            self.scenario, self.wall_s, self.cores, self.user_s
        )
    }
}
