//! Two hosts and a wire, on which one setting after the other is tried.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use clap::Parser;

use crate::lab::emulator::lateness::LatenessSummary;
use crate::lab::emulator::protocol::{EmulatorStatus, Request, Response};
use crate::lab::messages::{self, Load, Report};
use crate::lab::namespaces::Namespace;
use crate::lab::standing::Lab;
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
    /// `None` once it is down.
    lab: Option<Lab>,
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
    /// B's, on the wire.
    pub(crate) address: IpAddr,
}

impl Stage {
    pub(crate) fn set(name: &str, packtrain: &Path) -> Result<Stage> {
        let options = TopologyOptions {
            links: 1,
            packtrain: false,
            ..TopologyOptions::default()
        };
        let topology = options.topology().expect("two hosts and a wire");
        let lab = Lab::up(name, &topology, packtrain, |_| {})?;
        let address = lab.addresses()[1].main.into();
        Ok(Stage {
            a: lab.host("a")?,
            b: lab.host("b")?,
            address,
            lab: Some(lab),
        })
    }

    fn lab(&self) -> &Lab {
        self.lab.as_ref().expect("it stands until the end")
    }

    pub(crate) fn down(mut self) -> Result<()> {
        self.lab.take().map_or(Ok(()), Lab::down)
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
        self.ask(&Request::Set {
            wire: WIRE.to_owned(),
            directions: Box::new([there, back_again]),
        })
        .map(drop)
    }

    fn ask(&self, request: &Request) -> Result<Response> {
        self.lab().ask(request).map_err(|error| Error::Unexpected {
            program: "the emulator".to_owned(),
            text: error.to_string(),
        })
    }

    pub(crate) fn reset_lateness(&self) -> Result<()> {
        self.ask(&Request::Lateness { reset: true }).map(drop)
    }

    pub(crate) fn lateness(&self) -> Result<LatenessSummary> {
        match self.ask(&Request::Lateness { reset: false })? {
            Response::Lateness(summary) => Ok(summary),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) fn status(&self) -> Result<EmulatorStatus> {
        match self.ask(&Request::Status {})? {
            Response::Status(status) => Ok(*status),
            other => Err(unexpected(&other)),
        }
    }

    /// How long A's direction of the wire has been sending, in all.
    pub(crate) fn busy_s(&self) -> Result<f64> {
        Ok(self.status()?.wires[0].directions[0].busy_s)
    }

    pub(crate) fn is_real_time(&self) -> Result<bool> {
        Ok(self.status()?.real_time)
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

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(lab) = self.lab.take() {
            // The failure that ended us is the one to tell of.
            let _ = lab.down();
        }
    }
}

fn unexpected(response: &Response) -> Error {
    Error::Unexpected {
        program: "the emulator".to_owned(),
        text: format!("{response:?}"),
    }
}
