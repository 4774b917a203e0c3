//! What is sent: traffic whose bytes are like those of its kind, because compressing goes by these. The same again of
//! the same seed.

pub mod draws;
pub mod packet;
