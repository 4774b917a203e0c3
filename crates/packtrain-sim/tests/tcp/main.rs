//! TCP in virtual time: small cases by hand, its parts against slow models, and what Clustered Packet Spacing
//! is said to do.

mod auto;
mod conservation;
mod exact;
mod jump;
mod linux;
mod linux_path;
mod loss;
mod newreno;
mod rack;
mod scoreboard;
mod script;
mod spacing;
mod support;
