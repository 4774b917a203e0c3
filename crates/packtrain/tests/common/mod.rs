//! What the live tests share.

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

/// Returns from a test that cannot run here, with its reason.
#[macro_export]
macro_rules! live {
    ($reason:expr) => {{
        fn here() {}
        let test = std::any::type_name_of_val(&here).trim_end_matches("::here");
        if common::skipped(test, $reason) {
            return;
        }
    }};
    () => {
        $crate::live!(packtrain::lab::unavailable())
    };
}
