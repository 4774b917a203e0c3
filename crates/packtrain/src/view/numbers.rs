//! Numbers in columns: short ones that say enough, and long ones that can be read.

/// In five letters, three digits of which count: as in `0.4`, `87`, `1.23k`, `456M`.
pub fn short(value: f64) -> String {
    const UNITS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    if value < 9.95 {
        let text = format!("{value:.1}");
        return text.strip_suffix(".0").unwrap_or(&text).into();
    }
    if value < 999.5 {
        return format!("{value:.0}");
    }
    let mut value = value / 1000.0;
    for unit in UNITS {
        match value {
            v if v < 9.995 => return format!("{v:.2}{unit}"),
            v if v < 99.95 => return format!("{v:.1}{unit}"),
            v if v < 999.5 => return format!("{v:.0}{unit}"),
            _ => value /= 1000.0,
        }
    }
    "many".into()
}

/// A rate as far as it is known.
pub fn short_or_unknown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), short)
}

/// A time in six letters, three digits of which count: as in `812us`, `1.25ms`, `198ms`, `12.3s`, `59min`, `47h`.
pub fn short_time(seconds: f64) -> String {
    const UNITS: [(f64, f64, &str); 6] = [
        (1e-6, 1e3, "us"),
        (1e-3, 1e3, "ms"),
        (1.0, 60.0, "s"),
        (60.0, 60.0, "min"),
        (3600.0, 48.0, "h"),
        (86_400.0, f64::INFINITY, "d"),
    ];
    for (unit, most, name) in UNITS {
        let value = seconds / unit;
        let text = match value {
            // Minutes and hours are those that have passed; a little more, for what was rounded up to one.
            _ if unit >= 60.0 => format!("{:.0}", (value + 1e-3).floor()),
            v if v < 9.995 => format!("{v:.2}"),
            v if v < 99.95 => format!("{v:.1}"),
            v => format!("{v:.0}"),
        };
        if text.parse::<f64>().is_ok_and(|shown| shown < most) {
            return text + name;
        }
    }
    "never".into()
}

/// Whole, with a comma between thousands; short where that takes more letters than there are.
pub fn count(n: u64, letters: usize) -> String {
    let text = crate::cli::words::count(n);
    match text.len() <= letters {
        true => text,
        false => short(n as f64),
    }
}

/// In percent; nothing of nothing is nothing.
pub fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".into(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_have_five_letters_at_most_and_never_round_to_a_thousand() {
        for (value, text) in [
            (0.0, "0"),
            (0.04, "0"),
            (0.25, "0.2"),
            (9.94, "9.9"),
            (9.96, "10"),
            (87.4, "87"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (1234.0, "1.23k"),
            (9996.0, "10.0k"),
            (12_345.0, "12.3k"),
            (99_960.0, "100k"),
            (999_600.0, "1.00M"),
            (456e6, "456M"),
            (1.8e19, "18.0E"),
            (1e22, "many"),
        ] {
            assert_eq!(short(value), text, "{value}");
        }
        assert_eq!(short_or_unknown(None), "-");
    }

    #[test]
    fn short_times_have_six_letters_at_most_and_never_round_to_the_next_unit() {
        for (seconds, text) in [
            (0.0, "0.00us"),
            (12.3e-6, "12.3us"),
            (999.4e-6, "999us"),
            (999.6e-6, "1.00ms"),
            (1.25e-3, "1.25ms"),
            (0.198, "198ms"),
            (2.0, "2.00s"),
            (59.94, "59.9s"),
            (59.96, "1min"),
            (3599.0, "59min"),
            (3600.0, "1h"),
            (172_700.0, "47h"),
            (172_800.0, "2d"),
            (f64::INFINITY, "never"),
        ] {
            assert_eq!(short_time(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn long_numbers_are_whole_where_there_is_room() {
        assert_eq!(count(1_234_567, 9), "1,234,567");
        assert_eq!(count(1_234_567, 8), "1.23M");
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(0, 0), "-");
    }
}
