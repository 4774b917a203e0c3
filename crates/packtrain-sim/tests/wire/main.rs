//! The wire against slow models of itself, and against the formulas of what it is said to do.

mod ecn;
mod fates;
mod schedule;
mod statistics;
mod support;
