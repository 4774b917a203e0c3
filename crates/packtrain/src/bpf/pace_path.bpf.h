/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is remembered of each path: what it carried when it was full, and its least round trip (packtrain-proto,
 * pacing/path.rs). It is measured over all streams of a destination together, in windows of a quarter of a round trip, of which two
 * count as the lesser: acknowledgements that were held up come in a bunch behind a pause. It is known from the first loss
 * on. Where more is carried than that, it is more; it is less where slow start has lost, though it ended there.
 */
#ifndef PACKTRAIN_PACE_PATH_BPF_H
#define PACKTRAIN_PACE_PATH_BPF_H

#include "pace.h"
#include "pace_kernel.bpf.h"

/* Shorter windows would measure how acknowledgements were bunched. */
#define WINDOW_NS_MIN	10000000ULL

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PACE_PATHS);
	__type(key, struct pace_path_key);
	__type(value, struct pace_path);
} paths SEC(".maps");

static __always_inline void path_key(struct sock *sk, struct pace_path_key *key)
{
	struct sock_common *common = &sk->__sk_common;

	key->netns = common->skc_net.net->net_cookie;
	if (common->skc_family == AF_INET6) {
		key->address[0] = common->skc_v6_daddr.in6_u.u6_addr32[0];
		key->address[1] = common->skc_v6_daddr.in6_u.u6_addr32[1];
		key->address[2] = common->skc_v6_daddr.in6_u.u6_addr32[2];
		key->address[3] = common->skc_v6_daddr.in6_u.u6_addr32[3];
	} else {
		key->address[0] = 0;
		key->address[1] = 0;
		key->address[2] = bpf_htonl(0xffff);
		key->address[3] = common->skc_daddr;
	}
}

static __always_inline void path_sends_more(struct pace_path *path)
{
	__sync_fetch_and_add(&path->sending, 1);
}

/* An entry that was forgotten meanwhile has never heard of this one. */
static __always_inline void path_sends_less(struct pace_path *path)
{
	if (path->sending > 0)
		__sync_fetch_and_add(&path->sending, -1);
}

static __always_inline struct pace_path *path_of(struct sock *sk)
{
	struct pace_path_key key = {};

	path_key(sk, &key);
	return bpf_map_lookup_elem(&paths, &key);
}

static __always_inline struct pace_path *path_of_new(struct sock *sk)
{
	struct pace_path_key key = {};
	struct pace_path *path;
	struct pace_path empty = {};

	path_key(sk, &key);
	path = bpf_map_lookup_elem(&paths, &key);
	if (path)
		return path;
	bpf_map_update_elem(&paths, &key, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&paths, &key);
}

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

static __always_inline __u32 path_window(__u64 rate, __u32 rtt_min_us, __u32 mss)
{
	/* rate * rtt overflows above 90 Tbit/s · s, which no path is. */
	__u64 segments = rate * rtt_min_us / 1000000 / (mss ? mss : 1);

	if (segments < PACE_WINDOW_MIN)
		return PACE_WINDOW_MIN;
	return segments > 0xffffffffULL ? 0xffffffff : segments;
}

/* Deliveries of a time as long are some windows of what is measured. */
static __always_inline __u64 path_unit_ns(__u32 rtt_min_us)
{
	__u64 rtt_ns = (__u64)rtt_min_us * 1000;

	return rtt_ns > 4 * WINDOW_NS_MIN ? rtt_ns : 4 * WINDOW_NS_MIN;
}

/* Bytes a second of it that somebody has now: what arrives there, and what streams have jumped to in the last round trip and a
 * quarter, of which nothing was measured yet. Two at the same moment may not see each other. */
static __always_inline __u64 path_taken(const struct pace_path *path, __u64 now)
{
	__u64 unit_ns = path_unit_ns(path->rtt_min_us);
	__u64 taken = now - path->window_began_ns > unit_ns ? 0 : path->window_rate;

	if (now - path->jumped_at_ns < unit_ns + unit_ns / 4)
		taken += path->jumped_rate;
	return taken;
}

static __always_inline void path_jumped(struct pace_path *path, __u64 rate, __u64 now)
{
	__u64 unit_ns = path_unit_ns(path->rtt_min_us);

	path->jumped_rate = now - path->jumped_at_ns < unit_ns + unit_ns / 4 ? path->jumped_rate + rate : rate;
	path->jumped_at_ns = now;
}

/* The path was full. `is_less`: what is remembered was too much. */
static __always_inline void path_full(struct pace_path *path, bool is_less, __u64 now)
{
	__u64 rate = path->sustained_rate;

	if (rate && (is_less || rate > path->rate))
		path->rate = rate;
	path->full_at_ns = now;
	/* Not more of it at once. */
	path->cycle_began_ns = now - 2 * path_unit_ns(path->rtt_min_us);
}

/* So many bytes have arrived there. */
static __always_inline void path_delivered(struct pace_path *path, __u64 bytes, __u32 rtt_us, __u64 now)
{
	__u64 began = path->window_began_ns;
	__u64 length = now - began;
	__u64 window_ns = (__u64)path->rtt_min_us * 1000 / 4;
	__u64 rate, former;

	path->seen_at_ns = now;
	if (rtt_us && (!path->rtt_min_us || rtt_us < path->rtt_min_us))
		path->rtt_min_us = rtt_us;
	__sync_fetch_and_add(&path->window_bytes, bytes);
	if (window_ns < WINDOW_NS_MIN)
		window_ns = WINDOW_NS_MIN;
	if (length < window_ns)
		return;
	/* One of those that come here at the same time ends the window. */
	if (__sync_val_compare_and_swap(&path->window_began_ns, began, now) != began)
		return;
	bytes = __sync_lock_test_and_set(&path->window_bytes, 0);
	/* A pause is not a measure: what comes after one begins a window. */
	if (length > 4 * window_ns) {
		path->window_rate = 0;
		path->sustained_rate = 0;
		return;
	}
	/* bytes * 10⁹ overflows above 18 GB. */
	rate = bytes < (1ULL << 33) ? bytes * 1000000000ULL / length : bytes / (length / 1000000000ULL + 1);
	former = path->window_rate;
	path->window_rate = rate;
	if (former < rate)
		rate = former;
	path->sustained_rate = rate;
	if (!path->rate || rate < path->rate - path->rate / 8)
		return;
	path->full_at_ns = now;
	if (rate > path->rate) {
		path->rate = rate;
		/* There may be still more. */
		path->cycle_began_ns = now;
	}
}

#endif
