//! How the settings of a wire are written, in a file and on the command line: a word or a value,
//! and what belongs to it after a colon, with commas between.

use std::fmt;
use std::str::FromStr;

use super::{Counts, Jitter, JitterKind, Loss, PacketRate, QueueLimit, Rate, Reorder};
use crate::units::{BitRate, Bytes, Packets, Share, Time, ValueError};

/// Largest cap, in packets a second: no frames of Ethernet are so many, even at 100 Gbit/s.
pub const PACKETS_PER_SECOND_MAX: u32 = 200_000_000;

/// Why a text is no setting of a wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("{text:?} is no {what}: write it as in {like}")]
    Syntax {
        text: String,
        what: &'static str,
        like: &'static str,
    },
    #[error("{text} is finer than CoDel counts: whole microseconds")]
    CoDelTooFine { text: String },
    #[error("{text:?}: RED begins below where it ends")]
    RedEnds { text: String },
    #[error("{text:?} says neither bytes nor packets: write it as in 256kb or 1000p")]
    QueueUnit { text: String },
    #[error("frames are counted from 1, and {text:?} is not ascending from there")]
    FrameNumbers { text: String },
}

/// A whole number from 1 to `most`.
fn number(text: &str, most: u64) -> Option<u64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    (1..=most).contains(&number).then_some(number)
}

impl FromStr for Rate {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Rate, SettingError> {
        let (rate, counts) = match text.split_once(':') {
            None => (text, Counts::Ethernet),
            Some((rate, "ip")) => (rate, Counts::Ip),
            Some((rate, "ethernet")) => (rate, Counts::Ethernet),
            Some(_) => {
                return Err(SettingError::Syntax {
                    text: text.into(),
                    what: "rate",
                    like: "100mbit or, at IP level, 599mbit:ip",
                });
            }
        };
        Ok(Rate {
            bps: rate.parse::<BitRate>()?.0,
            counts,
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        BitRate(self.bps).fmt(f)?;
        f.write_str(match self.counts {
            Counts::Ethernet => "",
            Counts::Ip => ":ip",
        })
    }
}

impl FromStr for QueueLimit {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<QueueLimit, SettingError> {
        if text.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(SettingError::QueueUnit { text: text.into() });
        }
        Ok(if text.ends_with(['p', 'P']) {
            QueueLimit::Packets(text.parse::<Packets>()?.0 as u32)
        } else {
            QueueLimit::Bytes(text.parse::<Bytes>()?.0)
        })
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            QueueLimit::Bytes(bytes) => Bytes(bytes).fmt(f),
            QueueLimit::Packets(packets) => Packets(packets.into()).fmt(f),
        }
    }
}

impl FromStr for PacketRate {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<PacketRate, SettingError> {
        let (rate, burst) = text.split_once(':').unwrap_or((text, "1"));
        let number = |text| number(text, PACKETS_PER_SECOND_MAX.into()).map(|n| n as u32);
        let (Some(rate), Some(burst)) = (number(rate), number(burst)) else {
            return Err(SettingError::Syntax {
                text: text.into(),
                what: "number of packets a second",
                like: "50000 or, with a burst of 64, 50000:64",
            });
        };
        Ok(PacketRate { rate, burst })
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.rate, self.burst)
    }
}

impl FromStr for Jitter {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Jitter, SettingError> {
        let (rest, keep_order) = match text.strip_suffix(",unordered") {
            Some(rest) => (rest, false),
            None => (text, true),
        };
        let (kind, size) = match rest.split_once(':') {
            None => (JitterKind::Uniform, rest),
            Some(("uniform", size)) => (JitterKind::Uniform, size),
            Some(("normal", size)) => (JitterKind::Normal, size),
            Some(("pareto", size)) => (JitterKind::Pareto, size),
            Some(_) => {
                return Err(SettingError::Syntax {
                    text: text.into(),
                    what: "jitter",
                    like: "1ms, normal:1ms, pareto:1ms or 1ms,unordered",
                });
            }
        };
        Ok(Jitter {
            kind,
            size_ns: size.parse::<Time>()?.0,
            keep_order,
        })
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            JitterKind::Uniform => "",
            JitterKind::Normal => "normal:",
            JitterKind::Pareto => "pareto:",
        })?;
        Time(self.size_ns).fmt(f)?;
        f.write_str(if self.keep_order { "" } else { ",unordered" })
    }
}

impl FromStr for Loss {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Loss, SettingError> {
        let syntax = || SettingError::Syntax {
            text: text.into(),
            what: "loss",
            like: "1%, gilbert:1%,25%,0%,100%, every:100 or frames:3,7",
        };
        let Some((kind, rest)) = text.split_once(':') else {
            let share = text.parse::<Share>().map_err(|error| match error {
                ValueError::Syntax { .. } => syntax(),
                other => other.into(),
            })?;
            return Ok(Loss::Independent { share: share.0 });
        };
        let parts: Vec<&str> = rest.split(',').collect();
        match (kind, parts.as_slice()) {
            ("gilbert", [good_to_bad, bad_to_good, loss_in_good, loss_in_bad]) => {
                Ok(Loss::GilbertElliott {
                    good_to_bad: good_to_bad.parse::<Share>()?.0,
                    bad_to_good: bad_to_good.parse::<Share>()?.0,
                    loss_in_good: loss_in_good.parse::<Share>()?.0,
                    loss_in_bad: loss_in_bad.parse::<Share>()?.0,
                })
            }
            ("every", [every]) => Ok(Loss::Periodic {
                every: number(every, u64::MAX).ok_or_else(syntax)?,
            }),
            ("frames", numbers) => {
                let numbers: Option<Vec<u64>> =
                    numbers.iter().map(|n| number(n, u64::MAX)).collect();
                match numbers {
                    Some(numbers) if numbers.is_sorted_by(|a, b| a < b) => {
                        Ok(Loss::Frames { numbers })
                    }
                    _ => Err(SettingError::FrameNumbers { text: rest.into() }),
                }
            }
            _ => Err(syntax()),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Independent { share } => Share(*share).fmt(f),
            Loss::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_in_good,
                loss_in_bad,
            } => {
                let shares = [good_to_bad, bad_to_good, loss_in_good, loss_in_bad];
                let shares = shares.map(|share| Share(*share).to_string());
                write!(f, "gilbert:{}", shares.join(","))
            }
            Loss::Periodic { every } => write!(f, "every:{every}"),
            Loss::Frames { numbers } => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                write!(f, "frames:{}", numbers.join(","))
            }
        }
    }
}

impl FromStr for Reorder {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Reorder, SettingError> {
        let Some((share, hold)) = text.split_once(':') else {
            return Err(SettingError::Syntax {
                text: text.into(),
                what: "reordering",
                like: "1%:5ms, the share and for how long it is held back",
            });
        };
        Ok(Reorder {
            share: share.parse::<Share>()?.0,
            hold_ns: hold.parse::<Time>()?.0,
        })
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Share(self.share), Time(self.hold_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same<T: FromStr<Err = SettingError> + fmt::Display>(text: &str) {
        assert_eq!(text.parse::<T>().unwrap().to_string(), text);
    }

    fn error<T: FromStr<Err = SettingError> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().unwrap_err().to_string()
    }

    #[test]
    fn a_setting_is_printed_as_it_was_written() {
        same::<Rate>("100mbit");
        same::<Rate>("599mbit:ip");
        same::<QueueLimit>("256kb");
        same::<QueueLimit>("25000p");
        same::<PacketRate>("50000:64");
        same::<Jitter>("1ms");
        same::<Jitter>("normal:200us");
        same::<Jitter>("pareto:1ms,unordered");
        same::<Loss>("1%");
        same::<Loss>("gilbert:1%,25%,0%,100%");
        same::<Loss>("every:100");
        same::<Loss>("frames:3,7,20");
        same::<Reorder>("1%:5ms");
    }

    #[test]
    fn a_short_form_means_the_usual() {
        assert_eq!("1gbit:ethernet".parse::<Rate>(), "1gbit".parse());
        assert_eq!("50000".parse::<PacketRate>(), "50000:1".parse());
        assert_eq!("uniform:1ms".parse::<Jitter>(), "1ms".parse());
    }

    #[test]
    fn a_text_that_is_no_setting_is_told_how_to_write_one() {
        assert_eq!(
            error::<Rate>("1mbit:tcp"),
            "\"1mbit:tcp\" is no rate: write it as in 100mbit or, at IP level, 599mbit:ip"
        );
        assert_eq!(
            error::<QueueLimit>("100"),
            "\"100\" says neither bytes nor packets: write it as in 256kb or 1000p"
        );
        for text in ["0", "50k", "5:0", "1:2:3", "300000000", "+5"] {
            assert_eq!(
                error::<PacketRate>(text),
                format!(
                    "{text:?} is no number of packets a second: write it as in 50000 or, with a \
                     burst of 64, 50000:64"
                )
            );
        }
        assert_eq!(
            error::<Jitter>("gamma:1ms"),
            "\"gamma:1ms\" is no jitter: write it as in 1ms, normal:1ms, pareto:1ms or 1ms,unordered"
        );
        for text in ["often", "gilbert:1%", "every:0", "none:1"] {
            assert_eq!(
                error::<Loss>(text),
                format!(
                    "{text:?} is no loss: write it as in 1%, gilbert:1%,25%,0%,100%, every:100 or \
                     frames:3,7"
                )
            );
        }
        for numbers in ["0", "", "7,3", "3,3", "a"] {
            assert_eq!(
                error::<Loss>(&format!("frames:{numbers}")),
                format!("frames are counted from 1, and {numbers:?} is not ascending from there")
            );
        }
        assert_eq!(
            error::<Reorder>("1%"),
            "\"1%\" is no reordering: write it as in 1%:5ms, the share and for how long it is held \
             back"
        );
    }

    #[test]
    fn a_part_of_a_setting_has_the_error_of_its_value() {
        assert_eq!(
            error::<Jitter>("normal:3s"),
            "a time of 3s is too large: at most 2s"
        );
        assert_eq!(
            error::<Loss>("200%"),
            "a share of 200% is too large: at most 100% (1.0)"
        );
        assert_eq!(
            error::<Reorder>("1%:5"),
            "\"5\" is no time: write it as in 20ms, 5us or 2s"
        );
    }
}
