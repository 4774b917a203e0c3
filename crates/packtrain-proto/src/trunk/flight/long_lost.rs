//! Trains that are lost because they are long: what stands between two links may have come to take less.

/// So many in a row are no chance.
const MANY: u8 = 3;

/// Lost since one that was as long has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongLost {
    /// Bytes of the shortest of them.
    shortest: u64,
    count: u8,
}

impl Default for LongLost {
    fn default() -> LongLost {
        LongLost {
            shortest: u64::MAX,
            count: 0,
        }
    }
}

impl LongLost {
    pub(super) fn on_lost(&mut self, bytes: u64) {
        if bytes > 0 {
            self.shortest = self.shortest.min(bytes);
            self.count = self.count.saturating_add(1);
        }
    }

    pub(super) fn on_arrived(&mut self, bytes: u64) {
        if bytes >= self.shortest {
            *self = LongLost::default();
        }
    }

    /// Says so once.
    pub(super) fn take_many(&mut self) -> bool {
        let are_many = self.count >= MANY;
        if are_many {
            *self = LongLost::default();
        }
        are_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_that_were_longer_than_all_that_came_are_no_chance() {
        let mut lost = LongLost::default();
        let mut go = |lost_bytes: &[u64], arrived: &[u64]| {
            lost_bytes.iter().for_each(|&bytes| lost.on_lost(bytes));
            arrived.iter().for_each(|&bytes| lost.on_arrived(bytes));
            lost.take_many()
        };
        assert!(!go(&[9000, 9000], &[100, 1500]));
        assert!(go(&[8000], &[1500]));
        assert!(!go(&[8000], &[]), "said once");
        assert!(!go(&[9000, 9000], &[8000]), "as long as one of them");
        assert!(!go(&[100, 9000, 0, 9000], &[200]));
        assert!(!go(&[0, 0, 0, 0], &[]), "probes have no length");
    }
}
