//! The programs by `BPF_PROG_TEST_RUN` on an interface of a namespace, against the model of packtrain-proto.

mod as_the_model;
mod beside_a_guard;
mod corpora;
mod frames;
mod host_changes;
mod jumbo;
mod loops;
mod oracle;
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
