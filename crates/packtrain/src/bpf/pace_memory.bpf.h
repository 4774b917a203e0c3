/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How it is found out what a path carries: packtrain-proto, pacing/memory.rs, once more. A test compares the two. It is measured over
 * all streams of a destination together, in windows of a quarter of a round trip, of which three (of streams that are paced by it two) count as the least: acknowledgements that
 * were held up come in a bunch behind a pause. It is known from the first loss on. Where more is carried than that, it is more;
 * it is less where who went by it has lost.
 */
#ifndef PACKTRAIN_PACE_MEMORY_BPF_H
#define PACKTRAIN_PACE_MEMORY_BPF_H

#include <stdbool.h>

#include "pace.h"

/* What a connection with this round trip is told of the path: bytes a second and round trip; 0: nothing. */
static __always_inline __u64 path_rate(const struct pace_path *path, __u32 rtt_us, __u64 age_max_ns, __u64 now)
{
	__u64 least = path->rtt_min_us;

	if (!path->rate || !least || now - path->full_at_ns > age_max_ns)
		return 0;
	if (rtt_us < least / 2 || rtt_us > least * 4)
		return 0;
	return path->rate;
}

/* Deliveries of a time as long are some windows of what is measured. */
static __always_inline __u64 path_unit_ns(__u32 rtt_min_us)
{
	__u64 rtt_ns = (__u64)rtt_min_us * 1000;

	return rtt_ns > 4 * PACE_WINDOW_NS_MIN ? rtt_ns : 4 * PACE_WINDOW_NS_MIN;
}

/* So many round trips of the last cut that counted. */
static __always_inline bool path_is_within(const struct pace_path *path, __u32 round_trips, __u64 now)
{
	return path->cut_at_ns && now - path->cut_at_ns < round_trips * ((__u64)path->rtt_min_us * 1000);
}

/*
 * The path was full. `is_less`: what is remembered was too much. The loss may have been by chance, and what was sustained then be
 * what a slow start had reached: so it takes half at most, and what all streams lose in one round trip is one loss. In the next ones
 * it is repaired, by windows that were cut and by timers: what is lost then is no reason to believe what they let through. A
 * path that carries less loses again.
 */
static __always_inline void path_full(struct pace_path *path, bool is_less, __u64 now)
{
	__u64 rate = path->sustained_rate;
	bool is_new = !path_is_within(path, PACE_REPAIR_ROUND_TRIPS, now);

	if (is_less && is_new) {
		path->cut_at_ns = now;
		path->cut_rate_min = path->rate / 2;
	}
	if (is_less && rate && (is_new || path_is_within(path, 1, now)))
		path->rate = rate > path->cut_rate_min ? rate : path->cut_rate_min;
	else if (rate > path->rate)
		path->rate = rate;
	path->full_at_ns = now;
	path->raised = 0;
	path->raised_rate = path->rate;
	/* Not more of it at once. */
	path->cycle_began_ns = now - 2 * path_unit_ns(path->rtt_min_us);
}

/* More is carried: there may be still more. Twice as much more, if what was tried is carried and not a little more by chance. */
static __always_inline void path_raised(struct pace_path *path, __u64 now)
{
	__u64 since = now - path->raised_at_ns;
	__u64 unit = path_unit_ns(path->rtt_min_us);

	path->cycle_began_ns = now;
	if (since < unit || path->rate < path->raised_rate + path->raised_rate / PACE_RAISED_DIVISOR)
		return;
	if (since >= 4 * unit)
		path->raised = 1;
	else if (path->raised < PACE_RAISED_MAX)
		path->raised++;
	path->raised_at_ns = now;
	path->raised_rate = path->rate;
}

/* So many bytes have arrived there. `is_paced`: of a stream that goes by what is remembered. */
static __always_inline void path_delivered(struct pace_path *path, __u64 bytes, __u32 rtt_us, bool is_paced, __u64 now)
{
	__u64 began = path->window_began_ns;
	__u64 length = now - began;
	__u64 window_ns = (__u64)path->rtt_min_us * 1000 / 4;
	__u64 rate, former;

	path->seen_at_ns = now;
	if (rtt_us && (!path->rtt_min_us || rtt_us < path->rtt_min_us))
		path->rtt_min_us = rtt_us;
	__sync_fetch_and_add(&path->window_bytes, bytes);
	if (window_ns < PACE_WINDOW_NS_MIN)
		window_ns = PACE_WINDOW_NS_MIN;
	if (length < window_ns)
		return;
	/* One of those that come here at the same time ends the window. */
	if (__sync_val_compare_and_swap(&path->window_began_ns, began, now) != began)
		return;
	bytes = __sync_lock_test_and_set(&path->window_bytes, 0);
	/* A pause is not a measure: what comes after one begins a window. */
	if (length > 4 * window_ns) {
		path->window_rate = 0;
		path->former_rate = 0;
		path->sustained_rate = 0;
		return;
	}
	/* bytes * 10⁹ overflows above 18 GB. */
	rate = bytes < (1ULL << 33) ? bytes * 1000000000ULL / length : bytes / (length / 1000000000ULL + 1);
	former = path->window_rate < path->former_rate || is_paced ? path->window_rate : path->former_rate;
	path->former_rate = path->window_rate;
	path->window_rate = rate;
	if (former < rate)
		rate = former;
	path->sustained_rate = rate;
	/* What is acknowledged in the round trip after a loss was sent before anybody knew of it: the path was full of that. */
	if (rate && rate < path->rate && path_is_within(path, 1, now)) {
		if (rate < path->cut_rate_min)
			rate = path->cut_rate_min;
		if (rate < path->rate)
			path->rate = rate;
		return;
	}
	if (!path->rate || rate < path->rate - path->rate / 8)
		return;
	path->full_at_ns = now;
	if (rate > path->rate) {
		path->rate = rate;
		path_raised(path, now);
	}
}

#endif
