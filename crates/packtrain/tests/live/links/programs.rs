//! Files that programs fetch while cables are pulled: by the Web, by FTP and by SMB, as the ELT paper has it.

use std::path::{Path, PathBuf};
use std::thread::scope;
use std::time::Duration;

use packtrain::lab::cable::Side;
use packtrain::lab::wire;

use crate::common::cabled::{Cabled, MEBIBYTE, pause};
use crate::common::{B, pattern};

/// Debian's own, which has the packages.
const PYTHON: &str = "/usr/bin/python3";
/// As long as two links of 100 Mbit/s take two and a half seconds for.
const BYTES: u64 = 60 * MEBIBYTE;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/served.py")
}

fn without(modules: &str) -> Option<String> {
    wire::shaping_unavailable().or_else(|| {
        let import = format!("import {modules}");
        let found = std::process::Command::new(PYTHON)
            .args(["-c", &import])
            .stderr(std::process::Stdio::null())
            .status();
        let is_there = found.is_ok_and(|status| status.success());
        (!is_there).then(|| format!("{PYTHON} cannot `{import}`"))
    })
}

/// Each end of either cable is pulled while the file comes, and put back.
fn assert_fetched_whole(protocol: &str) {
    let mut cabled = Cabled::up(protocol, &[100, 100]);
    let name = format!("packtrain-{protocol}-{}", std::process::id());
    let root = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&root).unwrap();
    let bytes: Vec<u8> = (0..BYTES).map(pattern).collect();
    std::fs::write(root.join("file"), &bytes).unwrap();
    let (script, directory) = (script(), root.to_str().unwrap());
    let script = script.to_str().unwrap();
    let target = root.join("fetched");
    let Cabled { cables, a, b, .. } = &mut cabled;
    let _server = b
        .namespace
        .spawn([PYTHON, script, "serve", protocol, B, directory])
        .unwrap();
    let words = [
        PYTHON,
        script,
        "get",
        protocol,
        B,
        "file",
        target.to_str().unwrap(),
    ];
    scope(|scope| {
        let fetches = scope.spawn(|| a.namespace.try_exec(words).unwrap());
        let arrived = || std::fs::metadata(&target).map_or(0, |file| file.len());
        packtrain::lab::wait_for("the first bytes", Duration::from_secs(30), || {
            arrived() > MEBIBYTE
        })
        .unwrap();
        cables[0]
            .cut_for(Side::A, Duration::from_millis(300))
            .unwrap();
        pause(Duration::from_millis(250));
        cables[1]
            .cut_for(Side::B, Duration::from_millis(300))
            .unwrap();
        assert!(
            arrived() < BYTES,
            "it was there before the second cut was over"
        );
        let said = fetches.join().unwrap();
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{protocol}: {error}");
    });
    let fetched = std::fs::read(&target).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    assert!(fetched == bytes, "{protocol}: {} bytes came", fetched.len());
}

#[test]
fn a_file_of_the_web_comes_whole_though_cables_are_pulled() {
    live!(without("http.server"));
    assert_fetched_whole("http");
}

#[test]
fn so_does_one_by_ftp() {
    live!(without("pyftpdlib"));
    assert_fetched_whole("ftp");
}

#[test]
fn and_one_by_smb() {
    live!(without("impacket"));
    assert_fetched_whole("smb");
}
