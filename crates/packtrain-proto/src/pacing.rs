//! When what is sent leaves: rate control kind to intermediate routers, after Hiraki and others (CPS), 2003.
//!
//! [`spacing`] is the paper's Clustered Packet Spacing (section 4), and [`path`] what is remembered of a path for it. Pure decisions: who
//! asks holds the clock, the sockets and the timers. The program in the kernel (`bpf/cps.bpf.c` of the crate
//! `packtrain`) and the simulator's TCP decide by the same steps, in the same integers.

pub mod path;
pub mod spacing;
