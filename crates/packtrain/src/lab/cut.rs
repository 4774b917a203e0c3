//! A cable that is cut while something goes over it, and mended again.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::cable::{Cable, Cut, Side};
use super::measure::{self, Echoes};
use super::messages::{self, Load, Report};
use super::namespaces::Namespace;
use super::stream::{self, Amount, Protocol, Transfer};
use super::{Result, now, pause};

/// What a cut is made under: pings, a thousand a second.
const PING_INTERVAL: Duration = Duration::from_millis(1);
/// 20 Mbit/s of payload.
const MESSAGE_BYTES: usize = 1250;
const MESSAGES_PER_SECOND: u64 = 2000;
const STREAM_PORT: u16 = 7001;
const MESSAGE_PORT: u16 = 7002;

/// From one host to an address of the other.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    pub from: &'a Namespace,
    pub to: &'a Namespace,
    pub address: IpAddr,
}

/// When the cable is cut and mended, each after the one before.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub before: Duration,
    pub cut: Duration,
    pub after: Duration,
}

/// What pings came through, and how long the kernels took to tell of the cut.
#[derive(Clone, Copy, Debug)]
pub struct Pinged {
    pub echoes: Echoes,
    pub told_after: Duration,
}

impl Plan {
    pub fn whole(self) -> Duration {
        self.before + self.cut + self.after
    }

    /// Cuts and mends in time, and gives when.
    fn follow(self, cable: &mut Cable, at: Side) -> Result<Moments> {
        pause(self.before);
        let cut = cable.cut_and_tell(at)?;
        pause(self.cut.saturating_sub(cut.at.elapsed()));
        let mended = cable.mend(at)?;
        Ok(Moments { cut, mended })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Moments {
    pub cut: Cut,
    pub mended: Instant,
}

/// Cuts the cable under pings.
pub fn under_pings(path: Path<'_>, cable: &mut Cable, at: Side, plan: Plan) -> Result<Pinged> {
    let count = plan.whole().as_millis() / PING_INTERVAL.as_millis();
    let address = path.address.to_string();
    // The first of all asks for the address, and would be the longest gap.
    measure::ping_count(path.from, &address, Duration::from_millis(20), 3)?;
    std::thread::scope(|scope| {
        let pings =
            scope.spawn(|| measure::echoes(path.from, &address, PING_INTERVAL, count as u32));
        let moments = plan.follow(cable, at);
        let echoes = pings.join().expect("the pings have no reason to panic")?;
        let Moments { cut, .. } = moments?;
        Ok(Pinged {
            echoes,
            told_after: cut.told.saturating_duration_since(cut.at),
        })
    })
}

/// What came through.
#[derive(Clone, Debug)]
pub struct Crossed {
    pub transfer: Transfer,
    /// Nothing where none were sent.
    pub messages: Option<Report>,
    /// Until as much arrived as the rest carries, after the cut; `None`: not while it was cut.
    pub rest_after: Option<Duration>,
    /// Until as much arrived as all carry, after the cable was mended; `None`: not before the end.
    pub all_after: Option<Duration>,
}

/// What is sent meanwhile, and what is a full speed.
#[derive(Clone, Copy, Debug)]
pub struct Under {
    pub protocol: Protocol,
    /// Numbered messages of 20 Mbit/s beside the transfer.
    pub messages: bool,
    pub rest_bps: f64,
    pub all_bps: f64,
}

/// Cuts the cable under a transfer, and messages beside it.
pub fn under_transfer(
    path: Path<'_>,
    cable: &mut Cable,
    at: Side,
    plan: Plan,
    under: Under,
) -> Result<Crossed> {
    let Path { from, to, address } = path;
    let load = Load {
        size: MESSAGE_BYTES,
        duration: plan.whole(),
        rate_per_second: Some(MESSAGES_PER_SECOND),
        real_time: false,
    };
    let start = now();
    std::thread::scope(|scope| {
        let transfer = scope.spawn(|| {
            let amount = Amount::Time(plan.whole());
            let at = SocketAddr::new(address, STREAM_PORT);
            stream::transfer(from, to, at, amount, under.protocol, start)
        });
        let messages = under.messages.then(|| {
            let at = SocketAddr::new(address, MESSAGE_PORT);
            scope.spawn(move || messages::measure_in_time(from, to, at, load, start))
        });
        let moments = plan.follow(cable, at);
        let transfer = transfer.join().expect("a transfer has no reason to panic");
        let messages =
            messages.map(|thread| thread.join().expect("messages have no reason to panic"));
        let (transfer, messages, moments) = (transfer?, messages.transpose()?, moments?);
        let arrivals = match &messages {
            Some((_, beside)) => transfer.arrivals.with(beside),
            None => transfer.arrivals.clone(),
        };
        let end = start + plan.whole();
        Ok(Crossed {
            rest_after: arrivals.reaches(under.rest_bps, moments.cut.at, moments.mended),
            all_after: arrivals.reaches(under.all_bps, moments.mended, end),
            messages: messages.map(|(report, _)| report),
            transfer,
        })
    })
}
