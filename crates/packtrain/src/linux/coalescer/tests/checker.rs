//! Whether a host that was given these frames has got what was sent to it: as many, each in its place, the same to the byte.
//!
//! What comes by a TAP is cut as the kernel would, and no more is known of it: neither what was put together nor by whom.

use super::kernel_cut::cut;
use super::vnet_header;

/// What was written to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub header: [u8; vnet_header::LEN],
    pub frame: Vec<u8>,
}

/// What is wrong, and with which frame of those that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub what: &'static str,
    pub at: usize,
}

/// Its frames on a wire.
pub fn on_a_wire(written: &[Written]) -> Result<Vec<Vec<u8>>, Wrong> {
    let mut frames = Vec::new();
    for one in written {
        let at = frames.len();
        let cut = cut(&one.header, &one.frame).map_err(|what| Wrong { what, at })?;
        frames.extend(cut);
    }
    Ok(frames)
}

/// Where fragmenting is forbidden, an IPv4 identification means nothing, and may be another (RFC 6864).
fn without_idle_id(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame[12..14] == [8, 0] && frame.len() >= 34 && frame[20..22] == [0x40, 0] {
        frame[18..20].fill(0);
        frame[24..26].fill(0);
    }
    frame
}

pub fn check(written: &[Written], sent: &[Vec<u8>]) -> Result<(), Wrong> {
    let got = on_a_wire(written)?;
    let [got, sent] = [&got[..], sent].map(|frames| -> Vec<Vec<u8>> {
        frames.iter().map(|frame| without_idle_id(frame)).collect()
    });
    for (at, (one, due)) in got.iter().zip(&sent).enumerate() {
        if one != due {
            let what = match sent.contains(one) {
                true => "order",
                false => difference(one, due),
            };
            return Err(Wrong { what, at });
        }
    }
    match got.len().cmp(&sent.len()) {
        std::cmp::Ordering::Less => Err(Wrong {
            what: "lost",
            at: got.len(),
        }),
        std::cmp::Ordering::Greater => Err(Wrong {
            what: "invented",
            at: sent.len(),
        }),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// Fields of a frame with UDP or TCP behind an IP header without options: their names, and what is in them.
fn fields(frame: &[u8]) -> Vec<(&'static str, &[u8])> {
    let v4 = frame[12..14] == [8, 0];
    let ip = if v4 { 20 } else { 40 };
    let (packet, transport) = (&frame[14..], 14 + ip);
    let is_tcp = packet[if v4 { 9 } else { 6 }] == 6;
    let addresses = if v4 { 12..20 } else { 8..40 };
    let mut fields = vec![
        ("flow", &frame[..14]),
        ("flow", &packet[addresses]),
        ("flow", &frame[transport..transport + 4]),
    ];
    match v4 {
        true => fields.extend([
            ("boundary", &packet[2..4]),
            ("traffic class", &packet[..2]),
            ("identification", &packet[4..6]),
            ("IP header", &packet[6..12]),
        ]),
        false => fields.extend([
            ("boundary", &packet[4..6]),
            ("traffic class", &packet[..4]),
            ("IP header", &packet[6..8]),
        ]),
    }
    let (payload, of_transport) = match is_tcp {
        true => {
            let tcp = &frame[transport..];
            let fields = [
                ("sequence", &tcp[4..8]),
                ("TCP flags", &tcp[12..14]),
                ("TCP header", &tcp[8..12]),
                ("TCP header", &tcp[14..16]),
            ];
            (transport + 20, fields.to_vec())
        }
        false => (
            transport + 8,
            vec![("boundary", &frame[transport + 4..][..2])],
        ),
    };
    fields.extend(of_transport);
    fields.push(("payload", &frame[payload..]));
    fields
}

/// The first field that is another; with none, what is left.
fn difference(one: &[u8], due: &[u8]) -> &'static str {
    let least = match (due[12..14] == [8, 0], due[23], due[20]) {
        (true, 6, _) => 14 + 20 + 20,
        (true, ..) => 14 + 20 + 8,
        (false, _, 6) => 14 + 40 + 20,
        (false, ..) => 14 + 40 + 8,
    };
    if one[..14] != due[..14] {
        return "flow";
    }
    if one.len().min(due.len()) < least {
        return "boundary";
    }
    let [one, due] = [one, due].map(fields);
    let mut pairs = one.iter().zip(&due);
    let other = pairs.find(|(one, due)| one != due);
    other.map_or("checksum", |(_, (name, _))| *name)
}
