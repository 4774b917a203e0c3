//! Sequence numbers of 32 bits that wrap (serial number arithmetic, RFC 1982).

use core::fmt;

/// A train's or a link's sequence. The first that is ever sent is 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sequence(pub u32);

impl Sequence {
    pub const ZERO: Sequence = Sequence(0);
    pub const FIRST: Sequence = Sequence(1);

    #[must_use]
    pub fn next(self) -> Sequence {
        self.plus(1)
    }

    #[must_use]
    pub fn plus(self, n: u32) -> Sequence {
        Sequence(self.0.wrapping_add(n))
    }

    #[must_use]
    pub fn minus(self, n: u32) -> Sequence {
        Sequence(self.0.wrapping_sub(n))
    }

    /// How far this is ahead of `other`; negative when behind.
    pub fn distance_from(self, other: Sequence) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    pub fn is_newer_than(self, other: Sequence) -> bool {
        self.distance_from(other) > 0
    }

    #[must_use]
    pub fn older_of(self, other: Sequence) -> Sequence {
        match self.is_newer_than(other) {
            true => other,
            false => self,
        }
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let before = Sequence(u32::MAX);
        let after = before.next();
        assert_eq!(after, Sequence(0));
        assert!(after.is_newer_than(before));
        assert!(!before.is_newer_than(after));
        assert_eq!(before.older_of(after), before);
        assert_eq!(after.older_of(before), before);
        assert_eq!(before.plus(5).distance_from(before), 5);
        assert_eq!(before.distance_from(before.plus(5)), -5);
    }
}
