//! A lab that goes with the process that made it: of a measurement, or a check.

use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use super::{Lab, making};
use crate::lab::emulator::lateness::LatenessSummary;
use crate::lab::emulator::protocol::{AskError, Request, Response, WireChoice};
use crate::lab::topology::Topology;
use crate::lab::{Result, now, pause};

/// Taken down when it is dropped, and when the process is interrupted.
#[derive(Debug)]
pub struct HeldLab {
    lab: Lab,
    is_down: bool,
}

impl HeldLab {
    /// `tag`: what it is for, in a few letters.
    pub fn up(tag: &str, topology: &Topology, packtrain: &Path) -> Result<HeldLab> {
        super::clean_up_on_signals()?;
        let name = format!("{tag}{}", std::process::id());
        let lab = Lab::up(&name, topology, packtrain, |_| {})?;
        *making() = Some(name);
        Ok(HeldLab {
            lab,
            is_down: false,
        })
    }

    /// How late its wires ran since this was last asked.
    pub fn lateness(&self) -> std::result::Result<LatenessSummary, AskError> {
        match self.ask(&Request::Lateness { reset: true })? {
            Response::Lateness(summary) => Ok(summary),
            other => Err(AskError::NotUnderstood(format!("{other:?}"))),
        }
    }

    /// Cuts a wire, and mends it after some time. Gives how long the cut really was.
    pub fn cut_for(&self, of: WireChoice, silent: bool, duration: Duration) -> Result<Duration> {
        let cut = Request::Cut {
            of: of.clone(),
            silent,
        };
        self.ask(&cut)?;
        let start = now();
        pause(duration);
        self.ask(&Request::Mend { of })?;
        Ok(start.elapsed())
    }

    /// As dropping it, and says what went wrong.
    pub fn down(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        self.is_down = true;
        let result = Lab::down(Some(self.lab.name()));
        *making() = None;
        result
    }
}

impl Deref for HeldLab {
    type Target = Lab;
    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl Drop for HeldLab {
    fn drop(&mut self) {
        if !self.is_down {
            // The failure that ended us is the one to tell of.
            let _ = self.take_down();
        }
    }
}
