//! Times as people and RFC 3339 write them.
//!
//! Days by Howard Hinnant's `days_from_civil` and its inverse: years begin in March there, so that the leap day is the
//! last of its year.

const NS_PER_S: u64 = 1_000_000_000;
const S_PER_DAY: i64 = 86_400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Civil {
    year: i64,
    month: u8,
    day: u8,
    second_of_day: u32,
}

impl Civil {
    fn of(unix_s: i64) -> Civil {
        let (days, second) = (
            unix_s.div_euclid(S_PER_DAY),
            unix_s.rem_euclid(S_PER_DAY) as u32,
        );
        let days = days + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = (of_year - (153 * month + 2) / 5 + 1) as u8;
        let month = if month < 10 { month + 3 } else { month - 9 } as u8;
        Civil {
            year: year + era * 400 + i64::from(month <= 2),
            month,
            day,
            second_of_day: second,
        }
    }

    fn unix_s(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month = i64::from(self.month);
        let of_year =
            (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + i64::from(self.day) - 1;
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
        days * S_PER_DAY + i64::from(self.second_of_day)
    }

    /// Date and time of day, with `between` between them.
    fn text(self, between: char) -> String {
        let Civil {
            year,
            month,
            day,
            second_of_day: s,
        } = self;
        let (hour, minute, second) = (s / 3600, s / 60 % 60, s % 60);
        format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}")
    }
}

/// UTC, to the microsecond: `2026-11-26T07:00:01.123456Z`.
pub fn rfc3339(unix_ns: u64) -> String {
    let civil = Civil::of((unix_ns / NS_PER_S) as i64);
    format!("{}.{:06}Z", civil.text('T'), unix_ns % NS_PER_S / 1000)
}

/// As a clock on the wall shows it, to the millisecond: `2026-11-26 07:00:01.123`.
pub fn local(unix_ns: u64, ahead_of_utc_s: i64) -> String {
    let civil = Civil::of((unix_ns / NS_PER_S) as i64 + ahead_of_utc_s);
    format!("{}.{:03}", civil.text(' '), unix_ns % NS_PER_S / 1_000_000)
}

/// Nanoseconds since 1970 of such a time, with any fraction of a second, `T` or a space between date and time, and `Z`,
/// an offset, or nothing behind it. Of the last, `ahead_of_utc_s` says how far the place is ahead at a time since 1970.
pub fn from_rfc3339(text: &str, ahead_of_utc_s: impl Fn(i64) -> i64) -> Option<u64> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (time, rest) = (rest.get(..8)?, rest.get(8..)?);
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let digits = rest.get(..end).filter(|digits| !digits.is_empty())?;
            let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
            (nine.parse::<u64>().ok()?, &rest[end..])
        }
        None => (0, rest),
    };
    let civil = Civil {
        year,
        month: month as u8,
        day: day as u8,
        second_of_day: (hour * 3600 + minute * 60 + second) as u32,
    };
    // A day that there is not is another one when it is read back.
    let is_time = hour < 24 && minute < 60 && second < 60 && Civil::of(civil.unix_s()) == civil;
    let local_s = civil.unix_s();
    let ahead_s = match zone {
        "" => {
            let near = ahead_of_utc_s(local_s);
            ahead_of_utc_s(local_s - near)
        }
        "Z" | "z" => 0,
        _ => {
            let sign = match zone.get(..1)? {
                "+" => 1,
                "-" => -1,
                _ => return None,
            };
            let [hours, minutes] = numbers(zone.get(1..)?, ':', [2, 2])?;
            (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))?
        }
    };
    let unix_s = u64::try_from(local_s - ahead_s).ok().filter(|_| is_time)?;
    unix_s.checked_mul(NS_PER_S)?.checked_add(fraction)
}

/// So many numbers of so many digits each, and nothing else.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut out = [0; N];
    for (number, digits) in out.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AT: u64 = 1_795_676_401_123_456_789;

    fn utc(text: &str) -> Option<u64> {
        from_rfc3339(text, |_| 0)
    }

    #[test]
    fn a_time_is_written_and_read_as_date_1_does() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000Z"),
        ] {
            assert_eq!(rfc3339(unix_s * NS_PER_S), text);
            assert_eq!(utc(text), Some(unix_s * NS_PER_S));
        }
        assert_eq!(rfc3339(AT), "2026-11-26T07:00:01.123456Z");
        assert_eq!(local(AT, 3600), "2026-11-26 08:00:01.123");
    }

    #[test]
    fn a_place_is_heeded_where_no_zone_is_said() {
        let read = |text| from_rfc3339(text, |_| 7200);
        for text in [
            "2026-11-26T07:00:01.123456789Z",
            "2026-11-26 09:00:01.123456789",
            "2026-11-26T08:30:01.123456789+01:30",
            "2026-11-26T02:00:01.123456789-05:00",
        ] {
            assert_eq!(read(text), Some(AT), "{text}");
        }
        assert_eq!(read("2026-11-26 09:00:01"), Some(AT / NS_PER_S * NS_PER_S));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-11-26",
            "2026-02-29 00:00:00",
            "2026-13-01 00:00:00",
            "2026-11-26 24:00:00",
            "2026-11-26 07:60:00",
            "2026-11-26x07:00:00",
            "2026-11-26 7:00:00",
            "2026-11-26 07:00:00.",
            "2026-11-26 07:00:00+1",
            "2026-11-26 07:00:00 UTC",
            "1969-12-31 23:59:59",
            "+026-11-26 07:00:00",
            "ü026-11-26 07:00:00",
        ] {
            assert_eq!(utc(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(unix_us in 0u64..18_000_000_000_000_000, ahead in -50_000i64..50_000) {
            let unix_ns = unix_us * 1000;
            prop_assert_eq!(utc(&rfc3339(unix_ns)), Some(unix_ns));
            // Before 1970 there is nothing.
            let unix_ns = unix_ns + 100_000 * NS_PER_S;
            let read = from_rfc3339(&local(unix_ns, ahead), |_| ahead);
            prop_assert_eq!(read, Some(unix_ns / 1_000_000 * 1_000_000));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}", digits in "[0-9:. TZ+-]{0,40}") {
            let _ = (utc(&text), utc(&digits));
        }
    }
}
