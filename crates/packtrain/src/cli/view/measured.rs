//! What was measured of paths: in a table where there are several, in a sentence of one alone.

use super::tables::table;
use super::words::duration;
use crate::status::PeerLink;

/// One a row; nothing while nothing is known of any.
pub(super) fn measured(paths: &[PeerLink], indent: &str) -> String {
    if !paths.iter().any(is_known) {
        return String::new();
    }
    let time = |seconds: Option<f64>| seconds.map_or("-".into(), duration);
    let rows = paths.iter().map(|path| {
        [
            path.link.clone(),
            match path.rate_age_s {
                Some(age) => format!("{} ago", duration(age)),
                None => "unknown".into(),
            },
            time(path.round_trip_min_s),
            time(path.round_trip_jitter_s),
            path.tx_loss_ppm.map_or("-".into(), share),
            path.rx_loss_ppm.map_or("-".into(), share),
            time(path.tx_later_s),
            time(path.rx_later_s),
        ]
    });
    let headings = [
        "PATH",
        "RATE SEEN",
        "LEAST RTT",
        "JITTER",
        "LOST OUT",
        "IN",
        "LATER OUT",
        "IN",
    ];
    table(headings, rows.collect(), &["LEAST RTT"], indent)
}

fn is_known(path: &PeerLink) -> bool {
    let figures = [path.round_trip_min_s, path.rate_age_s, path.rx_later_s];
    figures.iter().any(Option::is_some) || path.tx_loss_ppm.or(path.rx_loss_ppm).is_some()
}

/// Of the only path: what its own line does not say. `None`: nothing.
pub(super) fn in_words(path: &PeerLink) -> Option<String> {
    let rate = path
        .rate_age_s
        .map(|age| format!("rate {} ago", duration(age)));
    let least = path
        .round_trip_min_s
        .map(|least| format!("least {}", duration(least)));
    let jitter = path
        .round_trip_jitter_s
        .map(|jitter| format!("jitter {}", duration(jitter)));
    let lost = match (path.tx_loss_ppm, path.rx_loss_ppm) {
        (None, None) => None,
        (out, came) => {
            let text = |ppm: Option<u32>| ppm.map_or("unknown".to_owned(), share);
            Some(format!("lost {} out, {} in", text(out), text(came)))
        }
    };
    let known: Vec<String> = [rate, least, jitter, lost].into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// Of a million, as percent: with as many digits as it has.
fn share(ppm: u32) -> String {
    let percent = format!("{:.4}", f64::from(ppm) / 1e4);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_as_many_digits_as_it_needs() {
        let shares = [0, 1, 1200, 12_345, 1_000_000].map(share);
        assert_eq!(shares, ["0 %", "0.0001 %", "0.12 %", "1.2345 %", "100 %"]);
    }
}
