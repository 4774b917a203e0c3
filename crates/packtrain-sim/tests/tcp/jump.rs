//! A jump start: what it saves where the path is as it was, and what it costs where it is not.

use packtrain_proto::pacing::path::Path;
use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::rate::RateConfig;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::dumbbell::Dumbbell;
use packtrain_sim::tcp::pacer::{RoundTrip, SpacingConfig};

use crate::support::{FRAME_BYTES, Line, MSS, PACKET_BYTES, ms};

/// 599 Mbit/s over 198 ms.
const PAPERS: Path = Path {
    rate_bytes_per_s: 599_000_000 / 8 * MSS / PACKET_BYTES,
    rtt_min_us: 198_000,
};
const SEGMENTS: u64 = 40_000;

/// The paper's path, at so much of its rate, with a buffer of a twentieth of what is under way then.
fn papers(divisor: u64) -> Line {
    let bottleneck_bps = 599_000_000 / divisor;
    Line {
        rtt: ms(198),
        bottleneck_bps,
        buffer_bytes: (bottleneck_bps / 8 * 198 / 1000 / 20) as usize,
        ..Line::sends(SEGMENTS)
    }
}

fn spaced(mut line: Line, path: Option<Path>) -> Line {
    line.sender.spacing = Some(SpacingConfig {
        precision: ms(1),
        path,
        round_trip: RoundTrip::Least,
    });
    line
}

fn with(line: Line, path: Option<Path>) -> Dumbbell {
    spaced(line, path).run()
}

fn carried_after(dumbbell: &Dumbbell) -> Duration {
    let done = dumbbell.arrived(0).had(SEGMENTS * MSS).expect("all");
    done.since(Instant::ZERO)
}

/// The handshake, the first flight, half of the window, and then all that there is at the path's rate.
#[test]
fn the_papers_path_is_full_after_three_round_trips() {
    let dumbbell = with(papers(1), Some(PAPERS));
    assert_eq!(dumbbell.router().dropped(), 0);
    let rest = SEGMENTS - u64::from(PAPERS.jump(1, 0, MSS as u32));
    let at_the_paths_rate = rest as u32 * papers(1).service();
    let expected = 3 * ms(198) + at_the_paths_rate + ms(99);
    let took = carried_after(&dumbbell);
    let off = took.max(expected) - took.min(expected);
    assert!(off < ms(25), "{took:?}, expected {expected:?}");
    assert!(dumbbell.router().bytes_max() <= 4 * FRAME_BYTES);
}

/// Acknowledgements are held up for 20 ms, as by a host that is busy with something else, and then they are all there. Nothing is made even
/// where T is so long that it could not be, and what is ordinary then answers in a burst.
#[test]
fn a_bunch_of_acknowledgements_is_no_burst_where_segments_leave_evenly() {
    let lost = |precision: Duration| {
        let mut line = spaced(papers(1), Some(PAPERS));
        line.sender.spacing.as_mut().expect("spaced").precision = precision;
        let mut dumbbell = line.dumbbell();
        let goes_on = |dumbbell: &mut Dumbbell, until: Duration| {
            dumbbell.run_while(|dumbbell| dumbbell.now() < Instant::ZERO + until);
        };
        goes_on(&mut dumbbell, ms(1000));
        let free = WireConfig::unrated(line.rtt / 2);
        // An acknowledgement takes 20 ms.
        dumbbell.set_way_back(&WireConfig {
            rate: Some(RateConfig::ethernet(84 * 8 * 50)),
            ..free.clone()
        });
        goes_on(&mut dumbbell, ms(1005));
        dumbbell.set_way_back(&free);
        dumbbell.run(Duration::from_secs(600));
        assert!(dumbbell.is_done());
        dumbbell.router().dropped()
    };
    assert_eq!(lost(ms(1)), 0);
    assert!(lost(ms(20)) > 100);
}

/// A path that has become much slower than is remembered: at most the window of the jump is lost, and the connection is done sooner
/// than one that knows nothing, which finds the path by overshooting it.
#[test]
fn a_memory_that_is_far_too_large_costs_the_window_of_the_jump_at_most() {
    let jump = u64::from(PAPERS.jump(1, 0, MSS as u32));
    for divisor in [3, 4, 8, 16, 32] {
        let unknown = with(papers(divisor), None);
        let jumped = with(papers(divisor), Some(PAPERS));
        let lost = jumped.router().dropped();
        assert!(
            lost > jump / 3 && lost <= jump,
            "{divisor}: {lost} of {jump}"
        );
        let (took, took_unknown) = (carried_after(&jumped), carried_after(&unknown));
        assert!(took < took_unknown, "{divisor}: {took:?} {took_unknown:?}");
    }
}

/// A single segment is lost of the jump, and not for want of room. Half of all that arrived is the window then, and not half of what
/// had arrived before it.
#[test]
fn one_loss_does_not_throw_away_what_the_rest_of_the_jump_has_shown() {
    let jump = u64::from(PAPERS.jump(1, 0, MSS as u32));
    // The one that opens the connection is the first, and ten are the first flight.
    for lost in [12, 100, 3000, 4900] {
        let mut line = papers(1);
        line.lost = vec![lost];
        let mut dumbbell = spaced(line.clone(), Some(PAPERS)).dumbbell();
        dumbbell.run_while(|dumbbell| {
            let recoveries = dumbbell.sender(0).counters.fast_recoveries;
            recoveries == 0 || dumbbell.sender(0).acknowledged() < (jump + 10) * MSS
        });
        let window = dumbbell.sender(0).window().cwnd_segments();
        assert!(window > jump * 2 / 5, "segment {lost}: {window} of {jump}");
        let unknown = with(line, None);
        dumbbell.run(Duration::from_secs(600));
        assert!(carried_after(&dumbbell) < carried_after(&unknown), "{lost}");
    }
}

/// Over drawn paths that have become slower, two to forty times: each segment of a jump is lost once, and what is sent after it is no
/// overshoot.
#[test]
fn on_no_path_is_more_lost_by_a_jump_than_it_sent() {
    let mut lost_something = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let rtt_ms = random.magnitude(5, 300);
        let divisor = random.between(2, 40);
        let mbps = random
            .magnitude(10, 100)
            .min(8 * 1500 * 1500 / 1000 / rtt_ms)
            .max(10);
        let path = Path {
            rate_bytes_per_s: mbps * 1_000_000 / 8 * MSS / PACKET_BYTES,
            rtt_min_us: rtt_ms as u32 * 1000,
        };
        let bottleneck_bps = mbps * 1_000_000 / divisor;
        let line = Line {
            rtt: ms(rtt_ms),
            bottleneck_bps,
            buffer_bytes: ((bottleneck_bps / 8 * rtt_ms / 1000 / 20) as usize).max(4 * FRAME_BYTES),
            ..Line::sends(4000)
        };
        let jump = u64::from(path.jump(1, 0, MSS as u32));
        let mut dumbbell = spaced(line.clone(), Some(path)).dumbbell();
        dumbbell.run_while(|dumbbell| {
            dumbbell.sender(0).is_in_first_slow_start() && !dumbbell.is_done()
        });
        let lost = dumbbell.router().first_slow_start.dropped;
        assert!(
            lost <= jump.max(10),
            "seed {seed}: {lost} of {jump}, {line:?}"
        );
        lost_something += u32::from(lost > 0);
        dumbbell.run(Duration::from_secs(3600));
        assert!(dumbbell.is_done(), "seed {seed}");
    }
    assert!(lost_something > 100, "{lost_something}");
}
