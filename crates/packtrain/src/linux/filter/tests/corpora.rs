//! Frames that the fuzzing begins with, and those that it has found: the program says of each what the model says, at each length.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use packtrain_proto::filter::frame::{Endpoint, Protocol};
use packtrain_proto::filter::rules::image::Image;
use packtrain_proto::filter::rules::{RuleFacts, Verdict};
use packtrain_proto::filter::{Host, decide};

use super::as_the_model::{LEN_MIN, make_whole};
use super::rules;
use super::world::{World, with_filter};
use super::*;

const SEEDS: [&str; 2] = ["seeds/filter_frame", "seeds/headers"];
/// What a run of the fuzzing has left here, if there was one.
const FOUND: &str = "corpus/filter_frame";
const FOUND_MAX: usize = 2000;
/// What stands behind is not looked at, and the lengths are many.
const CUT_MAX: usize = 140;
/// The seeds know it.
const OPEN_PORT: u16 = 7000;

fn files_of(folder: &Path) -> Vec<Vec<u8>> {
    let files = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// The seeds at each length, and what was found as it is.
fn frames() -> Vec<Vec<u8>> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut frames = Vec::new();
    for seed in SEEDS.iter().flat_map(|folder| files_of(&fuzz.join(folder))) {
        let cut = (LEN_MIN..seed.len()).filter(|len| *len < CUT_MAX);
        frames.extend(cut.chain([seed.len()]).map(|len| seed[..len].to_vec()));
    }
    assert!(frames.len() > 1500, "{}", frames.len());
    let found = fuzz.join(FOUND);
    if found.exists() {
        frames.extend(files_of(&found).into_iter().take(FOUND_MAX));
    }
    for frame in &mut frames {
        frame.resize(frame.len().max(LEN_MIN), 0);
    }
    frames
}

/// One after the other: the programs share what they look up and what they count.
fn in_both_modes(world: &mut World, mut check: impl FnMut(&mut World, &[u8])) {
    let mut frames = frames();
    world.filter.load_at_tc().unwrap();
    for mode in [Mode::Native, Mode::Tc] {
        world.mode = mode;
        for frame in &mut frames {
            if mode == Mode::Tc {
                make_whole(frame);
            }
            check(world, frame);
        }
    }
}

fn tell_of_ports(host: &mut Host) {
    for address in &host.interface.addresses {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            host.open.insert(Endpoint {
                protocol,
                address: *address,
                port: OPEN_PORT,
            });
        }
    }
}

#[test]
fn of_the_frames_of_the_fuzzing_the_program_says_what_the_model_says() {
    with_filter(|world| {
        let _sockets = (
            TcpListener::bind(("::", OPEN_PORT)).unwrap(),
            UdpSocket::bind(("::", OPEN_PORT)).unwrap(),
        );
        let mut host = world.host();
        tell_of_ports(&mut host);
        for policy in [Policy::Host, Policy::Nima] {
            let asks_ports = policy == Policy::Host;
            world.set(|set| {
                set.policy = policy;
                set.asks_ports = asks_ports;
            });
            in_both_modes(world, |world, frame| {
                let expected = decide(frame, false, &host, policy, asks_ports);
                assert_eq!(world.reason(frame), expected, "{frame:02x?}");
            });
        }
        let rules = rules::many();
        world.set(|set| set.policy = Policy::None);
        let image = Image::compile(&rules).unwrap();
        world.filter.set_rules(Some(&image)).unwrap();
        let mut decided = vec![0u64; rules.rules().len()];
        in_both_modes(world, |world, frame| {
            let rule = rules.first_match(&RuleFacts::of(frame));
            let expected = match rule {
                Some(rule) => {
                    decided[rule] += 1;
                    match rules.rules()[rule].verdict {
                        Verdict::Allow => Reason::Allowed,
                        Verdict::Deny => Reason::Denied,
                        Verdict::Limit(_) => unreachable!("there is none among them"),
                    }
                }
                None => decide(frame, false, &host, Policy::None, false),
            };
            assert_eq!(world.reason(frame), expected, "rule {rule:?}: {frame:02x?}");
        });
        let counted = world.filter.rule_counters(decided.len()).unwrap();
        let counted: Vec<u64> = counted.iter().map(|count| count.frames).collect();
        assert_eq!(counted, decided);
        assert!(
            decided.iter().filter(|count| **count > 0).count() >= 8,
            "{decided:?}"
        );
    });
}
