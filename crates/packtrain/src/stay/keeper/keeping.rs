//! A line without a daemon: `pt0` and the programs stay, until somebody comes or the time is over.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use packtrain_proto::time::Instant;
use rustix::event::{PollFd, PollFlags};

use super::super::message::{Answer, Asked, FORMAT, Kept, to_bytes};
use super::super::socket_name;
use super::speech::Speech;
use super::{Holding, discard_frames, wait};
use crate::clock::Clock;
use crate::instance;
use crate::linux::direct::KeptPath;
use crate::linux::fd_passing;
use crate::linux::guard::KeptGuard;
use crate::linux::host_state::{HostState, Recovery};
use crate::linux::intake;
use crate::running::Signals;

/// So long after the daemon's end all that it had given to the links has arrived, at hosts that are not starved.
const UNDER_WAY: Duration = Duration::from_millis(100);
/// What waits before `pt0` longer than this is not waited for.
const WAITING_MAX: Duration = Duration::from_secs(3);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(20);
/// Who has taken over and says no more has its programs at work since long.
const TAKE_OVER_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Keeping {
    clock: Clock,
    signals: Signals,
    kept: Kept,
    asked_to_end: bool,
    tap: OwnedFd,
    path: KeptPath,
    guards: Vec<KeptGuard>,
    listener: OwnedFd,
    speech: Speech,
    until: Instant,
    /// Since when nobody has carried what went to the engine.
    since: Instant,
    /// All of that has arrived or is lost, and every flow may go directly.
    is_open: bool,
    caller: Option<Caller>,
}

/// Who is connected.
#[derive(Debug)]
struct Caller {
    socket: OwnedFd,
    /// It has `pt0`, and reads what comes from it.
    took_over: Option<Instant>,
}

/// Why it is over.
#[derive(Debug)]
enum End {
    /// Another daemon carries the frames.
    TakenOver,
    TimeOver,
    /// `packtrain down`, or a signal.
    Asked,
    /// Somebody has deleted `pt0`.
    Gone,
}

impl Keeping {
    pub(super) fn begin(holding: Holding, signals: Signals, asked: bool) -> io::Result<Keeping> {
        let listener = fd_passing::listen_at(&socket_name(&holding.kept.line))?;
        let clock = Clock::start();
        let now = clock.now();
        let Holding {
            kept,
            tap,
            path,
            guards,
        } = holding;
        let path = KeptPath::new(path)?;
        if let Err(error) = path.hold_open() {
            tracing::warn!("{}: {error}", kept.line);
        }
        tracing::info!(
            "the daemon of {} has ended: its direct path stays for {} s, until it is started again",
            kept.line,
            kept.stay_s
        );
        if kept.destinations.is_empty() {
            tracing::warn!(
                "no frames of {} can go directly: none go until then",
                kept.line
            );
        }
        Ok(Keeping {
            clock,
            signals,
            asked_to_end: asked,
            tap,
            path,
            guards: guards.into_iter().map(KeptGuard::from).collect(),
            listener,
            speech: Speech::new(kept.words.clone(), now),
            until: now + Duration::from_secs(kept.stay_s),
            since: now,
            is_open: false,
            caller: None,
            kept,
        })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        let end = loop {
            if let Some(end) = self.step()? {
                break end;
            }
        };
        self.end(&end);
        Ok(())
    }

    fn has_heir(&self) -> bool {
        let caller = self.caller.as_ref();
        caller.is_some_and(|caller| caller.took_over.is_some())
    }

    fn step(&mut self) -> io::Result<Option<End>> {
        let now = self.clock.now();
        if let Some(end) = self.is_over(now) {
            return Ok(Some(end));
        }
        if !self.has_heir() {
            self.speech.say_away(now);
            if !self.is_open {
                self.open(now)?;
            }
        }
        let reads = self.is_open && !self.has_heir();
        let signals = self.signals.fd();
        let none = PollFlags::empty();
        let mut fds = vec![
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(&self.tap, if reads { PollFlags::IN } else { none }),
            match &self.caller {
                Some(caller) => PollFd::new(&caller.socket, PollFlags::IN),
                None => PollFd::new(&self.listener, PollFlags::IN),
            },
        ];
        wait(&mut fds, Some(self.next_look(now)))?;
        let [signal, frames, word] = [0, 1, 2].map(|at| !fds[at].revents().is_empty());
        if signal && self.signals.caught() {
            return Ok(Some(End::Asked));
        }
        if frames && !discard_frames(&self.tap) {
            return Ok(Some(End::Gone));
        }
        match self.caller.take() {
            Some(caller) if word => self.hear(caller),
            None if word => {
                self.caller = fd_passing::accept(&self.listener)?.map(|socket| Caller {
                    socket,
                    took_over: None,
                });
                Ok(None)
            }
            caller => {
                self.caller = caller;
                Ok(None)
            }
        }
    }

    fn is_over(&self, now: Instant) -> Option<End> {
        let took_over = self.caller.as_ref().and_then(|caller| caller.took_over);
        match took_over {
            Some(at) => (now.since(at) >= TAKE_OVER_MAX).then_some(End::TakenOver),
            None => (now >= self.until).then_some(End::TimeOver),
        }
    }

    fn next_look(&self, now: Instant) -> Duration {
        if self.has_heir() {
            return TAKE_OVER_MAX;
        }
        let next = self.until.min(self.speech.next());
        let left = next.since(now);
        if self.is_open { left } else { left.min(LOOK) }
    }

    /// Once nothing is under way by the engine that is gone, every flow may go directly.
    fn open(&mut self, now: Instant) -> io::Result<()> {
        let elapsed = now.since(self.since);
        let waits = elapsed < WAITING_MAX && intake::holds_frames(self.kept.ifindex);
        if elapsed >= UNDER_WAY && !waits {
            discard_frames(&self.tap);
            let entries = self.kept.entries.iter();
            let entries: Vec<_> = entries.map(|e| (e.key.clone(), e.value.clone())).collect();
            self.path.add_destinations(&entries)?;
            self.path.set_drained(u64::MAX)?;
            self.is_open = true;
        }
        Ok(())
    }

    /// Who is connected says something, or hangs up.
    fn hear(&mut self, caller: Caller) -> io::Result<Option<End>> {
        let asked = match fd_passing::receive(&caller.socket) {
            Ok(Some(message)) => serde_json::from_slice::<Asked>(&message.bytes).ok(),
            Ok(None) | Err(_) => None,
        };
        match asked {
            Some(Asked::TakeOver { format: FORMAT }) => {
                self.hand_over(&caller.socket)?;
                self.caller = Some(Caller {
                    took_over: Some(self.clock.now()),
                    ..caller
                });
            }
            Some(Asked::TakeOver { format }) => {
                let reason = format!("it hands over by format {FORMAT}, and is asked for {format}");
                let refused = to_bytes(&Answer::Refused { reason });
                let _ = fd_passing::send(&caller.socket, &refused, &[]);
                self.caller = Some(caller);
            }
            Some(Asked::LetGo) if caller.took_over.is_some() => return Ok(Some(End::TakenOver)),
            Some(Asked::End) => {
                self.caller = Some(caller); // it waits until all is undone
                return Ok(Some(End::Asked));
            }
            Some(Asked::LetGo) | None => {
                if caller.took_over.is_some() {
                    // It ended before its programs were at work: ours are, as before.
                    tracing::warn!("who took {} over has ended", self.kept.line);
                    let now = self.clock.now();
                    (self.since, self.is_open) = (now, false);
                    self.speech.begin_anew(now);
                }
            }
        }
        Ok(None)
    }

    /// `pt0`'s frames are read by another daemon from now on. What went to the engine stays there, in its order,
    /// until that one says otherwise.
    fn hand_over(&mut self, heir: &OwnedFd) -> io::Result<()> {
        if self.is_open {
            // First the number, then what has it: whatever is younger is for the heir.
            let ticket = self.path.tickets()?;
            discard_frames(&self.tap);
            self.path.set_drained(ticket)?;
        }
        let given = to_bytes(&Answer::Given {
            ifindex: self.kept.ifindex,
            destinations: self.kept.destinations.clone(),
            sources: self.kept.sources.clone(),
        });
        tracing::info!("{} is taken over", self.kept.line);
        // One that has hung up is seen by that.
        let _ = fd_passing::send(heir, &given, &[self.tap.as_fd()]);
        Ok(())
    }

    fn end(self, end: &End) {
        let Keeping {
            kept,
            tap,
            path,
            guards,
            speech,
            caller,
            listener,
            ..
        } = self;
        let line = &kept.line;
        match end {
            End::TakenOver => {
                tracing::debug!("the programs of the former daemon of {line} go");
                return; // and nothing else is ours
            }
            End::TimeOver => tracing::info!("nobody has started {line} again in {} s", kept.stay_s),
            End::Asked => tracing::info!("{line} ends"),
            End::Gone => tracing::warn!("{line} was deleted"),
        }
        speech.say_goodbye();
        // As a daemon does it: no frame moves, then the guards go, then what was changed goes back.
        drop((path, tap));
        drop(guards);
        recover(line);
        if self.asked_to_end || matches!(end, End::Asked) {
            instance::remove_log(line);
        }
        // The name is free, and who waits for the end is told, when all is done.
        drop((caller, listener));
    }
}

fn recover(line: &str) {
    let recovered = instance::state_dir().map(|dir| HostState::recover(&dir, line));
    match recovered {
        Ok(Ok(Recovery::Undone { changes })) => {
            for change in instance::undone(&changes) {
                tracing::info!("{change}");
            }
        }
        Ok(Ok(other)) => tracing::debug!("{other:?}"),
        Ok(Err(error)) => tracing::warn!("{error}"),
        Err(error) => tracing::warn!("the state directory: {error}"),
    }
}
