//! A flood of frames for benchmarks (`bpf/flood.bpf.c`): live XDP frames, which the driver at the other end of a veth gets as
//! a card's driver does, without a buffer of the kernel's stack.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};

use super::bpf_map::MapError;
use super::bpf_object::{self, embedded, map_handle, program_fd};
use super::sys::check;
use super::xdp::{self, Place};

/// As in bpf/flood.h.
pub const HEADER_LEN: usize = 48;
pub const TEMPLATES_MAX: usize = 16;
pub const SLOTS_MAX: usize = 128;
pub const VARIES_DESTINATION: u32 = 1;
pub const VARIES_IPV4: u32 = 2;
pub const VARIES_ARP: u32 = 4;
pub const MARK: usize = 9;

/// `struct flood`: five counts, two words, the order, the templates.
const SENT: usize = 24;
const SKIPPED: usize = 32;
const WORDS: usize = 40;
const ORDER: usize = 48;
const TEMPLATES: usize = ORDER + SLOTS_MAX;
const TEMPLATE_LEN: usize = HEADER_LEN + 8;
const FLOOD_LEN: usize = TEMPLATES + TEMPLATES_MAX * TEMPLATE_LEN;

/// What a page of the kernel's has room for beside its own headers.
pub const FRAME_LEN_MAX: usize = 3000;
/// As many as a card hands over at once (the kernel's `NAPI_POLL_WEIGHT`), and a quarter of a veth's ring.
const BATCH: u32 = 64;
/// One call for all, for each takes 20 ms to begin and to end, in which nothing is sent. It is interrupted when it is over.
const RUNS: i32 = i32::MAX;
const LOOK_EVERY: Duration = Duration::from_millis(2);

#[derive(Debug, thiserror::Error)]
pub enum FloodError {
    #[error("cannot load the BPF programs that make a flood: {0}")]
    Load(#[source] libbpf_rs::Error),
    #[error("cannot send live XDP frames (this needs Linux 5.18): {0}")]
    Send(#[source] io::Error),
    #[error("cannot attach the program that drops everything: {0}")]
    Attach(#[source] io::Error),
    #[error(transparent)]
    Map(#[from] MapError),
}

/// A kind of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    pub header: [u8; HEADER_LEN],
    /// `VARIES_…`
    pub varies: u32,
}

/// Frames of these kinds, in an order that is begun again at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    pub templates: Vec<Template>,
    /// Numbers of templates.
    pub order: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub frames: u64,
    /// Were due while the machine did something else, and were not sent.
    pub skipped: u64,
}

/// Sends out of one interface.
#[derive(Debug)]
pub struct Flood {
    object: Object,
    memory: MapHandle,
    ifindex: u32,
}

impl Flood {
    pub fn load(ifindex: u32) -> Result<Flood, FloodError> {
        let object = bpf_object::load(embedded!("flood")).map_err(FloodError::Load)?;
        Ok(Flood {
            memory: map_handle(&object, ".data.flood").map_err(FloodError::Load)?,
            object,
            ifindex,
        })
    }

    /// Frames of this length (without the checksum) until `is_over`; at this rate, or as many as there can be. Where it was
    /// called, the network namespace is that of the interface.
    pub fn send(
        &self,
        mix: &Mix,
        frame_len: usize,
        per_second: Option<u64>,
        is_over: impl Fn() -> bool + Sync,
    ) -> Result<Sent, FloodError> {
        assert!((60..=FRAME_LEN_MAX).contains(&frame_len));
        self.write(mix, per_second)?;
        let program = program_fd(&self.object, "flood_send").map_err(FloodError::Load)?;
        let data = vec![0; frame_len];
        // Somebody has to listen to it, or it would end this process.
        signal_hook::flag::register(libc::SIGUSR1, Arc::default()).map_err(FloodError::Send)?;
        let has_ended = AtomicBool::new(false);
        let sender = rustix::thread::gettid().as_raw_nonzero().get();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    pause();
                    // Again, should it have come before the call began.
                    if is_over() {
                        interrupt(sender);
                    }
                }
            });
            let mut ran = Ok(());
            while ran.is_ok() && !is_over() {
                ran = run_live(program.as_fd().as_raw_fd(), &data);
            }
            has_ended.store(true, Ordering::Relaxed);
            ran.map_err(FloodError::Send)
        })?;
        self.sent()
    }

    fn write(&self, mix: &Mix, per_second: Option<u64>) -> Result<(), FloodError> {
        assert!(mix.templates.len() <= TEMPLATES_MAX && !mix.order.is_empty());
        assert!(mix.order.len() <= SLOTS_MAX);
        let mut value = [0; FLOOD_LEN];
        value[..8].copy_from_slice(&per_second.unwrap_or(0).to_ne_bytes());
        value[WORDS..WORDS + 4].copy_from_slice(&self.ifindex.to_ne_bytes());
        value[WORDS + 4..WORDS + 8].copy_from_slice(&(mix.order.len() as u32).to_ne_bytes());
        value[ORDER..ORDER + mix.order.len()].copy_from_slice(&mix.order);
        let places = value[TEMPLATES..].chunks_exact_mut(TEMPLATE_LEN);
        for (place, template) in places.zip(&mix.templates) {
            place[..HEADER_LEN].copy_from_slice(&template.header);
            place[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&template.varies.to_ne_bytes());
        }
        let written = self
            .memory
            .update(&0u32.to_ne_bytes(), &value, MapFlags::ANY);
        Ok(written.map_err(not_used)?)
    }

    fn sent(&self) -> Result<Sent, FloodError> {
        let value = self.memory.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(not_used)?.unwrap_or_default();
        let count = |at: usize| {
            let bytes = value
                .get(at..at + 8)
                .and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_ne_bytes)
        };
        Ok(Sent {
            frames: count(SENT),
            skipped: count(SKIPPED),
        })
    }
}

fn not_used(source: libbpf_rs::Error) -> MapError {
    MapError {
        map: "flood",
        source,
    }
}

/// Runs the program on frames of these bytes until this thread is interrupted.
fn run_live(program: i32, data: &[u8]) -> io::Result<()> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: data.as_ptr().cast(),
        data_size_in: data.len() as u32,
        repeat: RUNS,
        flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: BATCH,
        ..Default::default()
    };
    // SAFETY: the options say their size and point to `data`, which is read; both outlive the call.
    match check(unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &raw mut options) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

fn interrupt(thread: i32) {
    // SAFETY: no pointers. Of this process alone; a thread that has ended is none of it, which is an error and no harm.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
}

#[allow(clippy::disallowed_methods)] // a flood lasts as long as it is to
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}

/// What is dropped without being looked at as a filter has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// The least that a program costs.
    All,
    /// What has no mark (`FLOOD_MARK` of bpf/flood.h): the least that a filter costs.
    Unmarked,
}

/// Drops in the driver of an interface for as long as this lives.
#[derive(Debug)]
pub struct Dropping {
    _object: Object,
    _attached: xdp::Attached,
}

impl Dropping {
    pub fn on(ifindex: u32, drops: Drops) -> Result<Dropping, FloodError> {
        let object = bpf_object::load(embedded!("flood")).map_err(FloodError::Load)?;
        let name = match drops {
            Drops::All => "flood_drop",
            Drops::Unmarked => "flood_marked",
        };
        let program = program_fd(&object, name).map_err(FloodError::Load)?;
        let attached = xdp::attach(program.as_fd(), ifindex, Place::Driver);
        Ok(Dropping {
            _attached: attached.map_err(FloodError::Attach)?,
            _object: object,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::linux::netlink::Netlink;
    use crate::linux::test_namespace::{in_namespace, ip, run};

    const LEN: usize = 60;
    const SENT_MIN: u64 = 5000;

    /// Broadcast, of a local experimental type.
    fn mix() -> Mix {
        let mut header = [0; HEADER_LEN];
        header[..6].fill(0xff);
        header[6] = 0x02;
        header[12..14].copy_from_slice(&[0x88, 0xb6]);
        Mix {
            templates: vec![Template { header, varies: 0 }],
            order: vec![0],
        }
    }

    fn received() -> u64 {
        let words = run("ip -s -j link show near");
        let words: serde_json::Value = serde_json::from_str(&words).unwrap();
        words[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
    }

    #[test]
    fn the_layout_is_the_headers() {
        assert_eq!(FLOOD_LEN, 48 + 128 + 16 * 56);
    }

    #[test]
    fn frames_come_in_at_the_other_end_as_many_as_were_sent() {
        in_namespace(|| {
            ip("link add near type veth peer name far");
            run("sysctl -q -w net.ipv6.conf.all.disable_ipv6=1");
            // Without it, or a program there, the driver takes no live frames.
            run("ethtool -K near gro on");
            ip("link set near up");
            ip("link set far up");
            let link = |name| {
                Netlink::open()
                    .unwrap()
                    .link_by_name(name)
                    .unwrap()
                    .unwrap()
            };
            let flood = Flood::load(link("far").ifindex).unwrap();
            let before = received();
            let looks = AtomicU32::new(0);
            let soon = || looks.fetch_add(1, Ordering::Relaxed) > 50;
            let sent = flood.send(&mix(), LEN, None, soon).unwrap();
            assert!(sent.frames >= SENT_MIN, "{sent:?}");
            assert_eq!(received() - before, sent.frames);
            let dropping = Dropping::on(link("near").ifindex, Drops::All).unwrap();
            looks.store(0, Ordering::Relaxed);
            let before = received();
            // So few that most of the runs send nothing.
            let sent = flood.send(&mix(), LEN, Some(1000), soon).unwrap();
            assert!((1..SENT_MIN).contains(&sent.frames), "{sent:?}");
            drop(dropping);
            // Frames that a program drops are counted as received.
            assert_eq!(received() - before, sent.frames);
        });
    }
}
