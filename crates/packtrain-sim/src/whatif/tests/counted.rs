//! What a replay says of traffic, beside simple counts of the same traffic.

use packtrain_proto::class::{Compress, Pack};
use packtrain_proto::time::Duration;
use proptest::prelude::*;

use super::traffic::{A, B, Sent, bulk, calls, host, replay, setup, udp, wire};
use crate::whatif::Results;

const POLICIES: [Pack; 7] = [
    Pack::Queued,
    Pack::Now,
    Pack::Within(Duration::from_millis(2)),
    Pack::Scaled(Duration::from_millis(2)),
    Pack::Auto,
    Pack::DfapRandom,
    Pack::DfapStraight,
];

/// Every frame is accounted for, in every way of counting.
fn check_accounts(results: &Results, sent: &[Sent]) {
    let all = &results.all;
    assert_eq!(all.frames, sent.len() as u64);
    assert_eq!(
        all.frames,
        all.delivered + all.dropped,
        "{:?}",
        results.drops
    );
    assert_eq!(all.frames, all.plain_dropped + results.plain_delay.count());
    assert_eq!(all.delivered, results.delay.count());
    let classes: u64 = results
        .classes
        .iter()
        .map(|class| class.share.delivered)
        .sum();
    assert_eq!(all.delivered, classes);
    let conversations = results.conversations.iter().map(|one| &one.share);
    let conversations = conversations.chain([&results.others.share]);
    assert_eq!(
        all.delivered,
        conversations.map(|share| share.delivered).sum::<u64>()
    );
    assert!(results.trains_with_frames() <= results.trains.trains);
    let steps = results.timeline.steps();
    let plain: u64 = steps.iter().map(|step| step.plain).sum();
    let with: u64 = steps.iter().map(|step| step.with).sum();
    assert_eq!(plain, all.frames - all.plain_dropped);
    assert_eq!(with as f64, results.sent.total().frames);
    // What was charged to frames is what was sent, but for what was lost.
    let charged = all.delivered_cost.bytes;
    let sent = results.sent.total().bytes - results.sent.control().bytes;
    assert!(charged <= sent + 0.5, "{charged} of {sent}");
    if results.refused == 0 && all.dropped == 0 {
        assert!(charged >= sent - 0.5, "{charged} of {sent}");
    }
}

#[test]
fn calls_over_a_capped_wire_share_trains() {
    let sent = calls(40, 3);
    // 2000 frames a second each way, and 500 are possible.
    let results = replay(&sent, setup(wire(None, Some(500)), Pack::Queued));
    check_accounts(&results, &sent);
    assert_eq!(results.hosts, 2);
    assert!(
        results.all.plain_dropped > 1000,
        "{}",
        results.all.plain_dropped
    );
    // While the queue that stood before the direct path closed drains, CoDel drops a few.
    assert!(results.all.dropped < 200, "{:?}", results.drops);
    assert!(
        results.frames_per_train() > Some(3.0),
        "{:?}",
        results.frames_per_train()
    );
    assert!(results.saved_frames() > 0.5, "{}", results.saved_frames());
    assert!(results.added.quantile_nanos(0.5) < 0);
}

#[test]
fn full_frames_cost_what_they_cost_plainly() {
    let sent = bulk(5000, 100_000_000);
    for pack in [Pack::Queued, Pack::Auto] {
        let results = replay(&sent, setup(wire(Some(1_000_000_000), None), pack));
        check_accounts(&results, &sent);
        assert_eq!((results.all.dropped, results.all.plain_dropped), (0, 0));
        assert!(
            results.saved_bytes().abs() < 0.02,
            "{pack:?}: {}",
            results.saved_bytes()
        );
        assert!(results.added.quantile_nanos(0.99) < 100_000, "{pack:?}");
    }
}

#[test]
fn an_idle_wire_is_used_directly() {
    // Ten frames a second.
    let sent: Vec<Sent> = (0..100)
        .map(|n| (u64::from(n) * 100_000, udp(A, B, 7, 20, n)))
        .collect();
    let results = replay(&sent, setup(wire(Some(10_000_000), None), Pack::Queued));
    check_accounts(&results, &sent);
    assert_eq!(results.sent.direct.frames, 100.0);
    assert_eq!(results.trains.trains, 0);
    assert_eq!(results.added.max_nanos(), 0);
}

#[test]
fn it_begins_with_the_first_frame_and_lasts_until_the_last() {
    let sent: Vec<Sent> = (0..2)
        .map(|n| (500_000_000 + n * 400_000, udp(A, B, 7, 20, n as u32)))
        .collect();
    let results = replay(&sent, setup(wire(Some(10_000_000), None), Pack::Queued));
    assert_eq!(results.duration, Duration::from_millis(400));
    // Each of the two greets once a second, its neighbours and its peer; none of when they met is counted.
    assert!(
        results.sent.hellos.frames <= 4.0,
        "{:?}",
        results.sent.hellos
    );
}

#[test]
fn frames_that_are_all_the_same_are_told_apart() {
    let sent: Vec<Sent> = (0..500).map(|n| (n * 100, udp(A, B, 7, 0, 9))).collect();
    let results = replay(&sent, setup(wire(None, Some(1000)), Pack::Queued));
    check_accounts(&results, &sent);
    assert_eq!(results.all.dropped, 0);
}

#[test]
fn a_host_beyond_the_bound_is_left_as_it_is() {
    // Each of four to the next.
    let sent: Vec<Sent> = (0..400u32)
        .map(|n| {
            let (from, to) = (n % 4, (n + 1) % 4);
            let frame = udp(host(1 + from as u8), host(1 + to as u8), 7, 20, n);
            (u64::from(n) * 1000, frame)
        })
        .collect();
    let mut setup = setup(wire(Some(10_000_000), None), Pack::Queued);
    setup.hosts_max = 2;
    let results = replay(&sent, setup);
    assert_eq!((results.hosts, results.not_replayed), (2, 200));
    assert_eq!(results.all.frames, 200);
    assert_eq!(results.all.delivered, 200);
    assert!(results.sent.plain.frames >= 100.0, "{:?}", results.sent);
}

#[test]
fn one_side_is_replayed_alone() {
    let sent = calls(10, 2);
    let mut setup = setup(wire(None, Some(300)), Pack::Queued);
    setup.only = Some(A);
    let results = replay(&sent, setup);
    assert_eq!(results.all.frames, sent.len() as u64 / 2);
    assert_eq!(results.not_replayed, sent.len() as u64 / 2);
    assert_eq!(
        results.all.frames,
        results.all.delivered + results.all.dropped
    );
}

#[test]
fn a_long_pause_counts_as_a_short_one() {
    let day = 86_400_000_000;
    let sent: Vec<Sent> = (0..20)
        .map(|n| (n * day, udp(A, B, 7, 20, n as u32)))
        .collect();
    let results = replay(&sent, setup(wire(Some(10_000_000), None), Pack::Queued));
    check_accounts(&results, &sent);
    assert_eq!(results.all.delivered, 20);
    assert_eq!(
        results.pause_left_out,
        Duration::from_secs(19 * (86_400 - 10))
    );
}

#[test]
fn the_same_capture_gives_the_same_results() {
    let sent = calls(30, 2);
    let run = || {
        let results = replay(&sent, setup(wire(None, Some(400)), Pack::Auto));
        (
            results.sent,
            results.delay,
            results.added,
            results.train_frames,
        )
    };
    assert_eq!(run(), run());
}

/// Plain frames of each host through one queue, by the textbook: when each arrives.
fn plainly(sent: &[Sent], rate_bps: u64, delay_ns: u64, queue_bytes: usize) -> (u64, Vec<u64>) {
    let (mut dropped, mut delays) = (0, Vec::new());
    for of in [A, B] {
        // (leaves, bytes) of all that came so far, exactly.
        let mut line: Vec<(f64, usize)> = Vec::new();
        for (at, frame) in sent.iter().filter(|(_, frame)| frame[6..12] == of.0) {
            let now = *at as f64 * 1000.0;
            let standing: usize = line
                .iter()
                .filter(|(leaves, _)| leaves.ceil() > now)
                .map(|(_, len)| len)
                .sum();
            if standing > 0 && standing + frame.len() > queue_bytes {
                dropped += 1;
                continue;
            }
            let begins = line.last().map_or(now, |(leaves, _)| leaves.max(now));
            let bits = 8 * (frame.len().max(60) + 24) as u64;
            let leaves = begins + bits as f64 * 1e9 / rate_bps as f64;
            line.push((leaves, frame.len()));
            delays.push((leaves - now) as u64 + delay_ns);
        }
    }
    delays.sort_unstable();
    (dropped, delays)
}

#[test]
fn what_coding_saves_is_told_apart() {
    let sent = calls(40, 3);
    let run = |compress| {
        let mut setup = setup(wire(Some(2_000_000), Some(800)), Pack::Queued);
        setup.direct = false;
        setup.rest.compress = compress;
        replay(&sent, setup)
    };
    let (whole, none) = (run(Compress::Auto), run(Compress::Off));
    // The payloads are rows of one byte, and the headers of a call differ by little.
    assert!(whole.coding.saved_headers > 0 && whole.coding.saved_payload > 0);
    assert_eq!(
        (none.coding.saved_headers, none.coding.saved_payload),
        (0, 0)
    );
    assert!(none.coding.frame_bytes > none.coding.train_bytes);
    assert!(whole.saved_bytes() > none.saved_bytes() + 0.2);
}

fn some_traffic() -> impl Strategy<Value = Vec<Sent>> {
    let frame = (0u64..3000, any::<bool>(), 0u16..20, 4usize..1472);
    prop::collection::vec(frame, 1..300).prop_map(|frames| {
        let mut at = 0;
        let sent = |(n, (gap, there, port, payload)): (usize, _)| {
            at += gap;
            let (from, to) = if there { (A, B) } else { (B, A) };
            (at, udp(from, to, 5000 + port, payload, n as u32))
        };
        frames.into_iter().enumerate().map(sent).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn frames_are_delivered_or_dropped_whatever_the_policy(
        sent in some_traffic(),
        rate in 500_000u64..100_000_000,
        queue in 3_000usize..100_000,
        policy in 0..POLICIES.len(),
        links in 1usize..3,
        direct in any::<bool>(),
    ) {
        let mut wire = wire(Some(rate), None);
        wire.queue_bytes = queue;
        let mut setup = setup(wire, POLICIES[policy]);
        (setup.links, setup.direct) = (links, direct);
        let results = replay(&sent, setup);
        check_accounts(&results, &sent);
        let (dropped, delays) = plainly(&sent, rate, 1_000_000, queue);
        prop_assert_eq!(results.all.plain_dropped, dropped);
        let exact = delays.get(delays.len().div_ceil(2) - 1).copied().unwrap_or(0) as f64;
        let told = results.plain_delay.quantile(0.5).as_nanos() as f64;
        prop_assert!((told - exact).abs() <= exact / 30.0 + 2.0, "{told} for {exact}");
        let plain_bytes: usize = sent.iter().map(|(_, frame)| frame.len().max(60) + 24).sum();
        prop_assert_eq!(results.all.plain.bytes as usize, plain_bytes);
    }

    #[test]
    fn a_wire_does_not_rest_while_frames_wait_for_it(
        count in 1usize..60,
        payload in 4usize..1472,
        rate in 2_000_000u64..100_000_000,
        links in 1usize..3,
    ) {
        // All at once, and so few that CoDel finds nothing to object.
        let sent: Vec<Sent> = (0..count)
            .map(|n| (0, udp(A, B, 5000 + n as u16 % 7, payload, n as u32)))
            .collect();
        let mut setup = setup(wire(Some(rate), None), Pack::Queued);
        (setup.links, setup.direct) = (links, false);
        let results = replay(&sent, setup);
        prop_assert_eq!(results.all.delivered, count as u64);
        // The headers of trains, an acknowledgement that goes ahead, the train that is filled while one is sent.
        let slack = Duration::from_nanos(2 * 8 * 1538 * 1_000_000_000 / rate);
        let most = results.plain_delay.max().mul_f64(1.06) + slack;
        prop_assert!(results.delay.max() <= most, "{:?} of {most:?}", results.delay.max());
    }
}
