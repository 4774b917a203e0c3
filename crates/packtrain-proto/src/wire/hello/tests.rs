//! Hellos that nobody would send, and those that anybody may.

use super::*;
use proptest::prelude::*;

fn link(id: u8) -> LinkRecord {
    LinkRecord {
        link: LinkId(id),
        carrier: true,
        unused_by_host: false,
        takes_vlan: false,
        mtu: 1500,
        address: MacAddr([2, 0, 0, 0, 1, id]),
        mark: Some(MacAddr([0x5a, 0, 0, 0, 1, id])),
        rate_kbps: Some(1_000_000),
        newest_train: Sequence(7),
        newest_link: Sequence(9),
    }
}

fn station(i: usize) -> MacAddr {
    MacAddr([2, 1, 0, 0, (i >> 8) as u8, i as u8])
}

fn hello(links: u8, stations: usize) -> Hello {
    Hello {
        answer: true,
        goodbye: false,
        away: false,
        full: false,
        past: false,
        link: LinkId(0),
        node_id: NodeId(0x0123_4567_89ab_cdef),
        recipient: None,
        line_id: 0,
        capabilities: capability::MARKED_FRAMES,
        address: MacAddr([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        lanes: 1,
        epoch: 7,
        count: 0,
        links: (0..links).map(link).collect(),
        stations: (0..stations).map(station).collect(),
        direct_vlan: None,
        dictionary: None,
        mixing_ns: None,
        newest_in_lanes: Vec::new(),
        software: String::from("packtrain 0.1.0"),
    }
}

fn message(hello: &Hello) -> Vec<u8> {
    let mut buffer = Buffer::with_capacity(4096);
    hello.emit(&mut buffer);
    assert_eq!(buffer.len(), hello.buffer_len());
    buffer.to_vec()
}

/// The message with an option more.
fn with_option(option: &[u8]) -> Vec<u8> {
    let mut bytes = message(&Hello {
        software: String::new(),
        ..hello(1, 0)
    });
    bytes[39] = option.len() as u8;
    bytes.extend(option);
    bytes
}

fn error(bytes: &[u8]) -> HelloError {
    Hello::parse(bytes).expect_err("let through")
}

#[test]
fn the_limits_themselves_are_accepted() {
    for (links, stations) in [(0, 0), (1, 42), (1, 43), (LINKS_MAX as u8, STATIONS_MAX)] {
        let hello = hello(links, stations);
        assert_eq!(Hello::parse(&message(&hello)).as_ref(), Ok(&hello));
    }
}

#[test]
fn a_vlan_that_is_none_is_as_if_not_told() {
    let with_vlan = |value: &[u8]| {
        let option = [&[0x04, value.len() as u8], value].concat();
        Hello::parse(&with_option(&option))
    };
    for (value, expected) in [(1, Some(1)), (4094, Some(4094)), (0, None), (4095, None)] {
        let hello = with_vlan(&u16::to_be_bytes(value)).unwrap();
        assert_eq!(hello.direct_vlan, expected);
    }
    assert_eq!(with_vlan(&[1]), Err(HelloError::BadOption));
}

#[test]
fn more_links_than_allowed_are_refused() {
    let mut bytes = message(&hello(LINKS_MAX as u8, 0));
    bytes[3] += 1;
    bytes.extend([0; LINK_RECORD_LEN]);
    assert_eq!(error(&bytes), HelloError::TooManyLinks(17));
}

#[test]
fn more_stations_than_allowed_are_refused() {
    let mut bytes = message(&Hello {
        software: String::new(),
        ..hello(0, STATIONS_MAX)
    });
    let options_len = (bytes.len() - HEADER_LEN + 8) as u16;
    bytes[38..40].copy_from_slice(&options_len.to_be_bytes());
    bytes.extend([option::STATIONS, 6, 2, 0, 0, 0, 0, 9]);
    assert_eq!(error(&bytes), HelloError::TooManyStations);
}

#[test]
fn what_no_node_would_say_of_itself_is_refused() {
    let change = |at: usize, new: &[u8]| {
        let mut bytes = message(&hello(2, 1));
        bytes[at..at + new.len()].copy_from_slice(new);
        error(&bytes)
    };
    assert_eq!(change(0, &[0x22]), HelloError::UnknownVersion);
    assert_eq!(change(0, &[0x11]), HelloError::UnknownType);
    assert_eq!(change(0, &[0x1f]), HelloError::UnknownType);
    assert_eq!(change(4, &[0; 8]), HelloError::ZeroNodeId);
    assert_eq!(change(36, &[0]), HelloError::NoLanes);
    assert_eq!(change(40 + 28, &[0]), HelloError::DuplicateLink(0));
    let group = MacAddr([3, 0, 0, 0, 0, 1]);
    // `pt0`'s, both links', the station's.
    for at in [28, 44, 44 + 28, 40 + 56 + 2] {
        for address in [MacAddr([0; 6]), MacAddr::BROADCAST, group] {
            assert_eq!(change(at, &address.0), HelloError::BadAddress(address));
        }
    }
    assert_eq!(
        change(50, &group.0),
        HelloError::BadAddress(group),
        "a mark"
    );
}

#[test]
fn a_link_may_have_neither_mark_nor_known_rate() {
    let mut hello = hello(1, 0);
    hello.links[0] = LinkRecord {
        mark: None,
        rate_kbps: None,
        carrier: false,
        unused_by_host: true,
        takes_vlan: false,
        ..link(4)
    };
    assert_eq!(Hello::parse(&message(&hello)).as_ref(), Ok(&hello));
}

#[test]
fn unknown_flags_and_options_are_skipped_but_critical_ones_refuse_it() {
    let mut bytes = with_option(&[0x33, 3, 1, 2, 3]);
    bytes[1] |= 0xfc;
    assert_eq!(Hello::parse(&bytes).unwrap().links, [link(0)]);
    assert_eq!(
        error(&with_option(&[0xb3, 0])),
        HelloError::UnknownCriticalOption(0xb3)
    );
    assert_eq!(
        error(&with_option(&[0x33, 4, 1, 2, 3])),
        HelloError::BadOption
    );
    assert_eq!(error(&with_option(&[0x33])), HelloError::BadOption);
    assert_eq!(
        error(&with_option(&[option::STATIONS, 5, 2, 0, 0, 0, 0])),
        HelloError::BadOption
    );
}

#[test]
fn a_software_name_that_could_steer_a_terminal_is_refused() {
    for name in ["pack\u{1b}[2J", "a\nb", "\0", "\u{7f}", "\u{9b}31m"] {
        let option = [&[option::SOFTWARE, name.len() as u8], name.as_bytes()].concat();
        assert_eq!(
            error(&with_option(&option)),
            HelloError::BadSoftware,
            "{name:?}"
        );
    }
    assert_eq!(
        error(&with_option(&[option::SOFTWARE, 2, 0xc3, 0x28])),
        HelloError::BadSoftware
    );
}

#[test]
fn a_long_software_name_is_cut_between_characters() {
    let sent = |software: &str| {
        let hello = Hello {
            software: software.to_owned(),
            ..hello(1, 0)
        };
        Hello::parse(&message(&hello)).unwrap().software
    };
    assert_eq!(sent(&"x".repeat(65)), "x".repeat(64));
    assert_eq!(sent(&"ü".repeat(40)), "ü".repeat(32));
    assert_eq!(
        sent(&format!("x{}", "ü".repeat(40))),
        format!("x{}", "ü".repeat(31))
    );
    assert_eq!(sent("a\nb"), "ab");
    assert_eq!(sent(""), "");
}

#[test]
fn how_long_mixing_takes_is_two_bytes_and_nothing_is_no_time() {
    let says = |option: &[u8]| Hello::parse(&with_option(option)).map(|hello| hello.mixing_ns);
    assert_eq!(says(&[0x06, 2, 1, 0xf4]), Ok(NonZero::new(500)));
    assert_eq!(says(&[0x06, 2, 0, 0]), Ok(None));
    assert_eq!(says(&[0x33, 0]), Ok(None));
    for option in [&[0x06, 1, 1][..], &[0x06, 3, 0, 1, 2], &[0x06, 0]] {
        assert_eq!(error(&with_option(option)), HelloError::BadOption);
    }
}

#[test]
fn what_was_sent_in_other_lanes_is_four_bytes_of_each() {
    let says = |option: &[u8]| Hello::parse(&with_option(option)).map(|h| h.newest_in_lanes);
    let two = [0x07, 8, 0, 0, 1, 0, 0, 0, 0, 5];
    assert_eq!(says(&two), Ok(vec![Sequence(256), Sequence(5)]));
    assert_eq!(
        (says(&[0x07, 0]), says(&[0x33, 0])),
        (Ok(vec![]), Ok(vec![]))
    );
    let mut too_many = vec![0x07, 252];
    too_many.resize(2 + 252, 0);
    for option in [
        &[0x07, 3, 0, 0, 1][..],
        &[0x07, 5, 0, 0, 1, 0, 0],
        &too_many,
    ] {
        assert_eq!(error(&with_option(option)), HelloError::BadOption);
    }
}

#[test]
fn every_cut_is_truncated_and_padding_is_harmless() {
    let hello = hello(2, 3);
    let mut bytes = message(&hello);
    for len in 0..bytes.len() {
        assert_eq!(error(&bytes[..len]), HelloError::Truncated, "{len}");
    }
    bytes.extend([0xee; 20]);
    assert_eq!(Hello::parse(&bytes), Ok(hello));
}

proptest! {
    #[test]
    fn a_hello_is_read_as_it_was_written(
        flags in any::<(bool, bool, bool, bool)>(),
        ids in any::<(u8, u64, Option<u64>, u32, u32)>(),
        sizes in any::<(u16, u8)>(),
        links in prop::collection::vec(any::<(bool, u16, u8, bool, u32, u32, u32)>(), 0..=LINKS_MAX),
        stations in 0..=STATIONS_MAX,
        direct_vlan in prop::option::of(VLAN_IDS),
        dictionary in prop::option::of(1u32..),
        mixing_ns in any::<u16>().prop_map(NonZero::new),
        lanes in prop::collection::vec(any::<u32>(), 0..=NEWEST_IN_LANES_MAX),
        software in "[a-z0-9 .é✓]{0,20}",
    ) {
        let (link_id, node_id, recipient, line_id, capabilities) = ids;
        let hello = Hello {
            answer: flags.0,
            goodbye: flags.1,
            away: flags.2,
            full: flags.3,
            past: flags.0 ^ flags.3,
            link: LinkId(link_id),
            node_id: NodeId(node_id.max(1)),
            recipient: recipient.map(|id| NodeId(id.max(1))),
            line_id,
            capabilities,
            address: MacAddr([2, 3, 4, 5, 6, 7]),
            mtu: sizes.0,
            lanes: sizes.1.max(1),
            epoch: sizes.1,
            count: line_id,
            links: links.iter().enumerate().map(|(i, l)| LinkRecord {
                link: LinkId(255 - i as u8),
                carrier: l.0,
                unused_by_host: l.3,
                takes_vlan: l.4 % 2 == 1,
                mtu: l.1,
                address: MacAddr([2, l.2, 0, 0, 0, 0]),
                mark: l.3.then_some(MacAddr([6, l.2, 0, 0, 0, 1])),
                rate_kbps: (l.4 != 0).then_some(l.4),
                newest_train: Sequence(l.5),
                newest_link: Sequence(l.6),
            }).collect(),
            stations: (0..stations).map(station).collect(),
            direct_vlan,
            dictionary,
            mixing_ns,
            newest_in_lanes: lanes.into_iter().map(Sequence).collect(),
            software,
        };
        prop_assert_eq!(Hello::parse(&message(&hello)), Ok(hello));
    }

    #[test]
    fn no_bytes_make_it_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..600),
        link_count in 0u8..18,
        options_len in 0u16..300,
    ) {
        if bytes.len() >= HEADER_LEN {
            bytes[0] = 0x12;
            bytes[3] = link_count;
            bytes[38..40].copy_from_slice(&options_len.to_be_bytes());
        }
        let _ = Hello::parse(&bytes);
    }

    #[test]
    fn damage_gives_a_reason_or_a_hello_that_can_be_written_again(
        at in 0usize..220,
        new in any::<u8>(),
    ) {
        let mut bytes = message(&hello(3, 10));
        let at = at % bytes.len();
        bytes[at] = new;
        if let Ok(read) = Hello::parse(&bytes) {
            prop_assert_eq!(Hello::parse(&message(&read)), Ok(read));
        }
    }
}
