//! Numbers as the machine that wrote a file has them; whoever reads one has seen that its bytes are there.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The one in which these four bytes say `magic`.
    pub fn of(bytes: [u8; 4], magic: u32) -> Option<ByteOrder> {
        [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find(|order| order.u32(&bytes, 0) == magic)
    }

    pub fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = bytes[at..at + 2].try_into().expect("two bytes");
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    pub fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = bytes[at..at + 4].try_into().expect("four bytes");
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    pub fn i64(self, bytes: &[u8], at: usize) -> i64 {
        let bytes = bytes[at..at + 8].try_into().expect("eight bytes");
        match self {
            ByteOrder::Little => i64::from_le_bytes(bytes),
            ByteOrder::Big => i64::from_be_bytes(bytes),
        }
    }
}
