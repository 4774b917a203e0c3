//! Rules left out of the models on purpose, one at a time: the tests must see the difference, or they would
//! not see it either when the code leaves that rule out.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakage {
    /// What an older train told is taken for what may still bring a newer one.
    NothingIsKnownOfNewerTrains,
    /// A link that is named is waited for, however old all is that it carries.
    DistanceIsIgnored,
    /// … and even when it has delivered something newer.
    LinksNamedNeverPass,
    /// What was told earlier and comes later is believed.
    OldNewsIsNews,
    /// Of two markers of one sequence, only the one that comes last is believed.
    MarkersTakeBack,
    /// A gap is waited for from when it was noticed, however often the sender says that it may be filled.
    NamingAgainChangesNothing,
    /// A train that was sent again says that all before has come by the link it took.
    ReplaysPass,
    MarkersSayNothing,
    /// A gap that nothing brings is given up so long after it was noticed, not after that.
    TheMomentBeginsWithTheGap,
    NothingIsLearned,
    StallsAreNotLearned,
    NoStallEnds,
    /// A gap that the sender's last word names is given up as soon as one that it does not name any more.
    SilenceIsAWord,
    /// What a link brings after it was away shows what is lost.
    RemovalsChangeNothing,
    /// … not even when the sender has said what goes again.
    DoubtOutlastsTheWord,
    /// A train let through long ago is taken for one that nobody knows.
    MemoryIsShort,
    /// Trains that a stalled link brings late are taken for where the sender is.
    LateOnesMoveTheWindow,
    /// What is sent again is taken for where the sender is.
    ReplaysMoveTheWindow,
    OneStrayMoves,
    HellosAreNeverLate,
    /// What was never sent is held, whatever hellos say.
    WhatIsForgedStays,
    /// … and is believed for what it tells.
    WhatIsForgedTells,
    /// … and what has come since is taken for such.
    NobodyOvertakesAHello,
    /// What another lane goes on without is waited for.
    LanesWaitForAll,
    NoBound,
    /// Where nothing may be lost, no longer is waited for than elsewhere.
    LosslessIsInTime,
    /// A sender that repairs is not waited for.
    NobodyRepairs,
    /// … and for as long as ever, though it does not do what it says.
    WordsAreAlwaysKept,
    /// Nothing is lost as long as anything goes again, however new that is.
    WhatIsOlderGoesAgainToo,
    /// Of an acknowledgement only its newest counts.
    BitmapsAreIgnored,
    /// What stands behind many that arrived is still kept, and sent again.
    NothingIsEverLost,
    WhatWasGivenUpGoesAgain,
    NewestGoesFirst,
    /// A train names what its own link carries.
    OwnLinkIsTold,
    /// Copies are kept however many there are.
    AllIsKept,
    /// What waits to be sent again is not named.
    ReplaysAreNotTold,
    /// New trains go while older ones wait to be sent again: seen from the other side, what waits goes last.
    WaitingGoesLast,
}

impl Breakage {
    pub const OF_ORDER: &'static [Breakage] = &[
        Breakage::NothingIsKnownOfNewerTrains,
        Breakage::DistanceIsIgnored,
        Breakage::LinksNamedNeverPass,
        Breakage::OldNewsIsNews,
        Breakage::MarkersTakeBack,
        Breakage::NamingAgainChangesNothing,
        Breakage::ReplaysPass,
        Breakage::MarkersSayNothing,
        Breakage::TheMomentBeginsWithTheGap,
        Breakage::NothingIsLearned,
        Breakage::StallsAreNotLearned,
        Breakage::NoStallEnds,
        Breakage::SilenceIsAWord,
        Breakage::RemovalsChangeNothing,
        Breakage::DoubtOutlastsTheWord,
        Breakage::MemoryIsShort,
        Breakage::LateOnesMoveTheWindow,
        Breakage::ReplaysMoveTheWindow,
        Breakage::OneStrayMoves,
        Breakage::HellosAreNeverLate,
        Breakage::WhatIsForgedStays,
        Breakage::WhatIsForgedTells,
        Breakage::NobodyOvertakesAHello,
        Breakage::LanesWaitForAll,
        Breakage::NoBound,
        Breakage::NobodyRepairs,
        Breakage::LosslessIsInTime,
        Breakage::WordsAreAlwaysKept,
        Breakage::WhatIsOlderGoesAgainToo,
    ];
    pub const OF_COPIES: &'static [Breakage] = &[
        Breakage::BitmapsAreIgnored,
        Breakage::NothingIsEverLost,
        Breakage::WhatWasGivenUpGoesAgain,
        Breakage::NewestGoesFirst,
        Breakage::OwnLinkIsTold,
        Breakage::AllIsKept,
        Breakage::ReplaysAreNotTold,
        Breakage::WaitingGoesLast,
    ];
}
