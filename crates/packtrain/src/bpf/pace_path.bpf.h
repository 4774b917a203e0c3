/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which paths are remembered: what each carried when it was full, and its least round trip (packtrain-proto, pacing/path.rs). How
 * that is found out is pace_memory.bpf.h.
 */
#ifndef PACKTRAIN_PACE_PATH_BPF_H
#define PACKTRAIN_PACE_PATH_BPF_H

#include "pace.h"
#include "pace_kernel.bpf.h"
#include "pace_memory.bpf.h"

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

static __always_inline __u32 path_window(__u64 rate, __u32 rtt_min_us, __u32 mss)
{
	/* rate * rtt overflows above 90 Tbit/s · s, which no path is. */
	__u64 segments = rate * rtt_min_us / 1000000 / (mss ? mss : 1);

	if (segments < PACE_WINDOW_MIN)
		return PACE_WINDOW_MIN;
	return segments > 0xffffffffULL ? 0xffffffff : segments;
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

#endif
