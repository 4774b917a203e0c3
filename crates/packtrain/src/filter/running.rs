//! The process of a filter: told of what changes, and asked how it is.

use std::os::fd::AsFd;
use std::time::Duration;

use packtrain_proto::time::{Duration as Span, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::document::{FilterDocument, policy_name};
use super::line_above::{self, LineAbove};
use super::rules::Rules;
use super::{FilterSettings, mode, rule_requests};
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::control::{ControlServer, Reply, Request, Response};
use crate::instance;
use crate::linux::filter::{Filter, FilterError, Mode, Settings};
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

/// A filter that stands. Its program goes before its control socket: who waits for its end sees it gone.
#[derive(Debug)]
pub struct RunningFilter {
    settings: FilterSettings,
    ifindex: u32,
    mode: Mode,
    filter: Filter,
    routes: LocalRoutes,
    monitor: Monitor,
    rules: Rules,
    control: ControlServer,
    signals: Signals,
    clock: Clock,
    /// Lines that ran when the one above was last looked for.
    lines: Vec<InterfaceName>,
    line: Option<LineAbove>,
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

fn failed(error: FilterError) -> CliError {
    CliError::Failed(error.to_string())
}

impl RunningFilter {
    /// Attached, and told all that it has to know.
    pub fn start(
        settings: FilterSettings,
        mut control: ControlServer,
        signals: Signals,
        note: &mut dyn FnMut(&str),
    ) -> Result<RunningFilter, CliError> {
        let name = settings.interface.as_str();
        let link = Netlink::open()?.link_by_name(name)?;
        let link = link.ok_or_else(|| CliError::InterfaceMissing(name.into()))?;
        if !link.is_ethernet {
            return Err(CliError::NotEthernet(name.into()));
        }
        let sockets = |error| CliError::failed("netlink", error);
        // Sets of addresses are long.
        control.take_long_requests();
        let clock = Clock::start();
        let mut running = RunningFilter {
            ifindex: link.ifindex,
            mode: Mode::Native,
            filter: Filter::load().map_err(failed)?,
            routes: LocalRoutes::open().map_err(sockets)?,
            monitor: Monitor::open().map_err(sockets)?,
            rules: Rules::default(),
            control,
            signals,
            clock,
            lines: Vec::new(),
            line: None,
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
        loaded.map_err(|error| CliError::Failed(error.to_string()))?;
        running.refresh()?;
        running.read_routes()?;
        let filters_unicast = running.filter.filters_unicast(link.ifindex);
        running.filters_unicast = filters_unicast.map_err(failed)?;
        if let Some(warning) = mode::warning(&link, running.settings.mode) {
            note(&warning);
        }
        let wish = running.settings.mode;
        running.mode =
            mode::attach(&mut running.filter, link.ifindex, wish, note).map_err(failed)?;
        Ok(running)
    }

    /// Until it is told to end, or its interface is gone. `at_clean_end` comes before whoever has asked for the end knows
    /// of it.
    pub fn run(mut self, at_clean_end: impl FnOnce()) -> Result<(), CliError> {
        loop {
            self.wait()?;
            if self.signals.caught() {
                // Who ends the process of a filter that is to stay has not said that it shall not.
                let stays = if self.settings.stays {
                    "; its program stays"
                } else {
                    ""
                };
                tracing::info!("the filter of {} ends{stays}", self.settings.interface);
                at_clean_end();
                return Ok(());
            }
            if self.answer() {
                tracing::info!("the filter of {} ends", self.settings.interface);
                self.filter.take_away().map_err(failed)?;
                at_clean_end();
                return Ok(());
            }
            if self.follow_interfaces()? {
                let name = &self.settings.interface;
                let gone = format!("{name} is gone, and its filter with it");
                tracing::error!("{gone}");
                return Err(CliError::Failed(gone));
            }
            self.routes_are_old |= self
                .routes
                .have_changed()
                .map_err(|e| CliError::failed("netlink", e))?;
            let now = self.clock.now();
            if self.routes_are_old && now >= self.routes_read_at + ROUTES_READ_EVERY {
                self.read_routes()?;
            }
            if now >= self.refreshed_at + REFRESHED_EVERY {
                self.refresh()?;
            }
        }
    }

    fn wait(&self) -> Result<(), CliError> {
        let now = self.clock.now();
        let mut next = self.refreshed_at + REFRESHED_EVERY;
        if self.routes_are_old {
            next = next.min(self.routes_read_at + ROUTES_READ_EVERY);
        }
        let left = next.since(now).as_nanos();
        let timeout = Timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as _,
        };
        let fds = [
            self.control.fd(),
            self.signals.fd(),
            self.monitor.fd(),
            self.routes.as_fd(),
        ];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(CliError::failed("waiting", error)),
        }
    }

    /// Says whether the interface is gone.
    fn follow_interfaces(&mut self) -> Result<bool, CliError> {
        let mut look = false;
        loop {
            let event = self.monitor.next_event();
            match event.map_err(|e| CliError::failed("netlink", e))? {
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
        if self.has_master != link.master.is_some() {
            self.has_master = link.master.is_some();
            self.tell()?;
        }
        Ok(false)
    }

    fn read_routes(&mut self) -> Result<(), CliError> {
        self.routes_are_old = true;
        for _ in 0..READS_MAX {
            let Some(seq) = self.filter.fib_seq().map_err(failed)? else {
                break;
            };
            let local = self.routes.read()?;
            if self.filter.fib_seq().map_err(failed)? == Some(seq) {
                self.local = local.len();
                self.local_refused = self.filter.set_local(&local, seq).map_err(failed)?;
                self.routes_seq = seq;
                self.routes_are_old = false;
                break;
            }
        }
        // Behind it, so that a host with very many routes is not read all the time.
        self.routes_read_at = self.clock.now();
        Ok(())
    }

    /// First the program is told that somebody watches: a line that does not answer is waited for.
    fn refresh(&mut self) -> Result<(), CliError> {
        self.refreshed_at = self.clock.now();
        self.tell()?;
        let lines = instance::running().unwrap_or_default();
        let is_due = self.refreshes.is_multiple_of(LINE_SOUGHT_EVERY);
        self.refreshes = self.refreshes.wrapping_add(1);
        // The kernel counts changes that it tells nobody of, as when a carrier comes back; and a route that goes may be
        // counted before it has gone.
        let seq = self.filter.fib_seq().map_err(failed)?;
        self.routes_are_old |= is_due || seq.is_some_and(|seq| seq != self.routes_seq);
        if !is_due && lines == self.lines {
            return Ok(());
        }
        self.lines = lines;
        let line = line_above::find(&self.settings.interface, &self.lines);
        if line == self.line {
            return Ok(());
        }
        self.line = line;
        self.tell()
    }

    fn tell(&mut self) -> Result<(), CliError> {
        let settings = Settings {
            policy: self.settings.policy,
            // Sockets of a VRF, whose port it is, are not found from below it.
            asks_ports: self.settings.asks_ports && !self.has_master,
            dry_run: self.settings.dry_run,
            line_ifindex: self.line.as_ref().map(|line| line.ifindex),
            lease_until_ns: self.settings.watchdog.map(|time| self.lease(time)),
            stays: self.settings.stays,
        };
        self.filter.set(settings).map_err(failed)
    }

    fn lease(&self, time: Duration) -> u64 {
        self.clock.monotonic_nanos() + time.as_nanos() as u64
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
            request => rule_requests::respond(&mut self.rules, &mut self.filter, request),
        }
    }

    fn document(&self) -> Result<FilterDocument, FilterError> {
        let settings = &self.settings;
        let mut document = FilterDocument {
            interface: settings.interface.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: Some(std::process::id()),
            stays: settings.stays,
            filters_unicast: self.filters_unicast,
            policy: policy_name(settings.policy).into(),
            mode: self.mode.as_str().into(),
            ports: if settings.asks_ports { "auto" } else { "off" }.into(),
            dry_run: settings.dry_run,
            watchdog_seconds: settings.watchdog.map(|time| time.as_secs_f64()),
            line: self.line.as_ref().map(|line| line.name.clone()),
            local_prefixes: self.local as u64,
            local_prefixes_refused: self.local_refused as u64,
            handled: Default::default(),
            useful: Default::default(),
            dropped: Default::default(),
            rules: self.rules.documents(&self.filter)?,
            rules_version: self.filter.rules_image(),
            reasons: Default::default(),
        };
        document.count(&self.filter.counters()?);
        Ok(document)
    }
}
