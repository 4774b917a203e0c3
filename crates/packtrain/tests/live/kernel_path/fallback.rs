//! Where the kernel has not what the direct path takes.

use packtrain::lab::host::Host;
use packtrain::status::PeerPath;

use crate::common::cabled::{MEBIBYTE, status};
use crate::common::direct::path;
use crate::common::{A, B, Pair, pings_whole, transfer};

/// As on a kernel that does not describe its types. What `up` notes.
fn up_without_types(host: &Host, address: &str) -> String {
    let up = [
        "up",
        "pt0",
        "--link",
        "eth1",
        "--address",
        address,
        "--stay",
    ];
    let hide = "mount -t tmpfs none /sys/kernel/btf";
    let command = format!(
        "unshare -m sh -c '{hide} && exec {}' 2>&1",
        host.words(&up).join(" ")
    );
    host.namespace.sh(&command).unwrap()
}

#[test]
fn without_the_kernels_types_all_frames_go_by_the_engine_and_up_says_why() {
    live!();
    let pair = Pair::cable("types", 1500).unwrap();
    for (host, address) in [(&pair.a, "10.9.0.1/24"), (&pair.b, "10.9.0.2/24")] {
        let noted = up_without_types(host, address);
        for words in [
            "this kernel does not describe its types (/sys/kernel/btf/vmlinux: CONFIG_DEBUG_INFO_BTF); so all frames of pt0 go by the engine",
            "all frames of pt0 go by the engine, so nothing of it stays when its daemon ends",
        ] {
            assert!(noted.contains(words), "{noted}");
        }
    }
    pair.wait().unwrap();
    assert!(pings_whole(&pair.a, B, 1472) && pings_whole(&pair.b, A, 56));
    assert_eq!(transfer(&pair.a, &pair.b, B, MEBIBYTE), MEBIBYTE);
    for host in [&pair.a, &pair.b] {
        let because = Some("settings".to_owned());
        assert_eq!(path(host), (PeerPath::Engine, because));
        assert_eq!(status(host).direct.tx.frames, 0);
    }
}
