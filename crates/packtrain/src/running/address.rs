//! `pt0`'s MAC address: the same at each start, because plain hosts remember it in their ARP
//! tables and switches in theirs.

use packtrain_proto::wire::ethernet::MacAddr;

/// What an address is derived from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seed {
    /// The first link's address.
    Link(MacAddr),
    /// The first link is absent: the host's `/etc/machine-id` (machine-id(5)).
    Machine(String),
    /// There is neither.
    Random(u64),
}

/// Locally administered, unicast, and different for each name.
pub(super) fn derive(seed: &Seed, name: &str) -> MacAddr {
    let mut hash = Fnv1a::new();
    match seed {
        Seed::Link(address) => hash.add(&address.0),
        Seed::Machine(id) => hash.add(id.as_bytes()),
        Seed::Random(bits) => hash.add(&bits.to_be_bytes()),
    }
    hash.add(name.as_bytes());
    let bytes = hash.finish().to_be_bytes();
    let mut octets = [0; 6];
    octets.copy_from_slice(&bytes[..6]);
    octets[0] = (octets[0] & 0xfc) | 0x02;
    MacAddr(octets)
}

/// FNV-1a with a finisher (that of SplitMix64), because neighbouring addresses are to give
/// addresses that look unlike. Not the standard library's hash, which may change from one release
/// to the next.
struct Fnv1a(u64);

impl Fnv1a {
    fn new() -> Fnv1a {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(self) -> u64 {
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_same_at_each_start_of_each_release() {
        let seed = Seed::Link(MacAddr([2, 0, 0, 0, 0, 1]));
        // Written down, not computed: plain hosts' ARP tables outlive an upgrade.
        assert_eq!(derive(&seed, "pt0").to_string(), "46:d2:26:46:a7:41");
    }

    #[test]
    fn addresses_are_local_unicast_and_differ_by_link_and_name() {
        let mut seen = std::collections::BTreeSet::new();
        for last in 0..=255 {
            for name in ["pt0", "pt1"] {
                let address = derive(&Seed::Link(MacAddr([2, 0, 0, 0, 0, last])), name);
                assert_eq!(address.0[0] & 3, 2, "{address}");
                assert!(seen.insert(address), "{address}");
            }
        }
        assert!(seen.insert(derive(&Seed::Machine("0123".into()), "pt0")));
        assert!(seen.insert(derive(&Seed::Random(7), "pt0")));
    }
}
