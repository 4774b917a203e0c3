//! Why a frame passes, or does not.

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// `enum filter_reason` of `bpf/filter.h`, in the same order: the index of its counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $variant,)* }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// As programs read it.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    /// To an address of the interface.
    Ours = "ours",
    /// To everybody, and no ARP.
    Broadcast = "broadcast",
    /// ARP that concerns an address of this host.
    ArpOurs = "arp_ours",
    /// ARP from a neighbour that this host knows.
    ArpNeighbour = "arp_neighbour",
    /// To a group that was joined.
    Group = "group",
    /// To a group that every station listens to: LLDP, STP, EAPOL, pauses, PTP.
    LinkControl = "link_control",
    /// A message of packtrain's to a group.
    Train = "train",
    /// Too short to tell.
    Short = "short",
    /// The interface is promiscuous, or takes all groups.
    Promiscuous = "promiscuous",
    /// It belongs to a bridge, a macvlan, a bond or the like.
    Handler = "handler",
    /// It has a tag, and VLAN interfaces stand on the interface.
    Vlan = "vlan",
    /// A packet socket takes every type: a capture is running.
    Capture = "capture",
    /// A packet socket takes this type.
    Listener = "listener",
    /// Programs or rules of somebody else's at the interface's way in see it.
    Ingress = "ingress",
    /// This host answers in others' place, or learns from whoever announces itself.
    ArpSetting = "arp_setting",
    /// The host's addresses have just changed.
    Changing = "changing",
    /// To a closed port, but something may send it to another.
    Redirected = "redirected",
    /// The kernel has more of something than is looked through.
    Unseen = "unseen",
    /// Nobody has refreshed the filter.
    Unrefreshed = "unrefreshed",
    /// Only rules decide, and none did.
    NoPolicy = "no_policy",
    /// By a rule.
    Allowed = "allowed",
    /// What this host has itself sent to all or to a group, and gets back for its own sockets: at tc ingress and in generic mode that is seen.
    Looped = "looped",
    /// To somebody else.
    ForeignUnicast = "foreign_unicast",
    /// ARP that concerns others.
    ForeignArp = "foreign_arp",
    /// To a group that nobody here has joined.
    ForeignGroup = "foreign_group",
    /// IPv6's ARP, asking for others.
    ForeignSolicitation = "foreign_solicitation",
    /// To a TCP port that no socket has.
    ClosedTcp = "closed_tcp",
    /// To a UDP port that no socket has.
    ClosedUdp = "closed_udp",
    /// By a rule.
    Denied = "denied",
    /// More than a rule allows.
    Limited = "limited",
}

impl Reason {
    /// The frame goes no further; all before do.
    pub fn is_drop(self) -> bool {
        self >= Reason::ForeignUnicast
    }
}
