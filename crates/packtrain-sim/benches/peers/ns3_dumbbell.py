#!/usr/bin/env python3
"""Runs TCP flows over a dumbbell in ns-3 and prints what it took and what came of it, as one line of JSON.

    pip install ns3        (Linux on x86_64; pick a version of Python for which ns3 has a wheel, as 3.11 for 3.44)
    ns3_dumbbell.py [--flows 100] [--bottleneck-bps 1e9] [--seconds 60] [--tcp newreno|linuxreno|cubic] ...

It is what `packtrain-sim` is measured against: by speed (`run`, and `measured` without what --ignore-s leaves out) and by
result (`goodput_bps`, `loss_rate`). One topology, the XLF paper's: each of the sources has its own access link to the left
router, the bottleneck joins the routers, each sink has a link ten times as fast as the sources'.

    source 0 --- access --+                                  +-- 10 x access --- sink 0
    source 1 --- access --+-- router === bottleneck === router +-- 10 x access --- sink 1

Python only builds the network and reads counters once the run has stopped. What is timed is Simulator::Run alone, all
of it C++, and nothing is traced. What may make ns-3 faster without another result can be tried: `--scheduler`, `--routing`,
`--write-segments`. The memory that Python and its compiler take is in `rss_before_kib`.

What a comparison has to know:
- A frame is the segment, 20 to 60 bytes of TCP with timestamps (12) and SACK, 20 of IPv4, 2 of PPP: a segment of 1448 bytes
  takes 1502 on the wire and in the queue, an acknowledgement without SACK blocks 54. No preamble, no gap, no checksum.
- A queue in bytes does not count the frame that is being sent. There is no other queue: the traffic control layer has
  no queue disc, and a device never stops the stack above it; it drops.
- The sender's timeout is at least --min-rto-ms (ns-3 itself: 1000; Linux, and here: 200), its clock ticks in 1 ms.
- `newreno` grows by segment^2/window each acknowledgement, whether or not the window is used, and halves what is in flight;
  `linuxreno` counts segments acknowledged, grows only a window that is used, and halves the window. `cubic` too grows
  only a window that is used; HyStart is on, as ns-3 and Linux have it, fast convergence also, beta 0.7, C 0.4.
- What ns-3 3.44 counts twice: PRR takes each duplicate acknowledgement for a segment more than its SACK tells, so that 0.7 of a window
  leave as 1.4 for each that is delivered and a full queue overflows once more (halved, it is 1; ns-3 had it mended after 3.47); and the end
  of a recovery counts for CUBIC's growth by all that it covers, what was told by SACK before included. `--counts-once` has both by what is delivered.
- Recovery is by SACK (RFC 6675), its window by PRR (RFC 6937, ns-3's own choice) or `--recovery classic`.
- `events` is Simulator::GetEventCount: what was executed, set-up included. `packet_hops` counts a frame once for each device
  that began to send it, acknowledgements included.
- Is this ns-3 built for speed? `build` says so: the profile that its CMake files were installed for, whether assertions
  and logging are compiled in (then each function pays for a look at whether it should log). The wheel of 3.44 has both.
- For each segment that it sends ns-3 walks through all that are in flight (TcpTxBuffer::NextSeg): a long window makes it slow.
  With a source queue as long as the bottleneck's (the paper's text may be read so) its windows are thousands of segments.
"""

import argparse
import json
import random
import resource
import sys
import time
from pathlib import Path

TCP_TYPES = {"newreno": "TcpNewReno", "linuxreno": "TcpLinuxReno", "cubic": "TcpCubic"}
RECOVERY_TYPES = {"classic": "TcpClassicRecovery", "prr": "TcpPrrRecovery"}
# What `--counts-once` puts in the place of ns-3's own.
COUNTING_ONCE = """
namespace ns3 {
class TcpCubicOnce : public TcpCubic {
  public:
    static TypeId GetTypeId() {
        static TypeId tid = TypeId("ns3::TcpCubicOnce").SetParent<TcpCubic>().AddConstructor<TcpCubicOnce>();
        return tid;
    }
    TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segmentsAcked) override {
        TcpCubic::IncreaseWindow(tcb, std::min(segmentsAcked, tcb->m_lastAckedSackedBytes / tcb->m_segmentSize));
    }
    Ptr<TcpCongestionOps> Fork() override { return CopyObject<TcpCubicOnce>(this); }
};
class TcpPrrOnce : public TcpPrrRecovery {
  public:
    static TypeId GetTypeId() {
        static TypeId tid = TypeId("ns3::TcpPrrOnce").SetParent<TcpPrrRecovery>().AddConstructor<TcpPrrOnce>();
        return tid;
    }
    TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    void DoRecovery(Ptr<TcpSocketState> tcb, uint32_t deliveredBytes, bool) override {
        TcpPrrRecovery::DoRecovery(tcb, deliveredBytes, false);
    }
    Ptr<TcpRecoveryOps> Fork() override { return CopyObject<TcpPrrOnce>(this); }
};
}
"""
SCHEDULERS = {"map": "MapScheduler", "heap": "HeapScheduler", "calendar": "CalendarScheduler",
              "priority-queue": "PriorityQueueScheduler"}
ACCESS_DELAY_MS = 1
QUEUE_MS = 100
# Addresses of the sources, the sinks and the bottleneck.
LEFT, RIGHT, MIDDLE = "10.1.0.0", "10.2.0.0", "10.3.0.0"
PORT = 5001


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    count, rate = int, lambda text: int(float(text))
    parser.add_argument("--flows", type=count, default=100)
    parser.add_argument("--seconds", type=float, default=60, help="virtual time of the run")
    parser.add_argument("--ignore-s", type=float, default=0, help="what is `measured`, goodput and loss begin after this")
    parser.add_argument("--bottleneck-bps", type=rate, default=1_000_000_000)
    parser.add_argument("--access-bps", type=rate, help="of each source (default: 1.2 x bottleneck / flows)")
    parser.add_argument("--rtt-ms", type=float, default=100, help="propagation there and back, all links together")
    parser.add_argument("--queue-bytes", type=rate, help=f"at the bottleneck (default: its rate x {QUEUE_MS} ms)")
    parser.add_argument("--source-queue-bytes", type=rate, help=f"(default: 1.2 x access rate x {QUEUE_MS} ms)")
    parser.add_argument("--tcp", choices=TCP_TYPES, default="newreno")
    parser.add_argument("--recovery", choices=RECOVERY_TYPES, default="prr")
    parser.add_argument("--counts-once", action="store_true", help="for cubic: an acknowledgement counts by what it delivers")
    parser.add_argument("--min-rto-ms", type=float, default=200)
    parser.add_argument("--segment-bytes", type=count, default=1448, help="payload of a full segment")
    parser.add_argument("--initial-window", type=count, default=10, help="in segments")
    parser.add_argument("--acks-every", type=count, default=1, help="segments to an acknowledgement: 1 is no delayed ACK")
    parser.add_argument("--no-limited-transmit", action="store_true")
    parser.add_argument("--no-hystart", action="store_true", help="for cubic")
    parser.add_argument("--socket-buffer-bytes", type=rate,
                        help="each way (default: the bottleneck's queue and 4 x access rate x RTT)")
    parser.add_argument("--write-segments", type=count, default=44, help="a sender writes so much at once")
    parser.add_argument("--routing", choices=("static", "global", "nix"), default="static")
    parser.add_argument("--scheduler", choices=SCHEDULERS, default="map")
    parser.add_argument("--loss", type=float, help="probability of a frame to be lost behind the bottleneck, towards the sinks")
    parser.add_argument("--loss-every", type=count, help="in its place: each so-many-th frame is")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the moments in the first second at which flows start, and of losses")
    options = parser.parse_args()
    if options.flows < 1 or options.flows > 1 << 14:
        parser.error("--flows: 1 to 16384")
    if options.rtt_ms <= 4 * ACCESS_DELAY_MS:
        parser.error(f"--rtt-ms: more than {4 * ACCESS_DELAY_MS}")
    if options.counts_once and options.tcp != "cubic":
        parser.error("--counts-once: for --tcp cubic")
    if options.loss is not None and options.loss_every is not None:
        parser.error("--loss or --loss-every")
    if not 0 <= options.ignore_s < options.seconds:
        parser.error("--ignore-s: less than --seconds")
    if options.access_bps is None:
        options.access_bps = 12 * options.bottleneck_bps // (10 * options.flows)
    if options.queue_bytes is None:
        options.queue_bytes = options.bottleneck_bps * QUEUE_MS // 8000
    if options.source_queue_bytes is None:
        options.source_queue_bytes = 12 * options.access_bps * QUEUE_MS // 80000
    if options.socket_buffer_bytes is None:
        options.socket_buffer_bytes = options.queue_bytes + int(4 * options.access_bps * options.rtt_ms / 8000)
    return options


def configure(ns, options):
    """Sets the defaults that sockets and the simulator are made with."""
    boolean, number, moment = ns.BooleanValue, ns.UintegerValue, lambda text: ns.TimeValue(ns.Time(text))
    kind = lambda name: ns.TypeIdValue(ns.TypeId.LookupByName(f"ns3::{name}"))
    tcp, recovery = kind(TCP_TYPES[options.tcp]), kind(RECOVERY_TYPES[options.recovery])
    if options.counts_once:
        import cppyy
        if not cppyy.cppdef(COUNTING_ONCE):
            sys.exit("ns3_dumbbell.py: --counts-once does not compile")
        tcp = ns.TypeIdValue(cppyy.gbl.ns3.TcpCubicOnce.GetTypeId())
        if options.recovery == "prr":
            recovery = ns.TypeIdValue(cppyy.gbl.ns3.TcpPrrOnce.GetTypeId())
    for name, value in (
        ("TcpL4Protocol::SocketType", tcp),
        ("TcpL4Protocol::RecoveryType", recovery),
        ("TcpSocket::SegmentSize", number(options.segment_bytes)),
        ("TcpSocket::InitialCwnd", number(options.initial_window)),
        ("TcpSocket::DelAckCount", number(options.acks_every)),
        ("TcpSocket::SndBufSize", number(options.socket_buffer_bytes)),
        ("TcpSocket::RcvBufSize", number(options.socket_buffer_bytes)),
        ("TcpSocketBase::MinRto", moment(f"{options.min_rto_ms}ms")),
        ("TcpSocketBase::ClockGranularity", moment("1ms")),
        ("TcpSocketBase::Sack", boolean(True)),
        ("TcpSocketBase::Timestamp", boolean(True)),
        ("TcpSocketBase::WindowScaling", boolean(True)),
        ("TcpSocketBase::LimitedTransmit", boolean(not options.no_limited_transmit)),
        ("TcpCubic::HyStart", boolean(not options.no_hystart)),
    ):
        ns.Config.SetDefault(f"ns3::{name}", value)
    ns.RngSeedManager.SetRun(options.seed)
    ns.Simulator.SetScheduler(ns.ObjectFactory(f"ns3::{SCHEDULERS[options.scheduler]}"))


def pair(ns, here, there, rate_bps, delay_ms, queue_bytes):
    """Joins two nodes; both ends drop what exceeds `queue_bytes`."""
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{rate_bps}bps"))
    helper.SetChannelAttribute("Delay", ns.StringValue(f"{delay_ms}ms"))
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", ns.QueueSizeValue(ns.QueueSize(f"{queue_bytes}B")))
    # No flow control between device and traffic control: so no queue disc is put above the device either.
    helper.DisableFlowControl()
    return helper.Install(here, there)


def lose(ns, device, options):
    """What comes to this device from its link is lost by chance, or by its number."""
    if options.loss is not None:
        model = ns.CreateObject[ns.RateErrorModel]()
        model.SetAttribute("ErrorUnit", ns.StringValue("ERROR_UNIT_PACKET"))
        model.SetAttribute("ErrorRate", ns.DoubleValue(options.loss))
    elif options.loss_every is not None:
        import cppyy
        model = ns.CreateObject[ns.ReceiveListErrorModel]()
        # As many as the line could carry of full frames, at most.
        most = int(options.seconds * options.bottleneck_bps / 8 / options.segment_bytes)
        model.SetList(cppyy.gbl.std.list["uint32_t"](range(options.loss_every, most, options.loss_every)))
    else:
        return
    device.GetObject[ns.PointToPointNetDevice]().SetReceiveErrorModel(model)


class Dumbbell:
    """The network and its flows, and the counters that the run leaves in them."""

    def __init__(self, ns, options):
        self.ns, self.options = ns, options
        self.routers, self.sources, self.sinks = (ns.NodeContainer() for _ in range(3))
        self.routers.Create(2)
        self.sources.Create(options.flows)
        self.sinks.Create(options.flows)
        stack = ns.InternetStackHelper()
        stack.SetIpv6StackInstall(False)
        if options.routing == "static":
            stack.SetRoutingHelper(ns.Ipv4StaticRoutingHelper())
        elif options.routing == "nix":
            stack.SetRoutingHelper(ns.Ipv4NixVectorHelper())
        for nodes in (self.routers, self.sources, self.sinks):
            stack.Install(nodes)
        # The bottleneck is made first: it is interface 1 of both routers.
        left, right = self.routers.Get(0), self.routers.Get(1)
        self.bottleneck = pair(ns, left, right, options.bottleneck_bps, options.rtt_ms / 2 - 2 * ACCESS_DELAY_MS,
                               options.queue_bytes)
        lose(ns, self.bottleneck.Get(1), options)
        self.access = [pair(ns, self.sources.Get(flow), left, options.access_bps, ACCESS_DELAY_MS,
                            options.source_queue_bytes) for flow in range(options.flows)]
        self.leaves = [pair(ns, self.sinks.Get(flow), right, 10 * options.access_bps, ACCESS_DELAY_MS,
                            options.queue_bytes) for flow in range(options.flows)]
        middle, _, self.sink_addresses = (self.assign(base, links) for base, links in (
            (MIDDLE, [self.bottleneck]), (LEFT, self.access), (RIGHT, self.leaves)))
        if options.routing == "static":
            self.route(middle[0])
        elif options.routing == "global":
            ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
        self.start()

    def assign(self, base, links):
        """Gives each link a network of its own, and says the addresses at the first end and at the other of each."""
        helper = self.ns.Ipv4AddressHelper(self.ns.Ipv4Address(base), self.ns.Ipv4Mask("255.255.255.252"))
        addresses = []
        for link in links:
            interfaces = helper.Assign(link)
            addresses.append((interfaces.GetAddress(0), interfaces.GetAddress(1)))
            helper.NewNetwork()
        return addresses

    def route(self, middle):
        ns, helper = self.ns, self.ns.Ipv4StaticRoutingHelper()
        table = lambda node: helper.GetStaticRouting(node.GetObject[ns.Ipv4]())
        half = ns.Ipv4Mask("255.255.0.0")
        table(self.routers.Get(0)).AddNetworkRouteTo(ns.Ipv4Address(RIGHT), half, middle[1], 1)
        table(self.routers.Get(1)).AddNetworkRouteTo(ns.Ipv4Address(LEFT), half, middle[0], 1)
        for nodes in (self.sources, self.sinks):
            for flow in range(self.options.flows):
                # The far end needs no name: a point-to-point link has only one.
                table(nodes.Get(flow)).SetDefaultRoute(ns.Ipv4Address("0.0.0.0"), 1)

    def start(self):
        ns, options = self.ns, self.options
        draw = random.Random(options.seed)
        listening = ns.PacketSinkHelper(
            "ns3::TcpSocketFactory", ns.InetSocketAddress(ns.Ipv4Address.GetAny(), PORT).ConvertTo())
        self.receivers = listening.Install(self.sinks)
        self.senders = ns.ApplicationContainer()
        for flow in range(options.flows):
            to = ns.InetSocketAddress(self.sink_addresses[flow][0], PORT).ConvertTo()
            sender = ns.BulkSendHelper("ns3::TcpSocketFactory", to)
            sender.SetAttribute("MaxBytes", ns.UintegerValue(0))
            sender.SetAttribute("SendSize", ns.UintegerValue(options.write_segments * options.segment_bytes))
            sending = sender.Install(self.sources.Get(flow))
            sending.Start(ns.Seconds(draw.random()))
            self.senders.Add(sending)

    def queues(self, links, ends=(0, 1)):
        return [link.Get(end).GetObject[self.ns.PointToPointNetDevice]().GetQueue() for link in links for end in ends]

    def counters(self):
        """What has happened since the beginning. `offered` came to the bottleneck towards the sinks; of it, `dropped`."""
        everywhere = self.queues([self.bottleneck, *self.access, *self.leaves])
        bottleneck, sink = self.queues([self.bottleneck], [0])[0], self.ns.PacketSink
        refused = lambda queues: sum(queue.GetTotalDroppedPackets() for queue in queues)
        dropped, at_sources = refused([bottleneck]), refused(self.queues(self.access, [0]))
        return {
            "events": self.ns.Simulator.GetEventCount(),
            # A device sends through its queue always, also when it is idle.
            "packet_hops": sum(queue.GetTotalReceivedPackets() - queue.GetNPackets() for queue in everywhere),
            "offered": bottleneck.GetTotalReceivedPackets() + dropped,
            "dropped": dropped,
            "dropped_at_sources": at_sources,
            "dropped_elsewhere": refused(everywhere) - dropped - at_sources,
            "received_bytes": [self.receivers.Get(flow).GetObject[sink]().GetTotalRx()
                               for flow in range(self.options.flows)],
        }


def run(ns, seconds):
    """Lets this much virtual time pass, and says the wall time and the user and system time of this process for it."""
    ns.Simulator.Stop(ns.Seconds(seconds))
    usage, begun = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    ns.Simulator.Run()
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_SELF)
    return wall, after.ru_utime - usage.ru_utime, after.ru_stime - usage.ru_stime


def speed(times, events, hops):
    wall, user, system = times
    return {
        "wall_s": round(wall, 3), "user_s": round(user, 3), "system_s": round(system, 3),
        "events": events, "events_per_s": round(events / wall), "events_per_user_s": round(events / max(user, 1e-6)),
        "packet_hops": hops, "packet_hops_per_s": round(hops / wall),
        "packet_hops_per_user_s": round(hops / max(user, 1e-6)),
    }


def version_and_build(ns):
    """What the libraries that this process has mapped are, by their names, their files and what is in them."""
    maps = Path("/proc/self/maps").read_text().split("\n")
    core, internet = (next(Path(line.split()[-1]) for line in maps if f"-{name}" in line and "libns3" in line)
                      for name in ("core", "internet"))
    profiles = [path.stem.removeprefix("ns3Targets-") for path in core.parent.glob("cmake/**/ns3Targets-*.cmake")]
    code = internet.read_bytes()
    return core.stem.removeprefix("libns").split("-")[0], {
        "profile": ", ".join(profiles) or core.stem.partition("-core-")[2] or "unknown",
        # A component exists only where NS_LOG is compiled in; so does an assertion's text.
        "logging": bool(len(ns.LogComponent.GetComponentList())),
        "assertions": b"NS_ASSERT failed" in code,
        "compiler": code[code.find(b"GCC: ("):].split(b"\0")[0].decode() if b"GCC: (" in code else "unknown",
    }


def main():
    options = arguments()
    try:
        from ns import ns
    except ImportError as error:
        sys.exit(f"ns3_dumbbell.py: ns-3 is not there ({error}): pip install ns3")
    configure(ns, options)
    version, build = version_and_build(ns)
    rss_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    network = Dumbbell(ns, options)
    begun = network.counters()
    whole = []
    if options.ignore_s:
        whole.append(run(ns, options.ignore_s))
        begun = network.counters()
    measured = run(ns, options.seconds - options.ignore_s)
    whole.append(measured)
    ended = network.counters()
    goodput = [8 * (now - then) / (options.seconds - options.ignore_s)
               for now, then in zip(ended["received_bytes"], begun["received_bytes"])]
    offered, dropped = (ended[name] - begun[name] for name in ("offered", "dropped"))
    squares = sum(each * each for each in goodput)
    print(json.dumps({
        "simulator": "ns-3", "version": version, "build": build, "options": vars(options),
        "run": speed([sum(column) for column in zip(*whole)], ended["events"], ended["packet_hops"]),
        "measured": speed(measured, ended["events"] - begun["events"], ended["packet_hops"] - begun["packet_hops"]),
        "rss_peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "rss_before_kib": rss_before,
        "goodput_bps": round(sum(goodput)), "goodput_bps_mean": round(sum(goodput) / len(goodput)),
        "jain": round(sum(goodput) ** 2 / (len(goodput) * squares), 4) if squares else None,
        "offered": offered, "dropped": dropped, "loss_rate": round(dropped / max(1, offered), 6),
        "dropped_at_sources": ended["dropped_at_sources"] - begun["dropped_at_sources"],
        "dropped_elsewhere": ended["dropped_elsewhere"],
        "goodput_bps_per_flow": [round(each) for each in goodput],
    }))
    ns.Simulator.Destroy()


if __name__ == "__main__":
    main()
