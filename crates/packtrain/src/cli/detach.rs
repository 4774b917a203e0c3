//! `up` and `filter on` return when what they start stands: they start themselves once more, detached, and wait at a
//! pipe over which that process reports. Both ends are here.
//!
//! The pipe is the child's standard output, so that no descriptor number has to be passed on. As
//! long as the child has not reported, it dies with its parent: what the person interrupted
//! leaves nothing behind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::error::CliError;
use super::output;
use super::up::checks;
use crate::instance;
use crate::running::Signals;

/// What the child says, a line of JSON each. The last is `Stands` or `Failed`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Report {
    Note(String),
    Stands,
    Failed {
        exit_code: u8,
        message: String,
        hint: Option<String>,
    },
}

/// The person's end. `what` is to stand, as in "line", and its log is of this name.
pub fn launch(what: &str, log_name: &str) -> Result<(), CliError> {
    // Here too, because without them there is no log file either.
    checks::rights()?;
    let signals = Signals::catch()?;
    let log_path =
        starting_log_path(log_name).map_err(|e| CliError::failed("/proc/thread-self/ns/net", e))?;
    let log_file = open_log(&log_path)?;
    let mut child = spawn(log_file).map_err(|e| CliError::failed("packtrain itself", e))?;
    let reports = child.stdout.take().expect("it was asked for");
    let result = follow(&mut child, reports, &signals);
    match result {
        Ok(true) => Ok(()),
        Ok(false) => {
            let status = child
                .wait()
                .map_or_else(|e| e.to_string(), |s| s.to_string());
            let log = log_path.display();
            Err(CliError::Failed(format!(
                "the {what} ended before it stood ({status}); see {log}"
            )))
        }
        Err(error) => {
            // It has undone everything by the time it ends, and has told us all that it had to.
            let _ = child.wait();
            remove_log(&log_path);
            Err(error)
        }
    }
}

fn spawn(log_file: File) -> io::Result<Child> {
    let program = std::env::current_exe()?;
    // The same words once more, so that a list of processes shows what runs.
    Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log_file)
        .spawn()
}

/// Follows the reports to the last. `Ok(false)`: they ended without a last one.
fn follow(child: &mut Child, reports: ChildStdout, signals: &Signals) -> Result<bool, CliError> {
    let mut reports = BufReader::new(reports);
    loop {
        if reports.buffer().is_empty() {
            wait_for_report(child, reports.get_ref(), signals)?;
        }
        let mut line = String::new();
        let len = reports
            .read_line(&mut line)
            .map_err(|e| CliError::failed("the pipe", e))?;
        if len == 0 {
            return Ok(false);
        }
        match serde_json::from_str(&line) {
            Ok(Report::Note(text)) => output::note(&text),
            Ok(Report::Stands) => return Ok(true),
            Ok(Report::Failed {
                exit_code,
                message,
                hint,
            }) => {
                return Err(CliError::Told {
                    exit_code,
                    message,
                    hint,
                });
            }
            Err(error) => return Err(CliError::failed("a report that was not understood", error)),
        }
    }
}

fn wait_for_report(
    child: &Child,
    reports: &ChildStdout,
    signals: &Signals,
) -> Result<(), CliError> {
    let signal_fd = signals.fd();
    let mut fds = [
        PollFd::new(reports, PollFlags::IN),
        PollFd::new(&signal_fd, PollFlags::IN),
    ];
    loop {
        match poll(&mut fds, None) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(CliError::failed("waiting for it to stand", error)),
        }
    }
    if fds[1].revents().is_empty() {
        return Ok(());
    }
    if let Some(pid) = Pid::from_raw(child.id() as i32) {
        // Not reaped yet, so the number is still its own.
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
    Err(CliError::Interrupted)
}

/// Until it has its name, its log has one of its own: one of that name may be running, and goes on writing to its
/// log.
fn starting_log_path(name: &str) -> io::Result<PathBuf> {
    Ok(instance::state_dir()?.join(format!("{name}.{}.log", std::process::id())))
}

fn open_log(path: &Path) -> Result<File, CliError> {
    let failed = |path: &Path, e: io::Error| CliError::failed(&path.display().to_string(), e);
    let dir = path.parent().expect("it lies in the state directory");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(dir)
        .map_err(|e| failed(dir, e))?;
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o644)
        .open(path)
        .map_err(|e| failed(path, e))
}

/// The log of who has its name by now: in place of that of an earlier one. What that one had to say is of no use, and
/// the file does not grow over the years.
pub fn claim_log(name: &str) -> io::Result<PathBuf> {
    let path = instance::log_path(name)?;
    // Standard error is the log, as long as nobody has played with `--detached`.
    let now = fs::read_link("/proc/self/fd/2")?;
    if now.parent() == path.parent() {
        fs::rename(now, &path)?;
    }
    Ok(path)
}

/// Of what ended as it was asked to: nothing stays behind, not even an empty directory.
pub fn remove_log(path: &Path) {
    let _ = fs::remove_file(path);
    if let Some(dir) = path.parent() {
        let _ = fs::remove_dir(dir);
    }
}

/// The other end: only the launching process waits, and if it is gone, nobody wants what was to stand.
pub fn begin() {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
}

/// Told to whoever waits.
pub fn note(text: &str) {
    report(&Report::Note(text.into()));
}

/// It does not come to stand.
pub fn failed(error: &CliError) {
    report(&Report::Failed {
        exit_code: error.exit_code(),
        message: error.to_string(),
        hint: error.hint(),
    });
}

/// Says that it stands. `false`: nobody waits any more.
pub fn stands() -> Result<bool, CliError> {
    // Before the report, upon which the parent ends as it should. From here on it is the pipe
    // that tells whether it has ended too early.
    let _ = rustix::process::set_parent_process_death_signal(None);
    if !report(&Report::Stands) {
        return Ok(false);
    }
    close_pipe()?;
    Ok(true)
}

/// Says whether anybody still listens.
fn report(report: &Report) -> bool {
    let mut line = serde_json::to_string(report).expect("a report is plain JSON");
    line.push('\n');
    let mut out = io::stdout();
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .is_ok()
}

/// So that whoever reads what `up` prints (`out=$(packtrain up …)`) is not kept waiting for as
/// long as what was started lives.
fn close_pipe() -> Result<(), CliError> {
    let failed = |e: io::Error| CliError::failed("/dev/null", e);
    let null = OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .map_err(failed)?;
    rustix::stdio::dup2_stdout(&null).map_err(|e| failed(e.into()))
}
