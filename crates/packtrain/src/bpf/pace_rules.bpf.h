/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Rules: which rate a stream has, and who shares it. A stream has the rule that held first when it was taken, or when rules
 * changed; what a rule gives is looked up each time, so that a change of it, or of those who share it, counts at once. Rules give
 * nothing any more when whoever has set them has gone without a word.
 */
#ifndef PACKTRAIN_PACE_RULES_BPF_H
#define PACKTRAIN_PACE_RULES_BPF_H

#include "pace.h"
#include "pace_kernel.bpf.h"
#include "pace_path.bpf.h"
#include "pace_rate.bpf.h"

const volatile struct pace_rules rules_now SEC(".data.rules_now");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * PACE_RULES);
	__type(key, __u32);
	__type(value, struct pace_rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * PACE_RULES);
	__type(key, __u32);
	__type(value, struct pace_rate);
} rates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PACE_PATHS);
	__type(key, struct pace_share_key);
	__type(value, struct pace_share);
} shares SEC(".maps");

/* A connection's ends: ports in the order of this machine, addresses in that of the network. */
struct pace_ends {
	__u32 local[4];
	__u32 remote[4];
	__u16 remote_port;
	__u16 local_port;
};

static __always_inline bool is_inside(const __u32 *address, const struct pace_prefix *prefix)
{
	return (address[0] & prefix->mask[0]) == prefix->address[0] &&
	       (address[1] & prefix->mask[1]) == prefix->address[1] &&
	       (address[2] & prefix->mask[2]) == prefix->address[2] &&
	       (address[3] & prefix->mask[3]) == prefix->address[3];
}

static __always_inline bool is_mapped(const __u32 *address)
{
	return !address[0] && !address[1] && address[2] == bpf_htonl(0xffff);
}

static __always_inline bool row_holds(const struct pace_row *row, const struct pace_ends *ends)
{
	__u16 port;

	switch (row->what) {
	case PACE_ROW_PORT:
		port = row->is_local ? ends->local_port : ends->remote_port;
		return port >= row->first && port <= row->last;
	case PACE_ROW_ADDRESS:
		/* ::/0 is none of IPv4's. */
		if (is_mapped(ends->remote) != (row->first == 4))
			return false;
		return row->is_local ? is_inside(ends->local, &row->prefix) : is_inside(ends->remote, &row->prefix);
	case PACE_ROW_VERSION:
		return is_mapped(ends->remote) == (row->first == 4);
	}
	return false;
}

/* A function of its own for the verifier, which would look at each of the rules' rows otherwise. */
__noinline int rule_holds(const struct pace_rule *rule, const struct pace_ends *ends)
{
	bool one = false;

	if (!rule || !ends)
		return 0;
	for (__u32 i = 0; i < PACE_ROWS && i < rule->rows; i++) {
		const struct pace_row *row = &rule->row[i];

		one |= row_holds(row, ends);
		if (!row->ends)
			continue;
		if (one == !!row->is_negated)
			return 0;
		one = false;
	}
	return 1;
}

/* The id of the first that holds; 0: none. */
static __always_inline __u32 rule_of(const struct pace_ends *ends)
{
	__u32 base = rules_now.base, count = rules_now.count;

	for (__u32 i = 0; i < PACE_RULES && i < count; i++) {
		__u32 place = base + i;
		const struct pace_rule *rule = bpf_map_lookup_elem(&rules, &place);

		if (!rule)
			break;
		if (rule->id && rule_holds(rule, ends))
			return rule->id;
	}
	return 0;
}

static __always_inline void share_key(struct sock *sk, __u32 rule, __u32 shared, struct pace_share_key *key)
{
	struct pace_path_key path = {};

	key->rule = rule;
	if (shared != PACE_EACH_DESTINATION)
		return;
	path_key(sk, &path);
	key->netns = path.netns;
	for (int i = 0; i < 4; i++)
		key->address[i] = path.address[i];
}

/* One more, or one less, sends of those that share its rule's rate. */
static __always_inline void share_changes(struct sock *sk, __u32 rule, __s32 by)
{
	const struct pace_rate *rate = rule ? bpf_map_lookup_elem(&rates, &rule) : NULL;
	struct pace_share_key key = {};
	struct pace_share empty = {};
	struct pace_share *share;

	if (!rate || rate->shared == PACE_EACH_STREAM)
		return;
	share_key(sk, rule, rate->shared, &key);
	share = bpf_map_lookup_elem(&shares, &key);
	if (!share && by > 0) {
		bpf_map_update_elem(&shares, &key, &empty, BPF_NOEXIST);
		share = bpf_map_lookup_elem(&shares, &key);
	}
	/* An entry that was forgotten meanwhile has never heard of this one. */
	if (share && (by > 0 || share->sending > 0))
		__sync_fetch_and_add(&share->sending, by);
}

static __always_inline void stream_sends(struct sock *sk, struct pace_stream *stream)
{
	struct pace_path *path = stream->is_sending ? NULL : path_of_new(sk);

	if (!path)
		return;
	stream->is_sending = 1;
	path_sends_more(path);
	share_changes(sk, stream->rule, 1);
}

static __always_inline void stream_rests(struct sock *sk, struct pace_stream *stream)
{
	struct pace_path *path;

	if (!stream->is_sending)
		return;
	stream->is_sending = 0;
	path = path_of(sk);
	if (path)
		path_sends_less(path);
	share_changes(sk, stream->rule, -1);
}

static __always_inline void set_rule(struct sock *sk, struct pace_stream *stream, __u32 rule)
{
	if (stream->rule == rule)
		return;
	if (stream->is_sending) {
		share_changes(sk, stream->rule, -1);
		share_changes(sk, rule, 1);
	}
	stream->rule = rule;
}

static __always_inline __u32 headers_of(const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;
	const __be32 *address = common->skc_v6_daddr.in6_u.u6_addr32;
	bool is_ipv4 = common->skc_family != AF_INET6 ||
		       (!address[0] && !address[1] && address[2] == bpf_htonl(0xffff));

	return ((const struct tcp_sock *)sk)->tcp_header_len + (is_ipv4 ? 20 : 40);
}

/* What the path carries, for one of the streams that send there. */
static __always_inline __u64 rate_of_path(struct sock *sk, const struct pace_stream *stream, __u32 rtt_us,
					  __u64 age_max_ns, __u64 now)
{
	const struct pace_path *path = path_of(sk);
	__u64 rate;
	__s32 streams;

	if (!path)
		return 0;
	rate = path_rate(path, rtt_us, age_max_ns, now);
	if (!rate)
		return 0;
	streams = path->sending + !stream->is_sending;
	rate = rate_probing(rate, now - path->cycle_began_ns, path_unit_ns(path->rtt_min_us),
			    ((struct tcp_sock *)sk)->mss_cache, path->raised);
	return rate_share(rate, streams, 1, 0);
}

/* Bytes of segments a second that the stream's rule lets leave now; 0: as many as go. */
static __always_inline __u64 ruled_rate(struct sock *sk, const struct pace_stream *stream, __u32 rtt_us,
					__u64 age_max_ns)
{
	const struct pace_rate *rate;
	struct pace_share_key key = {};
	const struct pace_share *share = NULL;
	__u32 rule = stream->rule;
	__u64 now;

	if (!rule)
		return 0;
	now = bpf_ktime_get_ns();
	if (now > rules_now.lease_until_ns)
		return 0;
	rate = bpf_map_lookup_elem(&rates, &rule);
	if (!rate)
		return 0;
	if (!rate->rate)
		return rate_of_path(sk, stream, rtt_us, age_max_ns, now);
	if (rate->shared != PACE_EACH_STREAM) {
		share_key(sk, rule, rate->shared, &key);
		share = bpf_map_lookup_elem(&shares, &key);
	}
	return rate_share(rate->rate, share ? share->sending + !stream->is_sending : 1,
			  ((struct tcp_sock *)sk)->mss_cache, headers_of(sk));
}

/* What it has is what the path carries. */
static __always_inline bool is_automatic(__u32 rule)
{
	const struct pace_rate *rate = rule ? bpf_map_lookup_elem(&rates, &rule) : NULL;

	return rate && !rate->rate;
}

#endif
