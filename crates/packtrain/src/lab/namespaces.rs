//! Network namespaces as hosts: made, entered, and gone again whatever happens.
//!
//! A namespace is called `pt-<tag>-<pid>-<number>`, so that it can be told whose it is. It goes
//! - when its [`Namespace`] is dropped,
//! - when this process ends in any other way, `kill -9` included: a guard process holds the other
//!   end of a pipe and sees it close,
//! - when the guard died too: by the next lab that starts ([`sweep`]).

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use super::{Error, Result, now, pause};

pub const NAMESPACE_DIR: &str = "/run/netns";

/// Ends what runs in the namespaces given as arguments, gently first because packtrain undoes
/// its changes on SIGTERM, and removes them.
const REMOVE: &str = r#"
PATH=$PATH:/usr/sbin:/sbin
everyone() { for name; do ip netns pids "$name" 2>/dev/null; done; }
end_programs() {
    present=
    for name; do [ -e "/run/netns/$name" ] && present="$present $name"; done
    set -- $present
    for signal in TERM KILL; do
        tries=0
        # Again each time: something may have been starting when we looked.
        while pids=$(everyone "$@"); [ -n "$pids" ] && [ $tries -lt 40 ]; do
            kill -$signal $pids 2>/dev/null
            sleep 0.05
            tries=$((tries + 1))
        done
    done
    true
}
remove() {
    end_programs "$@"
    for name; do
        [ -e "/run/netns/$name" ] || continue
        # What lines and filters that were killed have left is of nobody's use then, and the next namespace may get the number.
        inode=$(stat -c %i "/run/netns/$name")
        ip netns delete "$name" 2>/dev/null && [ -n "$inode" ] && rm -rf "/run/packtrain/$inode"
    done
    true
}
"#;

/// Reads names until the pipe closes, deaf to what a terminal sends, and removes them.
const GUARD: &str = r#"
trap '' INT TERM HUP QUIT
names=
while read -r name; do names="$names $name"; done
remove $names
"#;

struct Guard {
    process: Child,
    names: ChildStdin,
}

/// Started with the first namespace, one for the whole process.
static GUARD_PROCESS: Mutex<Option<Guard>> = Mutex::new(None);
static NUMBER: AtomicU32 = AtomicU32::new(0);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// What takes away more than namespaces of this module's own.
static ALSO_AT_INTERRUPT: OnceLock<fn()> = OnceLock::new();

/// Once interrupted, nobody starts anything more, or takes for a failure that a program was ended.
fn halt_if_interrupted() {
    while INTERRUPTED.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// One host of a lab.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// It goes with this value.
    is_ours: bool,
}

impl Namespace {
    /// A new, empty network namespace with its loopback up.
    pub fn create(tag: &str) -> Result<Namespace> {
        assert!(
            !tag.is_empty()
                && tag
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
            "a tag is lower case letters and digits: {tag:?}"
        );
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pt-{tag}-{}-{number}", std::process::id());
        watch(&name)?;
        run("ip", ["netns", "add", &name])?;
        let namespace = Namespace {
            name,
            is_ours: true,
        };
        namespace.exec(["ip", "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// One that is there, and stays.
    pub fn standing(name: &str) -> Namespace {
        Namespace {
            name: name.to_owned(),
            is_ours: false,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run inside; its `/sys` is that of the namespace.
    pub fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).args(words);
        command
    }

    /// Runs a program to its end, and gives what it printed; an error when it fails.
    pub fn exec<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<String> {
        let mut command = self.command(words);
        let output = output(&mut command)?;
        succeeded(&command, output)
    }

    /// As [`Namespace::exec`], and a failure is an answer too.
    pub fn try_exec<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<Output> {
        output(&mut self.command(words))
    }

    /// A shell line, for what is clearer in one.
    pub fn sh(&self, line: &str) -> Result<String> {
        self.exec(["sh", "-c", line])
    }

    /// Starts a program that runs beside; it is ended when the [`Process`] is dropped.
    pub fn spawn<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<Process> {
        Process::start(&mut self.command(words))
    }

    /// Runs `inside` on a thread of its own that has entered the namespace: for sockets that a
    /// test opens itself, which stay in the namespace after.
    pub fn in_namespace<T: Send>(&self, inside: impl FnOnce() -> T + Send) -> Result<T> {
        enter(&self.name, inside)
    }

    /// Writes one value below the namespace's `/proc/sys`, with `/` between the parts of the key
    /// (names of interfaces may hold dots).
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        self.sh(&format!("echo {value} > /proc/sys/{key}"))
            .map(drop)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.is_ours {
            remove(std::slice::from_ref(&self.name));
        }
    }
}

/// Runs `inside` on a thread of its own that has entered the namespace of this name.
pub fn enter<T: Send>(name: &str, inside: impl FnOnce() -> T + Send) -> Result<T> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    let path = Path::new(NAMESPACE_DIR).join(name);
    let file_error = |source| Error::File {
        path: path.display().to_string(),
        source,
    };
    let namespace = File::open(&path).map_err(file_error)?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|errno| file_error(errno.into()))?;
            Ok(inside())
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A program that runs beside; ended, gently first, when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    command: String,
}

impl Process {
    fn start(command: &mut Command) -> Result<Process> {
        halt_if_interrupted();
        let text = text_of(command);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| Error::Start {
                command: text.clone(),
                source,
            })?;
        Ok(Process {
            child,
            command: text,
        })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // It may have ended by itself in between, which is what was wanted.
        let _ = rustix::process::kill_process(pid, signal);
    }

    /// Waits for its end, and gives what it printed; an error when it failed.
    pub fn finish(mut self) -> Result<String> {
        let output = self.collect()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::Command {
            command: self.command.clone(),
            status: output.status,
            stderr: tail(&output),
        })
    }

    /// Asks it to end (SIGINT, on which measuring programs print their summary), and gives what
    /// it printed.
    pub fn interrupt(self) -> Result<String> {
        self.end_by(rustix::process::Signal::INT)
    }

    /// For one that catches no signal: who runs in the background may have been told to ignore interrupts.
    pub fn terminate(self) -> Result<String> {
        self.end_by(rustix::process::Signal::TERM)
    }

    fn end_by(mut self, signal: rustix::process::Signal) -> Result<String> {
        self.signal(signal);
        let output = self.collect()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn collect(&mut self) -> Result<Output> {
        use std::io::Read;
        let error = |source| Error::Start {
            command: self.command.clone(),
            source,
        };
        // Both pipes are read at once, or a program that fills one would wait for us for ever.
        let mut stderr = self.child.stderr.take();
        let errors = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(pipe) = stderr.as_mut() {
                let _ = pipe.read_to_end(&mut bytes);
            }
            bytes
        });
        let mut stdout = Vec::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_end(&mut stdout).map_err(error)?;
        }
        let status = self.child.wait().map_err(error)?;
        halt_if_interrupted();
        let stderr = errors.join().unwrap_or_default();
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_running() {
            return;
        }
        self.signal(rustix::process::Signal::TERM);
        let start = now();
        while self.is_running() && start.elapsed() < Duration::from_secs(2) {
            pause(Duration::from_millis(2));
        }
        // An error says that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program in this process's own namespace, to its end.
pub fn run<S: AsRef<OsStr>>(program: &str, words: impl IntoIterator<Item = S>) -> Result<String> {
    let mut command = Command::new(program);
    command.args(words);
    let output = output(&mut command)?;
    succeeded(&command, output)
}

/// Where programs are looked for: not everyone's PATH has those of administrators, and this packtrain is found
/// also where none is installed.
pub fn program_directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let of_administrators = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(own)
        .chain(of_administrators)
        .collect()
}

/// Here, and so on every host: they have the file system of this one.
pub fn program_exists(program: impl AsRef<OsStr>) -> bool {
    let program = program.as_ref();
    // As for execvp(3): what has a slash is a path, and is looked for nowhere else.
    if program.as_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    let directories = program_directories();
    directories.iter().any(|d| d.join(program).is_file())
}

/// Removes namespaces whose lab is dead.
pub fn sweep() {
    let Ok(entries) = std::fs::read_dir(NAMESPACE_DIR) else {
        return; // no namespace was ever made here
    };
    let stale: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| owner(name).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()))
        .collect();
    remove(&stale);
}

/// From now on nobody starts anything more: who is told to end takes away what there is.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::SeqCst);
}

/// When this process is interrupted ([`clean_up_on_signals`]), it does this as well before it ends.
pub fn also_at_interrupt(also: fn()) {
    // The same each time.
    let _ = ALSO_AT_INTERRUPT.set(also);
}

/// Ends this process with its namespaces gone when it is interrupted: without this the guard
/// removes them a moment after the shell's prompt is back.
pub fn clean_up_on_signals() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|source| {
            Error::Start {
                command: "signal handler".to_owned(),
                source,
            }
        })?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // First: it may wait for somebody who, once we are interrupted, goes no further.
            if let Some(also) = ALSO_AT_INTERRUPT.get() {
                also();
            }
            interrupt();
            eprintln!("\ninterrupted: removing the namespaces");
            let guard = GUARD_PROCESS.lock().ok().and_then(|mut g| g.take());
            if let Some(Guard { mut process, names }) = guard {
                drop(names);
                let _ = process.wait();
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Which process a namespace belongs to, if it is a lab's.
fn owner(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix("pt-")?.rsplitn(3, '-');
    let number = parts.next()?;
    let pid = parts.next()?;
    let tag = parts.next()?;
    number.parse::<u32>().ok()?;
    (!tag.is_empty()).then_some(())?;
    pid.parse().ok()
}

/// Tells the guard of a namespace before it exists, so that there is no moment in which it
/// would stay.
fn watch(name: &str) -> Result<()> {
    let error = |source| Error::Start {
        command: "guard of the namespaces".to_owned(),
        source,
    };
    let mut guard = GUARD_PROCESS.lock().expect("no code panics with the lock");
    if guard.is_none() {
        sweep();
        let mut process = Command::new("sh")
            .args(["-c", &format!("{REMOVE}\n{GUARD}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(error)?;
        let names = process.stdin.take().expect("asked for above");
        *guard = Some(Guard { process, names });
    }
    let guard = guard.as_mut().expect("made above");
    writeln!(guard.names, "{name}").map_err(error)
}

/// A new, empty one, which stays until it is removed.
pub fn add(name: &str) -> Result<()> {
    run("ip", ["netns", "add", name]).map(drop)
}

/// Ends what runs in them, and removes them.
pub fn remove(names: &[String]) {
    call("remove", names);
}

/// Ends what runs in them, gently first.
pub fn end_programs(names: &[String]) {
    call("end_programs", names);
}

fn call(function: &str, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let result = Command::new("sh")
        .args(["-c", &format!("{REMOVE}\n{function} \"$@\""), "sh"])
        .args(names)
        .stdin(Stdio::null())
        .status();
    if let Err(error) = result {
        eprintln!("could not remove {}: {error}", names.join(" "));
    }
}

fn output(command: &mut Command) -> Result<Output> {
    halt_if_interrupted();
    let output = command.stdin(Stdio::null()).output();
    halt_if_interrupted();
    output.map_err(|source| Error::Start {
        command: text_of(command),
        source,
    })
}

fn succeeded(command: &Command, output: Output) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Command {
        command: text_of(command),
        status: output.status,
        stderr: tail(&output),
    })
}

/// What a program said when it failed; some say it on their standard output.
fn tail(output: &Output) -> String {
    let bytes = if output.stderr.is_empty() {
        &output.stdout
    } else {
        &output.stderr
    };
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn text_of(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_in_directories_unless_it_is_a_path() {
        let own = std::env::current_exe().unwrap();
        let name = own.file_name().unwrap();
        assert!(program_exists("sh") && program_exists("/bin/sh") && program_exists(name));
        assert!(!program_exists("no-such-program") && !program_exists("./no-such-program"));
        // Not in this directory, in whichever it is found.
        assert!(!program_exists(Path::new(".").join(name)));
    }

    #[test]
    fn only_names_of_a_lab_have_an_owner() {
        assert_eq!(owner("pt-demo-4242-0"), Some(4242));
        assert_eq!(owner("pt-a-b-7-11"), Some(7));
        for other in [
            "pt0",
            "pt-demo",
            "pt-demo-1",
            "pt-demo-x-1",
            "pt-demo-1-x",
            "pt--1-1",
            "x",
        ] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
