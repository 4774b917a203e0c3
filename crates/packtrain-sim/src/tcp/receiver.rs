//! The other end: acknowledges what came, and says what else it has (RFC 5681, 4.2; RFC 2018).
//!
//! An application reads at once what is in order. What is not stands in a store that the window bounds.

use core::ops::Range;

use packtrain_proto::time::{Duration, Instant};

use super::marks::Echo;
use super::ranges::Ranges;
use super::segment::{Acknowledgement, Data, Ecn, SACK_BLOCKS_MAX, told_window};

/// The largest scale that a window has (RFC 7323, 2.3).
const WINDOW_SCALE_MAX: u8 = 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Most that stands there out of order.
    pub window_bytes: u64,
    /// `Some`: every second segment is acknowledged, and a single one after this time (Linux: 40 ms at least).
    /// What comes out of order always is at once.
    pub delayed_ack: Option<Duration>,
    /// What is in order is not read at once, but when somebody takes it ([`Receiver::take`]), and stands in the window until then.
    pub is_taken: bool,
}

impl Default for ReceiverConfig {
    fn default() -> ReceiverConfig {
        ReceiverConfig {
            window_bytes: 1 << 30,
            delayed_ack: None,
            is_taken: false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// With data.
    pub segments: u64,
    /// With nothing new.
    pub duplicates: u64,
    /// Beyond the window.
    pub refused: u64,
    pub acknowledgements: u64,
}

/// Drive it by [`Receiver::handle`] and, when [`Receiver::poll_timeout`] has come,
/// [`Receiver::handle_timeout`]; then take what it says from [`Receiver::poll_transmit`].
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    window_scale: u8,
    /// Everything before it is delivered.
    next: u64,
    /// In order, and not taken yet.
    untaken: u64,
    /// Where the window that was told last ends.
    told_to: u64,
    segment_bytes_max: u64,
    out_of_order: Ranges,
    echo: Echo,
    /// The newest first: a byte of each range that was reported lately.
    recent: Vec<u64>,
    /// Segments that came in order since the last acknowledgement.
    unacknowledged: u32,
    delayed_until: Option<Instant>,
    to_send: Option<Acknowledgement>,
    pub counters: ReceiverCounters,
}

impl Receiver {
    pub fn new(config: ReceiverConfig) -> Receiver {
        let fits = |scale: &u8| config.window_bytes >> scale <= u64::from(u16::MAX);
        Receiver {
            window_scale: (0..WINDOW_SCALE_MAX).find(fits).unwrap_or(WINDOW_SCALE_MAX),
            config,
            next: 0,
            untaken: 0,
            told_to: 0,
            segment_bytes_max: 0,
            out_of_order: Ranges::default(),
            echo: Echo::default(),
            recent: Vec::new(),
            unacknowledged: 0,
            delayed_until: None,
            to_send: None,
            counters: ReceiverCounters::default(),
        }
    }

    /// Where the next byte that is delivered stands.
    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn out_of_order_bytes(&self) -> u64 {
        self.out_of_order.bytes()
    }

    /// What is delivered by this segment, which came with this codepoint.
    pub fn handle(&mut self, data: &Data, ecn: Ecn, now: Instant) -> Option<Range<u64>> {
        if data.syn {
            self.echo.open(data.cwr);
            self.acknowledge(true);
            return None;
        }
        if data.len == 0 {
            self.acknowledge(false);
            return None;
        }
        self.counters.segments += 1;
        let range = data.range();
        self.segment_bytes_max = self.segment_bytes_max.max(u64::from(data.len));
        if range.end > self.next + self.window_bytes() {
            self.counters.refused += 1;
            self.acknowledge(false);
            return None;
        }
        let echoes_at_once = self.echo.came(ecn, data.cwr);
        // The usual case: nothing is missing.
        if self.out_of_order.is_empty() && range.start == self.next {
            self.advance(range.end);
            match echoes_at_once {
                true => self.acknowledge(false),
                false => self.count_in_order(now),
            }
            return Some(range);
        }
        let fills = range.start.max(self.next)..range.end.max(self.next);
        if self.out_of_order.insert(fills) == 0 {
            self.counters.duplicates += 1;
            if range.start >= self.next {
                self.report_first(range.start);
            }
            self.acknowledge(false);
            return None;
        }
        let has_more = self.out_of_order.len() > 1;
        let delivered = self.deliver();
        if delivered.is_none() {
            self.report_first(range.start);
        }
        // Out of order, or a part of a gap or all of it: at once, so that what is lost is soon known.
        let plain =
            |delivered: &Range<u64>| !has_more && delivered.end == range.end && !echoes_at_once;
        if delivered.as_ref().is_some_and(plain) {
            self.count_in_order(now);
        } else {
            self.acknowledge(false);
        }
        delivered
    }

    fn advance(&mut self, to: u64) {
        if self.config.is_taken {
            self.untaken += to - self.next;
        }
        self.next = to;
    }

    /// What there is room for.
    fn window_bytes(&self) -> u64 {
        self.config.window_bytes - self.untaken
    }

    /// So much of what is in order has been taken. The other end hears of the room at once if it is worth it: two segments, or
    /// half of all (RFC 9293, 3.8.6.2.2).
    pub fn take(&mut self, bytes: u64) {
        self.untaken -= bytes;
        let worth = (2 * self.segment_bytes_max).min(self.config.window_bytes / 2);
        if self.next + self.window_bytes() >= self.told_to + worth {
            self.acknowledge(false);
        }
    }

    fn deliver(&mut self) -> Option<Range<u64>> {
        let first = self.out_of_order.containing(self.next)?;
        self.advance(first.end);
        self.out_of_order.remove_below(first.end);
        let (next, out_of_order) = (self.next, &self.out_of_order);
        self.recent
            .retain(|&byte| byte >= next && out_of_order.containing(byte).is_some());
        Some(first)
    }

    fn report_first(&mut self, byte: u64) {
        let within = self.out_of_order.containing(byte).expect("it is there");
        self.recent.retain(|other| !within.contains(other));
        self.recent.insert(0, byte);
        self.recent.truncate(SACK_BLOCKS_MAX);
    }

    fn count_in_order(&mut self, now: Instant) {
        self.unacknowledged += 1;
        match self.config.delayed_ack {
            Some(delay) if self.unacknowledged < 2 => {
                self.prepare(false);
                self.delayed_until = Some(now + delay);
            }
            _ => self.acknowledge(false),
        }
    }

    fn acknowledge(&mut self, syn: bool) {
        self.prepare(syn);
        self.delayed_until = None;
        self.unacknowledged = 0;
    }

    fn prepare(&mut self, syn: bool) {
        let block = |&byte: &u64| self.out_of_order.containing(byte).expect("kept in step");
        // The window of a SYN is not scaled (RFC 7323, 2.2).
        let scale = if syn { 0 } else { self.window_scale };
        let window_bytes = told_window(self.window_bytes(), scale);
        self.told_to = self.next + window_bytes;
        let sacks = self.recent.iter().map(block);
        let mut said = Acknowledgement::new(self.next, window_bytes, sacks);
        (said.syn, said.ece) = (syn, self.echo.says(syn));
        said.window_scale = self.window_scale;
        self.to_send = Some(said);
    }

    pub fn poll_transmit(&mut self) -> Option<Acknowledgement> {
        let acknowledgement = self.to_send.take_if(|_| self.delayed_until.is_none())?;
        self.counters.acknowledgements += 1;
        Some(acknowledgement)
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.delayed_until
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if self.delayed_until.is_some_and(|until| until <= now) {
            self.delayed_until = None;
            self.unacknowledged = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::Phase;

    const MSS: u32 = 100;

    fn receiver(delayed_ack: Option<Duration>) -> Receiver {
        Receiver::new(ReceiverConfig {
            window_bytes: 2000,
            delayed_ack,
            is_taken: false,
        })
    }

    /// Segment number `n` comes at `ms`: what is delivered, and what is said.
    fn comes(receiver: &mut Receiver, n: u64, ms: u64) -> (Option<Range<u64>>, Option<String>) {
        let data = Data {
            syn: false,
            cwr: false,
            offset: n * u64::from(MSS),
            len: MSS,
            phase: Phase::Steady,
        };
        let now = Instant::from_nanos(ms * 1_000_000);
        let delivered = receiver.handle(&data, Ecn::NotCapable, now);
        (delivered, said(receiver))
    }

    fn said(receiver: &mut Receiver) -> Option<String> {
        let acknowledgement = receiver.poll_transmit()?;
        let sacks: Vec<_> = acknowledgement.sacks().collect();
        Some(format!("{} {sacks:?}", acknowledgement.to))
    }

    #[test]
    fn each_segment_is_acknowledged_at_once_or_every_second_one() {
        let mut at_once = receiver(None);
        assert_eq!(comes(&mut at_once, 0, 0).1.as_deref(), Some("100 []"));
        assert_eq!(comes(&mut at_once, 1, 1).1.as_deref(), Some("200 []"));
        let mut delayed = receiver(Some(Duration::from_millis(40)));
        assert_eq!(comes(&mut delayed, 0, 0), (Some(0..100), None));
        assert_eq!(comes(&mut delayed, 1, 1).1.as_deref(), Some("200 []"));
        assert_eq!(delayed.poll_timeout(), None);
        assert_eq!(comes(&mut delayed, 2, 2), (Some(200..300), None));
        assert_eq!(
            delayed.poll_timeout(),
            Some(Instant::from_nanos(42_000_000))
        );
        delayed.handle_timeout(Instant::from_nanos(42_000_000));
        assert_eq!(said(&mut delayed).as_deref(), Some("300 []"));
        assert_eq!(said(&mut delayed), None);
    }

    #[test]
    fn a_gap_is_told_at_once_with_the_newest_range_first_and_so_is_its_end() {
        let mut receiver = receiver(Some(Duration::from_millis(40)));
        comes(&mut receiver, 0, 0);
        comes(&mut receiver, 1, 0);
        let said = |(_, said): (_, Option<String>)| said.expect("at once");
        assert_eq!(said(comes(&mut receiver, 3, 0)), "200 [300..400]");
        assert_eq!(said(comes(&mut receiver, 5, 0)), "200 [500..600, 300..400]");
        assert_eq!(said(comes(&mut receiver, 4, 0)), "200 [300..600]");
        assert_eq!(said(comes(&mut receiver, 7, 0)), "200 [700..800, 300..600]");
        // In order, with a gap behind it.
        let (delivered, said) = comes(&mut receiver, 2, 0);
        assert_eq!(delivered, Some(200..600));
        assert_eq!(said.as_deref(), Some("600 [700..800]"));
        assert_eq!(comes(&mut receiver, 6, 0).1.as_deref(), Some("800 []"));
        assert_eq!(comes(&mut receiver, 8, 0).1, None);
    }

    #[test]
    fn a_part_of_a_gap_is_told_at_once() {
        let mut receiver = receiver(Some(Duration::from_millis(40)));
        comes(&mut receiver, 2, 0);
        let (delivered, said) = comes(&mut receiver, 0, 0);
        assert_eq!(delivered, Some(0..100));
        assert_eq!(said.as_deref(), Some("100 [200..300]"));
    }

    #[test]
    fn what_came_before_is_counted_and_acknowledged_again() {
        let mut receiver = receiver(None);
        comes(&mut receiver, 0, 0);
        comes(&mut receiver, 2, 0);
        assert_eq!(
            comes(&mut receiver, 0, 0),
            (None, Some("100 [200..300]".into()))
        );
        assert_eq!(
            comes(&mut receiver, 2, 0),
            (None, Some("100 [200..300]".into()))
        );
        assert_eq!(receiver.counters.duplicates, 2);
    }

    /// RFC 2018, 4, of the first block.
    #[test]
    fn a_duplicate_behind_a_gap_is_answered_with_its_own_range_first() {
        let mut receiver = receiver(None);
        for n in [2, 4, 6, 8, 10] {
            comes(&mut receiver, n, 0);
        }
        let (_, said) = comes(&mut receiver, 6, 0);
        assert_eq!(
            said.as_deref(),
            Some("0 [600..700, 1000..1100, 800..900, 400..500]")
        );
        // It is not among the last four that were told of.
        let (_, said) = comes(&mut receiver, 2, 0);
        assert_eq!(
            said.as_deref(),
            Some("0 [200..300, 600..700, 1000..1100, 800..900]")
        );
    }

    #[test]
    fn a_question_is_answered_and_is_no_segment_with_data() {
        let mut receiver = receiver(Some(Duration::from_millis(40)));
        let question = Data {
            syn: false,
            cwr: false,
            offset: 0,
            len: 0,
            phase: Phase::Steady,
        };
        receiver.handle(&question, Ecn::NotCapable, Instant::ZERO);
        assert_eq!(said(&mut receiver).as_deref(), Some("0 []"));
        let counted = ReceiverCounters {
            acknowledgements: 1,
            ..ReceiverCounters::default()
        };
        assert_eq!(receiver.counters, counted);
    }

    #[test]
    fn the_store_holds_no_more_than_the_window() {
        let mut receiver = receiver(None);
        for n in 1..20 {
            assert!(comes(&mut receiver, n, 0).1.is_some());
        }
        assert_eq!(receiver.out_of_order_bytes(), 1900);
        comes(&mut receiver, 20, 0);
        assert_eq!(
            (receiver.out_of_order_bytes(), receiver.counters.refused),
            (1900, 1)
        );
        assert_eq!(comes(&mut receiver, 0, 0).0, Some(0..2000));
    }

    #[test]
    fn what_nobody_takes_stands_in_the_window_and_room_is_told_when_it_is_worth_it() {
        let mut receiver = Receiver::new(ReceiverConfig {
            window_bytes: 1000,
            delayed_ack: None,
            is_taken: true,
        });
        let room = |receiver: &mut Receiver| receiver.poll_transmit().map(|said| said.window_bytes);
        for n in 0..10 {
            let data = Data {
                syn: false,
                cwr: false,
                offset: n * u64::from(MSS),
                len: MSS,
                phase: Phase::Steady,
            };
            assert!(
                receiver
                    .handle(&data, Ecn::NotCapable, Instant::ZERO)
                    .is_some()
            );
            assert_eq!(room(&mut receiver), Some(900 - 100 * n));
        }
        // The eleventh has no room.
        assert_eq!(comes(&mut receiver, 10, 0).0, None);
        assert_eq!(receiver.counters.refused, 1);
        receiver.take(100);
        assert_eq!(room(&mut receiver), None);
        receiver.take(100);
        assert_eq!(room(&mut receiver), Some(200));
        assert_eq!(comes(&mut receiver, 10, 0).0, Some(1000..1100));
    }

    #[test]
    fn no_more_ranges_are_told_than_options_have_room_for() {
        let mut receiver = receiver(None);
        for n in [2, 4, 6, 8, 10] {
            comes(&mut receiver, n, 0);
        }
        let (_, said) = comes(&mut receiver, 12, 0);
        assert_eq!(
            said.as_deref(),
            Some("0 [1200..1300, 1000..1100, 800..900, 600..700]")
        );
    }
}
