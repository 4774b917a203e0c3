//! Running lines of this network namespace: who they are, and where their files lie.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::control::SOCKET_PREFIX;
use crate::linux::host_state::{Change, Outcome};
use crate::pace::Pacer;
use crate::settings::values::InterfaceName;

/// `__SO_ACCEPTCON` of the kernel's `include/uapi/linux/net.h`: the socket listens.
const FLAG_LISTENS: u32 = 0x1_0000;

/// What stands before an interface's name in the one of its filter's control socket. No line can have such a name.
pub const FILTER_PREFIX: &str = "filter/";

/// The same of the pacer of an interface.
pub const PACE_LINK_PREFIX: &str = "pace-link/";

/// The pacer of TCP connections, of which a network namespace has one: its prefix, and its name behind that. The prefix is
/// not the other's, so an interface may be called so.
pub const PACE_PREFIX: &str = "pace/";
pub const PACE_TCP: &str = "tcp";

/// Names of the lines that have a control socket in this network namespace, in order.
pub fn running() -> io::Result<Vec<InterfaceName>> {
    let table = fs::read_to_string("/proc/thread-self/net/unix")?;
    Ok(listening(&table, SOCKET_PREFIX))
}

/// Interfaces that have a receive filter in this network namespace, in order.
pub fn running_filters() -> io::Result<Vec<InterfaceName>> {
    let table = fs::read_to_string("/proc/thread-self/net/unix")?;
    Ok(listening(
        &table,
        &format!("{SOCKET_PREFIX}{FILTER_PREFIX}"),
    ))
}

/// Pacers of this network namespace: of interfaces in the order of their names, and then that of TCP.
pub fn running_pacers() -> io::Result<Vec<Pacer>> {
    Ok(pacers(&fs::read_to_string("/proc/thread-self/net/unix")?))
}

fn pacers(table: &str) -> Vec<Pacer> {
    let behind = |prefix| listening(table, &format!("{SOCKET_PREFIX}{prefix}"));
    let links = behind(PACE_LINK_PREFIX).into_iter().map(Pacer::Link);
    let tcp = behind(PACE_PREFIX);
    let tcp = tcp.iter().any(|name| name.as_str() == PACE_TCP);
    links.chain(tcp.then_some(Pacer::Tcp)).collect()
}

/// Reads `/proc/net/unix` (proc_pid_net(5)): names behind this prefix.
fn listening(table: &str, prefix: &str) -> Vec<InterfaceName> {
    let lines = table.lines().skip(1);
    let mut names: Vec<InterfaceName> = lines
        .filter_map(|line| listening_name(line, prefix))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn listening_name(line: &str, prefix: &str) -> Option<InterfaceName> {
    // Num: RefCount Protocol Flags Type St Inode Path; an abstract path begins with '@'.
    let mut fields = line.split_ascii_whitespace();
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    let path = fields.nth(3)?;
    let name = path.strip_prefix('@')?.strip_prefix(prefix)?;
    if flags & FLAG_LISTENS == 0 {
        return None;
    }
    name.parse().ok()
}

/// Where lines of this network namespace keep their files: `/run/packtrain/<namespace>`, by the
/// namespace's inode number, because a namespace has no other name that all its processes see.
pub fn state_dir() -> io::Result<PathBuf> {
    let namespace = fs::read_link("/proc/thread-self/ns/net")?;
    let namespace = namespace.to_string_lossy();
    let inode = namespace.trim_start_matches("net:[").trim_end_matches(']');
    Ok(Path::new("/run/packtrain").join(inode))
}

/// What a process that is not in the foreground logs to.
pub fn log_path(name: &str) -> io::Result<PathBuf> {
    Ok(state_dir()?.join(format!("{name}.log")))
}

/// Takes away the log of a line that ended as it was asked to: nothing stays behind, not even an empty directory.
pub fn remove_log(name: &str) {
    if let Ok(path) = log_path(name) {
        let _ = fs::remove_file(&path);
        let _ = path.parent().map(fs::remove_dir);
    }
}

/// Lines of this network namespace that were killed and left a journal behind.
pub fn left_behind() -> io::Result<Vec<InterfaceName>> {
    let running = running()?;
    let mut names: Vec<InterfaceName> = journals()?
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter(|name| !running.contains(name))
        .collect();
    names.sort();
    Ok(names)
}

/// Whose journals lie in the state directory.
fn journals() -> io::Result<Vec<String>> {
    let dir = match fs::read_dir(state_dir()?) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in dir {
        let file = entry?.file_name();
        let name = file.to_str().and_then(|f| f.strip_suffix(".json"));
        names.extend(name.map(str::to_owned));
    }
    Ok(names)
}

/// Pacers of this network namespace that were killed and left a journal behind.
pub fn pacers_left_behind() -> io::Result<Vec<Pacer>> {
    let running = running_pacers()?;
    let mut pacers: Vec<Pacer> = journals()?
        .iter()
        .filter_map(|name| Pacer::of_file_name(name))
        .filter(|pacer| !running.contains(pacer))
        .collect();
    pacers.sort_by_key(Pacer::file_name);
    Ok(pacers)
}

/// What became of the changes of a line that was killed, in words; nothing of those that need
/// none.
pub fn undone(changes: &[(Change, Outcome)]) -> Vec<String> {
    let words = |(change, outcome): &(Change, Outcome)| match outcome {
        Outcome::Restored => Some(format!("undone after an earlier run: {change}")),
        Outcome::Failed { reason } => Some(format!(
            "not undone after an earlier run: {change}: {reason}"
        )),
        // Somebody else's value by now, or gone: there is nothing to undo.
        Outcome::NotOurs { .. } | Outcome::InterfaceGone => None,
    };
    changes.iter().filter_map(words).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn listening_sockets_of_ours_are_found_among_the_others() {
        let table = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 14405 @packtrain/pt1
0000000000000000: 00000003 00000000 00000000 0001 03 14406 @packtrain/pt1
0000000000000000: 00000002 00000000 00010000 0001 01 14407 @packtrain/pt0
0000000000000000: 00000003 00000000 00000000 0001 03 14408 @packtrain/pt2
0000000000000000: 00000002 00000000 00010000 0001 01 14409 @other/pt3
0000000000000000: 00000002 00000000 00010000 0001 01 14410 /run/packtrain/pt4
0000000000000000: 00000002 00000000 00010000 0001 01 14411 @packtrain/a/b
0000000000000000: 00000002 00000000 00010000 0001 01 14413 @packtrain/filter/eth1
0000000000000000: 00000002 00000000 00010000 0001 01 14415 @packtrain/pace-link/tcp
0000000000000000: 00000002 00000000 00010000 0001 01 14416 @packtrain/pace/tcp
0000000000000000: 00000002 00000000 00000000 0002 01 14412
";
        let filters: Vec<String> = listening(table, "packtrain/filter/")
            .iter()
            .map(|n| n.to_string())
            .collect();
        assert_eq!(filters, ["eth1"]);
        let tcp = Pacer::Link("tcp".parse().unwrap());
        assert_eq!(pacers(table), [tcp, Pacer::Tcp]);
        let names: Vec<String> = listening(table, SOCKET_PREFIX)
            .iter()
            .map(|n| n.to_string())
            .collect();
        assert_eq!(names, ["pt0", "pt1"]);
    }

    #[test]
    fn a_line_that_runs_is_listed_and_is_not_once_it_has_ended() {
        let name: InterfaceName = format!("t-inst-{}", std::process::id()).parse().unwrap();
        let server = crate::control::ControlServer::bind(name.as_str()).unwrap();
        assert!(running().unwrap().contains(&name));
        drop(server);
        // A process that another test starts has the socket too, until it is a program of its own.
        let gone = crate::lab::wait_for("it to be gone", Duration::from_secs(5), || {
            !running().unwrap().contains(&name)
        });
        gone.unwrap();
    }

    #[test]
    fn the_state_directory_is_named_after_the_namespace() {
        let dir = state_dir().unwrap();
        let inode = dir.file_name().unwrap().to_str().unwrap();
        assert!(inode.bytes().all(|b| b.is_ascii_digit()), "{dir:?}");
    }
}
