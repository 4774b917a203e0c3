//! What a host has and wants: the kernel's own tables, as plain data.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeSet;

use super::frame::Endpoint;
use crate::class::prefix::Prefix;
use crate::wire::ethernet::MacAddr;

/// An interface, as its kernel has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its own address, and others that it takes.
    pub unicast: Vec<MacAddr>,
    /// Groups that were joined on it, by Ethernet address.
    pub groups: Vec<MacAddr>,
    pub is_promiscuous: bool,
    pub takes_all_groups: bool,
    /// Of a bridge, a macvlan or the like.
    pub has_handler: bool,
    pub has_vlans: bool,
    pub addresses: Vec<IpAddr>,
    /// IPv4 addresses whose Ethernet addresses are known there.
    pub neighbours: Vec<Ipv4Addr>,
    /// `arp_accept`, also of all interfaces together.
    pub learns_from_announcements: bool,
    /// It forwards, and has `proxy_arp`, `proxy_arp_pvlan` or proxied neighbours.
    pub answers_for_others: bool,
}

/// A packet socket that takes frames of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    AllTypes,
    Type(u16),
}

/// The host that an interface belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    pub interface: Interface,
    /// `pt0`, where the interface is a member link of it.
    pub line: Option<Interface>,
    /// IPv4 addresses that it answers for on any interface: those of its local routes.
    pub local: Vec<Prefix>,
    /// Of packet sockets, a line's own not counted.
    pub listeners: Vec<Listener>,
    /// Programs or rules at the interface's way in, a line's own not counted.
    pub has_ingress_programs: bool,
    /// `local` is of another state of the routes than the kernel's.
    pub is_changing: bool,
    /// Endpoints that a socket has. Of those bound to every address, each with every address of the interface.
    pub open: BTreeSet<Endpoint>,
    /// What comes for a port may be sent to another before a socket is looked for.
    pub redirects_ports: bool,
}

impl Host {
    /// The interface, and the line above it.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        core::iter::once(&self.interface).chain(&self.line)
    }

    pub(super) fn is_local(&self, address: Ipv4Addr) -> bool {
        let number = crate::class::prefix::number_of(address.into());
        let mut local = self.local.iter();
        local.any(|prefix| prefix.contains(crate::wire::packet::IpVersion::V4, number))
    }
}
