//! What can happen to trains between a sender with several links and its receiver.

/// What happens next; `link` and numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Send {
        link: u8,
        large: bool,
    },
    /// Trains by all links in turn.
    SendMany {
        trains: u8,
    },
    /// The first that stands on the link; the sender is told so, or not.
    Arrives {
        link: u8,
        acknowledged: bool,
    },
    AllArrive {
        link: u8,
    },
    Overtakes {
        link: u8,
        nth: u8,
    },
    Lost {
        link: u8,
        nth: u8,
    },
    Acknowledged {
        link: u8,
    },
    Marker {
        link: u8,
    },
    /// What it carries is gone, or comes later; the sender sends it again by others.
    Dies {
        link: u8,
        stalls: bool,
    },
    /// The receiver has none for a moment: the first that it carries are gone, the others come.
    Flickers {
        link: u8,
        gone: u8,
    },
    SentAgain {
        link: u8,
    },
    /// The sender begins to repair, or ends it, and says so from then on.
    Repairs,
    /// It finds one that a link has lost, and is about to send it again.
    FindsMissing {
        nth: u8,
    },
    /// One of those that came last.
    ComesAgain {
        nth: u8,
    },
    Wait {
        micros: u32,
    },
    /// Until the wake-up, or just before.
    WaitUntilDue {
        early: bool,
    },
    /// A long row in order, or with every so many lost.
    Stream {
        trains: u16,
        lost_every: u8,
    },
    Hurry,
    /// The sender says what it has sent last, less so much; as it once was, perhaps.
    Hello {
        behind: u16,
    },
    /// Another lane goes on without what is missing up to there.
    LetGo {
        behind: u16,
    },
    /// Trains that nobody sent, one after the other, so far from the newest.
    Forged {
        ahead: i32,
        trains: u8,
        link: u8,
    },
    /// Two markers that lie.
    ForgedMarker {
        ahead: i32,
        link: u8,
        names: u8,
    },
}

impl Step {
    /// Any four bytes are one. What is rare in life is rare here.
    pub fn from_bytes([kind, link, low, high]: [u8; 4]) -> Step {
        let word = u16::from_be_bytes([high, low]);
        match kind % 64 {
            0..=11 => Step::Send {
                link,
                large: low % 8 == 0,
            },
            12..=14 => Step::SendMany { trains: low },
            15..=25 => Step::Arrives {
                link,
                acknowledged: low % 2 == 0,
            },
            26..=29 => Step::AllArrive { link },
            30 | 31 => Step::Overtakes { link, nth: low },
            32..=34 => Step::Lost { link, nth: low },
            35..=37 => Step::Acknowledged { link },
            38 | 39 => Step::Marker { link },
            40 => Step::Flickers { link, gone: low },
            41 | 42 => Step::Dies {
                link,
                stalls: low % 4 == 0,
            },
            43..=46 => Step::SentAgain { link },
            47 if low % 4 == 0 => Step::Repairs,
            47 => Step::FindsMissing { nth: high },
            48 | 49 => Step::ComesAgain { nth: low },
            50..=53 => Step::Wait {
                micros: u32::from(word),
            },
            54 => Step::Wait {
                micros: u32::from(word) * 200,
            },
            55..=57 => Step::WaitUntilDue {
                early: low % 2 == 0,
            },
            58 => Step::Stream {
                trains: if high % 8 == 0 { 1150 } else { word % 100 },
                lost_every: link,
            },
            59 if low % 4 == 0 => Step::LetGo {
                behind: u16::from(high % 16),
            },
            59 => Step::Hurry,
            60 => Step::Hello {
                behind: word % 6000,
            },
            61 | 62 => Step::Forged {
                ahead: far(low, high),
                trains: if link % 2 == 0 { 20 } else { link % 20 },
                link: low,
            },
            _ => Step::ForgedMarker {
                ahead: far(low, high),
                link,
                names: low % 4,
            },
        }
    }

    /// Only what an honest sender and orderly links do.
    pub fn is_honest(&self) -> bool {
        !matches!(
            self,
            Step::Overtakes { .. }
                | Step::Hurry
                | Step::Hello { .. }
                | Step::LetGo { .. }
                | Step::Forged { .. }
                | Step::ForgedMarker { .. }
        )
    }
}

/// A distance near one at which something begins or ends.
fn far(low: u8, high: u8) -> i32 {
    let near = i32::from(low as i8 % 8);
    match high % 8 {
        0 => near + 4096,
        1 => near - 4096,
        2 => near - 1024,
        3 => near - 100,
        4 => 100_000,
        5 => near - 20,
        6 => near + 20,
        _ => near,
    }
}
