//! A link on which nothing comes any more is given up soon, while another one lives, though nobody is told.
//!
//! Asked of the end to which nothing comes: its engine may call such a path open ([`PathState::Open`]) for twice the detection
//! time that it states and once that of the other link, and what the host's lateness and the two links' round trips add. What counts as another one that
//! lives has been whole since long before, is called open, and its session is up. The other end is told by a link that
//! may be dead in both directions, or finds out itself.

use packtrain_proto::stats::{LivenessSnapshot, PathSnapshot, PathState, Snapshot};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::liveness::State;

use super::work_conserving::LinkSeen;

/// Between two looks at a host, with its own.
const LOOK: Duration = Duration::from_millis(50);
/// A link has to be whole for so long to show that others are not.
const WHOLE: Duration = Duration::from_secs(1);

/// What its messages may take: where they stand behind others, more than by the wire alone.
fn patience(link: &LinkSeen, liveness: &LivenessSnapshot) -> Duration {
    link.patience.max(liveness.round_trip.unwrap_or_default())
}

#[derive(Debug, Default)]
pub struct FoundDead {
    /// Paths that were dead, and were seen to be known for that.
    pub found: u64,
}

impl FoundDead {
    /// Looks at all links of a station.
    pub fn look(
        &mut self,
        links: &[LinkSeen],
        snapshot: &Snapshot,
        now: Instant,
    ) -> Result<(), String> {
        for peer in snapshot.peers.iter().filter(|peer| peer.up && !peer.away) {
            let of = |path: &PathSnapshot| links.iter().find(|link| link.id == path.link);
            for path in &peer.paths {
                let Some((link, since)) = of(path).and_then(|link| {
                    let (since, to_us) = link.silent_since?;
                    to_us.then_some((link, since))
                }) else {
                    continue;
                };
                let is_up = |path: &&PathSnapshot| {
                    let liveness = path.liveness.as_ref();
                    path.state == PathState::Open && liveness.is_some_and(|l| l.state == State::Up)
                };
                if path.state == PathState::Silent {
                    self.found += 1;
                }
                let Some(liveness) = Some(path).filter(is_up).and_then(|p| p.liveness.as_ref())
                else {
                    continue;
                };
                let lives =
                    |other: &LinkSeen| other.well_since.is_some_and(|at| at + WHOLE < since);
                let others = peer.paths.iter().filter(|other| other.link != path.link);
                // It has to be heard a few times, and a slow one is not heard so often.
                let others = others.filter(is_up).filter_map(|other| {
                    let link = of(other).filter(|link| lives(link))?;
                    let liveness = other.liveness.as_ref()?;
                    Some(4 * patience(link, liveness) + liveness.detection_time)
                });
                let Some(other) = others.min() else {
                    continue;
                };
                let patience = LOOK + 4 * patience(link, liveness) + other;
                if now.since(since) > 2 * liveness.detection_time + patience {
                    return Err(format!(
                        "nothing comes by link {} of {:?} since {since:?}, and it is open still, with {liveness:?}",
                        path.link.0, peer.address
                    ));
                }
            }
        }
        Ok(())
    }
}
