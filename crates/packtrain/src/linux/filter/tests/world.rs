//! An interface in a namespace of its own, a filter on it, and what the model has to know of both.

use std::net::{IpAddr, Ipv4Addr};

use packtrain_proto::filter::{Host, Interface};
use packtrain_proto::wire::ethernet::MacAddr;

use super::*;
use crate::linux::netlink::Netlink;
use crate::linux::test_namespace::{self, in_namespace, ip, run};

pub(super) const OWN: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
pub(super) const SECOND: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 0x51]);
pub(super) const GATEWAY_MAC: MacAddr = MacAddr([0x00, 0x1b, 0x21, 9, 9, 9]);
pub(super) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 254);
pub(super) const OWN_IPV4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
/// On `lo`: any interface answers for it.
pub(super) const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
pub(super) const OWN_IPV6: &str = "fd00:1::1";

/// `eth0`, whose other end is another host's.
pub(super) struct World {
    pub(super) filter: Filter,
    pub(super) ifindex: u32,
    pub(super) mode: Mode,
    /// It has the other end of the cable, `far`.
    pub(super) peer: test_namespace::Host,
}

/// Runs the test with a filter in the driver of `eth0`.
pub(super) fn with_filter(test: impl FnOnce(&mut World) + Send + 'static) {
    with_filter_in(Mode::Native, test);
}

pub(super) fn with_filter_in(mode: Mode, test: impl FnOnce(&mut World) + Send + 'static) {
    in_namespace(move || test(&mut World::new(mode)));
}

impl World {
    fn new(mode: Mode) -> World {
        let peer = test_namespace::Host::new();
        ip(&format!(
            "link add eth0 address {OWN} type veth peer name far"
        ));
        peer.take("far");
        // It has nothing to say itself, which would be counted.
        peer.run("sysctl -q -w net.ipv6.conf.far.disable_ipv6=1");
        peer.run("ip link set far up");
        ip("link set eth0 up");
        ip(&format!("address add {OWN_IPV4}/24 dev eth0"));
        ip(&format!("address add {OWN_IPV6}/64 dev eth0 nodad"));
        ip(&format!("address add {ELSEWHERE}/32 dev lo"));
        ip(&format!(
            "neighbour add {GATEWAY} lladdr {GATEWAY_MAC} dev eth0"
        ));
        let ifindex = Netlink::open()
            .and_then(|mut netlink| netlink.link_by_name("eth0"))
            .expect("netlink works")
            .expect("eth0 is there")
            .ifindex;
        let mut filter = Filter::load().expect("the programs load");
        filter
            .set(Settings {
                policy: Policy::Host,
                ..Settings::default()
            })
            .unwrap();
        filter.attach(ifindex, mode).expect("it attaches");
        let mut world = World {
            filter,
            ifindex,
            mode,
            peer,
        };
        world.follow_routes();
        world
    }

    /// Tells the filter of all local addresses.
    pub(super) fn follow_routes(&mut self) {
        let seq = self
            .filter
            .fib_seq()
            .unwrap()
            .expect("routes have a state here");
        let prefixes = local_prefixes();
        assert_eq!(self.filter.set_local(&prefixes, seq).unwrap(), 0);
    }

    pub(super) fn set(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.filter.settings();
        change(&mut settings);
        self.filter.set(settings).unwrap();
    }

    /// Whether the frame passes.
    pub(super) fn passes(&self, bytes: &[u8]) -> bool {
        self.passes_in_segments(bytes, 0)
    }

    /// The same, at tc: one that was put together from so many.
    pub(super) fn passes_in_segments(&self, bytes: &[u8], segments: u32) -> bool {
        let context = match self.mode {
            Mode::Tc => skb_context(self.ifindex, segments),
            Mode::Native | Mode::Generic => xdp_context(self.ifindex, bytes.len()),
        };
        run_once(&self.filter, self.mode, bytes, context).expect("a test run")
    }

    /// Why the frame passes or not, as it was counted; and it was counted once.
    pub(super) fn reason(&self, bytes: &[u8]) -> Reason {
        let before = self.filter.counters().unwrap();
        let passes = self.passes(bytes);
        let after = self.filter.counters().unwrap();
        let counted: Vec<_> = after
            .iter()
            .zip(before.iter())
            .filter(|(after, before)| after.1 != before.1)
            .collect();
        let [((reason, after), (_, before))] = counted[..] else {
            panic!("counted {counted:?}");
        };
        assert_eq!(after.frames - before.frames, 1);
        assert_eq!(after.bytes - before.bytes, bytes.len() as u64, "{reason:?}");
        assert_eq!(passes, !reason.is_drop(), "{reason:?}");
        reason
    }

    /// Why it passes or not once what was closed is closed: a process that another test is about to start holds
    /// all descriptors that there are until it runs its program.
    #[allow(clippy::disallowed_methods)] // another process's time is real
    pub(super) fn reason_in_the_end(&self, bytes: &[u8], expected: Reason) -> Reason {
        for _ in 0..1000 {
            if self.reason(bytes) == expected {
                return expected;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        self.reason(bytes)
    }

    /// What the model has to know, from `ip`'s words.
    pub(super) fn host(&self) -> Host {
        Host {
            interface: Interface {
                unicast: vec![OWN],
                groups: groups_of("eth0"),
                addresses: addresses_of("eth0"),
                neighbours: vec![GATEWAY],
                ..Interface::default()
            },
            local: local_prefixes()
                .iter()
                .map(|prefix| {
                    format!("{}/{}", prefix.address, prefix.len)
                        .parse()
                        .unwrap()
                })
                .collect(),
            ..Host::default()
        }
    }
}

/// Whether a frame passes that comes in as the context says.
pub(super) fn run_once(
    filter: &Filter,
    mode: Mode,
    bytes: &[u8],
    mut context: Vec<u8>,
) -> libbpf_rs::Result<bool> {
    let (object, name, pass) = match mode {
        Mode::Tc => (filter.object_at_tc.as_ref(), TC_PROGRAM, u32::MAX),
        Mode::Native | Mode::Generic => (Some(&filter.object), DRIVER_PROGRAM, 2),
    };
    let object = object.expect("it is loaded");
    let program = object.progs_mut().find(|p| p.name() == name);
    let input = ProgramInput {
        data_in: Some(bytes),
        context_in: Some(&mut context),
        ..ProgramInput::default()
    };
    let output = program.expect("our own program").test_run(input)?;
    Ok(output.return_value == pass)
}

/// `struct xdp_md`: data, its end, metadata, ingress interface, receive queue, egress interface. `len`: of what is in one
/// piece.
pub(super) fn xdp_context(ifindex: u32, len: usize) -> Vec<u8> {
    let words = [0, len as u32, 0, ifindex, 0, 0];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `struct __sk_buff`, of which only this is said.
fn skb_context(ifindex: u32, segments: u32) -> Vec<u8> {
    const IFINDEX: usize = 40;
    const GSO_SEGS: usize = 164;
    let mut context = vec![0; 192];
    for (at, word) in [(IFINDEX, ifindex), (GSO_SEGS, segments)] {
        context[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    context
}

/// The Ethernet addresses in `ip maddress`: "link  33:33:00:00:00:01 users 2".
pub(super) fn groups_of(interface: &str) -> Vec<MacAddr> {
    let words = run(&format!("ip maddress show dev {interface}"));
    let lines = words
        .lines()
        .filter_map(|line| line.trim().strip_prefix("link"));
    lines
        .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
        .collect()
}

fn addresses_of(interface: &str) -> Vec<IpAddr> {
    let words = run(&format!("ip -o address show dev {interface}"));
    let after = |line: &str, word: &str| -> Option<IpAddr> {
        let (_, rest) = line.split_once(word)?;
        rest.split('/').next()?.trim().parse().ok()
    };
    words
        .lines()
        .filter_map(|line| after(line, " inet ").or_else(|| after(line, " inet6 ")))
        .collect()
}

/// "local 10.1.0.1 dev eth0 …", "local 127.0.0.0/8 dev lo …"
pub(super) fn local_prefixes() -> Vec<LocalPrefix> {
    let words = run("ip -4 route show table all type local");
    words
        .lines()
        .map(|line| {
            let prefix = line.split_whitespace().nth(1).expect("local PREFIX");
            let (address, len) = prefix.split_once('/').unwrap_or((prefix, "32"));
            LocalPrefix {
                address: address.parse().expect("an address"),
                len: len.parse().expect("a length"),
            }
        })
        .collect()
}
