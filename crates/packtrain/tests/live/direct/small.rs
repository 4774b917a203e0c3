//! More small frames than anything carries: what either way carries is measured, and nothing overtakes meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use packtrain::lab::messages::{self, Load};

use crate::common::cabled::{address, status};
use crate::common::direct::wait_for_direct;
use crate::common::{B, Pair};

/// Floods after each other that it may take until both ways were seen at their limit: other tests take processors too.
const FLOODS_MAX: usize = 20;
/// What is many (`direct/small_frames.rs`).
const MANY_PER_SECOND: u64 = 40_000;

#[test]
fn what_either_way_carries_of_many_small_frames_is_measured() {
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
    let is_many = |rate: Option<u64>| rate.is_some_and(|rate| rate > MANY_PER_SECOND);
    let mut floods = 0..FLOODS_MAX;
    let known = floods.find_map(|_| {
        let report = messages::measure(&pair.a.namespace, &pair.b.namespace, at, flood).unwrap();
        assert_eq!((report.reordered, report.duplicated), (0, 0), "{report:?}");
        let direct = status(&pair.a).direct;
        let rates = direct.small_frames_per_second;
        (is_many(rates.direct) && is_many(rates.engine)).then_some(direct)
    });
    let direct = known.unwrap_or_else(|| panic!("{:?}", status(&pair.a).direct));
    assert!(direct.closures_because.congestion > 0, "{direct:?}");
    let text = pair.a.packtrain(&["status", "pt0"]).unwrap();
    assert!(text.contains("when many: "), "{text}");
}
