//! The bands of [`FlowQueues`]: which of its flows may go by which links.

use super::{FlowQueues, Stand, turns_at};
use crate::config::LinkId;
use crate::queue::band::{Band, BandId, BandTurn, FlowTurns, List};
use crate::queue::shares::Weight;
use crate::trunk::lane::LaneId;

const ALL_LISTS: [(bool, List); 4] = [
    (true, List::New),
    (true, List::Old),
    (false, List::New),
    (false, List::Old),
];

impl FlowQueues {
    pub fn has_urgent_in(&self, band: BandId) -> bool {
        self.is_urgent_in(&self.bands[band.place()])
    }

    pub(super) fn is_urgent_in(&self, band: &Band) -> bool {
        let mut turns = band.turns.iter();
        turns.any(|turns| self.is_urgent_among(turns))
    }

    /// … of those that may go by this link.
    pub fn has_urgent_for(&self, band: BandId, link: LinkId) -> bool {
        let band = &self.bands[band.place()];
        band.place_of(link)
            .is_some_and(|place| self.is_urgent_among(&band.turns[place]))
    }

    fn is_urgent_among(&self, turns: &FlowTurns) -> bool {
        let mut ahead = turns.ahead.iter();
        ahead.any(|id| self.flows[usize::from(id)].is_urgent())
    }

    /// Whether there are frames of several bands.
    pub fn has_bands(&self) -> bool {
        let with_flows = self.bands.iter().filter(|band| band.flows() > 0);
        self.bands.len() > 1 && with_flows.count() > 1
    }

    /// The band that has frames and is next after `before`, or before all others.
    pub fn next_band(&self, before: Option<BandTurn>) -> Option<BandTurn> {
        let bands = self.bands.iter().enumerate();
        let with_frames = bands.filter(|(_, band)| band.frames() > 0);
        let turns = with_frames.map(|(place, band)| band.turn(BandId::at(place)));
        turns
            .filter(|turn| before.is_none_or(|before| *turn > before))
            .min()
    }

    /// What is selected from now on is of this band.
    pub fn serve_band(&mut self, band: BandId) {
        let turn = self.bands[band.place()].turn(band);
        self.bands.iter_mut().for_each(|band| band.settle(turn));
        self.served = Stand { band, place: 0 };
    }

    /// The band that is served.
    pub fn served_band(&self) -> BandId {
        self.served.band
    }

    /// Each flow of the band keeps to one of these links from now on, by their weights. Where that is as before, nothing changes.
    pub fn divide(&mut self, band: BandId, links: &[(LinkId, Weight)]) {
        let divided = &mut self.bands[band.place()];
        if !divided.shares.divide(links) {
            return;
        }
        let mut turns: Vec<FlowTurns> = Vec::new();
        turns.resize_with(links.len().max(1), FlowTurns::default);
        // Each list as it was, one after the other: who has had its turn has it as late as before.
        for before in &mut divided.turns {
            for (is_short, list) in ALL_LISTS {
                for id in before.lists(is_short).list(list).drain(..) {
                    let flow = &mut self.flows[usize::from(id)];
                    flow.stand.place = divided.shares.place_of_share(flow.share);
                    let to = &mut turns[flow.stand.place];
                    to.lists(is_short).list(list).push_back(id);
                    to.frames += flow.frames.len();
                    to.begun += flow.begun();
                }
            }
            for id in before.ahead.iter() {
                turns[self.flows[usize::from(id)].stand.place].ahead.add(id);
            }
        }
        divided.turns = turns;
        if self.served.band == band {
            self.served.place = 0;
        }
    }

    /// No flow keeps to a link any more.
    pub fn unite(&mut self) {
        for place in 0..self.bands.len() {
            self.divide(BandId::at(place), &[]);
        }
    }

    /// The links to which the flows of a band keep, as they were given last.
    pub fn divided_among(&self, band: BandId) -> &[(LinkId, Weight)] {
        self.bands[band.place()].shares.links()
    }

    /// What is selected from now on may go by this link.
    pub fn serve(&mut self, link: LinkId) {
        let band = &self.bands[self.served.band.place()];
        self.served.place = band.place_of(link).unwrap_or(0);
    }

    /// Frames of flows whose next one is of one of these lanes.
    pub fn frames_of(&self, has: impl Fn(LaneId) -> bool) -> usize {
        let bands = self.bands.iter().enumerate();
        let of_these = bands.filter(|(place, _)| has(BandId::at(*place).lane));
        of_these.map(|(_, band)| band.frames()).sum()
    }

    /// Bytes of these. A look at all flows.
    pub fn bytes_of(&self, has: impl Fn(LaneId) -> bool) -> usize {
        let turns = self.bands.iter().flat_map(|band| &band.turns);
        let ids = turns.flat_map(FlowTurns::iter);
        let flows = ids.map(|id| &self.flows[usize::from(id)]);
        let of_these = flows.filter(|flow| has(flow.stand.band.lane));
        of_these.map(|flow| flow.bytes).sum()
    }

    /// Frames that may go by this link, of the lanes that it is one of.
    pub fn frames_for(&self, link: LinkId, of: impl Fn(LaneId) -> bool) -> usize {
        let bands = self.bands.iter().enumerate();
        let may = bands.filter(|(place, _)| of(BandId::at(*place).lane));
        may.map(|(_, band)| band.frames_for(link)).sum()
    }

    /// … those of a band.
    pub fn frames_in(&self, band: BandId, link: LinkId) -> usize {
        self.bands[band.place()].frames_for(link)
    }

    /// Its head is of this band, and goes first or not.
    pub(super) fn change_turns(&mut self, id: u16, band: BandId, is_short: bool) {
        let flow = &mut self.flows[usize::from(id)];
        let to = Stand {
            band,
            place: self.bands[band.place()].shares.place_of_share(flow.share),
        };
        let from = std::mem::replace(&mut flow.stand, to);
        let was_short = std::mem::replace(&mut flow.is_short, is_short);
        let (frames, begun) = (flow.frames.len(), flow.begun());
        let turns = turns_at(&mut self.bands, from);
        let list = turns.lists(was_short).list(flow.list);
        list.retain(|&other| other != id);
        turns.frames -= frames;
        turns.begun -= begun;
        if flow.is_ahead {
            turns.ahead.forget(id);
        }
        let turns = turns_at(&mut self.bands, to);
        turns.lists(is_short).list(flow.list).push_back(id);
        turns.frames += frames;
        turns.begun += begun;
        if flow.is_ahead {
            turns.ahead.add(id);
        }
    }
}
