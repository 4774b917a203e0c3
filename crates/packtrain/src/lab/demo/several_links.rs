//! What a second cable brings: twice the speed for one flow, and nothing lost when one is cut.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use super::{RATE_MBIT, say};
use crate::lab::cable::{Cable, Side};
use crate::lab::cut::{self, Crossed, Plan, Under};
use crate::lab::host::Host;
use crate::lab::measure::Echoes;
use crate::lab::stream::{self, Amount, Protocol, Transfer};
use crate::lab::table::{Table, grouped, rate, time};
use crate::lab::{Result, now, pause};

const FLOW: Duration = Duration::from_secs(4);
const CUT_UNDER_PINGS: Plan = Plan {
    before: Duration::from_millis(1000),
    cut: Duration::from_millis(1000),
    after: Duration::from_millis(500),
};
const CUT_UNDER_TRANSFER: Plan = Plan {
    before: Duration::from_millis(1500),
    cut: Duration::from_millis(1500),
    after: Duration::from_millis(2000),
};
const ONE: &str = "pt1";
const TWO: &str = "pt0";
const B_ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 1, 2));
const B_TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 0, 2));
/// Nine tenths of what a link carries, less what frames have around their payload.
const FULL_SPEED_BPS: f64 = RATE_MBIT as f64 * 1e6 * 0.95 * 0.9;

/// Hosts with a cable for the one line, and two for the other. Fields are dropped in this order.
#[derive(Debug)]
struct Stage {
    cables: [Cable; 2],
    a: Host,
    b: Host,
}

/// Shows it, as a table.
pub fn show(packtrain: &Path) -> Result<()> {
    say("two hosts with cables to spare");
    let mut stage = Stage::set(packtrain)?;
    say(&format!("one link: one TCP flow, {} s", FLOW.as_secs()));
    let (one, _) = stage.flow(ONE, B_ONE)?;
    say(&format!("two links: one TCP flow, {} s", FLOW.as_secs()));
    let (two, shares) = stage.flow(TWO, B_TWO)?;
    say("two links: a cable is cut under 1000 pings a second");
    let pinged = stage.cut(0, |path, cable| {
        cut::under_pings(path, cable, Side::B, CUT_UNDER_PINGS)
    })?;
    // The peer hears of the cable that is back with the next hello.
    pause(Duration::from_millis(1500));
    say("two links: the other cable is cut under TCP and 20 Mbit/s of UDP");
    let under = Under {
        protocol: Protocol::Tcp,
        messages: true,
        rest_bps: FULL_SPEED_BPS,
        all_bps: 2.0 * FULL_SPEED_BPS,
    };
    let crossed = stage.cut(1, |path, cable| {
        cut::under_transfer(path, cable, Side::B, CUT_UNDER_TRANSFER, under)
    })?;
    say("");
    println!("{}", table(&one, &two, &shares, &pinged.echoes, &crossed));
    Ok(())
}

fn table(
    one: &Transfer,
    two: &Transfer,
    shares: &str,
    echoes: &Echoes,
    crossed: &Crossed,
) -> Table {
    let mut table = Table::new(&["what", "pt1, one link", "pt0, two links"]);
    let goodput = |transfer: &Transfer| rate(transfer.arrivals.rate_bps());
    table.row([
        "6. one TCP flow, goodput".to_owned(),
        goodput(one),
        goodput(two),
    ]);
    let mut row = |what: &str, two: String| {
        table.row([what.to_owned(), "-".to_owned(), two]);
    };
    row("   sent over each link", shares.to_owned());
    let of = |wrong: u64, all: u64| format!("{wrong} of {}", grouped(all as f64));
    row(
        "7. a cable cut under a ping every ms: lost",
        of(echoes.lost(), echoes.sent),
    );
    row("   longest time without an answer", time(echoes.gap_max_us));
    let transfer = &crossed.transfer;
    row(
        "8. a cable cut under TCP and UDP: bytes missing or wrong",
        of(
            transfer.sent_bytes - transfer.right_bytes,
            transfer.sent_bytes,
        ),
    );
    if let Some(messages) = &crossed.messages {
        row("   datagrams lost", of(messages.lost(), messages.sent));
        row(
            "   datagrams out of order, or twice",
            of(messages.reordered + messages.duplicated, messages.sent),
        );
    }
    let after = |duration: Option<Duration>| match duration {
        Some(duration) => time(duration.as_secs_f64() * 1e6),
        None => "not reached".to_owned(),
    };
    row(
        "   until the full speed of the rest",
        after(crossed.rest_after),
    );
    row("   … of both, once mended", after(crossed.all_after));
    table
}

impl Stage {
    fn set(packtrain: &Path) -> Result<Stage> {
        let a = Host::create("demo", packtrain)?;
        let b = Host::create("demo", packtrain)?;
        let lay = |name| Cable::lay_shaped(&a.namespace, &b.namespace, name, RATE_MBIT);
        let cables = [lay("eth1")?, lay("eth2")?];
        lay("eth3")?;
        for (host, number) in [(&a, 1), (&b, 2)] {
            let address = format!("10.9.0.{number}/24");
            host.up_over(TWO, &["eth1", "eth2"], &["--address", &address])?;
            let address = format!("10.9.1.{number}/24");
            host.up_over(ONE, &["eth3"], &["--address", &address])?;
        }
        for line in [ONE, TWO] {
            a.wait_for_peers_of(line, 1)?;
            b.wait_for_peers_of(line, 1)?;
        }
        Ok(Stage { cables, a, b })
    }

    /// One flow, and what part of it each link carried.
    fn flow(&self, line: &str, to: IpAddr) -> Result<(Transfer, String)> {
        let sent = || -> Result<Vec<u64>> {
            let links = self.a.status_of(line)?.links.into_iter();
            Ok(links.map(|link| link.tx.bytes).collect())
        };
        let before = sent()?;
        let transfer = stream::transfer(
            &self.a.namespace,
            &self.b.namespace,
            SocketAddr::new(to, 7000),
            Amount::Time(FLOW),
            Protocol::Tcp,
            now(),
        )?;
        let links = sent()?.into_iter().zip(before);
        let bytes: Vec<f64> = links.map(|(now, then)| (now - then) as f64).collect();
        let all: f64 = bytes.iter().sum();
        let shares = bytes.iter().map(|b| format!("{:.0} %", 100.0 * b / all));
        Ok((transfer, shares.collect::<Vec<_>>().join(" + ")))
    }

    fn cut<T>(
        &mut self,
        cable: usize,
        cut: impl FnOnce(cut::Path<'_>, &mut Cable) -> Result<T>,
    ) -> Result<T> {
        let path = cut::Path {
            from: &self.a.namespace,
            to: &self.b.namespace,
            address: B_TWO,
        };
        cut(path, &mut self.cables[cable])
    }
}
