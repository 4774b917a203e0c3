//! What an application is asked, and when.

use std::fmt::Debug;

use super::core::Core;
use super::datagram::Datagram;
use super::report::Report;

pub trait Application: Debug {
    fn start(&mut self, core: &mut Core);
    /// The next bytes of a connection of its own have come, in order.
    fn delivered(&mut self, connection: u32, bytes: u64, core: &mut Core);
    /// Some more of what it has written has arrived.
    fn acknowledged(&mut self, _connection: u32, _core: &mut Core) {}
    fn datagram(&mut self, _datagram: &Datagram, _core: &mut Core) {}
    /// It is the time that it asked for with this token.
    fn timer(&mut self, _token: u64, _core: &mut Core) {}
    fn report(&self) -> &Report;
    fn report_mut(&mut self) -> &mut Report;
}
