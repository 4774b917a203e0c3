//! Short TCP flows, CUBIC, each of which opens at a moment of its own and is over when the other end has said that its last byte is
//! there: how long that took.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::net::{self, Shutdown};

use super::namespaces::Namespace;
use super::stream::{self, Protocol};
use super::{Error, Result, now, pause};

/// Without a byte for so long a flow is broken.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Nobody's SYN is dropped because a host is late.
const BACKLOG: i32 = 128;

/// Flows of so many bytes to an address of the other host, from moments of now on: how long each took that ended, in the order in
/// which they began. One that broke is not among them.
pub fn carry(
    [from, to]: [&Namespace; 2],
    at: SocketAddr,
    bytes: usize,
    moments: &[Duration],
) -> Result<Vec<Duration>> {
    let failed = |source: io::Error| Error::Start {
        command: format!("short flows to {at}"),
        source,
    };
    let listener = to.in_namespace(|| stream::listen(at, Protocol::Tcp))?;
    let listener = listener.map_err(failed)?;
    net::listen(&listener, BACKLOG).map_err(|errno| failed(errno.into()))?;
    std::thread::scope(|scope| {
        scope.spawn(|| take_in(&listener, bytes));
        let took = from.in_namespace(|| open_each(at, bytes, moments));
        // Who waits for the next one is told that there is none.
        let ended = net::shutdown(&listener, Shutdown::Both);
        ended.map_err(|errno| failed(errno.into()))?;
        took
    })
}

/// A thread for each, which is in the namespace of this one.
fn open_each(at: SocketAddr, bytes: usize, moments: &[Duration]) -> Vec<Duration> {
    let mut chunk = vec![0; bytes];
    // Nothing that a line could leave out.
    stream::pattern(0, &mut chunk);
    let (start, chunk) = (now(), &chunk[..]);
    std::thread::scope(|scope| {
        let mut flows = Vec::new();
        for &moment in moments {
            pause(moment.saturating_sub(start.elapsed()));
            flows.push(scope.spawn(move || send(at, chunk)));
        }
        let ended = flows.into_iter().filter_map(|flow| {
            let took = flow.join().expect("a flow has no reason to panic");
            took.ok()
        });
        ended.collect()
    })
}

/// From `connect` until the other end has said that all is there.
fn send(at: SocketAddr, chunk: &[u8]) -> io::Result<Duration> {
    let start = now();
    let mut stream = stream::connect(at, Protocol::Tcp)?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.write_all(chunk)?;
    stream.read_exact(&mut [0])?;
    Ok(start.elapsed())
}

/// Until the socket listens no more.
fn take_in(listener: &TcpListener, bytes: usize) {
    std::thread::scope(|scope| {
        while let Ok((stream, _)) = listener.accept() {
            scope.spawn(move || answer(stream, bytes));
        }
    });
}

/// One byte when all of a flow is there. Of one that breaks its other end tells.
fn answer(mut stream: TcpStream, bytes: usize) {
    let mut all = vec![0; bytes];
    let whole = stream.set_read_timeout(Some(SILENCE_MAX));
    let whole = whole.and_then(|()| stream.read_exact(&mut all));
    let _ = whole.and_then(|()| stream.write_all(&[1]));
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn each_flow_is_timed_until_its_last_byte_is_answered_and_one_that_breaks_is_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let moments = [0, 1, 20].map(Duration::from_millis);
        std::thread::scope(|scope| {
            scope.spawn(|| take_in(&listener, 50_000));
            assert_eq!(open_each(at, 50_000, &moments).len(), moments.len());
            // The other end waits for a byte more, and then this one has gone.
            let short = TcpStream::connect(at).and_then(|mut s| s.write_all(&[0; 49_999]));
            short.unwrap();
            net::shutdown(&listener, Shutdown::Both).unwrap();
        });
        drop(listener);
        assert_eq!(open_each(at, 50_000, &moments), []);
    }
}
