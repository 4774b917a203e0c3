//! The lab checks itself: what is set is what a wire does, measured with real traffic.

mod common;

use common::packtrain;
use packtrain::lab::check::{self, Options, Verdict};

#[test]
fn wires_do_what_is_set_as_far_as_the_machine_lets_them_say() {
    live!();
    let options = Options {
        short: true,
        quiet: true,
    };
    let report = check::run(packtrain(), options).unwrap();
    assert!(report.rows.len() >= 5, "{:?}", report.rows);
    for row in report
        .rows
        .iter()
        .filter(|row| row.verdict == Verdict::Late)
    {
        // Said, and not taken for a result.
        println!(
            "not shown: {} {}: {:?}",
            row.setting, row.what, row.discarded
        );
    }
    assert!(!report.has(Verdict::Off), "\n{}", check::table(&report));
}
