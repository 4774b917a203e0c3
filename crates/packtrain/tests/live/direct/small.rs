//! More small frames than anything carries: what goes directly of them is measured, and nothing overtakes meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use packtrain::lab::messages::{self, Load};

use crate::common::cabled::{address, status};
use crate::common::direct::wait_for_direct;
use crate::common::{B, Pair};

/// Floods after each other that it may take until they are seen to be many.
const FLOODS_MAX: usize = 20;
/// What is many (`direct/small_frames.rs`).
const MANY_PER_SECOND: u64 = 40_000;

#[test]
fn how_many_small_frames_go_directly_is_told_to_the_engine_that_takes_over() {
    live!();
    let pair = Pair::up("small", 1500).unwrap();
    wait_for_direct(&pair.a);
    let at = SocketAddr::new(address(B), 7110);
    let flood = Load {
        size: 64,
        duration: Duration::from_millis(500),
        rate_per_second: None,
        real_time: false,
    };
    let mut floods = 0..FLOODS_MAX;
    let told = floods.find_map(|_| {
        let report = messages::measure(&pair.a.namespace, &pair.b.namespace, at, flood).unwrap();
        assert_eq!((report.reordered, report.duplicated), (0, 0), "{report:?}");
        let direct = status(&pair.a).direct;
        let per_second = direct.small_frames_per_second.direct?;
        (direct.closures_because.congestion > 0).then_some(per_second)
    });
    let per_second = told.unwrap_or_else(|| panic!("{:?}", status(&pair.a).direct));
    // No machine sends more: it is a rate, and no sum.
    assert!(
        (MANY_PER_SECOND..20_000_000).contains(&per_second),
        "{per_second}"
    );
}
