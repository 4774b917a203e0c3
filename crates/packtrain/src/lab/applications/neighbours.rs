//! Addresses that move: to another card, to another station, to a host that answers in others' place.

use std::net::IpAddr;
use std::time::Duration;

use super::outcome::Outcome;
use super::stage::{
    AT_ONCE, HOST, HOST_MAC, HOST6, LINK, PEER, PEER_MAC, PEER6, SOON, Stage, THIRD_MAC, neighbour,
    neighbour_becomes, ping, pings,
};
use super::{Application, Need};
use crate::lab::namespaces::Namespace;
use crate::lab::{Result, wait_for, wire};

pub(super) const ALL: &[Application] = &[
    Application::new(
        "new-card",
        "a neighbour's Ethernet address changes, and it says so",
        new_card,
    ),
    Application::new(
        "own-card",
        "the host's own Ethernet address changes",
        own_card,
    )
    .with_ports(),
    Application::new(
        "late-neighbour",
        "who is asked for in vain comes, and says no more than that it is there",
        late_neighbour,
    )
    .needs(&[Need::Program("arping", "iputils-arping")]),
    Application::new(
        "arp-accept",
        "a host that learns of strangers by what they announce",
        arp_accept,
    )
    .needs(&[Need::Program("arping", "iputils-arping")]),
    Application::new(
        "takeover",
        "addresses move to another station, which announces them (gratuitous ARP, unsolicited NA)",
        takeover,
    )
    .needs(&[Need::Program("arping", "iputils-arping")]),
    Application::new(
        "vrrp",
        "a router that waits for another one's end, and gives way when it is back",
        vrrp,
    )
    .needs(&[Need::Program("keepalived", "keepalived")])
    .with_ports(),
    Application::new(
        "proxy-arp",
        "a host answers ARP and neighbour solicitations for those behind it",
        proxy_arp,
    ),
    Application::new(
        "addresses",
        "addresses are added while they are asked for, an anycast one among them",
        addresses,
    )
    .with_ports(),
];

fn new_card(stage: &Stage) -> Result<Outcome> {
    const NEW: &str = "02:00:0a:07:00:77";
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let addresses: [IpAddr; 2] = [PEER.into(), PEER6.into()];
    let before: Vec<bool> = addresses.iter().map(|&to| ping(host, to)).collect();
    peer.sysctl("net/ipv4/conf/eth1/arp_notify", "1")?;
    peer.sysctl("net/ipv6/conf/eth1/ndisc_notify", "1")?;
    peer.exec(["ip", "link", "set", LINK, "address", NEW])?;
    let after = addresses.map(|of| neighbour_becomes(host, of, NEW, AT_ONCE));
    let pings = addresses.map(|to| pings(host, to, 3));
    Ok(Outcome::new()
        .wanted("before", before, vec![true; 2])
        .wanted("IPv4 at", after[0].as_str(), NEW)
        .wanted("IPv6 at", after[1].as_str(), NEW)
        .wanted("pings", pings.to_vec(), vec![3; 2]))
}

fn own_card(stage: &Stage) -> Result<Outcome> {
    const NEW: &str = "02:00:0a:07:00:78";
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let addresses: [IpAddr; 2] = [HOST.into(), HOST6.into()];
    let before = addresses.map(|to| ping(peer, to));
    host.sysctl("net/ipv4/conf/eth1/arp_notify", "1")?;
    host.sysctl("net/ipv6/conf/eth1/ndisc_notify", "1")?;
    host.exec(["ip", "link", "set", LINK, "address", NEW])?;
    let after = addresses.map(|of| neighbour_becomes(peer, of, NEW, AT_ONCE));
    let there = addresses.map(|to| pings(peer, to, 3));
    let back = [PEER.into(), PEER6.into()].map(|to| pings(host, to, 3));
    Ok(Outcome::new()
        .wanted("before", before.to_vec(), vec![true; 2])
        .wanted("at", after.to_vec(), vec![NEW; 2])
        .wanted("pings", there.to_vec(), vec![3; 2])
        .wanted("pings back", back.to_vec(), vec![3; 2]))
}

fn late_neighbour(stage: &Stage) -> Result<Outcome> {
    const ADDRESS: &str = "10.7.0.50";
    let (host, third) = (&stage.host.namespace, &stage.third);
    // It answers nobody, so that what it announces is all that there is.
    third.sysctl("net/ipv4/conf/eth1/arp_ignore", "8")?;
    let asking = host.spawn(["ping", "-n", "-c", "1", "-W", "3", ADDRESS])?;
    let shown = || host.exec(["ip", "neigh", "show", ADDRESS, "dev", LINK]);
    wait_for("the host to ask", SOON, || {
        shown().is_ok_and(|text| text.contains("INCOMPLETE"))
    })?;
    third.exec([
        "ip",
        "address",
        "add",
        &format!("{ADDRESS}/24"),
        "dev",
        LINK,
    ])?;
    third.exec(["arping", "-U", "-c", "1", "-I", LINK, ADDRESS])?;
    let address: IpAddr = ADDRESS.parse().expect("an address");
    let found = neighbour_becomes(host, address, THIRD_MAC, AT_ONCE);
    drop(asking);
    Ok(Outcome::new().wanted("at", found, THIRD_MAC))
}

fn arp_accept(stage: &Stage) -> Result<Outcome> {
    let (host, third) = (&stage.host.namespace, &stage.third);
    host.sysctl("net/ipv4/conf/eth1/arp_accept", "1")?;
    let mut found = Vec::new();
    for last in 90..95 {
        let address = format!("10.7.0.{last}");
        third.exec([
            "ip",
            "address",
            "add",
            &format!("{address}/24"),
            "dev",
            LINK,
        ])?;
        third.exec(["arping", "-U", "-c", "1", "-I", LINK, &address])?;
        let address: IpAddr = address.parse().expect("an address");
        found.push(neighbour_becomes(host, address, THIRD_MAC, AT_ONCE));
    }
    Ok(Outcome::new().wanted("at", found, vec![THIRD_MAC; 5]))
}

fn takeover(stage: &Stage) -> Result<Outcome> {
    const ADDRESS: &str = "10.7.0.50";
    const ADDRESS6: &str = "fd07::50";
    let (host, peer, third) = (&stage.host.namespace, &stage.peer.namespace, &stage.third);
    let addresses: [IpAddr; 2] = [ADDRESS, ADDRESS6].map(|text| text.parse().expect("an address"));
    let change = |at: &Namespace, what: &str| {
        at.sh(&format!(
            "ip address {what} {ADDRESS}/24 dev {LINK} && ip address {what} {ADDRESS6}/64 dev {LINK}"
        ))
    };
    third.sysctl("net/ipv6/conf/eth1/ndisc_notify", "1")?;
    peer.sysctl("net/ipv6/conf/eth1/ndisc_notify", "1")?;
    let mut outcome = Outcome::new();
    change(peer, "add")?;
    let known = addresses.map(|to| ping(host, to));
    outcome = outcome.wanted("known", known.to_vec(), vec![true; 2]);
    let moves = [
        ("there", peer, third, THIRD_MAC),
        ("and back", third, peer, PEER_MAC),
    ];
    for (way, from, to, wanted) in moves {
        change(from, "del")?;
        change(to, "add")?;
        to.exec(["arping", "-U", "-c", "1", "-I", LINK, ADDRESS])?;
        let after = addresses.map(|of| neighbour_becomes(host, of, wanted, AT_ONCE));
        let pings: u32 = addresses.into_iter().map(|to| pings(host, to, 3)).sum();
        outcome = outcome
            .wanted(&format!("{way}, IPv4 at"), after[0].as_str(), wanted)
            .wanted(&format!("{way}, IPv6 at"), after[1].as_str(), wanted)
            .wanted(&format!("{way}, pings"), pings, 6);
    }
    Ok(outcome)
}

/// Ten advertisements a second; a router that is not heard for three of them and some more is taken for dead.
fn router(stage: &Stage, name: &str, state: &str, priority: u8) -> Result<[String; 3]> {
    let configuration = format!(
        "global_defs {{
    router_id {name}
    vrrp_version 3
    vrrp_garp_master_delay 1
    script_user root
}}
vrrp_instance gateway {{
    state {state}
    interface {LINK}
    virtual_router_id 7
    priority {priority}
    advert_int 0.1
    virtual_ipaddress {{
        10.7.0.254/24
    }}
}}
"
    );
    let file = stage.write(name, configuration)?;
    Ok([
        file,
        stage.path(&format!("{name}.pid")),
        stage.path(&format!("{name}-vrrp.pid")),
    ])
}

fn vrrp(stage: &Stage) -> Result<Outcome> {
    let gateway: IpAddr = [10, 7, 0, 254].into();
    let (host, peer, third) = (&stage.host.namespace, &stage.peer.namespace, &stage.third);
    let start = |at: &Namespace, [file, pid, vrrp_pid]: &[String; 3]| {
        at.spawn([
            "keepalived",
            "--dont-fork",
            "--log-console",
            "--vrrp",
            "--use-file",
            file,
            "--pid",
            pid,
            "--vrrp_pid",
            vrrp_pid,
        ])
    };
    let has = |at: &Namespace| {
        let shown = at.exec(["ip", "address", "show", "dev", LINK]);
        shown.is_ok_and(|text| text.contains("10.7.0.254/"))
    };
    let _first = start(third, &router(stage, "first", "MASTER", 200)?)?;
    wait_for("the first router", SOON, || has(third))?;
    let _second = start(host, &router(stage, "second", "BACKUP", 100)?)?;
    let mut outcome = Outcome::new().wanted("answers", ping(peer, gateway), true);
    // It has its turn when it does not hear the other: so it is to be silent for longer than it would wait for that.
    let taken = wait_for("a second master", Duration::from_millis(1500), || has(host)).is_ok();
    outcome = outcome.wanted("backup stays backup", !taken, true).wanted(
        "at first",
        neighbour(peer, gateway).unwrap_or_default(),
        THIRD_MAC,
    );
    third.exec(["ip", "link", "set", LINK, "down"])?;
    outcome = outcome
        .wanted(
            "then",
            neighbour_becomes(peer, gateway, HOST_MAC, Duration::from_secs(3)),
            HOST_MAC,
        )
        .wanted("answers then", pings(peer, gateway, 3), 3);
    third.exec(["ip", "link", "set", LINK, "up"])?;
    let at_last = neighbour_becomes(peer, gateway, THIRD_MAC, SOON);
    let gave_way = wait_for("the backup to give way", AT_ONCE, || !has(host)).is_ok();
    Ok(outcome
        .wanted("at last", at_last, THIRD_MAC)
        .wanted("backup gave way", gave_way, true)
        .wanted("answers at last", pings(peer, gateway, 3), 3))
}

fn proxy_arp(stage: &Stage) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let far = stage.network_behind(host, 1500)?;
    // Those behind have addresses of the segment; who is on it asks for them there.
    far.sh(&format!(
        "ip address add 10.7.0.100/32 dev {LINK} && ip address add 10.7.0.101/32 dev {LINK} \
         && ip address add fd07::100/128 dev {LINK} nodad"
    ))?;
    host.sh(
        "ip route add 10.7.0.100/32 dev eth2 && ip route add 10.7.0.101/32 dev eth2 \
         && ip -6 route add fd07::100/128 dev eth2",
    )?;
    let mut outcome = Outcome::new();
    // One address by itself first, then all that there is a way to.
    host.exec(["ip", "neigh", "add", "proxy", "10.7.0.101", "dev", LINK])?;
    host.sysctl("net/ipv4/conf/eth1/forwarding", "1")?;
    host.sysctl("net/ipv4/neigh/eth1/proxy_delay", "0")?;
    host.sysctl("net/ipv6/neigh/eth1/proxy_delay", "0")?;
    let one: IpAddr = [10, 7, 0, 101].into();
    outcome = outcome.wanted("one, pings", pings(peer, one, 3), 3).wanted(
        "one, at",
        neighbour(peer, one).unwrap_or_default(),
        HOST_MAC,
    );
    host.sysctl("net/ipv4/conf/eth1/proxy_arp", "1")?;
    let any: IpAddr = [10, 7, 0, 100].into();
    outcome = outcome.wanted("any, pings", pings(peer, any, 3), 3).wanted(
        "any, at",
        neighbour(peer, any).unwrap_or_default(),
        HOST_MAC,
    );
    host.sysctl("net/ipv6/conf/all/proxy_ndp", "1")?;
    host.exec([
        "ip",
        "-6",
        "neigh",
        "add",
        "proxy",
        "fd07::100",
        "dev",
        LINK,
    ])?;
    let v6: IpAddr = "fd07::100".parse().expect("an address");
    Ok(outcome.wanted("IPv6, pings", pings(peer, v6, 3), 3).wanted(
        "IPv6, at",
        neighbour(peer, v6).unwrap_or_default(),
        HOST_MAC,
    ))
}

fn addresses(stage: &Stage) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let (mut v4, mut v6) = (0, 0);
    std::thread::scope(|scope| {
        // Frames of a host that is known go on meanwhile.
        let steady = scope.spawn(|| pings(peer, HOST.into(), 60));
        for last in 60..70 {
            let (new, new6) = (format!("10.7.0.{last}"), format!("fd07::{last}"));
            wire::add_address(host, LINK, &format!("{new}/24"))?;
            wire::add_address(host, LINK, &format!("{new6}/64"))?;
            // The very first question is to be answered.
            v4 += u32::from(ping(peer, new.parse().expect("an address")));
            v6 += u32::from(ping(peer, new6.parse().expect("an address")));
        }
        let steady = steady.join().expect("it has no reason to panic");
        // A router has the first address of a network for whoever asks (RFC 4291, 2.6.1).
        host.sysctl("net/ipv6/conf/eth1/forwarding", "1")?;
        let anycast: IpAddr = "fd07::".parse().expect("an address");
        ping(peer, anycast);
        let found = neighbour_becomes(peer, anycast, HOST_MAC, AT_ONCE);
        // Any interface answers for any address of the host.
        wire::add_address(host, "lo", "10.7.1.80/32")?;
        peer.exec(["ip", "route", "add", "10.7.1.80/32", "dev", LINK])?;
        let inner = ping(peer, [10, 7, 1, 80].into());
        // Who has lost an address does not answer for it.
        host.exec(["ip", "address", "del", "10.7.0.60/24", "dev", LINK])?;
        peer.exec(["ip", "neigh", "flush", "dev", LINK])?;
        let gone = !ping(peer, [10, 7, 0, 60].into());
        let stays = ping(peer, [10, 7, 0, 61].into());
        Ok(Outcome::new()
            .wanted("steady", steady, 60)
            .wanted("IPv4", v4, 10)
            .wanted("IPv6", v6, 10)
            .wanted("anycast at", found, HOST_MAC)
            .wanted("of another interface", inner, true)
            .wanted("gone", gone, true)
            .wanted("others stay", stays, true))
    })
}
