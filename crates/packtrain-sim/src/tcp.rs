//! TCP in virtual time: one connection's two ends, and a path between them.
//!
//! ```text
//!  Sender ─ interface ─┐                                          ┌─ Receiver
//!                      ├─ router: queue, bottleneck ─ propagation ┤
//!  Sender ─ interface ─┘                                          └─ Receiver
//!     ▲                                                               │
//!     └───────────────────────── way back ────────────────────────────┘
//! ```
//!
//! Data go one way. The sender is made of parts that know nothing of each other, and composes them:
//!
//! | part | what it answers | by |
//! |---|---|---|
//! | [`scoreboard`] | what is under way, what is lost, what goes again | RFC 5681, RFC 6582, RFC 6675, RFC 8985 |
//! | [`rack`] | what it knows of time | RFC 8985 |
//! | [`recovery`] | what goes next | RFC 6675 |
//! | [`congestion`] | how much may be under way | RFC 5681, RFC 3465 |
//! | [`cubic`] | the same, as most hosts have it | RFC 9438 |
//! | [`usage`] | whether that is what holds it back | RFC 7661 |
//! | [`rtt`] | how long a round trip is, and when to give up | RFC 6298 |
//! | [`pacer`] | when the next segment may leave | CPS, section 4 |
//! | [`auto`] | the same, by what the path carries | CPS, section 5 |
//!
//! [`dumbbell`] drives ends and wires; [`record`] is what it saw.
//!
//! What it does not have yet, and Linux has: RACK and tail loss probes, proportional rate reduction,
//! undoing of a reduction that was for nothing, time stamps, ECN, an end of the connection (FIN), data that
//! go both ways, acknowledgements at once while a connection is young.

pub mod auto;
pub mod codec;
pub mod congestion;
pub mod cubic;
pub mod dumbbell;
pub mod hystart;
pub mod marks;
pub mod pacer;
pub mod prr;
pub mod rack;
pub mod ranges;
pub mod receiver;
pub mod record;
pub mod recovery;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
pub mod sender;
pub mod tlp;
pub mod usage;
