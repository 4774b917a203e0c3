//! Which frames wait in a rule's class: `bpf/pace_class.bpf.c`, hung before the HTB.

use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use packtrain_proto::class::Match;

use super::HANDLE;
use super::rules::Slot;
use crate::linux::bpf_object::{self, embedded};
use crate::linux::direct::classes::comparisons_of;
use crate::linux::netlink::{Netlink, NetlinkError};
use crate::linux::tc::{self, FilterPlace};

/// As in bpf/pace_class.h: of all rules of an interface.
pub const VALUES_MAX: usize = 512;
/// Classes of frames that no rule is about.
const DIRECT: u32 = 0;
const REST: u32 = 2;

const COMPARISONS_MAP: &str = "comparisons";
const ORDERS_MAP: &str = ".data.orders";
const FILTER_NAME: &str = "packtrain_pace";

#[derive(Debug, thiserror::Error)]
pub enum SorterError {
    #[error("cannot load the BPF program that finds a rule's frames (it needs Linux 5.17): {source}{}", bpf_object::hint(.source))]
    Load { source: libbpf_rs::Error },
    #[error("cannot tell the program that finds a rule's frames: {source}")]
    Map { source: libbpf_rs::Error },
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Where frames go that no rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// Past all classes: no gap follows them.
    Direct,
    /// Into the class of those that are followed by a gap.
    Spaced,
}

/// The program, which the kernel keeps as long as the HTB is there.
#[derive(Debug)]
pub struct Sorter {
    comparisons: MapHandle,
    orders: MapHandle,
    /// In use is the map's first half, or the other one.
    half: usize,
    program: OwnedFd,
}

impl Sorter {
    pub fn load() -> Result<Sorter, SorterError> {
        let object = bpf_object::load(embedded!("pace_class"));
        object
            .and_then(|object| Sorter::of(&object))
            .map_err(|source| SorterError::Load { source })
    }

    fn of(object: &Object) -> libbpf_rs::Result<Sorter> {
        Ok(Sorter {
            comparisons: bpf_object::map_handle(object, COMPARISONS_MAP)?,
            orders: bpf_object::map_handle(object, ORDERS_MAP)?,
            half: 0,
            program: bpf_object::program_fd(object, "pace_classify")?,
        })
    }

    /// The first of these that matches a frame says where it waits, from now on.
    ///
    /// # Panics
    /// With more than [`VALUES_MAX`] values in them.
    pub fn tell<'a>(
        &mut self,
        rules: impl Iterator<Item = (Slot, &'a Match)>,
        otherwise: Otherwise,
    ) -> Result<(), SorterError> {
        let told = |source| SorterError::Map { source };
        let comparisons: Vec<_> = rules
            .flat_map(|(slot, matches)| comparisons_of(matches, slot.0))
            .collect();
        assert!(comparisons.len() <= VALUES_MAX);
        // Into the half that is not in use, for frames go on meanwhile.
        let half = 1 - self.half;
        let first = half * VALUES_MAX;
        for (at, comparison) in comparisons.iter().enumerate() {
            let key = ((first + at) as u32).to_ne_bytes();
            self.comparisons
                .update(&key, comparison, MapFlags::ANY)
                .map_err(told)?;
        }
        let in_use = (first as u64) << 32 | comparisons.len() as u64;
        let otherwise = match otherwise {
            Otherwise::Direct => DIRECT,
            Otherwise::Spaced => REST,
        };
        let mut orders = [0; 16];
        orders[..8].copy_from_slice(&in_use.to_ne_bytes());
        orders[8..12].copy_from_slice(&otherwise.to_ne_bytes());
        self.orders
            .update(&[0; 4], &orders, MapFlags::ANY)
            .map_err(told)?;
        self.half = half;
        Ok(())
    }

    pub fn attach(&self, netlink: &mut Netlink, ifindex: u32) -> Result<(), SorterError> {
        Ok(tc::add_bpf_filter(
            netlink,
            place(ifindex),
            self.program.as_fd(),
            FILTER_NAME,
            tc::BPF_DIRECT_ACTION,
            HANDLE,
        )?)
    }

    pub fn detach(&self, netlink: &mut Netlink, ifindex: u32) -> Result<(), SorterError> {
        Ok(tc::delete_filter(netlink, place(ifindex))?)
    }
}

fn place(ifindex: u32) -> FilterPlace {
    FilterPlace {
        ifindex,
        parent: HANDLE,
        priority: 1,
        handle: 1,
    }
}

#[cfg(test)]
mod tests;
