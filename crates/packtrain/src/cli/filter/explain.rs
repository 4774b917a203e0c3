//! `packtrain filter explain`: what a filter would make of each frame of a capture, and why.
//!
//! ```text
//!  this machine │ a file that describes a host ──► Host ─┐
//!                             capture file ──► Frame ────┴► Judged ──► a line each │ Summary
//! ```
//! The model judges (`packtrain_proto::filter::decide`), against which the program in the driver is tested.

mod arguments;
mod described;
mod frames;
mod groups;
mod host;
mod judged;
mod kind;
mod summary;
mod summary_view;
#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};

use packtrain_proto::filter::{Host, Policy};

pub use self::arguments::ExplainArguments;
use self::frames::Lines;
use self::judged::Judged;
use self::kind::Kind;
use self::summary::Summary;
use self::summary_view::Terms;
use crate::capture_file::{CaptureError, CaptureFile, LinkType};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::words::count;

pub fn run(arguments: &ExplainArguments) -> Result<(), CliError> {
    let (name, host) = match &arguments.described {
        Some(path) => (path.display().to_string(), described::read_file(path)?),
        None => host::of_this_machine(arguments.interface.as_ref())?,
    };
    let mut capture = CaptureFile::open(&arguments.capture)?;
    let shape = Shape {
        summary: arguments.summary,
        json: arguments.json,
    };
    let terms = Terms {
        host: name,
        policy: arguments.policy(),
    };
    let mut explained = Explained::new(host, terms, shape);
    let out: Box<dyn Write> = match arguments.json {
        true => Box::new(io::stdout().lock()),
        false => Box::new(anstream::stdout()),
    };
    let result = explained.all(&mut capture, &mut BufWriter::new(out));
    explained.notes().iter().for_each(|note| output::note(note));
    match result {
        Ok(()) => Ok(()),
        // Who reads our output may stop reading.
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Stop::Output(error)) => Err(CliError::failed("standard output", error)),
        Err(Stop::Capture(error)) => Err(error.into()),
    }
}

/// A frame in a few words.
pub fn in_words(bytes: &[u8]) -> String {
    frames::what(bytes, Kind::of(bytes).protocol)
}

/// How it is told.
#[derive(Clone, Copy, Debug)]
struct Shape {
    summary: bool,
    json: bool,
}

/// Why it ends early.
#[derive(Debug)]
enum Stop {
    Capture(CaptureError),
    Output(io::Error),
}

/// A capture that is being gone through.
#[derive(Debug)]
struct Explained {
    host: Host,
    terms: Terms,
    shape: Shape,
    lines: Lines,
    summary: Summary,
    /// Frames of which not all was captured.
    cut: u64,
    /// Frames that were none of Ethernet's, and of which link the last was.
    made_up: u64,
    made_up_of: Option<LinkType>,
    /// Frames that the host itself has sent.
    own: u64,
}

impl Explained {
    fn new(host: Host, terms: Terms, shape: Shape) -> Explained {
        Explained {
            host,
            terms,
            shape,
            lines: Lines::default(),
            summary: Summary::default(),
            cut: 0,
            made_up: 0,
            made_up_of: None,
            own: 0,
        }
    }

    /// Of a file that breaks off, what was read before is worth having.
    fn all(&mut self, capture: &mut CaptureFile, out: &mut dyn Write) -> Result<(), Stop> {
        let read = self.frames(capture, out);
        if !matches!(read, Err(Stop::Output(_))) {
            self.end(out).map_err(Stop::Output)?;
        }
        read
    }

    fn frames(&mut self, capture: &mut CaptureFile, out: &mut dyn Write) -> Result<(), Stop> {
        while let Some(frame) = capture.next_frame().map_err(Stop::Capture)? {
            let judged = Judged::new(frame, &self.host, self.terms.policy);
            self.count(&judged);
            match self.shape {
                Shape { summary: true, .. } => Ok(()),
                Shape { json: true, .. } => frames::write_json(&judged, out),
                Shape { .. } => self.lines.write(&judged, out),
            }
            .map_err(Stop::Output)?;
        }
        Ok(())
    }

    fn count(&mut self, judged: &Judged<'_>) {
        self.summary.count(judged);
        let frame = &judged.frame;
        self.cut += u64::from(frame.bytes.len() < frame.len_on_wire);
        self.own += u64::from(judged.is_from(&self.host));
        if frame.link_type != LinkType::ETHERNET {
            self.made_up += 1;
            self.made_up_of = Some(frame.link_type);
        }
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Shape { summary, json } = self.shape;
        match (summary, json) {
            (true, true) => {
                let document = summary_view::document(&self.summary, &self.terms);
                writeln!(out, "{document:#}")?;
            }
            (true, false) => {
                out.write_all(summary_view::text(&self.summary, &self.terms).as_bytes())?;
            }
            (false, true) => {}
            (false, false) => writeln!(
                out,
                "\n{} frames: {} useful, {} dropped",
                count(self.summary.frames),
                count(self.summary.amount(false).frames),
                count(self.summary.amount(true).frames)
            )?,
        }
        out.flush()
    }

    /// What a person should know of the capture.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.own > 0 {
            notes.push(format!(
                "{} frames are from this host itself: a filter sees only what comes in, here they are judged like all others \
                 (tcpdump -Q in leaves them out)",
                count(self.own)
            ));
        }
        if self.cut > 0 {
            notes.push(format!(
                "{} frames were captured in part: where that is too short to tell, a filter sees more",
                count(self.cut)
            ));
        }
        if let Some(link_type) = self.made_up_of {
            notes.push(format!(
                "{} frames are of link type {link_type}: their Ethernet headers, by which they are judged, are made up",
                count(self.made_up)
            ));
        }
        if self.terms.policy == Policy::Nima && self.host.interface.is_promiscuous {
            notes
                .push("policy nima drops what is for others on a promiscuous interface too".into());
        }
        notes
    }
}
