//! What there is in a capture, by the tables of the NIMA paper (section 3), and what a filter would make of it.

use std::collections::BTreeMap;

use packtrain_proto::filter::Reason;

use super::judged::{Cast, Judged};
use super::kind::{Protocol, Transport};
use crate::filter::document::Amount;

/// The largest of each size, bytes with checksum; what is larger is in one of its own.
pub const SIZES: [(&str, usize); 7] = [
    ("64", 64),
    ("65-127", 127),
    ("128-255", 255),
    ("256-511", 511),
    ("512-1023", 1023),
    ("1024-1518", 1518),
    ("1519-", usize::MAX),
];

/// The paper's Fig. 3, in its order.
pub const MIX: [(&str, &str); 8] = [
    ("unicast", "unicast to this host"),
    ("promiscuous", "unicast to others"),
    ("multicast", "multicast"),
    ("ipx", "IPX"),
    ("netbeui", "NetBEUI"),
    ("arp", "ARP"),
    ("broadcast", "broadcast"),
    ("misc", "misc."),
];

/// All of it in frames, but for `size_sum`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub frames: u64,
    pub protocols: BTreeMap<Protocol, u64>,
    pub transports: BTreeMap<(Protocol, Transport), u64>,
    pub broadcast: u64,
    pub multicast: u64,
    pub unicast: u64,
    /// By the index in [`SIZES`].
    pub sizes: [u64; SIZES.len()],
    /// Bytes with checksum.
    pub size_sum: u64,
    pub reasons: BTreeMap<Reason, Amount>,
    /// By the place of the rule that has decided.
    pub rules: BTreeMap<usize, Amount>,
    /// By the index in [`MIX`].
    pub mix: [u64; MIX.len()],
}

impl Summary {
    pub fn count(&mut self, judged: &Judged<'_>) {
        self.frames += 1;
        let kind = judged.kind;
        *self.protocols.entry(kind.protocol).or_default() += 1;
        if let Some(transport) = kind.transport {
            let both = (kind.protocol, transport);
            *self.transports.entry(both).or_default() += 1;
        }
        match judged.cast {
            Cast::Broadcast => self.broadcast += 1,
            Cast::Multicast => self.multicast += 1,
            Cast::Own | Cast::Foreign => self.unicast += 1,
            Cast::Unknown => {}
        }
        let size = judged.size();
        let fits = SIZES.iter().position(|(_, max)| size <= *max);
        self.sizes[fits.expect("the last takes all")] += 1;
        self.size_sum += size as u64;
        let by_rule = judged.rule.map(|rule| self.rules.entry(rule).or_default());
        let by_reason = self.reasons.entry(judged.reason).or_default();
        for counted in by_rule.into_iter().chain([by_reason]) {
            counted.frames += 1;
            counted.bytes += judged.frame.len_on_wire as u64;
        }
        self.mix[mix_index(judged)] += 1;
    }

    pub fn size_mean(&self) -> f64 {
        match self.frames {
            0 => 0.0,
            frames => self.size_sum as f64 / frames as f64,
        }
    }

    /// Of those that would pass, or would not.
    pub fn amount(&self, is_drop: bool) -> Amount {
        let of_verdict = self.reasons.iter().filter(|(r, _)| r.is_drop() == is_drop);
        of_verdict.fold(Amount::default(), |sum, (_, amount)| Amount {
            frames: sum.frames + amount.frames,
            bytes: sum.bytes + amount.bytes,
        })
    }
}

/// Every frame is one of these. What is known by its protocol first; then by whom it is for. To groups the paper has IP in mind:
/// what switches tell each other is miscellaneous.
fn mix_index(judged: &Judged<'_>) -> usize {
    match (judged.kind.protocol, judged.cast) {
        (Protocol::Ipx, _) => 3,
        (Protocol::NetBeui, _) => 4,
        (Protocol::Arp, _) => 5,
        (_, Cast::Own) => 0,
        (_, Cast::Foreign) => 1,
        (_, Cast::Broadcast) => 6,
        (Protocol::Ipv4 | Protocol::Ipv6, Cast::Multicast) => 2,
        (_, Cast::Multicast | Cast::Unknown) => 7,
    }
}
