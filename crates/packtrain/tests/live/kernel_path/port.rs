//! What passes at an interface, seen and sent as it is; and the two ends of a direct path.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::wait_for;
use packtrain::linux::packet_socket::PacketSocket;
use packtrain_proto::buffer::BufferPool;
use packtrain_proto::config::{direct_mark_of, mark_of};
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::common::cabled::pause;

/// A machine that is not run for a moment delivers late.
const SOON: Duration = Duration::from_secs(5);
/// A copy that is not there by then does not come.
pub const SETTLED: Duration = Duration::from_millis(100);

/// What an interface receives. Programs at its way in come later: what they take is seen all the same.
pub struct Port {
    socket: PacketSocket,
    pool: BufferPool,
}

impl Port {
    pub fn open(host: &Namespace, interface: &str) -> Port {
        let open = || {
            let index = nix::net::if_::if_nametoindex(interface).expect("the interface is there");
            PacketSocket::open(index)
        };
        Port {
            socket: host.in_namespace(open).unwrap().unwrap(),
            pool: BufferPool::new(),
        }
    }

    pub fn send(&mut self, frame: &[u8]) {
        let sent = self.socket.send(frame, Offload::NONE);
        sent.unwrap_or_else(|error| panic!("{} bytes: {error}", frame.len()));
    }

    /// What has come since it was asked last.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Ok(Some((frame, _))) = self.socket.receive(&mut self.pool) {
            all.push(frame.to_vec());
            self.pool.give_back(frame);
        }
        all
    }

    /// What came until there is such a frame, it among them.
    pub fn wait_for(&mut self, what: &str, is_it: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        wait_for(what, SOON, || {
            let news = self.take();
            let found = news.iter().any(|frame| is_it(frame));
            all.extend(news);
            found
        })
        .unwrap_or_else(|error| panic!("{error}: {} other frames came", all.len()));
        all
    }

    /// What still comes, when nothing is to come.
    pub fn rest(&mut self) -> Vec<Vec<u8>> {
        pause(SETTLED);
        self.take()
    }
}

/// One end of a direct path over `eth1`.
pub struct End {
    pub pt0: Port,
    pub link: Port,
    pub pt0_address: MacAddr,
    pub link_address: MacAddr,
}

impl End {
    pub fn of(host: &Host) -> End {
        End {
            pt0: Port::open(&host.namespace, "pt0"),
            link: Port::open(&host.namespace, "eth1"),
            pt0_address: address_of(&host.namespace, "pt0"),
            link_address: address_of(&host.namespace, "eth1"),
        }
    }

    pub fn mark(&self) -> MacAddr {
        mark_of(self.link_address).expect("a mark")
    }

    pub fn direct_mark(&self) -> MacAddr {
        direct_mark_of(self.mark())
    }
}

pub fn address_of(host: &Namespace, interface: &str) -> MacAddr {
    let path = format!("/sys/class/net/{interface}/address");
    let text = host.exec(["cat", &path]).unwrap();
    text.trim().parse().expect("an address")
}
