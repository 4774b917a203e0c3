//! What is replayed: a policy after the other, over the same wire.

use packtrain_proto::class::{Action, Class, Compress, Pack};
use packtrain_proto::config::Balance;
use packtrain_proto::time::Duration;
use packtrain_sim::whatif::{Setup, WireSettings};

use super::WhatifArguments;
use crate::settings::compress::CompressPolicy;
use crate::settings::packing::PackPolicy;
use crate::settings::values::PathPolicy;

/// A way to pack and to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub pack: PackPolicy,
    pub compress: CompressPolicy,
    /// Only replayed so that it is known what compression adds to the one that was asked for.
    pub is_reference: bool,
}

impl Policy {
    fn new(pack: PackPolicy, compress: CompressPolicy) -> Policy {
        Policy {
            pack,
            compress,
            is_reference: false,
        }
    }

    fn is_same(&self, other: &Policy) -> bool {
        (self.pack, self.compress) == (other.pack, other.compress)
    }
}

#[derive(Debug)]
pub struct Plan {
    pub wire: WireSettings,
    pub classes: Vec<Class>,
    /// The first is the one that was asked for.
    pub policies: Vec<Policy>,
    links: usize,
    hosts_max: usize,
    direct: bool,
    only: Option<packtrain_proto::wire::ethernet::MacAddr>,
}

pub fn of(arguments: &WhatifArguments, classes: Vec<Class>) -> Plan {
    Plan {
        wire: WireSettings {
            rate_bps: arguments.rate_bps(),
            packets_per_second: arguments.packets_per_second,
            delay: Duration::from_nanos(arguments.delay.0),
            queue_bytes: arguments.queue.0 as usize,
            mtu: arguments.mtu,
        },
        classes,
        policies: policies(arguments),
        links: arguments.links.into(),
        hosts_max: arguments.hosts.into(),
        direct: arguments.path == PathPolicy::Auto,
        only: arguments.host,
    }
}

fn policies(arguments: &WhatifArguments) -> Vec<Policy> {
    use CompressPolicy::{Auto, Headers, Off};
    let asked = Policy::new(arguments.pack, arguments.compress);
    let mut policies = vec![asked];
    let mut add = |policy: Policy| {
        if !policies.iter().any(|known| known.is_same(&policy)) {
            policies.push(policy);
        }
    };
    let pack = |pack| PackPolicy {
        pack,
        on_backlog: false,
    };
    if arguments.compare {
        for compress in [Off, Headers, Auto] {
            add(Policy::new(PackPolicy::default(), compress));
        }
        let waits = [Duration::from_micros(500), Duration::from_millis(2)];
        for waiting in [Pack::Auto].into_iter().chain(waits.map(Pack::Within)) {
            add(Policy::new(pack(waiting), Auto));
        }
    }
    let less: &[CompressPolicy] = match arguments.compress {
        Auto => &[Off, Headers],
        Headers => &[Off],
        Off => &[],
    };
    for &compress in less {
        add(Policy {
            is_reference: true,
            ..Policy::new(arguments.pack, compress)
        });
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
            wire: self.wire,
            links: self.links,
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
        )
    }
}
