//! Any sequence of what can happen to the trains of several links, at the receiver or at the sender: what the
//! resequencer gives, and what is kept and sent again, is what the slow models of the tests say.
#![no_main]
#![allow(dead_code)] // the models are shared with the tests, which use more of them

#[path = "../../crates/packtrain-proto/tests/models/arrival_step.rs"]
mod arrival_step;
#[path = "../../crates/packtrain-proto/tests/models/arrivals.rs"]
mod arrivals;
#[path = "../../crates/packtrain-proto/tests/models/breakage.rs"]
mod breakage;
#[path = "../../crates/packtrain-proto/tests/models/copies.rs"]
mod copies;
#[path = "../../crates/packtrain-proto/tests/models/far_end.rs"]
mod far_end;
#[path = "../../crates/packtrain-proto/tests/models/order.rs"]
mod order;
#[path = "../../crates/packtrain-proto/tests/models/sender.rs"]
mod sender;
#[path = "../../crates/packtrain-proto/tests/models/sending_step.rs"]
mod sending_step;

use arrivals::{Arrivals, Failure};
use libfuzzer_sys::fuzz_target;
use packtrain_proto::wire::sequence::Sequence;
use sender::Sender;

/// The models are slow: a longer input finds nothing that two shorter ones do not.
const STEPS_MAX: usize = 100;

fn receive(first: u32, bytes_max: usize, steps: &[[u8; 4]]) -> Result<(), Failure> {
    let mut arrivals = Arrivals::new(Sequence(first), bytes_max, None);
    let steps = steps
        .iter()
        .map(|step| arrival_step::Step::from_bytes(*step));
    for step in steps.filter(|step| !is_long(step)) {
        arrivals.step(&step)?;
    }
    arrivals.end()
}

/// For thousands of trains at once the models take seconds: those are left to the tests.
fn is_long(step: &arrival_step::Step) -> bool {
    use arrival_step::Step::{Forged, ForgedMarker, Hello, Stream};
    match *step {
        Stream { trains, .. } => trains > 50,
        Hello { behind } => behind > 200,
        Forged { ahead, .. } | ForgedMarker { ahead, .. } => ahead.unsigned_abs() > 200,
        _ => false,
    }
}

fn send(copies_max: usize, steps: &[[u8; 4]]) -> Result<(), Failure> {
    let mut sender = Sender::new(copies_max, None);
    for step in steps {
        sender.step(&sending_step::Step::from_bytes(*step))?;
    }
    sender.end()
}

fuzz_target!(|data: &[u8]| {
    let Some((&[which, small], data)) = data.split_first_chunk() else {
        return;
    };
    let (steps, _) = data.as_chunks();
    let steps = &steps[..steps.len().min(STEPS_MAX)];
    let is_small = small & 1 == 1;
    let result = match which % 3 {
        0 => send(
            if is_small {
                3 + usize::from(small / 8)
            } else {
                4096
            },
            steps,
        ),
        1 => receive(1, if is_small { 6000 } else { 1 << 20 }, steps),
        _ => receive(u32::MAX - 20, if is_small { 6000 } else { 1 << 20 }, steps),
    };
    result.expect("what the model says");
});
