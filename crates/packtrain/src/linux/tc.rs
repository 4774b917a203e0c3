//! Traffic control by rtnetlink: qdiscs, and filters that are BPF programs.

use std::os::fd::{AsRawFd, BorrowedFd};

use packtrain_proto::config::LinkOrder;
use packtrain_proto::pacing::gap::SizeTable;

use super::netlink::message::{Attributes, Request, u32_at, value_string};
use super::netlink::{Netlink, NetlinkError, interface};

/// Bytes of `tcmsg`: family (1), padding (3), index (4), handle (4), parent (4), info (4).
const TCMSG_LEN: usize = 20;

pub(super) const ROOT: u32 = 0xffff_ffff;
/// `TC_H_CLSACT`, which is `TC_H_INGRESS` as well: a link has one of the two at most.
const CLSACT_PARENT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
/// Where filters of received frames hang, on clsact and on the older ingress qdisc alike.
pub(super) const CLSACT_INGRESS: u32 = 0xffff_fff2;
pub(super) const CLSACT_EGRESS: u32 = 0xffff_fff3;

const TCA_BPF_CLASSID: u16 = 3;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
/// The program's return value is the verdict itself.
pub(super) const BPF_DIRECT_ACTION: u32 = 1;

/// `tc_msg` and the kind.
pub(super) fn request(
    message: u16,
    flags: i32,
    ifindex: u32,
    handle: u32,
    parent: u32,
    info: u32,
) -> Request {
    let mut fixed = [0; TCMSG_LEN];
    fixed[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    fixed[8..12].copy_from_slice(&handle.to_ne_bytes());
    fixed[12..16].copy_from_slice(&parent.to_ne_bytes());
    fixed[16..20].copy_from_slice(&info.to_ne_bytes());
    Request::new(message, flags, &fixed)
}

const TCA_STAB: u16 = 8;
const TCA_STAB_BASE: u16 = 1;
const TCA_STAB_DATA: u16 = 2;

/// How long frames count for a qdisc: `struct tc_sizespec` and the table. Two lengths share an entry, and an entry is in
/// units of 2 to the power of `size_log`.
pub(super) fn with_size_table(request: Request, size_log: u8, entries: &[u16]) -> Request {
    let table: Vec<u8> = entries.iter().flat_map(|e| e.to_ne_bytes()).collect();
    let mut spec = vec![SizeTable::CELL_LOG, size_log, 0, 0];
    let lens = (entries.len() << SizeTable::CELL_LOG) as u32;
    // Overhead, link layer, least packet, MTU (for the program that made the table), entries.
    for word in [0, 1, 0, lens, entries.len() as u32] {
        spec.extend_from_slice(&word.to_ne_bytes());
    }
    request.nested(TCA_STAB, |stab| {
        stab.attribute(TCA_STAB_BASE, &spec)
            .attribute(TCA_STAB_DATA, &table)
    })
}

/// A place for one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilterPlace {
    pub(super) ifindex: u32,
    pub(super) parent: u32,
    pub(super) priority: u16,
    pub(super) handle: u32,
}

impl FilterPlace {
    fn request(&self, message: u16, flags: i32) -> Request {
        let every_protocol = (libc::ETH_P_ALL as u16).to_be();
        let info = u32::from(self.priority) << 16 | u32::from(every_protocol);
        request(message, flags, self.ifindex, self.handle, self.parent, info)
            .attribute_str(libc::TCA_KIND, "bpf")
    }
}

/// Hangs `program` into `place`; what stands there must be replaced by hand first.
pub(super) fn add_bpf_filter(
    netlink: &mut Netlink,
    place: FilterPlace,
    program: BorrowedFd<'_>,
    name: &str,
    flags: u32,
    class: u32,
) -> Result<(), NetlinkError> {
    let create = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let request =
        place
            .request(libc::RTM_NEWTFILTER, create)
            .nested(libc::TCA_OPTIONS, |options| {
                let options = match class {
                    0 => options,
                    _ => options.attribute_u32(TCA_BPF_CLASSID, class),
                };
                options
                    .attribute_u32(TCA_BPF_FD, program.as_raw_fd() as u32)
                    .attribute_str(TCA_BPF_NAME, name)
                    .attribute_u32(TCA_BPF_FLAGS, flags)
            });
    netlink.change(
        || format!("add the filter {name} to {}", interface(place.ifindex)),
        request,
    )
}

pub(super) fn delete_filter(netlink: &mut Netlink, place: FilterPlace) -> Result<(), NetlinkError> {
    let request = place.request(libc::RTM_DELTFILTER, libc::NLM_F_ACK);
    netlink.change(
        || format!("delete a filter of {}", interface(place.ifindex)),
        request,
    )
}

/// The name of the BPF filter that stands in `place`; `None`: nothing stands there, or no BPF.
pub(super) fn bpf_filter_name(
    netlink: &mut Netlink,
    place: FilterPlace,
) -> Result<Option<String>, NetlinkError> {
    let filters = filters(netlink, place.ifindex, place.parent)?;
    Ok(filters
        .into_iter()
        .find(|filter| filter.priority == place.priority && filter.handle == place.handle)
        .and_then(|filter| filter.bpf_name))
}

/// What a dump tells of a filter.
struct Filter {
    priority: u16,
    handle: u32,
    bpf_name: Option<String>,
}

fn filters(netlink: &mut Netlink, ifindex: u32, parent: u32) -> Result<Vec<Filter>, NetlinkError> {
    let request = request(
        libc::RTM_GETTFILTER,
        libc::NLM_F_DUMP,
        ifindex,
        0,
        parent,
        0,
    );
    let action = format!("list the filters of {}", interface(ifindex));
    netlink.dump(&action, request, |payload| {
        let header = payload.get(..TCMSG_LEN)?;
        let handle = u32_at(header, 8);
        // A dump tells every priority once more, without a filter.
        if handle == 0 {
            return None;
        }
        let bpf_name = Attributes(&payload[TCMSG_LEN..])
            .find(|(kind, _)| *kind == libc::TCA_OPTIONS)
            .and_then(|(_, options)| Attributes(options).find(|(kind, _)| *kind == TCA_BPF_NAME))
            .map(|(_, name)| value_string(name));
        Some(Filter {
            priority: (u32_at(header, 16) >> 16) as u16,
            handle,
            bpf_name,
        })
    })
}

/// A qdisc as a dump tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Qdisc {
    pub(super) kind: String,
    pub(super) handle: u32,
    pub(super) parent: u32,
}

pub(super) fn qdiscs(netlink: &mut Netlink, ifindex: u32) -> Result<Vec<Qdisc>, NetlinkError> {
    let request = request(libc::RTM_GETQDISC, libc::NLM_F_DUMP, ifindex, 0, 0, 0);
    let action = format!("list the qdiscs of {}", interface(ifindex));
    netlink.dump(&action, request, |payload| {
        let header = payload.get(..TCMSG_LEN)?;
        // Older kernels tell those of all interfaces.
        if u32_at(header, 4) != ifindex {
            return None;
        }
        let (_, kind) =
            Attributes(&payload[TCMSG_LEN..]).find(|(kind, _)| *kind == libc::TCA_KIND)?;
        Some(Qdisc {
            kind: value_string(kind),
            handle: u32_at(header, 8),
            parent: u32_at(header, 12),
        })
    })
}

/// What stands in a qdisc, and what it refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// A GSO frame is one.
    pub frames: u32,
    pub bytes: u32,
    pub dropped: u32,
    /// Bytes that have left it, ever; of a GSO frame as what it becomes.
    pub sent_bytes: u64,
}

const TCA_STATS2: u16 = 7;
/// `struct gnet_stats_basic`: bytes (8), frames (4), of a GSO frame its segments.
const TCA_STATS_BASIC: u16 = 1;
/// The same frames, where 32 bits are too few.
const TCA_STATS_PKT64: u16 = 8;
/// `struct gnet_stats_queue`: frames, bytes, drops, requeues, overlimits; 4 bytes each.
const TCA_STATS_QUEUE: u16 = 3;

/// Kinds of one queue, which is emptied in the order in which it was filled. ("noqueue" is none.)
const FIFOS: [&str; 4] = ["noqueue", "pfifo", "bfifo", "pfifo_head_drop"];

/// What stands before a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkQueue {
    /// The root qdisc's.
    pub kind: String,
    /// Known to leave it in the order in which it was given to it. Everything, where it is one queue, or a shaper
    /// with one.
    pub order: LinkOrder,
}

impl LinkQueue {
    /// Whether it can be seen that frames stand there.
    pub fn shows_backlog(&self) -> bool {
        self.kind != "noqueue"
    }
}

/// `None`: the link has no root qdisc, or is gone.
pub fn link_queue(netlink: &mut Netlink, ifindex: u32) -> Result<Option<LinkQueue>, NetlinkError> {
    let all = qdiscs(netlink, ifindex)?;
    let Some(root) = all.iter().find(|qdisc| qdisc.parent == ROOT) else {
        return Ok(None);
    };
    let is_one_queue = match root.kind.as_str() {
        fifo if FIFOS.contains(&fifo) => true,
        "tbf" => below_is_one_queue(&all, root),
        "htb" => below_is_one_queue(&all, root) && htb_leaves(netlink, ifindex, root)? == 1,
        _ => false,
    };
    let order = match root.kind.as_str() {
        _ if is_one_queue => LinkOrder::Whole,
        // A band for each priority, and all that a socket sends has the same.
        "pfifo_fast" => LinkOrder::Socket,
        _ => LinkOrder::Flow,
    };
    Ok(Some(LinkQueue {
        kind: root.kind.clone(),
        order,
    }))
}

/// A shaper with one class keeps the order of what is in it.
fn below_is_one_queue(all: &[Qdisc], above: &Qdisc) -> bool {
    let is_below = |qdisc: &&Qdisc| {
        qdisc.parent >> 16 == above.handle >> 16 && above.handle != 0 && qdisc.parent != ROOT
    };
    all.iter()
        .filter(is_below)
        .all(|qdisc| match qdisc.kind.as_str() {
            "tbf" => below_is_one_queue(all, qdisc),
            kind => FIFOS.contains(&kind),
        })
}

/// Of the root's own classes, for a TBF below it has one as well: those that no other is below of.
fn htb_leaves(netlink: &mut Netlink, ifindex: u32, root: &Qdisc) -> Result<usize, NetlinkError> {
    let request = request(libc::RTM_GETTCLASS, libc::NLM_F_DUMP, ifindex, 0, 0, 0);
    let action = format!("list the classes of {}", interface(ifindex));
    let classes = netlink.dump(&action, request, |payload| {
        let header = payload.get(..TCMSG_LEN)?;
        let (handle, parent) = (u32_at(header, 8), u32_at(header, 12));
        (handle >> 16 == root.handle >> 16).then_some((handle, parent))
    })?;
    let is_leaf = |handle: u32| classes.iter().all(|(_, parent)| *parent != handle);
    Ok(classes
        .iter()
        .filter(|(handle, _)| is_leaf(*handle))
        .count())
}

/// The root qdisc, which every interface but a new one has.
pub(super) fn root(netlink: &mut Netlink, ifindex: u32) -> Result<Option<Qdisc>, NetlinkError> {
    let all = qdiscs(netlink, ifindex)?;
    Ok(all.into_iter().find(|qdisc| qdisc.parent == ROOT))
}

/// What the link's root qdisc has dropped of all that was given to it, ever.
pub fn root_drops(netlink: &mut Netlink, ifindex: u32) -> Result<u32, NetlinkError> {
    let all = qdiscs(netlink, ifindex)?;
    let root = all.iter().find(|qdisc| qdisc.parent == ROOT);
    let stats = root.map(|root| queue_stats(netlink, ifindex, root.handle));
    Ok(stats.transpose()?.flatten().unwrap_or_default().dropped)
}

/// `None`: no such qdisc.
pub(super) fn queue_stats(
    netlink: &mut Netlink,
    ifindex: u32,
    handle: u32,
) -> Result<Option<QueueStats>, NetlinkError> {
    queue_stats_of(netlink, ifindex, |of, _| of == handle)
}

/// Of the root qdisc, which has no number where it is the kernel's own.
pub(super) fn root_stats(
    netlink: &mut Netlink,
    ifindex: u32,
) -> Result<Option<QueueStats>, NetlinkError> {
    queue_stats_of(netlink, ifindex, |_, parent| parent == ROOT)
}

/// `is_it`: by its own number, and its parent's.
fn queue_stats_of(
    netlink: &mut Netlink,
    ifindex: u32,
    is_it: impl Fn(u32, u32) -> bool,
) -> Result<Option<QueueStats>, NetlinkError> {
    let request = request(libc::RTM_GETQDISC, libc::NLM_F_DUMP, ifindex, 0, 0, 0);
    let action = format!("read the queue of {}", interface(ifindex));
    let found = netlink.dump(&action, request, |payload| {
        let header = payload.get(..TCMSG_LEN)?;
        if u32_at(header, 4) != ifindex || !is_it(u32_at(header, 8), u32_at(header, 12)) {
            return None;
        }
        let (_, stats) = Attributes(&payload[TCMSG_LEN..]).find(|(kind, _)| *kind == TCA_STATS2)?;
        let basic = Attributes(stats).find(|(kind, _)| *kind == TCA_STATS_BASIC);
        let sent = basic.and_then(|(_, basic)| basic.get(..8)?.try_into().ok());
        let (_, queue) = Attributes(stats).find(|(kind, _)| *kind == TCA_STATS_QUEUE)?;
        let queue = queue.get(..12)?;
        Some(QueueStats {
            frames: u32_at(queue, 0),
            bytes: u32_at(queue, 4),
            dropped: u32_at(queue, 8),
            sent_bytes: sent.map_or(0, u64::from_ne_bytes),
        })
    })?;
    Ok(found.into_iter().next())
}

/// What has left a qdisc, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Of a GSO frame each segment.
    pub(super) frames: u64,
    pub(super) bytes: u64,
}

/// `None`: no such qdisc.
pub(super) fn sent(
    netlink: &mut Netlink,
    ifindex: u32,
    handle: u32,
) -> Result<Option<Sent>, NetlinkError> {
    let request = request(libc::RTM_GETQDISC, libc::NLM_F_DUMP, ifindex, 0, 0, 0);
    let action = format!("read the counters of {}", interface(ifindex));
    let found = netlink.dump(&action, request, |payload| {
        let header = payload.get(..TCMSG_LEN)?;
        if u32_at(header, 4) != ifindex || u32_at(header, 8) != handle {
            return None;
        }
        let (_, stats) = Attributes(&payload[TCMSG_LEN..]).find(|(kind, _)| *kind == TCA_STATS2)?;
        let of = |kind| {
            Attributes(stats)
                .find(|(of, _)| *of == kind)
                .map(|(_, v)| v)
        };
        let word = |value: &[u8]| value.get(..8)?.try_into().ok().map(u64::from_ne_bytes);
        let basic = of(TCA_STATS_BASIC)?.get(..12)?;
        Some(Sent {
            frames: of(TCA_STATS_PKT64)
                .and_then(word)
                .unwrap_or_else(|| u32_at(basic, 8).into()),
            bytes: word(basic)?,
        })
    })?;
    Ok(found.into_iter().next())
}

/// Whether received frames of the link can meet filters.
pub(super) fn has_clsact(netlink: &mut Netlink, ifindex: u32) -> Result<bool, NetlinkError> {
    Ok(qdiscs(netlink, ifindex)?
        .iter()
        .any(|qdisc| qdisc.parent == CLSACT_PARENT))
}

pub(super) fn add_clsact(netlink: &mut Netlink, ifindex: u32) -> Result<(), NetlinkError> {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let request = request(
        libc::RTM_NEWQDISC,
        flags,
        ifindex,
        CLSACT_HANDLE,
        CLSACT_PARENT,
        0,
    )
    .attribute_str(libc::TCA_KIND, "clsact");
    netlink.change(
        || format!("add a clsact to {}", interface(ifindex)),
        request,
    )
}

/// Deletes the link's clsact, unless it holds a filter; returns whether it did.
pub(super) fn delete_clsact_if_empty(
    netlink: &mut Netlink,
    ifindex: u32,
) -> Result<bool, NetlinkError> {
    for parent in [CLSACT_INGRESS, CLSACT_EGRESS] {
        if !filters(netlink, ifindex, parent)?.is_empty() {
            return Ok(false);
        }
    }
    delete_qdisc(netlink, ifindex, CLSACT_HANDLE, CLSACT_PARENT)?;
    Ok(true)
}

pub(super) fn delete_qdisc(
    netlink: &mut Netlink,
    ifindex: u32,
    handle: u32,
    parent: u32,
) -> Result<(), NetlinkError> {
    let request = request(
        libc::RTM_DELQDISC,
        libc::NLM_F_ACK,
        ifindex,
        handle,
        parent,
        0,
    );
    netlink.change(
        || format!("delete a qdisc of {}", interface(ifindex)),
        request,
    )
}
