//! Coding and restoring on one core, without any input or output: how many frames a second.

use std::time::Duration;

use packtrain_proto::wire::coded::Coding;
use rustix::time::{ClockId, clock_gettime};

use super::coded::Ends;
use super::traffic::draws::Draws;
use super::traffic::game::{self, Side};
use super::traffic::speech::Speech;
use super::traffic::voice::{self, Background};
use super::traffic::{http, nfs, packet};
use crate::lab::Result;
use crate::lab::bench_aggregation::conversations::Exchange;
use crate::lab::figure::{Target, Unit};
use crate::lab::one_link::Bench;
use crate::lab::one_link::figure::Runs;

const DURATION: Duration = Duration::from_millis(500);
const SMALL: Target = Target::AtLeast(2e6);
/// Of UDP in the smallest frame that Ethernet does not pad.
const PAYLOAD_BYTES: usize = 18;
const PACKETS: usize = 4096;

/// What is coded, and how.
struct Kind {
    name: String,
    coding: Coding,
    target: Target,
    packets: Vec<Vec<u8>>,
}

pub fn measure(bench: &mut Bench) -> Result<()> {
    for kind in kinds()? {
        let runs: Vec<f64> = (0..bench.rounds).map(|_| per_second(&kind)).collect();
        bench.compare(
            format!(
                "coded and restored on one core, frames a second: {}",
                kind.name
            ),
            Unit::PerSecond,
            kind.target,
            Runs::of_pt0(runs),
        );
    }
    Ok(())
}

fn kinds() -> Result<Vec<Kind>> {
    let small = |flows, coding| {
        let with = with(coding);
        Kind {
            name: format!("60 B UDP, flows: {flows}, {with}"),
            coding,
            target: SMALL,
            packets: small(flows),
        }
    };
    let codings = [Coding::Headers, Coding::Lz4];
    let all = |coding| [1, 16, 64].map(|flows| small(flows, coding));
    let mut kinds: Vec<Kind> = codings.into_iter().flat_map(all).collect();
    for coding in [Coding::Lz4, Coding::Mixing] {
        kinds.extend(like_real(coding)?);
    }
    Ok(kinds)
}

fn with(coding: Coding) -> &'static str {
    match coding {
        Coding::Headers => "headers",
        Coding::Lz4 => "headers and LZ4",
        Coding::Zstd => "headers and Zstandard",
        Coding::Mixing => "mixing",
    }
}

/// Of sixteen senders in turns.
fn like_real(coding: Coding) -> Result<Vec<Kind>> {
    const SENDERS: usize = 16;
    const EACH: usize = PACKETS / SENDERS;
    let kind = |name: &str, payloads: [Vec<Vec<u8>>; SENDERS]| Kind {
        name: format!("{name}, flows: {SENDERS}, {}", with(coding)),
        coding,
        target: Target::Shown,
        packets: packet::in_turns(&payloads.each_ref().map(Vec::as_slice)),
    };
    let seconds = EACH as f64 / 30.0;
    let said = |exchanges: fn(usize, u64, usize) -> Vec<Exchange>| {
        std::array::from_fn(|connection| {
            let exchanges = exchanges(connection, 1, EACH).into_iter();
            exchanges.map(|exchange| exchange.question).collect()
        })
    };
    let mut kinds = vec![
        kind(
            "a game's server",
            std::array::from_fn(|player| game::packets(Side::Server, player, 1, seconds)),
        ),
        kind("HTTP requests", said(http::exchanges)),
        kind("NFS calls", said(nfs::exchanges)),
    ];
    if let Some(speech) = Speech::of_programs()? {
        let call = |end: usize| voice::call(&speech, Background::Muted, end as u64, EACH);
        kinds.push(kind("calls that mute", std::array::from_fn(call)));
    }
    Ok(kinds)
}

/// Of so many flows in turns, numbered and stamped with a time, as the messages of the other parts.
fn small(flows: u16) -> Vec<Vec<u8>> {
    let mut draws = Draws::new(u64::from(flows));
    let mut time_ns = 1_770_000_000_000_000_000_u64;
    let mut of = |number: usize| {
        time_ns += draws.below(10_000);
        let mut payload = Vec::with_capacity(PAYLOAD_BYTES);
        payload.extend_from_slice(&(number as u64).to_be_bytes());
        payload.extend_from_slice(&time_ns.to_be_bytes());
        payload.resize(PAYLOAD_BYTES, 0);
        let flow = number as u16 % flows;
        packet::udp(flow, number as u16 / flows, &payload)
    };
    (0..PACKETS).map(&mut of).collect()
}

/// Of the time in which the thread ran: what else the machine does is not coding's.
fn per_second(kind: &Kind) -> f64 {
    let mut ends = Ends::default();
    let (begin, mut packets) = (ran(), 0);
    while ran() - begin < DURATION {
        packets += ends.pass(kind.coding, &kind.packets).packets;
    }
    packets as f64 / (ran() - begin).as_secs_f64()
}

fn ran() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_packets_share_a_train_be_they_of_one_flow_or_of_many() {
        for flows in [1, 16, 64] {
            let packets = small(flows);
            assert!(packets.iter().all(|packet| packet.len() == 46));
            let coded = Ends::default().pass(Coding::Headers, &packets);
            let a_train = coded.packets as f64 / coded.trains as f64;
            // 30 as they are.
            assert!(a_train > 60.0, "{flows}: {a_train}");
        }
    }
}
