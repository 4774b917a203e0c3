//! Slices against a slow model that cuts a frame wholly, as the kernel or a network card would.

use super::*;
use crate::wire::ethernet::ether_type;
use crate::wire::packet::protocol;
use proptest::prelude::*;

/// Frames of each kind that is cut, with what is peculiar to it.
pub(crate) fn gso_frames() -> Vec<(Vec<u8>, Offload)> {
    let kinds = [
        (GsoKind::TcpV4, false, 0, 2),
        (GsoKind::TcpV6, true, 1, 1),
        (GsoKind::UdpL4, false, 1, 0),
        (GsoKind::UdpL4, true, 0, 0),
    ];
    let recipes = kinds.map(|(kind, v6, tags, extra)| Recipe {
        kind,
        v6,
        tags,
        ip_extra: extra,
        tcp_options: 3,
        tcp_flags: 0x99,
        sequence: u32::MAX - 150,
        id: u16::MAX - 1,
        segment_len: 100,
        payload_len: 430,
        noise: 5,
    });
    let frames = recipes.iter();
    frames
        .map(|recipe| (recipe.frame(), recipe.offload()))
        .collect()
}

/// What a test frame is made of; the model cuts by this and never parses.
#[derive(Clone, Debug)]
struct Recipe {
    kind: GsoKind,
    v6: bool,
    tags: usize,
    /// Length in units of the header: 4 bytes (IPv4 options), 8 bytes (an IPv6 extension header).
    ip_extra: usize,
    /// TCP options, in 4 bytes.
    tcp_options: usize,
    tcp_flags: u8,
    sequence: u32,
    id: u16,
    segment_len: u16,
    payload_len: usize,
    noise: u64,
}

impl Recipe {
    fn network_start(&self) -> usize {
        14 + 4 * self.tags
    }

    fn transport_start(&self) -> usize {
        self.network_start()
            + if self.v6 {
                40 + 8 * self.ip_extra
            } else {
                20 + 4 * self.ip_extra
            }
    }

    fn header_len(&self) -> usize {
        self.transport_start()
            + if self.is_udp() {
                8
            } else {
                20 + 4 * self.tcp_options
            }
    }

    fn is_udp(&self) -> bool {
        self.kind == GsoKind::UdpL4
    }

    fn checksum_offset(&self) -> u16 {
        if self.is_udp() { 6 } else { 16 }
    }

    fn offload(&self) -> Offload {
        Offload {
            checksum: Some(PartialChecksum {
                start: self.transport_start() as u16,
                offset: self.checksum_offset(),
            }),
            gso: Some(Gso {
                kind: self.kind,
                ecn: !self.is_udp() && self.tcp_flags & 0x80 != 0,
                header_len: self.header_len() as u16,
                segment_len: self.segment_len,
            }),
        }
    }

    /// As a TAP gives it.
    fn frame(&self) -> Vec<u8> {
        let mut noise = self.noise;
        let mut byte = || {
            noise = noise
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (noise >> 56) as u8
        };
        let mut frame: Vec<u8> = (0..12).map(|_| byte()).collect();
        for _ in 0..self.tags {
            frame.extend(ether_type::VLAN.to_be_bytes());
            frame.extend([byte(), byte()]);
        }
        let upper = if self.is_udp() {
            protocol::UDP
        } else {
            protocol::TCP
        };
        if self.v6 {
            frame.extend(ether_type::IPV6.to_be_bytes());
            frame.extend([0x60, byte(), byte(), byte(), 0, 0]);
            frame.extend([
                if self.ip_extra > 0 {
                    protocol::DESTINATION
                } else {
                    upper
                },
                64,
            ]);
            frame.extend((0..32).map(|_| byte()));
            if self.ip_extra > 0 {
                frame.extend([upper, self.ip_extra as u8 - 1]);
                frame.extend((2..8 * self.ip_extra).map(|_| byte()));
            }
        } else {
            frame.extend(ether_type::IPV4.to_be_bytes());
            frame.extend([0x45 + self.ip_extra as u8, byte(), 0, 0]);
            frame.extend(self.id.to_be_bytes());
            frame.extend([0x40, 0, 64, upper, 0, 0]);
            frame.extend((0..8 + 4 * self.ip_extra).map(|_| byte()));
        }
        frame.extend([byte(), byte(), byte(), byte()]);
        if self.is_udp() {
            frame.extend([0; 4]);
        } else {
            frame.extend(self.sequence.to_be_bytes());
            frame.extend([byte(), byte(), byte(), byte()]);
            frame.extend([
                (5 + self.tcp_options as u8) << 4,
                self.tcp_flags,
                byte(),
                byte(),
                0,
                0,
            ]);
            frame.extend((0..2 + 4 * self.tcp_options).map(|_| byte()));
        }
        assert_eq!(frame.len(), self.header_len());
        frame.extend((0..self.payload_len).map(|_| byte()));
        self.set_lengths(&mut frame);
        let pseudo = self.pseudo_sum(&frame);
        let at = self.transport_start() + usize::from(self.checksum_offset());
        frame[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
        frame
    }

    /// IP length and checksum, UDP length, afresh for the frame as long as it is.
    fn set_lengths(&self, frame: &mut [u8]) {
        let (network, transport) = (self.network_start(), self.transport_start());
        let len = frame.len();
        if self.v6 {
            frame[network + 4..network + 6]
                .copy_from_slice(&((len - network - 40) as u16).to_be_bytes());
        } else {
            frame[network + 2..network + 4]
                .copy_from_slice(&((len - network) as u16).to_be_bytes());
            frame[network + 10..network + 12].fill(0);
            let sum = !model_sum(&frame[network..transport]);
            frame[network + 10..network + 12].copy_from_slice(&sum.to_be_bytes());
        }
        if self.is_udp() {
            frame[transport + 4..transport + 6]
                .copy_from_slice(&((len - transport) as u16).to_be_bytes());
        }
    }

    fn pseudo_sum(&self, frame: &[u8]) -> u16 {
        let network = self.network_start();
        let addresses = if self.v6 {
            network + 8..network + 40
        } else {
            network + 12..network + 20
        };
        let mut pseudo = frame[addresses].to_vec();
        pseudo.extend(((frame.len() - self.transport_start()) as u32).to_be_bytes());
        pseudo.extend([
            0,
            if self.is_udp() {
                protocol::UDP
            } else {
                protocol::TCP
            },
        ]);
        model_sum(&pseudo)
    }

    /// The model: all segments of a GSO frame, or the one of a plain frame, complete.
    fn cut(&self, frame: &[u8]) -> Vec<Vec<u8>> {
        let transport = self.transport_start();
        let (headers, payload) = frame.split_at(self.header_len());
        let pieces: Vec<&[u8]> = payload.chunks(usize::from(self.segment_len)).collect();
        let mut ahead = 0u32;
        let mut segments = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            let mut segment = [headers, piece].concat();
            if !self.v6 {
                let at = self.network_start() + 4;
                let id = u16::from_be_bytes([segment[at], segment[at + 1]]).wrapping_add(i as u16);
                segment[at..at + 2].copy_from_slice(&id.to_be_bytes());
            }
            if !self.is_udp() {
                let at = transport + 4;
                let sequence = u32::from_be_bytes(segment[at..at + 4].try_into().unwrap());
                segment[at..at + 4].copy_from_slice(&sequence.wrapping_add(ahead).to_be_bytes());
                if i > 0 {
                    segment[transport + 13] &= !0x80;
                }
                if i < pieces.len() - 1 {
                    segment[transport + 13] &= !0x09;
                }
            }
            ahead += piece.len() as u32;
            self.set_lengths(&mut segment);
            let at = transport + usize::from(self.checksum_offset());
            segment[at..at + 2].fill(0);
            let whole = [
                &self.pseudo_sum(&segment).to_be_bytes()[..],
                &segment[transport..],
            ]
            .concat();
            let mut checksum = !model_sum(&whole);
            if checksum == 0 && self.is_udp() {
                checksum = 0xffff;
            }
            segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            segments.push(segment);
        }
        segments
    }
}

fn model_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn buffer() -> Buffer {
    Buffer::with_capacity(crate::buffer::LARGE_CAPACITY)
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let kind = prop::sample::select(vec![GsoKind::TcpV4, GsoKind::TcpV6, GsoKind::UdpL4]);
    let shape = (any::<bool>(), 0usize..=2, 0usize..=10, 0usize..=10);
    let size = prop_oneof![(1u16..=20, 1usize..=400), (500u16..=9000, 1usize..=65_535)];
    (
        kind,
        shape,
        any::<u8>(),
        any::<u32>(),
        any::<u16>(),
        size,
        any::<u64>(),
    )
        .prop_map(
            |(kind, (v6, tags, ip_extra, tcp_options), tcp_flags, sequence, id, size, noise)| {
                let v6 = if kind == GsoKind::UdpL4 {
                    v6
                } else {
                    kind == GsoKind::TcpV6
                };
                let (segment_len, payload_len) = size;
                let mut recipe = Recipe {
                    kind,
                    v6,
                    tags,
                    ip_extra,
                    tcp_options,
                    tcp_flags,
                    sequence,
                    id,
                    segment_len,
                    payload_len,
                    noise,
                };
                let room = PAYLOAD_LEN_MAX + 14 - recipe.header_len();
                recipe.payload_len = payload_len.min(room);
                if recipe.is_udp() {
                    recipe.payload_len = recipe
                        .payload_len
                        .min(UDP_SEGMENTS_MAX * usize::from(segment_len));
                }
                recipe
            },
        )
}

fn example(kind: GsoKind) -> Recipe {
    Recipe {
        kind,
        v6: kind == GsoKind::TcpV6,
        tags: 0,
        ip_extra: 0,
        tcp_options: 3,
        tcp_flags: 0x99,
        sequence: u32::MAX - 1000,
        id: 0xffff,
        segment_len: 1000,
        payload_len: 3500,
        noise: 1,
    }
}

proptest! {
    #[test]
    fn slices_of_any_partition_are_cut_into_the_segments_of_the_whole(
        recipe in recipe(),
        steps in prop::collection::vec(1usize..12, 1..40),
    ) {
        let frame = recipe.frame();
        let offload = recipe.offload();
        prop_assert_eq!(check(&frame, &offload), Ok(()));
        let expected = recipe.cut(&frame);
        let segments = segment_count(frame.len(), &offload.gso.unwrap());
        prop_assert_eq!(segments, expected.len());

        let mut out = buffer();
        let mut got = Vec::new();
        let mut steps = steps.into_iter().cycle();
        while got.len() < segments {
            let count = steps.next().unwrap().min(segments - got.len());
            let first = got.len();
            let left = slice(&frame, &offload, first, count, &mut out).unwrap();
            prop_assert_eq!(check(&out, &left), Ok(()));
            // The partial checksum is that of a frame made anew with this length.
            let at = recipe.transport_start() + usize::from(recipe.checksum_offset());
            prop_assert_eq!(&out[at..at + 2], &recipe.pseudo_sum(&out).to_be_bytes());
            match left.gso {
                Some(gso) => {
                    prop_assert!(count > 1);
                    prop_assert_eq!(gso.ecn, offload.gso.unwrap().ecn && first == 0);
                    prop_assert_eq!(segment_count(out.len(), &gso), count);
                    got.extend(recipe.cut(&out));
                }
                None => {
                    prop_assert_eq!(count, 1);
                    finish_checksum(&mut out, left.checksum.unwrap()).unwrap();
                    got.push(out.to_vec());
                }
            }
        }
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn the_slice_of_everything_is_the_frame_itself(recipe in recipe()) {
        let frame = recipe.frame();
        let offload = recipe.offload();
        let segments = segment_count(frame.len(), &offload.gso.unwrap());
        let mut out = buffer();
        let left = slice(&frame, &offload, 0, segments, &mut out).unwrap();
        prop_assert_eq!(&out[..], &frame[..]);
        prop_assert_eq!(left.checksum, offload.checksum);
        prop_assert_eq!(left.gso, offload.gso.filter(|_| segments > 1));
    }

    #[test]
    fn what_check_lets_through_can_be_sliced_and_nothing_panics(
        recipe in recipe(),
        damage in prop::collection::vec((0usize..120, any::<u8>()), 0..3),
        len_change in prop::sample::select(vec![0isize, 0, -1, 1, -40, 40, -9000]),
        lie in 0usize..8,
        value in prop_oneof![0u16..200, any::<u16>()],
    ) {
        let mut frame = recipe.frame();
        for (at, byte) in damage {
            if let Some(slot) = frame.get_mut(at) { *slot = byte }
        }
        let len = frame.len().saturating_add_signed(len_change);
        frame.resize(len, 0);
        let mut offload = recipe.offload();
        let (partial, gso) = (offload.checksum.as_mut().unwrap(), offload.gso.as_mut().unwrap());
        match lie {
            0 => partial.start = value,
            1 => partial.offset = value,
            2 => gso.header_len = value,
            3 => gso.segment_len = value,
            4 => offload.gso = None,
            5 => offload.checksum = None,
            _ => {}
        }
        let checked = check(&frame, &offload);
        let mut out = buffer();
        let sliced = slice(&frame, &offload, 0, 1, &mut out);
        match checked {
            Err(error) => prop_assert_eq!(sliced, Err(error)),
            Ok(()) => {
                let left = sliced.unwrap();
                if let Some(partial) = left.checksum {
                    prop_assert_eq!(finish_checksum(&mut out, partial), Ok(()));
                }
            }
        }
    }
}

/// What `check` says after `change`.
fn refused(
    kind: GsoKind,
    change: impl Fn(&mut Vec<u8>, &mut PartialChecksum, &mut Gso),
) -> GsoError {
    let recipe = example(kind);
    let mut frame = recipe.frame();
    let mut offload = recipe.offload();
    change(
        &mut frame,
        offload.checksum.as_mut().unwrap(),
        offload.gso.as_mut().unwrap(),
    );
    check(&frame, &offload).expect_err("let through")
}

#[test]
fn metadata_that_lies_is_refused_with_its_reason() {
    use GsoKind::*;
    for kind in [TcpV4, TcpV6, UdpL4] {
        let recipe = example(kind);
        let header_len = recipe.header_len();
        for other in [TcpV4, TcpV6, UdpL4]
            .into_iter()
            .filter(|&other| other != kind)
        {
            assert_eq!(
                refused(kind, |_, _, gso| gso.kind = other),
                GsoError::Kind(other)
            );
        }
        for claimed in [0, header_len as u16 - 1, header_len as u16 + 1, u16::MAX] {
            assert_eq!(
                refused(kind, |_, _, gso| gso.header_len = claimed),
                GsoError::HeaderLength {
                    claimed,
                    real: header_len
                }
            );
        }
        for (start, offset) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
            let error = refused(kind, |_, partial, _| {
                partial.start = partial.start.wrapping_add_signed(start);
                partial.offset = partial.offset.wrapping_add_signed(offset);
            });
            assert!(matches!(error, GsoError::ChecksumPlace { .. }), "{error}");
        }
        for len in [0, u16::MAX] {
            assert_eq!(
                refused(kind, |_, _, gso| gso.segment_len = len),
                GsoError::SegmentLength(len)
            );
        }
        assert_eq!(
            refused(kind, |frame, _, _| frame.truncate(header_len)),
            GsoError::NoPayload
        );
        for change in [-1isize, 1] {
            let error = refused(kind, |frame, _, _| {
                frame.resize(frame.len().saturating_add_signed(change), 0);
            });
            assert!(matches!(error, GsoError::IpLength { .. }), "{error}");
        }
        assert_eq!(
            refused(kind, |frame, _, _| frame.resize(65_550, 0)),
            GsoError::TooLong(65_536)
        );
        let offload = Offload {
            checksum: None,
            ..recipe.offload()
        };
        assert_eq!(
            check(&recipe.frame(), &offload),
            Err(GsoError::NoPartialChecksum)
        );
    }
    assert_eq!(
        refused(TcpV4, |frame, _, _| frame[20] |= 0x20),
        GsoError::Fragment
    );
    assert_eq!(
        refused(UdpL4, |_, _, gso| gso.ecn = true),
        GsoError::EcnOfUdp
    );
    assert_eq!(
        refused(UdpL4, |frame, _, _| frame[39] ^= 1),
        GsoError::UdpLength {
            claimed: 3508 ^ 1,
            real: 3508
        }
    );
    assert_eq!(
        refused(UdpL4, |_, _, gso| gso.segment_len = 27),
        GsoError::TooManySegments(130)
    );
}

#[test]
fn a_udp_frame_of_128_segments_is_the_largest() {
    let recipe = |payload_len| Recipe {
        segment_len: 10,
        payload_len,
        ..example(GsoKind::UdpL4)
    };
    let checked = |recipe: Recipe| check(&recipe.frame(), &recipe.offload());
    assert_eq!(checked(recipe(1280)), Ok(()));
    assert_eq!(checked(recipe(1281)), Err(GsoError::TooManySegments(129)));
    let tcp = Recipe {
        segment_len: 10,
        payload_len: 1281,
        ..example(GsoKind::TcpV4)
    };
    assert_eq!(checked(tcp), Ok(()));
}

#[test]
fn a_partial_checksum_alone_must_lie_within_the_frame() {
    let partial = |start, offset| Offload {
        checksum: Some(PartialChecksum { start, offset }),
        gso: None,
    };
    let frame = [0; 60];
    for (start, offset) in [(14, 0), (34, 6), (42, 16), (14, 44)] {
        assert_eq!(
            check(&frame, &partial(start, offset)),
            Ok(()),
            "{start} + {offset}"
        );
    }
    for (start, offset) in [
        (13, 1),
        (0, 16),
        (14, 45),
        (59, 0),
        (60, 0),
        (u16::MAX, u16::MAX),
    ] {
        let outside = GsoError::ChecksumOutside(PartialChecksum { start, offset });
        assert_eq!(check(&frame, &partial(start, offset)), Err(outside));
        assert_eq!(
            finish_checksum(&mut frame.clone(), PartialChecksum { start, offset }),
            Err(outside)
        );
    }
}

#[test]
fn a_zero_checksum_is_written_as_ones_for_udp_only() {
    // All words sum to 0xffff.
    let mut frame = [0; 60];
    frame[14..16].copy_from_slice(&[0xff, 0xff]);
    let mut udp = frame;
    finish_checksum(
        &mut udp,
        PartialChecksum {
            start: 14,
            offset: 6,
        },
    )
    .unwrap();
    assert_eq!(udp[20..22], [0xff, 0xff]);
    frame[30] = 0;
    finish_checksum(
        &mut frame,
        PartialChecksum {
            start: 14,
            offset: 16,
        },
    )
    .unwrap();
    assert_eq!(frame[30..32], [0, 0]);
}

#[test]
fn a_slice_beyond_the_frame_is_refused() {
    let recipe = example(GsoKind::TcpV4);
    let (frame, offload) = (recipe.frame(), recipe.offload());
    let mut out = buffer();
    for (first, count) in [(0, 0), (0, 5), (4, 1), (3, 2), (1, usize::MAX)] {
        assert_eq!(
            slice(&frame, &offload, first, count, &mut out),
            Err(GsoError::SegmentRange {
                first,
                count,
                segments: 4
            })
        );
    }
    let plain = slice(&frame, &Offload::NONE, 0, 1, &mut out).unwrap();
    assert_eq!((plain, &out[..]), (Offload::NONE, &frame[..]));
    assert!(slice(&frame, &Offload::NONE, 1, 1, &mut out).is_err());
}

#[test]
fn damage_in_an_ip_header_stays_damage_after_slicing() {
    let recipe = example(GsoKind::TcpV4);
    let (mut frame, offload) = (recipe.frame(), recipe.offload());
    frame[22] ^= 0x10; // time to live
    let mut out = buffer();
    slice(&frame, &offload, 1, 2, &mut out).unwrap();
    assert_ne!(checksum::checksum(&out[14..34]), 0);
}
