//! A frame on one line.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use packtrain_proto::class::Facts;
use packtrain_proto::wire::ethernet::{Header, ether_type};
use packtrain_proto::wire::packet::{Ip, Packet, Transport, behind_tags, field};

use crate::capture::{Direction, Frame, Path};
use crate::cli::frame_words;

const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// `ahead_of_utc_s`: where the host is.
pub(super) fn line(frame: &Frame, ahead_of_utc_s: i64) -> String {
    let direction = match frame.direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    let path = match frame.path {
        Path::Direct => "direct",
        Path::Engine => "engine",
    };
    let mut text = time_of_day(frame.unix_nanos, ahead_of_utc_s);
    let _ = write!(text, "  {direction:<3}  {path:<6}  ");
    text += &what(&frame.bytes);
    let _ = write!(text, ", {} B", frame.len);
    text
}

/// As tcpdump writes it: to the microsecond.
fn time_of_day(unix_nanos: u64, ahead_of_utc_s: i64) -> String {
    let seconds = (unix_nanos / 1_000_000_000) as i64 + ahead_of_utc_s;
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let micros = unix_nanos / 1000 % 1_000_000;
    format!("{hour:02}:{minute:02}:{second:02}.{micros:06}")
}

fn what(bytes: &[u8]) -> String {
    let parsed = Packet::parse(bytes);
    let Some(header) = Header::parse(bytes) else {
        return "cut within its addresses".to_owned();
    };
    let mut text = frame_words::flow(&Facts::of(bytes, &parsed, 0).flow);
    let ends = format!(" {} > {}", header.source, header.destination);
    let more = match &parsed {
        Ok(Packet { ip: Some(ip), .. }) => of_ip(bytes, ip),
        Ok(packet) if packet.ether_type == ether_type::ARP => {
            arp(&bytes[packet.network_start..]).unwrap_or(ends)
        }
        Ok(_) => ends,
        // Cut, or broken: what stands before that is known.
        Err(error) => {
            let is_ip = behind_tags(bytes)
                .is_ok_and(|t| matches!(t.ether_type, ether_type::IPV4 | ether_type::IPV6));
            match is_ip {
                true => format!("{ends} ({error})"),
                false => ends,
            }
        }
    };
    text += &more;
    text
}

/// What is known of it beside its flow.
fn of_ip(bytes: &[u8], ip: &Ip) -> String {
    let transport = &bytes[ip.transport_start..];
    match (ip.transport, ip.protocol) {
        _ if ip.fragment => " fragment".to_owned(),
        (Some(Transport::Tcp { .. }), _) => tcp_flags(transport[field::TCP_FLAGS]),
        (None, ICMP) => icmp(transport, icmp_name),
        (None, ICMP6) => icmp(transport, icmp6_name),
        _ => String::new(),
    }
}

fn tcp_flags(flags: u8) -> String {
    // RFC 9293, 3.1.
    const NAMES: [(u8, &str); 6] = [
        (0x02, " SYN"),
        (0x01, " FIN"),
        (0x04, " RST"),
        (0x08, " PSH"),
        (0x10, " ACK"),
        (0x20, " URG"),
    ];
    let set = NAMES.iter().filter(|(bit, _)| flags & bit != 0);
    set.map(|(_, name)| *name).collect()
}

/// RFC 792 and 4443: type, code, checksum, and for some an identifier and a sequence number.
fn icmp(message: &[u8], name: fn(u8) -> Option<&'static str>) -> String {
    let Some(&kind) = message.first() else {
        return String::new();
    };
    let Some(name) = name(kind) else {
        return format!(" type {kind}");
    };
    let numbers = message.get(4..8).filter(|_| name.starts_with("echo"));
    match numbers {
        Some(&[a, b, c, d]) => {
            let (id, sequence) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            format!(" {name} {id} seq {sequence}")
        }
        _ => format!(" {name}"),
    }
}

fn icmp_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "echo reply",
        3 => "unreachable",
        5 => "redirect",
        8 => "echo request",
        11 => "time exceeded",
        12 => "parameter problem",
        _ => return None,
    })
}

/// RFC 4443, 4861 and 3810.
fn icmp6_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "unreachable",
        2 => "packet too big",
        3 => "time exceeded",
        4 => "parameter problem",
        128 => "echo request",
        129 => "echo reply",
        133 => "router solicitation",
        134 => "router advertisement",
        135 => "neighbor solicitation",
        136 => "neighbor advertisement",
        137 => "redirect",
        143 => "listener report",
        _ => return None,
    })
}

/// RFC 826, of IPv4 on Ethernet.
fn arp(body: &[u8]) -> Option<String> {
    let body: &[u8; 28] = body.first_chunk()?;
    if body[..6] != [0, 1, 8, 0, 6, 4] {
        return None;
    }
    let address = |at: usize| {
        let bytes: [u8; 4] = body[at..at + 4].try_into().expect("four bytes");
        Ipv4Addr::from(bytes)
    };
    let (sender, target) = (address(14), address(24));
    let mac = packtrain_proto::wire::ethernet::MacAddr::from_slice(&body[8..14]);
    Some(match u16::from_be_bytes([body[6], body[7]]) {
        1 => format!(" {sender} asks for {target}"),
        2 => format!(" {sender} is at {mac}"),
        other => format!(" operation {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
        let addresses = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
        [&addresses, &ether_type.to_be_bytes()[..], payload].concat()
    }

    /// From 10.9.0.1 to 10.9.0.2.
    fn ipv4(protocol: u8, fragment: u8, payload: &[u8]) -> Vec<u8> {
        let mut header = [0; 20];
        (header[0], header[6], header[9]) = (0x45, fragment, protocol);
        header[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
        ethernet(0x0800, &[&header[..], payload].concat())
    }

    /// From fd09::1 to fd09::2.
    fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut header = [0; 40];
        (header[0], header[6]) = (0x60, protocol);
        for (at, last) in [(8, 1), (24, 2)] {
            (header[at], header[at + 1], header[at + 15]) = (0xfd, 0x09, last);
        }
        ethernet(0x86dd, &[&header[..], payload].concat())
    }

    /// From port 1000 to 80.
    fn tcp(flags: u8) -> Vec<u8> {
        let mut header = vec![0; 20];
        header[..4].copy_from_slice(&[3, 232, 0, 80]);
        (header[12], header[13]) = (0x50, flags);
        header
    }

    fn arp_body(operation: u8) -> Vec<u8> {
        let mut body = vec![0, 1, 8, 0, 6, 4, 0, operation];
        body.extend([2, 0, 0, 0, 0, 1, 10, 9, 0, 1]);
        body.extend([0, 0, 0, 0, 0, 0, 10, 9, 0, 2]);
        body
    }

    fn tagged(frame: &[u8]) -> Vec<u8> {
        [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat()
    }

    #[test]
    fn each_kind_of_frame_is_told_in_its_own_words() {
        let udp = [3, 232, 0, 53, 0, 8, 0, 0];
        let echo = |kind| [kind, 0, 0, 0, 0, 17, 0, 3];
        let macs = "02:00:00:00:00:01 > 02:00:00:00:00:02";
        for (frame, text) in [
            (
                ipv4(6, 0, &tcp(0x02)),
                "tcp 10.9.0.1:1000 > 10.9.0.2:80 SYN".to_owned(),
            ),
            (
                ipv4(6, 0, &tcp(0x12)),
                "tcp 10.9.0.1:1000 > 10.9.0.2:80 SYN ACK".into(),
            ),
            (
                ipv6(6, &tcp(0x18)),
                "tcp [fd09::1]:1000 > [fd09::2]:80 PSH ACK".into(),
            ),
            (
                ipv4(6, 0, &tcp(0x14)),
                "tcp 10.9.0.1:1000 > 10.9.0.2:80 RST ACK".into(),
            ),
            (ipv4(17, 0, &udp), "udp 10.9.0.1:1000 > 10.9.0.2:53".into()),
            (
                ipv4(17, 0x20, &udp),
                "udp 10.9.0.1 > 10.9.0.2 fragment".into(),
            ),
            (
                ipv4(1, 0, &echo(8)),
                "icmp 10.9.0.1 > 10.9.0.2 echo request 17 seq 3".into(),
            ),
            (
                ipv4(1, 0, &echo(0)),
                "icmp 10.9.0.1 > 10.9.0.2 echo reply 17 seq 3".into(),
            ),
            (
                ipv4(1, 0, &echo(3)),
                "icmp 10.9.0.1 > 10.9.0.2 unreachable".into(),
            ),
            (
                ipv4(1, 0, &echo(99)),
                "icmp 10.9.0.1 > 10.9.0.2 type 99".into(),
            ),
            (
                ipv6(58, &echo(128)),
                "icmp6 fd09::1 > fd09::2 echo request 17 seq 3".into(),
            ),
            (
                ipv6(58, &echo(135)),
                "icmp6 fd09::1 > fd09::2 neighbor solicitation".into(),
            ),
            (ipv4(99, 0, &[]), "proto 99 10.9.0.1 > 10.9.0.2".into()),
            (
                tagged(&ipv4(17, 0, &udp)),
                "vlan 5 udp 10.9.0.1:1000 > 10.9.0.2:53".into(),
            ),
            (
                ethernet(0x0806, &arp_body(1)),
                "arp 10.9.0.1 asks for 10.9.0.2".into(),
            ),
            (
                ethernet(0x0806, &arp_body(2)),
                "arp 10.9.0.1 is at 02:00:00:00:00:01".into(),
            ),
            (ethernet(0x0806, &[0; 9]), format!("arp {macs}")),
            (ethernet(0x88cc, &[0; 46]), format!("lldp {macs}")),
            (
                ethernet(0x1234, &[0; 46]),
                format!("ethertype 0x1234 {macs}"),
            ),
            (
                ethernet(0x0800, &[0x45; 9]),
                format!("ip {macs} (the frame ends within its IPv4 header)"),
            ),
            (vec![2; 13], "cut within its addresses".into()),
        ] {
            assert_eq!(what(&frame), text);
        }
    }

    #[test]
    fn a_line_has_time_direction_path_and_the_length_on_the_wire() {
        let frame = Frame {
            unix_nanos: 1_700_000_000_000_012_999,
            direction: Direction::In,
            path: Path::Engine,
            bytes: ethernet(0x0806, &arp_body(1)),
            len: 60,
        };
        let text = "arp 10.9.0.1 asks for 10.9.0.2, 60 B";
        assert_eq!(
            line(&frame, 0),
            format!("22:13:20.000012  in   engine  {text}")
        );
        let leaving = Frame {
            direction: Direction::Out,
            path: Path::Direct,
            ..frame
        };
        let east = line(&leaving, 2 * 3600);
        assert_eq!(east, format!("00:13:20.000012  out  direct  {text}"));
    }
}
