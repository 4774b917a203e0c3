//! What is short behind the link, where nobody sees a queue: a wire that carries so many packets a second
//! and no more, which nobody has told the line. How long until that is found, and what is delivered then.

use std::path::Path;
use std::time::Duration;

use super::LINES;
use crate::lab::capped::{Capped, Look, load_begins};
use crate::lab::figure::{Target, Unit};
use crate::lab::messages::Load;
use crate::lab::one_link::Bench;
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::way::Way;
use crate::lab::{Result, pause};

/// Six times what the wire carries one by one, and little for it when they are packed. Fewer than those
/// that close the direct path because they are many.
const MESSAGES: Load = Load {
    size: 40,
    duration: Duration::from_secs(3),
    rate_per_second: Some(30_000),
    real_time: false,
};
const SETTLE: Duration = Duration::from_millis(500);
const NAME: &str = "pt0";

/// From the last look before there was a load until the first at which the path was closed.
fn found_after(looks: &[Look]) -> Option<Duration> {
    let begin = load_begins(looks)?;
    let first = looks.first()?;
    let closed = looks.iter().find(|look| look.closures > first.closures)?;
    Some(closed.at.saturating_duration_since(begin.at))
}

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let part = "40 B UDP, a wire of 5000 packets/s";
    let mut delivered = Runs::of_ways(&LINES);
    let mut found_us = Vec::new();
    for round in 0..bench.rounds {
        eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
        // The bare wire is tried beside the line that has nothing to find out.
        let engine = Capped::set("capengine", packtrain, &["--path", "engine"])?;
        delivered.push(Way::Bare, engine.send(engine.bare, MESSAGES, 1)?);
        pause(SETTLE);
        delivered.push(
            Way::Engine,
            engine.counted(bench, (part, "engine"), || {
                engine.send(engine.pt0, MESSAGES, 1)
            })?,
        );
        drop(engine);
        let auto = Capped::set("capauto", packtrain, &[])?;
        let load = || auto.send(auto.pt0, MESSAGES, 1);
        let (report, looks) = auto.counted(bench, (part, NAME), || auto.under(load))?;
        delivered.push(Way::Pt0, report);
        let found = found_after(&looks).map_or(f64::NAN, |after| after.as_secs_f64());
        found_us.push(found * 1e6);
    }
    bench.compare(
        "a wire of 5000 packets/s that nobody configured, under 30,000 messages/s: found after",
        Unit::Microseconds,
        Target::AtMost(0.5e6),
        Runs::of_pt0(found_us),
    );
    bench.compare(
        "  … delivered over it",
        Unit::PerSecond,
        Target::RatioShown,
        delivered.map(|report| report.delivered_per_second),
    );
    bench.compare(
        "  … p99 delay",
        Unit::Microseconds,
        Target::RatioShown,
        delivered.map(|report| report.delay_p99_us),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::now;

    #[test]
    fn it_is_found_from_the_first_load_on_until_the_path_closes() {
        let start = now();
        let look = |ms, frames, closures| Look {
            at: start + Duration::from_millis(ms),
            direct_frames: frames,
            closures,
            trains: 0,
            packed_frames: 0,
        };
        let idle = [look(0, 100, 1), look(2, 103, 1)];
        let loaded = [look(4, 160, 1), look(6, 220, 1)];
        let closed = [look(8, 260, 2), look(10, 260, 2)];
        let all = [&idle[..], &loaded, &closed].concat();
        assert_eq!(found_after(&all), Some(Duration::from_millis(6)));
        assert_eq!(found_after(&[&idle[..], &loaded].concat()), None);
        assert_eq!(found_after(&[]), None);
        // Closed by something else before there was any load: not earlier than at once.
        let at_once = [look(0, 100, 1), look(2, 100, 2)];
        assert_eq!(found_after(&at_once), Some(Duration::ZERO));
    }
}
