//! Which headers a frame has for a DELTA, and which fields: `docs/wire-format.md`, "What is the same".

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_LEN: usize = 8;
const RTP_LEN: usize = 12;

/// Where they stand in a payload (what follows the EtherType).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    pub ip: Option<Ip>,
    pub transport: Option<Transport>,
    /// That of RTP, where it is taken for such.
    pub rtp: Option<usize>,
    /// All that follows is none.
    pub end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    pub at: usize,
    pub is_v6: bool,
    /// Behind it.
    pub end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    pub at: usize,
    pub is_tcp: bool,
    pub end: usize,
}

impl Headers {
    /// `ether_type`: that of the frame, before its payload. `rtp`: what follows UDP is RTP.
    pub fn of(ether_type: u16, payload: &[u8], rtp: bool) -> Headers {
        let (mut kind, mut at) = (ether_type, 0);
        for _ in 0..2 {
            if VLAN_TAGS.contains(&kind) && payload.len() >= at + 4 {
                kind = be16(payload, at + 2);
                at += 4;
            }
        }
        let mut headers = Headers {
            ip: None,
            transport: None,
            rtp: None,
            end: 0,
        };
        // Tags alone are none.
        let Some(ip) = ip(kind, payload, at) else {
            return headers;
        };
        headers.ip = Some(ip);
        headers.end = ip.end;
        headers.transport = transport(payload, ip);
        if let Some(transport) = headers.transport {
            headers.end = transport.end;
            if rtp && !transport.is_tcp && payload.len() >= transport.end + RTP_LEN {
                headers.rtp = Some(transport.end);
                headers.end += RTP_LEN;
            }
        }
        headers
    }
}

fn ip(kind: u16, payload: &[u8], at: usize) -> Option<Ip> {
    let first = *payload.get(at)?;
    let (is_v6, len) = match (kind, first >> 4) {
        (IPV4, 4) => (false, usize::from(first & 0x0f) * 4),
        (IPV6, 6) => (true, 40),
        _ => return None,
    };
    let end = at + len;
    (len >= 20 && end <= payload.len()).then_some(Ip { at, is_v6, end })
}

fn transport(payload: &[u8], ip: Ip) -> Option<Transport> {
    let protocol = payload[ip.at + if ip.is_v6 { 6 } else { 9 }];
    // More of it follows, or some of it is before.
    if !ip.is_v6 && be16(payload, ip.at + 6) & 0x3fff != 0 {
        return None;
    }
    let (is_tcp, len) = match protocol {
        UDP => (false, UDP_LEN),
        TCP => (true, usize::from(payload.get(ip.end + 12)? >> 4) * 4),
        _ => return None,
    };
    let end = ip.end + len;
    let is_there = end <= payload.len() && (!is_tcp || len >= 20);
    is_there.then_some(Transport {
        at: ip.end,
        is_tcp,
        end,
    })
}

/// What is expected in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// What the reference has.
    Same,
    Identification,
    /// As much more as the frame is longer.
    Length,
    TcpSequence,
    OneMore,
    RtpTime,
    HeaderChecksum,
    TransportChecksum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub at: usize,
    pub len: usize,
    /// Told by its distance from what is expected, and not as it stands.
    pub is_distance: bool,
    pub expected: Expected,
}

/// The document's list, of those that the headers have.
pub fn fields(headers: &Headers, payload: &[u8]) -> Vec<Field> {
    use Expected::*;
    let mut list = Vec::new();
    let mut add = |from: usize, rows: &[(usize, usize, bool, Expected)]| {
        for &(at, len, is_distance, expected) in rows {
            let at = from + at;
            list.push(Field {
                at,
                len,
                is_distance,
                expected,
            });
        }
    };
    const D: bool = true; // ᵈ
    const V: bool = false; // as it stands
    let Some(ip) = headers.ip else {
        return Vec::new();
    };
    if !ip.is_v6 {
        add(ip.at, &[(4, 2, D, Identification)]);
    }
    match headers.transport {
        Some(tcp) if tcp.is_tcp => {
            if has_times(&payload[tcp.at..tcp.end]) {
                add(tcp.at, &[(24, 4, D, Same), (28, 4, D, Same)]);
            }
            let rows = [
                (8, 4, D, Same),        // acknowledgement
                (4, 4, D, TcpSequence), //
                (14, 2, D, Same),       // window
                (13, 1, V, Same),       // flags
                (0, 2, D, Same),        // source port
                (2, 2, D, Same),        // destination port
                (16, 2, V, TransportChecksum),
                (18, 2, V, Same), // urgent pointer
            ];
            add(tcp.at, &rows);
        }
        Some(udp) => {
            if let Some(rtp) = headers.rtp {
                add(rtp, &[(4, 4, D, RtpTime), (2, 2, D, OneMore)]);
            }
            add(udp.at, &[(0, 2, D, Same), (2, 2, D, Same)]);
            if let Some(rtp) = headers.rtp {
                add(rtp, &[(8, 4, V, Same), (0, 2, V, Same)]);
            }
            add(udp.at, &[(6, 2, V, TransportChecksum), (4, 2, D, Length)]);
        }
        None => {}
    }
    let of_ip: &[_] = match ip.is_v6 {
        false => &[
            (12, 4, V, Same), // source
            (16, 4, V, Same), // destination
            (2, 2, D, Length),
            (8, 1, V, Same), // time to live
            (1, 1, V, Same), // type of service
            (6, 2, V, Same), // flags and fragment offset
            (10, 2, V, HeaderChecksum),
        ],
        true => &[
            (8, 16, V, Same),  // source
            (24, 16, V, Same), // destination
            (4, 2, D, Length),
            (7, 1, V, Same), // hop limit
            (0, 4, V, Same), // first four bytes
        ],
    };
    add(ip.at, of_ip);
    list
}

/// The times of RFC 7323 behind two bytes of filling.
fn has_times(tcp: &[u8]) -> bool {
    tcp.len() >= 32 && tcp[20..24] == [1, 1, 8, 10]
}

pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
