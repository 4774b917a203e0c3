//! Engines that speak with each other, as an owner uses them: two over one wire, or several over several segments.
//! Each module has one thing that they do. One program: two dozen of them took longer to link than to run.

#[path = "../support/segments.rs"]
mod segments;
#[path = "../support/mod.rs"]
mod support;

mod away;
mod blocked;
mod classes;
mod coded;
mod dfap;
mod direct;
mod direct_kinds;
mod direct_loss;
mod duplicate;
mod engine_away;
mod fair;
mod fences;
mod hold;
mod home;
mod idle;
mod lag;
mod lanes;
mod liveness;
mod pair;
mod path_mtu;
mod repair;
mod rest;
mod room;
mod sand;
mod silent;
mod sizes;
mod too_big;
mod watch;
