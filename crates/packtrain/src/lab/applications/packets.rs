//! Frames as they are: who sends numbered ones, and who takes them from a packet socket.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use packtrain_proto::offload::Offload;

use super::Need;
use super::outcome::Outcome;
use super::stage::{LINK, Stage};
use super::strangers::{frame, sender};
use crate::lab::namespaces::Namespace;
use crate::lab::{Result, pause};

pub(super) const SCRIPT: &str = include_str!("packets.py");
pub(super) const PYTHON: Need = Need::Program(super::stage::PYTHON, "python3-minimal");

/// So many different ones are sent, again and again.
pub(super) const NUMBERS: u32 = 40;

/// Frames of a kind, and to whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) to: [u8; 6],
    pub(super) ether_type: u16,
}

/// Sends numbered frames from a station until `meanwhile` has ended.
pub(super) fn while_sending<T>(
    from: &Namespace,
    kinds: &[Kind],
    meanwhile: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let mut socket = sender(from, LINK)?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                for kind in kinds {
                    let own = [0x02, 0, 0x0a, 0x07, 0, 0x03];
                    let payload = u32::to_be_bytes(number);
                    // One that finds no room comes again.
                    let _ = socket.send(
                        &frame(kind.to, own, kind.ether_type, &payload),
                        Offload::NONE,
                    );
                }
                number = (number + 1) % NUMBERS;
                pause(Duration::from_millis(1));
            }
        });
        let result = meanwhile();
        over.store(true, Ordering::Relaxed);
        result
    })
}

/// A program of the host that takes frames of one EtherType, while another station sends such.
pub(super) fn taken(stage: &Stage, kind: Kind) -> Result<Outcome> {
    let destination: String = kind.to.iter().map(|byte| format!("{byte:02x}")).collect();
    let (ether_type, count) = (format!("{:04x}", kind.ether_type), NUMBERS.to_string());
    let words = ["take", LINK, &ether_type, &destination, &count];
    while_sending(&stage.third, &[kind], || {
        let said = stage.python(&stage.host.namespace, SCRIPT, &words)?;
        Ok(said.is("frames", NUMBERS))
    })
}
