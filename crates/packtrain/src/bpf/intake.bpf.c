// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which of pt0's HTB queues a frame waits in: a leaf by the hash of its flow, or the direct queue,
 * which is not shaped and costs least.
 *
 * The direct queue is emptied before the leaves, so a frame must not be put there while a frame
 * of its flow waits in a leaf. HTB classifies under its root lock, so the length that is
 * read here is that of this instant.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "intake.h"

#define DIRECT	0	/* no class: HTB's direct queue */

struct qdisc_skb_head {
	__u32 qlen;
} __attribute__((preserve_access_index));

struct Qdisc {
	struct qdisc_skb_head q;
} __attribute__((preserve_access_index));

struct net_device {
	struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

/* Linux 6.2. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} state SEC(".maps");

/* What does not know says no: then frames go on through the leaves, at a rate that never holds. */
static __always_inline int nothing_waits(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb;

	if (!bpf_ksym_exists(bpf_cast_to_kern_ctx))
		return 0;
	kernel_skb = bpf_cast_to_kern_ctx(skb);
	return kernel_skb->dev->qdisc->q.qlen == 0;
}

SEC("tc")
int intake_classify(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u32 *now = bpf_map_lookup_elem(&state, &zero);

	if (!now || *now == INTAKE_UNUSED)
		return DIRECT;
	if (*now == INTAKE_OPEN && nothing_waits(skb))
		return DIRECT;
	return INTAKE_MAJOR << 16 | (INTAKE_FIRST_LEAF + bpf_get_hash_recalc(skb) % INTAKE_LEAVES);
}

char _license[] SEC("license") = "Dual MIT/GPL";
