//! A hundred thousand frames, of each kind and cut at each byte: the program and the model say the same of each.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};

use packtrain_proto::filter::frame::{Endpoint, Protocol};
use packtrain_proto::filter::{Host, decide};
use packtrain_proto::random::Random;
use packtrain_proto::wire::ethernet::MacAddr;

use super::frames::{TCP, UDP, arp, frame, ipv4, ipv6, tagged};
use super::world::{ELSEWHERE, GATEWAY, OWN, OWN_IPV4, OWN_IPV6, World, groups_of, with_filter_in};
use super::*;

/// Of the default policy, by which all that is there is asked. Of the others a part is enough: it is the same program.
const FRAMES: usize = 100_000;
const FEWER_FRAMES: usize = 25_000;
const BATCH: usize = 500;
/// A program is run on no less: of an Ethernet header and a byte, where that is cut off for it.
pub(super) const LEN_MIN: usize = 15;

#[test]
fn by_the_paper_the_driver_says_what_the_model_says() {
    compare(Mode::Native, Policy::Nima, FEWER_FRAMES, 1);
}

#[test]
fn for_a_host_the_driver_says_what_the_model_says() {
    compare(Mode::Native, Policy::Host, FRAMES, 2);
}

#[test]
fn at_tc_the_program_says_what_the_model_says() {
    compare(Mode::Tc, Policy::Host, FEWER_FRAMES, 3);
}

fn compare(mode: Mode, policy: Policy, frames: usize, seed: u64) {
    // The paper's algorithm knows no ports.
    let asks_ports = policy == Policy::Host;
    with_filter_in(mode, move |world| {
        world.set(|set| {
            set.policy = policy;
            set.asks_ports = asks_ports;
        });
        let open = Open::new();
        let mut host = world.host();
        open.tell(&mut host);
        let makes = Generator::of(open.tcp_port(), open.udp_port());
        let mut random = Random::new(seed);
        let mut seen = BTreeMap::new();
        for _ in 0..frames / BATCH {
            let frames: Vec<_> = (0..BATCH)
                .map(|_| makes.one_for(mode, &mut random))
                .collect();
            let said = |bytes: &Vec<u8>| decide(bytes, false, &host, policy, asks_ports);
            for reason in compare_batch(world, &frames, said) {
                *seen.entry(reason).or_insert(0) += 1;
            }
        }
        // Nothing that is asserted is asserted of nothing.
        let mut asked = vec![
            Reason::Ours,
            Reason::Broadcast,
            Reason::ArpOurs,
            Reason::Group,
            Reason::Train,
            Reason::Short,
            Reason::ForeignUnicast,
            Reason::ForeignArp,
            Reason::ForeignGroup,
            Reason::ForeignSolicitation,
        ];
        if policy == Policy::Host {
            asked.extend([
                Reason::ArpNeighbour,
                Reason::LinkControl,
                Reason::ClosedTcp,
                Reason::ClosedUdp,
            ]);
        }
        for reason in asked {
            let times = seen.get(&reason).copied().unwrap_or(0);
            assert!(times >= 20, "{reason:?}: {times} of {frames}");
        }
    });
}

/// A program at tc is not run on IP that ends before its header does.
pub(super) fn make_whole(bytes: &mut Vec<u8>) {
    const HEADERS_MAX: usize = 14 + 40;
    if matches!(bytes[12..14], [0x08, 0x00] | [0x86, 0xdd]) && bytes.len() < HEADERS_MAX {
        bytes.resize(HEADERS_MAX, 0);
    }
}

/// Each verdict, and all counters of the batch; the reasons.
fn compare_batch(
    world: &World,
    frames: &[Vec<u8>],
    said: impl Fn(&Vec<u8>) -> Reason,
) -> Vec<Reason> {
    let before = world.filter.counters().unwrap();
    let mut expected = before.clone();
    let reasons: Vec<Reason> = frames.iter().map(said).collect();
    for (bytes, reason) in frames.iter().zip(&reasons) {
        assert_eq!(
            world.passes(bytes),
            !reason.is_drop(),
            "{reason:?}: {bytes:02x?}"
        );
        let count = &mut expected.0[*reason as usize];
        count.frames += 1;
        count.bytes += bytes.len() as u64;
    }
    if world.filter.counters().unwrap() != expected {
        for (bytes, reason) in frames.iter().zip(&reasons) {
            assert_eq!(world.reason(bytes), *reason, "{bytes:02x?}");
        }
        panic!("the counters of a batch differ, and those of no frame of it");
    }
    reasons
}

/// A listener and a socket, on all addresses.
struct Open(TcpListener, UdpSocket);

impl Open {
    fn new() -> Open {
        let any = (Ipv6Addr::UNSPECIFIED, 0);
        Open(
            TcpListener::bind(any).unwrap(),
            UdpSocket::bind(any).unwrap(),
        )
    }

    fn tcp_port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    fn udp_port(&self) -> u16 {
        self.1.local_addr().unwrap().port()
    }

    fn tell(&self, host: &mut Host) {
        for address in &host.interface.addresses {
            for (protocol, port) in [
                (Protocol::Tcp, self.tcp_port()),
                (Protocol::Udp, self.udp_port()),
            ] {
                host.open.insert(Endpoint {
                    protocol,
                    address: *address,
                    port,
                });
            }
        }
    }
}

pub(super) struct Generator {
    groups: Vec<MacAddr>,
    tcp: u16,
    udp: u16,
}

impl Generator {
    pub(super) fn of(tcp: u16, udp: u16) -> Generator {
        Generator {
            groups: groups_of("eth0"),
            tcp,
            udp,
        }
    }

    /// As whole as the program wants it there.
    pub(super) fn one_for(&self, mode: Mode, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.one(random);
        if mode == Mode::Tc {
            make_whole(&mut bytes);
        }
        bytes
    }

    fn one(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.whole(random);
        for protocol in [0x8100, 0x88a8, 0x8100] {
            if random.up_to(9) == 0 {
                bytes = tagged(&bytes, protocol, random.up_to(4095) as u16);
            }
        }
        // A third of them cut, and some with a byte that is another one.
        if random.up_to(2) == 0 {
            bytes.truncate(random.up_to(bytes.len() as u64) as usize);
        }
        if bytes.len() < LEN_MIN {
            bytes.resize(LEN_MIN, 0);
        }
        if random.up_to(4) == 0 {
            let at = random.up_to(bytes.len() as u64 - 1) as usize;
            bytes[at] = random.up_to(255) as u8;
        }
        bytes
    }

    fn whole(&self, random: &mut Random) -> Vec<u8> {
        let destination = self.destination(random);
        match random.up_to(5) {
            0 => {
                let operation = 1 + random.up_to(1) as u8;
                arp(operation, an_ipv4(random), an_ipv4(random))
            }
            1 | 2 => ipv4(
                destination,
                an_ipv4(random),
                an_ipv4(random),
                a_protocol(random),
                self.port(random),
            ),
            3 => ipv6(
                destination,
                an_ipv6(random),
                an_ipv6(random),
                a_protocol(random),
                self.port(random),
            ),
            4 => {
                let types = [
                    0x88b5, 0x88cc, 0x0806, 0x0026, 0x8137, 0x0800, 0x86dd, 0x9000,
                ];
                let payload = vec![random.up_to(255) as u8; random.up_to(80) as usize];
                frame(destination, pick(random, &types), &payload)
            }
            _ => {
                let mut bytes = ipv4(
                    destination,
                    an_ipv4(random),
                    OWN_IPV4,
                    UDP,
                    self.port(random),
                );
                // Fragments, options.
                match random.up_to(2) {
                    0 => bytes[20] |= 0x20,
                    1 => bytes[21] = 5,
                    _ => bytes[14] = 0x46,
                }
                bytes
            }
        }
    }

    fn destination(&self, random: &mut Random) -> MacAddr {
        match random.up_to(7) {
            0..=2 => OWN,
            3 => MacAddr::BROADCAST,
            4 => pick(random, &self.groups),
            // Beside ours in one byte: the last, or the first.
            5 => MacAddr([0x52, 0x54, 0, 0, 0, random.up_to(255) as u8]),
            6 => {
                let last = random.up_to(0x3f) as u8;
                let groups = [
                    MacAddr([0x01, 0x80, 0xc2, 0, 0, last]),
                    MacAddr([0x01, 0x1b, 0x19, 0, 0, last & 1]),
                    MacAddr([0x01, 0x00, 0x5e, 1, 2, 3]),
                    MacAddr([0x33, 0x33, 0xff, 0, 0, last]),
                    MacAddr([0x33, 0x33, 0, 0, 0, last]),
                    MacAddr::HELLO,
                ];
                pick(random, &groups)
            }
            _ => MacAddr([random.up_to(255) as u8, 0x54, 0, 0, 0, 1]),
        }
    }

    fn port(&self, random: &mut Random) -> u16 {
        pick(random, &[self.tcp, self.udp, 9, 53])
    }
}

fn pick<T: Copy>(random: &mut Random, among: &[T]) -> T {
    among[random.up_to(among.len() as u64 - 1) as usize]
}

fn a_protocol(random: &mut Random) -> u8 {
    pick(random, &[TCP, UDP, TCP, UDP, 1, 47, 58])
}

fn an_ipv4(random: &mut Random) -> Ipv4Addr {
    let other = Ipv4Addr::new(10, 1, 0, random.up_to(255) as u8);
    let loopback = Ipv4Addr::new(127, 0, 0, 9);
    pick(
        random,
        &[
            OWN_IPV4, OWN_IPV4, GATEWAY, ELSEWHERE, other, other, loopback,
        ],
    )
}

fn an_ipv6(random: &mut Random) -> Ipv6Addr {
    let IpAddr::V6(own) = OWN_IPV6.parse().unwrap() else {
        unreachable!("it is one")
    };
    pick(
        random,
        &[
            own,
            own,
            "fd00:1::2".parse().unwrap(),
            "ff02::1".parse().unwrap(),
        ],
    )
}
