//! A hello: who is there, by which links, and what it has sent. The diagram is in
//! docs/wire-format.md.

use core::num::NonZero;

use crate::buffer::Buffer;
use crate::config::{LinkId, NodeId};
use crate::stats::DropReason;
use crate::wire::ethernet::MacAddr;
use crate::wire::sequence::Sequence;
use crate::wire::train::{self, TYPE_HELLO, TrainError, VERSION};

/// Bytes before the link records, the outer Ethernet header not counted.
pub const HEADER_LEN: usize = 40;
pub const LINK_RECORD_LEN: usize = 28;

/// What one hello may name. Who says more is not believed anything.
pub const LINKS_MAX: usize = 16;
pub const STATIONS_MAX: usize = 256;
/// Bytes of the software's name that are sent.
pub const SOFTWARE_LEN_MAX: usize = 64;

/// Bits of [`Hello::capabilities`].
pub mod capability {
    /// Takes frames that go as they are, with a mark.
    pub const MARKED_FRAMES: u32 = 1 << 0;
    /// Takes GSO frames in trains.
    pub const GSO_FRAMES: u32 = 1 << 1;
    /// Takes frames that go as they are, with a direct mark, before and past any engine.
    pub const DIRECT_FRAMES: u32 = 1 << 2;
    /// Takes coded trains.
    pub const CODED_TRAINS: u32 = 1 << 3;
    /// Says many times a second which links it hears, and takes such messages.
    pub const LIVENESS: u32 = 1 << 4;
    /// Waits for what links have lost that live, where its sender says that it sends it again.
    pub const REPAIR: u32 = 1 << 5;
    /// Answers liveness messages that ask for it at once, and may be as long as a link takes; and knows from which train on
    /// something goes again, also where it does not wait for repairs.
    pub const POLLS: u32 = 1 << 6;
    /// Knows link 0xfe in NEWEST.
    pub const KNOWS_FROM: u32 = REPAIR | POLLS;
}

const ADDRESS_LEN: usize = 6;
/// As many as the option's length byte can say.
const STATIONS_PER_OPTION: usize = 42;

/// Where fields stand in the header.
mod field {
    use core::ops::Range;
    pub(super) const FLAGS: usize = 1;
    pub(super) const LINK: usize = 2;
    pub(super) const LINK_COUNT: usize = 3;
    pub(super) const NODE_ID: Range<usize> = 4..12;
    pub(super) const RECIPIENT: Range<usize> = 12..20;
    pub(super) const LINE_ID: Range<usize> = 20..24;
    pub(super) const CAPABILITIES: Range<usize> = 24..28;
    pub(super) const ADDRESS: Range<usize> = 28..34;
    pub(super) const MTU: Range<usize> = 34..36;
    pub(super) const LANES: usize = 36;
    pub(super) const EPOCH: usize = 37;
    pub(super) const OPTIONS_LEN: Range<usize> = 38..40;
}

/// Where fields stand in a link record.
mod record {
    use core::ops::Range;
    pub(super) const LINK: usize = 0;
    pub(super) const STATE: usize = 1;
    pub(super) const MTU: Range<usize> = 2..4;
    pub(super) const ADDRESS: Range<usize> = 4..10;
    pub(super) const MARK: Range<usize> = 10..16;
    pub(super) const RATE: Range<usize> = 16..20;
    pub(super) const NEWEST_TRAIN: Range<usize> = 20..24;
    pub(super) const NEWEST_LINK: Range<usize> = 24..28;
}

const _: () = assert!(field::OPTIONS_LEN.end == HEADER_LEN);
const _: () = assert!(record::NEWEST_LINK.end == LINK_RECORD_LEN);

const COUNT_LEN: usize = 4;
const COUNT_OPTION_LEN: usize = 2 + COUNT_LEN;
const DIRECT_VLAN_LEN: usize = 2;
const DIRECT_VLAN_OPTION_LEN: usize = 2 + DIRECT_VLAN_LEN;
const DICTIONARY_LEN: usize = 4;
const DICTIONARY_OPTION_LEN: usize = 2 + DICTIONARY_LEN;
const MIXING_LEN: usize = 2;
const MIXING_OPTION_LEN: usize = 2 + MIXING_LEN;
const SEQUENCE_LEN: usize = 4;
/// Of more lanes a hello does not tell.
pub const NEWEST_IN_LANES_MAX: usize = 62;
/// 0 is no VLAN but a priority, 4095 is reserved (IEEE 802.1Q).
pub const VLAN_IDS: core::ops::RangeInclusive<u16> = 1..=4094;

mod flag {
    pub(super) const ANSWER: u8 = 0x01;
    pub(super) const GOODBYE: u8 = 0x02;
    pub(super) const AWAY: u8 = 0x04;
    pub(super) const FULL: u8 = 0x08;
    pub(super) const PAST: u8 = 0x10;
}

mod state {
    pub(super) const CARRIER: u8 = 0x01;
    pub(super) const UNUSED_BY_HOST: u8 = 0x02;
    pub(super) const TAKES_VLAN: u8 = 0x04;
}

mod option {
    pub(super) const STATIONS: u8 = 0x01;
    pub(super) const SOFTWARE: u8 = 0x02;
    pub(super) const COUNT: u8 = 0x03;
    pub(super) const DIRECT_VLAN: u8 = 0x04;
    pub(super) const DICTIONARY: u8 = 0x05;
    pub(super) const MIXING: u8 = 0x06;
    pub(super) const LANES: u8 = 0x07;
    pub(super) const CRITICAL: u8 = 0x80;
}

/// Why a message is no hello for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    #[error("shorter than a hello's header, links and options")]
    Truncated,
    #[error("not a version that we speak")]
    UnknownVersion,
    #[error("not a hello")]
    UnknownType,
    #[error("node id 0")]
    ZeroNodeId,
    #[error("no lanes")]
    NoLanes,
    #[error("{0} links, more than {LINKS_MAX}")]
    TooManyLinks(u8),
    #[error("link {0} twice")]
    DuplicateLink(u8),
    #[error("{0} is nobody's own address")]
    BadAddress(MacAddr),
    #[error("an option's length does not fit")]
    BadOption,
    #[error("option {0:#04x} is critical, and not known")]
    UnknownCriticalOption(u8),
    #[error("more than {STATIONS_MAX} stations")]
    TooManyStations,
    #[error("a software name that is not plain UTF-8")]
    BadSoftware,
}

impl HelloError {
    /// The counter that it belongs to.
    pub fn drop_reason(self) -> DropReason {
        match self {
            HelloError::Truncated => DropReason::Truncated,
            HelloError::UnknownVersion => DropReason::UnknownVersion,
            HelloError::UnknownType => DropReason::UnknownType,
            HelloError::BadOption => DropReason::BadOption,
            HelloError::UnknownCriticalOption(_) => DropReason::UnknownCriticalOption,
            HelloError::ZeroNodeId
            | HelloError::NoLanes
            | HelloError::TooManyLinks(_)
            | HelloError::DuplicateLink(_)
            | HelloError::BadAddress(_)
            | HelloError::TooManyStations
            | HelloError::BadSoftware => DropReason::BadHello,
        }
    }
}

/// What a hello says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Answer me at once.
    pub answer: bool,
    /// This node leaves; forget it.
    pub goodbye: bool,
    /// This node's engine is away, and may be back: only direct frames come from it and reach it. Said in its
    /// place by whoever keeps its direct path.
    pub away: bool,
    /// This node's engine takes all that it can of what it is sent: what may go past it is welcome to.
    pub full: bool,
    /// Much of what its host sends goes past both engines, and so may what answers it.
    pub past: bool,
    /// The sender's number of the link that this copy left by. It need not be among `links`.
    pub link: LinkId,
    pub node_id: NodeId,
    /// Whom it is for; `None`: everybody.
    pub recipient: Option<NodeId>,
    pub line_id: u32,
    /// See [`capability`]. Bits that we do not know are kept.
    pub capabilities: u32,
    /// `pt0`'s address.
    pub address: MacAddr,
    /// `pt0`'s MTU: the largest payload that a train may bring it in a frame without GSO.
    pub mtu: u16,
    pub lanes: u8,
    /// Differs when the sender has begun anew what it keeps for the recipient, sequences included.
    pub epoch: u8,
    /// How many hellos the sender has made before, from 1 and wrapping: of two links, one may bring an older
    /// one later. 0: not told.
    pub count: u32,
    /// At most [`LINKS_MAX`].
    pub links: Vec<LinkRecord>,
    /// Stations behind `pt0`, at most [`STATIONS_MAX`].
    pub stations: Vec<MacAddr>,
    /// The VLAN in which it takes direct frames, on the links that say so. What is none ([`VLAN_IDS`]) is as if
    /// not told.
    pub direct_vlan: Option<u16>,
    /// Of the dictionary that it has ([`crate::coding::dictionary`]).
    pub dictionary: Option<u32>,
    /// What it takes the sender to restore a byte that is coded by mixing, nanoseconds.
    pub mixing_ns: Option<NonZero<u16>>,
    /// The newest train sequences sent to the recipient in the lanes behind the first one, as many as are in use, at most
    /// [`NEWEST_IN_LANES_MAX`].
    pub newest_in_lanes: Vec<Sequence>,
    /// Name and version, as its owner wants them shown; empty when not told.
    pub software: String,
}

/// What a hello says of one of the sender's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    pub link: LinkId,
    pub carrier: bool,
    /// The sender's host does not use it itself, so direct frames need no mark of their own on it.
    pub unused_by_host: bool,
    /// Direct frames in the sender's VLAN for them are taken on it.
    pub takes_vlan: bool,
    pub mtu: u16,
    pub address: MacAddr,
    /// Outer source of frames that go as they are.
    pub mark: Option<MacAddr>,
    pub rate_kbps: Option<u32>,
    /// The newest sequences sent to the recipient on this link.
    pub newest_train: Sequence,
    pub newest_link: Sequence,
}

impl Hello {
    /// `message` is what follows the outer Ethernet header; padding after it is not looked at.
    pub fn parse(message: &[u8]) -> Result<Hello, HelloError> {
        match train::message_type(message) {
            Ok(TYPE_HELLO) => {}
            Err(TrainError::Truncated) => return Err(HelloError::Truncated),
            Err(TrainError::UnknownVersion) => return Err(HelloError::UnknownVersion),
            Ok(_) | Err(_) => return Err(HelloError::UnknownType),
        }
        let (header, rest) = message
            .split_at_checked(HEADER_LEN)
            .ok_or(HelloError::Truncated)?;
        let node_id = be64(&header[field::NODE_ID]);
        if node_id == 0 {
            return Err(HelloError::ZeroNodeId);
        }
        if header[field::LANES] == 0 {
            return Err(HelloError::NoLanes);
        }
        let link_count = header[field::LINK_COUNT];
        if usize::from(link_count) > LINKS_MAX {
            return Err(HelloError::TooManyLinks(link_count));
        }
        let options_len = usize::from(be16(&header[field::OPTIONS_LEN]));
        let (records, rest) = rest
            .split_at_checked(usize::from(link_count) * LINK_RECORD_LEN)
            .ok_or(HelloError::Truncated)?;
        let options = rest.get(..options_len).ok_or(HelloError::Truncated)?;

        let recipient = be64(&header[field::RECIPIENT]);
        let mut hello = Hello {
            answer: header[field::FLAGS] & flag::ANSWER != 0,
            goodbye: header[field::FLAGS] & flag::GOODBYE != 0,
            away: header[field::FLAGS] & flag::AWAY != 0,
            full: header[field::FLAGS] & flag::FULL != 0,
            past: header[field::FLAGS] & flag::PAST != 0,
            link: LinkId(header[field::LINK]),
            node_id: NodeId(node_id),
            recipient: (recipient != 0).then_some(NodeId(recipient)),
            line_id: be32(&header[field::LINE_ID]),
            capabilities: be32(&header[field::CAPABILITIES]),
            address: own_address(&header[field::ADDRESS])?,
            mtu: be16(&header[field::MTU]),
            lanes: header[field::LANES],
            epoch: header[field::EPOCH],
            count: 0,
            links: Vec::with_capacity(usize::from(link_count)),
            stations: Vec::new(),
            direct_vlan: None,
            dictionary: None,
            mixing_ns: None,
            newest_in_lanes: Vec::new(),
            software: String::new(),
        };
        for bytes in records.chunks_exact(LINK_RECORD_LEN) {
            let record = LinkRecord::parse(bytes)?;
            if hello.links.iter().any(|other| other.link == record.link) {
                return Err(HelloError::DuplicateLink(record.link.0));
            }
            hello.links.push(record);
        }
        hello.parse_options(options)?;
        Ok(hello)
    }

    fn parse_options(&mut self, mut options: &[u8]) -> Result<(), HelloError> {
        while let [kind, len, tail @ ..] = options {
            let (value, rest) = tail
                .split_at_checked(usize::from(*len))
                .ok_or(HelloError::BadOption)?;
            match *kind {
                option::STATIONS => self.parse_stations(value)?,
                option::COUNT => self.count = parse_count(value)?,
                option::DIRECT_VLAN => self.direct_vlan = parse_vlan(value)?,
                option::DICTIONARY => self.dictionary = parse_dictionary(value)?,
                option::MIXING => self.mixing_ns = parse_mixing(value)?,
                option::LANES => self.newest_in_lanes = parse_lanes(value)?,
                option::SOFTWARE => self.software = parse_software(value)?,
                kind if kind & option::CRITICAL != 0 => {
                    return Err(HelloError::UnknownCriticalOption(kind));
                }
                _ => {}
            }
            options = rest;
        }
        if options.is_empty() {
            Ok(())
        } else {
            Err(HelloError::BadOption)
        }
    }

    fn parse_stations(&mut self, value: &[u8]) -> Result<(), HelloError> {
        if !value.len().is_multiple_of(ADDRESS_LEN) {
            return Err(HelloError::BadOption);
        }
        if self.stations.len() + value.len() / ADDRESS_LEN > STATIONS_MAX {
            return Err(HelloError::TooManyStations);
        }
        for bytes in value.chunks_exact(ADDRESS_LEN) {
            self.stations.push(own_address(bytes)?);
        }
        Ok(())
    }

    /// Bytes that [`Hello::emit`] appends.
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN + self.links.len() * LINK_RECORD_LEN + self.options_len()
    }

    fn options_len(&self) -> usize {
        let stations = 2 * self.stations.len().div_ceil(STATIONS_PER_OPTION)
            + ADDRESS_LEN * self.stations.len();
        let software: usize = shown(&self.software).map(char::len_utf8).sum();
        let count = if self.count > 0 { COUNT_OPTION_LEN } else { 0 };
        let vlan = match self.direct_vlan {
            Some(_) => DIRECT_VLAN_OPTION_LEN,
            None => 0,
        };
        let dictionary = match self.dictionary {
            Some(_) => DICTIONARY_OPTION_LEN,
            None => 0,
        };
        let mixing = match self.mixing_ns {
            Some(_) => MIXING_OPTION_LEN,
            None => 0,
        };
        let lanes = match self.newest_in_lanes.len() {
            0 => 0,
            lanes => 2 + SEQUENCE_LEN * lanes,
        };
        let named = count + vlan + dictionary + mixing + lanes;
        named + stations + if software > 0 { 2 + software } else { 0 }
    }

    /// Appends the message; what stands in `buffer` is the outer Ethernet header.
    ///
    /// # Panics
    /// If it does not fit, or says what no receiver accepts: more links or stations than allowed,
    /// node id 0, no lanes or too many, an address that is nobody's own, a VLAN that is none.
    pub fn emit(&self, buffer: &mut Buffer) {
        assert!(
            self.links.len() <= LINKS_MAX,
            "{} links in a hello",
            self.links.len()
        );
        assert!(
            self.stations.len() <= STATIONS_MAX,
            "{} stations in a hello",
            self.stations.len()
        );
        assert!(self.node_id.0 != 0, "a hello of node id 0");
        assert!(self.lanes != 0, "a hello without lanes");
        let mut header = [0; HEADER_LEN];
        header[0] = VERSION << 4 | TYPE_HELLO;
        header[field::FLAGS] = if self.answer { flag::ANSWER } else { 0 }
            | if self.goodbye { flag::GOODBYE } else { 0 }
            | if self.away { flag::AWAY } else { 0 }
            | if self.full { flag::FULL } else { 0 }
            | if self.past { flag::PAST } else { 0 };
        header[field::LINK] = self.link.0;
        header[field::LINK_COUNT] = self.links.len() as u8;
        header[field::NODE_ID].copy_from_slice(&self.node_id.0.to_be_bytes());
        let recipient = self.recipient.map_or(0, |node_id| node_id.0);
        header[field::RECIPIENT].copy_from_slice(&recipient.to_be_bytes());
        header[field::LINE_ID].copy_from_slice(&self.line_id.to_be_bytes());
        header[field::CAPABILITIES].copy_from_slice(&self.capabilities.to_be_bytes());
        header[field::ADDRESS].copy_from_slice(&assert_own(self.address).0);
        header[field::MTU].copy_from_slice(&self.mtu.to_be_bytes());
        header[field::LANES] = self.lanes;
        header[field::EPOCH] = self.epoch;
        let options_len = self.options_len() as u16;
        header[field::OPTIONS_LEN].copy_from_slice(&options_len.to_be_bytes());
        put(buffer, &header);
        for link in &self.links {
            put(buffer, &link.to_bytes());
        }
        if self.count > 0 {
            put(buffer, &[option::COUNT, COUNT_LEN as u8]);
            put(buffer, &self.count.to_be_bytes());
        }
        if let Some(vlan) = self.direct_vlan {
            assert!(VLAN_IDS.contains(&vlan), "VLAN {vlan} in a hello");
            put(buffer, &[option::DIRECT_VLAN, DIRECT_VLAN_LEN as u8]);
            put(buffer, &vlan.to_be_bytes());
        }
        if let Some(id) = self.dictionary {
            put(buffer, &[option::DICTIONARY, DICTIONARY_LEN as u8]);
            put(buffer, &id.to_be_bytes());
        }
        if let Some(mixing_ns) = self.mixing_ns {
            put(buffer, &[option::MIXING, MIXING_LEN as u8]);
            put(buffer, &mixing_ns.get().to_be_bytes());
        }
        if !self.newest_in_lanes.is_empty() {
            let lanes = self.newest_in_lanes.len();
            assert!(lanes <= NEWEST_IN_LANES_MAX, "{lanes} lanes in a hello");
            put(buffer, &[option::LANES, (lanes * SEQUENCE_LEN) as u8]);
            for newest in &self.newest_in_lanes {
                put(buffer, &newest.0.to_be_bytes());
            }
        }
        for stations in self.stations.chunks(STATIONS_PER_OPTION) {
            put(
                buffer,
                &[option::STATIONS, (stations.len() * ADDRESS_LEN) as u8],
            );
            for station in stations {
                put(buffer, &assert_own(*station).0);
            }
        }
        let software: usize = shown(&self.software).map(char::len_utf8).sum();
        if software > 0 {
            put(buffer, &[option::SOFTWARE, software as u8]);
            for character in shown(&self.software) {
                put(buffer, character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
}

impl LinkRecord {
    fn parse(bytes: &[u8]) -> Result<LinkRecord, HelloError> {
        let rate_kbps = be32(&bytes[record::RATE]);
        Ok(LinkRecord {
            link: LinkId(bytes[record::LINK]),
            carrier: bytes[record::STATE] & state::CARRIER != 0,
            unused_by_host: bytes[record::STATE] & state::UNUSED_BY_HOST != 0,
            takes_vlan: bytes[record::STATE] & state::TAKES_VLAN != 0,
            mtu: be16(&bytes[record::MTU]),
            address: own_address(&bytes[record::ADDRESS])?,
            mark: match MacAddr::from_slice(&bytes[record::MARK]) {
                mark if mark.is_zero() => None,
                _ => Some(own_address(&bytes[record::MARK])?),
            },
            rate_kbps: (rate_kbps != 0).then_some(rate_kbps),
            newest_train: Sequence(be32(&bytes[record::NEWEST_TRAIN])),
            newest_link: Sequence(be32(&bytes[record::NEWEST_LINK])),
        })
    }

    fn to_bytes(self) -> [u8; LINK_RECORD_LEN] {
        let mut bytes = [0; LINK_RECORD_LEN];
        bytes[record::LINK] = self.link.0;
        let bits = [
            (self.carrier, state::CARRIER),
            (self.unused_by_host, state::UNUSED_BY_HOST),
            (self.takes_vlan, state::TAKES_VLAN),
        ];
        let set = bits.iter().filter(|(is_set, _)| *is_set);
        bytes[record::STATE] = set.map(|(_, bit)| bit).sum();
        bytes[record::MTU].copy_from_slice(&self.mtu.to_be_bytes());
        bytes[record::ADDRESS].copy_from_slice(&assert_own(self.address).0);
        if let Some(mark) = self.mark {
            bytes[record::MARK].copy_from_slice(&assert_own(mark).0);
        }
        bytes[record::RATE].copy_from_slice(&self.rate_kbps.unwrap_or(0).to_be_bytes());
        bytes[record::NEWEST_TRAIN].copy_from_slice(&self.newest_train.0.to_be_bytes());
        bytes[record::NEWEST_LINK].copy_from_slice(&self.newest_link.0.to_be_bytes());
        bytes
    }
}

/// An address that one station can have.
fn own_address(bytes: &[u8]) -> Result<MacAddr, HelloError> {
    let address = MacAddr::from_slice(bytes);
    if address.is_zero() || address.is_group() {
        return Err(HelloError::BadAddress(address));
    }
    Ok(address)
}

fn assert_own(address: MacAddr) -> MacAddr {
    assert!(
        !address.is_zero() && !address.is_group(),
        "{address} in a hello"
    );
    address
}

fn parse_vlan(value: &[u8]) -> Result<Option<u16>, HelloError> {
    let value: [u8; DIRECT_VLAN_LEN] = value.try_into().map_err(|_| HelloError::BadOption)?;
    Ok(Some(u16::from_be_bytes(value)).filter(|vlan| VLAN_IDS.contains(vlan)))
}

fn parse_count(value: &[u8]) -> Result<u32, HelloError> {
    let value: [u8; COUNT_LEN] = value.try_into().map_err(|_| HelloError::BadOption)?;
    Ok(u32::from_be_bytes(value))
}

/// 0 names none.
fn parse_dictionary(value: &[u8]) -> Result<Option<u32>, HelloError> {
    match value.len() {
        DICTIONARY_LEN => Ok(Some(be32(value)).filter(|id| *id != 0)),
        _ => Err(HelloError::BadOption),
    }
}

/// 0 is as if not said.
fn parse_mixing(value: &[u8]) -> Result<Option<NonZero<u16>>, HelloError> {
    match value.len() {
        MIXING_LEN => Ok(NonZero::new(be16(value))),
        _ => Err(HelloError::BadOption),
    }
}

fn parse_lanes(value: &[u8]) -> Result<Vec<Sequence>, HelloError> {
    let sequences = value.chunks_exact(SEQUENCE_LEN);
    match sequences.remainder() {
        [] if sequences.len() <= NEWEST_IN_LANES_MAX => {
            Ok(sequences.map(|bytes| Sequence(be32(bytes))).collect())
        }
        _ => Err(HelloError::BadOption),
    }
}

/// It will be printed on terminals, so it must not be able to steer one.
fn parse_software(value: &[u8]) -> Result<String, HelloError> {
    let text = core::str::from_utf8(value).map_err(|_| HelloError::BadSoftware)?;
    if text.chars().any(char::is_control) {
        return Err(HelloError::BadSoftware);
    }
    Ok(text.to_owned())
}

/// What is sent of the software's name: whole printable characters, up to the limit.
fn shown(software: &str) -> impl Iterator<Item = char> + '_ {
    let mut len = 0;
    software
        .chars()
        .filter(|character| !character.is_control())
        .take_while(move |character| {
            len += character.len_utf8();
            len <= SOFTWARE_LEN_MAX
        })
}

fn put(buffer: &mut Buffer, bytes: &[u8]) {
    assert!(buffer.push(bytes), "a hello larger than its buffer");
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes(bytes.try_into().expect("2 bytes"))
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("4 bytes"))
}

fn be64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests;
