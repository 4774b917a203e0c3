//! What coding its trains has saved a line, and by which dictionary.

use super::field;
use super::words::{bytes, count, duration};
use crate::status::{Coding, Dictionary, Peer};

/// What trains have saved, and by what.
pub(super) fn write_coding(out: &mut String, coding: &Coding) {
    if coding.train_bytes > 0 {
        let saved = &coding.saved;
        let parts = [
            ("framing", saved.framing),
            ("padding", saved.padding),
            ("headers", saved.headers),
            ("payload", saved.payload),
        ];
        let parts = parts.iter().filter(|(_, saved)| saved.bytes != 0);
        let parts = parts.map(|(what, saved)| {
            let percent = saved.percent.unwrap_or_default();
            format!("{what} {} ({percent:.1}%)", signed_bytes(saved.bytes))
        });
        let parts: Vec<String> = parts.collect();
        let saved = match parts.is_empty() {
            true => "nothing".to_owned(),
            false => parts.join(", "),
        };
        let (trains, frames) = (bytes(coding.train_bytes), bytes(coding.frame_bytes));
        field(out, "on wire", &format!("{trains} for {frames} of frames"));
        field(out, "saved by", &saved);
    }
    if coding.coded_tx + coding.coded_rx > 0 {
        let told_apart = match coding.told_apart {
            0 => String::new(),
            n => format!(", {} frames told apart", count(n)),
        };
        let cpu = coding.cpu_s_per_mb.map_or(String::new(), |seconds| {
            format!("; {} CPU per MB compressed", duration(seconds))
        });
        let (sent, received) = (count(coding.coded_tx), count(coding.coded_rx));
        let text = format!("{sent} sent{told_apart}, {received} received{cpu}");
        field(out, "coded", &text);
    }
}

pub(super) fn dictionary(dictionary: &Dictionary) -> String {
    let Dictionary {
        id,
        bytes: len,
        file,
        trains_tx,
        trains_rx,
    } = dictionary;
    let of_file = (file.as_ref()).map_or(String::new(), |file| format!(" of {file}"));
    let (sent, received) = (count(*trains_tx), count(*trains_rx));
    let len = bytes(*len);
    format!("{id}, {len}{of_file}; trains with it: {sent} sent, {received} received")
}

/// Which one a peer has, and what is done with ours; nothing where neither end has one.
pub(super) fn peers_dictionary(peer: &Peer) -> Option<String> {
    let unused = peer.dictionary_unused.as_deref();
    let theirs = match &peer.dictionary {
        None if matches!(unused, None | Some("none_here")) => return None,
        None => "none".to_owned(),
        Some(id) => id.clone(),
    };
    let said = match unused {
        None => "the same, used where it is worth it".to_owned(),
        Some("none_here") => format!("{theirs}; not used: this line has none"),
        Some("none_there") => "none; ours is not used".to_owned(),
        Some("another_there") => format!("{theirs}; not used: ours is another one"),
        Some(because) => format!("{theirs}; not used: {}", unused_reason(because)),
    };
    Some(said)
}

/// Why a dictionary is not used, in words.
fn unused_reason(because: &str) -> &str {
    match because {
        "not_up" => "it is not up",
        "not_coded" => "trains to it are not coded",
        "classes" => "no class has its payload compressed",
        "rate_unknown" => "how fast its links are is not known yet",
        "fast_links" => "its links are faster than compressing is",
        other => other,
    }
}

/// More than none where trains cost more than they save.
fn signed_bytes(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", bytes(n.unsigned_abs()))
}
