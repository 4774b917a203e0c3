//! Answers at the control socket.

use packtrain_proto::config::LinkSettings;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::RunningLine;
use super::classes::NewClass;
use super::direct::Direct;
use super::links::refusal;
use super::member::Member;
use crate::control::{Asker, Reply, Request, Response};
use crate::daemon::Report;
use crate::linux::intake::Intake;
use crate::linux::netlink::{IpPrefix, Link, Netlink};
use crate::linux::tc;
use crate::settings::Settings;
use crate::status::{self, LineFacts, StatusDocument, drop_reason};

/// `pt0` as it is now, whatever people did to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) mtu: u16,
    pub(super) up: bool,
    pub(super) promiscuous: bool,
    pub(super) addresses: Vec<IpPrefix>,
    /// Not the line's, where somebody gave it another.
    pub(super) address: MacAddr,
}

impl Host {
    pub(super) fn of(link: &Link, addresses: Vec<IpPrefix>) -> Host {
        Host {
            mtu: u16::try_from(link.mtu).unwrap_or(u16::MAX),
            up: link.up,
            // A bridge makes its ports promiscuous; say so also for a master that does not.
            promiscuous: link.promiscuity > 0 || link.master.is_some(),
            addresses,
            address: link.address,
        }
    }
}

impl RunningLine {
    /// Answers who asks at the control socket; says whether the line is to end.
    pub(super) fn answer(&mut self) -> bool {
        let (mut ends, mut others) = (false, Vec::new());
        self.control.handle(&mut |request, asker| match request {
            Request::Down {} => {
                ends = true;
                Response::Done.into()
            }
            // Whatever takes the whole line to answer, once it is at hand.
            request => {
                others.push((request, asker));
                Reply::Later
            }
        });
        for (request, asker) in others {
            if let Some(response) = self.respond(request, asker) {
                self.control.answer_later(asker, &response);
            }
        }
        ends
    }

    /// `None`: the answer comes when what was asked for has happened.
    fn respond(&mut self, request: Request, asker: Asker) -> Option<Response> {
        match request {
            Request::Status {} => Some(match serde_json::to_value(self.status_document()) {
                Ok(document) => Response::Status(document),
                Err(error) => Response::Error(format!("the status document: {error}")),
            }),
            // The end is begun already, and events the server has at hand.
            Request::Down {} | Request::Events { .. } => None,
            Request::LinkAdd {
                name,
                wait,
                tier,
                weight,
                rate_max_bps,
                lag,
            } => {
                let by_default = LinkSettings::default();
                let used = LinkSettings {
                    tier: tier.unwrap_or(by_default.tier),
                    weight: weight.unwrap_or(by_default.weight),
                    rate_max_bps,
                    in_lag: lag,
                };
                Some(match self.add_link(&name, used, wait) {
                    Ok(link) => Response::LinkAdded(link),
                    Err(error) => refusal(&error),
                })
            }
            Request::LinkSet {
                name,
                tier,
                weight,
                rate_max,
                lag,
            } => Some(match self.set_link(&name, tier, weight, rate_max, lag) {
                Ok(link) => Response::LinkSet(link),
                Err(error) => refusal(&error),
            }),
            Request::LinkClear {} => {
                let refused = self.clear_links(asker).err();
                refused.map(|error| refusal(&error))
            }
            Request::LinkRemove { name } => {
                let refused = self.retire_link(&name, asker).err();
                refused.map(|error| refusal(&error))
            }
            Request::ClassAdd {
                name,
                matches,
                pack,
                path,
                loss_ok,
                compress,
                duplicate,
                links,
                repair,
                before,
            } => {
                let text = NewClass {
                    name: name.as_deref(),
                    matches: &matches,
                    pack: &pack,
                    path: &path,
                    loss_ok,
                    compress: &compress,
                    duplicate,
                    links: &links,
                    repair: &repair,
                    before: before.as_deref(),
                };
                Some(match self.add_class(&text) {
                    Ok(class) => Response::ClassAdded(class),
                    Err(error) => refusal(&error),
                })
            }
            Request::RuleAdd { .. }
            | Request::RuleRemove { .. }
            | Request::FilterTry { .. }
            | Request::FilterConfirm {}
            | Request::Rules {}
            | Request::RulesLoad { .. }
            | Request::SetChange { .. }
            | Request::SetRemove { .. } => Some(Response::Error(
                "this is a line, and no receive filter".into(),
            )),
            Request::PaceLink { .. }
            | Request::PaceRuleAdd { .. }
            | Request::PaceLinkRuleAdd { .. }
            | Request::PaceRuleRemove { .. } => {
                Some(Response::Error("this is a line, and no pacer".into()))
            }
            Request::ClassRemove { name } => Some(match self.remove_class(&name) {
                Ok(class) => Response::ClassRemoved(class),
                Err(error) => refusal(&error),
            }),
        }
    }

    pub(super) fn status_document(&mut self) -> StatusDocument {
        let stay = self.stay_status();
        let RunningLine {
            line,
            site,
            members,
            intake,
            direct,
            shaper,
            host,
            clock,
            ..
        } = self;
        let report = line.report();
        let ifindex = report.tap_ifindex;
        let mut facts = facts(ifindex, &site.settings, members, host, clock.now());
        facts.stay = stay;
        add_counters(&mut facts, &report, intake.as_mut());
        for (link, member) in facts.links.iter_mut().zip(members.iter()) {
            let lost = member.guarded().lost;
            link.drops.push((drop_reason::GUARD_LOST, lost));
        }
        if let Some(direct) = direct {
            add_direct(&mut facts, direct, members, &mut site.netlink);
            for link in &mut facts.links {
                link.direct_rate = direct.rate(link.id, clock.monotonic_nanos());
                link.direct_shaper = shaper.status(link.id);
            }
        }
        let dropped = shaper.dropped();
        facts.drops.push((drop_reason::DIRECT_QUEUE_FULL, dropped));
        let overrun = site.netlink.transmit_dropped(ifindex).unwrap_or_default();
        facts.drops.push((drop_reason::HOST_OVERRUN, overrun));
        StatusDocument::build(&report.snapshot, &facts)
    }
}

/// What the daemon counts below and before the engine.
fn add_counters(facts: &mut LineFacts, report: &Report, intake: Option<&mut Intake>) {
    facts.drops.push((
        drop_reason::HOST_UNREPRESENTABLE,
        report.tap.unrepresentable,
    ));
    facts.coalesced = status::Coalesced {
        datagrams: report.coalesced.datagrams,
        frames: report.coalesced.datagram_frames,
        segments: report.coalesced.segments,
        segment_frames: report.coalesced.segment_frames,
    };
    if let Some(intake) = intake {
        // Nothing waits where somebody has put another queueing discipline in its place.
        let queue = intake.queue().unwrap_or_default();
        facts
            .drops
            .push((drop_reason::INTAKE_FULL, queue.dropped.into()));
        facts.intake = Some(status::Intake {
            rate_bps: intake.rate_bps(),
            waiting_frames: queue.frames.into(),
            waiting_bytes: queue.bytes.into(),
            ring: report.ring.map(|counts| status::HostRing {
                frames: counts.by_ring,
                tap_frames: counts.to_tap,
                full: counts.full,
            }),
        });
    }
    for link in &mut facts.links {
        let Some(member) = report.members.iter().find(|member| member.id == link.id) else {
            continue;
        };
        let socket = member.counters.socket;
        link.drops = vec![
            (drop_reason::SOCKET_OVERRUN, socket.overrun),
            (drop_reason::SOCKET_TRUNCATED, socket.truncated),
            (drop_reason::SOCKET_UNREPRESENTABLE, socket.unrepresentable),
        ];
    }
}

/// What the kernel counts past the engine.
fn add_direct(facts: &mut LineFacts, direct: &Direct, members: &[Member], netlink: &mut Netlink) {
    facts.direct_changes = direct.changes();
    facts.direct_flow_returns = direct.flow_returns();
    facts.direct_striped = direct.striped();
    facts.direct_refusal = direct.refusal();
    for (link, member) in facts.links.iter_mut().zip(members) {
        link.direct_tx = direct.traffic(link.id);
        link.direct_rx = member.guarded().direct;
        let queue = member
            .ifindex()
            .map(|ifindex| tc::link_queue(netlink, ifindex));
        link.queue = queue.and_then(Result::ok).flatten();
        let dropped = member.qdisc_drops(netlink);
        link.drops.push((drop_reason::LINK_QDISC, dropped));
    }
}

fn facts(
    ifindex: u32,
    settings: &Settings,
    members: &[Member],
    host: &Host,
    now: Instant,
) -> LineFacts {
    LineFacts {
        name: settings.name.to_string(),
        ifindex,
        line_id: settings.line_id,
        balance: settings.balance,
        tier_spill: settings.tier_spill,
        up: host.up,
        promiscuous: host.promiscuous,
        addresses: host.addresses.clone(),
        // The clock was started with the line.
        uptime: now.since(Instant::ZERO),
        links: members.iter().map(Member::facts).collect(),
        stay: None,
        intake: None,
        coalesced: status::Coalesced::default(),
        direct_changes: 0,
        direct_flow_returns: 0,
        direct_striped: 0,
        direct_vlan: settings.direct_vlan,
        direct_refusal: None,
        dictionary_file: settings.dictionary.as_ref().map(|file| file.path.clone()),
        drops: Vec::new(),
        warnings: members.iter().filter_map(Member::warning).collect(),
    }
}
