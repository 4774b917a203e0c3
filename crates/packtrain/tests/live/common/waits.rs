//! How long the frames of a class have waited before they left, between two looks.

use packtrain::status::{HoldBucket, StatusDocument};

/// Frames by how long, the shortest first; those that left at once are not among them.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    pub frames: u64,
    buckets: Vec<HoldBucket>,
}

impl Waits {
    pub fn between(before: &StatusDocument, after: &StatusDocument, class: &str) -> Waits {
        let of = |status: &StatusDocument| {
            let found = status.classes.iter().find(|known| known.name == class);
            found.map(|class| class.waited.clone()).unwrap_or_default()
        };
        let (before, after) = (of(before), of(after));
        let known = |below_s: f64| {
            let found = before.buckets.iter().find(|b| b.below_s == below_s);
            found.map_or(0, |bucket| bucket.trains)
        };
        let buckets = after.buckets.iter().map(|bucket| HoldBucket {
            trains: bucket.trains - known(bucket.below_s),
            ..*bucket
        });
        Waits {
            frames: after.trains - before.trains,
            buckets: buckets.filter(|bucket| bucket.trains > 0).collect(),
        }
    }

    /// What share of them waited for longer, as far as the buckets tell.
    pub fn share_longer_than(&self, seconds: f64) -> f64 {
        let longer = self.buckets.iter().filter(|b| b.below_s > seconds);
        let longer: u64 = longer.map(|bucket| bucket.trains).sum();
        longer as f64 / self.frames.max(1) as f64
    }
}
