// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The direct path: frames that the engine can do nothing for go past it.
 *
 * direct_leave    tc egress of pt0: sends a frame for a peer's pt0 straight to a member link, or
 *                 lets it go on to the engine.
 * direct_watch    tc egress of the member link: sees when direct frames begin to stand there, for
 *                 then the engine has something to gain: it lets flows take turns, and packs.
 *
 * direct_arrive   tc ingress of pt0: counts those that have come, where nothing that is given to pt0
 *                 later can overtake them any more.
 *
 * The receiving end is guard_ingress.
 *
 * Order: the direct path is the faster one, so a frame on it would overtake those of its flow that
 * are still in the engine, on the wire or in the peer's. Each frame that goes to the engine takes a
 * ticket and leaves it in its flow's slot; the engine's owner says up to which ticket all
 * was delivered. A flow goes direct when its last ticket is among those, and always by the same of several
 * links until it has gone to the engine again. The other way needs nothing on one link whose queue is
 * first in, first out: what goes to the engine comes later than what went direct before. Of other links, and
 * of several, the engine is told that flows have come back (`left`), and by how many frames were sent before,
 * and its trains wait for those at the other end.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>

#include "ethernet.h"
#include "direct.h"
#include "intake.h"
#include "class.bpf.h"
#include "unmarked.bpf.h"

#define VLAN_TAG_LEN		4

/* A queue that never was empty for so long stands; one that is shorter-lived is a burst. */
#define STANDING_NS		5000000ULL
/* Not looked at for so long, it may have been empty in between. */
#define UNSEEN_NS		100000000ULL
/* What leaves faster than this (250 bytes a microsecond, 2 Gbit/s) is more than the engine carries. */
#define ENGINE_BYTES_PER_US	250

/*
 * So many small frames a second may cost the host more one by one than packed: the engine is to try. It is more
 * than one question and answer after the other come to (some 50,000), which would only wait longer.
 */
#define SMALL_BYTES		300
#define SMALL_PER_MS		80
#define SMALL_WINDOW_NS		20000000ULL
/* The clock costs more than the rest of it: it is looked at with each sixteenth, of 1600 in a window of so many. */
#define SMALL_A_LOOK		16

/* A link has so many queues that are looked at, so many of them a frame. */
#define QUEUES_MAX		64
#define QUEUES_A_FRAME		4

struct gnet_stats_queue {
	__u32 backlog;
} __attribute__((preserve_access_index));

struct Qdisc {
	unsigned int flags;
	__u32 handle;
	struct gnet_stats_queue qstats;
	long privdata[];
} __attribute__((preserve_access_index));

/* Of `flags`. Of those that queue frames only pfifo_fast has it, which counts its bytes of each processor apart. */
#define TCQ_F_NOLOCK		0x100

struct ptr_ring {
	int consumer_head;
	void **queue;
} __attribute__((preserve_access_index));

struct skb_array {
	struct ptr_ring ring;
} __attribute__((preserve_access_index));

#define PFIFO_FAST_BANDS	3

struct pfifo_fast_priv {
	struct skb_array q[PFIFO_FAST_BANDS];
} __attribute__((preserve_access_index));

struct netdev_queue {
	struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

struct bpf_mprog_bundle {
	int count;
} __attribute__((preserve_access_index));

struct bpf_mprog_entry {
	struct bpf_mprog_bundle *parent;
} __attribute__((preserve_access_index));

struct mini_Qdisc;

struct tcx_entry {
	struct mini_Qdisc *miniq;
	struct bpf_mprog_bundle bundle;
} __attribute__((preserve_access_index));

struct net_device {
	struct netdev_queue *_tx;
	unsigned int real_num_tx_queues;
	struct Qdisc *qdisc;
	struct bpf_mprog_entry *tcx_egress;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

/* Linux 6.2; tcx, by which these programs are attached, is of 6.6. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

struct direct_orders orders SEC(".data.orders");

struct direct_state state SEC(".data.state");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DIRECT_SLOTS);
	__type(key, __u32);
	__type(value, struct direct_slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DIRECT_SENDING);
	__type(key, __u32);
	__type(value, struct direct_traffic);
} sending SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * DIRECT_DESTINATIONS);
	__type(key, __u64);
	__type(value, struct direct_destination);
} destinations SEC(".maps");

/* Most frames are followed by more to there. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DIRECT_LAST);
	__type(key, __u32);
	__type(value, struct direct_last);
} last_destinations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DIRECT_NUMBERS);
	__type(key, __u32);
	__type(value, struct direct_watch);
} watches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DIRECT_NUMBERS);
	__type(key, __u32);
	__type(value, __u32);
} closed SEC(".maps");

static __always_inline int is_closed(__u32 link, const struct direct_orders *told)
{
	__u32 *opening = bpf_map_lookup_elem(&closed, &link);

	return told->opening && opening && *opening == told->opening;
}

static __always_inline void close_link(__u32 link, const struct direct_orders *told)
{
	__u32 *opening = bpf_map_lookup_elem(&closed, &link);

	if (opening)
		*opening = told->opening;
}

/* The largest of what it becomes on the wire; TCP's and UDP's headers are in pt0's own MTU. */
static __always_inline int fits(const struct __sk_buff *skb, __u16 ether_type, __u32 payload_max)
{
	__u32 around = sizeof(struct ethernet_header);

	if (ether_type == ETHERTYPE_VLAN)
		around += VLAN_TAG_LEN;
	return skb->gso_size ? skb->gso_size <= payload_max : skb->len <= payload_max + around;
}

/*
 * Who puts a qdisc or filters of their own before pt0 wants frames to go through them: direct ones
 * would not. Filters of a clsact run after the programs of tcx, and stand beside them.
 */
static __always_inline int has_foreign_tc(struct __sk_buff *skb, const struct direct_orders *told,
					  struct direct_state *now)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);
	struct net_device *dev = kernel_skb->dev;
	struct tcx_entry *programs;
	__u32 foreign;

	programs = bpf_rdonly_cast((void *)dev->tcx_egress->parent -
				   bpf_core_field_offset(struct tcx_entry, bundle),
				   bpf_core_type_id_kernel(struct tcx_entry));
	foreign = (told->qdisc && dev->qdisc->handle != told->qdisc) || programs->miniq;
	if (now->foreign_tc != foreign)
		now->foreign_tc = foreign;
	return foreign;
}

/*
 * Acknowledgements of a flow in the other direction are as many as that is fast, and would only be late
 * in a train: they are not what packing is for. Tagged ones, and those behind IPv6 extension headers, are not
 * looked for.
 */
static __always_inline int is_empty_tcp(void *data, void *data_end, __u16 ether_type)
{
	struct ethernet_header *header = data;
	struct ipv6hdr *ipv6;
	struct tcphdr *tcp;
	struct iphdr *ip;
	__u32 len;

	if (ether_type == ETHERTYPE_IPV4) {
		ip = (void *)(header + 1);
		if ((void *)(ip + 1) > data_end || ip->protocol != IPPROTO_TCP)
			return 0;
		len = bpf_ntohs(ip->tot_len) - ip->ihl * 4;
		tcp = (void *)ip + ip->ihl * 4;
	} else if (ether_type == ETHERTYPE_IPV6) {
		ipv6 = (void *)(header + 1);
		if ((void *)(ipv6 + 1) > data_end || ipv6->nexthdr != IPPROTO_TCP)
			return 0;
		len = bpf_ntohs(ipv6->payload_len);
		tcp = (void *)(ipv6 + 1);
	} else {
		return 0;
	}
	return (void *)(tcp + 1) <= data_end && len == tcp->doff * 4;
}

/* Not exact where several processors send: the bound is not either. */
static __always_inline void count_small(struct direct_state *now, const struct direct_orders *told,
					__u32 link)
{
	__u64 frames = now->small_frames + 1, time, elapsed;

	now->small_frames = frames;
	if (frames % SMALL_A_LOOK)
		return;
	time = bpf_ktime_get_coarse_ns();
	elapsed = time - now->small_since;
	if (elapsed < SMALL_WINDOW_NS)
		return;
	if (!told->leaves_small && frames * 1000000 > elapsed * SMALL_PER_MS)
		close_link(link, told);
	/* The engine compares them with what it can take. */
	now->small_per_second = frames * 1000000000ULL / elapsed;
	now->small_windows += 1;
	now->small_frames = 0;
	now->small_since = time;
}

/* A TAP does not carry the mark: the engine reads it out of the address that it knows anyway. */
static __always_inline void tell_mark(struct __sk_buff *skb, __u64 host_address)
{
	struct ethernet_header header __attribute__((aligned(8)));
	__u8 source[6] = { DIRECT_MARKED_0, DIRECT_MARKED_1 };

	if (bpf_skb_load_bytes(skb, 0, &header, sizeof(header)) ||
	    source_of(&header) != host_address)
		return;
	for (int i = 0; i < 4; i++)
		source[2 + i] = skb->mark >> (24 - 8 * i);
	bpf_skb_store_bytes(skb, sizeof(header.destination), source, sizeof(source), 0);
}

/*
 * The way that the flow has gone before, as long as it may, so that it overtakes nothing of its own; a new one
 * the first that is open to it, others another one.
 */
static __always_inline struct direct_way *choose_way(struct direct_destination *destination,
						     const struct direct_slot *slot, __u32 first,
						     int path, const struct direct_orders *told)
{
	__u32 count = destination->ways_count;
	struct direct_way *way;

	/* Most peers have one, and a division is what costs here. */
	if (count > 1)
		first %= count;
	else
		first = 0;
	for (__u32 i = 0; i < DIRECT_WAYS && i < count; i++, first++) {
		if (first == count)
			first = 0;
		way = &destination->ways[first & (DIRECT_WAYS - 1)];
		if (slot->way && slot->way != way->link + 1)
			continue;
		if (path >= (int)way->least &&
		    (path == CLASS_PATH_DIRECT || !is_closed(way->link, told)))
			return way;
	}
	return NULL;
}

static __always_inline struct direct_destination *
find_destination(__u64 address, const struct direct_orders *told)
{
	__u32 place = address & (DIRECT_LAST - 1), change = told->destinations_change;
	struct direct_destination *destination;
	struct direct_last *last;

	last = bpf_map_lookup_elem(&last_destinations, &place);
	if (last && last->address == address && last->change == change)
		return &last->destination;
	destination = bpf_map_lookup_elem(&destinations, &address);
	if (destination && last) {
		last->destination = *destination;
		last->address = address;
		last->change = change;
	}
	return destination;
}

SEC("tc")
int direct_leave(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	struct direct_destination *destination;
	struct direct_traffic *sent;
	const struct direct_orders *told = &orders;
	struct direct_state *now = &state;
	struct direct_slot *slot;
	struct class_walk class;
	struct direct_way *way;
	__u32 slot_number;
	__u64 address, ticket;
	__u16 ether_type;
	int is_small, path = CLASS_PATH_AUTO;

	slot_number = bpf_get_hash_recalc(skb) % DIRECT_SLOTS;
	slot = bpf_map_lookup_elem(&slots, &slot_number);
	if (!slot)
		return TC_ACT_UNSPEC;
	if (told->classes_count) {
		class_find(skb, &class, told->classes_first, told->classes_count);
		path = class.path;
	}
	if (path == CLASS_PATH_ENGINE || slot->ticket > told->drained ||
	    (void *)(header + 1) > data_end || has_foreign_tc(skb, told, now))
		goto engine;
	ether_type = bpf_ntohs(header->ether_type);
	if (source_of(header) != told->host_address || ether_type == ETHERTYPE_PACKTRAIN)
		goto engine;
	address = destination_of(header);
	destination = find_destination(address, told);
	if (!destination)
		goto engine;
	way = choose_way(destination, slot, slot_number, path, told);
	if (!way || !fits(skb, ether_type, way->payload_max))
		goto engine;
	if (way->flags & DIRECT_WAY_UNMARKED &&
	    (skb->vlan_present || !may_be_unmarked(skb, ether_type)))
		goto engine;
	if (way->vlan && (skb->vlan_present || ether_type == ETHERTYPE_VLAN))
		goto engine;
	is_small = skb->len <= SMALL_BYTES && !is_empty_tcp(data, data_end, ether_type);
	if (way->vlan) {
		if (bpf_skb_vlan_push(skb, bpf_htons(ETHERTYPE_VLAN), way->vlan))
			goto engine;
		data = (void *)(long)skb->data;
		data_end = (void *)(long)skb->data_end;
		header = data;
		if ((void *)(header + 1) > data_end) {
			bpf_skb_vlan_pop(skb);
			goto engine;
		}
	}
	/* In place, for what a host sends is its own. */
	put_addresses(header, &way->outer);
	if (!slot->way)
		slot->way = way->link + 1;
	/* The peer is told, and says how many of them have come. */
	sent = bpf_map_lookup_elem(&sending, &way->sending);
	if (sent) {
		sent->frames += 1;
		sent->bytes += skb->len;
		sent->segments += segments_of(skb);
	}
	if (is_small)
		count_small(now, told, way->link);
	if (way->flags & DIRECT_WAY_WATCHED)
		skb->tc_index = LEAVING | (way->link & ~CARRIED_MASK);
	return bpf_redirect(way->ifindex, 0);

engine:
	ticket = __sync_fetch_and_add(&now->tickets, 1) + 1;
	/* Another flow of this slot may have had a later one meanwhile. */
	if (slot->ticket < ticket)
		slot->ticket = ticket;
	if (slot->way) {
		slot->way = 0;
		__sync_fetch_and_add(&now->left, 1);
	}
	if (told->urgent_count) {
		/* The intake puts what has this class into HTB's direct queue, which is emptied before all others. */
		class_find(skb, &class, told->classes_first, told->urgent_count);
		if (class.urgent)
			skb->priority = told->qdisc | INTAKE_URGENT;
	}
	if (told->tells_marks && skb->mark)
		tell_mark(skb, told->host_address);
	return TC_ACT_UNSPEC;
}

/* pfifo_fast counts bytes for each processor, which no program can add up: but a band holds a frame. */
static __always_inline int pfifo_fast_stands(struct Qdisc *qdisc)
{
	void *bands = (void *)qdisc + bpf_core_field_offset(struct Qdisc, privdata) +
		      bpf_core_field_offset(struct pfifo_fast_priv, q);
	struct ptr_ring *ring;
	void *head;

	for (int i = 0; i < PFIFO_FAST_BANDS; i++) {
		ring = bpf_rdonly_cast(bands + bpf_core_field_offset(struct skb_array, ring),
				       bpf_core_type_id_kernel(struct ptr_ring));
		if (!bpf_probe_read_kernel(&head, sizeof(head), ring->queue + ring->consumer_head) &&
		    head)
			return 1;
		bands += bpf_core_type_size(struct skb_array);
	}
	return 0;
}

/* Where there is no queue, or it cannot be seen: no. */
static __always_inline int queue_stands(struct net_device *dev, __u32 number)
{
	__u64 at = (__u64)number * bpf_core_type_size(struct netdev_queue);
	struct netdev_queue *queue;
	struct Qdisc *qdisc;

	queue = bpf_rdonly_cast((void *)dev->_tx + at,
				bpf_core_type_id_kernel(struct netdev_queue));
	qdisc = queue->qdisc;
	if (qdisc->flags & TCQ_F_NOLOCK)
		return pfifo_fast_stands(qdisc);
	return qdisc->qstats.backlog != 0;
}

/*
 * Whether frames stand on the link: in the queue that did when it was seen last, or in one of the next few.
 * Which one a frame is going to is not known yet.
 */
static __always_inline int stands(struct __sk_buff *skb, struct direct_watch *watch)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);
	struct net_device *dev = kernel_skb->dev;
	__u32 queues = dev->real_num_tx_queues, number = watch->queue;

	if (queues <= 1)
		return queue_stands(dev, 0);
	for (int i = 0; i < QUEUES_A_FRAME; i++) {
		if (number >= queues || number >= QUEUES_MAX)
			number = 0;
		if (queue_stands(dev, number)) {
			watch->queue = number;
			return 1;
		}
		/* Another one that stands begins anew. */
		if (watch->standing_since)
			break;
		number++;
	}
	watch->queue = number;
	return 0;
}

SEC("tc")
int direct_watch(struct __sk_buff *skb)
{
	__u32 link = skb->tc_index & ~CARRIED_MASK;
	struct direct_watch *watch;
	__u64 time, standing;

	if ((skb->tc_index & CARRIED_MASK) != LEAVING)
		return TC_ACT_UNSPEC;
	/* A veth's other end would read it as well. */
	skb->tc_index = 0;
	watch = bpf_map_lookup_elem(&watches, &link);
	if (!watch)
		return TC_ACT_UNSPEC;
	if (!stands(skb, watch)) {
		if (watch->standing_since)
			watch->standing_since = 0;
		return TC_ACT_UNSPEC;
	}
	time = bpf_ktime_get_ns();
	if (!watch->standing_since || time - watch->seen_at > UNSEEN_NS) {
		watch->standing_bytes = 0;
		watch->standing_since = time;
		watch->seen_at = time;
		return TC_ACT_UNSPEC;
	}
	watch->seen_at = time;
	watch->standing_bytes += skb->len;
	standing = time - watch->standing_since;
	if (standing < STANDING_NS)
		return TC_ACT_UNSPEC;
	if (watch->standing_bytes * 1000 < standing * ENGINE_BYTES_PER_US)
		close_link(link, &orders);
	watch->standing_since = 0;
	return TC_ACT_UNSPEC;
}

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, DIRECT_ARRIVED);
	__type(key, __u64);	/* the source's address, and the number of the link in bits 55..48 */
	__type(value, __u32);	/* frames, a GSO frame as its segments; wraps */
} arrived SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DIRECT_ARRIVED);
	__type(key, __u32);
	__type(value, struct direct_arrived);
} arrived_first SEC(".maps");

/* Of those whose place another one had first. */
static __always_inline void count_among_others(__u64 key, __u32 segments)
{
	__u32 zero = 0, *known;

	known = bpf_map_lookup_elem(&arrived, &key);
	if (!known) {
		/* Another processor may have been faster. */
		bpf_map_update_elem(&arrived, &key, &zero, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&arrived, &key);
	}
	if (known)
		__sync_fetch_and_add(known, segments);
}

SEC("tc")
int direct_arrive(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	struct direct_arrived *first;
	__u32 place;
	__u64 key;

	if ((skb->tc_index & CARRIED_MASK) != ARRIVING || (void *)(header + 1) > data_end)
		return TC_ACT_UNSPEC;
	key = (__u64)(skb->tc_index & ~CARRIED_MASK) << 48 | source_of(header);
	skb->tc_index = 0;
	place = key * DIRECT_ARRIVED_FACTOR >> DIRECT_ARRIVED_SHIFT;
	first = bpf_map_lookup_elem(&arrived_first, &place);
	if (first && !first->key)
		first->key = key;
	if (first && first->key == key)
		first->segments += segments_of(skb);
	else
		count_among_others(key, segments_of(skb));
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
