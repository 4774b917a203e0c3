//! The programs by `BPF_PROG_TEST_RUN` on an interface of a namespace, against the model of packtrain-proto.

mod as_the_model;
mod beside_a_guard;
mod corpora;
mod frames;
mod host_changes;
mod jumbo;
mod loops;
mod oracle;
mod ports;
mod rules;
mod samples;
mod stays;
mod wanted;
mod world;

use super::*;

#[test]
fn the_reasons_are_those_of_the_header_in_the_same_order() {
    let header = include_str!("../../bpf/filter.h");
    let names: Vec<_> = header
        .lines()
        .filter_map(|line| line.trim().strip_prefix("FILTER_"))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, rest)| {
            (
                name.to_lowercase(),
                rest.split(',').next().unwrap().to_owned(),
            )
        })
        .take_while(|(name, _)| !name.starts_with("policy"))
        .collect();
    let mut expected: Vec<_> = Reason::ALL
        .iter()
        .map(|reason| (reason.as_str().to_owned(), (*reason as usize).to_string()))
        .collect();
    expected.push(("reasons".into(), Reason::ALL.len().to_string()));
    assert_eq!(names, expected);
}

#[test]
fn a_prefix_has_a_bit_for_each_part_of_all_addresses_that_it_is_in() {
    let of = |address: [u8; 4], len| {
        let address = address.into();
        parts_of(&LocalPrefix { address, len })
    };
    assert_eq!(of([0, 0, 0, 0], 0), u32::MAX);
    assert_eq!(of([128, 0, 0, 0], 1), 0xffff_0000);
    assert_eq!(of([64, 0, 0, 0], 3), 0x0f00);
    assert_eq!(of([248, 0, 0, 0], 5), 1 << 31);
    assert_eq!(of([127, 0, 0, 0], 8), 1 << 15);
    assert_eq!(of([10, 1, 2, 3], 32), 2);
}
