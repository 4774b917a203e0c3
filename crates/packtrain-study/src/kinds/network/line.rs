//! A line: a wire of the lab, with the queues that only a simulation has, and the time that a router takes.

use std::fmt;

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table, parse_scalar, parse_str, string};
use packtrain_settings::units::{Bytes, ErrorRate, Share, Time};
use packtrain_settings::wire::{
    CODEL_INTERVAL_US, CODEL_TARGET_US, Discipline, Jitter, Loss, PacketRate, QueueLimit, Rate,
    Reorder, WireSettings,
};

use packtrain_sim::net::arq::ArqConfig;
use packtrain_sim::net::fec::FecConfig;

use crate::kinds::read::{name, or_none, parts};

#[derive(Clone, Debug, PartialEq)]
pub struct LineSettings {
    /// An interface is called as its flows are.
    pub name: String,
    /// Its queue's discipline is drop tail where `shared` says another.
    pub wire: WireSettings,
    /// `None`: the wire's own discipline holds.
    pub shared: Option<SharedDiscipline>,
    pub processing: Option<Processing>,
    pub arq: Option<ArqConfig>,
    pub fec: Option<FecConfig>,
}

/// A queue's discipline that knows flows, or is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SharedDiscipline {
    /// Shreedhar and Varghese, 1995: flows take turns, each with a bound of its own.
    Drr {
        quantum_bytes: u64,
        /// `None`: only the whole queue is bounded, and the longest loses its last.
        flow_bytes_max: Option<u64>,
    },
    /// RFC 8290.
    FqCodel {
        quantum_bytes: u64,
        target: Duration,
        interval: Duration,
        ecn: bool,
    },
    /// RFC 8289, and what is capable of it is marked.
    CodelEcn {
        target: Duration,
        interval: Duration,
    },
    /// Who has sent less than this goes first.
    ShortFirst { threshold_bytes: u64 },
    /// Random early detection (Floyd and Jacobson 1993): from `least` to `most` ever more, of the mean queue.
    Red {
        least_bytes: u64,
        most_bytes: u64,
        probability_max: f64,
        ecn: bool,
    },
}

/// What a router takes for each data unit, however long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processing {
    pub time: Duration,
    /// Done while the one before is being sent.
    pub masked: bool,
}

/// RFC 8290, section 5.2.1: a packet with its Ethernet header.
const FQ_CODEL_QUANTUM_BYTES: u64 = 1514;

/// The settings of a wire, by the names that they have in the lab.
pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<LineSettings> {
    let name = table.required("name", errors, name);
    let line = interface(String::new(), table, errors);
    Some(LineSettings {
        name: name?,
        ..line
    })
}

/// A line without a name of its own.
pub fn interface(name: String, table: &mut Table<'_>, errors: &mut Errors<'_>) -> LineSettings {
    let mut wire = WireSettings::default();
    table.optional(
        "rate",
        errors,
        &mut wire.rate,
        or_none(parse_scalar::<Rate>),
    );
    table.optional(
        "queue",
        errors,
        &mut wire.queue.limit,
        parse_scalar::<QueueLimit>,
    );
    let mut discipline = Queueing::Wire(Discipline::DropTail);
    table.optional("queue_discipline", errors, &mut discipline, parse_str);
    let cap = &mut wire.packets_per_second;
    table.optional(
        "packets_per_second",
        errors,
        cap,
        or_none(parse_scalar::<PacketRate>),
    );
    let mut delay = Time(0);
    table.optional("delay", errors, &mut delay, parse_scalar);
    wire.delay_ns = delay.0;
    table.optional(
        "jitter",
        errors,
        &mut wire.jitter,
        or_none(parse_scalar::<Jitter>),
    );
    table.optional(
        "loss",
        errors,
        &mut wire.loss,
        or_none(parse_scalar::<Loss>),
    );
    let mut rate = |key, into: &mut Option<f64>| {
        table.optional(
            key,
            errors,
            into,
            or_none(|v| parse_scalar::<Share>(v).map(|share| share.0)),
        );
    };
    rate("duplicate", &mut wire.duplicate);
    rate("corrupt", &mut wire.corrupt);
    let bit_errors = or_none(|v: &_| parse_scalar::<ErrorRate>(v).map(|rate| rate.0));
    table.optional("bit_errors", errors, &mut wire.bit_error_rate, bit_errors);
    table.optional(
        "reorder",
        errors,
        &mut wire.reorder,
        or_none(parse_scalar::<Reorder>),
    );
    let mut processing = None;
    table.optional("processing", errors, &mut processing, or_none(parse_scalar));
    let (mut arq, mut fec) = (None, None);
    table.optional(
        "arq",
        errors,
        &mut arq,
        or_none(|v| string(v).and_then(arq_of)),
    );
    table.optional(
        "fec",
        errors,
        &mut fec,
        or_none(|v| string(v).and_then(fec_of)),
    );
    let shared = match discipline {
        Queueing::Wire(discipline) => {
            wire.queue.discipline = discipline;
            None
        }
        Queueing::Shared(shared) => Some(shared),
    };
    LineSettings {
        name,
        wire,
        shared,
        processing,
        arq,
        fec,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Queueing {
    Wire(Discipline),
    Shared(SharedDiscipline),
}

/// Why a text is no discipline of a line or no processing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError(String);

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrong(error: impl fmt::Display) -> LineError {
    LineError(error.to_string())
}

impl std::str::FromStr for Queueing {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Queueing, LineError> {
        let bytes = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0).map_err(wrong);
        let time = |text: &str| {
            text.parse::<Time>()
                .map(std::time::Duration::from)
                .map_err(wrong)
        };
        let (kind, mut parts) = parts(text);
        let ecn = parts.last() == Some(&"ecn");
        if ecn {
            parts.pop();
        }
        let codel = Duration::from_micros(CODEL_TARGET_US);
        let interval = Duration::from_micros(CODEL_INTERVAL_US);
        let shared = match (kind, parts.as_slice(), ecn) {
            ("drr", [quantum, limit], false) => SharedDiscipline::Drr {
                quantum_bytes: bytes(quantum)?,
                flow_bytes_max: Some(bytes(limit)?),
            },
            ("drr", [quantum], false) => SharedDiscipline::Drr {
                quantum_bytes: bytes(quantum)?,
                flow_bytes_max: None,
            },
            ("short-first", [threshold], false) => SharedDiscipline::ShortFirst {
                threshold_bytes: bytes(threshold)?,
            },
            ("fq-codel", [], _) => SharedDiscipline::FqCodel {
                quantum_bytes: FQ_CODEL_QUANTUM_BYTES,
                target: codel,
                interval,
                ecn,
            },
            ("fq-codel", [quantum], _) => SharedDiscipline::FqCodel {
                quantum_bytes: bytes(quantum)?,
                target: codel,
                interval,
                ecn,
            },
            ("fq-codel", [quantum, target, interval], _) => SharedDiscipline::FqCodel {
                quantum_bytes: bytes(quantum)?,
                target: time(target)?,
                interval: time(interval)?,
                ecn,
            },
            ("codel", [], true) => SharedDiscipline::CodelEcn {
                target: codel,
                interval,
            },
            ("codel", [target, interval], true) => SharedDiscipline::CodelEcn {
                target: time(target)?,
                interval: time(interval)?,
            },
            ("red", [least, most, share], _) => {
                let (least, most) = (bytes(least)?, bytes(most)?);
                let share = share.parse::<Share>().map_err(wrong)?.0;
                if least >= most {
                    let message = format!("{text:?}: RED begins below where it ends");
                    return Err(LineError(message));
                }
                SharedDiscipline::Red {
                    least_bytes: least,
                    most_bytes: most,
                    probability_max: share,
                    ecn,
                }
            }
            _ => {
                return match text.parse::<Discipline>() {
                    Ok(discipline) => Ok(Queueing::Wire(discipline)),
                    // Times and sizes have errors of their own.
                    Err(error) if ["codel", "ecn"].contains(&kind) && !parts.is_empty() => {
                        Err(wrong(error))
                    }
                    Err(_) => Err(LineError(format!(
                        "{text:?} is no queue discipline: write it as in drop-tail, \
                         drr:19500b or drr:19500b,1250kb (quantum, a flow's bound), short-first:50kb, codel, codel:5ms,100ms, \
                         fq-codel, fq-codel:1514b,5ms,100ms, red:100kb,300kb,10%, each of the last three \
                         with ,ecn at will, or ecn:30kb"
                    ))),
                };
            }
        };
        Ok(Queueing::Shared(shared))
    }
}

/// Attempts, and how long after a failed one the next begins.
fn arq_of(text: &str) -> Result<ArqConfig, String> {
    let like =
        || format!("{text:?} is no way to repeat: write it as in 7:200us, attempts and turn-round");
    let (attempts, turn_round) = text.split_once(':').ok_or_else(like)?;
    let attempts = attempts.parse::<u32>().ok();
    let attempts = attempts.filter(|attempts| (1..=100).contains(attempts));
    let attempts_max = attempts.ok_or_else(|| format!("{text:?}: from 1 to 100 attempts"))?;
    let turn_round = turn_round
        .parse::<Time>()
        .map_err(|error| error.to_string())?;
    Ok(ArqConfig {
        attempts_max,
        turn_round: turn_round.into(),
    })
}

/// Bytes of a block, and those of data in it.
fn fec_of(text: &str) -> Result<FecConfig, String> {
    let like =
        || format!("{text:?} is no code: write it as in 255,239, bytes of a block and of its data");
    let (block, data) = text.split_once(',').ok_or_else(like)?;
    let (Ok(block_bytes), Ok(data_bytes)) = (block.parse::<u32>(), data.parse::<u32>()) else {
        return Err(like());
    };
    let is_code = (1..block_bytes).contains(&data_bytes) && block_bytes <= 255;
    is_code
        .then_some(FecConfig {
            block_bytes,
            data_bytes,
        })
        .ok_or_else(|| format!("{text:?}: a block has up to 255 bytes, and fewer of data"))
}

impl std::str::FromStr for Processing {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Processing, LineError> {
        let (time, masked) = match text.split_once(':') {
            None => (text, false),
            Some((time, "masked")) => (time, true),
            Some(_) => {
                return Err(LineError(format!(
                    "{text:?} is no processing time: write it as in 12us or 12us:masked"
                )));
            }
        };
        let time = time.parse::<Time>().map_err(wrong)?;
        Ok(Processing {
            time: time.into(),
            masked,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(text: &str) -> SharedDiscipline {
        match text.parse().unwrap() {
            Queueing::Shared(shared) => shared,
            Queueing::Wire(discipline) => panic!("{discipline:?}"),
        }
    }

    #[test]
    fn the_disciplines_of_a_wire_are_those_of_a_line_and_there_are_more() {
        let wire: Queueing = "codel:5ms,100ms".parse().unwrap();
        assert_eq!(wire, Queueing::Wire("codel".parse().unwrap()));
        assert_eq!(
            shared("drr:19500b,1220kb"),
            SharedDiscipline::Drr {
                quantum_bytes: 19_500,
                flow_bytes_max: Some(1220 * 1024)
            }
        );
        assert_eq!(shared("fq-codel:1514b,5ms,100ms"), shared("fq-codel"));
        assert_ne!(shared("fq-codel:ecn"), shared("fq-codel"));
        assert_eq!(shared("codel:5ms,100ms,ecn"), shared("codel:ecn"));
        assert_eq!(
            shared("red:100kb,300kb,10%,ecn"),
            SharedDiscipline::Red {
                least_bytes: 100 << 10,
                most_bytes: 300 << 10,
                probability_max: 0.1,
                ecn: true
            }
        );
    }

    #[test]
    fn links_that_repeat_and_codes_are_read_as_they_are_written() {
        let arq = arq_of("7:200us").unwrap();
        assert_eq!(
            (arq.attempts_max, arq.turn_round),
            (7, Duration::from_micros(200))
        );
        assert_eq!(
            arq_of("0:1us").unwrap_err(),
            "\"0:1us\": from 1 to 100 attempts"
        );
        assert!(arq_of("7").unwrap_err().contains("write it as in 7:200us"));
        let fec = fec_of("255,239").unwrap();
        assert_eq!((fec.block_bytes, fec.data_bytes), (255, 239));
        assert!(
            fec_of("239")
                .unwrap_err()
                .contains("write it as in 255,239")
        );
        for text in ["239,239", "300,200", "255,0"] {
            assert!(
                fec_of(text).unwrap_err().ends_with("and fewer of data"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_discipline_is_told_how_to_write_one() {
        let error = |text: &str| text.parse::<Queueing>().unwrap_err().0;
        for text in ["drr", "sfq", "red:1kb", "drr:1kb,2kb,ecn"] {
            assert!(
                error(text).starts_with(&format!("{text:?} is no queue discipline: ")),
                "{text}"
            );
        }
        assert_eq!(
            error("drr:5,1kb"),
            "\"5\" is no size: write it as in 256kb, 1mb or 15000b"
        );
        assert_eq!(
            error("red:3kb,2kb,10%"),
            "\"red:3kb,2kb,10%\": RED begins below where it ends"
        );
        assert_eq!(
            error("codel:500ns,100ms"),
            "500ns is finer than CoDel counts: whole microseconds"
        );
        let processing = |text: &str| text.parse::<Processing>();
        let masked = processing("12us:masked").unwrap();
        assert_eq!(
            (masked.time, masked.masked),
            (Duration::from_micros(12), true)
        );
        assert_eq!(
            processing("12us:hidden").unwrap_err().0,
            "\"12us:hidden\" is no processing time: write it as in 12us or 12us:masked"
        );
    }
}
