//! A run of which the wires cannot tell is made again.

use std::cell::Cell;

use super::stage::Carried;
use crate::lab::{Error, Result};

const TRIES: usize = 3;
/// As long as the smallest of the buffers holds: what comes at once after that is the machine's burst, and no sender's.
const AWAY_MAX_MS: f64 = 10.0;

/// What was measured, or why it says nothing.
pub type Flawed<T> = std::result::Result<T, String>;

/// Of a machine whose wires are away each time the last one is taken, with how long they were.
pub fn until_wires_tell<T>(
    made_again: &Cell<u32>,
    mut run: impl FnMut() -> Result<Flawed<T>>,
    carried: impl Fn(&T) -> Vec<Carried>,
) -> Result<T> {
    let mut flaw = String::new();
    for left in (0..TRIES).rev() {
        match run()? {
            Err(why) => flaw = why,
            Ok(measured) => match away(&carried(&measured)) {
                Some(why) if left > 0 => flaw = why,
                _ => return Ok(measured),
            },
        }
        if left > 0 {
            made_again.set(made_again.get() + 1);
            eprintln!("once more: {flaw}");
        }
    }
    Err(Error::Unexpected {
        program: "the lab's wires".into(),
        text: flaw,
    })
}

fn away(carried: &[Carried]) -> Option<String> {
    let longest = carried.iter().map(|of| of.lateness.away_max_ms);
    let longest = longest.fold(0.0, f64::max);
    (longest > AWAY_MAX_MS).then(|| format!("the wires were away for {longest:.0} ms at once"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs with these numbers of milliseconds for which the wires were away, or with a flaw; which one was taken, and how many were made.
    fn taken(runs: &[Flawed<f64>]) -> (Result<f64>, usize) {
        let mut made = 0;
        let again = Cell::new(0);
        let taken = until_wires_tell(
            &again,
            || {
                made += 1;
                Ok(runs[made - 1].clone())
            },
            |&away_max_ms| {
                let mut carried = Carried::default();
                carried.lateness.away_max_ms = away_max_ms;
                vec![Carried::default(), carried]
            },
        );
        assert_eq!(again.get() as usize, made - 1);
        (taken, made)
    }

    #[test]
    fn the_first_one_is_taken_whose_wires_were_in_time_or_else_the_last() {
        let flaw = || Err("3 frames are not in the capture".to_owned());
        let of = |runs: &[Flawed<f64>]| {
            let (taken, made) = taken(runs);
            (taken.unwrap(), made)
        };
        assert_eq!(of(&[Ok(10.0)]), (10.0, 1));
        assert_eq!(of(&[Ok(10.1), flaw(), Ok(0.0)]), (0.0, 3));
        assert_eq!(of(&[Ok(30.0), Ok(20.0), Ok(40.0)]), (40.0, 3));
        let (taken, made) = taken(&[flaw(), Ok(11.0), flaw()]);
        assert_eq!(made, 3);
        assert!(taken.unwrap_err().to_string().contains("3 frames"));
    }
}
