//! The process of a pacer.

use std::time::Duration;

use packtrain_proto::time::{Duration as Span, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::PaceError;
use super::document::LinkRuleDocument;
use super::plan::{LineRateSource, Plan, plan};
use super::rules::{FramesError, LinkRuleWish, LinkRules};
use super::wish::{PaceSettings, Wish};
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::control::{Asker, ControlServer, Reply, Request, Response};
use crate::instance;
use crate::linux::ethtool;
use crate::linux::gap_qdisc::{self, Root, Sorter};
use crate::linux::host_state::{HostState, Outcome, Recovery};
use crate::linux::netlink::{Link, Monitor, NetEvent, Netlink};
use crate::pace::Pacer;
use crate::pace::tcp::rules::RuleError;
use crate::running::Signals;

/// How often somebody looks whether the queue is still there: nobody tells.
const LOOKED_AFTER_EVERY: Span = Span::from_secs(2);
/// What waits leaves within milliseconds once nothing holds it.
const DRAIN_STEP: Duration = Duration::from_millis(2);
const DRAIN_STEPS_MAX: u32 = 100;

mod rules;
mod shown;

/// A pacer that stands. What it changed is undone before its control socket goes: who waits for its end sees it undone.
#[derive(Debug)]
pub struct RunningPacer {
    settings: PaceSettings,
    ifindex: u32,
    /// As the interface is called now.
    name: String,
    plan: Plan,
    rules: LinkRules,
    /// As long as there are rules.
    sorter: Option<Sorter>,
    netlink: Netlink,
    state: HostState,
    monitor: Monitor,
    signals: Signals,
    clock: Clock,
    looked_at: Instant,
    /// That the interface had sent before.
    sent_bytes_before: u64,
    control: ControlServer,
    /// To those who have taken the last rule away: once all is undone.
    answers_at_end: Vec<(Asker, Response)>,
}

impl RunningPacer {
    /// Its queue stands when this returns. Of what it was told by an earlier run, and of the interface, `note` tells.
    pub fn start(
        settings: PaceSettings,
        wishes: &[LinkRuleWish],
        control: ControlServer,
        signals: Signals,
        note: &mut dyn FnMut(&str),
    ) -> Result<RunningPacer, PaceError> {
        let pacer = Pacer::Link(settings.interface.clone());
        LinkRules::of(wishes)?;
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
        let source = plan.gap.map(|gap| gap.line_rate_source);
        if source == Some(LineRateSource::Veth) {
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
        let mut pacer = RunningPacer {
            settings,
            ifindex: link.ifindex,
            name: link.name,
            plan,
            rules: LinkRules::default(),
            sorter: None,
            netlink,
            state,
            monitor,
            signals,
            clock: Clock::start(),
            looked_at: Instant::ZERO,
            sent_bytes_before,
            control,
            answers_at_end: Vec::new(),
        };
        if let Err(error) = pacer.begin_rules(wishes) {
            pacer.stop()?;
            return Err(error);
        }
        Ok(pacer)
    }

    /// Until it is told to end, or its interface is gone. `at_clean_end` comes before whoever has asked for the end knows
    /// of it.
    pub fn run(mut self, at_clean_end: impl FnOnce()) -> Result<(), PaceError> {
        let ended = self.turns();
        if let Err(error) = &ended {
            tracing::error!("{error}");
        }
        self.undo()?;
        for (asker, response) in std::mem::take(&mut self.answers_at_end) {
            self.control.answer_later(asker, &response);
        }
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

    fn space(&mut self, plan: Plan) -> Result<(), PaceError> {
        gap_qdisc::change(&mut self.netlink, self.ifindex, plan.spacing)?;
        tracing::info!("{}", said(&self.name, &plan));
        self.plan = plan;
        Ok(self.space_rules()?)
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
                Reply::Later
            }
        });
        for (request, asker) in asked {
            let takes_away = matches!(request, Request::PaceRuleRemove { .. });
            let response = self.respond(request).unwrap_or_else(|error| {
                let error = CliError::from(error);
                Response::Refused {
                    exit_code: error.exit_code(),
                    message: error.to_string(),
                    hint: error.hint(),
                }
            });
            match takes_away && self.is_idle() {
                true => self.answers_at_end.push((asker, response)),
                false => self.control.answer_later(asker, &response),
            }
        }
        // Unless another rule has come in the same moment.
        ends || (self.is_idle() && !self.answers_at_end.is_empty())
    }

    /// Nobody has asked for anything that is left.
    fn is_idle(&self) -> bool {
        self.settings.gap.is_none() && self.rules.is_empty()
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
            Request::PaceLinkRuleAdd { wish } => rule_answer(self.add_rule(&wish)?),
            Request::PaceRuleRemove { name } => rule_answer(self.remove_rule(&name)?),
            Request::PaceRuleAdd { .. } => Err(RuleError::Frames(FramesError::Tcp).into()),
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
        let opened = gap_qdisc::open(&mut self.netlink, self.ifindex);
        if opened.and_then(|()| self.open_rules()).is_err() {
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

fn rule_answer(rule: LinkRuleDocument) -> Result<Response, PaceError> {
    Ok(Response::Rule(
        serde_json::to_value(rule).expect("plain JSON"),
    ))
}

fn said(name: &str, plan: &Plan) -> String {
    match plan.gap {
        Some(planned) => format!(
            "each frame of {name} is followed by a gap of {} byte times at {} bit/s",
            planned.gap.bytes(),
            planned.line.rate_bps
        ),
        None => format!("frames of {name} are paced by rules alone"),
    }
}
