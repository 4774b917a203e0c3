//! What a clock on the wall shows where the host is.

/// Seconds by which the host's time is ahead of UTC at a time since 1970; 0 where nobody knows.
pub fn offset_s(unix_s: i64) -> i64 {
    let time = unix_s as libc::time_t;
    // SAFETY: `tm` is integers and a pointer that nobody follows, for which all zero is a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to values that live across the call; this variant keeps nothing of its
    // own between calls.
    let known = unsafe { libc::localtime_r(&raw const time, &raw mut parts) };
    if known.is_null() {
        return 0;
    }
    parts.tm_gmtoff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_farther_than_a_day_from_utc() {
        for unix_s in [0, 1_700_000_000, 4_000_000_000] {
            assert!(offset_s(unix_s).abs() < 86_400);
        }
    }
}
