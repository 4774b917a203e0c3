use proptest::prelude::*;

use super::*;

fn error<T: FromStr<Err = ValueError> + fmt::Debug>(text: &str) -> String {
    text.parse::<T>().unwrap_err().to_string()
}

#[test]
fn values_are_read_as_tc_writes_them_and_printed_in_the_shortest_unit() {
    for (text, bps, printed) in [
        ("100mbit", 100_000_000, "100mbit"),
        ("1.5gbit", 1_500_000_000, "1.5gbit"),
        ("64Kbit", 64_000, "64kbit"),
        ("1234567", 1_234_567, "1234567bit"),
        ("1000", 1_000, "1kbit"),
        ("100gbit", RATE_BPS_MAX, "100gbit"),
    ] {
        let rate: BitRate = text.parse().unwrap();
        assert_eq!((rate.0, rate.to_string().as_str()), (bps, printed));
    }
    for (text, ns, printed) in [
        ("20ms", 20_000_000, "20ms"),
        ("0.5ms", 500_000, "500us"),
        ("1500us", 1_500_000, "1.5ms"),
        ("1234us", 1_234_000, "1234us"),
        ("2s", DELAY_NS_MAX, "2s"),
        ("17ns", 17, "17ns"),
        ("0", 0, "0s"),
    ] {
        let time: Time = text.parse().unwrap();
        assert_eq!((time.0, time.to_string().as_str()), (ns, printed));
    }
    for (text, bytes, printed) in [
        ("256kb", 262_144, "256kb"),
        ("15000b", 15_000, "15000b"),
        ("1mb", 1 << 20, "1mb"),
        ("1.5kb", 1536, "1.5kb"),
    ] {
        let size: Bytes = text.parse().unwrap();
        assert_eq!((size.0, size.to_string().as_str()), (bytes, printed));
    }
    assert_eq!("25000".parse(), Ok(Packets(25_000)));
    assert_eq!(Packets(25_000).to_string(), "25000p");
}

#[test]
fn shares_are_read_and_printed_in_percent() {
    for (text, share, printed) in [
        ("1%", 0.01, "1%"),
        ("0.01", 0.01, "1%"),
        ("7%", 0.07, "7%"),
        ("0.001%", 0.00001, "0.001%"),
        ("100%", 1.0, "100%"),
        ("0", 0.0, "0%"),
        ("1e-12", 1e-12, "0.000000000001"),
    ] {
        let read: Share = text.parse().unwrap();
        assert_eq!((read.0, read.to_string().as_str()), (share, printed));
    }
    let rate: ErrorRate = "0.000001".parse().unwrap();
    assert_eq!(rate.to_string(), "1e-6");
}

#[test]
fn a_text_that_is_no_value_is_told_how_to_write_one() {
    for text in [
        "",
        "mbit",
        "100mbps",
        "-1mbit",
        "1.mbit",
        "1.2.3gbit",
        "1 gbit",
    ] {
        assert_eq!(
            error::<BitRate>(text),
            format!("{text:?} is no rate: write it as in 100mbit, 64kbit or 1.5gbit")
        );
    }
    assert_eq!(
        error::<Time>("20"),
        "\"20\" is no time: write it as in 20ms, 5us or 2s"
    );
    assert_eq!(
        error::<Bytes>("100p"),
        "\"100p\" is no size: write it as in 256kb, 1mb or 15000b"
    );
    assert_eq!(
        error::<Packets>("1kb"),
        "\"1kb\" is no queue: write it as in 1000p"
    );
    for text in ["", "%", "-1%", "+1", "nan", "inf", "a%"] {
        assert_eq!(
            error::<Share>(text),
            format!("{text:?} is no share: write it as in 1% or 0.01")
        );
    }
    assert_eq!(
        error::<ErrorRate>("one"),
        "\"one\" is no bit error rate: write it as in 1e-6"
    );
}

#[test]
fn a_value_outside_its_limits_is_told_the_limit() {
    assert_eq!(
        error::<BitRate>("999"),
        "a rate of 999 is too small: at least 1kbit"
    );
    assert_eq!(
        error::<BitRate>("101gbit"),
        "a rate of 101gbit is too large: at most 100gbit"
    );
    assert_eq!(
        error::<BitRate>("999999999999999999gbit"),
        "a rate of 999999999999999999gbit is too large: at most 100gbit"
    );
    assert_eq!(
        error::<BitRate>("2.0005kbit"),
        "2.0005kbit is finer than 1 bit/s"
    );
    assert_eq!(
        error::<Time>("2.1s"),
        "a time of 2.1s is too large: at most 2s"
    );
    assert_eq!(error::<Time>("0.5ns"), "0.5ns is finer than 1 ns");
    assert_eq!(
        error::<Bytes>("0b"),
        "a size of 0b is too small: at least 1b"
    );
    assert_eq!(
        error::<Bytes>("1025mb"),
        "a size of 1025mb is too large: at most 1024mb"
    );
    assert_eq!(
        error::<Packets>("1000001"),
        "a queue of 1000001 is too large: at most 1000000p"
    );
    assert_eq!(
        error::<Share>("101%"),
        "a share of 101% is too large: at most 100% (1.0)"
    );
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again(
        bps in RATE_BPS_MIN..=RATE_BPS_MAX,
        ns in 0..=DELAY_NS_MAX,
        bytes in 1..=QUEUE_BYTES_MAX,
        share in 0.0..=1.0f64,
    ) {
        prop_assert_eq!(BitRate(bps).to_string().parse(), Ok(BitRate(bps)));
        prop_assert_eq!(Time(ns).to_string().parse(), Ok(Time(ns)));
        prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        prop_assert_eq!(Share(share).to_string().parse(), Ok(Share(share)));
        prop_assert_eq!(ErrorRate(share).to_string().parse(), Ok(ErrorRate(share)));
    }
}
