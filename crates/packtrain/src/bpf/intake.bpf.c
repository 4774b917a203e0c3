// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The program of the queue before pt0: sorts frames (intake.bpf.h), and lets another one do it that may take them
 * out (ring.bpf.c), for as long as there is somebody who reads what that takes.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct Qdisc;

struct net_device {
	struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

#include "intake.bpf.h"

/* Empty when the last process is gone that has it open, however that ended: so says the kernel of this kind of map. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} instead SEC(".maps");

SEC("tc")
int intake_classify(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &instead, 0);
	return intake_sort(skb);
}

char _license[] SEC("license") = "Dual MIT/GPL";
