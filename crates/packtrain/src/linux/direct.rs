//! The direct path: frames from `pt0` to the link and back in the kernel, past the engine. The rules
//! stand in `bpf/direct.bpf.c`; here they are attached, and told what the engine has decided.
//!
//! The programs go with this value, and with the daemon however that ends: they are attached by
//! tcx (Linux 6.6).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use packtrain_proto::class::{Class, VALUES_MAX};
use packtrain_proto::stats::Traffic;
use packtrain_proto::wire::ethernet::MacAddr;

use super::bpf_map::{MapError, Published, mac_key, read_traffic, word_of};
use super::bpf_object::{self, embedded, map_handle, program_fd};
use super::intake;
use super::netlink::interface;
use super::tcx::{self, Hook};

mod classes;

/// As in bpf/direct.h.
const DESTINATIONS_MAX: usize = 256;
/// The first bytes of a source address that carries a mark in its place.
const MARKED: [u8; 2] = [0x03, 0x70];

#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    #[error("cannot load the BPF programs of the direct path: {source}{}", bpf_object::hint(.source))]
    Load { source: libbpf_rs::Error },
    #[error("cannot attach the direct path to {interface}: {source}")]
    Attach {
        interface: String,
        source: io::Error,
    },
    #[error(transparent)]
    Map(#[from] MapError),
}

/// Where frames for one peer's `pt0` go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The peer's `pt0`.
    pub address: MacAddr,
    /// The member link.
    pub ifindex: u32,
    pub outer_destination: MacAddr,
    pub outer_source: MacAddr,
    /// Payload bytes after the EtherType that all on the way take.
    pub payload_max: u16,
    /// The link's number: what goes there is counted by it.
    pub link: u8,
    /// Only frames of classes that say direct go there.
    pub only_classes: bool,
}

/// What the programs have to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Frames that went to the engine, ever.
    pub tickets: u64,
    /// The link whose queue stands, or by which small frames were many: all frames go to the engine
    /// since.
    pub closed_by: Option<u32>,
    /// Somebody has put another qdisc or filters before `pt0`, and all frames go there, and to the
    /// engine.
    pub foreign_tc: bool,
}

/// `struct direct_orders`.
#[derive(Clone, Copy, Debug)]
struct Orders {
    host_address: MacAddr,
    drained: u64,
    opening: u32,
    qdisc: u32,
    classes_first: u32,
    classes_count: u32,
    tells_marks: bool,
    urgent_count: u32,
}

/// The programs before one `pt0`, and on the links that its direct frames leave by.
#[derive(Debug)]
pub struct DirectPath {
    orders: Orders,
    orders_map: MapHandle,
    state: MapHandle,
    destinations: Published,
    watches: MapHandle,
    leaving: MapHandle,
    comparisons: MapHandle,
    /// Of the classes that there are.
    urgent_count: u32,
    watch_program: OwnedFd,
    /// By the index of the member link.
    watched: BTreeMap<u32, (MacAddr, tcx::Attached)>,
    _leave: tcx::Attached,
    #[cfg(test)]
    object: Object,
}

impl DirectPath {
    /// Before a `pt0`, without any destination: all frames still go to the engine. Before the
    /// interface goes up, so that none goes there unseen.
    /// `has_intake`: the qdisc of [`super::intake`] is before it.
    pub fn attach(
        ifindex: u32,
        host_address: MacAddr,
        has_intake: bool,
    ) -> Result<DirectPath, DirectError> {
        let failed = |source| DirectError::Load { source };
        let object: Object = bpf_object::load(embedded!("direct")).map_err(failed)?;
        let leave = program_fd(&object, "direct_leave").map_err(failed)?;
        let watch_program = program_fd(&object, "direct_watch").map_err(failed)?;
        let map = |name| map_handle(&object, name).map_err(failed);
        let path = DirectPath {
            orders: Orders {
                host_address,
                drained: 0,
                opening: 1,
                qdisc: if has_intake { intake::QDISC } else { 0 },
                classes_first: 0,
                classes_count: 0,
                tells_marks: false,
                urgent_count: 0,
            },
            urgent_count: 0,
            comparisons: map("comparisons")?,
            orders_map: map("orders")?,
            state: map("state")?,
            destinations: Published::open(&object, "destinations").map_err(failed)?,
            watches: map("watches")?,
            leaving: map("leaving")?,
            watch_program,
            watched: BTreeMap::new(),
            _leave: attach(&leave, ifindex)?,
            #[cfg(test)]
            object,
        };
        path.give_orders()?;
        Ok(path)
    }

    /// Where frames may go past the engine from now on. What closed the path is forgotten by it.
    /// Returns how many destinations were more than the table holds: their frames go by the engine.
    pub fn set_destinations(&mut self, wanted: &[Destination]) -> Result<usize, DirectError> {
        let taken = &wanted[..wanted.len().min(DESTINATIONS_MAX)];
        self.watch_links_of(taken)?;
        let entries = taken.iter().map(|d| (mac_key(d.address), entry_of(d)));
        self.destinations.set(entries.collect())?;
        // Closed when it is opened, it would stay so: nothing goes there that could close it again.
        self.orders.opening = self.orders.opening.wrapping_add(1).max(1);
        self.give_orders()?;
        Ok(wanted.len() - taken.len())
    }

    /// Which way the frames of these classes take.
    ///
    /// # Panics
    /// With more than [`VALUES_MAX`] values in them.
    pub fn set_classes(&mut self, classes: &[Class]) -> Result<(), DirectError> {
        let compiled = classes::compile(classes);
        assert!(compiled.comparisons.len() <= VALUES_MAX);
        // Into the half that is not in use, for frames go on meanwhile.
        let first = match self.orders.classes_first {
            0 => VALUES_MAX,
            _ => 0,
        };
        for (at, comparison) in compiled.comparisons.iter().enumerate() {
            let key = ((first + at) as u32).to_ne_bytes();
            let written = self.comparisons.update(&key, comparison, MapFlags::ANY);
            written.map_err(|source| MapError {
                map: "comparisons",
                source,
            })?;
        }
        let before = self.orders;
        self.orders.classes_first = first as u32;
        self.orders.classes_count = compiled.paths as u32;
        // Whoever waits in the qdisc's queues now, and is urgent from now on, must have left them before.
        self.orders.urgent_count = 0;
        self.orders.tells_marks = classes.iter().any(|class| class.matches.asks_for_marks());
        // What could not be given is not given with the next orders either.
        self.give_orders().inspect_err(|_| self.orders = before)?;
        self.urgent_count = compiled.urgent as u32;
        Ok(())
    }

    /// Urgent flows go past the queues of the qdisc that is ours, from now on. When nothing of what has become
    /// urgent waits there any more.
    pub fn let_urgent_pass(&mut self) -> Result<(), DirectError> {
        self.orders.urgent_count = match self.orders.qdisc {
            0 => 0,
            _ => self.urgent_count,
        };
        self.give_orders()
    }

    /// The link is no more: another may come by its index.
    pub fn forget_link(&mut self, ifindex: u32) {
        if self.watched.remove(&ifindex).is_some()
            && let Err(source) = self.watches.delete(&ifindex.to_ne_bytes())
        {
            tracing::debug!("watches: {source}");
        }
    }

    /// Everything that had a ticket up to this one was delivered, or dropped and counted.
    pub fn set_drained(&mut self, ticket: u64) -> Result<(), DirectError> {
        self.orders.drained = ticket;
        self.give_orders()
    }

    pub fn state(&self) -> Result<State, DirectError> {
        let value = lookup("state", &self.state, 0)?;
        let word = |at: usize| u32::from_ne_bytes(value[at..at + 4].try_into().expect("four"));
        Ok(State {
            tickets: u64::from_ne_bytes(value[..8].try_into().expect("eight bytes")),
            closed_by: (word(8) == self.orders.opening).then_some(word(12)),
            foreign_tc: word(16) != 0,
        })
    }

    /// Frames that went past the engine by the link of this number, ever.
    pub fn traffic(&self, link: u8) -> Result<Traffic, DirectError> {
        Ok(read_traffic("leaving", &self.leaving, link.into())?)
    }

    /// Frames that went to a destination, a GSO frame as its segments; wraps, and begins at 0 whenever it is changed.
    pub fn segments(&self, address: MacAddr) -> Result<u32, DirectError> {
        const SEGMENTS_AT: usize = 28;
        let value = self.destinations.current(&mac_key(address))?;
        Ok(value.map_or(0, |value| word_of(&value, SEGMENTS_AT)))
    }

    fn give_orders(&self) -> Result<(), DirectError> {
        let mut value = [0; 40];
        value[..8].copy_from_slice(&mac_key(self.orders.host_address));
        value[8..16].copy_from_slice(&self.orders.drained.to_ne_bytes());
        value[16..20].copy_from_slice(&self.orders.opening.to_ne_bytes());
        value[20..24].copy_from_slice(&self.orders.qdisc.to_ne_bytes());
        value[24..28].copy_from_slice(&self.orders.classes_first.to_ne_bytes());
        value[28..32].copy_from_slice(&self.orders.classes_count.to_ne_bytes());
        value[32..36].copy_from_slice(&u32::from(self.orders.tells_marks).to_ne_bytes());
        value[36..40].copy_from_slice(&self.orders.urgent_count.to_ne_bytes());
        let written = self
            .orders_map
            .update(&0u32.to_ne_bytes(), &value, MapFlags::ANY);
        Ok(written.map_err(|source| MapError {
            map: "orders",
            source,
        })?)
    }

    /// The links that destinations leave by, each with the source address of its direct frames.
    fn watch_links_of(&mut self, destinations: &[Destination]) -> Result<(), DirectError> {
        let failed = |source| MapError {
            map: "watches",
            source,
        };
        let wanted: BTreeMap<u32, MacAddr> = destinations
            .iter()
            .map(|d| (d.ifindex, d.outer_source))
            .collect();
        // One without destinations stays: they often come back, and attaching takes milliseconds.
        if !wanted.is_empty() {
            let known: Vec<u32> = self.watched.keys().copied().collect();
            for ifindex in known.into_iter().filter(|i| !wanted.contains_key(i)) {
                self.watched.remove(&ifindex);
                let key = ifindex.to_ne_bytes();
                self.watches.delete(&key).map_err(failed)?;
            }
        }
        for (ifindex, source) in wanted {
            let known = self.watched.remove(&ifindex);
            let program = match known {
                Some((address, program)) if address == source => {
                    self.watched.insert(ifindex, (address, program));
                    continue;
                }
                Some((_, program)) => program,
                None => attach(&self.watch_program, ifindex)?,
            };
            let mut value = [0; 32];
            value[..8].copy_from_slice(&mac_key(source));
            let key = ifindex.to_ne_bytes();
            self.watches
                .update(&key, &value, MapFlags::ANY)
                .map_err(failed)?;
            self.watched.insert(ifindex, (source, program));
        }
        Ok(())
    }
}

fn attach(program: &OwnedFd, ifindex: u32) -> Result<tcx::Attached, DirectError> {
    tcx::attach(program.as_fd(), ifindex, Hook::Egress).map_err(|source| DirectError::Attach {
        interface: interface(ifindex),
        source,
    })
}

fn lookup(map: &'static str, handle: &MapHandle, index: u32) -> Result<Vec<u8>, MapError> {
    let value = handle.lookup(&index.to_ne_bytes(), MapFlags::ANY);
    let value = value.map_err(|source| MapError { map, source })?;
    Ok(value.expect("an array has all its entries"))
}

/// `struct direct_destination`.
fn entry_of(destination: &Destination) -> Vec<u8> {
    let mut value = Vec::with_capacity(32);
    value.extend_from_slice(&destination.outer_destination.0);
    value.extend_from_slice(&destination.outer_source.0);
    value.extend_from_slice(&destination.ifindex.to_ne_bytes());
    value.extend_from_slice(&u32::from(destination.payload_max).to_ne_bytes());
    value.extend_from_slice(&u32::from(destination.link).to_ne_bytes());
    value.extend_from_slice(&u32::from(destination.only_classes).to_ne_bytes());
    // Nothing was sent there yet.
    value.extend_from_slice(&0u32.to_ne_bytes());
    value
}

/// The mark in a frame that has one in the place of its source address, where the address is put again.
pub fn take_mark(frame: &mut [u8], host_address: MacAddr) -> u32 {
    let Some(source) = frame.get_mut(6..12) else {
        return 0;
    };
    let [a, b, mark @ ..]: [u8; 6] = (*source).try_into().expect("six bytes");
    if [a, b] != MARKED {
        return 0;
    }
    source.copy_from_slice(&host_address.0);
    u32::from_be_bytes(mark)
}

#[cfg(test)]
mod class_tests;
#[cfg(test)]
mod tests;
