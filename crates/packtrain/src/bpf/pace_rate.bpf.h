/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* How fast a stream leaves that has a rule: packtrain-proto, pacing/rate.rs, once more. A test compares the two. */
#ifndef PACKTRAIN_PACE_RATE_BPF_H
#define PACKTRAIN_PACE_RATE_BPF_H

#include "pace.h"

/* The part of one of so many streams, in bytes of segments without headers. */
static __always_inline __u64 rate_share(__u64 rate, __s32 streams, __u32 mss, __u32 headers)
{
	__u64 share = streams > 1 ? rate / (__u32)streams : rate;
	__u64 whole = (__u64)mss + headers;

	if (!whole)
		return share;
	/* In two steps, so that no product overflows. */
	share = share / whole * mss + share % whole * mss / whole;
	return share ? share : 1;
}

/* A path's rate: a little more for a while, then twice as much less, so that what has queued drains, and as it is for the rest. */
static __always_inline __u64 rate_probing(__u64 rate, __u64 since_ns, __u64 unit_ns)
{
	__u64 place = since_ns / (unit_ns ? unit_ns : 1) % PACE_PROBE_EVERY;

	if (place == 0)
		return rate + rate / PACE_PROBE_DIVISOR;
	if (place == 1)
		return rate - 2 * (rate / PACE_PROBE_DIVISOR);
	return rate;
}

#endif
