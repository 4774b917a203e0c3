//! What can happen to a sender with several links, and to what it sends.

#[derive(Clone, Copy, Debug)]
pub enum Step {
    HostSends {
        frames: u8,
        len: u16,
    },
    /// So many of what stands on the link reach the peer.
    Arrive {
        link: u8,
        trains: u8,
    },
    Lost {
        link: u8,
        nth: u8,
    },
    /// What has come by this link is acknowledged.
    Acknowledged {
        link: u8,
    },
    /// … as it was some acknowledgements ago.
    AcknowledgedAgain {
        nth: u8,
    },
    /// Trains that were never sent.
    AcknowledgedFalsely {
        link: u8,
        ahead: u8,
    },
    /// Nothing passes any more in either direction, and nobody is told; or it does again.
    Cut {
        link: u8,
    },
    OwnCarrier {
        link: u8,
    },
    PeerCarrier {
        link: u8,
    },
    OwnMtu {
        link: u8,
    },
    /// Those of all links: what is sent again may fit none.
    OwnMtus,
    /// Nothing else happens meanwhile.
    Wait {
        micros: u16,
    },
    /// Everything arrives and is acknowledged on links that are whole.
    Pass {
        millis: u16,
    },
}

impl Step {
    /// Any four bytes are one.
    pub fn from_bytes([kind, link, low, high]: [u8; 4]) -> Step {
        let word = u16::from_be_bytes([high, low]);
        match kind % 64 {
            0..=17 => Step::HostSends {
                frames: low % 8 + 1,
                len: match link % 4 {
                    // A train that fits the smaller MTU, or would without its options.
                    0 => 570 + word % 30,
                    _ => 64 + word % 1400,
                },
            },
            18..=25 => Step::Arrive { link, trains: low },
            26..=28 => Step::Lost { link, nth: low },
            29..=38 => Step::Acknowledged { link },
            39 => Step::AcknowledgedAgain { nth: low },
            40 => Step::AcknowledgedFalsely { link, ahead: low },
            41..=44 => Step::Cut { link },
            45..=48 => Step::OwnCarrier { link },
            49..=51 => Step::PeerCarrier { link },
            52 => Step::OwnMtu { link },
            53 => Step::OwnMtus,
            54..=57 => Step::Wait {
                micros: word % 20_000,
            },
            _ => Step::Pass { millis: word % 500 },
        }
    }
}
