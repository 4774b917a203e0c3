//! A sender alone, and a script of what comes to it and when: what leaves, by segments' numbers.

use std::ops::Range;

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::tcp::segment::{Acknowledgement, Ecn};
use packtrain_sim::tcp::sender::{Sender, SenderConfig};

pub const MSS: u64 = 1000;
/// Of the handshake, so that the first flight leaves then.
pub const RTT_MS: u64 = 100;
/// What the other end says it has room for.
const WINDOW_BYTES: u64 = 1 << 30;

pub struct Script {
    pub sender: Sender,
    /// Of what left last: whether it could be marked, and told of a cut.
    pub said: (Ecn, bool),
    ecn: bool,
}

/// When, in microseconds, and which segments.
pub type Left = (u64, Vec<u64>);

pub fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

impl Script {
    /// The handshake took 100 ms, and so many segments were written by then: the first flight leaves.
    pub fn opens(config: SenderConfig, segments: u64) -> (Script, Vec<u64>) {
        let mut script = Script::new(config);
        script.sender.connect();
        script.sender.write(segments * MSS);
        assert_eq!(script.leaves(Instant::ZERO), [0]);
        let first = script.opened(RTT_MS);
        (script, first)
    }

    /// The answer to the SYN has come, which agrees to what was asked for.
    pub fn opened(&mut self, ms: u64) -> Vec<u64> {
        self.opened_with(ms, WINDOW_BYTES)
    }

    pub fn opened_with(&mut self, ms: u64, window_bytes: u64) -> Vec<u64> {
        let mut answer = Acknowledgement::new(0, window_bytes, std::iter::empty());
        (answer.syn, answer.ece) = (true, self.ecn);
        self.sender.handle(&answer, at_ms(ms));
        self.leaves(at_ms(ms))
    }

    pub fn new(config: SenderConfig) -> Script {
        let sender = Sender::new(SenderConfig {
            mss: MSS as u32,
            ..config
        });
        let said = (Ecn::NotCapable, false);
        Script {
            sender,
            said,
            ecn: config.ecn,
        }
    }

    fn leaves(&mut self, now: Instant) -> Vec<u64> {
        let mut left = Vec::new();
        while let Some((data, ecn)) = self.sender.poll_transmit(now) {
            left.push(data.offset / MSS);
            self.said = (ecn, data.cwr);
        }
        left
    }

    /// So many segments have come, and these behind them; what leaves at that.
    pub fn acks(&mut self, ms: u64, to: u64, sacked: Range<u64>) -> Vec<u64> {
        self.echoes(ms, to, sacked, false)
    }

    pub fn echoes(&mut self, ms: u64, to: u64, sacked: Range<u64>, ece: bool) -> Vec<u64> {
        let now = at_ms(ms);
        let due = self.sender.poll_timeout();
        assert!(due.is_none_or(|due| due > now), "a timer was due {due:?}");
        let sacks = (!sacked.is_empty()).then(|| sacked.start * MSS..sacked.end * MSS);
        let mut said = Acknowledgement::new(to * MSS, WINDOW_BYTES, sacks.into_iter());
        said.ece = ece;
        self.sender.handle(&said, now);
        self.leaves(now)
    }

    /// So many have come, and there is room for so many behind them.
    pub fn tells(&mut self, ms: u64, to: u64, room: u64) -> Vec<u64> {
        let said = Acknowledgement::new(to * MSS, room * MSS, std::iter::empty());
        self.sender.handle(&said, at_ms(ms));
        self.leaves(at_ms(ms))
    }

    pub fn writes(&mut self, ms: u64, segments: u64) -> Vec<u64> {
        self.sender.write(segments * MSS);
        self.leaves(at_ms(ms))
    }

    /// What leaves by its timers until then.
    pub fn waits_until(&mut self, ms: u64) -> Vec<Left> {
        let mut all = Vec::new();
        while let Some(due) = self.sender.poll_timeout().filter(|&due| due <= at_ms(ms)) {
            self.sender.handle_timeout(due);
            let left = self.leaves(due);
            if !left.is_empty() {
                all.push((due.as_nanos() / 1000, left));
            }
        }
        all
    }

    pub fn cwnd(&self) -> u64 {
        self.sender.window().cwnd() / MSS
    }

    pub fn ssthresh(&self) -> u64 {
        self.sender.window().ssthresh() / MSS
    }

    pub fn rto(&self) -> Duration {
        self.sender.rtt().timeout()
    }
}
