//! Frames as a capture has them.

const DIFFERENT: u32 = 4096;
/// Where the payload of UDP over IPv4 begins.
const PAYLOAD_AT: usize = 42;

/// Small datagrams between two hosts, of many flows, each with a number in it.
#[derive(Debug)]
pub struct Traffic {
    frames: Vec<Vec<u8>>,
    current: Vec<u8>,
}

impl Traffic {
    /// `payload` of each frame: bytes, at least eight.
    pub fn new(payload: usize) -> Traffic {
        let of = |n: u32| {
            let (from, to) = (1 + (n % 2) as u8, 2 - (n % 2) as u8);
            udp(from, to, 5000 + (n % 64) as u16, payload, n)
        };
        Traffic {
            frames: (0..DIFFERENT).map(of).collect(),
            current: Vec::new(),
        }
    }

    pub fn frame(&mut self, number: u64) -> &[u8] {
        let like = (number % u64::from(DIFFERENT)) as usize;
        self.current.clone_from(&self.frames[like]);
        self.current[PAYLOAD_AT..PAYLOAD_AT + 8].copy_from_slice(&number.to_be_bytes());
        &self.current
    }
}

fn udp(from: u8, to: u8, port: u16, payload: usize, number: u32) -> Vec<u8> {
    let total = (28 + payload) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend((number as u16).to_be_bytes());
    frame.extend([0, 0, 64, 17, 0, 0, 10, 9, 0, from, 10, 9, 0, to]);
    frame.extend(port.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend((total - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload).map(|at| (number as usize * 31 + at * 7) as u8));
    frame
}
