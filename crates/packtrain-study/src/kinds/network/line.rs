//! A line: a wire of the lab, and what only a simulation has: the time that a router takes, repetitions and codes.

use std::fmt;

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table, parse_scalar, parse_str, string};
use packtrain_settings::units::{ErrorRate, Share, Time};
use packtrain_settings::wire::{
    Discipline, Jitter, Loss, PacketRate, QueueLimit, Rate, Reorder, WireSettings,
};

use packtrain_sim::net::arq::ArqConfig;
use packtrain_sim::net::fec::FecConfig;

use crate::kinds::read::{name, or_none};

#[derive(Clone, Debug, PartialEq)]
pub struct LineSettings {
    /// An interface is called as its flows are.
    pub name: String,
    pub wire: WireSettings,
    pub processing: Option<Processing>,
    pub arq: Option<ArqConfig>,
    pub fec: Option<FecConfig>,
}

/// What a router takes for each data unit, however long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processing {
    pub time: Duration,
    /// Done while the one before is being sent.
    pub masked: bool,
}

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
    table.optional(
        "queue_discipline",
        errors,
        &mut wire.queue.discipline,
        parse_str::<Discipline>,
    );
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
    LineSettings {
        name,
        wire,
        processing,
        arq,
        fec,
    }
}

/// Why a text is no processing.
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
    fn a_processing_time_may_be_masked() {
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
