//! Each frame of a capture, one a line.

use std::io::{self, Write};
use std::time::Duration;

use packtrain_proto::class::Facts;
use packtrain_proto::filter;
use packtrain_proto::wire::ethernet::Header;
use packtrain_proto::wire::packet::Packet;
use serde_json::json;

use super::judged::{Judged, seconds_since};
use super::kind::Protocol;
use crate::cli::filter::view::words;
use crate::cli::frame_words;
use crate::cli::output::{BAD, GOOD};
use crate::filter::document::verdict_of;

/// Longest description that keeps the columns in line.
const WHAT_WIDTH: usize = 42;

/// For a person.
#[derive(Debug, Default)]
pub struct Lines {
    first_at: Option<Duration>,
}

impl Lines {
    pub fn write(&mut self, judged: &Judged<'_>, out: &mut dyn Write) -> io::Result<()> {
        let first_at = self.first_at;
        let time = match judged.frame.at {
            Some(at) => format!("{:.6}", seconds_since(first_at.unwrap_or(at), at)),
            None => "-".into(),
        };
        self.first_at = first_at.or(judged.frame.at);
        let verdict = verdict_of(judged.reason);
        let style = if judged.reason.is_drop() { BAD } else { GOOD };
        writeln!(
            out,
            "{:>6}  {time:>12}  {:>5} B  {:<WHAT_WIDTH$}  {style}{verdict}{style:#}  {}",
            judged.frame.number,
            judged.frame.len_on_wire,
            what(judged.frame.bytes, judged.kind.protocol),
            words(judged.reason)
        )
    }
}

/// For programs.
pub fn write_json(judged: &Judged<'_>, out: &mut dyn Write) -> io::Result<()> {
    let frame = json!({
        "number": judged.frame.number,
        "time_s": judged.frame.at.map(|at| at.as_secs_f64()),
        "bytes": judged.frame.len_on_wire,
        "source": judged.header.map(|header| header.source),
        "destination": judged.header.map(|header| header.destination),
        "protocol": judged.kind.protocol.key(),
        "transport": judged.kind.transport.map(|transport| transport.key()),
        "verdict": verdict_of(judged.reason),
        "reason": judged.reason.as_str(),
    });
    writeln!(out, "{frame}")
}

/// The frame in a few words: what the verdict goes by, where that is no more than addresses.
pub fn what(bytes: &[u8], protocol: Protocol) -> String {
    let Some(header) = Header::parse(bytes) else {
        return "no Ethernet header".into();
    };
    let parsed = Packet::parse(bytes);
    let flow = Facts::of(bytes, &parsed, 0).flow;
    if flow.ip.is_some() {
        return frame_words::flow(&flow);
    }
    let name = match protocol {
        Protocol::Arp => return arp(bytes),
        // Of IEEE 802.3 with a link control that nobody here knows.
        Protocol::Other if flow.ether_type < 1536 => "802.3".into(),
        Protocol::Other => frame_words::flow(&flow),
        other => other.words().to_owned(),
    };
    format!("{name} > {}", header.destination)
}

fn arp(bytes: &[u8]) -> String {
    let arp = filter::Frame::read(bytes, false).and_then(|frame| frame.arp());
    match arp {
        None => "ARP, cut off or not of IPv4".into(),
        Some(arp) if arp.sender == arp.target => format!("ARP {} announces itself", arp.sender),
        Some(arp) if arp.is_request => format!("ARP {} asks for {}", arp.sender, arp.target),
        Some(arp) => format!("ARP {} answers {}", arp.sender, arp.target),
    }
}
