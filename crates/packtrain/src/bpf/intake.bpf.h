/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which of pt0's HTB queues a frame waits in: a leaf of its flow's own, or the direct queue, which
 * is not shaped and costs least.
 *
 * The direct queue is emptied before the leaves, so a frame must not be put there while a frame
 * of its flow waits in a leaf. HTB classifies under its root lock, so the length that is
 * read here is that of this instant.
 *
 * Sand, small frames of flows that send little, does not wait its turn in a leaf: HTB goes around them by their numbers, so
 * behind an elephant it would be a frame of that or two. It takes the direct queue, in front of all leaves, as long as its
 * flow, and all such together, stay below a small part of the rate, and nothing of the flow can wait in its leaf. Who comes
 * to send more goes on in the leaf: what went before leaves before. Sockets are charged there as in the leaves.
 */
#ifndef PACKTRAIN_INTAKE_BPF_H
#define PACKTRAIN_INTAKE_BPF_H

#include <bpf/bpf_core_read.h>

#include "intake.h"

struct qdisc_skb_head {
	__u32 qlen;
} __attribute__((preserve_access_index));

struct Qdisc {
	struct qdisc_skb_head q;
} __attribute__((preserve_access_index));

/* Linux 6.2. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, INTAKE_ENTRIES);
	__type(key, __u32);
	__type(value, __u32);
} state SEC(".maps");

/*
 * The flow's hash says which leaves it may have, and it takes the one that was idle longest: so flows
 * share a leaf only where more than INTAKE_WAYS of them are busy, and not when two hashes meet.
 *
 * A flow must not change its leaf while a frame of it waits there. So who has to share goes by its hash
 * alone, and no leaf of the set is given out anew until nobody had to for a while.
 */
struct leaf_set {
	__u64 shared_at;
	__u64 used_at[INTAKE_WAYS];
	/* When a frame of the flow went to its leaf last; and until when its sand counts. */
	__u64 in_leaf_at[INTAKE_WAYS];
	__u64 sand_until[INTAKE_WAYS];
	__u32 flow[INTAKE_WAYS];
	/* Of the search: kept here because the verifier would follow each course of it otherwise, and
	 * take 0.2 s for that. */
	__u64 longest;
	__u32 idle;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, INTAKE_LEAVES / INTAKE_WAYS);
	__type(key, __u32);
	__type(value, struct leaf_set);
} leaf_sets SEC(".maps");

/* Until when the sand of all flows counts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} sand SEC(".maps");

static __always_inline __u32 state_of(__u32 entry)
{
	__u32 *value = bpf_map_lookup_elem(&state, &entry);

	return value ? *value : 0;
}

/* Whether a frame may go ahead of the leaves, which is counted. */
static __always_inline int is_sand(struct __sk_buff *skb, struct leaf_set *set, __u32 way, __u64 idle_ns, __u64 now)
{
	__u32 flow_ns = state_of(INTAKE_FLOW_SAND), all_ns = state_of(INTAKE_ALL_SAND), zero = 0;
	__u64 *all_until = bpf_map_lookup_elem(&sand, &zero);
	__u64 flow, all;

	if (!flow_ns || !all_until || skb->len > INTAKE_SAND_BYTES || skb->gso_size ||
	    (set->in_leaf_at[way] && now - set->in_leaf_at[way] <= idle_ns))
		return 0;
	flow = set->sand_until[way] > now ? set->sand_until[way] : now;
	all = *all_until > now ? *all_until : now;
	if (flow - now > INTAKE_SAND_BURST_NS || all - now > INTAKE_SAND_BURST_NS)
		return 0;
	set->sand_until[way] = flow + (__u64)skb->len * flow_ns;
	*all_until = all + (__u64)skb->len * all_ns;
	return 1;
}

/* Of a frame that goes ahead of the leaves. */
#define NO_LEAF			INTAKE_LEAVES

/* Who has a way of its own may go ahead of it: who shares one cannot know what of others waits there. */
static __always_inline __u32 in_way(struct __sk_buff *skb, struct leaf_set *set, __u32 first, __u32 way, __u64 idle_ns,
				    __u64 now)
{
	set->used_at[way] = now;
	if (is_sand(skb, set, way, idle_ns, now))
		return NO_LEAF;
	set->in_leaf_at[way] = now;
	return first + way;
}

/* HTB classifies under its root lock: nobody else is in here. */
static __always_inline __u32 leaf_of(struct __sk_buff *skb)
{
	__u32 flow = bpf_get_hash_recalc(skb);
	__u32 number = flow % (INTAKE_LEAVES / INTAKE_WAYS);
	__u32 first = number * INTAKE_WAYS;
	struct leaf_set *set = bpf_map_lookup_elem(&leaf_sets, &number);
	__u64 now = bpf_ktime_get_coarse_ns();
	__u64 idle_ns = state_of(INTAKE_IDLE_TIME) * 1000000ULL;
	__u32 idle;

	if (!set || !idle_ns)
		return first;
	set->longest = idle_ns;
	set->idle = INTAKE_WAYS;
	for (__u32 way = 0; way < INTAKE_WAYS; way++) {
		__u64 unused = now - set->used_at[way];

		if (set->flow[way] == flow && set->used_at[way])
			return in_way(skb, set, first, way, idle_ns, now);
		if (unused > set->longest) {
			set->longest = unused;
			set->idle = way;
		}
	}
	idle = set->idle;
	if (idle >= INTAKE_WAYS || now - set->shared_at <= idle_ns) {
		set->shared_at = now;
		return first + flow / (INTAKE_LEAVES / INTAKE_WAYS) % INTAKE_WAYS;
	}
	set->flow[idle] = flow;
	set->in_leaf_at[idle] = 0;
	set->sand_until[idle] = 0;
	return in_way(skb, set, first, idle, idle_ns, now);
}

/* What does not know says no: then frames go on through the leaves, at a rate that never holds. */
static __always_inline int nothing_waits(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb;

	if (!bpf_ksym_exists(bpf_cast_to_kern_ctx))
		return 0;
	kernel_skb = bpf_cast_to_kern_ctx(skb);
	return kernel_skb->dev->qdisc->q.qlen == 0;
}

/* The verdict for HTB: a leaf as the frame's class, or none, which is the direct queue. */
static __always_inline int intake_sort(struct __sk_buff *skb)
{
	__u32 mode = state_of(INTAKE_MODE), leaf;

	if (mode == INTAKE_UNUSED || skb->priority == (INTAKE_MAJOR << 16 | INTAKE_URGENT))
		return TC_ACT_UNSPEC;
	if (mode == INTAKE_OPEN && nothing_waits(skb))
		return TC_ACT_UNSPEC;
	leaf = leaf_of(skb);
	if (leaf == NO_LEAF)
		return TC_ACT_UNSPEC;
	skb->tc_classid = INTAKE_MAJOR << 16 | (INTAKE_FIRST_LEAF + leaf);
	return TC_ACT_OK;
}

#endif
