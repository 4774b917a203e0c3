//! Loading the objects that build.rs compiled from `bpf/`.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use libbpf_rs::{ErrorKind, MapCore, MapHandle, Object, ObjectBuilder, PrintLevel};

/// Aligned as an ELF reader wants it.
#[repr(align(8))]
pub(super) struct Aligned<T: ?Sized>(pub(super) T);

/// The compiled `bpf/NAME.bpf.c`.
macro_rules! embedded {
    ($name:literal) => {{
        static OBJECT: &$crate::linux::bpf_object::Aligned<[u8]> =
            &$crate::linux::bpf_object::Aligned(*include_bytes!(concat!(
                env!("OUT_DIR"),
                "/",
                $name,
                ".bpf.o"
            )));
        &OBJECT.0
    }};
}
pub(super) use embedded;

/// How often an object is loaded whose programs the kernel would look at another time.
const LOADS_MAX: u32 = 4;

/// Where the kernel describes its own types (BTF), if it was built so (`CONFIG_DEBUG_INFO_BTF`). Programs that look into
/// its structures are fitted to them when they are loaded.
pub(super) const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

pub(super) fn has_kernel_types() -> bool {
    Path::new(KERNEL_TYPES).exists()
}

/// On a kernel with PREEMPT_RT programs of frames may be interrupted by others of the same processor.
pub(super) fn are_programs_interrupted() -> bool {
    std::fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1")
}

pub(super) fn load(bytes: &[u8]) -> libbpf_rs::Result<Object> {
    load_with(bytes, &[])
}

/// Some of its maps are those of another object.
pub(super) fn load_with(bytes: &[u8], shared: &[(&str, &MapHandle)]) -> libbpf_rs::Result<Object> {
    quietly();
    let mut loads = 0;
    loop {
        loads += 1;
        match load_once(bytes, shared) {
            // The kernel lets the verifier be interrupted, and libbpf has not tried often enough.
            Err(error) if error.kind() == ErrorKind::WouldBlock && loads < LOADS_MAX => {}
            outcome => return outcome,
        }
    }
}

fn load_once(bytes: &[u8], shared: &[(&str, &MapHandle)]) -> libbpf_rs::Result<Object> {
    let mut object = ObjectBuilder::default().open_memory(bytes)?;
    for mut map in object.maps_mut() {
        let name = name_within(map.name());
        if let Some((_, other)) = shared.iter().find(|(shared, _)| name == *shared) {
            map.reuse_fd(other.as_fd())?;
        }
    }
    object.load()
}

/// Where libbpf explains itself, the verifier's words included: not on our standard error.
pub(super) fn quietly() {
    libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| {
        tracing::debug!(target: "libbpf", "{}", text.trim_end());
    })));
}

/// All maps that both have are the other object's.
pub(super) fn load_beside(bytes: &[u8], other: &Object) -> libbpf_rs::Result<Object> {
    let mut shared = Vec::new();
    for map in other.maps() {
        shared.push((name_within(map.name()), MapHandle::try_from(&map)?));
    }
    let shared: Vec<_> = shared
        .iter()
        .map(|(name, map)| (name.as_str(), map))
        .collect();
    load_with(bytes, &shared)
}

/// The name of the memory that is zero at first begins with the object's.
fn name_within(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    match name.ends_with(ZEROED) {
        true => ZEROED.to_owned(),
        false => name.into_owned(),
    }
}

const ZEROED: &str = ".bss";

/// The object is of our own source: a name that is not in it is our own mistake.
pub(super) fn program_fd(object: &Object, name: &str) -> libbpf_rs::Result<OwnedFd> {
    let program = object.progs().find(|program| program.name() == name);
    let program = program.unwrap_or_else(|| panic!("no program {name}"));
    Ok(program.as_fd().try_clone_to_owned()?)
}

pub(super) fn map_handle(object: &Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name);
    let map = map.unwrap_or_else(|| panic!("no map {name}"));
    MapHandle::try_from(&map)
}

/// The memory that is zero at first.
pub(super) fn zeroed_memory(object: &Object) -> libbpf_rs::Result<MapHandle> {
    let map = object.maps().find(|map| name_within(map.name()) == ZEROED);
    MapHandle::try_from(&map.expect("an object with such memory"))
}

/// What to do about it, for an error's text.
pub(super) fn hint(error: &libbpf_rs::Error) -> &'static str {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            " (this needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or root, on the host itself)"
        }
        _ => "",
    }
}
