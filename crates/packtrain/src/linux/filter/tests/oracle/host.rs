//! A host without a filter: one interface whose cable we hold, with addresses, groups, neighbours, sockets and settings that a
//! seed chooses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::{fs, io};

use packtrain_proto::random::Random;
use packtrain_proto::wire::ethernet::MacAddr;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, ipproto, socket_with};

use super::effects::{FOR_GROUPS, OPEN_ANSWER, Socket, Watch};
use super::packets::{self, ACK, OSPF, SYN, TCP};
use crate::linux::af_packet;
use crate::linux::sys::set_option;
use crate::linux::tap::Tap;
use crate::linux::test_namespace::{ip, run};

pub(super) const OWN: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
/// Another one that some hosts take.
pub(super) const SECOND: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 2]);

pub(super) const OWN_IPV4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub(super) const OWN_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 1);
/// Whom it has a connection with.
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 20);
pub(super) const PEER_MAC: MacAddr = MacAddr([0x52, 0x54, 0, 1, 0, 20]);

/// As the kernel makes it of the Ethernet address.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0xff, 0xfe00, 1);

pub(super) const OPEN_PORT: u16 = 7000;
/// Of a socket that hears one peer.
pub(super) const CONNECTED_PORT: u16 = 7001;
pub(super) const PEER_PORT: u16 = 9000;

pub(super) const CAPTURE: &str = "a packet socket for all";

pub(super) struct Host {
    pub(super) watch: Watch,
    /// How it differs from others.
    pub(super) settings: Vec<String>,
    pub(super) asks_ports: bool,
    _held: Vec<OwnedFd>,
}

/// As the seed says; what it has chosen is kept in words.
struct Builder<'a> {
    random: &'a mut Random,
    settings: Vec<String>,
}

impl Builder<'_> {
    /// True once in so many times.
    fn once_in(&mut self, times: u64, what: &str) -> bool {
        let is_so = self.random.up_to(times - 1) == 0;
        if is_so {
            self.settings.push(what.into());
        }
        is_so
    }

    /// `net.ipv4.NAME` and its like, with dots as slashes.
    fn set(&mut self, name: &str, value: u64) {
        set(name, value);
        self.settings.push(format!("{name}={value}"));
    }

    /// One of these values, of which the first is the kernel's own.
    fn choose(&mut self, name: &str, values: &[u64]) {
        // Most settings of most hosts are as they were.
        let at = match self.random.up_to(2) {
            0 => self.random.up_to(values.len() as u64 - 1) as usize,
            _ => 0,
        };
        if at > 0 {
            self.set(name, values[at]);
        }
    }
}

/// Of the thread's namespace. Older kernels lack some.
fn set(name: &str, value: u64) {
    let path = format!("/proc/sys/net/{name}");
    match fs::write(&path, value.to_string()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("{path}: {error}"),
        _ => {}
    }
}

/// Nothing is sent by itself, or late, or less often than it is asked for; so that what comes of a frame is seen at once, and
/// nothing else is.
fn be_quiet() {
    const HOUR_MS: u64 = 3_600_000;
    for version in ["ipv4", "ipv6"] {
        let neighbours = format!("{version}/neigh/eth0");
        set(&format!("{neighbours}/retrans_time_ms"), HOUR_MS);
        set(&format!("{neighbours}/base_reachable_time_ms"), HOUR_MS);
        set(&format!("{neighbours}/delay_first_probe_time"), 3600);
        set(&format!("{neighbours}/gc_stale_time"), 3600);
        set(&format!("{neighbours}/proxy_delay"), 0);
        set(&format!("{neighbours}/anycast_delay"), 0);
        // A second address counts at once.
        if version == "ipv4" {
            set(&format!("{neighbours}/locktime"), 0);
        }
    }
    set("ipv4/icmp_ratelimit", 0);
    set("ipv4/icmp_msgs_per_sec", 1_000_000);
    set("ipv4/icmp_msgs_burst", 1_000_000);
    set("ipv6/icmp/ratelimit", 0);
    set("ipv4/igmp_qrv", 1);
    set("ipv4/tcp_synack_retries", 0);
    set("ipv4/tcp_syncookies", 0);
    set("ipv4/tcp_invalid_ratelimit", 0);
    set("ipv4/tcp_challenge_ack_limit", 1_000_000_000);
    set("ipv6/conf/eth0/router_solicitations", 0);
    for interface in ["all", "eth0"] {
        set(&format!("ipv6/conf/{interface}/accept_dad"), 0);
    }
}

impl Host {
    pub(super) fn new(random: &mut Random) -> Host {
        let mut builder = Builder {
            random,
            settings: Vec::new(),
        };
        let tap = Tap::create("eth0", OWN).unwrap();
        be_quiet();
        builder.change_settings();
        ip("link set eth0 up");
        builder.give_addresses();
        builder.give_neighbours();
        builder.change_interface();
        let asks_ports = builder.once_in(2, "--ports auto");
        let mut held = Vec::new();
        let mut sockets = open_sockets(&mut held);
        builder.listen_for_types(tap.ifindex(), &mut sockets);
        let settings = builder.settings;
        let mut watch = Watch::new(tap, sockets);
        let connection = connect(&mut watch);
        watch.add("a TCP connection", connection);
        watch.forget();
        Host {
            watch,
            settings,
            asks_ports,
            _held: held,
        }
    }
}

impl Builder<'_> {
    fn change_settings(&mut self) {
        if self.once_in(3, "a router") {
            self.set("ipv4/conf/eth0/forwarding", 1);
            self.set("ipv6/conf/eth0/forwarding", 1);
        }
        self.choose("ipv4/conf/eth0/arp_accept", &[0, 1, 2]);
        self.choose("ipv4/conf/eth0/drop_gratuitous_arp", &[0, 1]);
        self.choose("ipv4/conf/eth0/arp_ignore", &[0, 1, 2]);
        self.choose("ipv4/conf/eth0/arp_filter", &[0, 1]);
        self.choose("ipv4/conf/eth0/proxy_arp", &[0, 1]);
        self.choose("ipv4/conf/all/proxy_arp", &[0, 1]);
        self.choose("ipv4/conf/eth0/proxy_arp_pvlan", &[0, 1]);
        self.choose("ipv4/conf/eth0/rp_filter", &[0, 1, 2]);
        self.choose("ipv4/conf/eth0/accept_local", &[0, 1]);
        self.choose("ipv4/conf/eth0/route_localnet", &[0, 1]);
        self.choose("ipv4/conf/eth0/drop_unicast_in_l2_multicast", &[0, 1]);
        self.choose("ipv4/icmp_echo_ignore_broadcasts", &[1, 0]);
        self.choose("ipv6/conf/eth0/accept_untracked_na", &[0, 1, 2]);
        self.choose("ipv6/conf/eth0/drop_unsolicited_na", &[0, 1]);
        self.choose("ipv6/conf/eth0/drop_unicast_in_l2_multicast", &[0, 1]);
        self.choose("ipv6/conf/eth0/proxy_ndp", &[0, 1]);
        self.choose("ipv6/conf/eth0/accept_ra", &[1, 2, 0]);
        self.choose("ipv4/conf/eth0/force_igmp_version", &[0, 2, 1]);
        self.choose("ipv6/conf/eth0/force_mld_version", &[0, 1]);
    }

    fn give_addresses(&mut self) {
        ip(&format!("address add {OWN_IPV4}/24 dev eth0"));
        ip("address add 10.1.0.3/24 dev eth0");
        ip("address add 192.0.2.7/32 dev lo");
        ip(&format!("address add {OWN_IPV6}/64 dev eth0 nodad"));
        if self.once_in(2, "another network") {
            ip("address add 10.2.0.1/24 dev eth0");
            ip("address add fd00:2::1/64 dev eth0 nodad");
        }
        if self.once_in(3, "a peer's address") {
            ip("address add 10.9.0.1 peer 10.9.0.2/32 dev eth0");
        }
        if self.once_in(3, "a local prefix") {
            ip("route add local 198.51.100.0/24 dev lo");
        }
        // Where a proxy has a way to go on.
        if self.once_in(2, "another interface") {
            ip("link add eth1 type veth peer name far1");
            ip("link set eth1 up");
            ip("link set far1 up");
            ip("address add 10.3.0.1/24 dev eth1");
            ip("address add fd00:3::1/64 dev eth1 nodad");
            ip("route add default via 10.3.0.254 dev eth1");
            if self.once_in(2, "proxied neighbours") {
                ip("neighbour add proxy 10.1.0.200 dev eth0");
                ip("neighbour add proxy 10.3.0.9 dev eth0");
                ip("neighbour add proxy fd00:3::9 dev eth0");
            }
        }
    }

    fn give_neighbours(&mut self) {
        let neighbours = [
            ("10.1.0.254", "permanent"),
            ("10.1.0.20", "permanent"),
            ("10.1.0.21", "reachable"),
            ("10.1.0.22", "stale"),
            ("10.1.0.23", "stale"),
            ("fd00:1::254", "permanent"),
            ("fd00:1::20", "reachable"),
            ("fd00:1::21", "stale"),
            ("fe80::5054:ff:fe01:16", "stale"),
        ];
        for (address, state) in neighbours {
            let mac = mac_of(address.parse().unwrap());
            ip(&format!(
                "neighbour add {address} lladdr {mac} dev eth0 nud {state}"
            ));
        }
        if self.once_in(2, "neighbours that do not answer") {
            ip("neighbour add 10.1.0.30 dev eth0 nud failed");
            ip("neighbour add fd00:1::30 dev eth0 nud failed");
        }
    }

    fn change_interface(&mut self) {
        ip("maddress add 01:00:5e:00:00:77 dev eth0");
        if self.once_in(4, "another Ethernet address") {
            run(&format!("bridge fdb add {SECOND} dev eth0 self"));
        }
        if self.once_in(10, "all groups") {
            ip("link set eth0 allmulticast on");
        }
        if self.once_in(12, "promiscuous") {
            ip("link set eth0 promisc on");
        }
        if self.once_in(6, "a chain before routing") {
            run("nft add table inet t");
            run("nft add chain inet t n { type filter hook prerouting priority -100 ; }");
        }
    }

    fn listen_for_types(&mut self, ifindex: u32, sockets: &mut Vec<(&'static str, Socket)>) {
        let types = [
            ("a packet socket for ARP", 0x0806, 6),
            ("a packet socket for IPv4", 0x0800, 10),
            ("a packet socket for IPv6", 0x86dd, 10),
            ("a packet socket for LLDP", 0x88cc, 4),
            ("a packet socket for EtherCAT", 0x88a4, 4),
            ("a packet socket for 802.2", libc::ETH_P_802_2 as u16, 4),
            ("a packet socket for 802.3", libc::ETH_P_802_3 as u16, 6),
            ("a packet socket for VLAN tags", 0x8100, 6),
            ("a packet socket for QinQ tags", 0x88a8, 6),
            (CAPTURE, libc::ETH_P_ALL as u16, 16),
        ];
        for (name, ether_type, times) in types {
            if !self.once_in(times, name) {
                continue;
            }
            let socket = af_packet::open().unwrap();
            let at = if self.random.up_to(1) == 0 {
                ifindex
            } else {
                0
            };
            af_packet::bind(socket.as_fd(), at, ether_type).unwrap();
            // What this host sends itself is none of its.
            let is_on: libc::c_int = 1;
            af_packet::set_packet_option(socket.as_fd(), af_packet::PACKET_IGNORE_OUTGOING, &is_on)
                .unwrap();
            sockets.push((name, Socket::Messages(socket)));
        }
    }
}

/// Everybody has one that tells who it is.
pub(super) fn mac_of(address: IpAddr) -> MacAddr {
    match address {
        IpAddr::V4(address) => {
            let [_, b, c, d] = address.octets();
            MacAddr([0x52, 0x54, 0, b, c, d])
        }
        IpAddr::V6(address) => {
            let [.., a, b, c] = address.octets();
            MacAddr([0x52, 0x54, 6, a, b, c])
        }
    }
}

/// `struct ip_mreq_source`: group, interface, source.
#[repr(C)]
#[derive(Clone, Copy)]
struct SourceMembership([Ipv4Addr; 3]);

fn open_sockets(held: &mut Vec<OwnedFd>) -> Vec<(&'static str, Socket)> {
    let datagrams = |address: &str| {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let udp = datagrams("[::]:7000");
    let ports = ["0.0.0.0:5353", "0.0.0.0:1900", "[::]:5355", "0.0.0.0:68"].map(datagrams);
    let elsewhere = datagrams("192.0.2.7:7002");
    let connected = datagrams("10.1.0.1:7001");
    connected.connect((PEER, PEER_PORT)).unwrap();
    // By whatever socket: the host is in the group then.
    for group in [
        [224, 0, 0, 251],
        [239, 1, 2, 3],
        [239, 255, 255, 250],
        [224, 0, 0, 5],
    ] {
        ports[0]
            .join_multicast_v4(&group.into(), &OWN_IPV4)
            .unwrap();
    }
    let only_from = SourceMembership([Ipv4Addr::new(232, 1, 1, 1), OWN_IPV4, PEER]);
    set_option(
        ports[0].as_raw_fd(),
        libc::IPPROTO_IP,
        libc::IP_ADD_SOURCE_MEMBERSHIP,
        &only_from,
    )
    .unwrap();
    // SAFETY: the name ends in a zero byte.
    let ifindex = unsafe { libc::if_nametoindex(c"eth0".as_ptr()) };
    for group in ["ff02::fb", "ff02::1:3", "ff05::1234"] {
        udp.join_multicast_v6(&group.parse().unwrap(), ifindex)
            .unwrap();
    }
    // Of this interface alone, by its name and by the address's zone; and two that share a port.
    let bound = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
        None,
    );
    let bound = bound.unwrap();
    set_option(
        bound.as_raw_fd(),
        libc::SOL_SOCKET,
        libc::SO_BINDTODEVICE,
        b"eth0",
    )
    .unwrap();
    rustix::net::bind(&bound, &SocketAddr::from(([0, 0, 0, 0], 7003))).unwrap();
    let local = SocketAddrV6::new(LINK_LOCAL, 7004, 0, ifindex);
    let local = UdpSocket::bind(local).unwrap();
    local.set_nonblocking(true).unwrap();
    let sharing = [(); 2].map(|()| {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).unwrap();
        rustix::net::sockopt::set_socket_reuseport(&socket, true).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from((OWN_IPV4, 7005))).unwrap();
        Socket::Messages(socket)
    });
    let [first, second] = sharing;
    let listen = |address: &str| {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    };
    let raw = |family: AddressFamily, protocol: Protocol| {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::RAW, flags, Some(protocol));
        Socket::Messages(socket.unwrap())
    };
    let ospf = Protocol::from_raw(u32::from(OSPF).try_into().unwrap());
    let [mdns, ssdp, llmnr, dhcp] = ports;
    // One that waits for an answer, from the port of CONNECTED_PORT.
    held.push(begin_to_connect());
    vec![
        (
            "a UDP socket on all addresses",
            Socket::Messages(udp.into()),
        ),
        ("a socket for mDNS", Socket::Messages(mdns.into())),
        ("a socket for SSDP", Socket::Messages(ssdp.into())),
        ("a socket for LLMNR", Socket::Messages(llmnr.into())),
        ("a socket for DHCP", Socket::Messages(dhcp.into())),
        (
            "a socket on lo's address",
            Socket::Messages(elsewhere.into()),
        ),
        ("a connected UDP socket", Socket::Messages(connected.into())),
        ("a socket of the interface", Socket::Messages(bound)),
        (
            "a socket on the link's address",
            Socket::Messages(local.into()),
        ),
        ("a socket that shares its port", first),
        ("a socket that shares its port", second),
        ("a TCP listener", Socket::Listener(listen("[::]:7000"))),
        (
            "a raw socket for ICMP",
            raw(AddressFamily::INET, ipproto::ICMP),
        ),
        (
            "a raw socket for ICMPv6",
            raw(AddressFamily::INET6, ipproto::ICMPV6),
        ),
        (FOR_GROUPS, raw(AddressFamily::INET, ipproto::IGMP)),
        ("a raw socket for OSPF", raw(AddressFamily::INET, ospf)),
    ]
}

/// A TCP socket whose SYN is on its way to somebody who does not answer.
fn begin_to_connect() -> OwnedFd {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((OWN_IPV4, CONNECTED_PORT))).unwrap();
    let gateway = SocketAddr::from(([10, 1, 0, 254], PEER_PORT));
    let begun = rustix::net::connect(&socket, &gateway);
    assert_eq!(begun, Err(rustix::io::Errno::INPROGRESS));
    socket
}

/// The peer's side of a handshake with the listener, by hand.
fn connect(watch: &mut Watch) -> Socket {
    let segment = |sequence, acknowledged, flags| {
        let segment = packets::tcp([PEER_PORT, OPEN_PORT], sequence, acknowledged, flags);
        let packet = packets::ip(PEER.into(), OWN_IPV4.into(), TCP, &segment);
        packets::ethernet(OWN, PEER_MAC, packets::IPV4, &packet)
    };
    watch.forget();
    watch.give(&segment(1000, 0, SYN));
    let sent = watch.sent();
    let answer = sent.iter().find(|sent| sent.what == OPEN_ANSWER);
    let answer = answer.unwrap_or_else(|| panic!("no answer: {sent:?}"));
    let their_sequence = u32::from_be_bytes(answer.frame[38..42].try_into().unwrap());
    watch.give(&segment(1001, their_sequence.wrapping_add(1), ACK));
    watch.accept()
}
