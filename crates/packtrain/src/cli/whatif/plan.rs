//! What is replayed: a policy after the other, over the same wire.

use packtrain_proto::class::{Action, Class, Compress, Pack};
use packtrain_proto::config::Balance;
use packtrain_proto::time::Duration;
use packtrain_sim::whatif::{Setup, WireSettings};

use super::WhatifArguments;
use super::rate::Rate;
use crate::settings::compress::CompressPolicy;
use crate::settings::packing::PackPolicy;
use crate::settings::values::PathPolicy;

/// A way to pack and to compress, over so many cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub pack: PackPolicy,
    pub compress: CompressPolicy,
    pub links: u8,
}

#[derive(Debug)]
pub struct Plan {
    /// But for its rate.
    wire: WireSettings,
    pub rate: Rate,
    pub classes: Vec<Class>,
    /// The first is the one that was asked for.
    pub policies: Vec<Policy>,
    /// That one with a cable more, to be compared.
    pub two_links: Option<Policy>,
    hosts_max: usize,
    direct: bool,
    only: Option<packtrain_proto::wire::ethernet::MacAddr>,
}

fn asked(arguments: &WhatifArguments) -> Policy {
    Policy {
        pack: arguments.pack,
        compress: arguments.compress,
        links: arguments.links.unwrap_or(1),
    }
}

pub fn of(arguments: &WhatifArguments, classes: Vec<Class>) -> Plan {
    Plan {
        wire: WireSettings {
            rate_bps: None,
            packets_per_second: arguments.packets_per_second,
            delay: Duration::from_nanos(arguments.delay.0),
            queue_bytes: arguments.queue.0 as usize,
            mtu: arguments.mtu,
        },
        rate: Rate::before(arguments),
        classes,
        policies: policies(arguments),
        two_links: (arguments.compare && arguments.links.is_none()).then(|| Policy {
            links: 2,
            ..asked(arguments)
        }),
        hosts_max: arguments.hosts.into(),
        direct: arguments.path == PathPolicy::Auto,
        only: arguments.host,
    }
}

fn policies(arguments: &WhatifArguments) -> Vec<Policy> {
    use CompressPolicy::{Auto, Headers, Off};
    let asked = asked(arguments);
    let mut policies = vec![asked];
    if !arguments.compare {
        return policies;
    }
    let mut add = |pack: Pack, compress: CompressPolicy| {
        let pack = PackPolicy {
            pack,
            on_backlog: false,
        };
        let policy = Policy {
            pack,
            compress,
            ..asked
        };
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    };
    for compress in [Auto, Headers, Off] {
        add(Pack::Queued, compress);
    }
    let wait = Duration::from_millis(2);
    for pack in [
        Pack::Now,
        Pack::Auto,
        Pack::Within(Duration::from_micros(500)),
        Pack::Within(wait),
        Pack::Scaled(wait),
        Pack::DfapRandom,
        Pack::DfapStraight,
    ] {
        add(pack, Auto);
    }
    policies
}

impl Plan {
    pub fn setup(&self, policy: &Policy) -> Setup {
        let most = Compress::from(policy.compress);
        let at_most = |asked: Compress| match (most, asked) {
            (Compress::Off, _) | (_, Compress::Off) => Compress::Off,
            (Compress::Headers, _) | (_, Compress::Headers) => Compress::Headers,
            _ => Compress::Auto,
        };
        let mut classes = self.classes.clone();
        for class in &mut classes {
            class.action.compress = at_most(class.action.compress);
        }
        Setup {
            wire: self.wire(),
            links: policy.links.into(),
            balance: Balance::default(),
            rest: Action {
                pack: policy.pack.pack,
                on_backlog: policy.pack.on_backlog,
                compress: most,
                ..Action::default()
            },
            classes,
            direct: self.direct,
            hosts_max: self.hosts_max,
            only: self.only,
        }
    }

    pub fn wire(&self) -> WireSettings {
        WireSettings {
            rate_bps: self.rate.bps,
            ..self.wire
        }
    }

    /// Each that is replayed: those side by side first.
    pub fn replays(&self) -> impl Iterator<Item = &Policy> {
        self.policies.iter().chain(&self.two_links)
    }

    pub fn hosts_max(&self) -> usize {
        self.hosts_max
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quote = if self.pack.to_string().contains(' ') {
            "'"
        } else {
            ""
        };
        write!(
            f,
            "--pack {quote}{}{quote} --compress {}",
            self.pack, self.compress
        )?;
        match self.links {
            1 => Ok(()),
            links => write!(f, " --links {links}"),
        }
    }
}
