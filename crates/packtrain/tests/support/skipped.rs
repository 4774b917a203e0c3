//! A test that cannot run here says why, and is counted.

use std::io::Write;

/// Says why the test cannot run here, where `./x test` counts it (`PACKTRAIN_SKIPPED`), and
/// whether it cannot.
pub fn skipped(test: &str, reason: Option<String>) -> bool {
    let Some(reason) = reason else {
        return false;
    };
    eprintln!("SKIPPED: {test}: {reason}");
    if let Some(path) = std::env::var_os("PACKTRAIN_SKIPPED") {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .expect("the list of skipped tests can be written");
        writeln!(file, "{test}: {reason}").expect("the list of skipped tests can be written");
    }
    true
}
