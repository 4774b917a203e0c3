//! What is sent: traffic whose bytes are like those of its kind, because compressing goes by these. The same again of
//! the same seed.

pub mod draws;
pub mod game;
pub mod http;
mod mu_law;
pub mod nfs;
pub mod packet;
pub mod speech;
pub mod voice;
mod words;
