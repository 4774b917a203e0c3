//! What was on the wires of a run, segment by segment, as the lab's capture tells it: nothing here is a sender's word.
//!
//! ```text
//!  a ──── a-r1.0 ────► r1 ════ r1-r2.0 ════► r2 ──── r2-b.0 ────► b
//!                   entered   dropped, passed                  arrived
//! ```
//! Times are the wires' own, when the last bit of a frame was there: a frame enters the bottleneck's queue when its wire from
//! the sender has carried it, and has left it when it is seen behind the bottleneck, less the delay. What crosses
//! in one piece (GSO) is told as the frames that a card would have made of it.

use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use crate::lab::emulator::protocol::{Request, WireChoice};
use crate::lab::standing::Lab;
use crate::lab::{Error, Result};
use crate::pcapng::Block;

/// Ethernet, IPv4 and TCP with all their options.
const SNAP_LEN: u32 = 14 + 60 + 60;

/// A connection, by its sender's address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    pub address: u32,
    pub port: u16,
}

/// A TCP segment at one place of the way there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Of the day, ns.
    pub at: u64,
    pub flow: Flow,
    /// Of its first byte, counted from the connection's first: no connection here carries 4 GiB.
    pub sequence: u32,
    pub payload: u32,
    /// Without FCS, as a queue counts it.
    pub frame_bytes: u32,
}

impl Segment {
    pub fn end(&self) -> u64 {
        u64::from(self.sequence) + u64::from(self.payload)
    }
}

/// Each in the order of its times.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Came to the bottleneck's queue.
    pub entered: Vec<Segment>,
    /// Found no room there.
    pub dropped: Vec<Segment>,
    /// Came out of the line, its delay behind it.
    pub passed: Vec<Segment>,
    /// Came to the receiver's interface.
    pub arrived: Vec<Segment>,
    /// Dropped on another wire than the bottleneck, where nothing is to be.
    pub dropped_elsewhere: u64,
    /// That the capture itself could not keep: it then says nothing.
    pub missed: u64,
}

impl Trace {
    /// One connection alone.
    pub fn of(&self, flow: Flow) -> Trace {
        let only = |all: &[Segment]| all.iter().copied().filter(|s| s.flow == flow).collect();
        Trace {
            entered: only(&self.entered),
            dropped: only(&self.dropped),
            passed: only(&self.passed),
            arrived: only(&self.arrived),
            ..*self
        }
    }

    /// The connections that carried something, that with the most bytes first.
    pub fn flows(&self) -> Vec<Flow> {
        let mut bytes = std::collections::BTreeMap::<Flow, u64>::new();
        for segment in self.entered.iter().filter(|segment| segment.payload > 0) {
            *bytes.entry(segment.flow).or_default() += u64::from(segment.payload);
        }
        let mut flows: Vec<(Flow, u64)> = bytes.into_iter().collect();
        flows.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
        flows.into_iter().map(|(flow, _)| flow).collect()
    }

    fn take(&mut self, block: &Block, places: Places, initial: &mut Initial) {
        if let Some(missed) = block.dropped() {
            self.missed += missed;
        }
        let Some(packet) = block.packet() else {
            return;
        };
        let Some(mut segment) = tcp_segment(packet.bytes, packet.len) else {
            return;
        };
        segment.at = packet.unix_nanos;
        segment.sequence = initial.counted(segment.flow, segment.sequence);
        let is_dropped = packet
            .comment
            .is_some_and(|text| text.starts_with("dropped"));
        let interface = packet.interface as usize;
        let place = match (interface, is_dropped) {
            (at, true) if at == places.bottleneck => &mut self.dropped,
            (_, true) => {
                self.dropped_elsewhere += 1;
                return;
            }
            (at, _) if at == places.bottleneck => &mut self.passed,
            (at, _) if at == places.bottleneck + 1 => &mut self.arrived,
            _ => &mut self.entered,
        };
        place.push(segment);
    }
}

/// Which of a capture's interfaces are which: those before this one lead from senders to it, the next to the receiver.
#[derive(Clone, Copy, Debug)]
struct Places {
    bottleneck: usize,
}

/// The first sequence number of each connection.
#[derive(Debug, Default)]
struct Initial(std::collections::BTreeMap<Flow, u32>);

impl Initial {
    /// The first that is seen of a connection is what opens it, and its first byte follows that.
    fn counted(&mut self, flow: Flow, sequence: u32) -> u32 {
        let first = *self.0.entry(flow).or_insert(sequence.wrapping_add(1));
        let from_first = sequence.wrapping_sub(first);
        // The opening itself is no byte.
        if from_first == u32::MAX {
            0
        } else {
            from_first
        }
    }
}

/// A capture that goes on beside what is measured.
#[derive(Debug)]
pub struct Tracing {
    stream: UnixStream,
    reader: JoinHandle<io::Result<Trace>>,
}

impl Tracing {
    /// `wires`: those from the senders, the bottleneck, and that to the receiver, each with the end that sends there.
    pub fn begin(lab: &Lab, wires: &[(&str, &str)]) -> Result<Tracing> {
        let choice = |&(wire, from): &(&str, &str)| WireChoice {
            wire: wire.to_owned(),
            from: Some(from.to_owned()),
        };
        let request = Request::Capture {
            wires: wires.iter().map(choice).collect(),
            frames_max: None,
            snap_len: SNAP_LEN,
            // It would take as much of the processors as the wires do.
            held: true,
        };
        let captured = lab.capture(&request)?;
        let places = Places {
            bottleneck: wires.len() - 2,
        };
        let stream = captured.get_ref().try_clone().map_err(failed)?;
        let reader = std::thread::Builder::new()
            .name("trace".into())
            .spawn(move || read(captured, places))
            .map_err(failed)?;
        Ok(Tracing { stream, reader })
    }

    /// What was seen until now.
    pub fn end(self) -> Result<Trace> {
        // To say nothing more is to want nothing more.
        let _ = self.stream.shutdown(Shutdown::Write);
        let trace = self.reader.join();
        trace
            .expect("who reads a capture has no reason to panic")
            .map_err(failed)
    }
}

fn failed(source: io::Error) -> Error {
    Error::Start {
        command: "capture of the bottleneck".into(),
        source,
    }
}

fn read(mut from: BufReader<UnixStream>, places: Places) -> io::Result<Trace> {
    let (mut trace, mut initial) = (Trace::default(), Initial::default());
    while let Some(block) = Block::read(&mut from)? {
        trace.take(&block, places, &mut initial);
    }
    Ok(trace)
}

/// The segment in a frame of which `frame_bytes` there were; its time is not in it. `None`: no TCP over IPv4.
pub fn tcp_segment(bytes: &[u8], frame_bytes: u32) -> Option<Segment> {
    const ETHERNET: usize = 14;
    const TCP: u8 = 6;
    let be16 = |at: usize| -> Option<u16> {
        Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
    };
    let be32 = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    if be16(12)? != 0x0800 || *bytes.get(ETHERNET + 9)? != TCP {
        return None;
    }
    let ip_header = 4 * usize::from(bytes[ETHERNET] & 0xf);
    let tcp = ETHERNET + ip_header;
    let tcp_header = 4 * usize::from(bytes.get(tcp + 12)? >> 4);
    let payload = usize::from(be16(ETHERNET + 2)?).checked_sub(ip_header + tcp_header)?;
    Some(Segment {
        at: 0,
        flow: Flow {
            address: be32(ETHERNET + 12)?,
            port: be16(tcp)?,
        },
        sequence: be32(tcp + 4)?,
        payload: payload as u32,
        frame_bytes,
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::pcapng::{Packet, enhanced_packet};

    pub const FLOW: Flow = Flow {
        address: 0x0a09_0001,
        port: 40_000,
    };

    /// A full segment of 1448 bytes, by its number.
    pub fn full(number: u64, at_us: f64) -> Segment {
        Segment {
            at: (at_us * 1e3) as u64,
            flow: FLOW,
            sequence: (number * 1448) as u32,
            payload: 1448,
            frame_bytes: 1514,
        }
    }

    fn frame(sequence: u32, payload: u16) -> Vec<u8> {
        let mut bytes = vec![0; 14 + 20 + 32];
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes[14] = 0x45;
        bytes[16..18].copy_from_slice(&(52 + payload).to_be_bytes());
        bytes[23] = 6;
        bytes[26..30].copy_from_slice(&FLOW.address.to_be_bytes());
        bytes[34..36].copy_from_slice(&FLOW.port.to_be_bytes());
        bytes[38..42].copy_from_slice(&sequence.to_be_bytes());
        bytes[46] = 8 << 4;
        bytes
    }

    fn taken(seen: &[(u32, &[u8], Option<&'static str>)]) -> Trace {
        let (mut trace, mut initial) = (Trace::default(), Initial::default());
        for (number, &(interface, bytes, comment)) in seen.iter().enumerate() {
            let mut file = Vec::new();
            let packet = Packet {
                interface,
                unix_nanos: number as u64,
                bytes,
                len: 1514,
                direction: None,
                comment,
            };
            enhanced_packet(&mut file, &packet);
            let block = Block::read(&mut &file[..]).unwrap().unwrap();
            trace.take(&block, Places { bottleneck: 1 }, &mut initial);
        }
        trace
    }

    #[test]
    fn a_segment_is_told_by_where_it_was_and_what_became_of_it_there() {
        let opens = u32::MAX - 1000;
        let [syn, first, second] = [
            frame(opens, 0),
            frame(opens + 1, 1448),
            frame(opens.wrapping_add(1449), 1448),
        ];
        let full = "dropped: queue full";
        let trace = taken(&[
            (0, &syn, None),
            (1, &syn, None),
            (0, &first, None),
            (0, &second, None),
            (1, &second, Some(full)),
            (1, &first, None),
            (2, &first, None),
            (0, &second, Some("dropped: cut")),
            (2, &[0; 60], None),
        ]);
        let of = |segments: &[Segment]| -> Vec<(u32, u32)> {
            segments.iter().map(|s| (s.sequence, s.payload)).collect()
        };
        assert_eq!(of(&trace.entered), [(0, 0), (0, 1448), (1448, 1448)]);
        assert_eq!(of(&trace.dropped), [(1448, 1448)]);
        assert_eq!(of(&trace.passed), [(0, 0), (0, 1448)]);
        assert_eq!(of(&trace.arrived), [(0, 1448)]);
        assert_eq!((trace.dropped_elsewhere, trace.dropped[0].at), (1, 4));
        assert_eq!(trace.flows(), [FLOW]);
        let other = Flow { port: 1, ..FLOW };
        assert!(trace.of(other).entered.is_empty());
    }

    #[test]
    fn what_is_no_tcp_over_ipv4_is_no_segment() {
        let whole = frame(1, 100);
        assert!(tcp_segment(&whole, 1514).is_some());
        for cut in [0, 13, 20, 34, 40, 46] {
            assert_eq!(tcp_segment(&whole[..cut], 1514), None, "{cut}");
        }
        let mut other = whole.clone();
        other[23] = 17;
        assert_eq!(tcp_segment(&other, 1514), None);
        let mut lying = whole;
        lying[17] = 10;
        lying[16] = 0;
        assert_eq!(tcp_segment(&lying, 1514), None);
    }
}
