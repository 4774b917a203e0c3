//! The process of a filter: told of what changes, and asked how it is.

mod confirm;

use std::os::fd::AsFd;

use packtrain_proto::time::{Duration as Span, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::confirmation::{self, Confirmation};
use super::document::{FilterDocument, policy_name};
use super::error::RunError;
use super::line_above::LineSearch;
use super::rules::Rules;
use super::{FilterSettings, mode, rule_requests};
use crate::clock::Clock;
use crate::control::{ControlServer, Reply, Request, Response};
use crate::instance;
use crate::linux::filter::{Filter, FilterError, Mode, Settings, Stay};
use crate::linux::netlink::{LocalRoutes, Monitor, NetEvent, Netlink};
use crate::running::Signals;
use crate::settings::values::InterfaceName;

/// How often the program is told that somebody watches, and the line above is looked for.
const REFRESHED_EVERY: Span = Span::from_secs(1);
/// Refreshes after which all lines are asked for the interface, also when none has come or gone.
const LINE_SOUGHT_EVERY: u32 = 10;
/// The routes are read no more often than this, however many change: until then foreign ARP passes.
const ROUTES_READ_EVERY: Span = Span::from_millis(10);
/// The routes change under who reads them; after so many times they are read again later.
const READS_MAX: u32 = 4;
/// A line that is well answers within milliseconds: a filter that comes to its link knows it from the first frame on.
const FIRST_ANSWERS_WAIT: Span = Span::from_millis(500);
/// A process that does not hang has undone what was not confirmed by then.
const UNDONE_WITHIN: Span = Span::from_secs(1);

/// A filter that stands. Its program goes before its control socket: who waits for its end sees it gone.
#[derive(Debug)]
pub struct RunningFilter {
    settings: FilterSettings,
    ifindex: u32,
    /// As the interface is called now.
    name: String,
    mode: Mode,
    filter: Filter,
    routes: LocalRoutes,
    monitor: Monitor,
    rules: Rules,
    confirmation: Confirmation,
    control: ControlServer,
    signals: Signals,
    clock: Clock,
    /// Lines that ran when the one above was last looked for.
    lines: Vec<InterfaceName>,
    line_search: LineSearch,
    /// It is a port of a VRF, a bridge or the like.
    has_master: bool,
    /// The interface filters unicast addresses itself, as far as is known.
    filters_unicast: Option<bool>,
    refreshes: u32,
    local: usize,
    local_refused: usize,
    /// The state that they were read in.
    routes_seq: u32,
    routes_are_old: bool,
    routes_read_at: Instant,
    refreshed_at: Instant,
}

impl RunningFilter {
    /// Attached, and told all that it has to know.
    pub fn start(
        settings: FilterSettings,
        mut control: ControlServer,
        signals: Signals,
        note: &mut dyn FnMut(&str),
    ) -> Result<RunningFilter, RunError> {
        let name = settings.interface.as_str();
        let link = Netlink::open()?.link_by_name(name)?;
        let link = link.ok_or_else(|| RunError::InterfaceMissing(name.into()))?;
        if link.name != name {
            return Err(RunError::AnotherName {
                asked: name.into(),
                name: link.name,
            });
        }
        if !link.is_ethernet {
            return Err(RunError::NotEthernet(name.into()));
        }
        // Sets of addresses are long.
        control.take_long_requests();
        let clock = Clock::start();
        let mut running = RunningFilter {
            ifindex: link.ifindex,
            name: name.into(),
            mode: Mode::Native,
            filter: Filter::load()?,
            routes: LocalRoutes::open().map_err(RunError::Monitor)?,
            monitor: Monitor::open().map_err(RunError::Monitor)?,
            rules: Rules::default(),
            confirmation: Confirmation::default(),
            control,
            signals,
            clock,
            lines: Vec::new(),
            line_search: LineSearch::new(link.ifindex),
            has_master: link.master.is_some(),
            filters_unicast: None,
            refreshes: 0,
            local: 0,
            local_refused: 0,
            routes_seq: 0,
            routes_are_old: true,
            routes_read_at: Instant::ZERO,
            refreshed_at: Instant::ZERO,
            settings,
        };
        // Before it is attached, so that it never judges by half of what there is.
        let rules = std::mem::take(&mut running.settings.rules);
        let loaded = running.rules.load(rules, &mut running.filter);
        loaded.map_err(RunError::Rules)?;
        // Nothing that could be gone back from.
        running.rules.take_former();
        running.refresh()?;
        running.hear_lines()?;
        running.read_routes()?;
        let filters_unicast = running.filter.filters_unicast(link.ifindex);
        running.filters_unicast = filters_unicast?;
        if let Some(warning) = mode::warning(&link, running.settings.mode) {
            note(&warning);
        }
        let wish = running.settings.mode;
        running.mode = mode::attach(&mut running.filter, link.ifindex, wish, note)?;
        running.wait_for_own_confirmation(note)?;
        Ok(running)
    }

    /// Until it is told to end, or its interface is gone. `at_clean_end` comes before whoever has asked for the end knows
    /// of it.
    pub fn run(mut self, at_clean_end: impl FnOnce()) -> Result<(), RunError> {
        if self.settings.confirm.is_none() {
            self.filter.keep();
        }
        let ended = self.turns(at_clean_end);
        if let Err(error) = &ended {
            tracing::error!("{error}");
        }
        ended
    }

    fn turns(&mut self, at_clean_end: impl FnOnce()) -> Result<(), RunError> {
        loop {
            self.wait()?;
            // Before it answers: who confirms too late is told so.
            self.undo_what_is_overdue()?;
            if self.signals.caught() {
                // Who ends the process of a filter that is to stay has not said that it shall not.
                let stays = if self.settings.stays && self.settings.confirm.is_none() {
                    "; its program stays"
                } else {
                    ""
                };
                tracing::info!("the filter of {} ends{stays}", self.name);
                at_clean_end();
                return Ok(());
            }
            if self.answer() {
                tracing::info!("the filter of {} ends", self.name);
                self.filter.take_away()?;
                at_clean_end();
                return Ok(());
            }
            if self.follow_interfaces()? {
                return Err(RunError::InterfaceGone(self.name.clone()));
            }
            self.routes_are_old |= self.routes.have_changed().map_err(RunError::Monitor)?;
            self.step_line_search()?;
            let now = self.clock.now();
            if self.routes_are_old && now >= self.routes_read_at + ROUTES_READ_EVERY {
                self.read_routes()?;
            }
            if now >= self.refreshed_at + REFRESHED_EVERY {
                self.refresh()?;
            }
        }
    }

    fn wait(&self) -> Result<(), RunError> {
        let now = self.clock.now();
        let mut next = self.refreshed_at + REFRESHED_EVERY;
        if self.routes_are_old {
            next = next.min(self.routes_read_at + ROUTES_READ_EVERY);
        }
        let mut left = next.since(now);
        if let Some(unconfirmed) = self.confirmation.waiting() {
            left = left.min(unconfirmed.until.since(self.clock.boot()));
        }
        let timeout = Timespec::try_from(left).expect("a second at most");
        let fds = [
            self.control.fd(),
            self.signals.fd(),
            self.monitor.fd(),
            self.routes.as_fd(),
        ];
        let mut fds: Vec<_> = fds
            .into_iter()
            .chain(self.line_search.fds())
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(RunError::Wait(error.into())),
        }
    }

    /// Says whether the interface is gone.
    fn follow_interfaces(&mut self) -> Result<bool, RunError> {
        let mut look = false;
        loop {
            let event = self.monitor.next_event();
            match event.map_err(RunError::Monitor)? {
                Some(NetEvent::LinkGone { ifindex, .. }) if ifindex == self.ifindex => {
                    return Ok(true);
                }
                Some(NetEvent::Resync | NetEvent::Link(_)) => look = true,
                Some(_) => {}
                None => break,
            }
        }
        if !look {
            return Ok(false);
        }
        self.routes_are_old = true;
        // It may be in another namespace by now, which nobody tells as its end.
        let Some(link) = Netlink::open()?.link(self.ifindex)? else {
            return Ok(true);
        };
        if link.name != self.name {
            let known_as = &self.settings.interface;
            tracing::info!(
                "{} is now {}: commands go on to call it {known_as}",
                self.name,
                link.name
            );
            self.name = link.name;
        }
        if self.has_master != link.master.is_some() {
            self.has_master = link.master.is_some();
            self.tell()?;
        }
        Ok(false)
    }

    fn read_routes(&mut self) -> Result<(), RunError> {
        self.routes_are_old = true;
        for _ in 0..READS_MAX {
            let Some(seq) = self.filter.fib_seq()? else {
                break;
            };
            let local = self.routes.read()?;
            if self.filter.fib_seq()? == Some(seq) {
                self.local = local.len();
                self.local_refused = self.filter.set_local(&local, seq)?;
                self.routes_seq = seq;
                self.routes_are_old = false;
                break;
            }
        }
        // Behind it, so that a host with very many routes is not read all the time.
        self.routes_read_at = self.clock.now();
        Ok(())
    }

    fn refresh(&mut self) -> Result<(), RunError> {
        self.refreshed_at = self.clock.now();
        self.tell()?;
        let lines = instance::running().unwrap_or_default();
        let is_due = self.refreshes.is_multiple_of(LINE_SOUGHT_EVERY);
        if is_due && self.refreshes > 0 && !self.filter.stands()? {
            return Err(RunError::TakenAway(self.name.clone()));
        }
        self.refreshes = self.refreshes.wrapping_add(1);
        // The kernel counts changes that it tells nobody of, as when a carrier comes back; and a route that goes may be
        // counted before it has gone.
        let seq = self.filter.fib_seq()?;
        self.routes_are_old |= is_due || seq.is_some_and(|seq| seq != self.routes_seq);
        if !is_due && lines == self.lines {
            return Ok(());
        }
        let now = self.clock.now();
        let has_changed = self.line_search.ask(&lines, now);
        self.lines = lines;
        self.line_changed(has_changed)
    }

    fn step_line_search(&mut self) -> Result<(), RunError> {
        let now = self.clock.now();
        let has_changed = self.line_search.step(now);
        self.line_changed(has_changed)
    }

    fn line_changed(&mut self, has_changed: bool) -> Result<(), RunError> {
        if !has_changed {
            return Ok(());
        }
        match self.line_search.line() {
            Some(line) => tracing::info!("{} is a member link of {}", self.name, line.name),
            None => tracing::info!("{} is no member link any more", self.name),
        }
        self.tell()
    }

    /// What lines say within a moment, before the program is attached.
    fn hear_lines(&mut self) -> Result<(), RunError> {
        let heard = self.line_search.wait(&self.clock, FIRST_ANSWERS_WAIT);
        let has_changed = heard.map_err(RunError::Wait)?;
        self.line_changed(has_changed)
    }

    fn tell(&mut self) -> Result<(), RunError> {
        let settings = Settings {
            policy: self.settings.policy,
            // Sockets of a VRF, whose port it is, are not found from below it.
            asks_ports: self.settings.asks_ports && !self.has_master,
            dry_run: self.settings.dry_run,
            line_ifindex: self.line_search.line().map(|line| line.ifindex),
            lease_until_ns: self.lease_until(),
            stay: match (self.settings.stays, self.settings.confirm) {
                (false, _) => Stay::Goes,
                (true, None) => Stay::Stays,
                (true, Some(_)) => Stay::StaysConfirmed,
            },
        };
        Ok(self.filter.set(settings)?)
    }

    /// Not longer than something waits to be confirmed: so nothing of it lasts in a process that hangs, be it watched or
    /// not.
    fn lease_until(&self) -> Option<u64> {
        let waits = self.confirmation.waiting();
        let left = waits.map(|it| it.until.since(self.clock.boot()) + UNDONE_WITHIN);
        let lease = [self.settings.watchdog, left].into_iter().flatten().min()?;
        Some(self.clock.monotonic_nanos() + lease.as_nanos() as u64)
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
            // A change of large sets takes its time, and many may have come at once: the program is not to believe meanwhile that
            // nobody watches.
            if let Err(error) = self.tell() {
                tracing::warn!("{error}");
            }
            let response = self.respond(request);
            self.control.answer_later(asker, &response);
        }
        ends
    }

    fn respond(&mut self, request: Request) -> Response {
        match request {
            Request::Status {} => match self.document() {
                Ok(document) => {
                    Response::Status(serde_json::to_value(document).expect("plain JSON"))
                }
                Err(error) => Response::Error(error.to_string()),
            },
            Request::FilterTry {
                confirm_seconds,
                change,
            } => self.change_rules(*change, Some(confirm_seconds)),
            Request::FilterConfirm {} => self.confirm(),
            Request::Rules {} => self.respond_about_rules(request),
            change => self.change_rules(change, None),
        }
    }

    fn respond_about_rules(&mut self, request: Request) -> Response {
        rule_requests::respond(&mut self.rules, &mut self.filter, request)
    }

    fn document(&self) -> Result<FilterDocument, FilterError> {
        let settings = &self.settings;
        let unconfirmed = self.confirmation.waiting();
        let mut document = FilterDocument {
            interface: self.name.clone(),
            known_as: settings.interface.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: Some(std::process::id()),
            time_ns: 0,
            stays: settings.stays,
            filters_unicast: self.filters_unicast,
            policy: policy_name(settings.policy).into(),
            mode: self.mode.as_str().into(),
            ports: if settings.asks_ports { "auto" } else { "off" }.into(),
            dry_run: settings.dry_run,
            watchdog_seconds: settings.watchdog.map(|time| time.as_secs_f64()),
            unconfirmed: unconfirmed.map(|it| it.what.clone()),
            confirm_seconds_left: unconfirmed
                .map(|it| confirmation::seconds_left(it, self.clock.boot())),
            line: self.line_search.line().map(|line| line.name.clone()),
            local_prefixes: self.local as u64,
            local_prefixes_refused: self.local_refused as u64,
            handled: Default::default(),
            useful: Default::default(),
            dropped: Default::default(),
            rules: self.rules.documents(&self.filter)?,
            rules_version: self.filter.rules_image(),
            reasons: Default::default(),
        };
        document.time_ns = self.clock.monotonic_nanos();
        document.count(&self.filter.counters()?);
        Ok(document)
    }
}
