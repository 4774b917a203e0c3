//! TCP paced by a congestion control of our own: `bpf/pace.bpf.c` registered, given to connections, and taken back.
//!
//! The congestion control and what gives it to new connections are links: they go when their process goes, however it ends.
//! Connections that have it then keep it until they close or somebody gives them another one, and go on by themselves: all that
//! decides is in the kernel.

mod cgroup;
pub mod probe;
mod rules;
mod settings;
mod shown;

use std::fs;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use packtrain_proto::pacing::path::Path;

use super::bpf_map::MapError;
use super::bpf_object::{self, KERNEL_TYPES, embedded, map_handle};

pub use cgroup::{Cgroup, CgroupError};
pub use rules::{RULES_MAX, Rows, RowsError, Rule, Shared};
pub use settings::{PORTS_MAX, PREFIXES_MAX, Ports, Settings, netns_cookie};
pub use shown::Shown;

const OPS_MAP: &str = "pace_cps";
const SETTINGS_MAP: &str = ".data.settings";
const COUNTERS_MAP: &str = "counters";
const PATHS_MAP: &str = "paths";

/// As `packtrain_cps`, and with a number where that is somebody else's already.
const NAME: &str = "packtrain_cps";
/// Its length with the byte that ends it (`TCP_CA_NAME_MAX`).
pub(super) const NAME_LEN: usize = 16;
/// In `struct tcp_congestion_ops` as `bpf/pace_kernel.bpf.h` has it: behind nine pointers.
const NAME_OFFSET: usize = 72;
/// So many network namespaces of a host can be paced at the same time.
const NAMES_MAX: u32 = 99;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    #[error(
        "this kernel does not describe its types ({KERNEL_TYPES} is missing): a congestion control of BPF needs one built \
         with CONFIG_DEBUG_INFO_BTF"
    )]
    NoKernelTypes,
    #[error("cannot load the congestion control (it needs Linux 6.1 with CUBIC built in): {source}{}", bpf_object::hint(.source))]
    Load { source: libbpf_rs::Error },
    #[error("cannot register the congestion control {name}: {source}")]
    Register {
        name: String,
        source: libbpf_rs::Error,
    },
    #[error(
        "{NAMES_MAX} congestion controls of packtrain are registered on this host already: see {AVAILABLE}"
    )]
    NoName,
    #[error("cannot attach to the cgroup {cgroup}: {source}")]
    Attach {
        cgroup: String,
        source: libbpf_rs::Error,
    },
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    #[error("cannot go through the connections of this network namespace: {0}")]
    Iterate(io::Error),
    #[error("cannot read this network namespace's cookie (Linux 5.14): {0}")]
    Cookie(io::Error),
    #[error(transparent)]
    Map(#[from] MapError),
}

/// What was counted, in the order of `enum pace_counter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub taken: u64,
    pub taken_late: u64,
    pub refused: u64,
    pub begun: u64,
    pub begun_known: u64,
    /// By phase: free, spacing, clusters.
    pub cut: [u64; 3],
    pub lost: [u64; 3],
    pub ended_at_path: u64,
    pub ended_by_delay: u64,
    /// Slow starts that went on with a remembered window, and those of them for which that was too much.
    pub jumped: u64,
    pub retreated: u64,
    /// Connections that had it and have another congestion control now: their applications have chosen one.
    pub left: u64,
}

const COUNTERS: u32 = 16;
const REFUSED: u32 = 2;
const LEFT: u32 = 15;

/// The congestion control at work.
#[derive(Debug)]
pub struct TcpPacer {
    object: Object,
    name: String,
    /// New connections come by it. Goes first: who is refused the name would not be paced.
    established: Option<Link>,
    _registered: Link,
    settings: MapHandle,
    counters: MapHandle,
    paths: MapHandle,
    rules: rules::Told,
}

/// A path, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedPath {
    pub netns: u64,
    /// IPv4 as ::ffff:0:0/96.
    pub address: std::net::Ipv6Addr,
    /// `None`: it has not been full.
    pub path: Option<Path>,
    pub rtt_min_us: u32,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub full_at_ns: u64,
    pub seen_at_ns: u64,
    pub connections: u64,
    pub losses: u64,
    pub sending: i32,
}

fn not_loaded(source: libbpf_rs::Error) -> TcpError {
    TcpError::Load { source }
}

fn map_error(map: &'static str) -> impl Fn(libbpf_rs::Error) -> TcpError {
    move |source| TcpError::Map(MapError { map, source })
}

impl TcpPacer {
    /// Registered, and told. Nobody has it yet.
    pub fn load(settings: &Settings) -> Result<TcpPacer, TcpError> {
        if !bpf_object::has_kernel_types() {
            return Err(TcpError::NoKernelTypes);
        }
        // Somebody else may take the name that is free now.
        for number in 1..=NAMES_MAX {
            let name = match number {
                1 => NAME.to_owned(),
                _ => format!("{NAME}{number}"),
            };
            if is_registered(&name) {
                continue;
            }
            let mut object = open_as(&name)?.load().map_err(not_loaded)?;
            let mut ops = object.maps_mut().find(|map| map.name() == OPS_MAP);
            let registered = ops.as_mut().expect("the ops are a map").attach_struct_ops();
            let registered = match registered {
                Ok(link) => link,
                Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => continue,
                Err(source) => return Err(TcpError::Register { name, source }),
            };
            let map = |name| map_handle(&object, name).map_err(not_loaded);
            let pacer = TcpPacer {
                settings: map(SETTINGS_MAP)?,
                counters: map(COUNTERS_MAP)?,
                paths: map(PATHS_MAP)?,
                rules: rules::Told::open(&object).map_err(not_loaded)?,
                object,
                name,
                established: None,
                _registered: registered,
            };
            pacer.tell(settings)?;
            return Ok(pacer);
        }
        Err(TcpError::NoName)
    }

    /// As the kernel shows it of a connection.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn tell(&self, settings: &Settings) -> Result<(), TcpError> {
        let value = settings.encode(&self.name);
        let told = self.settings.update(&[0; 4], &value, MapFlags::ANY);
        told.map_err(map_error(SETTINGS_MAP))
    }

    /// These and no others, until then (`CLOCK_MONOTONIC`) unless [`TcpPacer::extend_rules`] comes. Connections of this network
    /// namespace that are there already have them when this returns.
    pub fn set_rules(&mut self, rules: &[Rule], lease_until_ns: u64) -> Result<(), TcpError> {
        self.rules.tell(rules, lease_until_ns)?;
        self.settle()?;
        self.rules.forget_others(rules)
    }

    /// So many rules go on until then.
    pub fn extend_rules(&self, count: usize, lease_until_ns: u64) -> Result<(), TcpError> {
        self.rules.extend(count, lease_until_ns)
    }

    /// From here on new connections of this cgroup have it.
    pub fn attach(&mut self, cgroup: &Cgroup) -> Result<(), TcpError> {
        let program = self
            .object
            .progs_mut()
            .find(|program| program.name() == "pace_established")
            .expect("a program of this name");
        let link = program.attach_cgroup(cgroup.directory().as_raw_fd());
        self.established = Some(link.map_err(|source| TcpError::Attach {
            cgroup: cgroup.path().display().to_string(),
            source,
        })?);
        Ok(())
    }

    /// Of connections of this network namespace that are there already those that are meant have it, and no others.
    pub fn settle(&mut self) -> Result<(), TcpError> {
        self.for_each_connection("pace_settle").map(drop)
    }

    /// Those that have it have again what they had, and new ones come by as ever.
    pub fn give_back(&mut self) -> Result<(), TcpError> {
        self.established = None;
        self.for_each_connection("pace_give_back").map(drop)
    }

    pub fn shown(&mut self) -> Result<Vec<Shown>, TcpError> {
        let bytes = self.for_each_connection("pace_show")?;
        Ok(Shown::read_all(&bytes))
    }

    /// Of the calling thread's network namespace. What the program writes.
    fn for_each_connection(&mut self, program: &str) -> Result<Vec<u8>, TcpError> {
        let failed = |error: libbpf_rs::Error| TcpError::Iterate(io::Error::other(error));
        let program = self
            .object
            .progs_mut()
            .find(|it| it.name() == program)
            .expect("a program of this name");
        let link = program.attach().map_err(failed)?;
        let mut iterator = Iter::new(&link).map_err(failed)?;
        let mut written = Vec::new();
        iterator
            .read_to_end(&mut written)
            .map_err(TcpError::Iterate)?;
        Ok(written)
    }

    pub fn counters(&self) -> Result<Counters, TcpError> {
        let mut sums = [0u64; COUNTERS as usize];
        for (index, sum) in (0..COUNTERS).zip(&mut sums) {
            *sum = self.counter(index)?;
        }
        let [taken, taken_late, refused, begun, begun_known, ..] = sums;
        let [.., ended_at_path, ended_by_delay, jumped, retreated, left] = sums;
        Ok(Counters {
            taken,
            taken_late,
            refused,
            begun,
            begun_known,
            cut: [sums[5], sums[6], sums[7]],
            lost: [sums[8], sums[9], sums[10]],
            ended_at_path,
            ended_by_delay,
            jumped,
            retreated,
            left,
        })
    }

    /// Of all processors.
    fn counter(&self, index: u32) -> Result<u64, TcpError> {
        let values = self
            .counters
            .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
        let values = values.map_err(map_error(COUNTERS_MAP))?;
        Ok(values.iter().flatten().map(|value| u64_at(value, 0)).sum())
    }

    /// Grows when a connection may not have what it should: it has left, or the kernel would not have it.
    pub fn unsettled(&self) -> Result<u64, TcpError> {
        Ok(self.counter(REFUSED)? + self.counter(LEFT)?)
    }

    /// All that are remembered, in no order.
    pub fn paths(&self) -> Result<Vec<RememberedPath>, TcpError> {
        let mut all = Vec::new();
        for key in self.paths.keys() {
            let value = self.paths.lookup(&key, MapFlags::ANY);
            let value = value.map_err(|source| MapError {
                map: PATHS_MAP,
                source,
            })?;
            // It was forgotten meanwhile.
            let Some(value) = value else { continue };
            all.push(remembered(&key, &value));
        }
        Ok(all)
    }
}

/// `struct pace_path_key` and `struct pace_path`.
fn remembered(key: &[u8], value: &[u8]) -> RememberedPath {
    let address: [u8; 16] = key[8..24].try_into().expect("sixteen bytes");
    let rtt_min_us = u32_at(value, 80);
    let rate = u64_at(value, 0);
    RememberedPath {
        netns: u64_at(key, 0),
        address: address.into(),
        path: (rate > 0).then_some(Path {
            rate_bytes_per_s: rate,
            rtt_min_us,
        }),
        rtt_min_us,
        full_at_ns: u64_at(value, 8),
        seen_at_ns: u64_at(value, 16),
        connections: u64_at(value, 56),
        losses: u64_at(value, 64),
        sending: u32_at(value, 84) as i32,
    }
}

fn open_as(name: &str) -> Result<libbpf_rs::OpenObject, TcpError> {
    bpf_object::quietly();
    let mut object = ObjectBuilder::default()
        .open_memory(embedded!("pace"))
        .map_err(not_loaded)?;
    let mut ops = object.maps_mut().find(|map| map.name() == OPS_MAP);
    let value = ops.as_mut().and_then(|map| map.initial_value_mut());
    let value = value.expect("the ops have a value before they are loaded");
    value[NAME_OFFSET..NAME_OFFSET + NAME_LEN].copy_from_slice(&padded(name));
    Ok(object)
}

/// Names are short: the constant above, and a number.
fn padded(name: &str) -> [u8; NAME_LEN] {
    let mut padded = [0; NAME_LEN];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    padded
}

fn is_registered(name: &str) -> bool {
    let names = fs::read_to_string(AVAILABLE).unwrap_or_default();
    names.split_ascii_whitespace().any(|it| it == name)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests;
