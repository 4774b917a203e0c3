//! The kernel's way of frames, past both engines, under whatever comes: every kind of frame, over every
//! queue that it is open for, beside traffic of others, among forgers, and with an end that dies.

mod fallback;
mod forged;
mod frames;
mod killed;
mod kinds;
mod marks;
mod onward;
mod own_traffic;
mod port;
mod port_security;
mod reception;
mod segment;
mod several_links;
pub mod vlan;

use std::sync::atomic::{AtomicBool, Ordering};

/// Ends what runs beside a test, also when that has panicked: it would be waited for.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
