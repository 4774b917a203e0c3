use packtrain::lab::emulator::port::PortPlan;
use packtrain::lab::emulator::*;
use packtrain::linux::port_rate::*;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_sim::net::cut::Cut;
use packtrain_sim::net::network::*;
use packtrain_sim::net::wire::*;
use std::time::Duration as D;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let rate: u64 = a[3].parse().unwrap();
    let wire_rate: u64 = a[5].parse().unwrap();
    let delay = D::from_micros(a[4].parse().unwrap());
    let mut w = WireConfig::perfect(wire_rate, delay);
    w.queue_bytes_max = 8 << 20;
    let plan = Plan {
        seed: 1,
        joins: vec![],
        wires: vec![],
        segments: vec![SegmentConfig {
            kind: SegmentKind::Cable,
            mtu: 1500,
            carries_offload: true,
            up: vec![w; 2],
            down: vec![],
            cut: Cut::default(),
        }],
        ports: (0..2)
            .map(|i| PortPlan {
                namespace: a[1 + i].clone(),
                interface: "eth0".into(),
                mac: MacAddr([2, 0, 0, 0, 0, i as u8]),
                mtu: 1500,
                place: PortId {
                    segment: 0,
                    port: i,
                },
                rate: (rate > 0).then_some(PortRate {
                    rate_bps: rate,
                    counted: Counted::Ethernet,
                    mtu: 1500,
                    queue_frames_max: 1000,
                }),
            })
            .collect(),
    };
    let ports = plan
        .ports
        .iter()
        .map(|p| Port::create(p).unwrap())
        .collect();
    let mut e = Emulator::new(&plan, ports).unwrap();
    println!("ready");
    let mut n = e.now();
    loop {
        e.turn().unwrap();
        if e.now().since(n) > D::from_secs(1) {
            n = e.now();
            let s = e.lateness.summary();
            if s.frames > 10 {
                eprintln!("{s:?} not taken {}", e.not_taken);
            }
            e.lateness.reset();
        }
    }
}
