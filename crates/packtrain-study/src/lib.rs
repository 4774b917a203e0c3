//! Scenarios: what is simulated with which parameters, how often, and what is expected of it.
//!
//! A scenario is a TOML file ([`scenario`]). Its kind ([`kinds`]) makes a [`model::Model`] of it at one
//! setting of its parameters; a run of that with a seed finds out facts, of which the scenario computes what it
//! reports ([`run`]). A sweep is many runs, over parameters and seeds ([`sweep`]); [`judge`] says whether what was
//! expected came, and [`output`] prints, writes and draws it. Nothing here asks the system for more than files and
//! threads, and what comes out depends on neither.
#![forbid(unsafe_code)]

pub mod builtin;
pub mod expression;
pub mod interval;
pub mod judge;
pub mod kinds;
pub mod model;
pub mod output;
pub mod parameters;
pub mod quantity;
pub mod run;
pub mod scenario;
pub mod sweep;
pub mod template;
pub mod vary;
