//! Hellos.

use super::*;

fn assert_hello(name: &str, destination: MacAddr, source: MacAddr, hello: &Hello) {
    let bytes = vector(name);
    assert_eq!(
        Hello::parse(message(&bytes, destination, source)).as_ref(),
        Ok(hello)
    );
    let mut buffer = Buffer::with_capacity(2048);
    assert!(buffer.push(&bytes[..ethernet::HEADER_LEN]));
    hello.emit(&mut buffer);
    assert_eq!(&buffer[..], bytes);
}

/// What the hellos below have in common: everything that they do not name is 0 on the wire.
fn hello_of(node_id: NodeId, address: MacAddr) -> Hello {
    let mut message = [0; hello::HEADER_LEN];
    message[0] = 0x12;
    message[4..12].copy_from_slice(&node_id.0.to_be_bytes());
    message[20..24].copy_from_slice(&7u32.to_be_bytes());
    message[28..34].copy_from_slice(&address.0);
    message[34..36].copy_from_slice(&1500u16.to_be_bytes());
    message[36] = 1;
    let hello = Hello::parse(&message).unwrap();
    assert_eq!(
        (hello.node_id, hello.recipient, hello.line_id),
        (node_id, None, 7)
    );
    assert_eq!((hello.address, hello.mtu, hello.lanes), (address, 1500, 1));
    Hello {
        capabilities: capability::MARKED_FRAMES,
        ..hello
    }
}

/// A's link, of which nobody knows the rate, and nothing was sent.
fn link_of_a() -> LinkRecord {
    LinkRecord {
        link: LinkId(0),
        carrier: true,
        unused_by_host: false,
        takes_vlan: false,
        mtu: 1500,
        address: LINK_A,
        mark: mark_of(LINK_A),
        rate_kbps: None,
        newest_train: Sequence(0),
        newest_link: Sequence(0),
    }
}

#[test]
fn the_first_hello_of_a_node() {
    let hello = Hello {
        answer: true,
        capabilities: capability::MARKED_FRAMES | capability::GSO_FRAMES,
        links: vec![LinkRecord {
            rate_kbps: Some(1_000_000),
            ..link_of_a()
        }],
        software: String::from("packtrain 0.1.0"),
        ..hello_of(NODE_A, MacAddr([2, 0, 0, 0, 0x0a, 0]))
    };
    assert_hello("hello-first", MacAddr::HELLO, LINK_A, &hello);
}

#[test]
fn a_hello_by_a_link_that_its_host_does_not_use() {
    let hello = Hello {
        capabilities: capability::MARKED_FRAMES
            | capability::GSO_FRAMES
            | capability::DIRECT_FRAMES,
        links: vec![LinkRecord {
            unused_by_host: true,
            ..link_of_a()
        }],
        ..hello_of(NODE_A, MacAddr([2, 0, 0, 0, 0x0a, 0]))
    };
    assert_hello("hello-unused-link", MacAddr::HELLO, LINK_A, &hello);
}

#[test]
fn a_hello_that_names_a_vlan() {
    let hello = Hello {
        capabilities: capability::MARKED_FRAMES
            | capability::GSO_FRAMES
            | capability::DIRECT_FRAMES,
        links: vec![LinkRecord {
            takes_vlan: true,
            ..link_of_a()
        }],
        direct_vlan: Some(100),
        ..hello_of(NODE_A, MacAddr([2, 0, 0, 0, 0x0a, 0]))
    };
    assert_hello("hello-direct-vlan", MacAddr::HELLO, LINK_A, &hello);
}

#[test]
fn what_is_said_for_a_node_whose_engine_is_away() {
    let hello = Hello {
        away: true,
        capabilities: capability::MARKED_FRAMES
            | capability::GSO_FRAMES
            | capability::DIRECT_FRAMES,
        links: vec![LinkRecord {
            rate_kbps: Some(1_000_000),
            ..link_of_a()
        }],
        software: String::from("packtrain 0.1.0"),
        ..hello_of(NODE_A, MacAddr([2, 0, 0, 0, 0x0a, 0]))
    };
    assert_hello("hello-away", MacAddr::HELLO, LINK_A, &hello);
}

#[test]
fn a_node_that_takes_all_that_it_can_and_past_which_much_goes() {
    let hello = Hello {
        full: true,
        past: true,
        recipient: Some(NODE_B),
        links: vec![LinkRecord {
            newest_train: Sequence(7),
            newest_link: Sequence(4),
            ..link_of_a()
        }],
        ..hello_of(NODE_A, MacAddr([2, 0, 0, 0, 0x0a, 0]))
    };
    assert_hello("hello-full", LINK_B, LINK_A, &hello);
}

#[test]
fn a_hello_that_answers() {
    let hello = Hello {
        link: LinkId(1),
        recipient: Some(NODE_A),
        mtu: 9000,
        epoch: 3,
        count: 0,
        links: vec![
            LinkRecord {
                link: LinkId(1),
                carrier: true,
                unused_by_host: false,
                takes_vlan: false,
                mtu: 9000,
                address: LINK_B,
                mark: mark_of(LINK_B),
                rate_kbps: Some(100_000),
                newest_train: Sequence(42),
                newest_link: Sequence(17),
            },
            LinkRecord {
                link: LinkId(4),
                carrier: false,
                unused_by_host: false,
                takes_vlan: false,
                mtu: 1500,
                address: MacAddr([2, 0, 0, 0, 0x0b, 4]),
                mark: None,
                rate_kbps: None,
                newest_train: Sequence(u32::MAX - 1),
                newest_link: Sequence(3),
            },
        ],
        stations: vec![
            MacAddr([2, 0, 0, 0, 0x0c, 1]),
            MacAddr([2, 0, 0, 0, 0x0c, 2]),
        ],
        ..hello_of(NODE_B, MacAddr([2, 0, 0, 0, 0x0b, 0]))
    };
    assert_hello("hello-answer", LINK_A, LINK_B, &hello);
}

#[test]
fn a_hello_with_unknown_things_is_understood_as_far_as_possible() {
    let bytes = vector("hello-from-the-future");
    let hello = Hello::parse(message(&bytes, MacAddr::HELLO, LINK_A)).unwrap();
    assert_eq!((hello.answer, hello.goodbye), (false, true));
    assert_eq!((hello.node_id, hello.recipient), (NODE_A, None));
    assert_eq!(
        (hello.capabilities, hello.lanes, hello.links.len()),
        (1 << 31, 4, 0)
    );
}
