//! Hosts that are told who they are: DHCP, router advertisements, and whether an address is somebody's already.

use super::outcome::Outcome;
use super::stage::{
    HOST, HOST6, LINK, ListensBy, PEER, PEER6, SOON, Stage, ping, serve, unexpected,
};
use super::{Application, Need};
use crate::lab::namespaces::{Namespace, Process};
use crate::lab::{Error, Result, wait_for};

pub(super) const ALL: &[Application] = &[
    Application::new(
        "dhcp",
        "a lease by broadcast and by unicast, renewed and released",
        dhcp,
    )
    .needs(&[DNSMASQ, Need::Program("udhcpc", "udhcpc")])
    .with_ports(),
    Application::new("dhcpv6", "a lease of IPv6", dhcpv6)
        .needs(&[DNSMASQ, Need::Program("dhclient", "isc-dhcp-client")])
        .with_ports(),
    Application::new(
        "slaac",
        "an address and a route by a router's advertisement",
        slaac,
    )
    .needs(&[DNSMASQ])
    .with_ports(),
    Application::new(
        "duplicate-address",
        "IPv6 addresses that somebody has, and that nobody has, at either end",
        duplicate_address,
    ),
    Application::new("arp-probe", "the same for IPv4, by ARP probes", arp_probe)
        .needs(&[Need::Program("arping", "iputils-arping")]),
];

pub(super) const DNSMASQ: Need = Need::Program("dnsmasq", "dnsmasq-base");

/// dnsmasq on a host, that knows nothing but what these say; once it listens.
pub(super) fn dnsmasq(
    at: &Namespace,
    more: &[&str],
    protocol: ListensBy,
    port: u16,
) -> Result<Process> {
    let alone = [
        "dnsmasq",
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        "--pid-file=",
        "--user=root",
        "--bind-interfaces",
        "--interface=eth1",
        "--no-ping",
    ];
    serve(at, &[&alone[..], more].concat(), protocol, port)
}

/// What a client calls when it has something: it does what it is told to, and writes it down.
const DHCP_SCRIPT: &str = r#"#!/bin/sh
case $1 in
bound | renew)
    ip address replace "$ip/$mask" dev "$interface"
    echo "$1 $ip/$mask router $router dns $dns lease $lease" >> "$SAID"
    ;;
deconfig) ip -4 address flush dev "$interface" ;;
leasefail | nak) echo "$1" >> "$SAID" ;;
esac
"#;

fn dhcp(stage: &Stage) -> Result<Outcome> {
    let leases = format!("--dhcp-leasefile={}", stage.path("leases"));
    let _server = dnsmasq(
        &stage.peer.namespace,
        &[
            "--port=0",
            "--dhcp-range=10.7.0.100,10.7.0.120,255.255.255.0,1h",
            "--dhcp-option=option:router,10.7.0.2",
            "--dhcp-option=option:dns-server,10.7.0.2",
            "--dhcp-authoritative",
            &leases,
        ],
        ListensBy::Udp,
        67,
    )?;
    let host = &stage.host.namespace;
    let script = stage.write("script", DHCP_SCRIPT)?;
    host.exec(["chmod", "+x", &script])?;
    host.exec(["ip", "-4", "address", "flush", "dev", LINK])?;
    let mut outcome = Outcome::new();
    for (way, flag) in [("unicast", ""), ("broadcast", "-B")] {
        let said = stage.path(way);
        let line =
            format!("SAID={said} exec udhcpc -i {LINK} -f -n -t 5 -T 1 -a200 -s {script} {flag}");
        let client = host.spawn(["sh", "-c", &line])?;
        let wait = |lines: usize| {
            wait_for("an answer of the server", SOON, || {
                stage.text(way).lines().count() >= lines
            })
        };
        wait(1)?;
        // The client asks the server alone, by then.
        let reaches = ping(host, PEER.into());
        client.signal(rustix::process::Signal::USR1);
        wait(2)?;
        client.signal(rustix::process::Signal::USR2);
        wait_for("the address to go", SOON, || {
            let addresses = host.exec(["ip", "-4", "address", "show", "dev", LINK]);
            addresses.is_ok_and(|text| !text.contains("inet "))
        })?;
        client.terminate()?;
        let lines: Vec<String> = stage.text(way).lines().map(str::to_owned).collect();
        outcome =
            outcome
                .with(way, lines)
                .wanted(&format!("{way}, reaches the server"), reaches, true);
    }
    Ok(outcome)
}

const DHCPV6_SCRIPT: &str = r#"#!/bin/sh
case $reason in
BOUND6) echo "$new_ip6_address/$new_ip6_prefixlen dns $new_dhcp6_name_servers" >> "$SAID" ;;
esac
"#;

fn dhcpv6(stage: &Stage) -> Result<Outcome> {
    let leases = format!("--dhcp-leasefile={}", stage.path("leases"));
    let _server = dnsmasq(
        &stage.peer.namespace,
        &[
            "--port=0",
            "--enable-ra",
            "--dhcp-range=fd07::100,fd07::120,64,1h",
            "--dhcp-option=option6:dns-server,[fd07::2]",
            "--dhcp-sequential-ip",
            &leases,
        ],
        ListensBy::Udp,
        547,
    )?;
    let host = &stage.host.namespace;
    let script = stage.write("script", DHCPV6_SCRIPT)?;
    host.exec(["chmod", "+x", &script])?;
    let (leases, pid) = (stage.write("client", "")?, stage.path("pid"));
    let said = format!("SAID={}", stage.path("said"));
    // Named by its Ethernet address alone, and so the same each time.
    let client = host.spawn([
        "dhclient", "-6", "-d", "-1", "-D", "LL", "-lf", &leases, "-pf", &pid, "-sf", &script,
        "-e", &said, LINK,
    ])?;
    wait_for("a lease", SOON, || !stage.text("said").is_empty())?;
    client.terminate()?;
    Ok(Outcome::new().with("lease", stage.text("said").trim()))
}

/// Looks for others with an address for a moment, and not for a second.
fn looks_for_others(host: &Namespace) -> Result<()> {
    host.sysctl("net/ipv6/conf/eth1/accept_dad", "1")?;
    host.sysctl("net/ipv6/neigh/eth1/retrans_time_ms", "200")
}

fn slaac(stage: &Stage) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    peer.sh(&format!("ip address add fd09::2/64 dev {LINK} nodad"))?;
    peer.sysctl("net/ipv6/conf/all/forwarding", "1")?;
    let _router = dnsmasq(
        peer,
        &[
            "--port=0",
            "--enable-ra",
            "--dhcp-range=fd09::,ra-stateless,64,1h",
            "--dhcp-option=option6:dns-server,[fd07::2]",
        ],
        ListensBy::Udp,
        547,
    )?;
    looks_for_others(host)?;
    // A host that comes asks for a router.
    host.sh(&format!("ip link set {LINK} down && ip link set {LINK} up"))?;
    let shown = || host.exec(["ip", "-6", "-o", "address", "show", "dev", LINK, "dynamic"]);
    wait_for("an address of the router's", SOON, || {
        shown().is_ok_and(|text| text.contains("fd09::") && !text.contains("tentative"))
    })?;
    let addresses = shown()?;
    let address = addresses
        .split_whitespace()
        .find(|word| word.starts_with("fd09::"))
        .ok_or_else(|| unexpected("ip address", addresses.clone()))?
        .to_owned();
    let routes = host.exec(["ip", "-6", "route", "show", "default"])?;
    let router = routes
        .split_whitespace()
        .nth(2)
        .unwrap_or("none")
        .to_owned();
    let own = address.split('/').next().unwrap_or_default();
    let answered = own.parse().is_ok_and(|own| ping(peer, own));
    Ok(Outcome::new()
        .with("address", address)
        .with("router", router)
        .wanted("answers", answered, true))
}

/// What became of an address: whether it is somebody else's.
fn duplicate(host: &Namespace, address: &str) -> Result<String> {
    host.exec([
        "ip",
        "address",
        "add",
        &format!("{address}/64"),
        "dev",
        LINK,
    ])?;
    let mut last = String::new();
    wait_for("an address to be looked for", SOON, || {
        last = host
            .exec([
                "ip", "-6", "-o", "address", "show", "dev", LINK, "to", address,
            ])
            .unwrap_or_default();
        last.contains("dadfailed") || !last.contains("tentative")
    })?;
    let failed = last.contains("dadfailed");
    Ok(if failed { "somebody's" } else { "ours" }.to_owned())
}

fn duplicate_address(stage: &Stage) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    for host in [host, peer] {
        looks_for_others(host)?;
    }
    let mut outcome = Outcome::new()
        .wanted("peer's", duplicate(host, &PEER6.to_string())?, "somebody's")
        .wanted("nobody's", duplicate(host, "fd07::51")?, "ours")
        // The host has to say that it has it.
        .wanted("host's", duplicate(peer, &HOST6.to_string())?, "somebody's")
        .wanted("the new one", duplicate(peer, "fd07::51")?, "somebody's")
        .wanted("another", duplicate(peer, "fd07::52")?, "ours");
    // Nobody who has lost an address is asked for it.
    outcome = outcome.wanted(
        "reached",
        ping(&stage.third, "fd07::51".parse().expect("an address")),
        true,
    );
    Ok(outcome)
}

fn arp_probe(stage: &Stage) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let probe = |from: &Namespace, address: &str| -> Result<&'static str> {
        let words = ["arping", "-D", "-c", "1", "-w", "1", "-I", LINK, address];
        let output = from.try_exec(words)?;
        match output.status.code() {
            Some(0) => Ok("nobody's"),
            Some(1) => Ok("somebody's"),
            _ => Err(Error::Command {
                command: words.join(" "),
                status: output.status,
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            }),
        }
    };
    Ok(Outcome::new()
        .wanted(
            "peer's, by the host",
            probe(host, &PEER.to_string())?,
            "somebody's",
        )
        .wanted(
            "host's, by the peer",
            probe(peer, &HOST.to_string())?,
            "somebody's",
        )
        .wanted(
            "nobody's, by the host",
            probe(host, "10.7.0.50")?,
            "nobody's",
        )
        .wanted(
            "nobody's, by the peer",
            probe(peer, "10.7.0.50")?,
            "nobody's",
        ))
}
