//! Compiles `src/bpf/*.bpf.c` with clang; the objects are embedded by `linux/`.
//!
//! Headers of libbpf come from the copy that `libbpf-sys` builds, those of the kernel's interface
//! from the system, so nothing but clang has to be installed for it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Each with what it is compiled from, and what is defined.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("direct", "direct", &[]),
    ("filter", "filter", &[]),
    ("filter_tc", "filter", &["-DFILTER_AT_TC"]),
    ("flood", "flood", &[]),
    ("floor", "floor", &[]),
    ("guard", "guard", &[]),
    ("guard_without_types", "guard", &["-DWITHOUT_KERNEL_TYPES"]),
    ("intake", "intake", &[]),
    ("late", "late", &[]),
    ("pace", "pace", &[]),
    ("pace_class", "pace_class", &[]),
    ("pace_try", "pace_try", &[]),
    ("ring", "ring", &[]),
];

/// Newest first: older ones compile the same, but their code is rejected by the verifier now and then.
const COMPILERS: &[&str] = &[
    "clang-19", "clang-20", "clang-18", "clang-17", "clang-16", "clang",
];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let headers = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let clang = find_clang();
    println!("cargo:rerun-if-env-changed=PACKTRAIN_CLANG");
    println!("cargo:rerun-if-changed=src/bpf");
    for (object, source, definitions) in PROGRAMS {
        let source = Path::new("src/bpf").join(format!("{source}.bpf.c"));
        let object = out.join(format!("{object}.bpf.o"));
        compile(&clang, &headers, definitions, &source, &object);
    }
}

fn find_clang() -> OsString {
    if let Some(chosen) = env::var_os("PACKTRAIN_CLANG") {
        return chosen;
    }
    let found = COMPILERS.iter().find(|name| {
        Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    });
    match found {
        Some(name) => OsString::from(name),
        None => fail("no clang found: install clang-19, or name one in PACKTRAIN_CLANG"),
    }
}

fn compile(
    clang: &OsString,
    headers: &OsString,
    definitions: &[&str],
    source: &Path,
    object: &Path,
) {
    let mut command = Command::new(clang);
    command
        // -g gives the BTF that libbpf reads the maps from; no path of the build goes into it.
        .args([
            "-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3",
        ])
        .args(["-fdebug-compilation-dir=.", "-c"])
        .args(definitions)
        .arg("-I")
        .arg(headers);
    // The bpf target does not look where Debian keeps <asm/types.h>.
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let multiarch = PathBuf::from(format!("/usr/include/{arch}-linux-gnu"));
    if multiarch.exists() {
        command.arg("-idirafter").arg(multiarch);
    }
    command.arg(source).arg("-o").arg(object);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(_) => fail(&format!("{command:?} failed: its message stands above")),
        Err(error) => fail(&format!("{command:?} did not start: {error}")),
    }
}

fn fail(message: &str) -> ! {
    println!("cargo:warning={message}");
    eprintln!("{message}");
    exit(1);
}
