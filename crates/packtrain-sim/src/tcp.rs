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
//! | [`scoreboard`] | what is under way, what is lost, what goes again | RFC 5681 (Reno), RFC 6582 (NewReno), RFC 6675 (SACK), RFC 8985 |
//! | [`rack`] | of the last: what came, and how long the rest is waited for | RFC 8985, section 6 |
//! | [`tlp`] | when to ask, if nothing comes | RFC 8985, section 7 |
//! | [`recovery`] | what goes next | RFC 6675 |
//! | [`congestion`] | how much may be under way | RFC 5681, RFC 3465 |
//! | [`cubic`] | the same, as most hosts have it | RFC 9438 |
//! | [`hystart`] | whether slow start has filled the path | Ha and Rhee, 2008 |
//! | [`prr`] | how a window comes down | RFC 6937, RFC 9937 |
//! | [`marks`] | what routers say instead of dropping | RFC 3168 |
//! | [`usage`] | whether the window is what holds it back | RFC 7661 |
//! | [`rtt`] | how long a round trip is, and when to give up | RFC 6298 |
//! | [`pacer`] | when the next segment may leave | CPS, section 4 |
//! | [`auto`] | the same, by what the path carries | CPS, section 5 |
//!
//! Which of them a sender has, and which take part for each other, [`sender::SenderConfig`] says:
//! [`sender::SenderConfig::linux`] is what most hosts have. [`dumbbell`] drives ends and wires; [`record`] is what it saw.
//!
//! What it does not have, and Linux has:
//! - time stamps, and reports of duplicates (DSACK); so nothing is undone that was for nothing (neither by F-RTO), and the
//!   reordering window never grows beyond a quarter of the least round trip;
//! - pieces that the card cuts (TSO): each segment leaves for itself; and timers that run in ticks: all are exact;
//! - acknowledgements at once while a connection is young;
//! - a window that is halved once for each timeout of idleness: it is the initial one after the first;
//! - an epoch of CUBIC that waits while nothing is under way;
//! - an end of the connection (FIN), and data that go both ways.
//!
//! Who does not use SACK is told of blocks all the same, and does not look at them.

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
