//! Telephone calls: RTP (RFC 3550) with G.711 (RFC 3551, type 0), 160 bytes of voice each 20 ms, both ways. When
//! each packet came is told by itself: it has the time of its sending where its voice would be.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::emodel::PACKET_MS;
use crate::lab::messages::{clock_ns, find_each_other};
use crate::lab::namespaces::Namespace;
use crate::lab::{Error, Result, now, pause, port};

const HEADER_BYTES: usize = 12;
const VOICE_BYTES: usize = 160;
const PACKET_BYTES: usize = HEADER_BYTES + VOICE_BYTES;
/// Version 2, nothing else.
const VERSION: u8 = 2 << 6;
/// µ-law at 8 kHz.
const PAYLOAD_TYPE: u8 = 0;
/// How long a receiver waits for what may still be on its way.
const SILENCE_MAX: Duration = Duration::from_millis(1000);

/// So many calls, for so long.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    pub count: usize,
    pub duration: Duration,
    /// The code point with which packets are marked, as in the upper six bits of IPv4's second byte.
    pub dscp: Option<u8>,
}

/// What was heard of one call at one end.
#[derive(Clone, Debug)]
pub struct Heard {
    pub sent: usize,
    /// From the sending program to the receiving one, of each packet that came, as they came.
    pub delays_ms: Vec<f64>,
    has_come: Vec<bool>,
}

impl Calls {
    fn packets_a_call(&self) -> usize {
        (self.duration.as_secs_f64() * 1e3 / PACKET_MS) as usize
    }

    /// All calls from one host to an address of the other, and of each what was heard there.
    pub fn one_way(&self, from: &Namespace, to: &Namespace, at: SocketAddr) -> Result<Vec<Heard>> {
        let failed = |what: &str, source: io::Error| Error::Start {
            command: format!("calls to {at}: {what}"),
            source,
        };
        let receiver = to
            .in_namespace(|| port::bind(at))?
            .map_err(|error| failed("receiver", error))?;
        let connect_all = || (0..self.count).map(|_| self.connect(at)).collect();
        let senders: io::Result<Vec<UdpSocket>> = from.in_namespace(connect_all)?;
        let senders = senders.map_err(|error| failed("sender", error))?;
        find_each_other(&senders[0], &receiver)
            .and_then(|()| receiver.set_read_timeout(Some(SILENCE_MAX)))
            .map_err(|error| failed("first packet", error))?;
        let over = AtomicBool::new(false);
        // The last of a run before, to the same port, may still be on its way.
        let begin_ns = clock_ns();
        std::thread::scope(|scope| {
            let hearing = scope.spawn(|| self.hear(&receiver, begin_ns, &over));
            self.speak(&senders);
            over.store(true, Ordering::Relaxed);
            let heard = hearing.join().expect("who hears has no reason to panic");
            heard.map_err(|error| failed("receiver", error))
        })
    }

    fn connect(&self, at: SocketAddr) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect(at)?;
        if let Some(dscp) = self.dscp {
            rustix::net::sockopt::set_ip_tos(&socket, dscp << 2)?;
        }
        Ok(socket)
    }

    /// The calls' packets are spread over their 20 ms.
    fn speak(&self, sockets: &[UdpSocket]) {
        let between = Duration::from_secs_f64(PACKET_MS / 1e3 / self.count as f64);
        let begin = now();
        let mut packet = [0; PACKET_BYTES];
        for number in 0..self.packets_a_call() * self.count {
            let due = between * number as u32;
            let early = due.saturating_sub(begin.elapsed());
            if !early.is_zero() {
                pause(early);
            }
            let call = number % self.count;
            write(&mut packet, call, number / self.count, clock_ns());
            // One that finds no room is lost, as on any way.
            let _ = sockets[call].send(&packet);
        }
    }

    fn hear(&self, socket: &UdpSocket, begin_ns: u64, over: &AtomicBool) -> io::Result<Vec<Heard>> {
        let mut heard = vec![Heard::of(self.packets_a_call()); self.count];
        let mut buffer = [0; 2 * PACKET_BYTES];
        loop {
            let len = match socket.recv(&mut buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if over.load(Ordering::Relaxed) {
                        return Ok(heard);
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let came_ns = clock_ns();
            let Some((call, sequence, sent_ns)) = read(&buffer[..len]) else {
                continue;
            };
            // Others are of a run before.
            if let Some(call) = heard.get_mut(call).filter(|_| sent_ns >= begin_ns) {
                call.take(sequence, came_ns.saturating_sub(sent_ns) as f64 / 1e6);
            }
        }
    }
}

impl Heard {
    /// Of so many sent, nothing yet.
    fn of(sent: usize) -> Heard {
        Heard {
            sent,
            delays_ms: Vec::new(),
            has_come: vec![false; sent],
        }
    }

    /// One of which so many came, all equally late.
    #[cfg(test)]
    pub fn evenly(sent: usize, came: usize, delay_ms: f64) -> Heard {
        Heard {
            delays_ms: vec![delay_ms; came],
            ..Heard::of(sent)
        }
    }

    /// A packet that comes twice is heard once.
    fn take(&mut self, sequence: usize, delay_ms: f64) {
        if let Some(has_come) = self.has_come.get_mut(sequence)
            && !std::mem::replace(has_come, true)
        {
            self.delays_ms.push(delay_ms);
        }
    }
}

/// The call is the source that RTP names.
fn write(packet: &mut [u8; PACKET_BYTES], call: usize, sequence: usize, sent_ns: u64) {
    let timestamp = (sequence * VOICE_BYTES) as u32;
    packet[0] = VERSION;
    packet[1] = PAYLOAD_TYPE;
    packet[2..4].copy_from_slice(&(sequence as u16).to_be_bytes());
    packet[4..8].copy_from_slice(&timestamp.to_be_bytes());
    packet[8..12].copy_from_slice(&(call as u32).to_be_bytes());
    packet[12..20].copy_from_slice(&sent_ns.to_be_bytes());
}

/// Call, sequence, and when it was sent.
fn read(packet: &[u8]) -> Option<(usize, usize, u64)> {
    if packet.len() != PACKET_BYTES || packet[..2] != [VERSION, PAYLOAD_TYPE] {
        return None;
    }
    let sequence = u16::from_be_bytes(packet[2..4].try_into().ok()?);
    let call = u32::from_be_bytes(packet[8..12].try_into().ok()?);
    let sent_ns = u64::from_be_bytes(packet[12..20].try_into().ok()?);
    Some((call as usize, sequence.into(), sent_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_says_again_of_which_call_it_is_and_when_it_was_sent() {
        let mut packet = [0xee; PACKET_BYTES];
        write(&mut packet, 49, 399, 12_345);
        assert_eq!(read(&packet), Some((49, 399, 12_345)));
        assert_eq!(packet[4..8], (399 * 160_u32).to_be_bytes());
        assert_eq!(read(&packet[1..]), None);
        packet[1] = 8;
        assert_eq!(read(&packet), None, "A-law is nobody's here");
    }

    #[test]
    fn each_call_is_heard_by_itself_at_its_pace_and_what_came_twice_once() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let at = receiver.local_addr().unwrap();
        let calls = Calls {
            count: 5,
            duration: Duration::from_millis(100),
            dscp: Some(46),
        };
        let senders: Vec<UdpSocket> = (0..5).map(|_| calls.connect(at).unwrap()).collect();
        let begin = now();
        let begin_ns = clock_ns();
        calls.speak(&senders);
        assert!(begin.elapsed() >= Duration::from_millis(96));
        let mut again = [0; PACKET_BYTES];
        write(&mut again, 3, 4, clock_ns());
        senders[3].send(&again).unwrap();
        // And what is of no run of ours.
        write(&mut again, 3, 4, begin_ns - 1);
        senders[3].send(&again).unwrap();
        write(&mut again, 5, 0, clock_ns());
        senders[3].send(&again).unwrap();
        let heard = calls
            .hear(&receiver, begin_ns, &AtomicBool::new(true))
            .unwrap();
        assert_eq!(heard.len(), 5);
        for call in heard {
            assert_eq!((call.sent, call.delays_ms.len()), (5, 5));
        }
    }
}
