//! One link that loses by length: it is found out, trains become shorter and go again, and all comes; and it is left when it is well.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::{Pair, frame};
use packtrain_proto::config::SizeLaw;
use packtrain_proto::offload::Offload;
use packtrain_proto::random::Random;
use packtrain_proto::stats::PathSize;
use packtrain_proto::time::Duration;
use packtrain_proto::unit_size::SizeBecause;

const MS: Duration = Duration::from_millis(1);
const LONG: usize = 8000;

/// Links of 9000. Of what side 0 sends each byte is wrong with one chance in so many.
fn wrong(one_in: &Rc<Cell<u64>>, set: impl Fn(&mut packtrain_proto::config::Config)) -> Pair {
    let mut pair = Pair::with(|_, config| {
        config.mtu = 9000;
        set(config);
    });
    pair.set_mtu(0, 9000);
    pair.set_mtu(1, 9000);
    pair.run(1500 * MS);
    let (of, mut random) = (one_in.clone(), Random::new(9));
    pair.lose = Box::new(move |side, frame| {
        // To first order, or surely.
        side == 0 && of.get() > 0 && random.up_to(of.get()) < frame.len() as u64
    });
    pair
}

impl Pair {
    fn size(&self) -> PathSize {
        self.snapshot(0).peers[0].paths[0].size
    }

    /// How many of so many frames come.
    fn send_long(&mut self, frames: usize) -> usize {
        self.out = Default::default();
        for n in 0..frames {
            self.send(0, &frame(0, LONG, n as u8), Offload::NONE);
            self.run(MS);
        }
        self.run(300 * MS);
        self.out[1].len()
    }
}

#[test]
fn what_dies_by_its_length_goes_again_in_shorter_trains_until_the_link_is_well() {
    let one_in = Rc::new(Cell::new(100_000));
    let mut pair = wrong(&one_in, |_| {});
    pair.send_long(1500);
    let size = pair.size();
    assert_eq!(size.because, SizeBecause::BitErrors, "{size:?}");
    assert!(size.mends && (1500..4000).contains(&size.bytes), "{size:?}");
    let errors = size.errors.expect("it is seen");
    assert!(
        (0.5..2.0).contains(&(errors.rate * 8.0 * 100_000.0)),
        "{errors:?}"
    );
    // Where the copy is lost of a train behind which nothing comes, a gap is given up before its sender has a word of it: that takes
    // a tail's time, ten milliseconds, and no word had taken longer than one, so no more than six are waited for.
    let got = pair.send_long(500);
    assert!(got >= 498, "{got}: {:?}", pair.snapshot(1).resequencer);
    assert!(pair.snapshot(0).replay.repaired > 50);
    one_in.set(0);
    pair.send_long(3000);
    let size = pair.size();
    assert_eq!(
        (size.bytes, size.because),
        (9000, SizeBecause::LinkMtu),
        "{size:?}"
    );
    assert!(!size.mends && !size.looks, "{size:?}");
    pair.still_works();
}

#[test]
fn who_repairs_nothing_gains_nothing_by_pieces_of_frames() {
    let one_in = Rc::new(Cell::new(30_000));
    let mut pair = wrong(&one_in, |config| config.limits.repair_within = None);
    pair.send_long(1000);
    let size = pair.size();
    assert!(!size.mends && !size.looks, "{size:?}");
    assert_eq!(size.because, SizeBecause::LinkMtu, "{size:?}");
    assert_eq!(pair.snapshot(0).replay.repaired, 0);
}

#[test]
fn a_size_that_was_asked_for_is_kept_to_and_nothing_is_too_long_for_it() {
    for bytes in [0, 300, 1500, 8999] {
        let mut pair = wrong(&Rc::default(), |config| config.size = SizeLaw::Fixed(bytes));
        pair.run(300 * MS);
        pair.record = true;
        assert_eq!(pair.send_long(50), 50, "{bytes}");
        let lengths = pair.recorded.iter().map(|(_, frame, _)| frame.len());
        let longest = lengths.max().expect("some went");
        let (asked, needed) = (usize::from(bytes).max(256) + 14, LONG + 14);
        assert!(
            longest <= asked && longest >= asked.min(needed),
            "{longest}"
        );
        let size = pair.size();
        assert_eq!(
            (size.bytes, size.because),
            (bytes.max(256), SizeBecause::Fixed)
        );
    }
}

/// Nobody asks on an only link what passes.
#[test]
fn where_nothing_long_passes_at_all_something_does_within_seconds() {
    let mut pair = wrong(&Rc::default(), |_| {});
    pair.lose = Box::new(|side, frame| side == 0 && frame.len() > 4000);
    for n in 0..20 {
        pair.send(0, &frame(0, LONG, n), Offload::NONE);
        pair.run(300 * MS);
    }
    assert!(pair.size().bytes <= 4000, "{:?}", pair.size());
    assert!(pair.out[1].len() > 5, "{}", pair.out[1].len());
}
