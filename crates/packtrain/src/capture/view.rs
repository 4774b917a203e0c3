//! What a capture has to know of a line, out of its status document.

use packtrain_proto::config::{direct_mark_of, mark_of};
use packtrain_proto::wire::ethernet::MacAddr;

use crate::status::StatusDocument;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// `pt0`'s.
    pub ifindex: u32,
    pub address: MacAddr,
    pub links: Vec<LinkView>,
    /// The address of each link of a peer, and the peer's `pt0`.
    pub peers: Vec<(MacAddr, MacAddr)>,
}

/// A member link that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    pub ifindex: u32,
    pub address: MacAddr,
    /// Direct frames leave from it.
    pub direct_mark: MacAddr,
    /// Also from the link's own address.
    pub unmarked: bool,
    /// … in this VLAN.
    pub tagged: Option<u16>,
}

impl View {
    /// An error says what of the document is not understood.
    pub fn of(document: &StatusDocument) -> Result<View, String> {
        let address = |text: &str| {
            let parsed: Result<MacAddr, _> = text.parse();
            parsed.map_err(|error| format!("{text:?}: {error}"))
        };
        let mut links = Vec::new();
        for link in &document.links {
            let (Some(ifindex), Some(text)) = (link.ifindex, &link.address) else {
                continue;
            };
            let address = address(text)?;
            // One without a mark sends nothing directly.
            links.extend(mark_of(address).map(|mark| LinkView {
                ifindex,
                address,
                direct_mark: direct_mark_of(mark),
                unmarked: goes_by(document, &link.name, "none"),
                tagged: (document.direct.vlan).filter(|_| goes_by(document, &link.name, "vlan")),
            }));
        }
        let mut peers = Vec::new();
        for peer in &document.peers {
            let Some(pt0) = peer.addresses.first() else {
                continue;
            };
            let pt0 = address(pt0)?;
            for link in &peer.links {
                peers.push((address(&link.remote_address)?, pt0));
            }
        }
        Ok(View {
            ifindex: document.ifindex,
            address: address(&document.address)?,
            links,
            peers,
        })
    }
}

/// Whether direct frames to some peer leave by this link with this for a mark.
fn goes_by(document: &StatusDocument, link: &str, mark: &str) -> bool {
    let mut paths = document.peers.iter().flat_map(|peer| &peer.links);
    paths.any(|path| path.link == link && path.direct_mark.as_deref() == Some(mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::LinkCondition;
    use crate::status::samples::{busy_snapshot, facts};

    #[test]
    fn a_line_is_known_by_its_links_and_by_the_links_of_its_peers() {
        let facts = facts(&[LinkCondition::Up]);
        let mut document = StatusDocument::build(&busy_snapshot(), &facts);
        document.address = "02:00:00:00:00:01".into();
        let mut link = document.links[0].clone();
        (link.ifindex, link.address) = (Some(7), Some("00:16:3e:00:00:01".into()));
        let absent = crate::status::Link {
            ifindex: None,
            address: None,
            ..link.clone()
        };
        document.links = vec![absent, link];
        let peer = &mut document.peers[0];
        peer.addresses = vec!["02:00:00:00:00:02".into()];
        peer.links.truncate(1);
        peer.links[0].remote_address = "00:16:3e:00:00:02".into();
        peer.links[0].direct_mark = Some("source".into());
        document.peers.truncate(1);
        let mac = |text: &str| text.parse::<MacAddr>().unwrap();
        let view = View::of(&document).unwrap();
        assert_eq!(view.address, mac("02:00:00:00:00:01"));
        let link = LinkView {
            ifindex: 7,
            address: mac("00:16:3e:00:00:01"),
            // docs/wire-format.md: a mark, and its second byte with 0x5a.
            direct_mark: mac("5a:4c:3e:00:00:a4"),
            unmarked: false,
            tagged: None,
        };
        assert_eq!(view.links, [link]);
        let peer = (mac("00:16:3e:00:00:02"), mac("02:00:00:00:00:02"));
        assert_eq!(view.peers, [peer]);

        let path = &mut document.peers[0].links[0];
        (path.link, path.direct_mark) = (document.links[1].name.clone(), Some("none".into()));
        assert!(View::of(&document).unwrap().links[0].unmarked);
        document.direct.vlan = Some(100);
        document.peers[0].links[0].direct_mark = Some("vlan".into());
        let link = View::of(&document).unwrap().links[0];
        assert_eq!((link.unmarked, link.tagged), (false, Some(100)));

        document.address = "somewhere".into();
        assert!(
            View::of(&document)
                .unwrap_err()
                .starts_with("\"somewhere\": ")
        );
    }
}
