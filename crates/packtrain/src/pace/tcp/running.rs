//! The process of the pacer of TCP.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::document::{KIND, PathDocument, RuleDocument, StreamDocument, TcpDocument};
use super::precision::Precision;
use super::rules::{NamedRule, RuleError, Rules};
use super::{RunError, TcpSettings};
use crate::clock::Clock;
use crate::control::{ControlServer, Reply, Request, Response};
use crate::linux::pace::{Cgroup, Settings, TcpError, TcpPacer, netns_cookie};
use crate::running::Signals;

/// How long rules hold for when nothing is heard of us: who is killed leaves no connection slow.
const LEASE_NS: u64 = 5_000_000_000;
const LEASE_EXTENDED_EVERY: Duration = Duration::from_secs(1);

fn lease_until_ns(clock: &Clock) -> u64 {
    clock.monotonic_nanos() + LEASE_NS
}

/// Connections that are paced for as long as this runs.
#[derive(Debug)]
pub struct RunningTcp {
    settings: TcpSettings,
    rules: Rules,
    rules_extended_at_ns: u64,
    /// Connections that had left, or were refused, when it was last seen to.
    unsettled: u64,
    /// As the kernel has them.
    told: Settings,
    precision: Precision,
    cgroup: Cgroup,
    pacer: TcpPacer,
    netns: u64,
    control: ControlServer,
    signals: Signals,
    clock: Clock,
}

impl RunningTcp {
    pub fn start(
        settings: TcpSettings,
        control: ControlServer,
        signals: Signals,
        note: &mut dyn FnMut(&str),
    ) -> Result<RunningTcp, RunError> {
        let cgroup = match &settings.cgroup {
            Some(path) => Cgroup::find(path)?,
            None => Cgroup::root()?,
        };
        let netns = netns_cookie()?;
        let clock = Clock::start();
        let precision = Precision::start(settings.precision, || clock.now(), note);
        let told = Settings {
            netns: (!settings.all_namespaces).then_some(netns),
            precision: precision.used(),
            remembered: settings.remembered,
            hystart: settings.hystart,
            remote_ports: settings.remote_ports.clone(),
            local_ports: settings.local_ports.clone(),
            prefixes: settings.destinations.clone(),
            cgroup: Some(cgroup.clone()),
            overrides: settings.overrides,
            spaces: !settings.rules_only,
            only_new: settings.only_new,
        };
        let rules = Rules::of(&settings.rules)?;
        let mut pacer = TcpPacer::load(&told)?;
        let clock = Clock::start();
        pacer.attach(&cgroup)?;
        pacer.set_rules(&rules.told(), lease_until_ns(&clock))?;
        let late = pacer.counters()?.taken_late;
        if late > 0 {
            tracing::info!("{late} connections that were there already");
        }
        if settings.all_namespaces && !settings.only_new {
            note(
                "of other network namespaces only connections to come are paced, not those that are there already",
            );
        }
        Ok(RunningTcp {
            settings,
            rules,
            rules_extended_at_ns: 0,
            unsettled: 0,
            told,
            precision,
            cgroup,
            pacer,
            netns,
            control,
            signals,
            clock,
        })
    }

    /// Until it is told to end. `at_clean_end` comes before whoever has asked for the end knows of it.
    pub fn run(mut self, at_clean_end: impl FnOnce()) -> Result<(), RunError> {
        loop {
            self.wait()?;
            self.go_on_with_rules()?;
            if let Some(precision) = self.precision.turn(self.clock.now()) {
                self.told.precision = precision;
                self.pacer.tell(&self.told)?;
            }
            if self.signals.caught() || self.answer() {
                break;
            }
        }
        self.pacer.give_back()?;
        tracing::info!("TCP is not paced any more");
        at_clean_end();
        Ok(())
    }

    /// They hold for a while longer, also for a connection whose application has chosen something else meanwhile.
    fn go_on_with_rules(&mut self) -> Result<(), RunError> {
        let now_ns = self.clock.monotonic_nanos();
        if self.rules.is_empty()
            || now_ns < self.rules_extended_at_ns + LEASE_EXTENDED_EVERY.as_nanos() as u64
        {
            return Ok(());
        }
        self.rules_extended_at_ns = now_ns;
        let count = self.rules.iter().count();
        self.pacer.extend_rules(count, now_ns + LEASE_NS)?;
        // To go through all connections takes the kernel some milliseconds, in which this processor does nothing else.
        let unsettled = self.pacer.unsettled()?;
        if unsettled != self.unsettled {
            self.unsettled = unsettled;
            self.pacer.settle()?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), RunError> {
        let mut fds = [self.control.fd(), self.signals.fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let of_precision = self.precision.timeout(self.clock.now());
        // Rules are extended meanwhile.
        let of_rules = (!self.rules.is_empty()).then_some(LEASE_EXTENDED_EVERY / 2);
        let timeout = [of_precision, of_rules].into_iter().flatten().min();
        let timeout = timeout.and_then(|it| Timespec::try_from(it).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(RunError::Wait(error.into())),
        }
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
            let response = match request {
                Request::Status {} => match self.document() {
                    Ok(document) => {
                        Response::Status(serde_json::to_value(document).expect("plain JSON"))
                    }
                    Err(error) => Response::Error(error.to_string()),
                },
                Request::PaceRuleAdd { wish } => self.changed(|rules| {
                    let place = rules.add(&wish)?;
                    Ok(rules.iter().nth(place).expect("it is there now").clone())
                }),
                Request::PaceRuleRemove { name } => self.changed(|rules| rules.remove(&name)),
                other => Response::Error(format!("the pacer of TCP does not take {other:?}")),
            };
            self.control.answer_later(asker, &response);
        }
        ends
    }

    /// A rule that has come or gone, once connections have it, or have it no more.
    fn changed(
        &mut self,
        change: impl FnOnce(&mut Rules) -> Result<NamedRule, RuleError>,
    ) -> Response {
        let mut rules = self.rules.clone();
        let rule = match change(&mut rules) {
            Ok(rule) => rule,
            Err(error) => return Response::Error(error.to_string()),
        };
        let told = self
            .pacer
            .set_rules(&rules.told(), lease_until_ns(&self.clock));
        // The kernel may have taken a part of it.
        self.rules = rules;
        let shown = told.and_then(|()| self.pacer.shown());
        match shown {
            Ok(streams) => {
                let document = RuleDocument::new(&rule, &streams);
                Response::Rule(serde_json::to_value(document).expect("plain JSON"))
            }
            Err(error) => Response::Error(error.to_string()),
        }
    }

    fn document(&mut self) -> Result<TcpDocument, TcpError> {
        let settings = &self.settings;
        let now_ns = self.clock.monotonic_nanos();
        let mut paths = self.pacer.paths()?;
        paths.retain(|path| settings.all_namespaces || path.netns == self.netns);
        paths.sort_by_key(|path| (path.netns, path.address));
        let streams = self.pacer.shown()?;
        Ok(TcpDocument {
            kind: KIND.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            congestion_control: self.pacer.name().into(),
            cgroup: self.cgroup.path().display().to_string(),
            all_namespaces: settings.all_namespaces,
            rules_only: settings.rules_only,
            rules: self
                .rules
                .iter()
                .map(|rule| RuleDocument::new(rule, &streams))
                .collect(),
            dport: settings.remote_ports.clone(),
            sport: settings.local_ports.clone(),
            dst: settings
                .destinations
                .iter()
                .map(ToString::to_string)
                .collect(),
            precision_ns: self.told.precision.as_nanos() as u64,
            precision: self.precision.document(self.clock.now()),
            remembered_seconds: settings.remembered.map(|time| time.as_secs_f64()),
            hystart_us: settings.hystart.map(|it| (it.min_us, it.max_us)),
            counters: self.pacer.counters()?.into(),
            time_ns: now_ns,
            streams: streams
                .iter()
                .map(|it| StreamDocument::new(it, &self.rules))
                .collect(),
            paths: paths
                .iter()
                .map(|path| PathDocument::new(path, now_ns))
                .collect(),
        })
    }
}
