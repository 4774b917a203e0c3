//! Small frames where the processors are what is short: packing shares what a frame costs.

use super::CLASSES;
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::stage::Line;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, parts};

const AGAINST_DIRECT: Target = Target::RatioAtLeast(1.3);

/// As `bench path --part messages` sends them: by the processor of the sender, which takes in what it has sent.
pub fn messages(bench: &mut Bench, line: &Line) -> Result<()> {
    let part = "64 B UDP, unshaped, as many as a processor sends";
    line.receive_where_it_comes()?;
    let runs = parts::small_messages(bench, part, line, &CLASSES)?;
    line.receive_as_set()?;
    bench.compare_carried(
        part,
        format!("{part}: delivered a second"),
        (Unit::PerSecond, Target::RatioShown),
        runs.clone(),
    );
    bench.compare_carried(
        part,
        "  … against a line that sends all directly",
        (Unit::PerSecond, AGAINST_DIRECT),
        runs.against_best_of(&[Way::Direct]),
    );
    Ok(())
}
