//! What we change on the host, written down before it is changed, so that it can be undone by
//! whoever comes after a kill -9.
//!
//! One file a line, `DIRECTORY/NAME.json`, replaced as a whole for each step. The invariants:
//! - A change that was made stands in the file; a change that stands in the file may not have been
//!   made. So an undo looks at the value first, and touches only what still holds ours.
//! - Changes are undone last to first; a value that was changed twice goes back step by step.
//! - The file means something in the boot and network namespace in which it was written, and to
//!   the interface that had this index with this name or MAC address. Everywhere else it is stale.
//!
//! Whoever holds the line's name (its control socket) is alone in writing the file.

mod file;
mod identity;
mod setting;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use packtrain_proto::wire::ethernet::MacAddr;
use serde::{Deserialize, Serialize};

use self::file::Record;
pub use self::identity::Owner;
use self::identity::Place;
pub use self::setting::{Setting, write_sysctl};
use super::guard;
use super::netlink::{Link, Netlink, NetlinkError};

/// The index of an interface that is still to be made.
const NOT_YET: u32 = 0;

/// One change of one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub ifindex: u32,
    /// As it was called then.
    pub interface: String,
    /// Its MAC address then.
    pub address: String,
    #[serde(flatten)]
    pub setting: Setting,
    pub before: i64,
    pub ours: i64,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} ({} → {})",
            self.setting,
            self.interface,
            self.setting.value(self.before),
            self.setting.value(self.ours)
        )
    }
}

/// What became of a change when it was to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Restored,
    /// It holds another value by now, or never got ours: left as it is.
    NotOurs {
        now: i64,
    },
    /// The interface is no more, or another one has its index.
    InterfaceGone,
    /// Kept in the file for the next attempt.
    Failed {
        reason: String,
    },
}

/// What an earlier life of the line left, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// No file.
    Nothing,
    /// Its owner lives.
    Running {
        owner: Owner,
    },
    /// Written in another boot or namespace, or no longer readable: it says nothing about this
    /// host, and was removed.
    Stale {
        reason: &'static str,
    },
    Undone {
        changes: Vec<(Change, Outcome)>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum HostStateError {
    #[error("cannot write down what is changed on this host, so nothing is changed: {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} belongs to the running process {}", .path.display(), .owner.pid)]
    Owned { path: PathBuf, owner: Owner },
    #[error("{} still holds changes of an earlier run: recover it first", .path.display())]
    NotRecovered { path: PathBuf },
    #[error("cannot change {setting} of {interface} to {value}: {source}{}", hint(.source))]
    Change {
        setting: Setting,
        interface: String,
        value: i64,
        source: io::Error,
    },
    #[error("no interface has the index {ifindex}")]
    NoInterface { ifindex: u32 },
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => " (this needs CAP_NET_ADMIN)",
        Some(libc::EROFS) => " (/proc/sys is mounted read-only here)",
        _ => "",
    }
}

/// The journal of one running line.
#[derive(Debug)]
pub struct HostState {
    path: PathBuf,
    record: Record,
    netlink: Netlink,
}

/// Where the journal of the line `line` is.
pub fn path(directory: &Path, line: &str) -> PathBuf {
    directory.join(format!("{line}.json"))
}

impl HostState {
    /// Starts the journal of a line that this process runs. [`HostState::recover`] comes before.
    pub fn create(directory: &Path, line: &str) -> Result<HostState, HostStateError> {
        let path = path(directory, line);
        if let Some(record) = file::read(&path)? {
            let owner = record.owner;
            if owner.is_alive() && owner != Owner::this_process() {
                return Err(HostStateError::Owned { path, owner });
            }
            if !record.changes.is_empty() {
                return Err(HostStateError::NotRecovered { path });
            }
        }
        let record = Record::new(line, Place::here().map_err(|e| file::unreadable(&path, e))?);
        let state = HostState {
            path,
            record,
            netlink: Netlink::open()?,
        };
        state.save()?;
        Ok(state)
    }

    /// Goes on with the journal of an earlier life of the line, which has ended and whose changes stand. `None`: there is
    /// none that is of use here.
    pub fn adopt(directory: &Path, line: &str) -> Result<Option<HostState>, HostStateError> {
        let path = path(directory, line);
        let here = Place::here().map_err(|e| file::unreadable(&path, e))?;
        let Some(mut record) = file::read(&path)? else {
            return Ok(None);
        };
        let owner = record.owner;
        if record.place.differs_from(&here).is_some() || owner.is_alive() {
            return Ok(None);
        }
        record.owner = Owner::this_process();
        let state = HostState {
            path,
            record,
            netlink: Netlink::open()?,
        };
        state.save()?;
        Ok(Some(state))
    }

    /// Undoes what an earlier life of the line left behind, if it has ended.
    pub fn recover(directory: &Path, line: &str) -> Result<Recovery, HostStateError> {
        let path = path(directory, line);
        let record = match file::read_any(&path)? {
            file::Found::Nothing => return Ok(Recovery::Nothing),
            file::Found::Unusable(reason) => return discard(&path, reason),
            file::Found::Record(record) => record,
        };
        let here = Place::here().map_err(|e| file::unreadable(&path, e))?;
        if let Some(reason) = record.place.differs_from(&here) {
            return discard(&path, reason);
        }
        let owner = record.owner;
        if owner.is_alive() && owner != Owner::this_process() {
            return Ok(Recovery::Running { owner });
        }
        let mut state = HostState {
            path,
            record,
            netlink: Netlink::open()?,
        };
        Ok(Recovery::Undone {
            changes: state.restore()?,
        })
    }

    /// Who runs the line, whether it still lives or not; `None`: nobody wrote it down.
    pub fn owner(directory: &Path, line: &str) -> Result<Option<Owner>, HostStateError> {
        Ok(file::read(&path(directory, line))?.map(|record| record.owner))
    }

    /// What an owner that has ended without undoing it has changed here; nothing while one lives.
    pub fn left(directory: &Path, line: &str) -> Result<Vec<Change>, HostStateError> {
        let path = path(directory, line);
        let here = Place::here().map_err(|e| file::unreadable(&path, e))?;
        let record = file::read(&path)?.filter(|record| {
            record.place.differs_from(&here).is_none() && !record.owner.is_alive()
        });
        Ok(record.map(|record| record.changes).unwrap_or_default())
    }

    pub fn changes(&self) -> &[Change] {
        &self.record.changes
    }

    /// Gives an interface's setting the value `ours`, after it was written down. A value that it has
    /// already is not ours, and stays out of the journal. Returns whether it was changed.
    pub fn set(
        &mut self,
        ifindex: u32,
        setting: Setting,
        ours: i64,
    ) -> Result<bool, HostStateError> {
        let link = self.link(ifindex)?;
        let failed = |source| HostStateError::Change {
            setting: setting.clone(),
            interface: link.name.clone(),
            value: ours,
            source,
        };
        let before = setting.read(&mut self.netlink, &link).map_err(failed)?;
        if before == ours {
            return Ok(false);
        }
        self.record
            .changes
            .push(change(&link, setting.clone(), before, ours));
        self.save()?;
        if let Err(source) = setting.write(&mut self.netlink, &link, ours) {
            self.record.changes.pop();
            self.save()?;
            return Err(failed(source));
        }
        self.merge_last();
        self.save()?;
        Ok(true)
    }

    /// Writes down that a clsact filter of ours is about to be attached
    /// ([`guard::Attachment::Clsact`]); the caller attaches it after.
    pub fn expect_clsact(&mut self, ifindex: u32) -> Result<(), HostStateError> {
        let link = self.link(ifindex)?;
        let known = |c: &Change| c.ifindex == ifindex && c.setting == Setting::ClsactGuard;
        if !self.record.changes.iter().any(known) {
            let before = i64::from(guard::has_clsact(ifindex)?);
            self.record
                .changes
                .push(change(&link, Setting::ClsactGuard, before, 1));
            self.save()?;
        }
        Ok(())
    }

    /// Writes down that the interface is about to get our root qdisc in the place of the kernel's own; the caller puts it
    /// there after ([`super::gap_qdisc::put`]).
    pub fn expect_root_qdisc(&mut self, ifindex: u32) -> Result<(), HostStateError> {
        let link = self.link(ifindex)?;
        let ours = i64::from(super::gap_qdisc::HANDLE);
        self.record
            .changes
            .push(change(&link, Setting::RootQdisc, 0, ours));
        self.save()
    }

    /// Writes down that an interface of this name and address, which nobody else gives, is about to be made; the caller makes it
    /// after ([`super::shaper::Shaper::make`]).
    pub fn expect_interface(&mut self, name: &str, address: MacAddr) -> Result<(), HostStateError> {
        self.record.changes.push(Change {
            ifindex: NOT_YET,
            interface: name.into(),
            address: address.to_string(),
            setting: Setting::Interface,
            before: 0,
            ours: 1,
        });
        self.save()
    }

    /// Deletes an interface that was expected, if it is still there.
    pub fn delete_interface(
        &mut self,
        address: &str,
    ) -> Result<Vec<(Change, Outcome)>, HostStateError> {
        self.restore_those(|change| {
            change.setting == Setting::Interface && change.address == address
        })
    }

    /// The addresses of those that were expected, and not deleted since.
    pub fn interfaces(&self) -> Vec<String> {
        let changes = self.record.changes.iter();
        let made = changes.filter(|change| change.setting == Setting::Interface);
        made.map(|change| change.address.clone()).collect()
    }

    /// Undoes what was changed on one interface: it leaves the line.
    pub fn restore_interface(
        &mut self,
        ifindex: u32,
    ) -> Result<Vec<(Change, Outcome)>, HostStateError> {
        self.restore_those(|change| change.ifindex == ifindex)
    }

    fn restore_those(
        &mut self,
        are_they: impl Fn(&Change) -> bool,
    ) -> Result<Vec<(Change, Outcome)>, HostStateError> {
        let (leaving, staying) = std::mem::take(&mut self.record.changes)
            .into_iter()
            .partition(|change| are_they(change));
        let outcomes = self.undo(leaving);
        self.record.changes = staying;
        self.keep_failed(&outcomes);
        self.save()?;
        Ok(outcomes)
    }

    /// Undoes everything; the file goes unless something failed.
    pub fn restore(&mut self) -> Result<Vec<(Change, Outcome)>, HostStateError> {
        let all = std::mem::take(&mut self.record.changes);
        let outcomes = self.undo(all);
        self.keep_failed(&outcomes);
        if self.record.changes.is_empty() {
            file::remove(&self.path)?;
        } else {
            self.save()?;
        }
        Ok(outcomes)
    }

    fn keep_failed(&mut self, outcomes: &[(Change, Outcome)]) {
        let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. });
        // Outcomes are last to first, the journal is first to last.
        let failed = outcomes.iter().rev().filter(|(_, outcome)| failed(outcome));
        self.record
            .changes
            .extend(failed.map(|(change, _)| change.clone()));
    }

    fn undo(&mut self, changes: Vec<Change>) -> Vec<(Change, Outcome)> {
        let last_to_first = changes.into_iter().rev();
        last_to_first
            .map(|change| {
                let outcome = self.undo_one(&change);
                (
                    change,
                    outcome.unwrap_or_else(|reason| Outcome::Failed { reason }),
                )
            })
            .collect()
    }

    fn undo_one(&mut self, change: &Change) -> Result<Outcome, String> {
        let link = match change.setting {
            Setting::Interface => self.netlink.link_by_name(&change.interface),
            _ => self.netlink.link(change.ifindex),
        };
        let link = link.map_err(|error| error.to_string())?;
        let Some(link) = link.filter(|link| change.is_about(link)) else {
            return Ok(Outcome::InterfaceGone);
        };
        if change.setting == Setting::ClsactGuard {
            // The filter is known by its name: whatever else hangs there stays.
            guard::remove_clsact(change.ifindex, change.before == 0)
                .map_err(|error| error.to_string())?;
            return Ok(Outcome::Restored);
        }
        let now = change
            .setting
            .read(&mut self.netlink, &link)
            .map_err(|error| error.to_string())?;
        if now != change.ours {
            return Ok(Outcome::NotOurs { now });
        }
        change
            .setting
            .write(&mut self.netlink, &link, change.before)
            .map_err(|error| error.to_string())?;
        Ok(Outcome::Restored)
    }

    fn link(&mut self, ifindex: u32) -> Result<Link, HostStateError> {
        self.netlink
            .link(ifindex)?
            .ok_or(HostStateError::NoInterface { ifindex })
    }

    /// Two steps of one value that follow each other are one: the journal does not grow with
    /// every change of an MTU. Only once the second was made, because until then the value may be
    /// the first one's.
    fn merge_last(&mut self) {
        let changes = &mut self.record.changes;
        let last = changes.len() - 1;
        let (ifindex, setting) = (changes[last].ifindex, changes[last].setting.clone());
        let same = |change: &Change| change.ifindex == ifindex && change.setting == setting;
        let Some(earlier) = changes[..last].iter().rposition(same) else {
            return;
        };
        if changes[earlier].ours == changes[last].before {
            changes[earlier].ours = changes[last].ours;
            changes.pop();
            if changes[earlier].ours == changes[earlier].before {
                changes.remove(earlier);
            }
        }
    }

    fn save(&self) -> Result<(), HostStateError> {
        file::write(&self.path, &self.record).map_err(|source| HostStateError::Write {
            path: self.path.clone(),
            source,
        })
    }
}

fn change(link: &Link, setting: Setting, before: i64, ours: i64) -> Change {
    Change {
        ifindex: link.ifindex,
        interface: link.name.clone(),
        address: link.address.to_string(),
        setting,
        before,
        ours,
    }
}

impl Change {
    /// An index is given again once its interface has gone: the name or the address must be the
    /// same as well. Either may have been changed by hand.
    fn is_about(&self, link: &Link) -> bool {
        let has_address = self.address == link.address.to_string();
        if self.setting == Setting::Interface {
            return has_address;
        }
        self.interface == link.name || has_address
    }
}

fn discard(path: &Path, reason: &'static str) -> Result<Recovery, HostStateError> {
    file::remove(path)?;
    Ok(Recovery::Stale { reason })
}

#[cfg(test)]
mod tests;
