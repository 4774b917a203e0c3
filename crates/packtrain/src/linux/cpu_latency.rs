//! Processors that wait for work instead of falling asleep, so that what wakes them up does not come late: the kernel's `PM QoS`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

const DEVICE: &str = "/dev/cpu_dma_latency";
/// Microseconds; the kernel reads a number of 32 bits.
const NONE: i32 = 0;

/// While it lives, none of them sleeps. The kernel forgets that with the open file, however its process ends.
#[derive(Debug)]
pub struct NoSleep {
    #[expect(dead_code, reason = "held")]
    request: File,
}

impl NoSleep {
    /// `ENOENT`: the kernel does not choose how deep a processor sleeps (`CONFIG_CPU_IDLE`); `EACCES`: that is root's.
    pub fn ask() -> io::Result<NoSleep> {
        let mut request = OpenOptions::new().write(true).open(DEVICE)?;
        request.write_all(&NONE.to_ne_bytes())?;
        Ok(NoSleep { request })
    }
}
