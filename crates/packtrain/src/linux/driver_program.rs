//! The program that stands in an interface's driver, whoever has put it there: what it makes of a frame, and how long it
//! takes for it, by `BPF_PROG_TEST_RUN`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::sys::check;
use super::xdp;

/// `XDP_DROP` of the kernel's.
pub const DROP: u32 = 1;

#[derive(Debug)]
pub struct DriverProgram {
    program: OwnedFd,
    ifindex: u32,
}

/// One frame, judged again and again.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    pub verdict: u32,
    /// By the kernel's own clock, on average; whole ones.
    pub each_ns: u32,
}

impl DriverProgram {
    /// In the network namespace of the interface. `None`: there is no program.
    pub fn on(ifindex: u32) -> io::Result<Option<DriverProgram>> {
        let Some(&id) = xdp::programs_on(ifindex)?.first() else {
            return Ok(None);
        };
        // SAFETY: no pointers; the descriptor that it returns is new, and owned here alone.
        let program = unsafe {
            let fd = check(libbpf_sys::bpf_prog_get_fd_by_id(id))?;
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Some(DriverProgram { program, ifindex }))
    }

    /// As if it had come in by the interface; in its network namespace. The program alone: no driver, no page, and all
    /// that it reads is near.
    pub fn judge(&self, frame: &[u8], times: u32) -> io::Result<Judged> {
        let mut context = libbpf_sys::xdp_md {
            data_end: frame.len() as u32,
            ingress_ifindex: self.ifindex,
            ..Default::default()
        };
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            ctx_in: (&raw mut context).cast(),
            ctx_size_in: size_of_val(&context) as u32,
            repeat: times as i32,
            ..Default::default()
        };
        let program = self.program.as_raw_fd();
        // SAFETY: the options say their size and point to the frame and the context, which are read; all outlive the call.
        check(unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &raw mut options) })?;
        Ok(Judged {
            verdict: options.retval,
            each_ns: options.duration,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::flood::{Dropping, Drops, MARK};
    use crate::linux::netlink::Netlink;
    use crate::linux::test_namespace::{in_namespace, ip};

    /// `XDP_PASS` of the kernel's.
    const PASS: u32 = 2;

    #[test]
    fn the_program_on_an_interface_is_found_and_run() {
        in_namespace(|| {
            ip("link add near type veth peer name far");
            ip("link set near up");
            let link = Netlink::open().unwrap().link_by_name("near");
            let ifindex = link.unwrap().expect("it is there").ifindex;
            assert!(DriverProgram::on(ifindex).unwrap().is_none());
            let judged = |frame: &[u8]| {
                let program = DriverProgram::on(ifindex).unwrap().expect("one is there");
                program.judge(frame, 1000).unwrap().verdict
            };
            let dropping = Dropping::on(ifindex, Drops::All).unwrap();
            assert_eq!(judged(&[0; 60]), DROP);
            drop(dropping);
            let _dropping = Dropping::on(ifindex, Drops::Unmarked).unwrap();
            assert_eq!(judged(&[0; 60]), DROP);
            let mut marked = [0; 60];
            marked[MARK] = 1;
            assert_eq!(judged(&marked), PASS);
        });
    }
}
