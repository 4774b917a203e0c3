//! Everything that speaks with the kernel, and all unsafe code of the workspace.
//!
//! Each file wraps one facility in safe types whose errors name what the caller can act upon.

pub mod alarm;
pub mod capture_socket;
pub mod coalescer;
pub mod cpu_latency;
pub mod direct;
pub mod driver_program;
pub mod epoll;
pub mod ethtool;
pub mod fd_passing;
pub mod filter;
pub mod flood;
pub mod floor;
pub mod gap_qdisc;
pub mod guard;
pub mod host_state;
pub mod intake;
pub mod late;
pub mod local_time;
pub mod mii;
pub mod netlink;
pub mod pace;
pub mod packet_socket;
pub mod port_rate;
pub mod ring;
pub mod scheduling;
pub mod shaper;
pub mod socket_filter;
pub mod tap;
pub mod tcp_pacing;
pub mod tcp_segments;
pub mod udp_offload;
pub mod udp_stamps;
pub mod vnet_header;

mod af_packet;
mod bpf_link;
mod bpf_map;
mod bpf_object;
mod htb;
mod landing;
mod queue_estimate;
mod sys;
pub mod tc;
mod tcx;
mod xdp;

#[cfg(test)]
pub(crate) mod test_namespace;
