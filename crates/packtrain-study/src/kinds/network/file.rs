//! The sections of a network in a scenario's file.

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table, parse_str, string, wrong_type};
use packtrain_sim::workload::Sizes;
use toml::de::DeValue;

use super::line::{self, LineSettings};
use super::tcp::{self, TcpSettings};
use super::{
    DATAGRAM_HEADER_BYTES, DatagramSettings, FlowSettings, LineIndex, NetworkSettings,
    PACKET_BYTES_MAX, PATIENCE, PathSettings, RunTimes, SourceSettings, Starts, VisitorSettings,
};
use crate::expression::near;
use crate::kinds::Place;
use crate::kinds::read::{
    SECONDS_MAX, bytes, name, packet_bytes, seconds, some, tables, truth, whole,
};
use crate::quantity::{Dimension, Quantity};

const FLOWS_MAX: u32 = 100_000;
const CONTENT_BYTES_MAX: u64 = 1 << 50;

pub fn read(
    table: &mut Table<'_>,
    place: Place<'_>,
    errors: &mut Errors<'_>,
) -> Option<NetworkSettings> {
    let times = times(table, errors);
    let mut reader = Reader {
        lines: Vec::new(),
        taken: Vec::new(),
        flows: Vec::new(),
        feeders: Vec::new(),
        place,
        incomplete: false,
    };
    let lines = tables(table, "line", errors, |table, errors| {
        let line = line::read(table, errors);
        match &line {
            Some(line) => reader.take_name(&line.name, table, errors),
            None => reader.incomplete = true,
        }
        line
    });
    reader.lines = lines;
    let flows = tables(table, "flow", errors, |table, errors| {
        reader.flow(table, errors)
    });
    let visitors = tables(table, "visitors", errors, |table, errors| {
        reader.visitors(table, errors)
    });
    let datagrams = tables(table, "datagrams", errors, |table, errors| {
        reader.datagrams(table, errors)
    });
    if reader.lines.is_empty() && !reader.incomplete {
        table.refuse(
            Some("line"),
            "a network has at least one [[line]]".into(),
            errors,
        );
    }
    Some(NetworkSettings {
        times: times?,
        lines: reader.lines,
        flows,
        visitors,
        datagrams,
    })
}

/// Of `[run]`.
pub fn times(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<RunTimes> {
    let Some(value) = table.get("run") else {
        let message = "is missing: [run] says how long, as in seconds = 60".to_owned();
        table.refuse(Some("run"), message, errors);
        return None;
    };
    let mut table = Table::of(value, "run", "[run]", errors)?;
    let length = table.required("seconds", errors, seconds(1e-3));
    let mut ignore = Duration::ZERO;
    table.optional("ignore", errors, &mut ignore, seconds(0.0));
    let mut sample = None;
    table.optional("sample", errors, &mut sample, some(seconds(1e-5)));
    table.refuse_the_rest(errors);
    let length = length?;
    if ignore >= length {
        let message = format!(
            "{} s of {} s: nothing is left to be counted",
            ignore.as_secs_f64(),
            length.as_secs_f64()
        );
        table.refuse(Some("ignore"), message, errors);
    }
    Some(RunTimes {
        length,
        ignore,
        sample,
    })
}

struct Reader<'a> {
    lines: Vec<LineSettings>,
    taken: Vec<String>,
    /// Those before this one, by name and number.
    flows: Vec<(String, u32)>,
    /// Of these: those that feed others, and whom.
    feeders: Vec<(usize, String)>,
    place: Place<'a>,
    /// A line could not be read: what is said of names would be wrong.
    incomplete: bool,
}

impl Reader<'_> {
    /// Lines and flows are asked for by their names, so each has one of its own.
    fn take_name(&mut self, name: &str, table: &Table<'_>, errors: &mut Errors<'_>) {
        if self.taken.iter().any(|taken| taken == name) {
            table.refuse(Some("name"), format!("{name} is the name of two"), errors);
        }
        self.taken.push(name.to_owned());
    }

    fn named(&mut self, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<String> {
        let name = table.required("name", errors, name)?;
        self.take_name(&name, table, errors);
        Some(name)
    }

    fn flow(&mut self, table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<FlowSettings> {
        let name = self.named(table, errors);
        let mut count = 1;
        table.optional("count", errors, &mut count, whole(0, FLOWS_MAX));
        let path = self.path(name.as_deref(), table, errors);
        let tcp = tcp::read(table, errors);
        let mut starts = Starts::default();
        table.optional("starts", errors, &mut starts, starts_of);
        let mut writes = None;
        table.optional("writes", errors, &mut writes, |v| match v.as_str() {
            Some("unlimited") => Ok(None),
            _ => bytes(1, CONTENT_BYTES_MAX)(v).map(Some),
        });
        let says_writes = table.get("writes").is_some();
        let mut fed_by = None;
        let (flows, feeders) = (&self.flows, &self.feeders);
        table.optional("fed_by", errors, &mut fed_by, |v| {
            let by = string(v)?;
            let known = || flows.iter().map(|(name, _)| name.clone());
            let at = known().position(|name| name == by).ok_or_else(|| {
                let known: Vec<String> = known().collect();
                format!("no [[flow]] before it is {by} ({})", near(by, &known))
            })?;
            if let Some((_, other)) = feeders.iter().find(|(from, _)| *from == at) {
                return Err(format!("{by} feeds {other} already"));
            }
            match flows[at].1 == count {
                true => Ok(Some(at)),
                false => Err(format!(
                    "of {by} there are {}, and of it {count}",
                    flows[at].1
                )),
            }
        });
        if fed_by.is_some() && says_writes {
            let message = "what feeds it says what it writes".to_owned();
            table.refuse(Some("writes"), message, errors);
        }
        if let Some(by) = fed_by {
            self.feeders.push((by, name.clone().unwrap_or_default()));
        } else if writes.is_none() && count > 0 {
            self.takes_time(path.as_ref(), table, errors);
        }
        // Also one that cannot be read has a place.
        self.flows.push((name.clone().unwrap_or_default(), count));
        Some(FlowSettings {
            fed_by,
            name: name?,
            count,
            path: path?,
            tcp,
            starts,
            writes,
        })
    }

    fn visitors(
        &mut self,
        table: &mut Table<'_>,
        errors: &mut Errors<'_>,
    ) -> Option<VisitorSettings> {
        let name = self.named(table, errors);
        let path = self.path(name.as_deref(), table, errors);
        let tcp: TcpSettings = tcp::read(table, errors);
        let arrivals = table.required("arrivals", errors, parse_str);
        let sizes = table.required("sizes", errors, parse_str);
        let mut at_once = 1000;
        table.optional("at_once", errors, &mut at_once, whole(1, FLOWS_MAX));
        let mut starts = Duration::ZERO;
        table.optional("starts", errors, &mut starts, seconds(0.0));
        Some(VisitorSettings {
            name: name?,
            path: path?,
            tcp,
            arrivals: arrivals?,
            sizes: sizes?,
            at_once,
            starts,
        })
    }

    fn datagrams(
        &mut self,
        table: &mut Table<'_>,
        errors: &mut Errors<'_>,
    ) -> Option<DatagramSettings> {
        let name = self.named(table, errors);
        let mut count = 1;
        table.optional("count", errors, &mut count, whole(0, FLOWS_MAX));
        let path = self.path(name.as_deref(), table, errors);
        let mut reply_bytes = None;
        let packet = packet_bytes(DATAGRAM_HEADER_BYTES, PACKET_BYTES_MAX);
        table.optional("reply", errors, &mut reply_bytes, some(packet));
        let mut ecn = false;
        table.optional("ecn", errors, &mut ecn, truth);
        let mut starts = Starts::default();
        table.optional("starts", errors, &mut starts, starts_of);
        let source = self.source(reply_bytes, table, errors);
        if let Some(SourceSettings::AfterReply { think, .. }) = &source
            && think.is_zero()
        {
            self.takes_time(path.as_ref(), table, errors);
        }
        Some(DatagramSettings {
            name: name?,
            count,
            path: path?,
            source: source?,
            reply_bytes,
            ecn,
            starts,
        })
    }

    /// One of three: arrivals, after_reply or pcap.
    fn source(
        &self,
        reply: Option<u32>,
        table: &mut Table<'_>,
        errors: &mut Errors<'_>,
    ) -> Option<SourceSettings> {
        let kinds = ["arrivals", "after_reply", "pcap"];
        let said: Vec<&str> = kinds
            .into_iter()
            .filter(|kind| table.get(kind).is_some())
            .collect();
        let [kind] = said.as_slice() else {
            let message = "one of arrivals, after_reply and pcap says when they leave".to_owned();
            table.refuse(said.get(1).copied(), message, errors);
            table.get("sizes");
            table.get("patience");
            return None;
        };
        match *kind {
            "arrivals" => {
                let arrivals = table.required("arrivals", errors, parse_str);
                let sizes = table.required("sizes", errors, |v| {
                    let sizes = parse_str::<Sizes>(v)?;
                    packet_sizes(&sizes).map(|()| sizes)
                });
                Some(SourceSettings::Drawn {
                    arrivals: arrivals?,
                    sizes: sizes?,
                })
            }
            "after_reply" => {
                let think = table.required("after_reply", errors, seconds(0.0));
                let mut patience = PATIENCE;
                table.optional("patience", errors, &mut patience, seconds(1e-6));
                let packet_bytes = table.required("sizes", errors, |v| {
                    let sizes = parse_str::<Sizes>(v)?;
                    packet_sizes(&sizes)?;
                    match sizes {
                        Sizes::Fixed { bytes } => Ok(bytes as u32),
                        _ => Err("after a reply all have one size, as in fixed:200B".into()),
                    }
                });
                if reply.is_none() {
                    let message = "nothing answers: say reply, as in reply = 200".to_owned();
                    table.refuse(Some("after_reply"), message, errors);
                }
                Some(SourceSettings::AfterReply {
                    think: think?,
                    patience,
                    packet_bytes: packet_bytes?,
                })
            }
            _ => {
                let place = self.place;
                let file = table.required("pcap", errors, |v| {
                    let path = string(v)?;
                    let Some(directory) = place.directory else {
                        return Err("a scenario that is built in has no files beside it".to_owned());
                    };
                    let path = directory.join(path);
                    if !path.is_file() {
                        return Err(format!("there is no file {}", path.display()));
                    }
                    let read = place.read_capture.ok_or("nothing here reads captures")?;
                    match read(&path)? {
                        packets if packets.is_empty() => {
                            Err(format!("{} has no IP packets", path.display()))
                        }
                        packets => Ok(packets),
                    }
                });
                file.map(SourceSettings::Capture)
            }
        }
    }

    fn path(
        &self,
        name: Option<&str>,
        table: &mut Table<'_>,
        errors: &mut Errors<'_>,
    ) -> Option<PathSettings> {
        let mut complete = true;
        let interface = table.get("interface").and_then(|value| {
            let like = "interface = { rate = \"600mbit\", delay = \"1ms\" }";
            let key = table.key("interface");
            let mut table = Table::of(value, &key, like, errors)?;
            let line = line::interface(name.unwrap_or_default().to_owned(), &mut table, errors);
            table.refuse_the_rest(errors);
            Some(line)
        });
        let mut ways = ["path", "back"].map(|key| {
            let mut way: Vec<LineIndex> = Vec::new();
            if let Some(value) = table.get(key) {
                match errors.take(value.span(), &table.key(key), self.way(value.get_ref())) {
                    Some(lines) => way = lines,
                    None => complete = false,
                }
            }
            way
        });
        if interface.is_none() && ways[0].is_empty() && complete && !self.incomplete {
            let message = "neither an interface nor a path: it leads nowhere".to_owned();
            table.refuse(Some("path"), message, errors);
        }
        complete.then(|| PathSettings {
            interface,
            forward: std::mem::take(&mut ways[0]),
            back: std::mem::take(&mut ways[1]),
        })
    }

    /// Who sends on as soon as he is answered does it for ever at one time where neither way takes any.
    fn takes_time(&self, path: Option<&PathSettings>, table: &Table<'_>, errors: &mut Errors<'_>) {
        let Some(path) = path else {
            return;
        };
        let ways = path.forward.iter().chain(&path.back);
        let mut lines = ways.map(|line| &self.lines[*line]).chain(&path.interface);
        let takes = |line: &LineSettings| {
            let wire = &line.wire;
            wire.rate.is_some() || wire.delay_ns > 0 || line.processing.is_some()
        };
        if !self.incomplete && !lines.any(takes) {
            let message = "nothing on the way takes time: a rate or a delay of a line".to_owned();
            table.refuse(Some("path"), message, errors);
        }
    }

    /// Names of lines.
    fn way(&self, value: &DeValue<'_>) -> Result<Vec<LineIndex>, String> {
        let like = || wrong_type("names of lines, as in [\"bottleneck\"]", value);
        let known: Vec<String> = self.lines.iter().map(|line| line.name.clone()).collect();
        let mut way = Vec::new();
        for name in value.as_array().ok_or_else(like)?.iter() {
            let name = name.get_ref().as_str().ok_or_else(like)?;
            match known.iter().position(|line| line == name) {
                Some(index) => way.push(index),
                // It may be the one that could not be read.
                None if self.incomplete => {}
                None => return Err(format!("there is no line {name} ({})", near(name, &known))),
            }
        }
        Ok(way)
    }
}

/// `0s..1s`, or one time alone.
fn starts_of(value: &DeValue<'_>) -> Result<Starts, String> {
    let text = packtrain_settings::toml_reader::parse_scalar::<String>(value)?;
    let (first, last) = text.split_once("..").unwrap_or((&text, &text));
    let read = [first, last].map(|text| {
        let time = Quantity::of(Dimension::Time, text.trim())?;
        let within = (0.0..=SECONDS_MAX).contains(&time);
        within.then(|| Duration::from_nanos((time * 1e9).round() as u64))
    });
    match read {
        [Some(first), Some(last)] if first <= last => Ok(Starts { first, last }),
        _ => Err(format!(
            "{text:?} is no time to begin: write it as in 0s or, drawn for each, 0s..1s"
        )),
    }
}

/// Those of a distribution without end are cut when they are drawn.
fn packet_sizes(sizes: &Sizes) -> Result<(), String> {
    let (least, most) = match sizes {
        Sizes::Fixed { bytes } => (*bytes, *bytes),
        Sizes::Uniform {
            low_bytes,
            high_bytes,
        } => (*low_bytes, *high_bytes),
        Sizes::Empirical(empirical) => empirical.range(),
        Sizes::Exponential { .. } | Sizes::Lomax { .. } | Sizes::Pareto { .. } => return Ok(()),
    };
    match least >= DATAGRAM_HEADER_BYTES.into() && most <= PACKET_BYTES_MAX.into() {
        true => Ok(()),
        false => Err(format!(
            "packets have {DATAGRAM_HEADER_BYTES} to {PACKET_BYTES_MAX} bytes"
        )),
    }
}

#[cfg(test)]
mod tests;
