// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The direct path: frames that the engine can do nothing for go past it.
 *
 * direct_leave    tc egress of pt0: sends a frame for a peer's pt0 straight to the member link, or
 *                 lets it go on to the engine.
 * direct_watch    tc egress of the member link: sees when direct frames begin to stand there, for
 *                 then the engine has something to gain: it lets flows take turns, and packs.
 *
 * The receiving end is guard_ingress.
 *
 * Order: the direct path is the faster one, so a frame on it would overtake those of its flow that
 * are still in the engine, on the wire or in the peer's. Each frame that goes to the engine takes a
 * ticket and leaves it in its flow's slot; the engine's owner says up to which ticket all
 * was delivered. A flow goes direct when its last ticket is among those. The other way
 * needs nothing on a link whose queue is first in, first out, and only on such ones is there a direct
 * path: what goes to the engine comes later than what went direct before.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>

#include "direct.h"
#include "ethernet.h"
#include "class.bpf.h"

#define VLAN_TAG_LEN		4

/* A queue that never was empty for so long stands; one that is shorter-lived is a burst. */
#define STANDING_NS		5000000ULL
/* Not looked at for so long, it may have been empty in between. */
#define UNSEEN_NS		100000000ULL
/* What leaves faster than this (250 bytes a microsecond, 2 Gbit/s) is more than the engine carries. */
#define ENGINE_BYTES_PER_US	250

/*
 * So many small frames a second cost the host more one by one than packed. It is more than one
 * question and answer after the other come to (some 50,000), which would only wait longer.
 */
#define SMALL_BYTES		300
#define SMALL_PER_MS		80
#define SMALL_WINDOW_NS		20000000ULL

struct gnet_stats_queue {
	__u32 backlog;
} __attribute__((preserve_access_index));

struct Qdisc {
	__u32 handle;
	struct gnet_stats_queue qstats;
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
	struct Qdisc *qdisc;
	struct bpf_mprog_entry *tcx_egress;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

/* Linux 6.2; tcx, by which these programs are attached, is of 6.6. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct direct_orders);
} orders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct direct_state);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DIRECT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * DIRECT_DESTINATIONS);
	__type(key, __u64);
	__type(value, struct direct_destination);
} destinations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DIRECT_LINKS);
	__type(key, __u32);
	__type(value, struct direct_watch);
} watches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DIRECT_COUNTERS);
	__type(key, __u32);
	__type(value, struct direct_traffic);
} leaving SEC(".maps");

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
					__u32 ifindex)
{
	__u64 time = bpf_ktime_get_coarse_ns();
	__u64 elapsed = time - now->small_since;

	now->small_frames += 1;
	if (elapsed < SMALL_WINDOW_NS)
		return;
	if (now->small_frames * 1000000 > elapsed * SMALL_PER_MS) {
		now->closed_by = ifindex;
		now->closed = told->opening;
	}
	now->small_frames = 0;
	now->small_since = time;
}

/* A TAP does not carry the mark: the engine reads it out of the address that it knows anyway. */
static __always_inline void tell_mark(struct __sk_buff *skb, __u64 host_address)
{
	struct ethernet_header header;
	__u8 source[6] = { DIRECT_MARKED_0, DIRECT_MARKED_1 };

	if (bpf_skb_load_bytes(skb, 0, &header, sizeof(header)) ||
	    mac_of(header.source) != host_address)
		return;
	for (int i = 0; i < 4; i++)
		source[2 + i] = skb->mark >> (24 - 8 * i);
	bpf_skb_store_bytes(skb, sizeof(header.destination), source, sizeof(source), 0);
}

SEC("tc")
int direct_leave(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	struct direct_destination *destination;
	struct direct_traffic *traffic;
	struct direct_orders *told;
	struct direct_state *now;
	struct class_walk class;
	__u32 zero = 0, slot_number;
	__u64 *slot, address, ticket;
	__u16 ether_type;
	int is_small, path = CLASS_PATH_AUTO;

	told = bpf_map_lookup_elem(&orders, &zero);
	now = bpf_map_lookup_elem(&state, &zero);
	slot_number = bpf_get_hash_recalc(skb) % DIRECT_SLOTS;
	slot = bpf_map_lookup_elem(&slots, &slot_number);
	if (!told || !now || !slot)
		return TC_ACT_UNSPEC;
	if (told->classes_count) {
		class_find(skb, &class, told->classes_first, told->classes_count);
		path = class.path;
	}
	if (path == CLASS_PATH_ENGINE ||
	    (path != CLASS_PATH_DIRECT && now->closed == told->opening) ||
	    *slot > told->drained || (void *)(header + 1) > data_end ||
	    has_foreign_tc(skb, told, now))
		goto engine;
	ether_type = bpf_ntohs(header->ether_type);
	if (mac_of(header->source) != told->host_address || ether_type == ETHERTYPE_PACKTRAIN)
		goto engine;
	address = mac_of(header->destination);
	destination = bpf_map_lookup_elem(&destinations, &address);
	if (!destination || !fits(skb, ether_type, destination->payload_max) ||
	    (destination->only_classes && path != CLASS_PATH_DIRECT))
		goto engine;
	is_small = skb->len <= SMALL_BYTES && !is_empty_tcp(data, data_end, ether_type);
	/* Both addresses, as they stand one after the other in the header and in the map. */
	if (bpf_skb_store_bytes(skb, 0, destination->outer_destination, 12, 0))
		goto engine;
	/* The peer is told, and says how many of them have come. */
	__sync_fetch_and_add(&destination->segments, segments_of(skb));
	traffic = bpf_map_lookup_elem(&leaving, &destination->counter);
	if (traffic) {
		traffic->frames += 1;
		traffic->bytes += skb->len;
	}
	if (is_small)
		count_small(now, told, destination->ifindex);
	return bpf_redirect(destination->ifindex, 0);

engine:
	ticket = __sync_fetch_and_add(&now->tickets, 1) + 1;
	/* Another flow of this slot may have had a later one meanwhile. */
	if (*slot < ticket)
		*slot = ticket;
	if (told->urgent_count) {
		/* HTB puts what names itself into its direct queue, which is emptied before all others. */
		class_find(skb, &class, told->classes_first, told->urgent_count);
		if (class.urgent)
			skb->priority = told->qdisc;
	}
	if (told->tells_marks && skb->mark)
		tell_mark(skb, told->host_address);
	return TC_ACT_UNSPEC;
}

/* Bytes in the link's own queue; 0 where there is none, or where it cannot be seen. */
static __always_inline __u32 backlog_of(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);

	return kernel_skb->dev->_tx->qdisc->qstats.backlog;
}

SEC("tc")
int direct_watch(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	__u32 zero = 0, ifindex = skb->ifindex;
	struct direct_orders *told;
	struct direct_watch *watch;
	struct direct_state *now;
	__u64 time, standing;

	watch = bpf_map_lookup_elem(&watches, &ifindex);
	if (!watch || (void *)(header + 1) > data_end || mac_of(header->source) != watch->source)
		return TC_ACT_UNSPEC;
	if (!backlog_of(skb)) {
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
	told = bpf_map_lookup_elem(&orders, &zero);
	now = bpf_map_lookup_elem(&state, &zero);
	if (told && now && watch->standing_bytes * 1000 < standing * ENGINE_BYTES_PER_US) {
		now->closed_by = ifindex;
		now->closed = told->opening;
	}
	watch->standing_since = 0;
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
