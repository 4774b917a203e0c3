//! What goes past the engine, and why not all does.

use serde::Serialize;

/// The path past the engine.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct DirectSnapshot {
    /// The engine carries all it can, over several links: what begins now goes past it. How often that was.
    pub takes_surplus: bool,
    pub surpluses: u64,
    /// How often flows were let rest, that they may change to it; and how often they did not in time.
    pub rests: u64,
    pub rests_in_vain: u64,
    /// Many small frames go past the engine, which was full of them and is not known to carry more. How often that was.
    pub leaves_small_frames: bool,
    pub small_frames_left: u64,
    pub small_frames_per_second: SmallFrameRates,
    /// How often it was closed to a link, or to a peer by one.
    pub closures: Closures,
    /// Direct frames that were lost on the way to peers, as far as it was found out.
    pub lost: u64,
    /// How often trains of a peer had to wait for direct frames that had left before, and how often those
    /// did not come.
    pub fences: u64,
    pub fences_given_up: u64,
    /// Direct frames that peers had long after later ones of their flow, where that was looked at; and how often that was too
    /// much for flows to be spread over a path and others.
    pub late: u64,
    pub striping_given_up: u64,
}

/// Why frames to a peer go by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineBecause {
    /// This node neither sends nor takes direct frames.
    Settings,
    /// Trains cannot go to it now.
    NotUp,
    /// The peer does not take them.
    NotOffered,
    /// What a link takes with it, only the engine sends again by another one.
    SeveralLinks,
    /// Our link has none by which the peer would know them.
    NoMark,
    /// Our `pt0` takes larger frames than the direct path carries, and those would overtake others.
    Mtu,
    /// What was sent with our mark was not answered yet: the peer may not be reached so.
    Unanswered,
    /// A queue stood on the link: the engine's queues serve all flows better. Or small frames were many.
    Congestion,
    /// Direct frames were lost on the way.
    Loss,
    /// Direct frames were late: a queue stood on the way that nobody sees.
    Delay,
    /// Flows that were spread over links came in disorder.
    Disorder,
    /// Trains are shorter than `pt0`'s frames, because the settings or the link want them so.
    Size,
    /// The link loses by bit errors, or it is looked whether it does: only the engine sees that, and sends again.
    BitErrors,
}

/// How often the path past the engine was closed, by what closed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Closures {
    /// A queue that is seen, or many small frames.
    pub congestion: u64,
    /// Answers that came late: a queue behind the link.
    pub delay: u64,
    pub loss: u64,
    /// Frames of flows that were spread over links came too long after later ones.
    pub disorder: u64,
}

impl Closures {
    pub fn total(self) -> u64 {
        self.congestion + self.delay + self.loss + self.disorder
    }

    pub fn add(&mut self, more: Closures) {
        self.congestion += more.congestion;
        self.delay += more.delay;
        self.loss += more.loss;
        self.disorder += more.disorder;
    }
}

/// Small frames a second, measured when they were many last; by the engine, when it could take no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SmallFrameRates {
    pub direct: Option<u64>,
    pub engine: Option<u64>,
}
