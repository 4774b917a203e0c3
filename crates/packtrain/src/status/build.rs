//! From the engine's snapshot, and what only the daemon knows, to the document.

use std::path::PathBuf;

use packtrain_proto::config::{LinkId, LinkSettings};
use packtrain_proto::queue::pressure::AutoChoice;
use packtrain_proto::stats::{self, DropReason, FlushReason, Snapshot};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

use super::words::{
    capabilities, diagnostic_in_a_word, dictionary_id, kind_in_a_word, open_to_in_a_word,
    path_because, refused_in_a_word, session_in_a_word, size_in_a_word, unused_in_a_word, use_of,
};
use super::{
    Class, Coalesced, Coding, Counts, Dfap, Dictionary, Direct, DirectShaper, FillBucket,
    FramesBucket, Host, Intake, LagUse, Link, LinkCondition, Liveness, Peer, PeerLink, PeerPath,
    PlainHost, SCHEMA, Sand, Saved, SavedBytes, Station, StatusDocument, Stay, Traffic, Trains,
};
use crate::linux::netlink::IpPrefix;
use crate::linux::tc::LinkQueue;
use crate::settings::classes::ClassPathPolicy;
use crate::settings::compress::CompressPolicy;
use crate::settings::dfap::ModePolicy;
use crate::settings::packing::PackPolicy;
use crate::settings::repair::ClassRepair;
use crate::settings::values::BalancePolicy;

/// What the daemon knows of a line and the engine does not.
#[derive(Clone, Debug)]
pub struct LineFacts {
    pub name: String,
    pub ifindex: u32,
    pub line_id: u32,
    pub balance: BalancePolicy,
    pub tier_spill: bool,
    /// `pt0` is set up.
    pub up: bool,
    pub promiscuous: bool,
    pub addresses: Vec<IpPrefix>,
    pub uptime: Duration,
    /// Every link that the line was told of, in that order.
    pub links: Vec<LinkFacts>,
    pub intake: Option<Intake>,
    pub stay: Option<Stay>,
    pub coalesced: Coalesced,
    /// How often peers began or ceased to be sent to directly.
    pub direct_changes: u64,
    /// How often a flow that went directly came back to the engine.
    pub direct_flow_returns: u32,
    /// Direct frames of flows that were spread over links.
    pub direct_striped: u64,
    pub direct_vlan: Option<u16>,
    /// Why nothing goes directly, whatever the engine says.
    pub direct_refusal: Option<&'static str>,
    /// Where the dictionary was read.
    pub dictionary_file: Option<PathBuf>,
    /// Drops that the engine does not see, before `pt0`.
    pub drops: Vec<(&'static str, u64)>,
    /// Whatever else a person should be told.
    pub warnings: Vec<String>,
}

/// What the daemon knows of a link; `None` where there is no such interface now.
#[derive(Clone, Debug)]
pub struct LinkFacts {
    pub id: LinkId,
    pub name: String,
    pub ifindex: Option<u32>,
    pub condition: LinkCondition,
    pub mtu: Option<u32>,
    pub address: Option<MacAddr>,
    pub used: LinkSettings,
    /// What stands before it; `None` where no program looks at it.
    pub queue: Option<LinkQueue>,
    /// What passed by it in the kernel, past the engine.
    pub direct_tx: stats::Traffic,
    pub direct_rx: stats::Traffic,
    /// At which its queue was seen to give direct frames away, bit/s, and how long ago.
    pub direct_rate: Option<(u64, Duration)>,
    /// What direct frames wait in before it.
    pub direct_shaper: Option<DirectShaper>,
    /// Drops that the engine does not see, at the link's socket.
    pub drops: Vec<(&'static str, u64)>,
}

impl StatusDocument {
    pub fn build(snapshot: &Snapshot, facts: &LineFacts) -> StatusDocument {
        let link_name = |id: LinkId| link_name(facts, id);
        let mut document = StatusDocument {
            schema: SCHEMA,
            name: facts.name.clone(),
            ifindex: facts.ifindex,
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_s: seconds(facts.uptime),
            node_id: node_id(snapshot.node_id.0),
            line_id: facts.line_id,
            balance: facts.balance.to_string(),
            tier_spill: facts.tier_spill,
            mode: ModePolicy::from(snapshot.dfap.mode).to_string(),
            dfap: build_dfap(&snapshot.dfap),
            address: snapshot.address.to_string(),
            addresses: facts.addresses.iter().map(IpPrefix::to_string).collect(),
            mtu: snapshot.mtu.into(),
            up: facts.up,
            promiscuous: facts.promiscuous,
            host: Host {
                taken: snapshot.host_rx.into(),
                given: snapshot.host_tx.into(),
            },
            links: facts
                .links
                .iter()
                .map(|link| build_link(snapshot, link))
                .collect(),
            peers: snapshot
                .peers
                .iter()
                .map(|peer| build_peer(peer, facts.direct_refusal, &link_name))
                .collect(),
            hosts: snapshot
                .hosts
                .iter()
                .filter(|host| !is_peers_link(snapshot, host.address))
                .map(|host| build_host(host, &link_name))
                .collect(),
            trains: build_trains(snapshot),
            coding: build_coding(&snapshot.coding),
            dictionary: snapshot.dictionary.map(|dictionary| Dictionary {
                id: dictionary_id(dictionary.id),
                bytes: dictionary.len as u64,
                file: (facts.dictionary_file.as_ref()).map(|path| path.display().to_string()),
                trains_tx: snapshot.coding.dictionary_tx,
                trains_rx: snapshot.coding.dictionary_rx,
            }),
            classes: snapshot.classes.iter().map(build_class).collect(),
            direct: Direct {
                tx: sum(facts.links.iter().map(|link| link.direct_tx)),
                rx: sum(facts.links.iter().map(|link| link.direct_rx)),
                vlan: facts.direct_vlan,
                takes_surplus: snapshot.direct.takes_surplus,
                surpluses: snapshot.direct.surpluses,
                rests: snapshot.direct.rests,
                rests_in_vain: snapshot.direct.rests_in_vain,
                leaves_small_frames: snapshot.direct.leaves_small_frames,
                small_frames_left: snapshot.direct.small_frames_left,
                small_frames_per_second: snapshot.direct.small_frames_per_second.into(),
                closures: snapshot.direct.closures.total(),
                closures_because: snapshot.direct.closures.into(),
                changes: facts.direct_changes,
                flow_returns: facts.direct_flow_returns,
                lost: snapshot.direct.lost,
                fences: snapshot.direct.fences,
                fences_given_up: snapshot.direct.fences_given_up,
                striped: facts.direct_striped,
                late: snapshot.direct.late,
                striping_given_up: snapshot.direct.striping_given_up,
            },
            stay: facts.stay,
            intake: facts.intake,
            coalesced: facts.coalesced,
            queue: snapshot.queue.into(),
            flows: snapshot.elephants.into(),
            sand: Sand {
                max_delay_s: snapshot.sand.delay_max.map(exact_seconds),
                waited: (&snapshot.sand.waited).into(),
            },
            resequencer: snapshot.resequencer.into(),
            replay: snapshot.replay.into(),
            reassembly: snapshot.reassembly.into(),
            too_big: snapshot.too_big.into(),
            drops: drops(&snapshot.drops, &facts.drops),
            warnings: Vec::new(),
        };
        document.warnings = warnings(&document);
        document.warnings.extend(facts.warnings.iter().cloned());
        document
    }
}

fn build_class(class: &stats::ClassSnapshot) -> Class {
    Class {
        name: class.name.clone(),
        matches: class.matches.clone(),
        pack: PackPolicy::from(&class.action).to_string(),
        path: ClassPathPolicy::from(class.action.path).to_string(),
        loss_ok: class.action.loss_ok,
        compress: CompressPolicy::from(class.action.compress).to_string(),
        duplicate: class.action.duplicate,
        links: class.links.clone(),
        repair: ClassRepair(class.action.repairs).to_string(),
        taken: class.traffic.into(),
        waited: (&class.waited).into(),
    }
}

fn build_dfap(dfap: &stats::DfapSnapshot) -> Dfap {
    let station = |station: &stats::StationSnapshot| Station {
        address: station.address.to_string(),
        ether_type: station.ether_type,
        listed: station.listed,
        queued_frames: station.queued_frames,
    };
    Dfap {
        stations: dfap.stations.iter().map(station).collect(),
        waits: dfap.is_on,
        frames_per_second: dfap.average_per_second,
    }
}

/// What a person should know and would not ask for.
fn warnings(document: &StatusDocument) -> Vec<String> {
    let mut list = Vec::new();
    if !document.up {
        list.push(format!("{} is set down", document.name));
    }
    for link in &document.links {
        match link.state {
            LinkCondition::Absent => {
                list.push(format!(
                    "{} does not exist: it joins when it appears",
                    link.name
                ));
            }
            LinkCondition::Down => list.push(format!("{} is set down", link.name)),
            LinkCondition::NoCarrier => list.push(format!("{} has no carrier", link.name)),
            LinkCondition::Up => {}
        }
        // The engine says so by its MTU of such a link; below it, trains are mostly header.
        if link
            .mtu
            .is_some_and(|mtu| mtu < crate::settings::LINK_MTU_MIN)
        {
            let min = crate::settings::LINK_MTU_MIN;
            list.push(format!("{} is not used: its MTU is below {min}", link.name));
        }
    }
    for path in document.peers.iter().flat_map(|peer| &peer.links) {
        if let (Some(mtu), Some(ends)) = (path.mtu, path.mtu_of_ends)
            && mtu < ends
        {
            list.push(format!(
                "{}: frames over {mtu} bytes do not pass, though both ends take {ends}",
                path.link
            ));
        }
    }
    let refused = document
        .links
        .iter()
        .filter(|link| link.lag == Some(LagUse::Refused));
    let refused: Vec<&str> = refused.map(|link| link.name.as_str()).collect();
    if !refused.is_empty() {
        list.push(format!(
            "the switch does not have {} in one link aggregation: frames for hosts without packtrain go by the home link alone",
            refused.join(" and ")
        ));
    }
    let live = document
        .links
        .iter()
        .filter(|l| l.state == LinkCondition::Up);
    let live_mtu = live.clone().filter_map(|l| l.mtu).max();
    if document.links.is_empty() {
        let name = &document.name;
        list.push(format!(
            "{name} has no links: packtrain link add {name} gives it one"
        ));
    } else if live.count() == 0 {
        list.push("no link is up: nothing travels".into());
    } else if document.mode == ModePolicy::Dfap.as_str() {
        if document.dfap.stations.is_empty() {
            list.push("no host is known to take aggregates: frames go plain".into());
        }
    } else if !document.peers.iter().any(|peer| peer.up) {
        list.push("no peer answers: frames go plain".into());
    }
    if let Some(link_mtu) = live_mtu
        && document.mtu > link_mtu
        && !document.hosts.is_empty()
    {
        let (name, mtu) = (&document.name, document.mtu);
        list.push(format!(
            "hosts without packtrain get no frame above {link_mtu} bytes, and {name} has an MTU of {mtu}"
        ));
    }
    let not_kept = document.replay.not_kept;
    if not_kept > 0 {
        list.push(format!(
            "memory for copies ran out ({not_kept} trains): a link that dies loses frames"
        ));
    }
    list
}

/// By what it is known that more is sent than the link, or the way behind it, carries.
fn congestion_signals(queue: Option<&LinkQueue>) -> Vec<String> {
    let backlog = queue
        .filter(|queue| queue.shows_backlog())
        .map(|_| "backlog");
    let counts = queue.map(|_| "direct_counts");
    let known = [backlog, counts, Some("acknowledgements")];
    known.into_iter().flatten().map(str::to_owned).collect()
}

fn build_link(snapshot: &Snapshot, facts: &LinkFacts) -> Link {
    // A link that never appeared is none of the engine's.
    let known = snapshot.links.iter().find(|link| link.id == facts.id);
    Link {
        id: facts.id.0,
        name: facts.name.clone(),
        ifindex: facts.ifindex,
        state: facts.condition,
        carrier: facts.condition == LinkCondition::Up,
        mtu: facts.mtu,
        address: facts.address.map(|a| a.to_string()),
        rate_bps: known.and_then(|l| l.rate_bps),
        rate_age_s: known.and_then(|l| l.rate_age).map(seconds),
        direct_rate_bps: facts.direct_rate.map(|(rate_bps, _)| rate_bps),
        direct_rate_age_s: facts.direct_rate.map(|(_, age)| seconds(age)),
        direct_shaper: facts.direct_shaper.clone(),
        tier: facts.used.tier,
        weight: facts.used.weight,
        rate_max_bps: facts.used.rate_max_bps,
        lag: facts
            .used
            .in_lag
            .then(|| known.and_then(|l| l.lag).unwrap_or(LagUse::Used)),
        qdisc: facts.queue.as_ref().map(|queue| queue.kind.clone()),
        congestion_signals: congestion_signals(facts.queue.as_ref()),
        backlog_bytes: known.map_or(0, |l| l.local_queue_bytes),
        backlog_age_s: known.and_then(|l| l.local_queue_age).map(seconds),
        in_flight_bytes: known.map_or(0, |l| l.in_flight_bytes),
        sand_waits_max_s: known.and_then(|l| l.sand.waits_max).map(exact_seconds),
        sand_frame_bytes_max: known.and_then(|l| l.sand.frame_bytes_max),
        sand_late: known.is_some_and(|l| l.sand.is_late),
        home: known.is_some_and(|l| l.home),
        retiring: known.is_some_and(|l| l.retiring),
        tx: sum(known.map(|l| l.tx).into_iter().chain([facts.direct_tx])),
        rx: sum(known.map(|l| l.rx).into_iter().chain([facts.direct_rx])),
        trains_tx: known.map_or(0, |l| l.trains_tx),
        trains_rx: known.map_or(0, |l| l.trains_rx),
        drops: drops(
            known.map_or(&stats::Drops::default(), |l| &l.drops),
            &facts.drops,
        ),
    }
}

fn build_peer(
    peer: &stats::PeerSnapshot,
    direct_refusal: Option<&'static str>,
    link_name: &dyn Fn(LinkId) -> String,
) -> Peer {
    let because = peer.engine_because.map(path_because).or(direct_refusal);
    let paths = peer.paths.iter().map(|path| PeerLink {
        link: link_name(path.link),
        remote_link: path.remote_link.0,
        remote_address: path.remote_address.to_string(),
        round_trip_s: path.round_trip.map(seconds),
        round_trip_min_s: path.round_trip_min.map(seconds),
        round_trip_jitter_s: path.measures.round_trip_deviation.map(seconds),
        rate_bps: path.rate_bps,
        rate_age_s: path.measures.rate_age.map(seconds),
        mtu: path.measures.mtu,
        mtu_of_ends: path.measures.mtu_of_ends,
        size_bytes: path.size.bytes,
        size_because: size_in_a_word(path.size.because).into(),
        bit_error_rate: path.size.errors.map(|known| known.rate),
        bit_error_trains: path.size.errors.map(|known| known.trains),
        bit_error_lost: path.size.errors.map(|known| known.lost),
        mends: path.size.mends,
        tx_loss_ppm: path.measures.tx_loss_ppm,
        rx_loss_ppm: path.measures.rx_loss_ppm,
        tx_later_s: path.measures.tx_later.map(seconds),
        rx_later_s: path.measures.rx_later.map(seconds),
        in_flight_bytes: path.in_flight_bytes,
        window_bytes: path.window_bytes,
        lost_trains: path.lost_trains,
        trains_tx: path.trains_tx,
        failures: path.failures,
        liveness: path.liveness.as_ref().map(build_liveness),
        state: use_of(path.state).into(),
        direct: path.direct.map(|open_to| open_to_in_a_word(open_to).into()),
        direct_mark: path.direct_mark.map(|kind| kind_in_a_word(kind).into()),
        direct_marks_refused: (path.direct_marks_refused.iter())
            .map(|(kind, because)| {
                (
                    kind_in_a_word(*kind).into(),
                    refused_in_a_word(*because).into(),
                )
            })
            .collect(),
        direct_stripes: path.direct_stripes,
        direct_late: path.direct_late,
        reordering_seen: path.reordering_seen,
    });
    Peer {
        node_id: node_id(peer.node_id.0),
        addresses: vec![peer.address.to_string()],
        away: peer.away,
        up: peer.up,
        version: printable(&peer.software),
        capabilities: capabilities(peer.capabilities),
        mtu: peer.mtu.into(),
        last_heard_s: seconds(peer.last_heard),
        queued_frames: peer.queued_frames,
        queued_bytes: peer.queued_bytes,
        tier: peer.tier,
        hold: (&peer.hold).into(),
        auto: auto_choice(peer.auto).0.into(),
        auto_wait_s: auto_choice(peer.auto).1,
        path: match because {
            None => PeerPath::Direct,
            Some(_) => PeerPath::Engine,
        },
        path_because: because.map(str::to_owned),
        dictionary: peer.dictionary.map(dictionary_id),
        dictionary_unused: (peer.dictionary_unused).map(|why| unused_in_a_word(why).into()),
        links: paths.collect(),
    }
}

fn auto_choice(choice: AutoChoice) -> (&'static str, Option<f64>) {
    match choice {
        AutoChoice::HasRoom => ("has_room", None),
        AutoChoice::FullTrains => ("full_trains", None),
        AutoChoice::Alone => ("alone", None),
        AutoChoice::Waits(wait) => ("waits", Some(seconds(wait))),
    }
}

fn build_liveness(liveness: &stats::LivenessSnapshot) -> Liveness {
    Liveness {
        state: session_in_a_word(liveness.state).into(),
        diagnostic: diagnostic_in_a_word(liveness.diagnostic).into(),
        detection_time_s: seconds(liveness.detection_time),
        interval_s: seconds(liveness.interval),
        round_trip_s: liveness.round_trip.map(seconds),
        held_for_s: liveness.held_for.map(seconds),
    }
}

fn sum(of: impl IntoIterator<Item = stats::Traffic>) -> Traffic {
    let of = of.into_iter();
    of.fold(Traffic::default(), |sum, one| Traffic {
        frames: sum.frames + one.frames,
        bytes: sum.bytes + one.bytes,
    })
}

/// A link's own stack speaks plainly, and is no further host: nobody talks to it through `pt0`.
fn is_peers_link(snapshot: &Snapshot, address: MacAddr) -> bool {
    let mut paths = snapshot.peers.iter().flat_map(|peer| &peer.paths);
    paths.any(|path| path.remote_address == address)
}

fn build_host(host: &stats::HostSnapshot, link_name: &dyn Fn(LinkId) -> String) -> PlainHost {
    PlainHost {
        address: host.address.to_string(),
        link: link_name(host.link),
        last_heard_s: seconds(host.last_heard),
    }
}

fn build_trains(snapshot: &Snapshot) -> Trains {
    let tx = &snapshot.trains_tx;
    let flush = |reason: FlushReason| (reason.as_str().to_owned(), snapshot.flushes.get(reason));
    let sizes = &snapshot.train_sizes;
    let frames_bucket = |bucket: &stats::FramesBucket| FramesBucket {
        frames: bucket.frames,
        trains: bucket.trains,
    };
    let fill_bucket = |bucket: &stats::FillBucket| FillBucket {
        percent_max: bucket.percent_max,
        trains: bucket.trains,
    };
    Trains {
        tx: snapshot.trains_tx.into(),
        rx: snapshot.trains_rx.into(),
        frames_per_train_mean: (tx.trains > 0).then(|| tx.frames as f64 / tx.trains as f64),
        flush: FlushReason::ALL.iter().copied().map(flush).collect(),
        frames_per_train: sizes.frames.iter().map(frames_bucket).collect(),
        fill: sizes.fill.iter().map(fill_bucket).collect(),
        data_units: snapshot.data_units.into(),
    }
}

fn build_coding(coding: &stats::CodingSnapshot) -> Coding {
    let frame_bytes = coding.frame_bytes;
    let saved = |bytes: i64| SavedBytes {
        bytes,
        percent: (frame_bytes > 0).then(|| 100.0 * bytes as f64 / frame_bytes as f64),
    };
    Coding {
        frame_bytes,
        train_bytes: coding.train_bytes,
        saved: Saved {
            framing: saved(coding.saved_framing()),
            padding: saved(coding.saved_padding as i64),
            headers: saved(coding.saved_headers as i64),
            payload: saved(coding.saved_payload as i64),
        },
        coded_tx: coding.coded_tx,
        coded_rx: coding.coded_rx,
        told_apart: coding.deltas_tx,
        compressed_bytes: coding.tried_bytes,
        // What the engine expects is no measurement.
        cpu_s_per_mb: (coding.tried_bytes > 0).then(|| coding.cost_ns_per_kb as f64 / 1e6),
    }
}

fn link_name(facts: &LineFacts, id: LinkId) -> String {
    let link = facts.links.iter().find(|link| link.id == id);
    link.map_or_else(|| format!("#{}", id.0), |link| link.name.clone())
}

fn drops(engine: &stats::Drops, others: &[(&'static str, u64)]) -> Counts {
    let engine = engine
        .iter()
        .map(|(reason, n): (DropReason, u64)| (reason.as_str(), n));
    let all = engine.chain(others.iter().copied().filter(|&(_, n)| n > 0));
    all.map(|(reason, n)| (reason.to_owned(), n)).collect()
}

/// A peer's own words reach terminals: without what steers one, and not endless.
fn printable(text: &str) -> String {
    const CHARS_MAX: usize = 64;
    let safe = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(CHARS_MAX).map(safe).collect()
}

/// As text: JSON's numbers lose the low bits of 64.
fn node_id(id: u64) -> String {
    format!("{id:016x}")
}

/// To the microsecond, so that the text is short.
fn seconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e6
}

/// What is counted in eighths of octaves, and compared between two documents, is told exactly.
pub(super) fn exact_seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}
