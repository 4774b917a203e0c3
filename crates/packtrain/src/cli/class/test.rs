//! `packtrain class test`: of which class each frame of a capture would be.

use std::io::{self, BufWriter, Write};

use packtrain_proto::class::{Action, Class, ClassTable, Facts, REST, defaults};
use packtrain_proto::classifier::Classifier;
use packtrain_proto::stats::Traffic;
use packtrain_proto::wire::packet::Packet;
use serde_json::json;

use super::arguments::ClassTestArguments;
use crate::capture_file::{CaptureError, CaptureFile, Frame, LinkType};
use crate::cli::error::CliError;
use crate::cli::view::tables::table;
use crate::cli::view::words::{bytes, count};
use crate::cli::{frame_words, output, show, up};
use crate::settings::values::InterfaceName;

/// Widest name that keeps the frames' columns in line.
const NAME_WIDTH: usize = 12;

pub fn run(arguments: &ClassTestArguments) -> Result<(), CliError> {
    let classes = match (&arguments.line, &arguments.file) {
        (Some(line), _) => classes_of_line(line)?,
        (None, Some(file)) => up::read_file(file)?.classes,
        (None, None) => defaults(),
    };
    if classes.iter().any(|class| class.matches.asks_for_marks()) {
        output::note("a capture does not say what mark a frame had: it counts as 0");
    }
    let mut capture = CaptureFile::open(&arguments.capture)?;
    let mut sorter = Sorter::new(classes);
    let out = BufWriter::new(io::stdout().lock());
    let mut report: Box<dyn Report> = match (arguments.json, arguments.summary) {
        (true, summary) => Box::new(Json::new(out, summary)),
        (false, true) => Box::new(Lines { out, frames: false }),
        (false, false) => Box::new(Lines { out, frames: true }),
    };
    let sorted = sort(&mut capture, &mut sorter, report.as_mut());
    // What was read before a file breaks off is worth having.
    let ended = match &sorted {
        Err(Stop::Output(_)) => Ok(()),
        _ => report.end(&sorter).map_err(Stop::Output),
    };
    if sorter.cut > 0 {
        output::note(&format!(
            "{} frames were captured in part: what is missing of their headers matches nothing",
            count(sorter.cut)
        ));
    }
    if let Some(link_type) = sorter.made_up_of {
        output::note(&format!(
            "{} frames are of link type {link_type}: their Ethernet headers are made up",
            count(sorter.made_up)
        ));
    }
    match sorted.and(ended) {
        Ok(()) => Ok(()),
        // Who reads our output may stop reading.
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Stop::Output(error)) => Err(CliError::failed("standard output", error)),
        Err(Stop::Capture(error)) => Err(error.into()),
    }
}

/// Why it ends early.
enum Stop {
    Capture(CaptureError),
    Output(io::Error),
}

fn sort(
    capture: &mut CaptureFile,
    sorter: &mut Sorter,
    report: &mut dyn Report,
) -> Result<(), Stop> {
    while let Some(frame) = capture.next_frame().map_err(Stop::Capture)? {
        let (class, facts) = sorter.class_of(&frame);
        report
            .frame(&frame, sorter.name(class), &facts)
            .map_err(Stop::Output)?;
    }
    Ok(())
}

fn classes_of_line(line: &InterfaceName) -> Result<Vec<Class>, CliError> {
    let document = show::document(line)?;
    let not_understood = |error: String| CliError::NoAnswer {
        name: line.to_string(),
        reason: format!("a class that is not understood: {error}"),
    };
    let classes = document.classes.into_iter().filter_map(|class| {
        let matches = class.matches?;
        Some(read_class(&class.name, &matches).map_err(not_understood))
    });
    classes.collect()
}

/// What matters of it here: which frames.
fn read_class(name: &str, matches: &str) -> Result<Class, String> {
    Ok(Class {
        name: name.parse().map_err(|e| format!("{e}"))?,
        matches: matches.parse().map_err(|e| format!("{e}"))?,
        links: Vec::new(),
        action: Default::default(),
    })
}

/// The same table as in a line, and what of it has come.
struct Sorter {
    table: ClassTable,
    names: Vec<String>,
    classifier: Classifier,
    /// Frames of which not all was captured.
    cut: u64,
    /// Frames that were none of Ethernet's, and of which link the last was: a file has hardly more than one.
    made_up: u64,
    made_up_of: Option<LinkType>,
}

impl Sorter {
    fn new(classes: Vec<Class>) -> Sorter {
        let names = classes.iter().map(|class| class.name.to_string());
        Sorter {
            names: names.chain([REST.to_owned()]).collect(),
            table: ClassTable::new(classes, Action::default()),
            classifier: Classifier::new(0),
            cut: 0,
            made_up: 0,
            made_up_of: None,
        }
    }

    fn class_of(&mut self, frame: &Frame<'_>) -> (usize, Facts) {
        let parsed = Packet::parse(frame.bytes);
        let mut facts = Facts::of(frame.bytes, &parsed, 0);
        facts.size = u32::try_from(frame.len_on_wire).unwrap_or(u32::MAX);
        self.cut += u64::from(frame.bytes.len() < frame.len_on_wire);
        if frame.link_type != LinkType::ETHERNET {
            self.made_up += 1;
            self.made_up_of = Some(frame.link_type);
        }
        let flow = self.classifier.flow_hash_of(frame.bytes, &parsed);
        let class = self.table.class_of(flow, &facts);
        self.table.count(class, frame.len_on_wire);
        (class.0.into(), facts)
    }

    fn name(&self, class: usize) -> &str {
        &self.names[class]
    }

    fn traffic(&self) -> impl Iterator<Item = (&str, Traffic)> {
        let counted = self.table.iter_counted().map(|(_, traffic, _)| traffic);
        let names = self.names.iter().map(String::as_str);
        names.zip(counted.chain([self.table.rest().1]))
    }
}

/// How it is told.
trait Report {
    fn frame(&mut self, frame: &Frame<'_>, class: &str, facts: &Facts) -> io::Result<()>;
    fn end(&mut self, sorter: &Sorter) -> io::Result<()>;
}

/// For a person.
struct Lines<W> {
    out: W,
    /// Each frame, and not only how many.
    frames: bool,
}

impl<W: Write> Report for Lines<W> {
    fn frame(&mut self, frame: &Frame<'_>, class: &str, facts: &Facts) -> io::Result<()> {
        if !self.frames {
            return Ok(());
        }
        let (number, size) = (frame.number, facts.size);
        let what = frame_words::flow(&facts.flow);
        let empty = if facts.empty_tcp { ", empty" } else { "" };
        writeln!(
            self.out,
            "{number:>6}  {class:<NAME_WIDTH$}  {size:>5} B  {what}{empty}"
        )
    }

    fn end(&mut self, sorter: &Sorter) -> io::Result<()> {
        if self.frames {
            writeln!(self.out)?;
        }
        let row = |(name, traffic): (&str, Traffic)| {
            [name.to_owned(), count(traffic.frames), bytes(traffic.bytes)]
        };
        let rows = sorter.traffic().map(row).collect();
        self.out
            .write_all(table(["CLASS", "FRAMES", "BYTES"], rows, &[], "").as_bytes())?;
        self.out.flush()
    }
}

/// For programs: one document, with a line a frame, so that memory does not grow with the capture.
struct Json<W> {
    out: W,
    summary: bool,
    begun: bool,
}

impl<W: Write> Json<W> {
    fn new(out: W, summary: bool) -> Json<W> {
        Json {
            out,
            summary,
            begun: false,
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let before = match (self.begun, self.summary) {
            (true, _) => ",\n    ",
            (false, true) => "{\n",
            (false, false) => "{\n  \"frames\": [\n    ",
        };
        self.begun = true;
        self.out.write_all(before.as_bytes())
    }
}

impl<W: Write> Report for Json<W> {
    fn frame(&mut self, frame: &Frame<'_>, class: &str, facts: &Facts) -> io::Result<()> {
        if self.summary {
            return Ok(());
        }
        self.begin()?;
        let frame = json!({
            "number": frame.number,
            "time_s": frame.at.map(|at| at.as_secs_f64()),
            "class": class,
            "bytes": facts.size,
        });
        write!(self.out, "{frame}")
    }

    fn end(&mut self, sorter: &Sorter) -> io::Result<()> {
        if !self.begun {
            self.out.write_all(b"{\n")?;
            if !self.summary {
                self.out.write_all(b"  \"frames\": [\n")?;
            }
        }
        if !self.summary {
            self.out.write_all(b"\n  ],\n")?;
        }
        self.out.write_all(b"  \"classes\": [\n")?;
        let last = sorter.names.len() - 1;
        for (at, (name, traffic)) in sorter.traffic().enumerate() {
            let class = json!({"name": name, "frames": traffic.frames, "bytes": traffic.bytes});
            let comma = if at < last { "," } else { "" };
            writeln!(self.out, "    {class}{comma}")?;
        }
        self.out.write_all(b"  ]\n}\n")?;
        self.out.flush()
    }
}
