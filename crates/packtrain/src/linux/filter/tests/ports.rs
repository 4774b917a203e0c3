//! `--ports auto`: a port is closed where no socket has it, whatever else the kernel's lists hold.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType};

use super::frames::{TCP, UDP, ipv4};
use super::world::{GATEWAY, OWN, OWN_IPV4, with_filter};
use super::*;
use crate::linux::sys::check;
use crate::linux::test_namespace::run;

/// From which all frames here are sent.
const SOURCE_PORT: u16 = 40_000;

#[test]
fn a_port_is_open_from_the_moment_that_a_socket_has_it() {
    with_filter(|world| {
        world.set(|set| set.asks_ports = true);
        for (protocol, closed) in [(TCP, Reason::ClosedTcp), (UDP, Reason::ClosedUdp)] {
            let bytes = ipv4(OWN, GATEWAY, OWN_IPV4, protocol, 7777);
            assert_eq!(world.reason(&bytes), closed);
            let on = |address: &str| match protocol {
                TCP => Box::new(TcpListener::bind(address).unwrap()) as Box<dyn std::any::Any>,
                _ => Box::new(UdpSocket::bind(address).unwrap()),
            };
            for address in ["10.1.0.1:7777", "0.0.0.0:7777", "[::]:7777"] {
                let socket = on(address);
                assert_eq!(world.reason(&bytes), Reason::Ours, "{address}");
                drop(socket);
                assert_eq!(world.reason_in_the_end(&bytes, closed), closed, "{address}");
            }
            // Of another address, and of another kind.
            let socket = on("127.0.0.1:7777");
            assert_eq!(world.reason(&bytes), closed);
            drop(socket);
        }
        // Not for an address of the interface's: it may be routed.
        let elsewhere = ipv4(OWN, GATEWAY, Ipv4Addr::new(10, 2, 0, 1), UDP, 7777);
        assert_eq!(world.reason(&elsewhere), Reason::Ours);
        world.set(|set| set.asks_ports = false);
        let bytes = ipv4(OWN, GATEWAY, OWN_IPV4, TCP, 7777);
        assert_eq!(world.reason(&bytes), Reason::Ours);
    });
}

#[test]
fn where_rules_may_redirect_what_comes_no_port_is_closed() {
    with_filter(|world| {
        world.set(|set| set.asks_ports = true);
        let bytes = ipv4(OWN, GATEWAY, OWN_IPV4, TCP, 7777);
        assert_eq!(world.reason(&bytes), Reason::ClosedTcp);
        run("nft add table inet t");
        assert_eq!(world.reason(&bytes), Reason::ClosedTcp);
        // A firewall that only looks at what is delivered redirects nothing, nor does tracking connections.
        run("nft add chain inet t i { type filter hook input priority 0 ; }");
        run("nft add rule inet t i ct state established accept");
        assert_eq!(world.reason(&bytes), Reason::ClosedTcp);
        run("nft add chain inet t n { type nat hook prerouting priority -100 ; }");
        assert_eq!(world.reason(&bytes), Reason::Redirected);
        run("nft delete chain inet t n");
        assert_eq!(world.reason(&bytes), Reason::ClosedTcp);
        run("nft add chain inet t m { type filter hook prerouting priority -150 ; }");
        assert_eq!(world.reason(&bytes), Reason::Redirected);
        run("nft flush ruleset");
        assert_eq!(world.reason(&bytes), Reason::ClosedTcp);
    });
}

/// The lists have fewer places than there are ports, so that several share one: with so many between them all do.
#[test]
fn a_port_whose_list_is_others_too_is_open_for_its_own_socket_alone() {
    const STEP: u16 = 256;
    with_filter(|world| {
        world.set(|set| set.asks_ports = true);
        let ports = (1024 + 77..=u16::MAX - STEP).step_by(STEP.into());
        let of = |protocol, port| ipv4(OWN, GATEWAY, OWN_IPV4, protocol, port);
        let (own, others) = (1024 + 77, ports.clone().skip(1));
        assert_eq!(world.reason(&of(UDP, own)), Reason::ClosedUdp);
        let sockets: Vec<UdpSocket> = others
            .clone()
            .map(|port| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap())
            .collect();
        assert_eq!(world.reason(&of(UDP, own)), Reason::ClosedUdp);
        for port in others {
            assert_eq!(world.reason(&of(UDP, port)), Reason::Ours, "{port}");
            assert_eq!(world.reason(&of(TCP, port)), Reason::ClosedTcp, "{port}");
        }
        let socket = UdpSocket::bind((OWN_IPV4, own)).unwrap();
        assert_eq!(world.reason(&of(UDP, own)), Reason::Ours);
        drop((socket, sockets));
        let closed = Reason::ClosedUdp;
        assert_eq!(world.reason_in_the_end(&of(UDP, own), closed), closed);
    });
}

/// A socket of this host's own that is connected to this port of its own, from where the frames here come.
fn connected(port: u16) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(OWN_IPV4, SOURCE_PORT)).unwrap();
    rustix::net::connect(&socket, &SocketAddrV4::new(OWN_IPV4, port)).unwrap();
    socket.into()
}

#[test]
fn what_is_of_a_connection_passes_without_a_listener_and_when_that_is_closing() {
    with_filter(|world| {
        world.set(|set| set.asks_ports = true);
        const PORT: u16 = 7780;
        let of_it = ipv4(OWN, OWN_IPV4, OWN_IPV4, TCP, PORT);
        let of_others = ipv4(OWN, GATEWAY, OWN_IPV4, TCP, PORT);
        let listener = TcpListener::bind((OWN_IPV4, PORT)).unwrap();
        let client = connected(PORT);
        let (server, _) = listener.accept().unwrap();
        assert_eq!(world.reason(&of_others), Reason::Ours);
        drop(listener);
        let closed = Reason::ClosedTcp;
        assert_eq!(world.reason_in_the_end(&of_others, closed), closed);
        assert_eq!(world.reason(&of_it), Reason::Ours);
        // Who closes first remembers it for a minute (TIME_WAIT).
        drop(server);
        drop(client);
        assert_eq!(world.reason(&of_it), Reason::Ours);
        assert_eq!(world.reason(&of_others), Reason::ClosedTcp);
    });
}

/// A program of `BPF_SK_LOOKUP` that gives all that comes for this namespace to one socket, whatever its port.
struct Giver {
    #[expect(dead_code, reason = "held")]
    held: [OwnedFd; 3],
}

impl Giver {
    fn to(socket: &UdpSocket) -> Giver {
        let created = |fd: i32| {
            // SAFETY: a descriptor that the kernel has just returned, owned here alone.
            unsafe { OwnedFd::from_raw_fd(check(fd).expect("the kernel has BPF_SK_LOOKUP")) }
        };
        // SAFETY: without a name and options there are no pointers.
        let map = created(unsafe {
            libbpf_sys::bpf_map_create(
                libbpf_sys::BPF_MAP_TYPE_SOCKMAP,
                std::ptr::null(),
                4,
                8,
                1,
                std::ptr::null(),
            )
        });
        let (key, value) = (0_u32, socket.as_raw_fd() as u64);
        // SAFETY: key and value have the four and eight bytes that the map was made for.
        let added = unsafe {
            libbpf_sys::bpf_map_update_elem(
                map.as_raw_fd(),
                (&raw const key).cast(),
                (&raw const value).cast(),
                0,
            )
        };
        check(added).unwrap();
        let program = assembled(map.as_raw_fd());
        let mut options = libbpf_sys::bpf_prog_load_opts {
            sz: size_of::<libbpf_sys::bpf_prog_load_opts>() as libbpf_sys::size_t,
            expected_attach_type: libbpf_sys::BPF_SK_LOOKUP,
            ..Default::default()
        };
        // SAFETY: the strings end with a zero, and the instructions are as many as is said.
        let program = created(unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_SK_LOOKUP,
                c"give".as_ptr(),
                c"GPL".as_ptr(),
                program.as_ptr().cast(),
                program.len() as libbpf_sys::size_t,
                &raw mut options,
            )
        });
        let namespace = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
        // SAFETY: without options there are no pointers.
        let link = created(unsafe {
            libbpf_sys::bpf_link_create(
                program.as_raw_fd(),
                namespace.as_raw_fd(),
                libbpf_sys::BPF_SK_LOOKUP,
                std::ptr::null(),
            )
        });
        Giver {
            held: [map, program, link],
        }
    }
}

/// `sk = map[0]; if (sk) { bpf_sk_assign(ctx, sk, 0); bpf_sk_release(sk); } return SK_PASS;`
fn assembled(map: i32) -> [u64; 17] {
    const LOOKUP: i32 = 1;
    const RELEASE: i32 = 86;
    const ASSIGN: i32 = 124;
    let of = |code: u8, to: u8, from: u8, offset: i16, number: i32| {
        u64::from(code)
            | u64::from(to | from << 4) << 8
            | u64::from(offset as u16) << 16
            | u64::from(number as u32) << 32
    };
    let call = |helper| of(0x85, 0, 0, 0, helper);
    let copy = |to, from| of(0xbf, to, from, 0, 0);
    let set = |to, number| of(0xb7, to, 0, 0, number);
    [
        copy(6, 1),
        of(0x62, 10, 0, -4, 0),
        copy(2, 10),
        of(0x07, 2, 0, 0, -4),
        of(0x18, 1, 1, 0, map),
        0,
        call(LOOKUP),
        of(0x15, 0, 0, 7, 0),
        copy(7, 0),
        copy(1, 6),
        copy(2, 7),
        set(3, 0),
        call(ASSIGN),
        copy(1, 7),
        call(RELEASE),
        set(0, 1),
        of(0x95, 0, 0, 0, 0),
    ]
}

#[test]
fn where_a_program_gives_frames_to_sockets_it_is_asked() {
    with_filter(|world| {
        world.set(|set| set.asks_ports = true);
        let bytes = ipv4(OWN, GATEWAY, OWN_IPV4, UDP, 7790);
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 7791)).unwrap();
        assert_eq!(world.reason(&bytes), Reason::ClosedUdp);
        let giver = Giver::to(&socket);
        assert_eq!(world.reason(&bytes), Reason::Ours);
        drop(giver);
        let closed = Reason::ClosedUdp;
        assert_eq!(world.reason_in_the_end(&bytes, closed), closed);
    });
}
