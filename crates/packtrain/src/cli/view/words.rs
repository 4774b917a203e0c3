//! Numbers as people write them.

/// With a comma between thousands.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(in crate::cli) fn bytes(n: u64) -> String {
    let mut value = n as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            return if unit == "B" {
                format!("{n} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} PiB")
}

pub(crate) fn rate(bps: u64) -> String {
    let bps = bps as f64;
    let (value, unit) = match bps {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{} min {} s", whole / 60, whole % 60),
        s if s < 86_400.0 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!(
            [0, 999, 1000, 12_345, 1_234_567].map(count),
            ["0", "999", "1,000", "12,345", "1,234,567"]
        );
        assert_eq!(
            [0, 1023, 1024, 1_572_864, 1 << 40].map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "1.0 TiB"]
        );
        assert_eq!(
            [0, 999, 64_000, 99_500_000, 10_000_000_000].map(rate),
            [
                "0 bit/s",
                "999 bit/s",
                "64 kbit/s",
                "99.5 Mbit/s",
                "10 Gbit/s"
            ]
        );
        assert_eq!(
            [0.000_25, 0.0125, 3.0, 61.5, 7260.0, 90_000.0].map(duration),
            [
                "250 µs",
                "12.5 ms",
                "3.0 s",
                "1 min 1 s",
                "2 h 1 min",
                "1 d 1 h"
            ]
        );
    }
}
