//! Where the filter is attached, and what that means for the interface.

use clap::ValueEnum;

use crate::linux::filter::{Filter, FilterError, Mode};
use crate::linux::netlink::Link;

/// As a person says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModePolicy {
    /// The first that can be had.
    #[default]
    Auto,
    /// In the driver, before the kernel makes a buffer of a frame.
    Native,
    /// Before the stack: for drivers without XDP.
    Generic,
    /// At tc ingress, behind XDP programs and captures.
    Tc,
}

/// What is to be known before a program comes into this driver, where it changes more than what is received.
pub fn warning(link: &Link, mode: ModePolicy) -> Option<String> {
    let may_be_native = matches!(mode, ModePolicy::Auto | ModePolicy::Native);
    (may_be_native && link.kind.as_deref() == Some("veth")).then(|| {
        format!(
            "{} is a veth: as long as the filter is in its driver, large segments (TSO) are off at its other end; --mode tc \
             leaves them on",
            link.name
        )
    })
}

/// Attaches it as is asked. What is tried and fails is told by `note`.
pub fn attach(
    filter: &mut Filter,
    ifindex: u32,
    mode: ModePolicy,
    note: &mut dyn FnMut(&str),
) -> Result<Mode, FilterError> {
    let order: &[Mode] = match mode {
        ModePolicy::Auto => &[Mode::Native, Mode::Generic, Mode::Tc],
        ModePolicy::Native => &[Mode::Native],
        ModePolicy::Generic => &[Mode::Generic],
        ModePolicy::Tc => &[Mode::Tc],
    };
    let (last, earlier) = order.split_last().expect("there is a way");
    let mut is_taken = false;
    for mode in earlier {
        // Where somebody has a program, only tc is left.
        if is_taken {
            continue;
        }
        match filter.attach(ifindex, *mode) {
            Ok(()) => return Ok(*mode),
            Err(error) => {
                is_taken = matches!(error, FilterError::Taken { .. });
                note(&format!("{error}; {}", what_next(*mode, is_taken)));
            }
        }
    }
    filter.attach(ifindex, *last).map(|()| *last)
}

fn what_next(tried: Mode, is_taken: bool) -> &'static str {
    match tried {
        _ if is_taken => "the filter stands behind it, at tc ingress",
        Mode::Native => {
            "the filter stands before the stack instead (generic), where a frame costs the kernel a buffer first"
        }
        Mode::Generic | Mode::Tc => "the filter stands at tc ingress instead",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::netlink::Netlink;
    use crate::linux::test_namespace::{in_namespace, ip};

    fn eth0() -> Link {
        ip("link add eth0 type veth peer name far");
        ip("link set eth0 up");
        let link = Netlink::open().unwrap().link_by_name("eth0");
        link.unwrap().expect("it is there")
    }

    #[test]
    fn in_the_driver_first_and_behind_a_program_that_is_there_already() {
        in_namespace(|| {
            let link = eth0();
            let mut notes = Vec::new();
            let mut attach = |filter: &mut Filter, mode| {
                attach(filter, link.ifindex, mode, &mut |note| {
                    notes.push(note.to_owned())
                })
            };
            let mut first = Filter::load().unwrap();
            assert_eq!(attach(&mut first, ModePolicy::Auto).unwrap(), Mode::Native);
            let mut second = Filter::load().unwrap();
            for only in [ModePolicy::Native, ModePolicy::Generic] {
                let error = attach(&mut second, only).unwrap_err();
                let said = error.to_string();
                let begins = "eth0 has an XDP program already (id ";
                assert!(
                    said.starts_with(begins) && said.ends_with("which is not replaced"),
                    "{said}"
                );
            }
            assert_eq!(attach(&mut second, ModePolicy::Auto).unwrap(), Mode::Tc);
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(notes[0].ends_with("the filter stands behind it, at tc ingress"));
            drop(first);
            let mut third = Filter::load().unwrap();
            let mode = super::attach(&mut third, link.ifindex, ModePolicy::Generic, &mut |_| {});
            assert_eq!(mode.unwrap(), Mode::Generic);
        });
    }

    #[test]
    fn what_a_program_in_the_driver_of_a_veth_does_is_said_before() {
        in_namespace(|| {
            let link = eth0();
            for mode in [ModePolicy::Auto, ModePolicy::Native] {
                assert!(
                    warning(&link, mode).unwrap().contains("(TSO) are off"),
                    "{mode:?}"
                );
            }
            assert_eq!(warning(&link, ModePolicy::Tc), None);
            assert_eq!(warning(&link, ModePolicy::Generic), None);
        });
    }
}
