//! Two hosts and a wire, on which one setting after the other is tried.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use clap::Parser;

use crate::lab::emulator::protocol::Request;
use crate::lab::messages::{self, Load, Report};
use crate::lab::namespaces::Namespace;
use crate::lab::standing::HeldLab;
use crate::lab::topology::{Change, Direction, TopologyOptions};
use crate::lab::{Error, Result};

pub(crate) const WIRE: &str = "a-b.0";
const PORT: u16 = 7100;

/// The words of `lab set`.
#[derive(Debug, Parser)]
struct Words {
    #[command(flatten)]
    change: Change,
}

/// What the direction from B to A is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    AtOnce,
    /// As long as there.
    AfterTheDelay,
}

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) lab: HeldLab,
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
    /// B's, on the wire.
    pub(crate) address: IpAddr,
}

impl Stage {
    pub(crate) fn set(tag: &str, packtrain: &Path) -> Result<Stage> {
        let options = TopologyOptions {
            links: 1,
            packtrain: false,
            ..TopologyOptions::default()
        };
        let topology = options.topology().expect("two hosts and a wire");
        let lab = HeldLab::up(tag, &topology, packtrain)?;
        let address = lab.addresses()[1].main.into();
        Ok(Stage {
            a: lab.host("a")?,
            b: lab.host("b")?,
            address,
            lab,
        })
    }

    /// Makes the wire one with these settings, and no others, from A to B; back it only carries, after
    /// the same delay where that is said.
    pub(crate) fn set_wire(&mut self, words: &str, back: Back) -> Result<()> {
        let split = std::iter::once("set").chain(words.split_whitespace());
        let change = Words::try_parse_from(split).map_err(|error| Error::Unexpected {
            program: "lab set".to_owned(),
            text: error.to_string(),
        })?;
        let (mut there, mut back_again) = (Direction::default(), Direction::default());
        change.change.apply(&mut there);
        if back == Back::AfterTheDelay {
            back_again.wire.delay_ns = there.wire.delay_ns;
        }
        let request = Request::Set {
            wire: WIRE.to_owned(),
            directions: Box::new([there, back_again]),
        };
        self.lab.ask(&request)?;
        Ok(())
    }

    /// How long A's direction of the wire has been sending, in all.
    pub(crate) fn busy_s(&self) -> Result<f64> {
        Ok(self.lab.status()?.wires[0].directions[0].busy_s)
    }

    /// Sends datagrams from A to B: as many a second for so long, each a frame of `frame_bytes`.
    pub(crate) fn send(
        &self,
        frame_bytes: usize,
        rate_per_second: Option<u64>,
        duration: Duration,
    ) -> Result<Report> {
        let load = Load {
            size: frame_bytes - FRAME_HEADERS,
            duration,
            rate_per_second,
            // One that never waits would keep the hosts from their work.
            real_time: rate_per_second.is_some(),
        };
        messages::measure(&self.a, &self.b, SocketAddr::new(self.address, PORT), load)
    }
}

/// Ethernet, IPv4, UDP.
const FRAME_HEADERS: usize = 14 + 20 + 8;
