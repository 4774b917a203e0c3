//! A link that is added to a line while a transfer goes over the others.

use std::net::SocketAddr;
use std::time::Duration;

use super::host::Host;
use super::stream::{self, Amount, Protocol, Transfer};
use super::{Result, now, pause};

const STREAM_PORT: u16 = 7005;
/// Until the flow has the speed of what is there already.
const BEFORE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(3);

/// A line that two hosts have, and one more link that both may give it.
#[derive(Clone, Copy, Debug)]
pub struct Addition<'a> {
    pub a: &'a Host,
    pub b: &'a Host,
    pub line: &'a str,
    pub link: &'a str,
    /// B's on the line.
    pub to: std::net::IpAddr,
}

#[derive(Clone, Debug)]
pub struct Joined {
    pub transfer: Transfer,
    /// From the first command's start until as much arrived as all links carry; `None`: not before the end.
    pub all_after: Option<Duration>,
    /// What the two commands took, one after the other: part of that.
    pub commands: Duration,
}

impl Addition<'_> {
    fn command(&self, word: &str) -> Result<()> {
        for host in [self.a, self.b] {
            host.packtrain(&["link", word, self.line, self.link])?;
        }
        Ok(())
    }

    /// Takes the link away, and adds it at both ends under a transfer.
    pub fn under_transfer(&self, all_bps: f64) -> Result<Joined> {
        self.command("remove")?;
        let start = now();
        std::thread::scope(|scope| {
            let transfer = scope.spawn(|| {
                let at = SocketAddr::new(self.to, STREAM_PORT);
                let (from, to) = (&self.a.namespace, &self.b.namespace);
                stream::transfer(
                    from,
                    to,
                    at,
                    Amount::Time(BEFORE + AFTER),
                    Protocol::Tcp,
                    start,
                )
            });
            pause(BEFORE);
            let asked_at = now();
            let added = self.command("add");
            let commands = asked_at.elapsed();
            let transfer = transfer
                .join()
                .expect("a transfer has no reason to panic")?;
            added?;
            let end = start + BEFORE + AFTER;
            Ok(Joined {
                all_after: transfer.arrivals.reaches(all_bps, asked_at, end),
                transfer,
                commands,
            })
        })
    }
}
