//! Which of the configured faults have happened.

use super::Wire;
use crate::net::carried::Carried;

impl<F: Carried> Wire<F> {
    /// The configured faults, and whether each has happened yet.
    pub fn faults(&self) -> Vec<(&'static str, bool)> {
        let mut faults = Vec::new();
        let mut add = |configured: bool, happened: bool, name| {
            if configured {
                faults.push((name, happened));
            }
        };
        add(self.loss.is_some(), self.counters.lost > 0, "loss");
        let hit = self.counters.bit_errors > 0;
        add(self.bit_errors.is_some(), hit, "bit errors");
        let struck = self.counters.corrupted + self.counters.altered > 0;
        add(self.corruption.is_some(), struck, "corruption");
        add(
            self.duplication.is_some(),
            self.counters.more_copies > 0,
            "duplication",
        );
        let jittered = self.jitter.as_ref().is_some_and(|j| j.frames_moved > 0);
        add(self.jitter.is_some(), jittered, "jitter");
        let overtaken = self
            .reordering
            .as_ref()
            .is_some_and(|r| r.frames_overtaking > 0);
        add(self.reordering.is_some(), overtaken, "reordering");
        faults
    }

    /// Names of the configured faults that have not happened yet.
    pub fn faults_missing(&self) -> Vec<&'static str> {
        let missing = |(name, happened): (_, bool)| (!happened).then_some(name);
        self.faults().into_iter().filter_map(missing).collect()
    }

    pub fn duplicates(&self) -> bool {
        self.duplication.is_some()
    }

    pub fn reorders(&self) -> bool {
        self.config.reorders()
    }

    pub fn alters(&self) -> bool {
        self.counters.altered > 0
    }
}
