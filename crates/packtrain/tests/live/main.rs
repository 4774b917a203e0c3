//! The real program and the real kernel, on hosts that are network namespaces: as root. `./x test` runs them. They go two at a
//! time, for they mostly wait, and those that measure go alone (`live!(alone)`).

#[macro_use]
mod common;

// Commands: what a person types, and what is printed.
mod bench;
mod capture;
mod cli;
mod events;
mod filter;
mod foretold;
mod lab;
mod pace;
mod pace_tcp;

// A line between two hosts, and more of them.
mod aggregates;
mod bit_errors;
mod classes;
mod coalescing;
mod coded;
mod faults;
mod large_mtu;
mod links;
mod programs;
mod rocks_and_sand;
mod segment;
mod traffic;

// The way of frames past the engine.
mod direct;
mod kernel_path;
mod stay;

// Parts by themselves, against the kernel.
mod io;
mod line;
mod simulated_tcp;
