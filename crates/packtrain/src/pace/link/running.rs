//! The process of a pacer.

use std::time::Duration;

use packtrain_proto::time::{Duration as Span, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::PaceError;
use super::document::{KIND, LinkPacerDocument, SpacingDocument};
use super::plan::{LineRateSource, Plan, plan};
use super::wish::{PaceSettings, Wish};
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::control::{ControlServer, Request, Response};
use crate::instance;
use crate::linux::ethtool;
use crate::linux::gap_qdisc::{self, Root};
use crate::linux::host_state::{Change, HostState, Outcome, Recovery};
use crate::linux::netlink::{Link, Monitor, NetEvent, Netlink, NetlinkError};
use crate::pace::Pacer;
use crate::running::Signals;

/// How often somebody looks whether the queue is still there: nobody tells.
const LOOKED_AFTER_EVERY: Span = Span::from_secs(2);
/// What waits leaves within milliseconds once nothing holds it.
const DRAIN_STEP: Duration = Duration::from_millis(2);
const DRAIN_STEPS_MAX: u32 = 100;

/// A pacer that stands. What it changed is undone before its control socket goes: who waits for its end sees it undone.
#[derive(Debug)]
pub struct RunningPacer {
    settings: PaceSettings,
    ifindex: u32,
    /// As the interface is called now.
    name: String,
    plan: Plan,
    netlink: Netlink,
    state: HostState,
    monitor: Monitor,
    signals: Signals,
    clock: Clock,
    looked_at: Instant,
    /// That the interface had sent before.
    sent_bytes_before: u64,
    control: ControlServer,
}

impl RunningPacer {
    /// Its queue stands when this returns. Of what it was told by an earlier run, and of the interface, `note` tells.
    pub fn start(
        settings: PaceSettings,
        control: ControlServer,
        signals: Signals,
        note: &mut dyn FnMut(&str),
    ) -> Result<RunningPacer, PaceError> {
        let pacer = Pacer::Link(settings.interface.clone());
        let directory = instance::state_dir().map_err(PaceError::Wait)?;
        let recovered = HostState::recover(&directory, &pacer.file_name())?;
        if let Recovery::Undone { changes } = recovered {
            instance::undone(&changes)
                .iter()
                .for_each(|text| note(text));
        }
        let monitor = Monitor::open().map_err(PaceError::Monitor)?;
        let mut netlink = Netlink::open()?;
        let link = find(&mut netlink, settings.interface.as_str())?;
        if let Root::Foreign { kind, handle } = gap_qdisc::root(&mut netlink, link.ifindex)? {
            return Err(PaceError::Foreign {
                interface: link.name,
                kind,
                handle,
            });
        }
        let plan = plan(&settings, &link, speed_bps(&link))?;
        if plan.line_rate_source == LineRateSource::Veth {
            note(&format!(
                "{} is a veth, which says 10 Gbit/s whatever carries it: --line-rate says how fast it is",
                link.name
            ));
        }
        let sent_bytes_before = netlink.transmit_bytes(link.ifindex)?;
        let mut state = HostState::create(&directory, &pacer.file_name())?;
        state.expect_root_qdisc(link.ifindex)?;
        if let Err(error) = gap_qdisc::put(&mut netlink, link.ifindex, plan.spacing) {
            let _ = state.restore();
            return Err(error.into());
        }
        tracing::info!("{}", said(&link.name, &plan));
        Ok(RunningPacer {
            settings,
            ifindex: link.ifindex,
            name: link.name,
            plan,
            netlink,
            state,
            monitor,
            signals,
            clock: Clock::start(),
            looked_at: Instant::ZERO,
            sent_bytes_before,
            control,
        })
    }

    /// Until it is told to end, or its interface is gone. `at_clean_end` comes before whoever has asked for the end knows
    /// of it.
    pub fn run(mut self, at_clean_end: impl FnOnce()) -> Result<(), PaceError> {
        let ended = self.turns();
        if let Err(error) = &ended {
            tracing::error!("{error}");
        }
        self.undo()?;
        if ended.is_ok() {
            tracing::info!("the pacer of {} ends", self.name);
            at_clean_end();
        }
        ended
    }

    /// Undoes everything, at once.
    pub fn stop(mut self) -> Result<(), PaceError> {
        self.undo()
    }

    fn turns(&mut self) -> Result<(), PaceError> {
        loop {
            self.wait()?;
            if self.signals.caught() || self.answer() {
                return Ok(());
            }
            self.follow_interface()?;
            let now = self.clock.now();
            if now >= self.looked_at + LOOKED_AFTER_EVERY {
                self.looked_at = now;
                if gap_qdisc::root(&mut self.netlink, self.ifindex)? != Root::Ours {
                    return Err(PaceError::TakenAway(self.name.clone()));
                }
            }
        }
    }

    fn wait(&self) -> Result<(), PaceError> {
        let left = (self.looked_at + LOOKED_AFTER_EVERY).since(self.clock.now());
        let timeout = Timespec::try_from(left).expect("seconds");
        let fds = [self.control.fd(), self.signals.fd(), self.monitor.fd()];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(PaceError::Wait(error.into())),
        }
    }

    /// Its name, its MTU and its rate may change. An error says that it is gone.
    fn follow_interface(&mut self) -> Result<(), PaceError> {
        let mut look = false;
        loop {
            match self.monitor.next_event().map_err(PaceError::Monitor)? {
                Some(NetEvent::LinkGone { ifindex, .. }) if ifindex == self.ifindex => {
                    return Err(PaceError::InterfaceGone(self.name.clone()));
                }
                Some(NetEvent::Link(link)) => look |= link.ifindex == self.ifindex,
                Some(NetEvent::Resync) => look = true,
                Some(_) => {}
                None => break,
            }
        }
        if !look {
            return Ok(());
        }
        // It may be in another namespace by now, which nobody tells as its end.
        let Some(link) = self.netlink.link(self.ifindex)? else {
            return Err(PaceError::InterfaceGone(self.name.clone()));
        };
        if link.name != self.name {
            let known_as = &self.settings.interface;
            tracing::info!(
                "{} is now {}: commands go on to call it {known_as}",
                self.name,
                link.name
            );
            self.name.clone_from(&link.name);
        }
        match plan(&self.settings, &link, speed_bps(&link)) {
            Ok(plan) if plan == self.plan => {}
            Ok(plan) => self.space(plan)?,
            // As without a cable: frames are spaced as before, if there are any.
            Err(error) => tracing::info!("{}: spaced as before: {error}", self.name),
        }
        Ok(())
    }

    fn space(&mut self, plan: Plan) -> Result<(), NetlinkError> {
        gap_qdisc::change(&mut self.netlink, self.ifindex, plan.spacing)?;
        tracing::info!("{}", said(&self.name, &plan));
        self.plan = plan;
        Ok(())
    }

    /// Says whether it is to end.
    fn answer(&mut self) -> bool {
        let (mut ends, mut asked) = (false, Vec::new());
        self.control.handle(&mut |request, asker| match request {
            // Who has asked for it waits until it has come, and is told so by the server.
            Request::Down {} => {
                ends = true;
                Response::Done.into()
            }
            request => {
                asked.push((request, asker));
                crate::control::Reply::Later
            }
        });
        for (request, asker) in asked {
            let response = self.respond(request).unwrap_or_else(|error| {
                let error = CliError::from(error);
                Response::Refused {
                    exit_code: error.exit_code(),
                    message: error.to_string(),
                    hint: error.hint(),
                }
            });
            self.control.answer_later(asker, &response);
        }
        ends
    }

    fn respond(&mut self, request: Request) -> Result<Response, PaceError> {
        match request {
            Request::Status {} => {
                let document = serde_json::to_value(self.document()?).expect("plain JSON");
                Ok(Response::Status(document))
            }
            Request::PaceLink { wish } => {
                self.change(&wish)?;
                Ok(Response::Done)
            }
            _ => Ok(Response::Error(
                "a pacer of an interface knows no such request".into(),
            )),
        }
    }

    fn change(&mut self, wish: &Wish) -> Result<(), PaceError> {
        let settings = self.settings.changed(wish);
        let Some(link) = self.netlink.link(self.ifindex)? else {
            return Err(PaceError::InterfaceGone(self.name.clone()));
        };
        let plan = plan(&settings, &link, speed_bps(&link))?;
        self.space(plan)?;
        self.settings = settings;
        Ok(())
    }

    fn document(&mut self) -> Result<LinkPacerDocument, PaceError> {
        let counters = gap_qdisc::counters(&mut self.netlink, self.ifindex)?;
        let counters = counters.ok_or_else(|| PaceError::TakenAway(self.name.clone()))?;
        let sent_bytes = self.netlink.transmit_bytes(self.ifindex)?;
        let Plan { line, gap, .. } = self.plan;
        let gso = self.plan.spacing.gso;
        Ok(LinkPacerDocument {
            kind: KIND.into(),
            interface: self.name.clone(),
            known_as: self.settings.interface.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: Some(std::process::id()),
            undo: self.state.changes().iter().map(Change::to_string).collect(),
            spacing: Some(SpacingDocument {
                carrier: "htb".into(),
                carrier_because: CARRIER_BECAUSE.into(),
                asked: self.settings.gap,
                gap_bytes: gap.bytes(),
                gap_ns: line.nanos(gap.bytes().into()),
                line_rate_bps: line.rate_bps,
                line_rate_source: self.plan.line_rate_source.as_str().into(),
                mtu: line.mtu,
                payload_rate_bps: line.payload_rate_bps(gap),
                busy_factor: line.busy_factor(gap),
                gso: gso.as_str().into(),
                gso_because: self.settings.gso.because(gso).into(),
                burst_ns: self.settings.burst.as_nanos() as u64,
                queue_frames_max: self.settings.queue_frames_max,
                queue_frames: counters.queue_frames,
                queue_bytes: counters.queue_bytes,
                sent_frames: counters.sent_frames,
                sent_bytes: sent_bytes.saturating_sub(self.sent_bytes_before),
                dropped_frames: counters.dropped_frames,
            }),
        })
    }

    /// What waits is let go first: with the queue it would be lost.
    fn undo(&mut self) -> Result<(), PaceError> {
        if gap_qdisc::root(&mut self.netlink, self.ifindex).is_ok_and(|root| root == Root::Ours) {
            self.drain();
        }
        for (change, outcome) in self.state.restore()? {
            if let Outcome::Failed { reason } = outcome {
                tracing::error!("not undone: {change}: {reason}");
            }
        }
        Ok(())
    }

    fn drain(&mut self) {
        let step = Timespec::try_from(DRAIN_STEP).expect("milliseconds");
        if gap_qdisc::open(&mut self.netlink, self.ifindex).is_err() {
            return;
        }
        for _ in 0..DRAIN_STEPS_MAX {
            let counters = gap_qdisc::counters(&mut self.netlink, self.ifindex);
            let waits = |counters: gap_qdisc::Counters| counters.queue_frames > 0;
            if !counters.is_ok_and(|counters| counters.is_some_and(waits)) {
                return;
            }
            let _ = poll(&mut [], Some(&step));
        }
    }
}

/// Why HTB and nothing else: as measured, in docs/pacing.md.
const CARRIER_BECAUSE: &str =
    "it puts each gap behind its frame, where tbf puts it before the next; fq is not used";

fn find(netlink: &mut Netlink, name: &str) -> Result<Link, PaceError> {
    let link = netlink.link_by_name(name)?;
    let link = link.ok_or_else(|| PaceError::InterfaceMissing(name.into()))?;
    if link.name != name {
        return Err(PaceError::AnotherName {
            asked: name.into(),
            name: link.name,
        });
    }
    match link.is_ethernet {
        true => Ok(link),
        false => Err(PaceError::NotEthernet(name.into())),
    }
}

/// A driver that has no such question does not know.
fn speed_bps(link: &Link) -> Option<u64> {
    ethtool::speed_bps(&link.name).ok().flatten()
}

fn said(name: &str, plan: &Plan) -> String {
    format!(
        "each frame of {name} is followed by a gap of {} byte times at {} bit/s",
        plan.gap.bytes(),
        plan.line.rate_bps
    )
}
