//! How much of what links lose may go again: a part of what is sent anew. A link that loses more is not mended by
//! sending it again.

/// One train again for so many new ones.
const NEW_TRAINS: u32 = 4;
/// … and so many at once.
const BURST_TRAINS: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairBudget {
    /// In parts of a train, of which [`NEW_TRAINS`] make one.
    parts: u32,
}

impl Default for RepairBudget {
    fn default() -> RepairBudget {
        RepairBudget {
            parts: BURST_TRAINS * NEW_TRAINS,
        }
    }
}

impl RepairBudget {
    pub fn on_new_train(&mut self) {
        self.parts = (self.parts + 1).min(BURST_TRAINS * NEW_TRAINS);
    }

    /// Whether one more may go again; then it counts.
    pub fn take(&mut self) -> bool {
        let rest = self.parts.checked_sub(NEW_TRAINS);
        self.parts = rest.unwrap_or(self.parts);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_a_quarter_of_what_is_new() {
        let mut budget = RepairBudget::default();
        let taken =
            |budget: &mut RepairBudget| std::iter::from_fn(|| budget.take().then_some(())).count();
        assert_eq!(taken(&mut budget), 256);
        for _ in 0..43 {
            budget.on_new_train();
        }
        assert_eq!(taken(&mut budget), 10);
        budget.on_new_train();
        assert!(budget.take(), "what is left of three counts");
        for _ in 0..1 << 20 {
            budget.on_new_train();
        }
        assert_eq!(taken(&mut budget), 256);
    }
}
