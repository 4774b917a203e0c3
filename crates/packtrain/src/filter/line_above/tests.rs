use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::control::ControlServer;

const ETH1: u32 = 7;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(1) + Duration::from_millis(millis)
}

/// Names of this process and this test alone: the others of the namespace are not asked.
fn names<const N: usize>(test: &str) -> [InterfaceName; N] {
    let pid = std::process::id();
    std::array::from_fn(|n| format!("{test}{n}-{pid}").parse().expect("a name"))
}

/// What lines say of their links.
struct Lines(BTreeMap<InterfaceName, (ControlServer, Value)>);

impl Lines {
    fn run<const N: usize>(names: &[InterfaceName; N], documents: [Value; N]) -> Lines {
        let lines = names.iter().zip(documents).map(|(name, document)| {
            let server = ControlServer::bind(name.as_str()).unwrap();
            (name.clone(), (server, document))
        });
        Lines(lines.collect())
    }

    fn say(&mut self, name: &InterfaceName, document: Value) {
        self.0.get_mut(name).expect("it runs").1 = document;
    }

    /// Each answers all that it was asked: to accept, to read and to write are turns of their own.
    fn answer(&mut self) {
        for (server, document) in self.0.values_mut() {
            for _ in 0..4 {
                server.handle(&mut |_, _| Response::Status(document.clone()).into());
            }
        }
    }
}

fn line(ifindex: u32, link_name: &str, link: u32) -> Value {
    json!({ "ifindex": ifindex, "links": [{ "name": link_name, "ifindex": link }] })
}

fn above(name: &InterfaceName, ifindex: u32) -> Option<LineAbove> {
    let name = name.to_string();
    Some(LineAbove { name, ifindex })
}

#[test]
fn a_line_is_known_by_the_number_of_its_link_whatever_the_link_is_called() {
    let both = names::<2>("lan");
    // The second one has a link of our name, and the first one our interface.
    let mut lines = Lines::run(&both, [line(20, "renamed", ETH1), line(21, "eth1", 99)]);
    let mut search = LineSearch::new(ETH1);
    assert!(!search.ask(&both, at(0)));
    // Nothing has come yet, and nobody is asked twice.
    assert!(!search.step(at(1)) && search.is_open());
    assert!(!search.ask(&both, at(2)));
    assert_eq!(search.fds().count(), 2);
    lines.answer();
    assert!(search.step(at(3)) && !search.is_open());
    assert_eq!(search.line().cloned(), above(&both[0], 20));

    // It goes over to the other one, which says so first or last.
    lines.say(&both[0], line(20, "eth2", 8));
    lines.say(&both[1], line(21, "renamed", ETH1));
    search.ask(&both, at(4));
    lines.answer();
    assert!(search.step(at(5)));
    assert_eq!(search.line().cloned(), above(&both[1], 21));

    // It leaves its line.
    lines.say(&both[1], line(21, "eth2", 8));
    search.ask(&both, at(6));
    lines.answer();
    assert!(search.step(at(7)));
    assert_eq!(search.line(), None);
}

#[test]
fn a_line_that_is_stopped_is_what_it_was_and_keeps_no_other_from_being_known() {
    let both = names::<2>("stp");
    let mut lines = Lines::run(&both, [line(20, "eth1", ETH1), line(21, "eth2", 8)]);
    let mut search = LineSearch::new(ETH1);
    search.ask(&both, at(0));
    lines.answer();
    assert!(search.step(at(1)));

    // It listens and does not answer.
    search.ask(&both, at(10));
    assert!(!search.step(at(5009)) && search.is_open());
    assert!(!search.step(at(5010)) && !search.is_open());
    assert_eq!(search.line().cloned(), above(&both[0], 20));

    // It is gone, which shows without its saying so.
    assert!(search.ask(&both[1..], at(6000)));
    assert_eq!(search.line(), None);
}

#[test]
fn one_that_never_answered_is_no_line_above() {
    let [silent, well] = names::<2>("nvr");
    let name = format!("{}{silent}", crate::control::SOCKET_PREFIX);
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let _stopped = UnixListener::bind_addr(&address).unwrap();
    let mut lines = Lines::run(std::array::from_ref(&well), [line(21, "eth1", ETH1)]);
    let running = [silent, well.clone()];
    let mut search = LineSearch::new(ETH1);
    assert!(!search.ask(&running, at(0)));
    lines.answer();
    assert!(search.step(at(1)) && search.is_open());
    assert_eq!(search.line().cloned(), above(&well, 21));
    assert!(!search.step(at(60_000)) && !search.is_open());
}
