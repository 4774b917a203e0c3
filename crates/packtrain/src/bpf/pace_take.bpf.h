/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Which connections are paced, how they come to it when they are established and later, and how they are given back. */
#ifndef PACKTRAIN_PACE_TAKE_BPF_H
#define PACKTRAIN_PACE_TAKE_BPF_H

/* So many levels of cgroups are looked at. */
#define CGROUP_LEVELS	64

/* From a context, at the place that it has there: compilers merge loads of two branches into one of a place that is worked out. */
#define LOAD(field)	(*(const volatile __u32 *)&(field))

#define TCP_ESTABLISHED	1
#define TCP_CLOSE_WAIT	8

static __always_inline bool one_has(const volatile struct pace_ports *ranges, __u32 count, __u16 port)
{
	for (__u32 i = 0; i < PACE_PORTS && i < count; i++)
		if (port >= ranges[i].first && port <= ranges[i].last)
			return true;
	return count == 0;
}

/* All bits of ::ffff:0:0/96 count. */
static __always_inline bool is_of_ipv4(const volatile struct pace_prefix *prefix)
{
	return !(~prefix->mask[0] | ~prefix->mask[1] | ~prefix->mask[2]) && !prefix->address[0] &&
	       !prefix->address[1] && prefix->address[2] == bpf_htonl(0xffff);
}

static __noinline bool is_meant(const struct pace_ends *ends)
{
	if (!ends || !settings.spaces || !one_has(settings.remote_port, settings.remote_ports, ends->remote_port) ||
	    !one_has(settings.local_port, settings.local_ports, ends->local_port))
		return false;
	for (__u32 i = 0; i < PACE_PREFIXES && i < settings.prefixes; i++) {
		const volatile struct pace_prefix *prefix = &settings.prefix[i];

		/* ::/0 is none of IPv4's. */
		if (is_mapped(ends->remote) != is_of_ipv4(prefix))
			continue;
		if ((ends->remote[0] & prefix->mask[0]) == prefix->address[0] &&
		    (ends->remote[1] & prefix->mask[1]) == prefix->address[1] &&
		    (ends->remote[2] & prefix->mask[2]) == prefix->address[2] &&
		    (ends->remote[3] & prefix->mask[3]) == prefix->address[3])
			return true;
	}
	return settings.prefixes == 0;
}

/* The application, or a program in its place, has said which congestion control it wants. */
static __always_inline bool has_chosen(const struct tcp_sock *tp)
{
	return !settings.overrides && BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_setsockopt);
}

static __always_inline void copy_name(char *to)
{
	for (int i = 0; i < PACE_NAME; i++)
		to[i] = settings.name[i];
}

SEC("sockops")
int pace_established(struct bpf_sock_ops *ctx)
{
	struct pace_ends ends = {};
	struct pace_stream *stream;
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;
	char name[PACE_NAME];
	__u32 local4, remote4, rule;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (!sk || (settings.netns && bpf_get_netns_cookie(ctx) != settings.netns))
		return 1;
	local4 = LOAD(ctx->local_ip4);
	ends.local[0] = LOAD(ctx->local_ip6[0]);
	ends.local[1] = LOAD(ctx->local_ip6[1]);
	ends.local[2] = LOAD(ctx->local_ip6[2]);
	ends.local[3] = LOAD(ctx->local_ip6[3]);
	remote4 = LOAD(ctx->remote_ip4);
	ends.remote[0] = LOAD(ctx->remote_ip6[0]);
	ends.remote[1] = LOAD(ctx->remote_ip6[1]);
	ends.remote[2] = LOAD(ctx->remote_ip6[2]);
	ends.remote[3] = LOAD(ctx->remote_ip6[3]);
	if (ctx->family == AF_INET) {
		ends.remote[0] = 0;
		ends.remote[1] = 0;
		ends.remote[2] = bpf_htonl(0xffff);
		ends.remote[3] = remote4;
		ends.local[0] = 0;
		ends.local[1] = 0;
		ends.local[2] = bpf_htonl(0xffff);
		ends.local[3] = local4;
	}
	ends.remote_port = bpf_ntohl(ctx->remote_port);
	ends.local_port = ctx->local_port;
	rule = rule_of(&ends);
	if (!rule && !is_meant(&ends))
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || (!rule && has_chosen(tp)))
		return 1;
	stream = bpf_sk_storage_get(&streams, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (stream) {
		stream->rule = rule;
		bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, stream->former, PACE_NAME);
	}
	copy_name(name);
	if (stream && !bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, PACE_NAME))
		count(PACE_TAKEN, 1);
	else
		count(PACE_REFUSED, 1);
	return 1;
}

static __always_inline void name_of(const struct tcp_sock *tp, char *name)
{
	const struct tcp_congestion_ops *ops = tp->inet_conn.icsk_ca_ops;

	bpf_probe_read_kernel(name, PACE_NAME, &ops->name);
}

static __always_inline bool is_ours(const struct tcp_sock *tp)
{
	char name[PACE_NAME] = {};

	name_of(tp, name);
	for (int i = 0; i < PACE_NAME; i++)
		if (name[i] != settings.name[i])
			return false;
	return true;
}

/* It may be one that has ended before it could give the connection back. Its number may differ from ours. */
static __always_inline bool is_of_packtrain(const char *name)
{
	const char prefix[] = "packtrain_cps";

	for (int i = 0; i < sizeof(prefix) - 1; i++)
		if (name[i] != prefix[i])
			return false;
	return true;
}

/* What it had, and where that was ours already, what connections of its namespace have. */
static __always_inline void former_name(const struct sock_common *common, char *name)
{
	const struct tcp_congestion_ops *ops;

	if (name[0] && !is_of_packtrain(name))
		return;
	ops = BPF_CORE_READ(common, skc_net.net, ipv4.tcp_congestion_control);
	bpf_probe_read_kernel(name, PACE_NAME, &ops->name);
}

/* One of the program's cgroup, or of one below it. */
static __always_inline bool is_of_our_cgroup(const struct sock *sk)
{
	struct cgroup *cgroup, *ancestor = NULL;
	__u32 level = settings.cgroup_level;

	if (!settings.cgroup)
		return true;
	cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	if (!cgroup || level >= CGROUP_LEVELS || BPF_CORE_READ(cgroup, level) < (int)level)
		return false;
	bpf_core_read(&ancestor, sizeof(ancestor), &cgroup->ancestors[level]);
	return ancestor && BPF_CORE_READ(ancestor, kn, id) == settings.cgroup;
}

static __always_inline void address_of(__u32 *address, const struct sock_common *common, bool is_remote)
{
	if (common->skc_family == AF_INET6) {
		if (is_remote)
			BPF_CORE_READ_INTO((struct in6_addr *)address, common, skc_v6_daddr);
		else
			BPF_CORE_READ_INTO((struct in6_addr *)address, common, skc_v6_rcv_saddr);
		return;
	}
	address[2] = bpf_htonl(0xffff);
	address[3] = is_remote ? common->skc_daddr : common->skc_rcv_saddr;
}

static __always_inline bool is_connected(const struct sock_common *common)
{
	return common->skc_state == TCP_ESTABLISHED || common->skc_state == TCP_CLOSE_WAIT;
}

static __always_inline void give_back(struct tcp_sock *tp, const struct sock_common *common,
				      const struct pace_stream *stream)
{
	char name[PACE_NAME] = {};

	if (stream)
		__builtin_memcpy(name, stream->former, PACE_NAME);
	former_name(common, name);
	bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, name, PACE_NAME);
}

/* For each connection of this namespace that is there: what is meant is taken, has its rule, or is given back. */
SEC("iter/tcp")
int pace_settle(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct pace_ends ends = {};
	struct pace_stream *stream;
	struct tcp_sock *tp;
	char name[PACE_NAME] = {};
	bool is_one_of_us;
	__u32 rule;

	if (!common || !is_connected(common))
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp || !is_of_our_cgroup((struct sock *)tp))
		return 0;
	address_of(ends.remote, common, true);
	address_of(ends.local, common, false);
	ends.remote_port = bpf_ntohs(common->skc_dport);
	ends.local_port = common->skc_num;
	rule = rule_of(&ends);
	name_of(tp, name);
	is_one_of_us = is_of_packtrain(name);
	stream = bpf_sk_storage_get(&streams, tp, 0, 0);
	if (is_one_of_us && stream) {
		if (rule || is_meant(&ends)) {
			set_rule((struct sock *)tp, stream, rule);
		} else {
			give_back(tp, common, stream);
		}
		return 0;
	}
	if (!rule && (settings.only_new || !is_meant(&ends) || (!is_one_of_us && has_chosen(tp))))
		return 0;
	stream = bpf_sk_storage_get(&streams, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (stream) {
		stream->rule = rule;
		stream->was_ours = is_one_of_us;
		bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, stream->former, PACE_NAME);
	}
	copy_name(name);
	if (stream && !bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, name, PACE_NAME))
		count(PACE_TAKEN_LATE, 1);
	else
		count(PACE_REFUSED, 1);
	return 0;
}

/* For each that was taken: it has again what it had. */
SEC("iter/tcp")
int pace_give_back(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp;

	if (!common || !is_connected(common))
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (tp && is_ours(tp))
		give_back(tp, common, bpf_sk_storage_get(&streams, tp, 0, 0));
	return 0;
}

/* For each that is ours: what there is to tell of it. */
SEC("iter/tcp")
int pace_show(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct pace_shown shown = {};
	struct pace_stream *stream;
	struct tcp_sock *tp;

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp || !is_ours(tp))
		return 0;
	stream = bpf_sk_storage_get(&streams, tp, 0, 0);
	if (!stream)
		return 0;
	address_of(shown.remote, common, true);
	address_of(shown.local, common, false);
	shown.remote_port = bpf_ntohs(common->skc_dport);
	shown.local_port = common->skc_num;
	shown.state = common->skc_state;
	shown.pacing_rate = ((struct sock *)tp)->sk_pacing_rate;
	shown.interval_ns = stream->phase == PACE_SPACING || stream->fill == PACE_EVEN ? stream->interval_ns : 0;
	shown.bytes_acked = tp->bytes_acked;
	shown.bytes_retrans = tp->bytes_retrans;
	if (tp->rate_interval_us)
		shown.delivery_rate = (__u64)tp->rate_delivered * tp->mss_cache * 1000000 / tp->rate_interval_us;
	shown.srtt_us = tp->srtt_us >> 3;
	shown.rtt_min_us = tp->rtt_min.s[0].v;
	shown.cwnd = tp->snd_cwnd;
	shown.ssthresh = tp->snd_ssthresh;
	shown.in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	shown.mss = tp->mss_cache;
	for (int i = 0; i < PACE_PHASES; i++)
		shown.lost_in[i] = stream->lost_in[i];
	shown.spaced_rounds = stream->spaced_rounds;
	shown.retransmitted = tp->total_retrans;
	shown.phase = stream->phase;
	shown.knows_path = stream->knows_path;
	shown.is_sending = stream->is_sending;
	shown.rule = stream->rule;
	shown.ruled_rate = ruled_rate((struct sock *)tp, stream, shown.rtt_min_us, settings.age_max_ns);
	bpf_seq_write(ctx->meta->seq, &shown, sizeof(shown));
	return 0;
}

#endif
