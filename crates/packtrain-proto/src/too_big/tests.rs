//! Against a model that writes the frame and its answer field by field, by the RFCs' pictures, and never parses.

use super::*;
use proptest::prelude::*;

const TCP: u8 = 6;
const UDP: u8 = 17;
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// What a frame is made of.
#[derive(Clone, Debug)]
struct Recipe {
    destination: [u8; 6],
    /// Tags, each 4 bytes with its EtherType.
    tags: Vec<[u8; 4]>,
    v6: bool,
    /// The last byte of each address, and whether it is a group's.
    ends: [(u8, bool); 2],
    /// Words of IPv4 options; of IPv6 whether there is a hop-by-hop header.
    options: usize,
    /// Offset in units of 8 bytes, and whether more follow. IPv6 has no header for it without.
    fragment: Option<(u16, bool)>,
    dont_fragment: bool,
    protocol: u8,
    /// The first byte behind the headers: an ICMP message's type.
    kind: u8,
    payload_len: usize,
    padding: usize,
}

impl Recipe {
    fn plain(v6: bool, protocol: u8, payload_len: usize) -> Recipe {
        Recipe {
            destination: FAR,
            tags: Vec::new(),
            v6,
            ends: [(1, false), (2, false)],
            options: 0,
            fragment: None,
            dont_fragment: true,
            protocol,
            kind: 8,
            payload_len,
            padding: 0,
        }
    }

    fn addresses(&self) -> [Vec<u8>; 2] {
        self.ends.map(|(last, is_group)| match (self.v6, is_group) {
            (false, false) => vec![10, 9, 0, last],
            (false, true) => vec![239, 1, 1, last],
            (true, false) => [vec![0xfd, 9], vec![0; 13], vec![last]].concat(),
            (true, true) => [vec![0xff, 2], vec![0; 13], vec![last]].concat(),
        })
    }

    fn link_header(&self, destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
        let mut out = [destination, source].concat();
        self.tags.iter().for_each(|tag| out.extend(tag));
        out.extend(if self.v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        out
    }

    fn packet(&self) -> Vec<u8> {
        let mut payload: Vec<u8> = (0..self.payload_len).map(|at| at as u8).collect();
        payload[0] = self.kind;
        // A TCP header's length, in words.
        payload[12] = 0x50;
        let [source, destination] = self.addresses();
        if self.v6 {
            let mut headers = Vec::new();
            let mut next = self.protocol;
            if let Some((offset, more)) = self.fragment {
                let word = (offset << 3 | u16::from(more)).to_be_bytes();
                headers = vec![next, 0, word[0], word[1], 0, 0, 0, 7];
                next = 44;
            }
            if self.options > 0 {
                headers = [vec![next, 0, 1, 4, 0, 0, 0, 0], headers].concat();
                next = 0;
            }
            let len = (headers.len() + payload.len()) as u16;
            let fixed = [
                vec![0x60, 0, 0, 0],
                len.to_be_bytes().to_vec(),
                vec![next, 64],
            ]
            .concat();
            return [fixed, source, destination, headers, payload].concat();
        }
        let words = 5 + self.options;
        let len = ((words * 4 + payload.len()) as u16).to_be_bytes();
        let (offset, more) = self.fragment.unwrap_or((0, false));
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(more) << 13 | offset;
        let flags = flags.to_be_bytes();
        let head = [
            0x40 | words as u8,
            0,
            len[0],
            len[1],
            0,
            7,
            flags[0],
            flags[1],
        ];
        let mut header = [
            head.to_vec(),
            vec![64, self.protocol, 0, 0],
            source,
            destination,
        ]
        .concat();
        header.resize(words * 4, 1);
        let sum = slow_checksum(&header);
        header[10..12].copy_from_slice(&sum);
        [header, payload].concat()
    }

    fn frame(&self) -> Vec<u8> {
        let padding = vec![0xee; self.padding];
        [
            self.link_header(self.destination, HOST),
            self.packet(),
            padding,
        ]
        .concat()
    }

    /// Whether it may be answered, as the RFCs list it.
    fn may_be_answered(&self) -> bool {
        let is_icmp = self.protocol == if self.v6 { 58 } else { 1 };
        let is_error = match self.v6 {
            false => ![0, 8, 9, 10, 13, 14, 15, 16, 17, 18, 42, 43].contains(&self.kind),
            true => self.kind < 128 || self.kind == 137,
        };
        self.destination[0] & 1 == 0
            && self.ends.iter().all(|&(_, is_group)| !is_group)
            && self.fragment.is_none_or(|(offset, _)| offset == 0)
            && !(is_icmp && is_error)
    }

    fn expected(&self, excess: usize) -> Option<Vec<u8>> {
        let packet = self.packet();
        let mtu = (packet.len() + self.padding).saturating_sub(excess);
        let least = if self.v6 { 1280 } else { 68 };
        if !self.may_be_answered() || packet.len() <= mtu || mtu < least {
            return None;
        }
        let [source, destination] = self.addresses();
        let mtu = (mtu as u32).to_be_bytes();
        let most = if self.v6 { 1280 - 48 } else { 576 - 28 };
        let quoted = &packet[..packet.len().min(most)];
        let mut icmp = match self.v6 {
            false => vec![3, 4, 0, 0, 0, 0, mtu[2], mtu[3]],
            true => [vec![2, 0, 0, 0], mtu.to_vec()].concat(),
        };
        icmp.extend(quoted);
        let len = icmp.len() as u32;
        let header = if self.v6 {
            let pseudo = [
                &destination[..],
                &source,
                &len.to_be_bytes(),
                &[0, 0, 0, 58],
                &icmp,
            ];
            let sum = slow_checksum(&pseudo.concat());
            icmp[2..4].copy_from_slice(&sum);
            let len = (len as u16).to_be_bytes();
            [
                vec![0x60, 0, 0, 0, len[0], len[1], 58, 64],
                destination,
                source,
            ]
            .concat()
        } else {
            let sum = slow_checksum(&icmp);
            icmp[2..4].copy_from_slice(&sum);
            let len = (len as u16 + 20).to_be_bytes();
            let head = vec![0x45, 0xc0, len[0], len[1], 0, 0, 0x40, 0, 64, 1, 0, 0];
            let mut header = [head, destination, source].concat();
            let sum = slow_checksum(&header);
            header[10..12].copy_from_slice(&sum);
            header
        };
        Some([self.link_header(HOST, self.destination), header, icmp].concat())
    }
}

/// RFC 1071, word by word.
fn slow_checksum(bytes: &[u8]) -> [u8; 2] {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

fn told(frame: &[u8], excess: usize) -> Result<Vec<u8>, Untold> {
    let mut out = Buffer::with_capacity(ANSWER_MAX);
    answer(frame, excess, &mut out).map(|()| out.to_vec())
}

#[test]
fn a_host_is_told_by_the_other_end_how_much_goes_through() {
    let frame = Recipe::plain(false, TCP, 60_000).frame();
    let answer = told(&frame, frame.len() - 14 - 1500).unwrap();
    assert_eq!(answer[..6], HOST);
    assert_eq!(answer[6..12], FAR);
    assert_eq!(answer[14 + 12..14 + 20], [10, 9, 0, 2, 10, 9, 0, 1]);
    assert_eq!(answer[34..36], FRAGMENTATION_NEEDED);
    assert_eq!(answer[38..42], [0, 0, 0x05, 0xdc]);
    assert_eq!(
        answer[42..],
        frame[14..][..548],
        "as much as RFC 1812 lets one quote"
    );

    let frame = Recipe::plain(true, UDP, 60_000).frame();
    let answer = told(&frame, frame.len() - 14 - 1500).unwrap();
    assert_eq!(answer.len(), 14 + 1280);
    assert_eq!(answer[54..56], PACKET_TOO_BIG);
    assert_eq!(answer[58..62], [0, 0, 0x05, 0xdc]);
    assert_eq!(answer[62..], frame[14..][..1232]);
}

#[test]
fn errors_groups_and_later_fragments_are_not_answered() {
    let plain = |v6| Recipe::plain(v6, UDP, 3000);
    let untold = |recipe: Recipe| told(&recipe.frame(), 1000);
    for v6 in [false, true] {
        assert!(untold(plain(v6)).is_ok());
        let fragment = Some((0, true));
        assert!(
            untold(Recipe {
                fragment,
                ..plain(v6)
            })
            .is_ok()
        );
        let fragment = Some((10, true));
        assert_eq!(
            untold(Recipe {
                fragment,
                ..plain(v6)
            }),
            Err(Untold::LaterFragment)
        );
        let (protocol, kind) = if v6 { (58, 2) } else { (1, 3) };
        let error = Recipe {
            protocol,
            kind,
            ..plain(v6)
        };
        assert_eq!(untold(error), Err(Untold::Error));
        let kind = if v6 { 128 } else { 8 };
        assert!(
            untold(Recipe {
                protocol,
                kind,
                ..plain(v6)
            })
            .is_ok()
        );
        let ends = [(1, false), (2, true)];
        assert_eq!(untold(Recipe { ends, ..plain(v6) }), Err(Untold::Group));
        let destination = [1, 0, 0x5e, 0, 0, 1];
        assert_eq!(
            untold(Recipe {
                destination,
                ..plain(v6)
            }),
            Err(Untold::Group)
        );
    }
    // Behind more headers than are walked an error may stand.
    let protocol = protocol::DESTINATION;
    let fragment = Some((0, true));
    let hidden = Recipe {
        protocol,
        fragment,
        ..plain(true)
    };
    assert_eq!(untold(hidden), Err(Untold::Error));
}

#[test]
fn an_address_that_is_nobodys_is_not_answered() {
    for (at, address) in [
        (26, [0, 0, 0, 0]),
        (26, [127, 0, 0, 1]),
        (26, [255; 4]),
        (30, [0, 1, 2, 3]),
    ] {
        let mut frame = Recipe::plain(false, TCP, 3000).frame();
        frame[at..at + 4].copy_from_slice(&address);
        frame[24..26].copy_from_slice(&[0, 0]);
        let sum = slow_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum);
        assert!(matches!(
            told(&frame, 1000),
            Err(Untold::NoAddress | Untold::Group)
        ));
    }
    let mut frame = Recipe::plain(true, TCP, 3000).frame();
    frame[22..38].fill(0);
    assert_eq!(told(&frame, 1000), Err(Untold::NoAddress));
}

#[test]
fn what_is_not_ip_or_has_a_wrong_header_is_not_answered() {
    let mut frame = Recipe::plain(false, TCP, 3000).frame();
    frame[22] ^= 1;
    assert_eq!(
        told(&frame, 1000),
        Err(Untold::NotIp),
        "its header's sum is wrong"
    );
    frame[12..14].copy_from_slice(&[0x08, 0x06]);
    assert_eq!(told(&frame, 1000), Err(Untold::NotIp));
    assert_eq!(told(&[], 1), Err(Untold::NotIp));
}

#[test]
fn padding_is_no_reason_to_send_less_and_an_mtu_below_the_least_is_not_told() {
    let padded = Recipe {
        padding: 2000,
        ..Recipe::plain(false, TCP, 1000)
    };
    assert_eq!(told(&padded.frame(), 2000), Err(Untold::Fits));
    assert!(told(&padded.frame(), 2001).is_ok());
    let six = Recipe::plain(true, TCP, 1300).frame();
    assert!(told(&six, 60).is_ok());
    assert_eq!(told(&six, 61), Err(Untold::BelowLeast(1280)));
}

fn any_recipe() -> impl Strategy<Value = Recipe> {
    let tag = prop_oneof![Just([0x81, 0, 0, 5]), Just([0x88, 0xa8, 0x60, 9])];
    let end = || (2..=255_u8, prop::bool::weighted(0.05));
    let icmp = prop_oneof![Just(TCP), Just(UDP), Just(1), Just(58), Just(50)];
    (
        (
            prop::bool::weighted(0.05),
            prop::collection::vec(tag, 0..=2),
            any::<bool>(),
        ),
        (
            [end(), end()],
            0..=10_usize,
            prop::option::weighted(0.3, (0..3_u16, any::<bool>())),
        ),
        (any::<bool>(), icmp, any::<u8>()),
        (100..9000_usize, prop_oneof![Just(0), 0..200_usize]),
    )
        .prop_map(
            |((group, tags, v6), (ends, options, fragment), rest, lens)| Recipe {
                destination: if group { [3, 0, 0, 0, 0, 9] } else { FAR },
                tags,
                v6,
                ends,
                options,
                fragment,
                dont_fragment: rest.0,
                protocol: rest.1,
                kind: rest.2,
                payload_len: lens.0,
                padding: lens.1,
            },
        )
}

proptest! {
    #[test]
    fn the_answer_is_the_models(recipe in any_recipe(), excess in 1..9000_usize) {
        prop_assert_eq!(told(&recipe.frame(), excess).ok(), recipe.expected(excess));
    }

    #[test]
    fn a_damaged_frame_is_answered_by_a_sound_frame_or_not_at_all(
        recipe in any_recipe(), excess: u16, damage: Vec<(prop::sample::Index, u8)>, cut: prop::sample::Index
    ) {
        let mut frame = recipe.frame();
        for (at, byte) in damage {
            let at = at.index(frame.len().min(120));
            frame[at] = byte;
        }
        let cut = cut.index(2 * frame.len());
        frame.truncate(cut.max(1));
        if let Ok(answer) = told(&frame, excess.into()) {
            prop_assert!(is_sound(&answer), "{:02x?}", answer);
        }
    }
}

/// Its lengths and checksums are right, and it is for whom sent the frame.
fn is_sound(answer: &[u8]) -> bool {
    let packet = Packet::parse(answer).expect("it has headers");
    let ip = packet.ip.expect("it is IP");
    let body = &answer[packet.network_start..];
    let sums = match ip.version {
        IpVersion::V4 => {
            slow_checksum(&body[..20]) == [0, 0] && slow_checksum(&body[20..]) == [0, 0]
        }
        IpVersion::V6 => {
            let len = (body.len() as u32 - 40).to_be_bytes();
            let pseudo = [&body[8..40], &len, &[0, 0, 0, 58], &body[40..]].concat();
            slow_checksum(&pseudo) == [0, 0]
        }
    };
    sums && ip.total_len == body.len() && answer.len() <= ANSWER_MAX
}
