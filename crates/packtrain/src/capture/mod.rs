//! What passes a line, seen from beside it: each frame once, with the addresses that its two `pt0`s know.
//!
//! A capture on `pt0` misses direct frames that leave: a program takes them before the interface's own tap
//! (docs/design/0005). They are seen where they go, on the member link; and nothing of the line is changed
//! for it, nor does it cost anything while nobody captures.
//!
//! ```text
//!  pt0    ── all that its tap shows ────────────────────────────┐
//!  eth1   ── outgoing, from the link's direct mark ─────────────┼─► Merge ─► Sorter ─► Frame
//!  eth1   ── incoming to the link, first bytes ─► Witnesses ────┼──────────────┘
//!  status ── links, marks, peers ─► View ───────────────────────┘
//! ```
//! A direct frame that comes in passes the tap of the link, and then that of `pt0` with other addresses. Its
//! copy on the link is the *witness* that it came directly; what the engine gives to `pt0` has none. The frame
//! itself is always `pt0`'s copy.

mod merge;
mod sorter;
mod sources;
mod view;
mod witnesses;

pub use merge::Merge;
pub use sorter::{Frame, Sorter};
pub use sources::{Dropped, Sources};
pub use view::{LinkView, View};
pub use witnesses::{WITNESS_BYTES, Witnesses};

/// As the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// In the kernel, past the engine.
    Direct,
    /// By the engine, in trains or not.
    Engine,
}

/// Which frames somebody wants to see; `None`: either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub direction: Option<Direction>,
    pub path: Option<Path>,
}

impl Wanted {
    pub fn takes(self, direction: Direction, path: Path) -> bool {
        self.direction.is_none_or(|wanted| wanted == direction)
            && self.path.is_none_or(|wanted| wanted == path)
    }

    fn may_come(self) -> bool {
        self.direction != Some(Direction::Out)
    }

    fn takes_direct_out(self) -> bool {
        self.takes(Direction::Out, Path::Direct)
    }

    /// All but direct frames that leave stand on `pt0`.
    fn needs_host(self) -> bool {
        self.may_come() || self.takes(Direction::Out, Path::Engine)
    }
}

/// Where a frame was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On `pt0`.
    Host(Direction),
    /// Leaving by a member link, from its direct mark.
    Link,
}

/// A frame as a socket gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub place: Place,
    pub unix_nanos: u64,
    /// As many of them as are kept.
    pub bytes: Vec<u8>,
    /// How many there were.
    pub len: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_says_where_to_look() {
        let of = |direction, path| Wanted { direction, path };
        let (both, direct, engine) = (None, Some(Path::Direct), Some(Path::Engine));
        let (coming, leaving) = (Some(Direction::In), Some(Direction::Out));
        for (wanted, host, link, may_come) in [
            (of(None, both), true, true, true),
            (of(None, direct), true, true, true),
            (of(None, engine), true, false, true),
            (of(leaving, direct), false, true, false),
            (of(leaving, engine), true, false, false),
            (of(leaving, both), true, true, false),
            (of(coming, direct), true, false, true),
            (of(coming, engine), true, false, true),
        ] {
            let looks = (
                wanted.needs_host(),
                wanted.takes_direct_out(),
                wanted.may_come(),
            );
            assert_eq!(looks, (host, link, may_come), "{wanted:?}");
        }
    }
}
