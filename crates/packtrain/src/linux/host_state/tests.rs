//! The journal against the kernel: in namespaces, with owners that are killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use packtrain_proto::pacing::gap::{Gap, Line};
use packtrain_proto::wire::ethernet::MacAddr;

use super::*;
use crate::linux::gap_qdisc::{self, Gso, Spacing};
use crate::linux::guard::{Attachment, Guard, Host};
use crate::linux::test_namespace::{in_namespace, ip, run};

/// A directory of one test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "packtrain-host-state-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        // Not created here: the journal does that.
        Directory(std::env::temp_dir().join(name).join("1"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().expect("its own directory"));
    }
}

fn arp_ignore() -> Setting {
    Setting::Sysctl {
        family: "ipv4".into(),
        key: "arp_ignore".into(),
    }
}

fn ifindex(name: &str) -> u32 {
    Netlink::open()
        .unwrap()
        .link_by_name(name)
        .unwrap()
        .expect(name)
        .ifindex
}

fn with_link(test: impl FnOnce(&Path, u32) + Send + 'static) {
    in_namespace(|| {
        ip("link add a0 type veth peer name b0");
        let directory = Directory::new();
        test(&directory.0, ifindex("a0"));
    });
}

/// All that may be changed about a0, as the tools of the host see it.
fn dump() -> String {
    let link = Netlink::open()
        .unwrap()
        .link_by_name("a0")
        .unwrap()
        .unwrap();
    [
        format!("up {} mtu {} address {}\n", link.up, link.mtu, link.address),
        run("ethtool -k a0"),
        run("ip address show dev a0 permanent"),
        run("sysctl -a --pattern net.*[.]a0[.]"),
        run("tc qdisc show dev a0"),
        run("tc filter show dev a0 ingress"),
    ]
    .concat()
    .replace("qdisc noqueue state", "qdisc noop state") // Once up, it is not "noop" again.
    .replace("qdisc noqueue 0: root refcnt 2 \n", "")
}

fn change_everything(state: &mut HostState, a0: u32) {
    assert!(state.set(a0, Setting::Gro, 1).unwrap());
    assert!(state.set(a0, Setting::Mtu, 4000).unwrap());
    assert!(state.set(a0, Setting::Up, 1).unwrap());
    assert!(state.set(a0, arp_ignore(), 1).unwrap());
    state.expect_clsact(a0).unwrap();
    let host = Host {
        ifindex: a0,
        address: MacAddr([2, 0, 0, 0, 0, 1]),
    };
    let link = MacAddr([2, 0, 0, 0, 0, 2]);
    std::mem::forget(Guard::attach(a0, link, host, Attachment::Clsact).unwrap());
    state.expect_root_qdisc(a0).unwrap();
    gap_qdisc::put(&mut state.netlink, a0, spacing()).unwrap();
}

fn spacing() -> Spacing {
    let line = Line {
        rate_bps: 1_000_000_000,
        mtu: 4000,
    };
    Spacing {
        gap: Some(line.charge(Gap::of_bytes(512).unwrap())),
        mtu: line.mtu,
        burst: std::time::Duration::ZERO,
        gso: Gso::Whole,
        queue_frames_max: 100,
    }
}

#[test]
fn what_was_changed_is_restored_and_the_file_goes() {
    with_link(|directory, a0| {
        let before = dump();
        let mut state = HostState::create(directory, "pt0").unwrap();
        change_everything(&mut state, a0);
        assert_ne!(dump(), before);
        let outcomes = state.restore().unwrap();
        assert_eq!(outcomes.len(), 6);
        assert!(
            outcomes
                .iter()
                .all(|(_, outcome)| *outcome == Outcome::Restored),
            "{outcomes:?}"
        );
        assert_eq!(dump(), before);
        assert!(!path(directory, "pt0").exists());
        assert_eq!(
            state.restore().unwrap(),
            [],
            "a second time there is nothing to do"
        );
    });
}

/// Run by the next test as a process of its own: changes everything, says so, and waits.
#[test]
fn the_one_that_is_killed() {
    let Some(directory) = std::env::var_os("PACKTRAIN_TEST_STATE_DIRECTORY") else {
        return;
    };
    let mut state = HostState::create(Path::new(&directory), "pt0").unwrap();
    change_everything(&mut state, ifindex("a0"));
    println!("\nchanged");
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn after_kill_9_the_next_one_undoes_it_and_not_before() {
    with_link(|directory, _| {
        let before = dump();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "linux::host_state::tests::the_one_that_is_killed",
                "--nocapture",
            ])
            .env("PACKTRAIN_TEST_STATE_DIRECTORY", directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        assert!(
            output.lines().any(|line| line.unwrap() == "changed"),
            "the child did not start"
        );
        let changed = dump();
        assert_ne!(changed, before);

        let owner = HostState::owner(directory, "pt0").unwrap().unwrap();
        assert_eq!(owner.pid, child.id());
        let recovery = HostState::recover(directory, "pt0").unwrap();
        assert_eq!(recovery, Recovery::Running { owner });
        let error = HostState::create(directory, "pt0").expect_err("it has an owner");
        assert!(matches!(error, HostStateError::Owned { .. }), "{error}");
        assert_eq!(dump(), changed, "nothing is taken from one that lives");

        child.kill().unwrap();
        child.wait().unwrap();
        let error = HostState::create(directory, "pt0").expect_err("it holds changes");
        assert!(
            matches!(error, HostStateError::NotRecovered { .. }),
            "{error}"
        );
        let Recovery::Undone { changes } = HostState::recover(directory, "pt0").unwrap() else {
            panic!("there was something to undo");
        };
        assert!(
            changes.iter().all(|(_, o)| *o == Outcome::Restored),
            "{changes:?}"
        );
        assert_eq!(dump(), before);
        assert_eq!(
            HostState::recover(directory, "pt0").unwrap(),
            Recovery::Nothing
        );
        HostState::create(directory, "pt0").unwrap();
    });
}

#[test]
fn an_interface_of_ours_is_deleted_by_its_name_and_address_and_one_of_others_is_left() {
    in_namespace(|| {
        let directory = Directory::new();
        let mut netlink = Netlink::open().unwrap();
        let ours = MacAddr([0x02, 0x71, 0, 0, 0, 1]);
        let mut state = HostState::create(&directory.0, "pt0").unwrap();
        state.expect_interface("ptq7", ours).unwrap();
        netlink.add_pair("ptq7", ours, "ptr7").unwrap();
        let expected = state.interfaces();
        assert_eq!(expected, [ours.to_string()]);
        let outcomes = state.delete_interface(&expected[0]).unwrap();
        assert_eq!(outcomes[0].1, Outcome::Restored);
        assert_eq!(netlink.link_by_name("ptr7").unwrap(), None);
        assert!(state.changes().is_empty());
        // One that has the name and not the address; and one that was never made.
        state.expect_interface("ptq7", ours).unwrap();
        ip("link add ptq7 type veth peer name other7");
        state.expect_interface("ptq8", ours).unwrap();
        let outcomes = state.restore().unwrap();
        assert!(
            outcomes.iter().all(|(_, o)| *o == Outcome::InterfaceGone),
            "{outcomes:?}"
        );
        assert!(netlink.link_by_name("ptq7").unwrap().is_some());
    });
}

#[test]
fn a_value_that_somebody_changed_since_is_theirs() {
    with_link(|directory, a0| {
        let mut state = HostState::create(directory, "pt0").unwrap();
        state.set(a0, Setting::Mtu, 4000).unwrap();
        state.set(a0, Setting::Up, 1).unwrap();
        ip("link set a0 mtu 1300");
        let outcomes = state.restore().unwrap();
        let what: Vec<_> = outcomes.into_iter().map(|(c, o)| (c.setting, o)).collect();
        let expected = [
            (Setting::Up, Outcome::Restored),
            (Setting::Mtu, Outcome::NotOurs { now: 1300 }),
        ];
        assert_eq!(what, expected);
        let link = Netlink::open().unwrap().link(a0).unwrap().unwrap();
        assert_eq!((link.mtu, link.up), (1300, false));
    });
}

#[test]
fn a_root_qdisc_that_somebody_has_put_in_the_place_of_ours_is_theirs() {
    with_link(|directory, a0| {
        let mut state = HostState::create(directory, "pt0").unwrap();
        state.expect_root_qdisc(a0).unwrap();
        gap_qdisc::put(&mut state.netlink, a0, spacing()).unwrap();
        run("tc qdisc del dev a0 root");
        run("tc qdisc add dev a0 root handle 7063: pfifo");
        let before = dump();
        assert_eq!(state.restore().unwrap()[0].1, Outcome::NotOurs { now: -1 });
        assert_eq!(dump(), before);
        // Written down, and never put there.
        let mut state = HostState::create(directory, "pt0").unwrap();
        run("tc qdisc del dev a0 root");
        state.expect_root_qdisc(a0).unwrap();
        assert_eq!(state.restore().unwrap()[0].1, Outcome::NotOurs { now: 0 });
    });
}

#[test]
fn a_value_that_is_right_already_is_not_ours_and_is_left_when_we_go() {
    with_link(|directory, a0| {
        ip("link set a0 up");
        let mut state = HostState::create(directory, "pt0").unwrap();
        assert!(!state.set(a0, Setting::Up, 1).unwrap());
        assert_eq!(state.changes(), []);
        state.restore().unwrap();
        assert!(Netlink::open().unwrap().link(a0).unwrap().unwrap().up);
    });
}

#[test]
fn it_is_written_down_before_it_is_done_and_crossed_out_when_it_cannot_be_done() {
    with_link(|directory, a0| {
        let mut state = HostState::create(directory, "pt0").unwrap();
        let error = state
            .set(a0, Setting::Mtu, 70_000)
            .expect_err("veth allows 65,535");
        let text = error.to_string();
        assert!(
            text.starts_with("cannot change the MTU of a0 to 70000: "),
            "{text}"
        );
        assert_eq!(state.changes(), []);

        // A directory in its place: nothing can be written down, so nothing is done.
        let journal = path(directory, "pt0");
        std::fs::remove_file(&journal).unwrap();
        std::fs::create_dir(&journal).unwrap();
        let error = state.set(a0, Setting::Up, 1).expect_err("no journal");
        assert!(matches!(error, HostStateError::Write { .. }), "{error}");
        assert!(!Netlink::open().unwrap().link(a0).unwrap().unwrap().up);
    });
}

#[test]
fn a_change_that_was_written_down_and_never_made_is_harmless() {
    with_link(|directory, a0| {
        let mut state = HostState::create(directory, "pt0").unwrap();
        let link = state.link(a0).unwrap();
        // As if killed between the two.
        state
            .record
            .changes
            .push(change(&link, Setting::Mtu, 1400, 4000));
        state.save().unwrap();
        let outcomes = state.restore().unwrap();
        assert_eq!(outcomes[0].1, Outcome::NotOurs { now: 1500 });
        assert_eq!(
            Netlink::open().unwrap().link(a0).unwrap().unwrap().mtu,
            1500
        );
    });
}

#[test]
fn a_value_changed_again_and_again_is_one_entry_and_goes_back_to_the_first() {
    with_link(|directory, a0| {
        let mut state = HostState::create(directory, "pt0").unwrap();
        for mtu in [4000, 3000, 2000] {
            state.set(a0, Setting::Mtu, mtu).unwrap();
        }
        assert_eq!(state.changes().len(), 1);
        assert_eq!(
            (state.changes()[0].before, state.changes()[0].ours),
            (1500, 2000)
        );
        // Killed while going on to 1000: the value is still 2000.
        let link = state.link(a0).unwrap();
        state
            .record
            .changes
            .push(change(&link, Setting::Mtu, 2000, 1000));
        state.save().unwrap();
        state.restore().unwrap();
        assert_eq!(
            Netlink::open().unwrap().link(a0).unwrap().unwrap().mtu,
            1500
        );

        state.set(a0, Setting::Mtu, 4000).unwrap();
        state.set(a0, Setting::Mtu, 1500).unwrap();
        assert_eq!(state.changes(), [], "back by ourselves is no change");
    });
}

#[test]
fn an_interface_that_leaves_is_restored_alone_and_one_that_was_renamed_is_still_it() {
    with_link(|directory, a0| {
        let b0 = ifindex("b0");
        let mut state = HostState::create(directory, "pt0").unwrap();
        for index in [a0, b0] {
            state.set(index, Setting::Mtu, 4000).unwrap();
        }
        ip("link set a0 name renamed");
        let outcomes = state.restore_interface(a0).unwrap();
        assert_eq!(outcomes.len(), 1);
        assert_eq!(outcomes[0].1, Outcome::Restored);
        let mtu = |index| Netlink::open().unwrap().link(index).unwrap().unwrap().mtu;
        assert_eq!((mtu(a0), mtu(b0)), (1500, 4000));
        assert_eq!(state.changes().len(), 1);
    });
}

#[test]
fn another_interface_with_the_same_index_is_not_touched() {
    with_link(|directory, a0| {
        let mut state = HostState::create(directory, "pt0").unwrap();
        state.set(a0, Setting::Mtu, 4000).unwrap();
        ip("link del a0");
        ip(&format!(
            "link add c0 index {a0} mtu 4000 type veth peer name d0"
        ));
        assert_eq!(state.restore().unwrap()[0].1, Outcome::InterfaceGone);
        assert_eq!(
            Netlink::open().unwrap().link(a0).unwrap().unwrap().mtu,
            4000
        );
    });
}

#[test]
fn a_journal_of_another_namespace_or_of_nobody_is_discarded() {
    let directory = Directory::new();
    let journal = path(&directory.0, "pt0");
    let there = directory.0.clone();
    in_namespace(move || {
        ip("link add a0 type veth peer name b0");
        let mut state = HostState::create(&there, "pt0").unwrap();
        state.set(ifindex("a0"), Setting::Mtu, 4000).unwrap();
    });
    let there = directory.0.clone();
    in_namespace(move || {
        let recovery = HostState::recover(&there, "pt0").unwrap();
        let reason = "it was written in another network namespace";
        assert_eq!(recovery, Recovery::Stale { reason });
    });
    assert!(!journal.exists());

    for text in ["", "{", "null", "{\"format\":1}", &"x".repeat(2 << 20)] {
        std::fs::create_dir_all(&directory.0).unwrap();
        std::fs::write(&journal, text).unwrap();
        let recovery = HostState::recover(&directory.0, "pt0").unwrap();
        assert!(matches!(recovery, Recovery::Stale { .. }), "{recovery:?}");
        assert!(!journal.exists());
    }
}

#[test]
fn the_file_is_readable_by_all_and_writable_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new();
    HostState::create(&directory.0, "pt0").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory.0), 0o755);
    assert_eq!(mode(&path(&directory.0, "pt0")), 0o644);
    let left: Vec<_> = std::fs::read_dir(&directory.0).unwrap().collect();
    assert_eq!(left.len(), 1, "no half-written file beside it");
}
