//! `packtrain demo`: what packtrain does, measured here and now, in plain words.
//!
//! Three hosts on two switches, all of them namespaces. A and B have a link of 100 Mbit/s to each
//! switch: over the first they talk plainly, over the second through `pt0`. C is on the second as
//! well, and has no packtrain. Then two hosts with several cables between them.

mod several_links;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use super::host::Host;
use super::measure::{self, Bulk, RoundTrips};
use super::messages::{self, Load, Report};
use super::namespaces::{Namespace, Process, clean_up_on_signals};
use super::table::{Table, grouped, rate, time};
use super::{Result, wire};

const RATE_MBIT: u32 = 100;
const BULK: Duration = Duration::from_secs(5);
const MESSAGES: Duration = Duration::from_secs(3);
const MESSAGE_BYTES: usize = 64;
const LARGE_PINGS: [usize; 2] = [9_000, 60_000];
/// Enough for the largest of them with its headers; a TAP takes up to 65,521.
const LARGE_MTU: u32 = 60_100;

const A_PLAIN: &str = "10.8.0.1";
const B_PLAIN: &str = "10.8.0.2";
const A_PT: &str = "10.9.0.1";
const B_PT: &str = "10.9.0.2";
const C: &str = "10.9.0.3";

/// Everything that the demonstration stands on. Fields are dropped in this order.
#[derive(Debug)]
struct Stage {
    _servers: Vec<Process>,
    a: Host,
    b: Host,
    c: Namespace,
    _switch: Namespace,
}

/// What one way of sending gave.
#[derive(Clone, Copy, Debug)]
struct Way {
    bulk: Bulk,
    loaded_ping: RoundTrips,
    idle_ping: RoundTrips,
    messages: Report,
    frames_per_message: f64,
}

/// Shows it. `packtrain` is the program to show: this one.
pub fn run(packtrain: &Path) -> Result<()> {
    super::check_available()?;
    clean_up_on_signals()?;
    println!(
        "packtrain demo: hosts A and B over links of {RATE_MBIT} Mbit/s, and C without packtrain"
    );
    println!("(network namespaces of this machine, gone at the end; less than a minute)\n");

    say("making hosts, cables and switches");
    let stage = Stage::set(packtrain)?;
    let plain = stage.way("plain", "eth0", B_PLAIN)?;
    let packed = stage.way("pt0", "eth1", B_PT)?;
    say("C, which has no packtrain, talks to A and B");
    let from_c = [A_PT, B_PT].map(|host| stage.third_host(host));
    say("pings that are larger than the links' MTU");
    let large = stage.large_pings()?;
    say("");

    let mut table = Table::new(&["what", "plain", "through pt0"]);
    let mut row = |what: &str, show: &dyn Fn(&Way) -> String| {
        table.row([what.to_owned(), show(&plain), show(&packed)]);
    };
    row("1. one TCP flow, goodput", &|w| rate(w.bulk.goodput_bps));
    row("   segments sent again", &|w| {
        w.bulk.retransmits.to_string()
    });
    row("   ping meanwhile: half below", &|w| {
        time(w.loaded_ping.p50_us)
    });
    row("   ping meanwhile: 99 of 100 below", &|w| {
        time(w.loaded_ping.p99_us)
    });
    row("2. messages of 64 bytes, delivered a second", &|w| {
        grouped(w.messages.delivered_per_second)
    });
    row("   frames on the wire for 100 messages", &|w| {
        format!("{:.0}", w.frames_per_message * 100.0)
    });
    row("   99 of 100 arrive within", &|w| {
        time(w.messages.delay_p99_us)
    });
    row("   lost, of 1000", &|w| {
        format!(
            "{:.1}",
            1000.0 * w.messages.lost() as f64 / w.messages.sent.max(1) as f64
        )
    });
    for (host, result) in ["A", "B"].iter().zip(&from_c) {
        let text = match result {
            Ok((ping, bulk)) => {
                format!("ping {}, TCP {}", time(ping.p50_us), rate(bulk.goodput_bps))
            }
            Err(error) => format!("failed: {error}"),
        };
        table.row([
            format!("3. C to {host}, C plain as ever"),
            "-".to_owned(),
            text,
        ]);
    }
    for (size, plain, packed) in large {
        let name = format!(
            "4. ping of {} bytes, MTU of the links 1500",
            grouped(size as f64)
        );
        table.row([name, plain, packed]);
    }
    let mut row = |what: &str, show: &dyn Fn(&Way) -> String| {
        table.row([what.to_owned(), show(&plain), show(&packed)]);
    };
    row("5. ping over the idle link: half below", &|w| {
        time(w.idle_ping.p50_us)
    });

    println!("{table}");
    println!(
        "packed: {:.1} frames a train on average (`packtrain status pt0`)\n",
        stage
            .a
            .status()?
            .trains
            .frames_per_train_mean
            .unwrap_or(0.0)
    );
    drop(stage);
    several_links::show(packtrain)?;
    println!("Next, on two hosts that share a segment over eth1 (as root):");
    println!("  packtrain up pt0 --link eth1 --address 10.9.0.1/24     # 10.9.0.2/24 on the other");
    println!("  ping 10.9.0.2");
    println!("  packtrain status pt0");
    println!("  packtrain down pt0");
    println!("With a second cable between them: --link eth1 --link eth2 on both.");
    Ok(())
}

impl Stage {
    fn set(packtrain: &Path) -> Result<Stage> {
        let switch = Namespace::create("demo")?;
        let a = Host::create("demo", packtrain)?;
        let b = Host::create("demo", packtrain)?;
        let c = Namespace::create("demo")?;
        for (port, host, interface) in [
            ("a0", &a.namespace, "eth0"),
            ("b0", &b.namespace, "eth0"),
            ("a1", &a.namespace, "eth1"),
            ("b1", &b.namespace, "eth1"),
            ("c1", &c, "eth1"),
        ] {
            wire::veth((host, interface), (&switch, port))?;
            wire::shape(host, interface, RATE_MBIT)?;
        }
        wire::bridge(&switch, "br0", &["a0", "b0"])?;
        wire::bridge(&switch, "br1", &["a1", "b1", "c1"])?;
        wire::add_address(&a.namespace, "eth0", &format!("{A_PLAIN}/24"))?;
        wire::add_address(&b.namespace, "eth0", &format!("{B_PLAIN}/24"))?;
        wire::add_address(&c, "eth1", &format!("{C}/24"))?;
        a.up("eth1", &["--address", &format!("{A_PT}/24")])?;
        b.up("eth1", &["--address", &format!("{B_PT}/24")])?;
        wire::cubic(&a.namespace, "10.8.0.0/24", "eth0")?;
        wire::cubic(&a.namespace, "10.9.0.0/24", "pt0")?;
        wire::cubic(&c, "10.9.0.0/24", "eth1")?;
        a.wait_for_peers(1)?;
        b.wait_for_peers(1)?;
        let servers = vec![
            measure::iperf3_server(&a.namespace)?,
            measure::iperf3_server(&b.namespace)?,
        ];
        Ok(Stage {
            _servers: servers,
            a,
            b,
            c,
            _switch: switch,
        })
    }

    fn way(&self, name: &str, interface: &str, to: &str) -> Result<Way> {
        let (a, b) = (&self.a.namespace, &self.b.namespace);
        say(&format!("{name}: pings over an idle link"));
        let idle_ping = measure::ping_count(a, to, Duration::from_millis(10), 100)?;
        say(&format!("{name}: one TCP flow, {} s", BULK.as_secs()));
        let (bulk, loaded_ping) = measure::bulk_and_ping(a, to, BULK, &[])?;
        say(&format!("{name}: small messages, {} s", MESSAGES.as_secs()));
        let before = wire::sent(a, interface)?;
        let load = Load {
            size: MESSAGE_BYTES,
            duration: MESSAGES,
            rate_per_second: None,
            real_time: false,
        };
        let at = (
            to.parse::<std::net::IpAddr>().expect("an address of ours"),
            7777,
        )
            .into();
        let messages = messages::measure(a, b, at, load)?;
        let frames = wire::sent(a, interface)?.0 - before.0;
        Ok(Way {
            bulk,
            loaded_ping,
            idle_ping,
            messages,
            frames_per_message: frames as f64 / messages.delivered.max(1) as f64,
        })
    }

    fn third_host(&self, to: &str) -> Result<(RoundTrips, Bulk)> {
        let ping = measure::ping_count(&self.c, to, Duration::from_millis(10), 20)?;
        let bulk = measure::bulk(&self.c, to, Duration::from_secs(1), &[])?;
        Ok((ping, bulk))
    }

    /// For each size: what became of it plainly, and through `pt0`, with "don't fragment" set.
    fn large_pings(&self) -> Result<Vec<(usize, String, String)>> {
        for host in [&self.a, &self.b] {
            wire::set_mtu(&host.namespace, "pt0", LARGE_MTU)?;
        }
        let show = |to: &str, size: usize| -> Result<String> {
            let size = size.to_string();
            let words = [
                "ping", "-n", "-M", "do", "-s", &size, "-c", "5", "-i", "0.2", "-W", "1", to,
            ];
            let output = self.a.namespace.try_exec(words)?;
            let said = String::from_utf8_lossy(&output.stdout);
            let complaint = String::from_utf8_lossy(&output.stderr);
            if said.contains("too long") || complaint.contains("too long") {
                return Ok("refused: too long".to_owned());
            }
            let trips = measure::round_trips(&said)?;
            Ok(match trips.received {
                0 => "no answer".to_owned(),
                _ => format!(
                    "{} of {} answered, {}",
                    trips.received,
                    trips.sent,
                    time(trips.p50_us)
                ),
            })
        };
        LARGE_PINGS
            .into_iter()
            .map(|size| Ok((size, show(B_PLAIN, size)?, show(B_PT, size)?)))
            .collect()
    }
}

/// Progress, on one line of a terminal; the table stays alone on the standard output.
fn say(what: &str) {
    let mut out = std::io::stderr();
    let _ = if out.is_terminal() {
        write!(
            out,
            "\r\x1b[K{what}{}",
            if what.is_empty() { "" } else { " …" }
        )
    } else if what.is_empty() {
        Ok(())
    } else {
        writeln!(out, "{what} …")
    };
    let _ = out.flush();
}
