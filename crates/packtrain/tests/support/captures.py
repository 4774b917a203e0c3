#!/usr/bin/python3
"""Writes captures of real protocols, by scapy, for tests of whatever reads them.

usage: captures.py OUTDIR

Prints a line for each file: its name, its link type, how many packets it has, and what is in it, with tabs between.
The bytes are the same in each run. Beside them lies `frames.tsv`, by what scapy says of what it wrote: for each file,
EtherType (behind VLAN tags; four digits) and IP protocol, how many packets, and how many bytes these have from
their network header on. Needs scapy (Debian: python3-scapy) and the zstd program.
"""

import gzip
import random
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

from scapy.all import (
    ARP, BOOTP, DHCP, DNS, DNSQR, DNSRR, ICMP, IP, LLC, SNAP, STP, TCP, UDP,
    CookedLinux, Dot1Q, Dot3, Ether, ICMPv6EchoRequest, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PPPoE, PPP, PadN, Raw, fragment, fragment6,
)
from scapy.config import conf
from scapy.layers.l2 import GRE, Dot1AD
from scapy.layers.rtp import RTP
from scapy.layers.vxlan import VXLAN

BEGIN_NANOS = 1_700_000_000_000_000_000
A_MAC, B_MAC = "52:54:00:00:00:0a", "52:54:00:00:00:0b"
A, B = "192.0.2.10", "192.0.2.11"
A6, B6 = "2001:db8::a", "2001:db8::b"

ETHERNET, RAW, COOKED, COOKED_V2, LOOPBACK = 1, 101, 113, 276, 0

random.seed(20)


def payload(length):
    return Raw(random.randbytes(length))


# --- what is said, on top of Ethernet --------------------------------------------------------


def eth(upper, back=False, dst=None):
    here, there = (B_MAC, A_MAC) if back else (A_MAC, B_MAC)
    return Ether(src=here, dst=dst or there) / upper


def arp():
    ask = ARP(op=1, hwsrc=A_MAC, psrc=A, pdst=B)
    answer = ARP(op=2, hwsrc=B_MAC, psrc=B, hwdst=A_MAC, pdst=A)
    for _ in range(3):
        yield eth(ask, dst="ff:ff:ff:ff:ff:ff")
        yield eth(answer, back=True)


def dns():
    for number in range(20):
        name = f"host{number % 7}.example.org"
        question = DNSQR(qname=name, qtype="AAAA" if number % 2 else "A")
        ports = {"sport": 40000 + number, "dport": 53}
        yield eth(IP(src=A, dst=B, id=number) / UDP(**ports) / DNS(id=number, rd=1, qd=question))
        record = DNSRR(rrname=name, type="A", rdata=f"198.51.100.{number}", ttl=300)
        answer = DNS(id=number, qr=1, rd=1, ra=1, qd=question, an=record)
        yield eth(IP(src=B, dst=A, id=number) / UDP(sport=53, dport=40000 + number) / answer, back=True)


def tcp(version=4):
    """A connection from its first segment to its last, with the options that Linux sends."""
    seq, ack = 0xFFFF_F000, 77  # Its numbers begin again on the way.
    stamp = 1_000_000

    def segment(flags, size=0, back=False, options=()):
        nonlocal seq, ack, stamp
        stamp += 4
        stamps = ("Timestamp", (stamp, stamp - 2))
        sport, dport = (443, 51000) if back else (51000, 443)
        number, other = (ack, seq) if back else (seq, ack)
        header = TCP(sport=sport, dport=dport, flags=flags, seq=number % 2**32, ack=other % 2**32, window=502,
                     options=[*options, ("NOP", None), ("NOP", None), stamps])
        if "S" in flags:
            header.options = [("MSS", 1460), ("SAckOK", b""), stamps, ("NOP", None), ("WScale", 7)]
        here, there = ((B6, A6) if version == 6 else (B, A)) if back else ((A6, B6) if version == 6 else (A, B))
        ip = IPv6(src=here, dst=there, fl=0x12345) if version == 6 else IP(src=here, dst=there, flags="DF", id=stamp & 0xFFFF)
        taken = size + ("S" in flags) + ("F" in flags)
        if back:
            ack += taken
        else:
            seq += taken
        return eth(ip / header / payload(size) if size else ip / header, back=back)

    yield segment("S")
    yield segment("SA", back=True)
    yield segment("A")
    for number in range(40):
        yield segment("PA", size=(37 * number) % 1400 + 1)
        if number % 2:
            # What is missing in between, as after a loss.
            sack = [("SAck", ((seq - 300) % 2**32, (seq - 100) % 2**32))] if number % 8 == 1 else []
            yield segment("A", back=True, options=sack)
        if number % 5 == 0:
            yield segment("PA", size=200, back=True)
    yield segment("FA")
    yield segment("FA", back=True)
    yield segment("A")


def rtp():
    for number in range(100):
        header = {"version": 2, "payload_type": 8, "sequence": 65500 + number & 0xFFFF, "timestamp": 160 * number}
        both = (A, B, 16384, 0x1234_5678), (B, A, 16386, 0x9ABC_DEF0)
        for back, (here, there, port, source) in enumerate(both):
            ip = IP(src=here, dst=there, tos=0xB8, id=number, flags="DF")
            udp = UDP(sport=port, dport=16384 + 16386 - port)
            yield eth(ip / udp / RTP(**header, sourcesync=source) / payload(160), back=bool(back))


def icmp():
    for number in range(10):
        yield eth(IP(src=A, dst=B, id=number) / ICMP(id=7, seq=number) / payload(56))
        yield eth(IP(src=B, dst=A, id=number) / ICMP(type=0, id=7, seq=number) / payload(56), back=True)
        yield eth(IPv6(src=A6, dst=B6) / ICMPv6EchoRequest(id=7, seq=number, data=random.randbytes(56)))
    ask = ICMPv6ND_NS(tgt=B6) / ICMPv6NDOptSrcLLAddr(lladdr=A_MAC)
    yield eth(IPv6(src=A6, dst="ff02::1:ff00:b", hlim=255) / ask, dst="33:33:ff:00:00:0b")


def dhcp():
    discover = BOOTP(chaddr=bytes.fromhex("52540000000a"), xid=0x1020_3040) / DHCP(options=[("message-type", "discover"), "end"])
    yield eth(IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) / discover, dst="ff:ff:ff:ff:ff:ff")


def vlan():
    for number in range(12):
        ip = IP(src=A, dst=B, id=number) / UDP(sport=5000, dport=5001) / payload(30 + number)
        yield eth(Dot1Q(vlan=7, prio=3) / ip)
        yield eth(Dot1AD(vlan=100) / Dot1Q(vlan=7) / ip)
        yield eth(Dot1Q(vlan=7) / IPv6(src=A6, dst=B6) / UDP(sport=5000, dport=5001) / payload(11))
        yield eth(Dot1Q(vlan=8) / ARP(op=1, hwsrc=A_MAC, psrc=A, pdst=B), dst="ff:ff:ff:ff:ff:ff")


def ipv6_extensions():
    udp = UDP(sport=6000, dport=6001) / payload(64)
    for number in range(8):
        ip = IPv6(src=A6, dst=B6, fl=number)
        pad = PadN(optdata=bytes(number))
        yield eth(ip / IPv6ExtHdrHopByHop(options=[pad]) / udp)
        yield eth(ip / IPv6ExtHdrDestOpt(options=[pad]) / TCP(sport=1, dport=2, seq=number))
        yield eth(ip / IPv6ExtHdrRouting(addresses=["2001:db8::c"]) / udp)
        yield eth(ip / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / udp)


def fragments():
    for number in range(4):
        whole = IP(src=A, dst=B, id=900 + number) / UDP(sport=7000, dport=7001) / payload(3000)
        yield from (eth(part) for part in fragment(whole, fragsize=1400))
        whole = IPv6(src=A6, dst=B6) / IPv6ExtHdrFragment(id=900 + number) / UDP(sport=7000, dport=7001) / payload(3000)
        yield from (eth(part) for part in fragment6(whole, 1400))


def tunnels():
    for number in range(10):
        inner = IP(src="10.1.0.1", dst="10.2.0.1", id=number) / TCP(sport=80, dport=8080, seq=number) / payload(100)
        yield eth(IP(src=A, dst=B, id=number) / GRE() / inner)
        yield eth(IP(src=A, dst=B, id=number) / GRE(key_present=1, key=5) / inner)
        frame = Ether(src="02:00:00:00:01:01", dst="02:00:00:00:01:02") / inner
        yield eth(IP(src=A, dst=B, id=number) / UDP(sport=50000, dport=4789) / VXLAN(vni=42) / frame)
        yield eth(IP(src=A, dst=B, id=number) / inner)
        yield eth(PPPoE(sessionid=3) / PPP(proto=0x0021) / inner)


def other_than_ip():
    for _ in range(3):
        yield Dot3(src=A_MAC, dst="01:80:c2:00:00:00") / LLC(dsap=0x42, ssap=0x42, ctrl=3) / STP()
        yield Dot3(src=A_MAC, dst="01:00:0c:cc:cc:cc") / LLC() / SNAP(OUI=0x00000C, code=0x2000) / payload(40)
    # An Ethertype of nobody (IEEE 802, local experiments), and LLDP.
    yield Ether(src=A_MAC, dst=B_MAC, type=0x88B5) / payload(50)
    yield Ether(src=A_MAC, dst="01:80:c2:00:00:0e", type=0x88CC) / payload(60)


def ip_only():
    """What a tunnel carries: no ARP, no tags."""
    for packets in (dns(), tcp(), tcp(6), rtp(), icmp(), ipv6_extensions(), fragments()):
        yield from (packet.payload for packet in packets)


# --- links -----------------------------------------------------------------------------------


def cooked(packet, number):
    """As 'any' gives it: of these the fourth kind is the host's own."""
    kind = (0, 4, 3)[number % 3]
    return CookedLinux(pkttype=kind, lladdrtype=1, lladdrlen=6, src=bytes.fromhex("52540000000a") + b"\0\0",
                       proto=packet.type) / packet.payload


def cooked_v2(packet, number):
    """Scapy's class of it is younger than its other ones: by hand, after the description at tcpdump.org."""
    head = struct.pack("!HHIHBB8s", packet.type, 0, 2, 1, (0, 4, 3)[number % 3], 6, bytes.fromhex("52540000000a0000"))
    return head + bytes(packet.payload)


def loopback(packet):
    """As FreeBSD numbers families, little-endian."""
    return struct.pack("<I", 2 if packet.version == 4 else 28) + bytes(packet)


# --- files -----------------------------------------------------------------------------------


def pcap(packets, link_type, nanos=False, big=False, snap=262144, fcs=b""):
    order = ">" if big else "<"
    word = link_type | (0x2400_0000 if fcs else 0)
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nanos else 0xA1B2C3D4, 2, 4, 0, 0, snap, word)]
    for number, packet in enumerate(packets):
        packet += fcs
        at = BEGIN_NANOS + number * 1_234_567
        fraction = at % 10**9 if nanos else at % 10**9 // 1000
        kept = packet[:snap]
        out.append(struct.pack(order + "IIII", at // 10**9, fraction, len(kept), len(packet)) + kept)
    return b"".join(out)


def pcapng_block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(interfaces, snap=0):
    """Of interfaces with a link type and packets each, which come in turns; the second counts nanoseconds."""
    out = [pcapng_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for number, (link_type, _) in enumerate(interfaces):
        resolution = struct.pack("<HHB3x", 9, 1, 9) if number == 1 else b""
        out.append(pcapng_block(1, struct.pack("<HHI", link_type, 0, snap) + resolution))
    turns = [(turn, number, packet) for number, (_, packets) in enumerate(interfaces) for turn, packet in enumerate(packets)]
    for turn, number, packet in sorted(turns, key=lambda it: it[:2]):
        at = BEGIN_NANOS + turn * 1_234_567
        ticks = at if number == 1 else at // 1000
        kept = packet[:snap] if snap else packet
        head = struct.pack("<IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(kept), len(packet))
        out.append(pcapng_block(6, head + kept))
    return b"".join(out)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def gz(data):
    # The middle of a packet may be where a member ends.
    half = len(data) // 2
    return gzip.compress(data[:half], mtime=0) + gzip.compress(data[half:], mtime=0)


# --- what is in them -------------------------------------------------------------------------


def network(packet):
    """EtherType and protocol, and the bytes from the network header on, as scapy dissects a frame."""
    ethertype, upper = getattr(packet, "type", getattr(packet, "proto", None)), packet.payload
    while isinstance(upper, (Dot1Q, Dot1AD)):
        ethertype, upper = upper.type, upper.payload
    if isinstance(packet, Dot3):
        return "llc", "", len(packet.payload)
    protocol = {IP: lambda it: it.proto, IPv6: lambda it: it.nh}.get(type(upper), lambda it: "")(upper)
    return f"{ethertype:04x}", protocol, len(upper)


ETHERNET_CAPTURES = {
    "arp": arp, "dns": dns, "tcp": tcp, "tcp6": lambda: tcp(6), "rtp": rtp, "icmp": icmp, "dhcp": dhcp, "vlan": vlan,
    "ipv6-extensions": ipv6_extensions, "fragments": fragments, "tunnels": tunnels, "other-than-ip": other_than_ip,
}


def captures():
    """Name, link type, contents, description, and the packets as Ethernet frames, for each file."""
    everything = []
    for name, make in ETHERNET_CAPTURES.items():
        # As dissected from its bytes: lengths and checksums are filled in.
        packets = [type(packet)(bytes(packet)) for packet in make()]
        everything += packets
        yield f"{name}.pcap", ETHERNET, pcap(map(bytes, packets), ETHERNET), name, packets
    frames = [bytes(packet) for packet in everything]
    what = "all of these"
    yield "all.pcapng", ETHERNET, pcapng([(ETHERNET, frames)]), what, everything
    yield "all-nanos-big.pcap", ETHERNET, pcap(frames, ETHERNET, nanos=True, big=True), what, everything
    yield "all.pcap.gz", ETHERNET, gz(pcap(frames, ETHERNET)), what + ", in two members of gzip", everything
    yield "all.pcap.zst", ETHERNET, zstd(pcap(frames, ETHERNET)), what + ", by zstd", everything
    yield "all.pcapng.gz", ETHERNET, gz(pcapng([(ETHERNET, frames)])), what + ", in two members of gzip", everything
    yield "all.pcapng.zst", ETHERNET, zstd(pcapng([(ETHERNET, frames)])), what + ", by zstd", everything
    yield "all-fcs.pcap", ETHERNET, pcap(frames, ETHERNET, fcs=b"\xde\xad\xbe\xef"), what + ", with an FCS", everything
    yield "all-short.pcap", ETHERNET, pcap(frames, ETHERNET, snap=96), what + ", 96 bytes of each", everything
    with_type = [packet for packet in everything if isinstance(packet, Ether)]
    first = [bytes(cooked(packet, number)) for number, packet in enumerate(with_type)]
    second = [cooked_v2(packet, number) for number, packet in enumerate(with_type)]
    what = "those of them that have an EtherType, as captured on 'any'"
    yield "cooked.pcap", COOKED, pcap(first, COOKED), what, with_type
    yield "cooked.pcapng.zst", COOKED, zstd(pcapng([(COOKED, first)])), what, with_type
    yield "cooked-v2.pcap.gz", COOKED_V2, gz(pcap(second, COOKED_V2)), what, with_type
    ip = [type(packet)(bytes(packet)) for packet in ip_only()]
    as_frames = [Ether(bytes(Ether(src=A_MAC, dst=B_MAC) / packet)) for packet in ip]
    raw = [bytes(packet) for packet in ip]
    yield "raw.pcap", RAW, pcap(raw, RAW), "IP as a tunnel carries it", as_frames
    yield "raw.pcapng", RAW, pcapng([(RAW, raw)]), "IP as a tunnel carries it", as_frames
    yield "loopback.pcap", LOOPBACK, pcap(map(loopback, ip), LOOPBACK), "IP on FreeBSD's loopback", as_frames
    mixed = pcapng([(ETHERNET, frames), (RAW, raw), (COOKED_V2, second)])
    yield "interfaces.pcapng", "several", mixed, "three interfaces, of a link type each", everything + as_frames + with_type


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    # Nothing is looked up: neither routes nor neighbours.
    conf.verb = 0
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, link_type, data, what, packets in captures():
        (out / name).write_bytes(data)
        print(name, link_type, len(packets), what, sep="\t")
        counts, sizes = Counter(), Counter()
        for packet in packets:
            ethertype, protocol, size = network(packet)
            counts[ethertype, protocol] += 1
            sizes[ethertype, protocol] += size
        rows += [f"{name}\t{key[0]}\t{key[1]}\t{counts[key]}\t{sizes[key]}\n" for key in sorted(counts, key=str)]
    (out / "frames.tsv").write_text("".join(rows))


if __name__ == "__main__":
    main()
