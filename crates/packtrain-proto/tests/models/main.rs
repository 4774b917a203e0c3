//! The order of what comes, what is sent again, and whose frame is next, against models that are slow and obvious: those of
//! order and copies keep everything that has happened, and work each answer out from all of it.

mod arrival_step;
mod arrivals;
mod breakage;
mod copies;
mod far_end;
mod order;
mod queues;
mod sender;
mod sending_step;

use arrivals::{Arrivals, Failure};
use breakage::Breakage;
use packtrain_proto::wire::sequence::Sequence;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use sender::Sender;

/// Bounds of what is held, in bytes: all that comes, and less.
const ROOM: usize = 1 << 20;
const LITTLE_ROOM: usize = 6000;

/// Where the sequences begin.
fn first() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1u32), Just(u32::MAX - 20), any::<u32>()]
}

fn beginnings() -> impl Strategy<Value = (u32, usize)> {
    (first(), prop_oneof![Just(ROOM), Just(LITTLE_ROOM)])
}

fn arrivals(honest: bool) -> impl Strategy<Value = Vec<arrival_step::Step>> {
    let any_step = any::<[u8; 4]>().prop_map(arrival_step::Step::from_bytes);
    let step = any_step.prop_filter("an honest one", move |step| !honest || step.is_honest());
    proptest::collection::vec(step, 1..200)
}

/// The bound of what is kept, in trains, and what happens.
fn sendings() -> impl Strategy<Value = (usize, Vec<sending_step::Step>)> {
    let copies_max = prop_oneof![Just(4096usize), 3usize..40];
    let step = any::<[u8; 4]>().prop_map(sending_step::Step::from_bytes);
    (copies_max, proptest::collection::vec(step, 1..120))
}

fn receive(
    (first, bytes_max): (u32, usize),
    steps: &[arrival_step::Step],
    breakage: Option<Breakage>,
) -> Result<(), Failure> {
    let mut arrivals = Arrivals::new(Sequence(first), bytes_max, breakage);
    for step in steps {
        arrivals.step(step)?;
    }
    arrivals.end()
}

fn send(
    copies_max: usize,
    steps: &[sending_step::Step],
    breakage: Option<Breakage>,
) -> Result<(), Failure> {
    let mut sender = Sender::new(copies_max, breakage);
    for step in steps {
        sender.step(step)?;
    }
    sender.end()
}

fn config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn order_of_an_honest_sender_is_what_the_model_says_and_nothing_is_given_up_that_may_come(
        beginning in beginnings(), steps in arrivals(true)
    ) {
        receive(beginning, &steps, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn copies_are_kept_and_sent_again_as_the_model_says(
        (copies_max, steps) in sendings()
    ) {
        send(copies_max, &steps, None).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(config(30))]

    #[test]
    fn order_of_whatever_comes_is_what_the_model_says(
        first in first(), steps in arrivals(false)
    ) {
        receive((first, ROOM), &steps, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn order_of_whatever_comes_and_finds_little_room_is_what_the_model_says(
        first in first(), steps in arrivals(false)
    ) {
        receive((first, LITTLE_ROOM), &steps, None).map_err(TestCaseError::fail)?;
    }
}

/// Found once by chance.
#[test]
fn what_counted_as_lost_and_is_acknowledged_after_all_is_learned_from() {
    use sending_step::Step;
    let steps = [
        Step::HostSends {
            frames: 3,
            len: 580,
        },
        Step::OwnCarrier { link: 42 },
        Step::OwnCarrier { link: 53 },
        Step::Lost { link: 235, nth: 0 },
        Step::Pass { millis: 181 },
        Step::HostSends {
            frames: 3,
            len: 242,
        },
        Step::Wait { micros: 17188 },
        Step::Pass { millis: 205 },
    ];
    send(4096, &steps, None).unwrap();
}

/// Found once by chance: its link had died before the sender knew that it had come.
#[test]
fn a_train_for_which_there_was_no_room_is_not_promised() {
    use arrival_step::Step;
    let large = |link| Step::Send { link, large: true };
    let arrives = |link| Step::Arrives {
        link,
        acknowledged: false,
    };
    let steps = [
        large(1),
        large(2),
        large(2),
        Step::Send {
            link: 0,
            large: false,
        },
        Step::AllArrive { link: 2 },
        Step::SendMany { trains: 34 },
        arrives(2),
        arrives(0),
        Step::Dies {
            link: 2,
            stalls: false,
        },
        Step::AllArrive { link: 1 },
        Step::Wait { micros: 55_085 },
    ];
    assert_eq!(receive((1, 6000), &steps, None), Ok(()));
}

/// Found once by chance: the gaps before it were given up long before it, and the test had waited for those alone.
#[test]
fn a_train_with_a_copy_is_waited_for_behind_gaps_that_nobody_can_fill() {
    use arrival_step::Step;
    let steps = [
        Step::Stream {
            trains: 1150,
            lost_every: 9,
        },
        Step::Repairs,
        Step::SendMany { trains: 3 },
        Step::Lost { link: 0, nth: 0 },
    ];
    assert_eq!(receive((1, ROOM), &steps, None), Ok(()));
}

/// Found once by chance: of a link that the peer had closed the model did not see that nobody heard it any more.
#[test]
fn a_train_that_fits_only_a_link_that_nobody_has_heard_for_long_is_too_large() {
    use sending_step::Step;
    let steps = [
        Step::PeerCarrier { link: 0 },
        Step::Cut { link: 0 },
        Step::Pass { millis: 3800 },
        Step::PeerCarrier { link: 0 },
        Step::HostSends {
            frames: 1,
            len: 912,
        },
        Step::OwnMtu { link: 1 },
        Step::OwnMtu { link: 2 },
        Step::Cut { link: 1 },
        Step::Pass { millis: 1200 },
    ];
    assert_eq!(send(4096, &steps, None), Ok(()));
}

/// The breakages of which no difference was seen.
fn unseen<S: Strategy>(
    breakages: &[Breakage],
    inputs: impl Fn() -> S + Sync,
    run: impl Fn(&S::Value, Breakage) -> Result<(), Failure> + Sync,
) -> Vec<Breakage> {
    let is_seen = |breakage: &Breakage| {
        let config = Config {
            max_shrink_iters: 0,
            ..config(2000)
        };
        // Cases that show each within seconds: others, as right, may take minutes.
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
        let found = TestRunner::new_with_rng(config, rng).run(&inputs(), |input| {
            run(&input, *breakage).map_err(TestCaseError::fail)
        });
        matches!(found, Err(TestError::Fail(..)))
    };
    let is_seen = &is_seen;
    std::thread::scope(|scope| {
        let looks = breakages
            .iter()
            .map(|breakage| (*breakage, scope.spawn(move || is_seen(breakage))));
        let looks: Vec<_> = looks.collect();
        let seen = looks
            .into_iter()
            .map(|(breakage, look)| (breakage, look.join().expect("it does not panic")));
        let unseen = seen.filter(|(_, is_seen)| !is_seen);
        unseen.map(|(breakage, _)| breakage).collect()
    })
}

#[test]
fn each_rule_of_the_order_is_missed_when_the_model_leaves_it_out() {
    let unseen = unseen(
        Breakage::OF_ORDER,
        || (beginnings(), arrivals(false)),
        |(beginning, steps), breakage| receive(*beginning, steps, Some(breakage)),
    );
    assert_eq!(unseen, []);
}

#[test]
fn each_rule_of_the_copies_is_missed_when_the_model_leaves_it_out() {
    let unseen = unseen(
        Breakage::OF_COPIES,
        sendings,
        |(copies_max, steps), breakage| send(*copies_max, steps, Some(breakage)),
    );
    assert_eq!(unseen, []);
}
