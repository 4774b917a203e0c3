//! Waiting for something that is about to happen, and not for ever.

use std::time::Duration;

/// How long the process of a line that was killed may take to be gone.
pub const GOING_WAIT_MAX: Duration = Duration::from_secs(3);

/// Between two looks.
const STEP: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub struct Patience {
    steps_left: u32,
}

impl Patience {
    pub fn of(at_most: Duration) -> Patience {
        Patience {
            steps_left: (at_most.as_millis() / STEP.as_millis()) as u32,
        }
    }

    /// Waits a little, and says so; `false` at once when it has waited long enough.
    #[allow(clippy::disallowed_methods)] // a command that a person waits for, not the daemon
    pub fn wait(&mut self) -> bool {
        let Some(left) = self.steps_left.checked_sub(1) else {
            return false;
        };
        self.steps_left = left;
        std::thread::sleep(STEP);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends() {
        let mut patience = Patience::of(Duration::from_millis(35));
        assert_eq!(
            [(); 5].map(|()| patience.wait()),
            [true, true, true, false, false]
        );
    }
}
