//! How many captured frames a second `packtrain whatif` takes, as its slowest thread does: intake, replay (engines and direct
//! path) or ledger (plain line and all that is counted). Here they take turns on one, and say what each has had of it.
//! `./x bench whatif`; a word behind it chooses the kinds whose name has it.

use packtrain_proto::class::{Pack, defaults};
use packtrain_proto::time::Duration;
use packtrain_sim::whatif::{Batch, Intake, Ledger, Replay, Setup, WireSettings};

const FRAMES: u64 = 2_000_000;

const INTAKE: usize = 0;
const REPLAY: usize = 1;
const LEDGER: usize = 2;

fn udp(from: u8, to: u8, port: u16, payload: usize, number: u32) -> Vec<u8> {
    let total = (28 + payload) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend((number as u16).to_be_bytes());
    frame.extend([0, 0, 64, 17, 0, 0, 10, 9, 0, from, 10, 9, 0, to]);
    frame.extend(port.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend((total - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload).map(|at| (number as usize * 31 + at * 7) as u8));
    frame
}

/// What this thread has had of processors: others may want them too.
fn had() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let nanos = text.split_whitespace().next().and_then(|n| n.parse().ok());
    std::time::Duration::from_nanos(nanos.expect("it begins with a number"))
}

fn main() {
    /// Name, and what is sent over which wire, how packed, by which path.
    type Kind = (
        &'static str,
        u64,
        usize,
        Option<u64>,
        Option<u64>,
        Pack,
        bool,
    );
    let kinds: [Kind; 6] = [
        (
            "small, idle wire, direct",
            10_000,
            100,
            Some(1_000_000_000),
            None,
            Pack::Queued,
            true,
        ),
        (
            "small, idle wire, engine",
            10_000,
            100,
            Some(1_000_000_000),
            None,
            Pack::Queued,
            false,
        ),
        (
            "small, busy wire",
            100_000,
            100,
            Some(50_000_000),
            None,
            Pack::Queued,
            true,
        ),
        (
            "small, capped wire",
            100_000,
            100,
            None,
            Some(10_000),
            Pack::Queued,
            true,
        ),
        (
            "small, 2 ms",
            100_000,
            100,
            Some(1_000_000_000),
            None,
            Pack::Within(Duration::from_millis(2)),
            true,
        ),
        (
            "full size, idle wire",
            50_000,
            1400,
            Some(1_000_000_000),
            None,
            Pack::Queued,
            true,
        ),
    ];
    let chosen = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let chosen = chosen.unwrap_or_default();
    let kinds = kinds.into_iter().filter(|kind| kind.0.contains(&chosen));
    for (name, per_second, payload, rate_bps, packets_per_second, pack, direct) in kinds {
        let wire = WireSettings {
            rate_bps,
            packets_per_second,
            delay: Duration::from_millis(1),
            queue_bytes: 256 * 1024,
            mtu: 1500,
        };
        let mut setup = Setup::over(wire);
        setup.rest.pack = pack;
        setup.direct = direct;
        let frames: Vec<Vec<u8>> = (0..4096u32)
            .map(|n| {
                udp(
                    1 + (n % 2) as u8,
                    2 - (n % 2) as u8,
                    5000 + (n % 64) as u16,
                    payload,
                    n,
                )
            })
            .collect();
        let mut intake = Intake::new(defaults(), 1500, None);
        let mut ledger = Ledger::new(&setup);
        let mut replay: Option<Replay> = None;
        let mut spent = [std::time::Duration::ZERO; 3];
        let mut at = had();
        let mut lap = |which: usize| {
            let now = had();
            spent[which] += now - std::mem::replace(&mut at, now);
        };
        let mut give = |batch: Batch, lap: &mut dyn FnMut(usize)| {
            let new = || Replay::new(setup.clone(), &batch.hosts()[..2]);
            let journal = replay.get_or_insert_with(new).batch(&batch);
            lap(REPLAY);
            ledger.read(&journal, &batch);
            lap(LEDGER);
        };
        let mut frame = frames[0].clone();
        for n in 0..FRAMES {
            frame.clone_from(&frames[(n % 4096) as usize]);
            frame[42..50].copy_from_slice(&n.to_be_bytes());
            let time = Duration::from_nanos(n * 1_000_000_000 / per_second);
            if let Some(batch) = intake.frame(Some(time), &frame, frame.len()) {
                lap(INTAKE);
                give(batch, &mut lap);
            }
        }
        give(intake.rest(), &mut lap);
        let (journal, ended) = replay.expect("there are frames").finish();
        lap(REPLAY);
        ledger.read(&journal, &Batch::default());
        let results = ledger.finish(ended, 10);
        lap(LEDGER);
        let ns = |time: std::time::Duration| time.as_nanos() as f64 / FRAMES as f64;
        let slowest = spent.iter().max().expect("there are three");
        println!(
            "{name:<28} {:>5.0} ns intake, {:>5.0} ns replay, {:>5.0} ns ledger, {:.2} M frames/s; {:.1} a train, {} dropped",
            ns(spent[INTAKE]),
            ns(spent[REPLAY]),
            ns(spent[LEDGER]),
            1e3 / ns(*slowest),
            results.frames_per_train().unwrap_or(0.0),
            results.all.dropped,
        );
    }
}
