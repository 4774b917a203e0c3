//! Rules that come and go while the pacer runs.

use rustix::event::{Timespec, poll};

use super::super::PaceError;
use super::super::document::LinkRuleDocument;
use super::super::rules::{LinkRule, LinkRuleWish, LinkRules};
use super::{DRAIN_STEP, DRAIN_STEPS_MAX, RunningPacer};
use crate::linux::gap_qdisc::rules::{self, RuleCounters, Slot};
use crate::linux::gap_qdisc::{Otherwise, Sorter, SorterError};
use crate::linux::netlink::NetlinkError;

impl RunningPacer {
    /// Those that it begins with.
    pub(super) fn begin_rules(&mut self, wishes: &[LinkRuleWish]) -> Result<(), PaceError> {
        for wish in wishes {
            self.add_rule(wish)?;
        }
        Ok(())
    }

    pub(super) fn add_rule(&mut self, wish: &LinkRuleWish) -> Result<LinkRuleDocument, PaceError> {
        let mut rules = self.rules.clone();
        let rule = rules.add(wish)?.clone();
        let slot = rule.class.slot;
        let (ifindex, spacing) = (self.ifindex, self.plan.spacing);
        let put = rules::put(&mut self.netlink, ifindex, rule.class, spacing);
        let put = put.map_err(PaceError::from);
        if let Err(error) = put.and_then(|()| Ok(self.sort(&rules)?)) {
            let _ = rules::remove(&mut self.netlink, ifindex, slot);
            return Err(error);
        }
        self.rules = rules;
        tracing::info!(
            "rule {}: {} of {} leaves at {} bit/s",
            rule.name,
            rule.matches,
            self.name,
            rule.class.rate_bps
        );
        Ok(self.rule_document(&rule)?)
    }

    /// What waits leaves first, and what comes meanwhile may overtake it.
    pub(super) fn remove_rule(&mut self, name: &str) -> Result<LinkRuleDocument, PaceError> {
        let mut rules = self.rules.clone();
        let rule = rules.remove(name)?;
        let last = self.rule_document(&rule)?;
        self.sort(&rules)?;
        self.rules = rules;
        let slot = rule.class.slot;
        self.drain_rule(slot)?;
        rules::remove(&mut self.netlink, self.ifindex, slot)?;
        tracing::info!("there is no rule {name} of {} any more", self.name);
        Ok(last)
    }

    /// Each waits in its own class from now on; where there are none, nobody looks at frames.
    fn sort(&mut self, rules: &LinkRules) -> Result<(), SorterError> {
        if rules.is_empty() {
            if let Some(sorter) = self.sorter.take() {
                sorter.detach(&mut self.netlink, self.ifindex)?;
            }
            return Ok(());
        }
        let otherwise = match self.plan.gap {
            Some(_) => Otherwise::Spaced,
            None => Otherwise::Direct,
        };
        let told = rules.iter().map(|rule| (rule.class.slot, &rule.matches));
        match &mut self.sorter {
            Some(sorter) => sorter.tell(told, otherwise),
            None => {
                let mut sorter = Sorter::load()?;
                sorter.tell(told, otherwise)?;
                sorter.attach(&mut self.netlink, self.ifindex)?;
                self.sorter = Some(sorter);
                Ok(())
            }
        }
    }

    /// The plan has changed: what frames may wait for, and whether others go past the classes.
    pub(super) fn space_rules(&mut self) -> Result<(), SorterError> {
        for rule in self.rules.iter() {
            rules::set(
                &mut self.netlink,
                self.ifindex,
                rule.class,
                self.plan.spacing,
            )?;
        }
        let rules = self.rules.clone();
        match rules.is_empty() {
            true => Ok(()),
            false => self.sort(&rules),
        }
    }

    pub(super) fn open_rules(&mut self) -> Result<(), NetlinkError> {
        let mut slots = self.rules.iter().map(|rule| rule.class.slot);
        let (ifindex, spacing) = (self.ifindex, self.plan.spacing);
        slots.try_for_each(|slot| rules::open(&mut self.netlink, ifindex, slot, spacing))
    }

    fn drain_rule(&mut self, slot: Slot) -> Result<(), NetlinkError> {
        let step = Timespec::try_from(DRAIN_STEP).expect("milliseconds");
        rules::open(&mut self.netlink, self.ifindex, slot, self.plan.spacing)?;
        for _ in 0..DRAIN_STEPS_MAX {
            let counters = rules::counters(&mut self.netlink, self.ifindex, slot)?;
            if counters.is_none_or(|counters| counters.queue_frames == 0) {
                break;
            }
            let _ = poll(&mut [], Some(&step));
        }
        Ok(())
    }

    pub(super) fn rule_documents(&mut self) -> Result<Vec<LinkRuleDocument>, NetlinkError> {
        let rules = self.rules.clone();
        rules.iter().map(|rule| self.rule_document(rule)).collect()
    }

    fn rule_document(&mut self, rule: &LinkRule) -> Result<LinkRuleDocument, NetlinkError> {
        let counters = rules::counters(&mut self.netlink, self.ifindex, rule.class.slot)?;
        // Somebody has taken its class away: nothing of it is known any more.
        let counters = counters.unwrap_or_else(RuleCounters::default);
        let link = self.settings.interface.as_str();
        Ok(LinkRuleDocument::new(link, rule, counters))
    }
}
