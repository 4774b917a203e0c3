//! Everything that speaks with the kernel, and all unsafe code of the workspace.
//!
//! Each file wraps one facility in safe types whose errors name what the caller can act upon.

mod sys;
