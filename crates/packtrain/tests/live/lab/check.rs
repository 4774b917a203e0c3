//! The lab checks itself: what is set is what a wire does, measured with real traffic.

use packtrain::lab::check::{self, Options, Verdict};

use crate::common::{packtrain, steady};

#[test]
fn wires_do_what_is_set_as_far_as_the_machine_lets_them_say() {
    live!(alone);
    let options = Options {
        short: true,
        quiet: true,
    };
    // The wires know when they were late; that who measures was, only the machine tells.
    let run = || {
        let report = check::run(packtrain(), options).unwrap();
        assert!(report.rows.len() >= 5, "{:?}", report.rows);
        report
    };
    let report = steady::judge("what is off", run, |report| !report.has(Verdict::Off));
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
}
