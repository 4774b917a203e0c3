//! Classic BPF for packet sockets: which frames a capture is given, and how much of each.
//!
//! The kernel runs it for each frame of the interface, so what is not wanted costs no copy. Frames begin
//! with their destination address; a VLAN tag has been taken out of them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use super::sys::set_option;

/// As many bytes as there are.
pub const WHOLE: u32 = u32::MAX;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

// include/uapi/linux/filter.h: what stands beside the bytes is loaded from negative places.
const PACKET_KIND: u32 = (-0x1000_i32 + 4) as u32;
const TAG: u32 = (-0x1000_i32 + 44) as u32;
const HAS_TAG: u32 = (-0x1000_i32 + 48) as u32;
const VLAN_ID_MASK: u32 = 0x0fff;

const SOURCE: u32 = 6;
const TYPE: u32 = 12;
const GROUP_AND_LOCAL_BITS: u32 = 3;
const GROUP_BIT: u32 = 1;
const LOCAL_BIT: u32 = 2;

/// Which frames are taken; everything else is never copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All.
    Any,
    /// What the host sends.
    Outgoing,
    /// What leaves from this address, and is no train.
    OutgoingFrom(MacAddr),
    /// … to one station, and is neither a train nor ARP.
    OutgoingUnmarkedFrom(MacAddr),
    /// What leaves from this address in this VLAN, and is no train.
    OutgoingTaggedFrom(MacAddr, u16),
    /// What comes to this address in this VLAN, and is no train.
    MaybeTaggedTo(MacAddr, u16),
    /// What comes to this address, and is neither a train nor ARP.
    MaybeUnmarkedTo(MacAddr),
    /// What comes to this address from one that no manufacturer has given, and is no train.
    MaybeDirectTo(MacAddr),
}

/// A program for the kernel.
#[derive(Clone, Debug)]
pub struct Program(Vec<libc::sock_filter>);

impl Filter {
    /// `snap_len`: most bytes of a frame that are taken.
    pub fn compile(self, snap_len: u32) -> Program {
        let mut steps = Steps::default();
        match self {
            Filter::Any => {}
            Filter::Outgoing => steps.ask_for_outgoing(),
            Filter::OutgoingFrom(address) => {
                steps.ask_for_outgoing();
                steps.ask_for_address(SOURCE, address);
                steps.load(LOAD_HALF, TYPE);
                steps.refuse(ether_type::PACKTRAIN.into());
            }
            Filter::OutgoingUnmarkedFrom(address) => {
                steps.ask_for_outgoing();
                steps.ask_for_address(SOURCE, address);
                steps.load(LOAD_BYTE, 0);
                steps.step(AND, GROUP_BIT);
                steps.ask_for(0);
                steps.refuse_types_of_links();
            }
            Filter::OutgoingTaggedFrom(address, vlan) => {
                steps.ask_for_outgoing();
                steps.ask_for_address(SOURCE, address);
                steps.ask_for_vlan(vlan);
            }
            Filter::MaybeTaggedTo(address, vlan) => {
                steps.ask_for_address(0, address);
                steps.ask_for_vlan(vlan);
            }
            Filter::MaybeUnmarkedTo(address) => {
                steps.ask_for_address(0, address);
                steps.refuse_types_of_links();
            }
            Filter::MaybeDirectTo(address) => {
                steps.ask_for_address(0, address);
                steps.load(LOAD_BYTE, SOURCE);
                steps.step(AND, GROUP_AND_LOCAL_BITS);
                steps.ask_for(LOCAL_BIT);
                steps.load(LOAD_HALF, TYPE);
                steps.refuse(ether_type::PACKTRAIN.into());
            }
        }
        steps.end(snap_len)
    }
}

/// Steps of a program that gives up at the first question that is answered wrongly.
#[derive(Debug, Default)]
struct Steps {
    program: Vec<libc::sock_filter>,
    /// Those that jump to the end where their values are equal.
    refuse_equal: Vec<usize>,
    /// … and where they are not.
    refuse_other: Vec<usize>,
}

impl Steps {
    fn step(&mut self, code: u16, k: u32) {
        self.program.push(libc::sock_filter {
            code,
            jt: 0,
            jf: 0,
            k,
        });
    }

    fn load(&mut self, code: u16, at: u32) {
        self.step(code, at);
    }

    fn ask_for(&mut self, value: u32) {
        self.refuse_other.push(self.program.len());
        self.step(JUMP_IF_EQUAL, value);
    }

    fn refuse(&mut self, value: u32) {
        self.refuse_equal.push(self.program.len());
        self.step(JUMP_IF_EQUAL, value);
    }

    fn refuse_types_of_links(&mut self) {
        self.load(LOAD_HALF, TYPE);
        self.refuse(ether_type::PACKTRAIN.into());
        self.refuse(ether_type::ARP.into());
    }

    fn ask_for_vlan(&mut self, vlan: u16) {
        self.load(LOAD_BYTE, HAS_TAG);
        self.ask_for(1);
        self.load(LOAD_HALF, TAG);
        self.step(AND, VLAN_ID_MASK);
        self.ask_for(vlan.into());
        self.load(LOAD_HALF, TYPE);
        self.refuse(ether_type::PACKTRAIN.into());
    }

    fn ask_for_outgoing(&mut self) {
        self.load(LOAD_BYTE, PACKET_KIND);
        self.ask_for(libc::PACKET_OUTGOING.into());
    }

    fn ask_for_address(&mut self, at: u32, MacAddr([a, b, c, d, e, f]): MacAddr) {
        self.load(LOAD_WORD, at);
        self.ask_for(u32::from_be_bytes([a, b, c, d]));
        self.load(LOAD_HALF, at + 4);
        self.ask_for(u16::from_be_bytes([e, f]).into());
    }

    fn end(mut self, taken: u32) -> Program {
        self.step(RETURN, taken);
        let refusal = self.program.len();
        self.step(RETURN, 0);
        // A jump of 0 goes to the next step.
        let distance = |from: usize| (refusal - from - 1) as u8;
        for &at in &self.refuse_equal {
            self.program[at].jt = distance(at);
        }
        for &at in &self.refuse_other {
            self.program[at].jf = distance(at);
        }
        Program(self.program)
    }
}

impl Program {
    /// From the next frame on.
    pub(super) fn attach(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: self.0.len() as libc::c_ushort,
            // The kernel only reads it, and copies it.
            filter: self.0.as_ptr().cast_mut(),
        };
        set_option(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: MacAddr = MacAddr([0x00, 0x16, 0x3e, 1, 2, 3]);
    const MARK: MacAddr = MacAddr([0x5a, 0x4c, 0x3e, 1, 2, 0xa6]);

    /// What the kernel would do, as far as these programs go.
    fn run(program: &Program, kind: u8, frame: &[u8]) -> u32 {
        run_tagged(program, kind, None, frame)
    }

    fn run_tagged(program: &Program, kind: u8, tag: Option<u16>, frame: &[u8]) -> u32 {
        let (mut at, mut value) = (0, 0u32);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program.0[at];
            at += 1;
            let bytes = |len: usize| {
                let bytes = &frame[k as usize..k as usize + len];
                bytes.iter().fold(0, |sum, &b| sum << 8 | u32::from(b))
            };
            match code {
                LOAD_BYTE if k == PACKET_KIND => value = kind.into(),
                LOAD_BYTE if k == HAS_TAG => value = tag.is_some().into(),
                LOAD_HALF if k == TAG => value = tag.unwrap_or(0).into(),
                LOAD_BYTE => value = bytes(1),
                LOAD_HALF => value = bytes(2),
                LOAD_WORD => value = bytes(4),
                AND => value &= k,
                JUMP_IF_EQUAL => at += usize::from(if value == k { jt } else { jf }),
                RETURN => return k,
                other => panic!("{other:#x}"),
            }
        }
    }

    fn frame(destination: MacAddr, source: MacAddr, ether_type: u16) -> Vec<u8> {
        let mut frame = [destination.0, source.0].concat();
        frame.extend(ether_type.to_be_bytes());
        frame.resize(60, 0);
        frame
    }

    const TO: MacAddr = MacAddr([2, 2, 2, 2, 2, 2]);

    #[test]
    fn what_links_say_themselves_is_not_taken_as_direct_without_a_mark() {
        let leaving = Filter::OutgoingUnmarkedFrom(LINK).compile(WHOLE);
        let coming = Filter::MaybeUnmarkedTo(LINK).compile(WHOLE);
        let types = [
            (ether_type::IPV4, WHOLE),
            (ether_type::IPV6, WHOLE),
            (ether_type::ARP, 0),
            (ether_type::PACKTRAIN, 0),
        ];
        for (ether_type, taken) in types {
            let out = frame(TO, LINK, ether_type);
            assert_eq!(run(&leaving, libc::PACKET_OUTGOING, &out), taken);
            let to_link = frame(LINK, TO, ether_type);
            assert_eq!(run(&coming, libc::PACKET_HOST, &to_link), taken);
        }
        let to_all = frame(MacAddr::BROADCAST, LINK, ether_type::IPV4);
        assert_eq!(run(&leaving, libc::PACKET_OUTGOING, &to_all), 0);
        let of_others = frame(TO, MARK, ether_type::IPV4);
        assert_eq!(run(&leaving, libc::PACKET_OUTGOING, &of_others), 0);
        assert_eq!(run(&coming, libc::PACKET_HOST, &of_others), 0);
    }

    #[test]
    fn in_a_vlan_only_frames_of_that_vlan_are_taken_as_direct_and_no_trains() {
        let leaving = Filter::OutgoingTaggedFrom(LINK, 100).compile(WHOLE);
        let coming = Filter::MaybeTaggedTo(LINK, 100).compile(WHOLE);
        let cases = [
            (Some(100), ether_type::IPV4, WHOLE),
            (Some(0xa000 | 100), ether_type::ARP, WHOLE),
            (Some(101), ether_type::IPV4, 0),
            (None, ether_type::IPV4, 0),
            (Some(100), ether_type::PACKTRAIN, 0),
        ];
        for (tag, ether_type, taken) in cases {
            let out = frame(TO, LINK, ether_type);
            let outgoing = libc::PACKET_OUTGOING;
            assert_eq!(run_tagged(&leaving, outgoing, tag, &out), taken);
            assert_eq!(run_tagged(&leaving, libc::PACKET_HOST, tag, &out), 0);
            let to_link = frame(LINK, TO, ether_type);
            assert_eq!(run_tagged(&coming, libc::PACKET_HOST, tag, &to_link), taken);
            assert_eq!(run_tagged(&coming, libc::PACKET_HOST, tag, &out), 0);
        }
    }

    #[test]
    fn only_what_leaves_from_the_direct_mark_is_taken_as_direct() {
        let program = Filter::OutgoingFrom(MARK).compile(96);
        let direct = frame(TO, MARK, ether_type::IPV4);
        assert_eq!(run(&program, libc::PACKET_OUTGOING, &direct), 96);
        assert_eq!(run(&program, libc::PACKET_HOST, &direct), 0, "it comes");
        // What both ends tell each other of direct frames has the same source.
        let told = frame(TO, MARK, ether_type::PACKTRAIN);
        assert_eq!(run(&program, libc::PACKET_OUTGOING, &told), 0);
        for at in 0..6 {
            let mut other = MARK;
            other.0[at] ^= 0x40;
            let other = frame(TO, other, ether_type::IPV4);
            assert_eq!(run(&program, libc::PACKET_OUTGOING, &other), 0, "byte {at}");
        }
    }

    #[test]
    fn of_what_comes_only_what_may_be_direct_is_looked_at() {
        let program = Filter::MaybeDirectTo(LINK).compile(128);
        let kind = libc::PACKET_HOST;
        let group = MacAddr([3, 0, 0, 0, 0, 1]);
        for (destination, source, ether_type, taken) in [
            (LINK, MARK, ether_type::IPV4, 128),
            (LINK, MARK, ether_type::PACKTRAIN, 0),
            (LINK, LINK, ether_type::IPV4, 0),
            (LINK, group, ether_type::IPV4, 0),
            (TO, MARK, ether_type::IPV4, 0),
        ] {
            let frame = frame(destination, source, ether_type);
            assert_eq!(run(&program, kind, &frame), taken, "{destination} {source}");
        }
    }

    #[test]
    fn of_pt0_everything_is_taken_or_what_is_sent() {
        let frame = frame(TO, LINK, ether_type::ARP);
        for (filter, outgoing, incoming) in [(Filter::Any, 5, 5), (Filter::Outgoing, 5, 0)] {
            let program = filter.compile(5);
            assert_eq!(run(&program, libc::PACKET_OUTGOING, &frame), outgoing);
            assert_eq!(run(&program, libc::PACKET_BROADCAST, &frame), incoming);
        }
    }
}
