//! A network namespace for one test: it goes with the test's thread, whatever happens there.

use std::io;
use std::process::Command;

use super::sys::check;

/// Runs `test` on a thread of its own in a new network namespace with `lo` up, or skips it, with
/// the reason, where the kernel does not let us.
pub(super) fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // SAFETY: no pointers; the namespace changes for this thread alone.
        if let Err(error) = check(unsafe { libc::unshare(libc::CLONE_NEWNET) }) {
            skip(&error);
            return;
        }
        ip("link set lo up");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn skip(error: &io::Error) {
    assert!(
        std::env::var_os("PACKTRAIN_TEST_NO_SKIP").is_none(),
        "a test in a network namespace could not run: {error}"
    );
    eprintln!("skipped: no network namespace without CAP_SYS_ADMIN ({error})");
}

/// `ip ARGUMENTS` in the thread's namespace.
pub(super) fn ip(arguments: &str) {
    run(&format!("ip {arguments}"));
}

/// A command of words without quotes; its standard output.
pub(super) fn run(line: &str) -> String {
    let output = output_of(line);
    assert!(
        output.status.success(),
        "{line}: {}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[allow(dead_code)] // for the files beside this one
pub(super) fn succeeds(line: &str) -> bool {
    output_of(line).status.success()
}

fn output_of(line: &str) -> std::process::Output {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a command has a name");
    match Command::new(program).args(words).output() {
        Ok(output) => output,
        Err(error) => panic!("{line}: {error}"),
    }
}
