//! The real binary, run, and files for it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub struct Outcome {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub fn packtrain(arguments: &[&str]) -> Outcome {
    outcome(
        Command::new(env!("CARGO_BIN_EXE_packtrain"))
            .args(arguments)
            .output()
            .unwrap(),
    )
}

/// … with this on its standard input.
pub fn packtrain_reading(arguments: &[&str], input: &[u8]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_packtrain"));
    command.args(arguments).stdin(Stdio::piped());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Who does not want all of it may stop reading.
        scope.spawn(move || stdin.write_all(input));
        outcome(child.wait_with_output().unwrap())
    })
}

pub fn outcome(output: Output) -> Outcome {
    Outcome {
        code: output.status.code().expect("it was not killed"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A file that is gone again with its test.
pub struct TestFile(PathBuf);

impl TestFile {
    pub fn new(name: &str, content: impl AsRef<[u8]>) -> TestFile {
        let name = format!("packtrain-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        TestFile(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
