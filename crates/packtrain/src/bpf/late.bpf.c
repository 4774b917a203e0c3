// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * For tests of order: now and then a frame that leaves an interface stays where it is for milliseconds, between
 * the programs there and the queue behind them, as if its processor had been taken away from the host. Nobody
 * else sees it meanwhile.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define ONE_IN		100
#define LATE_NS		3000000ULL
/* More looks at the clock than that time has room for. */
#define LOOKS_MAX	1000000

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} late_frames SEC(".maps");

static long is_over(__u32 look, void *until)
{
	return bpf_ktime_get_ns() >= *(__u64 *)until;
}

SEC("tc")
int late(struct __sk_buff *skb)
{
	__u64 until = bpf_ktime_get_ns() + LATE_NS;
	__u32 zero = 0, *count;

	if (bpf_get_prandom_u32() % ONE_IN)
		return TC_ACT_UNSPEC;
	count = bpf_map_lookup_elem(&late_frames, &zero);
	if (count)
		__sync_fetch_and_add(count, 1);
	bpf_loop(LOOKS_MAX, is_over, &until, 0);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
