//! Placeholder until the sizes are here.
use crate::random::Random;
#[derive(Clone, Debug)]
pub enum Sizes {
    Fixed(u64),
}
impl Sizes {
    pub fn draw(&self, _random: &mut Random) -> u64 {
        let Sizes::Fixed(n) = self;
        *n
    }
}
