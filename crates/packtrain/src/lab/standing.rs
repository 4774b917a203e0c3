//! A lab that stands until it is taken down: hosts, and a process that carries their frames.
//!
//! ```text
//!  pt-lab-a                     pt-lab-b        a namespace for each host
//!   pt0                          pt0
//!   eth0  eth1                   eth0  eth1     TAPs, with a qdisc where the port has a rate
//!     │     │    ┌──────────┐      │     │
//!     └─────┴────┤ emulator ├──────┴─────┘      `packtrain lab emulate`
//!                └──────────┘
//! ```
//! What is there is written down first ([`record`]), and everything of it goes with `lab down`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::emulator::protocol::{self, AskError, EmulatorStatus, Request, Response};
use super::emulator::service::Spec;
use super::namespaces::{self, Namespace};
use super::topology::{Name, Topology};
use super::{Error, Result, wait_for};

pub mod addresses;
mod configure;
mod held;
pub mod record;

pub use addresses::HostAddresses;
pub use held::HeldLab;
use record::{ProcessId, Record, file};

/// `ip netns exec` puts these over /etc of the programs that it starts.
const NETNS_CONFIG_DIR: &str = "/etc/netns";

/// How long the emulator may take to make its interfaces.
const END_WAIT_MAX: Duration = Duration::from_secs(3);
const PEERS_WAIT_MAX: Duration = Duration::from_secs(8);

/// What a lab is called: part of the names of its namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabName(String);

impl LabName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text names no lab.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a lab's name is a lower-case letter, and up to 15 more of these or digits; not {0:?}")]
pub struct LabNameError(String);

impl FromStr for LabName {
    type Err = LabNameError;

    fn from_str(text: &str) -> std::result::Result<LabName, LabNameError> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let starts = text.starts_with(|c: char| c.is_ascii_lowercase());
        match starts && text.len() <= 16 && text.bytes().all(plain) {
            true => Ok(LabName(text.to_owned())),
            false => Err(LabNameError(text.to_owned())),
        }
    }
}

/// The lab that this process makes, from the moment on which there is something of it, or one that goes
/// with this process. Whoever makes
/// a part of it that could stay behind holds this, and whoever takes it down for a signal waits for
/// that part, and lets no other begin.
static IN_THE_MAKING: Mutex<Option<String>> = Mutex::new(None);

fn making() -> MutexGuard<'static, Option<String>> {
    IN_THE_MAKING.lock().expect("no code panics with the lock")
}

/// Takes a lab that this process is making down again when the command is interrupted. Who makes one lab after the other
/// may ask for it each time.
pub fn clean_up_on_signals() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    static IS_SEEN_TO: AtomicBool = AtomicBool::new(false);
    if IS_SEEN_TO.load(Ordering::Relaxed) {
        return Ok(());
    }
    let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = signals.map_err(|source| Error::Start {
        command: "signal handler".to_owned(),
        source,
    })?;
    // A process that has hosts beside its lab hears of the signal twice, and ends when the first is done.
    namespaces::also_at_interrupt(remove_what_is_in_the_making);
    IS_SEEN_TO.store(true, Ordering::Relaxed);
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            remove_what_is_in_the_making();
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// To be done by who ends the process: nobody makes a lab after it.
fn remove_what_is_in_the_making() {
    let making = making();
    namespaces::interrupt();
    if let Some(lab) = &*making {
        eprintln!("\ninterrupted: removing what there is of {lab}");
        if let Ok(record) = Record::load(lab) {
            let _ = remove(&record);
        }
    }
    // Held to the end.
    std::mem::forget(making);
}

/// A lab that stands.
#[derive(Debug)]
pub struct Lab {
    record: Record,
    addresses: Vec<HostAddresses>,
}

impl Lab {
    /// Makes a lab of this name; `packtrain` is the program that runs on its hosts. What was made is
    /// taken away again when something of it fails. `step` is told what is done next.
    pub fn up(
        name: &str,
        topology: &Topology,
        packtrain: &Path,
        mut step: impl FnMut(&str),
    ) -> Result<Lab> {
        super::check_available()?;
        let mut record = Record::new(name, topology);
        claim(&mut record)?;
        let made = make(&mut record, packtrain, &mut step);
        let mut making = making();
        if made.is_err() {
            // The first failure is the one to tell of.
            let _ = remove(&record);
        }
        *making = None;
        made.map(|()| Lab::of(record))
    }

    /// The lab of this name; without one, the only one that stands.
    pub fn find(name: Option<&str>) -> Result<Lab> {
        Record::load(&meant(name)?).map(Lab::of)
    }

    /// The names of all that stand, or of which something is left.
    pub fn names() -> Result<Vec<String>> {
        record::standing()
    }

    fn of(record: Record) -> Lab {
        Lab {
            addresses: addresses::assign(&record.topology),
            record,
        }
    }

    pub fn name(&self) -> &str {
        &self.record.lab
    }

    /// As it was made.
    pub fn topology(&self) -> &Topology {
        &self.record.topology
    }

    pub fn addresses(&self) -> &[HostAddresses] {
        &self.addresses
    }

    /// The namespace of a host.
    pub fn host(&self, host: &str) -> Result<Namespace> {
        let mut namespaces = self.record.namespaces.iter();
        let found = namespaces.find(|(name, _)| name.as_str() == host);
        let (_, namespace) = found.ok_or_else(|| Error::NoSuchHost {
            host: host.to_owned(),
            lab: self.record.lab.clone(),
            hosts: self.record.namespaces.keys().map(Name::to_string).collect(),
        })?;
        Ok(Namespace::standing(namespace))
    }

    /// Asks the emulator.
    pub fn ask(&self, request: &Request) -> std::result::Result<Response, AskError> {
        protocol::ask(&self.record.socket(), request).map(|(response, _)| response)
    }

    /// Asks for a capture; pcapng comes over the connection until its half that writes is shut down.
    pub fn capture(
        &self,
        request: &Request,
    ) -> std::result::Result<BufReader<UnixStream>, AskError> {
        let (response, stream) = protocol::ask(&self.record.socket(), request)?;
        if response != Response::Done {
            return Err(AskError::NotUnderstood(format!("{response:?}")));
        }
        // Nothing may come for as long as nobody sends.
        stream.get_ref().set_read_timeout(None)?;
        Ok(stream)
    }

    /// From now on the thread that carries frames runs on this processor alone: its captures, and whoever else, have the others.
    pub fn keep_wires_on(&self, cpu: usize) -> Result<()> {
        let emulator = self.record.emulator.filter(|emulator| emulator.is_alive());
        let pid = emulator.and_then(|emulator| Pid::from_raw(emulator.pid as i32));
        let mut set = CpuSet::new();
        set.set(cpu);
        // A process's number is that of its first thread, which is the one.
        let kept = pid.map_or(Err(Errno::SRCH), |pid| sched_setaffinity(Some(pid), &set));
        kept.map_err(|errno| Error::Start {
            command: format!("the wires of {} on processor {cpu}", self.name()),
            source: errno.into(),
        })
    }

    pub fn status(&self) -> std::result::Result<EmulatorStatus, AskError> {
        match self.ask(&Request::Status {})? {
            Response::Status(status) => Ok(*status),
            other => Err(AskError::NotUnderstood(format!("{other:?}"))),
        }
    }

    /// Ends everything that runs in the lab of this name, or in the only one, and removes what was
    /// made: also where the record cannot be read.
    pub fn down(name: Option<&str>) -> Result<()> {
        let name = meant(name)?;
        match Record::load(&name) {
            Err(Error::Unexpected { .. }) => remove(&Record::by_names(&name)),
            record => remove(&record?),
        }
    }
}

/// The name, or that of the only lab that stands.
fn meant(name: Option<&str>) -> Result<String> {
    if let Some(name) = name {
        return Ok(name.to_owned());
    }
    let standing = record::standing()?;
    match &standing[..] {
        [] => Err(Error::NoLab),
        [only] => Ok(only.clone()),
        _ => Err(Error::SeveralLabs(standing)),
    }
}

/// Takes the name for a new lab, and writes down what will be there.
fn claim(record: &mut Record) -> Result<()> {
    let mut making = making();
    record.claim()?;
    let mut namespaces = record.namespaces.values();
    let taken = namespaces.find(|name| Path::new(namespaces::NAMESPACE_DIR).join(name).exists());
    if let Some(taken) = taken {
        // Nothing is removed that is somebody else's.
        record.forget()?;
        return Err(Error::NamespaceExists(taken.clone()));
    }
    record.made_netns_dir =
        !Path::new(NETNS_CONFIG_DIR).exists() || record::some_made_netns_dir(&record.lab);
    if let Err(error) = record.save() {
        let _ = record.forget();
        return Err(error);
    }
    *making = Some(record.lab.clone());
    Ok(())
}

fn make(record: &mut Record, packtrain: &Path, step: &mut impl FnMut(&str)) -> Result<()> {
    let addresses = addresses::assign(&record.topology);
    step("hosts");
    let hosts = addresses::hosts_file(&addresses);
    for namespace in record.namespaces.values() {
        let making = making();
        namespaces::add(namespace)?;
        let dir = Path::new(NETNS_CONFIG_DIR).join(namespace);
        fs::create_dir_all(&dir).map_err(|e| file(&dir, e))?;
        fs::write(dir.join("hosts"), &hosts).map_err(|e| file(&dir, e))?;
        drop(making);
        configure::settings(namespace)?;
    }
    step("wires");
    start_emulator(record, packtrain)?;
    step("addresses");
    for (host, of) in record.topology.hosts.iter().zip(&addresses) {
        configure::links(&record.namespaces[&host.name], host, of)?;
    }
    step("lines");
    configure::lines(record, &addresses, packtrain, PEERS_WAIT_MAX)
}

fn start_emulator(record: &mut Record, packtrain: &Path) -> Result<()> {
    let log = fs::File::create(record.log()).map_err(|e| file(&record.log(), e))?;
    let started = |source| Error::Start {
        command: format!("{} lab emulate", packtrain.display()),
        source,
    };
    let making = making();
    let mut child = Command::new(packtrain)
        .args(["lab", "emulate"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(started)?;
    record.emulator = ProcessId::of(child.id());
    record.save()?;
    drop(making);
    let spec = Spec {
        topology: record.topology.clone(),
        namespaces: record.namespaces.clone(),
        socket: record.socket(),
    };
    let text = serde_json::to_vec(&spec).expect("a spec has no key but strings");
    let mut stdin = child.stdin.take().expect("it was asked for");
    // If it ended already, its log says why.
    let _ = stdin.write_all(&text);
    drop(stdin);
    let mut answer = String::new();
    let stdout = child.stdout.take().expect("it was asked for");
    BufReader::new(stdout)
        .read_line(&mut answer)
        .map_err(started)?;
    if answer == Spec::READY {
        return Ok(());
    }
    let mut why = String::new();
    if let Ok(mut log) = fs::File::open(record.log()) {
        let _ = log.read_to_string(&mut why);
    }
    Err(Error::Emulator(why.trim().to_owned()))
}

/// Takes away whatever there is of a lab.
fn remove(record: &Record) -> Result<()> {
    let names: Vec<String> = record.namespaces.values().cloned().collect();
    // Programs first: packtrain undoes on its links what it has changed there.
    namespaces::end_programs(&names);
    let asked = protocol::ask(&record.socket(), &Request::Down {});
    if let Some(emulator) = record.emulator {
        let gone = || !emulator.is_alive();
        let ends = asked.is_ok() && wait_for("the emulator to end", END_WAIT_MAX, gone).is_ok();
        if !ends {
            let pid = rustix::process::Pid::from_raw(emulator.pid as i32);
            if let Some(pid) = pid.filter(|_| emulator.is_alive()) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            wait_for("the emulator to end", END_WAIT_MAX, gone)?;
        }
    }
    namespaces::remove(&names);
    for namespace in &names {
        let dir = Path::new(NETNS_CONFIG_DIR).join(namespace);
        // There is none when it was interrupted early.
        let _ = fs::remove_file(dir.join("hosts"));
        let _ = fs::remove_dir(&dir);
    }
    if record.made_netns_dir {
        let _ = fs::remove_dir(NETNS_CONFIG_DIR);
    }
    record.forget()
}
