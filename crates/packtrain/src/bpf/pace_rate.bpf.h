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

/* Of a slow path a fortieth is less than a segment in a window of what is measured, which nobody would see. */
static __always_inline __u64 rate_little(__u64 rate, __u64 unit_ns, __u32 mss)
{
	__u64 segments = (__u64)mss * PACE_PROBE_SEGMENTS * 1000000000ULL / unit_ns;
	__u64 least = rate / PACE_PROBE_DIVISOR, most = rate / PACE_PROBE_DIVISOR_MIN;

	if (segments < least)
		return least;
	return segments > most ? most : segments;
}

/*
 * A path's rate: a little more for a while, then twice as much less, so that what has queued drains, and as it is for the rest.
 * `raised`: how often in a row more was carried when the cycle began, which lets twice as much more be tried each time.
 */
static __always_inline __u64 rate_probing(__u64 rate, __u64 since_ns, __u64 unit_ns, __u32 mss, __u32 raised)
{
	__u64 units, little, most = rate / PACE_PROBE_DIVISOR_MIN;

	if (!unit_ns)
		return rate;
	units = since_ns / unit_ns;
	if (units >= 2)
		raised = 0;
	if (raised > PACE_RAISED_MAX)
		raised = PACE_RAISED_MAX;
	little = rate_little(rate, unit_ns, mss) << raised;
	if (little > most)
		little = most;
	switch (units % PACE_PROBE_EVERY) {
	case 0:
		return rate + little;
	case 1:
		return rate - 2 * little;
	}
	return rate;
}

#endif
