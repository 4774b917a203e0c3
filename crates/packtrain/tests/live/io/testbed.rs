//! Two network namespaces with a cable between them, gone when the value is.

use packtrain::lab::namespaces::Namespace;

/// Namespaces `a` and `b`, each with `wire`, a cable to the other; no addresses on it.
#[derive(Debug)]
pub struct Testbed {
    pub a: Side,
    pub b: Side,
}

/// A namespace whose failures are those of the test.
#[derive(Debug)]
pub struct Side(Namespace);

impl Side {
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Runs a command inside, and gives what it printed.
    pub fn run(&self, command: &[&str]) -> String {
        self.0.exec(command).expect("a command that succeeds")
    }

    /// Runs a closure inside; the sockets that it opens stay there.
    pub fn enter<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        self.0
            .in_namespace(body)
            .expect("the namespace can be entered")
    }
}

impl Testbed {
    pub fn create() -> Testbed {
        let side = |tag| Side(Namespace::create(tag).expect("a namespace"));
        let bed = Testbed {
            a: side("ioa"),
            b: side("iob"),
        };
        let peer = ["peer", "name", "wire", "netns", bed.b.name()];
        bed.a
            .run(&[&["ip", "link", "add", "wire", "type", "veth"][..], &peer].concat());
        for side in bed.sides() {
            // Silent of its own accord: no IPv6 addresses, no answers to ARP.
            side.run(&[
                "ip",
                "link",
                "set",
                "wire",
                "addrgenmode",
                "none",
                "arp",
                "off",
            ]);
            side.run(&["ip", "link", "set", "wire", "up"]);
        }
        bed
    }

    pub fn sides(&self) -> [&Side; 2] {
        [&self.a, &self.b]
    }
}

/// The index of an interface of the calling thread's namespace.
pub fn ifindex(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).expect(name)
}
