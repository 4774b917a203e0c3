//! What can go wrong with a command, in words and as an exit code.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use packtrain_study::sweep::SweepError;
use packtrain_study::sweep::store::StoreError;

use crate::capture_file::CaptureError;
use crate::control::ControlError;
use crate::filter::RunError;
use crate::linux::netlink::NetlinkError;
use crate::pace::link::PaceError;
use crate::settings::file::FileErrors;
use crate::settings::values::MtuError;
use crate::settings::{Contradiction, LINK_MTU_MIN, LINKS_MAX};

/// Every way in which a command fails. The codes are documented in `docs/configuration.md` and in
/// `packtrain --help`; they do not change.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The system refused something that has no code of its own.
    #[error("{0}")]
    Failed(String),
    #[error("{0}")]
    Usage(String),
    #[error("{}: {source}", .path.display())]
    FileUnread { path: PathBuf, source: io::Error },
    #[error("{}: there is such a file already, and it is not written over", .0.display())]
    FileExists(PathBuf),
    #[error(transparent)]
    File(#[from] FileErrors),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("no such interface: {}", .0.join(", "))]
    NoSuchInterface(Vec<String>),
    #[error("no such interface: {0}")]
    InterfaceMissing(String),
    #[error("{0} is not an Ethernet interface")]
    NotEthernet(String),
    #[error("{link} is in line {line} already: an interface belongs to one line")]
    InterfaceInLine { link: String, line: String },
    #[error("{link} is a link of {line} already")]
    LinkAlready { link: String, line: String },
    #[error("{link} is no link of {line}")]
    NoSuchLink {
        link: String,
        line: String,
        links: Vec<String>,
    },
    #[error("there is no class {class}")]
    NoSuchClass { class: String, classes: Vec<String> },
    #[error("{link} is the only link of {line}: packtrain down {line} ends the line")]
    OnlyLink { link: String, line: String },
    #[error("{link} has an MTU of {mtu}: a link needs at least {LINK_MTU_MIN}")]
    LinkMtuTooSmall { link: String, mtu: u32 },
    #[error("{0}")]
    MtuTooSmall(String),
    #[error("not allowed: this needs {}", .0.join(" and "))]
    NoRights(Vec<&'static str>),
    #[error("not allowed: only root may {action} {name}")]
    NotRoot { action: &'static str, name: String },
    #[error("the name {name} is taken: there is an interface of that name{kind}")]
    NameTaken { name: String, kind: String },
    #[error("{name} is not running")]
    NotRunning { name: String, running: Vec<String> },
    #[error("no receive filter runs on {interface}")]
    NoFilter {
        interface: String,
        running: Vec<String>,
        /// Of the last one, which nobody has ended.
        log: Option<PathBuf>,
    },
    /// As in "the pacer of eth1".
    #[error("{pacer} does not run")]
    NoPacer {
        pacer: String,
        /// Of the last one, which nobody has ended.
        log: Option<PathBuf>,
    },
    #[error(transparent)]
    Pace(#[from] PaceError),
    /// In the filter's own words.
    #[error("{0}")]
    NotConfirmed(String),
    /// While somebody was looking at it.
    #[error("{name} has ended: {because}")]
    LineEnded { name: String, because: String },
    #[error("{name} is running already{pid}")]
    AlreadyRunning { name: String, pid: String },
    #[error("{name}: {reason}")]
    NoAnswer { name: String, reason: String },
    #[error("there is no scenario {name} ({near})")]
    NoSuchScenario { name: String, near: String },
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// In the scenario's own words.
    #[error("{} of {expectations} expectations not met: {}", .unmet.len(), .unmet.join("; "))]
    NotMet {
        unmet: Vec<String>,
        expectations: usize,
    },
    #[error("interrupted; the runs that have ended are kept in {}", .0.display())]
    SweepInterrupted(PathBuf),
    #[error("no such program: {0}")]
    NoSuchProgram(String),
    #[error("interrupted; everything is undone")]
    Interrupted,
    /// Told by the detached process in its own words, with its own code.
    #[error("{message}")]
    Told {
        exit_code: u8,
        message: String,
        hint: Option<String>,
    },
}

impl CliError {
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Failed(_) | CliError::FileExists(_) => 1,
            CliError::Usage(_) | CliError::OnlyLink { .. } => 2,
            CliError::FileUnread { .. }
            | CliError::File(_)
            | CliError::Capture(_)
            | CliError::NoSuchScenario { .. } => 3,
            CliError::Sweep(error) => of_sweep(error),
            CliError::NoSuchInterface(_)
            | CliError::InterfaceMissing(_)
            | CliError::NotEthernet(_)
            | CliError::NoSuchLink { .. }
            | CliError::NoSuchClass { .. } => 4,
            CliError::InterfaceInLine { .. } | CliError::LinkAlready { .. } => 5,
            CliError::LinkMtuTooSmall { .. } | CliError::MtuTooSmall(_) => 6,
            CliError::NoRights(_) | CliError::NotRoot { .. } => 7,
            CliError::NameTaken { .. } => 8,
            CliError::NotRunning { .. }
            | CliError::LineEnded { .. }
            | CliError::NoFilter { .. }
            | CliError::NoPacer { .. } => 9,
            CliError::AlreadyRunning { .. } => 10,
            CliError::NoAnswer { .. } => 11,
            CliError::NotConfirmed(_) => 14,
            CliError::NotMet { .. } => 15,
            // As a shell says it, and 128 + SIGINT.
            CliError::NoSuchProgram(_) => 127,
            CliError::Interrupted | CliError::SweepInterrupted(_) => 130,
            CliError::Pace(error) => error.exit_code(),
            CliError::Told { exit_code, .. } => *exit_code,
        }
    }

    /// What to do about it, where that is not plain.
    pub fn hint(&self) -> Option<String> {
        match self {
            CliError::Capture(error) => error.hint(),
            CliError::FileExists(_) => Some("name another one, or remove it".into()),
            CliError::NoSuchInterface(_) => {
                Some("with --wait-links the line starts and waits for its links".into())
            }
            CliError::InterfaceMissing(_) => Some("ip link lists those there are".into()),
            CliError::NoSuchLink { line, links, .. } if links.is_empty() => {
                Some(format!("{line} has no links"))
            }
            CliError::NoSuchLink { line, links, .. } => {
                Some(format!("{line} has: {}", links.join(", ")))
            }
            CliError::NoSuchClass { classes, .. } if classes.is_empty() => {
                Some("the line has no classes".into())
            }
            CliError::NoSuchClass { classes, .. } => {
                Some(format!("the line has: {}", classes.join(", ")))
            }
            CliError::NoRights(_) => {
                Some("run it as root, or in a user and network namespace of your own".into())
            }
            CliError::NotRunning { running, .. } if running.is_empty() => {
                Some("no line runs in this network namespace".into())
            }
            CliError::NotRunning { running, .. } => Some(format!(
                "running in this network namespace: {}",
                running.join(", ")
            )),
            CliError::NoFilter { log: Some(log), .. }
            | CliError::NoPacer { log: Some(log), .. } => Some(format!(
                "the last one was not asked to end; it has left its log, {}",
                log.display()
            )),
            CliError::NoFilter { running, .. } if !running.is_empty() => {
                Some(format!("filters run on: {}", running.join(", ")))
            }
            CliError::Pace(error) => error.hint(),
            CliError::NoSuchScenario { .. } => {
                Some("packtrain sim list shows those that come along; others are files".into())
            }
            CliError::SweepInterrupted(_) => {
                Some("the same command goes on with the others".into())
            }
            CliError::Told { hint, .. } => hint.clone(),
            _ => None,
        }
    }

    /// Of a request to the line of `name`.
    pub fn from_control(name: &str, error: ControlError) -> CliError {
        match error {
            ControlError::NotRunning => {
                let running = crate::instance::running().unwrap_or_default();
                let running = running.iter().map(ToString::to_string).collect();
                CliError::NotRunning {
                    name: name.into(),
                    running,
                }
            }
            ControlError::Denied => CliError::NotRoot {
                action: "end",
                name: name.into(),
            },
            ControlError::Told {
                exit_code,
                message,
                hint,
            } => CliError::Told {
                exit_code,
                message,
                hint,
            },
            other => CliError::NoAnswer {
                name: name.into(),
                reason: other.to_string(),
            },
        }
    }

    /// Of the system, while doing `what`.
    pub fn failed(what: &str, error: impl std::fmt::Display) -> CliError {
        CliError::Failed(format!("{what}: {error}"))
    }
}

/// What is asked for, the system, or the scenario's file and what is kept of it.
fn of_sweep(error: &SweepError) -> u8 {
    match error {
        SweepError::Vary(_) => 2,
        SweepError::Store(StoreError::File { .. }) => 1,
        SweepError::Store(_)
        | SweepError::Point { .. }
        | SweepError::Expectation { .. }
        | SweepError::Run { .. } => 3,
    }
}

impl From<NetlinkError> for CliError {
    fn from(error: NetlinkError) -> CliError {
        CliError::Failed(error.to_string())
    }
}

impl From<crate::pace::tcp::RunError> for CliError {
    fn from(error: crate::pace::tcp::RunError) -> CliError {
        CliError::Failed(error.to_string())
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> CliError {
        match error {
            RunError::InterfaceMissing(name) => CliError::InterfaceMissing(name),
            RunError::NotEthernet(name) => CliError::NotEthernet(name),
            RunError::NotConfirmed { .. } => CliError::NotConfirmed(error.to_string()),
            other => CliError::Failed(other.to_string()),
        }
    }
}

impl From<Contradiction> for CliError {
    fn from(contradiction: Contradiction) -> CliError {
        match contradiction {
            Contradiction::MtuTooSmallForIpv6 { .. } => {
                CliError::MtuTooSmall(contradiction.to_string())
            }
            other => CliError::Usage(other.to_string()),
        }
    }
}

impl From<MtuError> for CliError {
    fn from(error: MtuError) -> CliError {
        match error {
            MtuError::TooSmall(_) => CliError::MtuTooSmall(error.to_string()),
            MtuError::TooLarge(_) => CliError::Usage(error.to_string()),
        }
    }
}

/// The codes as `--help` shows them.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "done"),
    (1, "the system refused something; the message says what"),
    (
        2,
        "wrong usage: an option, a value, or values that contradict each other",
    ),
    (
        3,
        "a configuration file or a scenario cannot be read, or is wrong (file, line and key are named), or a capture (its place is named)",
    ),
    (
        4,
        "no such interface, link, class, rule or set, or not an Ethernet interface",
    ),
    (5, "an interface is in a line already"),
    (6, "an MTU is too small"),
    (7, "no rights; the capability is named"),
    (8, "the name is taken by another interface"),
    (9, "not running, or no longer"),
    (10, "running already"),
    (11, "the line does not answer"),
    (12, "nothing of the filter waits to be confirmed"),
    (
        13,
        "something of the filter waits to be confirmed, and nothing else changes until then",
    ),
    (
        14,
        "nobody has confirmed the filter in time, and it was taken off",
    ),
    (15, "what a scenario of sim expects has not come"),
    (127, "lab exec: no such program"),
    (130, "interrupted; everything is undone"),
];

/// The table above as text.
pub fn exit_codes_help() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(text, "  {code:>3}  {meaning}");
    }
    let _ = write!(text, "\nA line has 1 to {LINKS_MAX} links.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_in_the_help_and_in_the_documentation() {
        let errors = [
            CliError::Failed(String::new()),
            CliError::FileExists(PathBuf::new()),
            CliError::Usage(String::new()),
            CliError::File(FileErrors(Vec::new())),
            CliError::NoSuchInterface(Vec::new()),
            CliError::NotEthernet(String::new()),
            CliError::InterfaceInLine {
                link: String::new(),
                line: String::new(),
            },
            CliError::LinkAlready {
                link: String::new(),
                line: String::new(),
            },
            CliError::NoSuchLink {
                link: String::new(),
                line: String::new(),
                links: Vec::new(),
            },
            CliError::NoSuchClass {
                class: String::new(),
                classes: Vec::new(),
            },
            CliError::OnlyLink {
                link: String::new(),
                line: String::new(),
            },
            CliError::LinkMtuTooSmall {
                link: String::new(),
                mtu: 0,
            },
            CliError::MtuTooSmall(String::new()),
            CliError::NoRights(Vec::new()),
            CliError::NameTaken {
                name: String::new(),
                kind: String::new(),
            },
            CliError::NotRunning {
                name: String::new(),
                running: Vec::new(),
            },
            CliError::LineEnded {
                name: String::new(),
                because: String::new(),
            },
            CliError::AlreadyRunning {
                name: String::new(),
                pid: String::new(),
            },
            CliError::NoAnswer {
                name: String::new(),
                reason: String::new(),
            },
            CliError::NotConfirmed(String::new()),
            CliError::NoSuchScenario {
                name: String::new(),
                near: String::new(),
            },
            CliError::NotMet {
                unmet: Vec::new(),
                expectations: 0,
            },
            CliError::SweepInterrupted(PathBuf::new()),
            CliError::Interrupted,
        ];
        let told: Vec<u8> = EXIT_CODES.iter().map(|&(code, _)| code).collect();
        for error in errors {
            assert!(told.contains(&error.exit_code()), "{error:?}");
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let documentation = std::fs::read_to_string(path).unwrap();
        for (code, _) in EXIT_CODES {
            assert!(documentation.contains(&format!("| {code} |")), "{code}");
        }
    }
}
