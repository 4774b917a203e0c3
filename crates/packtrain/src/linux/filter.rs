//! The receive filter of an interface: `bpf/filter.bpf.c` attached, and told what it cannot see itself.
//!
//! What a host has joined, opened or attached, the program reads in the kernel's own tables. Told are: what is
//! decided, the local IPv4 prefixes (with the state of the routes that they were read in, so that the program knows when
//! they are old), the line above the interface, and that somebody still watches.

mod rule_memory;
pub mod samples;
pub mod standing;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::{fmt, io};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ProgramInput};
use packtrain_proto::filter::rules::image::Image;
use packtrain_proto::filter::{Policy, Reason};
use packtrain_proto::stats::Traffic;

use super::bpf_link::Attached;
use super::bpf_map::{MapError, Published, read_traffic, word_of};
use super::bpf_object::{self, KERNEL_TYPES, embedded, map_handle, program_fd};
use super::netlink::{LocalPrefix, interface};
use super::sys::check;
use super::xdp::{self, Place};
use super::{guard, tcx};
use rule_memory::{Asked, RuleMemory};
use standing::{Standing, StandingError};

const DRIVER_PROGRAM: &str = "filter_xdp";
const TC_PROGRAM: &str = "filter_tc";
const LOOK_PROGRAM: &str = "filter_look";
const SETTINGS_MAP: &str = ".data.settings";
const LOOKED_MAP: &str = ".data.looked";
const COUNTERS_MAP: &str = "counters";

/// Half of what the maps of these names hold.
pub const LOCAL_ADDRESSES_MAX: usize = 4096;
pub const LOCAL_PREFIXES_MAX: usize = 2048;

/// `struct filter_settings`, and what of it are words of 32 bits.
const SETTINGS_LEN: usize = SETTINGS_WORDS.end + 8 * LOCAL_WORDS;
const SETTINGS_WORDS: std::ops::Range<usize> = 8..56;
const SETTINGS_VERSION: u32 = 1;
/// As in bpf/filter.h.
const LOCAL_WORDS: usize = 16;
const LOCAL_FACTOR: u32 = 0x9e37_79b1;
const LOCAL_SHIFT: u32 = 22;
const PREFIX_SHIFT: u32 = 27;
/// `struct filter_looked`.
const LOOKED_LEN: usize = 20;
/// As much as an Ethernet frame has to have for a program to be run on it.
const LOOKED_AT: [u8; 14] = [0; 14];

/// Where the filter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver.
    Native,
    /// Before the stack, behind the driver.
    Generic,
    /// At tc ingress, behind XDP and captures.
    Tc,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Native => "native",
            Mode::Generic => "generic",
            Mode::Tc => "tc",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error(
        "this kernel does not describe its types ({KERNEL_TYPES} is missing): a receive filter reads its tables, and \
         needs one built with CONFIG_DEBUG_INFO_BTF"
    )]
    NoKernelTypes,
    #[error("cannot load the BPF programs of a receive filter (they need Linux 6.2): {source}{}", bpf_object::hint(.source))]
    Load { source: libbpf_rs::Error },
    #[error("{link} has an XDP program already (id {}), which is not replaced", numbers(.programs))]
    Taken { link: String, programs: Vec<u32> },
    #[error("cannot attach the filter to {link} ({mode}): {source}")]
    Attach {
        link: String,
        mode: Mode,
        source: io::Error,
    },
    #[error(
        "on a kernel with PREEMPT_RT the programs of a processor interrupt each other, and rules need memory that they \
         share: a filter has none there"
    )]
    Interrupted,
    #[error("cannot ask the filter about the kernel's routes: {0}")]
    Look(libbpf_rs::Error),
    #[error("{link} has a filter that has stayed: {source}")]
    Stayed {
        link: String,
        source: standing::StandingError,
    },
    #[error(transparent)]
    Map(#[from] MapError),
}

fn numbers(programs: &[u32]) -> String {
    let numbers: Vec<String> = programs.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

/// What is decided, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub policy: Policy,
    /// What is sent to closed ports is dropped.
    pub asks_ports: bool,
    /// Nothing is dropped, and all is counted.
    pub dry_run: bool,
    /// The line that the interface is a member link of.
    pub line_ifindex: Option<u32>,
    /// Nanoseconds of `CLOCK_MONOTONIC`, after which everything passes; `None`: for ever.
    pub lease_until_ns: Option<u64>,
    pub stay: Stay,
}

/// Whether the program stays on the interface when its process ends, and its rules go on deciding after the lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stay {
    #[default]
    Goes,
    Stays,
    /// Once it is confirmed. Until then it is left by a process that is killed, but lets everything pass after its lease.
    StaysConfirmed,
}

/// What keeps the program where it is.
#[derive(Debug)]
enum Hold {
    Link(#[cfg_attr(not(test), expect(dead_code, reason = "held"))] Attached),
    /// The interface itself, until it is taken away. `is_kept`: also when this process ends.
    Interface {
        ifindex: u32,
        program: u32,
        is_kept: bool,
    },
}

/// The programs of one interface, and what they look up.
#[derive(Debug)]
pub struct Filter {
    object: Object,
    /// The program of tc ingress, where that is used, with the same maps.
    object_at_tc: Option<Object>,
    hold: Option<Hold>,
    settings: Settings,
    is_generic: bool,
    /// The state of the routes that the local addresses are of.
    fib_seq: u32,
    /// A bit for each 32nd part of all addresses in which there are some as a prefix.
    prefix_parts: u32,
    /// A bit of each local address.
    local_bits: [u64; LOCAL_WORDS],
    rules: RuleMemory,
    /// [`bpf_object::are_programs_interrupted`]: one would go on with what another has found in a frame.
    is_interrupted: bool,
    settings_map: MapHandle,
    looked: MapHandle,
    counters: MapHandle,
    local_addresses: Published,
    local_prefixes: Published,
}

fn not_loaded(source: libbpf_rs::Error) -> FilterError {
    FilterError::Load { source }
}

impl Filter {
    /// Loaded, and not attached yet: everything passes.
    pub fn load() -> Result<Filter, FilterError> {
        if !bpf_object::has_kernel_types() {
            return Err(FilterError::NoKernelTypes);
        }
        let object = bpf_object::load(embedded!("filter")).map_err(not_loaded)?;
        let map = |name| map_handle(&object, name).map_err(not_loaded);
        let published = |name| Published::open(&object, name).map_err(not_loaded);
        Ok(Filter {
            hold: None,
            settings: Settings::default(),
            is_generic: false,
            fib_seq: 0,
            prefix_parts: 0,
            local_bits: [0; LOCAL_WORDS],
            rules: RuleMemory::open(&object).map_err(not_loaded)?,
            is_interrupted: bpf_object::are_programs_interrupted(),
            settings_map: map(SETTINGS_MAP)?,
            looked: map(LOOKED_MAP)?,
            counters: map(COUNTERS_MAP)?,
            local_addresses: published("local_addresses")?,
            local_prefixes: published("local_prefixes")?,
            object,
            object_at_tc: None,
        })
    }

    /// What the kernel looks at is each time the dearest part of a filter's start: only what is used is loaded.
    fn load_at_tc(&mut self) -> Result<&mut Object, FilterError> {
        let loaded = match self.object_at_tc.take() {
            Some(loaded) => loaded,
            None => {
                bpf_object::load_beside(embedded!("filter_tc"), &self.object).map_err(not_loaded)?
            }
        };
        Ok(self.object_at_tc.insert(loaded))
    }

    /// From here on frames are judged.
    pub fn attach(&mut self, ifindex: u32, mode: Mode) -> Result<(), FilterError> {
        let program = match mode {
            Mode::Native | Mode::Generic => program_fd(&self.object, DRIVER_PROGRAM),
            Mode::Tc => program_fd(self.load_at_tc()?, TC_PROGRAM),
        };
        let program = program.map_err(not_loaded)?;
        let stayed = |source| FilterError::Stayed {
            link: interface(ifindex),
            source,
        };
        self.is_generic = mode == Mode::Generic;
        self.write_settings()?;
        let former = standing_without_process(ifindex).map_err(stayed)?;
        let attached = if self.settings.stay != Stay::Goes {
            let attached = standing::attach(&program, ifindex, mode, former.as_ref());
            attached.map_err(stayed)?.and_then(|()| {
                Ok(Hold::Interface {
                    ifindex,
                    program: number_of(&program)?,
                    is_kept: false,
                })
            })
        } else {
            if let Some(former) = former {
                former.take_away().map_err(stayed)?;
            }
            match mode {
                Mode::Native => xdp::attach(program.as_fd(), ifindex, Place::Driver),
                Mode::Generic => xdp::attach(program.as_fd(), ifindex, Place::Generic),
                // What is the line's is withheld first, and the guard goes on being the first.
                Mode::Tc => tcx::attach_behind(program.as_fd(), ifindex, guard::INGRESS_PROGRAM),
            }
            .map(Hold::Link)
        };
        match attached {
            Ok(hold) => {
                self.hold = Some(hold);
                Ok(())
            }
            Err(error) if mode != Mode::Tc && is_taken(&error) => Err(FilterError::Taken {
                link: interface(ifindex),
                programs: xdp::programs_on(ifindex).unwrap_or_default(),
            }),
            Err(source) => Err(FilterError::Attach {
                link: interface(ifindex),
                mode,
                source,
            }),
        }
    }

    /// Where it is to stay, it does from here on: until then it goes with this, as all others do.
    pub fn keep(&mut self) {
        if let Some(Hold::Interface { is_kept, .. }) = &mut self.hold {
            *is_kept = true;
        }
    }

    /// From here on nothing is judged, also where it was to stay. Somebody else's, which has taken its place, stays there.
    pub fn take_away(&mut self) -> Result<(), FilterError> {
        let Some(Hold::Interface {
            ifindex, program, ..
        }) = self.hold.take()
        else {
            return Ok(());
        };
        let gone = match standing::find(ifindex) {
            Ok(Some(found)) if found.program == program => found.take_away(),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        gone.map_err(|source| FilterError::Stayed {
            link: interface(ifindex),
            source,
        })
    }

    /// Whether its program is where it was attached. One that goes with its process is.
    pub fn stands(&self) -> Result<bool, FilterError> {
        let Some(Hold::Interface {
            ifindex, program, ..
        }) = self.hold
        else {
            return Ok(true);
        };
        let found = standing::find(ifindex).map_err(|source| FilterError::Stayed {
            link: interface(ifindex),
            source,
        })?;
        Ok(found.is_some_and(|found| found.program == program))
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    pub fn set(&mut self, settings: Settings) -> Result<(), FilterError> {
        self.settings = settings;
        self.write_settings()
    }

    /// Whether the interface takes several unicast addresses without taking all: it filters itself. `None`: not known.
    pub fn filters_unicast(&self, ifindex: u32) -> Result<Option<bool>, FilterError> {
        let failed = |source| MapError {
            map: LOOKED_MAP,
            source,
        };
        let mut value = [0; LOOKED_LEN];
        value[8..12].copy_from_slice(&ifindex.to_ne_bytes());
        let key = 0u32.to_ne_bytes();
        let written = self.looked.update(&key, &value, MapFlags::ANY);
        written.map_err(failed)?;
        let [_, _, _, is_known, filters] = self.look()?;
        Ok((is_known != 0).then_some(filters != 0))
    }

    /// The state that the kernel's IPv4 routes are in; `None` where it keeps none, and foreign ARP passes.
    pub fn fib_seq(&self) -> Result<Option<u32>, FilterError> {
        let [seq, is_known, ..] = self.look()?;
        Ok((is_known != 0).then_some(seq))
    }

    /// `struct filter_looked`.
    fn look(&self) -> Result<[u32; LOOKED_LEN / 4], FilterError> {
        let program = self.object.progs_mut().find(|p| p.name() == LOOK_PROGRAM);
        let input = ProgramInput {
            data_in: Some(&LOOKED_AT),
            ..ProgramInput::default()
        };
        program
            .expect("our own program")
            .test_run(input)
            .map_err(FilterError::Look)?;
        let failed = |source| MapError {
            map: LOOKED_MAP,
            source,
        };
        let value = self.looked.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(failed)?.unwrap_or_default();
        let value: [u8; LOOKED_LEN] = value.try_into().expect("as long as it is declared");
        Ok(std::array::from_fn(|at| word_of(&value, 4 * at)))
    }

    /// The prefixes that the host answers for, as the routes say that were in this state.
    ///
    /// Returns how many were more than the program can look up: as long as there are any, foreign ARP passes.
    pub fn set_local(
        &mut self,
        prefixes: &[LocalPrefix],
        fib_seq: u32,
    ) -> Result<usize, FilterError> {
        let (single, wide): (Vec<&LocalPrefix>, Vec<_>) =
            prefixes.iter().partition(|prefix| prefix.len == 32);
        let refused = single.len().saturating_sub(LOCAL_ADDRESSES_MAX)
            + wide.len().saturating_sub(LOCAL_PREFIXES_MAX);
        let known = single.iter().take(LOCAL_ADDRESSES_MAX);
        self.local_addresses
            .set_keys(known.map(|prefix| prefix.address.octets().to_vec()))?;
        let mut bits = [0; LOCAL_WORDS];
        for prefix in &single {
            let bit = local_bit(prefix);
            bits[bit / 64] |= 1 << (bit % 64);
        }
        let parts = wide
            .iter()
            .fold(0, |parts, prefix| parts | parts_of(prefix));
        let wide: BTreeMap<_, _> = wide
            .into_iter()
            .take(LOCAL_PREFIXES_MAX)
            .map(|prefix| (prefix_key(prefix), vec![1]))
            .collect();
        // The program looks for what comes before it is there, and for what goes until it is gone.
        self.prefix_parts |= parts;
        for (had, has) in self.local_bits.iter_mut().zip(bits) {
            *had |= has;
        }
        self.write_settings()?;
        self.prefix_parts = parts;
        self.local_bits = bits;
        self.local_prefixes.set(wide)?;
        if refused == 0 {
            self.fib_seq = fib_seq;
        } else {
            // Of a state that is not the kernel's, whichever that is.
            self.fib_seq = fib_seq.wrapping_sub(1);
        }
        self.write_settings()?;
        Ok(refused)
    }

    /// Rules that are asked before the policy; `None`: there are none. They change in one moment, or not at all, and what was
    /// counted of the former ones is forgotten. Their buckets are full.
    pub fn set_rules(&mut self, image: Option<&Image>) -> Result<(), FilterError> {
        match image {
            Some(image) => self.change_rules(image, &[]),
            None => self.ask(self.rules.none()),
        }
    }

    /// The same, where some limits stay: for each of the image's, the number that it has had among the former ones. Their
    /// buckets stay as they are, each source's too.
    pub fn change_rules(
        &mut self,
        image: &Image,
        stays: &[Option<usize>],
    ) -> Result<(), FilterError> {
        if self.is_interrupted {
            return Err(FilterError::Interrupted);
        }
        let next = self.rules.write(image, stays)?;
        self.ask(next)
    }

    /// As long as the program was not told, the former ones are asked, by it and by us.
    fn ask(&mut self, asked: Asked) -> Result<(), FilterError> {
        self.write_settings_with(&asked)?;
        self.rules.are_asked(asked);
        Ok(())
    }

    /// Which rules are asked, of all that there were: samples name them by this and their place.
    pub fn rules_image(&self) -> u32 {
        self.rules.asked().image
    }

    /// What each of the first so many rules has decided.
    pub fn rule_counters(&self, rules: usize) -> Result<Vec<Traffic>, FilterError> {
        Ok(self.rules.counters(rules)?)
    }

    /// What the rules before the last [`Filter::set_rules`] had decided.
    pub fn former_rule_counters(&self, rules: usize) -> Result<Vec<Traffic>, FilterError> {
        Ok(self.rules.former_counters(rules)?)
    }

    /// Frames and bytes by reason.
    pub fn counters(&self) -> Result<Counters, FilterError> {
        let mut counters = Counters::default();
        for reason in Reason::ALL {
            let index = *reason as usize;
            counters.0[index] = read_traffic(COUNTERS_MAP, &self.counters, index as u32)?;
        }
        Ok(counters)
    }

    fn write_settings(&self) -> Result<(), FilterError> {
        self.write_settings_with(self.rules.asked())
    }

    fn write_settings_with(&self, asked: &Asked) -> Result<(), FilterError> {
        let set = &self.settings;
        let policy: u32 = match set.policy {
            Policy::None => 0,
            Policy::Nima => 1,
            Policy::Host => 2,
        };
        let words = [
            policy,
            set.asks_ports.into(),
            set.dry_run.into(),
            set.line_ifindex.unwrap_or(0),
            self.fib_seq,
            self.prefix_parts,
            asked.is_asked.into(),
            asked.image,
            match set.stay {
                Stay::Goes => 0,
                Stay::Stays => 1,
                Stay::StaysConfirmed => 2,
            },
            self.is_generic.into(),
            std::process::id(),
            SETTINGS_VERSION,
        ];
        let mut value = [0; SETTINGS_LEN];
        value[..8].copy_from_slice(&set.lease_until_ns.unwrap_or(0).to_ne_bytes());
        for (place, word) in value[SETTINGS_WORDS].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        let bits = value[SETTINGS_WORDS.end..].chunks_exact_mut(8);
        for (place, word) in bits.zip(self.local_bits) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        let failed = |source| MapError {
            map: SETTINGS_MAP,
            source,
        };
        let key = 0u32.to_ne_bytes();
        let written = self.settings_map.update(&key, &value, MapFlags::ANY);
        Ok(written.map_err(failed)?)
    }
}

/// A filter that has stayed when its process ended.
fn standing_without_process(ifindex: u32) -> Result<Option<Standing>, StandingError> {
    Ok(standing::find(ifindex)?.filter(Standing::is_left))
}

impl Drop for Filter {
    fn drop(&mut self) {
        if matches!(self.hold, Some(Hold::Interface { is_kept: false, .. }))
            && let Err(error) = self.take_away()
        {
            tracing::error!("{error}");
        }
    }
}

/// The kernel's, of a program.
fn number_of(program: &OwnedFd) -> io::Result<u32> {
    // SAFETY: `bpf_prog_info` is plain integers, for which all zero is a value.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `len` bytes, which `info` has, and to no list: it has none.
    check(unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut len)
    })?;
    Ok(info.id)
}

/// Somebody has a program there.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// As the program has it of an address as it stands in a frame.
fn local_bit(prefix: &LocalPrefix) -> usize {
    let number = u32::from_ne_bytes(prefix.address.octets());
    (number.wrapping_mul(LOCAL_FACTOR) >> LOCAL_SHIFT) as usize
}

/// The bits of those parts of all addresses that a prefix has addresses in.
fn parts_of(prefix: &LocalPrefix) -> u32 {
    let first = u32::from(prefix.address) >> PREFIX_SHIFT;
    let parts = 1_u64 << (32 - PREFIX_SHIFT).saturating_sub(prefix.len.into());
    (((1_u64 << parts) - 1) as u32) << first
}

/// `struct filter_prefix`.
fn prefix_key(prefix: &LocalPrefix) -> Vec<u8> {
    let mut key = u32::from(prefix.len).to_ne_bytes().to_vec();
    key.extend_from_slice(&prefix.address.octets());
    key
}

/// Frames and bytes by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters([Traffic; Reason::ALL.len()]);

impl Counters {
    pub fn get(&self, reason: Reason) -> Traffic {
        self.0[reason as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = (Reason, Traffic)> + '_ {
        Reason::ALL
            .iter()
            .map(|reason| (*reason, self.get(*reason)))
    }
}

#[cfg(test)]
mod tests;
