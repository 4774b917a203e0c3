//! Numbers that people know by a name.

/// EtherTypes (IEEE 802 Numbers, IANA).
pub const ETHER_TYPES: &[(&str, u32)] = &[
    ("ip", 0x0800),
    ("arp", 0x0806),
    ("ip6", 0x86dd),
    ("lldp", 0x88cc),
    ("eapol", 0x888e),
    ("ptp", 0x88f7),
    ("pppoe", 0x8864),
    ("mpls", 0x8847),
    ("ipx", 0x8137),
];

/// Protocols of IP (Protocol Numbers, IANA).
pub const PROTOCOLS: &[(&str, u32)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("ospf", 89),
    ("sctp", 132),
];

/// Code points (RFC 2474, 2597, 3246, 5865, 8622).
pub const CODE_POINTS: &[(&str, u32)] = &[
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

pub(super) fn number(words: &[(&str, u32)], word: &str) -> Option<u32> {
    let known = words.iter().find(|(name, _)| *name == word);
    known.map(|&(_, number)| number)
}

pub(super) fn name(words: &[(&'static str, u32)], number: u32) -> Option<&'static str> {
    let known = words.iter().find(|(_, known)| *known == number);
    known.map(|&(name, _)| name)
}
