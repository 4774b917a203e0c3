//! The queue between driver and stack, and what it tells the driver: `netif_rx` of Linux 2.4 (net/core/dev.c).

use std::collections::VecDeque;

use super::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacklogConfig {
    /// `netdev_max_backlog`. A frame is let in while no more than this wait, so that there can be one more.
    pub frames_max: usize,
    /// `no_cong`, `lo_cong`, `mod_cong`: an average above them is congestion, low, moderate or high.
    pub low_above: usize,
    pub moderate_above: usize,
    pub high_above: usize,
}

impl Default for BacklogConfig {
    fn default() -> BacklogConfig {
        BacklogConfig {
            frames_max: 300,
            low_above: 20,
            moderate_above: 100,
            high_above: 290,
        }
    }
}

/// NET_RX_SUCCESS, NET_RX_CN_LOW, NET_RX_CN_MOD, NET_RX_CN_HIGH, NET_RX_DROP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Level {
    Success,
    Low,
    Moderate,
    High,
    Drop,
}

impl Level {
    pub const ALL: [Level; 5] = [
        Level::Success,
        Level::Low,
        Level::Moderate,
        Level::High,
        Level::Drop,
    ];
}

#[derive(Debug)]
pub struct Backlog {
    config: BacklogConfig,
    frames: VecDeque<Kind>,
    /// Of the length, each new one counting half, in whole frames as the kernel has them.
    average: usize,
    /// It was full, and takes nothing until it is empty.
    throttle: bool,
}

impl Backlog {
    pub fn new(config: BacklogConfig) -> Backlog {
        Backlog {
            config,
            frames: VecDeque::with_capacity(config.frames_max + 1),
            average: 0,
            throttle: false,
        }
    }

    /// What it says of the frame: it has taken it unless that is [`Level::Drop`].
    pub fn offer(&mut self, kind: Kind) -> Level {
        if self.frames.len() > self.config.frames_max {
            self.throttle = true;
            return Level::Drop;
        }
        match self.frames.is_empty() {
            true => self.throttle = false,
            false if self.throttle => return Level::Drop,
            false => {}
        }
        self.frames.push_back(kind);
        self.average = (self.average >> 1) + (self.frames.len() >> 1);
        match self.average {
            above if above > self.config.high_above => Level::High,
            above if above > self.config.moderate_above => Level::Moderate,
            above if above > self.config.low_above => Level::Low,
            _ => Level::Success,
        }
    }

    pub fn take(&mut self) -> Option<Kind> {
        self.frames.pop_front()
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The average of an even rise is one frame and a half behind: half of what each step adds, rounded down twice.
    #[test]
    fn a_queue_that_nobody_empties_says_more_and_more_until_it_is_full() {
        let mut backlog = Backlog::new(BacklogConfig::default());
        let said: Vec<Level> = (0..305).map(|_| backlog.offer(Kind::Unicast)).collect();
        let first = |level| said.iter().position(|&each| each == level);
        assert_eq!(first(Level::Success), Some(0));
        assert_eq!(first(Level::Drop), Some(301));
        for (level, above) in [(Level::Low, 20), (Level::Moderate, 100), (Level::High, 290)] {
            let at = first(level).expect("it rises to the end");
            assert!((above..above + 5).contains(&at), "{level:?} at {at}");
        }
        assert!(said.windows(2).all(|pair| pair[0] as u8 <= pair[1] as u8));
        assert_eq!(backlog.len(), 301);
    }

    #[test]
    fn one_that_was_full_takes_nothing_until_it_is_empty() {
        let mut backlog = Backlog::new(BacklogConfig {
            frames_max: 1,
            ..BacklogConfig::default()
        });
        let offer = |backlog: &mut Backlog| backlog.offer(Kind::Unicast);
        assert_eq!(offer(&mut backlog), Level::Success);
        assert_eq!(offer(&mut backlog), Level::Success);
        assert_eq!(offer(&mut backlog), Level::Drop);
        backlog.take();
        assert_eq!((offer(&mut backlog), backlog.len()), (Level::Drop, 1));
        backlog.take();
        assert_eq!((offer(&mut backlog), backlog.len()), (Level::Success, 1));
        assert_eq!(offer(&mut backlog), Level::Success);
    }
}
