//! The direct path: frames from `pt0` to the link and back in the kernel, past the engine. The rules
//! stand in `bpf/direct.bpf.c`; here they are attached, and told what the engine has decided.
//!
//! The programs go with this value, and with the daemon however that ends: they are attached by
//! tcx (Linux 6.6). But for the one below a queue of ours, which goes with its interface ([`super::shaper`]).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use packtrain_proto::class::{Class, KernelPath, VALUES_MAX};
use packtrain_proto::direct::kinds::DirectKind;
use packtrain_proto::direct::{Came, DIRECT_WAYS_MAX, OpenTo};
use packtrain_proto::stats::Traffic;
use packtrain_proto::wire::ethernet::MacAddr;

use super::bpf_map::{MapError, Published, mac_key, word_of};
use super::bpf_object::{self, embedded, map_handle, program_fd};
use super::intake;
use super::netlink::interface;
use super::tcx::{self, Hook};

mod arrived;
pub(super) mod classes;
mod keep;
mod tally;

use arrived::Arrived;
pub use keep::{KEPT_DESCRIPTORS, KeptEntry, KeptPath, entries_to_keep};
use tally::Places;
pub use tally::{SentTo, Tally};

/// As in bpf/direct.h.
const DESTINATIONS_MAX: usize = 256;
/// Bytes of `struct direct_watch`.
const WATCH_LEN: usize = 88;
/// … and where a link's rate stands in it, and when that was measured.
const WATCH_MEASURED_AT: usize = 16;
const WATCH_RATE_AT: usize = 56;
/// … and what [`Standing`] says.
const WATCH_ASKED_AT: usize = 64;
const WATCH_STOOD_AT: usize = 72;
const WATCH_STOOD_LEFT_AT: usize = 80;
/// … of `struct direct_way`, and of `struct direct_destination`.
const WAY_LEN: usize = 36;
const DESTINATION_LEN: usize = DIRECT_WAYS_MAX * WAY_LEN + 8;
/// In `flags` of `struct direct_way`.
const WAY_UNMARKED: u16 = 1;
const WAY_WATCHED: u16 = 2;
const WAY_STRIPED: u16 = 4;
/// The first bytes of a source address that carries a mark in its place.
const MARKED: [u8; 2] = [0x03, 0x70];

#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    #[error("cannot load the BPF programs of the direct path: {source}{}", bpf_object::hint(.source))]
    Load { source: libbpf_rs::Error },
    #[error(
        "this kernel does not describe its types ({}: CONFIG_DEBUG_INFO_BTF)",
        bpf_object::KERNEL_TYPES
    )]
    NoKernelTypes,
    #[error("on a kernel with PREEMPT_RT its programs could not count exactly")]
    Interrupted,
    #[error("cannot attach the direct path to {interface}: {source}")]
    Attach {
        interface: String,
        source: io::Error,
    },
    #[error(transparent)]
    Map(#[from] MapError),
}

/// Where frames for one peer's `pt0` go, by one of the links to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The peer's `pt0`.
    pub address: MacAddr,
    /// The member link.
    pub ifindex: u32,
    pub outer_destination: MacAddr,
    pub outer_source: MacAddr,
    /// By what the peer knows them.
    pub kind: DirectKind,
    /// In which they go, where that is the kind.
    pub vlan: Option<u16>,
    /// Payload bytes after the EtherType that all on the way take.
    pub payload_max: u16,
    /// The link's number.
    pub link: u8,
    /// It has a queue in which frames can be seen to stand.
    pub has_queue: bool,
    pub open_to: OpenTo,
    /// Flows that may be lost with a link are spread over it and others.
    pub stripes: bool,
}

/// What the programs have to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Frames that went to the engine, ever.
    pub tickets: u64,
    /// Somebody has put another qdisc or filters before `pt0`, and all frames go there, and to the
    /// engine.
    pub foreign_tc: bool,
    /// How often a flow went back to the engine; wraps.
    pub left: u32,
    pub small_frames: SmallFrames,
    /// Frames of which each took the link by which it was there first, ever.
    pub striped: u64,
}

/// Small frames that went past the engine, in the last window in which they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmallFrames {
    pub per_second: u32,
    /// How many windows there were; wraps.
    pub windows: u32,
}

/// What was seen of the queue of a link that direct frames leave by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// When a queue of ours before it was asked for last, nanoseconds of `CLOCK_MONOTONIC`; 0: never.
    pub asked_at: u64,
    /// So long something stood there, ever, and bytes that left it in that time.
    pub stood_ns: u64,
    pub stood_left: u64,
}

/// A queue of ours that direct frames wait in before a link, as the programs know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapedBy {
    /// The interface with it; `None`: what is in it goes on, and nothing more comes.
    pub enters_by: Option<u32>,
    /// The link.
    pub ifindex: u32,
}

/// `struct direct_orders`.
#[derive(Clone, Copy, Debug)]
struct Orders {
    host_address: MacAddr,
    drained: u64,
    opening: u32,
    /// Nothing closes it: there are peers that no engine reaches.
    held_open: bool,
    qdisc: u32,
    classes_first: u32,
    classes_count: u32,
    tells_marks: bool,
    urgent_count: u32,
    leaves_small: bool,
    destinations_change: u32,
    watches_flows: bool,
    shaped_by: Option<ShapedBy>,
    /// Bytes a millisecond.
    shapes_from: u32,
}

/// A link that direct frames leave by.
#[derive(Debug)]
struct Way {
    link: u8,
    /// Looks at the link's queue, where there is one.
    watch: Option<tcx::Attached>,
}

/// The programs before one `pt0`, and on the links that its direct frames leave by.
#[derive(Debug)]
pub struct DirectPath {
    orders: Orders,
    orders_map: MapHandle,
    state: MapHandle,
    closed: MapHandle,
    sending: MapHandle,
    shaping: MapHandle,
    arrived: Arrived,
    destinations: Published,
    watches: MapHandle,
    comparisons: MapHandle,
    places: Places,
    /// What places had counted before they were given to others, and by which links that went.
    counted_before: BTreeMap<u32, Traffic>,
    sent_before: BTreeMap<u8, Traffic>,
    /// Of the classes that there are.
    urgent_count: u32,
    watch_program: OwnedFd,
    carry_program: OwnedFd,
    /// By the index of the member link.
    ways: BTreeMap<u32, Way>,
    _leave: tcx::Attached,
    _arrive: tcx::Attached,
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
        if !bpf_object::has_kernel_types() {
            return Err(DirectError::NoKernelTypes);
        }
        if bpf_object::are_programs_interrupted() {
            return Err(DirectError::Interrupted);
        }
        let failed = |source| DirectError::Load { source };
        let object: Object = bpf_object::load(embedded!("direct")).map_err(failed)?;
        let leave = program_fd(&object, "direct_leave").map_err(failed)?;
        let arrive = program_fd(&object, "direct_arrive").map_err(failed)?;
        let watch_program = program_fd(&object, "direct_watch").map_err(failed)?;
        let carry_program = program_fd(&object, "direct_carry").map_err(failed)?;
        let map = |name| map_handle(&object, name).map_err(failed);
        let path = DirectPath {
            orders: Orders {
                host_address,
                drained: 0,
                opening: 1,
                held_open: false,
                qdisc: if has_intake { intake::QDISC } else { 0 },
                classes_first: 0,
                classes_count: 0,
                tells_marks: false,
                urgent_count: 0,
                leaves_small: false,
                destinations_change: 1,
                watches_flows: false,
                shaped_by: None,
                shapes_from: 0,
            },
            urgent_count: 0,
            comparisons: map("comparisons")?,
            places: Places::default(),
            counted_before: BTreeMap::new(),
            sent_before: BTreeMap::new(),
            orders_map: map(".data.orders")?,
            state: map(".data.state")?,
            closed: map("closed")?,
            sending: map("sending")?,
            shaping: map("shaping")?,
            arrived: Arrived::new(map("arrived_first")?, map("arrived")?, map("arrived_late")?),
            destinations: Published::open(&object, "destinations").map_err(failed)?,
            watches: map("watches")?,
            watch_program,
            carry_program,
            ways: BTreeMap::new(),
            _leave: attach(&leave, ifindex, Hook::Egress)?,
            _arrive: attach(&arrive, ifindex, Hook::Ingress)?,
            #[cfg(test)]
            object,
        };
        path.give_orders()?;
        Ok(path)
    }

    /// Where frames may go past the engine from now on, those of one peer beside each other. What closed links is
    /// forgotten by it. Returns where frames are counted for each, as [`Tally`] wants it. Of those that are more
    /// than the table holds they are not: all of them go by the engine.
    pub fn set_destinations(
        &mut self,
        wanted: &[Destination],
    ) -> Result<Vec<(SentTo, u32)>, DirectError> {
        let taken = those_that_fit(wanted);
        self.watch_links_of(taken)?;
        let sent_to: Vec<SentTo> = taken.iter().map(|d| (d.address, d.link)).collect();
        let places = self.places.of(&sent_to);
        let open: Vec<(&Destination, u32)> = taken
            .iter()
            .zip(places.iter().copied())
            .filter(|(destination, _)| destination.open_to != OpenTo::Nobody)
            .collect();
        let outcome = self.destinations.set(entries_of(&open).collect());
        // Also of what failed midway: what a processor remembers is of before.
        self.orders.destinations_change = following(self.orders.destinations_change);
        // Closed when it is opened, it would stay so: nothing goes there that could close it again.
        self.orders.opening = following(self.orders.opening);
        self.give_orders()?;
        outcome?;
        // By now nobody sends to those that had these places.
        for ((_, link), place) in self.places.take_taken_away() {
            let more = self.counted_at(place)?;
            add(self.counted_before.entry(place).or_default(), more);
            add(self.sent_before.entry(link).or_default(), more);
        }
        Ok(sent_to.into_iter().zip(places).collect())
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
        self.ways.remove(&ifindex);
    }

    /// Whether frames go past the engine whatever stands on the link, for it reaches some peer no more.
    pub fn hold_open(&mut self, held_open: bool) -> Result<(), DirectError> {
        if std::mem::replace(&mut self.orders.held_open, held_open) == held_open {
            return Ok(());
        }
        self.orders.opening = following(self.orders.opening);
        self.give_orders()
    }

    /// Whether many small frames close nothing, for the engine is not known to carry more of them.
    pub fn leave_small_frames(&mut self, leaves_small: bool) -> Result<(), DirectError> {
        if std::mem::replace(&mut self.orders.leaves_small, leaves_small) == leaves_small {
            return Ok(());
        }
        self.give_orders()
    }

    /// Whether flows that arrive are looked at for their order: peers send by several links.
    pub fn watch_flows(&mut self, watches_flows: bool) -> Result<(), DirectError> {
        if std::mem::replace(&mut self.orders.watches_flows, watches_flows) == watches_flows {
            return Ok(());
        }
        self.give_orders()
    }

    /// A link that drains at least so many bytes a millisecond may have a queue of ours before it ([`Standing::asked_at`]) where
    /// its own stands; 0: the path closes.
    pub fn let_ask_for_queues(&mut self, shapes_from: u32) -> Result<(), DirectError> {
        if std::mem::replace(&mut self.orders.shapes_from, shapes_from) == shapes_from {
            return Ok(());
        }
        self.give_orders()
    }

    /// By which queue frames go from now on.
    pub fn shape_by(&mut self, shaped_by: Option<ShapedBy>) -> Result<(), DirectError> {
        let before = std::mem::replace(&mut self.orders.shaped_by, shaped_by);
        // What could not be given is not given with the next orders either.
        self.give_orders()
            .inspect_err(|_| self.orders.shaped_by = before)
    }

    /// What carries on from below the interface that has such a queue.
    pub fn carry_program(&self) -> BorrowedFd<'_> {
        self.carry_program.as_fd()
    }

    /// Everything that had a ticket up to this one was delivered, or dropped and counted.
    pub fn set_drained(&mut self, ticket: u64) -> Result<(), DirectError> {
        self.orders.drained = ticket;
        self.give_orders()
    }

    pub fn state(&self) -> Result<State, DirectError> {
        let value = lookup("state", &self.state, 0)?;
        Ok(State {
            tickets: u64::from_ne_bytes(value[..8].try_into().expect("eight bytes")),
            foreign_tc: word_of(&value, 8) != 0,
            left: word_of(&value, 12),
            small_frames: SmallFrames {
                per_second: word_of(&value, 32),
                windows: word_of(&value, 36),
            },
            striped: u64::from_ne_bytes(value[40..48].try_into().expect("eight bytes")),
        })
    }

    /// The numbers of the links whose queue stands, or by which small frames were many: only what must goes there
    /// directly since.
    pub fn closed_links(&self) -> Result<Vec<u8>, DirectError> {
        let mut closed = Vec::new();
        for Way { link, .. } in self.ways.values() {
            let opening = lookup("closed", &self.closed, u32::from(*link))?;
            if word_of(&opening, 0) == self.orders.opening {
                closed.push(*link);
            }
        }
        Ok(closed)
    }

    /// Frames that went past the engine by the link of this number, ever.
    pub fn traffic(&self, link: u8) -> Result<Traffic, DirectError> {
        let mut sum = self.sent_before.get(&link).copied().unwrap_or_default();
        for place in self.places.of_link(link) {
            add(&mut sum, self.counted_at(place)?);
        }
        Ok(sum)
    }

    /// The numbers of those whose queues are looked at.
    pub fn watched_links(&self) -> impl Iterator<Item = u8> + '_ {
        let watched = self.ways.values().filter(|way| way.watch.is_some());
        watched.map(|way| way.link)
    }

    /// At which the queue of the link of this number was seen to give direct frames away, bit/s, and when: nanoseconds of
    /// `CLOCK_MONOTONIC`.
    pub fn rate(&self, link: u8) -> Result<Option<(u64, u64)>, DirectError> {
        let watch = lookup("watches", &self.watches, u32::from(link))?;
        let bytes_per_ms = u64::from(word_of(&watch, WATCH_RATE_AT));
        let measured_at = &watch[WATCH_MEASURED_AT..][..8];
        let measured_at = u64::from_ne_bytes(measured_at.try_into().expect("eight bytes"));
        Ok((bytes_per_ms > 0).then_some((bytes_per_ms * 8000, measured_at)))
    }

    /// What was seen of the queue of the link of this number.
    pub fn standing(&self, link: u8) -> Result<Standing, DirectError> {
        let watch = lookup("watches", &self.watches, u32::from(link))?;
        let number =
            |at: usize| u64::from_ne_bytes(watch[at..at + 8].try_into().expect("eight bytes"));
        Ok(Standing {
            asked_at: number(WATCH_ASKED_AT),
            stood_ns: number(WATCH_STOOD_AT),
            stood_left: number(WATCH_STOOD_LEFT_AT),
        })
    }

    /// Since the place was given to whom it counts for.
    fn counted_at(&self, place: u32) -> Result<Traffic, DirectError> {
        let (now, _) = tally::sent(&self.sending, place)?;
        let before = self.counted_before.get(&place).copied().unwrap_or_default();
        Ok(Traffic {
            frames: now.frames - before.frames,
            bytes: now.bytes - before.bytes,
        })
    }

    /// For the line, which asks between two frames.
    pub fn tally(&self) -> Result<Tally, DirectError> {
        let tally = Tally::of(&self.state, &self.sending, &self.shaping);
        tally.map_err(|source| DirectError::Load { source })
    }

    /// Frames that have gone there ever.
    pub fn sent_to(&self, to: SentTo) -> Result<u32, DirectError> {
        Ok(match self.places.get(to) {
            Some(place) => tally::sent(&self.sending, place)?.1,
            None => 0,
        })
    }

    /// What has come from there ever, by the link of this number.
    pub fn arrived(&self, from: SentTo) -> Result<Came, DirectError> {
        Ok(self.arrived.of(from, self.orders.watches_flows)?)
    }

    fn give_orders(&self) -> Result<(), DirectError> {
        let mut value = [0; 64];
        value[..8].copy_from_slice(&mac_key(self.orders.host_address));
        value[8..16].copy_from_slice(&self.orders.drained.to_ne_bytes());
        let opening = match self.orders.held_open {
            true => keep::HELD_OPEN,
            false => self.orders.opening,
        };
        value[16..20].copy_from_slice(&opening.to_ne_bytes());
        value[20..24].copy_from_slice(&self.orders.qdisc.to_ne_bytes());
        value[24..28].copy_from_slice(&self.orders.classes_first.to_ne_bytes());
        value[28..32].copy_from_slice(&self.orders.classes_count.to_ne_bytes());
        value[32..36].copy_from_slice(&u32::from(self.orders.tells_marks).to_ne_bytes());
        value[36..40].copy_from_slice(&self.orders.urgent_count.to_ne_bytes());
        value[40..44].copy_from_slice(&u32::from(self.orders.leaves_small).to_ne_bytes());
        value[44..48].copy_from_slice(&self.orders.destinations_change.to_ne_bytes());
        value[48..52].copy_from_slice(&u32::from(self.orders.watches_flows).to_ne_bytes());
        if let Some(shaped_by) = self.orders.shaped_by {
            value[52..56].copy_from_slice(&shaped_by.enters_by.unwrap_or(0).to_ne_bytes());
            value[56..60].copy_from_slice(&shaped_by.ifindex.to_ne_bytes());
        }
        value[60..64].copy_from_slice(&self.orders.shapes_from.to_ne_bytes());
        let written = self
            .orders_map
            .update(&0u32.to_ne_bytes(), &value, MapFlags::ANY);
        Ok(written.map_err(|source| MapError {
            map: "orders",
            source,
        })?)
    }

    /// The links that destinations leave by.
    fn watch_links_of(&mut self, destinations: &[Destination]) -> Result<(), DirectError> {
        let links = destinations
            .iter()
            .map(|to| (to.ifindex, (to.link, to.has_queue)));
        let wanted: BTreeMap<u32, (u8, bool)> = links.collect();
        // One that is watched stays: destinations often come back, and attaching takes milliseconds.
        let is_kept = |way: &Way| wanted.is_empty() || way.watch.is_some();
        self.ways
            .retain(|ifindex, way| wanted.contains_key(ifindex) || is_kept(way));
        for (ifindex, (link, has_queue)) in wanted {
            self.watch_link(ifindex, link, has_queue)?;
        }
        Ok(())
    }

    /// Before anything goes directly by this link: then, when another one has died, whoever holds the kernel's lock for
    /// interfaces would keep all frames waiting.
    pub fn watch_link(
        &mut self,
        ifindex: u32,
        link: u8,
        has_queue: bool,
    ) -> Result<(), DirectError> {
        let known = self.ways.remove(&ifindex);
        let is_same = known.as_ref().is_some_and(|known| known.link == link);
        let watch = match known.and_then(|known| known.watch) {
            // It would cost each frame something.
            _ if !has_queue => None,
            Some(watch) if is_same => Some(watch),
            watch => {
                // What stood there was another link's, or in another queue.
                self.forget_what_stood(link)?;
                match watch {
                    Some(watch) => Some(watch),
                    None => Some(attach(&self.watch_program, ifindex, Hook::Egress)?),
                }
            }
        };
        self.ways.insert(ifindex, Way { link, watch });
        Ok(())
    }

    fn forget_what_stood(&self, link: u8) -> Result<(), DirectError> {
        let link = u32::from(link).to_ne_bytes();
        let written = self.watches.update(&link, &[0; WATCH_LEN], MapFlags::ANY);
        Ok(written.map_err(|source| MapError {
            map: "watches",
            source,
        })?)
    }
}

fn add(sum: &mut Traffic, more: Traffic) {
    sum.frames += more.frames;
    sum.bytes += more.bytes;
}

/// Of those that are never 0.
fn following(number: u32) -> u32 {
    number.wrapping_add(1).max(1)
}

/// The first of them, and of no peer a part.
fn those_that_fit(wanted: &[Destination]) -> &[Destination] {
    let peers = wanted.chunk_by(|a, b| a.address == b.address);
    let len = peers.take(DESTINATIONS_MAX).map(<[Destination]>::len).sum();
    &wanted[..len]
}

fn attach(program: &OwnedFd, ifindex: u32, hook: Hook) -> Result<tcx::Attached, DirectError> {
    tcx::attach(program.as_fd(), ifindex, hook).map_err(|source| DirectError::Attach {
        interface: interface(ifindex),
        source,
    })
}

fn lookup(map: &'static str, handle: &MapHandle, index: u32) -> Result<Vec<u8>, MapError> {
    let value = handle.lookup(&index.to_ne_bytes(), MapFlags::ANY);
    let value = value.map_err(|source| MapError { map, source })?;
    Ok(value.expect("an array has all its entries"))
}

/// One for each peer, whose ways stand beside each other. Each way with its place.
fn entries_of(ways: &[(&Destination, u32)]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let peers = ways.chunk_by(|(a, _), (b, _)| a.address == b.address);
    peers.map(|ways| (mac_key(ways[0].0.address), entry_of(ways)))
}

/// `struct direct_destination`.
fn entry_of(ways: &[(&Destination, u32)]) -> Vec<u8> {
    let ways = &ways[..ways.len().min(DIRECT_WAYS_MAX)];
    // Beside one that shows what stands there, one that does not would always seem idle.
    let mut striped = ways.iter().filter(|(way, _)| way.stripes);
    let is_seen = striped.any(|(way, _)| way.has_queue);
    let is_striped = |way: &Destination| way.stripes && (way.has_queue || !is_seen);
    let mut value = Vec::with_capacity(DESTINATION_LEN);
    for (way, place) in ways {
        value.extend_from_slice(&way.outer_destination.0);
        value.extend_from_slice(&way.outer_source.0);
        let least = match way.open_to {
            OpenTo::All => KernelPath::Auto,
            OpenTo::LossOk => KernelPath::LossOk,
            OpenTo::Classes | OpenTo::Nobody => KernelPath::Direct,
        };
        let words = [
            way.ifindex,
            u32::from(way.payload_max),
            u32::from(way.link),
            u32::from(classes::number_of(least)),
            *place,
        ];
        value.extend(words.map(u32::to_ne_bytes).as_flattened());
        let unmarked = match way.kind {
            DirectKind::None => WAY_UNMARKED,
            DirectKind::Source | DirectKind::Vlan => 0,
        };
        let watched = if way.has_queue { WAY_WATCHED } else { 0 };
        let striped = if is_striped(way) { WAY_STRIPED } else { 0 };
        let halves = [unmarked | watched | striped, way.vlan.unwrap_or(0)];
        value.extend(halves.map(u16::to_ne_bytes).as_flattened());
    }
    let count = (value.len() / WAY_LEN) as u32;
    let stripes = match ways.iter().filter(|(way, _)| is_striped(way)).count() {
        0..2 => 0,
        several => several,
    };
    value.resize(DESTINATION_LEN - 8, 0);
    value.extend_from_slice(&count.to_ne_bytes());
    value.extend_from_slice(&(stripes as u32).to_ne_bytes());
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
mod arrive_tests;
#[cfg(test)]
mod class_tests;
#[cfg(test)]
mod close_tests;
#[cfg(test)]
mod leave_tests;
#[cfg(test)]
mod shape_tests;
#[cfg(test)]
mod tests;
