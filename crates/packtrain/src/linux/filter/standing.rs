//! A filter's program as it stands on an interface, whoever has put it there: found by what the kernel tells of it.
//!
//! So a filter that stays without its process is read, and taken away; and who samples needs nothing of the process.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Program};
use packtrain_proto::filter::{Policy, Reason};

use super::{
    COUNTERS_MAP, Counters, DRIVER_PROGRAM, Mode, SETTINGS_LEN, SETTINGS_MAP, SETTINGS_VERSION,
    TC_PROGRAM,
};
use crate::linux::bpf_map::{read_traffic, word_of};
use crate::linux::guard;
use crate::linux::tcx::{self, Hook};
use crate::linux::xdp::{self, Place};

#[derive(Debug, thiserror::Error)]
pub enum StandingError {
    #[error("cannot look at the programs of the interface: {0}")]
    Query(io::Error),
    #[error("cannot look into the filter's program: {0}")]
    Read(libbpf_rs::Error),
    #[error("its program is of another version of packtrain; packtrain filter off takes it away")]
    OtherVersion,
    #[error("cannot take the filter away: {0}")]
    Detach(io::Error),
}

/// A program that is on an interface now.
#[derive(Debug)]
pub struct Standing {
    pub ifindex: u32,
    pub mode: Mode,
    /// The kernel's number of it.
    pub program: u32,
    maps: Vec<u32>,
}

/// What it was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub policy: Policy,
    pub asks_ports: bool,
    pub dry_run: bool,
    pub has_rules: bool,
    /// It stays when its process ends.
    pub stays: bool,
    /// Whose it is, or was.
    pub process: u32,
    /// `CLOCK_MONOTONIC`; after that all but rules lets pass; `None`: for ever.
    pub lease_until_ns: Option<u64>,
}

/// The filter of an interface, if there is one. Somebody else's programs are none.
pub fn find(ifindex: u32) -> Result<Option<Standing>, StandingError> {
    let in_driver = xdp::placed_on(ifindex).map_err(StandingError::Query)?;
    let mut found = Vec::new();
    found.extend(in_driver.driver.map(|id| (id, Mode::Native)));
    found.extend(in_driver.generic.map(|id| (id, Mode::Generic)));
    let at_tc = match tcx::programs_on(ifindex, Hook::Ingress) {
        Ok(programs) => programs,
        // Before Linux 6.6 there are none.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Vec::new(),
        Err(error) => return Err(StandingError::Query(error)),
    };
    found.extend(at_tc.into_iter().map(|id| (id, Mode::Tc)));
    if found.is_empty() {
        return Ok(None);
    }
    let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
    for info in ProgInfoIter::with_query_opts(with_maps) {
        let place = found.iter().find(|(id, _)| *id == info.id);
        if let Some((_, mode)) = place
            && is_ours(&info, *mode)
        {
            return Ok(Some(Standing {
                ifindex,
                mode: *mode,
                program: info.id,
                maps: info.map_ids,
            }));
        }
    }
    Ok(None)
}

fn is_ours(info: &ProgramInfo, mode: Mode) -> bool {
    let name = match mode {
        Mode::Native | Mode::Generic => DRIVER_PROGRAM,
        Mode::Tc => TC_PROGRAM,
    };
    info.name == OsStr::new(name)
}

impl Standing {
    pub(super) fn map(&self, name: &str) -> Result<MapHandle, StandingError> {
        for id in &self.maps {
            // It may have gone with its filter by now.
            let map = MapHandle::from_map_id(*id).map_err(StandingError::Read)?;
            if map.name() == OsStr::new(name) {
                return Ok(map);
            }
        }
        Err(StandingError::OtherVersion)
    }

    pub fn told(&self) -> Result<Told, StandingError> {
        let map = self.map(SETTINGS_MAP)?;
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(StandingError::Read)?.unwrap_or_default();
        if value.len() != SETTINGS_LEN {
            return Err(StandingError::OtherVersion);
        }
        let word = |number: usize| word_of(&value, 8 + 4 * number);
        if word(11) != SETTINGS_VERSION {
            return Err(StandingError::OtherVersion);
        }
        let lease = u64::from_ne_bytes(value[..8].try_into().expect("eight bytes"));
        Ok(Told {
            policy: match word(0) {
                0 => Policy::None,
                1 => Policy::Nima,
                _ => Policy::Host,
            },
            asks_ports: word(1) != 0,
            dry_run: word(2) != 0,
            has_rules: word(6) != 0,
            stays: word(8) != 0,
            process: word(10),
            lease_until_ns: (lease != 0).then_some(lease),
        })
    }

    pub fn counters(&self) -> Result<Counters, StandingError> {
        let map = self.map(COUNTERS_MAP)?;
        let mut counters = Counters::default();
        for reason in Reason::ALL {
            let counted = read_traffic(COUNTERS_MAP, &map, *reason as u32);
            counters.0[*reason as usize] =
                counted.map_err(|error| StandingError::Read(error.source))?;
        }
        Ok(counters)
    }

    /// Whether it is to stay when its process ends.
    pub fn stays(&self) -> bool {
        self.told().map_or(true, |told| told.stays)
    }

    /// Whether it has stayed when its process ended; one of another version is nobody's who would know it.
    pub fn is_left(&self) -> bool {
        match self.told() {
            Ok(told) => {
                let is_own = told.process == std::process::id();
                told.stays && (is_own || !is_alive(told.process))
            }
            Err(_) => true,
        }
    }

    fn program_fd(&self) -> Result<OwnedFd, StandingError> {
        Program::fd_from_id(self.program).map_err(StandingError::Read)
    }

    /// Takes away one that stays. One that goes with its process is that process's own.
    pub fn take_away(&self) -> Result<(), StandingError> {
        let program = self.program_fd()?;
        let gone = match self.mode {
            Mode::Native => xdp::detach(program.as_raw_fd(), self.ifindex, Place::Driver),
            Mode::Generic => xdp::detach(program.as_raw_fd(), self.ifindex, Place::Generic),
            Mode::Tc => tcx::detach(program.as_raw_fd(), self.ifindex, Hook::Ingress),
        };
        gone.map_err(StandingError::Detach)
    }
}

/// Attaches a program that stays. In the driver it comes in the place of the one that has stayed, in one moment.
pub(super) fn attach(
    program: &OwnedFd,
    ifindex: u32,
    mode: Mode,
    former: Option<&Standing>,
) -> Result<io::Result<()>, StandingError> {
    let replaced = match former {
        Some(former) if former.mode == mode && mode != Mode::Tc => Some(former.program_fd()?),
        Some(former) => {
            former.take_away()?;
            None
        }
        None => None,
    };
    let in_place_of = replaced.as_ref().map(AsRawFd::as_raw_fd);
    let program = program.as_raw_fd();
    Ok(match mode {
        Mode::Native => xdp::attach_to_stay(program, ifindex, Place::Driver, in_place_of),
        Mode::Generic => xdp::attach_to_stay(program, ifindex, Place::Generic, in_place_of),
        Mode::Tc => tcx::attach_behind_to_stay(program, ifindex, guard::INGRESS_PROGRAM),
    })
}

/// Somebody has this number, and has not ended: who has, and was not waited for, is in the table of processes all the same.
pub(super) fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    // Behind its name, which stands in brackets and may have any in it (proc_pid_stat(5)).
    stat.is_ok_and(|stat| {
        let behind = stat.rsplit(')').next().unwrap_or_default();
        !behind.trim_start().starts_with(['Z', 'X'])
    })
}
