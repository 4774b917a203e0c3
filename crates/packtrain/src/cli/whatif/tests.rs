//! What is recommended, for traffic of several kinds.

use super::advice::{Kind, Told, recommend};

/// Calls over a wire that is short of frames: what others change.
fn calls() -> Told {
    Told {
        name: "--pack queued --compress auto".into(),
        saved_frames_percent: 80.0,
        saved_bytes_percent: 20.0,
        added_p99_ms: 0.2,
        frame_bytes_mean: 200.0,
        ..Told::default()
    }
}

fn said(told: &[Told]) -> (Kind, String) {
    let recommendation = recommend(told, true);
    (recommendation.kind, recommendation.text)
}

#[test]
fn small_frames_over_a_short_wire_are_worth_it() {
    assert_eq!(
        said(&[calls()]),
        (
            Kind::Gain,
            "Worth it: 80 % of the frames and 20 % of the bytes on the wire are saved, and frames come no later than \
             1 ms more (p99)."
                .into()
        )
    );
}

#[test]
fn frames_alone_are_no_gain_where_the_wire_does_not_count_them() {
    let told = Told {
        saved_bytes_percent: 1.0,
        ..calls()
    };
    assert_eq!(
        recommend(std::slice::from_ref(&told), true).kind,
        Kind::Gain
    );
    assert_eq!(recommend(&[told], false).kind, Kind::NothingToGain);
}

#[test]
fn bulk_transfers_gain_nothing() {
    let told = Told {
        saved_frames_percent: -0.5,
        saved_bytes_percent: -0.1,
        frame_bytes_mean: 1514.0,
        direct_percent: 99.0,
        added_p99_ms: 0.0,
        ..calls()
    };
    let text = "Nothing to gain here: the frames are large already, and go as they are.";
    assert_eq!(said(&[told]), (Kind::NothingToGain, text.into()));
}

#[test]
fn an_idle_wire_gains_nothing() {
    let told = Told {
        saved_frames_percent: 0.0,
        saved_bytes_percent: 0.0,
        direct_percent: 100.0,
        ..calls()
    };
    let text = "Nothing to gain here: the wire is seldom busy, so frames leave as they come.";
    assert_eq!(said(&[told]), (Kind::NothingToGain, text.into()));
}

#[test]
fn frames_without_company_gain_nothing() {
    let told = Told {
        saved_frames_percent: 2.0,
        saved_bytes_percent: 1.0,
        ..calls()
    };
    let text = "Nothing to gain here: few frames find others to share a train with.";
    assert_eq!(said(&[told]), (Kind::NothingToGain, text.into()));
}

#[test]
fn what_is_waited_for_is_told_beside_the_gain() {
    let told = Told {
        added_p99_ms: 4.5,
        compression_percent: 15.0,
        ..calls()
    };
    let (kind, text) = said(&[told]);
    assert_eq!(kind, Kind::GainThatCostsTime);
    assert_eq!(
        text,
        "Worth it where frames may come up to 4.5 ms later (p99): 80 % of the frames and 20 % of the bytes on the \
         wire are saved, most of it by compression."
    );
}

#[test]
fn waiting_for_nothing_is_to_be_left() {
    let told = Told {
        saved_frames_percent: 1.0,
        saved_bytes_percent: 1.0,
        added_p99_ms: 4.5,
        ..calls()
    };
    let text = "Leave it: it saves 1.0 % of the bytes, and frames come up to 4.5 ms later (p99).";
    assert_eq!(said(std::slice::from_ref(&told)), (Kind::Harm, text.into()));
    let told = Told {
        saved_frames_percent: -17.5,
        saved_bytes_percent: -17.5,
        ..told
    };
    let text = "Leave it: it costs 17.5 % more bytes, and frames come up to 4.5 ms later (p99).";
    assert_eq!(said(&[told]), (Kind::Harm, text.into()));
}

#[test]
fn a_wire_that_drops_less_is_worth_it_and_one_that_drops_more_is_not() {
    let dropped = |plain, with| {
        said(&[Told {
            plain_dropped_percent: plain,
            dropped_percent: with,
            ..calls()
        }])
    };
    let worth = "Worth it: 0.0 % of the frames are dropped instead of 25.0 %.";
    assert_eq!(dropped(25.0, 0.0), (Kind::FewerDrops, worth.into()));
    let still = "Worth it: 40.0 % of the frames are dropped instead of 70.0 %, though the wire stays too slow for all \
                 of it.";
    assert_eq!(dropped(70.0, 40.0), (Kind::FewerDrops, still.into()));
    assert_eq!(dropped(70.0, 69.0).0, Kind::TooMuchForTheWire);
    assert_eq!(dropped(1.0, 2.0).0, Kind::Harm);
}

#[test]
fn a_queue_that_stands_no_more_is_worth_it_though_nothing_is_saved() {
    // Acknowledgements take the other way, where nothing else goes.
    let told = Told {
        saved_frames_percent: -1.0,
        saved_bytes_percent: -18.0,
        added_p50_ms: -495.0,
        added_p99_ms: 2.0,
        ..calls()
    };
    let (kind, text) = said(&[told]);
    assert_eq!(kind, Kind::LessDelay);
    assert!(
        text.starts_with("Worth it: half of the frames come 495.0 ms earlier or more"),
        "{text}"
    );
}

#[test]
fn another_policy_is_recommended_where_it_is_clearly_better() {
    let other = |saved_frames_percent| Told {
        name: "--pack 2ms --compress auto".into(),
        saved_frames_percent,
        ..calls()
    };
    let of = |told: &[Told]| recommend(told, true).policy.unwrap();
    assert_eq!(of(&[calls(), other(82.0)]), "--pack queued --compress auto");
    assert_eq!(of(&[calls(), other(90.0)]), "--pack 2ms --compress auto");
    let text = recommend(&[calls(), other(90.0)], true).text;
    assert!(
        text.starts_with("With --pack 2ms --compress auto: worth it: 90 % "),
        "{text}"
    );
}

#[test]
fn of_no_frames_nothing_is_said() {
    assert_eq!(recommend(&[], false).kind, Kind::NoFrames);
}
