//! A link whose owner has frames for it that found no room.

use crate::support::{LINK, Pair, frame};
use packtrain_proto::offload::Offload;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::train::Train;

const MS: Duration = Duration::from_millis(1);

/// How many acknowledgements each train of side 1 carried that was recorded.
fn acknowledgements(pair: &Pair) -> Vec<usize> {
    let frames = pair.recorded.iter().filter(|(side, frame, _)| {
        *side == 1 && frame[12..15] == [0x88, 0xb5, 0x11] // a train
    });
    let trains = frames.map(|(_, frame, _)| Train::parse(&frame[14..]).expect("our own"));
    trains.map(|train| train.acks().count()).collect()
}

#[test]
fn a_link_that_takes_nothing_is_given_no_acknowledgements_until_it_does() {
    let mut pair = Pair::new(false);
    pair.engines[1].handle_link_blocked(LINK, true);
    pair.record = true;
    for fill in 0..40 {
        pair.send(0, &frame(0, 200, fill), Offload::NONE);
        pair.run(2 * MS);
    }
    assert_eq!(pair.out[1].len(), 40, "what comes is not affected");
    assert_eq!(acknowledgements(&pair), [0; 0]);
    pair.engines[1].handle_link_blocked(LINK, false);
    pair.settle();
    assert_eq!(acknowledgements(&pair), [1], "one, of all forty");
    pair.still_works();
}
