//! The most that something carries, found in few trials: each of them takes seconds.

/// What has been carried, and what has not. Whoever carries more carries less as well.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    guess: usize,
    /// The first step away from what has been tried.
    step: usize,
    carried: usize,
    not_carried: Option<usize>,
}

impl Search {
    /// Near `guess`, give or take `step`.
    pub fn near(guess: usize, step: usize) -> Search {
        Search {
            guess: guess.max(1),
            step: step.max(1),
            carried: 0,
            not_carried: None,
        }
    }

    /// What to try next; nothing, when it is known to the fiftieth part.
    pub fn next(&self) -> Option<usize> {
        match (self.carried, self.not_carried) {
            (0, None) => Some(self.guess),
            (carried, None) => Some(carried + self.step),
            (carried, Some(more)) if more - carried <= 1.max(carried / 50) => None,
            // Nothing yet: as far below as was tried above, and then by halves.
            (0, Some(more)) => Some(more.saturating_sub(self.step).max(more / 2)),
            (carried, Some(more)) => Some(usize::midpoint(carried, more)),
        }
    }

    pub fn tell(&mut self, tried: usize, is_carried: bool) {
        self.step = match (is_carried, self.not_carried) {
            // Once more the same way: faster.
            (true, None) if self.carried > 0 => 2 * self.step,
            (false, Some(_)) if self.carried == 0 => 2 * self.step,
            _ => self.step,
        };
        match is_carried {
            true => self.carried = self.carried.max(tried),
            false => {
                let less = self.not_carried.unwrap_or(tried);
                self.not_carried = Some(less.min(tried));
            }
        }
    }

    pub fn carried(&self) -> usize {
        self.carried
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was found, and in how many trials.
    fn found(mut search: Search, most: usize) -> (usize, usize) {
        let mut trials = 0;
        while let Some(tried) = search.next() {
            search.tell(tried, tried <= most);
            trials += 1;
            assert!(trials < 30, "{search:?}");
        }
        (search.carried(), trials)
    }

    #[test]
    fn the_most_that_is_carried_is_found_wherever_the_search_begins() {
        for most in [0, 1, 2, 11, 12, 34, 49] {
            for guess in [0, 1, 5, 11, 60, 200] {
                for step in [0, 1, 3, 10] {
                    let (carried, _) = found(Search::near(guess, step), most);
                    assert_eq!(carried, most, "near {guess}, step {step}");
                }
            }
        }
        let (carried, _) = found(Search::near(100, 10), 1000);
        assert!((980..=1000).contains(&carried), "{carried}");
    }

    #[test]
    fn a_good_guess_takes_few_trials() {
        assert_eq!(found(Search::near(11, 1), 11), (11, 2));
        assert_eq!(found(Search::near(11, 1), 10), (10, 2));
        assert!(found(Search::near(30, 3), 34).1 <= 6);
        assert!(found(Search::near(30, 3), 26).1 <= 6);
    }
}
