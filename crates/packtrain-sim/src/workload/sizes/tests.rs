use super::*;

fn sizes(text: &str) -> Sizes {
    text.parse().expect(text)
}

/// The XLF paper has 90 % and more than 99 %: that is Lomax's distribution and not Pareto's own.
#[test]
fn the_share_of_elephants_bytes_is_that_of_the_closed_form() {
    for (text, share) in [
        ("lomax:1.2,100kB", 0.8896),
        ("lomax:1.2,1MB", 0.9946),
        ("pareto:1.2,100kB", 0.8027),
        ("pareto:1.2,1MB", 1.0),
    ] {
        let told = sizes(text).share_of_bytes_above(50_000);
        assert!((told - share).abs() < 1e-4, "{text}: {told}");
    }
}

/// Each with its bounds of about four deviations; Pareto's tails with α = 3 have one.
#[test]
fn draws_have_the_mean_and_the_shares_of_their_distribution() {
    const DRAWS: usize = 40_000;
    for (text, x, error) in [
        ("fixed:50kB", 49_999, 1e-12),
        ("lomax:3,100kB", 200_000, 0.04),
        ("pareto:3,100kB", 150_000, 0.02),
        ("exp:10kB", 15_000, 0.02),
        ("uniform:1kB..9kB", 4_000, 0.015),
        ("uniform:1..2", 1, 0.015),
        ("empirical:100:0.2,1000:0.5,30000:1", 5_000, 0.03),
    ] {
        let sizes = sizes(text);
        let mut random = Random::new(5);
        let drawn: Vec<u64> = (0..DRAWS).map(|_| sizes.draw(&mut random)).collect();
        let large: Vec<u64> = drawn.iter().copied().filter(|&size| size > x).collect();
        let [sum, sum_large] = [&drawn, &large].map(|sizes| sizes.iter().sum::<u64>() as f64);
        for (what, found, exact) in [
            ("mean", sum / DRAWS as f64, sizes.mean_bytes()),
            (
                "share",
                large.len() as f64 / DRAWS as f64,
                sizes.share_above(x),
            ),
            (
                "share of bytes",
                sum_large / sum,
                sizes.share_of_bytes_above(x),
            ),
        ] {
            let off = (found / exact - 1.0).abs();
            assert!(off <= 2.0 * error, "{text}, {what}: {found} for {exact}");
        }
    }
}

/// With α = 1.2 a mean needs more draws than there are: the tail is counted instead.
#[test]
fn heavy_tails_are_as_heavy_as_they_should() {
    for text in ["lomax:1.2,100kB", "pareto:1.2,100kB"] {
        let sizes = sizes(text);
        let mut random = Random::new(6);
        let drawn: Vec<u64> = (0..100_000).map(|_| sizes.draw(&mut random)).collect();
        for x in [20_000, 50_000, 200_000, 1_000_000] {
            let exact = sizes.share_above(x);
            let found = drawn.iter().filter(|&&size| size > x).count() as f64 / 1e5;
            let deviation = (exact * (1.0 - exact) / 1e5).sqrt();
            assert!(
                (found - exact).abs() <= 4.0 * deviation,
                "{text}, {x}: {found}"
            );
        }
    }
}

#[test]
fn no_flow_is_empty() {
    let mut random = Random::new(7);
    for text in ["lomax:1.2,1B", "exp:1B", "pareto:1.01,1B"] {
        let sizes = sizes(text);
        assert!((0..1000).all(|_| sizes.draw(&mut random) >= 1));
    }
}

/// Of 100, 1000 and 10,000 bytes: each decade has (high − low)/ln 10 in the mean.
#[test]
fn between_points_the_logarithm_is_uniform() {
    let sizes = sizes("empirical:100:0,1000:0.5,10000:1");
    let exact = (900.0 + 9000.0) / 2.0 / std::f64::consts::LN_10;
    assert!((sizes.mean_bytes() / exact - 1.0).abs() < 1e-10);
    assert!((sizes.share_above(3162) - 0.25).abs() < 1e-4);
    assert!((sizes.share_of_bytes_above(1000) - 10.0 / 11.0).abs() < 1e-10);
    assert_eq!(
        (
            sizes.share_above(10_000),
            sizes.share_of_bytes_above(10_000)
        ),
        (0.0, 0.0)
    );
}

#[test]
fn sizes_are_printed_as_they_are_read() {
    for text in [
        "fixed:50kB",
        "lomax:1.2,100kB",
        "pareto:1.2,1MB",
        "exp:10kB",
        "uniform:1kB..9kB",
        "empirical:100B:0,1kB:0.5,1MB:1",
    ] {
        assert_eq!(sizes(text).to_string(), text);
    }
    let points = "empirical:100:0,1000:0.5,1000000:1";
    assert_eq!(sizes(points), sizes("empirical:100B:0,1kB:0.5,1MB:1"));
}

#[test]
fn what_is_no_distribution_is_told_with_its_reason_and_a_right_one() {
    for (text, told) in [
        (
            "zipf:1",
            "\"zipf:1\": \"zipf\" is none of fixed, lomax, pareto, exp, uniform and empirical; \
             write it as in lomax:1.2,100kB",
        ),
        (
            "lomax:0.9,1kB",
            "\"lomax:0.9,1kB\": an alpha of 0.9 is not between 1.01 and 10; write it as in lomax:1.2,100kB",
        ),
        (
            "pareto:1MB",
            "\"pareto:1MB\": 1 in place of 2 values (alpha, mean); write it as in pareto:1.2,1MB",
        ),
        (
            "exp:10kb",
            "\"exp:10kb\": the size \"10kb\" needs a unit of B, kB, MB, GB; write it as in exp:10kB",
        ),
        (
            "uniform:9kB..1kB",
            "\"uniform:9kB..1kB\": 9kB is more than 1kB; write it as in uniform:1kB..9kB",
        ),
        (
            "empirical:100:0,1000:0.5",
            "\"empirical:100:0,1000:0.5\": the last point has not a share of 1; \
             write it as in empirical:100:0,1000:0.5,1000000:1",
        ),
        (
            "empirical:100:0.6,1000:0.5,1MB:1",
            "\"empirical:100:0.6,1000:0.5,1MB:1\": the points do not ascend from 100:0.6 to 1000:0.5; \
             write it as in empirical:100:0,1000:0.5,1000000:1",
        ),
    ] {
        assert_eq!(text.parse::<Sizes>().unwrap_err().to_string(), told);
    }
}

#[test]
fn what_a_share_exceeds_is_exceeded_by_that_share() {
    for text in [
        "lomax:1.2,100kB",
        "pareto:1.2,100kB",
        "exp:100kB",
        "uniform:1..100kB",
        "empirical:100:0.001,1000:0.5,30000000:1",
    ] {
        let sizes = sizes(text);
        for share in [0.9, 0.5, 0.1, 0.01] {
            let told = sizes.share_above(sizes.exceeded_by(share));
            assert!(
                (told / share - 1.0).abs() < 0.005,
                "{text}, {share}: {told}"
            );
        }
        assert!(sizes.exceeded_by(1e-18) >= sizes.exceeded_by(1e-3));
    }
    assert_eq!(sizes("fixed:50kB").exceeded_by(0.5), 50_000);
}

/// Written down once, as those of chance itself.
#[test]
fn a_seed_draws_the_same_sizes_for_ever() {
    let drawn = ["lomax:1.2,100kB", "pareto:1.2,100kB", "exp:100kB"].map(|text| {
        let mut random = Random::new(1);
        [(); 2].map(|()| sizes(text).draw(&mut random))
    });
    assert_eq!(drawn, [[13518, 21824], [27932, 34854], [61961, 88530]]);
}
