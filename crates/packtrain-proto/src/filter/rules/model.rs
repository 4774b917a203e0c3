//! What a list of rules means: they are asked from top to bottom, each by itself.
//!
//! Slow, and obviously right: what is fast is compared with it.

use super::facts::RuleFacts;
use super::limit::Limit;
use super::rule::Verdict;
use super::set::RuleSet;

/// What becomes of one frame, and by which rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow(usize),
    Deny(usize),
    /// It is above the limit of this rule.
    Exceeds(usize),
    /// No rule decides.
    Rest,
}

impl RuleSet {
    /// The place of the first rule that matches.
    pub fn first_match(&self, facts: &RuleFacts) -> Option<usize> {
        self.matching(facts).next()
    }

    /// The places of all rules that match, in order.
    pub fn matching(&self, facts: &RuleFacts) -> impl Iterator<Item = usize> {
        let rules = self.rules().iter().enumerate();
        rules
            .filter(|(_, rule)| rule.matches.matches(facts, self.named()))
            .map(|(place, _)| place)
    }

    /// `is_within`: whether a rule's limit has room for this frame, which takes it. It is asked in order, and of no rule
    /// behind the one that decides.
    pub fn decide(
        &self,
        facts: &RuleFacts,
        mut is_within: impl FnMut(usize, &Limit) -> bool,
    ) -> Decision {
        for place in self.matching(facts) {
            match &self.rules()[place].verdict {
                Verdict::Allow => return Decision::Allow(place),
                Verdict::Deny => return Decision::Deny(place),
                Verdict::Limit(limit) if !is_within(place, limit) => {
                    return Decision::Exceeds(place);
                }
                Verdict::Limit(_) => {}
            }
        }
        Decision::Rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::rules::generate::{self, FrameShape};

    #[test]
    fn the_first_that_decides_decides_and_limits_before_it_are_asked() {
        let rules = generate::rules_of(&[
            ("limit 9/s", "tcp"),
            ("deny", "udp"),
            ("limit 5/s", "dport 80"),
            ("allow", "tcp dport 80"),
            ("deny", "tcp"),
            ("limit 1/s", "any"),
        ]);
        let frame = |protocol, port| {
            let frame = FrameShape {
                protocol,
                ports: [1024, port],
                ..FrameShape::default()
            };
            RuleFacts::of(&frame.bytes())
        };
        let decide = |facts: &RuleFacts, full: Option<usize>| {
            let mut asked = Vec::new();
            let decision = rules.decide(facts, |place, _| {
                asked.push(place);
                Some(place) != full
            });
            (decision, asked)
        };
        let web = frame(6, 80);
        assert_eq!(rules.first_match(&web), Some(0));
        assert_eq!(
            rules.matching(&web).collect::<Vec<_>>(),
            vec![0, 2, 3, 4, 5]
        );
        assert_eq!(decide(&web, None), (Decision::Allow(3), vec![0, 2]));
        assert_eq!(decide(&web, Some(0)), (Decision::Exceeds(0), vec![0]));
        assert_eq!(decide(&web, Some(2)), (Decision::Exceeds(2), vec![0, 2]));
        assert_eq!(decide(&frame(6, 81), None), (Decision::Deny(4), vec![0]));
        assert_eq!(decide(&frame(17, 80), None), (Decision::Deny(1), vec![]));
        assert_eq!(decide(&frame(1, 80), None), (Decision::Rest, vec![5]));
        assert_eq!(
            decide(&frame(1, 0), Some(5)),
            (Decision::Exceeds(5), vec![5])
        );
    }
}
