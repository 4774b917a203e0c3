/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which of the ways to a peer a direct frame takes: what has kept its order so far, or, of a flow that may be
 * disordered a little, each frame the link by which it is there first.
 */
#ifndef PACKTRAIN_WAY_BPF_H
#define PACKTRAIN_WAY_BPF_H

#include "direct.h"
#include "class.h"
#include "queue.bpf.h"

/* As fast as this is a link of which it is not known: 10 Gbit/s, in bytes a millisecond. */
#define STRIPE_RATE_UNKNOWN	1250000
/* No link is faster: 1 Tbit/s. */
#define STRIPE_RATE_MAX		125000000
/* What was measured so long ago may be another rate now. */
#define STRIPE_RATE_AGE_NS	60000000000LL
/* By a link on which something stands no frame is there before one by a link that is idle. */
#define STRIPE_STANDS		(1ULL << 40)
/* By how much the fastest may be faster: a slower one brings less than the disorder takes. */
#define STRIPE_SLOWER		3
/* … and by how much for a frame that is on the slower one for 0.2 ms at most: TCP puts up with that. */
#define STRIPE_SLOWER_SHORT	5
#define STRIPE_SHORT_NS		200000
/*
 * After so many frames that found the flow's link idle one goes by another idle one: a queue that stands behind a link is
 * not seen here, but by the receiver, when what went by the other one overtakes it.
 */
#define STRIPE_STAYS		64

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

static __always_inline int may_take(const struct direct_way *way, int path,
				    const struct direct_orders *told)
{
	return path >= (int)way->least &&
	       (path == CLASS_PATH_DIRECT || !is_closed(way->link, told));
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
		if (may_take(way, path, told))
			return way;
	}
	return NULL;
}

static __always_inline int takes_stripes(const struct direct_way *way, int path,
					 const struct direct_orders *told)
{
	return way->flags & DIRECT_WAY_STRIPED && may_take(way, path, told);
}

/*
 * Bytes a millisecond; 0: not known. What was measured long ago may be more now: it counts as twice as much each minute,
 * until the link is used again, and measured.
 */
static __always_inline __u32 rate_of(struct direct_watch *watch)
{
	/* The coarse clock may be behind the one that it was measured by. */
	__u64 time = bpf_ktime_get_coarse_ns();
	__s64 age = time - watch->rate_at;

	if (age >= STRIPE_RATE_AGE_NS && watch->rate && watch->rate < STRIPE_RATE_MAX) {
		watch->rate *= 2;
		watch->rate_at = time;
	}
	return watch->rate;
}

/* Bytes that stand in one of a link's queues. Not static: the verifier looks at it once, and not for each way anew. */
__noinline int link_backlog(struct __sk_buff *skb, __u32 ifindex, __u32 queue)
{
	struct net_device *device = device_beside(device_of(skb), ifindex);

	if (!device)
		return 0;
	return queue_backlog(device, queue < device->real_num_tx_queues ? queue : 0);
}

/* What `choose_stripe` says beside the place of a way: it is tried once, and the flow stays where it is. */
#define STRIPE_PROBES		DIRECT_WAYS

/*
 * The link by which a frame of a flow is there first that may be disordered a little: its place among the ways, or less than 0.
 * One that is idle always takes: what a socket has under way is so little that by the clock alone a slower one would hardly have
 * its turn. Not static, for its branches would be looked at with each of those around it.
 */
__noinline int choose_stripe(struct __sk_buff *skb, struct direct_destination *destination,
			     struct direct_slot *slot, int path, const struct direct_orders *told)
{
	struct direct_watch *watches_of[DIRECT_WAYS] = {}, *watch;
	int is_last_idle = 0, best = -1;
	__u32 fastest = 0, rate, backlog, link, chosen = 0;
	struct direct_way *way;
	__u64 late, least = 0;

	if (!destination || !slot || !told)
		return -1;
	#pragma unroll
	for (__u32 i = 0; i < DIRECT_WAYS; i++) {
		way = &destination->ways[i];
		link = way->link;
		watch = bpf_map_lookup_elem(&watches, &link);
		if (i >= destination->ways_count || !watch || !takes_stripes(way, path, told))
			continue;
		watches_of[i] = watch;
		rate = rate_of(watch);
		if (rate > fastest)
			fastest = rate;
	}
	if (!fastest)
		fastest = STRIPE_RATE_UNKNOWN;
	#pragma unroll
	for (__u32 i = 0; i < DIRECT_WAYS; i++) {
		way = &destination->ways[i];
		watch = watches_of[i];
		if (!watch)
			continue;
		rate = watch->rate ?: fastest;
		late = skb->len * 1000000ULL / rate;
		if (rate * (late > STRIPE_SHORT_NS ? STRIPE_SLOWER : STRIPE_SLOWER_SHORT) < fastest)
			continue;
		backlog = 0;
		if (way->flags & DIRECT_WAY_WATCHED)
			backlog = link_backlog(skb, way->ifindex, watch->queue);
		if (backlog) {
			late += STRIPE_STANDS + backlog * 1000000ULL / rate;
		} else if (slot->stripe == way->link + 1) {
			late = slot->stayed < STRIPE_STAYS ? 0 : STRIPE_STANDS - 1;
			is_last_idle = 1;
		}
		if (best < 0 || late < least) {
			best = i;
			chosen = way->link + 1;
			least = late;
		}
	}
	if (best < 0)
		return -1;
	slot->stayed = least || slot->stripe != chosen ? 0 : slot->stayed + 1;
	return is_last_idle && slot->stripe != chosen ? best | STRIPE_PROBES : best;
}

/* A small frame of a flow that is spread follows the large one before it. */
static __always_inline struct direct_way *follow_stripe(struct direct_destination *destination,
							const struct direct_slot *slot, int path,
							const struct direct_orders *told)
{
	struct direct_way *way;

	for (__u32 i = 0; i < DIRECT_WAYS && i < destination->ways_count; i++) {
		way = &destination->ways[i];
		if (slot->stripe == way->link + 1 && takes_stripes(way, path, told))
			return way;
	}
	return NULL;
}

#endif
