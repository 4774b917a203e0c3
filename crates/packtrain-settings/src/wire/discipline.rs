//! What becomes of frames in a wire's queue: the disciplines, and how they are written, in the lab and in a scenario of
//! the simulator alike. A word, behind a colon its sizes and times with commas between, and `ecn` at the end where it
//! marks what it would drop.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::spelling::SettingError;
use crate::units::{Bytes, Share, Time};

/// RFC 8289, section 4.4.
pub const CODEL_TARGET_US: u64 = 5_000;
pub const CODEL_INTERVAL_US: u64 = 100_000;
/// RFC 8290, section 5.2.1: a packet with its Ethernet header.
const QUANTUM_BYTES: u64 = 1514;
/// From where on a flow is an elephant (XLF paper).
const SHORT_FLOW_BYTES: u64 = 50 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// What finds no room is dropped.
    #[default]
    DropTail,
    /// RFC 8289.
    CoDel {
        target_us: u64,
        interval_us: u64,
        /// What its sender lets be marked is marked, and not dropped.
        #[serde(default)]
        ecn: bool,
    },
    /// What finds more than this before it is marked, if its sender knows ECN.
    EcnAbove { bytes: u64 },
    /// Shreedhar and Varghese, 1995: flows take turns, each with a bound of its own.
    Drr {
        quantum_bytes: u64,
        /// `None`: only the whole queue is bounded, and the longest loses its last.
        flow_bytes_max: Option<u64>,
    },
    /// RFC 8290.
    FqCoDel {
        quantum_bytes: u64,
        target_us: u64,
        interval_us: u64,
        ecn: bool,
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

fn bytes(text: &str) -> Result<u64, SettingError> {
    Ok(text.parse::<Bytes>()?.0)
}

fn microseconds(text: &str) -> Result<u64, SettingError> {
    let time = text.parse::<Time>()?;
    if !time.0.is_multiple_of(1000) {
        return Err(SettingError::CoDelTooFine { text: text.into() });
    }
    Ok(time.0 / 1000)
}

impl FromStr for Discipline {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Discipline, SettingError> {
        let (word, behind) = match text.split_once(':') {
            Some((word, behind)) => (word, behind.split(',').map(str::trim).collect()),
            None => (text, Vec::new()),
        };
        let mut parts: Vec<&str> = behind;
        let ecn = parts.last() == Some(&"ecn");
        if ecn {
            parts.pop();
        }
        // A colon with nothing behind it is a slip.
        let plain = !text.contains(':') || ecn;
        let usual = (CODEL_TARGET_US, CODEL_INTERVAL_US);
        let codel = |(target_us, interval_us)| Discipline::CoDel {
            target_us,
            interval_us,
            ecn,
        };
        let fq_codel = |quantum_bytes, (target_us, interval_us)| Discipline::FqCoDel {
            quantum_bytes,
            target_us,
            interval_us,
            ecn,
        };
        let drr = |quantum_bytes, flow_bytes_max| Discipline::Drr {
            quantum_bytes,
            flow_bytes_max,
        };
        let short_first = |threshold_bytes| Discipline::ShortFirst { threshold_bytes };
        Ok(match (word, parts.as_slice(), ecn) {
            ("drop-tail", [], false) if plain => Discipline::DropTail,
            ("codel", [], _) if plain => codel(usual),
            ("codel", [target, interval], _) => {
                codel((microseconds(target)?, microseconds(interval)?))
            }
            ("ecn", [size], false) => Discipline::EcnAbove {
                bytes: bytes(size)?,
            },
            ("drr", [], false) if plain => drr(QUANTUM_BYTES, None),
            ("drr", [quantum], false) => drr(bytes(quantum)?, None),
            ("drr", [quantum, limit], false) => drr(bytes(quantum)?, Some(bytes(limit)?)),
            ("fq-codel", [], _) if plain => fq_codel(QUANTUM_BYTES, usual),
            ("fq-codel", [quantum], _) => fq_codel(bytes(quantum)?, usual),
            ("fq-codel", [quantum, target, interval], _) => fq_codel(
                bytes(quantum)?,
                (microseconds(target)?, microseconds(interval)?),
            ),
            ("short-first", [], false) if plain => short_first(SHORT_FLOW_BYTES),
            ("short-first", [size], false) => short_first(bytes(size)?),
            ("red", [least, most, share], _) => {
                let (least_bytes, most_bytes) = (bytes(least)?, bytes(most)?);
                let probability_max = share.parse::<Share>()?.0;
                if least_bytes >= most_bytes {
                    return Err(SettingError::RedEnds { text: text.into() });
                }
                Discipline::Red {
                    least_bytes,
                    most_bytes,
                    probability_max,
                    ecn,
                }
            }
            _ => {
                return Err(SettingError::Syntax {
                    text: text.into(),
                    what: "queue discipline",
                    like: "drop-tail, drr, drr:19500b or drr:19500b,1250kb (quantum, a flow's bound), \
                           short-first:50kb, codel, codel:5ms,100ms, fq-codel, fq-codel:1514b,5ms,100ms, \
                           red:100kb,300kb,10%, of the last three also with ,ecn, or ecn:30kb",
                });
            }
        })
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |us: u64| Time(us * 1000);
        let marks = match *self {
            Discipline::DropTail => {
                f.write_str("drop-tail")?;
                false
            }
            Discipline::CoDel {
                target_us,
                interval_us,
                ecn,
            } => {
                write!(f, "codel:{},{}", time(target_us), time(interval_us))?;
                ecn
            }
            Discipline::EcnAbove { bytes } => {
                write!(f, "ecn:{}", Bytes(bytes))?;
                false
            }
            Discipline::Drr {
                quantum_bytes,
                flow_bytes_max,
            } => {
                write!(f, "drr:{}", Bytes(quantum_bytes))?;
                if let Some(limit) = flow_bytes_max {
                    write!(f, ",{}", Bytes(limit))?;
                }
                false
            }
            Discipline::FqCoDel {
                quantum_bytes,
                target_us,
                interval_us,
                ecn,
            } => {
                let (target, interval) = (time(target_us), time(interval_us));
                write!(f, "fq-codel:{},{target},{interval}", Bytes(quantum_bytes))?;
                ecn
            }
            Discipline::ShortFirst { threshold_bytes } => {
                write!(f, "short-first:{}", Bytes(threshold_bytes))?;
                false
            }
            Discipline::Red {
                least_bytes,
                most_bytes,
                probability_max,
                ecn,
            } => {
                let (least, most) = (Bytes(least_bytes), Bytes(most_bytes));
                write!(f, "red:{least},{most},{}", Share(probability_max))?;
                ecn
            }
        };
        f.write_str(if marks { ",ecn" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Discipline {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn error(text: &str) -> String {
        text.parse::<Discipline>().unwrap_err().to_string()
    }

    const WHOLE: [&str; 12] = [
        "drop-tail",
        "codel:5ms,100ms",
        "codel:6ms,120ms,ecn",
        "ecn:30kb",
        "drr:19500b",
        "drr:19500b,1250kb",
        "fq-codel:1514b,5ms,100ms",
        "fq-codel:19500b,6ms,120ms,ecn",
        "short-first:50kb",
        "red:100kb,300kb,10%",
        "red:100kb,300kb,2.5%,ecn",
        "drr:1514b",
    ];

    #[test]
    fn a_discipline_is_printed_as_it_was_written_and_no_two_are_the_same() {
        for (i, text) in WHOLE.iter().enumerate() {
            assert_eq!(read(text).to_string(), *text);
            assert!(WHOLE[..i].iter().all(|other| read(other) != read(text)));
        }
    }

    #[test]
    fn a_short_form_means_the_usual() {
        for (short, long) in [
            ("codel", "codel:5ms,100ms"),
            ("codel:ecn", "codel:5ms,100ms,ecn"),
            ("drr", "drr:1514b"),
            ("fq-codel", "fq-codel:1514b,5ms,100ms"),
            ("fq-codel:ecn", "fq-codel:1514b,5ms,100ms,ecn"),
            ("fq-codel:3kb,ecn", "fq-codel:3kb,5ms,100ms,ecn"),
            ("short-first", "short-first:50kb"),
            ("drr:19500b, 20kb", "drr:19500b,20kb"),
        ] {
            assert_eq!(read(short), read(long), "{short}");
        }
    }

    #[test]
    fn what_is_no_discipline_is_told_how_to_write_one() {
        for text in [
            "sfq",
            "red",
            "red:1kb",
            "codel:5ms",
            "codel:",
            "ecn",
            "ecn:ecn",
            "drop-tail:1kb",
            "drop-tail:ecn",
            "drr:1kb,ecn",
            "drr:ecn",
            "drr:1kb,2kb,3kb",
            "short-first:1kb,ecn",
            "fq-codel:1kb,5ms",
            "",
        ] {
            let expected = format!(
                "{text:?} is no queue discipline: write it as in drop-tail, drr, drr:19500b or drr:19500b,1250kb \
                 (quantum, a flow's bound), short-first:50kb, codel, codel:5ms,100ms, fq-codel, \
                 fq-codel:1514b,5ms,100ms, red:100kb,300kb,10%, of the last three also with ,ecn, or ecn:30kb"
            );
            assert_eq!(error(text), expected);
        }
    }

    #[test]
    fn a_part_of_a_discipline_has_the_error_of_its_value() {
        let no_size =
            |text: &str| format!("{text:?} is no size: write it as in 256kb, 1mb or 15000b");
        assert_eq!(error("drr:5,1kb"), no_size("5"));
        assert_eq!(error("drr:1kb,5"), no_size("5"));
        assert_eq!(error("short-first:"), no_size(""));
        assert_eq!(error("fq-codel:5ms,100ms,1kb"), no_size("5ms"));
        assert_eq!(error("drr:0b"), "a size of 0b is too small: at least 1b");
        assert_eq!(
            error("codel:500ns,100ms"),
            "500ns is finer than CoDel counts: whole microseconds"
        );
        assert_eq!(
            error("red:3kb,2kb,10%"),
            "\"red:3kb,2kb,10%\": RED begins below where it ends"
        );
        assert_eq!(
            error("red:1kb,2kb,200%"),
            "a share of 200% is too large: at most 100% (1.0)"
        );
    }
}
