//! Links that join a line at work, and leave it, by command.
//!
//! One that leaves is retired first: nothing new is put on it where another may be used, peers are told that it is gone, and
//! what is under way arrives. Only then it is taken apart; who asked is told after that. Who adds a
//! link to take another one away finds the peers' answers on the new one missing still: they are
//! waited for before anything else.

use std::time::Duration;

use packtrain_proto::config::{LinkId, LinkSettings};
use packtrain_proto::time::Instant;
use serde_json::Value;

use super::RunningLine;
use super::member::Member;
use crate::cli::error::CliError;
use crate::cli::up::checks;
use crate::control::{Asker, RateMax, Response};
use crate::events::{LinkBecause, LinkChange};
use crate::linux::netlink::Link;
use crate::settings::LINKS_MAX;
use crate::settings::links::{LinkError, MemberLink, check_tier, check_weight};
use crate::settings::values::InterfaceName;

/// What takes longer to arrive than this is on a link that does not work.
const RETIRING_MAX: Duration = Duration::from_secs(3);

/// Peers say hello once a second: who is not heard on a link that joined longer ago is not there.
const MEETING_MAX: Duration = Duration::from_millis(1200);
const MEETING_LOOK: Duration = Duration::from_millis(20);

/// A link that is about to leave.
#[derive(Debug)]
pub(super) struct Leaving {
    link: LinkId,
    /// `None`: all leave, and there is one for all of them.
    asker: Option<Asker>,
    /// Not retired yet: peers that are reached by it alone may be met on a new link until then.
    meets_until: Option<Instant>,
    /// It leaves by then, whatever is under way.
    until: Instant,
}

/// All links are about to leave.
#[derive(Debug)]
pub(super) struct Clearing {
    asker: Asker,
    /// Those that have, as they were at last.
    links: Vec<Value>,
    drained: bool,
}

impl RunningLine {
    /// Adds a link, attaches it if its interface is there, and gives it as in the status document.
    pub(super) fn add_link(
        &mut self,
        name: &str,
        used: LinkSettings,
        wait: bool,
    ) -> Result<Value, CliError> {
        let name: InterfaceName = parse(name)?;
        check_used(used)?;
        let interface = self.site.netlink.link_by_name(name.as_str())?;
        self.check_new_link(&name, interface.as_ref(), wait)?;
        let id = match self.line.add_link(name.to_string()) {
            Ok(id) => id,
            Err(used_up) => {
                let line = &self.site.settings.name;
                return Err(CliError::Failed(format!(
                    "{used_up}: packtrain down {line} and up again starts anew"
                )));
            }
        };
        let link = MemberLink {
            name: name.clone(),
            used,
        };
        self.members.push(Member::new(id, link.clone()));
        self.site.settings.links.push(link);
        if let Some(interface) = interface {
            self.join(self.members.len() - 1, &interface);
            let member = self.members.last().expect("just pushed");
            if member.ifindex().is_none() {
                let trouble = member.warning();
                self.forget(id);
                return Err(CliError::Failed(
                    trouble.unwrap_or_else(|| format!("{name} cannot join")),
                ));
            }
        } else {
            tracing::info!("{name} joins when it appears");
        }
        self.follow_links();
        self.follow_links_of_classes();
        self.link_document(id)
    }

    /// Without any link, `pt0` is as an interface without a cable.
    fn follow_links(&mut self) {
        if let Err(error) = self.line.set_carrier(!self.members.is_empty()) {
            tracing::warn!("the carrier of {}: {error}", self.site.settings.name);
        }
    }

    /// What a link is used for changes, as far as it is said, and gives it as in the status document.
    pub(super) fn set_link(
        &mut self,
        name: &str,
        tier: Option<u8>,
        weight: Option<u8>,
        rate_max: Option<RateMax>,
        lag: Option<bool>,
    ) -> Result<Value, CliError> {
        let name = parse(name)?;
        let at = self.member_of(&name)?;
        let before = self.members[at].used();
        let used = LinkSettings {
            tier: tier.unwrap_or(before.tier),
            weight: weight.unwrap_or(before.weight),
            rate_max_bps: match rate_max {
                None => before.rate_max_bps,
                Some(RateMax::None) => None,
                Some(RateMax::Bps(bps)) => Some(bps),
            },
            in_lag: lag.unwrap_or(before.in_lag),
        };
        check_used(used)?;
        self.members[at].use_for(used, &mut self.line);
        let mut links = self.site.settings.links.iter_mut();
        if let Some(link) = links.find(|link| link.name == name) {
            link.used = used;
            tracing::info!("{link} is what it is used for from now on");
        }
        self.link_document(self.members[at].id)
    }

    /// Begins to take every link out. Who asks is answered when the last one has left.
    pub(super) fn clear_links(&mut self, asker: Asker) -> Result<(), CliError> {
        let line = &self.site.settings.name;
        if self.members.is_empty() {
            return Err(CliError::Failed(format!("{line} has no links")));
        }
        if let Some(leaving) = self.leaving.first() {
            let members = self.members.iter();
            let names = members.filter(|member| member.id == leaving.link);
            let names: Vec<&str> = names.map(|member| member.name.as_str()).collect();
            return Err(CliError::Failed(format!(
                "{} is being removed from {line}: clear the others when that is done",
                names.join(", ")
            )));
        }
        // What the host would send now could go nowhere soon: it is told before.
        if let Err(error) = self.line.set_carrier(false) {
            tracing::warn!("the carrier of {line}: {error}");
        }
        self.clearing = Some(Clearing {
            asker,
            links: Vec::new(),
            drained: true,
        });
        let until = self.clock.now() + RETIRING_MAX;
        self.leaving = self
            .members
            .iter()
            .map(|member| Leaving {
                link: member.id,
                asker: None,
                // There is nowhere else to be met.
                meets_until: Some(Instant::ZERO),
                until,
            })
            .collect();
        self.step_removals();
        Ok(())
    }

    fn check_new_link(
        &self,
        name: &InterfaceName,
        interface: Option<&Link>,
        wait: bool,
    ) -> Result<(), CliError> {
        let line = &self.site.settings.name;
        let index = interface.map(|interface| interface.ifindex);
        if name == line || index == Some(self.line.tap_ifindex()) {
            return Err(CliError::Usage(format!(
                "{name} cannot be a link of itself"
            )));
        }
        let is = |m: &&Member| m.name == *name || (index.is_some() && m.ifindex() == index);
        if let Some(member) = self.members.iter().find(is) {
            if self.is_leaving(member.id) {
                return Err(CliError::Failed(format!(
                    "{name} is being removed from {line}: add it when that is done"
                )));
            }
            return Err(CliError::LinkAlready {
                link: name.to_string(),
                line: line.to_string(),
            });
        }
        if self.clearing.is_some() {
            return Err(CliError::Failed(format!(
                "all links of {line} are being removed: add {name} when that is done"
            )));
        }
        if self.members.len() >= LINKS_MAX {
            return Err(CliError::Usage(format!(
                "{line} has {LINKS_MAX} links, and no line has more: packtrain link remove {line} takes \
                 one away"
            )));
        }
        match interface {
            Some(interface) => checks::usable(interface),
            None if wait => Ok(()),
            None => Err(CliError::Told {
                exit_code: CliError::NoSuchInterface(Vec::new()).exit_code(),
                message: CliError::NoSuchInterface(vec![name.to_string()]).to_string(),
                hint: Some("with --wait-links it is added and joins when it appears".into()),
            }),
        }
    }

    /// Begins to remove a link. Who asks is answered when it has left.
    pub(super) fn retire_link(&mut self, name: &str, asker: Asker) -> Result<(), CliError> {
        let link = self.link_to_remove(&parse(name)?)?;
        let now = self.clock.now();
        let others = self.members.iter().filter(|member| member.id != link);
        let newest = others.filter_map(Member::joined_at).max();
        self.leaving.push(Leaving {
            link,
            asker: Some(asker),
            meets_until: Some(newest.map_or(now, |joined_at| joined_at + MEETING_MAX)),
            until: now + RETIRING_MAX,
        });
        self.step_removals();
        Ok(())
    }

    /// Goes on with every removal, and sees to being called in time.
    pub(super) fn step_removals(&mut self) {
        if self.leaving.is_empty() {
            return;
        }
        let now = self.clock.now();
        let links: Vec<LinkId> = self.leaving.iter().map(|leaving| leaving.link).collect();
        for link in links {
            self.step_removal(link, now);
        }
        let next = |leaving: &Leaving| match leaving.meets_until {
            Some(_) => now + MEETING_LOOK,
            None => leaving.until,
        };
        if let Some(next) = self.leaving.iter().map(next).min() {
            self.line.wake_by(next);
        }
    }

    fn step_removal(&mut self, link: LinkId, now: Instant) {
        let Some(at) = self.leaving.iter().position(|l| l.link == link) else {
            return;
        };
        let Leaving {
            meets_until, until, ..
        } = self.leaving[at];
        if until <= now {
            return self.finish_removal(link, false);
        }
        let Some(meets_until) = meets_until else {
            return;
        };
        let leaving: Vec<LinkId> = self.leaving.iter().map(|leaving| leaving.link).collect();
        if meets_until > now && !self.line.reaches_its_peers_without(&leaving) {
            return;
        }
        self.leaving[at].meets_until = None;
        let name = self.link_name(link);
        self.tell_link(name, LinkChange::Leaving, Some(LinkBecause::Asked));
        if !self.line.retire_link(link) {
            // There is no such interface now: nothing is under way.
            self.finish_removal(link, true);
        }
    }

    /// The place of a link that stays.
    pub(super) fn member_of(&self, name: &InterfaceName) -> Result<usize, CliError> {
        let line = self.site.settings.name.to_string();
        let is_it = |member: &Member| member.name == *name;
        let Some(at) = self.members.iter().position(is_it) else {
            let staying = self.members.iter().filter(|m| !self.is_leaving(m.id));
            return Err(CliError::NoSuchLink {
                link: name.to_string(),
                line,
                links: staying.map(|m| m.name.to_string()).collect(),
            });
        };
        if self.is_leaving(self.members[at].id) {
            return Err(CliError::Failed(format!(
                "{name} is being removed from {line} already"
            )));
        }
        Ok(at)
    }

    fn link_to_remove(&self, name: &InterfaceName) -> Result<LinkId, CliError> {
        let line = self.site.settings.name.to_string();
        let member = &self.members[self.member_of(name)?];
        if self.members.len() - self.leaving.len() == 1 {
            return Err(CliError::OnlyLink {
                link: name.to_string(),
                line,
            });
        }
        Ok(member.id)
    }

    fn is_leaving(&self, link: LinkId) -> bool {
        self.leaving.iter().any(|leaving| leaving.link == link)
    }

    /// Takes a link apart, and tells who asked for it. `drained`: nothing was under way on it.
    pub(super) fn finish_removal(&mut self, link: LinkId, drained: bool) {
        let Some(at) = self.leaving.iter().position(|l| l.link == link) else {
            return;
        };
        let leaving = self.leaving.remove(at);
        let last = self.link_document(link);
        let name = self.link_name(link);
        self.forget(link);
        self.tell_link(name, LinkChange::Left, Some(LinkBecause::Asked));
        if let Some(asker) = leaving.asker {
            let response = match last {
                Ok(link) => Response::LinkRemoved { link, drained },
                Err(error) => refusal(&error),
            };
            return self.control.answer_later(asker, &response);
        }
        if let Some(clearing) = &mut self.clearing {
            clearing.links.extend(last.ok());
            clearing.drained &= drained;
        }
        if self.members.is_empty()
            && let Some(mut cleared) = self.clearing.take()
        {
            // Whichever had nothing under way left first.
            cleared.links.sort_by_key(|link| link["id"].as_u64());
            let response = Response::LinksCleared {
                links: cleared.links,
                drained: cleared.drained,
            };
            self.control.answer_later(cleared.asker, &response);
        }
    }

    /// The link is none any more, and what was changed for it is undone.
    fn forget(&mut self, id: LinkId) {
        // First no frame moves, then the guard goes, then what was changed goes back.
        self.line.remove_link(id);
        // What the engine has to tell of it is told while it has a name.
        self.handle_events();
        let Some(at) = self.members.iter().position(|member| member.id == id) else {
            return;
        };
        let mut member = self.members.remove(at);
        self.site
            .settings
            .links
            .retain(|link| link.name != member.name);
        if let Some(ifindex) = member.ifindex() {
            if let Some(direct) = &mut self.direct {
                direct.forget_link(ifindex);
            }
            member.detach();
            self.site.restore(ifindex);
        }
        self.follow_links_of_classes();
    }

    /// A link as in the status document.
    fn link_document(&mut self, id: LinkId) -> Result<Value, CliError> {
        let failed = |error| CliError::failed("the status document", error);
        let links = self.status_document().links;
        let link = links.into_iter().find(|link| link.id == id.0);
        serde_json::to_value(link).map_err(failed)
    }
}

/// From whoever speaks at the control socket, which may be another version's command.
fn check_used(used: LinkSettings) -> Result<(), CliError> {
    let wrong = |error: LinkError| CliError::Usage(error.to_string());
    check_tier(used.tier.into()).map_err(wrong)?;
    check_weight(used.weight.into()).map_err(wrong)?;
    Ok(())
}

fn parse(name: &str) -> Result<InterfaceName, CliError> {
    name.parse()
        .map_err(|error| CliError::Usage(format!("{name:?}: {error}")))
}

/// To somebody at the control socket, in the words and with the code of a command.
pub(super) fn refusal(error: &CliError) -> Response {
    Response::Refused {
        exit_code: error.exit_code(),
        message: error.to_string(),
        hint: error.hint(),
    }
}
