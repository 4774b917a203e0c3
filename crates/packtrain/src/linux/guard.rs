//! The guard of a member link: our frames are kept from the link's own stack, and the link's own
//! traffic is kept from us. The rules stand in `bpf/guard.bpf.c`.
//!
//! The ingress program is attached by tcx where the kernel has it (6.6): it goes when the daemon
//! goes, however that ends. Below, it is a clsact filter, which stays when the daemon is killed:
//! [`Attachment::best`] says which beforehand, and [`remove_clsact`] is the undo.
//!
//! What a guard does not keep apart: an ARP request for an address that the host has elsewhere than
//! on this link (on `lo`, say) is no longer answered through the link, because nothing tells such
//! an address from one of `pt0`'s.

mod reception;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{fmt, io};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use packtrain_proto::stats::Traffic;
use packtrain_proto::wire::ethernet::MacAddr;

use super::bpf_map::{MapError, Published, mac_key, read_traffic, sum_over_processors};
use super::bpf_object::{self, embedded, map_handle, program_fd};
use super::netlink::{Netlink, NetlinkError, interface};
use super::tc::{self, FilterPlace};
use super::tcx::{self, Hook};

pub use reception::{GivesTo, Reception};

/// Of each kind: a quarter of what the map of sources holds.
const MARKS_MAX: usize = 4096;
/// As in bpf/guard.h.
const UNMARKED_MAX: usize = 256;
/// In `struct guard_source`, above the address.
const SOURCE_UNMARKED: u64 = 1 << 63;
const SOURCE_TAGGED: u64 = 1 << 62;
/// Half of what the map of this name holds.
const LINK_ADDRESSES_MAX: usize = 1024;

/// The bit of a first byte that says that an address is locally administered.
const MAC_LOCAL_BIT: u8 = 0x02;

/// Where our filter stands among those of a clsact, "pt" in ASCII: a place that nobody takes
/// without asking for it.
const CLSACT_PRIORITY: u16 = 0x7074;
const CLSACT_HANDLE: u32 = 1;
const CLSACT_NAME: &str = "packtrain_guard";

/// Also by which a filter tells it from others.
pub(super) const INGRESS_PROGRAM: &str = "guard_ingress";
const SOCKET_PROGRAM: &str = "guard_socket";
const GIVEN_PROGRAM: &str = "guard_given";
const HANDLED_PROGRAM: &str = "guard_handled";

/// `TCX_DROP`; tcx has no "stolen", and counts no drop.
const TCX_DROP: u32 = 2;
/// `TC_ACT_STOLEN`: taken, not dropped, so that clsact counts no drop.
const TC_ACT_STOLEN: u32 = 4;

/// No interface ever has the largest index.
const NO_INTERFACE: u32 = i32::MAX as u32;

macro_rules! verdicts {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// Why a frame was, or was not, ours: `enum guard_verdict` of `bpf/guard.h`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Verdict { $($(#[$doc])* $variant,)* }

        impl Verdict {
            pub const ALL: &'static [Verdict] = &[$(Verdict::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(Verdict::$variant => $text,)* }
            }
        }
    };
}

verdicts! {
    /// Nothing of ours: for the link's own stack alone.
    Other = "other",
    Train = "train",
    /// From a peer's mark.
    Marked = "marked",
    /// To `pt0`'s address.
    Host = "host",
    HelloGroup = "hello_group",
    /// Who-has for an address that is not the link's own.
    ForeignArp = "foreign_arp",
    /// Broadcast or multicast: for the link's stack and for us.
    Group = "group",
    /// Anything, because `pt0` stands in a bridge.
    Promiscuous = "promiscuous",
    /// From a peer's direct mark: given to `pt0` in the kernel.
    Direct = "direct",
    /// Ours, but there was no memory or no room for it on the way to us.
    Lost = "lost",
}

/// Frames by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters([u64; Verdict::ALL.len()]);

impl Counters {
    pub fn get(&self, verdict: Verdict) -> u64 {
        self.0[verdict as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = (Verdict, u64)> + '_ {
        Verdict::ALL
            .iter()
            .map(|verdict| (*verdict, self.get(*verdict)))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardCounters {
    /// At the link's stack: all but [`Verdict::Other`] were withheld from it. [`Verdict::Lost`] counts
    /// frames that another verdict counts as well, but for direct ones.
    pub ingress: Counters,
    /// At our socket, which [`Verdict::Direct`] is not counted at: all others but [`Verdict::Other`] were let through.
    pub socket: Counters,
    /// What was given to `pt0` past the engine.
    pub direct: Traffic,
}

#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error("cannot load the BPF programs that guard a link: {source}{}", bpf_object::hint(.source))]
    Load { source: libbpf_rs::Error },
    #[error("cannot attach the guard to {link}: {source}")]
    Attach { link: String, source: io::Error },
    #[error(transparent)]
    Map(#[from] MapError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

fn not_loaded(source: libbpf_rs::Error) -> GuardError {
    GuardError::Load { source }
}

/// How the ingress program hangs on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// Goes with its owner.
    Tcx,
    /// Stays until somebody removes it.
    Clsact,
}

impl Attachment {
    /// The best that this kernel has.
    pub fn best() -> Result<Attachment, GuardError> {
        let object = load().map_err(not_loaded)?;
        let program = program_fd(&object, INGRESS_PROGRAM).map_err(not_loaded)?;
        // A kernel with tcx misses the interface, one without does not know what is asked for.
        let error = tcx::attach(program.as_fd(), NO_INTERFACE, Hook::Ingress).err();
        match error.and_then(|error| error.raw_os_error()) {
            Some(libc::ENODEV) => Ok(Attachment::Tcx),
            _ => Ok(Attachment::Clsact),
        }
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Attachment::Tcx => "tcx",
            Attachment::Clsact => "clsact",
        })
    }
}

/// The programs of one member link, and what they look up.
#[derive(Debug)]
pub struct Guard {
    ifindex: u32,
    /// `None`: attached by clsact.
    tcx_link: Option<tcx::Attached>,
    attachment: Attachment,
    gives_to: GivesTo,
    /// Asks the kernel who takes what comes in by the link.
    handled: OwnedFd,
    socket_filter: OwnedFd,
    given_filter: OwnedFd,
    /// Of the tag of wrapped frames: another guard of this link has another.
    wrapping: u16,
    settings: MapHandle,
    sources: Published,
    unmarked: Published,
    link_addresses: Published,
    ingress_counters: MapHandle,
    socket_counters: MapHandle,
    direct_traffic: MapHandle,
    tapped: MapHandle,
    host: Host,
    link_address: MacAddr,
    link_number: u8,
    takes_unmarked: bool,
    direct_vlan: Option<u16>,
    sources_changes: u32,
    /// [`bpf_object::are_programs_interrupted`].
    is_interrupted: bool,
    promiscuous: bool,
    #[cfg(test)]
    object: Object,
}

/// The `pt0` that a link is guarded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    pub ifindex: u32,
    pub address: MacAddr,
}

/// A link of a peer whose direct frames come from its own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmarkedSource {
    pub link: MacAddr,
    /// The `pt0` that they come from.
    pub pt0: MacAddr,
    /// They are in the VLAN ([`Guard::set_direct_vlan`]).
    pub is_tagged: bool,
}

impl Guard {
    /// Guards a link for a `pt0`.
    ///
    /// Attach first, then give [`Guard::filter_of`] to the packet socket, then bind it: a
    /// frame is then never ours and the stack's at once.
    pub fn attach(
        ifindex: u32,
        link_address: MacAddr,
        host: Host,
        attachment: Attachment,
    ) -> Result<Guard, GuardError> {
        let object = load().map_err(not_loaded)?;
        let ingress = program_fd(&object, INGRESS_PROGRAM).map_err(not_loaded)?;
        let socket_filter = program_fd(&object, SOCKET_PROGRAM).map_err(not_loaded)?;
        let given_filter = program_fd(&object, GIVEN_PROGRAM).map_err(not_loaded)?;
        let map = |name| map_handle(&object, name).map_err(not_loaded);
        let published = |name| Published::open(&object, name).map_err(not_loaded);
        let settings = map(".data.settings")?;
        let mut guard = Guard {
            ifindex,
            tcx_link: None,
            attachment,
            gives_to: GivesTo::One(Reception::Tap),
            handled: program_fd(&object, HANDLED_PROGRAM).map_err(not_loaded)?,
            socket_filter,
            given_filter,
            wrapping: reception::number_of(&settings).map_err(not_loaded)?,
            settings,
            sources: published("sources")?,
            unmarked: published("unmarked")?,
            link_addresses: published("link_addresses")?,
            ingress_counters: map("ingress_counters")?,
            socket_counters: map("socket_counters")?,
            direct_traffic: map("direct_traffic")?,
            tapped: map("tapped")?,
            host,
            link_address,
            link_number: 0,
            takes_unmarked: false,
            direct_vlan: None,
            sources_changes: 0,
            is_interrupted: bpf_object::are_programs_interrupted(),
            promiscuous: false,
            #[cfg(test)]
            object,
        };
        guard.write_settings()?;
        match attachment {
            Attachment::Tcx => {
                let failed = |source| GuardError::Attach {
                    link: interface(ifindex),
                    source,
                };
                let link = tcx::attach(ingress.as_fd(), ifindex, Hook::Ingress);
                guard.tcx_link = Some(link.map_err(failed)?);
            }
            Attachment::Clsact => attach_clsact(ingress.as_fd(), ifindex)?,
        }
        Ok(guard)
    }

    pub fn attachment(&self) -> Attachment {
        self.attachment
    }

    /// What keeps the program on the link for as long as somebody holds it; `None` where it stays by itself.
    pub fn descriptor_to_keep(&self) -> Option<BorrowedFd<'_>> {
        self.tcx_link.as_ref().map(AsFd::as_fd)
    }

    /// Outer source addresses of our peers: of marked frames, and of direct ones with the `pt0` that
    /// they come from. Returns how many were refused: group or universally administered
    /// addresses, which a peer has no business to name and which could take the link's own traffic
    /// away, and what is more than the table holds.
    pub fn set_sources(
        &mut self,
        marks: &[MacAddr],
        direct: &[(MacAddr, MacAddr)],
    ) -> Result<usize, GuardError> {
        const MARKED: MacAddr = MacAddr([0; 6]);
        let marked: BTreeMap<_, _> = marks.iter().map(|mark| (*mark, MARKED)).collect();
        let direct: BTreeMap<_, _> = direct.iter().copied().collect();
        let mut entries = BTreeMap::new();
        let mut refused = 0;
        for kind in [direct, marked] {
            let wanted = kind.len();
            let allowed = kind.into_iter().filter(|(mark, _)| may_mark(*mark));
            let keys = allowed.map(|(mark, pt0)| (mac_key(mark), mac_key(pt0)));
            let keys: Vec<_> = keys.take(MARKS_MAX).collect();
            refused += wanted - keys.len();
            entries.extend(keys);
        }
        let outcome = self.sources.set(entries);
        // Also of what failed midway: what is remembered of a source is of before.
        self.sources_changes = self.sources_changes.wrapping_add(1);
        self.write_settings()?;
        outcome?;
        Ok(refused)
    }

    /// Peers' links whose direct frames have no mark on this one: what is so from there to this link is given to
    /// `pt0`; without a tag, where the link has no addresses of its own.
    /// Returns how many were more than the table holds.
    pub fn set_unmarked(&mut self, links: &[UnmarkedSource]) -> Result<usize, GuardError> {
        let mut wanted: BTreeMap<MacAddr, u64> = BTreeMap::new();
        for source in links {
            let pt0 = mac_key(source.pt0).try_into().expect("eight bytes");
            let flag = match source.is_tagged {
                true => SOURCE_TAGGED,
                false => SOURCE_UNMARKED,
            };
            *wanted.entry(source.link).or_default() |= u64::from_ne_bytes(pt0) | flag;
        }
        let entries = wanted.iter().take(UNMARKED_MAX);
        let entries = entries.map(|(link, of)| (mac_key(*link), of.to_ne_bytes().to_vec()));
        self.unmarked.set(entries.collect())?;
        let takes_unmarked = !wanted.is_empty();
        if takes_unmarked != self.takes_unmarked {
            self.takes_unmarked = takes_unmarked;
            self.write_settings()?;
        }
        Ok(wanted.len().saturating_sub(UNMARKED_MAX))
    }

    /// The VLAN in which direct frames may come, and what is said of them.
    pub fn set_direct_vlan(&mut self, vlan: Option<u16>) -> Result<(), GuardError> {
        self.direct_vlan = vlan;
        self.write_settings()
    }

    /// What direct frames that have come by it are counted by ([`super::direct::DirectPath::arrived`]).
    pub fn set_link_number(&mut self, number: u8) -> Result<(), GuardError> {
        self.link_number = number;
        self.write_settings()
    }

    /// The link's own IPv4 addresses, for which it goes on answering ARP. Returns how many were
    /// more than the table holds.
    pub fn set_link_addresses(&mut self, addresses: &[Ipv4Addr]) -> Result<usize, GuardError> {
        let wanted: BTreeSet<_> = addresses.iter().collect();
        let keys = wanted.iter().take(LINK_ADDRESSES_MAX);
        self.link_addresses
            .set_keys(keys.map(|address| address.octets().to_vec()))?;
        Ok(wanted.len().saturating_sub(LINK_ADDRESSES_MAX))
    }

    /// Whether our socket takes every frame of the link: `pt0` stands in a bridge.
    pub fn set_promiscuous(&mut self, promiscuous: bool) -> Result<(), GuardError> {
        self.promiscuous = promiscuous;
        self.write_settings()
    }

    /// `pt0` was given another address.
    pub fn set_host_address(&mut self, address: MacAddr) -> Result<(), GuardError> {
        self.host.address = address;
        self.write_settings()
    }

    /// The link was given another address.
    pub fn set_link_address(&mut self, address: MacAddr) -> Result<(), GuardError> {
        if self.link_address == address {
            return Ok(());
        }
        self.link_address = address;
        self.write_settings()
    }

    pub fn counters(&self) -> Result<GuardCounters, GuardError> {
        let mut counters = GuardCounters {
            ingress: read_counters("ingress_counters", &self.ingress_counters)?,
            socket: read_counters("socket_counters", &self.socket_counters)?,
            direct: read_traffic("direct_traffic", &self.direct_traffic, 0)?,
        };
        // The program counts these once, with their bytes.
        counters.ingress.0[Verdict::Direct as usize] = counters.direct.frames;
        Ok(counters)
    }

    /// `struct guard_settings`.
    fn write_settings(&self) -> Result<(), GuardError> {
        let action = match self.attachment {
            Attachment::Tcx => TCX_DROP,
            Attachment::Clsact => TC_ACT_STOLEN,
        };
        let mut value = [0; 56];
        value[0..8].copy_from_slice(&mac_key(self.host.address));
        value[8..12].copy_from_slice(&u32::from(self.promiscuous).to_ne_bytes());
        value[12..16].copy_from_slice(&action.to_ne_bytes());
        value[16..24].copy_from_slice(&mac_key(self.link_address));
        value[24..28].copy_from_slice(&self.host.ifindex.to_ne_bytes());
        value[28..32].copy_from_slice(&u32::from(self.link_number).to_ne_bytes());
        value[32..36].copy_from_slice(&u32::from(self.takes_unmarked).to_ne_bytes());
        let vlan = u32::from(self.direct_vlan.unwrap_or(0));
        value[36..40].copy_from_slice(&vlan.to_ne_bytes());
        value[40..44].copy_from_slice(&self.sources_changes.to_ne_bytes());
        let is_given = self.gives_to.includes(Reception::ByType);
        let given = if is_given { self.wrapping } else { 0 };
        value[44..48].copy_from_slice(&u32::from(given).to_ne_bytes());
        value[48..52].copy_from_slice(&u32::from(self.is_interrupted).to_ne_bytes());
        let tap = self.gives_to.includes(Reception::Tap);
        value[52..56].copy_from_slice(&u32::from(tap).to_ne_bytes());
        let failed = |source| MapError {
            map: "settings",
            source,
        };
        let written = self
            .settings
            .update(&0u32.to_ne_bytes(), &value, MapFlags::ANY);
        Ok(written.map_err(failed)?)
    }
}

/// The guard of a link without its daemon: as it was told last, until this goes.
#[derive(Debug)]
pub struct KeptGuard(#[expect(dead_code, reason = "held")] tcx::Attached);

impl From<OwnedFd> for KeptGuard {
    fn from(descriptor: OwnedFd) -> KeptGuard {
        KeptGuard(tcx::Attached::from(descriptor))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.attachment == Attachment::Clsact {
            // Only the filter: whose the clsact is, the host's state file knows.
            if let Err(error) = remove_clsact(self.ifindex, false) {
                tracing::warn!("{error}");
            }
        }
    }
}

/// Not a group's address, nor one that a manufacturer has given to a host.
fn may_mark(address: MacAddr) -> bool {
    !address.is_group() && address.0[0] & MAC_LOCAL_BIT != 0
}

fn load() -> libbpf_rs::Result<Object> {
    // It looks at the link's addresses for the sake of direct frames, which there are none of then.
    match bpf_object::has_kernel_types() {
        true => bpf_object::load(embedded!("guard")),
        false => bpf_object::load(embedded!("guard_without_types")),
    }
}

fn read_counters(name: &'static str, map: &MapHandle) -> Result<Counters, MapError> {
    let mut counters = Counters::default();
    for (index, counter) in counters.0.iter_mut().enumerate() {
        let [sum] = sum_over_processors(name, map, index as u32)?;
        *counter = sum;
    }
    Ok(counters)
}

fn clsact_place(ifindex: u32) -> FilterPlace {
    FilterPlace {
        ifindex,
        parent: tc::CLSACT_INGRESS,
        priority: CLSACT_PRIORITY,
        handle: CLSACT_HANDLE,
    }
}

fn attach_clsact(program: BorrowedFd<'_>, ifindex: u32) -> Result<(), GuardError> {
    let mut netlink = Netlink::open()?;
    if !tc::has_clsact(&mut netlink, ifindex)? {
        tc::add_clsact(&mut netlink, ifindex)?;
    }
    // One that was left behind; the place is ours by its name.
    remove_clsact_filter(&mut netlink, ifindex)?;
    let place = clsact_place(ifindex);
    tc::add_bpf_filter(
        &mut netlink,
        place,
        program,
        CLSACT_NAME,
        tc::BPF_DIRECT_ACTION,
        0,
    )?;
    Ok(())
}

fn remove_clsact_filter(netlink: &mut Netlink, ifindex: u32) -> Result<(), NetlinkError> {
    let place = clsact_place(ifindex);
    if tc::bpf_filter_name(netlink, place)?.as_deref() == Some(CLSACT_NAME) {
        tc::delete_filter(netlink, place)?;
    }
    Ok(())
}

/// Undoes [`Attachment::Clsact`], also of a daemon that was killed: takes our filter away where it
/// stands, and with `and_qdisc` (the link had no clsact before) the clsact as well, unless somebody
/// else's filter is in it by now.
pub fn remove_clsact(ifindex: u32, and_qdisc: bool) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    if !tc::has_clsact(&mut netlink, ifindex)? {
        return Ok(());
    }
    remove_clsact_filter(&mut netlink, ifindex)?;
    if and_qdisc {
        tc::delete_clsact_if_empty(&mut netlink, ifindex)?;
    }
    Ok(())
}

/// Whether the link has a clsact already: what [`remove_clsact`] needs to know later.
pub fn has_clsact(ifindex: u32) -> Result<bool, NetlinkError> {
    tc::has_clsact(&mut Netlink::open()?, ifindex)
}

#[cfg(test)]
mod reception_moves_tests;
#[cfg(test)]
mod reception_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unmarked_tests;
