//! Explicit congestion notification (RFC 3168, section 6.1): a router marks what it would have dropped, the receiver echoes
//! that until it hears that the window was cut, and the sender cuts it once in a round trip.
//!
//! As in Linux: only new data say that they can be marked, and nothing that goes again; a receiver answers a first mark, and the
//! end of its echo, at once.

use super::segment::Ecn;

/// The sender's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Both ends understand marks.
    is_agreed: bool,
    /// CWR is to be told.
    is_cut: bool,
}

impl Marked {
    /// The handshake has ended. `asked`, and what the other end said.
    pub fn open(&mut self, asked: bool, answered: bool) {
        self.is_agreed = asked && answered;
    }

    pub fn is_agreed(&self) -> bool {
        self.is_agreed
    }

    /// The window was cut, for a mark or for a loss.
    pub fn cut(&mut self) {
        self.is_cut = self.is_agreed;
    }

    /// What a segment says: its codepoint, and whether the window was cut (CWR).
    pub fn says(&mut self, is_new: bool) -> (Ecn, bool) {
        match self.is_agreed && is_new {
            true => (Ecn::Capable, core::mem::take(&mut self.is_cut)),
            false => (Ecn::NotCapable, false),
        }
    }
}

/// The receiver's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    is_agreed: bool,
    is_on: bool,
}

impl Echo {
    /// A SYN that asks for it, or does not.
    pub fn open(&mut self, asked: bool) {
        self.is_agreed = asked;
    }

    /// Data came. Whether it is to be answered at once.
    pub fn came(&mut self, ecn: Ecn, cwr: bool) -> bool {
        let was_on = self.is_on;
        // What is marked behind the cut asks for another one.
        self.is_on &= !cwr;
        self.is_on |= self.is_agreed && ecn == Ecn::Experienced;
        cwr || self.is_on && !was_on
    }

    /// ECE: of an answer to a SYN, or of any other acknowledgement.
    pub fn says(&self, syn: bool) -> bool {
        if syn { self.is_agreed } else { self.is_on }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_lasts_until_the_cut_is_heard_of_and_begins_anew_with_the_next_mark() {
        let mut echo = Echo::default();
        echo.open(true);
        assert!(echo.says(true) && !echo.says(false));
        let steps = [
            (Ecn::Capable, false, false, false),
            (Ecn::Experienced, false, true, true),
            (Ecn::Experienced, false, false, true),
            (Ecn::Capable, false, false, true),
            (Ecn::Capable, true, true, false),
            (Ecn::Experienced, false, true, true),
            (Ecn::Experienced, true, true, true),
        ];
        for (ecn, cwr, at_once, says) in steps {
            assert_eq!((echo.came(ecn, cwr), echo.says(false)), (at_once, says));
        }
    }

    #[test]
    fn who_did_not_agree_neither_echoes_nor_cuts() {
        let mut echo = Echo::default();
        echo.open(false);
        assert!(!echo.came(Ecn::Experienced, false) && !echo.says(false));
        let mut marked = Marked::default();
        marked.open(true, false);
        marked.cut();
        assert_eq!(marked.says(true), (Ecn::NotCapable, false));
        assert!(!marked.is_agreed());
    }

    #[test]
    fn the_next_new_data_tell_of_a_cut_once() {
        let mut marked = Marked::default();
        marked.open(true, true);
        assert!(marked.is_agreed());
        marked.cut();
        assert_eq!(marked.says(false), (Ecn::NotCapable, false));
        assert_eq!(marked.says(true), (Ecn::Capable, true));
        assert_eq!(marked.says(true), (Ecn::Capable, false));
    }
}
