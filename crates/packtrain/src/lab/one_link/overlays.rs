//! Tunnels that everybody has, over the bare cable: what else a host could put between its sockets and a
//! link. Their addresses, ports and keys are of this laboratory, and go with its namespaces.

use std::time::Duration;

use super::way::Way;
use crate::lab::namespaces::{Namespace, Process, program_exists, run};
use crate::lab::{Result, wait_for, wire};

const UP_MAX: Duration = Duration::from_secs(5);

/// The kernel's VXLAN between the two bare ends. Whether this kernel has it.
pub fn vxlan(hosts: [&Namespace; 2]) -> Result<bool> {
    let ends = ends();
    for (number, host) in hosts.into_iter().enumerate() {
        let name = Way::Vxlan.interface();
        let (local, remote) = (&ends[number], &ends[1 - number]);
        let under = Way::Bare.interface();
        let add = format!(
            "ip link add {name} type vxlan id 7 dstport 4789 dev {under} local {local} remote {remote}"
        );
        if host.sh(&add).is_err() {
            return Ok(false);
        }
        host.exec(["ip", "link", "set", name, "up"])?;
        wire::add_address(host, name, &Way::Vxlan.addresses()[number])?;
    }
    Ok(true)
}

/// WireGuard in user space between the two bare ends; nothing where its programs are not installed.
pub fn wireguard(hosts: [&Namespace; 2]) -> Result<Option<[Process; 2]>> {
    if !["wireguard-go", "wg"].into_iter().all(program_exists) {
        return Ok(None);
    }
    let keys = [key_pair()?, key_pair()?];
    let ends = ends();
    let start = |number: usize| -> Result<Process> {
        let script = script(&End {
            private: &keys[number].private,
            address: &Way::WireGuard.addresses()[number],
            peer: &keys[1 - number].public,
            endpoint: &ends[1 - number],
        });
        hosts[number].spawn(["sh", "-c", &script])
    };
    let programs = [start(0)?, start(1)?];
    wait_for_answer(hosts[0], Way::WireGuard)?;
    Ok(Some(programs))
}

fn wait_for_answer(from: &Namespace, way: Way) -> Result<()> {
    let to = way.to();
    wait_for(way.heading(), UP_MAX, || {
        let ping = ["ping", "-c1", "-W0.2", "-n", &to];
        let asked = from.try_exec(ping);
        asked.is_ok_and(|output| output.status.success())
    })
}

/// As many packets as it takes into one.
const SIMPLEMUX_PACKETS: &str = "100";
/// What they may wait for each other, µs: that of [`Way::PACKED_WITHIN`].
const SIMPLEMUX_PERIOD_US: &str = "500";
/// There is room in a frame of the bare wire for one of these with its headers.
const SIMPLEMUX_MTU: u32 = 1440;

/// The interfaces of Simplemux (J. Saldana, draft-saldana-tsvwg-simplemux), which packs what is small, over UDP between the
/// two bare ends. Whether its program is installed.
pub fn simplemux(hosts: [&Namespace; 2]) -> Result<bool> {
    if !program_exists("simplemux") {
        return Ok(false);
    }
    let name = Way::Simplemux.interface();
    for (host, address) in hosts.into_iter().zip(&Way::Simplemux.addresses()) {
        host.exec(["ip", "tuntap", "add", "dev", name, "mode", "tun"])?;
        wire::set_mtu(host, name, SIMPLEMUX_MTU)?;
        host.exec(["ip", "link", "set", name, "up"])?;
        wire::add_address(host, name, address)?;
    }
    Ok(true)
}

/// Its programs: for one turn, because they wait by looking again and again, and would take the processors from all other
/// ways.
pub fn simplemux_at_work(hosts: [&Namespace; 2]) -> Result<[Process; 2]> {
    let (name, under) = (Way::Simplemux.interface(), Way::Bare.interface());
    let ends = ends();
    let start = |number: usize| -> Result<Process> {
        let peer = &ends[1 - number];
        let run = format!(
            "exec simplemux -i {name} -e {under} -c {peer} -M udp -T tun -d 0 \
                 -n {SIMPLEMUX_PACKETS} -P {SIMPLEMUX_PERIOD_US} >/dev/null 2>&1"
        );
        hosts[number].spawn(["sh", "-c", &run])
    };
    let programs = [start(0)?, start(1)?];
    wait_for_answer(hosts[0], Way::Simplemux)?;
    Ok(programs)
}

/// The addresses of the bare ends, without their prefix.
fn ends() -> [String; 2] {
    let bare = |address: String| address.split('/').next().map(str::to_owned);
    Way::Bare.addresses().map(|a| bare(a).unwrap_or_default())
}

struct KeyPair {
    private: String,
    public: String,
}

fn key_pair() -> Result<KeyPair> {
    let pair = run(
        "sh",
        ["-c", "key=$(wg genkey); echo $key; echo $key | wg pubkey"],
    )?;
    let mut keys = pair.lines().map(str::to_owned);
    let mut next = || keys.next().unwrap_or_default();
    Ok(KeyPair {
        private: next(),
        public: next(),
    })
}

struct End<'a> {
    private: &'a str,
    address: &'a str,
    peer: &'a str,
    endpoint: &'a str,
}

/// One end. The program's control socket is a file of a fixed place and name: each gets a /run of its own,
/// which its mount namespace takes with it, and nothing of it is seen on the machine.
fn script(end: &End<'_>) -> String {
    let name = Way::WireGuard.interface();
    let End {
        private,
        address,
        peer,
        endpoint,
    } = end;
    let subnet = Way::WireGuard.subnet();
    format!(
        "mount -t tmpfs tmpfs /run || exit 1
         configure() {{
             echo {private} | wg set {name} private-key /dev/stdin listen-port 51820 \
                 peer {peer} allowed-ips {subnet} endpoint {endpoint}:51820
         }}
         (
             tries=0
             until configure 2>/dev/null; do
                 tries=$((tries + 1)); [ $tries -lt 60 ] || exit 1
                 sleep 0.05
             done
             ip address add {address} dev {name} && ip link set {name} up
         ) >/dev/null 2>&1 &
         LOG_LEVEL=error exec wireguard-go -f {name} >/dev/null 2>&1"
    )
}
