//! What is new in an acknowledgement.

use packtrain_proto::time::{Duration, Instant};

use super::segments::Sent;

/// What an acknowledgement said that was not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Bytes that the other end now has with all before them.
    pub advanced: u64,
    /// Bytes that it has and was not known to have.
    pub delivered: u64,
    /// Round trips of the oldest and the newest of those, of what was sent once.
    pub rtt: Option<(Duration, Duration)>,
}

/// The same, while it is being gathered.
pub(super) struct Gathered {
    pub now: Instant,
    pub delivered: u64,
    /// When the oldest and the newest of what was sent once were.
    sent: Option<(Instant, Instant)>,
    pub has_ambiguous: bool,
}

impl Gathered {
    pub fn new(now: Instant) -> Gathered {
        Gathered {
            now,
            delivered: 0,
            sent: None,
            has_ambiguous: false,
        }
    }

    pub fn add(&mut self, sent: &Sent) {
        self.delivered += u64::from(sent.len);
        if sent.ambiguous {
            self.has_ambiguous = true;
            return;
        }
        let (oldest, newest) = self.sent.unwrap_or((sent.at, sent.at));
        self.sent = Some((oldest.min(sent.at), newest.max(sent.at)));
    }

    pub fn rtt(&self) -> Option<(Duration, Duration)> {
        let (oldest, newest) = self.sent?;
        Some((self.now.since(oldest), self.now.since(newest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_more_than_once_is_delivered_and_has_no_round_trip() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut gathered = Gathered::new(at(100));
        for (sent_ms, ambiguous) in [(20, false), (90, true), (30, false), (10, true)] {
            gathered.add(&Sent {
                offset: 0,
                at: at(sent_ms),
                len: 10,
                sacked: false,
                lost: false,
                resent: false,
                ambiguous,
            });
        }
        assert!(gathered.has_ambiguous);
        assert_eq!(gathered.delivered, 40);
        let [oldest, newest] = [80, 70].map(Duration::from_millis);
        assert_eq!(gathered.rtt(), Some((oldest, newest)));
    }
}
