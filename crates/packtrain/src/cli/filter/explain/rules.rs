//! The rules that frames of a capture are asked by, before the policy; and their limits, in the capture's own time.

use packtrain_proto::filter::rules::facts::SIZE_MAX;
use packtrain_proto::filter::rules::{Buckets, Decision, Image, Rule, RuleFacts, RuleSet, Verdict};
use packtrain_proto::filter::{Policy, Reason};
use packtrain_proto::time::Instant;

use super::arguments::ExplainArguments;
use crate::capture_file::Frame;
use crate::cli::error::CliError;
use crate::cli::filter::load::{counted, running_rules};
use crate::cli::filter::{ask, read};
use crate::cli::output;
use crate::filter::document::policy_of;
use crate::filter::rules_file::{self, RulesFile};
use crate::instance;
use crate::settings::values::InterfaceName;

/// Of a file, of a filter that runs, or none.
#[derive(Debug, Default)]
pub struct Rules {
    set: RuleSet,
    /// It says the same, and is asked as fast for ten thousand prefixes as for ten.
    image: Option<Image>,
    buckets: Buckets,
    /// Of the latest frame: the buckets' time does not go back where a capture's does.
    now: Instant,
}

impl Rules {
    pub fn of(set: RuleSet, image: Image) -> Rules {
        Rules {
            set,
            image: Some(image),
            ..Rules::default()
        }
    }

    pub fn list(&self) -> &[Rule] {
        self.set.rules()
    }

    /// The place of the rule that decides, and what becomes of the frame.
    pub fn decide(&mut self, frame: &Frame<'_>) -> Option<(usize, Reason)> {
        let image = self.image.as_ref()?;
        let mut facts = RuleFacts::of(frame.bytes);
        // Of what was captured in part, its size is known all the same.
        facts.class.size =
            u32::try_from(frame.len_on_wire).map_or(SIZE_MAX, |len| len.min(SIZE_MAX));
        if let Some(at) = frame.at {
            self.now = self.now.max(Instant::from_nanos(at.as_nanos() as u64));
        }
        let (rules, buckets, now) = (self.set.rules(), &mut self.buckets, self.now);
        let decision = image.decide(&facts, |rule, _| match &rules[rule].verdict {
            Verdict::Limit(limit) => buckets.give(rule, limit, &facts, now),
            Verdict::Allow | Verdict::Deny => true,
        });
        match decision {
            Decision::Allow(rule) => Some((rule, Reason::Allowed)),
            Decision::Deny(rule) => Some((rule, Reason::Denied)),
            Decision::Exceeds(rule) => Some((rule, Reason::Limited)),
            Decision::Rest => None,
        }
    }
}

/// The rules, and the policy behind them. `interface`: of this machine, whose filter is asked if it has one.
pub fn choose(
    arguments: &ExplainArguments,
    interface: Option<&str>,
) -> Result<(Rules, Policy), CliError> {
    let said = arguments.policy();
    if let Some(path) = &arguments.rules {
        let RulesFile {
            options,
            rules,
            image,
        } = rules_file::read_file(path)?;
        let policy = said.or(options.policy).unwrap_or_default();
        return Ok((Rules::of(rules, image), policy));
    }
    let running = match (arguments.no_rules, interface) {
        (false, Some(interface)) => running_filter(interface),
        _ => None,
    };
    let Some(running) = running else {
        return Ok((Rules::default(), said.unwrap_or_default()));
    };
    let set = match running_rules(&running) {
        Ok(set) => set,
        Err(error @ CliError::NotRoot { .. }) => {
            output::note(&format!("{error}: judged without them"));
            return Ok((Rules::default(), said.unwrap_or_default()));
        }
        Err(error) => return Err(error),
    };
    let document = read(ask(&running)?)?;
    let policy = said.or(policy_of(&document.policy)).unwrap_or_default();
    output::note(&format!(
        "{running} has a filter: judged by its {} and its policy; --no-rules leaves them out",
        counted(set.rules().len(), "rule")
    ));
    let image = Image::compile(&set).map_err(|error| CliError::Failed(error.to_string()))?;
    Ok((Rules::of(set, image), policy))
}

fn running_filter(interface: &str) -> Option<InterfaceName> {
    let running = instance::running_filters().unwrap_or_default();
    running.into_iter().find(|name| name.as_str() == interface)
}
