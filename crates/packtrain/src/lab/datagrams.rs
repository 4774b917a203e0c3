//! UDP in bulk: full-size datagrams as fast as the socket takes them, many in one system call at both ends
//! (UDP GSO and GRO), as programs send that carry files over QUIC. What arrives is counted in bytes.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::namespaces::Namespace;
use super::{Error, Result, messages, now, pause, port};
use crate::linux::scheduling::stay_on;
use crate::linux::udp_offload;

/// Fills a frame of 1500 bytes.
const DATAGRAM_BYTES: u16 = 1472;
/// As many as one GSO frame holds.
const DATAGRAMS_A_CALL: usize = 44;
/// No length of several datagrams: it says that this was all, also behind others in one piece.
const END_BYTES: usize = 1;
/// It may be lost as any other.
const ENDS: usize = 20;
const SILENCE_MAX: Duration = Duration::from_millis(500);
const RECEIVE_BUFFER_BYTES: usize = 32 << 20;

/// What arrived, and in how many pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrived {
    pub sent_bytes: u64,
    pub bytes: u64,
    pub reads: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Arrived {
    /// From the first arrival to the last.
    pub fn seconds(&self) -> f64 {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return 0.0;
        };
        last.saturating_duration_since(first).as_secs_f64()
    }

    /// Payload; 0 when there are no two arrivals.
    pub fn goodput_bps(&self) -> f64 {
        match self.seconds() {
            seconds if seconds > 0.0 => self.bytes as f64 * 8.0 / seconds,
            _ => 0.0,
        }
    }

    /// Whether it was the end.
    fn take(&mut self, len: usize, at: Instant) -> bool {
        let rest = len % usize::from(DATAGRAM_BYTES);
        self.bytes += (len - rest) as u64;
        if len > rest {
            self.reads += 1;
            self.first.get_or_insert(at);
            self.last = Some(at);
        }
        rest == END_BYTES
    }
}

/// Sends for so long from one host to an address of the other, each end on a CPU of its own.
pub fn measure(
    (from, from_cpu): (&Namespace, usize),
    (to, to_cpu): (&Namespace, usize),
    at: SocketAddr,
    duration: Duration,
) -> Result<Arrived> {
    let failed = |what: &str, source: io::Error| Error::Start {
        command: format!("datagrams to {at}: {what}"),
        source,
    };
    let receiver = to
        .in_namespace(|| port::bind(at))?
        .map_err(|error| failed("receiver", error))?;
    let connect = || UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect(at).map(|()| s));
    let sender = from
        .in_namespace(connect)?
        .map_err(|error| failed("sender", error))?;
    // Without the right to force it the ordinary size has to do.
    let _ =
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, RECEIVE_BUFFER_BYTES);
    messages::find_each_other(&sender, &receiver)
        .and_then(|()| udp_offload::read_together(&receiver))
        .and_then(|()| receiver.set_read_timeout(Some(SILENCE_MAX)))
        .map_err(|error| failed("receiver", error))?;
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| stay_on(to_cpu).and_then(|()| receive(&receiver)));
        let sending = scope.spawn(|| stay_on(from_cpu).and_then(|()| send(&sender, duration)));
        let sent = sending.join().expect("the sender has no reason to panic");
        let arrived = receiving
            .join()
            .expect("the receiver has no reason to panic")
            .map_err(|error| failed("receiver", error))?;
        Ok(Arrived {
            sent_bytes: sent.map_err(|error| failed("sender", error))?,
            ..arrived
        })
    })
}

fn send(socket: &UdpSocket, duration: Duration) -> io::Result<u64> {
    udp_offload::cut_into(socket, DATAGRAM_BYTES)?;
    let data = vec![0; usize::from(DATAGRAM_BYTES) * DATAGRAMS_A_CALL];
    let start = now();
    let mut sent = 0;
    while start.elapsed() < duration {
        // An error is about a full queue, or about what was sent before: this is lost.
        sent += socket.send(&data).unwrap_or(0) as u64;
    }
    for _ in 0..ENDS {
        pause(Duration::from_millis(2));
        let _ = socket.send(&[0; END_BYTES]);
    }
    Ok(sent)
}

fn receive(socket: &UdpSocket) -> io::Result<Arrived> {
    let mut buffer = vec![0; 1 << 16];
    let mut arrived = Arrived::default();
    loop {
        match socket.recv(&mut buffer) {
            Ok(len) if arrived.take(len, now()) => return Ok(arrived),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(arrived),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_counted_until_the_end_also_where_that_came_behind_others() {
        let full = usize::from(DATAGRAM_BYTES);
        let start = now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut arrived = Arrived::default();
        assert_eq!(arrived.goodput_bps(), 0.0);
        assert!(!arrived.take(3 * full, at(0)));
        assert_eq!(arrived.goodput_bps(), 0.0, "one arrival is no speed");
        // A greeting of before the measurement.
        assert!(!arrived.take(5, at(5)));
        assert!(arrived.take(full + END_BYTES, at(8)));
        assert_eq!((arrived.bytes, arrived.reads), (4 * full as u64, 2));
        assert_eq!(arrived.goodput_bps(), 4.0 * full as f64 * 8.0 / 0.008);
        assert!(Arrived::default().take(END_BYTES, start));
    }

    #[test]
    fn the_kernel_cuts_what_is_sent_and_puts_it_together_again() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        udp_offload::read_together(&receiver).unwrap();
        let sent = send(&sender, Duration::ZERO).unwrap();
        assert_eq!(sent, 0, "only ends");
        assert_eq!(receive(&receiver).unwrap().bytes, 0);
        let data = vec![0; 3 * usize::from(DATAGRAM_BYTES)];
        sender.send(&data).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut came = 0;
        while came < data.len() {
            came += match receiver.recv(&mut buffer).unwrap() {
                END_BYTES => 0,
                len => len,
            };
        }
        assert_eq!(came, data.len());
    }
}
