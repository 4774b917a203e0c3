//! When what is sent leaves: transmission rate control kind to intermediate routers, after Hiraki and others (CPS), 2003.
//!
//! [`gap`] is the gap behind each frame of an interface (section 3), [`spacing`] the paper's Clustered Packet Spacing (section
//! 4), [`hystart`] ends slow start before it overshoots, [`path`] is what is remembered of a path, [`memory`] how it was
//! found out, [`jump`] how that saves a connection its doublings, and [`rate`] the rate of a stream (section 5). Pure decisions: who asks
//! holds the clock, the sockets and the timers. The program in the kernel (`bpf/pace.bpf.c` of the crate `packtrain`) and the
//! simulator's TCP decide by the same steps, in the same integers.

pub mod gap;
pub mod hystart;
pub mod jump;
pub mod memory;
pub mod path;
pub mod rate;
pub mod spacing;
