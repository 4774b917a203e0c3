/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Samples of what is dropped, for who wants to look at it: copied to a ring, so many a second and no more. */
#ifndef PACKTRAIN_FILTER_SAMPLE_BPF_H
#define PACKTRAIN_FILTER_SAMPLE_BPF_H

#include "filter_hook.bpf.h"
#include "filter_rules.bpf.h"

/* Maps of one entry, of these names. */
struct filter_sampling sampling SEC(".data.sampling");
struct filter_sampled sampled SEC(".data.sampled");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FILTER_SAMPLES_LEN);
} samples SEC(".maps");

/* What is copied, before it is known whether the ring has room for it. */
struct sample_scratch {
	struct filter_sample head;
	__u8 bytes[FILTER_SAMPLE_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_scratch);
} sample_scratch SEC(".maps");

/* Whether one is due: as a bucket of rules gives, of the processor that comes first. */
static __always_inline int is_sample_due(__u64 now)
{
	__u64 next = *(volatile __u64 *)&sampled.next_ns;
	__u64 then = (next > now ? next : now) + sampling.interval_ns;

	if (then > now + sampling.interval_ns + sampling.burst_ns)
		return 0;
	return __sync_val_compare_and_swap(&sampled.next_ns, next, then) == next;
}

/* By itself to the verifier; a frame that somebody samples may cost more. */
__noinline int take_sample(filter_context *ctx, __u32 reason)
{
	struct rule_scratch *rules = rules_scratch();
	struct sample_scratch *scratch;
	__u32 zero = 0, len = sampling.len;
	__u64 now = bpf_ktime_get_ns();

	if (now > sampling.until_ns || !(sampling.reasons >> (reason & 63) & 1))
		return 0;
	__sync_fetch_and_add(&sampled.seen, 1);
	scratch = bpf_map_lookup_elem(&sample_scratch, &zero);
	if (!scratch || !rules || !is_sample_due(now))
		return 0;
	scratch->head.time_ns = now;
	scratch->head.len = len_of(ctx);
	if (len > scratch->head.len)
		len = scratch->head.len;
	if (len > FILTER_SAMPLE_MAX)
		len = FILTER_SAMPLE_MAX;
	/* The verifier lets nobody load nothing. */
	if (!len || load_bytes(ctx, scratch->bytes, len))
		return 0;
	scratch->head.captured = len;
	scratch->head.reason = reason;
	scratch->head.rule = rules->walk.rule;
	scratch->head.image = rules->walk.image;
	if (bpf_ringbuf_output(&samples, scratch, sizeof(scratch->head) + len, 0))
		__sync_fetch_and_add(&sampled.full, 1);
	else
		__sync_fetch_and_add(&sampled.taken, 1);
	return 0;
}

#endif
