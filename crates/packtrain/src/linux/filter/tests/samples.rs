//! Samples of what is dropped.

use std::time::Duration;

use packtrain_proto::wire::ethernet::MacAddr;

use super::super::samples::{SampleError, SampleWish, Sampler};
use super::frames::udp;
use super::world::{OWN, World, with_filter, with_filter_in};
use super::*;
use crate::clock::Clock;

const SOMEBODY: MacAddr = MacAddr([2, 9, 9, 9, 9, 9]);
const GROUP: MacAddr = MacAddr([0x01, 0x00, 0x5e, 9, 9, 9]);

fn begin(world: &World, reasons: &[Reason], per_second: u64, len: u32) -> Sampler {
    let standing = standing::find(world.ifindex).unwrap().expect("it stands");
    let wish = SampleWish {
        reasons: reasons.to_vec(),
        per_second,
        len,
    };
    Sampler::begin(&standing, wish, Clock::start().monotonic_nanos()).unwrap()
}

fn read(sampler: &mut Sampler) -> Vec<(Reason, u32, Vec<u8>)> {
    let samples = sampler.read(Duration::from_millis(1)).unwrap();
    samples
        .into_iter()
        .map(|sample| (sample.reason, sample.len, sample.bytes))
        .collect()
}

fn of_reasons_and_no_more_of_each_than_is_asked(mode: Mode) {
    with_filter_in(mode, |world| {
        let foreign = udp(SOMEBODY, 8);
        let group = udp(GROUP, 8);
        let ours = udp(OWN, 8);
        let mut sampler = begin(world, &[Reason::ForeignUnicast], 1_000_000, 20);
        for bytes in [&ours, &foreign, &group] {
            world.passes(bytes);
        }
        let len = foreign.len() as u32;
        let expected = (Reason::ForeignUnicast, len, foreign[..20].to_vec());
        assert_eq!(read(&mut sampler), [expected]);
        let counts = sampler.counts().unwrap();
        assert_eq!((counts.dropped, counts.sampled, counts.missed), (1, 1, 0));
        drop(sampler);
        world.passes(&foreign);
        let mut sampler = begin(
            world,
            &[Reason::ForeignUnicast, Reason::ForeignGroup],
            1000,
            2048,
        );
        world.passes(&group);
        assert_eq!(read(&mut sampler), [(Reason::ForeignGroup, len, group)]);
    });
}

#[test]
fn in_the_driver_they_are_of_the_reasons_that_are_asked_for() {
    of_reasons_and_no_more_of_each_than_is_asked(Mode::Native);
}

#[test]
fn at_tc_they_are_of_the_reasons_that_are_asked_for() {
    of_reasons_and_no_more_of_each_than_is_asked(Mode::Tc);
}

#[test]
fn there_are_no_more_than_so_many_a_second_and_all_are_counted() {
    with_filter(|world| {
        let foreign = udp(SOMEBODY, 8);
        // One a second: the first comes at once.
        let clock = Clock::start();
        let mut sampler = begin(world, &[Reason::ForeignUnicast], 1, 64);
        for _ in 0..20 {
            world.passes(&foreign);
        }
        let seconds = clock.now().as_nanos() / 1_000_000_000;
        let samples = read(&mut sampler).len() as u64;
        assert!((1..=3 + seconds).contains(&samples), "{samples}");
        let counts = sampler.counts().unwrap();
        assert_eq!((counts.dropped, counts.sampled), (20, samples));
    });
}

#[test]
fn a_ring_that_is_full_is_counted_and_frames_are_dropped_all_the_same() {
    with_filter(|world| {
        let mut foreign = udp(SOMEBODY, 8);
        foreign.resize(1400, 7);
        let sampler = begin(world, &[Reason::ForeignUnicast], 1_000_000, 2048);
        for _ in 0..1000 {
            assert!(!world.passes(&foreign));
        }
        let counts = sampler.counts().unwrap();
        assert_eq!(counts.dropped, 1000);
        assert_eq!(counts.sampled + counts.missed, 1000);
        // A megabyte's worth.
        assert!((600..750).contains(&counts.sampled), "{counts:?}");
    });
}

#[test]
fn one_at_a_time_samples_and_who_does_not_say_so_again_has_ended() {
    with_filter(|world| {
        let foreign = udp(SOMEBODY, 8);
        let sampler = begin(world, &[Reason::ForeignUnicast], 1000, 64);
        // The first process of the host.
        let mut held = vec![0u8; 40];
        held[..8].copy_from_slice(&u64::MAX.to_ne_bytes());
        held[36..].copy_from_slice(&1u32.to_ne_bytes());
        let standing = standing::find(world.ifindex).unwrap().unwrap();
        let map = standing.map(".data.sampling").unwrap();
        map.update(&[0; 4], &held, MapFlags::ANY).unwrap();
        let wish = SampleWish {
            reasons: vec![Reason::ForeignUnicast],
            per_second: 1,
            len: 1,
        };
        let now = Clock::start().monotonic_nanos();
        let taken = Sampler::begin(&standing, wish, now).unwrap_err();
        assert!(matches!(taken, SampleError::Taken { pid: 1 }), "{taken}");
        let taken = sampler.renew(now).unwrap_err();
        assert!(matches!(taken, SampleError::Taken { pid: 1 }), "{taken}");
        map.update(&[0; 4], &[0; 40], MapFlags::ANY).unwrap();
        for (at, more) in [(now, 1), (0, 0)] {
            sampler.renew(at).unwrap();
            let before = sampler.counts().unwrap().dropped;
            world.passes(&foreign);
            assert_eq!(sampler.counts().unwrap().dropped, before + more);
        }
    });
}

#[test]
fn what_the_interface_filters_itself_is_known_where_the_kernel_tells() {
    with_filter(|world| {
        // A veth has no filter of its own.
        let answer = world.filter.filters_unicast(world.ifindex).unwrap();
        assert_eq!(answer, Some(false));
        assert_eq!(world.filter.filters_unicast(4_000_000).unwrap(), None);
        // And it has not been forgotten what was looked at beside it.
        assert!(world.filter.fib_seq().unwrap().is_some());
    });
}
