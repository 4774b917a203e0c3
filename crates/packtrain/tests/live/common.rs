//! What the live tests share.

pub mod cabled;
pub mod direct;
pub mod numbered;
pub mod standing;
pub mod steady;
pub mod turn;
pub mod undo;
pub mod waits;

#[path = "../support/skipped.rs"]
mod skipped;

use std::path::Path;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::{Result, wait_for, wire};
pub use skipped::skipped;

/// Returns from a test that cannot run here, with its reason. Otherwise waits for its turn, which lasts as long as the
/// test; `live!(alone)` is for those that measure.
macro_rules! live {
    (alone, $reason:expr) => {
        live!(@unless $reason);
        let _turn = $crate::common::turn::alone();
    };
    (alone) => {
        live!(alone, packtrain::lab::unavailable());
    };
    (@unless $reason:expr) => {
        let test = {
            fn here() {}
            std::any::type_name_of_val(&here).trim_end_matches("::here")
        };
        if $crate::common::skipped(test, $reason) {
            return;
        }
    };
    ($reason:expr) => {
        live!(@unless $reason);
        let _turn = $crate::common::turn::beside();
    };
    () => {
        live!(packtrain::lab::unavailable());
    };
}

/// The program under test.
pub fn packtrain() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_packtrain"))
}

pub const A: &str = "10.9.0.1";
pub const B: &str = "10.9.0.2";
pub const A6: &str = "fd09::1";
pub const B6: &str = "fd09::2";

/// Two hosts with a cable between their `eth1`s, and a line over it.
#[derive(Debug)]
pub struct Pair {
    pub a: Host,
    pub b: Host,
}

impl Pair {
    /// The cable alone.
    pub fn cable(tag: &str, mtu: u32) -> Result<Pair> {
        let a = Host::create(tag, packtrain())?;
        let b = Host::create(tag, packtrain())?;
        wire::veth((&a.namespace, "eth1"), (&b.namespace, "eth1"))?;
        for host in [&a, &b] {
            wire::set_mtu(&host.namespace, "eth1", mtu)?;
        }
        Ok(Pair { a, b })
    }

    pub fn up(tag: &str, mtu: u32) -> Result<Pair> {
        Pair::up_with(tag, mtu, &[])
    }

    /// `more` stands on both command lines.
    pub fn up_with(tag: &str, mtu: u32, more: &[&str]) -> Result<Pair> {
        let pair = Pair::cable(tag, mtu)?;
        pair.a_up(more)?;
        pair.b_up(more)?;
        pair.wait()?;
        Ok(pair)
    }

    /// Until each knows the other, and no IPv6 address is tentative any more.
    pub fn wait(&self) -> Result<()> {
        for host in [&self.a, &self.b] {
            host.wait_for_peers(1)?;
            wait_for(
                "duplicate address detection",
                Duration::from_secs(5),
                || {
                    let addresses = host.namespace.exec(["ip", "address", "show", "dev", "pt0"]);
                    addresses.is_ok_and(|text| !text.contains("tentative"))
                },
            )?;
        }
        Ok(())
    }

    pub fn a_up(&self, more: &[&str]) -> Result<()> {
        self.a.up(
            "eth1",
            &with(
                &["--address", "10.9.0.1/24", "--address", "fd09::1/64"],
                more,
            ),
        )
    }

    pub fn b_up(&self, more: &[&str]) -> Result<()> {
        self.b.up(
            "eth1",
            &with(
                &["--address", "10.9.0.2/24", "--address", "fd09::2/64"],
                more,
            ),
        )
    }
}

fn with<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more].concat()
}

/// Whether all of a few pings of this payload come back, none cut on the way.
pub fn pings_whole(from: &Host, to: &str, payload_bytes: usize) -> bool {
    let size = payload_bytes.to_string();
    let words = [
        "ping", "-n", "-M", "do", "-c", "3", "-i", "0.05", "-W", "2", "-s", &size, to,
    ];
    from.namespace
        .try_exec(words)
        .is_ok_and(|output| output.status.success())
}

/// A row of bytes that no mistake gives twice: each depends on its place.
pub fn pattern(at: u64) -> u8 {
    let mut x = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as u8
}

/// Sends `bytes` of the pattern over one TCP connection, and gives how many arrived right.
pub fn transfer(from: &Host, to: &Host, address: &str, bytes: u64) -> u64 {
    use std::io::{Read, Write};
    use std::net::{IpAddr, TcpListener, TcpStream};
    let address: IpAddr = address.parse().expect("an address");
    let listener = to
        .namespace
        .in_namespace(|| TcpListener::bind((address, 0)))
        .expect("the namespace is there")
        .expect("the address is there");
    let at = listener.local_addr().expect("bound");
    let mut sender = from
        .namespace
        .in_namespace(|| TcpStream::connect_timeout(&at, Duration::from_secs(5)))
        .expect("the namespace is there")
        .expect("a connection");
    let timeout = Some(Duration::from_secs(20));
    sender.set_write_timeout(timeout).expect("a timeout");
    let (mut receiver, _) = listener.accept().expect("the connection");
    receiver.set_read_timeout(timeout).expect("a timeout");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut sent = 0;
            while sent < bytes {
                let end = (sent + 65_536).min(bytes);
                let chunk: Vec<u8> = (sent..end).map(pattern).collect();
                if sender.write_all(&chunk).is_err() {
                    return;
                }
                sent = end;
            }
        });
        let mut right = 0;
        let mut buffer = vec![0; 65_536];
        loop {
            match receiver.read(&mut buffer) {
                Ok(0) | Err(_) => return right,
                Ok(len) => {
                    for &byte in &buffer[..len] {
                        if byte != pattern(right) {
                            return right;
                        }
                        right += 1;
                    }
                }
            }
        }
    })
}
