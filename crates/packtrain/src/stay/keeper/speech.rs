//! What is said on the links while the engine is away.

use std::time::Duration;

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Instant;

use super::super::message::WordKept;
use crate::linux::packet_socket::PacketSocket;

/// At first often: a peer that has heard nothing for 150 ms takes its direct frames for lost.
const FIRST_GAPS: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(30),
    Duration::from_millis(40),
    Duration::from_millis(50),
];
/// As often as hellos.
const GAP: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Speech {
    words: Vec<WordKept>,
    said: usize,
    next: Instant,
}

impl Speech {
    pub(super) fn new(words: Vec<WordKept>, now: Instant) -> Speech {
        Speech {
            words,
            said: 0,
            next: now,
        }
    }

    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// From the beginning: somebody else may have spoken meanwhile.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        (self.said, self.next) = (0, now);
    }

    /// That the engine is away, if it is time to say it.
    pub(super) fn say_away(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        self.next = now + FIRST_GAPS.get(self.said).copied().unwrap_or(GAP);
        self.said += 1;
        self.words
            .iter()
            .for_each(|word| send(word.ifindex, &word.away));
    }

    pub(super) fn say_goodbye(&self) {
        self.words
            .iter()
            .for_each(|word| send(word.ifindex, &word.goodbye));
    }
}

/// By a socket that is closed at once: an open one would be given every frame of the link.
fn send(ifindex: u32, frame: &[u8]) {
    let sent = PacketSocket::open(ifindex).map(|mut socket| socket.send(frame, Offload::NONE));
    match sent {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("interface {ifindex}: {error}"),
        Err(error) => tracing::debug!("interface {ifindex}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_four_times_before_a_peer_gives_the_path_up_and_then_each_second() {
        let mut speech = Speech::new(Vec::new(), Instant::ZERO);
        let mut said = Vec::new();
        for _ in 0..7 {
            let at = speech.next();
            said.push(at.as_nanos() / 1_000_000);
            speech.say_away(at);
        }
        assert_eq!(said, [0, 20, 50, 90, 140, 1140, 2140]);
        speech.say_away(Instant::ZERO);
        assert_eq!(
            speech.next().as_nanos(),
            3_140_000_000,
            "not before its time"
        );
    }
}
