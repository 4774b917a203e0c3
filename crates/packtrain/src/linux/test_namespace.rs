//! A network namespace for one test: it goes with the test's thread, whatever happens there.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::sys::check;

/// Runs `test` on a thread of its own in a new network namespace with `lo` up, or skips it, with
/// the reason, where the kernel does not let us.
pub(crate) fn in_namespace(test: impl FnOnce() + Send + 'static) {
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

/// Another host: a network namespace of its own. It is held by a process that ends with its
/// standard input, so with this test, however that ends.
pub(crate) struct Host {
    holder: Child,
}

impl Host {
    pub(crate) fn new() -> Host {
        let mut holder = Command::new("unshare")
            .args([
                "--net",
                "sh",
                "-c",
                "ip link set lo up && echo ready && exec cat",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare is there");
        let mut ready = String::new();
        let output = holder.stdout.take().expect("a pipe");
        BufReader::new(output)
            .read_line(&mut ready)
            .expect("a line");
        assert_eq!(ready, "ready\n", "the other host did not start");
        Host { holder }
    }

    /// The process that holds it.
    pub(crate) fn id(&self) -> u32 {
        self.holder.id()
    }

    /// Takes over an interface of the thread's namespace.
    pub(crate) fn take(&self, interface: &str) {
        ip(&format!("link set {interface} netns {}", self.holder.id()));
    }

    /// Runs `line` there; its standard output.
    pub(crate) fn run(&self, line: &str) -> String {
        run(&self.entered(line))
    }

    pub(crate) fn succeeds(&self, line: &str) -> bool {
        succeeds(&self.entered(line))
    }

    pub(crate) fn entered(&self, line: &str) -> String {
        format!("nsenter --target {} --net {line}", self.holder.id())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// `ip ARGUMENTS` in the thread's namespace.
pub(crate) fn ip(arguments: &str) {
    run(&format!("ip {arguments}"));
}

/// A command of words without quotes; its standard output.
pub(crate) fn run(line: &str) -> String {
    let output = output_of(line);
    assert!(
        output.status.success(),
        "{line}: {}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn succeeds(line: &str) -> bool {
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
