//! The scenarios that come along.

use packtrain_settings::toml_reader::FileErrors;

use crate::scenario::Scenario;

/// By name; the texts are those of `scenarios/`.
pub const ALL: [(&str, &str); 23] = [
    ("endpoint", include_str!("../scenarios/endpoint.toml")),
    ("endpoint-saturation", include_str!("../scenarios/endpoint-saturation.toml")),
    ("lfn-buffer", include_str!("../scenarios/lfn-buffer.toml")),
    ("lfn-fig1", include_str!("../scenarios/lfn-fig1.toml")),
    ("lfn-fig2", include_str!("../scenarios/lfn-fig2.toml")),
    ("lfn-fig3", include_str!("../scenarios/lfn-fig3.toml")),
    ("shared-ethernet", include_str!("../scenarios/shared-ethernet.toml")),
    ("shared-ethernet-load", include_str!("../scenarios/shared-ethernet-load.toml")),
    ("shared-ethernet-netpipe", include_str!("../scenarios/shared-ethernet-netpipe.toml")),
    ("trunk-cut", include_str!("../scenarios/trunk-cut.toml")),
    ("trunk-files", include_str!("../scenarios/trunk-files.toml")),
    ("trunk-table1", include_str!("../scenarios/trunk-table1.toml")),
    ("trunk-tokens", include_str!("../scenarios/trunk-tokens.toml")),
    ("xlf-ber", include_str!("../scenarios/xlf-ber.toml")),
    ("xlf-droptail", include_str!("../scenarios/xlf-droptail.toml")),
    ("xlf-drr", include_str!("../scenarios/xlf-drr.toml")),
    ("xlf-ecn", include_str!("../scenarios/xlf-ecn.toml")),
    ("xlf-mice", include_str!("../scenarios/xlf-mice.toml")),
    ("xlf-processing", include_str!("../scenarios/xlf-processing.toml")),
    ("xlf-sizes", include_str!("../scenarios/xlf-sizes.toml")),
    ("xlf-slowstart", include_str!("../scenarios/xlf-slowstart.toml")),
    ("xlf-units", include_str!("../scenarios/xlf-units.toml")),
    ("xlf-wireless", include_str!("../scenarios/xlf-wireless.toml")),
];

/// `None`: there is none of this name.
pub fn text(name: &str) -> Option<&'static str> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Those that somebody may have meant, in words.
pub fn near(name: &str) -> String {
    let known: Vec<String> = names().map(str::to_owned).collect();
    crate::expression::near(name, &known)
}

/// One of those that come along. Its errors name it as a file that it is not on this machine.
pub fn read(name: &str) -> Option<Result<Scenario, FileErrors>> {
    let text = text(name)?;
    Some(Scenario::built_in(name, text))
}

#[cfg(test)]
mod tests;
