//! The capture, read once, and a replay a policy, each on a thread of its own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_sim::whatif::receive_filter::FilterCounts;
use packtrain_sim::whatif::{
    Batch, Ended, Intake, IntakeCounts, Journal, Ledger, Replay, Results, Setup,
};

use super::WhatifArguments;
use super::plan::Plan;
use super::progress::Progress;
use crate::capture_file::{CaptureError, CaptureFile, LinkType};

/// Batches that wait for a replay at most: reading is faster, and memory is not to grow with the capture.
const BATCHES_WAITING: usize = 2;

#[derive(Debug)]
pub struct Replayed {
    pub counts: IntakeCounts,
    /// Frames that were none of Ethernet's: their headers are made up.
    pub made_up: u64,
    pub filter: Option<FilterCounts>,
    /// In the order of [`Plan::replays`]; none of a capture of which nothing can be replayed.
    pub results: Vec<Results>,
}

/// What was good before the file broke off, and how it did.
pub fn run(
    capture: &mut CaptureFile,
    plan: &mut Plan,
    arguments: &WhatifArguments,
) -> (Replayed, Option<CaptureError>) {
    thread::scope(|scope| {
        let mut intake = Intake::new(plan.classes.clone(), plan.wire().mtu, arguments.host);
        let mut runners: Vec<Runner<'_>> = Vec::new();
        let mut give = |plan: &Plan, batch: Batch| {
            if batch.frames().is_empty() {
                return;
            }
            if runners.is_empty() {
                let hosts = hosts_of(&batch, plan.hosts_max(), arguments.host);
                let setups = plan.replays().map(|policy| plan.setup(policy));
                runners = setups
                    .map(|setup| Runner::start(scope, setup, hosts.clone()))
                    .collect();
            }
            let batch = Arc::new(batch);
            for runner in &runners {
                // One that has ended has failed, and says so when it is joined.
                let _ = runner.batches.send(Arc::clone(&batch));
            }
        };
        let mut progress = Progress::new("replayed");
        let (mut made_up, mut is_first) = (0, true);
        let broken = loop {
            match capture.next_frame() {
                Ok(Some(frame)) => {
                    if std::mem::take(&mut is_first) {
                        plan.rate.with_first(&frame);
                    }
                    made_up += u64::from(frame.link_type != LinkType::ETHERNET);
                    progress.read(frame.number);
                    if let Some(batch) = intake.frame(frame.at, frame.bytes, frame.len_on_wire) {
                        give(plan, batch);
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        give(plan, intake.rest());
        let top = usize::from(arguments.top);
        let results = runners
            .into_iter()
            .map(|runner| runner.finish(top))
            .collect();
        progress.ends();
        let replayed = Replayed {
            counts: intake.counts(),
            made_up,
            filter: intake.filter().map(|filter| filter.counts),
            results,
        };
        (replayed, broken)
    })
}

/// The one of which only one side is wanted is a host whatever it has sent so far.
fn hosts_of(batch: &Batch, most: usize, wanted: Option<MacAddr>) -> Vec<MacAddr> {
    let busiest = batch.hosts().into_iter();
    let others = busiest.filter(|&host| Some(host) != wanted);
    wanted.into_iter().chain(others).take(most).collect()
}

/// A replay, and what it counts: one thread runs ahead of the other.
struct Runner<'scope> {
    batches: SyncSender<Arc<Batch>>,
    replay: ScopedJoinHandle<'scope, Ended>,
    ledger: ScopedJoinHandle<'scope, Ledger>,
}

impl<'scope> Runner<'scope> {
    fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        setup: Setup,
        hosts: Vec<MacAddr>,
    ) -> Runner<'scope> {
        let (batches, given): (_, Receiver<Arc<Batch>>) = sync_channel(BATCHES_WAITING);
        let (journals, written) = sync_channel::<(Journal, Arc<Batch>)>(BATCHES_WAITING);
        let mut ledger = Ledger::new(&setup);
        let replay = spawn(scope, "replay", move || {
            let mut replay = Replay::new(setup, &hosts);
            // A ledger that has ended has failed, and says so when it is joined.
            for batch in given {
                let _ = journals.send((replay.batch(&batch), batch));
            }
            let (journal, ended) = replay.finish();
            let _ = journals.send((journal, Arc::default()));
            ended
        });
        let ledger = spawn(scope, "ledger", move || {
            for (journal, batch) in written {
                ledger.read(&journal, &batch);
            }
            ledger
        });
        Runner {
            batches,
            replay,
            ledger,
        }
    }

    /// `top`: conversations that are told one by one.
    fn finish(self, top: usize) -> Results {
        drop(self.batches);
        let ended = join(self.replay);
        join(self.ledger).finish(ended, top)
    }
}

/// Named, as one sees who fills the processors.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let thread = thread::Builder::new().name(name.to_owned());
    let started = thread.spawn_scoped(scope, run);
    started.expect("as many threads as a few policies need")
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    // A mistake of ours: as if it had been made here.
    let result = thread.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
