//! The sections of stations in a scenario's file, but for what they do ([`super::application`]).

use core::ops::Range;

use packtrain_proto::config::{Balance, Config, Mode, NodeId};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_settings::packing::PackPolicy;
use packtrain_settings::toml_reader::{Errors, Table, parse_scalar, parse_str, string, wrong_type};
use packtrain_settings::wire::Rate;
use packtrain_sim::net::medium::STATIONS_MAX;
use toml::de::DeValue;

use super::application::{self, Applications};
use super::{
    CutSettings, LinkSettings, PacktrainSettings, SegmentIndex, SegmentKind, SegmentSettings,
    StationSettings, StationsSettings,
};
use crate::expression::near;
use crate::kinds::network::file::times;
use crate::kinds::network::line;
use crate::kinds::network::tcp::time;
use crate::kinds::read::{name, some, tables, truth, whole, word};
use crate::quantity::{Dimension, Quantity};

const STATIONS_OF_CLASS_MAX: u32 = 1000;
/// Of a line (docs/wire-format.md).
const LINKS_MAX: usize = 16;
/// What every station's packets fit into.
const MTU_MIN: u32 = 1500;
const MTU_MAX: u32 = 65_521;
/// A day.
const CUT_SECONDS_MAX: f64 = 86_400.0;

pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<StationsSettings> {
    let times = times(table, errors);
    let mut reader = Reader::default();
    reader.segments = tables(table, "segment", errors, |table, errors| {
        let segment = reader.segment(table, errors);
        reader.incomplete |= segment.is_none();
        segment
    });
    let stations = tables(table, "station", errors, |table, errors| {
        let station = reader.station(table, errors);
        reader.stations_incomplete |= station.is_none();
        station
    });
    reader.check_cables(errors);
    reader.check_cuts(errors);
    let mut applications = Applications {
        stations: &stations,
        incomplete: reader.stations_incomplete,
        taken: &mut reader.taken,
    };
    let applications = tables(table, "application", errors, |table, errors| {
        application::read(&mut applications, table, errors)
    });
    let is_missing = [
        ("segment", reader.segments.is_empty() && !reader.incomplete),
        (
            "station",
            stations.is_empty() && !reader.stations_incomplete,
        ),
    ];
    for (key, _) in is_missing.iter().filter(|(_, is)| *is) {
        let message = format!("there is at least one [[{key}]]");
        table.refuse(Some(key), message, errors);
    }
    Some(StationsSettings {
        times: times?,
        segments: reader.segments,
        stations,
        applications,
    })
}

/// A cut, and where in the file it stands.
type Placed = (CutSettings, Range<usize>, String);

#[derive(Default)]
struct Reader {
    segments: Vec<SegmentSettings>,
    taken: Vec<String>,
    /// Some could not be read: what is said of names would be wrong.
    incomplete: bool,
    stations_incomplete: bool,
    /// Of each segment: how many links are plugged in, where that is said, and all cuts.
    plugged: Vec<(usize, Range<usize>)>,
    cuts: Vec<Vec<Placed>>,
}

/// Whatever is asked for by its name has one of its own.
pub fn take_name(
    taken: &mut Vec<String>,
    table: &mut Table<'_>,
    errors: &mut Errors<'_>,
) -> Option<String> {
    let name = table.required("name", errors, name)?;
    if taken.contains(&name) {
        table.refuse(Some("name"), format!("{name} is the name of two"), errors);
    }
    taken.push(name.clone());
    Some(name)
}

impl Reader {
    fn segment(
        &mut self,
        table: &mut Table<'_>,
        errors: &mut Errors<'_>,
    ) -> Option<SegmentSettings> {
        #[derive(Clone, Copy)]
        enum Kind {
            Cable,
            Switch,
            Hub,
        }
        let name = take_name(&mut self.taken, table, errors);
        let kinds = [
            ("cable", Kind::Cable),
            ("switch", Kind::Switch),
            ("hub", Kind::Hub),
        ];
        let cuts = cuts(table, errors);
        let kind = table.required("kind", errors, word(kinds));
        let mut mtu = MTU_MIN;
        let kind = match kind {
            Some(Kind::Hub) => {
                let rate = table.required("rate", errors, parse_scalar::<Rate>)?;
                SegmentKind::Hub { rate_bps: rate.bps }
            }
            kind => {
                table.optional("mtu", errors, &mut mtu, whole(MTU_MIN, MTU_MAX));
                let line = line::interface(name.clone().unwrap_or_default(), table, errors);
                match kind? {
                    Kind::Cable => SegmentKind::Cable(line),
                    _ => SegmentKind::Switch(line),
                }
            }
        };
        let segment = SegmentSettings {
            name: name?,
            kind,
            mtu: mtu as u16,
            cuts: alone(&cuts),
        };
        self.plugged.push((0, table.span_of("name")));
        self.cuts.push(cuts);
        Some(segment)
    }

    fn station(
        &mut self,
        table: &mut Table<'_>,
        errors: &mut Errors<'_>,
    ) -> Option<StationSettings> {
        let name = take_name(&mut self.taken, table, errors);
        let mut count = 1;
        table.optional("count", errors, &mut count, whole(0, STATIONS_OF_CLASS_MAX));
        let packtrain = packtrain(table, errors);
        let links = self.links(count, table, errors)?;
        let right = match (links.len(), packtrain.is_some()) {
            (0, _) => Err("a station has at least one link".to_owned()),
            (many, false) if many > 1 => Err(format!(
                "one without packtrain has one link, and not {many}"
            )),
            (many, _) if many > LINKS_MAX => Err(format!("{many} links: at most {LINKS_MAX}")),
            _ => Ok(()),
        };
        if let Err(message) = right {
            table.refuse(Some("links"), message, errors);
        }
        Some(StationSettings {
            name: name?,
            count,
            links,
            packtrain,
        })
    }

    /// `None`: one could not be read.
    fn links(
        &mut self,
        count: u32,
        table: &mut Table<'_>,
        errors: &mut Errors<'_>,
    ) -> Option<Vec<LinkSettings>> {
        if table.get("links").is_none() {
            let message = "is missing: where it is plugged in, as in links = [\"hub\"]".to_owned();
            table.refuse(Some("links"), message, errors);
            return None;
        }
        let mut complete = true;
        let links = table.list("links", errors, |value, errors| {
            let like = "\"hub\" or { on = \"switch\", count = 2, rate = \"100mbit\" }";
            let (on, alike, link) = match value.get_ref() {
                DeValue::String(on) => {
                    let on = errors.take(value.span(), "station.links", self.segment_of(on));
                    (on, 1, None)
                }
                _ => {
                    let mut inner = Table::of(value, "station.links", like, errors)?;
                    let read = |v: &DeValue<'_>| self.segment_of(string(v)?);
                    let on = inner.required("on", errors, read);
                    let mut alike = 1;
                    let most = LINKS_MAX as u32;
                    inner.optional("count", errors, &mut alike, whole(0, most));
                    let (mut rate, mut delay) = (None, None);
                    inner.optional("rate", errors, &mut rate, some(parse_scalar::<Rate>));
                    inner.optional("delay", errors, &mut delay, some(time(0.0, 2.0)));
                    let cuts = cuts(&mut inner, errors);
                    inner.refuse_the_rest(errors);
                    if let Some(Some(on)) = on
                        && let SegmentKind::Hub { .. } = self.segments[on].kind
                    {
                        let said = [("rate", rate.is_some()), ("delay", delay.is_some())];
                        for (key, _) in said.iter().filter(|(_, said)| *said) {
                            let message = format!("a hub's links all have the hub's {key}");
                            inner.refuse(Some(key), message, errors);
                        }
                    }
                    (on, alike, Some((rate, delay, cuts)))
                }
            };
            let Some(Some(on)) = on else {
                complete = false;
                return None;
            };
            let (rate, delay, cuts) = link.unwrap_or_default();
            self.plugged[on].0 += (alike * count) as usize;
            for _ in 0..alike * count {
                self.cuts[on].extend(cuts.iter().cloned());
            }
            let link = LinkSettings {
                on,
                rate,
                delay,
                cuts: alone(&cuts),
            };
            Some(vec![link; alike as usize])
        });
        complete.then(|| links.into_iter().flatten().collect())
    }

    /// `Some(None)`: it may be one that could not be read.
    fn segment_of(&self, name: &str) -> Result<Option<SegmentIndex>, String> {
        let known: Vec<String> = self.segments.iter().map(|s| s.name.clone()).collect();
        match known.iter().position(|segment| segment == name) {
            Some(index) => Ok(Some(index)),
            None if self.incomplete => Ok(None),
            None => Err(format!(
                "there is no segment {name} ({})",
                near(name, &known)
            )),
        }
    }

    fn check_cables(&self, errors: &mut Errors<'_>) {
        if self.incomplete || self.stations_incomplete {
            return;
        }
        for (segment, (plugged, span)) in self.segments.iter().zip(&self.plugged) {
            let name = &segment.name;
            let wrong = match segment.kind {
                SegmentKind::Cable(_) if *plugged != 2 => {
                    format!("{name} is a cable, which has two ends, and {plugged} are plugged in")
                }
                SegmentKind::Hub { .. } if *plugged > STATIONS_MAX => {
                    format!("{plugged} are plugged into {name}: a hub has {STATIONS_MAX} ports")
                }
                _ => continue,
            };
            errors.add(span.clone(), Some("segment.name".into()), wrong);
        }
    }

    /// The simulator's segments are cut at one place at a time.
    fn check_cuts(&mut self, errors: &mut Errors<'_>) {
        for cuts in &mut self.cuts {
            cuts.sort_by_key(|(cut, ..)| cut.from);
            for pair in cuts.windows(2) {
                let [(first, ..), (second, span, key)] = pair else {
                    unreachable!("windows of two");
                };
                if first.until.is_none_or(|until| until >= second.from) {
                    let message = format!(
                        "at {} s something else of the segment is still cut: one is over before the next begins",
                        second.from.as_secs_f64()
                    );
                    errors.add(span.clone(), Some(key.clone()), message);
                }
            }
        }
    }
}

fn alone(cuts: &[Placed]) -> Vec<CutSettings> {
    cuts.iter().map(|(cut, ..)| *cut).collect()
}

/// `"none"`, one, or a list of them.
fn cuts(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Vec<Placed> {
    let Some(value) = table.get("cut") else {
        return Vec::new();
    };
    let key = table.key("cut");
    let one = |value: &DeValue<'_>| match value.as_str() {
        Some("none") => Ok(None),
        Some(text) => cut_of(text).map(Some),
        None => Err(wrong_type("a text, as in \"5s..10s\"", value)),
    };
    let values = match value.get_ref() {
        DeValue::Array(all) => all.iter().collect(),
        _ => vec![value],
    };
    let read = values.into_iter().filter_map(|value| {
        let cut = errors.take(value.span(), &key, one(value.get_ref()))??;
        Some((cut, value.span(), key.clone()))
    });
    read.collect()
}

/// `5s..10s`, `5s..` for good, each with `:unseen` where cards keep their carrier.
fn cut_of(text: &str) -> Result<CutSettings, String> {
    let wrong = || {
        format!(
            "{text:?} is no cut: write it as in 5s..10s, 5s.. for good, or 5s..10s:unseen where cards keep \
             their carrier"
        )
    };
    let (times, seen) = match text.split_once(':') {
        None => (text, true),
        Some((times, "seen")) => (times, true),
        Some((times, "unseen")) => (times, false),
        Some(_) => return Err(wrong()),
    };
    let time = |text: &str| {
        let seconds = Quantity::of(Dimension::Time, text.trim())?;
        let within = (0.0..=CUT_SECONDS_MAX).contains(&seconds);
        within.then(|| Duration::from_nanos((seconds * 1e9).round() as u64))
    };
    let (from, until) = times.split_once("..").ok_or_else(wrong)?;
    let from = time(from).ok_or_else(wrong)?;
    let until = match until.trim() {
        "" => None,
        until => Some(
            time(until)
                .filter(|until| *until > from)
                .ok_or_else(wrong)?,
        ),
    };
    Ok(CutSettings { from, until, seen })
}

/// What a host with packtrain is told, in the words of its own file. They may stand with a plain one too, which may be
/// another at another setting.
fn packtrain(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<PacktrainSettings> {
    let defaults = Config::new(NodeId(1), MacAddr::default());
    let mut mode = Some(defaults.mode);
    let modes = [
        ("plain", None),
        ("trains", Some(Mode::Trains)),
        ("dfap", Some(Mode::Dfap)),
    ];
    table.optional("mode", errors, &mut mode, word(modes));
    let mut is = PacktrainSettings {
        mode: mode.unwrap_or_default(),
        pack: PackPolicy::default(),
        default_classes: true,
        balance: defaults.balance,
        liveness: defaults.detection_time,
        hold_time: defaults.hold_time,
        repair: defaults.limits.repair_within,
        coded: defaults.coded_trains,
        dfap_tick: defaults.dfap.tick,
        dfap_strict: false,
    };
    table.optional("pack", errors, &mut is.pack, parse_str::<PackPolicy>);
    let classes = &mut is.default_classes;
    table.optional("default_classes", errors, classes, truth);
    table.optional("balance", errors, &mut is.balance, word(BALANCES));
    let off_or = |least: f64, most: f64| {
        let time = time(least, most);
        move |value: &DeValue<'_>| match value.as_str() {
            Some("off") => Ok(None),
            _ => time(value).map(Some),
        }
    };
    table.optional("liveness", errors, &mut is.liveness, off_or(0.01, 2.0));
    table.optional("hold_time", errors, &mut is.hold_time, time(0.0, 2.0));
    table.optional("repair", errors, &mut is.repair, off_or(0.001, 1.0));
    table.optional("coded", errors, &mut is.coded, truth);
    table.optional("dfap_tick", errors, &mut is.dfap_tick, time(5e-5, 0.1));
    table.optional("dfap_strict", errors, &mut is.dfap_strict, truth);
    mode.map(|_| is)
}

const BALANCES: [(&str, Balance); 8] = [
    ("earliest-finish", Balance::EarliestFinish),
    ("round-robin", Balance::RoundRobin),
    ("active-backup", Balance::ActiveBackup),
    ("weighted", Balance::Weighted),
    ("duplicate", Balance::Duplicate),
    ("hash-mac", Balance::HashMac),
    ("hash-ip", Balance::HashIp),
    ("hash-port", Balance::HashPort),
];

#[cfg(test)]
mod tests;
