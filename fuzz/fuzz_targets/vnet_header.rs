//! Any virtio-net header before any frame: no panic, and what was understood survives being
//! written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The file alone: the crate around it wants libbpf, which has no part in this.
#[allow(dead_code)]
#[path = "../../crates/packtrain/src/linux/vnet_header.rs"]
mod vnet_header;

fuzz_target!(|data: &[u8]| {
    let Some((header, frame)) = data.split_first_chunk::<{ vnet_header::LEN }>() else {
        return;
    };
    if let Ok(offload) = vnet_header::parse(header, frame) {
        let again = vnet_header::parse(&vnet_header::emit(offload), frame);
        assert_eq!(again, Ok(offload));
        let _ = vnet_header::shift(offload, 4);
    }
});
