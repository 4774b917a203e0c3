// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The direct path: frames that the engine can do nothing for go past it.
 *
 * direct_leave    tc egress of pt0: sends a frame for a peer's pt0 straight to a member link, or
 *                 lets it go on to the engine.
 * direct_watch    tc egress of the member link: sees when direct frames begin to stand there, for
 *                 then the engine has something to gain: it lets flows take turns, and packs.
 *
 * direct_carry    tc egress of the interface below the one with a queue of ours: what waited there goes on to the link.
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
 * and its trains wait for those at the other end. So it is told of one before which there is a queue of ours.
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
#include "flow.bpf.h"
#include "queue.bpf.h"
#include "unmarked.bpf.h"
#include "way.bpf.h"

/* With each frame so many queues of a link are looked at. */
#define QUEUES_A_FRAME		4

/* So long before it, and up to twice as long, something later of its flow was there: TCP may take it for lost. */
#define LATE_NS			500000LL
/* After such a pause, or so far from what it has come to, a flow begins anew: meanwhile it may have gone by the engine. */
#define FORGOTTEN_NS		100000000LL
#define FAR			(1 << 28)

#define VLAN_TAG_LEN		4

/* A queue that never was empty for so long stands; one that is shorter-lived is a burst. */
#define STANDING_NS		5000000ULL
/* The rate of a queue is what leaves it while it stands, in so much of such time. */
#define MEASURED_NS		4000000ULL
/* Not looked at for so long, it may have been empty in between. */
#define UNSEEN_NS		100000000ULL
/* What leaves faster than this (2 Gbit/s) is more than the engine is sure to carry. */
#define ENGINE_BYTES_PER_MS	250000
/* … also where it was slower for a moment: a host that others share stands still now and then, and the engine does not give back soon. */
#define SLOWED_NS		100000000ULL

/* A queue of ours is there within this time of being asked for, or the engine takes over; and may be asked for again. */
#define SHAPED_WITHIN_NS	300000000ULL
#define ASKED_AGAIN_NS		1000000000ULL

/*
 * So many small frames a second may cost the host more one by one than packed: the engine is to try. It is more
 * than one question and answer after the other come to (some 50,000), which would only wait longer.
 */
#define SMALL_BYTES		300
#define SMALL_PER_MS		80
#define SMALL_WINDOW_NS		20000000ULL
/* The clock costs more than the rest of it: it is looked at with each sixteenth, of 1600 in a window of so many. */
#define SMALL_A_LOOK		16

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
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct direct_shaping);
} shaping SEC(".maps");

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
	struct net_device *dev = device_of(skb);
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

/* Tagged segments, and those behind IPv6 extension headers, are not looked for. */
static __always_inline int is_tcp(void *data, void *data_end, __u16 ether_type)
{
	struct ethernet_header *header = data;
	struct ipv6hdr *ipv6 = (void *)(header + 1);
	struct iphdr *ip = (void *)(header + 1);

	if (ether_type == ETHERTYPE_IPV4)
		return (void *)(ip + 1) <= data_end && ip->protocol == IPPROTO_TCP;
	return ether_type == ETHERTYPE_IPV6 && (void *)(ipv6 + 1) <= data_end &&
	       ipv6->nexthdr == IPPROTO_TCP;
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
	struct direct_shaping *shaped;
	struct direct_slot *slot;
	struct direct_way *way;
	__u32 slot_number, zero = 0;
	__u64 address, ticket;
	__u16 ether_type;
	int is_small, is_spread, chosen = -1, path = CLASS_PATH_AUTO;

	slot_number = bpf_get_hash_recalc(skb) % DIRECT_SLOTS;
	slot = bpf_map_lookup_elem(&slots, &slot_number);
	if (!slot)
		return TC_ACT_UNSPEC;
	if (told->classes_count) {
		path = class_find(skb, told->classes_first, told->classes_count) & ~CLASS_URGENT;
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
	way = NULL;
	/* The receiver of TCP tells what came in disorder, and puts it in order. */
	if (destination->stripes && path == CLASS_PATH_LOSS_OK &&
	    is_tcp(data, data_end, ether_type)) {
		if (skb->gso_size) {
			chosen = choose_stripe(skb, destination, slot, path, told);
			if (chosen >= 0)
				way = &destination->ways[chosen & (DIRECT_WAYS - 1)];
		} else {
			way = follow_stripe(destination, slot, path, told);
		}
	}
	is_spread = way != NULL;
	if (!way)
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
	/* Apart from each other: a flow that shares the slot keeps to its link. */
	if (is_spread) {
		if ((chosen < 0 || !(chosen & STRIPE_PROBES)) && slot->stripe != way->link + 1)
			slot->stripe = way->link + 1;
		if (skb->gso_size)
			__sync_fetch_and_add(&now->striped, 1);
	} else if (!slot->way) {
		slot->way = way->link + 1;
	}
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
	if (told->shaper && told->shaped == way->ifindex) {
		skb->tc_index = LEAVING | (way->link & ~CARRIED_MASK);
		shaped = bpf_map_lookup_elem(&shaping, &zero);
		if (shaped)
			shaped->entered += segments_of(skb);
		if (told->urgent_count &&
		    class_find(skb, told->classes_first, told->urgent_count) & CLASS_URGENT)
			skb->priority = INTAKE_MAJOR << 16 | INTAKE_URGENT;
		return bpf_redirect(told->shaper, 0);
	}
	return bpf_redirect(way->ifindex, 0);

engine:
	ticket = __sync_fetch_and_add(&now->tickets, 1) + 1;
	/* Another flow of this slot may have had a later one meanwhile. */
	if (slot->ticket < ticket)
		slot->ticket = ticket;
	if (slot->way || slot->stripe) {
		slot->way = 0;
		slot->stripe = 0;
		__sync_fetch_and_add(&now->left, 1);
	}
	if (told->urgent_count) {
		/* The intake puts what has this class into HTB's direct queue, which is emptied before all others. */
		if (class_find(skb, told->classes_first, told->urgent_count) & CLASS_URGENT)
			skb->priority = told->qdisc | INTAKE_URGENT;
	}
	if (told->tells_marks && skb->mark)
		tell_mark(skb, told->host_address);
	return TC_ACT_UNSPEC;
}

/*
 * Bytes that stand on the link: in the queue that held some when it was seen last, or in one of the next few.
 * Which one a frame is going to is not known yet.
 */
static __always_inline __u32 standing_bytes(struct __sk_buff *skb, struct direct_watch *watch)
{
	struct net_device *dev = device_of(skb);
	__u32 queues = dev->real_num_tx_queues, number = watch->queue, backlog;

	if (queues <= 1)
		return queue_backlog(dev, 0);
	for (int i = 0; i < QUEUES_A_FRAME; i++) {
		if (number >= queues || number >= QUEUES_MAX)
			number = 0;
		backlog = queue_backlog(dev, number);
		if (backlog) {
			watch->queue = number;
			return backlog;
		}
		/* Another one that stands begins anew. */
		if (watch->standing_since)
			break;
		number++;
	}
	watch->queue = number;
	return 0;
}

/* Nothing else goes on: it is an interface like others, and whoever sends there has not asked us. */
SEC("tc")
int direct_carry(struct __sk_buff *skb)
{
	struct direct_shaping *shaped;
	__u32 zero = 0;

	if ((skb->tc_index & CARRIED_MASK) != LEAVING || !orders.shaped)
		return TC_ACT_SHOT;
	shaped = bpf_map_lookup_elem(&shaping, &zero);
	if (shaped)
		shaped->left += segments_of(skb);
	/* Where it waited this was a queue's number; below it would be a band. */
	if (skb->priority == (INTAKE_MAJOR << 16 | INTAKE_URGENT))
		skb->priority = 0;
	return bpf_redirect(orders.shaped, 0);
}

/*
 * Whether a queue of ours is what is wanted where a link's stands, and not the engine: at this rate user space is late for
 * what is short. The owner looks now and then, and makes one; and then it is the owner's to see what stands below it.
 */
static __always_inline int may_be_shaped(struct direct_watch *watch, __u64 time)
{
	if (!orders.shapes_from)
		return 0;
	if (orders.shaper)
		return 1;
	if (watch->rate < orders.shapes_from)
		return 0;
	if (!watch->asked_at || time - watch->asked_at > ASKED_AGAIN_NS)
		watch->asked_at = time;
	return time - watch->asked_at < SHAPED_WITHIN_NS;
}

SEC("tc")
int direct_watch(struct __sk_buff *skb)
{
	__u32 link = skb->tc_index & ~CARRIED_MASK, backlog;
	struct direct_watch *watch;
	__u64 time, drained;

	if ((skb->tc_index & CARRIED_MASK) != LEAVING)
		return TC_ACT_UNSPEC;
	/* A veth's other end would read it as well. */
	skb->tc_index = 0;
	watch = bpf_map_lookup_elem(&watches, &link);
	if (!watch)
		return TC_ACT_UNSPEC;
	backlog = standing_bytes(skb, watch);
	if (!backlog) {
		if (watch->standing_since)
			watch->standing_since = 0;
		return TC_ACT_UNSPEC;
	}
	time = bpf_ktime_get_ns();
	drained = queue_drained(device_of(skb), watch->queue, watch->drained + skb->len);
	if (!watch->standing_since || time - watch->seen_at > UNSEEN_NS) {
		watch->standing_since = time;
	} else {
		watch->measured_ns += time - watch->seen_at;
		watch->left += drained - watch->drained;
		watch->stood_ns += time - watch->seen_at;
		watch->stood_left += drained - watch->drained;
		if (watch->measured_ns >= MEASURED_NS) {
			watch->rate = watch->left * 1000000 / watch->measured_ns ?: 1;
			watch->rate_at = time;
			if (watch->rate >= ENGINE_BYTES_PER_MS)
				watch->fast_at = time;
			watch->measured_ns = 0;
			watch->left = 0;
		}
	}
	watch->seen_at = time;
	watch->drained = drained;
	if (time - watch->standing_since >= STANDING_NS) {
		if ((!watch->fast_at || time > watch->fast_at + SLOWED_NS) &&
		    !may_be_shaped(watch, time))
			close_link(link, &orders);
		watch->standing_since = 0;
	}
	return TC_ACT_UNSPEC;
}

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, DIRECT_ARRIVED);
	__type(key, __u64);	/* the source's address, and the number of the link in bits 55..48 */
	__type(value, __u32);	/* frames, a GSO frame as its segments; wraps */
} arrived SEC(".maps");

/* Of those that are counted in it, what came long behind later frames of its flow. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, DIRECT_ARRIVED);
	__type(key, __u64);
	__type(value, __u32);
} arrived_late SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DIRECT_ARRIVED);
	__type(key, __u32);
	__type(value, struct direct_arrived);
} arrived_first SEC(".maps");

/* Of those whose place another one had first. */
static __always_inline void count_among_others(void *map, __u64 key, __u32 segments)
{
	__u32 zero = 0, *known;

	known = bpf_map_lookup_elem(map, &key);
	if (!known) {
		/* Another processor may have been faster. */
		bpf_map_update_elem(map, &key, &zero, BPF_NOEXIST);
		known = bpf_map_lookup_elem(map, &key);
	}
	if (known)
		__sync_fetch_and_add(known, segments);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DIRECT_FLOWS);
	__type(key, __u32);
	__type(value, struct direct_flow);
} flows SEC(".maps");

/* Whether something later of its TCP flow was there much before it. Where several processors take a flow in it is not exact. */
static __always_inline int is_late(struct __sk_buff *skb)
{
	struct direct_flow *seen;
	struct flow flow;
	__s32 ahead;
	__s64 pause;
	__u64 time;

	if (!flow_read(skb, &flow) || !flow.payload)
		return 0;
	seen = bpf_map_lookup_elem(&flows, &flow.bucket);
	if (!seen)
		return 0;
	time = bpf_ktime_get_ns();
	/* Another processor may have seen it later than now. */
	pause = time - seen->then_at;
	ahead = flow.sequence - seen->next;
	if (seen->check != flow.check || pause >= FORGOTTEN_NS || ahead > FAR || ahead < -FAR) {
		seen->check = flow.check;
		seen->next = seen->then = seen->before = flow.sequence;
		seen->then_at = time;
	} else if (pause >= LATE_NS) {
		seen->before = seen->then;
		seen->then = seen->next;
		seen->then_at = time;
	}
	if ((__s32)(flow.sequence + flow.payload - seen->next) > 0)
		seen->next = flow.sequence + flow.payload;
	return (__s32)(flow.sequence - seen->before) < 0;
}

SEC("tc")
int direct_arrive(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	struct direct_arrived *first;
	__u32 place, late;
	__u64 key;

	if ((skb->tc_index & CARRIED_MASK) != ARRIVING || (void *)(header + 1) > data_end)
		return TC_ACT_UNSPEC;
	key = (__u64)(skb->tc_index & ~CARRIED_MASK) << 48 | source_of(header);
	skb->tc_index = 0;
	late = orders.watches_flows && is_late(skb) ? segments_of(skb) : 0;
	place = key * DIRECT_ARRIVED_FACTOR >> DIRECT_ARRIVED_SHIFT;
	first = bpf_map_lookup_elem(&arrived_first, &place);
	if (first && !first->key)
		first->key = key;
	if (first && first->key == key) {
		first->segments += segments_of(skb);
		first->late += late;
	} else {
		count_among_others(&arrived, key, segments_of(skb));
		if (late)
			count_among_others(&arrived_late, key, late);
	}
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
