//! Where the subframes of a train go: straight into it, or to the coder first.

use super::coder::{Coder, Treatment};
use super::worth::Worths;
use crate::class::{ClassTable, Compress};
use crate::queue::frame::QueuedFrame;
use crate::time::Instant;
use crate::wire::subframe::{self, InnerHeader};
use crate::wire::train::TrainWriter;

#[derive(Debug)]
pub enum Body<'a, 'b> {
    /// Up to so many bytes of the train.
    Plain(&'a mut TrainWriter<'b>, usize),
    Coded(&'a mut Coder),
}

impl Body<'_, '_> {
    /// What may be done with this frame, or is worth it.
    pub fn treatment_of(
        &self,
        frame: &QueuedFrame,
        classes: &ClassTable,
        worths: &Worths,
        now: Instant,
    ) -> Treatment {
        let Body::Coded(coder) = self else {
            return Treatment::Plain;
        };
        match classes.action(frame.class).compress {
            Compress::Off => Treatment::Plain,
            Compress::Headers => Treatment::Headers,
            Compress::Auto => match worths.of(frame.class, now) {
                Treatment::Headers => Treatment::Headers,
                _ if frame.looks_random() && !coder.is_for_samples(frame) => Treatment::Headers,
                worth => worth,
            },
        }
    }

    /// Bytes of a subframe that fit for sure.
    pub fn room(&self, treatment: Treatment) -> usize {
        match self {
            Body::Plain(writer, len_max) => len_max - writer.len(),
            Body::Coded(coder) => coder.room(treatment),
        }
    }

    /// Compresses what may be; whether there is more room now.
    pub fn make_room(&mut self) -> bool {
        match self {
            Body::Plain(..) => false,
            Body::Coded(coder) => coder.make_room(),
        }
    }

    /// `false`, and nothing put, if it does not fit.
    #[must_use]
    pub fn put_frame(
        &mut self,
        header: &InnerHeader,
        payload: &[u8],
        treatment: Treatment,
    ) -> bool {
        match self {
            Body::Coded(coder) => coder.put_frame(header, payload, treatment),
            Body::Plain(writer, len_max) => {
                let needed = subframe::overhead(header, payload, false) + payload.len();
                let fits = writer.len() + needed <= *len_max;
                if fits {
                    writer.put_frame(header, payload);
                }
                fits
            }
        }
    }

    /// `piece`: its id, and how long the whole is.
    pub fn put_first(
        &mut self,
        header: &InnerHeader,
        piece: (u16, u16),
        payload: &[u8],
        treatment: Treatment,
    ) {
        let write =
            |writer: &mut TrainWriter<'_>| writer.put_first(header, piece.0, piece.1, payload);
        match self {
            Body::Plain(writer, _) => write(writer),
            Body::Coded(coder) => coder.put_piece(write, treatment),
        }
    }

    /// `piece`: its id, and where it begins.
    pub fn put_next(&mut self, piece: (u16, u16), payload: &[u8], treatment: Treatment) {
        let write = |writer: &mut TrainWriter<'_>| writer.put_next(piece.0, piece.1, payload);
        match self {
            Body::Plain(writer, _) => write(writer),
            Body::Coded(coder) => coder.put_piece(write, treatment),
        }
    }
}
