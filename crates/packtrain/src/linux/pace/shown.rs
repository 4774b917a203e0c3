//! `struct pace_shown` of bpf/pace.h: a connection that is paced.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use packtrain_proto::pacing::spacing::Phase;

use super::{u32_at, u64_at};

/// `sizeof(struct pace_shown)`.
const LEN: usize = 136;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Bytes of segments a second, as the kernel would pace; `None`: as fast as it goes.
    pub pacing_rate: Option<u64>,
    /// While it is spaced.
    pub interval_ns: Option<u64>,
    pub bytes_acked: u64,
    pub bytes_retrans: u64,
    /// Bytes a second, lately.
    pub delivery_rate: Option<u64>,
    pub srtt_us: u32,
    pub rtt_min_us: u32,
    pub cwnd: u32,
    /// `None`: no window was cut yet.
    pub ssthresh: Option<u32>,
    pub in_flight: u32,
    pub mss: u32,
    /// Segments taken for lost: free, spacing, clusters.
    pub lost_in: [u32; 3],
    pub spaced_rounds: u32,
    pub retransmitted: u32,
    pub phase: Phase,
    pub knows_path: bool,
    pub is_sending: bool,
    /// The rule's id.
    pub rule: Option<u32>,
    /// Bytes of segments a second that its rule gives it now; `None`: as many as go.
    pub ruled_rate: Option<u64>,
}

/// `TCP_INFINITE_SSTHRESH`.
const SSTHRESH_NONE: u32 = 0x7fff_ffff;

impl Shown {
    pub(super) fn read_all(bytes: &[u8]) -> Vec<Shown> {
        bytes.chunks_exact(LEN).map(Shown::read).collect()
    }

    fn read(bytes: &[u8]) -> Shown {
        let port = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32_at(bytes, at);
        let some = |value: u64| (value > 0).then_some(value);
        Shown {
            pacing_rate: Some(u64_at(bytes, 0)).filter(|rate| *rate < u64::MAX),
            interval_ns: some(u64_at(bytes, 8)),
            bytes_acked: u64_at(bytes, 16),
            bytes_retrans: u64_at(bytes, 24),
            delivery_rate: some(u64_at(bytes, 32)),
            local: SocketAddr::new(address(&bytes[40..56]), port(72)),
            remote: SocketAddr::new(address(&bytes[56..72]), port(74)),
            srtt_us: word(76),
            rtt_min_us: word(80),
            cwnd: word(84),
            ssthresh: Some(word(88)).filter(|it| *it < SSTHRESH_NONE),
            in_flight: word(92),
            mss: word(96),
            lost_in: [word(100), word(104), word(108)],
            spaced_rounds: word(112),
            retransmitted: word(116),
            phase: match bytes[120] {
                1 => Phase::Spacing,
                2 => Phase::Clusters,
                _ => Phase::Free,
            },
            knows_path: bytes[121] != 0,
            is_sending: bytes[122] != 0,
            rule: Some(word(124)).filter(|rule| *rule > 0),
            ruled_rate: some(u64_at(bytes, 128)),
        }
    }
}

fn address(bytes: &[u8]) -> IpAddr {
    let bytes: [u8; 16] = bytes.try_into().expect("sixteen bytes");
    Ipv6Addr::from(bytes).to_canonical()
}
